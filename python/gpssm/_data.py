"""What users have (arrays, frames, lists of them, records of benchmarks) as sequences of float64."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arguments import checked
from ._index import Index, Times, dates_table, filled, from_values, positions, refuse_other_zones, rows_at
from ._layout import Layout
from ._tables import Channels, as_table
from ._types import Floats
from ._warn import warn

Sequenced = tuple[list[object], list[str] | None]
"""Sequences, and their labels where there are some."""

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

    Where a model sees other rows (`layout`), `measured` holds the record as it was. `time` are numbers: where rows
    have dates, these are in `index`, and `time` counts seconds. `named` says whether outputs and inputs came with
    names.
    """

    y: list[Floats]
    u: list[Floats] | None
    time: list[Floats]
    outputs: list[str]
    inputs: list[str]
    sequences: list[str]
    layout: Layout = field(default_factory=Layout)
    measured: Data | None = None
    index: list[Index] | None = None
    named: tuple[bool, bool] = (False, False)

    def _labels(self) -> _core.Labels:
        """Names and times, as the extension takes them; dates as seconds since the first of them."""
        times, dates = self.time, None
        if self.index is not None:
            own = self if self.measured is None or self.measured.index is None else self.measured
            assert own.index is not None, "where the model sees dates, they were measured"
            origin = own.index[0].values[0]
            times = [index.seconds_since(origin) for index in self.index]
            dates = dates_table(own.index, origin, measured=own is not self)
        labels = self.outputs, self.inputs, self.sequences, [time.tolist() for time in times]
        return *labels, None if dates is None else json.dumps(dates)

    def _rows(self, first: int, last: int) -> Data:
        """Some rows of every sequence."""
        part = slice(first, last)
        u = None if self.u is None else [values[part] for values in self.u]
        index = None if self.index is None else [times.part(part) for times in self.index]
        time = [t[part] for t in self.time]
        return replace(self, y=[values[part] for values in self.y], u=u, time=time, index=index)

    def _first(self) -> Data:
        """The first sequence alone."""
        u = None if self.u is None else self.u[:1]
        index = None if self.index is None else self.index[:1]
        time, labels = self.time[:1], self.sequences[:1]
        return replace(self, y=self.y[:1], u=u, time=time, sequences=labels, index=index)

    def times(self, sequence: int = 0) -> Times:
        """Times of the rows of a sequence: dates where the record has dates, else numbers.

        Examples
        --------
        >>> as_data([1.0, 2.0, 3.0], time=["2020-01-01", "2020-02-01", "2020-03-01"]).times()[2]
        np.datetime64('2020-03-01T00:00:00.000000000')
        """
        return self._index(sequence).values

    def _index(self, sequence: int) -> Index:
        return Index(self.time[sequence]) if self.index is None else self.index[sequence]

    def _position(self, sequence: int | str, what: str) -> int:
        """Position of a sequence: labels are labels, whole numbers are positions from 0."""
        if isinstance(sequence, str):
            if sequence not in self.sequences:
                raise ValueError(f"{what}: there is no sequence {sequence!r} among {self.sequences}")
            return self.sequences.index(sequence)
        n = len(self.sequences)
        if isinstance(sequence, bool) or not hasattr(sequence, "__index__") or not -n <= sequence < n:
            raise ValueError(f"{what}: sequence {sequence!r}, but there are {n}: give a label or 0 .. {n - 1}")
        return sequence.__index__() % n

    def _with_layout(self, layout: Layout) -> Data:
        """The record as a model with this layout sees it."""
        if layout == Layout():
            return self
        k = layout.every
        y, u, inputs = _core.laid_out((layout.input_lags, layout.delay, k), self.y, self.u, self.inputs)
        time = [np.ascontiguousarray(t[::k]) for t in self.time]
        index = None if self.index is None else [times.part(slice(None, None, k)) for times in self.index]
        return Data(y, u, time, self.outputs, inputs, self.sequences, layout, self, index, self.named)

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


@checked
def as_data(
    y: DataLike,
    u: DataLike | None = None,
    *,
    time: DataLike | None = None,
    dt: float | None = None,
    sequence: str | None = None,
) -> Data:
    """Convert outputs and inputs to sequences.

    Parameters
    ----------
    y : array_like, frame, record, or list of them
        Outputs: (T,) or (T, n_y); pandas or polars frames and series; xarray arrays; objects with attributes
        ``u`` and ``y`` (such as ``Input_output_data`` of nonlinear_benchmarks), which bring their inputs along.
        A list of arrays, frames or records is a list of sequences that share the dynamics. So is a frame with an
        index of two levels, the label of the sequence and the time. NaN is missing.
    u : the same, optional
        Inputs, without missing values. Where y and u both have an index, rows are matched by it.
    time : array_like or list of them, optional
        Times of the rows, numbers or dates; by default the index of a frame, its column of dates, or row numbers.
        Rows must be in order and one step apart. Rows that are left out become rows with missing outputs.
    dt : float, optional
        Sampling time, if there are no times.
    sequence : str, optional
        Column of the frames with the label of the sequence that a row belongs to.

    Returns
    -------
    Data

    Examples
    --------
    >>> as_data([1.0, 2.0, float("nan")], u=[[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    <Data: 1 sequence, 3 rows, y ['y'], u ['u1', 'u2']>
    """
    if isinstance(y, Data):
        if u is not None:
            raise ValueError("u: these data bring their own inputs")
        return y
    parts, labels = _sequences(y, sequence, "y")
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
        u_parts, u_labels = _sequences(u, sequence, "u")
        if len(u_parts) != len(parts):
            raise ValueError(f"y has {len(parts)} sequences, u has {len(u_parts)}")
        if labels is not None and u_labels is not None and labels != u_labels:
            raise ValueError(f"y has the sequences {labels}, u has {u_labels}")
        inputs = [as_table(part, _name("u", u_parts, s)) for s, part in enumerate(u_parts)]
    index = _given_index(outputs, steps, time)
    return _assemble(outputs, inputs, index, labels)


def _given_index(
    outputs: list[Channels], steps: Sequence[float | None], time: DataLike | None
) -> list[Index | None]:
    """The index of every sequence: what is given beside y, that of y, or none."""
    if time is None:
        rows = [np.arange(len(table.values), dtype=np.float64) for table in outputs]
        made = [None if step is None else Index(row * step) for row, step in zip(rows, steps, strict=True)]
        return [table.time if step is None else step for table, step in zip(outputs, made, strict=True)]
    several = isinstance(time, (list, tuple)) and len(time) > 0 and np.ndim(time[0]) == 1
    given = [from_values(t, "time") for t in (time if several else [time])]  # type: ignore[union-attr]
    shapes = [(len(t.values),) for t in given]
    if shapes != [(len(table.values),) for table in outputs]:
        raise ValueError(f"time: shapes {shapes} do not fit the rows of y")
    return list(given)


def _assemble(
    outputs: list[Channels], inputs: list[Channels] | None, index: list[Index | None], labels: list[str] | None
) -> Data:
    several = len(outputs) > 1
    y, u, times = [], [], []
    for s, table in enumerate(outputs):
        where = f" in sequence {s}" if several else ""
        if len(table.values) < 2:
            raise ValueError(f"y{where}: {len(table.values)} rows; a transition needs at least two")
        values = _like_first(table, outputs[0], f"y{where}")
        _refuse(np.isinf(values), table, "y", where, "infinite; a missing output is NaN")
        own = index[s]
        if own is not None:
            values, own = _on_grid(values, own, f"y{where}")
        y.append(values)
        times.append(own)
        if inputs is not None:
            known = _matched(
                _like_first(inputs[s], inputs[0], f"u{where}"), inputs[s].time, own, len(values), where
            )
            _refuse(~np.isfinite(known), inputs[s], "u", where, "not finite; inputs must be known in every row")
            u.append(known)
    if np.isnan(np.concatenate(y)).all():
        raise ValueError("y: all outputs are missing")
    n_y, n_u = y[0].shape[1], u[0].shape[1] if u else 0
    dated = all(own is not None and own.has_dates for own in times)
    if not dated and any(own is not None and own.has_dates for own in times):
        raise ValueError("y: some sequences have dates and others have none")
    return Data(
        y,
        u if n_u else None,
        [np.arange(len(y[s]), dtype=np.float64) if own is None else own.seconds for s, own in enumerate(times)],
        outputs[0].names or default_names("y", n_y),
        (inputs[0].names if inputs else None) or default_names("u", n_u),
        labels or [str(s + 1) for s in range(len(outputs))],
        index=cast("list[Index]", times) if dated else None,
        named=(outputs[0].names is not None, bool(inputs) and inputs[0].names is not None),  # type: ignore[index]
    )


def default_names(letter: str, n: int) -> list[str]:
    """Names of columns that have none, as a model names them."""
    return [letter] if n == 1 else [f"{letter}{k + 1}" for k in range(n)]


def _like_first(table: Channels, first: Channels, what: str) -> Floats:
    """The columns of a sequence in the order of the first one."""
    if table.values.shape[1] != first.values.shape[1]:
        raise ValueError(f"{what} has {table.values.shape[1]} columns, the first sequence {first.values.shape[1]}")
    if table.names is None or first.names is None or table.names == first.names:
        return table.values
    return in_order(table.values, table.names, first.names, f"{what}: the first sequence")


def in_order(values: Floats, names: list[str], wanted: list[str], what: str) -> Floats:
    """Columns in another order; refused where they are other columns."""
    if sorted(names) != sorted(wanted):
        raise ValueError(f"{what} has the columns {wanted}, not {names}")
    return np.ascontiguousarray(values[:, [names.index(name) for name in wanted]])


def _on_grid(values: Floats, index: Index, what: str) -> tuple[Floats, Index]:
    """Rows one step apart; those that are left out are missing."""
    places = positions(index, what)
    n = int(places[-1]) + 1
    if n == len(values):
        return values, index
    if n > 10 * len(values):
        raise ValueError(
            f"{what}: the index leaves out {n - len(values)} of {n} rows; bring the record to equal steps first, "
            "see resample()"
        )
    grid = np.full((n, values.shape[1]), np.nan)
    grid[places] = values
    first = int(np.flatnonzero(np.diff(places) > 1)[0])
    warn(
        f"{what}: {n - len(values)} rows are left out, the first after {index.text(first)}; "
        "they become rows with missing outputs"
    )
    return grid, filled(index, places)


def _matched(values: Floats, own: Index | None, index: Index | None, n: int, where: str) -> Floats:
    """Inputs at the rows of y: by their index where both have one, else row by row."""
    if own is None or index is None:
        if len(values) != n:
            raise ValueError(f"y has {n} rows, u has {len(values)}{where}")
        return values
    refuse_other_zones(own, index, f"u{where}", "y")
    own = replace(own, zone=index.zone)
    positions(own, f"u{where}")
    rows = rows_at(index, own)
    if (rows < 0).any():
        row = int(np.argmax(rows < 0))
        raise ValueError(f"u{where}: there is no row for {index.text(row)}, which is row {row} of y")
    return np.ascontiguousarray(values[rows])


def _refuse(bad: np.ndarray, table: Channels, what: str, where: str, why: str) -> None:
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        name = (table.names or default_names(what, bad.shape[1]))[column]
        raise ValueError(f"{what}{where}: row {row} of {name} is {why}")


def _is_record(value: object) -> TypeGuard[Record]:
    """Whether this is a record with inputs and outputs, such as Input_output_data."""
    if isinstance(value, (np.ndarray, list, tuple, dict)) or hasattr(value, "columns") or hasattr(value, "dims"):
        return False
    return hasattr(value, "u") and hasattr(value, "y")


def _sampling_time(record: object) -> float | None:
    step = getattr(record, "sampling_time", None)
    return float(step) if isinstance(step, (int, float, np.number)) and step > 0 else None


def _sequences(value: object, column: str | None, what: str) -> Sequenced:
    """A list of sequences, of one if it is not a list, with their labels if they have some."""
    if column is not None or type(getattr(value, "index", None)).__name__ == "MultiIndex":
        return _labelled(value, column, what)
    if not isinstance(value, (list, tuple)):
        return [value], None
    if not value:
        raise ValueError("y: there is nothing in the list")
    if all(isinstance(part, (int, float, complex, str, np.number, np.bool_)) or part is None for part in value):
        return [value], None
    if all(isinstance(part, (list, tuple)) for part in value):
        # Rows of equal length are the rows of one table, lists of different lengths are sequences.
        return ([value] if len({len(part) for part in value}) == 1 else list(value)), None
    return list(value), None


def _labelled(value: object, column: str | None, what: str) -> Sequenced:
    """A frame cut into its sequences, by a column or by the first level of its index."""
    import pandas as pd

    if not hasattr(value, "columns") and not isinstance(value, pd.Series):
        raise ValueError(
            f"{what}: sequence {column!r} names a column, so give a frame, not {type(value).__name__}"
        )
    frame: Any = value
    if not isinstance(value, pd.DataFrame | pd.Series):
        frame = pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})
    if column is None:
        if frame.index.nlevels != 2:
            raise ValueError(
                f"{what}: an index of {frame.index.nlevels} levels; two levels are the sequence and its times"
            )
        labels = frame.index.get_level_values(0)
        frame = frame.set_axis(frame.index.get_level_values(1), axis=0)
    else:
        if column not in getattr(frame, "columns", ()):
            raise ValueError(f"{what}: there is no column {column!r} with the labels of sequences")
        labels = pd.Index(frame[column])
        frame = frame.drop(columns=column)
    names = list(dict.fromkeys(labels))
    parts: list[object] = []
    for name in names:
        part = frame[labels == name]
        counted = column is not None and type(frame.index).__name__ == "RangeIndex"
        parts.append(part.reset_index(drop=True) if counted else part)
    return parts, [str(name) for name in names]


def _name(letter: str, parts: list[object], s: int) -> str:
    return letter if len(parts) == 1 else f"{letter} of sequence {s}"
