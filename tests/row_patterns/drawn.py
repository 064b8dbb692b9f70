"""Random row patterns, and streams that they fit."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

import pandas as pd

from cepbench.patterns.expressions import Constant, Duration
from cepbench.patterns.model import Window
from cepbench.patterns.row_pattern import (
    ROW_AGGREGATES,
    ROWS,
    SKIPS,
    MatchNumber,
    Measure,
    Operation,
    Reference,
    RowAggregate,
    RowExpression,
    RowPattern,
    RowTerm,
)

T = TypeVar("T")
VARIABLES = ("A", "B", "c d")
BOUNDS = ((0, None), (1, None), (0, 1), (2, 2), (1, 2), (2, None), (0, 2))
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")


class Drawn:
    """A row pattern over the columns of :func:`drawn_frame`, and its parts."""

    def __init__(self, random: Random, *, is_datetime: bool, term: RowTerm | None = None) -> None:
        self.random = random
        self.is_datetime = is_datetime
        self.term = term or self.part(3)
        while not 0 < self.term.size <= 12 or not any(self.term.variables()):
            self.term = self.part(3)
        self.names: list[str | None] = list(dict.fromkeys(self.term.variables()))
        present = [name for name in self.names if name is not None]
        self.names += [None, "U"]
        #: Whether FINAL may stand here.
        self.is_final = False
        define = [(name, self.condition(2)) for name in present if self.one((True, True, False))]
        self.is_final = True
        skip = self.one(SKIPS)
        length = self.one((None, None, 1, 3, 5))
        measures = [Measure(self.measure(), f"m{number}") for number in range(self.one((1, 2, 3)))]
        subset = self.random.sample(present, self.random.randint(1, len(present)))
        self.pattern = RowPattern(
            term=self.term,
            define=tuple(define),
            measures=tuple(measures),
            partition_by=self.one(((), ("k",), ("flag", "k"))),
            order_by=self.one(((), ("ts",))),
            rows=self.one(ROWS[:3] if has_exclusion(self.term) else ROWS),
            skip=skip,
            skip_to=self.one([*present, "U"]) if skip in SKIPS[2:] else None,
            subsets=(("U", tuple(subset)),),
            within=None
            if length is None
            else Window(length, "seconds" if is_datetime else "units", exclusive=True),
        )

    def one(self, choices: Sequence[T]) -> T:
        return choices[self.random.randint(0, len(choices) - 1)]

    def part(self, depth: int) -> RowTerm:
        kinds = ("variable", "quantified", "quantified", "sequence", "sequence", "alternatives")
        rare = ("PERMUTE", "exclusion", self.one(("^", "$", "()")))
        kind: Any = self.one((*kinds, *kinds, *rare)) if depth else "variable"
        if kind == "variable":
            return RowTerm(kind, name=self.one(VARIABLES))
        if kind == "quantified":
            least, most = self.one(BOUNDS)
            return RowTerm(kind, (self.part(depth - 1),), "", least, most, self.one((True, False)))
        if kind == "exclusion":
            return RowTerm(kind, (self.part(depth - 1),))
        if kind in ("^", "$", "()"):
            return RowTerm(kind)
        lower = 0 if kind == "PERMUTE" else depth - 1
        return RowTerm(kind, tuple(self.part(lower) for _ in range(self.one((2, 2, 3)))))

    def final(self) -> bool:
        return self.is_final and self.one((True, False))

    def reference(self, *columns: str | None) -> Reference:
        column, variable = self.one(columns), self.one(self.names)
        if self.one((True, False)):
            return Reference(column, variable)
        from_first, is_final = self.one((True, False)), self.final()
        offset = self.one((0, 0, 1, 2))
        shift = 0 if column is None else self.one((0, 0, -1, 1, -2))
        return Reference(column, variable, from_first, offset, shift, is_final)

    def aggregate(self) -> RowAggregate:
        variable, is_final = self.one(self.names), self.final()
        if self.one((True, False, False)):
            return RowAggregate("COUNT", None, variable, is_final)
        argument: RowExpression = Reference(self.one(("x", "y")), variable)
        if self.one((True, False)):
            argument = Operation(self.one(("*", "-")), (argument, Constant(2)))
        return RowAggregate(self.one(ROW_AGGREGATES), argument, variable, is_final)

    def number(self, depth: int = 1) -> RowExpression:
        kind = self.one(("reference", "reference", "aggregate", "constant", "operation"))
        if kind == "operation" and depth:
            operands = (self.number(depth - 1), self.number(depth - 1))
            if self.one((True, False, False)):
                return Operation("-", (self.reference("x"),))
            return Operation(self.one(("+", "-", "*", "/", "%")), operands)
        if kind == "aggregate":
            return self.aggregate()
        return (
            Constant(self.one((-2, 0, 1, 2, 3))) if kind == "constant" else self.reference("x", "y")
        )

    def measure(self) -> RowExpression:
        kind = self.one(("number", "number", "column", "classifier", "match"))
        if kind == "number":
            return self.number()
        if kind == "match":
            return MatchNumber()
        return self.reference(*((None,) if kind == "classifier" else ("ts", "k", "flag")))

    def condition(self, depth: int) -> RowExpression:
        if depth and self.one((True, False)):
            if self.one((True, False, False)):
                return Operation("NOT", (self.condition(depth - 1),))
            both = (self.condition(depth - 1), self.condition(depth - 1))
            return Operation(self.one(("AND", "OR")), both)
        kind = self.one(
            ("number", "near", "near", "times", "text", "boolean", "missing", "constant")
        )
        compare = self.one(COMPARISONS)
        if kind == "near":
            shift = self.one((-1, 1, -2))
            return Operation(compare, (Reference("x"), Reference("x", shift=shift)))
        if kind == "number":
            return Operation(compare, (self.number(), self.number()))
        if kind == "times":
            apart = self.reference("ts"), self.reference("ts")
            number = self.one((-2, 0, 1, 3))
            length = Duration(number * 10**9) if self.is_datetime else Constant(number)
            return Operation(compare, self.one((apart, (Operation("-", apart), length))))
        if kind == "text":
            return Operation(self.one(("=", "!=")), (self.reference("k"), Constant("q")))
        if kind == "boolean":
            return Operation(self.one(("=", "!=")), (self.reference("flag"), Constant(True)))
        return Operation("IS NULL", (self.number(),)) if kind == "missing" else Constant(True)


def has_exclusion(term: RowTerm) -> bool:
    """Whether a part of PATTERN has ``{- -}``."""
    return term.kind == "exclusion" or any(map(has_exclusion, term.parts))


def drawn_frame(random: Random, *, is_datetime: bool) -> pd.DataFrame:
    """Up to seven events, with ties, few values, and missing ones."""
    count = random.randint(0, 7)

    def column(values: list[Any]) -> list[Any]:
        return [values[random.randint(0, len(values) - 1)] for _ in range(count)]

    times = pd.Series(column([0, 0, 1, 1, 2]), dtype="int64").cumsum()
    return pd.DataFrame(
        {
            "ts": (times * 10**9).astype("datetime64[ns]") if is_datetime else times,
            "type": pd.Series(["T"] * count, dtype=object),
            "x": pd.Series(column([None, 0, 1, 2, 3]), dtype="float64"),
            "y": pd.Series(column([1, 2, 3]), dtype="int64"),
            "k": pd.Series(column(["p", "q", "q", "q", None]), dtype="string"),
            "flag": pd.Series(column([True, True, False, None]), dtype="boolean"),
        }
    )
