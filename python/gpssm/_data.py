"""What users have (arrays, frames, lists of them, records of benchmarks) as sequences of float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._layout import Layout
from ._tables import Channels, as_table
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


@dataclass(frozen=True)
class Data:
    """Recorded outputs and inputs: one array for each sequence, NaN where an output is missing.

    Where a model sees other rows (`layout`), `measured` holds the record as it was.
    """

    y: list[Floats]
    u: list[Floats] | None
    time: list[Floats]
    outputs: list[str]
    inputs: list[str]
    sequences: list[str]
    layout: Layout = field(default_factory=Layout)
    measured: Data | None = None

    def _labels(self) -> tuple[list[str], list[str], list[str], list[list[float]]]:
        """Names and times, as the extension takes them."""
        return self.outputs, self.inputs, self.sequences, [time.tolist() for time in self.time]

    def _rows(self, first: int, last: int) -> Data:
        """Some rows of every sequence."""
        part = slice(first, last)
        u = None if self.u is None else [values[part] for values in self.u]
        return replace(self, y=[values[part] for values in self.y], u=u, time=[t[part] for t in self.time])

    def _with_layout(self, layout: Layout) -> Data:
        """The record as a model with this layout sees it."""
        if layout == Layout():
            return self
        k = layout.every
        y, u, inputs = _core.laid_out((layout.input_lags, layout.delay, k), self.y, self.u, self.inputs)
        time = [np.ascontiguousarray(t[::k]) for t in self.time]
        return Data(y, u, time, self.outputs, inputs, self.sequences, layout, self)

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


OneSequence = ArrayLike | SupportsArray
"""One sequence of some channels: arrays, frames, series, lists of numbers."""

DataLike = Data | Record | OneSequence | Sequence[Record | OneSequence]
"""Recorded outputs or inputs: see `as_data`."""


def as_data(
    y: DataLike, u: DataLike | None = None, *, time: DataLike | None = None, dt: float | None = None
) -> Data:
    """Convert outputs and inputs to sequences.

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
    steps: list[float | None] = [None] * len(parts)
    if records := [part for part in parts if _is_record(part)]:
        if u is not None or len(records) < len(parts):
            raise ValueError("u: records bring their own inputs; give records only, and no u")
        steps = [_sampling_time(record) for record in records]
        u = cast("DataLike", [record.u for record in records]) if records[0].u is not None else None
        parts = [record.y for record in records]
    outputs = [as_table(part, _name("y", parts, s)) for s, part in enumerate(parts)]
    if dt is not None:
        if time is not None or not (dt > 0 and np.isfinite(dt)):
            raise ValueError(f"dt: expected a positive number, without time beside it, not {dt!r}")
        time = [float(dt) * np.arange(len(table.values)) for table in outputs]
    inputs = None
    if u is not None:
        u_parts = _sequences(u)
        if len(u_parts) != len(parts):
            raise ValueError(f"y has {len(parts)} sequences, u has {len(u_parts)}")
        inputs = [as_table(part, _name("u", u_parts, s)) for s, part in enumerate(u_parts)]
    return _assemble(outputs, inputs, steps, time)


def _assemble(
    outputs: list[Channels], inputs: list[Channels] | None, steps: Sequence[float | None], time: DataLike | None
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


def _refuse(bad: np.ndarray, table: Channels, what: str, where: str, why: str) -> None:
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        name = table.names[column] if table.names else f"{what}{column + 1}"
        raise ValueError(f"{what}{where}: row {row} of {name} is {why}")


def _times(outputs: list[Channels], steps: Sequence[float | None], time: DataLike | None) -> list[Floats]:
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


def _is_record(value: object) -> TypeGuard[Record]:
    """Whether this is a record with inputs and outputs, such as Input_output_data."""
    if isinstance(value, (np.ndarray, list, tuple, dict)) or hasattr(value, "columns") or hasattr(value, "dims"):
        return False
    return hasattr(value, "u") and hasattr(value, "y")


def _sampling_time(record: object) -> float | None:
    step = getattr(record, "sampling_time", None)
    return float(step) if isinstance(step, (int, float, np.number)) and step > 0 else None


def _sequences(value: object) -> list[object]:
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


def _name(letter: str, parts: list[object], s: int) -> str:
    return letter if len(parts) == 1 else f"{letter} of sequence {s}"
