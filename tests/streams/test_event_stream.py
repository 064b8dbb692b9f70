"""Streams from pandas and Arrow: what is kept, what is refused, and which row is to blame."""

import pickle
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import HierarchyError, StreamError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.streams.columns import Booleans, CodedStrings, Decimals, kind_of_column
from cepbench.streams.event_stream import EventStream

FRAME = pd.DataFrame(
    {
        "symbol": ["A", "B", "A", "C"],
        "ts": pd.to_datetime(["2024-01-02 09:30", "2024-01-02 09:31"] * 2).sort_values(),
        "price": [1.5, np.nan, 2.5, 3.5],
        "volume": [10, 20, 30, 2**60],
        "venue": ["x", None, "y", "x"],
    }
)


def stream_of(types: Any, times: Any = None, *, sort: bool = False, **columns: Any) -> EventStream:
    times = range(len(types)) if times is None else times
    times = times if isinstance(times, pa.Array | pa.ChunkedArray) else pa.array(times)
    table = pa.table({"type": types, "time": times, **columns})
    return EventStream.from_arrow(table, type="type", time="time", sort=sort)


def types_of(stream: EventStream) -> list[str]:
    return [stream.type_names[code] for code in stream.type_codes]


def texts_of(column: Any) -> list[str | None]:
    assert isinstance(column, CodedStrings)
    return [None if code < 0 else column.values[code] for code in column.codes]


def assert_equal(first: EventStream, second: EventStream) -> None:
    assert types_of(first) == types_of(second)
    assert first.is_datetime == second.is_datetime
    np.testing.assert_array_equal(first.timestamps, second.timestamps)
    assert list(first.attributes) == list(second.attributes)
    for name, column in first.attributes.items():
        other = second.attributes[name]
        if isinstance(column, CodedStrings | Booleans):
            assert type(column) is type(other)
            assert column.tolist() == other.tolist()
        else:
            assert isinstance(other, np.ndarray)
            assert column.dtype == other.dtype
            np.testing.assert_array_equal(column, other)


def test_a_frame_becomes_columns() -> None:
    stream = EventStream.from_pandas(FRAME, type="symbol", time="ts")
    assert len(stream) == 4
    assert types_of(stream) == ["A", "B", "A", "C"]
    assert stream.is_datetime
    assert stream.timestamps.dtype == np.int64
    np.testing.assert_array_equal(stream.timestamps, FRAME["ts"].to_numpy().view(np.int64))
    np.testing.assert_array_equal(stream.column("price"), FRAME["price"])
    assert stream.column("volume").tolist() == [10, 20, 30, 2**60]  # type: ignore[union-attr]
    assert texts_of(stream.column("venue")) == ["x", None, "y", "x"]
    assert stream.counts_by_type() == {"A": 2, "B": 1, "C": 1}


def test_pandas_and_arrow_give_the_same_stream() -> None:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    assert_equal(
        EventStream.from_pandas(FRAME, type="symbol", time="ts"),
        EventStream.from_arrow(table, type="symbol", time="ts"),
    )


def test_there_and_back_again() -> None:
    stream = EventStream.from_pandas(FRAME, type="symbol", time="ts")
    frame = stream.to_pandas()
    assert frame.index.name == "position"
    assert list(frame.columns) == ["type", "time", "price", "volume", "venue"]
    assert_equal(EventStream.from_pandas(frame, type="type", time="time"), stream)


def test_integer_time_there_and_back_again() -> None:
    stream = stream_of(["A", "B"], [-5, 7], x=[True, None])
    assert not stream.is_datetime
    again = EventStream.from_pandas(stream.to_pandas(), type="type", time="time")
    assert_equal(again, stream)


def test_attributes_called_type_and_time_do_not_hide_the_events_own() -> None:
    names = ["type", "time", "position", "Time", "attribute time"]
    frame = pd.DataFrame({"s": ["A"], "t": [1], **dict(zip(names, range(5, 10), strict=True))})
    shown = EventStream.from_pandas(frame, type="s", time="t").to_pandas().reset_index()
    assert shown.iloc[0].to_dict() == {
        "position": 0,
        "type": "A",
        "time": 1,
        "attribute type": 5,
        "attribute time": 6,
        "attribute position": 7,
        "attribute Time": 8,
        "attribute attribute time": 9,
    }


def test_attributes_may_be_chosen_and_may_include_type_and_time() -> None:
    stream = EventStream.from_pandas(
        FRAME, type="symbol", time="ts", attributes=["venue", "symbol"]
    )
    assert list(stream.attributes) == ["venue", "symbol"]
    assert texts_of(stream.column("symbol")) == ["A", "B", "A", "C"]


# -- order ------------------------------------------------------------------------------------


def test_the_first_row_out_of_order_is_named() -> None:
    with pytest.raises(StreamError, match="row 3: timestamp 1 in 'time' is smaller than 4") as bad:
        stream_of(["A"] * 5, [2, 2, 4, 1, 0])
    assert bad.value.row == 3


def test_datetimes_out_of_order_are_shown_as_datetimes() -> None:
    with pytest.raises(StreamError, match=r"row 1: timestamp 2024-01-02T09:30:00.0+ in 'ts'"):
        EventStream.from_pandas(FRAME.iloc[[3, 0]], type="symbol", time="ts")


@given(st.lists(st.integers(-3, 3), max_size=30))
def test_sorting_on_request_is_stable(times: list[int]) -> None:
    types = pa.array([f"t{row}" for row in range(len(times))], pa.string())
    times_column = pa.array(times, pa.int64())
    stream = stream_of(types, times_column, sort=True, row=np.arange(len(times)), text=types)
    expected = sorted(range(len(times)), key=lambda row: times[row])
    assert stream.column("row").tolist() == expected  # type: ignore[union-attr]
    assert types_of(stream) == texts_of(stream.column("text")) == [f"t{n}" for n in expected]
    assert stream.timestamps.tolist() == sorted(times)


def test_sorting_leaves_the_caller_s_data_alone() -> None:
    times = np.array([3, 1, 2])
    stream_of(["A"] * 3, pa.array(times), sort=True, x=times)
    assert times.tolist() == [3, 1, 2]


def test_a_stream_keeps_its_values_when_the_frame_is_filled_anew() -> None:
    """As buffers of a live source are."""
    values = np.arange(3.0)
    columns = {"type": list("ABC"), "time": np.arange(3), "x": values, "n": [1, 2, 3]}
    frame = pd.DataFrame(columns, copy=False)
    stream = EventStream.from_pandas(frame, type="type", time="time")
    values[:] = 9
    frame.loc[:, ["time", "n"]] = 9
    assert stream.timestamps.tolist() == stream.column("x").tolist() == [0, 1, 2]
    assert stream.column("n").tolist() == [1, 2, 3]


# -- missing values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "types",
    [
        pa.array(["A", None, "B", None]),
        pa.array(["A", None, "B", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1, 0, 1], ["A", None]),
        pa.array([1, None, 2, None]),
        pa.chunked_array([["A"], [None, "B"], [None]]),
    ],
    ids=["text", "dictionary", "null in the dictionary", "integer", "chunks"],
)
@pytest.mark.parametrize("sort", [False, True])
def test_every_event_has_a_type(types: Any, sort: bool) -> None:
    times = [4, 3, 2, 1] if sort else [1, 2, 3, 4]
    with pytest.raises(StreamError, match="row 1: no event type in column 'type'") as bad:
        stream_of(types, times, sort=sort)
    assert bad.value.row == 1


def test_a_type_column_of_nothing_but_nulls() -> None:
    with pytest.raises(StreamError, match="row 0: no event type"):
        stream_of(pa.nulls(2))


def test_every_event_has_a_timestamp() -> None:
    frame = FRAME.assign(ts=FRAME["ts"].where(np.arange(4) < 2))
    with pytest.raises(StreamError, match="row 2: no timestamp in column 'ts'") as bad:
        EventStream.from_pandas(frame, type="symbol", time="ts")
    assert bad.value.row == 2
    with pytest.raises(StreamError, match="row 1: no timestamp"):
        stream_of(["A", "B"], [1, None])


# -- columns that cannot be used --------------------------------------------------------------


@pytest.mark.parametrize(
    "times",
    [pa.array([1.0, 2.0]), pa.array(["1", "2"]), pa.array([1, 2], pa.time64("ns"))],
    ids=str,
)
def test_time_is_datetime_or_integer(times: pa.Array) -> None:
    with pytest.raises(StreamError, match=r"time column 'time' has type .*; use datetimes or int"):
        stream_of(["A", "B"], times)


@pytest.mark.parametrize("types", [pa.array([1.5]), pa.array([b"A"]), pa.array([[1]])], ids=str)
def test_type_is_text_or_integer(types: pa.Array) -> None:
    with pytest.raises(StreamError, match=r"type column 'type' has type .*; use texts or integers"):
        stream_of(types)


@pytest.mark.parametrize("column", ["symbol", "ts", "gone"])
def test_unknown_columns_are_named_with_those_there_are(column: str) -> None:
    frame = FRAME.drop(columns=column, errors="ignore")
    with pytest.raises(StreamError, match=f"no column '{column}'; there are .*price"):
        EventStream.from_pandas(frame, type="symbol", time="ts", attributes=["gone"])


def test_a_time_in_the_index_is_pointed_out() -> None:
    with pytest.raises(StreamError, match="'ts' is the DataFrame's index; call reset_index"):
        EventStream.from_pandas(FRAME.set_index("ts"), type="symbol", time="ts")


def test_doubled_column_names() -> None:
    with pytest.raises(StreamError, match="two columns are named 'price'"):
        EventStream.from_pandas(
            pd.concat([FRAME, FRAME[["price"]]], axis=1), type="symbol", time="ts"
        )
    table = pa.table([pa.array(["A"]), pa.array([1]), pa.array([2])], ["type", "time", "time"])
    with pytest.raises(StreamError, match="two columns are named 'time'"):
        EventStream.from_arrow(table, type="type", time="time")


def test_a_column_of_mixed_kinds() -> None:
    frame = pd.DataFrame({"symbol": ["A", 1], "ts": [1, 2]})
    with pytest.raises(
        StreamError, match=r"column 'symbol' of type object .*give the column a single type"
    ):
        EventStream.from_pandas(frame, type="symbol", time="ts")


@pytest.mark.parametrize("time", [2**62, -(2**62)])
def test_times_that_would_overflow_are_refused(time: int) -> None:
    with pytest.raises(StreamError, match="beyond 2\\*\\*62 ticks") as bad:
        stream_of(["A", "B"], sorted([0, time]))
    assert bad.value.row == (1 if time > 0 else 0)
    assert len(stream_of(["A", "B"], sorted([0, time - np.sign(time)]))) == 2


def test_times_beyond_64_bits_are_refused() -> None:
    with pytest.raises(StreamError, match="does not fit 64 bits"):
        stream_of(["A"], pa.array([2**63], pa.uint64()))
    with pytest.raises(StreamError, match="does not fit nanoseconds"):
        stream_of(["A"], pa.array([10**12]).cast(pa.timestamp("s")))


def test_attributes_that_cannot_be_compared_are_refused_when_asked_for() -> None:
    stream = stream_of(
        ["A", "B"],
        when=pa.array([1, 2]).cast(pa.timestamp("s")),
        parts=[[1], [2]],
        order=pa.array([2**63, 0], pa.uint64()),
        gaps=[None, 2**53 + 1],
    )
    assert not stream.attributes
    for name, kind in [("when", "timestamp"), ("parts", "list"), ("order", "uint64 with values")]:
        with pytest.raises(StreamError, match=f"'{name}' has type {kind}.*cannot be compared"):
            stream.column(name)
    with pytest.raises(StreamError, match="a float would round"):
        stream.column("gaps")


def test_unknown_attributes_with_the_nearest_one() -> None:
    stream = EventStream.from_pandas(FRAME, type="symbol", time="ts")
    with pytest.raises(StreamError, match=r"no attribute 'prize'.*did you mean 'price'"):
        stream.column("prize")


# -- kinds of columns -------------------------------------------------------------------------

TEXTS = ["A", "B", "A", "C"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(),
        pa.array(TEXTS, pa.large_string()).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 3], pa.uint8()), ["A", "B", "A", "C"]),
        pa.DictionaryArray.from_arrays([0, 1, 0, 2], pa.array(["A", "B", "C"], pa.string_view())),
        pa.array(["?", *TEXTS, "?"])[1:5],
        pa.array(["?", *TEXTS, "?"]).dictionary_encode()[1:5],
        pa.chunked_array([TEXTS[:1], [], TEXTS[1:]]),
        pa.chunked_array(
            [pa.array(TEXTS[:2]).dictionary_encode(), pa.array(TEXTS[2:]).dictionary_encode()]
        ),
    ],
    ids=[
        "string",
        "large_string",
        "string_view",
        "dictionary",
        "dictionary of large_string",
        "dictionary with a doubled value",
        "dictionary of string_view",
        "slice",
        "slice of a dictionary",
        "chunks",
        "chunks with different dictionaries",
    ],
)
@pytest.mark.parametrize("sort", [False, True])
def test_texts_however_arrow_stores_them(column: Any, sort: bool) -> None:
    times, expected = ([4, 3, 2, 1], TEXTS[::-1]) if sort else ([1, 2, 3, 4], TEXTS)
    stream = stream_of(column, times, sort=sort, text=column)
    assert types_of(stream) == expected
    assert texts_of(stream.column("text")) == expected
    assert len(set(stream.type_names)) == len(stream.type_names)


def test_missing_texts() -> None:
    for column in (
        pa.array(["x", None]),
        pa.array(["x", None], pa.string_view()),
        pa.array(["x", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1], ["x", None]),
        pa.chunked_array(
            [pa.DictionaryArray.from_arrays([at], ["x", None]) for at in (0, 1)],
        ),
        pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays([1], [None, "x"]),
                pa.DictionaryArray.from_arrays([0], [None, "y"]),
            ]
        ),
    ):
        assert texts_of(stream_of(["A", "B"], text=column).column("text")) == ["x", None]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, 2], pa.int8()), [1, 2]),
        (pa.array([1, None], pa.int64()), [1, np.nan]),
        (pa.array([1, 2], pa.uint64()), [1, 2]),
        (pa.array([1.5, None], pa.float32()), [1.5, np.nan]),
        (pa.array(np.array([1.5, 2], np.float16)), [1.5, 2]),
        (pa.array([7, 7]).dictionary_encode(), [7, 7]),
        (pa.nulls(2), [np.nan, np.nan]),
        (pa.array([0, 5, 6, 0])[1:3], [5, 6]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_numbers_however_arrow_stores_them(column: pa.Array, expected: list[float]) -> None:
    read = stream_of(["A", "B"], x=column).column("x")
    assert isinstance(read, np.ndarray)
    assert read.dtype in (np.int64, np.float64)
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["1.25", None, "-7.5"]).cast(pa.decimal128(10, 2)), [1.25, np.nan, -7.5]),
        (pa.array(["1.25", None]).cast(pa.decimal256(60, 2)), [1.25, np.nan]),
        (
            pa.array(["9", "0.1", "2.50"])
            .cast(pa.decimal128(38, 18))[1:]
            .cast(pa.decimal128(38, 18)),
            [0.1, 2.5],
        ),
        (
            pa.array([None, "123456789012.345"]).cast(pa.decimal128(30, 12)),
            [np.nan, 123456789012.345],
        ),
        (pa.array(["0.30"] * 2).cast(pa.decimal128(5, 2)).dictionary_encode(), [0.3, 0.3]),
        (pa.array([], pa.decimal128(5, 2)), []),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_decimals_are_the_nearest_floats(column: pa.Array, expected: list[float]) -> None:
    read = stream_of(
        ["A"] * len(column), pa.array(range(len(column)), pa.int64()), x=column
    ).column("x")
    assert isinstance(read, Decimals)
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize(
    "texts", [["1234567890123456.7"], ["0.1", "1234567890123.4567"], ["1e-25"], ["1e20", "0.5"]]
)
def test_decimals_that_floats_cannot_tell_apart_are_refused(texts: list[str]) -> None:
    column = pa.array([Decimal(text) for text in texts], pa.decimal256(70, 30))
    stream = stream_of(["A"] * len(texts), range(len(texts)), x=column)
    with pytest.raises(StreamError, match=r"'x' has type decimal256.* more than 15 digits"):
        stream.column("x")


def test_decimals_without_a_fraction_are_integers() -> None:
    column = pa.array([Decimal(2**60 + 1), Decimal(5)], pa.decimal128(38, 0))
    assert stream_of(["A", "B"], x=column).column("x").tolist() == [2**60 + 1, 5]
    column = pa.array([Decimal(5), None], pa.decimal128(38, 0))
    np.testing.assert_array_equal(stream_of(["A", "B"], x=column).column("x"), [5, np.nan])


def test_a_column_without_any_value_has_no_kind() -> None:
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.bool_(), pa.decimal128(9, 2), pa.null()]
    for kind in kinds:
        assert kind_of_column(stream_of(["A", "B"], x=pa.nulls(2, kind)).column("x")) is None
        assert (
            kind_of_column(stream_of([], pa.array([], pa.int64()), x=pa.nulls(0, kind)).column("x"))
            is None
        )
    texts = stream_of(["A", "B"], x=pa.array([None, "t"])).column("x")
    assert kind_of_column(texts) == "text"
    assert kind_of_column(texts[:1]) is None
    assert kind_of_column(stream_of(["A", "B"], x=[None, True]).column("x")) == "boolean"
    assert kind_of_column(stream_of(["A", "B"], x=[None, 1.5]).column("x")) == "number"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_datetimes_of_every_unit_and_zone(unit: Any) -> None:
    moment = pd.Timestamp("2024-07-01 12:00", tz="UTC")
    for zone in ("UTC", "America/New_York"):
        column = pd.Series([moment.tz_convert(zone)]).dt.as_unit(unit)
        frame = pd.DataFrame({"type": ["A"], "time": column})
        stream = EventStream.from_pandas(frame, type="type", time="time")
        assert stream.is_datetime
        assert stream.timestamps.tolist() == [moment.value]


def test_times_that_are_objects_keep_their_nanoseconds() -> None:
    """As times of several zones in a DataFrame are; Arrow rounds them."""
    moments = [
        pd.Timestamp("2024-07-01 12:00:00.000000001"),
        pd.Timestamp("2024-07-01 14:00:00.000000003+02:00"),
        datetime(2024, 7, 1, 8, 0, 1, tzinfo=ZoneInfo("America/New_York")),
    ]
    frame = pd.DataFrame({"type": list("ABC"), "time": pd.Series(moments, dtype=object)})
    stream = EventStream.from_pandas(frame, type="type", time="time")
    noon = pd.Timestamp("2024-07-01 12:00").value
    assert (stream.timestamps - noon).tolist() == [1, 3, 10**9]


def test_integer_types_are_named_by_their_digits() -> None:
    assert stream_of(pa.array([3, 1, 3], pa.int16())).type_names == ("3", "1")
    assert stream_of(pa.array([3, 1, 3]).dictionary_encode()).type_names == ("3", "1")


# -- empty streams, pieces and displays -------------------------------------------------------


@pytest.mark.parametrize(
    "types", [pa.array([], pa.string()), pa.nulls(0), pa.chunked_array([], pa.string())], ids=str
)
def test_no_events_at_all(types: Any) -> None:
    times = pa.chunked_array([], pa.timestamp("us"))
    stream = stream_of(types, times, sort=True, x=pa.chunked_array([], pa.string()))
    assert len(stream) == 0
    assert stream.is_datetime
    assert list(stream.batches(3)) == []
    assert stream.counts_by_type() == {}
    assert len(stream.of_types(["A"])) == 0
    assert len(stream.to_pandas()) == 0
    assert "0 events" in repr(stream)
    assert stream._repr_html_()


def test_an_empty_frame_with_dtypes() -> None:
    stream = EventStream.from_pandas(FRAME.iloc[:0], type="symbol", time="ts")
    assert (len(stream), list(stream.attributes)) == (0, ["price", "volume", "venue"])


@given(st.integers(1, 12), st.integers(0, 10))
def test_batches_put_together_are_the_stream(size: int, length: int) -> None:
    texts = pa.array([f"x{row % 3}" for row in range(length)], pa.string())
    stream = stream_of(texts, pa.array(range(length), pa.int64()), x=texts)
    pieces = list(stream.batches(size))
    assert all(len(piece) == size for piece in pieces[:-1])
    assert sum(map(len, pieces)) == length
    assert [t for piece in pieces for t in piece.timestamps.tolist()] == list(range(length))
    assert [t for piece in pieces for t in texts_of(piece.column("x"))] == texts.to_pylist()


@pytest.mark.parametrize("size", [0, -1])
def test_batches_hold_events(size: int) -> None:
    with pytest.raises(StreamError, match="size must be at least 1, not"):
        list(stream_of(["A"]).batches(size))


def test_slices_are_views() -> None:
    stream = EventStream.from_pandas(FRAME, type="symbol", time="ts")
    part = stream[1:3]
    assert types_of(part) == ["B", "A"]
    assert np.shares_memory(part.timestamps, stream.timestamps)
    assert len(stream[-1:]) == 1
    with pytest.raises(StreamError, match="slices"):
        stream[::2]
    with pytest.raises(StreamError, match="slices"):
        stream[0]  # type: ignore[index]


def test_of_types_keeps_the_order() -> None:
    stream = EventStream.from_pandas(FRAME, type="symbol", time="ts").of_types(["C", "A", "gone"])
    assert types_of(stream) == ["A", "A", "C"]
    np.testing.assert_array_equal(stream.column("price"), [1.5, 2.5, 3.5])
    assert texts_of(stream.column("venue")) == ["x", "y", "x"]


def test_parts_know_where_their_events_stood() -> None:
    types = [*"ABCABCAABB"]
    stream = stream_of(types)
    assert list(stream.whole_positions()) == list(range(10))
    part = stream[2:9]
    assert list(part.whole_positions()) == [2, 3, 4, 5, 6, 7, 8]
    assert list(part.of_types(["A"]).whole_positions()) == [3, 6, 7]
    assert list(part.of_types(["A"])[1:].whole_positions()) == [6, 7]
    assert list(stream.of_types(["B"]).of_types(["B"])[-2:].whole_positions()) == [8, 9]
    assert list(stream[20:].whole_positions()) == []
    assert [list(batch.whole_positions()) for batch in part.batches(4)] == [[2, 3, 4, 5], [6, 7, 8]]


def test_a_stream_survives_pickling() -> None:
    stream = EventStream.from_pandas(FRAME, type="symbol", time="ts")
    packed = pickle.dumps(stream)
    assert stream.rows_of_codes([0]) is None
    assert [rows.tolist() for rows in stream.rows_of_codes([0, 2]) or []] == [[0, 2], [3]]
    assert stream.times_of_code(0).tolist() == stream.timestamps[[0, 2]].tolist()
    assert stream.with_hierarchy(None).indexed().rows_of_codes([1]) is not None
    # Rows by type are found again where they are needed.
    assert pickle.dumps(stream) == packed
    assert_equal(pickle.loads(packed), stream)


def test_parts_of_a_stream_find_their_rows_by_type_in_it() -> None:
    rng = np.random.default_rng(0)
    stream = stream_of([*rng.choice(list("ABC"), 60)], x=[*range(60)]).indexed()
    for first, last in ((0, 60), (7, 41), (20, 21), (30, 30)):
        part = stream[first:last]
        for its, begin in (
            (part, first),
            (part[3:-2], min(first + 3, last)),
            (part[5:][1:], first + 6),
        ):
            assert len(its) < 60 or its is stream
            for code in range(3):
                rows = np.flatnonzero(its.type_codes == code)
                assert [found.tolist() for found in its.rows_of_codes([code]) or []] == [
                    rows.tolist()
                ]
                assert list(its.times_of_code(code)) == list(its.timestamps[rows])
                assert list(its.column_of_code("x", code)) == [*begin + rows]
    # Nothing is known of a part of which nothing was known when it was taken.
    assert stream_of([*"ABC"])[1:].rows_of_codes([0]) is None
    assert pickle.loads(pickle.dumps(stream[7:41])).rows_of_codes([0]) is None


def test_html_escapes_what_comes_from_the_data() -> None:
    stream = stream_of(["<script>"], sort=False, x=["<b>"], **{"<i>": [1]})
    shown = stream._repr_html_()
    for raw in ("<script>", "<b>", "<i>"):
        assert raw not in shown


def test_types_under_a_concept_hierarchy() -> None:
    hierarchy = ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})
    events = pd.DataFrame(
        {"type": ["DELL", "X", "Computer", "INTC", "DELL", "Company"], "time": range(6)}
    )
    stream = EventStream.from_pandas(events, type="type", time="time", hierarchy=hierarchy)
    rows = {
        "Company": [0, 2, 3, 4, 5],
        "Computer": [0, 2, 3, 4],
        "DELL": [0, 4],
        "Finance": [],
        "QQQ": [],
        "X": [1],
        "unknown": [],
        None: [0, 1, 2, 3, 4, 5],
    }
    for type, its in rows.items():
        assert stream.rows_of(type).tolist() == its
        assert np.isin(stream.type_codes, stream.codes_of(type)).nonzero()[0].tolist() == its
    assert stream[1:4].hierarchy == hierarchy
    assert [len(part.rows_of("Computer")) for part in stream.batches(3)] == [2, 2]
    assert stream.of_types(["Computer", "X"]).positions.tolist() == [0, 1, 2, 3, 4]
    alone = stream.with_hierarchy(None)
    assert alone.hierarchy is None
    assert alone.rows_of("Computer").tolist() == [2]
    assert alone.of_types(["Computer", "X"]).positions.tolist() == [1, 2]
    assert alone.with_hierarchy(hierarchy).codes_of("Computer").tolist() == (
        stream.codes_of("Computer").tolist()
    )
    assert stream[:0].rows_of("Company").tolist() == []
    with pytest.raises(HierarchyError, match="must be a ConceptHierarchy, not a dict"):
        stream.with_hierarchy({"A": []})
