"""What ``states="auto"`` tried and chose."""

from __future__ import annotations

from typing import Required, TypedDict, cast

from ._types import Table


class Trial(TypedDict, total=False):
    """A candidate, and its scores in free runs over held-out parts of the record; without scores if it failed."""

    candidate: Required[str]
    crps: float
    rmse: float
    coverage_90: float


class Calibration(TypedDict, total=False):
    """How prediction intervals of free runs are scaled: the table ``calibration`` of a run file."""

    scale: float
    constant: list[float]
    range: list[tuple[float, float]]


class Choice(TypedDict):
    """Candidates, the index of the one that was chosen, calibration of its intervals, and remarks.

    ``constant_crps`` and ``linear_crps`` are those of a constant and of the best linear model over the same rows.
    """

    trials: list[Trial]
    chosen: int | None
    constant_crps: float | None
    linear_crps: float | None
    calibration: Calibration | None
    notes: list[str]


def as_keys(choice: Choice) -> Table:
    """The table ``choice`` of a run file."""
    names = ("trials", "chosen", "constant_crps", "linear_crps")
    keys = {name: cast("Table", choice)[name] for name in names}
    return {name: value for name, value in keys.items() if value not in (None, [])}


def from_keys(table: Table, calibration: Calibration | None) -> Choice | None:
    """What a stored run says of its choice; none if it was not chosen."""
    if not table:
        return None
    found: Table = {"chosen": None, "constant_crps": None, "linear_crps": None, "notes": []} | table
    return cast("Choice", found | {"calibration": calibration})
