"""Names that do not exist, and those that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion at the end of a message, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first name that does not exist."""
    names = list(known)
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
            raise ValueError(f"{what}: there is no {name!r}{hint}")
