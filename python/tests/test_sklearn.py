"""The estimator keeps to the conventions of scikit-learn."""

import warnings

import numpy as np
import pytest
from conftest import simulate

base = pytest.importorskip("sklearn.base")

from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from gpssm.sklearn import GPSSM  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SMALL = {"draws": 10, "tune": 10, "chains": 1, "seed": 2, "paths": 100}

# Rows of a record depend on those before them.
IN_ORDER = {
    "check_methods_subset_invariance": "a part of the rows is another record",
    "check_methods_sample_order_invariance": "rows in another order are another record",
}


def test_every_check_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = GPSSM(kernel="linear", draws=3, tune=1, chains=1, particles=2, restarts=1, paths=20)
        check_estimator(quick, expected_failed_checks=IN_ORDER)


@pytest.fixture(scope="module")
def fitted(record):
    y, u = record
    return GPSSM(**SMALL).fit(u[:, None], y)


def test_inputs_are_x_and_outputs_are_y(fitted, record):
    y, u = record
    assert fitted.n_features_in_ == 1 and fitted.result_.data.n_u == 1
    fresh, inputs = simulate(60, seed=5)
    middle, sd = fitted.predict(inputs[:, None], return_std=True)
    assert middle.shape == sd.shape == (60,) and (sd > 0).all()
    assert fitted.score(inputs[:, None], fresh) > 0.8
    # The wrong way round is a bad model, not a good one.
    assert GPSSM(**SMALL).fit(y[:, None], u).score(fresh[:, None], inputs) < 0.5
    with pytest.raises(ValueError, match="X has 2 features, but GPSSM is expecting 1"):
        fitted.predict(np.zeros((5, 2)))


def test_a_window_sets_the_state(record):
    y, _ = record
    model = GPSSM(**SMALL, n_init=5).fit(None, y)
    assert model.n_features_in_ == 0
    assert np.isfinite(model.score(40, y))
    assert model.predict(12, y_init=y[:5]).shape == (12,)
    last = base.clone(model).set_params(initial="last", n_init=0).fit(None, y)
    np.testing.assert_array_equal(last.predict(3), last.result_.forecast(3, paths=100)["y"].median("path")[:, 0])
    with pytest.raises(ValueError, match="n_init: 40 of 40 rows"):
        model.set_params(n_init=40).score(40, y)


def test_model_selection_in_the_order_of_time(record):
    y, u = record
    model = GPSSM(**SMALL, initial="last")
    scores = cross_val_score(model, u[:, None], y, cv=TimeSeriesSplit(2, test_size=8))
    assert (scores > 0.5).all()
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(pipeline, {"gpssm__kernel": ["linear", "se"]}, cv=TimeSeriesSplit(2, test_size=8))
    assert np.isfinite(search.fit(u[:, None], y).cv_results_["mean_test_score"]).all()


def test_sequences_run_on_their_own(record):
    y, u = record
    labels = np.repeat(["a", "b"], 20)
    model = GPSSM(**SMALL).fit(u[:, None], np.column_stack([y, y**2]), sequences=labels)
    assert len(model.result_.data.y) == 2
    both = model.predict(u[:, None], sequences=labels)
    np.testing.assert_array_equal(both[20:], model.predict(u[20:, None]))
    assert both.shape == (40, 2)
    with pytest.raises(ValueError, match="stand together"):
        model.predict(u[:, None], sequences=np.tile(["a", "b"], 20))
