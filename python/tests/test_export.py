"""Exported models: C sources through CasADi, CasADi expressions, ONNX, FMI, linear models."""

import shutil
import subprocess

import numpy as np
import pytest

import gpssm

POINTS = np.random.default_rng(5).normal(0.3, 0.6, size=(50, 2))


@pytest.fixture(scope="module")
def small(result):
    return result.distil(12, max_loss=None, scenarios=3)


@pytest.fixture(scope="module")
def casadi():
    return pytest.importorskip("casadi", reason="casadi is not installed: exports to it were not tested")


def agree(function, small, jacobian):
    """Values and derivatives of a CasADi function at points."""
    mean, sd = small(POINTS[:, :1], POINTS[:, 1:])
    slopes = small.jacobian(POINTS[:, :1], POINTS[:, 1:])
    for i, (x, u) in enumerate(POINTS):
        found = function(x, u)
        np.testing.assert_allclose(float(found[0]), mean[i, 0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(float(found[1]), sd[i, 0] ** 2, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(np.array(jacobian(x, u)).ravel(), slopes[i, 0], rtol=1e-6, atol=1e-7)


def jacobian_of(casadi, function):
    """Of the first output in (x, u)."""
    x, u = casadi.MX.sym("x"), casadi.MX.sym("u")
    return casadi.Function("j", [x, u], [casadi.jacobian(function(x, u)[0], casadi.vertcat(x, u))])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_casadi_expressions_are_the_model(casadi, small):
    model = gpssm.export.casadi(small)
    agree(model.f, small, jacobian_of(casadi, model.f))
    assert len(model.scenarios) == small.n_scenarios == 3
    rows = [[float(f(x, u)) for f in model.scenarios] for x, u in POINTS]
    assert np.std(rows, axis=1).max() > 1e-4, "functions of the posterior differ"
    # The sensor shows the state.
    assert model.h is not None and float(model.h(0.4, 0.1)[0]) == pytest.approx(0.4)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_casadi_loads_the_compiled_model(casadi, small, compiler, tmp_path):
    if shutil.which(compiler) is None or shutil.which("make") is None:
        pytest.skip(f"{compiler} or make is not installed: its library was not loaded")
    gpssm.export.c(small, tmp_path, name="plant")
    subprocess.run(["make", "-s", "casadi", f"CC={compiler}", "CFLAGS=-O1 -Werror"], cwd=tmp_path, check=True)
    library = str(tmp_path / "plant_casadi.so")
    f, h = casadi.external("f", library), casadi.external("h", library)
    agree(f, small, jacobian_of(casadi, f))
    assert f.name_in() == ["x", "u"] and f.name_out() == ["mean", "variance"]
    assert float(h(0.4, 0.1)) == pytest.approx(0.4)
    # Slopes of the variance are those of the expressions.
    x, u = casadi.MX.sym("x"), casadi.MX.sym("u")

    def slopes(function):
        return casadi.Function("s", [x, u], [casadi.jacobian(function(x, u)[1], casadi.vertcat(x, u))])

    ours, theirs = slopes(f), slopes(gpssm.export.casadi(small).f)
    for point in POINTS[:10]:
        np.testing.assert_allclose(np.array(ours(*point)), np.array(theirs(*point)), rtol=1e-5, atol=1e-7)


def test_onnx_is_the_model(small, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: its models were not tested")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: ONNX models were not run")
    [file] = gpssm.export.onnx(small, tmp_path, name="plant")
    onnx.checker.check_model(onnx.load(file), full_check=True)
    session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    assert [(found.name, found.type) for found in session.get_inputs()] == [
        ("x", "tensor(double)"),
        ("u", "tensor(double)"),
    ]
    x, u = POINTS[:, :1], POINTS[:, 1:]
    mean, variance, y_mean, y_variance = session.run(None, {"x": x, "u": u})
    expected, sd = small(x, u)
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variance, sd**2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(y_mean, x, rtol=1e-12)
    assert y_variance.shape == (50, 1) and (y_variance > 0).all()
    assert session.get_modelmeta().custom_metadata_map["inputs"] == "u"


def test_the_unit_runs_in_fmpy(small, tmp_path):
    fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: units of FMI were not run")
    validation = pytest.importorskip("fmpy.validation")
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler: the unit was not run")
    [file] = gpssm.export.fmu(small, tmp_path, name="plant")
    assert validation.validate_fmu(str(file)) == []
    u = 0.3 + 0.2 * np.sin(0.4 * np.arange(20))
    inputs = np.array(list(zip(np.arange(20.0), u)), dtype=[("time", float), ("u", float)])
    said = []
    found = fmpy.simulate_fmu(
        str(file),
        stop_time=19.0,
        output_interval=1.0,
        input=inputs,
        start_values={"first x": 0.25},
        output=["y", "state x", "flags"],
        logger=lambda *words: said.append(words),
        debug_logging=True,
    )
    x = [0.25]
    for t in range(19):
        x.append(float(small([x[-1]], [u[t]])[0][0, 0]))
    np.testing.assert_allclose(found["state x"], x, rtol=1e-8)
    np.testing.assert_allclose(found["y"], x, rtol=1e-8)
    # Far outside of the training data it warns.
    fmpy.simulate_fmu(
        str(file),
        stop_time=2.0,
        output_interval=1.0,
        start_values={"first x": 1e3},
        logger=lambda *words: said.append(words),
        debug_logging=True,
    )
    assert any("training data" in str(words[-1]) for words in said), said


def test_files_are_not_overwritten_unasked(result, small, tmp_path):
    files = gpssm.export.c(small, tmp_path, name="plant")
    assert "#define PLANT_SCENARIOS 3" in files[0].read_text()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        gpssm.export.c(small, tmp_path, name="plant")
    gpssm.export.c(small, tmp_path, name="plant", precision="float", overwrite=True)
    assert "typedef float plant_real" in files[0].read_text()
    with pytest.raises(ValueError, match="no name in C"):
        gpssm.export.c(small, tmp_path, name="my plant")
    with pytest.raises(ValueError, match="draws cannot be kept"):
        result.distil(8, max_loss=None, scenarios=100)


def test_linear_models_follow_f(result):
    rest = result.equilibrium(0.2)
    x = rest["x"][0]["mean"]
    near = result.linearize(x, 0.2, level=0.8)
    assert near["f"][0]["mean"] == pytest.approx(x, abs=0.05)
    # The plant: x' = 0.9 tanh(x) + 0.5 u.
    assert near["b"][0][0]["low"] - 0.2 < 0.5 < near["b"][0][0]["high"] + 0.2
    assert near["poles"][0]["modulus"]["low"] <= near["poles"][0]["modulus"]["high"]
    gain = near["c"][0][0]["mean"] * near["b"][0][0]["mean"] / (1 - near["a"][0][0]["mean"])
    assert near["dc_gain"][0][0]["low"] - 1.0 < gain < near["dc_gain"][0][0]["high"] + 1.0
    response = near["step_responses"][0]["rows"]
    assert response[0][0]["mean"] == 0.0
    assert response[1][0]["mean"] == pytest.approx(near["b"][0][0]["mean"])
    with pytest.raises(ValueError, match="1 states and 1 inputs"):
        result.linearize([0.1, 0.2], 0.2)
