"""Families of sensors in Python and in the program, and checks of users' own sensors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gpssm
from gpssm._registry import Registry
from gpssm.sensors import sensor_families
from gpssm.testing import check_sensor

FAMILIES = sensor_families()


def make(name: str) -> gpssm.Sensor:
    counts = {p["key"]: 3 for p in FAMILIES[name]["parameters"] if p["kind"] == "count"}
    return getattr(gpssm, name)(**counts)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_its_class(name: str) -> None:
    family = FAMILIES[name]
    fields = {field.name for field in dataclasses.fields(getattr(gpssm, name))}
    assert fields == {family["predictor"], *(parameter["key"] for parameter in family["parameters"])}
    assert name in gpssm.__all__


def test_noise_of_outputs_may_be_correlated() -> None:
    y = np.random.default_rng(1).normal(size=(8, 2))
    sensor = gpssm.Gaussian(noise="full")
    result = gpssm.fit(y, sensor=sensor, process_noise="full", draws=2, tune=2, chains=1, progress_bar=False)
    draws = result.posterior["posterior"]
    assert (
        draws["sensor_chol"].sizes["sensor_chol_entry"] == draws["process_chol"].sizes["process_chol_entry"] == 3
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_read_by_the_program(name: str) -> None:
    table = make(name).to_table(Registry())
    assert list(table) == [FAMILIES[name]["name"]]
    result = gpssm.fit(
        np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0]), sensor=make(name), draws=2, tune=2, chains=1, progress_bar=False
    )
    assert np.isfinite(result.posterior["posterior"]["x"].values).all()


def log_density(y: np.ndarray, x: np.ndarray, scale: float) -> np.ndarray:
    return -np.abs(y[0] - x[:, 0]) / scale - np.log(2 * scale)


def sample(rng: np.random.Generator, x: np.ndarray, scale: float) -> np.ndarray:
    return x[:, 0] + rng.laplace(scale=scale, size=len(x))


def test_a_sound_sensor_passes() -> None:
    check_sensor(gpssm.SensorDensity(log_density, sample), [[0.5]], parameters={"scale": 0.3})


def test_planted_bugs_are_found() -> None:
    def not_normalised(y: np.ndarray, x: np.ndarray, scale: float) -> np.ndarray:
        return -np.abs(y[0] - x[:, 0]) / scale - np.log(scale)

    def too_wide(rng: np.random.Generator, x: np.ndarray, scale: float) -> np.ndarray:
        return x[:, 0] + rng.laplace(scale=1.1 * scale, size=len(x))

    def broken(y: np.ndarray, x: np.ndarray, scale: float) -> np.ndarray:
        raise KeyError("broken")

    for density, draw, message in [(not_normalised, sample, "not to 1"), (log_density, too_wide, "do not follow")]:
        with pytest.raises(AssertionError, match=message):
            check_sensor(gpssm.SensorDensity(density, draw), [[0.5]], parameters={"scale": 0.3})
    with pytest.raises(KeyError, match="broken"):
        check_sensor(gpssm.SensorDensity(broken, sample), [[0.5]], parameters={"scale": 0.3})
    with pytest.raises(ValueError, match="parameters"):
        check_sensor(gpssm.SensorDensity(log_density, sample), [[0.5]])
