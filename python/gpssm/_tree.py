"""Draws as a DataTree in ArviZ's schema."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from . import _core
from ._chains import Draws
from ._index import Times
from ._suggest import did_you_mean
from ._types import Floats

if TYPE_CHECKING:
    from ._data import Data
    from .result import Result

Numbered = list[tuple[int, Draws]]
"""Chains with their numbers."""

Coordinates = Mapping[Hashable, object]


def common_length(chains: Numbered) -> Numbered:
    """Chains of equal length: of all choices the one with the most draws."""
    lengths = sorted((len(draws) for _, draws in chains), reverse=True)
    if not lengths or lengths[0] == 0:
        return []
    best = max(range(len(lengths)), key=lambda k: (k + 1) * lengths[k])
    n = lengths[best]
    return [(number, draws.head(n)) for number, draws in chains if len(draws) >= n]


def draws_tree(result: Result) -> xr.DataTree:
    """All draws of a result; see `gpssm.Result.posterior`."""
    posterior, stats = result._groups
    groups = {"posterior": posterior, "sample_stats": stats, "log_likelihood": _log_likelihood(result)}
    groups["log_prior"] = log_prior(result)
    groups |= {"observed_data": observed(result.data), "constant_data": _constant(result)}
    warmup = [(chain.chain, chain.warmup) for chain in result.chains]
    n = min((len(draws) for _, draws in warmup), default=0)
    if n > 0 and result.save_warmup:
        cut = [(number, draws.head(n)) for number, draws in warmup]
        groups["warmup_posterior"], groups["warmup_sample_stats"] = draws_groups(result, cut)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        "inference_library": "gpssm",
        "inference_library_version": _core.VERSION,
        "seed": result.sampler["seed"],
        "tuning_steps": result.sampler["tune"],
        "configuration": result.to_toml(),
    }
    return tree


def row_index(data: Data) -> Coordinates:
    """Index of the rows: times where they tell rows apart, else numbers, as ArviZ needs a unique index."""
    time = _all_times(data)
    return {"time": time if len(np.unique(time)) == len(time) else np.arange(len(time), dtype=np.float64)}


def _all_times(data: Data) -> Times:
    return np.concatenate([data.times(s) for s in range(len(data.y))])


def _rows(data: Data) -> Coordinates:
    """Index, label and time of the rows; draws have the index alone, as ArviZ summarises no more than that."""
    labels = np.repeat(data.sequences, [len(t) for t in data.time])
    time = _all_times(data)
    return {**row_index(data), "sequence": ("time", labels), "time_value": ("time", time)}


def draws_groups(result: Result, chains: Numbered) -> tuple[xr.Dataset, xr.Dataset]:
    """Draws of hyper-parameters and states, and what happened in each sweep."""
    draws = [d for _, d in chains]
    n = len(draws[0]) if draws else 0
    coords: Coordinates = {"chain": [number for number, _ in chains], "draw": np.arange(n)}
    dims = ("chain", "draw")
    posterior = xr.Dataset(coords={**coords, **row_index(result.data), "state": result.state_names})
    theta = np.stack([d.theta for d in draws]) if draws else np.empty((0, 0, len(result.parameter_names)))
    add_parameters(posterior, result._problem, theta, dims, learned=True)
    paths = [np.concatenate(d.paths, axis=1) for d in draws]
    x = np.stack(paths) if paths else np.empty((0, 0, result.data.n_rows, len(result.state_names)))
    posterior["x"] = ((*dims, "time", "state"), x)
    stats = xr.Dataset(coords=coords)
    for name in draws[0].statistics if draws else ():
        stats[name] = (dims, np.stack([d.statistics[name] for d in draws]))
    if "log_joint" in stats:
        stats["lp"] = stats["log_joint"]
    return posterior, stats


def _log_likelihood(result: Result) -> xr.Dataset:
    """Log densities of every observation, log p(y | x_t, theta).

    Dimensions are those of y, without rows in which nothing was observed. Where some outputs of a row are missing,
    observations follow each other, because ArviZ takes no missing values.
    """
    chains = result._complete
    if not chains:
        return xr.Dataset()
    dims = ("chain", "draw")
    coords: Coordinates = {"chain": [number for number, _ in chains], "draw": np.arange(len(chains[0][1]))}
    found = _core.Posterior(result._problem, [draws._to_core() for _, draws in chains], None)
    by_output, values = found.log_likelihood()
    values = values.reshape(len(chains), -1, *values.shape[1:])
    time = np.asarray(row_index(result.data)["time"])
    observed = ~np.isnan(values[0, 0])
    rows = observed.any(axis=1)
    if not by_output:
        return xr.Dataset({"y": ((*dims, "time"), values[:, :, rows, 0])}, {**coords, "time": time[rows]})
    outputs = np.asarray(result.data.outputs)
    if observed[rows].all():
        y = xr.DataArray(values[:, :, rows], dims=(*dims, "time", "output"))
        return xr.Dataset({"y": y}, {**coords, "time": time[rows], "output": outputs})
    t, k = np.nonzero(observed)
    labels = {"time": ("observation", time[t]), "output": ("observation", outputs[k])}
    y = xr.DataArray(values[:, :, t, k], dims=(*dims, "observation"))
    return xr.Dataset({"y": y}, {**coords, "observation": np.arange(len(t)), **labels})


def add_parameters(
    group: xr.Dataset, problem: _core.Problem, theta: Floats, dims: tuple[str, ...], *, learned: bool
) -> None:
    """Hyper-parameters as arrays with named dimensions, as in the store; the last axis of theta is all of them."""
    for name, along, places in problem.parameter_arrays(learned):
        for dim, labels in along:
            group.coords[dim] = labels
        shape = (*theta.shape[:-1], *(len(labels) for _, labels in along))
        group[name] = ((*dims, *(dim for dim, _ in along)), theta[..., places].reshape(shape))


def quantities(posterior: xr.Dataset, var_names: Sequence[str] | str | None) -> list[tuple[str, Floats]]:
    """Every number of some variables with its name, such as ``process_sd[x2]``, and its draws (chain, draw)."""
    if var_names is None:
        var_names = [str(name) for name in posterior.data_vars if name != "x"]
    found: list[tuple[str, Floats]] = []
    for name in [var_names] if isinstance(var_names, str) else var_names:
        if name not in posterior:
            names = [str(known) for known in posterior.data_vars]
            hint = did_you_mean(name, names) or f" among {', '.join(names)}"
            raise ValueError(f"var_names: there is no {name!r}{hint}")
        values = posterior[name]
        for index in np.ndindex(values.shape[2:]):
            parts = [
                str(values[dim].values[i]) if dim != "time" else f"{i}"
                for dim, i in zip(values.dims[2:], index, strict=True)
            ]
            label = f"{name}[{', '.join(parts)}]" if parts else str(name)
            found.append((label, np.ascontiguousarray(values.values[(..., *index)], dtype=np.float64)))
    return found


def observed(data: Data) -> xr.Dataset:
    """Outputs as they were measured."""
    y = (("time", "output"), np.concatenate(data.y))
    return xr.Dataset({"y": y}, {**_rows(data), "output": data.outputs})


def inputs_of(data: Data) -> xr.Dataset:
    """Inputs, and the times of rows."""
    found = xr.Dataset(coords=_rows(data))
    if data.u is not None:
        found = found.assign_coords(input=data.inputs)
        found["u"] = (("time", "input"), np.concatenate(data.u))
    return found


def log_prior(result: Result) -> xr.Dataset:
    """Log prior densities of the hyper-parameters, under their names; that of a matrix at its first entry."""
    chains = result._complete
    n_theta = len(result.parameter_names)
    theta = np.stack([draws.theta for _, draws in chains]) if chains else np.empty((0, 0, n_theta))
    values = result._problem.log_prior(np.ascontiguousarray(theta.reshape(-1, n_theta))).reshape(theta.shape)
    coords = {"chain": [number for number, _ in chains], "draw": np.arange(theta.shape[1])}
    found = xr.Dataset(coords=coords)
    add_parameters(found, result._problem, values, ("chain", "draw"), learned=True)
    return found


def _constant(result: Result) -> xr.Dataset:
    """Inputs, and hyper-parameters that are known."""
    found = inputs_of(result.data)
    if result._complete:
        add_parameters(found, result._problem, result._complete[0][1].theta[0], (), learned=False)
    return found
