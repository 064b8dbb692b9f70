"""SQL with MATCH_RECOGNIZE → :class:`~cepbench.patterns.row_pattern.RowPattern`.

sqlglot reads the query and its expressions, ``row_pattern.lark`` what PATTERN says. The clauses that
sqlglot does not know, or keeps as text, are cut out before: a place in the rest is one in the text.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsupportedPatternError,
    did_you_mean,
)
from cepbench.patterns.diagnosis import Span, error_at
from cepbench.patterns.expressions import Constant, Duration
from cepbench.patterns.model import NANOSECONDS, Window
from cepbench.patterns.pattern_text import PatternText, nodes_of, number_of, span_of, tokens_of
from cepbench.patterns.read_conditions import UNITS
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
    Written,
    parts_of,
)

if TYPE_CHECKING:
    from lark import Lark, Token
    from sqlglot.expressions import Expression

    from cepbench.patterns.pattern_text import Node

#: Limit of the places for a row, so that their automaton stays small.
MAXIMUM_PLACES = 1000

#: Limit of the variables, each of which is a bit of an integer.
MAXIMUM_VARIABLES = 60

#: Deepest nesting of expressions, so that the rest of the code may recurse.
_DEEPEST = 50

#: The words that begin the clauses of MATCH_RECOGNIZE, and those that follow them.
_CLAUSES = {
    "PARTITION BY": "",
    "ORDER BY": "",
    "MEASURES": "",
    "ONE": "ROW",
    "ALL": "ROWS",
    "AFTER": "MATCH",
    "PATTERN": "(",
    "WITHIN": "",
    "SUBSET": "",
    "DEFINE": "",
}
#: Those that are cut out.
_CUT = ("ONE", "ALL", "AFTER", "PATTERN", "WITHIN", "SUBSET")

_OPERATORS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "EQ": "=", "NEQ": "!=",
    "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "And": "AND", "Or": "OR",
}  # fmt: skip
_CONDITIONS = ("=", "!=", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IS NULL")
_NAVIGATION = ("FIRST", "LAST", "PREV", "NEXT")
#: Snowflake's names.
_SYNONYMS = {"LAG": "PREV", "LEAD": "NEXT"}
_FUNCTIONS = (*_NAVIGATION, *ROW_AGGREGATES, "CLASSIFIER", "MATCH_NUMBER")


def read_match_recognize(text: str) -> RowPattern:
    """The row pattern of a query; errors show the place in it.

    Raises
    ------
    PatternSyntaxError
        If it is not such a query, or breaks a rule of the standard.
    PatternNameError
        For an unknown variable or function, and for a name that is given twice.
    UnsupportedPatternError
        For what SQL has and we do not; the message names what comes nearest.
    """
    return _Reader(text).row_pattern()


@functools.cache
def _grammar() -> Lark:
    from lark import Lark

    folder = importlib.resources.files("cepbench.patterns")
    return Lark(
        folder.joinpath("row_pattern.lark").read_text("utf-8"), parser="lalr", lexer="basic"
    )


class _Reader:
    """A query that is being read."""

    def __init__(self, text: str) -> None:
        PatternText(text, {})  # which refuses halves of characters
        self._text = text
        # Databricks and Flink quote names so, and double quotes are texts there.
        self._dialect = "databricks" if "`" in text else "trino"
        self._tokens: list[Any] = []
        #: Clause → its tokens.
        self._clauses: dict[str, list[Any]] = {}
        self._variables: tuple[str, ...] = ()
        self._subsets: dict[str, tuple[str, ...]] = {}
        #: The clause whose expressions are being read, and the measure or variable that it defines.
        self._clause, self._defined = "", ""
        #: Where clauses and expressions stand, as in :class:`Written`.
        self._places: dict[object, Span] = {}

    def _fail(self, kind: type[PatternError], message: str, *places: Any) -> NoReturn:
        """Raise an error of this kind that marks a token, a clause, or an expression of sqlglot."""
        its = self._span(*places) or self._span(self._clauses.get(self._clause, []))
        raise error_at(kind, message, self._text, its or Span(0, len(self._text))) from None

    def _span(self, *places: Any) -> Span | None:
        """What these places cover, with the brackets that are opened in it; None if they are nowhere."""
        spans = [span for place in places for span in self._spans(place)]
        if not spans:
            return None
        start, end = min(first for first, _ in spans), max(last for _, last in spans)
        depth = 0
        for token in self._tokens[bisect_left(self._tokens, start, key=lambda its: its.start) :]:
            kind = token.token_type.name
            if token.start >= end and (depth == 0 or kind != "R_PAREN"):
                break
            depth = max(0, depth + (kind == "L_PAREN") - (kind == "R_PAREN"))
            end = max(end, token.end + 1)
        return Span(start, end)

    def _write(self, what: object, *places: Any) -> None:
        """Keep where something stands first."""
        if span := self._span(*places):
            self._places.setdefault(what, span)

    def _spans(self, place: Any) -> Iterator[tuple[int, int]]:
        if isinstance(place, list):
            for each in place:
                yield from self._spans(each)
        elif hasattr(place, "walk"):
            for node in place.walk():
                if "start" in node.meta:
                    yield node.meta["start"], node.meta["end"] + 1
        elif isinstance(place, Span):
            yield place
        else:
            yield place.start, place.end + 1

    # -- the query ------------------------------------------------------------------------------

    def row_pattern(self) -> RowPattern:
        """The whole query."""
        select, clause = self._parsed(self._without_cut_clauses())
        if "PATTERN" not in self._clauses:
            self._fail(
                PatternSyntaxError,
                "the clause has no PATTERN; add PATTERN (A B+) with the variables of DEFINE",
                clause,
            )
        term = self._term()
        self._variables = tuple(dict.fromkeys(term.variables()))
        if len(self._variables) > MAXIMUM_VARIABLES:
            self._refuse(
                f"{len(self._variables)} variables; at most {MAXIMUM_VARIABLES} are supported",
                self._clauses["PATTERN"],
            )
        self._read_subsets()
        skip, skip_to = self._skip()
        rows = self._rows()
        if rows == ROWS[3] and "exclusion" in _kinds(term):
            self._fail(
                PatternSyntaxError,
                "WITH UNMATCHED ROWS excludes {- -}: whether such a row is matched would be open; use "
                "SHOW EMPTY MATCHES",
                self._clauses["ALL"],
            )
        measures = self._measures(clause)
        partition_by = tuple(map(self._column, clause.args.get("partition_by") or ()))
        return RowPattern(
            term=term,
            define=self._define(clause),
            measures=measures,
            partition_by=tuple(dict.fromkeys(partition_by)),
            order_by=self._order_by(clause),
            rows=rows,
            skip=skip,
            skip_to=skip_to,
            subsets=tuple(self._subsets.items()),
            within=self._within(),
            columns=self._selected(select),
            sorted_by=self._sorted_by(select),
            written=Written(self._text, self._places),
        )

    def _refuse(self, message: str, *places: Any) -> NoReturn:
        self._fail(UnsupportedPatternError, message, *places)

    def _without_cut_clauses(self) -> str:
        """The text with blanks for clauses that sqlglot does not read, and FINAL and RUNNING as
        parts of a function's name.
        """
        from sqlglot import tokenize
        from sqlglot.errors import TokenError

        try:
            tokens = tokenize(self._text, dialect=self._dialect)
        except TokenError:
            self._fail(
                PatternSyntaxError, "a text, name or comment has no end; close it with its quote"
            )
        self._tokens = tokens
        words = [re.sub(r"\s+", " ", token.text).upper() for token in tokens]
        if "MATCH_RECOGNIZE" not in words:
            if not tokens:
                self._fail(
                    PatternSyntaxError,
                    "the query is empty; write SELECT * FROM events "
                    "MATCH_RECOGNIZE (ORDER BY … MEASURES … PATTERN (…) DEFINE …)",
                )
            self._fail(
                PatternSyntaxError,
                "the query has no MATCH_RECOGNIZE; write SELECT * FROM events MATCH_RECOGNIZE (ORDER BY "
                "… MEASURES … PATTERN (…) DEFINE …)",
            )
        cut = list(self._text)
        depth, clause = 0, ""
        first = words.index("MATCH_RECOGNIZE")
        self._write("MATCH_RECOGNIZE", tokens[first])
        for at in range(first + 1, len(tokens)):
            token, word = tokens[at], words[at]
            following = words[at + 1] if at + 1 < len(words) else ""
            is_name = token.token_type.name in ("STRING", "IDENTIFIER")
            if word == "(" and not is_name:
                depth += 1
                if depth == 1:
                    continue
            elif word == ")" and not is_name:
                depth -= 1
                if depth == 0:
                    self._check_end(tokens, words, at + 1)
                    break
            elif depth == 1 and not is_name and following.startswith(_CLAUSES.get(word, "?")):
                clause = word
                if clause in self._clauses:
                    self._fail(PatternSyntaxError, f"a second {clause}; remove it", token)
                self._clauses[clause] = []
            elif word in ("FINAL", "RUNNING") and following in _FUNCTIONS and not is_name:
                cut[token.end + 1 : tokens[at + 1].start] = "_" * (
                    tokens[at + 1].start - token.end - 1
                )
            if clause:
                self._clauses[clause].append(token)
        if depth > 0:
            self._fail(
                PatternSyntaxError,
                "the bracket of MATCH_RECOGNIZE is not closed; expected a closing bracket",
                tokens[-1],
            )
        for clause, its in self._clauses.items():
            self._write(clause, its)
        for clause in _CUT:
            for token in self._clauses.get(clause, ()):
                cut[token.start : token.end + 1] = " " * (token.end + 1 - token.start)
        return "".join(cut)

    def _check_end(self, tokens: list[Any], words: list[str], begin: int) -> None:
        """Raise for what stands after the clause and would change the rows unseen."""
        for at in range(begin, len(tokens)):
            if words[at] == ";" and at + 1 < len(tokens):
                self._fail(
                    PatternSyntaxError,
                    "a second statement; give one query, and evaluate each by itself",
                    tokens[at + 1],
                )
            if words[at] == "MATCH_RECOGNIZE":
                self._refuse(
                    "a second MATCH_RECOGNIZE; evaluate each query by itself, and combine the resulting tables",
                    tokens[at],
                )
            if words[at : at + 2] == ["NULLS", "FIRST"]:
                self._refuse(
                    "NULLS FIRST: missing values are last; sort the resulting table",
                    *tokens[at : at + 2],
                )

    def _parsed(self, text: str) -> tuple[Expression, Expression]:
        """The query and its clause MATCH_RECOGNIZE, by sqlglot."""
        from sqlglot import exp, parse
        from sqlglot.errors import ParseError

        try:
            found = [each for each in parse(text, dialect=self._dialect) if each is not None]
        except ParseError as error:
            its = error.errors[0]
            lines = self._text.split("\n")
            end = sum(len(line) + 1 for line in lines[: its["line"] - 1]) + its["col"]
            word = its["highlight"]
            self._fail(
                PatternSyntaxError,
                f"unexpected {word!r} here: {its['description']}",
                Span(max(0, end - len(word)), end),
            )
        except RecursionError:
            self._fail(PatternSyntaxError, "the query nests too deep; write it flatter")
        if len(found) != 1 or not isinstance(found[0], exp.Select):
            self._fail(
                PatternSyntaxError, "expected one query, SELECT … FROM … MATCH_RECOGNIZE (…)"
            )
        select = found[0]
        clauses = list(select.find_all(exp.MatchRecognize))
        if len(clauses) != 1 or clauses[0] is not select.args.get("match"):
            self._refuse(
                "one MATCH_RECOGNIZE, of the table in FROM, is supported; evaluate a query in FROM by "
                "itself, and give its rows as the stream",
                clauses[-1],
            )
        source = select.find(exp.From)
        if source is None or not isinstance(source.this, exp.Table):
            self._refuse("FROM names a table: the stream that is evaluated", source or select)
        alias = source.this.args.get("alias")
        around = set(filter(source.this.args.get, source.this.args)) - {
            "this",
            "db",
            "catalog",
            "alias",
        }
        if around or (alias is not None and alias.args.get("columns")):
            self._refuse(
                "FROM names the whole table; give the rows that are wanted as the stream", source
            )
        return select, clauses[0]

    def _selected(self, select: Expression) -> tuple[tuple[str, str], ...] | None:
        """The columns of SELECT; an error for all else around MATCH_RECOGNIZE."""
        from sqlglot import exp

        known = ("expressions", "from", "from_", "match", "order")
        for name, part in select.args.items():
            if part and name not in known:
                word = name.strip("_").upper()
                self._refuse(
                    f"{word} around MATCH_RECOGNIZE; leave it out, and do it with the resulting table",
                    *(part if isinstance(part, list) else [part] if hasattr(part, "walk") else []),
                )
        found: list[tuple[str, str]] = []
        for each in select.expressions:
            inner = each.this if isinstance(each, exp.Alias) else each
            if isinstance(inner, exp.Star) or (
                isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
            ):
                if len(select.expressions) > 1:
                    self._refuse("* beside other columns; name them all", each)
                return None
            if not isinstance(inner, exp.Column):
                self._refuse(
                    "SELECT takes columns of MATCH_RECOGNIZE; write the expression in MEASURES",
                    each,
                )
            found.append((inner.name, each.alias or inner.name))
            self._write("SELECT", *select.expressions)
        self._check_once([alias for _, alias in found], select.expressions, "column")
        return tuple(found)

    def _sorted_by(self, select: Expression) -> tuple[tuple[str, bool], ...]:
        """The columns of the clause's rows by which they are sorted; a name of SELECT stands for its column."""
        order = select.args.get("order")
        named = {alias.upper(): name for name, alias in self._selected(select) or ()}
        found = []
        for each in order.expressions if order else ():
            column = self._column(each.this)
            self._write("SORTED", order)
            found.append((named.get(column.upper(), column), bool(each.args.get("desc"))))
        return tuple(found)

    def _check_once(self, names: Sequence[str], places: Sequence[Any], what: str) -> None:
        """Raise if a name stands twice; case does not matter."""
        folded = [name.upper() for name in names]
        for at, name in enumerate(folded):
            if name in folded[:at]:
                self._fail(
                    PatternNameError, f"a second {what} {names[at]}; rename one of them", places[at]
                )

    # -- clauses --------------------------------------------------------------------------------

    def _column(self, node: Expression) -> str:
        from sqlglot import exp

        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            self._refuse("only a column can stand here; add it to the stream as an attribute", node)
        return str(node.name)

    def _order_by(self, clause: Expression) -> tuple[str, ...]:
        order = clause.args.get("order")
        found = []
        for each in order.expressions if order else ():
            if each.args.get("desc"):
                self._refuse(
                    "DESC: events have the order of time; write the pattern from the earliest to the "
                    "latest row, and NEXT for PREV",
                    each,
                )
            found.append(self._column(each.this))
        return tuple(found)

    def _words(self, clause: str) -> str:
        return " ".join(token.text.upper() for token in self._clauses.get(clause, ()))

    def _rows(self) -> str:
        found = [name for name in ("ONE", "ALL") if name in self._clauses]
        if len(found) > 1:
            self._fail(
                PatternSyntaxError,
                "ONE ROW and ALL ROWS PER MATCH; leave out one",
                self._clauses["ALL"],
            )
        written = self._words(found[0]) if found else ROWS[0]
        known = {**{each: each for each in ROWS}, "ALL ROWS PER MATCH": ROWS[1]}
        if written not in known:
            self._fail(
                PatternSyntaxError,
                f"unknown {written}; use one of {', '.join(ROWS)}",
                self._clauses[found[0]],
            )
        return known[written]

    def _skip(self) -> tuple[str, str | None]:
        tokens = self._clauses.get("AFTER", [])
        words = [token.text.upper() for token in tokens[3:]]
        if not tokens or " ".join(words) in SKIPS[:2]:
            return " ".join(words) or SKIPS[0], None
        which, name = " ".join(words[:-1]), tokens[-1]
        if which not in ("TO", *SKIPS[2:]):
            self._fail(
                PatternSyntaxError,
                "expected AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST a, TO LAST a, or TO a",
                tokens,
            )
        return (SKIPS[3] if which == "TO" else which), self._known(_folded(name), name)

    def _within(self) -> Window | None:
        tokens = self._clauses.get("WITHIN", [])[1:]
        if not tokens:
            return None
        texts = [token.text for token in tokens]
        try:
            if len(texts) == 1:
                return Window(Decimal(texts[0]), "units", exclusive=True)
            # Flink declares the number of digits, as in DAY(3).
            if texts[0].upper() == "INTERVAL" and texts[3:4] in ([], ["("]):
                return Window(Decimal(texts[1]), UNITS[texts[2].lower()], exclusive=True)
        except (ArithmeticError, KeyError):
            pass
        except PatternError as error:
            self._fail(PatternError, str(error), tokens)
        return self._fail(
            PatternSyntaxError,
            f"expected INTERVAL '10' MINUTE, of one unit ({', '.join(NANOSECONDS)}), or a number for "
            "integer time",
            tokens,
        )

    def _read_subsets(self) -> None:
        """``SUBSET U = (A, B), V = (B, C)``."""
        tokens = self._clauses.get("SUBSET", [])[1:]
        at = 0
        while at < len(tokens):
            end = next((n for n in range(at, len(tokens)) if tokens[n].text == ")"), len(tokens))
            texts = [token.text for token in tokens[at : end + 1]]
            members = tokens[at + 3 : end : 2]
            if texts[1:3] != ["=", "("] or set(texts[4:-1:2]) > {","} or not members:
                self._fail(PatternSyntaxError, "expected SUBSET U = (A, B), …", tokens[at:])
            name = _folded(tokens[at])
            if name in self._variables or name in self._subsets:
                self._fail(
                    PatternNameError, f"{name} is a variable already; rename the subset", tokens[at]
                )
            self._subsets[name] = tuple(
                dict.fromkeys(self._known(_folded(each), each) for each in members)
            )
            at = end + 2

    def _known(self, name: str, place: Any) -> str:
        """The name of a variable of the pattern, or of a subset."""
        if name not in self._variables and name not in self._subsets:
            known = (*self._variables, *self._subsets)
            self._fail(
                PatternNameError,
                f"unknown variable {name}; the pattern has {', '.join(known) or 'none'}"
                f"{did_you_mean(name, known)}",
                place,
            )
        return name

    def _measures(self, clause: Expression) -> tuple[Measure, ...]:
        from sqlglot import exp

        self._clause = "MEASURES"
        found = []
        places = clause.args.get("measures") or []
        for each in places:
            inner, frame = each.this, each.args.get("window_frame")
            if not isinstance(inner, exp.Alias):
                self._fail(PatternSyntaxError, "a measure has a name; add AS and the name", each)
            if frame:
                self._fail(
                    PatternSyntaxError,
                    f"{frame} stands before FIRST, LAST or an aggregate, as in {frame} LAST(A.price)",
                    each,
                )
            self._defined = inner.alias
            self._write(("MEASURES", inner.alias), each)
            found.append(Measure(self._value(inner.this, 1), inner.alias))
        self._check_once([each.name for each in found], places, "measure")
        return tuple(found)

    def _define(self, clause: Expression) -> tuple[tuple[str, RowExpression], ...]:
        found: dict[str, RowExpression] = {}
        for each in clause.args.get("define") or ():
            identifier = each.args["alias"]
            name = _folded(identifier)
            self._clause = "DEFINE"
            if name in self._subsets:
                self._fail(
                    PatternNameError, f"{name} is a subset; define its variables", identifier
                )
            self._known(name, identifier)
            if name in found:
                self._fail(PatternNameError, f"{name} is defined twice; use AND", identifier)
            self._defined = name
            self._write(("DEFINE", name), each)
            found[name] = self._condition(each.this, 1)
        return tuple(found.items())

    # -- expressions ----------------------------------------------------------------------------

    def _condition(self, node: Expression, depth: int) -> RowExpression:
        """A condition; ``a.flag`` by itself is ``a.flag = true``."""
        found = self._expression(node, depth)
        if isinstance(found, Reference) and found.column is not None:
            return Operation("=", (found, Constant(True)))
        if not _is_condition(found) and found not in (Constant(True), Constant(False)):
            self._fail(
                PatternSyntaxError, "a value is no condition; expected a comparison (<, =, …)", node
            )
        return found

    def _value(self, node: Expression, depth: int) -> RowExpression:
        found = self._expression(node, depth)
        if _is_condition(found):
            self._refuse("a condition as a value; conditions stand in DEFINE", node)
        return found

    def _expression(self, node: Expression, depth: int) -> RowExpression:
        found = self._read(node, depth)
        # Chains are long, and of their parts each has its place.
        if not (isinstance(found, Operation) and found.operator in ("AND", "OR", "NOT")):
            self._write((self._clause, self._defined, found), node)
            self._write(found, node)
        return found

    def _read(self, node: Expression, depth: int) -> RowExpression:
        from sqlglot import exp

        if depth > _DEEPEST:
            self._refuse(f"nested more than {_DEEPEST} deep; write it flatter", node)
        kind = type(node).__name__
        inner = depth + 1
        match kind:
            case "Paren":
                return self._expression(node.this, inner)
            case "Column":
                return self._plain(node)
            case "Boolean":
                return Constant(bool(node.this))
            case "Literal":
                return self._constant(node)
            case "Null":
                self._refuse("NULL satisfies no comparison; write IS NULL, or leave it out", node)
            case "Neg":
                operand = self._value(node.this, inner)
                if isinstance(operand, Constant) and isinstance(node.this, exp.Literal):
                    return Constant(-float(operand.value))
                return Operation("-", (operand,))
            case "Not":
                return Operation("NOT", (self._condition(node.this, inner),))
            case "And" | "Or":
                return self._chain(node, inner)
            case "Is" if isinstance(node.expression, exp.Null):
                return Operation("IS NULL", (self._value(node.this, inner),))
            case "Between" if not node.args.get("symmetric"):
                its, low, high = (
                    self._value(part, inner)
                    for part in (node.this, node.args["low"], node.args["high"])
                )
                return Operation("AND", (Operation(">=", (its, low)), Operation("<=", (its, high))))
            case "In" if node.expressions:
                its = self._value(node.this, inner)
                equal = [
                    Operation("=", (its, self._value(each, inner))) for each in node.expressions
                ]
                return functools.reduce(lambda one, other: Operation("OR", (one, other)), equal)
            case "Interval":
                return self._interval(node)
            case "Cast" if node.args["to"].this.name == "DOUBLE":
                # The product is an error unless it is of numbers.
                return Operation("*", (Constant(1.0), self._value(node.this, inner)))
        if kind in _OPERATORS:
            operands = self._value(node.this, inner), self._value(node.expression, inner)
            return Operation(_OPERATORS[kind], operands)
        if isinstance(node, exp.Func):
            return self._function(node, inner)
        return self._refuse(
            f"{node.sql()}: MATCH_RECOGNIZE is read with arithmetic, comparisons, AND, OR, NOT, BETWEEN, "
            "IN, IS NULL and its own functions; calculate other things as attributes of the stream",
            node,
        )

    def _chain(self, node: Expression, depth: int) -> RowExpression:
        """``x AND y AND z``, which sqlglot nests to the left, as one that nests as deep."""
        kind, parts = type(node), []
        while isinstance(node, kind):
            parts.append(node.expression)
            node = node.this
        first, *rest = (self._condition(part, depth) for part in (node, *reversed(parts)))
        operator = _OPERATORS[kind.__name__]
        return functools.reduce(lambda one, other: Operation(operator, (one, other)), rest, first)

    def _constant(self, node: Expression) -> Constant:
        written = str(node.this)
        if node.is_string:
            return Constant(written)
        try:
            value = number_of(written)
            return Constant(int(written) if written.isdecimal() else value)
        except (PatternError, ValueError) as error:
            self._fail(PatternError, str(error), node)

    def _interval(self, node: Expression) -> Duration:
        # Flink declares the number of digits, as in DAY(3).
        unit = str(node.args.get("unit") or "").lower().partition("(")[0]
        try:
            amount = Decimal(str(node.this.this))
            length = Window(abs(amount), UNITS[unit]).length
            return Duration(-length if amount < 0 else length)
        except (KeyError, ArithmeticError, AttributeError):
            self._refuse(
                f"an interval has a number and one unit, as in INTERVAL '10' MINUTE "
                f"({', '.join(NANOSECONDS)})",
                node,
            )
        except PatternError as error:
            self._fail(PatternError, str(error).removeprefix("WITHIN "), node)

    def _plain(self, node: Expression) -> Reference:
        """``price`` or ``A.price``."""
        from sqlglot import exp

        if not isinstance(node.this, exp.Identifier):
            self._fail(PatternSyntaxError, "* stands only in COUNT(*) and COUNT(A.*)", node)
        if node.args.get("db"):
            self._fail(PatternSyntaxError, "expected a column, or a variable and a column", node)
        table = node.args.get("table")
        variable = None if table is None else self._known(_folded(table), table)
        return Reference(str(node.name), variable)

    def _function(self, node: Any, depth: int) -> RowExpression:
        from sqlglot import exp

        is_anonymous = isinstance(node, exp.Anonymous)
        name = (node.name if is_anonymous else node.sql_name()).upper()
        mode, _, rest = name.partition("_")
        mode, name = (mode, rest.strip("_")) if mode in ("FINAL", "RUNNING") else ("", name)
        name = _SYNONYMS.get(name, name)
        listed = [] if is_anonymous else [node.this]
        listed += map(node.args.get, ("expression", "offset", "default"))
        arguments = [each for each in (*listed, *node.expressions) if each is not None]
        if name not in _FUNCTIONS:
            self._fail(
                PatternNameError,
                f"unknown function {name}; MATCH_RECOGNIZE has {', '.join(_FUNCTIONS)}"
                f"{did_you_mean(name, _FUNCTIONS)}",
                node,
            )
        is_final = mode == "FINAL"
        if mode and name not in ("FIRST", "LAST", *ROW_AGGREGATES):
            self._fail(PatternSyntaxError, f"{mode} is for FIRST, LAST and aggregates", node)
        if self._clause == "DEFINE" and (is_final or name in ("CLASSIFIER", "MATCH_NUMBER")):
            self._refuse(
                f"{'FINAL' if is_final else name} in DEFINE, where the match is not known yet; it stands in "
                "MEASURES",
                node,
            )
        if name == "MATCH_NUMBER":
            self._arguments(node, arguments, 0)
            return MatchNumber()
        if name == "CLASSIFIER":
            self._arguments(node, arguments, 0, 1)
            named = [each for each in arguments if isinstance(each, exp.Column)]
            if len(named) < len(arguments) or any(each.args.get("table") for each in named):
                self._fail(PatternSyntaxError, "CLASSIFIER takes a variable, or nothing", node)
            its = [self._known(_folded(each.this), each) for each in named]
            return Reference(None, its[0] if its else None)
        if name in ROW_AGGREGATES:
            return self._aggregate(node, name, arguments, is_final, depth)
        self._arguments(node, arguments, 1, 2)
        number = self._offset(arguments[1]) if arguments[1:] else int(name in ("PREV", "NEXT"))
        return self._navigated(node, name, self._value(arguments[0], depth), number, is_final)

    def _arguments(self, node: Expression, given: list[Any], *numbers: int) -> None:
        if len(given) not in numbers:
            takes = " or ".join(map(str, numbers))
            self._fail(PatternSyntaxError, f"it takes {takes} arguments, not {len(given)}", node)

    def _offset(self, node: Expression) -> int:
        written = str(node.this) if type(node).__name__ == "Literal" else ""
        if not written.isdecimal() or len(written) > 9:
            self._fail(PatternSyntaxError, "an offset is a whole number of rows, 0 or more", node)
        return int(written)

    def _navigated(
        self, node: Expression, function: str, inside: RowExpression, number: int, is_final: bool
    ) -> RowExpression:
        """The expression with each column read in the row that a function of navigation names."""
        references = [part for part in parts_of(inside) if isinstance(part, Reference)]
        if any(isinstance(part, RowAggregate | MatchNumber) for part in parts_of(inside)):
            self._fail(PatternSyntaxError, f"{function} of an aggregate; it reads a row", node)
        if len({each.variable for each in references}) != 1:
            what = "columns of two variables" if references else "no column"
            self._fail(
                PatternSyntaxError, f"{function} of {what}; it reads one row of one variable", node
            )

        def logical(its: Reference) -> Reference:
            if not its.is_plain:
                self._fail(
                    PatternSyntaxError,
                    f"{function} of {its}; FIRST and LAST stand inside PREV and NEXT",
                    node,
                )
            return replace(its, from_first=function == "FIRST", offset=number, is_final=is_final)

        def physical(its: Reference) -> Reference:
            if its.shift:
                self._fail(PatternSyntaxError, f"{function} of {its}; add their offsets", node)
            if its.column is None:
                self._refuse(f"{function} of CLASSIFIER(); use FIRST, LAST, or a column", node)
            return replace(its, shift=number if function == "NEXT" else -number)

        return _changed(inside, logical if function in ("FIRST", "LAST") else physical)

    def _aggregate(
        self, node: Expression, name: str, arguments: list[Any], is_final: bool, depth: int
    ) -> RowAggregate:
        from sqlglot import exp

        self._arguments(node, arguments, 1)
        (argument,) = arguments
        if isinstance(argument, exp.Distinct):
            self._refuse("DISTINCT; count the rows, or drop repeated ones afterwards", node)
        star = argument if isinstance(argument, exp.Star) else argument.this
        if isinstance(argument, exp.Star | exp.Column) and isinstance(star, exp.Star):
            if name != "COUNT":
                self._fail(
                    PatternSyntaxError, f"{name} takes a column, as in {name}(A.price)", node
                )
            table = argument.args.get("table")
            variable = None if table is None else self._known(_folded(table), table)
            return RowAggregate(name, None, variable, is_final)
        inside = self._value(argument, depth)
        references = [part for part in parts_of(inside) if isinstance(part, Reference)]
        nested = [part for part in parts_of(inside) if isinstance(part, RowAggregate | MatchNumber)]
        if nested or not all(its.is_plain and its.column is not None for its in references):
            self._refuse(f"{name} of a function; it is over columns of the rows", node)
        if len({each.variable for each in references}) != 1:
            what = "columns of two variables" if references else "no column"
            self._fail(PatternSyntaxError, f"{name} of {what}; it is over the rows of one", node)
        return RowAggregate(name, inside, references[0].variable, is_final)

    # -- the pattern ----------------------------------------------------------------------------

    def _term(self) -> RowTerm:
        """What stands in the brackets of PATTERN."""
        from lark.exceptions import UnexpectedInput

        _, opening, *inside = self._clauses["PATTERN"]
        depth, end = 1, opening
        for end in inside:
            depth += (end.text == "(") - (end.text == ")")
            if depth == 0:
                break
        if end is not inside[-1]:
            self._fail(
                PatternSyntaxError, "expected WITHIN, SUBSET or DEFINE after PATTERN (…)",
                inside[inside.index(end) + 1 :],
            )  # fmt: skip
        padded = " " * opening.end + " " + self._text[opening.end + 1 : end.start]
        try:
            tree = _grammar().parse(padded)
        except UnexpectedInput as error:
            token = getattr(error, "token", None)
            ends = token is None or token.type == "$END"
            start = error.pos_in_stream if token is None else token.start_pos
            place = Span(end.start, end.end + 1)
            if not (ends and token is not None) and start is not None:
                place = Span(start, start + max(1, len(token or "")))
            self._fail(
                PatternSyntaxError,
                "PATTERN has variables, brackets, |, the quantifiers * + ? {n,m}, PERMUTE(…), {- -}, ^ and "
                "$; this is none of them here",
                place,
            )
        except RecursionError:
            self._fail(PatternSyntaxError, "PATTERN nests too deep; write it flatter", opening)
        term = self._alternatives(nodes_of(tree)[0], 1) if tree.children else RowTerm("()")
        if term.size > MAXIMUM_PLACES:
            self._refuse(
                f"PATTERN has more than {MAXIMUM_PLACES} places for a row, with its repetitions and "
                "permutations written out; use smaller bounds, or + in their place",
                self._clauses["PATTERN"],
            )
        return term

    def _alternatives(self, tree: Node, depth: int) -> RowTerm:
        if depth > _DEEPEST:
            self._refuse("PATTERN nests too deep; write it flatter", span_of(tree))
        parts = []
        for sequence in nodes_of(tree):
            its = tuple(self._quantified(part, depth + 1) for part in nodes_of(sequence))
            parts.append(its[0] if len(its) == 1 else RowTerm("sequence", its))
        return parts[0] if len(parts) == 1 else RowTerm("alternatives", tuple(parts))

    def _quantified(self, tree: Node, depth: int) -> RowTerm:
        term = self._primary(nodes_of(tree)[0], depth)
        for quantifier in tokens_of(tree):
            written = "".join(quantifier.split())
            is_reluctant = len(written) > 1 and written.endswith("?")
            bounds = written.rstrip("?").strip("{}") or "?"
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(bounds, (0, 0))
            if bounds not in ("*", "+", "?"):
                low, comma, high = bounds.partition(",")
                least = self._bound(low or "0", quantifier)
                most = self._bound(high, quantifier) if high else None if comma else least
            if most is not None and (most < least or most == 0):
                self._fail(
                    PatternSyntaxError,
                    f"{written}: the upper bound is at least 1, and at least the lower one",
                    span_of(quantifier),
                )
            term = RowTerm("quantified", (term,), "", least, most, is_reluctant)
        return term

    def _bound(self, written: str, place: Token) -> int:
        if len(written) > 9:
            self._refuse("a bound of so many digits; use + or *", span_of(place))
        return int(written)

    def _primary(self, tree: Node, depth: int) -> RowTerm:
        match tree.data:
            case "variable":
                token = tokens_of(tree)[0]
                is_quoted = token.type == "QUOTED"
                name = token[1:-1].replace('""', '"') if is_quoted else token.upper()
                return RowTerm("variable", name=str(name))
            case "anchor":
                return RowTerm(str(tokens_of(tree)[0]))  # type: ignore[arg-type]
            case "nothing":
                return RowTerm("()")
            case "brackets":
                return self._alternatives(nodes_of(tree)[0], depth + 1)
        parts = tuple(self._alternatives(part, depth + 1) for part in nodes_of(tree))
        return RowTerm("PERMUTE" if tree.data == "permutation" else "exclusion", parts)


def _folded(identifier: Any) -> str:
    """A name as SQL compares it: in capital letters unless it is quoted."""
    if hasattr(identifier, "token_type"):
        quoted, name = identifier.token_type.name == "IDENTIFIER", identifier.text
    else:
        quoted, name = bool(identifier.args.get("quoted")), identifier.name
    return str(name) if quoted else str(name).upper()


def _kinds(term: RowTerm) -> set[str]:
    return {term.kind}.union(*map(_kinds, term.parts))


def _is_condition(expression: RowExpression) -> bool:
    return isinstance(expression, Operation) and expression.operator in _CONDITIONS


def _changed(expression: RowExpression, change: Callable[[Reference], Reference]) -> RowExpression:
    """The expression with each reference replaced."""
    if isinstance(expression, Reference):
        return change(expression)
    if isinstance(expression, Operation):
        return replace(
            expression, operands=tuple(_changed(part, change) for part in expression.operands)
        )
    return expression
