"""Pattern text → :class:`~cepbench.patterns.model.Pattern`.

``grammar.lark`` defines the language, :mod:`cepbench.patterns.diagnosis` the messages of syntax
errors; this module turns parse trees into patterns. The language is that of [kolchinsky2018]_,
section 2.1, with the spellings of other papers, time units, texts and parameters; docs/language.md
is its reference.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, overload

from cepbench.arguments import choice, shown
from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsatisfiablePatternError,
    UnsupportedPatternError,
    did_you_mean,
)
from cepbench.kernels.cache_folder import cache_file
from cepbench.kernels.garbage import collecting_later
from cepbench.patterns.contradictions import check_satisfiable
from cepbench.patterns.diagnosis import instead_of, syntax_error
from cepbench.patterns.eql import eql_text, sigma_text
from cepbench.patterns.match_recognize import read_match_recognize
from cepbench.patterns.model import (
    ANY,
    NANOSECONDS,
    ORDERS,
    OUTPUTS,
    STRATEGIES,
    Clause,
    EventType,
    Grouping,
    Kind,
    MatchAggregate,
    Pattern,
    Returned,
    Strategy,
    Variable,
    Window,
)
from cepbench.patterns.normal_form import conjunctive_normal_form
from cepbench.patterns.pattern_text import (
    PatternText,
    decimal_of,
    name_of,
    names_in,
    nodes_of,
    parts_of_duration,
    span_of,
    tokens_of,
    whole_number,
    without_clause_brackets,
)
from cepbench.patterns.read_conditions import (
    UNITS,
    ConditionReader,
    conjoined,
    without_needless_rest,
)
from cepbench.patterns.read_structure import StructureReader
from cepbench.patterns.row_pattern import RowPattern
from cepbench.patterns.validity import check_structures

if TYPE_CHECKING:
    from lark import Lark, Token

    from cepbench.patterns.pattern_text import Node

_AMOUNT_AND_UNIT = re.compile(
    r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([^\W\d_]+)\s*\Z"
)

#: Strategies by name; SASE+ [agrawal2008]_ spells out the default.
_STRATEGY_NAMES = {**{name: name for name in STRATEGIES}, "skip_till_any_match": "any"}

#: Two papers give this name to two different strategies.
_AMBIGUOUS_STRATEGY = "skip_till_next_match"


#: Grammars of other papers' languages, each added to ``grammar.lark``.
DIALECTS = {
    "zstream": "zstream.lark",
    "sase+": "sase_plus.lark",
    "a-seq": "a_seq.lark",
    "e-cube": "e_cube.lark",
}

#: The dialect whose patterns are SQL.
MATCH_RECOGNIZE = "match_recognize"

#: Languages that are rewritten in this one, each with what does it.
_REWRITTEN = {"eql": eql_text, "sigma": sigma_text}

#: Dialects whose printed queries leave out WITHIN and AGG.
_INCOMPLETE = ("a-seq", "e-cube")


@overload
def parse(  # type: ignore[overload-overlap]  # a name that is not known here may be this one
    text: str, /, *, dialect: Literal["match_recognize"]
) -> RowPattern: ...


@overload
def parse(
    text: str,
    parameters: Mapping[str, float | str] | None = None,
    /,
    *,
    dialect: str | None = None,
    classes: str | Mapping[str, str] | None = None,
    aggregate: str | None = None,
    within: str | None = None,
    **named: float | str,
) -> Pattern: ...


def parse(
    text: str,
    parameters: Mapping[str, float | str] | None = None,
    /,
    *,
    dialect: str | None = None,
    classes: str | Mapping[str, str] | None = None,
    aggregate: str | None = None,
    within: str | None = None,
    **named: float | str,
) -> Pattern | RowPattern:
    """Parse a pattern, whose ``str`` parses back to an equal one; conditions are in conjunctive normal form.

    Parameters
    ----------
    text : str
        ``PATTERN SEQ(Type name, …) WHERE condition ORDER BY order STRATEGY strategy OUTPUT output
        GROUP BY key, … AGG aggregate, … WITHIN amount unit RETURN value AS name, …``; SEQ, AND and OR may be nested,
        items may be under NOT and KL; all clauses but PATTERN and WITHIN are optional.
        ``:name``, or ``name`` where no variable has it, is the value of a parameter.
        docs/language.md lists all constructs and spellings.
    dialect : {"zstream", "sase+", "a-seq", "e-cube", "match_recognize", "eql", "sigma"}, optional
        A query with MATCH_RECOGNIZE is read as docs/sql.md says, to a RowPattern; or the language of a paper, each with its differences in docs/language.md: ZStream's [mei2009]_,
        section 3, SASE+'s [agrawal2008]_, Figure 1 and section 6, A-Seq's [qi2014]_, section 2.1, or
        E-Cube's [liu2011]_, section 2.
    classes : "ANY" or mapping of str to str, optional
        In a dialect, which event types the names of classes stand for: any type, or that of the
        mapping; by default, and where the mapping has none, the type of the same name.
    aggregate, within : str, optional
        AGG and WITHIN of a query in the dialect ``a-seq`` or ``e-cube`` that has none: ``"COUNT"``,
        ``"10 s"``.
    parameters, named : mapping of str to float or str
        Values of parameters, as a mapping or as keywords; ``WITHIN W`` takes ``W="20
        minutes"``, ``WITHIN W minutes`` takes ``W=20``.

    Raises
    ------
    PatternSyntaxError
        If the text does not follow the grammar.
    PatternNameError
        For an unknown variable, unit, strategy or parameter, a variable of two items of one
        branch, two columns of one name, an unknown aggregate, and an unused parameter.
    PatternOperatorError
        For NOT and KL over operators, a pattern or branch of negated items only, indices and
        aggregates of variables that are not Kleene ones, conditions between two negated variables,
        and RETURN, GROUP BY and AGG of what has no value for a match.
    UnsatisfiablePatternError
        If it cannot match, see :func:`~cepbench.patterns.contradictions.check_satisfiable`.
    UnsupportedPatternError
        For a conjunct over more than two variables, and for constructs of the literature that
        are not supported.
    PatternError
        For conditions over variables of different branches, a text in place of a number, a
        window beyond the range of timestamps, and an argument that is not a text.

    Examples
    --------
    >>> str(parse("pattern seq(MSFT a, GOOG b) where a.price < :most within 20 min", most=30))
    'PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < 30 WITHIN 20 minutes'
    >>> str(parse("PATTERN MSFT a; !GOOG; INTC+ c[] WHERE [symbol] WITHIN W", W="1 hour"))[:51]
    'PATTERN SEQ(MSFT a, NOT(GOOG GOOG), KL(INTC c)) WHE'
    """
    if not isinstance(text, str):
        raise PatternError(
            f"a pattern is parsed from a str, not from {type(text).__name__}{instead_of(text)}"
        )
    text = text.removeprefix("\ufeff")  # a byte-order mark, as some editors write it
    if not isinstance(parameters, Mapping | None) or not all(
        isinstance(p, str) for p in parameters or ()
    ):
        raise PatternError(
            "the parameters of a pattern are a mapping from names to values, such as {'W': '1 "
            f"hour'}}, not a {type(parameters).__name__}"
        )
    twice = set(parameters or ()) & set(named)
    if twice:
        raise PatternNameError(
            f"parameter {min(twice)!r} is given in the mapping and as a keyword; give it once"
        )
    if dialect is not None:
        dialect = choice(
            dialect, "dialect", (*DIALECTS, MATCH_RECOGNIZE, *_REWRITTEN), PatternError
        )
    elif classes is not None:
        raise PatternError('classes are those of a dialect; give dialect="zstream" too')
    for name, given in (("aggregate", aggregate), ("within", within)):
        if given is not None:
            if dialect not in _INCOMPLETE:
                raise PatternError(
                    f"{name} is for the queries of a dialect that leave it out; write "
                    f"{'AGG' if name == 'aggregate' else 'WITHIN'} {shown(given)} in the pattern, or "
                    f"give dialect={' or '.join(map(repr, _INCOMPLETE))} too"
                )
            if not isinstance(given, str):
                raise PatternError(
                    f"{name} is a text such as 'COUNT' or '10 s', not {shown(given)}"
                )
    if dialect == MATCH_RECOGNIZE or dialect in _REWRITTEN:
        if parameters or named or classes is not None:
            raise PatternError(
                f"{dialect} is read as it is, without parameters and classes; write their values into the query"
            )
        if dialect == MATCH_RECOGNIZE:
            return read_match_recognize(text)
        return parse(_REWRITTEN[dialect](text))
    if aggregate is not None or within is not None:
        text = _completed(text, dialect, aggregate, within)
    source = PatternText(text, {**(parameters or {}), **named})
    reader = _Reader(source, dialect, _classes_from(classes))
    with collecting_later():
        pattern = reader.pattern(_tree(text, dialect))
        with reader.errors_with_places():
            check_satisfiable(pattern)
    return pattern


def _completed(text: str, dialect: str | None, aggregate: str | None, within: str | None) -> str:
    """The text with the clauses AGG and WITHIN where it has none."""
    parts = {part.data: span_of(part).start for part in nodes_of(_tree(text, dialect))}
    if within is not None and "within" not in parts:
        parts["within"] = len(text)
        text = f"{text}\nWITHIN {within}"
    if aggregate is not None and "aggregation" not in parts:
        place = parts.get("within", len(text))
        text = f"{text[:place]}\nAGG {aggregate} {text[place:]}"
    return text


def _classes_from(given: object) -> Mapping[str, str] | None:
    """The types of classes by name; None if each is of any type."""
    if given is None:
        return {}
    if isinstance(given, str) and given.upper() == "ANY":
        return None
    if isinstance(given, Mapping) and all(
        isinstance(name, str) and isinstance(kind, str) for name, kind in given.items()
    ):
        return given
    raise PatternError(
        f'classes is "ANY", or a mapping such as {{"T1": "STOCK"}}, not {shown(given)}'
    )


@functools.lru_cache(maxsize=64)
def reread(text: str) -> Pattern:
    """Parse the ``str`` of a pattern, without the check that it can match.

    Patterns built by hand and branches of OR may be unsatisfiable. A live run that is saved and restored
    again and again reads the same text each time.
    """
    with collecting_later():
        return _Reader(PatternText(text, {})).pattern(_tree(text))


@functools.cache
def _parser(dialect: str | None = None) -> Lark:
    # At first use, to keep ``import cepbench`` fast.
    from lark import Lark

    folder = importlib.resources.files("cepbench.patterns")
    files = ["grammar.lark"] if dialect is None else ["grammar.lark", DIALECTS[dialect]]
    grammar = "\n".join(folder.joinpath(file).read_text("utf-8") for file in files)
    # The basic lexer reserves keywords everywhere; a contextual one would take a misplaced WITHIN
    # for a name and report the next word. Positions come from tokens (span_of): propagating them
    # to all trees would double the time.
    # Building its tables takes longer than parsing a thousand patterns; reading them does not.
    tables = cache_file(f"grammar-{dialect or 'cepbench'}.tables")
    options: dict[str, Any] = {"keep_all_tokens": True, "cache": str(tables) if tables else False}
    return Lark(grammar, parser="lalr", lexer="basic", **options)


def _tree(text: str, dialect: str | None = None) -> Node:
    from lark.exceptions import UnexpectedInput

    try:
        plain = without_clause_brackets(text) if dialect == "a-seq" else text
        return _parser(dialect).parse(plain)
    except UnexpectedInput as error:
        raise syntax_error(text, error) from None


class _Reader:
    """A pattern under construction: its text, and the positions of its parts."""

    def __init__(
        self,
        source: PatternText,
        dialect: str | None = None,
        classes: Mapping[str, str] | None = MappingProxyType({}),
    ) -> None:
        self._source = source
        self._dialect = dialect
        closure = Kind.GROUP if dialect == "zstream" else Kind.KLEENE
        self._structures = StructureReader(source, closure, classes)
        self._clauses: dict[Clause, Node] = {}
        self._equivalences: dict[str, Node] = {}
        self._values: dict[Returned | Grouping | MatchAggregate, Node] = {}
        self._root: Node | None = None

    def pattern(self, tree: Node) -> Pattern:
        """The pattern of the whole parse tree."""
        root, *clauses = nodes_of(tree)
        self._root = root
        parts = {part.data: part for part in clauses}
        with self.errors_with_places():
            structure = self._structures.read(root)
            check_structures(structure.alternatives())
            reader = ConditionReader(self._source, structure, dialect=self._dialect)
        strategy, output = None, "all"
        conditions: tuple[Clause, ...] = ()
        if "selecting" in parts:
            inside = {part.data: part for part in nodes_of(parts["selecting"])}
            listed = inside.pop("listed", None)
            trees = [tree for part in inside.values() for tree in nodes_of(part)]
            conditions = self._conditions(trees, reader)
            if listed is not None:
                self._check_listed(listed, reader)
            strategy = self._selecting(tokens_of(parts["selecting"])[1])
        elif "where" in parts:
            conditions = self._conditions(nodes_of(parts["where"]), reader)
        if "strategy" in parts:
            if strategy is not None:
                self._source.fail(
                    PatternSyntaxError,
                    "the WHERE clause already names a strategy; remove one of them",
                    parts["strategy"],
                )
            strategy = self._strategy(parts["strategy"])
        if "output" in parts:
            output = self._known(parts["output"], "output", OUTPUTS)
        order = self._known(parts["ordering"], "order", ORDERS) if "ordering" in parts else "time"
        if "within" not in parts:
            self._source.fail(
                PatternSyntaxError,
                'the query has no window; add WITHIN 10 seconds, or give within="10 seconds"',
                root,
            )
        window = self._window(parts["within"])
        returns = self._returns(parts["returning"], reader) if "returning" in parts else ()
        group_by = self._group_by(parts["grouping"], reader) if "grouping" in parts else ()
        aggregates: tuple[MatchAggregate, ...] = ()
        if "aggregation" in parts:
            aggregates = self._aggregates(parts["aggregation"], reader)
        elif group_by and self._dialect == "e-cube":
            aggregates = (MatchAggregate("COUNT"),)
        self._source.check_parameters_used()
        with self.errors_with_places():
            return Pattern(
                structure,
                conditions,
                window,
                strategy or ANY,
                returns,
                tuple(self._equivalences),
                output,
                group_by,
                aggregates,
                order=order,
            )

    @contextlib.contextmanager
    def errors_with_places(self) -> Iterator[None]:
        """Add positions to errors about a clause or variable."""
        try:
            yield
        except PatternError as error:
            if error.line is not None:
                raise
            assert self._root is not None
            place: Node | Token = self._root
            if isinstance(error.culprit, Clause):
                place = self._clauses.get(error.culprit) or self._equivalence(error.culprit)
            elif isinstance(error.culprit, Returned | Grouping | MatchAggregate):
                place = self._values[error.culprit]
            elif isinstance(error.culprit, Variable):
                place = self._structures.places[error.culprit.name]
            elif isinstance(error.culprit, Window):
                place = self._window_place
            self._source.fail(type(error), str(error), place)

    # -- conditions -----------------------------------------------------------------------------

    def _equivalence(self, clause: Clause) -> Node:
        """The ``[attr]`` that a clause is from."""
        return self._equivalences[next(clause.attributes()).name]

    def _conditions(self, trees: list[Node], reader: ConditionReader) -> tuple[Clause, ...]:
        for tree in trees:
            for part in conjoined(tree):
                if part.data in ("equality", "same"):
                    for name in reader.equivalences(part):
                        self._equivalences.setdefault(name, part)
                    continue
                try:
                    conjuncts = conjunctive_normal_form(reader.read(part))
                except UnsupportedPatternError as error:
                    self._source.fail(UnsupportedPatternError, str(error), part)
                if () in conjuncts:
                    self._source.fail(
                        UnsatisfiablePatternError,
                        "this condition is never true, so the pattern cannot match; correct or "
                        "remove it",
                        part,
                    )
                for conjunct in conjuncts:
                    clause = Clause(conjunct)
                    if self._dialect == "sase+":
                        clause = without_needless_rest(clause)
                    self._clauses.setdefault(clause, part)
        return tuple(self._clauses)

    # -- results --------------------------------------------------------------------------------

    def _returns(self, tree: Node, reader: ConditionReader) -> tuple[Returned, ...]:
        found = []
        for part in nodes_of(tree):
            value, alias = reader.value(nodes_of(part)[0]), None
            if names := names_in(part):
                keyword, alias = names[0], name_of(names[1])
                if keyword.upper() != "AS":
                    self._source.fail(
                        PatternSyntaxError,
                        f"unexpected {str(keyword)!r}; expected a comma, the end of the pattern, or "
                        "AS and the name of the column",
                        keyword,
                    )
            found.append(Returned(value, alias))
            self._values[found[-1]] = part
        return tuple(found)

    def _group_by(self, tree: Node, reader: ConditionReader) -> tuple[Grouping, ...]:
        for part in nodes_of(tree):
            names = names_in(part)
            if part.data == "typed":
                keys = [self._of_type(part, reader)]
            elif part.data == "hyphenated":
                keys = [Grouping("-".join(names))]
            elif names[1:]:
                variable, attribute = reader.resolved(names)
                keys = [Grouping(attribute, variable)]
            else:
                keys = self._of_items(name_of(names[0])) or [Grouping(name_of(names[0]))]
            for key in keys:
                self._values.setdefault(key, part)
        return tuple(key for key in self._values if isinstance(key, Grouping))

    def _of_type(self, tree: Node, reader: ConditionReader) -> Grouping:
        """``type(a)`` or ``type(a, level)``."""
        function, item = names_in(tree)
        if function.lower() != "type":
            self._source.fail(
                PatternNameError,
                f"GROUP BY {function}(…); group by an attribute, or by the type of an item's events, "
                f"type({item})",
                function,
            )
        levels = [token for token in tokens_of(tree) if token.type == "NUMBER"]
        numbers = [number for level in levels if (number := whole_number(level)) is not None]
        if len(numbers) < len(levels):
            self._source.fail(
                PatternSyntaxError,
                f"the level of a type is 0, 1, 2, … below the root, not {levels[0]}",
                levels[0],
            )
        return Grouping(EventType(*numbers), *reader.resolved([item]))

    def _of_items(self, name: str) -> list[Grouping]:
        """The types of all items of an event type that E-Cube's GROUPBY names."""
        if self._dialect != "e-cube":
            return []
        its = [v for v in self._structures.variables.values() if v.type == name]
        positive = [variable for variable in its if variable.kind is not Kind.NEGATED]
        return [Grouping(EventType(), variable.name) for variable in positive or its]

    def _aggregates(self, tree: Node, reader: ConditionReader) -> tuple[MatchAggregate, ...]:
        found = []
        for part in nodes_of(tree):
            function, *inside = tokens_of(part)
            names = reader.resolved([token for token in inside if token.type in ("NAME", "QUOTED")])
            try:
                found.append(MatchAggregate(function.upper(), *names))
            except PatternError as error:
                self._source.fail(type(error), str(error), part)
            self._values[found[-1]] = part
        return tuple(found)

    # -- strategy -------------------------------------------------------------------------------

    def _strategy(self, tree: Node) -> Strategy:
        _, name, *_ = tokens_of(tree)
        attribute = [token for token in names_in(tree) if token is not name]
        return self._named_strategy(name, name_of(attribute[0]) if attribute else None, tree)

    def _selecting(self, name: Token) -> Strategy:
        """The strategy of ``WHERE strategy(variables) { conditions }``."""
        attributes = self._equivalences
        if name.lower().replace("-", "_") != "partition_contiguity":
            return self._named_strategy(name, None, name)
        if len(attributes) != 1:
            found = f"found {', '.join(attributes)}" if attributes else "found none"
            self._source.fail(
                PatternError,
                "partition_contiguity takes its attribute from one condition such as [symbol], but "
                f"{found}; write STRATEGY partition_contiguity(symbol) after the conditions",
                name,
            )
        return self._named_strategy(name, next(iter(attributes)), name)

    def _named_strategy(self, name: Token, attribute: str | None, place: Node | Token) -> Strategy:
        written = name.lower().replace("-", "_")
        known = _STRATEGY_NAMES.get(written)
        if written == _AMBIGUOUS_STRATEGY and self._dialect == "sase+":
            known = "next"
        elif written == _AMBIGUOUS_STRATEGY:
            self._source.fail(
                PatternNameError,
                f"{_AMBIGUOUS_STRATEGY} has two meanings: `next` (SASE+), each run of the automaton "
                "takes the next event that fits; `consuming` (Kolchinsky & Schuster), an event is "
                "in at most one match. Write STRATEGY next or STRATEGY consuming, or parse SASE+'s "
                'texts with dialect="sase+"',
                name,
            )
        if known is None:
            self._source.fail(
                PatternNameError,
                f"unknown strategy {str(name)!r}; use one of {', '.join(STRATEGIES)}"
                f"{did_you_mean(name.lower(), _STRATEGY_NAMES)}",
                name,
            )
        try:
            return Strategy(known, attribute)
        except PatternError as error:
            self._source.fail(PatternError, str(error), place)

    def _known(self, tree: Node, what: str, choices: tuple[str, ...]) -> str:
        """The name in a clause that has one of a few."""
        (name,) = names_in(tree)
        known = name.lower()
        if known not in choices:
            self._source.fail(
                PatternNameError,
                f"unknown {what} {str(name)!r}; use one of {', '.join(choices)}"
                f"{did_you_mean(known, choices)}",
                name,
            )
        return known

    def _check_listed(self, tree: Node, reader: ConditionReader) -> None:
        variables = self._structures.variables
        listed = {reader.known(names_in(one)[0]) for one in nodes_of(tree)}
        missing = [name for name in variables if name not in listed]
        if missing:
            self._source.fail(
                PatternNameError,
                f"variable {missing[0]} is not listed, but a strategy applies to the whole pattern; "
                f"list {', '.join(variables)}",
                tree,
            )

    # -- window ---------------------------------------------------------------------------------

    def _window(self, tree: Node) -> Window:
        amount = nodes_of(tree)[0]
        self._window_place: Node | Token = amount
        signs = [token for token in tokens_of(tree) if token.type == "COMPARE"]
        if signs not in ([], ["<"]):
            self._source.fail(
                PatternSyntaxError,
                f"WITHIN {signs[0]}; a window is WITHIN < 5 minutes, or WITHIN 5 minutes with the "
                "difference of 5 minutes itself",
                signs[0],
            )
        self._exclusive = bool(signs) or self._dialect == "a-seq"
        if amount.data == "duration":
            number, unit = parts_of_duration(tokens_of(amount)[0])
            self._window_place = number
            return self._window_from(decimal_of(number), str(unit), number, unit)
        units = names_in(tree)
        value = self._source.amount(amount)
        if isinstance(value, str):
            return self._window_of_text(value, amount, has_unit=bool(units))
        if not units:
            if self._dialect == "sase+":
                return self._window_from(value, "units", amount, amount)
            self._source.fail(
                PatternNameError,
                f"the window {value:g} has no unit; write WITHIN {tokens_of(amount)[0]} minutes, or "
                f"give the parameter with its unit: '{value:g} minutes'",
                amount,
            )
        return self._window_from(value, str(units[0]), amount, units[0])

    def _window_of_text(self, value: str, place: Node, *, has_unit: bool) -> Window:
        found = _AMOUNT_AND_UNIT.match(value)
        if has_unit or found is None:
            self._source.fail(
                PatternError,
                f"a window is a number, not the text {value!r}"
                + ("" if has_unit else "; a text must be a number and a unit, as '20 minutes'"),
                place,
            )
        amount, unit = found.groups()
        return self._window_from(decimal_of(amount), unit, place, place)

    def _window_from(
        self, value: Decimal, unit: str, place: Node | Token, place_of_unit: Node | Token
    ) -> Window:
        if unit.lower() not in UNITS:
            self._source.fail(
                PatternNameError,
                f"unknown time unit {unit!r}; use {', '.join(NANOSECONDS)}, or units for integer time"
                f"{did_you_mean(unit.lower(), UNITS)}",
                place_of_unit,
            )
        try:
            return Window(value, UNITS[unit.lower()], self._exclusive)
        except PatternError as error:
            self._source.fail(PatternError, str(error), place)
