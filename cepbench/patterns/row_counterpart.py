"""The pattern that says the same as a row pattern, if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
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
    Window,
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
    RowTerm,
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
        If no pattern means exactly the same; the message marks the clause in the query. There is one for
        single variables one after the other, from every row on, within a window, whose conditions and
        measures read rows of the match, two of them each; and with gaps between all of them, ``A X*? B``,
        if each row is compared with the first one alone.
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


def nearest(rows: RowPattern) -> tuple[RowPattern, tuple[str, ...]] | None:
    """The query most like one without counterpart that has one, and what it changes; None if unknown.

    Repeated variables stand once, gaps end at the first row that fits, rows are found from every row on, and measures that no match has are
    left out.
    """
    said = []
    parts = rows.term.parts if rows.term.kind == "sequence" else (rows.term,)
    single = []
    for part in parts:
        if part.kind == "quantified" and not {*part.variables()} & {*dict(rows.define)}:
            single.append(replace(part, least=0, most=None, is_reluctant=True))
        else:
            single.append(part.parts[0] if part.kind == "quantified" else part)
    if tuple(single) != parts:
        rows = replace(rows, term=RowTerm("sequence", tuple(single)))
        said.append(f"PATTERN ({rows.term})")
    if rows.rows != ROWS[0]:
        rows = replace(rows, rows=ROWS[0])
        said.append(ROWS[0])
    if rows.skip != SKIPS[1]:
        rows = replace(rows, skip=SKIPS[1], skip_to=None)
        said.append(f"AFTER MATCH SKIP {SKIPS[1]}")
    if rows.within is None:
        rows = replace(rows, within=Window(5, "minutes", exclusive=True))
        said.append("WITHIN, of any length")
    if rows.sorted_by or rows.columns is not None:
        rows = replace(rows, sorted_by=(), columns=None)
        said.append("SELECT * without ORDER BY")
    kept = tuple(its for its in rows.measures if has_counterpart(replace(rows, measures=(its,))))
    if kept != rows.measures:
        left = ", ".join(its.name for its in rows.measures if its not in kept)
        rows = replace(rows, measures=kept)
        said.append(f"MEASURES without {left}")
    rows = replace(rows, written=None)
    return (rows, tuple(said)) if has_counterpart(rows) else None


def has_counterpart(rows: RowPattern) -> bool:
    """Whether a pattern says the same."""
    try:
        counterpart(rows)
    except PatternError:
        return False
    return True


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

    @cached_property
    def _parts(self) -> tuple[RowTerm, ...]:
        term = self.rows.term
        return term.parts if term.kind == "sequence" else (term,)

    @cached_property
    def _gaps(self) -> frozenset[str]:
        """The variables of ``X*?`` without a condition, which skip rows up to the first one that fits."""
        defined = dict(self.rows.define)
        return frozenset(
            name
            for part in self._parts
            if part.kind == "quantified"
            and (part.least, part.most, part.is_reluctant) == (0, None, True)
            for name in part.variables()
            if name not in defined and part.parts[0].kind == "variable"
        )

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The variables of single rows, in order."""
        return tuple(part.name for part in self._parts if part.kind == "variable")

    def _check_term(self) -> None:
        """Raise unless PATTERN is (A B C), or (A X*? B X*? C) with gaps between all variables."""
        kinds = [
            "gap" if self._gaps.issuperset(part.variables()) else part.kind for part in self._parts
        ]
        plain, gapped = ["variable"] * len(kinds), ["variable", "gap"] * (len(kinds) // 2)
        is_one = kinds in (plain, [*gapped, "variable"])
        if not is_one or len({*self._names}) < len(self._names) or self._gaps & {*self._names}:
            self._refuse(
                f"PATTERN ({self.rows.term})",
                "of different variables in sequence there is, (A B C), and with gaps between them, "
                "(A X*? B) with X for any row",
                "PATTERN",
            )

    def pattern(self) -> Pattern:
        rows = self.rows
        self._check_term()
        if rows.rows != ROWS[0]:
            self._refuse(rows.rows, "a match is one row", "ALL")
        if rows.skip != SKIPS[1]:
            default = "" if "AFTER" in self._written.places else ", the default"
            self._refuse(
                f"AFTER MATCH SKIP {rows.skip}{default}",
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
        keys = [Returned(Attribute(self._names[0], key), key) for key in rows.partition_by]
        measures = [
            Returned(self._value(its.expression, ("MEASURES", its.name)), its.name)
            for its in rows.measures
        ]
        clauses = _clauses(Conjunction(tuple(conditions.values())))
        if self._gaps:
            self._check_gaps(conditions)
        try:
            if Clause(()) in clauses:
                with blaming(Clause(())):
                    raise UnsatisfiablePatternError(
                        "DEFINE is never true, so that there is no match"
                    )
            return Pattern(
                Structure(Operator.SEQ, tuple(Variable(name, None) for name in self._names)),
                clauses,
                rows.within,
                self._strategy,
                (*keys, *measures),
                equivalences=rows.partition_by if self._gaps else (),
                order="arrival",
            )
        except PatternError as error:
            culprit = error.culprit
            places = [
                ("DEFINE", name) for name, its in conditions.items() if culprit in _clauses(its)
            ]
            places += [("MEASURES", its.name) for its in measures if its == culprit]
            raise self._written.error(type(error), str(error), *places) from None

    @property
    def _strategy(self) -> Strategy:
        if self._gaps:
            return Strategy("next")
        if self.rows.partition_by:
            return Strategy("partition_contiguity", self.rows.partition_by[0])
        return Strategy("strict_contiguity")

    def _check_gaps(self, conditions: Mapping[str, Condition]) -> None:
        """Raise where the first row that fits is not that of the match.

        A run takes the first row that fits, while SQL goes back and takes a later one if there is no
        match with it. They agree where conditions are on the row and the first one alone: what follows
        an earlier row is what follows a later one, and more.
        """
        for name, condition in conditions.items():
            for clause in _clauses(condition):
                if not {*clause.variables} <= {self._names[0], name}:
                    self._refuse(
                        f"the condition of {name}, {clause}, after a gap",
                        "where there are gaps a row is compared with the first one of the match",
                        ("DEFINE", name),
                    )

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
        names, covered = self._names, self.rows.covered(its.variable)
        clause, name = here
        # Of the rows in gaps only their neighbours are known, of all rows only the first and the last.
        among_gaps = bool(self._gaps.intersection(covered))
        if self._gaps and (its.shift or (among_gaps and (its.variable or its.offset))):
            self._refuse_part(its, here, "it may read a row of a gap")
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
