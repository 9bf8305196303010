"""What a result can be used for: predictions, free runs, filtering, scores, smaller models."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from . import _core
from ._chains import Chain, Draws
from ._data import Data, Layout, as_data
from ._settings import Sampler
from ._types import Floats
from .model import Model

if TYPE_CHECKING:
    import pandas as pd

    from .result import Result

__all__ = ["Distilled", "Using"]

QUANTILES = (0.05, 0.5, 0.95)


def _warn(found: Sequence[str]) -> None:
    for warning in found:
        warnings.warn(warning, UserWarning, stacklevel=3)


def _points(value: ArrayLike | None, n: int, what: str) -> Floats:
    if value is None:
        if n:
            raise ValueError(f"{what}: the model has {n} of them, none are given")
        return np.zeros((0, 0))
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.ndim == 0:
        array = array.reshape(1, 1)
    if array.ndim == 1:
        array = array.reshape(-1, 1) if n == 1 else array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != n:
        raise ValueError(f"{what}: expected shape (n, {n}), not {np.shape(value)}")
    return array


class Using:
    """Methods of `gpssm.Result` that put the draws to use."""

    model: Model
    data: Data
    chains: list[Chain]
    settings: Sampler
    basis: str | None

    if TYPE_CHECKING:

        @property
        def _problem(self) -> _core.Problem: ...

        @property
        def state_names(self) -> list[str]: ...

    @cached_property
    def _posterior(self) -> _core.Posterior:
        return _core.Posterior(self._problem, [c.draws._to_core() for c in self.chains if len(c.draws)])

    def _record(self, y: Any, u: Any) -> Data:
        data = as_data(y, u)
        if len(data.y) != 1:
            raise ValueError(f"y: give one sequence at a time, not {len(data.y)}")
        own = self.data.layout
        if data.layout == own and own != Layout():
            return data
        if (data.n_y, data.n_u) != (self.data.n_y, self._n_u):
            raise ValueError(
                f"y has {data.n_y} outputs and u {data.n_u} inputs, the model has {self.data.n_y} and {self._n_u}"
            )
        return own.apply(data)

    @property
    def _n_u(self) -> int:
        """Inputs of a record, without the past values that the model adds."""
        return len(self.data.layout.inputs) or self.data.n_u

    def _check_sensor(self) -> None:
        """Refuse to draw outputs from a sensor that cannot be drawn from."""
        for name, (_, sample) in self.model._registry.sensors.items():
            if sample is None:
                raise ValueError(f"the sensor {name} has no sample function: give one to draw outputs from it")

    @staticmethod
    def _start(start: Any, n_x: int) -> str:
        if isinstance(start, str):
            if start == "model":
                return '"model"'
            if start == "last":
                return json.dumps({"last_training": {"sequence": 0}})
            raise ValueError(f"start: expected 'model', 'last', ('last', sequence) or a state, not {start!r}")
        if isinstance(start, tuple) and start and start[0] == "last":
            return json.dumps({"last_training": {"sequence": int(start[1])}})
        x = np.ravel(np.asarray(start, dtype=np.float64))
        if x.shape != (n_x,):
            raise ValueError(f"start: expected {n_x} numbers, one for each state, not {x.size}")
        return json.dumps({"given": x.tolist()})

    def f(
        self,
        x: ArrayLike,
        u: ArrayLike | None = None,
        *,
        noise: bool = False,
        quantiles: Sequence[float] = QUANTILES,
    ) -> xr.Dataset:
        """Posterior of the transition function at given points: a mixture over all draws (eq. 11).

        Parameters
        ----------
        x : array_like, (n, n_x)
        u : array_like, (n, n_u), optional
        noise : bool
            Whether process noise is added: the next state instead of f.
        quantiles : list of float

        Returns
        -------
        xarray.Dataset
            ``mean`` and ``sd`` (point, state), ``cov`` (point, state, state2), ``quantiles`` (quantile, point,
            state).
        """
        x_star = _points(x, len(self.state_names), "x")
        u_star = _points(u, self.data.n_u, "u")
        found = self._posterior.predict(x_star, u_star, noise, [float(q) for q in quantiles])
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

    def simulate(
        self,
        u: Any = None,
        *,
        steps: int | None = None,
        y: Any = None,
        start: Any = "model",
        paths: int = 1000,
        process_noise: bool = True,
        sensor_noise: bool = True,
        quantiles: Sequence[float] = QUANTILES,
        seed: int = 1,
    ) -> xr.Dataset:
        """Run the learned system freely under inputs, with one function drawn for each path.

        Parameters
        ----------
        u : array_like, (T, n_u), optional
            Inputs; without inputs give `steps`.
        steps : int, optional
            Rows to simulate, for models without inputs.
        y : array_like, (n_init, n_y), optional
            Outputs of the first rows, which the paths follow before they run free.
        start : "model", "last", ("last", sequence) or array_like (n_x,)
            From p(x_0), on from the end of the training record, or from a known state.
        paths : int
        process_noise, sensor_noise : bool
            Whether noise is added to states and outputs.
        quantiles : list of float
            Calibration of the result.
        seed : int

        Returns
        -------
        xarray.Dataset
            ``y`` (path, time, output), ``x`` (path, time, state), and of both ``_mean``, ``_sd``, ``_quantile``.
        """
        self._check_sensor()
        n_u, layout = self._n_u, self.data.layout
        if n_u:
            if steps is not None:
                raise ValueError("steps: the rows of u say how long the run is")
            given = _points(as_data(u).y[0] if u is not None else None, n_u, "u")
            inputs: Floats | None = layout.spread(np.ascontiguousarray(given[:: layout.every]))
            n_rows = len(given[:: layout.every])
        else:
            if u is not None or steps is None:
                raise ValueError("steps: the model has no inputs; give the number of rows")
            inputs, n_rows = None, len(range(0, int(steps), layout.every))
        first = None if y is None else np.ascontiguousarray(_points(y, self.data.n_y, "y")[:: layout.every])
        options = {"n_paths": paths, "process_noise": process_noise, "sensor_noise": sensor_noise, "seed": seed}
        found = self._posterior.simulate(
            inputs,
            n_rows,
            first,
            self._start(start, len(self.state_names)),
            json.dumps(options),
            json.dumps({"seed": seed}),
        )
        _warn(found["warnings"])
        time = layout.every * np.arange(n_rows, dtype=float)
        return self._bands({"x": found["x"], "y": found["y"]}, time, quantiles)

    def _bands(self, samples: dict[str, Floats], time: Floats, quantiles: Sequence[float]) -> xr.Dataset:
        channels = {"x": ("state", self.state_names), "y": ("output", self.data.outputs)}
        variables: dict[str, Any] = {}
        coords: dict[str, Any] = {"time": time, "quantile": list(quantiles)}
        for name, values in samples.items():
            dim, labels = channels[name]
            coords[dim] = labels
            variables[name] = (("path", "time", dim), values)
            variables[f"{name}_mean"] = (("time", dim), values.mean(axis=0))
            variables[f"{name}_sd"] = (("time", dim), values.std(axis=0))
            bands = np.quantile(values, list(quantiles), axis=0)
            variables[f"{name}_quantile"] = (("quantile", "time", dim), bands)
        return xr.Dataset(variables, coords)

    def predict(
        self,
        y: Any,
        u: Any = None,
        *,
        horizon: int = 1,
        samples: int = 500,
        start: Any = "model",
        quantiles: Sequence[float] = QUANTILES,
        seed: int = 1,
        **options: Any,
    ) -> xr.Dataset:
        """Predict outputs `horizon` steps ahead along a record: y_{t+k} given y_{0:t}.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`.
        horizon : int
            Steps ahead; for a free run see `simulate`.
        samples : int
            Samples of each row.
        **options
            Of the filter: functions, particles, waves, forgetting, proposal.

        Returns
        -------
        xarray.Dataset
            ``y`` (path, time, output) with ``y_mean``, ``y_sd``, ``y_quantile``, and ``log_score`` (time); the
            first row is the first that can be predicted.
        """
        self._check_sensor()
        data = self._record(y, u)
        found = self._posterior.predict_ahead(
            data.y[0],
            None if data.u is None else data.u[0],
            int(horizon),
            int(samples),
            self._start(start, len(self.state_names)),
            json.dumps({"seed": seed, **options}),
        )
        _warn(found["warnings"])
        time = data.time[0][found["first_row"] :]
        bands = self._bands({"y": found["y"]}, time, quantiles)
        return bands.assign(log_score=("time", found["log_score"]))

    def filter(self, y: Any, u: Any = None, *, start: Any = "model", seed: int = 1, **options: Any) -> xr.Dataset:
        """Filter a record online: x_t given y_{0:t}.

        Returns
        -------
        xarray.Dataset
            ``mean``, ``sd`` (time, state) and ``log_marginal_likelihood`` (time), log p(y_t | y_{0:t-1}): low
            values are anomalies.
        """
        data = self._record(y, u)
        found = self._posterior.filter(
            data.y[0],
            None if data.u is None else data.u[0],
            self._start(start, len(self.state_names)),
            json.dumps({"seed": seed, **options}),
        )
        _warn(found["warnings"])
        return xr.Dataset(
            {
                "mean": (("time", "state"), found["mean"]),
                "sd": (("time", "state"), found["sd"]),
                "log_marginal_likelihood": ("time", found["log_marginal_likelihood"]),
            },
            {"time": data.time[0], "state": self.state_names},
        )

    def smooth(
        self,
        y: Any,
        u: Any = None,
        *,
        paths: int = 200,
        quantiles: Sequence[float] = QUANTILES,
        seed: int = 1,
        **options: Any,
    ) -> xr.Dataset:
        """Draw states of a new record given all its outputs.

        Returns
        -------
        xarray.Dataset
            ``x`` (path, time, state) with ``x_mean``, ``x_sd``, ``x_quantile``; log p(y) in the attributes.
        """
        data = self._record(y, u)
        inputs = None if data.u is None else data.u[0]
        found = self._posterior.smooth(data.y[0], inputs, int(paths), json.dumps({"seed": seed, **options}))
        _warn(found["warnings"])
        bands = self._bands({"x": found["x"]}, data.time[0], quantiles)
        return bands.assign_attrs(log_marginal_likelihood=found["log_marginal_likelihood"])

    def score(
        self,
        y: Any,
        u: Any = None,
        *,
        n_init: int = 0,
        horizon: int | None = None,
        paths: int = 1000,
        levels: Sequence[float] = (0.5, 0.9, 0.95),
        seed: int = 1,
    ) -> pd.DataFrame:
        """Score a free run, or predictions `horizon` steps ahead, on a record, beside simple baselines.

        Parameters
        ----------
        n_init : int
            Rows at the beginning that are not scored; a free run starts from their outputs.
        horizon : int, optional
            Steps ahead; a free run by default.

        Returns
        -------
        pandas.DataFrame
            For each model and output rmse, nrmse = rmse / sd(y), fit = 100 (1 - nrmse) %, r2, mae, crps, coverage
            of central intervals, and log_score (mean log density of a row).
        """
        import pandas as pd

        self._check_sensor()
        data = self._record(y, u)
        options = {
            "task": "simulation" if horizon is None else {"ahead": int(horizon)},
            "n_init": int(n_init),
            "n_paths": int(paths),
            "levels": list(levels),
            "filter": {"seed": int(seed)},
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

    def thin(self, k: int, *, method: Literal["herding", "random"] = "herding", seed: int = 0) -> Result:
        """Keep `k` draws that say nearly the same as all (kernel herding, Chen, Welling, Smola 2010).

        Returns
        -------
        Result
            With one chain of `k` draws, and what is lost in its attribute ``loss``.
        """
        from .result import Result

        loss = json.loads(self._posterior.thin(int(k), method, int(seed)))
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
        settings = self.settings.copy()
        settings |= {"chains": 1, "draws": int(k)}
        result = Result(self.model, self.data, settings, [chain], basis=self.basis)
        result.loss = loss
        return result

    def distil(self, size: int | None = None, *, tolerance: float = 0.02, max_size: int = 200) -> Distilled:
        """Put one sparse Gaussian process in place of the mixture: a model that is evaluated in microseconds.

        Parameters
        ----------
        size : int, optional
            Inducing inputs; by default as few as keep the error of the mean below `tolerance`.
        """
        options = {"size": size, "tolerance": tolerance, "max_size": max_size}
        return Distilled(self._posterior.distil(json.dumps(options)))


class Distilled:
    """One sparse Gaussian process for each state: plain data, made by `Result.distil`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.data: dict[str, Any] = json.loads(text)

    def __call__(self, x: ArrayLike, u: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation of f at points, (n, n_x) each."""
        mean, variance, _ = self._evaluate(x, u)
        return mean, np.sqrt(variance)

    def jacobian(self, x: ArrayLike, u: ArrayLike | None = None) -> Floats:
        """Derivatives of the mean of f with respect to (x, u), (n, n_x, n_x + n_u)."""
        return self._evaluate(x, u)[2]

    def _evaluate(self, x: ArrayLike, u: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
        points, inputs = _points(x, self.data["n_x"], "x"), _points(u, self.data["n_u"], "u")
        if self.data["n_u"] and len(points) != len(inputs):
            raise ValueError(f"x has {len(points)} rows, u has {len(inputs)}")
        return _core.evaluate_distilled(self._text, points, inputs)

    @property
    def loss(self) -> dict[str, Any]:
        """What was lost against the mixture, on points that were not used in the fit."""
        return dict(self.data["loss"])

    def save(self, path: str | Path) -> None:
        """Write the model to a file, as JSON."""
        Path(path).write_text(self._text)

    @classmethod
    def load(cls, path: str | Path) -> Distilled:
        """Read a model that `save` wrote."""
        return cls(Path(path).read_text())

    def __repr__(self) -> str:
        sizes = [state["sparse"]["n_inducing"] for state in self.data["states"] if "sparse" in state]
        return f"<gpssm.Distilled: {self.data['n_x']} states, {self.data['n_u']} inputs, inducing inputs {sizes}>"
