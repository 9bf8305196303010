"""Known functions of (x, u): means of Gaussian processes, known transitions, and what sensors show.

A function may be ``"identity"`` or ``"zero"``, a formula such as ``"a*x1 + cos(u1)"``, a `LinearMean`, a Python
function, or the table that stands in a run file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from ._registry import Registry
from ._text import Part
from ._types import Function, Json, Table
from .priors import PriorLike, prior_dict

__all__ = ["FunctionLike", "LinearMean"]


@dataclass(frozen=True, repr=False)
class LinearMean(Part):
    """Linear function a . x + b . u + offset; every number may be a prior.

    Parameters
    ----------
    a : list of priors or numbers
        One for each state.
    b : list of priors or numbers
        One for each input.
    offset : prior or number

    Examples
    --------
    >>> LinearMean([0.9], offset="normal(0, 1)")
    gpssm.LinearMean(a=[0.9], offset='normal(0, 1)')
    """

    a: Sequence[PriorLike]
    b: Sequence[PriorLike] = ()
    offset: PriorLike = 0.0


FunctionLike = str | LinearMean | Function | Mapping[str, Json]
"""A function of (x, u): ``"identity"``, ``"zero"``, a formula, `LinearMean`, a Python function, or a table."""


def function_table(function: FunctionLike, registry: Registry, what: str) -> Json:
    """A function as it stands in a run file."""
    if isinstance(function, str):
        return function
    if isinstance(function, LinearMean):
        a, b = ([_value(v, what) for v in values] for values in (function.a, function.b))
        return {"linear": {"a": a, "b": b, "offset": _value(function.offset, what)}}
    if isinstance(function, Mapping):
        return dict(function)
    if callable(function):
        return {"user": registry.function(function, what)}
    raise ValueError(
        f"{what}: expected 'identity', 'zero', a formula, a LinearMean or a function, not {function!r}"
    )


Predictor = FunctionLike | Sequence[FunctionLike] | None
"""One function for each output; None where output k shows state k."""


def predictor_table(value: Predictor, registry: Registry, what: str) -> Json:
    """What a sensor shows, as it stands in a run file."""
    if value is None:
        return "states"
    if isinstance(value, Mapping):
        return dict(value)
    parts = cast("list[FunctionLike]", list(value) if isinstance(value, list | tuple) else [value])
    texts = [part for part in parts if isinstance(part, str)]
    linear = [part for part in parts if isinstance(part, LinearMean)]
    called = [part for part in parts if callable(part)]
    if len(texts) == len(parts):
        return {"formulas": texts}
    if len(linear) == len(parts):
        return {"linear": _linear_table(linear, what)}
    if len(called) == len(parts):
        return {"functions": [registry.function(part, f"{what}[{k}]") for k, part in enumerate(called)]}
    raise ValueError(f"{what}: expected formulas, functions or LinearMean, one for each output, not {value!r}")


def _linear_table(parts: Sequence[LinearMean], what: str) -> Table:
    return {
        "c": [[_value(v, what) for v in part.a] for part in parts],
        "d": [[_value(v, what) for v in part.b] for part in parts if part.b],
        "offset": [_value(part.offset, what) for part in parts],
    }


def _value(value: PriorLike, what: str) -> Json:
    return float(value) if isinstance(value, int | float | np.number) else prior_dict(value, what)
