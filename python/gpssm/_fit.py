"""Fitting: from data and a model to draws."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from . import _core
from ._chains import Job, Outcome, run_here, run_in
from ._data import Data, Layout, as_data
from ._progress import Bar
from .model import Model
from .priors import PriorLike
from .result import Result

__all__ = ["fit", "fit_many"]


def fit(
    y: Any,
    u: Any = None,
    *,
    model: Model | str | Path | Mapping[str, Any] | None = None,
    states: Any = None,
    kernel: Any = None,
    mean: Any = None,
    observation: Any = None,
    prior: Mapping[str, PriorLike] | None = None,
    process_noise: Any = None,
    initial: Any = None,
    dynamics: Any = None,
    lags: int | None = None,
    draws: int | None = None,
    tune: int | None = None,
    chains: int | None = None,
    cores: int | None = None,
    seed: int | None = None,
    particles: int | None = None,
    restarts: int | None = None,
    time: Any = None,
    save_warmup: bool = False,
    progress_bar: bool | Callable[[int, str, int, int], None] = True,
    zarr_store: str | Path | None = None,
    executor: Executor | None = None,
    **settings: Any,
) -> Result:
    """Draw states and hyper-parameters from their posterior.

    Parameters
    ----------
    y : array_like, frame, record, or list of them
        Outputs, (T,) or (T, n_y); a list of arrays, frames or records is a list of sequences that share the
        dynamics. NaN is missing. See `gpssm.as_data`.
    u : the same, optional
        Inputs.
    model : Model, path or text of a run file, or dict, optional
        The model; without it, it is made of the next arguments, see `gpssm.Model`.
    states, kernel, mean, observation, process_noise, initial, dynamics, lags
        Parts of the model, see `gpssm.Model`. With ``states="auto"`` the model is chosen from the record, as by
        the program: past outputs are its states; past inputs and thinning, if they help, are in
        ``result.data.layout`` and are applied to new records, too; ``result.choice`` says what was tried.
    prior : dict, optional
        Priors of the parameters of formulas and functions, by name.
    draws, tune, chains : int, optional
        Draws of each chain that are kept (500), sweeps before them (300), and chains (4).
    cores : int, optional
        Threads; one for each core by default. The draws do not depend on it.
    seed : int, optional
        The same seed gives the same draws, here, from the program and from Rust; 0 by default.
    particles : int, optional
        Particles of the conditional filter.
    restarts : int, optional
        Large filters from which each chain takes the best start.
    time : array_like, optional
        Times of the rows.
    save_warmup : bool
        Whether warm-up sweeps are shown in the tree of draws.
    progress_bar : bool or function
        A function is called with (chain, phase, done, total).
    zarr_store : path, optional
        A new folder into which draws go as they are made; `gpssm.open` reads it, also after a crash.
    executor : concurrent.futures.Executor, optional
        Where chains run; for example ``dask.distributed.Client().get_executor()``. Results are the same.
    **settings
        Further settings: resampling, proposal, max_memory_mb.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, gpssm
    >>> rng = np.random.default_rng(1)
    >>> u = np.sin(0.3 * np.arange(40))
    >>> y = np.zeros(40)
    >>> for t in range(39):
    ...     y[t + 1] = 0.8 * y[t] + u[t] + 0.05 * rng.normal()
    >>> result = gpssm.fit(y, u, draws=20, tune=10, chains=2, progress_bar=False)
    >>> result.posterior["posterior"]["x"].sizes["draw"]
    20
    """
    data = as_data(y, u, time=time)
    parts = {
        "states": states,
        "kernel": kernel,
        "mean": mean,
        "observation": observation,
        "process_noise": process_noise,
        "initial": initial,
        "dynamics": dynamics,
        "parameters": prior,
        "lags": lags,
    }
    given = {name: part for name, part in parts.items() if part is not None}
    if model is not None and given:
        raise ValueError(f"model: it is complete; {', '.join(given)} cannot be given beside it")
    model = Model(**given) if model is None else as_model(model)
    wanted = dict(model.settings)
    own = {"draws": draws, "tune": tune, "chains": chains, "threads": cores, "seed": seed}
    own |= {"particles": particles, **settings}
    wanted |= {name: _whole(name, value) for name, value in own.items() if value is not None}
    if restarts is not None:
        wanted["start"] = {**wanted.get("start", {}), "restarts": _whole("restarts", restarts)}
    choice = None
    if model.is_open:
        model, data, wanted, choice = choose(model, data, wanted)
    full: dict[str, Any] = json.loads(model._problem(data, wanted).settings)
    plans: list[tuple[int, str | None]] = [(chain, None) for chain in range(full["chains"])]
    job = Job(model, data, full, plans)
    store = None if zarr_store is None else (str(zarr_store), False)
    outcome = _run(job, progress_bar, executor, store)
    result = Result(model, data, full, outcome.chains, basis=outcome.basis, interrupted=outcome.interrupted)
    result.choice = choice
    result.save_warmup = save_warmup or zarr_store is not None
    if executor is not None and zarr_store is not None:
        result.save(zarr_store)
    result.path = None if zarr_store is None else Path(zarr_store)
    return _finish(result)


def choose(
    model: Model, data: Data, settings: dict[str, Any]
) -> tuple[Model, Data, dict[str, Any], dict[str, Any]]:
    """Settle what ``states="auto"`` leaves open, as the program does: the model, its rows, settings, and why."""
    keys = {f"model.{name}": value for name, value in model._table.items()}
    keys |= {f"sampler.{name}": value for name, value in settings.items()}
    choice: dict[str, Any] = json.loads(_core.choose(json.dumps(keys), data.y, data.u, data._labels()))
    parts, sampler, rows = (choice.pop(name) for name in ("model", "sampler", "data"))
    if rows["rows"] is not None:
        first, last = rows["rows"]
        data = data._rows(first - 1, last)
    layout = Layout.of({**rows, "u": data.inputs})
    return model._settled(parts), layout.apply(data), {**settings, **sampler}, choice


def as_model(model: Any) -> Model:
    """A model, from whatever describes one."""
    if isinstance(model, Model):
        return model
    if isinstance(model, (str, Path)):
        return Model.from_toml(model)
    if isinstance(model, Mapping):
        return Model.from_dict(model)
    raise ValueError(f"model: expected a Model, a run file or a dictionary, not {model!r}")


def _whole(name: str, value: Any) -> Any:
    if name in {"resampling", "proposal"} or isinstance(value, Mapping):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name}: expected a whole number, not {value!r}")
    number = value.__index__()
    if number < (0 if name in {"tune", "seed"} else 1):
        raise ValueError(f"{name}: {value} is too small")
    return number


def _run(
    job: Job,
    progress_bar: bool | Callable[[int, str, int, int], None],
    executor: Executor | None,
    store: tuple[str, bool] | None,
) -> Outcome:
    bar = None
    if progress_bar is True:
        bar = Bar(len(job.plans), job.settings["tune"], job.settings["draws"])
    progress = bar if bar is not None else progress_bar if callable(progress_bar) else None
    try:
        if executor is None:
            return run_here(job, progress, store)
        return run_in(executor, job, progress)
    finally:
        if bar is not None:
            bar.close()


def _finish(result: Result) -> Result:
    """Say what a user should know; an interrupt before the first draw stays an interrupt."""
    if result.interrupted:
        if result.n_draws == 0:
            raise KeyboardInterrupt
        warnings.warn(
            f"interrupted: {result.n_draws} draws were made; result.resume() goes on", UserWarning, stacklevel=3
        )
    return result


def go_on(
    result: Result,
    draws: int | None,
    *,
    cores: int | None,
    progress_bar: bool,
    executor: Executor | None,
) -> Result:
    """Go on with all chains until each has `draws` draws."""
    settings = dict(result.settings)
    lengths = {chain.chain: len(chain.draws) for chain in result.chains}
    if draws is None:
        complete = all(lengths.get(k, 0) >= settings["draws"] for k in range(settings["chains"]))
        draws = 2 * settings["draws"] if complete else settings["draws"]
    if max(lengths.values(), default=0) > draws:
        raise ValueError(f"draws: there are {max(lengths.values())} already; ask for more than that in all")
    settings |= {"draws": int(draws), "threads": cores if cores is not None else settings["threads"]}
    states = {chain.chain: chain.state for chain in result.chains}
    plans = [(k, states.get(k)) for k in range(settings["chains"]) if lengths.get(k, 0) < draws]
    missing = [chain for chain, state in plans if state is None and lengths.get(chain, 0)]
    if missing:
        raise ValueError(f"resume: the state of chain {missing[0]} is not known; a thinned result cannot go on")
    job = Job(result.model, result.data, settings, plans, result.basis)
    store = None if result.path is None or executor is not None else (str(result.path), True)
    outcome = _run(job, progress_bar, executor, store)
    longer = result._with_chains(outcome, settings)
    longer.path = result.path if executor is None else None
    longer.save_warmup = result.save_warmup
    return _finish(longer)


def fit_many(datasets: Iterable[Any], *, executor: Executor | None = None, **arguments: Any) -> list[Result]:
    """Fit the same kind of model to each of several data sets, all chains of all of them on one executor.

    Parameters
    ----------
    datasets : iterable
        Each entry is data for `gpssm.fit`: outputs alone, a pair (y, u), or a record.
    executor : concurrent.futures.Executor, optional
    **arguments
        Further arguments of `gpssm.fit`.

    Returns
    -------
    list of Result
        In the order of the data sets; each equals what `gpssm.fit` gives for it alone.

    Examples
    --------
    >>> import numpy as np, gpssm
    >>> sets = [np.sin(0.4 * np.arange(12)), np.cos(0.5 * np.arange(15))]
    >>> results = gpssm.fit_many(sets, draws=4, tune=2, chains=1, progress_bar=False)
    >>> [len(result.data.y[0]) for result in results]
    [12, 15]
    """
    pairs = [_pair(entry) for entry in datasets]
    if executor is None:
        return [fit(y, u, **arguments) for y, u in pairs]
    from concurrent.futures import ThreadPoolExecutor

    # Each fit waits for its own chains; the work is done by the executor's workers.
    with ThreadPoolExecutor(max_workers=max(1, len(pairs))) as waiting:
        quiet = {**arguments, "progress_bar": False, "executor": executor}
        return list(waiting.map(lambda pair: fit(*pair, **quiet), pairs))


def _pair(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, tuple) and len(entry) == 2 and not isinstance(entry[0], (int, float)):
        return entry
    return entry, None
