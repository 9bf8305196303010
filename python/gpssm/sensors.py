"""Sensors: how the outputs depend on the states, p(y | x, u).

One of these, or its name as in a run file, is the argument ``sensor`` of `gpssm.Model`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import _core
from ._registry import Registry
from ._text import Part
from ._types import Function, Json, Table
from .functions import Predictor, predictor_table
from .priors import Noise, PriorLike, Scales, each, noise_table, prior_dict, scale_list

__all__ = [
    "Bernoulli",
    "Binomial",
    "Gaussian",
    "NegativeBinomial",
    "Poisson",
    "Sensor",
    "SensorDensity",
    "SensorLike",
    "StochasticVolatility",
    "StudentT",
]


@dataclass(frozen=True, repr=False)
class Sensor(Part):
    """How the outputs depend on the states; use one of its subclasses."""

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Family(Sensor):
    """Ready-made family of sensors; its fields are the keys of the family in a run file."""

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        family = sensor_families()[type(self).__name__]
        predictor = family["predictor"]
        fields: Table = {predictor: predictor_table(getattr(self, predictor), registry, f"sensor.{predictor}")}
        for parameter in family["parameters"]:
            key = parameter["key"]
            table = _parameter_table(parameter["kind"], getattr(self, key), f"sensor.{key}")
            if table is not None:
                fields[key] = table
        return {family["name"]: fields}


@cache
def sensor_families() -> dict[str, Any]:
    """Everything the program knows of its families of sensors, by the names of their classes."""
    families = json.loads(_core.sensor_families())
    return {"".join(word.capitalize() for word in family["name"].split("_")): family for family in families}


def _parameter_table(kind: Any, value: Any, what: str) -> Json:
    """A parameter of a family as it stands in a run file; None for its default."""
    if what == "sensor.noise":
        return noise_table(value, what)
    if kind == "scale":
        return scale_list(value, what)
    if kind == "count":
        return [int(n) for n in each(value)]
    return None if value is None else prior_dict(value, what)


@dataclass(frozen=True, repr=False)
class Gaussian(Family):
    """Gaussian noise: y ~ N(mean, R).

    Parameters
    ----------
    mean : LinearMean, formula or function, or one for each output, optional
        By default output k shows state k.
    noise : prior of the standard deviation, or one for each output, ``"full"`` or a `CovariancePrior`, optional

    Examples
    --------
    >>> Gaussian("abs(x1)", noise="half_normal(0.1)")
    gpssm.Gaussian(mean='abs(x1)', noise='half_normal(0.1)')
    """

    mean: Predictor = None
    noise: Noise = None


@dataclass(frozen=True, repr=False)
class StudentT(Family):
    """Student's t noise, robust against outliers: y = mean + scale t.

    Parameters
    ----------
    mean : LinearMean, formula or function, or one for each output, optional
        By default output k shows state k.
    scale : prior or number, or one for each output, optional
    dof : prior or number, optional
        Degrees of freedom.
    """

    mean: Predictor = None
    scale: Scales = None
    dof: PriorLike | None = None


@dataclass(frozen=True, repr=False)
class Poisson(Family):
    """Poisson counts with rate exp(log_rate)."""

    log_rate: Predictor = None


@dataclass(frozen=True, repr=False)
class NegativeBinomial(Family):
    """Negative binomial counts with mean exp(log_mean) and variance mean + mean^2 / size."""

    log_mean: Predictor = None
    size: PriorLike | None = None


@dataclass(frozen=True, repr=False)
class Bernoulli(Family):
    """Zero or one, with log odds `logit`."""

    logit: Predictor = None


@dataclass(frozen=True, repr=False)
class Binomial(Family):
    """Successes in a known number of trials, with log odds `logit`.

    Parameters
    ----------
    trials : int, or one for each output
    logit : LinearMean, formula or function, or one for each output, optional
        By default the log odds of output k are state k.
    """

    trials: int | Sequence[int]
    logit: Predictor = None


@dataclass(frozen=True, repr=False)
class StochasticVolatility(Family):
    """Zero-mean Gaussian with changing variance: y ~ N(0, exp(log_variance))."""

    log_variance: Predictor = None


@dataclass(frozen=True, repr=False)
class SensorDensity(Sensor):
    """User-defined sensor, given by log p(y | x, u).

    Parameters
    ----------
    log_density : str or function
        A formula in outputs, states, inputs and parameters, or a function ``log_density(y, x, u, *parameters)``
        of many states at once: y (n_y,) with NaN where nothing was measured, x (n, n_x), u (n, n_u), floats for
        the parameters; it returns (n,). ``u`` and parameters may be left out.
    sample : function, optional
        ``sample(rng, x, u, *parameters)`` draws y at one point. Needed to simulate with a Python function.
    support : optional
        Where the output can lie. Needed to simulate with a formula.

    Examples
    --------
    >>> SensorDensity("-abs(y - x)/s - log(2*s)")
    gpssm.SensorDensity(log_density='-abs(y - x)/s - log(2*s)')
    """

    log_density: str | Function
    sample: Function | None = None
    support: Json = None

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        if isinstance(self.log_density, str):
            if self.sample is not None:
                raise ValueError("sensor.sample: a formula is drawn from by its support; give support instead")
            support: Table = {} if self.support is None else {"support": self.support}
            return {"formula": {"log_density": self.log_density, **support}}
        if not callable(self.log_density):
            raise ValueError(f"sensor.log_density: expected a formula or a function, not {self.log_density!r}")
        if self.support is not None:
            raise ValueError("sensor.support: a function is drawn from by sample; give sample instead")
        return {"user": registry.sensor(self.log_density, self.sample)}


SensorLike = Sensor | str | Mapping[str, Json]
"""A sensor, its name or its table in a run file."""


def sensor_table(sensor: SensorLike, registry: Registry) -> Json:
    """A sensor as it stands in a run file."""
    if isinstance(sensor, Sensor):
        return sensor.to_table(registry)
    if isinstance(sensor, str):
        return sensor
    if isinstance(sensor, Mapping):
        return dict(sensor)
    raise ValueError(f"sensor: expected a sensor such as gpssm.Gaussian() or 'poisson', not {sensor!r}")
