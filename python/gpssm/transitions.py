"""How states evolve: unknown functions, known ones, and lags.

A list of these is the argument ``states`` of `gpssm.Model`, where states differ from each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ._registry import Registry
from ._text import Part
from ._types import Json, Table
from .functions import FunctionLike, function_table
from .kernels import KernelLike, kernel_table

__all__ = ["Gp", "Lag", "Parametric", "State", "StateLike"]


@dataclass(frozen=True, repr=False)
class State(Part):
    """How a state evolves; use `Gp`, `Parametric` or `Lag`."""

    def to_table(self, registry: Registry, what: str) -> Table:
        """Give the state as it stands in a run file."""
        raise NotImplementedError


def _common(state: Gp | Parametric | Lag) -> Table:
    table: Table = {}
    if state.scale is not None:
        table["scale"] = float(state.scale)
    if state.name is not None:
        table["name"] = state.name
    return table


@dataclass(frozen=True, repr=False)
class Gp(State):
    """Unknown transition: x' = f(x, u) + v with f ~ GP(mean, kernel).

    Parameters
    ----------
    kernel : Kernel or str, optional
        Such as ``gpssm.Matern32()`` or ``"matern32(x) + linear"``; that of the model by default.
    mean : "identity", "zero", formula, LinearMean or function, optional
        A Python function is called with many points at once, ``m(x, u, *parameters)``: x (n, n_x), u (n, n_u),
        floats for the parameters, and returns (n,). Both ``u`` and parameters may be left out.
    scale : float, optional
        Typical size of the state, for default priors.
    name : str, optional
        Name of the state in formulas and results.

    Examples
    --------
    >>> Gp("matern32 + linear", mean="0.9*x1", name="level")
    gpssm.Gp(kernel='matern32 + linear', mean='0.9*x1', name='level')
    """

    kernel: KernelLike | None = None
    mean: FunctionLike | None = None
    scale: float | None = None
    name: str | None = None

    def to_table(self, registry: Registry, what: str) -> Table:
        """Give the state as it stands in a run file."""
        table: Table = {}
        if self.kernel is not None:
            table["kernel"] = kernel_table(self.kernel, f"{what}.kernel")
        if self.mean is not None:
            table["mean"] = function_table(self.mean, registry, f"{what}.mean")
        return table | _common(self)


@dataclass(frozen=True, repr=False)
class Parametric(State):
    """Known transition: x' = h(x, u; parameters) + v.

    Parameters
    ----------
    function : formula, LinearMean or function
        The form of h, see `Gp` for Python functions.
    scale : float, optional
        Typical size of the state, for default priors.
    name : str, optional
        Name of the state in formulas and results.

    Examples
    --------
    >>> Parametric("a*x1 + u1")
    gpssm.Parametric(function='a*x1 + u1')
    """

    function: FunctionLike
    scale: float | None = None
    name: str | None = None

    def to_table(self, registry: Registry, what: str) -> Table:
        """Give the state as it stands in a run file."""
        return {"function": function_table(self.function, registry, f"{what}.function"), **_common(self)}


@dataclass(frozen=True, repr=False)
class Lag(State):
    """Copy of another state one step before.

    Parameters
    ----------
    lag_of : str
        The state that is copied, such as ``"x1"``.
    scale : float, optional
        Typical size of the state, for default priors.
    name : str, optional
        Name of the state in formulas and results.

    Examples
    --------
    >>> Lag("x1")
    gpssm.Lag(lag_of='x1')
    """

    lag_of: str
    scale: float | None = None
    name: str | None = None

    def to_table(self, registry: Registry, what: str) -> Table:
        """Give the state as it stands in a run file."""
        if not isinstance(self.lag_of, str):
            raise ValueError(f"{what}.lag_of: expected a state such as 'x1', not {self.lag_of!r}")
        return {"lag_of": self.lag_of, **_common(self)}


StateLike = State | Mapping[str, Json]
"""How a state evolves, or its table in a run file."""


def state_table(state: StateLike, registry: Registry, what: str) -> Table:
    """A state as it stands in a run file."""
    if isinstance(state, State):
        return state.to_table(registry, what)
    if isinstance(state, Mapping):
        return dict(state)
    raise ValueError(f"{what}: expected Gp, Parametric or Lag, not {state!r}")
