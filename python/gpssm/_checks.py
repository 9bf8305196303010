"""Prior and posterior predictive checks, and comparisons of models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from . import _core
from ._arguments import checked
from ._data import Data, DataLike
from ._fitted import filter_options
from ._progress import Steps
from ._settings import whole
from ._suggest import refuse_unknown
from ._tree import add_parameters, inputs_of, observed, row_index
from ._types import Floats
from ._warn import warn

if TYPE_CHECKING:
    import pandas as pd

    from .result import Result

__all__ = ["compare"]


def prior_tree(problem: _core.Problem, data: Data, draws: int, seed: int) -> xr.DataTree:
    """Draws before any fit as a tree; see `gpssm.Model.sample_prior`."""
    found = problem.sample_prior(whole("draws", draws, 1), whole("seed", seed, 0))
    if not len(found["theta"]):
        raise ValueError("sample_prior: all simulated records overflowed; give narrower priors")
    held = _hold(found["y"], data)
    lost, far = found["diverged"], int(held.sum())
    if lost or far:
        what = [f"{far} of {draws} simulated records go further and are held there" if far else ""]
        what += [f"{lost} of {draws} overflowed and are left out" if lost else ""]
        warn(
            f"the priors allow outputs beyond {REACH} times the range of the data: "
            f"{', '.join(filter(None, what))}. Functions that are added to the state can grow without bound: "
            "state narrower priors, or a mean that returns, such as LinearMean([0.9])"
        )
    dims = ("chain", "draw")
    coords = {"chain": [0], "draw": np.arange(len(found["theta"]))}
    prior = xr.Dataset(coords={**coords, **row_index(data), "state": problem.state_names})
    add_parameters(prior, problem, found["theta"][None], dims, learned=True)
    prior["x"] = ((*dims, "time", "state"), np.concatenate(found["x"], axis=1)[None])
    y = ((*dims, "time", "output"), np.concatenate(found["y"], axis=1)[None])
    predictive = xr.Dataset({"y": y}, {**coords, **row_index(data), "output": data.outputs})
    groups = {"prior": prior, "prior_predictive": predictive, "observed_data": observed(data)}
    groups["constant_data"] = inputs_of(data)
    tree = xr.DataTree.from_dict(groups)
    _count(tree)
    return tree


def _count(tree: xr.DataTree) -> None:
    """Make counts integers, in place: ArviZ draws histograms of integers, smooth densities of other numbers."""
    drawn = [name for name in ("prior_predictive", "posterior_predictive", "predictions") if name in tree.children]
    outputs = {name: tree[name].to_dataset()["y"] for name in [*drawn, "observed_data"]}
    if not drawn or not all(_are_whole(outputs[name].values) for name in drawn):
        return
    for name, values in outputs.items():
        if _are_whole(values.values):
            tree[name]["y"] = values.astype(np.int64)


def _are_whole(values: Floats) -> bool:
    """Whether all are whole numbers that float64 can count; a missing one is not."""
    return bool((np.abs(values) < 2.0**53).all() and (values == np.rint(values)).all())


REACH = 100
"""Outputs drawn from the prior are held within so many ranges of the data on either side."""


def _hold(simulated: list[Floats], data: Data) -> NDArray[np.bool_]:
    """Hold outputs (draw, time, output) near the range of the data, in place; give the draws that were held."""
    measured = np.concatenate(data.y)
    known = np.isfinite(measured).any(axis=0)
    held = np.zeros(len(simulated[0]), dtype=bool)
    for k in np.flatnonzero(known):
        low, high = np.nanmin(measured[:, k]), np.nanmax(measured[:, k])
        reach = REACH * (high - low)
        for y in simulated:
            inside = np.clip(y[..., k], low - reach, high + reach)
            held |= (inside != y[..., k]).any(axis=1)
            y[..., k] = inside
    return held


def all_groups(
    result: Result, prior: int, predictions: xr.Dataset | None, missing: bool, seed: int
) -> xr.DataTree:
    """All groups of ArviZ's schema; see `gpssm.Result.groups`."""
    tree = result.posterior.copy()
    tree["posterior_predictive"] = xr.DataTree(replicates(result, seed))
    if prior:
        drawn = prior_tree(result._problem, result.data, prior, seed)
        tree["prior"], tree["prior_predictive"] = drawn["prior"], drawn["prior_predictive"]
    if predictions is not None:
        if "path" not in predictions.dims or "y" not in predictions:
            raise ValueError("predictions: expected what result.forecast gives, with y (path, time, output)")
        drawn_paths = predictions[[name for name in ("y", "x") if name in predictions]]
        drawn_paths = drawn_paths.drop_vars("quantile", errors="ignore").rename(path="draw").expand_dims(chain=[0])
        order = ("chain", "draw", "time", ...)
        drawn_paths = drawn_paths.assign_coords(draw=np.arange(predictions.sizes["path"])).transpose(*order)
        tree["predictions"] = xr.DataTree(drawn_paths)
        if "u" in predictions:
            inputs = predictions[["u"]].drop_vars("quantile", errors="ignore")
            tree["predictions_constant_data"] = xr.DataTree(inputs)
    seen = tree["observed_data"]["y"].notnull().any("output").values
    if not missing and not seen.all():
        for name in ("observed_data", "constant_data", "posterior_predictive", "prior_predictive"):
            if name in tree.children:
                tree[name] = xr.DataTree(tree[name].to_dataset().isel(time=np.flatnonzero(seen)))
    _count(tree)
    return tree


def of_one_output(tree: xr.DataTree, output: str) -> xr.DataTree:
    """The groups with one output alone, and the dimension of a single input left out."""
    refuse_unknown("output", [output], [str(name) for name in np.asarray(tree["observed_data"]["output"])])
    groups = {}
    for name, group in tree.children.items():
        one = group.to_dataset()
        if "observation" in one.dims:
            one = one.isel(observation=one["output"].values == output)
        elif "output" in one.dims and "y" in one:
            one = one.sel(output=output)
        groups[name] = one.isel(input=0) if one.sizes.get("input") == 1 and "u" in one else one
    found = xr.DataTree.from_dict(groups)
    found.attrs = dict(tree.attrs)
    return found


def replicates(result: Result, seed: int) -> xr.Dataset:
    """Replicated outputs; see `gpssm.Result.posterior_predictive`."""
    chains = result._complete
    found = _core.Posterior(result._problem, [draws._to_core() for _, draws in chains], None)
    y = found.replicate(whole("seed", seed, 0))
    y = y.reshape(len(chains), -1, *y.shape[1:])
    coords = {"chain": [number for number, _ in chains], "draw": np.arange(y.shape[1])}
    variable = (("chain", "draw", "time", "output"), y)
    return xr.Dataset({"y": variable}, {**coords, **row_index(result.data), "output": result.data.outputs})


Method = Literal["record", "lfo"]
"""How models are compared."""


@checked
def compare(
    results: Mapping[str, Result] | Sequence[Result],
    y: DataLike | None = None,
    u: DataLike | None = None,
    *,
    method: Method = "record",
    n_init: int | None = None,
    functions: int | None = None,
    particles: int = 50,
    seed: int = 1,
    max_draws: int | None = 200,
    draws: int = 500,
    progress_bar: bool = True,
) -> pd.DataFrame:
    """Rank fitted models by how well they predict the next row: log p(y_t | y_{0:t-1}), mean over rows.

    As ``gpssm compare`` of the program.

    Parameters
    ----------
    results : dict or list of Result
        Fitted models by name, or numbered; they must have the same outputs and inputs.
    y, u
        For ``method="record"``: a record that none of the models was fitted to, as for `gpssm.fit`.
    method : "record" or "lfo"
        On a new record, or leave-future-out: the later rows of the training record, each predicted from the rows
        before it alone. Draws of a fit to the first rows are weighted by how well they predict the following
        rows; where the weights become unreliable (Pareto k), the model is fitted again. Priors that follow the
        scale of the data are those of the whole record. Prefer this comparison to ``az.loo`` for time series.
    n_init : int, optional
        Number of rows at the beginning that are not scored: they set the state (0 by default), or with
        ``"lfo"`` are fitted first (half of the rows by default).
    functions : int, optional
        Number of functions: of the filter (50), or of those that ``"lfo"`` weights (400).
    particles, seed
        The filter, see `gpssm.Result.filter`.
    max_draws : int, optional
        Number of draws that are used on a new record, spread evenly over all of them; None for all.
    draws : int
        Draws of each chain of a fit of ``"lfo"``.
    progress_bar : bool
        Whether the progress of ``"lfo"`` is shown.

    Returns
    -------
    pandas.DataFrame
        Models, the best first: ``log_score`` (mean of a row), ``difference`` to the best, its
        ``standard_error``, and the number of rows ``n``; with ``"lfo"`` also the number of ``fits`` and the
        ``largest_k`` of the weights that were used. A difference below two standard errors is not significant.

    References
    ----------
    Bürkner, Gabry and Vehtari (2020), Approximate leave-future-out cross-validation for Bayesian time series
    models.

    Examples
    --------
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(40))
    >>> short = {"draws": 10, "tune": 10, "chains": 1, "progress_bar": False}
    >>> fits = {kernel: gpssm.fit(y[:30], kernel=kernel, **short) for kernel in ("se", "linear")}
    >>> gpssm.compare(fits, y[30:], functions=5).columns.tolist()
    ['log_score', 'difference', 'standard_error', 'n']
    >>> quick = {"draws": 25, "functions": 25, "progress_bar": False}
    >>> gpssm.compare(fits, method="lfo", n_init=25, **quick)["n"].tolist()
    [5, 5]
    """
    import pandas as pd

    if not isinstance(results, Mapping):
        results = {str(number): result for number, result in enumerate(results)}
    if not results:
        raise ValueError("results: there is nothing to compare")
    layouts = {result.data.layout for result in results.values()}
    if len(layouts) > 1:
        raise ValueError("results: models of other rows (every, input_lags, delay) cannot be compared")
    if n_init is not None:
        whole("n_init", n_init, 0)
    columns = ["log_score", "difference", "standard_error"]
    if method == "lfo":
        if y is not None or u is not None:
            raise ValueError("y: leave-future-out scores the training record; give no other")
        options = {"n_init": n_init, "draws": whole("draws", draws, 1), "particles": particles, "seed": seed}
        if functions is not None:
            options["functions"] = whole("functions", functions, 1)
        ranking = _futures(results, options, progress_bar)
        columns += ["largest_k"]
    elif method == "record":
        if y is None:
            raise ValueError('y: give the record on which models are compared, or method="lfo"')
        records = {name: result._record(y, u) for name, result in results.items()}
        _, outputs, inputs = next(iter(records.values()))
        text = filter_options(functions or 50, particles, 256, 1.0, "auto", seed)
        models = [(name, result._some_draws(max_draws)) for name, result in results.items()]
        ranking = json.loads(_core.Posterior.compare(models, outputs, inputs, n_init or 0, text))
    else:
        raise ValueError(f"method: expected 'record' or 'lfo', not {method!r}")
    rows = []
    for model in ranking:
        row = {**{column: model[column] for column in columns}, "n": len(model["rows"])}
        rows.append(row if "fits" not in model else {**row, "fits": len(model["fits"])})
    return pd.DataFrame(rows, index=pd.Index([model["name"] for model in ranking], name="model"))


def _futures(
    results: Mapping[str, Result], options: dict[str, int | None], progress_bar: bool
) -> list[dict[str, Any]]:
    """Leave-future-out scores, with a bar."""
    models = [(name, result._problem, json.dumps(result.sampler)) for name, result in results.items()]
    bar = Steps("leave-future-out") if progress_bar else None

    def on_row(model: int, done: int, of: int, fits: int) -> None:
        assert bar is not None
        bar.tell(model * of + done, len(models) * of, f"{fits} fits of {models[model][0]}")

    found: list[dict[str, Any]] = json.loads(
        _core.compare_futures(models, json.dumps(options), on_row if bar else None)
    )
    if bar is not None:
        bar.close()
    return found
