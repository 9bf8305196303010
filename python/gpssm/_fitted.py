"""A fitted model: its posterior, and records as it sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from . import _core, _warn
from ._chains import Chain
from ._data import Data, DataLike, as_data, in_order
from ._index import Times
from ._settings import Proposal, Sampler
from ._types import Floats
from .model import Model

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Probabilities of the quantiles, as in the tables of the program."""

InitialState = Literal["model", "last"] | tuple[Literal["last"], int | str] | ArrayLike
"""Where states start: from p(x_0), on from the end of a training sequence, or at known numbers."""


def warn(found: Sequence[str]) -> None:
    """Pass warnings of the engine on."""
    for warning in found:
        _warn.warn(warning)


def filter_options(
    functions: int, particles: int, waves: int, forgetting: float, proposal: Proposal, seed: int
) -> str:
    """Options of a filter, as JSON."""
    options = {"functions": int(functions), "particles": int(particles), "waves": int(waves)}
    return json.dumps(options | {"forgetting": float(forgetting), "proposal": proposal, "seed": int(seed)})


class Fitted:
    """What the methods of `gpssm.Result` share that put the draws to use."""

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
        """All draws."""
        return self._some_draws(None)

    @cached_property
    def _posteriors(self) -> dict[int | None, _core.Posterior]:
        """Posteriors by the number of their draws, none for all; made when they are asked for."""
        return {}

    def _some_draws(self, max_draws: int | None) -> _core.Posterior:
        """At most so many of the draws, spread evenly over all of them."""
        if max_draws is not None and max_draws < 1:
            raise ValueError(f"max_draws: {max_draws} is too small")
        everything = max_draws is None or max_draws >= sum(len(c.draws) for c in self.chains)
        wanted = None if everything else max_draws
        if wanted not in self._posteriors:
            chains = [c.draws._to_core() for c in self.chains if len(c.draws)]
            self._posteriors[wanted] = _core.Posterior(self._problem, chains, wanted)
        return self._posteriors[wanted]

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
        return self._with_names(data)

    def _with_names(self, data: Data) -> Data:
        """Columns in the order of the training record; other columns are refused."""
        own = self.data if self.data.measured is None else self.data.measured
        y, u = data.y[0], None if data.u is None else data.u[0]
        if data.named[0] and own.named[0]:
            y = in_order(y, data.outputs, own.outputs, "y: the training record")
        if data.named[1] and own.named[1] and u is not None:
            u = in_order(u, data.inputs, own.inputs, "u: the training record")
        return replace(data, y=[y], u=None if u is None else [u], outputs=own.outputs, inputs=own.inputs)

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
            return json.dumps({"last_training": {"sequence": self.data._position(initial[1], "initial")}})
        x, n_x = np.ravel(np.asarray(initial, dtype=np.float64)), len(self.state_names)
        if x.shape != (n_x,):
            raise ValueError(f"initial: expected {n_x} numbers, one for each state, not {x.size}")
        return json.dumps({"given": x.tolist()})

    def _intervals(self, samples: dict[str, Floats], time: Times, quantiles: Sequence[float]) -> xr.Dataset:
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
