"""Covariance functions of z = (x, u).

Hyper-parameters are priors, numbers (known), or left out (a default prior that is scaled to the data). A kernel
whose hyper-parameters are all numbers can be called: ``kernel(Z)`` is the matrix k(Z, Z).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._callables import Floats
from .priors import PriorLike, prior_dict, prior_list

__all__ = [
    "Constant",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Odd",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
]

Priors = PriorLike | Sequence[PriorLike] | None


class Kernel:
    """A covariance function; use one of its subclasses, sums (``+``) and products (``*``)."""

    def __add__(self, other: Kernel) -> Sum:
        return Sum([*_parts(self, Sum), *_parts(other, Sum)])

    def __mul__(self, other: Kernel) -> Product:
        return Product([*_parts(self, Product), *_parts(other, Product)])

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        raise NotImplementedError

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        raise NotImplementedError

    def __call__(self, z: ArrayLike, z2: ArrayLike | None = None, *, n_x: int | None = None) -> Floats:
        """Evaluate the matrix k(Z, Z').

        Parameters
        ----------
        z, z2 : array_like, (n, n_z) or (n,)
            Points, one row each; without `z2` the matrix is k(Z, Z).
        n_x : int, optional
            How many of the columns are states; the rest are inputs. All by default. It matters only where the
            kernel names the components that it acts on.

        Returns
        -------
        numpy.ndarray, (n, n')

        Examples
        --------
        >>> k = SquaredExponential(sigma_f=2.0, ell=0.5)
        >>> k([0.0, 0.5]).round(3)
        array([[4.   , 2.426],
               [2.426, 4.   ]])
        """
        rows = _points(z, "z")
        columns = rows if z2 is None else _points(z2, "z2")
        if rows.shape[1] != columns.shape[1]:
            raise ValueError(f"z has {rows.shape[1]} columns, z2 has {columns.shape[1]}")
        n_z = rows.shape[1]
        n_x = n_z if n_x is None else n_x
        return _core.kernel_matrix(json.dumps(self.numbers(n_x, n_z - n_x)), rows, columns)


def _points(z: ArrayLike, what: str) -> Floats:
    points = np.ascontiguousarray(z, dtype=np.float64)
    if points.ndim == 1:
        points = points[:, None]
    if points.ndim != 2:
        raise ValueError(f"{what}: expected points as rows, shape (n, n_z), not {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"{what}: points must be finite")
    return points


def _parts(kernel: Kernel, kind: type[Sum] | type[Product]) -> list[Kernel]:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernels can only be combined with kernels, not with {type(kernel).__name__}")
    return list(kernel.parts) if isinstance(kernel, kind) else [kernel]


def _components(active: Sequence[str] | None, n_x: int, n_u: int) -> list[int]:
    if active is None:
        return list(range(n_x + n_u))
    found: list[int] = []
    for name in active:
        letter, number = name[:1], name[1:]
        first, n = {"x": (0, n_x), "u": (n_x, n_u)}.get(letter, (0, -1))
        if n < 0 or (number and (not number.isdigit() or not 1 <= int(number) <= n)):
            raise ValueError(f"active: there is no component {name!r} among {n_x} states and {n_u} inputs")
        found.extend([first + int(number) - 1] if number else range(first, first + n))
    return found


def _number(value: Any, name: str) -> float:
    if isinstance(value, dict):
        value = value.get("fixed", {}).get("value")
    if not isinstance(value, (int, float)):
        raise ValueError(f"{name}: a number is needed here, not {'nothing' if value is None else value}")
    return float(value)


def _numbers(values: Priors, n: int, name: str) -> list[float]:
    found = [_number(prior, name) for prior in prior_list(values, name)]
    if len(found) == 1:
        found = found * n
    if len(found) != n:
        raise ValueError(f"{name}: {len(found)} numbers for {n} components")
    return found


def _positive(values: list[float], name: str) -> list[float]:
    for value in values:
        if not (value > 0.0 and np.isfinite(value)):
            raise ValueError(f"{name}: must be positive and finite, not {value}")
    return values


@dataclass(frozen=True)
class _Stationary(Kernel):
    _key: ClassVar[str] = ""
    sigma_f: PriorLike | None = None
    ell: Priors = None
    active: Sequence[str] | None = None

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self.active is not None:
            fields["active"] = [self.active] if isinstance(self.active, str) else list(self.active)
        if self.sigma_f is not None:
            fields["sigma_f"] = prior_dict(self.sigma_f, "sigma_f")
        if self.ell is not None:
            fields["ell"] = prior_list(self.ell, "ell")
        return fields

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        return {self._key: self._fields()}

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        active = self._fields().get("active")
        components = _components(active, n_x, n_u)
        sigma_f = _number(prior_dict(self.sigma_f, "sigma_f") if self.sigma_f is not None else None, "sigma_f")
        return {
            "kind": "stationary",
            "shape": self._key,
            "variance": sigma_f**2,
            "components": components,
            "ell": _positive(_numbers(self.ell, len(components), "ell"), "ell"),
            "alpha": None,
        }


@dataclass(frozen=True)
class SquaredExponential(_Stationary):
    """sigma_f^2 exp(-r^2 / 2), r^2 = sum_c ((z_c - z'_c) / ell_c)^2.

    Parameters
    ----------
    sigma_f : prior or float, optional
        Signal standard deviation.
    ell : prior or float, or one for each component, optional
        Length-scales.
    active : list of str, optional
        Components of z it acts on: ``"x"``, ``"u"`` for all states or inputs, ``"x1"``, ``"u2"`` for one.
    """

    _key: ClassVar[str] = "squared_exponential"


@dataclass(frozen=True)
class Matern12(_Stationary):
    """sigma_f^2 exp(-r); arguments as of `SquaredExponential`."""

    _key: ClassVar[str] = "matern12"


@dataclass(frozen=True)
class Matern32(_Stationary):
    """sigma_f^2 (1 + sqrt(3) r) exp(-sqrt(3) r); arguments as of `SquaredExponential`."""

    _key: ClassVar[str] = "matern32"


@dataclass(frozen=True)
class Matern52(_Stationary):
    """sigma_f^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r); arguments as of `SquaredExponential`."""

    _key: ClassVar[str] = "matern52"


@dataclass(frozen=True)
class RationalQuadratic(_Stationary):
    """sigma_f^2 (1 + r^2 / (2 alpha))^(-alpha); `alpha` weighs the small scales."""

    _key: ClassVar[str] = "rational_quadratic"
    alpha: PriorLike | None = None

    def _fields(self) -> dict[str, Any]:
        fields = super()._fields()
        if self.alpha is not None:
            fields["alpha"] = prior_dict(self.alpha, "alpha")
        return fields

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        alpha = _number(self._fields().get("alpha"), "alpha")
        return {**super().numbers(n_x, n_u), "alpha": _positive([alpha], "alpha")[0]}


@dataclass(frozen=True)
class Periodic(_Stationary):
    """sigma_f^2 exp(-2 sum_c sin^2(pi (z_c - z'_c) / period_c) / ell_c^2)."""

    _key: ClassVar[str] = "periodic"
    period: Priors = None

    def _fields(self) -> dict[str, Any]:
        fields = super()._fields()
        if self.period is not None:
            fields["period"] = prior_list(self.period, "period")
        return fields

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        numbers = {**super().numbers(n_x, n_u), "kind": "periodic"}
        del numbers["shape"], numbers["alpha"]
        n = len(numbers["components"])
        numbers["period"] = _positive(_numbers(self.period, n, "period"), "period")
        return numbers


@dataclass(frozen=True)
class Linear(Kernel):
    """sum_c sigma_c^2 z_c z'_c: a linear function with slopes of standard deviation sigma_c.

    In a model that is fitted, z is counted from the middle of the data (``standardise``); the building blocks
    take it as it is.
    """

    sigma: Priors = None
    active: Sequence[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        fields: dict[str, Any] = {}
        if self.active is not None:
            fields["active"] = [self.active] if isinstance(self.active, str) else list(self.active)
        if self.sigma is not None:
            fields["sigma"] = prior_list(self.sigma, "sigma")
        return {"linear": fields}

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        components = _components(self.to_dict()["linear"].get("active"), n_x, n_u)
        sigma = _numbers(self.sigma, len(components), "sigma")
        return {"kind": "linear", "components": components, "variance": [s**2 for s in sigma]}


@dataclass(frozen=True)
class Constant(Kernel):
    """sigma^2: an unknown offset."""

    sigma: PriorLike | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        return {"constant": {} if self.sigma is None else {"sigma": prior_dict(self.sigma, "sigma")}}

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        return {"kind": "constant", "variance": _number(self.to_dict()["constant"].get("sigma"), "sigma") ** 2}


@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of kernels; the empty sum is the kernel of a known function."""

    parts: Sequence[Kernel] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        return {"sum": [part.to_dict() for part in self.parts]}

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        return {"kind": "sum", "parts": [part.numbers(n_x, n_u) for part in self.parts]}


@dataclass(frozen=True)
class Product(Kernel):
    """Product of kernels."""

    parts: Sequence[Kernel] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        return {"product": [part.to_dict() for part in self.parts]}

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        return {"kind": "product", "parts": [part.numbers(n_x, n_u) for part in self.parts]}


@dataclass(frozen=True)
class Odd(Kernel):
    """Kernel of the odd part of a function: f(-z) = -f(z), (k(z, z') - k(z, -z')) / 2.

    For systems that behave to the left as they do to the right. In a model that is fitted, z is counted from the
    middle of the data (``standardise``). An odd kernel may be a part of a sum, not of a product.

    Examples
    --------
    >>> k = Odd(SquaredExponential(sigma_f=1.0, ell=1.0))
    >>> k([0.0, 1.0, -1.0]).round(3) + 0.0
    array([[ 0.   ,  0.   ,  0.   ],
           [ 0.   ,  0.432, -0.432],
           [ 0.   , -0.432,  0.432]])
    """

    part: Kernel

    def to_dict(self) -> dict[str, Any]:
        """Give the kernel as it stands in a model file."""
        return {"odd": self.part.to_dict()}

    def numbers(self, n_x: int, n_u: int = 0) -> dict[str, Any]:
        """Give the kernel with numbers for `n_x` states and `n_u` inputs; for the building blocks."""
        return {"kind": "odd", "part": self.part.numbers(n_x, n_u)}
