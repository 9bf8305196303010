"""Parts of a model as the Python text that makes them again."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Self

import numpy as np

from ._arguments import refuse_arguments
from ._callables import name_of

WIDTH = 88
"""Longer texts are broken into lines."""


class Part:
    """A part of a model: its text is the call that makes it, without arguments that have their default."""

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse arguments that do not exist, and say which one was probably meant."""
        if is_dataclass(cls):
            refuse_arguments(cls.__name__, kwargs, [entry.name for entry in fields(cls)])
        return super().__new__(cls)

    def __repr__(self) -> str:
        assert is_dataclass(self)
        given = ((entry.name, getattr(self, entry.name), _default(entry)) for entry in fields(self))
        arguments = [(name, value) for name, value, default in given if not _same(value, default)]
        return call(_name(type(self)), arguments)


def call(name: str, arguments: Iterable[tuple[str, object]]) -> str:
    """A call with keyword arguments, on several lines if it is long."""
    return _bracketed(f"{name}(", [f"{key}={text(value)}" for key, value in arguments], ")")


def text(value: object) -> str:
    """A value as Python text; a function is shown by its name."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return _bracketed("{", [f"{key!r}: {text(entry)}" for key, entry in value.items()], "}")
    if isinstance(value, list | tuple):
        return _bracketed("[", [text(entry) for entry in value], "]")
    if callable(value) and not isinstance(value, Part):
        return name_of(value)
    return repr(value)


def _bracketed(opening: str, entries: list[str], closing: str) -> str:
    line = opening + ", ".join(entries) + closing
    if len(line) <= WIDTH and "\n" not in line:
        return line
    return opening + "\n" + textwrap.indent(",\n".join(entries), "    ") + ",\n" + closing


def _name(kind: type) -> str:
    own = kind.__module__.partition(".")[0] == __package__
    return f"{__package__}.{kind.__name__}" if own else kind.__name__


def _default(entry: Field[object]) -> object:
    return entry.default_factory() if entry.default_factory is not MISSING else entry.default


def _same(value: object, default: object) -> bool:
    if isinstance(value, np.ndarray):
        return False
    return type(value) is type(default) and value == default
