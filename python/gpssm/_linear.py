"""A model near a point: matrices, poles, gains, step responses, and states that stay."""

from __future__ import annotations

import json
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from ._arguments import checked
from ._fitted import Fitted


class Interval(TypedDict):
    """Mean over draws, and an interval."""

    mean: float
    low: float
    high: float


class Pole(TypedDict):
    """An eigenvalue of the mean of A, with intervals over the draws."""

    re: float
    im: float
    modulus: Interval
    imaginary: Interval


class StepResponse(TypedDict):
    """Deviation of the outputs (row, output) after one input rises by one."""

    input: int
    rows: list[list[Interval]]


class Linearised(TypedDict):
    """x' = f + a (x - x*) + b (u - u*), y = h + c (x - x*) + d (u - u*), entries by row."""

    x: list[float]
    u: list[float]
    level: float
    n_draws: int
    f: list[Interval]
    a: list[list[Interval]]
    b: list[list[Interval]]
    h: list[Interval]
    c: list[list[Interval]]
    d: list[list[Interval]]
    poles: list[Pole]
    stable: float
    dc_gain: list[list[Interval]] | None
    step_responses: list[StepResponse]


class Rest(TypedDict):
    """A state that stays where it is, its outputs, and the share of draws that have one."""

    u: list[float]
    level: float
    x: list[Interval]
    y: list[Interval]
    found: float


def _numbers(values: ArrayLike | None) -> list[float]:
    return [] if values is None else [float(value) for value in np.atleast_1d(np.asarray(values, float))]


class Linear(Fitted):
    """Methods of `gpssm.Result` that look at the model near a point."""

    @checked
    def linearize(
        self,
        x: ArrayLike,
        u: ArrayLike | None = None,
        *,
        level: float = 0.9,
        steps: int | None = None,
        seed: int = 1,
    ) -> Linearised:
        """Linearise the model at a point: A, B, C, D, poles, dc gain and step responses with intervals.

        Intervals are over the draws, with what is not known of f within each. Steps are those of the model.

        Parameters
        ----------
        x, u : array
            The point, as many numbers as the model has states and inputs.
        level : float
            Probability of the intervals.
        steps : int, optional
            Rows of the step responses; by default until the slowest pole has left a hundredth.
        seed : int
            Seed of the draws of f.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> u = np.sin(0.5 * np.arange(40))
        >>> y = np.convolve(u, [0.0, 1.0, 0.5, 0.25])[:40]
        >>> result = gpssm.fit(y, u, states=1, draws=10, tune=10, chains=1, progress_bar=False)
        >>> near = result.linearize(0.1, 0.2)
        >>> len(near["poles"]), sorted(near["a"][0][0])
        (1, ['high', 'low', 'mean'])
        """
        options = (float(level), None if steps is None else int(steps), int(seed))
        found: Linearised = json.loads(self._posterior.linearise(_numbers(x), _numbers(u), *options))
        return found

    @checked
    def equilibrium(
        self, u: ArrayLike | None = None, x: ArrayLike | None = None, *, level: float = 0.9, seed: int = 1
    ) -> Rest:
        """Find the state that stays where it is under an input, near `x`, by default near the middle of the data.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> u = np.sin(0.5 * np.arange(40))
        >>> y = np.convolve(u, [0.0, 1.0, 0.5, 0.25])[:40]
        >>> result = gpssm.fit(y, u, states=1, draws=10, tune=10, chains=1, progress_bar=False)
        >>> rest = result.equilibrium(0.2)
        >>> len(rest["x"]), rest["found"] > 0
        (1, True)
        """
        start = None if x is None else _numbers(x)
        found: Rest = json.loads(self._posterior.equilibrium(start, _numbers(u), float(level), int(seed)))
        return found
