"""The estimator keeps to the conventions of scikit-learn."""

import numpy as np
import pytest
from conftest import simulate

base = pytest.importorskip("sklearn.base")

from gpssm.sklearn import GPSSM  # noqa: E402


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_clone_fit_simulate_score(record):
    y, u = record
    model = GPSSM(kernel="matern32 + linear", draws=20, tune=15, chains=1, seed=2)
    copy = base.clone(model)
    assert copy.get_params() == model.get_params() and copy is not model
    with pytest.raises(Exception, match="not fitted"):
        copy.simulate(u)
    assert copy.set_params(draws=10).fit(y, u) is copy
    assert copy.result_.n_draws == 10 and not hasattr(model, "result_")
    fresh, inputs = simulate(30, seed=5)
    assert copy.simulate(inputs, paths=20)["y"].shape == (20, 30, 1)
    assert np.isfinite(copy.score(fresh, inputs, paths=50))
