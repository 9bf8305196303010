"""Prior and posterior predictive checks, and comparisons of models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from . import _core
from ._arguments import checked
from ._data import Data, DataLike
from ._fitted import filter_options
from ._settings import whole
from ._tree import add_parameters, observed, row_index

if TYPE_CHECKING:
    import pandas as pd

    from .result import Result

__all__ = ["compare"]


def prior_tree(problem: _core.Problem, data: Data, draws: int, seed: int) -> xr.DataTree:
    """Draws before any fit as a tree; see `gpssm.Model.sample_prior`."""
    found = problem.sample_prior(whole("draws", draws, 1), whole("seed", seed, 0))
    if found["diverged"]:
        warnings.warn(
            f"{found['diverged']} of {draws} simulated records overflowed and are left out; narrower priors keep "
            "states from growing without bound",
            UserWarning,
            stacklevel=4,
        )
    if not len(found["theta"]):
        raise ValueError("sample_prior: all simulated records overflowed; give narrower priors")
    dims = ("chain", "draw")
    coords = {"chain": [0], "draw": np.arange(len(found["theta"]))}
    prior = xr.Dataset(coords={**coords, **row_index(data), "state": problem.state_names})
    add_parameters(prior, problem, found["theta"][None], dims, learned=True)
    prior["x"] = ((*dims, "time", "state"), np.concatenate(found["x"], axis=1)[None])
    y = ((*dims, "time", "output"), np.concatenate(found["y"], axis=1)[None])
    predictive = xr.Dataset({"y": y}, {**coords, **row_index(data), "output": data.outputs})
    groups = {"prior": prior, "prior_predictive": predictive, "observed_data": observed(data)}
    return xr.DataTree.from_dict(groups)


def replicates(result: Result, seed: int) -> xr.Dataset:
    """Replicated outputs; see `gpssm.Result.posterior_predictive`."""
    chains = result._complete
    found = _core.Posterior(result._problem, [draws._to_core() for _, draws in chains], None)
    y = found.replicate(whole("seed", seed, 0))
    y = y.reshape(len(chains), -1, *y.shape[1:])
    coords = {"chain": [number for number, _ in chains], "draw": np.arange(y.shape[1])}
    variable = (("chain", "draw", "time", "output"), y)
    return xr.Dataset({"y": variable}, {**coords, **row_index(result.data), "output": result.data.outputs})


@checked
def compare(
    results: Mapping[str, Result],
    y: DataLike,
    u: DataLike | None = None,
    *,
    n_init: int = 0,
    functions: int = 50,
    particles: int = 50,
    seed: int = 1,
    max_draws: int | None = 200,
) -> pd.DataFrame:
    """Rank fitted models by how well they predict the next row of a record that none of them was fitted to.

    The score of a row is log p(y_t | y_{0:t-1}) under the fitted model. As ``gpssm compare`` of the program.

    Parameters
    ----------
    results : dict of Result
        Fitted models by name; they must have the same outputs and inputs.
    y, u
        The record, as for `gpssm.fit`.
    n_init : int
        Number of rows at the beginning that set the state and are not scored.
    functions, particles, seed
        The filter, see `gpssm.Result.filter`.
    max_draws : int, optional
        Number of draws that are used, spread evenly over all of them; None for all.

    Returns
    -------
    pandas.DataFrame
        Models, the best first: ``log_score`` (mean of a row), ``difference`` to the best and its
        ``standard_error``. A difference below two standard errors is not significant.

    Examples
    --------
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(40))
    >>> short = {"draws": 10, "tune": 10, "chains": 1, "progress_bar": False}
    >>> fits = {kernel: gpssm.fit(y[:30], kernel=kernel, **short) for kernel in ("se", "linear")}
    >>> gpssm.compare(fits, y[30:], functions=5).columns.tolist()
    ['log_score', 'difference', 'standard_error', 'n']
    """
    import pandas as pd

    if not results:
        raise ValueError("results: there is nothing to compare")
    records = {name: result._record(y, u) for name, result in results.items()}
    _, outputs, inputs = next(iter(records.values()))
    layouts = {result.data.layout for result in results.values()}
    if len(layouts) > 1:
        raise ValueError("results: models of other rows (every, input_lags, delay) cannot be compared")
    options = filter_options(functions, particles, 256, 1.0, "auto", seed)
    models = [(name, result._some_draws(max_draws)) for name, result in results.items()]
    ranking = json.loads(_core.Posterior.compare(models, outputs, inputs, whole("n_init", n_init, 0), options))
    columns = ["log_score", "difference", "standard_error"]
    rows = [{**{column: model[column] for column in columns}, "n": len(model["rows"])} for model in ranking]
    return pd.DataFrame(rows, index=pd.Index([model["name"] for model in ranking], name="model"))
