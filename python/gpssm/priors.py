"""Priors of numbers and of covariance matrices, in original units.

A plain number in place of a prior means that the value is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ._text import Part
from ._types import Function, Json, Table

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
    "Noise",
    "Normal",
    "OnVariance",
    "Prior",
    "PriorDensity",
    "PriorLike",
    "Priors",
    "ScaleLike",
    "Uniform",
]


@dataclass(frozen=True, repr=False)
class Prior(Part):
    """Prior of one number; use one of its subclasses."""

    _key: ClassVar[str] = ""

    def to_dict(self) -> Table:
        """Give the prior as it stands in a run file."""
        return {self._key: {name: float(value) for name, value in asdict(self).items()}}


@dataclass(frozen=True, repr=False)
class Fixed(Prior):
    """A known value.

    Examples
    --------
    >>> Fixed(2.0).to_dict()
    {'fixed': {'value': 2.0}}
    """

    _key: ClassVar[str] = "fixed"
    value: float


@dataclass(frozen=True, repr=False)
class LogNormal(Prior):
    """ln x ~ N(ln median, sigma^2), x > 0."""

    _key: ClassVar[str] = "log_normal"
    median: float
    sigma: float


@dataclass(frozen=True, repr=False)
class Normal(Prior):
    """x ~ N(mean, sd^2)."""

    _key: ClassVar[str] = "normal"
    mean: float
    sd: float


@dataclass(frozen=True, repr=False)
class Gamma(Prior):
    """Gamma with mean shape / rate."""

    _key: ClassVar[str] = "gamma"
    shape: float
    rate: float


@dataclass(frozen=True, repr=False)
class InverseGamma(Prior):
    """1 / x has the gamma prior with this shape and rate = scale."""

    _key: ClassVar[str] = "inverse_gamma"
    shape: float
    scale: float


@dataclass(frozen=True, repr=False)
class HalfNormal(Prior):
    """The absolute value of N(0, sd^2)."""

    _key: ClassVar[str] = "half_normal"
    sd: float


@dataclass(frozen=True, repr=False)
class HalfCauchy(Prior):
    """The absolute value of a Cauchy variable; `scale` is also the median."""

    _key: ClassVar[str] = "half_cauchy"
    scale: float


@dataclass(frozen=True, repr=False)
class Uniform(Prior):
    """Uniform between low and high."""

    _key: ClassVar[str] = "uniform"
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class PriorDensity(Prior):
    """User-defined log density, which need not be normalised.

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
    log_density: str | Function
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> Table:
        """Give the prior as it stands in a run file; a function stands there as it is."""
        if not isinstance(self.log_density, str) and not callable(self.log_density):
            raise ValueError(f"log_density: expected a formula in v or a function, not {self.log_density!r}")
        ends = {name: float(v) for name, v in (("low", self.low), ("high", self.high)) if v is not None}
        if isinstance(self.log_density, str):
            return {self._key: {"formula": self.log_density, **ends}}
        # The function stands here until the model gives it a name.
        return {self._key: {"function": self.log_density, **ends}}  # type: ignore[dict-item]


PriorLike = Prior | float | int | str | Mapping[str, Json]
"""A prior, its text (``"normal(0, 1)"``) or table in a run file, or a number that is known."""

Priors = PriorLike | Sequence[PriorLike] | NDArray[np.float64] | None
"""One prior, or one for each component."""


@dataclass(frozen=True, repr=False)
class OnVariance(Part):
    """A prior of a noise scale that is written for the variance instead of the standard deviation.

    Examples
    --------
    >>> OnVariance(InverseGamma(2.0, 0.1)).to_dict()["on"]
    'variance'
    """

    prior: PriorLike

    def to_dict(self) -> Table:
        """Give the prior as it stands in a run file."""
        return {"on": "variance", "prior": prior_dict(self.prior, "prior")}


@dataclass(frozen=True, repr=False)
class CovariancePrior(Part):
    """Prior of a full noise covariance; use one of its subclasses."""

    def to_dict(self) -> Table:
        """Give the prior as it stands in a run file."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class InverseWishart(CovariancePrior):
    """Inverse Wishart with degrees of freedom `dof` and scale matrix `scale`."""

    dof: float
    scale: Sequence[Sequence[float]]

    def to_dict(self) -> Table:
        """Give the prior as it stands in a run file."""
        scale = [[float(v) for v in row] for row in self.scale]
        return {"inverse_wishart": {"dof": float(self.dof), "scale": scale}}


@dataclass(frozen=True, repr=False)
class LKJ(CovariancePrior):
    """LKJ(eta) for the correlations, and one prior for each standard deviation."""

    eta: float
    sd: Sequence[PriorLike | OnVariance]

    def to_dict(self) -> Table:
        """Give the prior as it stands in a run file."""
        return {"lkj": {"eta": float(self.eta), "sd": [scale_dict(sd, "sd") for sd in self.sd]}}


ScaleLike = PriorLike | OnVariance
"""A prior of a noise scale."""

Scales = ScaleLike | Sequence[ScaleLike] | NDArray[np.float64] | None
"""One prior of a noise scale, or one for each component."""

One = TypeVar("One", PriorLike, ScaleLike)

Noise = Scales | CovariancePrior
"""Priors of standard deviations, or of a full covariance; also ``"diagonal"`` and ``"full"``."""


def prior_dict(value: PriorLike, what: str) -> Json:
    """A prior or a number, as a dictionary; a text such as ``"normal(0, 1)"`` stays."""
    if isinstance(value, str):
        return value
    if isinstance(value, Prior):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, int | float) or (hasattr(value, "item") and getattr(value, "size", 0) == 1):
        return Fixed(float(value)).to_dict()
    raise ValueError(f"{what}: expected a prior such as gpssm.LogNormal(1.0, 1.0) or a number, not {value!r}")


def scale_dict(value: ScaleLike, what: str) -> Json:
    """A prior of a noise scale, as a dictionary."""
    if isinstance(value, OnVariance):
        return value.to_dict()
    if isinstance(value, Mapping) and "on" in value:
        return dict(value)
    return {"on": "sd", "prior": prior_dict(value, what)}


def prior_list(value: Priors, what: str) -> list[Json]:
    """None, one prior or one for each component, as a list."""
    return [prior_dict(v, what) for v in each(value)]


def scale_list(value: Scales, what: str) -> list[Json]:
    """None, one prior of a scale or one for each component, as a list."""
    return [scale_dict(v, what) for v in each(value)]


def each(value: One | Sequence[One] | NDArray[np.float64] | None) -> list[One | float]:
    """None, one value or one for each component, as a list."""
    if value is None:
        return []
    if isinstance(value, np.ndarray):
        return [float(v) for v in np.atleast_1d(value)]
    return list(value) if isinstance(value, list | tuple) else [cast("One", value)]


def noise_table(value: Noise, what: str) -> Json:
    """Noise as it stands in a run file."""
    if isinstance(value, CovariancePrior):
        return {"full": value.to_dict()}
    if isinstance(value, Mapping):
        return dict(value)
    if value is None or (isinstance(value, str) and value == "diagonal"):
        return {"diagonal": []}
    if isinstance(value, str) and value == "full":
        return value
    return {"diagonal": scale_list(value, what)}
