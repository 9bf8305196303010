"""Chains: pure functions of (model, data, sampler, chain number), here or in other processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ._data import Data
from ._settings import Sampler
from ._types import Floats
from .model import Model

if TYPE_CHECKING:
    from . import _core

__all__ = ["Chain", "Draws", "Job", "run_here", "run_in"]

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


@dataclass(frozen=True)
class Job:
    """Some chains of a run; everything that a worker needs."""

    model: Model
    data: Data
    sampler: Sampler
    plans: list[tuple[int, str | None]]
    basis: str | None = None

    def one(self, plan: tuple[int, str | None]) -> Job:
        """Give the job of a single chain, in one thread."""
        return replace(self, plans=[plan], sampler={**self.sampler, "threads": 1})


@dataclass(frozen=True)
class Outcome:
    """Chains, whether an interrupt stopped them, and the finite basis that they share."""

    chains: list[Chain]
    interrupted: bool
    basis: str | None


def run_here(
    job: Job,
    progress: Callable[[int, str, int, int], None] | None = None,
    store: tuple[str, bool] | None = None,
) -> Outcome:
    """Run the chains of a job in threads of this process."""
    problem = job.model._problem(job.data, job.sampler)
    if job.basis is not None:
        problem = problem.with_basis(job.basis)
    sampler = json.dumps(job.sampler)
    found, interrupted, basis = problem.sample(sampler, job.plans, True, progress, store)
    return Outcome([Chain._from_core(chain) for chain in found], interrupted, basis)


def run_alone(job: Job) -> Chain:
    """Run a job of one chain; what is sent to workers."""
    outcome = run_here(job)
    if outcome.interrupted or not outcome.chains:
        raise KeyboardInterrupt
    return outcome.chains[0]


def run_in(executor: Executor, job: Job, progress: Callable[[int, str, int, int], None] | None = None) -> Outcome:
    """Run each chain of a job on a worker of an executor.

    A chain whose worker is lost is handed out again; as chains are pure functions, that changes no draw.
    """
    if job.basis is None:
        problem = job.model._problem(job.data, job.sampler).prepare(json.dumps(job.sampler))
        job = replace(job, basis=problem.basis)
    jobs = [job.one(plan) for plan in job.plans]
    futures: list[Future[Chain]] = [executor.submit(run_alone, one) for one in jobs]
    chains: list[Chain] = []
    total = job.sampler["draws"]
    try:
        for k, one in enumerate(jobs):
            for attempt in range(ATTEMPTS):
                try:
                    chains.append(futures[k].result())
                    break
                except Exception as error:
                    if not _is_loss(error) or attempt + 1 == ATTEMPTS:
                        raise
                    futures[k] = _submit_again(executor, one, error)
            if progress is not None:
                progress(job.plans[k][0], "sample", total, total)
    except KeyboardInterrupt:
        for future in futures:
            future.cancel()
        done = [f.result() for f in futures if f.done() and not f.cancelled() and f.exception() is None]
        return Outcome(done, True, job.basis)
    return Outcome(chains, False, job.basis)


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
