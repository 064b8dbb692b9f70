"""The table of a row pattern: its measures, and with ALL ROWS the rows of each match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.engines.plan_runs.programs import FUNCTIONS
from cepbench.engines.row_patterns.automaton import Automaton
from cepbench.engines.row_patterns.conditions import (
    Columns,
    bits_of,
    calculated,
    moments,
)
from cepbench.engines.row_patterns.kernels import measured, search
from cepbench.patterns.expressions import Constant
from cepbench.patterns.row_pattern import (
    ROWS,
    MatchNumber,
    Operation,
    Reference,
    RowAggregate,
    RowExpression,
    RowPattern,
)


def measured_table(
    pattern: RowPattern, columns: Columns, automaton: Automaton, found: search.Found
) -> pa.Table:
    """The rows that a pattern returns: by partition in the order of first appearance, then by match.

    ONE ROW PER MATCH has the columns of PARTITION BY and the measures; ALL ROWS PER MATCH those of
    PARTITION BY and ORDER BY, the measures, and all other columns. An attribute has its type in the
    stream, a difference of times is a duration, a number of rows or matches an integer, all else a
    float; null where a value is missing, and in rows without a match.
    """
    return _Rows(pattern, columns, automaton, found).table()


@dataclass
class _Rows:
    pattern: RowPattern
    columns: Columns
    automaton: Automaton
    found: search.Found

    def table(self) -> pa.Table:
        table, pattern = self.columns.table, self.pattern
        named: dict[str, pa.Array] = {}
        keys = [*pattern.partition_by]
        if pattern.rows != ROWS[0]:
            keys += pattern.order_by
        for written in keys:
            named.setdefault(table.name(written), None)
        for name in named:
            named[name] = self._input(name)
        for measure in pattern.measures:
            if measure.name in named:
                table.fail(
                    f"the measure {measure.name} has the name of another column; rename it",
                    ("MEASURES", measure.name),
                )
            values, of_none = self._value(measure.expression), self._chosen[2] < 0
            if of_none.any():
                values = pc.if_else(pa.array(of_none), pa.scalar(None, values.type), values)
            named[measure.name] = values
        if pattern.rows != ROWS[0]:
            for name in table.names:
                if name in named and table.name(name) not in map(table.name, keys):
                    table.fail(
                        f"the measure {name} has the name of a column of the stream, which ALL ROWS "
                        "returns too; rename it",
                        ("MEASURES", name),
                    )
                named.setdefault(name, self._input(name))
        found = pa.table(named)
        if pattern.sorted_by:
            # Equal rows stay in their order, and missing values are last.
            by: list[Any] = [
                (self._known(name, named, "SORTED"), "descending" if falls else "ascending")
                for name, falls in pattern.sorted_by
            ]
            found = found.take(pc.sort_indices(found, sort_keys=by))
        if pattern.columns is None:
            return found
        return pa.table(
            {alias: found[self._known(name, named, "SELECT")] for name, alias in pattern.columns}
        )

    def _known(self, written: str, named: Mapping[str, pa.Array], clause: str) -> str:
        """The column that SELECT or the ORDER BY behind the clause names, whatever its case."""
        found = [name for name in named if name == written]
        found = found or [name for name in named if name.upper() == written.upper()]
        if len(found) != 1:
            self.columns.table.fail(
                f"{written}: MATCH_RECOGNIZE returns {', '.join(named) or 'no columns'}; name one of them",
                clause,
            )
        return found[0]

    # -- rows -----------------------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.diff(self.found.ends, prepend=0)

    @cached_property
    def _firsts(self) -> np.ndarray:
        """The row of each mapped row, by partition."""
        offsets = self.found.ends - self._sizes
        within = np.arange(len(self.found.places)) - np.repeat(offsets, self._sizes)
        return np.repeat(self.found.starts, self._sizes) + within

    @cached_property
    def _chosen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each row to return: the mapped row (-1: none), the row by partition, the match (-1: none)."""
        starts, ends, sizes = self.found.starts, self.found.ends, self._sizes
        matches = np.arange(len(starts))
        if self.pattern.rows == ROWS[0]:
            return np.where(sizes > 0, ends - 1, -1), starts, matches
        mapped = np.flatnonzero(~self.automaton.excluded[self.found.places])
        of_match = np.repeat(matches, sizes)
        parts = [(mapped, self._firsts[mapped], of_match[mapped])]
        if self.pattern.rows != ROWS[2]:
            empty = np.flatnonzero(sizes == 0)
            parts.append((np.full(len(empty), -1), starts[empty], empty))
        if self.pattern.rows == ROWS[3]:
            is_left = np.ones(len(self.columns.table), bool)
            is_left[self._firsts] = is_left[starts] = False
            left = np.flatnonzero(is_left)
            parts.append((np.full(len(left), -1), left, np.full(len(left), -1)))
        numbers, rows, its = (np.concatenate(column) for column in zip(*parts, strict=True))
        begin = np.where(its < 0, rows, np.append(starts, 0)[its])
        order = np.lexsort((rows, begin))
        return numbers[order], rows[order], its[order]

    @cached_property
    def _partitions(self) -> np.ndarray:
        """The partition of each match."""
        bounds = self.columns.table.bounds
        return np.searchsorted(bounds, self.found.starts, side="right") - 1

    def _input(self, name: str) -> pa.Array:
        return self._taken(name, self._chosen[1])

    def _taken(self, name: str, rows: np.ndarray) -> pa.Array:
        """The values of a column at rows by partition; null for -1."""
        table = self.columns.table
        order = np.append(table.order, 0)  # the last is for no row
        return table.values(name).take(pa.array(order[rows], mask=rows < 0))

    # -- values ---------------------------------------------------------------------------------

    def _value(self, expression: RowExpression) -> pa.Array:
        kind = self.columns.kind(expression)
        match expression:
            case Reference(None):
                return self._classifier(expression)
            case Reference(str(column)):
                return self._taken(self.columns.table.name(column), self._rows(expression)[0])
            case RowAggregate("COUNT"):
                return pa.array(self._totals(expression).astype(np.int64))
            case MatchNumber():
                return pa.array(self._match_numbers())
            case Constant(value):
                return pa.array([value] * len(self._chosen[0]))
        if kind in ("time", "duration"):
            return self._times(expression, kind)
        return pa.array(self._numbers(expression), from_pandas=True)

    def _numbers(self, expression: RowExpression) -> np.ndarray:
        """A number for each row to return; NaN where missing."""
        match expression:
            case Reference(str(column)):
                values = np.append(
                    self.columns.table.numbers(self.columns.table.name(column)), np.nan
                )
                return values[self._rows(expression)[0]]
            case RowAggregate():
                return self._totals(expression)
            case MatchNumber():
                return self._match_numbers().astype(np.float64)
            case Operation(operator, operands):
                return np.asarray(calculated(operator, [self._numbers(part) for part in operands]))
            case Constant(value):
                return np.full(len(self._chosen[0]), float(value))
        raise AssertionError(expression)

    def _match_numbers(self) -> np.ndarray:
        firsts = np.searchsorted(self._partitions, self._partitions)
        numbers = np.arange(len(firsts)) - firsts + 1
        found: np.ndarray = np.append(numbers, 0)[self._chosen[2]]
        return found

    def _times(self, expression: RowExpression, kind: str) -> pa.Array:
        table, total = self.columns.table, np.zeros(len(self._chosen[0]), np.int64)
        is_missing = np.zeros(len(total), bool)
        for sign, part in moments(expression):
            if isinstance(part, int):
                total += sign * part
                continue
            rows = self._rows(part)[0]
            is_missing |= rows < 0
            total += sign * np.append(table.times, 0)[rows]
        found = pa.array(total, mask=is_missing)
        return found.cast(pa.timestamp("ns") if kind == "time" else pa.duration("ns"))

    def _rows(self, its: Reference) -> tuple[np.ndarray, np.ndarray]:
        """The row that a reference names for each row to return, and if it is mapped its number."""
        count = len(self.found.places)
        rows, mapped = np.empty(count, np.int64), np.empty(count, np.int64)
        bounds = self.columns.table.bounds
        measured.navigate(
            self.found,
            self.automaton.variables[self.found.places],
            np.column_stack((bounds[self._partitions], bounds[self._partitions + 1])),
            bits_of(self.pattern, its.variable),
            (its.from_first, its.offset, its.shift),
            self._is_final(its),
            np.empty(count, np.int64),
            rows,
            mapped,
        )
        chosen = self._chosen[0]
        return np.append(rows, -1)[chosen], np.append(mapped, -1)[chosen]

    def _is_final(self, its: Reference | RowAggregate) -> bool:
        return its.is_final or self.pattern.rows == ROWS[0]

    def _classifier(self, its: Reference) -> pa.Array:
        _, mapped = self._rows(its)
        variables = np.append(self.automaton.variables[self.found.places], 0)[mapped]
        return pa.array(self.pattern.variables, pa.string()).take(
            pa.array(variables, mask=mapped < 0)
        )

    def _totals(self, its: RowAggregate) -> np.ndarray:
        """An aggregate for each row to return; without mapped rows, of no values."""
        values = np.empty(0)
        if its.argument is not None:
            values = np.broadcast_to(self.columns.over_rows(its.argument), len(self.columns.table))
        totals = np.empty(len(self.found.places))
        measured.total(
            self.found,
            self.automaton.variables[self.found.places],
            bits_of(self.pattern, its.variable),
            FUNCTIONS[its.function.lower()],
            np.ascontiguousarray(values, np.float64),
            self._is_final(its),
            totals,
        )
        of_none = 0.0 if its.function == "COUNT" else np.nan
        return np.append(totals, of_none)[self._chosen[0]]
