"""Building blocks for researchers: the paper's densities and filters, one call each.

Equation numbers are those of Frigola, Lindsten, Schön, Rasmussen (2013), *Bayesian inference and learning in
Gaussian process state-space models with particle MCMC*, NIPS 26.

==========================================  ====================================================
in the paper                                here
==========================================  ====================================================
kernels                                     ``kernel(Z, Z2)``, see `gpssm.kernels`
eq. 3, one-step prediction, f integrated    `Transition.one_step`
out
eq. 4, joint density of a path              `Transition.log_joint`
eq. 8, ancestor weights                     `Transition.ancestor_log_weights`
eq. 11 and 12, posterior of f               `Transition.f_posterior`
section 3.2, particle filter                `StateSpace.particle_filter`
section 3.3, Algorithm 1, steps b and c     `StateSpace.conditional_filter`
section 3.3.2, hyper-parameters             `slice_update`
thinning of draws                           `kernel_herding`
section 4, FIC                              ``Transition(..., dynamics=FIC(points))``
==========================================  ====================================================

Paths ``x`` have one row for each time and one column for each state; inputs ``u`` have one row for each time. A
one-dimensional array stands for a single column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arguments import checked, checked_class
from ._callables import signature
from ._registry import Registry
from ._settings import Proposal, Resampling
from ._types import Floats, Function, Table
from .kernels import Kernel
from .sensors import SensorDensity

__all__ = [
    "DTC",
    "FIC",
    "FilterResult",
    "Gaussian",
    "Hilbert",
    "LinearFunction",
    "LinearGaussian",
    "Random",
    "SliceResult",
    "StateSpace",
    "Transition",
    "kernel_herding",
    "slice_update",
]

Rng = int | _core.Random
Random = _core.Random


@dataclass(frozen=True)
class Gaussian:
    """N(mean, cov)."""

    mean: Floats
    cov: Floats


@checked_class
@dataclass(frozen=True)
class FIC:
    """Fully independent conditional on inducing inputs (section 4); one row for each point (x, u)."""

    points: ArrayLike


@checked_class
@dataclass(frozen=True)
class DTC:
    """Inducing inputs without FIC's correction of the variance."""

    points: ArrayLike


@checked_class
@dataclass(frozen=True)
class Hilbert:
    """Laplace eigenfunctions on the box center +- half_width of (x, u)."""

    half_width: ArrayLike
    functions: int
    center: ArrayLike | None = None


@checked_class
@dataclass(frozen=True)
class LinearFunction:
    """weights . (x, u) + offset."""

    weights: Sequence[float]
    offset: float = 0.0


Mean = Literal["identity", "zero"] | Function | LinearFunction
"""A mean function."""


def _matrix(value: ArrayLike | None, what: str, n_columns: int | None = None) -> Floats:
    if value is None:
        return np.zeros((0, 0))
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: expected numbers in rows of equal length") from None
    if array.ndim < 2:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or (n_columns is not None and array.shape[1] != n_columns):
        columns = "n" if n_columns is None else str(n_columns)
        raise ValueError(f"{what}: expected shape (T, {columns}), not {array.shape}")
    return array


class _Functions:
    """Numbers for functions, and the Python functions among them."""

    def __init__(self) -> None:
        self.callables: list[tuple[Function, bool]] = []

    def add(self, function: Function, first: tuple[str, ...], what: str) -> int:
        found = signature(function, first, what)
        if found.parameters:
            raise ValueError(f"{what}: arguments {', '.join(found.parameters)} have no value here")
        self.callables.append((function, found.wants_u))
        return len(self.callables) - 1

    def numbers(self, mean: Mean, d: int, what: str) -> Table:
        if mean == "identity":
            return {"kind": "component", "index": d}
        if mean == "zero":
            return {"kind": "zero"}
        if isinstance(mean, LinearFunction):
            weights = [float(w) for w in np.ravel(mean.weights)]
            return {"kind": "linear", "weights": weights, "offset": float(mean.offset)}
        if callable(mean):
            return {"kind": "callable", "index": self.add(mean, (), what)}
        raise ValueError(f"{what}: expected 'identity', 'zero', a LinearFunction or a function, not {mean!r}")


class Transition:
    """x_{t+1} = f(x_t, u_t) + v_t, v ~ N(0, Q), f_d ~ GP(m_d, k_d), with numbers (eq. 2).

    Parameters
    ----------
    kernels : Kernel or list of Kernel
        One covariance function for each state, with numbers for its hyper-parameters; ``gpssm.Sum([])`` for a
        known transition.
    Q : float or array_like (n_x, n_x) or (n_x,)
        Process noise covariance; a vector holds variances.
    mean : "identity", "zero", LinearFunction or function, or one for each state
        Mean functions. A function is called with many points at once, ``m(x)`` or ``m(x, u)``, x of shape
        (n, n_x), and returns (n,).
    n_u : int
        Number of inputs.
    lags : list, optional
        For each state None, or the index of the state that it copies one step later.
    dynamics : FIC, DTC or Hilbert, optional
        A finite basis in place of the Gaussian process.

    Examples
    --------
    >>> import gpssm
    >>> f = Transition(gpssm.SquaredExponential(sigma_f=2**0.5, ell=1.0), Q=0.5)
    >>> next = f.one_step([0.3, 0.8])
    >>> next.mean.round(4), next.cov.round(4)
    (array([1.153]), array([[1.2539]]))
    """

    @checked
    def __init__(
        self,
        kernels: Kernel | Sequence[Kernel],
        Q: ArrayLike,
        mean: Mean | Sequence[Mean] = "identity",
        *,
        n_u: int = 0,
        lags: Sequence[int | None] | None = None,
        dynamics: FIC | DTC | Hilbert | None = None,
    ) -> None:
        kernels = [kernels] if isinstance(kernels, Kernel) else list(kernels)
        self.n_x, self.n_u = len(kernels), n_u
        means: list[Mean] = list(mean) if isinstance(mean, list | tuple) else [cast("Mean", mean)] * self.n_x
        if len(means) != self.n_x:
            raise ValueError(f"mean: {len(means)} functions for {self.n_x} states")
        functions, registry = _Functions(), Registry()
        numbers = [functions.numbers(m, d, f"mean[{d}]") for d, m in enumerate(means)]
        lags = [None] * self.n_x if lags is None else list(lags)
        self._core = _core.Transition(
            json.dumps(registry.named([kernel.to_dict() for kernel in kernels])),
            registry.kernels,
            n_u,
            json.dumps(numbers),
            functions.callables,
            self._noise(Q),
            lags,
            json.dumps(_basis_numbers(dynamics, self.n_x + n_u)),
        )

    def _noise(self, q: ArrayLike) -> Floats:
        noise = np.asarray(q, dtype=np.float64)
        if noise.ndim < 2:
            noise = np.diag(np.broadcast_to(noise, (self.n_x,)))
        if noise.shape != (self.n_x, self.n_x):
            raise ValueError(f"Q: expected shape ({self.n_x}, {self.n_x}), not {noise.shape}")
        return np.ascontiguousarray(noise)

    def _inputs(self, u: ArrayLike | None, what: str = "u") -> Floats:
        if u is None:
            if self.n_u:
                raise ValueError(f"{what}: the transition has {self.n_u} inputs, none are given")
            return np.zeros((0, 0))
        return _matrix(u, what, self.n_u)

    @checked
    def one_step(self, x: ArrayLike, u: ArrayLike | None = None) -> Gaussian:
        """Predict x_t from x_{0:t-1} and u_{0:t-1} with f integrated out, process noise included (eq. 3).

        Parameters
        ----------
        x : array_like, (t, n_x)
        u : array_like, (t, n_u), optional
            Rows beyond those that are needed are not looked at.

        Returns
        -------
        Gaussian
            ``mean`` (n_x,) and ``cov`` (n_x, n_x).
        """
        return Gaussian(*self._core.one_step(_matrix(x, "x", self.n_x), self._inputs(u)))

    @checked
    def log_joint(self, x: ArrayLike, u: ArrayLike | None = None) -> float:
        """Log density of a path, log p(x_{1:T} | x_0) with f integrated out (eq. 4).

        Parameters
        ----------
        x : array_like, (T + 1, n_x)
        u : array_like, (T, n_u), optional
        """
        return self._core.log_joint(_matrix(x, "x", self.n_x), self._inputs(u))

    @checked
    def ancestor_log_weights(self, prefixes: ArrayLike, future: ArrayLike, u: ArrayLike | None = None) -> Floats:
        """Log density of a reference's future after each of several prefixes, not normalised (eq. 8).

        Parameters
        ----------
        prefixes : array_like, (N, t, n_x)
            Particles x_{0:t-1}.
        future : array_like, (T + 1 - t, n_x)
            The reference x_{t:T}.
        u : array_like, (T, n_u), optional

        Returns
        -------
        numpy.ndarray, (N,)
            log p(future | prefix); add the logarithms of the particles' own weights.
        """
        stack = np.ascontiguousarray(prefixes, dtype=np.float64)
        if stack.ndim == 2 and self.n_x == 1:
            stack = stack[:, :, None]
        if stack.ndim != 3 or stack.shape[2] != self.n_x:
            raise ValueError(f"prefixes: expected shape (N, t, {self.n_x}), not {stack.shape}")
        return self._core.ancestor_log_weights(stack, _matrix(future, "future", self.n_x), self._inputs(u))

    @checked
    def f_posterior(
        self,
        x: ArrayLike,
        u: ArrayLike | None,
        x_star: ArrayLike,
        u_star: ArrayLike | None = None,
    ) -> Gaussian:
        """Posterior of f at test points given a path, without process noise (eq. 11 and 12).

        Parameters
        ----------
        x : array_like, (T + 1, n_x)
        u : array_like, (T, n_u) or None
        x_star : array_like, (n, n_x)
        u_star : array_like, (n, n_u), optional

        Returns
        -------
        Gaussian
            ``mean`` (n, n_x) and ``cov`` (n n_x, n n_x), ordered (point, state).
        """
        x_star = _matrix(x_star, "x_star", self.n_x)
        u_star = self._inputs(u_star, "u_star")
        return Gaussian(*self._core.f_posterior(_matrix(x, "x", self.n_x), self._inputs(u), x_star, u_star))


def _basis_numbers(basis: FIC | DTC | Hilbert | None, n_z: int) -> Table:
    if basis is None:
        return {"kind": "exact"}
    if isinstance(basis, Hilbert):
        half_width = np.broadcast_to(np.asarray(basis.half_width, dtype=np.float64), (n_z,))
        center = np.broadcast_to(np.asarray(0.0 if basis.center is None else basis.center), (n_z,))
        if not (half_width > 0).all() or basis.functions < 1:
            raise ValueError("Hilbert: half_width must be positive, and functions at least one")
        numbers = {"center": center.tolist(), "half_width": half_width.tolist()}
        return {"kind": "hilbert", **numbers, "functions": int(basis.functions)}
    points = _matrix(basis.points, "points", n_z)
    if not len(points) or not np.isfinite(points).all():
        raise ValueError("points: inducing inputs must be finite, at least one")
    return {"kind": "fic" if isinstance(basis, FIC) else "dtc", "points": points.tolist()}


@checked_class
@dataclass(frozen=True)
class LinearGaussian:
    """y = C x + D u + offset + e, e ~ N(0, R)."""

    C: ArrayLike
    R: ArrayLike
    D: ArrayLike | None = None
    offset: ArrayLike | None = None


@dataclass(frozen=True)
class FilterResult:
    """What one pass of a filter gives.

    Attributes
    ----------
    path : numpy.ndarray, (T + 1, n_x)
        One path, drawn with the final weights.
    log_marginal_likelihood : float
        Estimate of log p(y); its exponential is unbiased without a reference.
    n_clamped : int
        Predictive covariances that rounding pushed below the process noise.
    """

    path: Floats
    log_marginal_likelihood: float
    n_clamped: int


class StateSpace:
    """A state-space model with numbers, on which particle filters run (eq. 2).

    Parameters
    ----------
    transition : Transition
    sensor : LinearGaussian or gpssm.SensorDensity
        A density must be a Python function without parameters.
    initial_mean : array_like, (n_x,)
    initial_cov : float or array_like (n_x, n_x), optional
        Covariance of x_0; without it x_0 is known.

    Examples
    --------
    >>> import gpssm
    >>> f = Transition(gpssm.SquaredExponential(sigma_f=1.0, ell=1.0), Q=0.1)
    >>> model = StateSpace(f, LinearGaussian(C=1.0, R=0.01), initial_mean=0.0, initial_cov=1.0)
    >>> y = [0.0, 0.1, 0.3, 0.5]
    >>> model.particle_filter(y, n_particles=50, rng=1).path.shape
    (4, 1)
    """

    @checked
    def __init__(
        self,
        transition: Transition,
        sensor: LinearGaussian | SensorDensity,
        initial_mean: ArrayLike = 0.0,
        initial_cov: ArrayLike | None = None,
    ) -> None:
        self.transition = transition
        n_x, n_u = transition.n_x, transition.n_u
        functions = _Functions()
        if isinstance(sensor, LinearGaussian):
            numbers, n_y = self._linear(sensor, n_x, n_u)
            self.n_y: int | None = n_y
        else:
            self.n_y = None
            numbers = {"kind": "user", "sample": None}
            if isinstance(sensor.log_density, str):
                raise ValueError("log_density: give a Python function; formulas belong to models")
            numbers["log_density"] = functions.add(sensor.log_density, ("y",), "log_density")
            if sensor.sample is not None:
                numbers["sample"] = functions.add(sensor.sample, ("rng",), "sample")
        mean = np.broadcast_to(np.asarray(initial_mean, dtype=np.float64), (n_x,)).tolist()
        if initial_cov is None:
            initial: Table = {"kind": "fixed", "x": mean}
        else:
            cov = np.asarray(initial_cov, dtype=np.float64)
            cov = np.diag(np.broadcast_to(cov, (n_x,))) if cov.ndim < 2 else cov
            if cov.shape != (n_x, n_x):
                raise ValueError(f"initial_cov: expected shape ({n_x}, {n_x}), not {cov.shape}")
            initial = {"kind": "gaussian", "mean": mean, "covariance": cov.ravel().tolist()}
        self._core = _core.StateSpace(
            transition._core, json.dumps(numbers), json.dumps(initial), functions.callables
        )

    @staticmethod
    def _linear(sensor: LinearGaussian, n_x: int, n_u: int) -> tuple[Table, int]:
        c = np.atleast_2d(np.asarray(sensor.C, dtype=np.float64))
        n_y = len(c)
        if c.shape[1] != n_x:
            raise ValueError(f"C: expected shape (n_y, {n_x}), not {c.shape}")
        d = np.zeros((n_y, n_u)) if sensor.D is None else np.atleast_2d(np.asarray(sensor.D, dtype=np.float64))
        if d.shape != (n_y, n_u):
            raise ValueError(f"D: expected shape ({n_y}, {n_u}), not {d.shape}")
        r = np.asarray(sensor.R, dtype=np.float64)
        r = np.diag(np.broadcast_to(r, (n_y,))) if r.ndim < 2 else r
        if r.shape != (n_y, n_y):
            raise ValueError(f"R: expected shape ({n_y}, {n_y}), not {r.shape}")
        offset = 0.0 if sensor.offset is None else sensor.offset
        numbers: Table = {
            "kind": "linear_gaussian",
            "weights": np.hstack([c, d]).ravel().tolist(),
            "offset": np.broadcast_to(np.asarray(offset, dtype=np.float64), (n_y,)).tolist(),
            "r": r.ravel().tolist(),
        }
        return numbers, n_y

    def _filter(
        self,
        y: ArrayLike,
        u: ArrayLike | None,
        x_ref: ArrayLike | None,
        n_particles: int,
        resampling: Resampling,
        proposal: Proposal,
        rng: Rng,
    ) -> FilterResult:
        outputs = _matrix(y, "y", self.n_y)
        if len(outputs) < 1:
            raise ValueError("y: at least one row is needed")
        inputs = self.transition._inputs(u)
        if self.transition.n_u and len(inputs) != len(outputs):
            raise ValueError(f"u has {len(inputs)} rows, y has {len(outputs)}")
        reference = None if x_ref is None else _matrix(x_ref, "x_ref", self.transition.n_x)
        if reference is not None and (len(reference) != len(outputs) or not np.isfinite(reference).all()):
            raise ValueError(f"x_ref: expected {len(outputs)} finite rows, one for each row of y")
        if n_particles < 2:
            raise ValueError(f"n_particles: at least two are needed, not {n_particles}")
        stream = rng if isinstance(rng, _core.Random) else _core.Random(int(rng))
        inputs_or_none = inputs if self.transition.n_u else None
        return FilterResult(
            *self._core.filter(outputs, inputs_or_none, reference, n_particles, resampling, proposal, stream)
        )

    @checked
    def particle_filter(
        self,
        y: ArrayLike,
        u: ArrayLike | None = None,
        *,
        n_particles: int = 100,
        resampling: Resampling = "systematic",
        proposal: Proposal = "auto",
        rng: Rng = 0,
    ) -> FilterResult:
        """Run the particle filter with f integrated out (section 3.2).

        Parameters
        ----------
        y : array_like, (T + 1, n_y)
            NaN where nothing was measured.
        u : array_like, (T + 1, n_u), optional
        rng : int or Random
            A seed, or a stream that continues from call to call.
        """
        return self._filter(y, u, None, n_particles, resampling, proposal, rng)

    @checked
    def conditional_filter(
        self,
        y: ArrayLike,
        u: ArrayLike | None = None,
        *,
        x_ref: ArrayLike,
        n_particles: int = 20,
        resampling: Resampling = "systematic",
        proposal: Proposal = "auto",
        rng: Rng = 0,
    ) -> FilterResult:
        """Run one sweep of CPF-AS: a new path given the old one (Algorithm 1, steps b and c).

        Leaves p(x_{0:T} | y, theta) invariant for any number of particles from two on.

        Parameters
        ----------
        x_ref : array_like, (T + 1, n_x)
            The reference path.
        """
        return self._filter(y, u, x_ref, n_particles, resampling, proposal, rng)


@dataclass(frozen=True)
class SliceResult:
    """What one slice update did."""

    x: float
    log_density: float
    evaluations: int
    failures: int
    capped: bool
    interval: float


@checked
def slice_update(
    x0: float,
    log_density: Callable[[float], float],
    width: float = 1.0,
    *,
    rng: Rng = 0,
    max_step_out: int = 16,
    max_shrink: int = 100,
) -> SliceResult:
    """Make one slice-sampling update of a scalar, with stepping out and shrinkage (Neal 2003; section 3.3.2).

    Parameters
    ----------
    x0 : float
        Where the chain is.
    log_density : function
        Log of the target density up to a constant.
    width : float
        First size of the interval.
    rng : int or Random
        A seed, or a stream that continues from call to call.

    Examples
    --------
    >>> rng = Random(1)
    >>> x = 0.0
    >>> draws = [x := slice_update(x, lambda x: -0.5 * x * x, 2.0, rng=rng).x for _ in range(2000)]
    >>> bool(abs(np.std(draws) - 1.0) < 0.1)
    True
    """
    if not (np.isfinite(x0) and np.isfinite(width) and width > 0):
        raise ValueError(f"slice_update: x0 = {x0} and width = {width} must be finite, width positive")
    stream = rng if isinstance(rng, _core.Random) else _core.Random(int(rng))
    return SliceResult(**_core.slice_update(x0, log_density, width, stream, max_step_out, max_shrink))


@checked
def kernel_herding(K: ArrayLike, k: int, *, weights: ArrayLike | None = None) -> NDArray[np.int64]:
    """Choose points whose mean embedding is close to that of all (Chen, Welling, Smola 2010).

    Each next point is the one with the largest sum_b w_b K[a, b] - sum_c K[a, c] / (chosen + 1), c the points
    chosen so far; none comes twice.

    Parameters
    ----------
    K : array_like, (n, n)
        Kernel matrix of the points, for example ``kernel(Z, Z)``.
    k : int
        How many are chosen.
    weights : array_like, (n,), optional
        Shares of the points; equal by default.

    Returns
    -------
    numpy.ndarray, (k,)
        Numbers of the points, in the order of choice.

    Examples
    --------
    >>> import gpssm
    >>> z = np.linspace(-3, 3, 7)
    >>> sorted(kernel_herding(gpssm.SquaredExponential(sigma_f=1.0, ell=1.0)(z, z), 3).tolist())
    [1, 3, 5]
    """
    matrix = _matrix(K, "K")
    n = len(matrix)
    if n == 0 or matrix.shape != (n, n) or not np.isfinite(matrix).all():
        raise ValueError(f"K: expected a finite square matrix, not {matrix.shape}")
    shares = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (n,) or not np.isfinite(shares).all():
        raise ValueError(f"weights: expected {n} finite numbers, not shape {shares.shape}")
    if not 1 <= k <= n:
        raise ValueError(f"k: {k} of {n} points cannot be chosen")
    return np.asarray(_core.kernel_herding(matrix, shares.tolist(), int(k)), dtype=np.int64)
