"""Point estimates: one draw that all uses of a run take, and marked as what it is."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import QUICK

import gpssm

POINT = {"point": True, "tune": 40, "seed": 3, "restarts": 2, "progress_bar": False}


@pytest.fixture(scope="module")
def point(record):
    y, u = record
    return gpssm.fit(y, u, states=1, **POINT)


def test_it_is_one_draw_that_all_uses_take(point, record, tmp_path):
    y, u = record
    assert point.n_draws == 1 and point.ended == "complete"
    assert any("point estimate" in warning for warning in point.warnings)
    run = point.simulate(u, y=y, n_init=5)
    assert np.isfinite(run["y_mean"]).all()
    assert np.isfinite(point.score(y, u, n_init=5)["fit"]).all()
    small = point.distil(8, max_loss=None, scenarios=3)
    assert {path.name for path in gpssm.export.c(small, tmp_path / "c", name="wave")} >= {"wave.c", "wave.h"}


def test_it_is_stored_as_a_point_estimate(point, record, tmp_path):
    point.save(tmp_path / "point.zarr")
    again = gpssm.open(tmp_path / "point.zarr")
    assert again.sampler["point"] and any("point estimate" in warning for warning in again.warnings)
    np.testing.assert_array_equal(again.chains[0].draws.theta, point.chains[0].draws.theta)


def test_what_it_cannot_be_is_refused(record):
    y, u = record
    for name in ("draws", "ess", "chains"):
        with pytest.raises(ValueError, match=f"{name}: a point estimate is one draw of one chain"):
            gpssm.fit(y, u, states=1, **POINT, **{name: QUICK.get(name, 100)})
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="executor: a point estimate"):
        gpssm.fit(y, u, states=1, **POINT, executor=executor)
