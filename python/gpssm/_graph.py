"""The graphical model in the DOT language, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ._text import text
from .kernels import Kernel
from .transitions import Gp, Lag, Parametric

if TYPE_CHECKING:
    from .model import Model


def dot(model: Model) -> str:
    """See `gpssm.Model.to_graphviz`."""
    states = _states(model)
    lines = ["digraph gpssm {", "    rankdir=LR;", '    node [shape=circle, fontname="Helvetica"];']
    lines.append('    u [label="u[t]", shape=square];')
    lines.append('    y [label="y[t]", style=filled, fillcolor=lightgray];')
    lines.append('    theta [label="theta", shape=plaintext];')
    given = model._given
    sensor = _short(given.get("sensor", "gaussian"))
    for name, kind in states:
        lines += [f'    {_id(name)} [label="{name}[t]"];', f'    {_id(name)}_next [label="{name}[t+1]"];']
        lines += _transition(name, kind, states, model)
        lines.append(f"    {_id(name)} -> y;")
    lines.append(f'    sensor [label="{_escape(sensor)}", shape=box];')
    lines += ["    u -> y [style=dashed];", "    sensor -> y;", "    theta -> sensor [style=dotted];", "}"]
    return "\n".join(lines)


def _states(model: Model) -> list[tuple[str, object]]:
    """Names of states, and how each evolves."""
    given = model._given.get("states")
    if isinstance(given, list | tuple):
        found: list[tuple[str, object]] = []
        for number, state in enumerate(given):
            named = state.get("name") if isinstance(state, Mapping) else getattr(state, "name", None)
            found.append((str(named or f"x{number + 1}"), state))
        return found
    lags = model._given.get("lags")
    if isinstance(lags, int):
        return [("x1", Gp()), *((f"x{k + 2}", Lag(f"x{k + 1}")) for k in range(lags))]
    n = given if isinstance(given, int) else 1
    return [("x", Gp())] if n == 1 else [(f"x{d + 1}", Gp()) for d in range(n)]


def _transition(name: str, kind: object, states: list[tuple[str, object]], model: Model) -> list[str]:
    own, after = _id(name), f"{_id(name)}_next"
    if isinstance(kind, Lag) or (isinstance(kind, Mapping) and "lag_of" in kind):
        of = kind["lag_of"] if isinstance(kind, Mapping) else kind.lag_of
        return [f'    {_id(str(of))} -> {after} [label="copied"];']
    known = isinstance(kind, Parametric) or model._given.get("function") is not None
    if known:
        function = kind.function if isinstance(kind, Parametric) else model._given["function"]
        label = f"f_{name} = {_short(function)}"
    else:
        kernel = (kind.kernel if isinstance(kind, Gp) else None) or model._given.get("kernel") or "default kernel"
        mean = (kind.mean if isinstance(kind, Gp) else None) or model._given.get("mean") or "identity"
        label = f"f_{name} ~ GP({_short(mean)}, {_short(kernel)})"
    lines = [f'    f_{own} [label="{_escape(label)}", shape=box];', f"    f_{own} -> {after};"]
    lines += [f"    {_id(other)} -> f_{own};" for other, _ in states]
    return [*lines, f"    u -> f_{own} [style=dashed];", f"    theta -> f_{own} [style=dotted];"]


def _short(part: object) -> str:
    if isinstance(part, Kernel):
        return repr(part).replace("gpssm.", "")
    return part if isinstance(part, str) else text(part).replace("gpssm.", "")


def _escape(words: str) -> str:
    return words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _id(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)
