"""The model as plain data: small typed objects, and the dictionary that a model file holds."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._callables import name_of, signature
from ._data import Data
from .kernels import Kernel
from .priors import CovariancePrior, PriorLike, prior_dict, scale_list

__all__ = [
    "DTC",
    "FIC",
    "Bernoulli",
    "Fourier",
    "Gaussian",
    "Gp",
    "Hilbert",
    "InitialDensity",
    "InitialFixed",
    "InitialGaussian",
    "Lag",
    "LinearMean",
    "LogDensity",
    "Model",
    "NegativeBinomial",
    "Parametric",
    "Poisson",
    "Sensor",
    "State",
    "StochasticVolatility",
    "StudentT",
    "Symmetry",
]

Function = Callable[..., ArrayLike]


class _Registry:
    """Python functions of a model, under the names by which its description knows them."""

    def __init__(self) -> None:
        self.functions: dict[str, tuple[Function, bool]] = {}
        self.sensors: dict[str, tuple[tuple[Function, bool], tuple[Function, bool] | None]] = {}
        self.initials: dict[str, tuple[Function, Function]] = {}
        self.priors: dict[str, Function] = {}

    def _free(self, function: Function, taken: Mapping[str, Any]) -> str:
        base = name_of(function).strip("<>") or "function"
        name, k = base, 1
        while name in taken:
            k += 1
            name = f"{base}_{k}"
        return name

    def function(self, function: Function, what: str) -> dict[str, Any]:
        found = signature(function, (), what)
        for name, known in self.functions.items():
            if known[0] is function:
                return {"name": name, "parameters": list(found.parameters)}
        name = self._free(function, self.functions)
        self.functions[name] = (function, found.wants_u)
        return {"name": name, "parameters": list(found.parameters)}

    def sensor(self, sensor: Sensor) -> dict[str, Any]:
        found = signature(sensor.log_density, ("y",), "log_density")
        sample = None
        if sensor.sample is not None:
            drawn = signature(sensor.sample, ("rng",), "sample")
            if drawn.parameters != found.parameters:
                raise ValueError(
                    f"sample: its parameters {drawn.parameters} are not those of log_density, {found.parameters}"
                )
            sample = (sensor.sample, drawn.wants_u)
        name = self._free(sensor.log_density, self.sensors)
        self.sensors[name] = ((sensor.log_density, found.wants_u), sample)
        return {"name": name, "parameters": list(found.parameters)}

    def initial(self, density: InitialDensity) -> str:
        signature(density.log_density, (), "log_density")
        name = self._free(density.log_density, self.initials)
        self.initials[name] = (density.log_density, density.sample)
        return name

    def with_priors(self, part: Any) -> Any:
        """A part of a model with names in place of the functions of its priors."""
        if isinstance(part, Mapping):
            named = {key: self.with_priors(value) for key, value in part.items()}
            density = named.get("log_density")
            if isinstance(density, dict) and callable(density.get("function")):
                density["function"] = self._prior(density["function"])
            return named
        if isinstance(part, (list, tuple)):
            return [self.with_priors(value) for value in part]
        return part

    def _prior(self, function: Function) -> str:
        for name, known in self.priors.items():
            if known is function:
                return name
        name = self._free(function, self.priors)
        self.priors[name] = function
        return name

    def is_empty(self) -> bool:
        return not (self.functions or self.sensors or self.initials or self.priors)


@dataclass(frozen=True)
class LinearMean:
    """a . x + b . u + offset; every number may be a prior."""

    a: Sequence[PriorLike]
    b: Sequence[PriorLike] = ()
    offset: PriorLike = 0.0


def _value(value: Any, what: str) -> Any:
    return float(value) if isinstance(value, (int, float, np.number)) else prior_dict(value, what)


def _function_dict(mean: Any, registry: _Registry, what: str) -> Any:
    if isinstance(mean, str):
        return mean if mean in {"zero", "identity"} else {"formula": mean}
    if isinstance(mean, LinearMean):
        a, b = ([_value(v, what) for v in values] for values in (mean.a, mean.b))
        return {"linear": {"a": a, "b": b, "offset": _value(mean.offset, what)}}
    if isinstance(mean, Mapping):
        return dict(mean)
    if callable(mean):
        return {"user": registry.function(mean, what)}
    raise ValueError(f"{what}: expected 'identity', 'zero', a formula, a LinearMean or a function, not {mean!r}")


class State:
    """How a state evolves: `Gp`, `Parametric` or `Lag`."""

    scale: float | None
    name: str | None

    def _table(self, registry: _Registry, what: str) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Gp(State):
    """x' = f(x, u) + v with f ~ GP(mean, kernel).

    Parameters
    ----------
    kernel : Kernel or str, optional
        Such as ``gpssm.Matern32()`` or ``"matern32(x) + linear"``; squared exponential + linear by default.
    mean : "identity", "zero", formula, LinearMean or function
        A function is called with many points at once, ``m(x, u, *parameters)``: x (n, n_x), u (n, n_u), floats
        for the parameters, and returns (n,). Both ``u`` and parameters may be left out.
    scale : float, optional
        Typical size of the state, for default priors.
    """

    kernel: Kernel | str | None = None
    mean: Any = None
    scale: float | None = None
    name: str | None = None

    def _table(self, registry: _Registry, what: str) -> dict[str, Any]:
        table: dict[str, Any] = {}
        if self.kernel is not None:
            table["kernel"] = _kernel(self.kernel, f"{what}.kernel")
        if self.mean is not None:
            table["mean"] = _function_dict(self.mean, registry, f"{what}.mean")
        return table


@dataclass(frozen=True)
class Parametric(State):
    """x' = h(x, u; parameters) + v with a known form h: a formula or a function."""

    function: Any
    scale: float | None = None
    name: str | None = None

    def _table(self, registry: _Registry, what: str) -> dict[str, Any]:
        return {"function": _function_dict(self.function, registry, f"{what}.function")}


@dataclass(frozen=True)
class Lag(State):
    """A copy of another state one step before; `of` counts from 0."""

    of: int
    scale: float | None = None
    name: str | None = None

    def _table(self, registry: _Registry, what: str) -> dict[str, Any]:
        return {"lag_of": f"x{int(self.of) + 1}"}


def _kernel(kernel: Any, what: str) -> Any:
    if isinstance(kernel, Kernel):
        return kernel.to_dict()
    if isinstance(kernel, (str, Mapping)):
        return kernel if isinstance(kernel, str) else dict(kernel)
    raise ValueError(f"{what}: expected a kernel such as gpssm.Matern32() or 'se + linear', not {kernel!r}")


def _noise(value: Any, what: str) -> dict[str, Any]:
    if isinstance(value, CovariancePrior):
        return {"full": value.to_dict()}
    if isinstance(value, Mapping):
        return dict(value)
    if value == "diagonal" or value is None:
        return {"diagonal": []}
    if value == "full":
        return {"full": {}}
    return {"diagonal": scale_list(value, what)}


def _predictor(value: Any, registry: _Registry, what: str) -> Any:
    if value is None:
        return "states"
    if isinstance(value, LinearMean):
        value = [value]
    if isinstance(value, Mapping):
        return dict(value)
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    if all(isinstance(part, str) for part in parts):
        return {"formulas": parts}
    if all(isinstance(part, LinearMean) for part in parts):
        return {
            "linear": {
                "c": [[_value(v, what) for v in part.a] for part in parts],
                "d": [[_value(v, what) for v in part.b] for part in parts if part.b],
                "offset": [_value(part.offset, what) for part in parts],
            }
        }
    if all(callable(part) for part in parts):
        return {"functions": [registry.function(part, f"{what}[{k}]") for k, part in enumerate(parts)]}
    raise ValueError(f"{what}: expected formulas, functions or LinearMean, one for each output, not {value!r}")


class Observation:
    """How the states are seen."""

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(Observation):
    """y ~ N(mean, R).

    Parameters
    ----------
    mean : None, LinearMean, formula or function, or one for each output
        None: output k shows state k.
    noise : prior of the standard deviation, or one for each output, ``"full"`` or a `CovariancePrior`
    """

    mean: Any = None
    noise: Any = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        mean = _predictor(self.mean, registry, "observation.mean")
        return {"gaussian": {"mean": mean, "noise": _noise(self.noise, "observation.noise")}}


@dataclass(frozen=True)
class StudentT(Observation):
    """y = mean + scale t with Student's t: robust against outliers."""

    mean: Any = None
    scale: Any = None
    dof: PriorLike | None = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        fields: dict[str, Any] = {"mean": _predictor(self.mean, registry, "observation.mean")}
        fields["scale"] = scale_list(self.scale, "observation.scale")
        if self.dof is not None:
            fields["dof"] = prior_dict(self.dof, "observation.dof")
        return {"student_t": fields}


@dataclass(frozen=True)
class Poisson(Observation):
    """Counts with rate exp(log_rate)."""

    log_rate: Any = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        return {"poisson": {"log_rate": _predictor(self.log_rate, registry, "observation.log_rate")}}


@dataclass(frozen=True)
class NegativeBinomial(Observation):
    """Counts with mean exp(log_mean) and variance mean + mean^2 / size."""

    log_mean: Any = None
    size: PriorLike | None = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        fields: dict[str, Any] = {"log_mean": _predictor(self.log_mean, registry, "observation.log_mean")}
        if self.size is not None:
            fields["size"] = prior_dict(self.size, "observation.size")
        return {"negative_binomial": fields}


@dataclass(frozen=True)
class Bernoulli(Observation):
    """0 or 1 with log odds `logit`."""

    logit: Any = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        return {"bernoulli": {"logit": _predictor(self.logit, registry, "observation.logit")}}


@dataclass(frozen=True)
class StochasticVolatility(Observation):
    """y ~ N(0, exp(log_variance))."""

    log_variance: Any = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        predictor = _predictor(self.log_variance, registry, "observation.log_variance")
        return {"stochastic_volatility": {"log_variance": predictor}}


@dataclass(frozen=True)
class LogDensity(Observation):
    """A formula for log p(y | x, u) in outputs, states, inputs and parameters.

    Parameters
    ----------
    formula : str
    support : optional
        Where the output can lie; needed only to draw outputs in simulations.
    """

    formula: str
    support: Any = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        fields: dict[str, Any] = {"log_density": self.formula}
        if self.support is not None:
            fields["support"] = self.support
        return {"formula": fields}


@dataclass(frozen=True)
class Sensor(Observation):
    """A sensor of your own, in Python.

    Parameters
    ----------
    log_density : function
        ``log_density(y, x, u, *parameters)``: log p(y | x, u) for many states at once; y (n_y,) with NaN where
        nothing was measured, x (n, n_x), u (n, n_u), floats for the parameters; returns (n,). ``u`` and
        parameters may be left out.
    sample : function, optional
        ``sample(rng, x, u, *parameters)`` draws y at one point; needed to simulate.
    """

    log_density: Function
    sample: Function | None = None

    def _dict(self, registry: _Registry) -> dict[str, Any]:
        return {"user": registry.sensor(self)}


@dataclass(frozen=True)
class FIC:
    """Inducing inputs (section 4 of the paper) in place of the Gaussian process: for long records.

    Parameters
    ----------
    inducing : int, list of int, or array_like (M, n_x + n_u)
        So many greedily chosen points of a warm-up path; a grid with so many along each component; or the
        points themselves.
    mode : "collapsed" or "sampled"
        Weights integrated out, or drawn once a sweep.
    """

    inducing: Any = 30
    mode: Literal["collapsed", "sampled"] = "collapsed"

    def _dict(self) -> dict[str, Any]:
        return {"fic": {"inducing": _inducing(self.inducing), "mode": self.mode}}


@dataclass(frozen=True)
class DTC:
    """As `FIC` without its correction of the variance."""

    inducing: Any = 30
    mode: Literal["collapsed", "sampled"] = "collapsed"

    def _dict(self) -> dict[str, Any]:
        return {"dtc": {"inducing": _inducing(self.inducing), "mode": self.mode}}


def _inducing(value: Any) -> dict[str, Any]:
    if isinstance(value, (int, np.integer)):
        return {"greedy": int(value)}
    if isinstance(value, Mapping):
        return dict(value)
    array = np.asarray(value)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return {"grid": array.tolist()}
    if array.ndim == 2:
        return {"given": array.astype(float).tolist()}
    raise ValueError(f"inducing: expected a number, a grid of numbers or points (M, n_z), not {value!r}")


@dataclass(frozen=True)
class Hilbert:
    """Laplace eigenfunctions on a box in place of the Gaussian process: for long records."""

    functions: int = 40
    half_width: Sequence[float] = ()
    mode: Literal["collapsed", "sampled"] = "collapsed"

    def _dict(self) -> dict[str, Any]:
        half_width = [float(v) for v in self.half_width]
        return {"hilbert": {"functions": int(self.functions), "half_width": half_width, "mode": self.mode}}


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features in place of the Gaussian process."""

    frequencies: int = 50
    mode: Literal["collapsed", "sampled"] = "collapsed"

    def _dict(self) -> dict[str, Any]:
        return {"fourier": {"frequencies": int(self.frequencies), "mode": self.mode}}


@dataclass(frozen=True)
class InitialGaussian:
    """x_0 ~ N(mean, diag(sd^2)), or with a full `covariance`."""

    mean: Sequence[float]
    sd: Sequence[float] | None = None
    covariance: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True)
class InitialFixed:
    """x_0 is known."""

    x: Sequence[float]


@dataclass(frozen=True)
class InitialDensity:
    """p(x_0) of your own.

    Parameters
    ----------
    log_density : function
        ``log_density(x)`` with x (n, n_x); returns (n,).
    sample : function
        ``sample(rng, n)`` with a NumPy generator; returns n draws (n, n_x).
    """

    log_density: Function
    sample: Function


def _floats(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64).tolist()


def _initial(value: Any, registry: _Registry) -> Any:
    if value is None:
        return "default"
    if isinstance(value, InitialGaussian):
        if value.covariance is not None:
            return {"gaussian_full": {"mean": _floats(value.mean), "covariance": _floats(value.covariance)}}
        if value.sd is None:
            raise ValueError("initial: give sd or covariance")
        return {"gaussian": {"mean": _floats(value.mean), "sd": _floats(value.sd)}}
    if isinstance(value, InitialFixed):
        return {"fixed": _floats(value.x)}
    if isinstance(value, InitialDensity):
        return {"user": registry.initial(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f"initial: expected InitialGaussian, InitialFixed or InitialDensity, not {value!r}")


@dataclass(frozen=True)
class Symmetry:
    """States whose common sign the data cannot see, and the rule that picks one sign.

    Parameters
    ----------
    flip : list of int
        States, from 0.
    orientation : dict
        ``{"input_raises_state": {"input": 0, "state": 0}}``,
        ``{"state_raises_state": {"from": 1, "to": 0}}`` or ``{"positive_mean": {"state": 0}}``.
    flip_parameters : list of str
        Parameters that change sign along.
    """

    flip: Sequence[int]
    orientation: Mapping[str, Any]
    flip_parameters: Sequence[str] = field(default_factory=tuple)

    def _dict(self) -> dict[str, Any]:
        return {
            "flip": [int(d) for d in self.flip],
            "flip_parameters": list(self.flip_parameters),
            "orientation": dict(self.orientation),
        }


_PARTS = (
    "states",
    "state",
    "lags",
    "kernel",
    "mean",
    "function",
    "dynamics",
    "process_noise",
    "sensor",
    "initial",
    "parameters",
    "standardise",
    "symmetries",
    "presample",
)


class Model:
    """A Gaussian process state-space model: what is assumed, with priors in place of numbers.

    Whatever is left out gets a default that is scaled to the data. Every part may also be given as the text or
    table that stands in a run file of the program.

    Parameters
    ----------
    states : int, list of State, or "auto", optional
        A number n: the first states are seen, one by each output, the others are hidden. Or how each state
        evolves. One for each output by default. ``"auto"``: `gpssm.fit` chooses lags, delay, thinning, kernel and
        prior by free runs over held-out parts of the record.
    kernel : Kernel or str, optional
        For all states, such as ``gpssm.Matern32() + gpssm.Linear()`` or ``"matern32 + linear"``.
    mean : "identity", "zero", formula, LinearMean or function, optional
        For all states.
    observation : Observation or str, optional
        Such as ``gpssm.Poisson()`` or ``"poisson"``; Gaussian by default.
    process_noise : prior of the standard deviations, or one for each state, or a `CovariancePrior`, optional
    initial : InitialGaussian, InitialFixed or InitialDensity, optional
    dynamics : FIC, DTC, Hilbert, Fourier or str, optional
        A finite basis for long records, such as ``"hilbert(40)"``; the exact Gaussian process by default.
    parameters : dict, optional
        Priors of the parameters of formulas and functions, by name.
    symmetries : list of Symmetry, optional
        Signs that the data cannot see; by default those of hidden states.
    lags : int, optional
        Instead of `states`: each output and its `lags` latest values are the state.
    function : formula or function, optional
        A known form of the transition in place of the Gaussian process.
    standardise : bool, optional
        Whether data are standardised inside; results are in original units either way.
    settings : dict, optional
        Defaults for the settings of `gpssm.fit`, such as draws and seed: the table ``sampler`` of a run file.

    Examples
    --------
    >>> import gpssm
    >>> model = gpssm.Model(2, kernel=gpssm.Matern32(), observation="poisson")
    >>> model == gpssm.Model.from_dict(model.to_dict()) == gpssm.Model.from_toml(model.to_toml())
    True
    """

    def __init__(
        self,
        states: int | Sequence[State] | str | None = None,
        *,
        kernel: Kernel | str | None = None,
        mean: Any = None,
        observation: Observation | str | Mapping[str, Any] | None = None,
        process_noise: Any = None,
        initial: Any = None,
        dynamics: FIC | DTC | Hilbert | Fourier | str | Mapping[str, Any] | None = None,
        parameters: Mapping[str, PriorLike] | None = None,
        symmetries: Sequence[Symmetry] | None = None,
        lags: int | None = None,
        function: Any = None,
        standardise: bool | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        registry = _Registry()
        table: dict[str, Any] = {}
        if isinstance(states, (int, np.integer)):
            table["states"] = int(states)
        elif isinstance(states, str):
            if states != "auto":
                raise ValueError(f"states: expected a number, a list of states or 'auto', not {states!r}")
            table["states"] = states
        elif states is not None:
            table["state"] = [_state_table(state, registry, d) for d, state in enumerate(states)]
        if lags is not None:
            table["lags"] = int(lags)
        if kernel is not None:
            table["kernel"] = _kernel(kernel, "kernel")
        if isinstance(mean, (list, tuple)):
            if "state" in table or lags is not None:
                raise ValueError("mean: give the mean functions with the states one by one")
            if table.pop("states", len(mean)) != len(mean):
                raise ValueError(f"mean: {len(mean)} functions for {states} states")
            table["state"] = [{"mean": _function_dict(m, registry, f"mean[{d}]")} for d, m in enumerate(mean)]
        elif mean is not None:
            table["mean"] = _function_dict(mean, registry, "mean")
        if function is not None:
            table["function"] = _function_dict(function, registry, "function")
        if isinstance(observation, Observation):
            table["sensor"] = observation._dict(registry)
        elif isinstance(observation, (str, Mapping)):
            table["sensor"] = observation if isinstance(observation, str) else dict(observation)
        elif observation is not None:
            raise ValueError(f"observation: expected one such as gpssm.Gaussian() or a text, not {observation!r}")
        if process_noise is not None:
            table["process_noise"] = _noise(process_noise, "process_noise")
        if initial is not None:
            table["initial"] = _initial(initial, registry)
        if isinstance(dynamics, (FIC, DTC, Hilbert, Fourier)):
            table["dynamics"] = dynamics._dict()
        elif dynamics is not None:
            table["dynamics"] = dynamics if isinstance(dynamics, str) else dict(dynamics)
        if parameters:
            table["parameters"] = {n: prior_dict(p, f"parameters.{n}") for n, p in parameters.items()}
        if symmetries is not None:
            table["symmetries"] = [s._dict() if isinstance(s, Symmetry) else s for s in symmetries]
        if standardise is not None:
            table["standardise"] = bool(standardise)
        self._table, self._registry = registry.with_priors(table), registry
        self.settings: dict[str, Any] = dict(settings or {})

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Model:
        """Make a model from the tables ``model`` and ``sampler`` of a run file, or from the first alone."""
        known = {"data", "model", "sampler", "bands"}
        whole = bool(known & set(table)) and set(table) <= known
        parts = dict(table.get("model", {})) if whole else dict(table)
        unknown = [name for name in parts if name not in _PARTS]
        if unknown:
            raise ValueError(f"model: there is no part {unknown[0]!r}; there are {', '.join(_PARTS)}")
        model = cls(settings=table.get("sampler") if whole else None)
        model._table = json.loads(json.dumps(model._registry.with_priors(parts)))
        return model

    @classmethod
    def from_toml(cls, source: str | Path) -> Model:
        """Make a model from a run file of the program: its path, or its text."""
        if isinstance(source, Path) or ("\n" not in source and source.endswith(".toml")):
            text, name = Path(source).read_text(encoding="utf-8"), str(source)
        else:
            text, name = str(source), "run file"
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{name}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Give the model as the tables of a run file; Python functions are in it by name only."""
        tables: dict[str, Any] = {"model": json.loads(json.dumps(self._table))}
        if self.settings:
            tables["sampler"] = dict(self.settings)
        return tables

    def to_toml(self) -> str:
        """Give the model as the text of a run file."""
        if self.has_functions:
            raise ValueError("to_toml: Python functions cannot be written to a file; use formulas instead")
        return _core.toml_text(json.dumps(self.to_dict()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        mine, theirs = self._registry, other._registry
        return (
            self.to_dict() == other.to_dict()
            and mine.functions == theirs.functions
            and mine.sensors == theirs.sensors
            and mine.initials == theirs.initials
            and mine.priors == theirs.priors
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def has_functions(self) -> bool:
        """Whether Python functions are part of the model."""
        return not self._registry.is_empty()

    @property
    def is_open(self) -> bool:
        """Whether the model is to be chosen from the record, ``states="auto"``."""
        return bool(self._table.get("states") == "auto")

    def _settled(self, parts: Mapping[str, Any]) -> Model:
        """The same model with what was chosen."""
        model = Model(settings=self.settings)
        table = {name: value for name, value in self._table.items() if name != "states"}
        model._table = table | {name: value for name, value in parts.items() if value is not None}
        model._registry = self._registry
        return model

    def __repr__(self) -> str:
        parts = [f"{name}={json.dumps(value)}" for name, value in self._table.items()]
        return f"gpssm.Model({', '.join(parts)})"

    def _problem(self, data: Data, settings: Mapping[str, Any]) -> _core.Problem:
        """Check the model against data and fill in all defaults."""
        keys = {f"model.{name}": value for name, value in self._table.items()}
        keys |= {f"sampler.{name}": value for name, value in settings.items()}
        keys |= {f"data.{name}": value for name, value in data.layout.keys(data.inputs).items()}
        registry = self._registry
        return _core.Problem(
            json.dumps(keys),
            data.y,
            data.u,
            data._labels(),
            (registry.functions, registry.sensors, registry.initials, registry.priors),
        )


def _state_table(state: Any, registry: _Registry, d: int) -> dict[str, Any]:
    if isinstance(state, Mapping):
        return dict(state)
    if not isinstance(state, State):
        raise ValueError(f"states[{d}]: expected Gp, Parametric or Lag, not {state!r}")
    table = state._table(registry, f"states[{d}]")
    if state.scale is not None:
        table["scale"] = float(state.scale)
    if state.name is not None:
        table["name"] = state.name
    return table
