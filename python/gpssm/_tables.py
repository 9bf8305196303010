"""Arrays, frames and series of several libraries as tables of float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast, runtime_checkable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ._index import Index, from_pandas, from_values
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
    time: Index | None


def as_table(value: object, what: str) -> Channels:
    """Numbers, names and times of whatever holds one sequence."""
    names: list[str] | None = None
    time: Index | None = None
    if isinstance(value, xr.DataArray | xr.Dataset):
        value, names, time = _from_xarray(value, what)
    elif isinstance(value, Frame):
        value, time = _without_dates(value, what)
        if hasattr(value, "columns"):
            names = [str(name) for name in value.columns]
        elif getattr(value, "name", None) not in (None, ""):
            names = [str(getattr(value, "name"))]  # noqa: B009
        time = _index_time(value, what) if time is None else time
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


def _without_dates(frame: Frame, what: str) -> tuple[Frame, Index | None]:
    """A frame without its column of dates, and this column as times; a frame has one at most."""
    columns = getattr(frame, "columns", None)
    if columns is None:
        return frame, None
    dates = [name for name in columns if _is_dates(frame[name])]  # type: ignore[index]
    if not dates:
        return frame, None
    if len(dates) > 1:
        raise ValueError(f"{what}: {dates[0]!r} and {dates[1]!r} hold dates; keep one of them as the time")
    rest = frame[[name for name in columns if name != dates[0]]]  # type: ignore[index]
    return rest, from_values(frame[dates[0]].to_numpy(), what)  # type: ignore[index]


def _is_dates(column: Frame) -> bool:
    kind = str(column.dtype)  # type: ignore[attr-defined]
    return kind.startswith(("datetime64", "Datetime", "Date"))


def _index_time(frame: Frame, what: str) -> Index | None:
    """Times in a pandas index; none for the default index."""
    index = getattr(frame, "index", None)
    if index is None or callable(index):
        return None
    if type(index).__name__ == "MultiIndex":
        raise ValueError(f"{what}: an index of {index.nlevels} levels; two levels are the sequence and its times")
    return from_pandas(index, what)


def _from_xarray(array: xr.DataArray | xr.Dataset, what: str) -> tuple[np.ndarray, list[str] | None, Index | None]:
    if isinstance(array, xr.Dataset):
        raise ValueError(f"{what}: give a DataArray, not a {type(array).__name__}")
    names, time = None, None
    dims = list(array.dims)
    if dims and dims[0] in array.coords:
        time = from_pandas(array.get_index(dims[0]), what)
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
