"""Kernels: the table of the engine, algebra, and kernels of the user's own."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import gpssm
from gpssm import _core
from gpssm.blocks import Transition
from gpssm.testing import check_kernel

QUICK = {"draws": 4, "tune": 4, "chains": 1, "seed": 3, "progress_bar": False}
TABLE = json.loads(_core.kernels())


@pytest.mark.parametrize("kernel", TABLE, ids=lambda kernel: kernel["name"])
def test_every_kernel_of_the_engine_has_a_class(kernel):
    made = getattr(gpssm, "".join(word.capitalize() for word in kernel["name"].split("_")))
    names = {field.name for field in dataclasses.fields(made)} - {"active"}
    assert names == {parameter["name"] for parameter in kernel["parameters"]}
    assert ("active" in {field.name for field in dataclasses.fields(made)}) == kernel["components"]
    numbers = {name: 0.5 + 0.3 * i for i, name in enumerate(sorted(names))}
    check_kernel(made(**numbers), n_x=1, n_u=1)


def test_numbers_and_powers():
    z = np.array([[0.3, -1.0], [1.2, 0.4]])
    k = gpssm.SquaredExponential(1.3, 0.8) + gpssm.Linear([0.5, 0.2])
    np.testing.assert_allclose((2 * k)(z), 2 * k(z))
    np.testing.assert_allclose((k * 0.5)(z), 0.5 * k(z))
    np.testing.assert_allclose((k**3)(z), k(z) ** 3)
    np.testing.assert_allclose((k**2 * gpssm.Constant(2.0))(z), 4 * k(z) ** 2)


def se(z, z2, sigma, ell):
    return sigma**2 * np.exp(-0.5 * ((z - z2) ** 2).sum(axis=1) / ell**2)


def test_own_kernels_are_those_of_the_engine():
    z = np.random.default_rng(1).normal(size=(6, 3))
    own = gpssm.KernelFunction(se, {"sigma": 1.3, "ell": 0.8}, active=["x1", "u1"])
    ours = gpssm.SquaredExponential(1.3, 0.8, active=["x1", "u1"])
    for a, b in [(own, ours), (own * gpssm.Constant(2.0) + ours, ours * gpssm.Constant(2.0) + ours)]:
        np.testing.assert_allclose(a(z, n_x=2), b(z, n_x=2), rtol=1e-12)
    x = np.array([0.3, 0.8, -0.4])
    steps = [
        Transition(k, Q=0.5).one_step(x)
        for k in (gpssm.KernelFunction(se, {"sigma": 1.3, "ell": 0.8}), gpssm.SquaredExponential(1.3, 0.8))
    ]
    np.testing.assert_allclose(steps[0].mean, steps[1].mean)


@pytest.mark.parametrize("dynamics", ["exact", "fic(8)", "dtc(8)"])
def test_fits_with_own_kernels(dynamics):
    y = np.sin(0.5 * np.arange(30))
    prior = "log_normal(1, 0.5)"
    own = gpssm.KernelFunction(se, {"sigma": prior, "ell": prior}) + gpssm.Linear()
    result = gpssm.fit(y, kernel=own, dynamics=dynamics, **QUICK)
    assert {"se_sigma[x]", "se_ell[x]"} <= set(result.summary().index)


@pytest.mark.parametrize("dynamics", ["hilbert(5)", "fourier(5)"])
def test_own_kernels_have_no_spectral_density(dynamics):
    own = gpssm.KernelFunction(se, {"sigma": 1.0, "ell": 1.0})
    with pytest.raises(ValueError, match="the se kernel has no spectral density") as refusal:
        gpssm.fit([1.0, 2.0, 1.5], kernel=own, dynamics=dynamics, **QUICK)
    assert "\n" not in str(refusal.value)


def test_change_points_are_two_kernels():
    before, after = gpssm.SquaredExponential(1.3, 0.8), gpssm.Constant(0.5) + gpssm.Linear([0.2, 0.3])
    k = gpssm.ChangePoint(before, after, "u1", location=0.3, width=0.2)
    check_kernel(k, n_x=1, n_u=1)
    z = np.random.default_rng(2).normal(size=(7, 2))
    s = 1 / (1 + np.exp(-(z[:, 1] - 0.3) / 0.2))
    expected = np.outer(1 - s, 1 - s) * before(z) + np.outer(s, s) * after(z)
    np.testing.assert_allclose(k(z, n_x=1), expected, rtol=1e-12)
    assert eval(repr(k)) == k and gpssm.Model(kernel="change_point(u1, se, linear)").kernel.active == "u1"
    with pytest.raises(ValueError, match=r"a change point is along one component of z: name it"):
        gpssm.fit(z[:, 0], z[:, 1], kernel=gpssm.ChangePoint(before, after), **QUICK)


@pytest.mark.parametrize("dynamics", ["exact", "fic(8)"])
def test_a_change_is_found_where_it_is(dynamics):
    """The walk drifts up until 1930 and down after it: the posterior of the location is there, in years."""
    year = np.arange(1900.0, 1960.0)
    steps = np.where(year < 1930, 1.0, -1.0) + 0.1 * np.random.default_rng(3).normal(size=60)
    y = pd.DataFrame({"level": np.concatenate([[0.0], np.cumsum(steps)[:-1]])})
    kernel = gpssm.ChangePoint(gpssm.Constant(), gpssm.Constant(), active="year")
    settings = {**QUICK, "draws": 60, "tune": 60}
    result = gpssm.fit(y, pd.DataFrame({"year": year}), kernel=kernel, dynamics=dynamics, **settings)
    lower, upper = result.summary("change_point_location").iloc[0][["eti90_lb", "eti90_ub"]]
    assert 1926 < lower < upper < 1934
    assert isinstance(result.model.resolved(result.data).kernel, gpssm.ChangePoint)


def test_a_function_with_parameters_in_two_orders_is_two_kernels():
    one = gpssm.KernelFunction(lambda z, z2, a, b: a * np.ones(len(z)), {"a": 2.0, "b": 1.0})
    other = gpssm.KernelFunction(one.function, {"b": 3.0, "a": 1.0})
    np.testing.assert_allclose((one + other)([0.0]), [[5.0]])


def test_mistakes_of_own_kernels_are_found():
    for function, message in [
        (lambda z, z2: z[:, 0] - z2[0], "k\\(z', z\\) is"),
        (lambda z, z2: -np.ones(len(z)), "positive semi-definite"),
        (lambda z, z2: np.abs(z - z2)[:, 0], "positive semi-definite"),
    ]:
        with pytest.raises(AssertionError, match=message):
            check_kernel(gpssm.KernelFunction(function))
        with pytest.raises((ValueError, RuntimeError), match=r"lambda.* positive (semi-)?definite"):
            gpssm.fit(np.sin(0.4 * np.arange(30)), kernel=gpssm.KernelFunction(function), **QUICK)
    negative = gpssm.KernelFunction(lambda z, z2, a: np.full(len(z), -a), {"a": 2.0})
    said = r"returned -2 for z = \[.*\], z2 = \[.*\], parameters \[2.0\], and a variance must not be negative"
    with pytest.raises(RuntimeError, match=said):
        gpssm.fit(np.sin(0.4 * np.arange(30)), kernel=negative, **QUICK)
    with pytest.raises(RuntimeError, match=r"no starting point.*lambda returned NaN for z = "):
        gpssm.fit(
            np.sin(0.4 * np.arange(30)), kernel=gpssm.KernelFunction(lambda z, z2: z[:, 0] * np.nan), **QUICK
        )
    with pytest.raises(ZeroDivisionError):
        check_kernel(gpssm.KernelFunction(lambda z, z2: 1 / 0))
