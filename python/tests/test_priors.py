"""Priors of one's own: formulas and functions."""

import numpy as np
import pytest
from conftest import QUICK
from test_fit import same

import gpssm

NORMAL = "-0.5*((v - 0.9)/0.2)^2"


def half_normal(v):
    w = v / 0.3
    return -0.5 * (w * w)


# Seen to fail: the table of the function made over all real numbers.
def test_formula_and_function_give_the_same_draws(record):
    y, u = record
    text = gpssm.PriorDensity("-0.5*(v/0.3)^2", low=0)
    function = gpssm.PriorDensity(half_normal, low=0)
    kernel = {"formula": gpssm.Matern32(ell=text), "function": gpssm.Matern32(ell=function)}
    formula = gpssm.fit(y, u, process_noise=text, kernel=kernel["formula"], **QUICK)
    called = gpssm.fit(y, u, process_noise=function, kernel=kernel["function"], **QUICK)
    assert same(formula, called)
    assert not same_theta(formula, gpssm.fit(y, u, kernel="matern32", **QUICK))


def same_theta(a, b):
    return np.array_equal(a.chains[0].draws.theta, b.chains[0].draws.theta)


def test_a_density_of_a_parameter_is_used():
    """The data say nothing about `a`, so its draws are those of the prior."""
    rng = np.random.default_rng(5)
    y = rng.normal(size=6)
    prior = {"a": gpssm.PriorDensity(NORMAL)}
    result = gpssm.fit(
        y,
        mean="0*a",
        parameters=prior,
        draws=1500,
        tune=20,
        chains=1,
        particles=2,
        restarts=1,
        progress_bar=False,
    )
    a = result.posterior["posterior"]["a"].values.ravel()
    assert abs(a.mean() - 0.9) < 0.05 and abs(a.std() / 0.2 - 1) < 0.15


def test_models_round_trip(record):
    y, u = record
    noise = gpssm.OnVariance(gpssm.PriorDensity("-3*log(v) - 0.1/v", low=0))
    model = gpssm.Model(process_noise=noise, parameters={"a": gpssm.PriorDensity(NORMAL)}, mean="a*x")
    assert model == gpssm.Model.from_toml(model.to_toml()) == gpssm.Model.from_dict(model.to_dict())
    short = 'mean = "a*x"\n[parameters]\na = { log_density = "-v^2", low = -1, high = 2.5 }\n'
    result = gpssm.fit(y, u, model=gpssm.Model.from_toml("[model]\n" + short.replace("[p", "[model.p")), **QUICK)
    assert result.posterior["posterior"]["a"].values.max() <= 2.5
    with pytest.raises(ValueError, match="Python functions"):
        gpssm.Model(process_noise=gpssm.PriorDensity(half_normal, low=0)).to_toml()


def test_saved_runs_come_back(record, tmp_path):
    y, u = record
    result = gpssm.fit(y, u, process_noise=gpssm.PriorDensity("-v", low=0), **QUICK)
    result.save(tmp_path / "run.zarr")
    assert same(gpssm.open(tmp_path / "run.zarr").resume(draws=40, progress_bar=False), result.resume(40))


def test_what_is_no_density_is_refused_in_one_line(record):
    y, u = record
    cases = [
        ("-log(v)", {"low": 0}, "cannot be normalised"),
        ("-log(v)^2", {}, "give low"),
        ("-w^2", {"low": 0}, "'v' is the value"),
        ("-v^2", {"low": 2, "high": 1}, "2"),
        (lambda v: np.full(len(v), np.nan), {"low": 0}, "not a number at v ="),
        (lambda v: np.zeros(3), {"low": 0}, "returned"),
        (7.0, {}, "expected a formula in v or a function"),
    ]
    for density, ends, words in cases:
        with pytest.raises((ValueError, TypeError)) as caught:
            gpssm.fit(y, u, process_noise=gpssm.PriorDensity(density, **ends), **QUICK)
        assert words in str(caught.value) and "\n" not in str(caught.value), str(caught.value)


def test_exceptions_come_back_with_their_traceback(record):
    y, u = record
    calls = []

    def early(v):
        raise LookupError("no such table")

    def late(v):
        calls.append(len(v))
        if len(v) == 1 and len(calls) > 100:
            raise LookupError("no such table")
        return -v

    for function in (early, late):
        with pytest.raises(LookupError, match="no such table") as caught:
            gpssm.fit(y, u, process_noise=gpssm.PriorDensity(function, low=0), **QUICK)
        assert any(entry.name == function.__name__ for entry in caught.traceback)
