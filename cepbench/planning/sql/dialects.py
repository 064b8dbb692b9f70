"""Differences of dialects of SQL: names, constants, division, NaN, and time arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import NANOSECONDS, Duration, Window


class Dialect:
    """The SQL of DuckDB from version 1.2 on, of which other engines change parts.

    In all of them NaN equals itself and is larger than all numbers, and integers compare as
    integers; the generated SQL avoids both.
    """

    name = "duckdb"
    texts = "VARCHAR"
    #: What is between the name of a common table expression and its query.
    step = "AS MATERIALIZED"
    #: Whether groups are written, which needs lists of positions.
    has_groups = True
    #: Whether the dialect has MATCH_RECOGNIZE, and over which times.
    row_patterns: tuple[str, ...] = ()
    #: Whether rows can be sorted by what is no time, which a query over a stream cannot.
    sorts = True
    #: Which sides of a comparison must not be NaN besides. Here NaN is the largest number, so it is never
    #: less than a number, and a value equal to one that is not NaN is not NaN either.
    not_nan: ClassVar = {"<": [1], "<=": [1], ">": [0], ">=": [0], "=": [0], "<>": [0, 1]}

    def identifier(self, name: str) -> str:
        """A quoted name of a table, column or alias."""
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """A text constant."""
        return "'" + value.replace("'", "''") + "'"

    def quotient(self, left: str, right: str) -> str:
        """``left / right`` of two doubles as in IEEE 754, also by zero."""
        return f"({left} / {right})"

    def remainder(self, left: str, right: str) -> str:
        """``left % right`` of two doubles, missing for ``right = 0``."""
        return f"({left} % nullif({right}, 0e0))"

    def typed(self, column: str, kind: str) -> str:
        """A column of texts or booleans that without any value may have any type."""
        return f"CAST({column} AS {self.texts if kind == 'text' else 'BOOLEAN'})"

    def not_after(self, later: str, earlier: str, window: Window) -> str:
        """``later <= earlier + window`` of two time columns."""
        if window.is_datetime:
            # Intervals have microseconds only and would round timestamps.
            return f"epoch_ns({later}) <= epoch_ns({earlier}) + {window.length}"
        return f"{later} <= {earlier} + {window.length}::BIGINT"

    def compared(self, later: str, earlier: str, operator: str, duration: Duration) -> str:
        """``later - earlier operator duration`` of two time columns."""
        if duration.is_datetime:
            later, earlier = f"epoch_ns({later})", f"epoch_ns({earlier})"
        return f"{later} - {earlier} {operator} {duration.value}::BIGINT"

    def bucket(self, time: str, window: Window) -> str:
        """The index of a time's bucket; buckets are as long as the window."""
        ticks = f"epoch_ns({time})" if window.is_datetime else f"CAST({time} AS BIGINT)"
        return f"{ticks} // {window.length}"

    def row_pattern_limit(self, window: Window) -> str | None:
        """The length after WITHIN in MATCH_RECOGNIZE, if the dialect has it."""
        return None

    def greatest(self, columns: Sequence[str]) -> str:
        """The largest of some columns, ignoring NULLs."""
        return columns[0] if len(columns) == 1 else f"greatest({', '.join(columns)})"

    def nothing(self) -> str:
        """The value of a variable that a branch of OR lacks."""
        return "NULL"

    def each(self, values: list[str]) -> str:
        """A column with one row per value."""
        return f"unnest([{', '.join(values)}])"

    def can_bucket(self, window: Window) -> bool:
        """Whether the window is long enough for buckets."""
        return window.length > 0

    def is_nan(self, double: str) -> str:
        """Whether a double is NaN; empty where a table has NULL instead."""
        return f"isnan({double})"

    def maybe_nan(self, column: str) -> str:
        """Whether a column of any kind is NaN in a row."""
        return f"(typeof({column}) IN ('FLOAT', 'DOUBLE') AND isnan(TRY_CAST({column} AS DOUBLE)))"

    def table(self, name: str) -> str:
        """A table's name; dots separate catalog, schema and table."""
        return ".".join(map(self.identifier, name.split(".")))

    def number(self, value: float) -> str:
        """A double constant; the exponent makes it one, since 0.1 alone is a decimal."""
        if math.isfinite(value):
            digits = repr(float(value))
            written = digits if "e" in digits else f"{digits}e0"
            return f"({written})" if written.startswith("-") else written
        shown = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{shown}' AS DOUBLE)"


class Spark(Dialect):
    """Spark SQL, in ANSI mode or not."""

    name = "spark"
    texts = "STRING"
    step = "AS"
    has_groups = False

    def identifier(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        # A backslash escapes; Spark substitutes ${…} before it parses the query.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
        return f"'{escaped}'"

    def quotient(self, left: str, right: str) -> str:
        # Division by zero is an error or NULL; only the text distinguishes -0.0 from 0.0.
        return (
            f"coalesce(try_divide({left}, {right}), CASE CAST({right} AS STRING) "
            f"WHEN '0.0' THEN {left} * CAST('Infinity' AS DOUBLE) "
            f"WHEN '-0.0' THEN {left} * CAST('-Infinity' AS DOUBLE) END)"
        )

    def not_after(self, later: str, earlier: str, window: Window) -> str:
        if not window.is_datetime:
            return f"{later} <= {earlier} + {window.length}L"
        # Timestamps are whole microseconds, so the rest of the window is irrelevant.
        microseconds = window.length // 1000
        unit, amount = "MICROSECOND", microseconds
        if microseconds % 10**6 == 0:
            # Not in days, which have 23 or 25 hours when clocks change.
            unit, amount = "SECOND", microseconds // 10**6
        return f"{later} <= timestampadd({unit}, {amount}, {earlier})"

    def compared(self, later: str, earlier: str, operator: str, duration: Duration) -> str:
        if not duration.is_datetime:
            return f"{later} - {earlier} {operator} {duration.value}L"
        between = f"{self._microseconds(later)} - {self._microseconds(earlier)}"
        return f"1000L * ({between}) {operator} {duration.value}L"

    def bucket(self, time: str, window: Window) -> str:
        if not window.is_datetime:
            return f"{time} DIV {window.length}L"
        return f"{self._microseconds(time)} DIV {window.length // 1000}L"

    def _microseconds(self, time: str) -> str:
        """A time in microseconds since 1970."""
        # A time without a zone converted to an instant, also by timestampdiff, would skip hours
        # when clocks change; the difference of two such times does not.
        since = f"CAST({time} AS TIMESTAMP_NTZ) - TIMESTAMP_NTZ '1970-01-01 00:00:00'"
        seconds = f"CAST(CAST({since} AS INTERVAL SECOND) AS DECIMAL(18, 6))"
        return (
            f"CASE typeof({time}) WHEN 'timestamp_ntz' THEN CAST(1000000 * {seconds} AS BIGINT) "
            f"ELSE unix_micros(CAST({time} AS TIMESTAMP)) END"
        )

    def each(self, values: list[str]) -> str:
        return f"explode(array({', '.join(values)}))"

    def can_bucket(self, window: Window) -> bool:
        return window.length >= (1000 if window.is_datetime else 1)

    def maybe_nan(self, column: str) -> str:
        return f"(typeof({column}) IN ('float', 'double') AND isnan(try_cast({column} AS DOUBLE)))"


class Trino(Dialect):
    """Trino: its NaN satisfies no comparison but ``<>``, and its intervals are whole milliseconds."""

    name = "trino"
    step = "AS"
    has_groups = False
    row_patterns: tuple[str, ...] = ("datetime", "units")
    not_nan: ClassVar = {"<>": [0, 1]}

    def remainder(self, left: str, right: str) -> str:
        return f"({left} % {right})"

    def typed(self, column: str, kind: str) -> str:
        return column

    def is_nan(self, double: str) -> str:
        return f"({double} <> {double})"

    def maybe_nan(self, column: str) -> str:
        return self.is_nan(column)

    def greatest(self, columns: Sequence[str]) -> str:
        # Beside a NULL there is none.
        if len(columns) > 1:
            columns = [f"coalesce({', '.join([its, *columns])})" for its in columns]
        return super().greatest(columns)

    def not_after(self, later: str, earlier: str, window: Window) -> str:
        operator, length = "<=", window.length
        if window.is_datetime and length % 10**6:
            operator, length = "<", length + 1
        length_of_kind = Duration(length, is_datetime=window.is_datetime)
        return f"{later} {operator} {self._after(earlier, length_of_kind)}"

    def compared(self, later: str, earlier: str, operator: str, duration: Duration) -> str:
        return f"{later} {operator} {self._after(earlier, duration)}"

    def can_bucket(self, window: Window) -> bool:
        return False  # unnest stands in FROM only

    def _after(self, time: str, duration: Duration) -> str:
        """A time that is so much later, as a sum of intervals of one unit each."""
        rest = abs(int(duration.value))
        sign = "-" if int(duration.value) < 0 else "+"
        if not duration.is_datetime:
            return f"{time} {sign} {rest}"
        if rest % 10**6:
            raise UnsupportedPatternError(
                f"{duration}: {self.name}'s intervals have milliseconds; use a whole number of them, or "
                "the dialect duckdb"
            )
        for unit in ("days", "hours", "minutes", "seconds"):
            size = NANOSECONDS[unit]
            number = Decimal(rest) / size if unit == "seconds" else Decimal(rest // size)
            rest %= size
            if number:
                time += f" {sign} {self._interval(number.normalize(), unit)}"
        return time

    def _interval(self, number: Decimal, unit: str) -> str:
        return f"INTERVAL '{number:f}' {unit.removesuffix('s').upper()}"


class Flink(Trino):
    """Flink SQL: rows are in the order of a time attribute, which is a timestamp."""

    name = "flink"
    texts = "STRING"
    row_patterns = ("datetime",)
    sorts = False

    def identifier(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def row_pattern_limit(self, window: Window) -> str | None:
        # Until an earlier run has ended, a later match is held back, and runs end by WITHIN alone. What is
        # in DEFINE is exact, so the next whole unit of two digits will do.
        for unit in ("seconds", "minutes", "hours", "days"):
            number = window.length // NANOSECONDS[unit] + 1
            if number < 100:
                break
        return self._interval(Decimal(number), unit)

    def nothing(self) -> str:
        raise UnsupportedPatternError(
            "OR over different variables: Flink has no NULL without a type; write a query for each branch"
        )

    def remainder(self, left: str, right: str) -> str:
        raise UnsupportedPatternError(
            f"{left} % {right}: Flink's % is for exact numbers; use an evaluator, or an attribute with "
            "the remainder"
        )

    def _interval(self, number: Decimal, unit: str) -> str:
        # Of more than two digits their number is declared.
        digits = len(str(int(number)))
        return super()._interval(number, unit) + (f"({digits})" if digits > 2 else "")


class Standard(Dialect):
    """SQL that DuckDB, Polars and ClickHouse read alike: plain joins, NULL for what is missing."""

    name = "standard"
    step = "AS"
    has_groups = False

    def quotient(self, left: str, right: str) -> str:
        raise UnsupportedPatternError(
            f"{left} / {right}: engines differ in division by zero; use the dialect of one of them"
        )

    def not_after(self, later: str, earlier: str, window: Window) -> str:
        return f"{later} <= {earlier} + {self._length(window.length, window.is_datetime)}"

    def compared(self, later: str, earlier: str, operator: str, duration: Duration) -> str:
        length = self._length(int(duration.value), duration.is_datetime)
        return f"{later} {operator} {earlier} + {length}"

    def _length(self, length: int, is_datetime: bool) -> str:
        return f"INTERVAL '{length / 10**9}' SECOND" if is_datetime else str(length)

    def can_bucket(self, window: Window) -> bool:
        return False

    def is_nan(self, double: str) -> str:
        return ""

    def maybe_nan(self, column: str) -> str:
        return ""


#: The dialects by name.
DIALECTS: dict[str, Dialect] = {
    its.name: its for its in (Dialect(), Spark(), Trino(), Flink(), Standard())
}
