"""The pattern that says the same as a row pattern, if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from cepbench.errors import UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.diagnosis import Span, error_at
from cepbench.patterns.expressions import OPPOSITE
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Duration,
    Expression,
    Negative,
    Operator,
    Pattern,
    Returned,
    Strategy,
    Structure,
    Variable,
)
from cepbench.patterns.normal_form import (
    Condition,
    Conjunction,
    Disjunction,
    Negation,
    conjunctive_normal_form,
)
from cepbench.patterns.row_pattern import (
    ROWS,
    SKIPS,
    Operation,
    Reference,
    RowExpression,
    RowPattern,
)


def counterpart(rows: RowPattern) -> Pattern:
    """The pattern with the same matches as a row pattern, and its measures as RETURN.

    It has plans, and runs live. One difference remains: SQL puts the rows whose key is missing into one
    partition, and ``partition_contiguity`` into none.

    Raises
    ------
    UnsupportedPatternError
        If no pattern means exactly the same; the message names the clause. There is one for single
        variables one after the other, from every row on, within a window, whose conditions and
        measures read rows of the match, two of them each.
    UnsatisfiablePatternError
        If DEFINE is never true.

    Examples
    --------
    >>> from cepbench.patterns.parse import parse
    >>> query = '''SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES B.price AS low
    ... AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) WITHIN INTERVAL '5' MINUTE
    ... DEFINE B AS B.price < PREV(B.price))'''
    >>> print(counterpart(parse(query, dialect="match_recognize")).describe())
    PATTERN SEQ(ANY A, ANY B)
    WHERE   B.price < A.price
    ORDER BY arrival
    STRATEGY partition_contiguity(symbol)
    WITHIN  < 5 minutes
    RETURN A.symbol AS symbol, B.price AS low
    """
    if not isinstance(rows, RowPattern):
        raise UnsupportedPatternError(
            'counterpart takes a query with MATCH_RECOGNIZE, cep.parse(text, dialect="match_recognize")'
        )
    return _Counterpart(rows).pattern()


@dataclass(frozen=True)
class _Counterpart:
    rows: RowPattern

    def _refuse(self, clause: str, advice: str) -> NoReturn:
        """Raise an error that marks the clause in the query, as it is written over several lines."""
        message = f"no pattern means exactly the same as {clause}: {advice}; cep.evaluate runs the query as it is"
        text = self.rows.describe()
        start = text.find(clause)
        if start < 0:
            raise UnsupportedPatternError(message)
        raise error_at(UnsupportedPatternError, message, text, Span(start, start + len(clause)))

    def pattern(self) -> Pattern:
        rows = self.rows
        parts = rows.term.parts if rows.term.kind == "sequence" else (rows.term,)
        if any(part.kind != "variable" for part in parts) or len(rows.variables) < len(parts):
            self._refuse(
                f"PATTERN ({rows.term})", "of different variables in sequence there is, (A B C)"
            )
        if rows.rows != ROWS[0]:
            self._refuse(rows.rows, "a match is one row")
        if rows.skip != SKIPS[1]:
            self._refuse(f"AFTER MATCH SKIP {rows.skip}", "SKIP TO NEXT ROW has one")
        if rows.within is None:
            self._refuse("a query without WITHIN", "a pattern has a window")
        if len(rows.partition_by) > 1:
            self._refuse("PARTITION BY two columns", "partition_contiguity has one attribute")
        if rows.sorted_by:
            self._refuse(
                "ORDER BY after the clause", "matches are in the order of their last events"
            )
        if rows.columns is not None:
            self._refuse("SELECT of some columns", "name those to return in MEASURES, and SELECT *")
        conditions = [
            self._condition(condition, rows.variables.index(name))
            for name, condition in rows.define
        ]
        conjuncts = conjunctive_normal_form(Conjunction(tuple(conditions)))
        if () in conjuncts:
            raise UnsatisfiablePatternError("DEFINE is never true, so that there is no match")
        keys = [Returned(Attribute(rows.variables[0], key), key) for key in rows.partition_by]
        measures = [Returned(self._value(its.expression), its.name) for its in rows.measures]
        return Pattern(
            Structure(Operator.SEQ, tuple(Variable(name, None) for name in rows.variables)),
            tuple(map(Clause, conjuncts)),
            rows.within,
            Strategy("partition_contiguity", rows.partition_by[0])
            if rows.partition_by
            else Strategy("strict_contiguity"),
            (*keys, *measures),
            order="arrival",
        )

    def _condition(self, condition: RowExpression, at: int) -> Condition:
        match condition:
            case Constant():
                return Conjunction(()) if condition.value else Disjunction(())
            case Operation("NOT", (Operation("IS NULL", (operand,)),)):
                known = self._value(operand, at)
                return Comparison("=", known, known)
            case Operation("NOT", (operand,)):
                return Negation(self._condition(operand, at))
            case Operation("AND" | "OR" as operator, operands):
                parts = tuple(self._condition(part, at) for part in operands)
                return Conjunction(parts) if operator == "AND" else Disjunction(parts)
            case Operation(operator, (left, Duration() as length)):
                apart = self._value(left, at)
                if isinstance(apart, Arithmetic) and apart.operator == "-":
                    return Comparison(operator, apart, length)
            case Operation(operator, (left, right)) if operator in OPPOSITE:
                return Comparison(operator, self._value(left, at), self._value(right, at))
        return self._refuse(
            f"{condition}", "conditions are comparisons of values of rows of the match"
        )

    def _value(self, its: RowExpression, at: int | None = None) -> Expression:
        """An expression over the variables; ``at`` is the current row, or None for the last one."""
        match its:
            case Constant() if not isinstance(its, Duration):
                return its
            case Reference(str(column)):
                return Attribute(self.rows.variables[self._place(its, at)], column)
            case Operation("-", (operand,)):
                return Negative(self._value(operand, at))
            case Operation(operator, (left, right)):
                return Arithmetic(operator, self._value(left, at), self._value(right, at))
        return self._refuse(f"{its}", "values are columns of rows of the match, and arithmetic")

    def _place(self, its: Reference, at: int | None) -> int:
        """The number of the row that a reference names."""
        names, covered = self.rows.variables, self.rows.covered(its.variable)
        end = len(names) if at is None else at + 1
        places = [number for number in range(end) if names[number] in covered]
        found = places[:: 1 if its.from_first else -1][its.offset : its.offset + 1]
        if not found or not 0 <= found[0] + its.shift < len(names):
            self._refuse(f"{its}", "it reads no row of the match, or one that is not mapped yet")
        return found[0] + its.shift
