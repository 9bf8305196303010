"""Chains: pure functions of (model, data, sampler, chain number), here or in other processes."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._data import Data
from ._settings import Sampler, budget_text
from ._types import Floats
from ._warn import warn
from .model import Model

Looked = Callable[[int, float | None, str, float | None, str, int | None], None]
"""Takes what a look found: draws, smallest ESS and its name, largest R-hat and its name, draws expected in all."""

__all__ = ["Chain", "Draws", "Job", "run_here", "run_in"]

Ended = Literal["complete", "interrupted", "budget"]
"""How a run ended."""

BLOCK = 2.0
"""Seconds of a block of a chain on a worker."""

ATTEMPTS = 4
"""How often a chain is handed to an executor whose workers are lost."""


@dataclass(frozen=True)
class Draws:
    """Draws of one chain in one phase."""

    theta: Floats
    paths: list[Floats]
    statistics: dict[str, NDArray[np.generic]]

    def __len__(self) -> int:
        return len(self.theta)

    @classmethod
    def _from_core(cls, found: _core.FoundDraws) -> Draws:
        return cls(found["theta"], list(found["paths"]), dict(found["statistics"]))

    def _to_core(self) -> tuple[Floats, list[Floats], Floats]:
        columns = [np.asarray(values, dtype=np.float64) for values in self.statistics.values()]
        return self.theta, self.paths, np.ascontiguousarray(np.column_stack(columns))

    def head(self, n: int) -> Draws:
        """Give the first `n` draws."""
        statistics = {name: values[:n] for name, values in self.statistics.items()}
        return Draws(self.theta[:n], [path[:n] for path in self.paths], statistics)

    def followed_by(self, later: Draws) -> Draws:
        """Join two runs of draws."""
        return Draws(
            np.concatenate([self.theta, later.theta]),
            [np.concatenate(pair) for pair in zip(self.paths, later.paths, strict=True)],
            {k: np.concatenate([v, later.statistics[k]]) for k, v in self.statistics.items()},
        )


@dataclass(frozen=True)
class Chain:
    """One chain: its draws, and the state from which it goes on."""

    chain: int
    state: str | None
    start_log_marginal_likelihood: float | None
    draws: Draws
    warmup: Draws

    @classmethod
    def _from_core(cls, found: _core.FoundChain) -> Chain:
        return cls(
            found["chain"],
            found["state"],
            found["start_log_marginal_likelihood"],
            Draws._from_core(found["draws"]),
            Draws._from_core(found["warmup"]),
        )

    def followed_by(self, later: Chain) -> Chain:
        """Join a chain and its continuation."""
        first = self.start_log_marginal_likelihood
        return Chain(
            self.chain,
            later.state or self.state,
            later.start_log_marginal_likelihood if first is None else first,
            self.draws.followed_by(later.draws),
            self.warmup.followed_by(later.warmup),
        )


Plan = tuple[int, str | None, Draws | None]
"""A chain, the state from which it goes on, and the draws that it has."""


@dataclass(frozen=True)
class Job:
    """Some chains of a run; everything that a worker needs."""

    model: Model
    data: Data
    sampler: Sampler
    plans: list[Plan]
    basis: str | None = None

    def one(self, plan: Plan, draws: int, seconds: float) -> Job:
        """Give the job of a single chain up to so many draws, in one thread and for so long."""
        sampler: Sampler = {**self.sampler, "threads": 1, "draws": draws, "budget": budget_text(seconds)}
        return replace(self, plans=[(plan[0], plan[1], None)], sampler=sampler)


@dataclass(frozen=True)
class Packed:
    """A job whose functions are packed by cloudpickle, which takes lambdas and functions of notebooks along."""

    plans: list[Plan]
    job: bytes


def packed(job: Job) -> Job | Packed:
    """A job that can be sent to other processes, if cloudpickle is installed."""
    try:
        import cloudpickle
    except ImportError:
        return job
    return Packed(job.plans, cloudpickle.dumps(job))


@dataclass(frozen=True)
class Outcome:
    """New draws of the chains, how the run ended, and the finite basis that the chains share."""

    chains: list[Chain]
    ended: Ended
    basis: str | None


def run_here(
    job: Job,
    progress: Callable[[int, str, int, int], None] | None = None,
    store: tuple[str, bool] | None = None,
    look: Looked | None = None,
) -> Outcome:
    """Run the chains of a job in threads of this process."""
    problem = job.model._problem(job.data, job.sampler)
    if job.basis is not None:
        problem = problem.with_basis(job.basis)
    sampler = json.dumps(job.sampler)
    plans = [(chain, state, None if draws is None else draws._to_core()) for chain, state, draws in job.plans]
    found, ended, basis = problem.sample(sampler, plans, True, progress, look, store)
    if (fault := problem.faults()) is not None:
        warn(f"{fault}; such states count as impossible")
    return Outcome([Chain._from_core(chain) for chain in found], ended, basis)


def run_alone(job: Job | Packed) -> Chain:
    """Run a job of one chain, or a block of it; what is sent to workers."""
    outcome = run_here(pickle.loads(job.job) if isinstance(job, Packed) else job)
    if outcome.ended == "interrupted" or not outcome.chains:
        raise KeyboardInterrupt
    return outcome.chains[0]


def run_in(
    executor: Executor,
    job: Job,
    progress: Callable[[int, str, int, int], None] | None = None,
    look: Looked | None = None,
) -> Outcome:
    """Run each chain of a job on a worker of an executor.

    Chains run in blocks of some seconds: the progress is that of the blocks, and an interrupt keeps them. A chain
    whose worker is lost is handed out again; as chains are pure functions, that changes no draw. A run
    without a fixed number of draws goes from one look at all chains to the next, as in one process.
    """
    problem = job.model._problem(job.data, job.sampler)
    if job.basis is None:
        job = replace(job, basis=problem.prepare(json.dumps(job.sampler)).basis)
    if job.basis is not None:
        problem = problem.with_basis(job.basis)
    limit = problem.time_limit(json.dumps(job.sampler))
    deadline = None if limit is None else time.monotonic() + limit
    fixed = job.sampler.get("draws")
    new: dict[int, Chain] = {}
    draws, was_good = fixed or _core.next_look(0), False
    while True:
        plans = [plan for plan in job.plans if _length(plan, new) < draws]
        ended = _round(executor, job, plans, draws, new, progress, deadline)
        if ended != "complete" or fixed is not None:
            return Outcome(list(new.values()), ended, job.basis)
        cut = [_all(plan, new).head(draws)._to_core() for plan in job.plans]
        good, judged, _, _ = _core.assess(problem, json.dumps(job.sampler), cut, "")
        if look is not None and judged:
            worst = min(judged, key=lambda one: min(one[2], one[3]))
            highest = max(judged, key=lambda one: one[1])
            look(draws, min(worst[2], worst[3]), worst[0], highest[1], highest[0], None)
        if good and was_good:
            return Outcome(list(new.values()), "complete", job.basis)
        was_good, draws = good, _core.next_look(draws)


def _length(plan: Plan, new: dict[int, Chain]) -> int:
    """Give the number of draws that a chain has by now."""
    earlier = 0 if plan[2] is None else len(plan[2])
    return earlier + (len(new[plan[0]].draws) if plan[0] in new else 0)


def _all(plan: Plan, new: dict[int, Chain]) -> Draws:
    """Give all draws of a chain, those from before this run as well."""
    number, _, earlier = plan
    if number not in new:
        assert earlier is not None, "a chain that is not run has draws"
        return earlier
    return new[number].draws if earlier is None else earlier.followed_by(new[number].draws)


@dataclass
class _Running:
    """A chain on a worker: its plan, how long its block may take, and how often its worker was lost."""

    plan: Plan
    seconds: float
    lost: int = 0


def _round(
    executor: Executor,
    job: Job,
    plans: list[Plan],
    draws: int,
    new: dict[int, Chain],
    progress: Callable[[int, str, int, int], None] | None,
    deadline: float | None,
) -> Ended:
    """Bring each chain to so many draws, block by block; what is done is in `new`, also after an interrupt."""
    running: dict[Future[Chain], _Running] = {}

    def submit(one: _Running, error: BaseException | None = None) -> None:
        number, state, _ = one.plan
        state = new[number].state if number in new else state
        running[_submit(executor, job.one((number, state, None), draws, one.seconds), error)] = one

    try:
        for plan in plans:
            submit(_Running(plan, BLOCK))
        while running:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            done, _ = wait(running, timeout=left, return_when=FIRST_COMPLETED)
            if not done:
                return _stop(running, new, "budget")
            for future in sorted(done, key=lambda one: running[one].plan[0]):
                one = running.pop(future)
                try:
                    block = future.result()
                except Exception as error:
                    one.lost += 1
                    if not _is_loss(error) or one.lost == ATTEMPTS:
                        raise
                    submit(one, error)
                    continue
                if not len(block.draws) and not len(block.warmup):
                    # The start is searched for in one go: the next block has more time.
                    one.seconds *= 2.0
                else:
                    _add(new, block)
                length = _length(one.plan, new)
                if progress is not None:
                    progress(one.plan[0], *_phase(job.sampler, new.get(one.plan[0]), length, draws))
                if length < draws:
                    submit(one)
    except KeyboardInterrupt:
        return _stop(running, new, "interrupted")
    except BaseException:
        for future in running:
            future.cancel()
        raise
    return "complete"


def _phase(sampler: Sampler, chain: Chain | None, length: int, draws: int) -> tuple[str, int, int]:
    """Where a chain is: its phase, and sweeps done of all in it."""
    if length:
        return "sample", length, draws
    warmup = 0 if chain is None else len(chain.warmup)
    return ("tune", warmup, int(sampler.get("tune") or 0)) if warmup else ("start", 0, 1)


def _stop(running: dict[Future[Chain], _Running], new: dict[int, Chain], ended: Ended) -> Ended:
    """Cancel what has not begun, and keep the blocks that were ready."""
    for future in running:
        future.cancel()
    for future in sorted(running, key=lambda one: running[one].plan[0]):
        if future.done() and not future.cancelled() and future.exception() is None:
            _add(new, future.result())
    return ended


def _add(new: dict[int, Chain], chain: Chain) -> None:
    before = new.get(chain.chain)
    new[chain.chain] = chain if before is None else before.followed_by(chain)


def _is_loss(error: BaseException) -> bool:
    """Whether the worker was lost, and not the chain at fault."""
    if isinstance(error, (BrokenExecutor, CancelledError, ConnectionError, EOFError)):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"KilledWorker", "CommClosedError", "FutureCancelledError", "LostRunError"})


def _submit(executor: Executor, job: Job, error: BaseException | None) -> Future[Chain]:
    """Hand a job out; `error` says why its worker was lost before."""
    try:
        return executor.submit(run_alone, packed(job) if job.model.has_functions else job)
    except Exception:
        if error is None:
            raise
        chain = job.plans[0][0]
        raise RuntimeError(
            f"chain {chain}: its worker was lost and the executor takes no more work; "
            "run again with a new executor, the draws will be the same"
        ) from error
