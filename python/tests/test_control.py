"""The example of cart and pole, at a small size."""

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "gpssm"


@pytest.fixture(autouse=True)
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "control"))
    yield
    for name in ("plant", "controller", "page", "run"):
        sys.modules.pop(name, None)


def test_a_linear_plant_is_found_by_least_squares():
    import controller

    rng = np.random.default_rng(1)
    rows = [(0.1, -0.2, 1.0, 0.0)]
    before = (0.1, -0.2)
    for _ in range(40):
        p, angle, force, last = rows[-1]
        following = (1.9 * p - 0.9 * before[0] + 0.02 * force, 1.7 * angle - 0.9 * before[1] - 0.03 * last)
        before = (p, angle)
        rows.append((*following, float(rng.normal()), force))
    found = controller.least_squares([controller.Record(rows)])
    np.testing.assert_allclose(found[0], [1.9, 0, -0.9, 0, 0.02, 0, 0], atol=1e-8)
    np.testing.assert_allclose(found[1], [0, 1.7, 0, -0.9, 0, -0.03, 0], atol=1e-8)
    np.testing.assert_array_equal(found[2:, :2], np.eye(2))


def test_it_learns_acts_and_writes_a_page(tmp_path):
    if not PROGRAM.exists() or shutil.which("cc") is None:
        pytest.skip("the program or a C compiler is missing: the example was not run")
    import page
    import run

    arguments = argparse.Namespace(
        rows=30, records=1, scenarios=2, tune=8, gpssm=str(PROGRAM), out=str(tmp_path), seed=1, seeds=1, workers=1
    )
    found = run.learn(3, arguments)
    assert set(found["truth"]) == {"scenarios", "mean", "linear"}
    assert all(np.isfinite(rows).all() and len(rows) > 5 for rows in found["truth"].values())
    assert all(abs(force) <= 10.0 for forces in found["force"].values() for force in forces)
    page.write_page(tmp_path / "control.html", [found], run.table([found]))
    text = (tmp_path / "control.html").read_text()
    assert text.count("<svg") == 3 + len(found["learning"]) and 'id="cart"' in text
