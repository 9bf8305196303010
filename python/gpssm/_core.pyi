"""Types of the private extension module."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = tuple[Callable[..., object], bool]
UserKernels = Mapping[str, tuple[Callable[..., object], list[str]]]
Labels = tuple[list[str], list[str], list[str], list[list[float]], str | None]
# Outputs, inputs, labels of sequences, times of rows, dates as JSON.
ArrayDraws = tuple[Floats, Sequence[Floats], Floats]

VERSION: str

class FoundDraws(TypedDict):
    theta: Floats
    paths: Sequence[Floats]
    statistics: dict[str, NDArray[np.generic]]

class StoredChain(TypedDict):
    chain: int
    state: str | None
    draws: FoundDraws
    warmup: FoundDraws

class FoundChain(StoredChain):
    start_log_marginal_likelihood: float | None

class StoredRun(TypedDict):
    configuration: str
    states: list[str]
    labels: Labels
    y: list[Floats]
    u: list[Floats]
    measured: tuple[list[Floats], list[Floats]] | None
    basis: str | None
    chains: list[StoredChain]

class FoundFunction(TypedDict):
    mean: Floats
    cov: Floats
    quantiles: Floats
    warnings: list[str]

class FoundPaths(TypedDict):
    x: Floats
    y: Floats
    draws: list[int]
    warnings: list[str]

class FoundStates(TypedDict):
    mean: Floats
    sd: Floats
    log_marginal_likelihood: Floats
    warnings: list[str]

class FoundSmooth(TypedDict):
    x: Floats
    draws: list[int]
    log_marginal_likelihood: float
    warnings: list[str]

class FoundAhead(TypedDict):
    y: Floats
    first_row: int
    log_score: Floats
    warnings: list[str]

class FoundPrior(TypedDict):
    theta: Floats
    x: list[Floats]
    y: list[Floats]
    diverged: int

class FoundSlice(TypedDict):
    x: float
    log_density: float
    evaluations: int
    failures: int
    capped: bool
    interval: float

class Random:
    def __init__(self, seed: int) -> None: ...

class Transition:
    def __init__(
        self,
        kernels: str,
        user_kernels: UserKernels,
        n_u: int,
        means: str,
        callables: Sequence[Function],
        q: Floats,
        lags: Sequence[int | None],
        prior: str,
    ) -> None: ...
    def one_step(self, x: Floats, u: Floats) -> tuple[Floats, Floats]: ...
    def log_joint(self, x: Floats, u: Floats) -> float: ...
    def ancestor_log_weights(self, prefixes: Floats, future: Floats, u: Floats) -> Floats: ...
    def f_posterior(self, x: Floats, u: Floats, x_star: Floats, u_star: Floats) -> tuple[Floats, Floats]: ...

class StateSpace:
    def __init__(
        self, transition: Transition, sensor: str, initial: str, callables: Sequence[Function]
    ) -> None: ...
    def filter(
        self,
        y: Floats,
        u: Floats | None,
        x_ref: Floats | None,
        n_particles: int,
        resampling: str,
        proposal: str,
        random: Random,
    ) -> tuple[Floats, float, int]: ...

class Problem:
    def __init__(
        self,
        keys: str,
        y: Sequence[Floats],
        u: Sequence[Floats] | None,
        labels: Labels,
        measured: tuple[Sequence[Floats], Sequence[Floats] | None] | None,
        callables: tuple[
            Mapping[str, Function],
            Mapping[str, tuple[Function, Function | None]],
            Mapping[str, tuple[Callable[..., object], Callable[..., object]]],
            Mapping[str, Callable[..., object]],
            UserKernels,
        ],
    ) -> None: ...
    @property
    def model(self) -> str: ...
    @property
    def settings(self) -> str: ...
    @property
    def state_names(self) -> list[str]: ...
    def to_toml(self) -> str: ...
    @property
    def parameter_names(self) -> list[str]: ...
    def parameter_arrays(self, learned: bool) -> list[tuple[str, list[tuple[str, list[str]]], list[int]]]: ...
    @property
    def n_x(self) -> int: ...
    @property
    def basis(self) -> str | None: ...
    def check(self, settings: str) -> None: ...
    def sample_prior(self, n: int, seed: int) -> FoundPrior: ...
    def log_prior(self, theta: Floats) -> Floats: ...
    def prior_theta(self, n: int, seed: int) -> Floats: ...
    def faults(self) -> str | None: ...
    def time_limit(self, settings: str) -> float | None: ...
    def with_basis(self, basis: str) -> Problem: ...
    def prepare(self, settings: str) -> Problem: ...
    def sample(
        self,
        settings: str,
        plans: Sequence[tuple[int, str | None, ArrayDraws | None]],
        save_warmup: bool,
        on_progress: Callable[[int, str, int, int], None] | None,
        on_look: Callable[[int, float | None, str, float | None, str, int | None], None] | None,
        store: tuple[str, bool] | None,
    ) -> tuple[list[FoundChain], Literal["complete", "interrupted", "budget"], str | None]: ...

class Posterior:
    def __init__(self, problem: Problem, chains: Sequence[ArrayDraws], max_draws: int | None) -> None: ...
    def predict(
        self, x_star: Floats, u_star: Floats, next_state: bool, probabilities: Sequence[float]
    ) -> FoundFunction: ...
    def simulate(
        self, u: Floats | None, n_rows: int, y: Floats | None, initial_state: str, options: str, raw: bool
    ) -> FoundPaths: ...
    def filter(self, y: Floats, u: Floats | None, initial_state: str, options: str) -> FoundStates: ...
    def smooth(self, y: Floats, u: Floats | None, n_paths: int, options: str) -> FoundSmooth: ...
    def predict_ahead(
        self, y: Floats, u: Floats | None, k: int, n_samples: int, initial_state: str, options: str
    ) -> FoundAhead: ...
    def log_likelihood(self) -> tuple[bool, Floats]: ...
    def replicate(self, seed: int) -> Floats: ...
    @staticmethod
    def compare(
        models: Sequence[tuple[str, Posterior]], y: Floats, u: Floats | None, n_init: int, options: str
    ) -> str: ...
    def score(self, y: Floats, u: Floats | None, options: str) -> tuple[str, list[str]]: ...
    def thin(self, k: int, method: str, seed: int) -> str: ...
    def distil(self, options: str) -> str: ...
    def with_scenarios(self, distilled: str, k: int, seed: int) -> str: ...
    def linearise(
        self, x: Sequence[float], u: Sequence[float], level: float, steps: int | None, seed: int
    ) -> str: ...
    def equilibrium(self, x: Sequence[float] | None, u: Sequence[float], level: float, seed: int) -> str: ...
    def visited(self) -> list[tuple[float, float]]: ...

def compare_futures(
    models: Sequence[tuple[str, Problem, str]],
    options: str,
    on_row: Callable[[int, int, int, int], None] | None,
) -> str: ...
def smooth_weights(log_weights: Floats) -> tuple[Floats, float, float]: ...
def kernel_matrix(kernel: str, callables: UserKernels, n_x: int, z: Floats, other: Floats) -> Floats: ...
def check_kernel(kernel: str, callables: UserKernels, n_x: int, n_z: int) -> None: ...
def kernels() -> str: ...
def kernel_herding(kernel: Floats, weights: Sequence[float], k: int) -> list[int]: ...
def slice_update(
    x0: float,
    log_density: Callable[[float], float],
    width: float,
    random: Random,
    max_step_out: int,
    max_shrink: int,
) -> FoundSlice: ...
def laid_out(
    layout: tuple[int, int, int], y: Sequence[Floats], u: Sequence[Floats] | None, inputs: Sequence[str]
) -> tuple[list[Floats], list[Floats] | None, list[str]]: ...
def toml_text(table: str) -> str: ...
def sensor_families() -> str: ...
def check_sensor(
    log_density: tuple[Callable[..., object], bool],
    sample: tuple[Callable[..., object], bool] | None,
    z: Floats,
    n_x: int,
    parameters: Sequence[float],
    supports: Sequence[tuple[bool, float, float]],
) -> None: ...
def choose(
    keys: str,
    y: Sequence[Floats],
    u: Sequence[Floats] | None,
    labels: Labels,
    on_progress: Callable[[int, int], None] | None,
) -> str: ...
def save_run(
    path: str, problem: Problem, settings: str, chains: Sequence[tuple[int, str | None, ArrayDraws, ArrayDraws]]
) -> None: ...
def open_run(path: str) -> StoredRun: ...
def run_program(words: list[str]) -> int: ...
def report(
    problem: Problem, chains: Sequence[ArrayDraws], settings: str, title: str, facts: Sequence[tuple[str, str]]
) -> str: ...
def summarise(quantities: Sequence[Floats], level: float) -> Floats: ...
def assess(
    problem: Problem, settings: str, chains: Sequence[ArrayDraws], resume: str
) -> tuple[bool, list[tuple[str, float, float, float]], list[str], list[str]]: ...
def next_look(draws: int) -> int: ...
def budget(text: str) -> str: ...
def evaluate_distilled(distilled: str, x: Floats, u: Floats) -> tuple[Floats, Floats, Floats]: ...
def export_c(distilled: str, options: str) -> list[tuple[str, str]]: ...
def export_expressions(distilled: str) -> str: ...
def export_onnx(distilled: str, options: str) -> tuple[str, bytes]: ...
def fmu_sources(distilled: str, options: str) -> list[tuple[str, str]]: ...
def export_fmu(distilled: str, options: str, binaries: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]: ...
