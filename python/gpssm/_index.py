"""Times of rows: order, equal steps, rows that are left out, and dates.

Times are numbers (float64) or dates (datetime64, UTC). Rows of a model are one step apart; where a record leaves
rows out, they become rows with missing outputs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from ._types import Floats

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = 0.01
"""Steps may differ by this much relative to their size: times are often rounded. As in the program."""

Times = NDArray[Any]
"""Numbers, or dates in UTC."""


@dataclass(frozen=True)
class Index:
    """Times of the rows of one sequence.

    Attributes
    ----------
    values : array of float64 or datetime64
        Dates are in UTC.
    zone : str or None
        Time zone of the dates, if they had one.
    frequency : str or None
        Frequency in the words of pandas, such as ``"MS"``, if pandas knows one.
    """

    values: Times
    zone: str | None = None
    frequency: str | None = None

    @property
    def has_dates(self) -> bool:
        """Whether the times are dates."""
        return bool(np.issubdtype(self.values.dtype, np.datetime64))

    @property
    def seconds(self) -> Floats:
        """Numbers as they are, dates as seconds since the first row."""
        if not self.has_dates:
            return np.ascontiguousarray(self.values, dtype=np.float64)
        return np.ascontiguousarray((self.values - self.values[0]) / np.timedelta64(1, "s"), dtype=np.float64)

    def seconds_since(self, origin: np.datetime64) -> Floats:
        """Dates as seconds since one of them."""
        return np.ascontiguousarray((self.values - origin) / np.timedelta64(1, "s"), dtype=np.float64)

    def part(self, rows: slice) -> Index:
        """Give some of the rows."""
        frequency = self.frequency if rows.step in (None, 1) else None
        return Index(self.values[rows], self.zone, frequency)

    def text(self, row: int) -> str:
        """Give the time of a row for messages, as clocks in its zone show it."""
        return _text(self.clock[row])

    @property
    def clock(self) -> Times:
        """Dates as clocks in their zone show them, and other times as they are."""
        if self.zone is None:
            return self.values
        import pandas as pd

        local = pd.DatetimeIndex(self.values).tz_localize("UTC").tz_convert(self.zone)
        return np.asarray(local.tz_localize(None), dtype="datetime64[ns]")

    def _clocks(self) -> list[Times]:
        """Where equal steps are looked for: in time itself, then on clocks, which change twice a year."""
        return [self.values] if self.zone is None else [self.values, self.clock]

    def after(self, n: int) -> Index:
        """Give the times of the `n` rows that follow."""
        if self.frequency is not None:
            import pandas as pd

            last = pd.Timestamp(self.values[-1])
            if self.zone is not None:
                last = last.tz_localize("UTC").tz_convert(self.zone)
            following = pd.date_range(last, periods=n + 1, freq=self.frequency)[1:]
            return Index(_utc(following), self.zone, self.frequency)
        rows = np.arange(1, n + 1)
        months = _months(self.values) if self.has_dates and not is_regular(self.values) else None
        if months is not None:
            return Index(_add_months(self.values[-1], rows * months[1]), self.zone)
        step = (self.values[-1] - self.values[0]) / (len(self.values) - 1)
        return Index(self.values[-1] + rows * step, self.zone)


class DatesTable(TypedDict, total=False):
    """Dates of a record as they stand in a store."""

    origin: str
    zone: str | None
    frequency: str | None
    measured: list[list[float]]


def dates_table(index: list[Index], origin: np.datetime64, *, measured: bool) -> DatesTable:
    """Dates of all sequences for a store; with the times as they were measured, where the model sees others."""
    whole = origin.astype("datetime64[s]")
    text = str(whole if whole == origin else origin)
    found = DatesTable(origin=text)
    for name in ("zone", "frequency"):
        words = {getattr(times, name) for times in index}
        if len(words) == 1 and (word := words.pop()) is not None:
            found[name] = word
    if measured:
        found["measured"] = [times.seconds_since(origin).tolist() for times in index]
    return found


def from_seconds(seconds: Floats, dates: DatesTable) -> Index:
    """Times of a store as dates again."""
    origin = np.datetime64(dates["origin"], "ns")
    # Seconds are exact to a part in 10^16: to nanoseconds over days, to microseconds over centuries.
    fine = np.abs(seconds).max(initial=0.0) < 1e6
    steps = np.rint(seconds * (1e9 if fine else 1e6)).astype(np.int64) * (1 if fine else 1000)
    return Index(origin + steps.astype("timedelta64[ns]"), dates.get("zone"), dates.get("frequency"))


def from_pandas(index: pd.Index, what: str) -> Index | None:
    """Times of a pandas index; none for the default index and for labels that are no times."""
    import pandas as pd

    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1:
        return None
    if isinstance(index, pd.DatetimeIndex):
        if index.hasnans:
            raise ValueError(f"{what}: row {int(np.argmax(index.isna()))} of the index has no date")
        frequency = index.freqstr
        if frequency is None and len(index) >= 3 and index.is_monotonic_increasing and index.is_unique:
            frequency = _inferred(index)
        return Index(_utc(index), None if index.tz is None else str(index.tz), frequency)
    values = np.asarray(index)
    if np.issubdtype(values.dtype, np.timedelta64):
        values = values / np.timedelta64(1, "s")
    if np.issubdtype(values.dtype, np.number):
        return from_values(values, what)
    return None


def from_values(values: object, what: str) -> Index:
    """Times in an array or a list: numbers or dates."""
    array = np.asarray(values)
    if array.dtype == object or array.dtype.kind in "USM":
        import pandas as pd

        try:
            found = from_pandas(pd.DatetimeIndex(pd.to_datetime(array.ravel())), what)
        except (TypeError, ValueError):
            raise ValueError(f"{what}: expected numbers or dates, found {array.ravel()[0]!r}") from None
        if found is not None:
            return found
    numbers = np.ascontiguousarray(array.ravel(), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what}: row {int(np.argmin(np.isfinite(numbers)))} has the time {numbers.min()}")
    return Index(numbers)


def positions(index: Index, what: str) -> NDArray[np.intp]:
    """Place of each row on a grid of equal steps, from 0; rows that are left out make places greater.

    Raises
    ------
    ValueError
        Where times repeat, go back, or are not on such a grid.
    """
    values = index.values
    if len(values) < 2:
        return np.arange(len(values))
    steps = np.diff(values)
    zero = np.timedelta64(0, "ns") if index.has_dates else 0.0
    if (wrong := np.flatnonzero(steps <= zero)).size:
        row = int(wrong[0]) + 1
        if steps[row - 1] == zero:
            raise ValueError(f"{what}: rows {row - 1} and {row} have the same time, {index.text(row)}")
        raise ValueError(
            f"{what}: row {row} has the time {index.text(row)}, before row {row - 1} with {index.text(row - 1)}; "
            "rows must be in the order of time, see sort_index()"
        )
    if index.frequency is not None:
        return np.arange(len(values))
    for clock in index._clocks():
        for multiples in (_multiples(clock), _month_multiples(clock) if index.has_dates else None):
            if multiples is not None:
                return np.concatenate([[0], np.cumsum(multiples)])
    usual = np.median(steps.astype(np.int64) if index.has_dates else steps)
    row = int(np.argmax(np.abs(steps.astype(np.float64) - float(usual)))) + 1
    raise ValueError(
        f"{what}: rows must be one step apart, but row {row} with {index.text(row)} is not whole steps "
        f"after row {row - 1} with {index.text(row - 1)}; bring the record to equal steps first, see resample()"
    )


def filled(index: Index, places: NDArray[np.intp]) -> Index:
    """The times of all places of the grid."""
    n = int(places[-1]) + 1
    if n == len(places):
        return index
    rows = np.arange(n)
    for values in index._clocks():
        even = _multiples(values) is not None
        months = _months(values) if index.has_dates and not even else None
        if even or months is not None:
            break
    if months is not None:
        grid = _add_months(values[0], rows * months[1])
    else:
        grid = values[0] + rows * ((values[-1] - values[0]) / (n - 1))
    frequency = index.frequency
    if index.zone is not None:
        import pandas as pd

        zone = index.zone if values is not index.values else "UTC"
        local = pd.DatetimeIndex(grid).tz_localize(zone, ambiguous=np.ones(n, bool), nonexistent="shift_forward")
        grid, frequency = _utc(local), _inferred(local.tz_convert(index.zone))
    grid[places] = index.values
    return Index(grid, index.zone, frequency)


def refuse_other_zones(index: Index, other: Index, what: str, of: str) -> None:
    """Dates with a time zone and dates without one cannot be compared."""
    if index.has_dates and other.has_dates and (index.zone is None) != (other.zone is None):
        words = [f"the time zone {zone}" if zone else "no time zone" for zone in (index.zone, other.zone)]
        raise ValueError(f"{what}: its dates have {words[0]}, those of {of} have {words[1]}; see tz_localize()")


def rows_at(wanted: Index, there: Index) -> NDArray[np.intp]:
    """Row of `there` at each time of `wanted`; -1 where there is none."""
    if wanted.has_dates != there.has_dates:
        return np.full(len(wanted.values), -1)
    values = there.values
    at = np.clip(np.searchsorted(values, wanted.values), 0, len(values) - 1)
    before = np.maximum(at - 1, 0)
    nearer = np.abs(values[before] - wanted.values) < np.abs(values[at] - wanted.values)
    at = np.where(nearer, before, at)
    step = np.min(np.diff(wanted.values)) if len(wanted.values) > 1 else None
    off = np.abs(values[at] - wanted.values)
    same = off == (np.timedelta64(0, "ns") if wanted.has_dates else 0.0)
    if step is not None:
        same |= off <= step * TOLERANCE
    return np.where(same, at, -1)


def is_regular(values: Times) -> bool:
    """Whether all steps are equal."""
    multiples = _multiples(values)
    return multiples is not None and bool((multiples == 1).all())


def _multiples(values: Times) -> NDArray[np.intp] | None:
    """Steps as multiples of the usual one; none if they are not."""
    steps = np.diff(values).astype(np.float64)
    usual = float(np.median(steps))
    multiples = np.rint(steps / usual)
    rounding = 4.0 * np.finfo(float).eps * max(abs(float(values.astype(np.float64)[i])) for i in (0, -1))
    off = np.abs(steps - multiples * usual)
    if (multiples < 1).any() or (off > TOLERANCE * multiples * usual + rounding).any():
        return None
    return multiples.astype(np.intp)


def _months(values: Times) -> tuple[NDArray[np.intp], int] | None:
    """Months of dates that fall on the same day, or on the last day, of their months, and the usual step."""
    days = values.astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    day = (days - months.astype("datetime64[D]")).astype(int)
    last = ((days + np.timedelta64(1, "D")).astype("datetime64[M]") > months).all()
    clock = values - days
    if not ((day == day[0]).all() or last) or not (clock == clock[0]).all():
        return None
    numbers = months.astype(np.intp)
    return numbers, int(np.median(np.diff(numbers)))


def _month_multiples(values: Times) -> NDArray[np.intp] | None:
    found = _months(values)
    if found is None or found[1] < 1:
        return None
    steps = np.diff(found[0])
    return steps // found[1] if (steps % found[1] == 0).all() else None


def _add_months(first: np.datetime64, months: NDArray[np.intp]) -> NDArray[np.datetime64]:
    """Dates so many months later, on the same day of the month, or on the last day where `first` is one."""
    day = first.astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    inside = day - month.astype("datetime64[D]")
    is_last = (day + np.timedelta64(1, "D")).astype("datetime64[M]") > month
    later = month + months
    if is_last and inside.astype(int) < 30:
        inside = np.timedelta64(30, "D")
    ends = (later + 1).astype("datetime64[D]") - np.timedelta64(1, "D")
    dates = np.minimum(later.astype("datetime64[D]") + inside, ends)
    found: NDArray[np.datetime64] = dates.astype("datetime64[ns]") + (first - day)
    return found


def _inferred(index: pd.DatetimeIndex) -> str | None:
    """Frequency that pandas sees in dates: a text before pandas 4, an object later."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pd.infer_freq(index)
    return found if found is None else str(getattr(found, "freqstr", found))


def _utc(index: pd.DatetimeIndex) -> NDArray[np.datetime64]:
    index = index if index.tz is None else index.tz_convert("UTC").tz_localize(None)
    return np.asarray(index, dtype="datetime64[ns]")


def _text(value: np.datetime64 | np.float64) -> str:
    if isinstance(value, np.datetime64):
        text = str(value.astype("datetime64[s]"))
        return text.removesuffix("T00:00:00")
    return f"{float(value):g}"
