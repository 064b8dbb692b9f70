"""The pattern that says the same as a row pattern, if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from cepbench.errors import PatternError, UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.expressions import OPPOSITE
from cepbench.patterns.match_recognize import read_match_recognize
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
    Written,
)
from cepbench.patterns.validity import blaming


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


#: A clause and the measure or variable that it defines.
_Here = tuple[str, str]


@dataclass(frozen=True)
class _Counterpart:
    rows: RowPattern

    @property
    def _written(self) -> Written:
        written = self.rows.written or read_match_recognize(self.rows.describe()).written
        assert written is not None
        return written

    def _refuse_part(self, its: RowExpression, here: _Here, advice: str) -> NoReturn:
        """Raise an error that marks an expression."""
        self._refuse(f"{its}", advice, (*here, its), its, here)

    def _refuse(self, what: str, advice: str, *places: object) -> NoReturn:
        """Raise an error that marks the first of these places that the query has."""
        raise self._written.error(
            UnsupportedPatternError,
            f"no pattern means exactly the same as {what}: {advice}; cep.evaluate runs the query as it is",
            *places,
        )

    def pattern(self) -> Pattern:
        rows = self.rows
        parts = rows.term.parts if rows.term.kind == "sequence" else (rows.term,)
        if any(part.kind != "variable" for part in parts) or len(rows.variables) < len(parts):
            self._refuse(
                f"PATTERN ({rows.term})",
                "of different variables in sequence there is, (A B C)",
                "PATTERN",
            )
        if rows.rows != ROWS[0]:
            self._refuse(rows.rows, "a match is one row", "ALL")
        if rows.skip != SKIPS[1]:
            self._refuse(
                f"AFTER MATCH SKIP {rows.skip}",
                "SKIP TO NEXT ROW has one",
                "AFTER",
                "MATCH_RECOGNIZE",
            )
        if rows.within is None:
            self._refuse(
                "a query without WITHIN",
                "a pattern has a window; write WITHIN INTERVAL '5' MINUTE after PATTERN (…)",
                "PATTERN",
            )
        if len(rows.partition_by) > 1:
            self._refuse(
                "PARTITION BY two columns",
                "partition_contiguity has one attribute",
                "PARTITION BY",
            )
        if rows.sorted_by:
            self._refuse(
                "ORDER BY after the clause",
                "matches are in the order of their last events",
                "SORTED",
            )
        if rows.columns is not None:
            self._refuse(
                "SELECT of some columns",
                "name those to return in MEASURES, and SELECT *",
                "SELECT",
            )
        conditions = {
            name: self._condition(condition, ("DEFINE", name)) for name, condition in rows.define
        }
        keys = [Returned(Attribute(rows.variables[0], key), key) for key in rows.partition_by]
        measures = [
            Returned(self._value(its.expression, ("MEASURES", its.name)), its.name)
            for its in rows.measures
        ]
        clauses = _clauses(Conjunction(tuple(conditions.values())))
        try:
            if Clause(()) in clauses:
                with blaming(Clause(())):
                    raise UnsatisfiablePatternError(
                        "DEFINE is never true, so that there is no match"
                    )
            return Pattern(
                Structure(Operator.SEQ, tuple(Variable(name, None) for name in rows.variables)),
                clauses,
                rows.within,
                Strategy("partition_contiguity", rows.partition_by[0])
                if rows.partition_by
                else Strategy("strict_contiguity"),
                (*keys, *measures),
                order="arrival",
            )
        except PatternError as error:
            culprit = error.culprit
            places = [
                ("DEFINE", name) for name, its in conditions.items() if culprit in _clauses(its)
            ]
            places += [("MEASURES", its.name) for its in measures if its == culprit]
            raise self._written.error(type(error), str(error), *places) from None

    def _condition(self, condition: RowExpression, here: _Here) -> Condition:
        match condition:
            case Constant():
                return Conjunction(()) if condition.value else Disjunction(())
            case Operation("NOT", (Operation("IS NULL", (operand,)),)):
                known = self._value(operand, here)
                return Comparison("=", known, known)
            case Operation("NOT", (operand,)):
                return Negation(self._condition(operand, here))
            case Operation("AND" | "OR" as operator, operands):
                parts = tuple(self._condition(part, here) for part in operands)
                return Conjunction(parts) if operator == "AND" else Disjunction(parts)
            case Operation(operator, (left, Duration() as length)):
                apart = self._value(left, here)
                if isinstance(apart, Arithmetic) and apart.operator == "-":
                    return Comparison(operator, apart, length)
            case Operation(operator, (left, right)) if operator in OPPOSITE:
                return Comparison(operator, self._value(left, here), self._value(right, here))
        return self._refuse_part(
            condition, here, "conditions are comparisons of values of rows of the match"
        )

    def _value(self, its: RowExpression, here: _Here) -> Expression:
        """An expression over the variables, of a condition or a measure."""
        match its:
            case Constant() if not isinstance(its, Duration):
                return its
            case Reference(str(column)):
                return Attribute(self._row(its, here), column)
            case Operation("-", (operand,)):
                return Negative(self._value(operand, here))
            case Operation(operator, (left, right)):
                return Arithmetic(operator, self._value(left, here), self._value(right, here))
        return self._refuse_part(
            its, here, "values are columns of rows of the match, and arithmetic"
        )

    def _row(self, its: Reference, here: _Here) -> str:
        """The variable of the row that a reference names; a measure knows all, a condition those before."""
        names, covered = self.rows.variables, self.rows.covered(its.variable)
        clause, name = here
        end = len(names) if clause == "MEASURES" else names.index(name) + 1
        places = [number for number in range(end) if names[number] in covered]
        found = places[:: 1 if its.from_first else -1][its.offset : its.offset + 1]
        if not found or not 0 <= found[0] + its.shift < len(names):
            self._refuse_part(
                its, here, "it reads no row of the match, or one that is not mapped yet"
            )
        return names[found[0] + its.shift]


def _clauses(condition: Condition) -> tuple[Clause, ...]:
    return tuple(map(Clause, conjunctive_normal_form(condition)))
