"""Covariance functions of z = (x, u).

Hyper-parameters are priors, numbers (known), or left out (a default prior that is scaled to the data). A kernel
whose hyper-parameters are all numbers can be called: ``kernel(Z)`` is the matrix k(Z, Z).
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._registry import KernelCall, Registry
from ._text import WIDTH, Part
from ._types import Floats, Function, Json, Table
from .priors import PriorLike, Priors, prior_dict, prior_list

__all__ = [
    "ChangePoint",
    "Constant",
    "Kernel",
    "KernelFunction",
    "KernelLike",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "NeuralNetwork",
    "Odd",
    "Periodic",
    "Power",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SquaredExponential",
    "Sum",
]


class Kernel(Part):
    """A covariance function; use one of its subclasses, sums (``+``) and products (``*``)."""

    def __add__(self, other: Kernel) -> Sum:
        return Sum([*_parts(self, Sum), *_parts(other, Sum)])

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, int | float | np.number):
            return Scaled(float(other), self)
        return Product([*_parts(self, Product), *_parts(other, Product)])

    def __rmul__(self, factor: float) -> Scaled:
        return Scaled(float(factor), self)

    def __pow__(self, exponent: int) -> Power:
        return Power(self, exponent)

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
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
        registry = Registry()
        table = json.dumps(registry.named(self.to_dict()))
        return _core.kernel_matrix(table, registry.kernels, n_x, rows, columns)


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


_EACH = {
    kernel["name"]: {p["name"] for p in kernel["parameters"] if p["each"]}
    for kernel in json.loads(_core.kernels())
}
"""The hyper-parameters of each kernel that every component has one of."""


@dataclass(frozen=True, repr=False)
class _Single(Kernel):
    """One kernel of the engine's table; its fields are `active` and the hyper-parameters."""

    _key: ClassVar[str] = ""

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        table: Table = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is None:
                continue
            if entry.name == "active":
                table["active"] = [value] if isinstance(value, str) else list(value)
            elif entry.name in _EACH[self._key]:
                table[entry.name] = prior_list(value, entry.name)
            else:
                table[entry.name] = prior_dict(value, entry.name)
        return {self._key: table}


@dataclass(frozen=True, repr=False)
class _Radial(_Single):
    sigma_f: PriorLike | None = None
    ell: Priors = None
    active: Sequence[str] | None = None


@dataclass(frozen=True, repr=False)
class SquaredExponential(_Radial):
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


@dataclass(frozen=True, repr=False)
class Matern12(_Radial):
    """sigma_f^2 exp(-r); arguments as of `SquaredExponential`."""

    _key: ClassVar[str] = "matern12"


@dataclass(frozen=True, repr=False)
class Matern32(_Radial):
    """sigma_f^2 (1 + sqrt(3) r) exp(-sqrt(3) r); arguments as of `SquaredExponential`."""

    _key: ClassVar[str] = "matern32"


@dataclass(frozen=True, repr=False)
class Matern52(_Radial):
    """sigma_f^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r); arguments as of `SquaredExponential`."""

    _key: ClassVar[str] = "matern52"


@dataclass(frozen=True, repr=False)
class RationalQuadratic(_Radial):
    """sigma_f^2 (1 + r^2 / (2 alpha))^(-alpha); `alpha` weighs the small scales."""

    _key: ClassVar[str] = "rational_quadratic"
    alpha: PriorLike | None = None


@dataclass(frozen=True, repr=False)
class Periodic(_Radial):
    """sigma_f^2 exp(-2 sum_c sin^2(pi (z_c - z'_c) / period_c) / ell_c^2)."""

    _key: ClassVar[str] = "periodic"
    period: Priors = None


@dataclass(frozen=True, repr=False)
class Linear(_Single):
    """sum_c sigma_c^2 z_c z'_c: a linear function with slopes of standard deviation sigma_c.

    In a model that is fitted, z is counted from the middle of the data (``standardise``); the building blocks
    take it as it is.
    """

    _key: ClassVar[str] = "linear"
    sigma: Priors = None
    active: Sequence[str] | None = None


@dataclass(frozen=True, repr=False)
class Constant(_Single):
    """sigma^2: an unknown offset."""

    _key: ClassVar[str] = "constant"
    sigma: PriorLike | None = None


@dataclass(frozen=True, repr=False)
class NeuralNetwork(_Single):
    """sigma_f^2 2/pi asin(2 s(z, z') / sqrt((1 + 2 s(z, z)) (1 + 2 s(z', z')))).

    s(z, z') = bias^2 + sum_c weight_c^2 z_c z'_c. Functions that change in one region and level off away from it.
    """

    _key: ClassVar[str] = "neural_network"
    sigma_f: PriorLike | None = None
    weight: Priors = None
    bias: PriorLike | None = None
    active: Sequence[str] | None = None


@dataclass(frozen=True, repr=False)
class KernelFunction(Kernel):
    """A kernel of your own.

    Parameters
    ----------
    function : callable
        ``function(z, z2, *parameters)`` with points `z`, shape (n, d), and one point `z2`, shape (d,), in original
        units; gives k of every row of `z` with `z2`, shape (n,). It must be symmetric and positive semi-definite,
        see `gpssm.testing.check_kernel`.
    parameters : dict
        Names and priors of the parameters, in the order of the arguments.
    active : list of str, optional
        Components of z it acts on.

    Examples
    --------
    >>> def quadratic(z, z2, a):
    ...     return (a * z @ z2) ** 2
    >>> k = KernelFunction(quadratic, {"a": 0.5})
    >>> k([1.0, 2.0])
    array([[0.25, 1.  ],
           [1.  , 4.  ]])
    """

    function: Function
    parameters: Mapping[str, PriorLike] = field(default_factory=dict)
    active: Sequence[str] | None = None

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file, the function in place of its name."""
        priors = {name: prior_dict(prior, name) for name, prior in self.parameters.items()}
        call = KernelCall(self.function, tuple(self.parameters))
        table: dict[str, object] = {"name": call, "parameters": priors}
        if self.active is not None:
            table["active"] = [self.active] if isinstance(self.active, str) else list(self.active)
        return {"user": cast("Table", table)}


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """A kernel times a positive number; written ``2 * kernel``."""

    factor: float
    part: Kernel

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        return {"scaled": {"factor": self.factor, "kernel": self.part.to_dict()}}


@dataclass(frozen=True, repr=False)
class Power(Kernel):
    """A kernel times itself, with the same hyper-parameters; written ``kernel**2``."""

    part: Kernel
    exponent: int

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        return {"power": {"kernel": self.part.to_dict(), "exponent": self.exponent}}


@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """Sum of kernels; the empty sum is the kernel of a known function."""

    parts: Sequence[Kernel] = ()

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        return {"sum": [part.to_dict() for part in self.parts]}

    def __repr__(self) -> str:
        return _joined(self.parts, " + ", (Sum,)) or super().__repr__()


@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """Product of kernels."""

    parts: Sequence[Kernel] = ()

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        return {"product": [part.to_dict() for part in self.parts]}

    def __repr__(self) -> str:
        return _joined(self.parts, " * ", (Sum, Product)) or super().__repr__()


@dataclass(frozen=True, repr=False)
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

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        return {"odd": self.part.to_dict()}


@dataclass(frozen=True, repr=False)
class ChangePoint(Kernel):
    """One kernel before and another after a change along a component of z.

    (1 - s) (1 - s') k_before + s s' k_after with s(z) = 1 / (1 + exp(-(z_c - location) / width)): the covariance
    of (1 - s) f_before + s f_after with independent functions. For a change in time, give time as an input.

    Parameters
    ----------
    before, after : Kernel
        The kernels at small and at large z_c.
    active : str, optional
        The component z_c, such as ``"x1"``, ``"u2"`` or the name of a column; needed if z has more than one.
    location : prior or float, optional
        Where the change is; by default normal, around the middle of the data.
    width : prior or float, optional
        How gradual it is: nine tenths of it within 6 widths. By default log-normal around a tenth of the standard
        deviation of z_c.

    Examples
    --------
    >>> k = ChangePoint(Constant(1.0), Constant(3.0), location=2.0, width=0.5)
    >>> k([0.0, 2.0, 4.0]).round(2)
    array([[0.97, 0.57, 0.18],
           [0.57, 2.5 , 4.43],
           [0.18, 4.43, 8.68]])
    """

    before: Kernel
    after: Kernel
    active: str | None = None
    location: PriorLike | None = None
    width: PriorLike | None = None

    def to_dict(self) -> Table:
        """Give the kernel as it stands in a run file."""
        table: Table = {"kernels": [self.before.to_dict(), self.after.to_dict()]}
        if self.active is not None:
            table["active"] = [self.active]
        for name, prior in (("location", self.location), ("width", self.width)):
            if prior is not None:
                table[name] = prior_dict(prior, name)
        return {"change_point": table}


def _joined(parts: Sequence[Kernel], sign: str, apart: tuple[type[Kernel], ...]) -> str | None:
    """A sum or product as it is written with its sign; none if that would not make the same kernel."""
    if len(parts) < 2 or any(isinstance(part, apart[-1]) for part in parts):
        return None
    texts = [f"({part!r})" if isinstance(part, apart) else repr(part) for part in parts]
    line = sign.join(texts)
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return "(\n" + textwrap.indent(f"\n{sign.lstrip()}".join(texts), "    ") + "\n)"


KernelLike = Kernel | str | Mapping[str, Json]
"""A kernel, its text such as ``"se + linear"``, or its table in a run file."""


def kernel_table(kernel: KernelLike, what: str) -> Json:
    """A kernel as it stands in a run file."""
    if isinstance(kernel, Kernel):
        return kernel.to_dict()
    if isinstance(kernel, str):
        return kernel
    if isinstance(kernel, Mapping):
        return dict(kernel)
    raise ValueError(f"{what}: expected a kernel such as gpssm.Matern32() or 'se + linear', not {kernel!r}")
