"""Python functions of a model, under the names by which its description knows them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np

from ._callables import name_of, signature
from ._types import Function, Json, Table
from .compiled import CompiledFunction

Called = tuple[Function, bool]
"""A function, and whether it takes the inputs."""


@dataclass(frozen=True)
class KernelCall:
    """The Python function of a user's kernel, and the names of its parameters."""

    function: Function
    parameters: tuple[str, ...]


@dataclass
class Registry:
    """Python functions of a model by name."""

    functions: dict[str, Called] = field(default_factory=dict)
    sensors: dict[str, tuple[Called, Called | None]] = field(default_factory=dict)
    initials: dict[str, tuple[Function, Function]] = field(default_factory=dict)
    priors: dict[str, Function] = field(default_factory=dict)
    kernels: dict[str, tuple[Function, list[str]]] = field(default_factory=dict)

    def function(self, function: Function, what: str) -> Table:
        """Register a function of (x, u, *parameters); give the reference to it."""
        found = signature(function, (), what)
        known = [name for name, (other, _) in self.functions.items() if other is function]
        name = known[0] if known else _free_name(function, self.functions)
        self.functions[name] = (function, found.wants_u)
        return {"name": name, "parameters": list(found.parameters)}

    def sensor(self, log_density: Function, sample: Function | None) -> Table:
        """Register a sensor by its density and, if it can be drawn from, its sampler."""
        found = signature(log_density, ("y",), "log_density")
        drawn = None
        if sample is not None:
            other = signature(sample, ("rng",), "sample")
            if other.parameters != found.parameters:
                raise ValueError(
                    f"sample: its parameters {other.parameters} are not those of log_density, {found.parameters}"
                )
            drawn = (sample, other.wants_u)
        name = _free_name(log_density, self.sensors)
        self.sensors[name] = ((log_density, found.wants_u), drawn)
        return {"name": name, "parameters": list(found.parameters)}

    def initial(self, log_density: Function, sample: Function) -> str:
        """Register a density of the initial state."""
        signature(log_density, (), "log_density")
        name = _free_name(log_density, self.initials)
        self.initials[name] = (log_density, sample)
        return name

    def prior(self, log_density: Function) -> str:
        """Register the density of a parameter."""
        known = [name for name, other in self.priors.items() if other is log_density]
        name = known[0] if known else _free_name(log_density, self.priors)
        self.priors[name] = log_density
        return name

    def kernel(self, call: KernelCall) -> str:
        """Register a user's kernel."""
        if isinstance(call.function, CompiledFunction):
            call.function.check(3, "kernel", "(z, z2, parameters)")
        kernel = (call.function, list(call.parameters))
        known = [name for name, other in self.kernels.items() if other == kernel]
        name = known[0] if known else _free_name(call.function, self.kernels)
        self.kernels[name] = kernel
        return name

    def named(self, part: object) -> Json:
        """Put names in place of the functions of priors and kernels, and lists in place of tuples."""
        if isinstance(part, KernelCall):
            return self.kernel(part)
        if isinstance(part, Mapping):
            return {str(key): self.named(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return [self.named(value) for value in part]
        if isinstance(part, np.generic):
            part = part.item()
        if part is None or isinstance(part, bool | int | float | str):
            return part
        if callable(part):
            return self.prior(part)
        raise ValueError(f"model: {part!r} cannot be part of a model")

    def is_empty(self) -> bool:
        """Whether the model has no Python functions."""
        return not (self.functions or self.sensors or self.initials or self.priors or self.kernels)


def _free_name(function: Function, taken: Container[str]) -> str:
    base = name_of(function).strip("<>") or "function"
    name, k = base, 1
    while name in taken:
        k += 1
        name = f"{base}_{k}"
    return name
