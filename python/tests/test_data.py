"""Every form in which users have data, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

from gpssm import as_data

Y = np.array([[1.0, 4.0], [2.0, 5.0], [np.nan, 6.0]])
U = np.array([0.1, 0.2, 0.3])


def test_arrays_and_lists():
    for y in (Y, Y.tolist(), Y.astype(np.float32), np.asfortranarray(Y), np.repeat(Y, 2, axis=0)[::2]):
        data = as_data(y, U)
        np.testing.assert_array_equal(data.y[0], Y)
        assert data.y[0].flags.c_contiguous and data.u[0].shape == (3, 1)
    assert as_data([1, 2, None]).y[0].shape == (3, 1)
    assert np.isnan(as_data(np.ma.masked_equal([1.0, 2.0, 9.0], 9.0)).y[0][2, 0])
    assert as_data(np.array([True, False, True])).y[0].dtype == np.float64


def test_sequences():
    data = as_data([Y, Y[:2]], [U, U[:2]])
    assert [len(y) for y in data.y] == [3, 2] and data.sequences == ["1", "2"]
    assert len(as_data([[1.0, 2.0, 3.0], [1.0, 2.0]]).y) == 2


def test_frames():
    index = pd.date_range("2020-01-01", periods=3, freq="min")
    frame = pd.DataFrame({"level": [1.0, 2.0, None], "flow": [4, 5, 6]}, index=index)
    data = as_data(frame, pd.Series(U, name="pump"))
    assert data.outputs == ["level", "flow"] and data.inputs == ["pump"]
    np.testing.assert_array_equal(data.time[0], [0.0, 60.0, 120.0])
    np.testing.assert_array_equal(data.y[0], Y)
    nullable = pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64")})
    assert np.isnan(as_data(nullable).y[0][2, 0])
    data = as_data(pl.DataFrame({"level": [1.0, 2.0, None], "flow": [4.0, 5.0, 6.0]}), pl.Series("pump", U))
    assert data.outputs == ["level", "flow"] and data.inputs == ["pump"]
    np.testing.assert_array_equal(data.y[0], Y)


def test_xarray_and_records():
    array = xr.DataArray(Y, dims=("time", "channel"), coords={"time": [0.5, 1.0, 1.5], "channel": ["a", "b"]})
    data = as_data(array)
    assert data.outputs == ["a", "b"]
    np.testing.assert_array_equal(data.time[0], [0.5, 1.0, 1.5])
    record = SimpleNamespace(u=U, y=Y, sampling_time=0.25, name="bench", state_initialization_window_length=2)
    data = as_data(record)
    np.testing.assert_array_equal(data.time[0], [0.0, 0.25, 0.5])
    assert data.n_u == 1
    assert len(as_data([record, record]).y) == 2


@pytest.mark.parametrize(
    ("y", "u", "message"),
    [
        (np.zeros((2, 3, 4)), None, r"y: expected shape \(T,\) or \(T, n\), not \(2, 3, 4\)"),
        (Y, U[:2], "y has 3 rows, u has 2"),
        (Y, [np.nan, 1.0, 2.0], "u: row 0 of u1 is not finite"),
        ([1.0, np.inf, 2.0], None, "y: row 1 of y1 is infinite"),
        ([1.0], None, "y: 1 rows; a transition needs at least two"),
        ([np.nan, np.nan], None, "all outputs are missing"),
        (["a", "b"], None, "y: expected numbers, found 'a'"),
        ([1j, 2j], None, "complex"),
        ([Y, Y[:, :1]], None, "y in sequence 1 has 1 columns, the first sequence 2"),
        ([Y, Y], [U], "y has 2 sequences, u has 1"),
        ([], None, "nothing in the list"),
        (np.zeros((3, 0)), None, "expected shape"),
    ],
)
def test_refused(y, u, message):
    with pytest.raises(ValueError, match=message):
        as_data(y, u)
