"""Compiled functions: numba's ``@cfunc``, ``scipy.LowLevelCallable``, or the address of a function of C."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ._arguments import checked_class

__all__ = ["CompiledFunction"]

FUNCTION_POINTER = type(ctypes.CFUNCTYPE(None)()).__mro__[1]
"""What functions of ctypes are."""

ARGUMENTS = {3: "(x, u, parameters)", 4: "(y, x, u, parameters)"}
"""Pointers to float64 that a function takes, by their number."""


@checked_class
@dataclass(frozen=True, repr=False)
class CompiledFunction:
    """A compiled function of one point, which the sampler calls without the interpreter.

    As a mean, a known transition or a predictor it is ``double f(double *x, double *u, double *parameters)``; as
    the log density of a `SensorDensity` it has the outputs first, ``double f(double *y, double *x, double *u,
    double *parameters)``; as the function of a `KernelFunction` it takes two points, ``double k(double *z,
    double *z2, double *parameters)``. It must not write to its arguments, and is called from several threads.

    Parameters
    ----------
    function : numba cfunc, scipy.LowLevelCallable or int
        The function, or its address.
    parameters : list of str
        Names of its parameters, in their order; those of a kernel stand in `KernelFunction`.
    name : str, optional
        Its name in messages.

    Examples
    --------
    >>> import gpssm, numpy as np
    >>> numba = __import__("numba")  # doctest: +SKIP
    >>> @numba.cfunc("float64(CPointer(float64), CPointer(float64), CPointer(float64))")  # doctest: +SKIP
    ... def drift(x, u, p):
    ...     return p[0] * np.tanh(x[0]) + u[0]
    >>> mean = gpssm.CompiledFunction(drift, ["a"])  # doctest: +SKIP
    >>> gpssm.Model(mean=mean, parameters={"a": gpssm.Normal(0.9, 0.2)})  # doctest: +SKIP
    """

    function: object
    parameters: Sequence[str] = ()
    name: str = ""
    _gpssm_address: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        """Find the address, and check the signature as far as it is declared."""
        object.__setattr__(self, "_gpssm_address", _address(self.function))
        object.__setattr__(self, "name", self.name or _name(self.function))

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *arguments: object) -> float:
        """Refuse to be called from Python: the engine calls the address."""
        raise TypeError(f"{self.name} is compiled: the engine calls it, Python does not")

    def __repr__(self) -> str:
        return f"gpssm.CompiledFunction({self.name}, parameters={list(self.parameters)})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            f"{self.name}: a compiled function has an address in this process alone; it cannot be pickled or sent "
            "to other processes. Run chains in threads (without an executor)"
        )

    def check(self, n_arguments: int, what: str, arguments: str | None = None) -> None:
        """Refuse a function that is declared with other arguments."""
        declared = _declared(self.function)
        if declared is not None and declared != n_arguments:
            raise ValueError(
                f"{what}: {self.name} is declared with {declared} arguments; it must take {n_arguments} pointers "
                f"to float64, {arguments or ARGUMENTS[n_arguments]}, and return float64"
            )


def _address(function: object) -> int:
    if isinstance(function, bool):
        raise ValueError(f"function: expected a compiled function or its address, not {function!r}")
    if isinstance(function, int):
        address = function
    elif isinstance(getattr(function, "address", None), int):
        address = function.address  # type: ignore[attr-defined]
    elif type(getattr(function, "function", None)).__name__ in ("PyCapsule", "_FuncPtr", "CFunctionType"):
        address = _of_capsule(function)
    elif isinstance(function, FUNCTION_POINTER):
        address = ctypes.cast(cast("Any", function), ctypes.c_void_p).value or 0
    else:
        raise ValueError(
            f"function: expected numba's cfunc, scipy.LowLevelCallable, a ctypes function or an address, not "
            f"{type(function).__name__}"
        )
    if address <= 0:
        raise ValueError(f"function: {address} is no address")
    return address


def _of_capsule(function: object) -> int:
    """Address inside the capsule of a LowLevelCallable."""
    capsule = tuple.__getitem__(function, 0) if isinstance(function, tuple) else function.function  # type: ignore[attr-defined]
    if isinstance(capsule, FUNCTION_POINTER):
        return ctypes.cast(cast("Any", capsule), ctypes.c_void_p).value or 0
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer_of(capsule, name_of(capsule)) or 0)


def _declared(function: object) -> int | None:
    """Number of arguments that a function declares; none if it says nothing. Other types are refused."""
    signature = getattr(function, "_sig", None)
    if signature is not None and hasattr(signature, "args"):
        kinds = [str(kind) for kind in signature.args]
        if str(signature.return_type) != "float64" or any(kind != "float64*" for kind in kinds):
            raise ValueError(
                f"function: {_name(function)} is declared as {signature}; it must take pointers, "
                "CPointer(float64), and return float64"
            )
        return len(kinds)
    text = getattr(function, "signature", None)
    if isinstance(text, str) and "(" in text:
        kinds = [kind.strip() for kind in text[text.index("(") + 1 : text.rindex(")")].split(",")]
        if any(not kind.replace("const", "").replace(" ", "").startswith("double*") for kind in kinds):
            raise ValueError(
                f"function: its signature is {text!r}; it must take pointers to double and return double"
            )
        return len(kinds)
    return None


def _name(function: object) -> str:
    return str(getattr(function, "__name__", None) or getattr(function, "_pyfunc", None) or "compiled")
