"""Density of the initial state, p(x_0): the argument ``initial`` of `gpssm.Model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ._registry import Registry
from ._text import Part
from ._types import Function, Json

__all__ = ["InitialDensity", "InitialFixed", "InitialGaussian", "InitialLike"]


@dataclass(frozen=True, repr=False)
class InitialGaussian(Part):
    """Gaussian initial state: x_0 ~ N(mean, diag(sd^2)), or with a full `covariance`.

    Examples
    --------
    >>> InitialGaussian([0.0, 0.0], sd=[1.0, 2.0])
    gpssm.InitialGaussian(mean=[0.0, 0.0], sd=[1.0, 2.0])
    """

    mean: Sequence[float]
    sd: Sequence[float] | None = None
    covariance: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True, repr=False)
class InitialFixed(Part):
    """Known initial state x_0."""

    x: Sequence[float]


@dataclass(frozen=True, repr=False)
class InitialDensity(Part):
    """User-defined density p(x_0).

    Parameters
    ----------
    log_density : function
        ``log_density(x)`` with x (n, n_x); returns (n,).
    sample : function
        ``sample(rng, n)`` with a NumPy generator; returns n draws (n, n_x).
    """

    log_density: Function
    sample: Function


InitialLike = InitialGaussian | InitialFixed | InitialDensity | str | Mapping[str, Json]
"""A density of the initial state, or its text or table in a run file."""


def initial_table(value: InitialLike, registry: Registry) -> Json:
    """A density of the initial state as it stands in a run file."""
    if isinstance(value, InitialGaussian):
        mean = _floats(value.mean)
        if value.covariance is not None:
            return {"gaussian_full": {"mean": mean, "covariance": _floats(value.covariance)}}
        if value.sd is None:
            raise ValueError("initial: give sd or covariance")
        return {"gaussian": {"mean": mean, "sd": _floats(value.sd)}}
    if isinstance(value, InitialFixed):
        return {"fixed": _floats(value.x)}
    if isinstance(value, InitialDensity):
        return {"user": registry.initial(value.log_density, value.sample)}
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f"initial: expected InitialGaussian, InitialFixed or InitialDensity, not {value!r}")


def _floats(values: Sequence[float] | Sequence[Sequence[float]]) -> Json:
    found: Json = np.asarray(values, dtype=np.float64).tolist()
    return found
