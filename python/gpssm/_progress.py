"""A progress bar for terminals and notebooks, without dependencies."""

from __future__ import annotations

import sys
import time
from typing import Protocol, cast

WORDS = {"start": "searching for a start", "tune": "warm-up", "sample": "sampling"}


class Progress(Protocol):
    """What is told how far the chains are."""

    def __call__(self, chain: int, phase: str, done: int, total: int) -> None:
        """Take note of a chain."""

    def close(self) -> None:
        """Finish."""


class Display(Protocol):
    """Output of a notebook that can be updated."""

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        """Replace what is shown."""


class Line:
    """One line of text that is drawn again and again: in a notebook, in a terminal, or nowhere."""

    def __init__(self) -> None:
        self.handle = _notebook_handle()
        self.terminal = self.handle is None and sys.stderr.isatty()
        self.width = 0

    def show(self, text: str) -> None:
        """Draw this in place of what stands there."""
        if self.handle is not None:
            self.handle.update({"text/plain": text}, raw=True)
        elif self.terminal:
            sys.stderr.write("\r" + text.ljust(self.width))
            sys.stderr.flush()
            self.width = len(text)

    def end(self) -> None:
        """End the line."""
        if self.terminal:
            sys.stderr.write("\n")


class Bar:
    """One bar for all chains: sweeps done of all sweeps, with the time left.

    Parameters
    ----------
    chains, tune : int
        What is to be done.
    draws : int or None
        Draws of each chain; none for a run that goes on until it is good.
    ess : int
        Effective sample size that such a run is to reach.
    label : str
        What stands before the bar.
    """

    def __init__(self, chains: int, tune: int, draws: int | None, ess: int, label: str = "gpssm") -> None:
        self.chains, self.tune, self.ess = chains, tune, ess
        self.total = None if draws is None else max(1, chains * (tune + draws))
        self.looked = ""
        self.done: dict[int, int] = {}
        self.phase: dict[int, str] = {}
        self.label = label
        self.began = time.monotonic()
        self.first: tuple[float, int] | None = None
        self.shown = 0.0
        self.line = Line()

    def __call__(self, chain: int, phase: str, done: int, total: int) -> None:
        """Take note of a chain, and draw at most ten times a second."""
        before = {"start": 0, "tune": 0, "sample": self.tune}[phase]
        self.done[chain] = 0 if phase == "start" else before + done
        self.phase[chain] = phase
        now = time.monotonic()
        if now - self.shown > 0.1:
            self.shown = now
            self.line.show(self.text())

    def look(
        self, draws: int, ess: float | None, of: str, r_hat: float | None, r_of: str, expected: int | None
    ) -> None:
        """Take note of what a look at all chains found."""
        found = f"ESS {ess:.0f} of {self.ess} ({of})" if ess is not None else f"ESS undefined ({of})"
        worst = f"R-hat {r_hat:.3f} ({r_of})" if r_hat is not None else f"R-hat undefined ({r_of})"
        self.looked = f", {found}, {worst} after {draws} draws"
        self.total = None if expected is None else self.chains * (self.tune + expected)

    def text(self) -> str:
        """Give the bar as a line of text."""
        done = sum(self.done.values())
        share = 0.0 if self.total is None else min(1.0, done / self.total)
        now = time.monotonic()
        if self.first is None and done:
            self.first = (now, done)
        left = ""
        if self.first and self.total is not None and self.first[1] < done < self.total:
            seconds = (now - self.first[0]) / (done - self.first[1]) * (self.total - done)
            left = f", {clock(seconds)} left"
        blocks = "█" * round(24 * share)
        phases = [phase for phase in ("start", "tune", "sample") if phase in self.phase.values()]
        word = WORDS[phases[0]] if phases else WORDS["start"]
        elapsed = clock(now - self.began)
        of = "" if self.total is None else f"/{self.total}"
        return f"{self.label} {share:4.0%} |{blocks:<24}| {done}{of} sweeps, {word}{self.looked}, {elapsed}{left}"

    def close(self) -> None:
        """Draw for the last time and end the line."""
        self.line.show(self.text())
        self.line.end()


class Steps:
    """A bar for work whose steps are counted.

    Parameters
    ----------
    label : str
        What stands before the bar.
    what : str
        What is counted.
    """

    def __init__(self, label: str, what: str = "rows") -> None:
        self.label, self.what, self.line = label, what, Line()

    def tell(self, done: int, of: int, words: str) -> None:
        """Draw the bar."""
        share = done / max(1, of)
        blocks = "█" * round(24 * share)
        self.line.show(f"{self.label} {share:4.0%} |{blocks:<24}| {done}/{of} {self.what}, {words}")

    def close(self) -> None:
        """End the line."""
        self.line.end()


def clock(seconds: float) -> str:
    """Give minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _notebook_handle() -> Display | None:
    """Give a display that can be updated, in a notebook."""
    module = sys.modules.get("IPython")
    if module is None:
        return None
    shell = module.get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    return cast("Display", display({"text/plain": ""}, raw=True, display_id=True))
