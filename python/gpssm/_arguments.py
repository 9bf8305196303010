"""Arguments: misspelt ones are refused with a suggestion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ._suggest import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments that the function does not have, and say which one was probably meant."""
    name = function.__qualname__.removesuffix(".__init__")
    known = [parameter for parameter in inspect.signature(function).parameters if parameter != "self"]

    @functools.wraps(function)
    def with_check(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_arguments(name, kwargs, known)
        return function(*args, **kwargs)

    return with_check


def refuse_arguments(function: str, given: dict[str, object], known: list[str]) -> None:
    """Refuse the first argument that does not exist."""
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise TypeError(f"{function}() has no argument {name!r}{hint}")
