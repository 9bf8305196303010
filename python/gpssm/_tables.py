"""Arrays, frames and series of several libraries as tables of float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ._types import Floats


@runtime_checkable
class Frame(Protocol):
    """Frame or series of pandas or polars."""

    def to_numpy(self, *args: object, **kwargs: object) -> np.ndarray:
        """Give the numbers."""


@dataclass(frozen=True)
class Channels:
    """One sequence of some channels, with what is known about names and times."""

    values: Floats
    names: list[str] | None
    time: Floats | None


def as_table(value: object, what: str) -> Channels:
    """Numbers, names and times of whatever holds one sequence."""
    names: list[str] | None = None
    time: Floats | None = None
    if isinstance(value, xr.DataArray | xr.Dataset):
        value, names, time = _from_xarray(value, what)
    elif isinstance(value, Frame):
        if hasattr(value, "columns"):
            names = [str(name) for name in value.columns]
        elif getattr(value, "name", None) not in (None, ""):
            names = [str(getattr(value, "name"))]  # noqa: B009
        time = _index_time(value)
        value = _to_numpy(value)
    elif isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(np.float64), np.nan)
    if np.iscomplexobj(cast("ArrayLike", value)):
        raise ValueError(f"{what}: complex numbers are not possible")
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{what}: expected numbers, found {_first_odd(value)}") from None
    shape = array.shape
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{what}: expected shape (T,) or (T, n), not {shape}")
    return Channels(array, names, time)


def _to_numpy(frame: Frame) -> np.ndarray:
    try:
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return np.asarray(frame.to_numpy())


def _index_time(frame: Frame) -> Floats | None:
    """Numbers of a pandas index, or its seconds from the start; none for the default index."""
    index = getattr(frame, "index", None)
    if index is None or callable(index) or type(index).__name__ in {"RangeIndex", "MultiIndex"}:
        return None
    values = np.asarray(index)
    if np.issubdtype(values.dtype, np.datetime64) or np.issubdtype(values.dtype, np.timedelta64):
        return np.ascontiguousarray((values - values[0]) / np.timedelta64(1, "s"), dtype=np.float64)
    if np.issubdtype(values.dtype, np.number):
        return np.ascontiguousarray(values, dtype=np.float64)
    return None


def _from_xarray(
    array: xr.DataArray | xr.Dataset, what: str
) -> tuple[np.ndarray, list[str] | None, Floats | None]:
    if isinstance(array, xr.Dataset):
        raise ValueError(f"{what}: give a DataArray, not a {type(array).__name__}")
    names, time = None, None
    dims = list(array.dims)
    if dims and dims[0] in array.coords:
        stamps = np.asarray(array.coords[dims[0]])
        if np.issubdtype(stamps.dtype, np.datetime64):
            stamps = (stamps - stamps[0]) / np.timedelta64(1, "s")
        if np.issubdtype(stamps.dtype, np.number):
            time = np.ascontiguousarray(stamps, dtype=np.float64)
    if len(dims) == 2 and dims[1] in array.coords:
        names = [str(name) for name in np.asarray(array.coords[dims[1]])]
    return np.asarray(array.values), names, time


def _first_odd(value: object) -> str:
    for item in np.asarray(value, dtype=object).ravel():
        try:
            float(item)
        except (TypeError, ValueError):
            return repr(item)
    return type(value).__name__


def as_points(value: ArrayLike | None, n: int, what: str) -> Floats:
    """Points as rows of `n` numbers."""
    if value is None:
        if n:
            raise ValueError(f"{what}: the model has {n} of them, none are given")
        return np.zeros((0, 0))
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.ndim == 0:
        array = array.reshape(1, 1)
    if array.ndim == 1:
        array = array.reshape(-1, 1) if n == 1 else array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != n:
        raise ValueError(f"{what}: expected shape (n, {n}), not {np.shape(value)}")
    return array
