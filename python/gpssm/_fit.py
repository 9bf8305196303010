"""Fitting: from data and a model to draws."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from time import monotonic as time_now
from typing import Unpack, cast

from . import _core
from ._arguments import checked
from ._chains import Job, Outcome, Plan, run_here, run_in
from ._choice import Choice, as_keys
from ._data import Data, DataLike, as_data
from ._layout import DataKeys, Layout
from ._progress import Bar, Steps, clock
from ._settings import Proposal, Resampling, Sampler, StartAt, budget_text, merged, whole
from ._types import Json
from ._warn import warn
from .bases import BasisLike
from .functions import FunctionLike
from .initial import InitialLike
from .kernels import KernelLike
from .model import Model, Parts, States, Symmetry
from .priors import Noise, PriorLike
from .result import Result
from .sensors import SensorLike

__all__ = ["fit", "fit_many"]

ModelLike = Model | str | Path | Mapping[str, Json]
"""A model, the path or text of a run file, or its tables."""


@checked
def fit(
    y: DataLike,
    u: DataLike | None = None,
    *,
    model: ModelLike | None = None,
    states: States | None = None,
    kernel: KernelLike | None = None,
    mean: FunctionLike | Sequence[FunctionLike] | None = None,
    sensor: SensorLike | None = None,
    process_noise: Noise = None,
    initial: InitialLike | None = None,
    dynamics: BasisLike | None = None,
    parameters: Mapping[str, PriorLike] | None = None,
    symmetries: Sequence[Symmetry | Mapping[str, Json]] | None = None,
    lags: int | None = None,
    function: FunctionLike | None = None,
    standardise: bool | None = None,
    presample: int | None = None,
    ess: int | None = None,
    budget: str | float | None = None,
    draws: int | None = None,
    tune: int | None = None,
    chains: int | None = None,
    threads: int | None = None,
    seed: int | None = None,
    particles: int | None = None,
    resampling: Resampling | None = None,
    proposal: Proposal | None = None,
    start_at: StartAt | None = None,
    narx: bool | None = None,
    point: bool | None = None,
    restarts: int | None = None,
    max_memory_mb: int | None = None,
    time: DataLike | None = None,
    dt: float | None = None,
    every: int | None = None,
    input_lags: int | None = None,
    delay: int | None = None,
    save_warmup: bool = False,
    progress_bar: bool | Callable[[int, str, int, int], None] = True,
    out: str | Path | None = None,
    executor: Executor | None = None,
) -> Result:
    """Sample states and hyper-parameters from their posterior.

    Parameters
    ----------
    y : array_like, frame, record, or list of them
        Outputs, (T,) or (T, n_y); a list of arrays, frames or records is a list of sequences that share the
        dynamics. NaN is missing. See `gpssm.as_data`.
    u : the same, optional
        Inputs.
    model : Model, path or text of a run file, or dict, optional
        The model; without it, it is made of the next arguments, see `gpssm.Model`.
    states, kernel, mean, sensor, process_noise, initial, dynamics, parameters, symmetries, lags, function, \
    standardise, presample
        Parts of the model, see `gpssm.Model`. With ``states="auto"``, and if no part is given, the model is chosen
        from the record, as by the program: its states are the output and some of its past values, drawn from their
        posterior or, if that predicts better, held on the outputs. Past inputs and thinning, if they help, are in
        ``result.data.layout`` and are applied to new records, too; ``result.choice`` says what was tried.
        ``states=1`` is the plain model with one state for one output.
    ess : int, optional
        Sample until every identified hyper-parameter, f at visited points and the states have this bulk and tail
        effective sample size (400) and R-hat 1.01; see ``result.convergence``.
    budget : str or float, optional
        Time limit of the sampling, such as ``"90s"``, ``"10m"``, ``"1h30m"`` or ``"none"``, or seconds; 10 minutes
        by default, none with `draws`. The draws so far are kept, and ``result.resume()`` continues.
    draws : int, optional
        A fixed number of draws of each chain, in place of `ess`.
    tune, chains : int, optional
        Warm-up sweeps of each chain (300), and number of chains (4).
    threads : int, optional
        Number of threads; one for each core by default. The draws do not depend on it.
    seed : int, optional
        Seed of all random numbers; 0 by default. The same seed gives the same draws from Python, the program and
        Rust.
    particles : int, optional
        Particles of the conditional filter (20).
    resampling : "systematic" or "multinomial", optional
        How ancestors are drawn.
    proposal : "auto", "bootstrap", "adapted" or "shortlist", optional
        How states are proposed.
    start_at : "search", "outputs" or "mean", optional
        Where chains begin: at a path that is searched for, on the outputs themselves (taken back through the
        sensor), or at the smoothed path of the mean functions.
    narx : bool, optional
        GP-NARX: the outputs and their past values are the states, without sensor noise, and are not drawn.
    point : bool, optional
        A point estimate by stochastic-approximation EM in place of draws from the posterior: hyper-parameters, a
        path and with them one Gaussian process, in seconds to a minute. `tune` is the number of iterations.
        Intervals leave out what is not known of hyper-parameters and states.
    restarts : int, optional
        Draws of the hyper-parameters that the search for a start tries (64).
    max_memory_mb : int, optional
        Memory limit in MB; larger runs are refused before they start.
    time : array_like, optional
        Times of the rows.
    dt : float, optional
        Sampling time, if there are no times.
    every : int, optional
        Use every k-th row of each sequence; 1 by default.
    input_lags : int, optional
        Number of past input values used as regressors; 0 by default.
    delay : int, optional
        Rows from an input to the first output that it acts on; 1 by default. `every`, `input_lags` and `delay` are
        in ``result.data.layout`` and are applied to new records, too.
    save_warmup : bool
        Whether warm-up sweeps are shown in the tree of draws.
    progress_bar : bool or function
        A function is called with (chain, phase, done, total).
    out : path, optional
        A new folder to which draws are written during the run; `gpssm.open` reads it, also after a crash.
    executor : concurrent.futures.Executor, optional
        Runs the chains, for example ``dask.distributed.Client().get_executor()``. The draws are the same.

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
    >>> result = gpssm.fit(y, u, draws=20, tune=10, chains=2, progress_bar=False, states=1)
    >>> result.posterior["posterior"]["x"].sizes["draw"]
    20
    """
    data = as_data(y, u, time=time, dt=dt)
    rows = _row_keys(every, input_lags, delay)
    given = Parts(
        states=states,
        kernel=kernel,
        mean=mean,
        sensor=sensor,
        process_noise=process_noise,
        initial=initial,
        dynamics=dynamics,
        parameters=parameters,
        symmetries=symmetries,
        lags=lags,
        function=function,
        standardise=standardise,
        presample=presample,
    )
    model = _model(model, given)
    own: dict[str, object] = {
        "ess": ess,
        "budget": budget,
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "threads": threads,
        "seed": seed,
    }
    own |= {"particles": particles, "resampling": resampling, "proposal": proposal, "max_memory_mb": max_memory_mb}
    own |= {"start_at": start_at, "narx": narx, "point": point}
    if point and executor is not None:
        raise ValueError("executor: a point estimate is one chain in one go; leave executor out")
    if restarts is not None:
        own["start"] = {**model.sampler.get("start", {}), "restarts": whole("restarts", restarts, 1)}
    wanted = merged(model.sampler, own)
    choice = None
    if model.is_open:
        model, data, wanted, choice = choose(model, data, wanted, rows, progress_bar is True)
    elif rows:
        data = data._with_layout(Layout.of(rows, data.inputs))
    full: Sampler = json.loads(model._problem(data, wanted).settings)
    plans: list[Plan] = [(chain, None, None) for chain in range(full["chains"])]
    job = Job(model, data, full, plans)
    store = None if out is None else (str(out), False)
    outcome = _run(job, progress_bar, executor, store)
    result = Result(model, data, full, outcome.chains, basis=outcome.basis, ended=outcome.ended)
    result.choice = choice
    result.save_warmup = save_warmup or out is not None
    if executor is not None and out is not None:
        result.save(out)
    result.path = None if out is None else Path(out)
    return _finish(result)


def _model(model: ModelLike | None, given: Parts) -> Model:
    """The model, from whatever describes it."""
    parts = cast("Parts", {name: part for name, part in given.items() if part is not None})
    if model is None:
        # Nothing is said of the model: it is chosen from the record, as the program does.
        return Model(**parts) if parts else Model("auto")
    if parts:
        raise ValueError(f"model: it is complete; {', '.join(parts)} cannot be given beside it")
    if isinstance(model, Model):
        return model
    if isinstance(model, str | Path):
        return Model.from_toml(model)
    if isinstance(model, Mapping):
        return Model.from_dict(model)
    raise ValueError(f"model: expected a Model, a run file or a dictionary, not {model!r}")


def _row_keys(every: int | None, input_lags: int | None, delay: int | None) -> DataKeys:
    given = {"every": (every, 1), "input_lags": (input_lags, 0), "delay": (delay, 0)}
    keys = {name: whole(name, value, least) for name, (value, least) in given.items() if value is not None}
    return cast("DataKeys", keys)


def choose(
    model: Model, data: Data, sampler: Sampler, keys: DataKeys, show: bool
) -> tuple[Model, Data, Sampler, Choice]:
    """Settle what ``states="auto"`` leaves open, as the program does: the model, its rows, settings, and why."""
    bar = Steps("choose a model", "candidates") if show else None
    began = time_now()

    def tell(done: int, of: int) -> None:
        if bar is not None:
            left = (time_now() - began) * (of - done) / max(1, done)
            bar.tell(done, of, f"about {clock(left)} left" if done else "none is done yet")

    try:
        text = _core.choose(model._keys(sampler, keys), data.y, data.u, data._labels(), tell)
    finally:
        if bar is not None:
            bar.close()
    found = json.loads(text)
    parts, settings, rows = (found.pop(name) for name in ("model", "sampler", "data"))
    choice: Choice = found
    if rows["rows"] is not None:
        first, last = rows["rows"]
        data = data._rows(first - 1, last)
    layout = Layout.of(rows, data.inputs)
    settled = model._settled(parts, choice["calibration"], as_keys(choice))
    return settled, data._with_layout(layout), merged(sampler, settings), choice


def _run(
    job: Job,
    progress_bar: bool | Callable[[int, str, int, int], None],
    executor: Executor | None,
    store: tuple[str, bool] | None,
) -> Outcome:
    bar = None
    if progress_bar is True:
        bar = Bar(len(job.plans), job.sampler["tune"], job.sampler.get("draws"), job.sampler["ess"])
    progress = bar if bar is not None else progress_bar if callable(progress_bar) else None
    look = None if bar is None else bar.look
    try:
        if executor is None:
            return run_here(job, progress, store, look)
        return run_in(executor, job, progress, look)
    finally:
        if bar is not None:
            bar.close()


def _finish(result: Result) -> Result:
    """Say what a user should know; an interrupt before the first draw stays an interrupt."""
    if result.ended == "budget":
        what = result.warnings[0] if result.warnings else "the chains have converged at one look only"
        warn(f"the budget ended after {result.n_draws} draws: {what}")
    if result.ended == "interrupted":
        if result.n_draws == 0:
            raise KeyboardInterrupt
        warn(f"interrupted after {result.n_draws} draws; continue with result.resume()")
    return result


def go_on(
    result: Result,
    draws: int | None,
    *,
    ess: int | None,
    budget: str | float | None,
    threads: int | None,
    progress_bar: bool,
    executor: Executor | None,
) -> Result:
    """Go on with all chains until each has `draws` draws, or until they are good."""
    settings = merged(result.sampler, {"draws": draws, "ess": ess, "threads": threads})
    settings["budget"] = "auto" if budget is None else budget_text(budget)
    lengths = {chain.chain: len(chain.draws) for chain in result.chains}
    wanted = settings.get("draws")
    if (
        wanted is not None
        and draws is None
        and all(lengths.get(k, 0) >= wanted for k in range(settings["chains"]))
    ):
        wanted = settings["draws"] = 2 * wanted
    if wanted is not None and max(lengths.values(), default=0) > wanted:
        raise ValueError(f"draws: there are {max(lengths.values())} already; ask for more than that in all")
    mine = {chain.chain: chain for chain in result.chains}
    plans: list[Plan] = []
    for k in range(settings["chains"]):
        if wanted is None or lengths.get(k, 0) < wanted:
            plans.append((k, mine[k].state, mine[k].draws) if k in mine else (k, None, None))
    missing = [chain for chain, state, _ in plans if state is None and lengths.get(chain, 0)]
    if missing:
        raise ValueError(
            f"resume: the state of chain {missing[0]} is not known; a thinned result cannot be resumed"
        )
    job = Job(result.model, result.data, settings, plans, result.basis)
    store = None if result.path is None or executor is not None else (str(result.path), True)
    outcome = _run(job, progress_bar, executor, store)
    longer = result._with_chains(outcome, settings)
    longer.path = result.path if executor is None else None
    return _finish(longer)


class FitArguments(Parts, total=False):
    """Arguments of `fit` that `fit_many` takes along."""

    model: ModelLike | None
    ess: int | None
    budget: str | float | None
    draws: int | None
    tune: int | None
    chains: int | None
    threads: int | None
    seed: int | None
    particles: int | None
    resampling: Resampling | None
    proposal: Proposal | None
    start_at: StartAt | None
    narx: bool | None
    point: bool | None
    restarts: int | None
    max_memory_mb: int | None
    time: DataLike | None
    dt: float | None
    every: int | None
    input_lags: int | None
    delay: int | None
    save_warmup: bool
    progress_bar: bool | Callable[[int, str, int, int], None]


Entry = DataLike | tuple[DataLike, DataLike]
"""Outputs alone or a record, or a pair (y, u)."""


def fit_many(
    datasets: Iterable[Entry], *, executor: Executor | None = None, **arguments: Unpack[FitArguments]
) -> list[Result]:
    """Fit the same model to each of several data sets, with all chains on one executor.

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
    >>> results = gpssm.fit_many(sets, states=1, draws=4, tune=2, chains=1, progress_bar=False)
    >>> [len(result.data.y[0]) for result in results]
    [12, 15]
    """
    pairs = [_pair(entry) for entry in datasets]
    if executor is None:
        return [fit(y, u, **arguments) for y, u in pairs]
    # Each fit waits for its own chains; the work is done by the executor's workers.
    arguments["progress_bar"] = False
    with ThreadPoolExecutor(max_workers=max(1, len(pairs))) as waiting:
        return list(waiting.map(lambda pair: fit(*pair, executor=executor, **arguments), pairs))


def _pair(entry: Entry) -> tuple[DataLike, DataLike | None]:
    if isinstance(entry, tuple) and len(entry) == 2 and not isinstance(entry[0], int | float):
        return entry
    return cast("DataLike", entry), None
