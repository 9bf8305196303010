"""Arguments: misspelt ones are refused with a suggestion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ._suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments that the function does not have, and say which one was probably meant."""
    signature = inspect.signature(function).parameters
    named = {name for name, kind in signature.items() if kind.kind != kind.VAR_KEYWORD}
    known = [name for name in signature if name in named - {"self", "cls"}]
    anything = len(named) < len(signature)

    @functools.wraps(function)
    def with_check(*args: P.args, **kwargs: P.kwargs) -> R:
        if not anything and not kwargs.keys() <= set(known):
            refuse_arguments(_name(function, args[0] if "self" in signature and args else None), kwargs, known)
        return function(*args, **kwargs)

    return with_check


def checked_class(kind: type[K]) -> type[K]:
    """Refuse arguments that a class does not have."""
    type.__setattr__(kind, "__init__", checked(vars(kind)["__init__"]))
    return kind


def _name(function: Callable[..., object], self: object) -> str:
    """The name by which a user calls a function: methods that a class inherits are its own."""
    name = function.__qualname__.removesuffix(".__init__")
    if self is not None and function.__name__ != "__init__":
        return f"{type(self).__name__}.{function.__name__}"
    return name


def refuse_arguments(function: str, given: dict[str, object], known: list[str]) -> None:
    """Refuse the first argument that does not exist."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise TypeError(f"{function}() has no argument {name!r}{hint}")
