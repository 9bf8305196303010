"""User functions: what they are called with, and what they may return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ._types import Floats
from .compiled import CompiledFunction


@dataclass(frozen=True)
class Signature:
    """How a user function wants to be called."""

    wants_u: bool
    parameters: tuple[str, ...]


def signature(function: Callable[..., object], first: tuple[str, ...], what: str) -> Signature:
    """Read the arguments of a user function.

    They are those in `first`, then ``x``, then ``u`` if it wants the inputs, then parameters by name.
    """
    if isinstance(function, CompiledFunction):
        function.check(3 if not first else 4, what)
        if first not in ((), ("y",)):
            raise ValueError(f"{what}: {function.name} is compiled; give a Python function here")
        return Signature(True, tuple(function.parameters))
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what}: the arguments of {function!r} cannot be read; wrap it in a function (x, u, ...)"
        ) from None
    expected = [*first, "x"]
    if names[: len(expected)] != expected:
        wanted = ", ".join(expected)
        raise ValueError(
            f"{what}: the arguments of {name_of(function)} must begin with ({wanted}), not ({', '.join(names)})"
        )
    rest = names[len(expected) :]
    wants_u = bool(rest) and rest[0] == "u"
    return Signature(wants_u, tuple(rest[1:] if wants_u else rest))


def name_of(function: Callable[..., object]) -> str:
    """Name of a function for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def as_values(result: object, n: int, name: str) -> Floats:
    """One number for each of `n` points from whatever a user function returned."""
    try:
        values = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must return numbers, not {type(result).__name__}") from None
    if values.size == 1 and values.shape != (n,):
        return np.full(n, float(values.reshape(())[()]))
    if values.size != n or (values.ndim > 1 and values.shape not in {(n, 1), (1, n)}):
        raise ValueError(f"{name} returned shape {values.shape} for {n} points; it must return ({n},)")
    return np.ascontiguousarray(values.reshape(n))


def as_row(result: object, n: int, name: str) -> Floats:
    """The `n` components of a single draw."""
    values = np.asarray(result, dtype=np.float64)
    if values.size != n:
        raise ValueError(f"{name} returned shape {values.shape} for one draw of {n} components")
    return np.ascontiguousarray(values.reshape(n))
