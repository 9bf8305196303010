"""What ``states="auto"`` tried and chose."""

from __future__ import annotations

from typing import TypedDict


class Trial(TypedDict):
    """A candidate, and its scores in free runs over held-out parts of the record; none if it failed."""

    candidate: str
    crps: float | None
    rmse: float | None
    coverage_90: float | None


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
