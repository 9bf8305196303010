"""Priors of numbers and of covariance matrices, in original units.

A plain number in place of a prior means that the value is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

__all__ = [
    "LKJ",
    "CovariancePrior",
    "Fixed",
    "Gamma",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "InverseWishart",
    "LogNormal",
    "Normal",
    "OnVariance",
    "Prior",
    "PriorDensity",
    "PriorLike",
    "Uniform",
]


@dataclass(frozen=True)
class Prior:
    """Prior of one number; use one of its subclasses."""

    _key: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """Give the prior as it stands in a model file."""
        return {self._key: {name: float(value) for name, value in asdict(self).items()}}


@dataclass(frozen=True)
class Fixed(Prior):
    """A known value.

    Examples
    --------
    >>> Fixed(2.0).to_dict()
    {'fixed': {'value': 2.0}}
    """

    _key: ClassVar[str] = "fixed"
    value: float


@dataclass(frozen=True)
class LogNormal(Prior):
    """ln x ~ N(ln median, sigma^2), x > 0."""

    _key: ClassVar[str] = "log_normal"
    median: float
    sigma: float


@dataclass(frozen=True)
class Normal(Prior):
    """x ~ N(mean, sd^2)."""

    _key: ClassVar[str] = "normal"
    mean: float
    sd: float


@dataclass(frozen=True)
class Gamma(Prior):
    """Gamma with mean shape / rate."""

    _key: ClassVar[str] = "gamma"
    shape: float
    rate: float


@dataclass(frozen=True)
class InverseGamma(Prior):
    """1 / x has the gamma prior with this shape and rate = scale."""

    _key: ClassVar[str] = "inverse_gamma"
    shape: float
    scale: float


@dataclass(frozen=True)
class HalfNormal(Prior):
    """The absolute value of N(0, sd^2)."""

    _key: ClassVar[str] = "half_normal"
    sd: float


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """The absolute value of a Cauchy variable; `scale` is also the median."""

    _key: ClassVar[str] = "half_cauchy"
    scale: float


@dataclass(frozen=True)
class Uniform(Prior):
    """Uniform between low and high."""

    _key: ClassVar[str] = "uniform"
    low: float
    high: float


@dataclass(frozen=True)
class PriorDensity(Prior):
    """A log density of your own, which need not be normalised.

    It is normalised, and drawn from, by a table that is made with the model; what has no finite integral is
    refused.

    Parameters
    ----------
    log_density : str or function
        A formula in ``v``, the value of the parameter in original units, or a function of many values at once:
        v (n,) to log p(v) (n,). Models with functions cannot be written to a run file.
    low, high : float, optional
        Ends of where the value can lie; give ``low=0`` for what is positive.

    Examples
    --------
    >>> PriorDensity("-0.5*(log(v)/0.7)^2 - log(v)", low=0).to_dict()
    {'log_density': {'formula': '-0.5*(log(v)/0.7)^2 - log(v)', 'low': 0.0}}
    >>> import numpy as np, gpssm
    >>> scale = PriorDensity(lambda v: -v - 0.1 / v, low=0)
    >>> result = gpssm.fit(np.sin(0.4 * np.arange(12)), process_noise=scale, draws=4, tune=2, chains=1,
    ...                    progress_bar=False)
    """

    _key: ClassVar[str] = "log_density"
    log_density: str | Callable[[Any], Any]
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the prior as it stands in a model file; a function stands there as it is."""
        if not isinstance(self.log_density, str) and not callable(self.log_density):
            raise ValueError(f"log_density: expected a formula in v or a function, not {self.log_density!r}")
        fields: dict[str, Any] = {"formula" if isinstance(self.log_density, str) else "function": self.log_density}
        fields |= {name: float(v) for name, v in (("low", self.low), ("high", self.high)) if v is not None}
        return {self._key: fields}


PriorLike = Prior | float | int | str
"""A prior, its text as in a run file (``"normal(0, 1)"``), or a number that is known."""


@dataclass(frozen=True)
class OnVariance:
    """A prior of a noise scale that is written for the variance instead of the standard deviation.

    Examples
    --------
    >>> OnVariance(InverseGamma(2.0, 0.1)).to_dict()["on"]
    'variance'
    """

    prior: PriorLike

    def to_dict(self) -> dict[str, Any]:
        """Give the prior as it stands in a model file."""
        return {"on": "variance", "prior": prior_dict(self.prior, "prior")}


@dataclass(frozen=True)
class CovariancePrior:
    """Prior of a full noise covariance; use one of its subclasses."""

    def to_dict(self) -> dict[str, Any]:
        """Give the prior as it stands in a model file."""
        raise NotImplementedError


@dataclass(frozen=True)
class InverseWishart(CovariancePrior):
    """Inverse Wishart with degrees of freedom `dof` and scale matrix `scale`."""

    dof: float
    scale: Sequence[Sequence[float]]

    def to_dict(self) -> dict[str, Any]:
        """Give the prior as it stands in a model file."""
        scale = [[float(v) for v in row] for row in self.scale]
        return {"inverse_wishart": {"dof": float(self.dof), "scale": scale}}


@dataclass(frozen=True)
class LKJ(CovariancePrior):
    """LKJ(eta) for the correlations, and one prior for each standard deviation."""

    eta: float
    sd: Sequence[PriorLike | OnVariance]

    def to_dict(self) -> dict[str, Any]:
        """Give the prior as it stands in a model file."""
        return {"lkj": {"eta": float(self.eta), "sd": [scale_dict(sd, "sd") for sd in self.sd]}}


def prior_dict(value: Any, what: str) -> Any:
    """A prior or a number, as a dictionary; a text such as ``"normal(0, 1)"`` stays."""
    if isinstance(value, str):
        return value
    if isinstance(value, Prior):
        return value.to_dict()
    if isinstance(value, (int, float)) or (hasattr(value, "item") and getattr(value, "size", 0) == 1):
        return Fixed(float(value)).to_dict()
    if isinstance(value, dict):
        return value
    raise ValueError(f"{what}: expected a prior such as gpssm.LogNormal(1.0, 1.0) or a number, not {value!r}")


def scale_dict(value: Any, what: str) -> Any:
    """A prior of a noise scale, as a dictionary."""
    if isinstance(value, OnVariance):
        return value.to_dict()
    if isinstance(value, dict) and "on" in value:
        return value
    return {"on": "sd", "prior": prior_dict(value, what)}


def prior_list(value: Any, what: str) -> list[Any]:
    """None, one prior or one for each component, as a list."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1:
        return [prior_dict(v, what) for v in value]
    return [prior_dict(value, what)]


def scale_list(value: Any, what: str) -> list[Any]:
    """None, one prior of a scale or one for each component, as a list."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1:
        return [scale_dict(v, what) for v in value]
    return [scale_dict(value, what)]
