"""Estimator in the conventions of scikit-learn: inputs are X, outputs are y, rows are in the order of time.

Rows depend on those before them. Split records with `TimeSeriesSplit` and ``initial="last"``, or by sequences;
shuffled folds make no sense. Pipelines may scale X; outputs are standardised inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from ._fit import fit
from ._types import Floats
from .bases import BasisLike
from .functions import FunctionLike
from .kernels import KernelLike
from .model import States
from .priors import PriorLike
from .result import Result
from .sensors import SensorLike

__all__ = ["GPSSM"]

PREDICTION = ("paths", "n_init", "initial")
"""Parameters that are not for the fit."""
MODEL = ("states", "kernel", "mean", "sensor", "parameters", "dynamics", "lags")
"""Parameters that say something of the model."""


class GPSSM(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process state-space model as a regressor.

    Parameters
    ----------
    states, kernel, mean, sensor, parameters, dynamics, lags
        Parts of the model, see `gpssm.Model`; one state for each output if none is given. ``states="auto"``
        chooses the model from the record.
    ess, budget, draws, tune, chains, seed, particles, restarts, threads
        Settings, see `gpssm.fit`.
    paths : int
        Number of simulated paths of a prediction.
    n_init : int
        Number of first rows whose outputs set the state in `score`; they are not scored.
    initial : "model" or "last"
        Where predictions start if there are no such rows: from p(x_0), or at the row after the training record, as
        the test rows of `TimeSeriesSplit` do.

    Attributes
    ----------
    result_ : Result
        What the fit gave.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import TimeSeriesSplit, cross_val_score
    >>> u = np.sin(0.3 * np.arange(40))
    >>> y = np.convolve(u, [0.0, 0.6, 0.3])[:40]
    >>> model = GPSSM(draws=5, tune=5, chains=1, paths=50, initial="last")
    >>> model.fit(u[:30, None], y[:30]).predict(u[30:, None]).shape
    (10,)
    >>> len(cross_val_score(model, u[:, None], y, cv=TimeSeriesSplit(2)))
    2
    """

    def __init__(
        self,
        states: States | None = None,
        kernel: KernelLike | None = None,
        mean: FunctionLike | None = None,
        sensor: SensorLike | None = None,
        parameters: Mapping[str, PriorLike] | None = None,
        dynamics: BasisLike | None = None,
        lags: int | None = None,
        ess: int | None = None,
        budget: str | float | None = None,
        draws: int | None = None,
        tune: int | None = None,
        chains: int | None = None,
        seed: int | None = None,
        particles: int | None = None,
        restarts: int | None = None,
        threads: int | None = None,
        paths: int = 1000,
        n_init: int = 0,
        initial: Literal["model", "last"] = "model",
    ) -> None:
        self.states = states
        self.kernel = kernel
        self.mean = mean
        self.sensor = sensor
        self.parameters = parameters
        self.dynamics = dynamics
        self.lags = lags
        self.ess = ess
        self.budget = budget
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.seed = seed
        self.particles = particles
        self.restarts = restarts
        self.threads = threads
        self.paths = paths
        self.n_init = n_init
        self.initial = initial

    def __sklearn_tags__(self) -> Tags:
        """Say what is taken: several outputs; and that rows without order are predicted poorly."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: ArrayLike | None, y: ArrayLike | None, sequences: Sequence[object] | None = None) -> GPSSM:
        """Draw from the posterior given inputs X and outputs y.

        Parameters
        ----------
        X : array_like, (T, n_u), or None
            Inputs; None for a model without inputs.
        y : array_like, (T,) or (T, n_y)
            Outputs; NaN is missing.
        sequences : array_like, (T,), optional
            Labels of sequences, each in one piece.

        Returns
        -------
        GPSSM
            Itself, with ``result_``.
        """
        if y is None:
            raise ValueError("GPSSM requires y to be passed, but the target y is None")
        inputs: Floats | None = None
        if X is not None:
            inputs = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        else:
            self.n_features_in_ = 0
        outputs = _outputs(y)
        check_consistent_length(*(rows for rows in (inputs, outputs, sequences) if rows is not None))
        self._one_column = outputs.ndim == 1
        parts = _parts(sequences, len(outputs))
        settings = {name: v for name, v in self.get_params(deep=False).items() if name not in PREDICTION}
        if all(settings[name] is None for name in MODEL):
            # Searches over parameters fit many models: none of them chooses its own, unless it is asked to.
            settings["states"] = 1 if outputs.ndim == 1 else outputs.shape[1]
        u = None if inputs is None else [inputs[part] for part in parts]
        self.result_: Result = fit([outputs[part] for part in parts], u, progress_bar=False, **settings)
        return self

    @overload
    def predict(
        self,
        X: ArrayLike | int,
        return_std: Literal[False] = False,
        *,
        y_init: ArrayLike | None = None,
        sequences: Sequence[object] | None = None,
    ) -> Floats: ...

    @overload
    def predict(
        self,
        X: ArrayLike | int,
        return_std: Literal[True],
        *,
        y_init: ArrayLike | None = None,
        sequences: Sequence[object] | None = None,
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self,
        X: ArrayLike | int,
        return_std: bool = False,
        *,
        y_init: ArrayLike | None = None,
        sequences: Sequence[object] | None = None,
    ) -> Floats | tuple[Floats, Floats]:
        """Predict outputs by a free run: medians of the simulated paths.

        Parameters
        ----------
        X : array_like, (T, n_u), or int
            Inputs; for a model without inputs the number of rows.
        return_std : bool
            Whether standard deviations of the predictions are given, too.
        y_init : array_like, (n, n_y), optional
            Outputs of the first rows, which set the state; without them see ``initial``.
        sequences : array_like, (T,), optional
            Labels of sequences; each runs on its own.

        Returns
        -------
        array, (T,) or (T, n_y)
            And the standard deviations, with ``return_std``.
        """
        check_is_fitted(self, "result_")
        if self.n_features_in_:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        elif not isinstance(X, int | np.integer):
            raise ValueError("X: the model has no inputs; give the number of rows")
        window = None if y_init is None else _outputs(y_init)
        n = int(X) if not self.n_features_in_ else len(X)  # type: ignore[arg-type]
        if self.initial not in ("model", "last"):
            raise ValueError(f"initial: expected 'model' or 'last', not {self.initial!r}")
        found = []
        for part in _parts(sequences, n):
            rows = part.stop - part.start
            run = self.result_.simulate(
                X[part] if self.n_features_in_ else None,  # type: ignore[index]
                steps=None if self.n_features_in_ else rows,
                y=window,
                initial=self.initial,
                paths=self.paths,
                quantiles=(0.5,),
            )
            found.append((run["y_quantile"].values[0], run["y_sd"].values))
        middle, sd = (np.concatenate(parts) for parts in zip(*found))
        if self._one_column:
            middle, sd = middle[:, 0], sd[:, 0]
        return (middle, sd) if return_std else middle

    def score(
        self,
        X: ArrayLike | int,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sequences: Sequence[object] | None = None,
    ) -> float:
        """R^2 of `predict` after the first ``n_init`` rows, averaged over the outputs.

        Parameters
        ----------
        X : array_like, (T, n_u), or int
            Inputs; for a model without inputs the number of rows.
        y : array_like, (T,) or (T, n_y)
            Outputs; rows with missing ones are not scored.
        sample_weight : array_like, (T,), optional
            Weights of the rows.
        sequences : array_like, (T,), optional
            Labels of sequences; each runs on its own.
        """
        from sklearn.metrics import r2_score

        outputs = _outputs(y)
        predicted, wanted, weights = [], [], []
        weight = np.ones(len(outputs)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        n = self.n_init
        for part in _parts(sequences, len(outputs)):
            rows = part.stop - part.start
            if n >= rows:
                raise ValueError(f"n_init: {n} of {rows} rows set the state, none are left to score")
            inputs = X[part] if not isinstance(X, int | np.integer) else rows  # type: ignore[index]
            own = outputs[part]
            predicted.append(self.predict(inputs, y_init=own[:n] if n else None)[n:])
            wanted.append(own[n:])
            weights.append(weight[part][n:])
        truth, guess, share = np.concatenate(wanted), np.concatenate(predicted), np.concatenate(weights)
        known = ~np.isnan(truth.reshape(len(truth), -1)).any(axis=1)
        return float(r2_score(truth[known], guess[known], sample_weight=share[known]))


def _outputs(y: ArrayLike) -> Floats:
    found: Floats = check_array(
        y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y", ensure_min_samples=1
    )
    return found


def _parts(sequences: Sequence[object] | None, n: int) -> list[slice]:
    """Rows of each sequence."""
    if sequences is None:
        return [slice(0, n)]
    labels = np.asarray(sequences).ravel()
    if len(labels) != n:
        raise ValueError(f"sequences: {len(labels)} labels for {n} rows")
    first = [0, *(int(i) + 1 for i in np.flatnonzero(labels[1:] != labels[:-1]))]
    if len({labels[i] for i in first}) < len(first):
        raise ValueError("sequences: the rows of a sequence must stand together")
    return [slice(a, b) for a, b in zip(first, [*first[1:], n])]
