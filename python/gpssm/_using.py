"""What a result can be used for: predictions, free runs, filtering, scores, smaller models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from . import _core
from ._arguments import checked
from ._chains import Chain, Draws
from ._data import Data, DataLike, as_data
from ._settings import Proposal, Sampler
from ._tables import as_points
from ._types import Floats
from .distilled import Distilled
from .model import Model

if TYPE_CHECKING:
    import pandas as pd

    from .result import Result

__all__ = ["Using"]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Probabilities of the quantiles, as in the tables of the program."""

InitialState = Literal["model", "last"] | tuple[Literal["last"], int] | ArrayLike
"""Where states start: from p(x_0), on from the end of a training sequence, or at known numbers."""


class ThinLoss(TypedDict):
    """Errors of a thinned mixture against that of all draws."""

    mean_error: float
    sd_error: float
    divergence: float


def _warn(found: Sequence[str]) -> None:
    # Over `checked` and the method itself, to the line of the user.
    for warning in found:
        warnings.warn(warning, UserWarning, stacklevel=4)


class Using:
    """Methods of `gpssm.Result` that put the draws to use."""

    model: Model
    data: Data
    chains: list[Chain]
    sampler: Sampler
    basis: str | None

    if TYPE_CHECKING:

        @property
        def _problem(self) -> _core.Problem: ...

        @property
        def state_names(self) -> list[str]: ...

    @cached_property
    def _posterior(self) -> _core.Posterior:
        return _core.Posterior(self._problem, [c.draws._to_core() for c in self.chains if len(c.draws)])

    def _measured(self, y: DataLike, u: DataLike | None) -> Data:
        """One sequence as it was measured."""
        data = as_data(y, u)
        data = data if data.measured is None else data.measured
        if len(data.y) != 1:
            raise ValueError(f"y: give one sequence at a time, not {len(data.y)}")
        if (data.n_y, data.n_u) != (self.data.n_y, self._n_u):
            raise ValueError(
                f"y has {data.n_y} outputs and u {data.n_u} inputs, the model has {self.data.n_y} and {self._n_u}"
            )
        return data

    def _record(self, y: DataLike, u: DataLike | None) -> tuple[Data, Floats, Floats | None]:
        """One sequence as the model sees it: its data, outputs and inputs."""
        data = self._measured(y, u)._with_layout(self.data.layout)
        return data, data.y[0], None if data.u is None else data.u[0]

    @property
    def _n_u(self) -> int:
        """Inputs of a record, without the past values that the model adds."""
        return (self.data if self.data.measured is None else self.data.measured).n_u

    def _check_sensor(self) -> None:
        """Refuse to draw outputs from a sensor that cannot be drawn from."""
        for name, (_, sample) in self.model._registry.sensors.items():
            if sample is None:
                raise ValueError(f"the sensor {name} has no sample function: give one to draw outputs from it")

    def _initial(self, initial: InitialState) -> str:
        if isinstance(initial, str):
            if initial == "model":
                return '"model"'
            if initial == "last":
                return json.dumps({"last_training": {"sequence": len(self.data.y) - 1}})
            raise ValueError(f"initial: expected 'model', 'last', ('last', sequence) or a state, not {initial!r}")
        if isinstance(initial, tuple) and len(initial) == 2 and initial[0] == "last":
            return json.dumps({"last_training": {"sequence": int(initial[1])}})
        x, n_x = np.ravel(np.asarray(initial, dtype=np.float64)), len(self.state_names)
        if x.shape != (n_x,):
            raise ValueError(f"initial: expected {n_x} numbers, one for each state, not {x.size}")
        return json.dumps({"given": x.tolist()})

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
        _warn(found["warnings"])
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
        found = self._posterior.simulate(inputs, n_rows, first, start, json.dumps(options), bool(raw))
        _warn(found["warnings"])
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

    def _intervals(self, samples: dict[str, Floats], time: Floats, quantiles: Sequence[float]) -> xr.Dataset:
        """Samples with their means, standard deviations and quantiles."""
        channels = {"x": ("state", self.state_names), "y": ("output", self.data.outputs)}
        found = xr.Dataset(coords={"time": time, "quantile": list(quantiles)})
        for name, values in samples.items():
            dim, labels = channels[name]
            found = found.assign_coords({dim: labels}).assign(
                {
                    name: (("path", "time", dim), values),
                    f"{name}_mean": (("time", dim), values.mean(axis=0)),
                    f"{name}_sd": (("time", dim), values.std(axis=0)),
                    f"{name}_quantile": (("quantile", "time", dim), np.quantile(values, list(quantiles), axis=0)),
                }
            )
        return found

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
            _filter_options(functions, particles, waves, forgetting, proposal, seed),
        )
        _warn(found["warnings"])
        time = data.time[0][found["first_row"] :]
        intervals = self._intervals({"y": found["y"]}, time, quantiles)
        return intervals.assign(log_score=("time", found["log_score"]))

    @checked
    def filter(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        initial: InitialState = "model",
        functions: int = 50,
        particles: int = 50,
        waves: int = 256,
        forgetting: float = 1.0,
        proposal: Proposal = "auto",
        seed: int = 1,
    ) -> xr.Dataset:
        """Filter a record online: x_t given y_{0:t}.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        initial : "model", "last", ("last", sequence) or array_like (n_x,)
            Where the filter starts, as for `simulate`.
        functions : int
            Number of functions drawn from the posterior.
        particles : int
            Number of particles of each function.
        waves : int
            Random Fourier features of the prior draw behind each function of an exact Gaussian process.
        forgetting : float
            Forgetting factor of the functions' weights, in (0, 1], for very long records.
        proposal : "auto", "bootstrap", "adapted" or "shortlist"
            How states are proposed.
        seed : int
            Seed of the filter.

        Returns
        -------
        xarray.Dataset
            ``mean``, ``sd`` (time, state) and ``log_marginal_likelihood`` (time), log p(y_t | y_{0:t-1}): low
            values mark rows that the model did not expect.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> result.filter(y, functions=10)["mean"].sizes
        Frozen({'time': 30, 'state': 1})
        """
        data, outputs, inputs = self._record(y, u)
        options = _filter_options(functions, particles, waves, forgetting, proposal, seed)
        found = self._posterior.filter(outputs, inputs, self._initial(initial), options)
        _warn(found["warnings"])
        return xr.Dataset(
            {
                "mean": (("time", "state"), found["mean"]),
                "sd": (("time", "state"), found["sd"]),
                "log_marginal_likelihood": ("time", found["log_marginal_likelihood"]),
            },
            {"time": data.time[0], "state": self.state_names},
        )

    @checked
    def smooth(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        paths: int = 500,
        quantiles: Sequence[float] = QUANTILES,
        functions: int = 50,
        particles: int = 50,
        waves: int = 256,
        forgetting: float = 1.0,
        proposal: Proposal = "auto",
        seed: int = 1,
    ) -> xr.Dataset:
        """Draw states of a new record given all its outputs.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        paths : int
            Number of paths.
        quantiles : list of float
            Probabilities of the quantiles.
        functions, particles, waves, forgetting, proposal, seed
            The filter, see `filter`.

        Returns
        -------
        xarray.Dataset
            ``x`` (path, time, state) with ``x_mean``, ``x_sd``, ``x_quantile``; log p(y) in the attributes.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> result.smooth(y, paths=20, functions=10)["x"].sizes
        Frozen({'path': 20, 'time': 30, 'state': 1})
        """
        data, outputs, inputs = self._record(y, u)
        options = _filter_options(functions, particles, waves, forgetting, proposal, seed)
        found = self._posterior.smooth(outputs, inputs, int(paths), options)
        _warn(found["warnings"])
        intervals = self._intervals({"x": found["x"]}, data.time[0], quantiles)
        return intervals.assign_attrs(log_marginal_likelihood=found["log_marginal_likelihood"])

    @checked
    def score(
        self,
        y: DataLike,
        u: DataLike | None = None,
        *,
        n_init: int = 0,
        after_training: bool = False,
        horizon: int | None = None,
        paths: int = 1000,
        levels: Sequence[float] = (0.5, 0.9, 0.95),
        seed: int = 1,
        raw: bool = False,
    ) -> pd.DataFrame:
        """Score a free run, or predictions `horizon` steps ahead, on a record, beside simple baselines.

        Every row of a free run is scored, with calibrated prediction intervals where the model has a calibration.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        n_init : int
            Number of rows at the beginning that set the state and are not scored.
        after_training : bool
            Whether the record continues the training record, so that the initial state is known.
        horizon : int, optional
            Number of steps ahead; a free run by default.
        paths : int
            Number of simulated paths.
        levels : list of float
            Probabilities of the central intervals whose coverage is measured.
        seed : int
            Seed of the simulation.
        raw : bool
            Whether calibration is left out.

        Returns
        -------
        pandas.DataFrame
            For each model and output rmse, nrmse = rmse / sd(y), fit = 100 (1 - nrmse) %, r2, mae, crps, coverage
            of central intervals, and log_score (mean log density of a row).

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> list(result.score(y, n_init=5, paths=20).columns[:3])
        ['rmse', 'nrmse', 'fit']
        """
        import pandas as pd

        self._check_sensor()
        data = self._measured(y, u)
        options = {
            "task": "simulation" if horizon is None else {"ahead": int(horizon)},
            "n_init": 0 if after_training else int(n_init),
            "after_training": len(self.data.y) - 1 if after_training else None,
            "n_paths": int(paths),
            "levels": list(levels),
            "filter": {"seed": int(seed)},
            "raw": bool(raw),
        }
        inputs = None if data.u is None else data.u[0]
        text, found = self._posterior.score(data.y[0], inputs, json.dumps(options))
        _warn(found)
        rows, index = [], []
        for scores in json.loads(text)["scores"]:
            for name, output in zip(self.data.outputs, scores["outputs"], strict=True):
                index.append((scores["name"], name))
                row = {key: output[key] for key in ("rmse", "nrmse", "fit", "r2", "mae", "crps")}
                row |= {f"coverage_{100 * c['level']:g}": c["share"] for c in output["coverage"]}
                rows.append(row | {"log_score": scores["log_score"], "n": output["n"]})
        return pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(index, names=["model", "output"]))

    @checked
    def thin(self, keep: int, *, method: Literal["herding", "random"] = "herding", seed: int = 1) -> Result:
        """Keep a few draws that say nearly the same as all (kernel herding, Chen, Welling, Smola 2010).

        Parameters
        ----------
        keep : int
            Number of draws to keep.
        method : "herding" or "random"
            How they are chosen.
        seed : int
            Seed of the choice.

        Returns
        -------
        Result
            With one chain of `keep` draws, and what is lost in its attribute ``loss``.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> few = result.thin(5)
        >>> few.n_draws, sorted(few.loss)
        (5, ['divergence', 'mean_error', 'sd_error'])
        """
        from .result import Result

        loss = json.loads(self._posterior.thin(int(keep), method, int(seed)))
        parts = [chain.draws for chain in self.chains if len(chain.draws)]
        everything = parts[0]
        for part in parts[1:]:
            everything = everything.followed_by(part)
        kept = np.asarray(loss.pop("kept"))
        draws = Draws(
            everything.theta[kept],
            [path[kept] for path in everything.paths],
            {name: values[kept] for name, values in everything.statistics.items()},
        )
        chain = Chain(0, None, None, draws, draws.head(0))
        sampler = self.sampler.copy()
        sampler |= {"chains": 1, "draws": int(keep)}
        result = Result(self.model, self.data, sampler, [chain], basis=self.basis)
        result.loss = loss
        return result

    @checked
    def distil(self, size: int | None = None, *, tolerance: float = 0.02, max_size: int = 200) -> Distilled:
        """Put one sparse Gaussian process in place of the mixture: a model that is evaluated in microseconds.

        Parameters
        ----------
        size : int, optional
            Number of inducing inputs; by default as few as keep the error of the mean below `tolerance`.
        tolerance : float
            Largest error of the mean, relative to the standard deviation of f.
        max_size : int
            Largest size that is tried.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(30))
        >>> result = gpssm.fit(y, draws=10, tune=10, chains=1, progress_bar=False)
        >>> result.distil(8)
        <gpssm.Distilled: 1 states, 0 inputs, inducing inputs [8]>
        """
        options = {"size": size, "tolerance": tolerance, "max_size": max_size}
        return Distilled(self._posterior.distil(json.dumps(options)))


def _filter_options(
    functions: int, particles: int, waves: int, forgetting: float, proposal: Proposal, seed: int
) -> str:
    options = {"functions": int(functions), "particles": int(particles), "waves": int(waves)}
    return json.dumps(options | {"forgetting": float(forgetting), "proposal": proposal, "seed": int(seed)})
