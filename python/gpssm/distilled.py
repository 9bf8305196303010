"""Small models for real-time use, made by `gpssm.Result.distil`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arguments import checked
from ._tables import as_points
from ._types import Floats

__all__ = ["Distilled"]


class DistilComparison(TypedDict):
    """Errors of the posterior and of the distilled model on the same training rows, by output; fits in percent."""

    n_rows: int
    posterior_rmse: list[float | None]
    distilled_rmse: list[float | None]
    posterior_fit: list[float | None]
    distilled_fit: list[float | None]


class DistilLoss(TypedDict):
    """Errors of f against the mixture, by state, on points that were not used in the fit.

    Beside them the draws that were averaged; ``free_run`` and ``one_step`` compare the distilled model with the
    full posterior on the training record.
    """

    mean_rmse: list[float]
    mean_error: list[float]
    sd_rmse: list[float]
    sd_error: list[float]
    n_points: int
    n_draws: int
    n_mapped: int
    n_left_out: int
    free_run: DistilComparison | None
    one_step: DistilComparison | None


class _Sparse(TypedDict):
    n_inducing: int


class _State(TypedDict, total=False):
    sparse: _Sparse


class _Content(TypedDict):
    """What is read here of the file; the rest is for the engine."""

    n_x: int
    n_u: int
    states: list[_State]
    scenarios: list[object]
    loss: DistilLoss


class Distilled:
    """One sparse Gaussian process for each state, evaluated in microseconds; made by `Result.distil`.

    Examples
    --------
    >>> import numpy as np, gpssm
    >>> result = gpssm.fit(np.sin(0.4 * np.arange(30)), draws=10, tune=10, chains=1, progress_bar=False, states=1)
    >>> small = result.distil(5, max_loss=None)
    >>> small
    <gpssm.Distilled: 1 states, 0 inputs, inducing inputs [5]>
    >>> mean, sd = small([0.1, 0.5])
    >>> mean.shape, small.jacobian([0.1, 0.5]).shape
    ((2, 1), (2, 1, 1))
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._content: _Content = json.loads(text)

    def __call__(self, x: ArrayLike, u: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation of f at points, (n, n_x) each."""
        mean, variance, _ = self._evaluate(x, u)
        return mean, np.sqrt(variance)

    @checked
    def jacobian(self, x: ArrayLike, u: ArrayLike | None = None) -> Floats:
        """Derivatives of the mean of f with respect to (x, u), (n, n_x, n_x + n_u).

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
        >>> result.distil(size=6, max_loss=None).jacobian([0.0, 0.5]).shape
        (2, 1, 1)
        """
        return self._evaluate(x, u)[2]

    def _evaluate(self, x: ArrayLike, u: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
        n_x, n_u = self._content["n_x"], self._content["n_u"]
        points, inputs = as_points(x, n_x, "x"), as_points(u, n_u, "u")
        if n_u and len(points) != len(inputs):
            raise ValueError(f"x has {len(points)} rows, u has {len(inputs)}")
        return _core.evaluate_distilled(self._text, points, inputs)

    @property
    def loss(self) -> DistilLoss:
        """What was lost against the mixture over all draws, on points that were not used in the fit."""
        return self._content["loss"]

    @property
    def n_scenarios(self) -> int:
        """Number of posterior functions beside the mean."""
        return len(self._content["scenarios"])

    @checked
    def save(self, out: str | Path) -> None:
        """Write the model to a file, as JSON.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> result = gpssm.fit(y, draws=10, tune=5, chains=1, progress_bar=False, states=1)
        >>> small = result.distil(size=6, max_loss=None)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     small.save(folder + "/small.json")
        ...     gpssm.Distilled.load(folder + "/small.json") == small
        True
        """
        Path(out).write_text(self._text)

    @classmethod
    @checked
    def load(cls, path: str | Path) -> Distilled:
        """Read a model that `save` or ``gpssm distil`` wrote; see `save` for an example."""
        return cls(Path(path).read_text())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distilled) and self._text == other._text

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        n_x, n_u = self._content["n_x"], self._content["n_u"]
        sizes = [state["sparse"]["n_inducing"] for state in self._content["states"] if "sparse" in state]
        return f"<gpssm.Distilled: {n_x} states, {n_u} inputs, inducing inputs {sizes}>"
