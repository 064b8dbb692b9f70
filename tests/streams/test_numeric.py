"""Attributes as numbers: exact, or refused; texts with the same code in every batch."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cepbench.errors import StreamError
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


def stream_of(column: pa.Array) -> EventStream:
    table = pa.table({"type": ["A"] * len(column), "time": range(len(column)), "x": column})
    return EventStream.from_arrow(table, type="type", time="time")


def test_texts_keep_their_codes_from_batch_to_batch() -> None:
    reader = NumericReader()
    first = reader.read(stream_of(pa.array(["u", "v", None, "u"])), "x", slice(None))
    second = reader.read(stream_of(pa.array(["w", "v", "u"])), "x", slice(None))
    assert first[0] == first[3] == second[2]
    assert first[1] == second[1]
    assert np.isnan(first[2])
    assert len({first[0], first[1], second[0]}) == 3
    assert reader.code("w") == second[0]


def at(time: int, *texts: str) -> EventStream:
    table = pa.table({"type": ["A"] * len(texts), "time": [time] * len(texts), "x": [*texts]})
    return EventStream.from_arrow(table, type="type", time="time")


def test_texts_are_evicted_once_nothing_that_was_read_is_kept() -> None:
    reader = NumericReader(span=10)
    constant = reader.code("w")
    known = {}
    for time in range(0, 1_000, 3):
        texts = [f"new {time}", f"new {time - 9}", "w"]
        codes = reader.read(at(time, *texts), "x", slice(None))
        known[texts[0]] = codes[0]
        assert codes[1] == known.get(texts[1], codes[1]) and codes[2] == constant
        assert len(reader.texts) <= 2 * (10 / 3 + 1) + 6
    assert len({*known.values(), constant}) == len(known) + 1  # none is given again
    assert reader.read(at(1_000, "new 0"), "x", slice(None))[0] > max(known.values())
    assert reader.code("w") == constant


def test_a_table_that_is_read_on_keeps_its_codes() -> None:
    reader = NumericReader(span=10)
    long = EventStream.from_pandas(
        pd.DataFrame({"type": "A", "time": np.arange(100), "x": list("abcde") * 20}),
        type="type", time="time",
    )  # fmt: skip
    first = reader.read(long[:5], "x", slice(None))
    for place in range(5, 100, 5):
        np.testing.assert_array_equal(reader.read(long[place : place + 5], "x", slice(None)), first)
    np.testing.assert_array_equal(reader.read(at(100, *"edcba"), "x", slice(None)), first[::-1])


def test_a_reader_goes_on_with_the_codes_of_another() -> None:
    reader, same, other = NumericReader(), NumericReader(), NumericReader()
    for each in (reader, same):
        each.code("constant")
    codes = reader.read(at(0, "u", "v"), "x", slice(None))
    assert same.adopt(reader) and not other.adopt(reader)
    np.testing.assert_array_equal(same.read(at(1, "v", "new", "u"), "x", [0, 2]), codes[::-1])
    assert same.code("new") not in codes


def test_rows_may_be_picked() -> None:
    stream = stream_of(pa.array([5, 6, 7]))
    np.testing.assert_array_equal(NumericReader().read(stream, "x", np.array([2, 0])), [7, 5])
    assert NumericReader().read(stream, "x", slice(1, 2)).dtype == np.float64


def test_integers_are_exact_up_to_2_53() -> None:
    stream = stream_of(pa.array([2**53, -(2**53)]))
    assert NumericReader().read(stream, "x", slice(None)).tolist() == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, -(2**63)])
def test_larger_integers_are_refused_with_their_row(value: int) -> None:
    stream = stream_of(pa.array([1, 2, value]))
    with pytest.raises(StreamError, match="too large to compare exactly") as bad:
        NumericReader().read(stream, "x", np.array([0, 2]))
    assert bad.value.row == 2
    assert NumericReader().read(stream, "x", np.array([0, 1])).tolist() == [1, 2]


@pytest.mark.parametrize("is_restored", [False, True])
def test_integers_that_became_floats_are_refused_where_they_may_be_rounded(
    is_restored: bool,
) -> None:
    reader = NumericReader()
    reader.read(stream_of(pa.array([1, 2])), "x", slice(None))
    if is_restored:
        state, reader = reader.snapshot(), NumericReader()
        reader.restore(state)
    with pytest.raises(StreamError, match="too large to compare exactly"):
        reader.read(stream_of(pa.array([None, 2.0**53])), "x", slice(None))
    with pytest.raises(StreamError, match="too large to compare exactly"):
        reader.read(stream_of(pa.array([-(2.0**63), None])), "x", slice(None))
    others = [np.inf, -np.inf, 1e300, 0.5]  # that no integer was
    assert reader.read(stream_of(pa.array(others)), "x", slice(None)).tolist() == others
