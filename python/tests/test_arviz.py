"""ArviZ takes the draws as they are: 1.x the DataTree itself, 0.x after conversion."""

import numpy as np
import pytest
from conftest import QUICK

import gpssm

az = pytest.importorskip("arviz")


def test_arviz_takes_the_draws(result):
    draws = result.to_arviz()
    names = ["process_sd", "se_ell", "sensor_sd"]
    summary = az.summary(draws, var_names=names, round_to="none")
    ours = result.summary(names)
    assert (
        list(summary.index)
        == list(ours.index)
        == ["process_sd[x]", "se_ell[x, x]", "se_ell[x, u]", "sensor_sd[y]"]
    )
    assert sorted(result.summary().index) == sorted(result.parameter_names)
    np.testing.assert_allclose(summary["r_hat"].astype(float), ours["r_hat"], rtol=1e-8)
    sizes = az.ess(draws)
    sizes = sizes["posterior"] if "posterior" in sizes else sizes
    assert np.isfinite(np.asarray(sizes["x"])).any()


def test_traces_can_be_plotted(result):
    plot = getattr(az, "plot_trace", None)
    assert plot is not None
    plot(result.to_arviz(), var_names=["process_sd", "se_ell"])


def test_every_observation_has_its_log_likelihood(result):
    values = result.posterior["log_likelihood"]["y"]
    assert values.dims == ("chain", "draw", "time", "output") and values.sizes["time"] == 40
    total = result.posterior["sample_stats"]["log_likelihood_total"]
    np.testing.assert_allclose(values.sum(("time", "output")), total, rtol=1e-12)
    assert n_observations(az.loo(result.to_arviz())) == 40


def n_observations(loo):
    return loo["n_data_points"] if hasattr(loo, "index") else loo.n_data_points


@pytest.mark.filterwarnings("ignore:Estimated shape")
def test_missing_values_are_no_observations(record):
    y, u = record
    two = np.column_stack([y, y**2])
    two[3] = np.nan
    whole = gpssm.fit(two, u, states=2, **QUICK)
    assert whole.posterior["log_likelihood"]["y"].sizes["time"] == 39
    two[5, 1] = np.nan
    parts = gpssm.fit(two, u, states=2, **QUICK)
    values = parts.posterior["log_likelihood"]["y"]
    assert values.dims == ("chain", "draw", "observation") and values.sizes["observation"] == 77
    total = parts.posterior["sample_stats"]["log_likelihood_total"]
    np.testing.assert_allclose(values.sum("observation"), total, rtol=1e-12)
    assert n_observations(az.loo(parts.to_arviz())) == 77
    ranking = az.compare({"whole": whole.to_arviz(), "again": whole.to_arviz()})
    assert len(ranking) == 2


def test_dependent_outputs_have_one_value_a_row(record):
    y, u = record
    sensor = gpssm.Gaussian(noise=gpssm.LKJ(2.0, ["half_normal(0.1)", "half_normal(0.1)"]))
    two = gpssm.fit(np.column_stack([y, y**2]), u, sensor=sensor, **{**QUICK, "draws": 8, "tune": 3})
    values = two.posterior["log_likelihood"]["y"]
    assert values.dims == ("chain", "draw", "time")
    total = two.posterior["sample_stats"]["log_likelihood_total"]
    np.testing.assert_allclose(values.sum("time"), total, rtol=1e-12)


def test_one_x_takes_the_tree_itself(result):
    if az.__version__.startswith("0."):
        converted = result.to_arviz()
        assert set(converted.groups()) >= {"posterior", "sample_stats", "observed_data", "constant_data"}
        return
    assert result.to_arviz() is result.posterior
    summary = az.summary(result.posterior, var_names=["x"], round_to="none")
    np.testing.assert_allclose(summary["ess_bulk"].astype(float), result.summary("x")["ess_bulk"], rtol=1e-8)


def test_rows_of_several_sequences_have_names_of_their_own(record):
    y, u = record
    result = gpssm.fit([y, y[:20]], [u, u[:20]], states=1, **{**QUICK, "draws": 8, "tune": 3})
    theirs = az.summary(result.to_arviz(), var_names=["x"], round_to="none")
    assert len(set(theirs.index)) == 60
    np.testing.assert_allclose(result.summary("x")["mean"], theirs["mean"].astype(float), rtol=1e-8)


def test_predictive_checks_can_be_plotted(result):
    draws = result.to_arviz(result.posterior_predictive())
    plot = getattr(az, "plot_ppc", None) or az.plot_ppc_dist
    plot(draws)
