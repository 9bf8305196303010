"""Chains: pure functions of (model, data, sampler, chain number), here or in other processes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._data import Data
from ._settings import Sampler
from ._types import Floats
from .model import Model

Looked = Callable[[int, float | None, str, float | None, str, int | None], None]
"""Takes what a look found: draws, smallest ESS and its name, largest R-hat and its name, draws expected in all."""

__all__ = ["Chain", "Draws", "Job", "run_here", "run_in"]

Ended = Literal["complete", "interrupted", "budget"]
"""How a run ended."""

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

    def one(self, plan: Plan, draws: int) -> Job:
        """Give the job of a single chain up to so many draws, in one thread."""
        sampler: Sampler = {**self.sampler, "threads": 1, "draws": draws, "budget": "none"}
        return replace(self, plans=[(plan[0], plan[1], None)], sampler=sampler)


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
    return Outcome([Chain._from_core(chain) for chain in found], ended, basis)


def run_alone(job: Job) -> Chain:
    """Run a job of one chain; what is sent to workers."""
    outcome = run_here(job)
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

    A chain whose worker is lost is handed out again; as chains are pure functions, that changes no draw. A run
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


def _round(
    executor: Executor,
    job: Job,
    plans: list[Plan],
    draws: int,
    new: dict[int, Chain],
    progress: Callable[[int, str, int, int], None] | None,
    deadline: float | None,
) -> Ended:
    """Bring each chain to so many draws; what is done is in `new`, also after an interrupt."""
    states = [new[number].state if number in new else state for number, state, _ in plans]
    jobs = [job.one((plan[0], state, None), draws) for plan, state in zip(plans, states, strict=True)]
    futures: list[Future[Chain]] = [executor.submit(run_alone, one) for one in jobs]
    ended: Ended = "complete"
    added: set[int] = set()
    try:
        for k, one in enumerate(jobs):
            for attempt in range(ATTEMPTS):
                try:
                    left = None if deadline is None else max(0.0, deadline - time.monotonic())
                    _add(new, futures[k].result(left))
                    added.add(k)
                    break
                except TimeoutError:
                    if deadline is None or time.monotonic() < deadline:
                        raise
                    ended = "budget"
                    break
                except Exception as error:
                    if not _is_loss(error) or attempt + 1 == ATTEMPTS:
                        raise
                    futures[k] = _submit_again(executor, one, error)
            if ended != "complete":
                break
            if progress is not None:
                progress(plans[k][0], "sample", draws, draws)
    except KeyboardInterrupt:
        ended = "interrupted"
    if ended != "complete":
        for future in futures:
            future.cancel()
        for k, future in enumerate(futures):
            if k not in added and future.done() and not future.cancelled() and future.exception() is None:
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


def _submit_again(executor: Executor, job: Job, error: BaseException) -> Future[Chain]:
    try:
        return executor.submit(run_alone, job)
    except Exception:
        chain = job.plans[0][0]
        raise RuntimeError(
            f"chain {chain}: its worker was lost and the executor takes no more work; "
            "run again with a new executor, the draws will be the same"
        ) from error
