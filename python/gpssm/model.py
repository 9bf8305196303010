"""The model: what is assumed about a system, as plain data."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, cast

import numpy as np
import xarray as xr

from . import _core
from ._arguments import checked
from ._choice import Calibration
from ._data import Data, DataLike, as_data
from ._layout import DataKeys
from ._registry import Registry
from ._settings import Sampler
from ._suggest import refuse_unknown
from ._text import Part, call
from ._types import Json, Table
from .bases import BasisLike, basis_table
from .functions import FunctionLike, function_table
from .initial import InitialLike, initial_table
from .kernels import Kernel, KernelLike, kernel_table
from .priors import Noise, PriorLike, noise_table, prior_dict
from .sensors import SensorLike, sensor_table
from .transitions import StateLike, state_table

__all__ = ["Model", "Orientation", "Symmetry"]

States = int | Sequence[StateLike] | Literal["auto"]
"""Number of states, how each of them evolves, or ``"auto"``."""


class InputRaisesState(TypedDict):
    """Number of an input and of a state, from 0."""

    input: int
    state: int


StateRaisesState = TypedDict("StateRaisesState", {"from": int, "to": int})


class PositiveMean(TypedDict):
    """Number of a state, from 0."""

    state: int


class Orientation(TypedDict, total=False):
    """Rule that picks a sign; exactly one of these."""

    input_raises_state: InputRaisesState
    state_raises_state: StateRaisesState
    positive_mean: PositiveMean


@dataclass(frozen=True, repr=False)
class Symmetry(Part):
    """States whose common sign the data cannot see, and the rule that picks one sign.

    Parameters
    ----------
    flip : list of int
        States, from 0.
    orientation : dict
        ``{"input_raises_state": {"input": 0, "state": 0}}``,
        ``{"state_raises_state": {"from": 1, "to": 0}}`` or ``{"positive_mean": {"state": 0}}``.
    flip_parameters : list of str
        Parameters that change sign along.

    Examples
    --------
    >>> Symmetry([1], {"positive_mean": {"state": 1}})
    gpssm.Symmetry(flip=[1], orientation={'positive_mean': {'state': 1}})
    """

    flip: Sequence[int]
    orientation: Orientation
    flip_parameters: Sequence[str] = ()

    def to_dict(self) -> Table:
        """Give the symmetry as it stands in a run file."""
        return {
            "flip": [int(d) for d in self.flip],
            "flip_parameters": list(self.flip_parameters),
            "orientation": dict(cast("Mapping[str, Json]", self.orientation)),
        }


class Parts(TypedDict, total=False):
    """Arguments of `Model` that make up the model."""

    states: States | None
    kernel: KernelLike | None
    mean: FunctionLike | Sequence[FunctionLike] | None
    sensor: SensorLike | None
    process_noise: Noise
    initial: InitialLike | None
    dynamics: BasisLike | None
    parameters: Mapping[str, PriorLike] | None
    symmetries: Sequence[Symmetry | Mapping[str, Json]] | None
    lags: int | None
    function: FunctionLike | None
    standardise: bool | None
    presample: int | None


class Model:
    """Gaussian process state-space model: what is assumed, with priors in place of numbers.

    Parts that are not given have defaults scaled to the data. Every part may also be given as the text or table of
    a run file of the program.

    Parameters
    ----------
    states : int, list of State, or "auto", optional
        Number of states: each output measures one state, further states are hidden. Or how each state evolves, see
        `gpssm.transitions`. One for each output by default. ``"auto"``: `gpssm.fit` chooses lags,
        delay, thinning, kernel and basis by free runs over held-out parts of the record.
    kernel : Kernel or str, optional
        For all states, such as ``gpssm.Matern32() + gpssm.Linear()`` or ``"matern32 + linear"``.
    mean : "identity", "zero", formula, LinearMean or function, optional
        Mean of f, for all states, or a list with one for each.
    sensor : Sensor or str, optional
        Such as ``gpssm.Poisson()`` or ``"poisson"``; Gaussian by default. See `gpssm.sensors`.
    process_noise : prior of the standard deviations, or one for each state, or a `CovariancePrior`, optional
    initial : InitialGaussian, InitialFixed or InitialDensity, optional
        Density of the initial state.
    dynamics : FIC, DTC, Hilbert, Fourier or str, optional
        A finite basis for long records, such as ``"hilbert(40)"``; the exact Gaussian process by default.
    parameters : dict, optional
        Priors of the parameters of formulas and functions, by name.
    symmetries : list of Symmetry, optional
        Signs that the data cannot see; by default those of hidden states.
    lags : int, optional
        Number of past values of each output used as states, instead of `states`.
    function : formula, LinearMean or function, optional
        A known form of the transition in place of the Gaussian process.
    standardise : bool, optional
        Whether data are standardised inside; results are in original units either way.
    presample : int, optional
        Number of transitions at the beginning of each sequence that are excluded from the likelihood of f.
    sampler : dict, optional
        Defaults for the settings of `gpssm.fit`, such as draws and seed: the table ``sampler`` of a run file.
    calibration : dict, optional
        How prediction intervals of free runs differ from the model's own, as ``states="auto"`` finds it: the table
        ``calibration`` of a run file.

    Examples
    --------
    >>> import gpssm
    >>> model = gpssm.Model(2, kernel=gpssm.Matern32(), sensor="poisson")
    >>> model
    gpssm.Model(states=2, kernel=gpssm.Matern32(), sensor='poisson')
    >>> model == gpssm.Model.from_dict(model.to_dict()) == gpssm.Model.from_toml(model.to_toml())
    True
    """

    @checked
    def __init__(
        self,
        states: States | None = None,
        *,
        kernel: KernelLike | None = None,
        mean: FunctionLike | Sequence[FunctionLike] | None = None,
        sensor: SensorLike | None = None,
        process_noise: Noise = None,
        initial: InitialLike | None = None,
        dynamics: BasisLike | None = None,
        parameters: Mapping[str, PriorLike] | None = None,
        symmetries: Sequence[Symmetry | Mapping[str, Json]] | None = None,
        lags: int | None = None,
        function: FunctionLike | None = None,
        standardise: bool | None = None,
        presample: int | None = None,
        sampler: Sampler | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        given = Parts(
            states=states,
            kernel=kernel,
            mean=mean,
            sensor=sensor,
            process_noise=process_noise,
            initial=initial,
            dynamics=dynamics,
            parameters=parameters,
            symmetries=symmetries,
            lags=lags,
            function=function,
            standardise=standardise,
            presample=presample,
        )
        self._given: dict[str, object] = {name: part for name, part in given.items() if part is not None}
        self._registry = Registry()
        self._table = _table(given, self._registry)
        self.sampler: Sampler = {**sampler} if sampler else {}
        self.calibration: Calibration | None = calibration
        # What was tried before the model was chosen, for reports; nothing depends on it.
        self._choice: Table = {}

    @classmethod
    def from_dict(cls, table: Mapping[str, Json]) -> Model:
        """Make a model from the tables of a run file (model, sampler, calibration), or from the first alone.

        Parameters
        ----------
        table : dict

        Examples
        --------
        >>> import gpssm
        >>> gpssm.Model.from_dict({"model": {"states": 2}, "sampler": {"draws": 200}})
        gpssm.Model(states=2, sampler={'draws': 200})
        """
        sections = {"data", "model", "sampler", "calibration", "choice"}
        whole = bool(sections & set(table)) and set(table) <= sections
        parts = dict(cast("Table", table.get("model", {}))) if whole else dict(table)
        refuse_unknown("model", parts, (*Parts.__annotations__, "state"))
        if "state" in parts:
            parts["states"] = parts.pop("state")
        sampler = cast("Sampler", table.get("sampler", {})) if whole else None
        calibration = cast("Calibration | None", table.get("calibration")) if whole else None
        model = cls(**cast("Parts", parts), sampler=sampler, calibration=calibration)
        model._choice = cast("Table", table.get("choice", {})) if whole else {}
        return model

    @classmethod
    def from_toml(cls, source: str | Path) -> Model:
        r"""Make a model from a run file of the program: its path, or its text.

        Parameters
        ----------
        source : path or str

        Examples
        --------
        >>> import gpssm
        >>> gpssm.Model.from_toml("[model]\nkernel = 'matern32 + linear'")
        gpssm.Model(kernel='matern32 + linear')
        """
        if isinstance(source, Path) or ("\n" not in source and source.endswith(".toml")):
            text, name = Path(source).read_text(encoding="utf-8"), str(source)
        else:
            text, name = str(source), "run file"
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{name}: {error}") from None

    def to_dict(self) -> Table:
        """Give the model as the tables of a run file; Python functions are in it by name only.

        Examples
        --------
        >>> import gpssm
        >>> gpssm.Model(2, sensor="poisson").to_dict()
        {'model': {'states': 2, 'sensor': 'poisson'}}
        """
        tables = {"model": self._table, "sampler": self.sampler, "calibration": self.calibration}
        given: Table = json.loads(json.dumps({name: table for name, table in tables.items() if table}))
        return {"model": {}, **given}

    def to_toml(self) -> str:
        """Give the model as the text of a run file.

        Examples
        --------
        >>> import gpssm
        >>> print(gpssm.Model(2, sensor="poisson").to_toml().strip())
        [model]
        states = 2
        sensor = "poisson"
        """
        if self.has_functions:
            raise ValueError("to_toml: Python functions cannot be written to a file; use formulas instead")
        return _core.toml_text(json.dumps(self.to_dict()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return self.to_dict() == other.to_dict() and self._registry == other._registry

    __hash__ = None  # type: ignore[assignment]

    @property
    def has_functions(self) -> bool:
        """Whether Python functions are part of the model."""
        return not self._registry.is_empty()

    @property
    def is_open(self) -> bool:
        """Whether the model is to be chosen from the record, ``states="auto"``."""
        return bool(self._table.get("states") == "auto")

    @property
    def kernel(self) -> Kernel | None:
        """Kernel of all states as an object, also where it was given as text; None for the default or several.

        Examples
        --------
        >>> import gpssm
        >>> gpssm.Model(kernel="2 * matern32(x) + linear").kernel
        gpssm.Scaled(factor=2.0, part=gpssm.Matern32(active=['x'])) + gpssm.Linear()
        """
        from ._objects import kernel_object

        given, states = self._given.get("kernel"), self._given.get("states")
        if given is None and isinstance(states, Sequence) and len(states) == 1:
            given = getattr(states[0], "kernel", None)
        return None if given is None else kernel_object(cast("KernelLike", given))

    @checked
    def resolved(self, y: DataLike, u: DataLike | None = None) -> Model:
        """Give the same model with every default and prior that a fit to a record would have, as objects.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`: default priors follow its scale.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> model = gpssm.Model(kernel="linear").resolved(y)
        >>> eval(repr(model)) == model
        True
        """
        from ._objects import resolved

        if self.is_open:
            raise ValueError('states: "auto" is chosen by a fit; see result.model')
        problem = self._problem(as_data(y, u), self.sampler)
        return resolved(tomllib.loads(problem.to_toml()), self._registry)

    def to_graphviz(self) -> str:
        r"""Give the graphical model in the DOT language, for ``graphviz.Source`` or ``dot -Tsvg``.

        Observed nodes are grey, inputs square, functions boxes; hyper-parameters act along dotted lines.

        Examples
        --------
        >>> import gpssm
        >>> print(gpssm.Model(kernel=gpssm.Matern32(), sensor="poisson").to_graphviz().splitlines()[8])
            f_x [label="f_x ~ GP(identity, Matern32())", shape=box];
        """
        from ._graph import dot

        return dot(self)

    @checked
    def sample_prior(
        self, y: DataLike, u: DataLike | None = None, *, draws: int = 500, seed: int = 1
    ) -> xr.DataTree:
        """Draw parameters, states and outputs before any fit; row 0 is the first row of the record.

        Parameters
        ----------
        y, u
            The record, as for `gpssm.fit`: its inputs drive the simulations, and default priors follow its scale.
        draws : int
            Number of draws, each a record of its own.
        seed : int
            Seed of the simulation.

        Returns
        -------
        xarray.DataTree
            Groups prior (parameters and states), prior_predictive (``y``) and observed_data. Outputs further than
            100 times the range of the data are held there, with a warning; states are as they were drawn.

        Examples
        --------
        >>> import numpy as np, gpssm
        >>> y = np.sin(0.4 * np.arange(20))
        >>> tree = gpssm.Model(kernel="se").sample_prior(y, draws=30)
        >>> tree["prior_predictive"]["y"].sizes["time"]
        20
        """
        from ._checks import prior_tree

        data = as_data(y, u)
        if self.is_open:
            raise ValueError('states: "auto" is chosen by a fit; give the model whose priors are wanted')
        problem = self._problem(data, self.sampler)
        if self._table.get("dynamics") not in (None, "exact"):
            problem = problem.prepare(problem.settings)
        return prior_tree(problem, data, draws, seed)

    def _settled(self, parts: Mapping[str, Json], calibration: Calibration | None, tried: Table) -> Model:
        """The same model with what was chosen."""
        chosen = {name: value for name, value in parts.items() if value is not None}
        # States that are chosen one by one say all of themselves.
        dropped = {"states", "lags", "kernel"} if "states" in chosen else {"states"} if self.is_open else set()
        given = {name: part for name, part in self._given.items() if name not in dropped} | chosen
        model = Model(**cast("Parts", given), sampler=self.sampler, calibration=calibration)
        model._choice = tried
        return model

    def __repr__(self) -> str:
        tables = [("sampler", self.sampler), ("calibration", self.calibration)]
        return call("gpssm.Model", [*self._given.items(), *((name, table) for name, table in tables if table)])

    def _problem(self, data: Data, sampler: Sampler) -> _core.Problem:
        """Check the model against data and fill in all defaults."""
        registry = self._registry
        return _core.Problem(
            self._keys(sampler, data.layout.keys()),
            data.y,
            data.u,
            data._labels(),
            None if data.measured is None else (data.measured.y, data.measured.u),
            (registry.functions, registry.sensors, registry.initials, registry.priors, registry.kernels),
        )

    def _keys(self, sampler: Sampler, rows: DataKeys) -> str:
        """All keys of the run file, as JSON."""
        keys = {f"model.{name}": value for name, value in self._table.items()}
        keys |= {f"sampler.{name}": value for name, value in cast("Table", sampler).items()}
        keys |= {f"data.{name}": value for name, value in cast("Table", rows).items()}
        keys |= {f"calibration.{name}": value for name, value in cast("Table", self.calibration or {}).items()}
        keys |= {f"choice.{name}": value for name, value in self._choice.items()}
        return json.dumps(keys)


def _table(given: Parts, registry: Registry) -> Table:
    """The table ``model`` of a run file."""
    table = _states(given, registry)
    for name in ("lags", "presample"):
        if (number := given.get(name)) is not None:
            table[name] = int(cast("int", number))
    if (kernel := given.get("kernel")) is not None:
        table["kernel"] = kernel_table(kernel, "kernel")
    if (mean := given.get("mean")) is not None and not isinstance(mean, list | tuple):
        table["mean"] = function_table(cast("FunctionLike", mean), registry, "mean")
    if (function := given.get("function")) is not None:
        table["function"] = function_table(function, registry, "function")
    if (sensor := given.get("sensor")) is not None:
        table["sensor"] = sensor_table(sensor, registry)
    if (process_noise := given.get("process_noise")) is not None:
        table["process_noise"] = noise_table(process_noise, "process_noise")
    if (initial := given.get("initial")) is not None:
        table["initial"] = initial_table(initial, registry)
    if (dynamics := given.get("dynamics")) is not None:
        table["dynamics"] = basis_table(dynamics)
    if parameters := given.get("parameters"):
        table["parameters"] = {n: prior_dict(p, f"parameters.{n}") for n, p in parameters.items()}
    if (symmetries := given.get("symmetries")) is not None:
        table["symmetries"] = [s.to_dict() if isinstance(s, Symmetry) else dict(s) for s in symmetries]
    if (standardise := given.get("standardise")) is not None:
        table["standardise"] = bool(standardise)
    return cast("Table", registry.named(table))


def _states(given: Parts, registry: Registry) -> Table:
    """The keys ``states`` and ``state``."""
    states, mean = given.get("states"), given.get("mean")
    if isinstance(mean, list | tuple):
        if given.get("lags") is not None or isinstance(states, list | tuple):
            raise ValueError("mean: give the mean functions with the states one by one")
        if states not in (None, len(mean)):
            raise ValueError(f"mean: {len(mean)} functions for {states} states")
        return {"state": [{"mean": function_table(m, registry, f"mean[{d}]")} for d, m in enumerate(mean)]}
    if states is None:
        return {}
    if isinstance(states, int | np.integer):
        return {"states": int(states)}
    if isinstance(states, str):
        if states != "auto":
            raise ValueError(f"states: expected a number, a list of states or 'auto', not {states!r}")
        return {"states": states}
    return {"state": [state_table(state, registry, f"states[{d}]") for d, state in enumerate(states)]}
