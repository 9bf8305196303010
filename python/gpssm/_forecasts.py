"""Predictions: the transition function, free runs, outputs steps ahead."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ._arguments import checked
from ._data import Data, DataLike, as_data, in_order
from ._fitted import QUANTILES, Fitted, InitialState, filter_options, warn
from ._index import Index, positions, refuse_other_zones, rows_at
from ._settings import Proposal, whole
from ._tables import as_points, as_table
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
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
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
        """Run the fitted system freely under inputs; row 0 is the initial state, at the first row of u or y.

        With ``initial="last"`` row 0 is the row after the training record, as of `forecast`. Each path has one
        function drawn from the posterior. Every row is simulated, also by a model of every k-th row. Prediction
        intervals of outputs are calibrated where the model has a calibration (``states="auto"``).

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
            Where paths start: from p(x_0), at the row after a training sequence (a label, or its position from 0),
            or from a known state.
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
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> run = result.simulate(steps=12, y=y, n_init=10, paths=50)
        >>> run["y"].sizes
        Frozen({'path': 50, 'time': 12, 'output': 1})
        >>> interval = run["y_quantile"].sel(quantile=[0.05, 0.95])
        """
        inputs, n_rows, time = self._inputs(u, steps)
        if n_init is not None and y is None:
            raise ValueError("n_init: give the outputs of these rows, too, as y")
        first = None
        if y is not None:
            outputs = as_data(y)
            first = outputs.y[0][: None if n_init is None else n_init]
            time = outputs.index[0] if time is None and outputs.index is not None else time
        if first is not None and first.shape[1] != self.data.n_y:
            raise ValueError(f"y: expected shape (n, {self.data.n_y}), not {first.shape}")
        options = {"n_paths": paths, "process_noise": process_noise, "sensor_noise": sensor_noise, "seed": seed}
        start = self._initial(initial)
        return self._free_run(inputs, n_rows, first, start, options, raw, max_draws, time, quantiles)

    def _free_run(
        self,
        inputs: Floats | None,
        n_rows: int,
        first: Floats | None,
        start: str,
        options: Mapping[str, object],
        raw: bool,
        max_draws: int | None,
        time: Index | None,
        quantiles: Sequence[float],
    ) -> xr.Dataset:
        """Paths with their intervals, at these times or counted from 0."""
        self._check_sensor()
        found = self._some_draws(max_draws).simulate(inputs, n_rows, first, start, json.dumps(options), bool(raw))
        warn(found["warnings"])
        times = np.arange(n_rows, dtype=float)
        if time is not None:
            known = time.values[:n_rows]
            missing = n_rows - len(known)
            times = np.concatenate([known, time.after(missing).values]) if missing else known
        return self._intervals({"x": found["x"], "y": found["y"]}, times, quantiles)

    def _inputs(self, u: DataLike | None, steps: int | None) -> tuple[Floats | None, int, Index | None]:
        """Inputs as they were measured, the number of rows, and their times if they are known."""
        if not self._n_u:
            if u is not None or steps is None:
                raise ValueError("steps: the model has no inputs; give the number of rows")
            return None, whole("steps", steps, 1), None
        if steps is not None:
            raise ValueError("steps: the rows of u say how long the run is")
        given, time = self._future(u)
        return given, len(given), time

    def _future(self, u: DataLike | None) -> tuple[Floats, Index | None]:
        """Rows of inputs, one is enough, and their times if they are known."""
        if u is None:
            as_points(None, self._n_u, "u")
        own = self.data if self.data.measured is None else self.data.measured
        table = as_table(u.y[0] if isinstance(u, Data) else u, "u")
        values = as_points(table.values, self._n_u, "u")
        if not np.isfinite(values).all():
            raise ValueError(f"u: row {int(np.argwhere(~np.isfinite(values))[0][0])} is not finite")
        if table.names is not None and own.named[1]:
            values = in_order(values, table.names, own.inputs, "u: the training record")
        if table.time is not None and (np.diff(positions(table.time, "u")) > 1).any():
            raise ValueError("u: its index leaves rows out; inputs must be known in every row")
        return values, table.time

    @checked
    def forecast(
        self,
        steps: int | None = None,
        u: DataLike | None = None,
        *,
        sequence: int | str = -1,
        paths: int = 1000,
        process_noise: bool = True,
        sensor_noise: bool = True,
        quantiles: Sequence[float] = QUANTILES,
        seed: int = 1,
        max_draws: int | None = 200,
        raw: bool = False,
    ) -> xr.Dataset:
        """Predict the rows after the training record; row 0 is the row after its last one.

        Each path goes on from the last state of a draw, with one function from the posterior. Times continue those
        of the record: dates stay dates.

        Parameters
        ----------
        steps : int, optional
            Number of rows; with inputs as many as `u` has after the record.
        u : array_like or frame, (steps, n_u), optional
            Inputs of these rows, needed if the model has inputs. Where record and `u` have dates, rows are taken
            by their dates; earlier rows are left out.
        sequence : int or str
            The training sequence that is continued: its position, or its label.
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
        >>> import numpy as np, pandas as pd, gpssm
        >>> dates = pd.date_range("2020-01-01", periods=30, freq="MS")
        >>> y = pd.Series(np.sin(0.4 * np.arange(30)), index=dates)
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
        >>> ahead = result.forecast(12, paths=50)
        >>> str(ahead["time"].values[0])[:10], ahead.sizes["time"]
        ('2022-07-01', 12)
        """
        if steps is not None and not isinstance(steps, int | np.integer):
            raise ValueError(f"steps: expected a number of rows, not a {type(steps).__name__}; inputs are u=...")
        s = self.data._position(sequence, "sequence")
        own = self.data if self.data.measured is None else self.data.measured
        index = own._index(s)
        inputs: Floats | None = None
        if self._n_u:
            inputs = self._following(u, index, steps)
            n = len(inputs)
        elif u is not None or steps is None:
            raise ValueError("steps: the model has no inputs; give the number of rows after the record")
        else:
            n = whole("steps", steps, 1)
        options = {"n_paths": paths, "process_noise": process_noise, "sensor_noise": sensor_noise, "seed": seed}
        start = json.dumps({"last_training": {"sequence": s}})
        found = self._free_run(inputs, n, None, start, options, raw, max_draws, index.after(n), quantiles)
        if inputs is not None:
            found = found.assign_coords(input=own.inputs).assign(u=(("time", "input"), inputs))
        return found

    def _following(self, u: DataLike | None, index: Index, steps: int | None) -> Floats:
        """Inputs of the rows after the record."""
        if u is None:
            raise ValueError(
                f"u: the model has {self._n_u} inputs; give their values for the rows after the record"
            )
        values, time = self._future(u)
        if time is not None and self.data.index is not None:
            if time.has_dates != index.has_dates:
                raise ValueError("u: its index has no dates, that of the training record has")
            refuse_other_zones(time, index, "u", "the training record")
            first = int(np.searchsorted(time.values, index.values[-1], side="right"))
            n = len(values) - first if steps is None else whole("steps", steps, 1)
            wanted = index.after(max(n, 1))
            rows = rows_at(wanted, time)
            if (rows < 0).any():
                raise ValueError(f"u: there is no row for {wanted.text(int(np.argmax(rows < 0)))}")
            return np.ascontiguousarray(values[rows])
        if steps is not None and whole("steps", steps, 1) != len(values):
            raise ValueError(f"steps: {steps} rows, but u has {len(values)}")
        return values

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
        """Predict outputs `horizon` steps ahead along a record; row 0 is the record's row `horizon`, given row 0.

        Row t is y_{t+k} given y_{0:t}, and the last one is the end of the record; for rows after it see
        `forecast`.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        horizon : int
            Number of steps ahead, k; for a free run see `simulate`.
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
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False, states=1)
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
        time = data.times()[found["first_row"] :]
        intervals = self._intervals({"y": found["y"]}, time, quantiles)
        return intervals.assign(log_score=("time", found["log_score"]))
