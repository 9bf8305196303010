"""Figures with matplotlib: prior checks, states, the transition function, prediction intervals, traces.

Every function draws on the axes that it is given, or makes a figure, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ._arguments import checked
from ._tree import add_parameters, quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._types import Floats
    from .result import Result

    AxesLike = Axes | Sequence[Axes] | None

__all__ = ["intervals", "one_step", "prior", "prior_and_posterior", "states", "trace", "transition"]


def _axes(ax: AxesLike, n: int, *, sharex: bool = False) -> list[Axes]:
    if ax is not None:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) < n:
            raise ValueError(f"ax: {len(axes)} axes for {n} panels")
        return axes
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(n, 1, squeeze=False, figsize=(8, 2.2 * n + 0.6), layout="constrained", sharex=sharex)
    return list(axes[:, 0])


def _interval(ax: Axes, time: Floats, samples: Floats, color: str, label: str) -> None:
    low, middle, high = np.quantile(samples, [0.05, 0.5, 0.95], axis=0)
    ax.fill_between(time, low, high, color=color, alpha=0.25, lw=0, label=f"90 % {label}")
    ax.plot(time, middle, color=color, lw=1.2, label=f"median {label}")


@checked
def states(result: Result, *, sequence: str | int | None = None, ax: AxesLike = None) -> list[Axes]:
    """States over time: posterior medians and 90 % intervals, with the outputs that show them.

    Parameters
    ----------
    result : Result
    sequence : str or int, optional
        Label or number (from 0) of a sequence; the first by default.
    ax : matplotlib axes, optional
        One for each state.

    Returns
    -------
    list of matplotlib.axes.Axes

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
    >>> len(plot.states(result))
    1
    """
    s = 0 if sequence is None else result.data._position(sequence, "sequence")
    x = np.concatenate([chain.draws.paths[s] for chain in result.chains])
    time = result.data.times(s)
    axes = _axes(ax, len(result.state_names), sharex=True)
    shown = result.resolved.get("sensor", {})
    direct = isinstance(shown, dict) and shown.get("gaussian", {}).get("mean", "states") == "states"
    for d, name in enumerate(result.state_names):
        _interval(axes[d], time, x[:, :, d], "C0", name)
        if direct and d < result.data.n_y:
            axes[d].plot(time, result.data.y[s][:, d], ".", color="k", ms=3, label=result.data.outputs[d])
        axes[d].set_ylabel(name)
        axes[d].legend(loc="best", fontsize="small")
    axes[-1].set_xlabel("time")
    return axes


@checked
def transition(
    result: Result,
    *,
    state: int = 0,
    along: int = 0,
    at: ArrayLike | None = None,
    points: int = 80,
    ax: Axes | None = None,
) -> Axes:
    """Transition function of one state along one component of (x, u), the others held: mean and 90 % interval.

    Parameters
    ----------
    result : Result
    state : int
        Which f, from 0.
    along : int
        Component of (x, u), from 0.
    at : array_like, (n_x + n_u,), optional
        Values of the other components; the medians of what was visited by default.

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
    >>> plot.transition(result).get_xlabel()
    'x'
    """
    n_x, n_u = len(result.state_names), result.data.n_u
    if not (0 <= state < n_x and 0 <= along < n_x + n_u):
        raise ValueError(f"state, along: there are {n_x} states and {n_x + n_u} components")
    x = np.concatenate([np.concatenate(chain.draws.paths, axis=1) for chain in result.chains])
    visited = [x[:, :, d].ravel() for d in range(n_x)]
    if result.data.u is not None:
        visited += list(np.concatenate(result.data.u).T)
    middle = np.asarray([np.median(v) for v in visited] if at is None else at, dtype=float)
    z = np.tile(middle, (points, 1))
    z[:, along] = np.linspace(visited[along].min(), visited[along].max(), points)
    found = result.f(z[:, :n_x], z[:, n_x:] if n_u else None, quantiles=(0.05, 0.95))
    (ax,) = _axes(ax, 1)[:1]
    band = found["quantiles"].values[:, :, state]
    ax.fill_between(z[:, along], band[0], band[1], color="C1", alpha=0.25, lw=0, label="90 % of f")
    ax.plot(z[:, along], found["mean"].values[:, state], color="C1", label="mean of f")
    some = visited[along][:: max(1, visited[along].size // 300)]
    ax.plot(some, np.full(some.shape, band.min()), "|", color="k", ms=6, alpha=0.2, label="visited")
    names = [*result.state_names, *result.data.inputs]
    ax.set_xlabel(names[along])
    ax.set_ylabel(f"next {result.state_names[state]}")
    ax.legend(loc="best", fontsize="small")
    return ax


@checked
def intervals(simulated: xr.Dataset, y: ArrayLike | None = None, *, ax: AxesLike = None) -> list[Axes]:
    """Prediction intervals of `Result.simulate` or `Result.predict`, with what was measured.

    Parameters
    ----------
    simulated : xarray.Dataset
        What `Result.simulate` or `Result.predict` gave.
    y : array_like, optional
        Measured outputs.
    ax : matplotlib axes, optional
        One for each output.

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
    >>> len(plot.intervals(result.forecast(5, paths=20)))
    1
    """
    outputs = list(simulated["output"].values)
    axes = _axes(ax, len(outputs), sharex=True)
    time = simulated["time"].values
    measured = None if y is None else np.asarray(y, dtype=float).reshape(-1, len(outputs))[-len(time) :]
    for k, name in enumerate(outputs):
        _interval(axes[k], time, simulated["y"].values[:, :, k], "C2", str(name))
        if measured is not None:
            axes[k].plot(time, measured[:, k], ".", color="k", ms=3, label="measured")
        axes[k].set_ylabel(str(name))
        axes[k].legend(loc="best", fontsize="small")
    axes[-1].set_xlabel("time")
    return axes


@checked
def one_step(result: Result, *, horizon: int = 1, samples: int = 500, ax: AxesLike = None) -> list[Axes]:
    """Prediction intervals of the training record, `horizon` steps ahead, with what was measured.

    Parameters
    ----------
    result : Result
    horizon : int
        Number of steps ahead.
    samples : int
        Number of samples of each row.
    ax : matplotlib axes, optional
        One for each output.

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
    >>> len(plot.one_step(result, samples=20))
    1
    """
    data = result.data if result.data.measured is None else result.data.measured
    return intervals(result.predict(data._first(), horizon=horizon, samples=samples), result.data.y[0], ax=ax)


@checked
def prior(tree: xr.DataTree, *, paths: int = 10, ax: AxesLike = None) -> list[Axes]:
    """Prior predictive check: 90 % of the outputs that the model expects before any data, with what was measured.

    Parameters
    ----------
    tree : xarray.DataTree
        What `gpssm.Model.sample_prior` or `gpssm.Result.groups` gave.
    paths : int
        Number of simulated records that are drawn as lines.
    ax : matplotlib axes, optional
        One for each output.

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> len(plot.prior(gpssm.Model(kernel="se").sample_prior(y, draws=50)))
    1
    """
    if "prior_predictive" not in tree.children:
        raise ValueError("tree: there is no group prior_predictive; see Model.sample_prior")
    predictive = tree["prior_predictive"].to_dataset()["y"]
    drawn = predictive.stack(sample=("chain", "draw")).transpose("sample", "time", "output")
    time, measured = drawn["time"].values, tree["observed_data"].to_dataset()["y"].values
    axes = _axes(ax, drawn.sizes["output"], sharex=True)
    for k, name in enumerate(drawn["output"].values):
        samples = drawn.values[:, :, k]
        _interval(axes[k], time, samples, "C4", f"{name} before the data")
        axes[k].plot(
            time, samples[:: max(1, len(samples) // max(1, paths))][:paths].T, color="C4", lw=0.5, alpha=0.6
        )
        axes[k].plot(time, measured[:, k], ".", color="k", ms=3, label="measured")
        axes[k].set_ylabel(str(name))
        axes[k].legend(loc="best", fontsize="small")
    axes[-1].set_xlabel("time")
    return axes


@checked
def prior_and_posterior(
    result: Result,
    var_names: Sequence[str] | str | None = None,
    *,
    draws: int = 2000,
    seed: int = 1,
    ax: AxesLike = None,
) -> list[Axes]:
    """Prior beside posterior of hyper-parameters: where they agree, the data said little.

    Parameters
    ----------
    result : Result
    var_names : str or list of str, optional
        Variables of the posterior; all hyper-parameters by default.
    draws, seed : int
        Draws from the prior, and their seed.
    ax : matplotlib axes, optional
        One for each number of them.

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
    >>> len(plot.prior_and_posterior(result, ["process_sd"], draws=100))
    1
    """
    posterior = result._groups[0]
    found = quantities(posterior, var_names)
    theta = result._problem.prior_theta(draws, seed)
    before = xr.Dataset(coords={"chain": [0], "draw": np.arange(len(theta))})
    add_parameters(before, result._problem, theta[None], ("chain", "draw"), learned=True)
    expected = dict(quantities(before, None))
    axes = _axes(ax, len(found))
    for axis, (label, values) in zip(axes, found, strict=False):
        shown = [(expected[label].ravel(), "prior", "C4")] if label in expected else []
        shown.append((values.ravel(), "posterior", "C0"))
        low = min(float(np.quantile(drawn, 0.005)) for drawn, _, _ in shown)
        high = max(float(np.quantile(drawn, 0.98)) for drawn, _, _ in shown)
        for drawn, word, color in shown:
            axis.hist(drawn, bins=60, range=(low, high), density=True, alpha=0.5, color=color, label=word)
        axis.set_xlabel(label, fontsize="small")
        axis.set_yticks([])
    axes[0].legend(loc="upper right", fontsize="small")
    return axes


@checked
def trace(result: Result, var_names: Sequence[str] | None = None, *, ax: AxesLike = None) -> list[Axes]:
    """Draws of hyper-parameters over the sweeps, one line for each chain.

    Parameters
    ----------
    result : Result
    var_names : list of str, optional
        Variables of the posterior; all hyper-parameters by default.
    ax : matplotlib axes, optional
        One for each number of them.

    Examples
    --------
    >>> from gpssm import plot
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
    >>> len(plot.trace(result, ["process_sd"]))
    1
    """
    posterior = result._groups[0]
    found = quantities(posterior, var_names)
    axes = _axes(ax, len(found), sharex=True)
    for axis, (label, draws) in zip(axes, found, strict=False):
        for number, chain in zip(posterior["chain"].values, draws, strict=True):
            axis.plot(chain, lw=0.7, label=f"chain {number}")
        axis.set_ylabel(label, fontsize="small")
    axes[0].legend(loc="upper right", fontsize="x-small", ncols=4)
    axes[-1].set_xlabel("draw")
    return axes
