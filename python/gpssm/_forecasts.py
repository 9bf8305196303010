"""Predictions: the transition function, free runs, outputs steps ahead."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ._arguments import checked
from ._data import DataLike, as_data
from ._fitted import QUANTILES, Fitted, InitialState, filter_options, warn
from ._settings import Proposal
from ._tables import as_points
from ._types import Floats


class Forecasts(Fitted):
    """Methods of `gpssm.Result` that predict."""

    @checked
    def f(
        self,
        x: ArrayLike,
        u: ArrayLike | None = None,
        *,
        next_state: bool = False,
        quantiles: Sequence[float] = QUANTILES,
    ) -> xr.Dataset:
        """Posterior of the transition function at given points: a mixture over all draws (eq. 11).

        Parameters
        ----------
        x : array_like, (n, n_x)
        u : array_like, (n, n_u), optional
        next_state : bool
            Whether process noise is added: the next state instead of f.
        quantiles : list of float
            Probabilities of the quantiles.

        Returns
        -------
        xarray.Dataset
            ``mean`` and ``sd`` (point, state), ``cov`` (point, state, state2), ``quantiles`` (quantile, point,
            state).

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> result.f([-0.5, 0.0, 0.5])["mean"].sizes
        Frozen({'point': 3, 'state': 1})
        """
        x_star = as_points(x, len(self.state_names), "x")
        u_star = as_points(u, self.data.n_u, "u")
        found = self._posterior.predict(x_star, u_star, next_state, [float(q) for q in quantiles])
        warn(found["warnings"])
        names = self.state_names
        cov = found["cov"]
        return xr.Dataset(
            {
                "mean": (("point", "state"), found["mean"]),
                "sd": (("point", "state"), np.sqrt(np.diagonal(cov, axis1=1, axis2=2))),
                "cov": (("point", "state", "state2"), cov),
                "quantiles": (("quantile", "point", "state"), found["quantiles"]),
            },
            {"state": names, "state2": names, "quantile": list(quantiles)},
        )

    @checked
    def simulate(
        self,
        u: DataLike | None = None,
        *,
        steps: int | None = None,
        y: DataLike | None = None,
        n_init: int | None = None,
        initial: InitialState = "model",
        paths: int = 1000,
        process_noise: bool = True,
        sensor_noise: bool = True,
        quantiles: Sequence[float] = QUANTILES,
        seed: int = 1,
        max_draws: int | None = 200,
        raw: bool = False,
    ) -> xr.Dataset:
        """Run the fitted system freely under inputs, with one function drawn for each path.

        Every row is simulated, also by a model of every k-th row. Prediction intervals of outputs are calibrated
        where the model has a calibration (``states="auto"``).

        Parameters
        ----------
        u : array_like, (T, n_u), optional
            Inputs; without inputs give `steps`.
        steps : int, optional
            Number of rows to simulate, for models without inputs.
        y : array_like, (n, n_y), optional
            Outputs of the first rows, from which the initial state is inferred before the paths run free.
        n_init : int, optional
            How many rows of `y` are used for that; all by default.
        initial : "model", "last", ("last", sequence) or array_like (n_x,)
            Where paths start: from p(x_0), from the end of the training record, or from a known state.
        paths : int
            Number of simulated paths.
        process_noise, sensor_noise : bool
            Whether noise is added to states and outputs.
        quantiles : list of float
            Probabilities of the quantiles.
        seed : int
            Seed of the simulation.
        max_draws : int, optional
            Number of draws that are used, spread evenly over all of them; None for all.
        raw : bool
            Whether calibration is left out.

        Returns
        -------
        xarray.Dataset
            ``y`` (path, time, output), ``x`` (path, time, state), and of both ``_mean``, ``_sd``, ``_quantile``.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> run = result.simulate(steps=12, y=y, n_init=10, paths=50)
        >>> run["y"].sizes
        Frozen({'path': 50, 'time': 12, 'output': 1})
        >>> interval = run["y_quantile"].sel(quantile=[0.05, 0.95])
        """
        self._check_sensor()
        inputs, n_rows = self._inputs(u, steps)
        if n_init is not None and y is None:
            raise ValueError("n_init: give the outputs of these rows, too, as y")
        first = None if y is None else as_data(y).y[0][: None if n_init is None else n_init]
        if first is not None and first.shape[1] != self.data.n_y:
            raise ValueError(f"y: expected shape (n, {self.data.n_y}), not {first.shape}")
        options = {"n_paths": paths, "process_noise": process_noise, "sensor_noise": sensor_noise, "seed": seed}
        start = self._initial(initial)
        found = self._some_draws(max_draws).simulate(inputs, n_rows, first, start, json.dumps(options), bool(raw))
        warn(found["warnings"])
        return self._intervals({"x": found["x"], "y": found["y"]}, np.arange(n_rows, dtype=float), quantiles)

    def _inputs(self, u: DataLike | None, steps: int | None) -> tuple[Floats | None, int]:
        """Inputs as they were measured, and the number of rows."""
        if not self._n_u:
            if u is not None or steps is None:
                raise ValueError("steps: the model has no inputs; give the number of rows")
            return None, int(steps)
        if steps is not None:
            raise ValueError("steps: the rows of u say how long the run is")
        given = as_points(None if u is None else as_data(u).y[0], self._n_u, "u")
        return given, len(given)

    @checked
    def predict(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        horizon: int = 1,
        samples: int = 500,
        initial: InitialState = "model",
        quantiles: Sequence[float] = QUANTILES,
        functions: int = 50,
        particles: int = 50,
        waves: int = 256,
        forgetting: float = 1.0,
        proposal: Proposal = "auto",
        seed: int = 1,
    ) -> xr.Dataset:
        """Predict outputs `horizon` steps ahead along a record: y_{t+k} given y_{0:t}.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        horizon : int
            Number of steps ahead; for a free run see `simulate`.
        samples : int
            Number of samples of each row.
        initial : "model", "last", ("last", sequence) or array_like (n_x,)
            Where the filter starts, as for `simulate`.
        quantiles : list of float
            Probabilities of the quantiles.
        functions, particles, waves, forgetting, proposal, seed
            The filter, see `filter`.

        Returns
        -------
        xarray.Dataset
            ``y`` (path, time, output) with ``y_mean``, ``y_sd``, ``y_quantile``, and ``log_score`` (time); the
            first row is the first that can be predicted.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> result.predict(y, horizon=2, samples=20, functions=10)["y"].sizes
        Frozen({'path': 20, 'time': 28, 'output': 1})
        """
        self._check_sensor()
        data, outputs, inputs = self._record(y, u)
        found = self._posterior.predict_ahead(
            outputs,
            inputs,
            int(horizon),
            int(samples),
            self._initial(initial),
            filter_options(functions, particles, waves, forgetting, proposal, seed),
        )
        warn(found["warnings"])
        time = data.time[0][found["first_row"] :]
        intervals = self._intervals({"y": found["y"]}, time, quantiles)
        return intervals.assign(log_score=("time", found["log_score"]))
