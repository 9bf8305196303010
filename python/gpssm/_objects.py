"""From tables of a run file back to the objects that users write: kernels, priors, sensors and states."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import kernels, priors, sensors
from ._data import as_data
from ._registry import Registry
from ._types import Json, Table
from .initial import InitialDensity
from .kernels import Kernel, KernelLike
from .transitions import Gp, Lag, Parametric

if TYPE_CHECKING:
    from .model import Model


def _by_key(module: ModuleType) -> dict[str, Any]:
    """Classes of a module by their names in run files."""
    kinds: list[Any] = [kind for kind in vars(module).values() if isinstance(kind, type)]
    return {kind._key: kind for kind in kinds if getattr(kind, "_key", None)}


_PRIORS, _KERNELS = _by_key(priors), _by_key(kernels)


def resolved(table: Table, registry: Registry) -> Model:
    """A model in objects, from the tables of a run file that leave nothing open, and its Python functions."""
    from .model import Model

    parts: dict[str, Any] = dict(_table(_with_functions(table["model"], registry, "")))
    states = parts.pop("state", [])
    found: dict[str, Any] = {
        "states": [_state(state) for state in states],
        "process_noise": _noise(parts.pop("process_noise", None)),
        "sensor": _sensor(parts.pop("sensor", None)),
        "parameters": {name: _prior(prior) for name, prior in _table(parts.pop("parameters", {})).items()} or None,
        **parts,
    }
    if found.get("initial") == "default":
        del found["initial"]
    if not found.get("symmetries"):
        found.pop("symmetries", None)
    return Model(**found)


def kernel_object(kernel: KernelLike) -> Kernel:
    """A kernel as an object; hyper-parameters that a text leaves open stay open."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Mapping):
        return _kernel(dict(kernel), known=True)
    from .model import Model

    # The engine reads the text; inputs are as many as it names.
    n_u = max([int(number) for number in re.findall(r"\bu(\d+)\b", kernel)] or [int("u" in kernel)])
    n_x = max([int(number) for number in re.findall(r"\bx(\d+)\b", kernel)] or [1])
    data = as_data(np.eye(max(n_x, 2) + 2)[:, :n_x], np.eye(max(n_x, 2) + 2, n_u) if n_u else None)
    table = tomllib.loads(Model(kernel=kernel)._problem(data, {}).to_toml())
    return _kernel(table["model"]["state"][0]["kernel"], known=False)


def _with_functions(part: Any, registry: Registry, of: str) -> Any:
    """The same tables with functions, and kernels, sensors and initial densities made of them, for their names."""
    if isinstance(part, list):
        return [_with_functions(one, registry, of) for one in part]
    if not isinstance(part, Mapping):
        return part
    if of == "log_density" and "function" in part:
        return {**part, "function": registry.priors[part["function"]]}
    user = part.get("user")
    if of == "initial" and isinstance(user, str):
        return InitialDensity(*registry.initials[user])
    if isinstance(user, Mapping) and of == "sensor":
        (log_density, _), sample = registry.sensors[user["name"]]
        return sensors.SensorDensity(log_density, sample[0] if sample else None)
    if isinstance(user, Mapping) and of == "kernel":
        function, names = registry.kernels[user["name"]]
        found = {name: _prior(_with_functions(user["parameters"][name], registry, "")) for name in names}
        return kernels.KernelFunction(function, found, user.get("active"))
    if isinstance(user, Mapping):
        return registry.functions[user["name"]][0]
    if set(part) == {"functions"}:
        return [registry.functions[one["name"]][0] for one in part["functions"]]
    # Kernels and sensors are composed; what is in them is theirs until a hyper-parameter has its prior.
    inner = {"kernel": "kernel", "sensor": "sensor", "initial": "initial", "log_density": "log_density"}
    keep = of if of == "kernel" else ""
    return {key: _with_functions(value, registry, inner.get(key, keep)) for key, value in part.items()}


def _table(value: object) -> dict[str, Any]:
    assert isinstance(value, Mapping)
    return dict(value)


def _prior(value: Json) -> Any:
    if isinstance(value, Mapping) and len(value) == 1:
        key, arguments = next(iter(value.items()))
        if key == "fixed" and isinstance(arguments, Mapping):
            return arguments["value"]
        if key == "log_density" and isinstance(arguments, Mapping):
            found: dict[str, Any] = dict(arguments)
            return priors.PriorDensity(
                found.get("formula") or found["function"], found.get("low"), found.get("high")
            )
        if key in _PRIORS and isinstance(arguments, Mapping):
            return _PRIORS[key](**arguments)
    return value


def _scale(value: Json) -> Any:
    """Prior of a standard deviation, which may be given on the variance."""
    if isinstance(value, Mapping) and set(value) == {"on", "prior"}:
        inner = _prior(value["prior"])
        return inner if value["on"] == "sd" else priors.OnVariance(inner)
    return _prior(value)


def _noise(value: Json) -> Any:
    if isinstance(value, Mapping) and set(value) == {"diagonal"}:
        found = [_scale(one) for one in _list(value["diagonal"])]
        return found[0] if len(found) == 1 else found
    return value


def _list(value: Json) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _kernel(table: Kernel | Mapping[str, Any], *, known: bool) -> Kernel:
    if isinstance(table, Kernel):
        return table
    key, value = next(iter(table.items()))
    if key in ("sum", "product"):
        parts = [_kernel(part, known=known) for part in value]
        return kernels.Sum(parts) if key == "sum" else kernels.Product(parts)
    if key == "scaled":
        return kernels.Scaled(value["factor"], _kernel(value["kernel"], known=known))
    if key == "power":
        return kernels.Power(_kernel(value["kernel"], known=known), value["exponent"])
    if key == "odd":
        return kernels.Odd(_kernel(value, known=known))
    if key == "change_point":
        before, after = (_kernel(part, known=known) for part in value["kernels"])
        priors = {name: _prior(value[name]) for name in ("location", "width") if known and name in value}
        return kernels.ChangePoint(before, after, *value.get("active", ()), **priors)
    if key not in _KERNELS:
        raise ValueError(f"kernel: {key!r} has no object; user kernels are gpssm.KernelFunction")
    arguments = {name: entry for name, entry in value.items() if known or name == "active"}
    for name, entry in arguments.items():
        if name != "active":
            arguments[name] = [_prior(one) for one in entry] if isinstance(entry, list) else _prior(entry)
    made: Kernel = _KERNELS[key](**arguments)
    return made


def _state(table: Mapping[str, Any]) -> Any:
    if not isinstance(table, Mapping):
        return table
    entries = dict(table)
    if "lag_of" in entries:
        return Lag(**entries)
    if "function" in entries:
        return Parametric(**entries)
    for name in ("mean", "function"):
        if isinstance(entries.get(name), Mapping) and set(entries[name]) == {"formula"}:
            entries[name] = entries[name]["formula"]
    if "kernel" in entries:
        entries["kernel"] = _kernel(entries["kernel"], known=True)
    return Gp(**entries) if set(entries) <= {entry.name for entry in fields(Gp)} else dict(table)


def _sensor(table: Json) -> Any:
    if not isinstance(table, Mapping) or len(table) != 1:
        return table
    key, value = next(iter(table.items()))
    if key == "formula" and isinstance(value, Mapping):
        formula: dict[str, Any] = dict(value)
        return sensors.SensorDensity(**formula)
    name = "".join(word.capitalize() for word in str(key).split("_"))
    kind = getattr(sensors, name, None)
    if kind is None or not isinstance(value, Mapping):
        return table
    arguments = {}
    for entry, given in value.items():
        if given == "states":
            continue
        if entry == "noise":
            arguments[entry] = _noise(given)
        elif entry == "scale":
            found = [_scale(one) for one in _list(given)]
            arguments[entry] = found[0] if len(found) == 1 else found
        else:
            arguments[entry] = _prior(given)
    return kind(**arguments)
