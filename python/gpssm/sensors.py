"""Sensors: how the outputs depend on the states, p(y | x, u).

One of these, or its name as in a run file, is the argument ``sensor`` of `gpssm.Model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._registry import Registry
from ._text import Part
from ._types import Function, Json, Table
from .functions import Predictor, predictor_table
from .priors import Noise, PriorLike, Scales, noise_table, prior_dict, scale_list

__all__ = [
    "Bernoulli",
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
class Gaussian(Sensor):
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

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        mean = predictor_table(self.mean, registry, "sensor.mean")
        return {"gaussian": {"mean": mean, "noise": noise_table(self.noise, "sensor.noise")}}


@dataclass(frozen=True, repr=False)
class StudentT(Sensor):
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

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        fields: Table = {"mean": predictor_table(self.mean, registry, "sensor.mean")}
        fields["scale"] = scale_list(self.scale, "sensor.scale")
        if self.dof is not None:
            fields["dof"] = prior_dict(self.dof, "sensor.dof")
        return {"student_t": fields}


@dataclass(frozen=True, repr=False)
class Poisson(Sensor):
    """Poisson counts with rate exp(log_rate)."""

    log_rate: Predictor = None

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        return {"poisson": {"log_rate": predictor_table(self.log_rate, registry, "sensor.log_rate")}}


@dataclass(frozen=True, repr=False)
class NegativeBinomial(Sensor):
    """Negative binomial counts with mean exp(log_mean) and variance mean + mean^2 / size."""

    log_mean: Predictor = None
    size: PriorLike | None = None

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        fields: Table = {"log_mean": predictor_table(self.log_mean, registry, "sensor.log_mean")}
        if self.size is not None:
            fields["size"] = prior_dict(self.size, "sensor.size")
        return {"negative_binomial": fields}


@dataclass(frozen=True, repr=False)
class Bernoulli(Sensor):
    """Zero or one, with log odds `logit`."""

    logit: Predictor = None

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        return {"bernoulli": {"logit": predictor_table(self.logit, registry, "sensor.logit")}}


@dataclass(frozen=True, repr=False)
class StochasticVolatility(Sensor):
    """Zero-mean Gaussian with changing variance: y ~ N(0, exp(log_variance))."""

    log_variance: Predictor = None

    def to_table(self, registry: Registry) -> Table:
        """Give the sensor as it stands in a run file."""
        predictor = predictor_table(self.log_variance, registry, "sensor.log_variance")
        return {"stochastic_volatility": {"log_variance": predictor}}


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
