#!/usr/bin/env python3
"""Opens a store with xarray and ArviZ, every warning an error, and checks what they see.

    python tools/check_store.py RUN [SUMMARY.json]

SUMMARY.json is optional: {name: {"r_hat": ..., "ess_bulk": ..., "ess_tail": ..., "mean": ..., "sd": ...}} as
another program computed them; they must agree to 1e-6. Runs with ArviZ 0.23 on Python 3.11 and with ArviZ 1
on Python 3.12 or later; needs xarray, zarr, arviz and netCDF4. Exit code 0 if all is well.
"""

import itertools
import json
import pathlib
import sys
import tempfile
import warnings


def import_all():
    # Importing is not under test: packages warn about each other.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
        import netCDF4
        import numpy
        import xarray
        import zarr
    versions = [f"{m.__name__} {m.__version__}" for m in (arviz, netCDF4, numpy, xarray, zarr)]
    print(f"python {sys.version.split()[0]}, " + ", ".join(versions))
    return arviz, numpy, xarray


def check_layout(tree, root):
    """Dimensions, types and attributes."""
    posterior, stats = tree["posterior"], tree["sample_stats"]
    for group in [posterior, stats]:
        for name, array in group.data_vars.items():
            assert array.dims[:2] == ("chain", "draw"), (group.name, name, array.dims)
    assert posterior["x"].dims == ("chain", "draw", "time", "state")
    assert posterior.indexes["time"].is_unique
    assert tree["observed_data"]["y"].dims == ("time", "output")
    for group in ["observed_data", "constant_data"]:
        for name in ["sequence", "time_value"]:
            assert name in tree[group].coords and tree[group][name].dims == ("time",), (group, name)
    assert posterior.sizes["draw"] == min(root["committed_draws"])
    assert list(posterior["chain"].values) == root["chains"]
    assert list(posterior["draw"].values) == list(range(posterior.sizes["draw"]))
    for name, array in stats.data_vars.items():
        floats = ("lp", "log_joint", "log_likelihood_total", "relative_jitter")
        expected = "float64" if name in floats else "int64"
        assert array.dtype == expected, (name, array.dtype)
        if expected == "int64" and array.size > 0:
            assert 0 <= int(array.min()) and int(array.max()) < 1 << 40, name
    for name, array in posterior.data_vars.items():
        assert array.notnull().all(), name
    for key in ["inference_library", "inference_library_version", "seed", "configuration", "data_sha256"]:
        assert key in tree.attrs and key in posterior.attrs, key
    if "warmup_posterior" in tree.children:
        assert set(tree["warmup_posterior"].data_vars) == set(posterior.data_vars)
        assert tree["warmup_posterior"].sizes["draw"] == min(root["committed_warmup"])


def check_netcdf(tree, xarray):
    """NetCDF and back."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.nc"
        tree.to_netcdf(path)
        with xarray.open_datatree(path) as back:
            for name, group in tree.children.items():
                assert group.to_dataset().equals(back[name].to_dataset()), name


def labels(array):
    """What ArviZ writes behind the name of each number: `[x1, u]`."""
    if array.ndim == 2:
        return [""]
    along = [[str(label) for label in array[dim].values] for dim in array.dims[2:]]
    return [f"[{', '.join(at)}]" for at in itertools.product(*along)]


def summaries(arviz, tree):
    """az.summary of the hyper-parameters, by name, with all digits."""
    if arviz.__version__.startswith("0."):
        groups = {name: group.to_dataset() for name, group in tree.children.items()}
        data = arviz.InferenceData(**groups)
    else:
        data = tree
    parameters = {name: array for name, array in tree["posterior"].data_vars.items() if name != "x"}
    names = list(parameters)
    try:
        table = arviz.summary(data, var_names=names, round_to="none")
        whole = arviz.summary(data, round_to="none")
    except TypeError:
        table = arviz.summary(data, var_names=names)
        whole = arviz.summary(data)
    rows = [f"{name}{label}" for name, array in parameters.items() for label in labels(array)]
    assert list(table.index) == rows, (list(table.index), rows)
    n_states = tree["posterior"]["x"].isel(chain=0, draw=0).size
    assert len(whole) == len(rows) + n_states
    assert whole.index[-1].startswith("x["), whole.index[-1]
    assert table.notnull().all().all(), table
    print(table.to_string())
    return table


def compare(table, expected):
    """Numbers of another program."""
    worst = 0.0
    for name, row in expected.items():
        for column, value in row.items():
            found = float(table.loc[name, column])
            worst = max(worst, abs(found - value) / max(1.0, abs(value)))
    print(f"largest difference from the given summary: {worst:.1e}")
    assert worst < 1e-6


def main():
    run = sys.argv[1]
    arviz, numpy, xarray = import_all()
    warnings.simplefilter("error")
    root = json.loads((pathlib.Path(run) / "zarr.json").read_text())["attributes"]
    tree = xarray.open_datatree(run, engine="zarr").load()
    check_layout(tree, root)
    # Packages use each other's older interfaces; what they say about that is not about the store.
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=PendingDeprecationWarning)
    check_netcdf(tree, xarray)
    if tree["posterior"].sizes["draw"] == 0:
        print("no draw that all chains have: nothing to summarise")
        return
    table = summaries(arviz, tree)
    if not arviz.__version__.startswith("0."):
        direct = arviz.from_zarr(run)
        assert direct["posterior"].to_dataset().equals(tree["posterior"].to_dataset())
    if len(sys.argv) > 2:
        compare(table, json.loads(pathlib.Path(sys.argv[2]).read_text()))
    print("all well")


if __name__ == "__main__":
    main()
