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
        == ["process_sd[x]", "se_ell[x, x]", "se_ell[x, u1]", "sensor_sd[y1]"]
    )
    np.testing.assert_allclose(summary["r_hat"].astype(float), ours["r_hat"], rtol=1e-8)
    sizes = az.ess(draws)
    sizes = sizes["posterior"] if "posterior" in sizes else sizes
    assert np.isfinite(np.asarray(sizes["x"])).any()


def test_traces_can_be_plotted(result):
    plot = getattr(az, "plot_trace", None)
    assert plot is not None
    plot(result.to_arviz(), var_names=["process_sd", "se_ell"])


def test_the_total_log_likelihood_is_not_taken_for_pointwise(result):
    with pytest.raises((TypeError, ValueError, KeyError, AttributeError)):
        az.loo(result.to_arviz())


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
    result = gpssm.fit([y, y[:20]], [u, u[:20]], **{**QUICK, "draws": 8, "tune": 3})
    theirs = az.summary(result.to_arviz(), var_names=["x"], round_to="none")
    assert len(set(theirs.index)) == 60
    np.testing.assert_allclose(result.summary("x")["mean"], theirs["mean"].astype(float), rtol=1e-8)
