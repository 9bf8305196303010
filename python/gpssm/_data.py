"""What users have (arrays, frames, lists of them, records of benchmarks) as sequences of float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from ._types import Floats

__all__ = ["Data", "as_data"]


class SupportsArray(Protocol):
    """Frames, series and arrays of other libraries."""

    def __array__(self) -> np.ndarray: ...


class Record(Protocol):
    """Record of a benchmark, with inputs and outputs side by side."""

    @property
    def u(self) -> object:
        """Inputs."""

    @property
    def y(self) -> object:
        """Outputs."""


class DataKeys(TypedDict, total=False):
    """Keys of the table ``data`` of a run file that say how rows of a record become rows of the model."""

    u: Sequence[str]
    every: int | None
    input_lags: int | None
    delay: int | None


@dataclass(frozen=True)
class Layout:
    """How the rows of a record become the rows of a model: past values of inputs as inputs, dead time, thinning.

    Attributes
    ----------
    inputs : list of str
        Names of the inputs before past values were added; empty where none were.
    input_lags : int
        Number of past input values used as regressors.
    delay : int
        Rows from an input to the first output that it acts on.
    every : int
        Every k-th row is used.
    """

    inputs: tuple[str, ...] = ()
    input_lags: int = 0
    delay: int = 1
    every: int = 1

    @classmethod
    def of(cls, keys: DataKeys, inputs: Sequence[str]) -> Layout:
        """From keys of a run file and the names of the inputs."""
        lags, delay, every = keys.get("input_lags") or 0, keys.get("delay"), keys.get("every") or 1
        delay = 1 if delay is None else delay
        return cls(tuple(inputs) if (lags, delay) != (0, 1) else (), lags, delay, every)

    def keys(self) -> DataKeys:
        """The same as keys of a run file."""
        keys: DataKeys = {"every": self.every} if self.every > 1 else {}
        if self.inputs:
            keys |= {"u": list(self.inputs), "input_lags": self.input_lags, "delay": self.delay}
        return keys

    def spread(self, u: Floats) -> Floats:
        """Inputs (T, n) of thinned rows with their past values: all values of the first input first."""
        if not self.inputs:
            return u
        n_rows = len(u)
        t = np.arange(n_rows)[:, None] + 1 - self.delay - np.arange(self.input_lags + 1)[None, :]
        # Before the first row stands the first value, after the last row the last one.
        rows = np.clip(t, 0, n_rows - 1)
        return np.ascontiguousarray(np.concatenate([u[rows, c] for c in range(u.shape[1])], axis=1))

    def names(self, inputs: Sequence[str]) -> list[str]:
        """Names of the inputs with their past values."""

        def name(given: str, back: int) -> str:
            shift = 1 - self.delay - back
            return given if shift == 0 else f"{given}[{shift:+d}]"

        return [name(given, back) for given in inputs for back in range(self.input_lags + 1)]

    def apply(self, data: Data) -> Data:
        """A record as the model sees it."""
        if self == Layout():
            return data
        k = self.every
        return Data(
            [np.ascontiguousarray(y[::k]) for y in data.y],
            None if data.u is None else [self.spread(np.ascontiguousarray(u[::k])) for u in data.u],
            [np.ascontiguousarray(t[::k]) for t in data.time],
            data.outputs,
            self.names(data.inputs) if self.inputs else data.inputs,
            data.sequences,
            self,
        )


@dataclass(frozen=True)
class Data:
    """Recorded outputs and inputs: one array for each sequence, NaN where an output is missing."""

    y: list[Floats]
    u: list[Floats] | None
    time: list[Floats]
    outputs: list[str]
    inputs: list[str]
    sequences: list[str]
    layout: Layout = Layout()

    def _labels(self) -> tuple[list[str], list[str], list[str], list[list[float]]]:
        """Names and times, as the extension takes them."""
        return self.outputs, self.inputs, self.sequences, [time.tolist() for time in self.time]

    def _rows(self, first: int, last: int) -> Data:
        """Some rows of every sequence."""
        part = slice(first, last)
        u = None if self.u is None else [values[part] for values in self.u]
        return replace(self, y=[values[part] for values in self.y], u=u, time=[t[part] for t in self.time])

    @property
    def n_y(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @property
    def n_u(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def n_rows(self) -> int:
        """Rows of all sequences."""
        return sum(len(y) for y in self.y)

    def __repr__(self) -> str:
        n = len(self.y)
        return f"<Data: {n} sequence{'s' if n > 1 else ''}, {self.n_rows} rows, y {self.outputs}, u {self.inputs}>"


@dataclass(frozen=True)
class _Table:
    """One sequence of some channels, with what is known about names and times."""

    values: Floats
    names: list[str] | None
    time: Floats | None


Channels = ArrayLike | SupportsArray
"""One sequence of some channels: arrays, frames, series, lists of numbers."""

DataLike = Data | Record | Channels | Sequence[Record | Channels]
"""Recorded outputs or inputs: see `as_data`."""


def as_data(
    y: DataLike, u: DataLike | None = None, *, time: DataLike | None = None, dt: float | None = None
) -> Data:
    """Make sequences of whatever holds outputs and inputs.

    Parameters
    ----------
    y : array_like, frame, record, or list of them
        Outputs: (T,) or (T, n_y); pandas or polars frames and series; xarray arrays; objects with attributes
        ``u`` and ``y`` (such as ``Input_output_data`` of nonlinear_benchmarks), which bring their inputs along.
        A list of arrays, frames or records is a list of sequences that share the dynamics. NaN is missing.
    u : the same, optional
        Inputs, without missing values.
    time : array_like or list of them, optional
        Times of the rows; by default the index of a frame, or row numbers.
    dt : float, optional
        Sampling time, if there are no times.

    Returns
    -------
    Data

    Examples
    --------
    >>> as_data([1.0, 2.0, float("nan")], u=[[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    <Data: 1 sequence, 3 rows, y ['y1'], u ['u1', 'u2']>
    """
    if isinstance(y, Data):
        if u is not None:
            raise ValueError("u: these data bring their own inputs")
        return y
    parts = _sequences(y)
    if any(_is_record(part) for part in parts):
        if u is not None or not all(_is_record(part) for part in parts):
            raise ValueError("u: records bring their own inputs; give records only, and no u")
        steps = [_sampling_time(part) for part in parts]
        u = [part.u for part in parts] if parts[0].u is not None else None
        parts = [part.y for part in parts]
    else:
        steps = [None] * len(parts)
    outputs = [_table(part, _name("y", parts, s)) for s, part in enumerate(parts)]
    if dt is not None:
        if time is not None or not (dt > 0 and np.isfinite(dt)):
            raise ValueError(f"dt: expected a positive number, without time beside it, not {dt!r}")
        time = [float(dt) * np.arange(len(table.values)) for table in outputs]
    inputs = None
    if u is not None:
        u_parts = _sequences(u)
        if len(u_parts) != len(parts):
            raise ValueError(f"y has {len(parts)} sequences, u has {len(u_parts)}")
        inputs = [_table(part, _name("u", u_parts, s)) for s, part in enumerate(u_parts)]
    return _assemble(outputs, inputs, steps, time)


def _assemble(
    outputs: list[_Table], inputs: list[_Table] | None, steps: Sequence[float | None], time: Any
) -> Data:
    several = len(outputs) > 1
    for s, table in enumerate(outputs):
        where = f" in sequence {s}" if several else ""
        if len(table.values) < 2:
            raise ValueError(f"y{where}: {len(table.values)} rows; a transition needs at least two")
        if table.values.shape[1] != outputs[0].values.shape[1]:
            raise ValueError(
                f"y{where} has {table.values.shape[1]} columns, the first sequence {outputs[0].values.shape[1]}"
            )
        _refuse(np.isinf(table.values), table, "y", where, "infinite; a missing output is NaN")
    if np.isnan(np.concatenate([table.values for table in outputs])).all():
        raise ValueError("y: all outputs are missing")
    for s, table in enumerate(inputs or []):
        where = f" in sequence {s}" if several else ""
        if len(table.values) != len(outputs[s].values):
            raise ValueError(f"y has {len(outputs[s].values)} rows, u has {len(table.values)}{where}")
        if table.values.shape[1] != inputs[0].values.shape[1]:  # type: ignore[index]
            raise ValueError(f"u{where} has another number of columns than the first sequence")
        _refuse(~np.isfinite(table.values), table, "u", where, "not finite; inputs must be known in every row")
    n_y = outputs[0].values.shape[1]
    n_u = inputs[0].values.shape[1] if inputs else 0
    times = _times(outputs, steps, time)
    return Data(
        [table.values for table in outputs],
        [table.values for table in inputs] if inputs and n_u else None,
        times,
        outputs[0].names or [f"y{k + 1}" for k in range(n_y)],
        (inputs[0].names if inputs else None) or [f"u{c + 1}" for c in range(n_u)],
        [str(s + 1) for s in range(len(outputs))],
    )


def _refuse(bad: np.ndarray, table: _Table, what: str, where: str, why: str) -> None:
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        name = table.names[column] if table.names else f"{what}{column + 1}"
        raise ValueError(f"{what}{where}: row {row} of {name} is {why}")


def _times(outputs: list[_Table], steps: Sequence[float | None], time: Any) -> list[Floats]:
    if time is not None:
        given = time if isinstance(time, (list, tuple)) and np.ndim(time[0]) == 1 else [time]
        times = [np.ascontiguousarray(t, dtype=np.float64) for t in given]
        if [t.shape for t in times] != [(len(table.values),) for table in outputs]:
            raise ValueError(f"time: shapes {[t.shape for t in times]} do not fit the rows of y")
        return times
    found = []
    for table, step in zip(outputs, steps, strict=True):
        rows = np.arange(len(table.values), dtype=np.float64)
        found.append(table.time if table.time is not None else rows * (step or 1.0))
    return found


def _is_record(value: Any) -> bool:
    """Whether this is a record with inputs and outputs, such as Input_output_data."""
    if isinstance(value, (np.ndarray, list, tuple, dict)) or hasattr(value, "columns") or hasattr(value, "dims"):
        return False
    return hasattr(value, "u") and hasattr(value, "y")


def _sampling_time(record: Any) -> float | None:
    step = getattr(record, "sampling_time", None)
    return float(step) if isinstance(step, (int, float, np.number)) and step > 0 else None


def _sequences(value: Any) -> list[Any]:
    """A list of sequences, of one if it is not a list."""
    if not isinstance(value, (list, tuple)):
        return [value]
    if not value:
        raise ValueError("y: there is nothing in the list")
    if all(isinstance(part, (int, float, complex, str, np.number, np.bool_)) or part is None for part in value):
        return [value]
    if all(isinstance(part, (list, tuple)) for part in value):
        # Rows of equal length are the rows of one table, lists of different lengths are sequences.
        return [value] if len({len(part) for part in value}) == 1 else list(value)
    return list(value)


def _name(letter: str, parts: list[Any], s: int) -> str:
    return letter if len(parts) == 1 else f"{letter} of sequence {s}"


def _table(value: Any, what: str) -> _Table:
    names: list[str] | None = None
    time: Floats | None = None
    if hasattr(value, "dims") and hasattr(value, "coords"):
        value, names, time = _from_xarray(value, what)
    elif hasattr(value, "columns"):
        names = [str(name) for name in value.columns]
        time = _index_time(value)
        value = _to_numpy(value)
    elif hasattr(value, "to_numpy") and hasattr(value, "name"):
        names = [str(value.name)] if value.name not in (None, "") else None
        time = _index_time(value)
        value = _to_numpy(value)
    elif isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(np.float64), np.nan)
    if np.iscomplexobj(value):
        raise ValueError(f"{what}: complex numbers are not possible")
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{what}: expected numbers, found {_first_odd(value)}") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"{what}: expected shape (T,) or (T, n), not {np.shape(value)}")
    return _Table(array, names, time)


def _to_numpy(frame: Any) -> np.ndarray:
    try:
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        return np.asarray(frame.to_numpy())


def _index_time(frame: Any) -> Floats | None:
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


def _from_xarray(array: Any, what: str) -> tuple[np.ndarray, list[str] | None, Floats | None]:
    if not hasattr(array, "values") or callable(array.values):
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


def _first_odd(value: Any) -> str:
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
