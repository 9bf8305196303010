"""Models that leave the house: C sources, CasADi functions, ONNX and FMI, of a distilled model."""

from __future__ import annotations

import json
import math
import platform
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from . import _core
from ._arguments import checked
from .distilled import Distilled

if TYPE_CHECKING:
    from casadi import SX, Function

    from .result import Result

__all__ = ["CasadiModel", "c", "casadi", "fmu", "onnx"]


@checked
def c(
    distilled: Distilled,
    out: str | Path,
    *,
    name: str = "model",
    precision: Literal["double", "float"] = "double",
    filter: Literal["auto", "extended", "particles"] = "auto",
    particles: int = 200,
    overwrite: bool = False,
) -> list[Path]:
    """Write a distilled model as C99 sources without dependencies or allocation.

    Mean and variance of f and of the outputs, their Jacobians, one step of a filter, free runs, and the posterior
    functions of the model if it has some; a second source has the symbols of ``casadi.external``. The header
    states names, ranges, what the model lost, and worst-case operations.

    Parameters
    ----------
    distilled : Distilled
        Made by `Result.distil`.
    out : path
        The folder.
    name : str
        Prefix of all names.
    precision : "double" or "float"
        Size of numbers.
    filter : "auto", "extended" or "particles"
        The filter; by default extended where the noise of the sensor is Gaussian and every output rises or falls
        with each state throughout the data, otherwise with particles.
    particles : int
        Size of a particle filter.
    overwrite : bool
        Whether files may be replaced.

    Returns
    -------
    list of pathlib.Path
        What was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, states=1, draws=10, tune=5, chains=1, progress_bar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = gpssm.export.c(result.distil(6, max_loss=None), folder, name="wave")
    >>> [file.name for file in files]
    ['wave.h', 'wave.c', 'wave_casadi.c', 'main.c', 'Makefile']
    """
    options = {"name": name, "precision": precision, "filter": filter, "particles": int(particles)}
    files = [(file, text.encode()) for file, text in _core.export_c(distilled._text, json.dumps(options))]
    return _write(out, files, overwrite)


def _write(out: str | Path, files: list[tuple[str, bytes]], overwrite: bool) -> list[Path]:
    folder = Path(out)
    paths = [folder / file for file, _ in files]
    for path in paths:
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists: choose another folder, or overwrite=True")
    folder.mkdir(parents=True, exist_ok=True)
    for path, (_, content) in zip(paths, files, strict=True):
        path.write_bytes(content)
    return paths


@checked
def onnx(distilled: Distilled, out: str | Path, *, name: str = "model", overwrite: bool = False) -> list[Path]:
    """Write one step of a distilled model as an ONNX model in 64 bits.

    Inputs are ``x`` and ``u``, (batch, states) and (batch, inputs); outputs ``mean`` and ``variance`` of f,
    ``y_mean`` and ``y_variance`` of the outputs at the same point.

    Parameters
    ----------
    distilled : Distilled
        Made by `Result.distil`.
    out : path
        The folder.
    name : str
        Name of the file and of the graph.
    overwrite : bool
        Whether a file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, states=1, draws=10, tune=5, chains=1, progress_bar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file] = gpssm.export.onnx(result.distil(6, max_loss=None), folder, name="wave")
    >>> file.name
    'wave.onnx'
    """
    return _write(out, [_core.export_onnx(distilled._text, json.dumps({"name": name}))], overwrite)


@checked
def fmu(
    distilled: Distilled,
    out: str | Path,
    *,
    name: str = "model",
    compiler: str | None = "cc",
    overwrite: bool = False,
) -> list[Path]:
    """Write a distilled model as a functional mock-up unit for co-simulation, FMI 3.0.

    Variables bear the names of the record: inputs, states, outputs with their standard deviations, and what is not
    known of f. A communication step is one or more steps of the model; outside of the training data it warns.

    Parameters
    ----------
    distilled : Distilled
        Made by `Result.distil`.
    out : path
        The folder.
    name : str
        Name of the unit.
    compiler : str, optional
        C compiler for the library of this machine; without one, the unit holds its sources only.
    overwrite : bool
        Whether a file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, states=1, draws=10, tune=5, chains=1, progress_bar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file] = gpssm.export.fmu(result.distil(6, max_loss=None), folder, compiler=None)
    >>> file.name
    'model.fmu'
    """
    options = json.dumps({"name": name})
    sources = _core.fmu_sources(distilled._text, options)
    binaries = [] if compiler is None else [_compiled(sources, compiler)]
    return _write(out, [_core.export_fmu(distilled._text, options, binaries)], overwrite)


def _compiled(sources: list[tuple[str, str]], compiler: str) -> tuple[str, bytes]:
    """Compile to a shared library, with the name of this machine's platform in FMI."""
    with tempfile.TemporaryDirectory() as folder:
        for file, text in sources:
            (Path(folder) / file).write_text(text)
        inputs = [file for file, _ in sources if file.endswith(".c")]
        command = [compiler, "-std=c99", "-O2", "-fPIC", "-shared", "-o", "library", *inputs, "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        content = (Path(folder) / "library").read_bytes()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return f"{machine}-{platform.system().lower()}", content


@dataclass(frozen=True)
class CasadiModel:
    """CasADi functions of one model, with named inputs and outputs.

    Attributes
    ----------
    f : casadi.Function
        (x, u) to mean and variance of f; the next state has this variance and that of the process noise.
    h : casadi.Function or None
        (x, u) to mean and variance of the outputs; None where a sensor is given by its log density alone.
    scenarios : tuple of casadi.Function
        (x, u) to the next state by one posterior function each.
    """

    f: Function
    h: Function | None
    scenarios: tuple[Function, ...]


@checked
def casadi(model: Distilled | Result) -> CasadiModel:
    """Build a model as CasADi expressions, to be differentiated, compiled and optimised over.

    Needs the package casadi. A result is distilled first, with its defaults.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("casadi")
    >>> import numpy as np, gpssm
    >>> y = np.sin(0.4 * np.arange(20))
    >>> result = gpssm.fit(y, states=1, draws=10, tune=5, chains=1, progress_bar=False)
    >>> small = gpssm.export.casadi(result.distil(6, max_loss=None))
    >>> small.f.name_out()
    ['mean', 'variance']
    """
    import casadi as ca

    distilled = model if isinstance(model, Distilled) else model.distil()
    content: _Content = json.loads(_core.export_expressions(distilled._text))
    n_x, n_u = content["n_x"], content["n_u"]
    x, u = ca.SX.sym("x", n_x), ca.SX.sym("u", n_u)
    original = ca.vertcat(x, u)
    shift, scale = ca.DM(content["shift"]), ca.DM(content["scale"])
    z = (original - shift) / scale
    features = [None if "lag" in state else _kernel(ca, state, z) for state in content["states"]]

    def mean(coefficients: list[list[float]]) -> SX:
        entries = []
        for state, found, own in zip(content["states"], features, coefficients, strict=True):
            if found is None:
                entries.append(z[state["lag"]])
            else:
                linear = state["offset"] + ca.dot(ca.DM(state["slopes"]), z)
                entries.append(linear + ca.dot(ca.DM(own), found[0]))
        value: SX = shift[:n_x] + scale[:n_x] * ca.vertcat(*entries)
        return value

    variance = [
        ca.SX(0) if found is None else _variance(ca, state, *found)
        for state, found in zip(content["states"], features, strict=True)
    ]
    own = mean([state.get("coefficients", []) for state in content["states"]])
    names = (["x", "u"], ["mean", "variance"])
    f = ca.Function("f", [x, u], [own, scale[:n_x] ** 2 * ca.vertcat(*variance)], *names)
    h = None
    outputs = content["outputs"]
    if outputs is not None:
        values = _evaluate(ca, outputs["operations"], [original[i] for i in range(n_x + n_u)])
        results = [ca.vertcat(*(values[i] for i in outputs[part])) for part in ("mean", "variance")]
        h = ca.Function("h", [x, u], results, *names)
    scenarios = tuple(
        ca.Function(f"scenario_{k}", [x, u], [mean(coefficients)], ["x", "u"], ["next"])
        for k, coefficients in enumerate(content["scenarios"])
    )
    return CasadiModel(f, h, scenarios)


class _State(TypedDict):
    lag: int
    offset: float
    slopes: list[float]
    inducing: list[float]
    coefficients: list[float]
    chol: list[float]
    factor: list[float]
    operations: list[list[str | float]]
    kernel: int
    prior: int


class _Outputs(TypedDict):
    operations: list[list[str | float]]
    mean: list[int]
    variance: list[int]


class _Content(TypedDict):
    n_x: int
    n_u: int
    shift: list[float]
    scale: list[float]
    states: list[_State]
    outputs: _Outputs | None
    scenarios: list[list[list[float]]]


def _triangle(rows: list[float], n: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    full = np.zeros((n, n))
    full[np.tril_indices(n)] = rows
    return full


def _kernel(lib: ModuleType, state: _State, z: SX) -> tuple[SX, SX]:
    """k(z, U) as a column, and k(z, z)."""
    n_z = z.shape[0]
    inducing = np.reshape(state["inducing"], (-1, n_z))
    variables = [z[i] for i in range(n_z)] + [lib.SX(lib.DM(column)) for column in inducing.T]
    values = _evaluate(lib, state["operations"], variables)
    k = values[state["kernel"]]
    # A constant kernel does not see the inducing inputs.
    return (lib.repmat(k, len(inducing), 1) if k.shape[0] == 1 else k), values[state["prior"]]


def _variance(lib: ModuleType, state: _State, k: SX, prior: SX) -> SX:
    """k(z, z) - |phi|^2 + |S' phi|^2 with phi = L^-1 k."""
    n = k.shape[0]
    chol, factor = _triangle(state["chol"], n), _triangle(state["factor"], n)
    phi: list[SX] = []
    for i in range(n):
        known = lib.dot(lib.DM(chol[i, :i]), lib.vertcat(*phi)) if i else 0
        phi.append((k[i] - known) / chol[i, i])
    whitened = lib.vertcat(*phi)
    own = lib.fmax(prior - lib.sumsqr(whitened), 0)
    variance: SX = own + lib.sumsqr(lib.mtimes(lib.DM(factor).T, whitened))
    return variance


def _evaluate(lib: ModuleType, operations: list[list[str | float]], variables: list[SX]) -> list[SX]:
    """Values of all operations; elements of columns go together."""
    functions = _functions(lib)
    values: list[SX] = []
    for name, *operands in operations:
        if name == "number":
            values.append(lib.SX(float(operands[0])))
        elif name == "variable":
            # Outputs have no value here: what is made of them is not asked for.
            index = int(operands[0])
            values.append(variables[index] if index < len(variables) else lib.SX(math.nan))
        elif name == "power":
            values.append(values[int(operands[0])] ** int(operands[1]))
        else:
            values.append(functions[str(name)](*(values[int(operand)] for operand in operands)))
    return values


def _functions(lib: ModuleType) -> dict[str, Callable[..., SX]]:
    def softplus(x: SX) -> SX:
        value: SX = lib.fmax(x, 0) + lib.log1p(lib.exp(-lib.fabs(x)))
        return value

    def no_lgamma(x: SX) -> SX:
        return x * math.nan

    return {
        "negate": lambda a: -a,
        "exp": lib.exp,
        "log": lib.log,
        "log10": lib.log10,
        "log1p": lib.log1p,
        "expm1": lib.expm1,
        "sqrt": lib.sqrt,
        "abs": lib.fabs,
        "sign": lib.sign,
        "floor": lib.floor,
        "ceil": lib.ceil,
        "sin": lib.sin,
        "cos": lib.cos,
        "tan": lib.tan,
        "asin": lib.asin,
        "acos": lib.acos,
        "atan": lib.atan,
        "sinh": lib.sinh,
        "cosh": lib.cosh,
        "tanh": lib.tanh,
        # Log densities alone need it, and they are not built.
        "lgamma": no_lgamma,
        "erf": lib.erf,
        "erfc": lambda a: 1 - lib.erf(a),
        "logistic": lambda a: 1 / (1 + lib.exp(-a)),
        "softplus": softplus,
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "pow": lambda a, b: a**b,
        "atan2": lib.atan2,
        "min": lib.fmin,
        "max": lib.fmax,
        "less": lambda a, b: a < b,
        "less_or_equal": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "greater_or_equal": lambda a, b: a >= b,
        "equal": lambda a, b: a == b,
        "not_equal": lambda a, b: a != b,
        "if": lib.if_else,
    }
