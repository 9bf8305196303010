"""Finite bases in place of the exact Gaussian process, for long records.

One of these, or its text as in a run file, is the argument ``dynamics`` of `gpssm.Model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ._text import Part
from ._types import Json, Table

__all__ = ["DTC", "FIC", "Basis", "BasisLike", "Fourier", "Hilbert"]

Mode = Literal["collapsed", "sampled"]
"""Whether the weights of the basis are integrated out, or drawn once a sweep."""


@dataclass(frozen=True, repr=False)
class Basis(Part):
    """Finite basis; use one of its subclasses."""

    def to_dict(self) -> Table:
        """Give the basis as it stands in a run file."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class FIC(Basis):
    """Fully independent conditional on inducing inputs (section 4 of the paper).

    Parameters
    ----------
    inducing : int, list of int, or array_like (M, n_x + n_u)
        Number of points, chosen greedily from a warm-up path; or number of grid points along each component; or
        the points themselves.
    mode : "collapsed" or "sampled"
        Weights integrated out, or drawn once a sweep.

    Examples
    --------
    >>> FIC(40, mode="sampled")
    gpssm.FIC(inducing=40, mode='sampled')
    """

    _key: ClassVar[str] = "fic"
    inducing: int | ArrayLike | Mapping[str, Json] = 30
    mode: Mode = "collapsed"

    def to_dict(self) -> Table:
        """Give the basis as it stands in a run file."""
        return {self._key: {"inducing": _inducing(self.inducing), "mode": self.mode}}


@dataclass(frozen=True, repr=False)
class DTC(FIC):
    """Inducing inputs without the correction of the variance; arguments as of `FIC`."""

    _key: ClassVar[str] = "dtc"


def _inducing(value: int | ArrayLike | Mapping[str, Json]) -> Table:
    if isinstance(value, int | np.integer):
        return {"greedy": int(value)}
    if isinstance(value, Mapping):
        return dict(value)
    array = np.asarray(value)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return {"grid": array.tolist()}
    if array.ndim == 2:
        return {"given": array.astype(float).tolist()}
    raise ValueError(f"inducing: expected a number, a grid of numbers or points (M, n_z), not {value!r}")


@dataclass(frozen=True, repr=False)
class Hilbert(Basis):
    """Laplace eigenfunctions on a box around the data.

    Parameters
    ----------
    functions : int
        Number of eigenfunctions.
    half_width : list of float
        Half the width of the box along each component of (x, u); chosen from the data by default.
    mode : "collapsed" or "sampled"
        Weights integrated out, or drawn once a sweep.
    """

    functions: int = 40
    half_width: Sequence[float] = ()
    mode: Mode = "collapsed"

    def to_dict(self) -> Table:
        """Give the basis as it stands in a run file."""
        half_width = [float(v) for v in self.half_width]
        return {"hilbert": {"functions": int(self.functions), "half_width": half_width, "mode": self.mode}}


@dataclass(frozen=True, repr=False)
class Fourier(Basis):
    """Random Fourier features.

    Parameters
    ----------
    frequencies : int
        Number of frequencies; each has a sine and a cosine.
    mode : "collapsed" or "sampled"
        Weights integrated out, or drawn once a sweep.
    """

    frequencies: int = 50
    mode: Mode = "collapsed"

    def to_dict(self) -> Table:
        """Give the basis as it stands in a run file."""
        return {"fourier": {"frequencies": int(self.frequencies), "mode": self.mode}}


BasisLike = Basis | str | Mapping[str, Json]
"""A basis, its text such as ``"hilbert(40)"``, or its table in a run file."""


def basis_table(basis: BasisLike) -> Json:
    """A basis as it stands in a run file."""
    if isinstance(basis, Basis):
        return basis.to_dict()
    if isinstance(basis, str):
        return basis
    if isinstance(basis, Mapping):
        return dict(basis)
    raise ValueError(f"dynamics: expected a basis such as gpssm.Hilbert(40) or 'exact', not {basis!r}")
