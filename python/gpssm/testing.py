"""Checks of parts of your own: that they are what they claim to be.

They raise AssertionError with what is wrong, draw with fixed seeds, and are meant for your tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arguments import checked
from ._callables import signature
from ._registry import Registry
from ._types import Floats, Json
from .kernels import Kernel
from .sensors import SensorDensity

__all__ = ["check_kernel", "check_sensor"]

Support = str | Mapping[str, Json]
"""``"real"``, ``"counts"``, or as `SensorDensity` has it: ``{"integers": {"low": 0, "high": 9}}``."""


@checked
def check_kernel(kernel: Kernel, n_x: int = 1, n_u: int = 0) -> None:
    """Check a kernel with numbers for its hyper-parameters at random points.

    It must be symmetric and positive semi-definite; built-in kernels are also checked for their derivatives,
    spectral densities and finite bases.

    Parameters
    ----------
    kernel : Kernel
        All hyper-parameters must be numbers.
    n_x, n_u : int
        Numbers of states and inputs, the components of z.

    Raises
    ------
    AssertionError
        With what the kernel gets wrong, and where.

    Examples
    --------
    >>> import gpssm
    >>> check_kernel(gpssm.KernelFunction(lambda z, z2, a: (a * z @ z2) ** 2, {"a": 0.5}))
    >>> check_kernel(gpssm.KernelFunction(lambda z, z2: z[:, 0] - z2[0]))
    Traceback (most recent call last):
        ...
    AssertionError: ...
    """
    registry = Registry()
    table = json.dumps(registry.named(kernel.to_dict()))
    _core.check_kernel(table, registry.kernels, n_x, n_x + n_u)


@checked
def check_sensor(
    sensor: SensorDensity,
    x: ArrayLike,
    u: ArrayLike | None = None,
    *,
    parameters: Mapping[str, float] | None = None,
    support: Support | Sequence[Support] = "real",
) -> None:
    """Check a sensor that is given by Python functions.

    The density of each output, the others missing, integrates (or sums) to one; 20 000 draws lie in the support
    and follow that density; the log density of many points at once is that of single points.

    Parameters
    ----------
    sensor : SensorDensity
        With a function ``log_density`` and, unless the support is finite, ``sample``.
    x : array_like, (n, n_x)
        States at which to check.
    u : array_like, (n, n_u), optional
        Inputs that go with them.
    parameters : mapping, optional
        Values of the parameters of the functions.
    support : "real", "counts" or mapping, or one for each output
        Where the outputs can lie, such as ``{"interval": {"low": 0.0, "high": 1.0}}``.

    Raises
    ------
    AssertionError
        If the sensor is not what it claims to be.

    Examples
    --------
    >>> def log_density(y, x, scale):
    ...     return -np.abs(y[0] - x[:, 0]) / scale - np.log(2 * scale)
    >>> def sample(rng, x, scale):
    ...     return x[:, 0] + rng.laplace(scale=scale, size=len(x))
    >>> check_sensor(SensorDensity(log_density, sample), [[0.5]], parameters={"scale": 0.3})
    """
    if isinstance(sensor.log_density, str):
        raise ValueError("sensor: only sensors given by Python functions can be checked")
    registry = Registry()
    registry.sensor(sensor.log_density, sensor.sample)
    ((log_density, sample),) = registry.sensors.values()
    states = _matrix(x)
    inputs = np.empty((len(states), 0)) if u is None else _matrix(u)
    names = signature(sensor.log_density, ("y",), "log_density").parameters
    given = dict(parameters or {})
    if set(given) != set(names):
        raise ValueError(f"parameters: expected {list(names)}, not {list(given)}")
    supports = [support] if isinstance(support, str | Mapping) else list(support)
    z = np.ascontiguousarray(np.hstack([states, inputs]))
    values = [float(given[name]) for name in names]
    _core.check_sensor(log_density, sample, z, states.shape[1], values, [_bounds(s) for s in supports])


def _matrix(values: ArrayLike) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    return matrix[:, None] if matrix.ndim == 1 else matrix


def _bounds(support: Support) -> tuple[bool, float, float]:
    """Whether outputs are whole numbers, and their least and greatest value."""
    words = {"real": (False, -np.inf, np.inf), "counts": (True, 0.0, np.inf)}
    if isinstance(support, str) and support in words:
        return words[support]
    if isinstance(support, Mapping) and len(support) == 1:
        ((kind, ends),) = support.items()
        if kind in {"interval", "integers"} and isinstance(ends, Mapping):
            return kind == "integers", float(ends["low"]), float(ends["high"])  # type: ignore[arg-type]
    raise ValueError(
        f"support: expected 'real', 'counts' or {{'interval': {{'low': ..., 'high': ...}}}}, not {support!r}"
    )
