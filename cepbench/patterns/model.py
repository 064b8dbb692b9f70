"""The pattern model: operators over typed variables, conditions in CNF, a strategy and a window.

Everything is frozen and compares by value; ``str`` gives text that parses back to an equal
object. Most of :mod:`cepbench.patterns.structure` and :mod:`cepbench.patterns.expressions` is
re-exported.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

from cepbench.arguments import choice, decimal
from cepbench.errors import PatternError, PatternSyntaxError
from cepbench.patterns.aggregation import EventType as EventType
from cepbench.patterns.aggregation import Grouping as Grouping
from cepbench.patterns.aggregation import MatchAggregate as MatchAggregate
from cepbench.patterns.aggregation import check_aggregation
from cepbench.patterns.concepts import ConceptHierarchy, hierarchy_from
from cepbench.patterns.equivalences import comparisons_of
from cepbench.patterns.expressions import NANOSECONDS as NANOSECONDS
from cepbench.patterns.expressions import Aggregate as Aggregate
from cepbench.patterns.expressions import Arithmetic as Arithmetic
from cepbench.patterns.expressions import Attribute as Attribute
from cepbench.patterns.expressions import Clause as Clause
from cepbench.patterns.expressions import Comparison as Comparison
from cepbench.patterns.expressions import Constant as Constant
from cepbench.patterns.expressions import Duration as Duration
from cepbench.patterns.expressions import Expression as Expression
from cepbench.patterns.expressions import Negative as Negative
from cepbench.patterns.expressions import Returned as Returned
from cepbench.patterns.expressions import quoted_unless_plain as quoted_unless_plain
from cepbench.patterns.expressions import terms_of as terms_of
from cepbench.patterns.expressions import without_implied
from cepbench.patterns.structure import Kind as Kind
from cepbench.patterns.structure import Operator as Operator
from cepbench.patterns.structure import Structure as Structure
from cepbench.patterns.structure import Variable as Variable
from cepbench.patterns.times import check_durations, in_parts
from cepbench.patterns.validity import (
    blaming,
    check_clause,
    check_groups,
    check_next,
    check_returns,
    check_structures,
)

#: The longest window in nanoseconds or ticks, so that timestamp arithmetic fits 64 bits.
_LONGEST = 2**61

#: Names of the event selection strategies, [kolchinsky2018]_, section 5.2, and [agrawal2008]_,
#: section 2.
STRATEGIES = ("any", "consuming", "strict_contiguity", "partition_contiguity", "next")

#: What orders the items of a SEQ: timestamps, or positions too.
ORDERS = ("time", "arrival")

#: Output formats [agrawal2008]_, section 2.
OUTPUTS = ("all", "non_overlap")


@dataclass(frozen=True, slots=True)
class Strategy:
    """STRATEGY: the event selection strategy.

    ``any``: every combination (skip-till-any-match). ``consuming``: an event is in at most one
    match, which [kolchinsky2018]_ calls skip-till-next-match; matches are taken in the order of
    the position of their last event, then of the tuple of their positions.
    ``strict_contiguity``: the events of a match are adjacent in the stream;
    ``partition_contiguity``: adjacent among the events that share the value of ``attribute``.
    ``next``: each run of the automaton takes the next event that fits, which [agrawal2008]_ calls
    skip-till-next-match.
    """

    name: str = "any"
    attribute: str | None = None

    def __post_init__(self) -> None:
        choice(self.name, "the strategy", STRATEGIES, PatternError)
        if self.name == "partition_contiguity" and self.attribute is None:
            raise PatternError(
                "partition_contiguity needs the attribute that its partitions share; write "
                "partition_contiguity(symbol) with the attribute in place of symbol"
            )
        if self.name != "partition_contiguity" and self.attribute is not None:
            raise PatternError(
                f"strategy {self.name} takes no attribute; leave out {self.attribute!r}"
            )

    def __str__(self) -> str:
        if self.attribute is None:
            return self.name
        return f"{self.name}({quoted_unless_plain(self.attribute)})"


#: Skip-till-any-match, the default.
ANY = Strategy("any")


@dataclass(frozen=True, slots=True)
class Window:
    """WITHIN: the largest difference between two timestamps of a match.

    ``unit`` is a key of :data:`NANOSECONDS`, or ``units`` for ticks of an integer time column.
    ``exclusive``, written ``WITHIN < amount unit``, excludes the difference ``amount`` itself: the
    half-open window of [qi2014]_, section 2.1, which is a closed one that is a tick shorter.

    ``amount`` is an exact decimal, of a float its shortest text: 8.2 seconds are 8,200,000,000
    nanoseconds. It is kept as an int or a float where these hold it, which equal numbers do alike.
    """

    amount: float | Decimal
    unit: str
    exclusive: bool = False
    #: The amount in nanoseconds, or in ticks for ``units``.
    _ticks: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        choice(self.unit, "the unit of WITHIN", (*NANOSECONDS, "units"), PatternError)
        amount = decimal(self.amount, "the amount of WITHIN", PatternError, least=0.0)
        object.__setattr__(self, "_ticks", self._counted(amount))
        object.__setattr__(self, "amount", _simplest(amount))
        if self.length < 0:
            raise PatternError(
                f"WITHIN {self} is empty: no two timestamps differ by less than 0; write a longer "
                f"window, or WITHIN {self.amount} {self.unit} without <"
            )

    def _counted(self, amount: Decimal) -> int:
        """The amount in ticks."""
        size = NANOSECONDS.get(self.unit, 1)
        # The fractions of 1e999999999 and 1e-999999999 do not fit the memory.
        is_tiny = 0 < amount < Decimal("1e-30")
        ticks = Fraction(0 if is_tiny or amount > _LONGEST else amount) * size
        if amount > _LONGEST or ticks > _LONGEST:
            years = "the 73 years that fit a timestamp" if self.is_datetime else "2^61 units"
            raise PatternError(
                f"WITHIN {amount:g} {self.unit}: longer than {years}; the largest window is "
                f"{_LONGEST // size} {self.unit}"
            )
        if is_tiny or ticks.denominator != 1:
            unit = "nanoseconds" if self.is_datetime else "units"
            raise PatternError(
                f"WITHIN {amount} {self.unit} is not a whole number of {unit}, in which time is "
                f"counted; write {int(ticks)} {unit} or {int(ticks) + 1} {unit}"
            )
        return int(ticks)

    @property
    def is_datetime(self) -> bool:
        """Whether the window is for datetime columns (else for integer time)."""
        return self.unit != "units"

    @property
    def length(self) -> int:
        """The largest difference in nanoseconds, or in ticks for ``units``."""
        return self._ticks - self.exclusive

    @property
    def seconds(self) -> float:
        """In seconds, or in ticks for ``units``: the time unit of arrival rates."""
        return self.length / 1e9 if self.is_datetime else float(self.length)

    def __str__(self) -> str:
        written = str(Constant(float(self.amount)))
        if Decimal(written) != Decimal(str(self.amount)):
            written = format(self.amount, "f" if isinstance(self.amount, Decimal) else "d")
        return f"{'< ' if self.exclusive else ''}{written} {self.unit}"


def _simplest(amount: Decimal) -> float | Decimal:
    """The amount as an int, else as a float, else as it is: the first one that equals it."""
    if amount == amount.to_integral_value():
        return int(amount)
    nearest = float(amount)
    return nearest if Decimal(repr(nearest)) == amount else amount


@dataclass(frozen=True)
class Pattern:
    """A pattern: ``PATTERN … WHERE … ORDER BY … STRATEGY … OUTPUT … GROUP BY … AGG … WITHIN … RETURN …``.

    Raises PatternError if its parts are inconsistent, see :mod:`cepbench.patterns.validity`.
    """

    #: SEQ, AND and OR over variables, nested to any depth.
    structure: Structure
    #: The WHERE clause in conjunctive normal form, without implied conjuncts and without
    #: ``equivalences``; empty if there is none.
    conditions: tuple[Clause, ...]
    #: The WITHIN clause.
    window: Window
    #: The STRATEGY clause.
    strategy: Strategy = ANY
    #: The columns of the RETURN clause; without it the positive variables. They do not change which
    #: matches there are.
    returns: tuple[Returned, ...] = ()
    #: The attributes of ``[attr]``, equal all over a match; :attr:`expanded` has them as
    #: comparisons.
    equivalences: tuple[str, ...] = ()
    #: {"all", "non_overlap"}. The OUTPUT clause: all matches, or of those that overlap in time
    #: within one partition the first one [agrawal2008]_, section 2.
    output: str = "all"
    #: The keys of the GROUP BY clause, without repetition.
    group_by: tuple[Grouping, ...] = ()
    #: The AGG clause: what to compute over the matches of :meth:`without_aggregate`.
    aggregates: tuple[MatchAggregate, ...] = ()
    #: The concepts above the event types, see :meth:`with_hierarchy`; not part of the text.
    hierarchy: ConceptHierarchy | None = field(default=None, repr=False)
    #: {"time", "arrival"}. The ORDER BY clause: whether the items of a SEQ follow each other in
    #: time, or in the order of the stream, in which events of one timestamp follow each other too.
    order: str = "time"

    #: Whether results are by query: those of a workload are, and those of a pattern are its own.
    by_query: ClassVar[Literal[False]] = False

    def __post_init__(self) -> None:
        choice(self.output, "the output", OUTPUTS, PatternError)
        choice(self.order, "the order", ORDERS, PatternError)
        branches = self.structure.alternatives()
        scopes = check_structures(branches)
        check_groups(branches, self.strategy.name)
        if self.strategy.name == "next":
            check_next(branches)
        object.__setattr__(self, "equivalences", tuple(dict.fromkeys(self.equivalences)))
        variables = {variable.name: variable for variable in self.structure.variables()}
        clauses = {clause.comparisons: clause for clause in self.conditions}
        kept = tuple(clauses[conjunct] for conjunct in without_implied(clauses))
        object.__setattr__(self, "conditions", kept)
        for clause in self.conditions:
            with blaming(clause):
                check_clause(clause, variables, scopes)
                check_durations(clause, is_datetime=self.window.is_datetime)
        check_returns(self.returns, variables, scopes)
        object.__setattr__(self, "group_by", tuple(dict.fromkeys(self.group_by)))
        check_aggregation(self.group_by, self.aggregates, variables, branches)
        if self.aggregates and self.returns:
            raise PatternSyntaxError(
                "RETURN with AGG, which gives values of all matches together; leave out RETURN, or "
                "AGG and GROUP BY",
                culprit=self.returns[0],
            )

    @property
    def queries(self) -> Mapping[str, Pattern]:
        """The pattern as a workload of one query, which has no name."""
        return {"": self}

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, negated ones included, in order of appearance."""
        return tuple(dict.fromkeys(self.structure.variables()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all variables, negated ones included, in order of appearance."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def positive(self) -> tuple[Variable, ...]:
        """All but the negated variables, which a match binds to events."""
        return tuple(v for v in self.variables if v.kind is not Kind.NEGATED)

    @cached_property
    def positive_names(self) -> tuple[str, ...]:
        """Names of the positive variables, the columns of a result's matches."""
        return tuple(variable.name for variable in self.positive)

    @cached_property
    def groups(self) -> tuple[Variable, ...]:
        """The group variables."""
        return tuple(v for v in self.variables if v.kind is Kind.GROUP)

    @cached_property
    def planned_names(self) -> tuple[str, ...]:
        """Names of the plain and the Kleene variables, over which plans are."""
        return tuple(v.name for v in self.positive if v.kind is not Kind.GROUP)

    def without(self, variables: Iterable[Variable]) -> Pattern:
        """The pattern without some variables and all that mentions them, for one without OR."""
        names = {variable.name for variable in variables}
        if not names:
            return self
        return replace(
            self,
            structure=self.structure.without(names),
            conditions=tuple(c for c in self.conditions if names.isdisjoint(c.variables)),
            returns=tuple(c for c in self.returns if names.isdisjoint(c.variables)),
        )

    def without_aggregate(self) -> Pattern:
        """The pattern of the matches that AGG is over: GROUP BY k becomes ``[k]``; itself without AGG."""
        if not self.aggregates:
            return self
        shared = (str(key.attribute) for key in self.group_by if key.variable is None)
        equivalences = (*self.equivalences, *shared)
        return replace(self, equivalences=equivalences, group_by=(), aggregates=())

    @cached_property
    def negated(self) -> tuple[Variable, ...]:
        """The negated variables."""
        return tuple(v for v in self.variables if v.kind is Kind.NEGATED)

    @cached_property
    def types(self) -> tuple[str, ...] | None:
        """The types that events of the variables can have, in order of appearance; None for any.

        With a hierarchy those below a variable's type are among them.
        """
        known = [self.types_of(variable) for variable in self.variables]
        if None in known:
            return None
        return tuple(dict.fromkeys(name for types in known for name in types or ()))

    def types_of(self, variable: Variable) -> tuple[str, ...] | None:
        """The types that events of a variable can have; None for any."""
        if variable.type is None:
            return None
        if self.hierarchy is None or variable.type not in self.hierarchy:
            return (variable.type,)
        return self.hierarchy.below(variable.type)

    def overlap(self, one: Variable, other: Variable) -> bool:
        """Whether one event can be of the types of both variables."""
        if one.type is None or other.type is None or one.type == other.type:
            return True
        return self.hierarchy is not None and self.hierarchy.overlap(one.type, other.type)

    def with_hierarchy(self, hierarchy: ConceptHierarchy | None) -> Pattern:
        """The pattern under a concept hierarchy: an item binds events of its type or below it.

        Where a stream is given, its hierarchy is used without this.

        Raises HierarchyError if it is not a hierarchy.
        """
        hierarchy = hierarchy_from(hierarchy)
        return self if hierarchy == self.hierarchy else replace(self, hierarchy=hierarchy)

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The types of items that have names below them in the hierarchy."""
        known = frozenset[str]() if self.hierarchy is None else self.hierarchy.concepts
        return tuple(dict.fromkeys(v.type for v in self.variables if v.type in known))

    @property
    def selects(self) -> bool:
        """Whether a match depends on all earlier ones: ``consuming``, or ``OUTPUT non_overlap``."""
        return self.strategy.name == "consuming" or self.output != "all"

    @property
    def reads_hierarchy(self) -> bool:
        """Whether its matches or groups may be others without the hierarchy."""
        keys = (key.attribute for key in self.group_by)
        return self.hierarchy is not None and (
            bool(self.concepts)
            or any(isinstance(its, EventType) and its.level is not None for its in keys)
        )

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that its clauses read, without repetition."""
        read = [a for clause in self.conditions for a in in_parts(clause).attributes()]
        read += [a for column in self.returns for a in column.attributes()]
        shared = [] if self.strategy.attribute is None else [self.strategy.attribute]
        shared += [key.attribute for key in self.group_by if isinstance(key.attribute, str)]
        shared += [each.attribute for each in self.aggregates if each.attribute is not None]
        names = (*self.equivalences, *(attribute.name for attribute in read), *shared)
        return tuple(dict.fromkeys(names))

    @cached_property
    def expanded(self) -> Pattern:
        """The pattern with ``[attr]`` as comparisons among its conditions, and times in parts."""
        conditions = tuple(map(in_parts, self.conditions))
        if not self.equivalences and conditions == self.conditions:
            return self
        equal = comparisons_of(self.equivalences, self.structure.alternatives())
        conditions = (*(Clause((comparison,)) for comparison in equal), *conditions)
        return replace(self, conditions=conditions, equivalences=())

    @property
    def operator(self) -> Operator:
        """The outermost operator."""
        return self.structure.operator

    def branches(self) -> tuple[Pattern, ...]:
        """The disjunctive normal form: patterns without OR whose union of matches is this one's.

        Each has this pattern's window, order and strategy, the conditions all of whose variables it has,
        ``[attr]`` as comparisons, and no RETURN, GROUP BY and AGG; ``(self.expanded,)`` if there is no OR
        [kolchinsky2018]_, section 4.
        """
        return self._branches

    @cached_property
    def _branches(self) -> tuple[Pattern, ...]:
        return tuple(self.expanded.iter_branches())

    def iter_branches(self) -> Iterator[Pattern]:
        """The branches lazily, with ``[attr]`` as it is."""
        structures = self.structure.alternatives()
        if structures == (self.structure,):
            yield self
            return
        for structure in structures:
            names = {variable.name for variable in structure.variables()}
            # Bypasses __post_init__: the pattern was checked as a whole.
            branch = object.__new__(Pattern)
            vars(branch).update({each.name: getattr(self, each.name) for each in fields(self)})
            vars(branch).update(
                structure=structure,
                conditions=tuple(c for c in self.conditions if names.issuperset(c.variables)),
                returns=(),
                group_by=(),
                aggregates=(),
            )
            yield branch

    def clauses_between(self, first: str, second: str) -> tuple[Clause, ...]:
        """The conditions over exactly these two variables, or over the one if they are equal."""
        wanted = {first, second}
        return tuple(clause for clause in self.conditions if set(clause.variables) == wanted)

    def with_partition(self) -> Pattern:
        """The pattern with equality of the partition's attribute as conditions.

        Partition contiguity [kolchinsky2018]_, section 5.2, thereby needs no conditions of its
        own: every pair of events is compared, so that each join can filter. Other strategies
        leave the pattern as it is.
        """
        name = self.strategy.attribute
        if name is None:
            return self
        pairs = [
            (Attribute(x, name), Attribute(y, name))
            for x, y in itertools.combinations(self.positive_names, 2)
        ]
        pairs += [
            (Attribute(v.name, name, "previous"), Attribute(v.name, name))
            for v in self.positive
            if v.kind is Kind.KLEENE
        ]
        if len(self.positive) == 1:
            # A missing value is in no partition: it differs from itself.
            pairs += [(Attribute(x, name), Attribute(x, name)) for x in self.positive_names]
        equal = tuple(Clause((Comparison("=", one, other),)) for one, other in pairs)
        return replace(self, conditions=self.conditions + equal)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        # AND binds tighter than OR, as in SQL.
        parts = self._conjuncts()
        if len(parts) == 1 and self.conditions:
            parts = [str(self.conditions[0])]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return " ".join(
            [f"PATTERN {self.structure}{where}", *self._clauses(f"WITHIN {self.window}")]
        )

    def _conjuncts(self) -> list[str]:
        """The text of each conjunct of the WHERE clause."""
        shared = [f"[{', '.join(map(quoted_unless_plain, self.equivalences))}]"]
        return [*(shared if self.equivalences else []), *(c.bracketed() for c in self.conditions)]

    def _clauses(self, within: str) -> Iterator[str]:
        """The text of each clause after WHERE."""
        if self.order != "time":
            yield f"ORDER BY {self.order}"
        if self.strategy != ANY:
            yield f"STRATEGY {self.strategy}"
        if self.output != "all":
            yield f"OUTPUT {self.output}"
        if self.group_by:
            yield f"GROUP BY {', '.join(map(str, self.group_by))}"
        if self.aggregates:
            yield f"AGG {', '.join(map(str, self.aggregates))}"
        yield within
        if self.returns:
            yield f"RETURN {', '.join(map(str, self.returns))}"

    def describe(self) -> str:
        """The pattern over several lines, one per conjunct."""
        lines = [f"PATTERN {self.structure}"]
        for place, conjunct in enumerate(self._conjuncts()):
            lines.append(f"{'   AND ' if place else 'WHERE  '} {conjunct}")
        return "\n".join([*lines, *self._clauses(f"WITHIN  {self.window}")])

    def _repr_html_(self) -> str:
        return f'<pre class="cep-pattern">{html.escape(self.describe())}</pre>'
