import numpy as np
import pytest

import gpssm


def simulate(n=40, seed=1):
    """A driven first-order system that saturates."""
    rng = np.random.default_rng(seed)
    u = np.sin(0.3 * np.arange(n)) + 0.3 * rng.normal(size=n)
    x = np.zeros(n)
    for t in range(n - 1):
        x[t + 1] = 0.9 * np.tanh(x[t]) + 0.5 * u[t] + 0.05 * rng.normal()
    return x + 0.05 * rng.normal(size=n), u


QUICK = {"draws": 30, "tune": 15, "chains": 2, "seed": 3, "progress_bar": False, "restarts": 2}


@pytest.fixture(scope="session")
def record():
    return simulate()


@pytest.fixture(scope="session")
def result(record):
    y, u = record
    return gpssm.fit(y, u, states=1, **QUICK)
