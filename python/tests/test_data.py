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


def dated(values, first="2020-01-01", freq="MS", **kwargs):
    return pd.Series(
        np.asarray(values, float), index=pd.date_range(first, periods=len(values), freq=freq), **kwargs
    )


def test_dates_stay_dates():
    data = as_data(dated(range(5)))
    assert data.times()[1] == np.datetime64("2020-02-01") and data.time[0][1] == 31 * 86400.0
    assert str(data._index(0).after(2).values[1])[:10] == "2020-07-01"
    business = as_data(dated(range(7), freq="B"))
    assert str(business._index(0).after(3).values[-1])[:10] == "2020-01-14"
    zone = as_data(dated(range(40), "2021-03-10", "D", name="load").tz_localize("Europe/Berlin"))
    assert zone.index[0].zone == "Europe/Berlin" and zone.times()[0] == np.datetime64("2021-03-09T23:00")
    assert zone._index(0).after(1).values[0] == np.datetime64("2021-04-18T22:00")
    period = as_data(pd.Series([1.0, 2.0, 3.0], index=pd.period_range("2020", periods=3, freq="Q")))
    assert str(period._index(0).after(1).values[0])[:10] == "2020-10-01"
    ends = as_data([1.0, 2.0, 3.0], time=["2020-01-31", "2020-02-29", "2020-03-31"])
    assert str(ends._index(0).after(1).values[0])[:10] == "2020-04-30"
    frame = pl.DataFrame({"when": dated(range(4)).index.to_numpy(), "level": [1.0, 2.0, 3.0, 4.0]})
    assert as_data(frame).outputs == ["level"] and as_data(frame).times()[1] == np.datetime64("2020-02-01")
    assert as_data(pd.DataFrame({"when": frame["when"], "level": [1.0, 2.0, 3.0, 4.0]})).outputs == ["level"]


def test_rows_that_are_left_out_are_missing():
    y = dated(range(6)).drop(pd.Timestamp("2020-03-01"))
    with pytest.warns(UserWarning, match="y: 1 rows are left out, the first after 2020-02-01"):
        data = as_data(y)
    np.testing.assert_array_equal(np.isnan(data.y[0][:, 0]), [0, 0, 1, 0, 0, 0])
    assert data.times()[2] == np.datetime64("2020-03-01")
    with pytest.warns(UserWarning, match="left out"):
        data = as_data(y, dated(range(10, 18), "2019-12-01"))
    np.testing.assert_array_equal(data.u[0][:, 0], [11, 12, 13, 14, 15, 16])
    with pytest.warns(UserWarning, match="after 1"):
        assert np.isnan(as_data(pd.Series([1.0, 2.0, 4.0, 5.0], index=[0, 1, 3, 4])).y[0][2, 0])


@pytest.mark.parametrize(
    ("freq", "start"), [("ME", "2020-01-31"), ("MS", "2020-01-01"), ("D", "2020-03-10"), ("h", "2020-03-28")]
)
def test_clocks_that_change_make_no_steps(freq, start):
    """Over the change of clocks in March: days of 23 hours, months whose ends are other days in UTC."""
    dates = pd.date_range(start, periods=40, freq=freq, tz="Europe/Berlin")
    y = pd.Series(np.arange(40.0), index=dates)
    with pytest.warns(UserWarning, match="2 rows are left out, the first after 2020-"):
        data = as_data(y.drop(dates[[5, 20]]), y.tz_convert("UTC"))
    utc = dates.tz_convert("UTC").tz_localize(None)
    np.testing.assert_array_equal(data.times(), utc.to_numpy("datetime64[ns]"))
    np.testing.assert_array_equal(data.u[0][:, 0], np.arange(40.0))
    following = pd.date_range(dates[-1], periods=9, freq=freq)[1:].tz_convert("UTC").tz_localize(None)
    np.testing.assert_array_equal(data._index(0).after(8).values, following.to_numpy("datetime64[ns]"))
    with pytest.raises(ValueError, match="u: its dates have no time zone, those of y have the time zone Europe"):
        as_data(y, y.tz_localize(None))


def test_wrong_indices_are_refused():
    y = dated(range(6))
    refused = [
        (y[::-1], None, "y: row 1 has the time 2020-05-01, before row 0 with 2020-06-01"),
        (pd.concat([y[:3], y[2:]]), None, "y: rows 2 and 3 have the same time, 2020-03-01"),
        (y.set_axis(y.index[:5].append(pd.DatetimeIndex(["2020-05-03"]))), None, "row 5 with 2020-05-03"),
        (y, dated(range(6), "2020-02-01"), "u: there is no row for 2020-01-01, which is row 0 of y"),
        (y, dated(range(6), freq="D"), "u: there is no row for 2020-02-01"),
        (pd.Series([1.0, 2.0, 3.0], index=[0, 2, 1]), None, "row 2 has the time 1, before row 1 with 2"),
    ]
    for outputs, inputs, message in refused:
        with pytest.raises(ValueError, match=message):
            as_data(outputs, inputs)


def test_labels_of_sequences():
    frame = pd.DataFrame({"run": ["b", "b", "a", "a", "a"], "y": np.arange(5.0), "u": np.arange(5.0)})
    data = as_data(frame[["run", "y"]], frame[["run", "u"]], sequence="run")
    assert data.sequences == ["b", "a"] and [len(y) for y in data.y] == [2, 3]
    assert as_data(pl.DataFrame({"run": ["b", "b"], "y": [1.0, 2.0]}), sequence="run").sequences == ["b"]
    levels = frame.assign(t=[0, 1, 0, 1, 2]).set_index(["run", "t"])
    data = as_data(levels[["y"]], levels["u"])
    assert data.sequences == ["b", "a"] and data.outputs == ["y"]
    assert data._position("a", "x") == 1 and data._position(0, "x") == 0 and data._position(-1, "x") == 1
    for wrong in ("1", 2, 1.0):
        with pytest.raises(ValueError, match="sequence"):
            data._position(wrong, "initial")
    with pytest.raises(ValueError, match="y: there is no column 'site'"):
        as_data(frame, sequence="site")
    with pytest.raises(ValueError, match="three|3 levels"):
        as_data(frame.assign(t=0, s=0).set_index(["run", "t", "s"]))
    with pytest.raises(ValueError, match=r"the first sequence has the columns \['y'\]"):
        as_data([frame[["y"]], frame[["u"]]])


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
        (Y, [np.nan, 1.0, 2.0], "u: row 0 of u is not finite"),
        ([1.0, np.inf, 2.0], None, "y: row 1 of y is infinite"),
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
