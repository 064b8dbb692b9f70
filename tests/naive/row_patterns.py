"""Row pattern recognition by the text of the standard: all mappings in order of preference, one by one.

Source: ISO/IEC 9075-2, row pattern recognition; ISO/IEC TR 19075-5, sections 3 to 5. Times are integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from cepbench.patterns.expressions import Constant
from cepbench.patterns.row_pattern import (
    MatchNumber,
    Operation,
    Reference,
    RowAggregate,
    RowExpression,
    RowPattern,
    RowTerm,
)

Row = dict[str, Any]
#: The variable of each row of a match, and whether it is excluded from the output.
Mapping = tuple[tuple[str, bool], ...]


class SkipsWrongly(Exception):
    """AFTER MATCH SKIP leads to no row, or back."""


def naive_rows(pattern: RowPattern, rows: list[Row], time: str) -> list[Row]:
    """What a row pattern returns; a missing value is None."""
    partitions: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        partitions.setdefault(tuple(row[name] for name in pattern.partition_by), []).append(row)
    return [
        found for part in partitions.values() for found in _Partition(pattern, part, time).results()
    ]


@dataclass
class _Partition:
    pattern: RowPattern
    rows: list[Row]
    time: str

    def results(self) -> Iterator[Row]:
        is_one, number = self.pattern.rows == "ONE ROW PER MATCH", 0
        shows = not self.pattern.rows.endswith("OMIT EMPTY MATCHES")
        start, matched = 0, -1
        while start < len(self.rows):
            mapping = next(self.mappings(self.pattern.term, start, (), False), None)
            following = start + 1
            if mapping is None:
                if self.pattern.rows.endswith("UNMATCHED ROWS") and start > matched:
                    yield self.returned(None, start, (), -1)
            else:
                number += 1
                if is_one or (not mapping and shows):
                    yield self.returned(number, start, mapping, len(mapping) - 1)
                elif not is_one:
                    for current, (_, is_excluded) in enumerate(mapping):
                        if not is_excluded:
                            yield self.returned(number, start, mapping, current)
                if mapping:
                    following = self.next_start(start, mapping)
                    matched = max(matched, start + len(mapping) - 1)
            start = following

    def next_start(self, start: int, mapping: Mapping) -> int:
        skip = self.pattern.skip
        if skip == "TO NEXT ROW":
            return start + 1
        if skip == "PAST LAST ROW":
            return start + len(mapping)
        covered = self.pattern.covered(self.pattern.skip_to)
        its = [at for at, (name, _) in enumerate(mapping) if name in covered]
        if not its or its[0 if skip == "TO FIRST" else -1] == 0:
            raise SkipsWrongly
        return start + its[0 if skip == "TO FIRST" else -1]

    def mappings(
        self, term: RowTerm, start: int, so_far: Mapping, is_excluded: bool
    ) -> Iterator[Mapping]:
        """The mapping so far, with rows of a part of PATTERN, in order of preference."""
        at = start + len(so_far)
        if term.kind == "variable":
            longer = (*so_far, (term.name, is_excluded))
            if at < len(self.rows) and self.is_in_time(start, at) and self.holds(start, longer):
                yield longer
        elif term.kind in ("()", "^", "$"):
            if term.kind == "()" or at == (0 if term.kind == "^" else len(self.rows)):
                yield so_far
        elif term.kind == "sequence":
            yield from self.sequences(term.parts, start, so_far, is_excluded)
        elif term.kind == "alternatives":
            for part in term.parts:
                yield from self.mappings(part, start, so_far, is_excluded)
        elif term.kind == "PERMUTE":
            for order in permutations(term.parts):
                yield from self.sequences(order, start, so_far, is_excluded)
        elif term.kind == "exclusion":
            yield from self.mappings(term.parts[0], start, so_far, True)
        else:
            yield from self.iterations(term, 0, start, so_far, is_excluded)

    def sequences(
        self, parts: tuple[RowTerm, ...], start: int, so_far: Mapping, is_excluded: bool
    ) -> Iterator[Mapping]:
        if not parts:
            yield so_far
            return
        for longer in self.mappings(parts[0], start, so_far, is_excluded):
            yield from self.sequences(parts[1:], start, longer, is_excluded)

    def iterations(
        self, term: RowTerm, done: int, start: int, so_far: Mapping, is_excluded: bool
    ) -> Iterator[Mapping]:
        def another() -> Iterator[Mapping]:
            if term.most is None or done < term.most:
                for longer in self.mappings(term.parts[0], start, so_far, is_excluded):
                    if done < term.least or len(longer) > len(so_far):
                        yield from self.iterations(term, done + 1, start, longer, is_excluded)

        if not term.is_reluctant:
            yield from another()
        if done >= term.least:
            yield so_far
        if term.is_reluctant:
            yield from another()

    def is_in_time(self, start: int, at: int) -> bool:
        within = self.pattern.within
        apart: int = self.rows[at][self.time] - self.rows[start][self.time]
        return within is None or apart <= within.length

    def holds(self, start: int, mapping: Mapping) -> bool:
        condition = dict(self.pattern.define).get(mapping[-1][0], Constant(True))
        return self.truth(condition, start, mapping) is True

    def truth(self, condition: RowExpression, start: int, mapping: Mapping) -> bool | None:
        """In the three-valued logic of SQL; None is unknown."""
        if isinstance(condition, Constant):
            return bool(condition.value)
        assert isinstance(condition, Operation)
        operator, operands = condition.operator, condition.operands
        if operator in ("AND", "OR", "NOT"):
            truths = [self.truth(part, start, mapping) for part in operands]
            if operator == "NOT":
                return None if truths[0] is None else not truths[0]
            decides = operator == "OR"
            return decides if decides in truths else None if None in truths else not decides
        values = [self.value(part, None, start, mapping, len(mapping) - 1) for part in operands]
        if operator == "IS NULL":
            return values[0] is None
        left, right = values
        if left is None or right is None:
            return None
        compared: dict[str, bool] = {
            "=": left == right, "!=": left != right, "<": left < right,
            "<=": left <= right, ">": left > right, ">=": left >= right,
        }  # fmt: skip
        return compared[operator]

    def value(
        self, its: RowExpression, number: int | None, start: int, mapping: Mapping, current: int
    ) -> Any:
        """The value of an expression at a row of the match."""
        if isinstance(its, Constant):
            return its.value
        if isinstance(its, MatchNumber):
            return number
        if isinstance(its, Operation):
            operands = [self.value(part, number, start, mapping, current) for part in its.operands]
            return None if None in operands else calculated(its.operator, operands)
        is_final = its.is_final or self.pattern.rows == "ONE ROW PER MATCH"
        known = mapping if is_final else mapping[: current + 1]
        covered = self.pattern.covered(its.variable)
        places = [at for at, (name, _) in enumerate(known) if name in covered]
        if isinstance(its, RowAggregate):
            if its.argument is None:
                return len(places)
            read = [self.argument(its.argument, self.rows[start + at]) for at in places]
            values = [value for value in read if value is not None]
            if its.function == "COUNT":
                return len(values)
            functions = {"SUM": sum, "MIN": min, "MAX": max, "AVG": lambda v: sum(v) / len(v)}
            return functions[its.function](values) if values else None
        places = places if its.from_first else places[::-1]
        if its.offset >= len(places):
            return None
        if its.column is None:
            return mapping[places[its.offset]][0]
        row = start + places[its.offset] + its.shift
        return self.rows[row][its.column] if 0 <= row < len(self.rows) else None

    def argument(self, its: RowExpression, row: Row) -> Any:
        if isinstance(its, Constant):
            return its.value
        if isinstance(its, Reference):
            assert its.column is not None
            return row[its.column]
        assert isinstance(its, Operation)
        operands = [self.argument(part, row) for part in its.operands]
        return None if None in operands else calculated(its.operator, operands)

    def returned(self, number: int | None, start: int, mapping: Mapping, current: int) -> Row:
        row = self.rows[start + max(current, 0)]
        names = [*self.pattern.partition_by]
        if self.pattern.rows != "ONE ROW PER MATCH":
            names += self.pattern.order_by
        found = {name: row[name] for name in names}
        for its in self.pattern.measures:
            found[its.name] = None
            if number is not None:
                found[its.name] = self.value(its.expression, number, start, mapping, current)
        if self.pattern.rows != "ONE ROW PER MATCH":
            found |= row
        return found


def calculated(operator: str, operands: list[Any]) -> Any:
    if len(operands) == 1:
        return -operands[0]
    left, right = operands
    if operator in ("/", "%") and right == 0:
        if operator == "%" or left == 0:
            return None
        return math.inf * left * math.copysign(1, right)
    results = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}
    results |= {"/": lambda: left / right, "%": lambda: math.fmod(left, right)}
    return results[operator]()
