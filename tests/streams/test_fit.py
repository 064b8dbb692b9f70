"""Patterns that cannot be asked of a stream are refused before anything runs."""

import pyarrow as pa
import pytest

from cepbench.errors import StreamError
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types, reporting_missing_types


def stream_of(time: pa.DataType, rows: int = 2) -> EventStream:
    table = pa.table(
        {
            "type": pa.array(["GOOG", "MSFT"][:rows]),
            "time": pa.array([1, 2][:rows]).cast(time),
            "price": [1.0, 2.0][:rows],
            "venue": pa.array(["x", "y"][:rows]),
            "parts": pa.array([[1], [2]][:rows], pa.list_(pa.int64())),
        }
    )
    return EventStream.from_arrow(table, type="type", time="time")


DATETIMES, TICKS = stream_of(pa.timestamp("s")), stream_of(pa.int64())


def asked(where: str, within: str = "1 s") -> str:
    return f"PATTERN SEQ(MSFT a, GOOG b) WHERE {where} WITHIN {within}"


@pytest.mark.parametrize(
    "where",
    ["a.price < b.price", "a.venue = b.venue", "a.venue != 'x'", "-a.price + 1 >= b.price / 2"],
)
def test_what_fits(where: str) -> None:
    check_fit(parse(asked(where)), DATETIMES)
    check_fit(parse(asked(where, "3 units")), TICKS)


def test_windows_must_match_the_time_column() -> None:
    with pytest.raises(StreamError, match=r"needs a datetime column.*write WITHIN … units"):
        check_fit(parse(asked("a.price < 1", "5 minutes")), TICKS)
    with pytest.raises(StreamError, match=r"counts ticks.*write WITHIN … seconds"):
        check_fit(parse(asked("a.price < 1", "5 units")), DATETIMES)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("a.prise < 1", "no attribute 'prise'.*did you mean 'price'"),
        ("a.price < 1 AND (a.price = 2 OR b.gone = 1)", "no attribute 'gone'"),
        ("a.parts = 1", "cannot be compared"),
        ("a.venue = 1", "compares a text with a number"),
        ("a.price = 'x'", "compares a text with a number"),
        ("a.venue = b.price", "compares a text with a number"),
        ("a.venue < b.venue", "orders texts"),
        ("a.venue + 1 = b.price", "arithmetic on a text"),
        ("-a.venue = b.price", "arithmetic on a text"),
    ],
)
def test_conditions_that_make_no_sense_here(where: str, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        check_fit(parse(asked(where)), DATETIMES)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("b[i].venue = b[i-1].venue AND avg(b.price) > a.price AND count(b.venue) > 2", None),
        ("b[1].prise < 3", "no attribute 'prise'.*did you mean 'price'"),
        ("sum(b[..i-1].gone) < b.price", "no attribute 'gone'"),
        ("max(b.venue) = a.price", r"max\(b\[\]\.venue\): arithmetic on a text"),
        ("a.venue = count(b.venue)", "compares a text with a number"),
        ("n.venue = a.price", "compares a text with a number"),
        ("c.gone = 3", "no attribute 'gone'"),
    ],
)
def test_conditions_on_sets_negated_items_and_branches(where: str, message: str | None) -> None:
    items = "OR(SEQ(MSFT a, NOT(GOOG n), KL(GOOG b)), GOOG c)"
    pattern = parse(f"PATTERN {items} WHERE {where} WITHIN 1 s")
    if message is None:
        check_fit(pattern, DATETIMES)
    else:
        with pytest.raises(StreamError, match=message):
            check_fit(pattern, DATETIMES)


def test_the_attribute_that_partitions_share() -> None:
    text = "PATTERN SEQ(MSFT a, GOOG b) STRATEGY partition_contiguity({}) WITHIN 1 s"
    check_fit(parse(text.format("venue")), DATETIMES)
    check_fit(parse(text.format("price")), DATETIMES)
    with pytest.raises(StreamError, match=r"STRATEGY .*\(venu\): .*did you mean 'venue'"):
        check_fit(parse(text.format("venu")), DATETIMES)
    with pytest.raises(StreamError, match="cannot be compared"):
        check_fit(parse(text.format("parts")), DATETIMES)


@pytest.mark.parametrize("item", ["NOT(GOGO n)", "KL(GOGO n)", "OR(GOGO n, MSFT b)"])
def test_unknown_types_of_all_kinds_of_items(item: str) -> None:
    with (
        reporting_missing_types("error"),
        pytest.raises(StreamError, match=r"'GOGO' \(variable 'n'\).*did you mean 'GOOG'"),
    ):
        check_types(parse(f"PATTERN SEQ(MSFT a, {item}) WITHIN 1 s"), DATETIMES)


def test_unknown_types_with_the_nearest_one() -> None:
    check_types(parse("PATTERN AND(MSFT a, GOOG b) WITHIN 1 s"), DATETIMES)
    with (
        reporting_missing_types("error"),
        pytest.raises(StreamError, match=r"'MSTF' \(variable 'a'\).*did you mean 'MSFT'"),
    ):
        check_types(parse("PATTERN AND(MSTF a, GOOG b) WITHIN 1 s"), DATETIMES)


def test_any_type_is_known() -> None:
    check_types(parse("PATTERN SEQ(MSFT a, ANY b, NOT(ANY n)) WITHIN 1 s"), DATETIMES)


def test_an_empty_stream_refuses_no_type() -> None:
    check_types(parse("PATTERN AND(MSTF a, GOOG b) WITHIN 1 s"), stream_of(pa.int64(), rows=0))
