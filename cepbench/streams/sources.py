"""Formats of source files: rows of text are parsed to columns, or rejected with a reason."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.arguments import shown
from cepbench.errors import DatasetError
from cepbench.files import user_path
from cepbench.streams.arrow import FARTHEST

#: Characters read at a time.
_BLOCK = 1 << 24
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_WHOLE = r"^[+-]?\d{1,18}$"
_NOT_UTF8 = "\ufffd"
_TOO_FAR = "time is before 1824 or after 2116, which nanoseconds in a stream cannot be"

#: Lines by which a format is recognized, and the share of them that fits another one only.
_LINES, _FITTING = 1000, 0.9


@dataclass(frozen=True, slots=True)
class Rows:
    """Some consecutive rows of a file, parsed.

    The good ones are events: ``symbol``, ``ts`` (timestamp), the format's columns, ``price``, and
    ``row``, the row number in the file, from 1. The bad ones have ``row``, ``text``, ``reason``.
    """

    events: pa.Table
    bad: pa.Table


class RowReader:
    """Parses rows and records the first reason to reject each malformed one."""

    def __init__(self, lines: pa.Array, names: tuple[str, ...]) -> None:
        self.lines = lines
        self.reasons = np.full(len(lines), None, dtype=object)
        fields = pc.split_pattern(lines, ",")
        found = pc.list_value_length(fields).to_numpy(zero_copy_only=False)
        blank = pc.equal(pc.utf8_trim_whitespace(lines), "").to_numpy(zero_copy_only=False)
        self.reject(blank, "the line is empty")
        damaged = pc.match_substring(lines, _NOT_UTF8).to_numpy(zero_copy_only=False)
        self.reject(damaged, "not UTF-8")
        for count in np.unique(found):
            if count != len(names):
                self.reject(found == count, f"{count} fields instead of {len(names)}")
        self._full = found == len(names)
        flat = pc.list_flatten(fields.filter(pa.array(self._full)))
        self._fields = {
            name: pc.utf8_trim_whitespace(flat.take(pa.array(np.arange(i, len(flat), len(names)))))
            for i, name in enumerate(names)
        }

    @property
    def good(self) -> np.ndarray:
        """The rows without a reason so far; bool, shape (n,)."""
        return np.asarray(pd.isna(self.reasons))

    def reject(self, wrong: np.ndarray, reason: str) -> None:
        """Set the reason of the wrong rows that have none yet."""
        self.reasons[wrong & self.good] = reason

    def text(self, name: str) -> pa.Array:
        """A field of every row; null in rows with a wrong number of fields."""
        place = np.cumsum(self._full) - 1
        return self._fields[name].take(pa.array(place, mask=~self._full))

    def matching(self, name: str, expression: str, wrong: str) -> pa.Array:
        """A field as text, null where it does not match; such rows are rejected as ``wrong``."""
        text = self.text(name)
        fits = pc.fill_null(pc.match_substring_regex(text, expression), False)
        self.reject(~fits.to_numpy(zero_copy_only=False), f"{name} is {wrong}")
        return pc.if_else(fits, text, None)

    def numbers(self, name: str) -> np.ndarray:
        """A field as float64; NaN where it is not a number, and the row is rejected."""
        text = self.matching(name, _NUMBER, "not a number")
        values = pc.cast(pc.utf8_ltrim(text, "+"), pa.float64()).to_numpy(zero_copy_only=False)
        self.reject(np.isinf(values), f"{name} is too large")
        return np.asarray(values)

    def whole_numbers(self, name: str) -> np.ndarray:
        """A field as int64; 0 where it is not a whole number, and the row is rejected."""
        text = self.matching(name, _WHOLE, "not a whole number")
        values = pc.cast(pc.utf8_ltrim(text, "+"), pa.int64())
        return np.asarray(pc.fill_null(values, 0).to_numpy())


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """A format of source files."""

    kind: str
    #: Names of the fields of a line.
    line: str
    unit: str
    #: Columns other than symbol, time and price.
    extra: tuple[tuple[str, pa.DataType], ...]
    #: Lines of a file → symbol, nanoseconds since 1970, price and the extra columns.
    read: Callable[[pa.Array, date | None], tuple[RowReader, dict[str, pa.Array]]]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the good rows."""
        fixed = [("symbol", pa.string()), ("ts", pa.timestamp(self.unit))]
        return pa.schema([*fixed, *self.extra, ("price", pa.float64()), ("row", pa.int64())])


BAD_ROWS = pa.schema([("row", pa.int64()), ("text", pa.string()), ("reason", pa.string())])


def read_rows(
    file: str | Path, form: SourceFormat, *, day: date | None = None, sort: bool = False
) -> Iterator[Rows]:
    """The rows of a file, plain or gzip-compressed, in batches.

    The day is for formats whose rows have a time of day only. Unless ``sort`` is true, a row
    earlier than a preceding good row is rejected. A DatasetError if the file cannot be opened or
    decompressed.
    """
    latest, latest_row, number = None, 0, 0
    for lines in _lines(Path(file)):
        reader, columns = form.read(lines, day)
        rows = np.arange(number + 1, number + 1 + len(lines))
        number += len(lines)
        if not sort:
            latest, latest_row = _refuse_backward(reader, columns["ts"], rows, latest, latest_row)
        good = pa.array(reader.good)
        events = pa.table({**columns, "row": rows}).filter(good)
        events = events.set_column(1, "ts", events.column("ts").cast(pa.timestamp("ns")))
        bad = pa.table(
            {"row": rows, "text": lines, "reason": pa.array(reader.reasons, pa.string())}
        )
        yield Rows(
            events.select(form.schema.names).cast(form.schema),
            bad.filter(pc.invert(good)).cast(BAD_ROWS),
        )


def decimal_differences(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """The floats nearest to differences of decimals: 33.59 - 33.58 is 0.01, as in a pattern.

    The decimals are given as the floats nearest to them.
    """
    found = np.full(len(later), np.nan)
    pairs = np.stack((later, earlier))
    left = np.flatnonzero(~np.isnan(pairs).any(axis=0))
    for digits in range(16):
        if not len(left):
            break
        whole = np.rint(pairs[:, left] * 10.0**digits)
        # Of at most 15 digits, these are the decimals.
        known = ((whole / 10.0**digits == pairs[:, left]) & (np.abs(whole) < 1e15)).all(axis=0)
        found[left[known]] = (whole[0] - whole[1])[known] / 10.0**digits
        left = left[~known]
    for row in left.tolist():
        one, other = (Decimal(repr(price)) for price in pairs[:, row].tolist())
        found[row] = float(one - other)
    return found


def price_steps(
    symbols: np.ndarray, prices: np.ndarray, last: tuple[str | None, float] = (None, 0.0)
) -> pa.Array:
    """Each price minus the one before it, of events sorted by symbol; missing for a symbol's first.

    ``last``: symbol and price of the event before these.
    """
    is_first = np.append(symbols[:1] != last[0], symbols[1:] != symbols[:-1])
    before = np.append(last[1], prices)[:-1]
    return pa.array(decimal_differences(prices, before), mask=is_first)


def _refuse_backward(
    reader: RowReader, moments: np.ndarray, rows: np.ndarray, latest: int | None, latest_row: int
) -> tuple[int | None, int]:
    """Reject rows earlier than a preceding one; returns the latest time so far and its row."""
    good = np.flatnonzero(reader.good)
    if not len(good):
        return latest, latest_row
    times, numbers = moments[good], rows[good]
    if latest is not None:
        times, numbers = np.insert(times, 0, latest), np.insert(numbers, 0, latest_row)
        good = np.insert(good, 0, -1)
    highest = np.maximum.accumulate(times)
    leads = np.maximum.accumulate(np.where(times == highest, np.arange(len(times)), 0))
    for index in np.flatnonzero(times < highest):
        reader.reasons[good[index]] = f"earlier than row {numbers[leads[index]]} before it"
    return int(highest[-1]), int(numbers[leads[-1]])


def _lines(file: Path) -> Iterator[pa.Array]:
    """The lines of a file without line ends, in batches."""
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            with gzip.open(raw) if packed else raw as plain:
                # Only \n ends a line: a row with another line break is damaged.
                text = io.TextIOWrapper(plain, "utf-8-sig", errors="replace", newline="\n")
                while block := text.read(_BLOCK) + text.readline():
                    lines = block.removesuffix("\n").split("\n")
                    yield pa.array([line.removesuffix("\r") for line in lines])
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{file} cannot be read: {error}") from error


def _read_minute_bars(lines: pa.Array, day: date | None) -> tuple[RowReader, dict[str, pa.Array]]:
    names = ("ticker", "time", "open", "high", "low", "close", "volume")
    rows = RowReader(lines, names)
    ticker = rows.matching("ticker", r"^\S", "missing")
    text = rows.matching("time", r"^\d{12}$", "not YYYYMMDDhhmm")
    moments = pc.strptime(text, format="%Y%m%d%H%M", unit="s", error_is_null=True)
    # Some systems parse 30 February as 1 March.
    real = pc.fill_null(pc.equal(pc.strftime(moments, format="%Y%m%d%H%M"), text), False)
    rows.reject(~real.to_numpy(zero_copy_only=False), "time is not a valid day and minute")
    prices = {name: rows.numbers(name) for name in ("open", "high", "low", "close")}
    for name, values in prices.items():
        rows.reject(values <= 0, f"{name} is not positive")
    rows.reject(prices["high"] < prices["low"], "high is below low")
    volume = rows.whole_numbers("volume")
    rows.reject(volume < 0, "volume is negative")
    seconds = pc.fill_null(moments.cast(pa.int64()), 0).to_numpy()
    rows.reject(np.abs(seconds) > FARTHEST // 10**9, _TOO_FAR)
    return rows, {
        "symbol": ticker,
        "ts": np.where(rows.good, seconds, 0) * 10**9,
        **prices,
        "volume": volume,
        "price": prices["close"],
    }


#: LOBSTER's message types that concern an order.
LOBSTER_TYPES = {
    1: "submission",
    2: "cancellation",
    3: "deletion",
    4: "execution",
    5: "hidden_execution",
}
_DIRECTIONS = {1: "buy", -1: "sell"}


def _read_lobster(lines: pa.Array, day: date | None) -> tuple[RowReader, dict[str, pa.Array]]:
    assert day is not None
    rows = RowReader(lines, ("time", "type", "order id", "size", "price", "direction"))
    text = rows.matching("time", r"^\d{1,5}(\.\d{1,18})?$", "not seconds after midnight")
    parts = pc.extract_regex(pc.fill_null(text, "0"), r"^(?P<whole>\d+)\.?(?P<fraction>\d*)$")
    whole = pc.cast(pc.struct_field(parts, "whole"), pa.int64()).to_numpy()
    # As integers: a float cannot hold nanoseconds of a day exactly. A few times in LOBSTER's files,
    # such as 35821.088778456004, have more digits, from conversion through a float.
    digits = pc.utf8_rpad(pc.struct_field(parts, "fraction"), 10, padding="0")
    tenths = pc.cast(pc.utf8_slice_codeunits(digits, 0, 10), pa.int64()).to_numpy()
    fraction = (tenths + 5) // 10
    rows.reject(whole >= 86_400, "time is beyond midnight")
    kind = rows.whole_numbers("type")
    rows.reject(~np.isin(kind, list(LOBSTER_TYPES)), "type is none of 1 to 5")
    order = rows.whole_numbers("order id")
    size = rows.whole_numbers("size")
    rows.reject(size <= 0, "size is not positive")
    price = rows.whole_numbers("price")
    rows.reject(price <= 0, "price is not positive")
    direction = rows.whole_numbers("direction")
    rows.reject(~np.isin(direction, list(_DIRECTIONS)), "direction is neither 1 nor -1")
    labels = [f"{name}_{way}" for name in LOBSTER_TYPES.values() for way in _DIRECTIONS.values()]
    code = np.where(rows.good, 2 * (kind - 1) + (direction < 0), 0)
    midnight = (day - date(1970, 1, 1)).days * 86_400 * 10**9
    if abs(midnight) > FARTHEST - 86_400 * 10**9:
        rows.reject(rows.good, _TOO_FAR)
        midnight = 0
    return rows, {
        "symbol": pa.array(labels).take(pa.array(code)),
        "ts": midnight + whole * 10**9 + fraction,
        "order_id": order,
        "size": size,
        "price": price / 10_000,
    }


MINUTE_BARS = SourceFormat(
    "minute-bars",
    "ticker,YYYYMMDDhhmm,open,high,low,close,volume",
    "ms",
    (*((name, pa.float64()) for name in ("open", "high", "low", "close")), ("volume", pa.int64())),
    _read_minute_bars,
)

LOBSTER = SourceFormat(
    "lobster",
    "seconds after midnight,type,order id,size,price,direction",
    "ns",
    (("order_id", pa.int64()), ("size", pa.int64())),
    _read_lobster,
)


#: The formats by kind of data set.
FORMATS: Mapping[str, SourceFormat] = {form.kind: form for form in (MINUTE_BARS, LOBSTER)}


def recognized(file: str | Path) -> SourceFormat | None:
    """The format of a file, by its first lines; None if they fit none of :data:`FORMATS`.

    A DatasetError if the file cannot be opened or decompressed.
    """
    lines = next(_lines(Path(file)), pa.array([], pa.string()))[:_LINES]
    for form in FORMATS.values() if len(lines) else ():
        # On a day that every time fits.
        reader, _ = form.read(lines, date(2000, 1, 1))
        if reader.good.mean() >= _FITTING:
            return form
    return None


def source_files(files: str | Path | Iterable[str | Path], form: SourceFormat) -> list[Path]:
    """The absolute paths of one or more files to ingest.

    A DatasetError if there is none, one does not exist, or one that can be read has another format,
    which the message names.
    """
    listed = [user_path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    if not listed:
        raise DatasetError("no files to ingest; name at least one")
    for file in listed:
        if not file.is_file():
            raise DatasetError(f"there is no file {file}")
        try:
            found = recognized(file)
        except DatasetError:  # which reading all of it raises, too
            continue
        if found is not None and found is not form:
            raise DatasetError(
                f"{file} has {found.kind} rows, not {form.kind}; ingest it as {found.kind}"
            )
    return [file.resolve() for file in listed]


def lobster_day(file: str | Path, given: date | None = None) -> date:
    """The day of a LOBSTER file: the given one, or else the one in its name.

    A DatasetError if that is no day, or the name has none, or more than one.
    """
    if given is not None:
        if type(given) is not date:  # which a datetime is too
            raise DatasetError(
                f"date= is a day such as datetime.date(2012, 6, 21), not {shown(given)}"
            )
        return given
    found = re.findall(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)", Path(file).name)
    try:
        (day,) = {date.fromisoformat(text) for text in found}
    except ValueError:
        raise DatasetError(
            f"the name of {file} has no day as YYYY-MM-DD; pass date=, since the rows have a time "
            "of day only"
        ) from None
    return day


def read_source(file: Path, kind: str) -> tuple[pa.Table, pd.DataFrame]:
    """The events of a small file of a kind in :data:`FORMATS`, and its malformed rows.

    The events have the columns and the order of :mod:`cepbench.spark.ingest`, which is for large
    files, without ``sequence``; the rows ``file``, ``row`` (from 1), ``text`` and ``reason``. A
    DatasetError if the file cannot be read.
    """
    try:
        its = file.stat()
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error}") from error
    return _read_source(file, kind, its.st_mtime_ns, its.st_size)


@lru_cache(maxsize=8)
def _read_source(file: Path, kind: str, changed: int, size: int) -> tuple[pa.Table, pd.DataFrame]:
    """As :func:`read_source`, of a file as it is since a time."""
    form = FORMATS[kind]
    day = lobster_day(file) if form is LOBSTER else None
    pieces = list(read_rows(file, form, day=day))
    empty = form.schema.empty_table()
    events = pa.concat_tables([empty, *(piece.events for piece in pieces)]).drop_columns(["row"])
    prices, symbols = (events.column(name).to_pandas().to_numpy() for name in ("price", "symbol"))
    order = np.argsort(pd.factorize(symbols)[0], kind="stable")
    steps = price_steps(symbols[order], prices[order]).take(pa.array(np.argsort(order)))
    events = events.append_column("difference", steps)
    bad = pd.concat([piece.bad.to_pandas() for piece in pieces], ignore_index=True)
    bad.insert(0, "file", file.name)
    return events, bad
