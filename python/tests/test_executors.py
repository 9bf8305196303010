"""Chains in other processes: the same draws, bit for bit, whatever happens to the workers."""

import multiprocessing
import os
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
import workers
from conftest import QUICK
from test_fit import same

import gpssm

HERE = Path(__file__).parent


def test_process_pool_gives_the_same_draws(record, result):
    y, u = record
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert same(result, gpssm.fit(y, u, states=1, **QUICK, executor=pool))
        prior = {"a": gpssm.Normal(0.9, 0.2)}
        here = gpssm.fit(y, u, mean=workers.mean, parameters=prior, **{**QUICK, "draws": 6})
        there = gpssm.fit(y, u, mean=workers.mean, parameters=prior, **{**QUICK, "draws": 6}, executor=pool)
        assert same(here, there)
        basis = {**QUICK, "draws": 4, "dynamics": gpssm.FIC(8)}
        assert same(gpssm.fit(y, u, states=1, **basis), gpssm.fit(y, u, states=1, **basis, executor=pool))
        more = gpssm.fit(y, u, states=1, **{**QUICK, "draws": 12}, executor=pool).resume(
            30, executor=pool, progress_bar=False
        )
        assert same(result, more)
        both = gpssm.fit_many([(y, u), (y[:20], u[:20])], states=1, executor=pool, **QUICK)
        assert same(both[0], result) and len(both[1].data.y[0]) == 20


def test_lambdas_reach_other_processes(record):
    pytest.importorskip("cloudpickle")
    y, u = record
    arguments = {**QUICK, "draws": 6, "mean": lambda x: 0.9 * x[:, 0]}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert same(gpssm.fit(y, u, states=1, **arguments), gpssm.fit(y, u, states=1, **arguments, executor=pool))


class InTurn(Executor):
    """Runs at once in this process, in short blocks, and is interrupted after some of them."""

    def __init__(self, most):
        self.blocks, self.most = 0, most

    def submit(self, function, job):
        self.blocks += 1
        future = Future()
        if self.blocks > self.most:
            raise KeyboardInterrupt
        future.set_result(function(job))
        return future


def test_blocks_stream_progress_and_survive_an_interrupt(record, monkeypatch):
    y, u = record
    monkeypatch.setattr("gpssm._chains.BLOCK", 0.05)
    told = []
    arguments = {**QUICK, "draws": 400}
    whole = gpssm.fit(y, u, states=1, **arguments)
    executor = InTurn(10**6)
    arguments["progress_bar"] = lambda *seen: told.append(seen)
    assert same(whole, gpssm.fit(y, u, states=1, **arguments, executor=executor))
    assert executor.blocks > 4, "one block for each chain: the test says nothing"
    counts = [done for chain, phase, done, _ in told if chain == 0 and phase == "sample"]
    assert len(counts) > 1 and counts == sorted(counts) and counts[-1] == 400
    with pytest.warns(UserWarning, match="interrupted after"):
        part = gpssm.fit(y, u, states=1, **arguments, executor=InTurn(executor.blocks // 2))
    assert part.ended == "interrupted" and 0 < part.n_draws < 800
    assert same(whole, part.resume(400, progress_bar=False))


class Flaky(Executor):
    """Runs in this process, and loses every worker once."""

    def __init__(self):
        self.seen = set()

    def submit(self, function, job):
        future = Future()
        key = job.plans[0][0]
        if key not in self.seen:
            self.seen.add(key)
            future.set_exception(BrokenProcessPool("a worker died"))
        else:
            future.set_result(function(job))
        return future


def test_a_lost_workers_chain_is_handed_out_again(record, result):
    y, u = record
    assert same(result, gpssm.fit(y, u, states=1, **QUICK, executor=Flaky()))


class Dead(Executor):
    def submit(self, function, job):
        if not hasattr(self, "used"):
            self.used = True
        elif self.used == "broken":
            raise BrokenProcessPool("no more")
        self.used = "broken" if job.plans[0][0] == 1 else self.used
        future = Future()
        future.set_exception(BrokenProcessPool("a worker died"))
        return future


def test_a_dead_executor_is_named(record):
    y, u = record
    with pytest.raises(RuntimeError, match="chain 0: its worker was lost"):
        gpssm.fit(y, u, states=1, **QUICK, executor=Dead())


def test_faults_of_a_chain_are_not_tried_again(record):
    y, u = record

    class Counting(Executor):
        calls = 0

        def submit(self, function, job):
            self.calls += 1
            future = Future()
            try:
                future.set_result(function(job))
            except Exception as error:
                future.set_exception(error)
            return future

    def broken(x):
        raise LookupError("no such table")

    executor = Counting()
    with pytest.raises(LookupError):
        gpssm.fit(y, u, mean=broken, **{**QUICK, "chains": 1}, executor=executor)
    assert executor.calls == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_dask_cluster_survives_the_death_of_a_worker(record, tmp_path):
    distributed = pytest.importorskip("distributed")
    y, u = record
    mean = workers.DeadlyMean(tmp_path / "died", os.getpid())
    arguments = {**QUICK, "draws": 8, "tune": 5, "restarts": 1}
    here = gpssm.fit(y, u, mean=mean, **arguments)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(sys.path.insert, 0, str(HERE))
        client.register_plugin(Path_(str(HERE)))
        there = gpssm.fit(y, u, mean=mean, **arguments, executor=client.get_executor())
    assert (tmp_path / "died").exists(), "no worker died: the test says nothing"
    assert same(here, there)
    assert np.isfinite(there.posterior["posterior"]["x"]).all()


try:
    from distributed import WorkerPlugin
except ImportError:
    WorkerPlugin = object


class Path_(WorkerPlugin):
    """Lets workers, new ones as well, import from the folder of the tests."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, worker):
        sys.path.insert(0, self.folder)
