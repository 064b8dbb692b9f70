"""Source files row by row: what is read, and the reason for every row that is not."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import DatasetError
from cepbench.streams import sources
from cepbench.streams.event_stream import EventStream
from cepbench.streams.sources import (
    LOBSTER,
    MINUTE_BARS,
    SourceFormat,
    decimal_differences,
    lobster_day,
    read_rows,
    recognized,
    source_files,
)
from tests.budgets import examples

GOOD = "MSFT,200802010930,31.2,31.4,31.1,31.3,100"
DAY = date(2012, 6, 21)


def read(
    file: Path, form: SourceFormat = MINUTE_BARS, *, sort: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    pieces = list(read_rows(file, form, day=DAY, sort=sort))
    return (
        pd.concat([piece.events.to_pandas() for piece in pieces], ignore_index=True),
        pd.concat([piece.bad.to_pandas() for piece in pieces], ignore_index=True),
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "the line is empty"),
        ("   ", "the line is empty"),
        ("MSFT,200802010930,31.2", "3 fields instead of 7"),
        (GOOD + ",9", "8 fields instead of 7"),
        ("ticker,time,open,high,low,close,volume", "time is not YYYYMMDDhhmm"),
        (",200802010930,31.2,31.4,31.1,31.3,100", "ticker is missing"),
        ("  ,200802010930,31.2,31.4,31.1,31.3,100", "ticker is missing"),
        ("MSFT,20080201093,31.2,31.4,31.1,31.3,100", "time is not YYYYMMDDhhmm"),
        ("MSFT,200802300930,31.2,31.4,31.1,31.3,100", "time is not a valid day and minute"),
        ("MSFT,200802012460,31.2,31.4,31.1,31.3,100", "time is not a valid day and minute"),
        ("MSFT,230002010930,31.2,31.4,31.1,31.3,100", "time is before 1824 or after 2116"),
        ("MSFT,999912312359,31.2,31.4,31.1,31.3,100", "time is before 1824 or after 2116"),
        ("MSFT,106610141200,31.2,31.4,31.1,31.3,100", "time is before 1824 or after 2116"),
        ("MSFT,211602210000,31.2,31.4,31.1,31.3,100", "time is before 1824 or after 2116"),
        ("MSFT,200802010930,x,31.4,31.1,31.3,100", "open is not a number"),
        ("MSFT,200802010930,31.2,nan,31.1,31.3,100", "high is not a number"),
        ("MSFT,200802010930,31.2,31.4,inf,31.3,100", "low is not a number"),
        ("MSFT,200802010930,31.2,31.4,31.1,,100", "close is not a number"),
        ("MSFT,200802010930,31.2,1e999,31.1,31.3,100", "high is too large"),
        ("MSFT,200802010930,31.2,31.4,31.1,-31.3,100", "close is not positive"),
        ("MSFT,200802010930,31.2,31.0,31.1,31.3,100", "high is below low"),
        ("MSFT,200802010930,31.2,31.4,31.1,31.3,-100", "volume is negative"),
        ("MSFT,200802010930,31.2,31.4,31.1,31.3,1.5", "volume is not a whole number"),
        ("MSFT,200802010930,31.2,31.4,31.1,31.3,99999999999999999999", "volume is not a whole"),
        ("MSFT,200802010929,31.2,31.4,31.1,31.3,100", "earlier than row 1 before it"),
    ],
)
def test_bad_minute_bars(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "bars.txt"
    file.write_text(f"{GOOD}\n{line}\n{GOOD}\n")
    events, bad = read(file)
    assert list(events.row) == [1, 3]
    assert list(bad.row) == [2]
    assert bad.text[0] == line
    assert bad.reason[0].startswith(reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("34200.5,1,7,18,5853300", "5 fields instead of 6"),
        ("x,1,7,18,5853300,1", "time is not seconds after midnight"),
        ("-1,1,7,18,5853300,1", "time is not seconds after midnight"),
        ("86400.0,1,7,18,5853300,1", "time is beyond midnight"),
        ("34200.5,7,0,0,-1,-1", "type is none of 1 to 5"),
        ("34200.5,1.0,7,18,5853300,1", "type is not a whole number"),
        ("34200.5,1,x,18,5853300,1", "order id is not a whole number"),
        ("34200.5,1,7,0,5853300,1", "size is not positive"),
        ("34200.5,1,7,18,0,1", "price is not positive"),
        ("34200.5,1,7,18,5853300,0", "direction is neither 1 nor -1"),
        ("34199.5,1,7,18,5853300,1", "earlier than row 1 before it"),
    ],
)
def test_bad_messages(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "messages.csv"
    good = "34200.004241176,1,16113575,18,5853300,1"
    file.write_text(f"{good}\n{line}\n{good}\n")
    events, bad = read(file, LOBSTER)
    assert list(events.row) == [1, 3]
    assert (bad.text[0], bad.reason[0]) == (line, reason)


def test_messages(tmp_path: Path) -> None:
    file = tmp_path / "messages.csv"
    file.write_text(
        "34200.004241176,1,16113575,18,5853300,1\n"
        "34200.00424118,4,16113575,8,5853300,-1\n"
        "35821.088778456004,5,0,1,5853301,1\n"
        "35821.0887784567,3,7,1,5853301,1\n"
        "35822,2,7,1,5853301,1\n"
    )
    events, bad = read(file, LOBSTER)
    assert not len(bad)
    assert list(events.symbol) == [
        "submission_buy",
        "execution_sell",
        "hidden_execution_buy",
        "deletion_buy",
        "cancellation_buy",
    ]
    nanoseconds = events.ts.astype("int64") - pd.Timestamp(DAY).value
    assert list(nanoseconds) == [
        34_200_004_241_176,
        34_200_004_241_180,
        35_821_088_778_456,
        35_821_088_778_457,
        35_822_000_000_000,
    ]
    assert list(events.price) == [585.33, 585.33, 585.3301, 585.3301, 585.3301]
    assert list(events["size"]) == [18, 8, 1, 1, 1]
    assert list(events.order_id) == [16113575, 16113575, 0, 7, 7]


def test_bars_with_windows_line_ends_a_mark_and_no_last_line_end(tmp_path: Path) -> None:
    file = tmp_path / "bars.txt"
    file.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}\r\n {GOOD.replace(',', ' , ')}\r\n{GOOD}".encode())
    events, bad = read(file)
    assert not len(bad)
    assert set(events.symbol) == {"MSFT"}
    assert events.iloc[:, 1:7].drop_duplicates().values.tolist() == [
        [pd.Timestamp("2008-02-01 09:30"), 31.2, 31.4, 31.1, 31.3, 100]
    ]


def test_gzip(tmp_path: Path) -> None:
    file = tmp_path / "bars.txt.gz"
    file.write_bytes(gzip.compress(f"{GOOD}\nwrong\n".encode()))
    events, bad = read(file)
    assert (list(events.row), list(bad.row)) == ([1], [2])
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(DatasetError, match=r"bars\.txt\.gz cannot be read"):
        read(file)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    file = tmp_path / "bars.txt"
    file.touch()
    assert not list(read_rows(file, MINUTE_BARS))


@pytest.mark.parametrize("form", [MINUTE_BARS, LOBSTER])
def test_garbage_is_all_bad_and_none_lost(tmp_path: Path, form: SourceFormat) -> None:
    file = tmp_path / "garbage"
    noise = np.random.default_rng(0).bytes(200_000)
    file.write_bytes(b"x" + noise + b"\n\x00\xff,\xff,,,,,\n")
    events, bad = read(file, form)
    assert not len(events)
    assert len(bad) == file.read_bytes().count(b"\n")
    assert "not UTF-8" in set(bad.reason)


def test_order_is_watched_across_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bars.txt"
    rng = np.random.default_rng(1)
    minutes = np.clip(np.arange(200) // 4 + rng.integers(-3, 1, 200), 0, None)
    lines = [GOOD.replace("0930", f"{10 + m // 60:02}{m % 60:02}") for m in minutes]
    lines[17] = "wrong,200802012359"
    file.write_text("\n".join(lines) + "\n")
    expected, latest = [], -1
    for row, minute in enumerate(minutes.tolist()):
        if row != 17:
            if minute < latest:
                expected.append(row + 1)
            latest = max(latest, minute)
    whole = read(file)
    monkeypatch.setattr(sources, "_BLOCK", 100)
    pieces = read(file)
    for one, other in zip(whole, pieces, strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert len(expected) > 20
    assert list(pieces[1].row) == sorted([*expected, 18])
    for row, reason in zip(pieces[1].row, pieces[1].reason, strict=True):
        if row != 18:
            named = int(reason.split()[3])
            assert minutes[named - 1] == minutes[: row - 1].max() > minutes[row - 1]
    assert len(read(file, sort=True)[1]) == 1


#: What a stream can hold: 62 bits of nanoseconds.
FIRST, LAST = (
    datetime(1970, 1, 1) + sign * timedelta(microseconds=2**62 // 1000) for sign in (-1, 1)
)


def parsed_bar(line: str) -> tuple | None:
    """A minute bar by the rules of the format, with Python's own numbers and dates."""
    fields = [field.strip() for field in line.split(",")]
    try:
        ticker, moment, *numbers = fields
        assert len(numbers) == 5 and ticker and re.fullmatch("[0-9]{12}", moment)
        ts = datetime.strptime(moment, "%Y%m%d%H%M")
        prices = [float(Decimal(number)) for number in numbers[:4]]
        assert (
            FIRST < ts < LAST and 0 < min(prices) <= max(prices) < np.inf and prices[1] >= prices[2]
        )
        assert re.fullmatch(r"[+]?[0-9]{1,18}", numbers[4])
    except (ValueError, ArithmeticError, AssertionError):
        return None
    return ticker, pd.Timestamp(ts), prices[3], int(numbers[4])


def test_random_rows_by_another_parser(tmp_path: Path, seeds: Callable[[int], range]) -> None:
    """Every row is an event or put aside, and the events are those of a parser of the test's own."""
    file = tmp_path / "bars.txt"
    some = {
        1: ["200802010930", "230001010000", "167701010000", "182311110000", "182401010000", "000001010000",
            "211602190000", "226301010000", "999912312359", "20080230093", "200813010930", "200802010960"],
        2: ["1", "0", "-2", "1e3", "x", ""],
        3: ["31.4", "1e9999", "nan"],
        6: ["100", "-1", "1.5", "9" * 19, "+7"],
        0: ["MSFT", "", " A B "],
    }  # fmt: skip
    for seed in seeds(3):
        rng = np.random.default_rng(seed)
        lines = []
        for _ in range(300):
            fields = GOOD.split(",")
            for place, values in some.items():
                if rng.random() < 0.25:
                    fields[place] = str(rng.choice(values))
            lines.append(",".join(fields[: None if rng.random() < 0.9 else 5]))
        file.write_text("\n".join(lines) + "\n")
        events, bad = read(file, sort=True)
        due = {row: bar for row, line in enumerate(lines, 1) if (bar := parsed_bar(line))}
        assert list(events.row) == list(due) and len(events) + len(bad) == len(lines)
        columns = events[["symbol", "ts", "price", "volume"]]
        assert list(columns.itertuples(index=False, name=None)) == list(due.values())
        assert not bad.reason.isna().any()
        stream = EventStream.from_pandas(events, type="symbol", time="ts", sort=True)
        assert len(stream) == len(events) > 30


@pytest.mark.parametrize(
    "day", [date(2300, 1, 1), date(9999, 12, 31), date(1, 1, 1), date(1700, 1, 1)]
)
def test_days_that_no_stream_holds(tmp_path: Path, day: date) -> None:
    file = tmp_path / "messages.csv"
    file.write_text("34200.5,1,1,100,5853300,1\nbroken\n")
    (rows,) = read_rows(file, LOBSTER, day=day)
    assert not len(rows.events)
    far, broken = rows.bad.column("reason").to_pylist()
    assert far.startswith("time is before 1824 or after 2116") and broken == "1 fields instead of 6"
    (good,) = read_rows(file, LOBSTER, day=date(2116, 2, 18))
    assert good.events.column("ts").to_pandas()[0] == pd.Timestamp("2116-02-18 09:30:00.5")


def test_formats_are_recognized(tmp_path: Path) -> None:
    bars, book, other = (tmp_path / name for name in ("bars", "book", "other"))
    bars.write_text("ticker,time,open,high,low,close,volume\n" + f"{GOOD}\n" * 20)
    book.write_text("34200.5,1,1,100,5853300,1\n" * 20 + "34201,7,1,0,-1,-1\n")
    other.write_text("a,b\n1,2\n")
    assert [recognized(file) for file in (bars, book, other)] == [MINUTE_BARS, LOBSTER, None]
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"\x1f\x8bno gzip")  # which reading it reports
    for file, form in ((bars, MINUTE_BARS), (book, LOBSTER), (other, LOBSTER), (damaged, LOBSTER)):
        assert source_files(file, form) == [file]
    assert source_files([book, str(other)], LOBSTER) == [book, other]
    with pytest.raises(DatasetError, match="book has lobster rows, not minute-bars"):
        source_files(book, MINUTE_BARS)
    with pytest.raises(DatasetError, match="bars has minute-bars rows, not lobster"):
        source_files(bars, LOBSTER)
    with pytest.raises(DatasetError, match="there is no file"):
        source_files(tmp_path, LOBSTER)


def test_the_day_in_a_file_name() -> None:
    assert lobster_day("x/AAPL_2012-06-21_34200000_57600000_message_10.csv") == DAY
    for name in ("AAPL.csv", "2012-06-21_2012-06-22.csv", "AAPL_2012-13-41.csv"):
        with pytest.raises(DatasetError, match="date="):
            lobster_day(name)
    assert lobster_day("x.csv", DAY) == DAY
    for wrong in ("2012-06-21", datetime(2012, 6, 21), 5):
        with pytest.raises(DatasetError, match="date= is a day"):
            lobster_day("x.csv", wrong)


PRICES = st.lists(
    st.decimals(min_value=0, max_value=10**6, places=None, allow_nan=False).map(
        lambda price: round(price, 9)
    ),
    min_size=2,
    max_size=6,
)


@given(PRICES)
@examples(8)
def test_differences_are_those_of_the_decimals(prices: list[Decimal]) -> None:
    floats = np.array([float(price) for price in prices])
    exact = [float(later - earlier) for earlier, later in itertools.pairwise(prices)]
    assert decimal_differences(floats[1:], floats[:-1]).tolist() == exact


def test_differences_of_prices_of_many_digits() -> None:
    """A coin's price has eight digits and more, of which none is lost."""
    later = np.array([33.59, 0.00001234, 1e-9, 1e15, 123456.123456789, np.nan, 5.0])
    earlier = np.array([33.58, 0.00001233, 2e-9, 0.1, 123456.0, 1.0, np.nan])
    found = decimal_differences(later, earlier)
    expected = [0.01, 1e-8, -1e-9, 999999999999999.9, 0.123456789, np.nan, np.nan]
    np.testing.assert_array_equal(found, expected)
