"""Fitting: draws, their form, user functions, interrupts."""

import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from conftest import QUICK

import gpssm


def same(a, b):
    for one, other in zip(a.chains, b.chains, strict=True):
        np.testing.assert_array_equal(one.draws.theta, other.draws.theta)
        for p, q in zip(one.draws.paths, other.draws.paths, strict=True):
            np.testing.assert_array_equal(p, q)
        assert one.state == other.state
    return len(a.chains) == len(b.chains)


def test_draws_have_the_schema_of_arviz(result):
    tree = result.posterior
    groups = {"posterior", "sample_stats", "log_likelihood", "log_prior", "observed_data", "constant_data"}
    assert set(tree.children) == groups
    x = tree["posterior"]["x"]
    assert x.dims == ("chain", "draw", "time", "state") and x.shape == (2, 30, 40, 1)
    assert {"lp", "log_likelihood_total", "filter_failures"} <= set(tree["sample_stats"].data_vars)
    assert tree["observed_data"]["y"].dims == ("time", "output")
    assert tree["constant_data"]["u"].dims == ("time", "input")
    assert np.isfinite(x).all() and tree.attrs["seed"] == 3


def test_seed_decides_and_threads_do_not(record, result):
    y, u = record
    assert same(result, gpssm.fit(y, u, states=1, **QUICK, threads=1))
    other = gpssm.fit(y, u, states=1, **{**QUICK, "seed": 4})
    assert (other.chains[0].draws.theta != result.chains[0].draws.theta).any()


def test_warmup_is_kept_on_demand(record):
    y, u = record
    tree = gpssm.fit(y, u, states=1, **QUICK, save_warmup=True).posterior
    assert tree["warmup_posterior"]["x"].sizes["draw"] == 15


def test_resume_gives_the_draws_of_an_unbroken_run(record, result):
    y, u = record
    short = gpssm.fit(y, u, states=1, **{**QUICK, "draws": 12})
    assert same(short.resume(30, progress_bar=False), result)
    with pytest.raises(ValueError, match="there are 30 already"):
        result.resume(10)


def test_summary_agrees_with_arviz(result):
    az = pytest.importorskip("arviz")
    ours = result.summary()
    names = list(dict.fromkeys(label.split("[")[0] for label in ours.index))
    theirs = az.summary(result.to_arviz(), var_names=names, round_to="none").loc[ours.index]
    for column in ["mean", "sd", "mcse_mean", "ess_bulk", "r_hat"]:
        np.testing.assert_allclose(ours[column], theirs[column].astype(float), rtol=1e-8, err_msg=column)
    # What counts as tail is a setting of ArviZ 1.x; 5 % and 95 % are those of the definition.
    tail = az.ess(result.to_arviz(), method="tail", prob=(0.05, 0.95))
    tail = tail["posterior"] if "posterior" in tail else tail
    flat = np.concatenate([tail[name].to_numpy().ravel() for name in names])
    np.testing.assert_allclose(ours["ess_tail"], flat, rtol=1e-8)
    states = result.summary("x")
    assert len(states) == 40 and states.index[0] == "x[0, x]"
    assert {"eti90_lb", "eti90_ub"} <= set(ours.columns)


def test_repr_in_terminals_and_notebooks(result):
    assert "process_sd" in repr(result) and "2 chains, 30 draws each" in repr(result)
    page = result._repr_html_()
    assert "<table" in page and "process_sd" in page
    assert "Not converged." in page and page.count("<svg") == 1 and page.count("<circle") == 40
    assert "nan" not in page.lower().replace("nanosecond", "")


MODELS = [
    gpssm.Model(),
    gpssm.Model(2, kernel="matern32(x) + linear", dynamics="hilbert(30)"),
    gpssm.Model(lags=2, sensor="student_t"),
    gpssm.Model(
        [gpssm.Gp(gpssm.Matern32(ell=gpssm.Gamma(2.0, 1.0)) + gpssm.Linear(), mean="0.5*x1"), gpssm.Lag("x1")],
        sensor=gpssm.StudentT(mean="a*x1", dof=gpssm.Gamma(2.0, 0.1)),
        process_noise=gpssm.HalfNormal(1.0),
        parameters={"a": gpssm.Normal(1.0, 0.5)},
        initial=gpssm.InitialGaussian([0.0, 0.0], [1.0, 1.0]),
        dynamics=gpssm.FIC(10),
        sampler={"draws": 7, "seed": 5},
    ),
    gpssm.Model([gpssm.Parametric("0.5*x1 + u1", scale=2.0, name="level")], process_noise=0.1),
    gpssm.Model(
        2,
        process_noise=gpssm.LKJ(2.0, [gpssm.HalfNormal(1.0)] * 2),
        sensor=gpssm.Gaussian(gpssm.LinearMean([1.0, gpssm.Normal(0.0, 1.0)]), gpssm.HalfNormal(0.2)),
    ),
]


@pytest.mark.parametrize("model", MODELS)
def test_models_round_trip_and_can_be_sampled(model, record):
    assert gpssm.Model.from_dict(model.to_dict()) == model
    assert gpssm.Model.from_toml(model.to_toml()) == model
    y, u = record
    quick = {**QUICK, "draws": 3, "tune": 2, "chains": 1}
    result = gpssm.fit(y, u, model=model, **quick)
    assert np.isfinite(result.posterior["posterior"]["x"]).all()
    # The run file that leaves nothing open is the same run.
    assert same(result, gpssm.fit(y, u, model=result.to_toml(), **quick))


def test_settings_of_a_run_file_are_defaults(record):
    y, u = record
    text = "[sampler]\ndraws = 6\ntune = 3\nchains = 1\nseed = 9\n[model]\nkernel = 'se'\n"
    result = gpssm.fit(y, u, model=text, progress_bar=False)
    assert (result.n_draws, result.sampler["seed"]) == (6, 9)
    assert gpssm.fit(y, u, model=text, draws=4, progress_bar=False).n_draws == 4


def test_formula_and_function_give_the_same_draws(record):
    y, u = record

    def mean(x, u, a):
        return a * np.tanh(x[:, 0]) + 0.5 * u[:, 0]

    prior = {"a": gpssm.Normal(0.9, 0.2)}
    formula = gpssm.fit(y, u, mean="a*tanh(x) + 0.5*u", parameters=prior, **QUICK)
    function = gpssm.fit(y, u, mean=mean, parameters=prior, **QUICK)
    assert "a" in function.posterior["posterior"]
    for one, other in zip(formula.chains, function.chains, strict=True):
        np.testing.assert_allclose(one.draws.theta, other.draws.theta, rtol=1e-6)


def test_own_sensor_and_initial_density(record):
    y, u = record

    def log_density(y, x, noise):
        return -0.5 * ((y[0] - x[:, 0]) / noise) ** 2 - np.log(noise)

    model = gpssm.Model(
        sensor=gpssm.SensorDensity(log_density),
        parameters={"noise": gpssm.LogNormal(0.05, 0.5)},
        initial=gpssm.InitialDensity(lambda x: -0.5 * x[:, 0] ** 2, lambda rng, n: rng.normal(size=(n, 1))),
    )
    result = gpssm.fit(y, u, model=model, **{**QUICK, "draws": 10})
    x = result.posterior["posterior"]["x"].mean(("chain", "draw")).values[:, 0]
    assert np.sqrt(np.mean((x - y) ** 2)) < 0.2
    with pytest.raises(ValueError, match="Python functions"):
        model.to_toml()


def test_exceptions_come_back_with_their_traceback(record):
    y, u = record

    def mean(x):
        if len(x) > 3:
            raise LookupError("no such table")
        return x[:, 0]

    with pytest.raises(LookupError, match="no such table") as caught:
        gpssm.fit(y, u, mean=mean, **QUICK)
    assert any(entry.name == "mean" for entry in caught.traceback)
    with pytest.raises(ValueError, match=r"wrong returned shape"):

        def wrong(x):
            return np.zeros((len(x), 3))

        gpssm.fit(y, u, mean=wrong, **QUICK)


def test_what_is_refused_is_named(record):
    y, u = record
    for arguments, message in [
        ({"draws": 0}, "draws: 0 is too small"),
        ({"draws": 2.5}, "draws: expected a whole number"),
        ({"particles": 1}, "particles"),
        ({"states": 0}, "states"),
        ({"kernel": 3}, "kernel: expected"),
        ({"mean": "a*x"}, "a"),
        ({"sensor": "nonsense"}, "sensor"),
        ({"nonsense": 1}, "nonsense"),
        ({"model": gpssm.Model(), "kernel": gpssm.Matern32()}, "kernel cannot be given beside it"),
        ({"model": {"colour": "red"}}, "there is no .colour."),
        ({"kernel": "matern31"}, "did you mean"),
        ({"mean": "tanh(z)"}, "z"),
        ({"model": "nowhere.toml"}, "nowhere.toml"),
    ]:
        with pytest.raises((TypeError, ValueError, OSError), match=message):
            gpssm.fit(y, u, **{**QUICK, **arguments})


def test_lock_is_released_while_sampling(record):
    y, u = record
    ticks = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=count)
    thread.start()
    gpssm.fit(y, u, states=1, **{**QUICK, "draws": 60, "threads": 1})
    stop.set()
    thread.join()
    # With the lock held there would be no tick at all while the chains run.
    assert len(ticks) > 5


def test_progress_is_told_and_its_exceptions_stop_the_run(record):
    y, u = record
    seen = []
    gpssm.fit(y, u, states=1, **{**QUICK, "progress_bar": lambda *state: seen.append(state)})
    assert {phase for _, phase, _, _ in seen} <= {"start", "tune", "sample"} and seen
    assert (max(done for _, phase, done, _ in seen if phase == "sample")) == 30

    def broken(*state):
        raise RuntimeError("bar is broken")

    with pytest.raises(RuntimeError, match="bar is broken"):
        gpssm.fit(y, u, states=1, **{**QUICK, "progress_bar": broken, "draws": 10**6})


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_returns_what_was_drawn():
    code = """
    import os, signal, threading, time, warnings
    import numpy as np
    import gpssm
    warnings.simplefilter("ignore")
    started = threading.Event()
    def progress(chain, phase, done, total):
        if phase == "sample" and done >= 3:
            started.set()
    def kill():
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=kill, daemon=True).start()
    y = np.sin(0.3 * np.arange(60))
    result = gpssm.fit(y, states=1, draws=10**7, tune=5, chains=2, restarts=1, progress_bar=progress)
    assert result.ended == "interrupted" and result.n_draws >= 3, result
    assert result.posterior["posterior"].sizes["draw"] > 0
    print("drawn", result.n_draws)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout.startswith("drawn"), done.stderr


def test_missing_outputs_and_several_sequences(record):
    y, u = record
    gap = y.copy()
    gap[10:15] = np.nan
    result = gpssm.fit([gap, y[:20]], [u, u[:20]], states=1, **{**QUICK, "draws": 5, "tune": 3})
    x = result.posterior["posterior"]["x"]
    assert x.sizes["time"] == 60 and x.indexes["time"].is_unique and np.isfinite(x).all()
    rows = result.posterior["observed_data"]
    assert list(rows["sequence"].values) == ["1"] * 40 + ["2"] * 20
    np.testing.assert_array_equal(rows["time_value"], [*range(40), *range(20)])


def test_finite_bases(record):
    y, u = record
    for dynamics in [gpssm.FIC(8), gpssm.DTC([4, 3]), gpssm.Hilbert(15), gpssm.Fourier(10, mode="sampled")]:
        result = gpssm.fit(y, u, dynamics=dynamics, **{**QUICK, "draws": 4, "tune": 2})
        assert np.isfinite(result.posterior["posterior"]["x"]).all()


def test_sensor_means_may_be_functions(record):
    y, u = record

    def sensor_mean(x, u, gain):
        return gain * x[:, 0] + 0.0 * u[:, 0]

    arguments = {**QUICK, "draws": 6, "parameters": {"gain": gpssm.LogNormal(1.0, 0.1)}}
    function = gpssm.fit(y, u, sensor=gpssm.Gaussian(sensor_mean), **arguments)
    formula = gpssm.fit(y, u, sensor=gpssm.Gaussian("gain*x1 + 0*u1"), **arguments)
    for one, other in zip(formula.chains, function.chains, strict=True):
        np.testing.assert_allclose(one.draws.theta, other.draws.theta, rtol=1e-6)
    y = np.column_stack([y, 2.0 * y])
    means = [lambda x: x[:, 0], lambda x: 2.0 * x[:, 0]]
    two = gpssm.fit(y, u, states=1, sensor=gpssm.Gaussian(means), **{**QUICK, "draws": 4})
    assert np.isfinite(two.posterior["posterior"]["x"]).all()
    with pytest.raises(ValueError, match="sensor.mean: expected formulas, functions or LinearMean"):
        gpssm.fit(y, u, states=1, sensor=gpssm.Gaussian([means[0], "2*x1"]), **QUICK)
