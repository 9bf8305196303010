"""The steps around a fit: leave-future-out, dates in stores, sensitivity, own and compiled functions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import QUICK
from test_fit import same

import gpssm


@pytest.fixture(scope="module")
def dated():
    """A monthly series with a time zone."""
    rng = np.random.default_rng(4)
    x = np.zeros(36)
    for t in range(35):
        x[t + 1] = 0.8 * x[t] + 0.3 * rng.normal()
    index = pd.date_range("2020-01-31", periods=36, freq="ME", tz="Europe/Paris")
    return pd.Series(x + 0.1 * rng.normal(size=36), index=index, name="level")


def test_leave_future_out_ranks_models(record):
    y, u = record
    short = {**QUICK, "draws": 10}
    fits = [gpssm.fit(y, u, kernel=kernel, **short) for kernel in ("constant", "se + linear")]
    options = {"method": "lfo", "n_init": 34, "draws": 20, "functions": 30, "particles": 20, "progress_bar": False}
    ranking = gpssm.compare(fits, **options)
    assert list(ranking.index) == ["1", "0"] and (ranking["n"] == 6).all() and (ranking["fits"] >= 1).all()
    pd.testing.assert_frame_equal(ranking, gpssm.compare(fits, **options))
    with pytest.raises(ValueError, match="y: leave-future-out scores the training record"):
        gpssm.compare(fits, y, u, method="lfo")
    with pytest.raises(ValueError, match="y: give the record"):
        gpssm.compare(fits)
    with pytest.raises(ValueError, match="method: expected 'record' or 'lfo'"):
        gpssm.compare(fits, y, u, method="loo")
    with pytest.raises(ValueError, match="n_init: 40 rows to learn from, of 40"):
        gpssm.compare(fits, method="lfo", n_init=40)
    other = gpssm.fit(y + 1.0, u, states=1, **short)
    with pytest.raises(ValueError, match="a and b were fitted to different outputs"):
        gpssm.compare({"a": fits[0], "b": other}, **options)


@pytest.mark.parametrize("rows", [{}, {"every": 2}])
def test_dates_are_kept_in_stores(dated, tmp_path, rows):
    result = gpssm.fit(dated, states=1, **{**QUICK, "draws": 6}, **rows)
    result.save(tmp_path / "run.zarr")
    again = gpssm.open(tmp_path / "run.zarr")
    for other in (again, pickle.loads(pickle.dumps(result)), pickle.loads(pickle.dumps(again))):
        np.testing.assert_array_equal(other.data.times(), result.data.times())
        assert other.posterior["posterior"]["time"].dtype == "datetime64[ns]"
        ahead = other.forecast(3, paths=5)
        np.testing.assert_array_equal(ahead["time"], result.forecast(3, paths=5)["time"])
        # The last days of the next months, as Paris has them.
        local = pd.DatetimeIndex(ahead["time"].values, tz="UTC").tz_convert("Europe/Paris")
        assert [str(date.date()) for date in local] == ["2023-01-31", "2023-02-28", "2023-03-31"]
    assert same(result, again)


def test_xarray_reads_dates_from_a_store(dated, tmp_path):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    result = gpssm.fit(dated, states=1, **{**QUICK, "draws": 6}, out=tmp_path / "run.zarr")
    stored = xr.open_zarr(tmp_path / "run.zarr", group="posterior", consolidated=False)
    np.testing.assert_array_equal(stored["time"].values, result.data.times())
    assert gpssm.open(tmp_path / "run.zarr").data.index[0].frequency == "ME"


def test_sequences_with_dates_of_their_own(dated, tmp_path):
    parts = [dated.iloc[:16], dated.iloc[20:]]
    result = gpssm.fit(parts, states=1, **{**QUICK, "draws": 6})
    result.save(tmp_path / "run.zarr")
    again = gpssm.open(tmp_path / "run.zarr")
    for s in range(2):
        np.testing.assert_array_equal(again.data.times(s), result.data.times(s))
        np.testing.assert_array_equal(again.data.time[s], result.data.time[s])


def test_fine_and_old_times_survive(tmp_path):
    """Nanoseconds over hours, microseconds over decades."""
    rng = np.random.default_rng(1)
    for step, start in (
        (np.timedelta64(1_000_003, "ns"), "2024-05-05T01:02:03.000000001"),
        (np.timedelta64(400, "D"), "1871-01-01"),
    ):
        times = np.datetime64(start, "ns") + np.arange(12) * step
        y = pd.Series(rng.normal(size=12), index=pd.DatetimeIndex(times))
        result = gpssm.fit(y, states=1, **{**QUICK, "draws": 3, "tune": 2, "chains": 1})
        path = tmp_path / f"{start[:4]}.zarr"
        result.save(path)
        np.testing.assert_array_equal(gpssm.open(path).data.times(), times)


def test_sensitivity_of_strong_and_weak_priors():
    """A prior far from the data shows; the numbers are compared with those of ArviZ in `test_groups`."""
    rng = np.random.default_rng(3)
    y = np.sin(0.3 * np.arange(60)) + 0.3 * rng.normal(size=60)
    short = {**QUICK, "draws": 200, "tune": 100}
    found = {}
    for name, prior in {"far": gpssm.LogNormal(0.03, 0.1), "wide": gpssm.LogNormal(0.3, 1.0)}.items():
        result = gpssm.fit(y, sensor=gpssm.Gaussian(noise=prior), **short)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = result.sensitivity("sensor_sd", prior="sensor_sd").iloc[0]
    assert found["far"]["prior"] > 2 * found["wide"]["prior"] and found["far"]["diagnosis"]
    with pytest.raises(ValueError, match="prior: there is no 'sensor_st'.*sensor_sd"):
        result.sensitivity(prior="sensor_st")
    with pytest.raises(ValueError, match="alphas: expected one power below and one above 1"):
        result.sensitivity(alphas=(1.1, 1.2))


def test_smoothed_weights_are_those_of_arviz():
    az = pytest.importorskip("arviz")
    if not hasattr(az, "psislw"):
        pytest.skip(f"ArviZ {az.__version__} has no psislw")
    rng = np.random.default_rng(8)
    for scale in (0.3, 1.0, 4.0):
        logs = scale * rng.normal(size=500)
        ours, k, limit = gpssm._core.smooth_weights(logs)
        theirs, shape = az.psislw(logs.copy())
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-9)
        assert k == pytest.approx(float(shape), rel=1e-9) and limit == pytest.approx(1 - 1 / np.log10(500))


MODELS = [
    gpssm.Model(),
    gpssm.Model(kernel="matern32(x) + 2 * linear^2", sensor="student_t"),
    gpssm.Model(
        2, kernel=gpssm.Odd(gpssm.SquaredExponential()), process_noise=gpssm.OnVariance("inverse_gamma(2, 1)")
    ),
    gpssm.Model(lags=1, sensor=gpssm.Gaussian(noise=0.1)),
    gpssm.Model(
        [gpssm.Gp(gpssm.Matern52(active=["gas"]), mean="a*x1", name="level")], parameters={"a": "normal(1, 0.5)"}
    ),
    gpssm.Model(sensor="poisson", dynamics="hilbert(20)"),
]


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_resolved_models_round_trip_and_mean_the_same(record, model):
    y, u = record
    y, u = np.abs(np.round(3 * y)), pd.DataFrame({"gas": u})
    whole = model.resolved(y, u)
    again = eval(repr(whole), {"gpssm": gpssm})
    assert again == whole and "\n" in repr(whole)
    # Nothing is left open: the engine has the same model, and the same draws.
    problems = [one._problem(gpssm.as_data(y, u), {}) for one in (model, whole)]
    assert problems[0].to_toml() == problems[1].to_toml()


def test_kernels_and_graphs_of_models():
    assert gpssm.Model(kernel="se + linear").kernel == gpssm.SquaredExponential() + gpssm.Linear()
    assert gpssm.Model().kernel is None
    assert gpssm.Model().resolved(np.sin(np.arange(9.0))).kernel.parts[0].sigma_f is not None
    own = gpssm.Matern32(active=["gas"])
    assert gpssm.Model(kernel=own).kernel is own
    table = gpssm.Model(kernel={"matern32": {"ell": [{"fixed": {"value": 2.0}}]}}).kernel
    assert table == gpssm.Matern32(ell=[2.0])
    graph = gpssm.Model(lags=2, kernel="se", sensor=gpssm.Poisson()).to_graphviz()
    assert graph.startswith("digraph gpssm {") and graph.endswith("}")
    assert 'x2 -> x3_next [label="copied"];' in graph and "Poisson()" in graph
    assert graph.count("{") == graph.count("}") and "u -> f_x1 [style=dashed];" in graph


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_functions_return_wrongly_is_said(record):
    y, u = record

    def root(x, u, a):
        return np.sqrt(x[:, 0] - 50.0) + a

    with pytest.raises(RuntimeError, match=r"root returned NaN in row 0 of \d+, at x = \[.*\], u = .*parameters"):
        gpssm.fit(y, u, mean=root, parameters={"a": 0.1}, **QUICK)

    def partly(x):
        return np.where(x[:, 0] > np.nanmax(y) + 0.05, np.nan, 0.8 * x[:, 0])

    with pytest.warns(UserWarning, match="partly returned NaN in row .* such states count as impossible"):
        gpssm.fit(y, u, mean=partly, **QUICK)

    def infinite(y, x):
        return np.full(len(x), np.inf)

    with pytest.raises(ValueError, match="infinite returned inf in row 0 .*a log density must be finite or -inf"):
        gpssm.fit(y, u, sensor=gpssm.SensorDensity(infinite), **QUICK)


def test_compiled_functions_are_called_by_their_address(record):
    numba = pytest.importorskip("numba", reason="numba is not installed")
    y, u = record
    pointer = "CPointer(float64)"

    @numba.cfunc(f"float64({pointer}, {pointer}, {pointer})")
    def drift(x, u, p):
        return p[0] * np.tanh(x[0]) + 0.5 * u[0]

    @numba.cfunc(f"float64({pointer}, {pointer}, {pointer}, {pointer})")
    def seen(y, x, u, p):
        return -0.5 * ((y[0] - x[0]) / p[0]) ** 2 - np.log(p[0]) - 0.9189385332046727

    parameters = {"a": gpssm.Normal(0.9, 0.2), "s": gpssm.HalfNormal(0.1)}

    def slow(x, u, a):
        return a * np.tanh(x[:, 0]) + 0.5 * u[:, 0]

    def slowly(y, x, s):
        return -0.5 * ((y[0] - x[:, 0]) / s) ** 2 - np.log(s) - 0.9189385332046727

    fast = gpssm.fit(
        y,
        u,
        mean=gpssm.CompiledFunction(drift, ["a"]),
        sensor=gpssm.SensorDensity(gpssm.CompiledFunction(seen, ["s"])),
        parameters=parameters,
        **{**QUICK, "draws": 8},
    )
    slower = gpssm.fit(
        y, u, mean=slow, sensor=gpssm.SensorDensity(slowly), parameters=parameters, **{**QUICK, "draws": 8}
    )
    for name in ("a", "s"):
        ours, theirs = (found.posterior["posterior"][name].values for found in (fast, slower))
        np.testing.assert_allclose(ours[:, 0], theirs[:, 0], rtol=1e-6)

    # Seen failing when the address was not looked for: the engine called Python, which refuses.
    @numba.cfunc(f"float64({pointer}, {pointer}, {pointer})")
    def covariance(z, z2, p):
        return p[0] ** 2 * np.exp(-0.5 * ((z[0] - z2[0]) ** 2 + (z[1] - z2[1]) ** 2))

    own = gpssm.KernelFunction(gpssm.CompiledFunction(covariance), {"scale": 1.3})
    z = np.column_stack([y, u])
    np.testing.assert_allclose(own(z), gpssm.SquaredExponential(1.3, 1.0)(z), rtol=1e-12)
    gpssm.testing.check_kernel(own, n_x=1, n_u=1)
    assert np.isfinite(gpssm.fit(y, u, kernel=own, **{**QUICK, "draws": 3}).posterior["posterior"]["x"]).all()
    with pytest.raises(ValueError, match=r"seen is declared with 4 arguments; .*\(z, z2, parameters\)"):
        gpssm.Model(kernel=gpssm.KernelFunction(gpssm.CompiledFunction(seen)))
    with pytest.raises(ValueError, match="drift is declared with 3 arguments; it must take 4 pointers"):
        gpssm.SensorDensity(gpssm.CompiledFunction(drift, ["a"])) and gpssm.Model(
            sensor=gpssm.SensorDensity(gpssm.CompiledFunction(drift, ["a"]))
        )
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(gpssm.CompiledFunction(drift, ["a"]))
    with pytest.raises(ValueError, match="expected numba's cfunc"):
        gpssm.CompiledFunction(slow)
