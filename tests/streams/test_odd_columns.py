"""Columns of every kind that pandas and Arrow know: read, left aside, or refused by their name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cepbench.errors import CepbenchError, StreamError
from cepbench.streams.event_stream import EventStream

ROWS = 4

#: What such a column is in a stream: its values, or None for one that can be no attribute.
READ: dict[str, tuple[Any, list[Any] | None]] = {
    "sparse": (pd.arrays.SparseArray([0.0, 0.0, 1.0, np.nan]), [0.0, 0.0, 1.0, np.nan]),
    "sparse texts": (pd.arrays.SparseArray(["a", "b", "a", "a"]), ["a", "b", "a", "a"]),
    "categories of integers": (pd.Categorical([7, 2, 7, 2]), [7, 2, 7, 2]),
    "categories of floats": (pd.Categorical([1.5, 2, 1.5, 2]), [1.5, 2, 1.5, 2]),
    "decimals": ([Decimal("1.5")] * ROWS, [1.5] * ROWS),
    "long decimals": ([Decimal("1234567890123456.7")] * ROWS, None),
    "categories of booleans": (
        pd.Categorical([True, False, None, True]),
        [True, False, None, True],
    ),
    "half floats": (np.ones(ROWS, np.float16), [1.0] * ROWS),
    "switches with gaps": ([True, None, False, True], [True, None, False, True]),
    "Arrow's texts": (pd.array(list("abca"), dtype=pd.ArrowDtype(pa.large_string())), list("abca")),
    "nothing": ([None] * ROWS, [np.nan] * ROWS),
    "integers of 64 bits without sign": (np.full(ROWS, 2**63 + 1, np.uint64), None),
    "periods": (pd.period_range("2020", periods=ROWS, freq="Y"), None),
    "lengths of time": (pd.to_timedelta(range(ROWS), unit="s"), None),
    "intervals": (pd.interval_range(0, ROWS), None),
    "moments in a zone": (pd.date_range("2020", periods=ROWS, tz="Europe/Berlin"), None),
    "bytes": ([b"a"] * ROWS, None),
    "lists": ([[1]] * ROWS, None),
    "mappings": ([{"a": 1}] * ROWS, None),
}

#: What no column of a stream can be made of, and what the message says.
REFUSED: dict[str, tuple[Any, str]] = {
    "integers beyond 64 bits": ([1, 2**70, 3, 4], "an integer beyond 64 bits"),
    "negative ones": ([-(2**70)] * ROWS, "an integer beyond 64 bits"),
    "half a surrogate pair": (
        ["a", "b\udfff", "c", "d"],
        r"not valid Unicode .*'\\udfff'.*'replace'",
    ),
    "half a pair in a category": (pd.Categorical(["\ud800", "a", "a", "a"]), "not valid Unicode"),
    "complex numbers": (
        np.zeros(ROWS, complex),
        "type complex128 cannot be converted.*numbers or texts",
    ),
    "long floats": (np.zeros(ROWS, np.longdouble), "type .* cannot be converted"),
    "numbers and texts": ([1, "a", None, 2.5], "type object .*give the column a single type"),
    "mixed categories": (pd.Categorical([1, "a", 2.5, None]), "give the column a single type"),
    "objects": ([object()] * ROWS, "give the column a single type"),
    "decimals of 101 digits": (
        [Decimal(10) ** 100] * ROWS,
        "cannot be converted: Decimal precision",
    ),
}


def frame_with(column: Any) -> pd.DataFrame:
    frame = pd.DataFrame({"kind": list("ABAB"), "at": range(ROWS)})
    return frame.assign(odd=pd.Series(column))


def values_of(stream: EventStream) -> list[Any]:
    column = stream.column("odd")
    return list(column.tolist())


@pytest.mark.parametrize("kind", READ)
def test_a_column_is_read_or_left_aside(kind: str) -> None:
    column, expected = READ[kind]
    stream = EventStream.from_pandas(frame_with(column), type="kind", time="at")
    if expected is None:
        assert "odd" in stream.unusable
        with pytest.raises(StreamError, match=r"'odd' has type .*cannot be compared"):
            stream.column("odd")
    else:
        np.testing.assert_equal(values_of(stream), expected)


@pytest.mark.parametrize("kind", REFUSED)
def test_a_column_that_cannot_be_read_is_named(kind: str) -> None:
    column, message = REFUSED[kind]
    frame = frame_with(column)
    for types, times in (("kind", "at"), ("odd", "at"), ("kind", "odd")):
        with pytest.raises(StreamError, match=rf"column 'odd' (?s:.)*{message}") as caught:
            EventStream.from_pandas(frame, type=types, time=times)
        assert len(str(caught.value)) < 400
    # Where it is not asked for, it is not in the way.
    stream = EventStream.from_pandas(frame, type="kind", time="at", attributes=[])
    assert len(stream) == ROWS
    assert not stream.attributes


@pytest.mark.parametrize("kind", [*READ, *REFUSED])
@pytest.mark.parametrize("use", [{"type": "odd", "time": "at"}, {"type": "kind", "time": "odd"}])
def test_an_odd_column_as_type_or_time(kind: str, use: dict[str, str]) -> None:
    """It is taken, or refused by a named error that says which column it is."""
    frame = frame_with({**READ, **REFUSED}[kind][0])
    message = ""
    try:
        stream = EventStream.from_pandas(frame, **use, sort=True)
    except CepbenchError as error:
        message = str(error)
    assert "'odd'" in message or len(stream) == ROWS


def test_columns_whose_names_are_no_texts() -> None:
    frame = pd.DataFrame([["A", 1, 2.0]], columns=[0, 1, 2])
    assert list(EventStream.from_pandas(frame, type="0", time="1").attributes) == ["2"]
    with pytest.raises(StreamError, match="not valid Unicode"):
        EventStream.from_pandas(frame.set_axis(["a", "b", "\ud800"], axis=1), type="a", time="b")
    for names in (["a", "a", "b"], [1, "1", "b"]):
        with pytest.raises(StreamError, match="two columns are named"):
            EventStream.from_pandas(frame.set_axis(names, axis=1), type="a", time="b")


def test_a_wrong_name_of_a_column_gets_the_nearest(tmp_path: Any) -> None:
    frame = pd.DataFrame({"symbol": ["A"], "ts": [1], "price": [2.0]})
    frame.to_parquet(tmp_path / "f.parquet", index=False)
    makes: list[Any] = [
        lambda **use: EventStream.from_pandas(frame, **use),
        lambda **use: EventStream.from_arrow(pa.Table.from_pandas(frame), **use),
        lambda **use: EventStream.from_parquet(tmp_path / "f.parquet", **use),
    ]
    for make in makes:
        assert list(make(type="symbol", time="ts").attributes) == ["price"]
        with pytest.raises(StreamError, match=r"no column 'symbo'.*did you mean 'symbol'"):
            make(type="symbo", time="ts")
        with pytest.raises(StreamError, match=r"no column 'prices'.*did you mean 'price'"):
            make(type="symbol", time="ts", attributes=["prices"])
        with pytest.raises(StreamError, match=r"list such as \[\"a\", \"b\"\], not 'price'"):
            make(type="symbol", time="ts", attributes="price")


def test_texts_of_arrow_that_are_no_unicode() -> None:
    broken = pa.Array.from_buffers(
        pa.string(),
        2,
        [None, pa.py_buffer(np.array([0, 1, 3], np.int32)), pa.py_buffer(b"a\xff\xfe")],
    )
    for use in ({"type": "odd", "time": "at"}, {"type": "kind", "time": "at"}):
        table = pa.table({"kind": ["A", "B"], "at": [1, 2], "odd": broken})
        with pytest.raises(StreamError, match="not UTF-8"):
            EventStream.from_arrow(table, **use)
