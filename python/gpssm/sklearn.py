"""A thin estimator in the style of scikit-learn, for pipelines of tools that expect one.

Rows of a record depend on each other, so this is no regressor of independent samples: `fit` takes outputs and
inputs in the order of time.
"""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from sklearn.base import BaseEstimator

from ._data import DataLike
from ._fit import fit
from .bases import BasisLike
from .functions import FunctionLike
from .kernels import KernelLike
from .model import States
from .priors import PriorLike
from .result import Result
from .sensors import SensorLike

__all__ = ["GPSSM"]


class GPSSM(BaseEstimator):  # type: ignore[misc]
    """Gaussian process state-space model as an estimator.

    Parameters
    ----------
    states, kernel, mean, sensor, parameters, dynamics, lags
        Parts of the model, see `gpssm.Model`.
    draws, tune, chains, seed, particles, threads
        Settings, see `gpssm.fit`.

    Attributes
    ----------
    result_ : Result
        What the fit gave.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import clone
    >>> model = GPSSM(draws=5, tune=3, chains=1)
    >>> fitted = clone(model).fit(np.sin(0.4 * np.arange(20)))
    >>> fitted.simulate(steps=4, paths=10)["y"].shape
    (10, 4, 1)
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
        draws: int | None = None,
        tune: int | None = None,
        chains: int | None = None,
        seed: int | None = None,
        particles: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.states = states
        self.kernel = kernel
        self.mean = mean
        self.sensor = sensor
        self.parameters = parameters
        self.dynamics = dynamics
        self.lags = lags
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.seed = seed
        self.particles = particles
        self.threads = threads

    def fit(self, y: DataLike, u: DataLike | None = None) -> GPSSM:
        """Draw from the posterior given outputs and inputs.

        Returns
        -------
        GPSSM
            Itself, with ``result_``.
        """
        self.result_: Result = fit(y, u, progress_bar=False, **self.get_params(deep=False))
        return self

    def simulate(
        self, u: DataLike | None = None, *, steps: int | None = None, paths: int = 1000, seed: int = 1
    ) -> xr.Dataset:
        """Simulate the fitted system; see `gpssm.Result.simulate`."""
        return self._fitted().simulate(u, steps=steps, paths=paths, seed=seed)

    def score(
        self, y: DataLike, u: DataLike | None = None, *, n_init: int = 0, paths: int = 1000, seed: int = 1
    ) -> float:
        """R^2 of the median of a free run, averaged over the outputs; see `gpssm.Result.score`."""
        sthreads = self._fitted().score(y, u, n_init=n_init, paths=paths, seed=seed)
        return float(sthreads.loc["model", "r2"].mean())

    def _fitted(self) -> Result:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self, "result_")
        return self.result_
