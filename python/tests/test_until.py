"""Runs that go on until they have converged."""

import warnings
from concurrent.futures import Executor, Future

import numpy as np
import pytest
from test_fit import same

import gpssm

LINEAR = gpssm.Model(function="0.7*x1", process_noise=0.5)
UNTIL = {"ess": 150, "chains": 3, "tune": 20, "seed": 5, "particles": 10, "restarts": 2, "progress_bar": False}


@pytest.fixture(scope="module")
def y():
    return np.cos(0.31 * np.arange(12) ** 2)


@pytest.fixture(scope="module")
def converged(y):
    return gpssm.fit(y, model=LINEAR, **UNTIL)


def test_a_run_ends_when_all_that_is_identified_has_converged(converged):
    assert converged.ended == "complete" and converged.converged and converged.warnings == []
    table = converged.convergence
    assert list(table.index) == ["sensor_sd[y]"] + [f"x at t = {t}" for t in range(12)]
    assert (table["r_hat"] <= 1.01).all() and (table[["ess_bulk", "ess_tail"]] >= 150).all(axis=None)
    assert table.attrs["not_identified"] == []
    assert len({len(chain.draws) for chain in converged.chains}) == 1 and converged.n_draws >= 3 * 250


def test_the_verdict_is_computed_as_by_arviz(converged):
    az = pytest.importorskip("arviz")
    draws = converged.posterior["posterior"]
    columns = {"sensor_sd[y]": draws["sensor_sd"][..., 0]}
    columns |= {f"x at t = {t}": draws["x"][..., t, 0] for t in range(12)}
    table = converged.convergence
    assert set(columns) == set(table.index)
    for name, values in columns.items():
        theirs = np.asarray(values)
        expected = [az.rhat(theirs), az.ess(theirs), az.ess(theirs, method="tail", prob=(0.05, 0.95))]
        np.testing.assert_allclose(table.loc[name].to_numpy(), np.ravel(expected), rtol=1e-10, err_msg=name)


def test_undefined_is_no_pass_and_the_warning_says_what_to_do(y):
    short = gpssm.fit(y, model=LINEAR, **{**UNTIL, "ess": None, "draws": 3})
    assert not short.converged and np.isnan(short.convergence.to_numpy()).all()
    few = gpssm.fit(y, model=LINEAR, **{**UNTIL, "ess": None, "draws": 20})
    assert few.warnings[0].startswith("Not converged: ") and "sensor_sd[y]" in repr(few)
    assert few.warnings[0].endswith("Continue with: result.resume(ess=400)")
    assert same(few.resume(ess=150, progress_bar=False), gpssm.fit(y, model=LINEAR, **UNTIL))


def test_hidden_states_are_left_out_by_name(y):
    quick = {**UNTIL, "ess": None, "draws": 8}
    table = gpssm.fit(y, states=2, **quick).convergence
    assert {"x2", "f2", "process_sd[x2]"} <= set(table.attrs["not_identified"])
    assert not any("x2" in name or "f2" in name for name in table.index) and "f1 at t = 3" in table.index


class Here(Executor):
    """Runs everything in this process, at once."""

    def submit(self, function, job):
        future = Future()
        future.set_result(function(job))
        return future


def test_threads_executors_budgets_and_stores_give_the_same_run(y, converged, tmp_path):
    assert same(converged, gpssm.fit(y, model=LINEAR, **UNTIL, threads=1))
    assert same(converged, gpssm.fit(y, model=LINEAR, **UNTIL, executor=Here()))
    path = tmp_path / "run.zarr"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stopped = gpssm.fit(y, model=LINEAR, **UNTIL, budget=0.05, out=path)
    assert (stopped.ended == "budget") == any("the budget ended" in str(one.message) for one in caught)
    again = gpssm.open(path)
    assert again.ended == {"budget": "interrupted"}.get(stopped.ended, stopped.ended)
    longer = again.resume(budget="none", progress_bar=False)
    assert same(longer, converged) and longer.ended == "complete"
    assert same(gpssm.open(path), converged) and gpssm.open(path).ended == "complete"
    # What has converged has nothing to do.
    assert same(converged.resume(progress_bar=False), converged)
    assert same(converged.resume(progress_bar=False, executor=Here()), converged)


def test_wrong_settings_are_named(y):
    for arguments, message in [
        ({"ess": 100, "draws": 10}, "give ess or draws"),
        ({"ess": 0}, "ess: 0 is too small"),
        ({"budget": "soon"}, "budget: 'soon' is no time; write 90s, 10m, 1h30m or none"),
        ({"budget": [1]}, "budget: expected a time such as '10m', or seconds"),
        ({"chains": 1}, "one chain cannot be judged; use at least two, or set draws"),
    ]:
        with pytest.raises(ValueError, match=message):
            gpssm.fit(y, states=1, **arguments)
