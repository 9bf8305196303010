"""Settings of the sampler: the table ``sampler`` of a run file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, cast

from . import _core
from ._suggest import refuse_unknown

Proposal = Literal["auto", "bootstrap", "adapted", "shortlist"]
"""How a particle filter proposes states."""

Resampling = Literal["systematic", "multinomial"]
"""How a particle filter draws ancestors."""


StartAt = Literal["search", "outputs", "mean"]
"""Where a chain begins."""


class Start(TypedDict, total=False):
    """How a chain finds its first path."""

    restarts: int
    particles: int | None


class Sampler(TypedDict, total=False):
    """Settings of a run; see `gpssm.fit`."""

    seed: int
    chains: int
    tune: int
    draws: int | None
    ess: int
    budget: str
    particles: int
    threads: int | None
    resampling: Resampling
    proposal: Proposal
    start_at: StartAt
    narx: bool
    point: bool
    start: Start
    max_memory_mb: int


WHOLE = {"seed": 0, "tune": 0, "chains": 1, "draws": 1, "ess": 1, "particles": 1, "threads": 1, "max_memory_mb": 1}
"""Whole numbers and the smallest value of each."""


def merged(defaults: Sampler, given: Mapping[str, object]) -> Sampler:
    """Settings of which those that are given (not None) replace the defaults."""
    own = {name: value for name, value in given.items() if value is not None}
    if "ess" in own and "draws" in own:
        raise ValueError("ess: a fixed number of draws is asked for; give ess or draws")
    if own.get("point"):
        if beside := next((name for name in ("draws", "ess", "chains") if name in own), None):
            raise ValueError(f"{beside}: a point estimate is one draw of one chain; leave {beside} out")
        keys = ("draws", "ess", "chains")
        defaults = cast("Sampler", {name: value for name, value in defaults.items() if name not in keys})
    if "budget" in own:
        own["budget"] = budget_text(own["budget"])
    if "ess" in own:
        # What is asked for now replaces a number of draws that was fixed before.
        defaults = cast("Sampler", {name: value for name, value in defaults.items() if name != "draws"})
    refuse_unknown("sampler", own, Sampler.__annotations__)
    checked = {name: whole(name, value, WHOLE[name]) if name in WHOLE else value for name, value in own.items()}
    return cast("Sampler", {**defaults, **checked})


def budget_text(value: object) -> str:
    """Give a time limit as text: ``"10m"``, ``"none"``, or a number of seconds."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"budget: expected a time such as '10m', or seconds, not {value!r}")
    return _core.budget(value if isinstance(value, str) else f"{value}s")


def whole(name: str, value: object, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{name}: expected a whole number, not {value!r}")
    number: int = value.__index__()
    if number < least:
        raise ValueError(f"{name}: {value} is too small")
    return number
