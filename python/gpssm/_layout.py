"""How the rows of a record become the rows of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict


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
