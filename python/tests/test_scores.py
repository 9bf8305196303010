"""Scores of points are those of the nonlinear_benchmarks package: its names, its formulas, its rows left out."""

import numpy as np
import pytest


def formulas(y, p, n_init):
    """RMSE, NRMSE, fit index, R squared and MAE as nonlinear_benchmarks 1.0.1 documents them."""
    y, p = y[n_init:], p[n_init:]
    rmse = np.sqrt(np.mean((p - y) ** 2, axis=0))
    nrmse = rmse / np.std(y, axis=0)
    r2 = 1 - np.sum((p - y) ** 2, axis=0) / np.sum((y - np.mean(y, axis=0)) ** 2, axis=0)
    return {
        "rmse": rmse,
        "nrmse": nrmse,
        "fit": 100 * (1 - nrmse),
        "r2": r2,
        "mae": np.mean(np.abs(p - y), axis=0),
    }


# Seen to fail: standard deviation with n - 1; rows of n_init kept in the mean of R squared.
@pytest.mark.parametrize("n_init", [0, 7])
def test_scores_of_the_constant(result, record, n_init):
    y, u = record
    other = y[::-1] + 0.1
    scores = result.score(other, u, n_init=n_init, paths=20).loc[("constant", "y")]
    expected = formulas(other, np.full(len(y), y.mean()), n_init)
    for name, value in expected.items():
        assert abs(scores[name] - value) <= 1e-12 * max(1.0, abs(value)), name
    assert scores["n"] == len(y) - n_init


@pytest.mark.parametrize("n_init", [0, 7])
def test_formulas_are_those_of_the_package(n_init):
    package = pytest.importorskip("nonlinear_benchmarks.error_metrics")
    rng = np.random.default_rng(3)
    y = rng.normal(size=(40, 2)) * [1.0, 20.0] + [3.0, -5.0]
    p = y + rng.normal(size=(40, 2))
    ours = formulas(y, p, n_init)
    names = {"rmse": "RMSE", "nrmse": "NRMSE", "fit": "fit_index", "mae": "MAE"}
    for name, theirs in names.items():
        np.testing.assert_allclose(ours[name], getattr(package, theirs)(y, p, n_init=n_init), rtol=1e-12)
    # Its R_squared drops rows of records but not those of its argument n_init; without them it says the same.
    np.testing.assert_allclose(ours["r2"], package.R_squared(y[n_init:], p[n_init:]), rtol=1e-12)
