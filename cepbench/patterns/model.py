"""The pattern model: operators over typed variables, conditions in CNF, a strategy and a window.

Everything is frozen and compares by value; ``str`` writes text that parses back to an equal
object. Structures are in :mod:`cepbench.patterns.structure`, conditions in
:mod:`cepbench.patterns.expressions`; both are importable from here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

from cepbench.errors import PatternError
from cepbench.patterns.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Conjunct,
    Constant,
    Expression,
    Negative,
    attributes_of,
    quoted_unless_plain,
    terms_of,
    without_implied,
)
from cepbench.patterns.structure import Kind, Operator, Structure, Variable
from cepbench.patterns.validity import check_clause, check_structures

__all__ = [
    "ANY",
    "NANOSECONDS",
    "STRATEGIES",
    "Aggregate",
    "Arithmetic",
    "Attribute",
    "Clause",
    "Comparison",
    "Conjunct",
    "Constant",
    "Expression",
    "Kind",
    "Negative",
    "Operator",
    "Pattern",
    "Strategy",
    "Structure",
    "Variable",
    "Window",
    "attributes_of",
    "quoted_unless_plain",
    "terms_of",
    "without_implied",
]

#: Length of each time unit in nanoseconds; ``units`` counts ticks of an integer time column.
NANOSECONDS = {
    "milliseconds": 10**6,
    "seconds": 10**9,
    "minutes": 60 * 10**9,
    "hours": 3600 * 10**9,
    "days": 86_400 * 10**9,
}

#: The longest window, in nanoseconds or ticks: differences of timestamps fit 64 bits with it.
_LONGEST = 2**61

#: Names of the event selection strategies [kolchinsky2018]_, section 5.2.
STRATEGIES = ("any", "consuming", "strict_contiguity", "partition_contiguity")


@dataclass(frozen=True, slots=True)
class Strategy:
    """STRATEGY: which of the fitting events may form a match.

    ``any``: every combination (skip-till-any-match). ``consuming``: an event is in at most one
    match, which [kolchinsky2018]_ calls skip-till-next-match; matches are taken in the order of
    the position of their last event, then of the tuple of their positions.
    ``strict_contiguity``: the events of a match are neighbours in the stream;
    ``partition_contiguity``: neighbours among the events that share the value of ``attribute``.
    """

    name: str = "any"
    attribute: str | None = None

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise PatternError(
                f"unknown strategy {self.name!r}; use one of {', '.join(STRATEGIES)}"
            )
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


#: Skip-till-any-match, the strategy of a pattern that names none.
ANY = Strategy("any")


@dataclass(frozen=True, slots=True)
class Window:
    """WITHIN: the largest allowed difference of two timestamps of a match (closed).

    ``unit`` is a key of :data:`NANOSECONDS`, or ``units`` for ticks of an integer time column.
    """

    amount: float
    unit: str

    def __post_init__(self) -> None:
        if self.unit != "units" and self.unit not in NANOSECONDS:
            known = ", ".join([*NANOSECONDS, "units"])
            raise PatternError(f"unknown window unit {self.unit!r}; use one of {known}")
        given: object = self.amount
        if isinstance(given, bool) or not isinstance(given, Real):
            kind = type(given).__name__
            raise PatternError(f"WITHIN takes a number and a unit, and the number is a {kind}")
        try:
            amount = float(given)
        except OverflowError:
            amount = math.inf
        if not 0 <= amount < math.inf:
            raise PatternError(f"WITHIN {amount}: a window must be finite and not negative")
        largest = _LONGEST // NANOSECONDS.get(self.unit, 1)
        if amount * NANOSECONDS.get(self.unit, 1) > _LONGEST:
            years = "the 73 years that fit a timestamp" if self.is_datetime else "2^61 units"
            raise PatternError(
                f"WITHIN {amount:g} {self.unit}: longer than {years}; the largest window is "
                f"{largest} {self.unit}"
            )

    @property
    def is_datetime(self) -> bool:
        """Whether the window is meant for datetime columns (else for integer time)."""
        return self.unit != "units"

    @property
    def length(self) -> int:
        """In nanoseconds, or in ticks for ``units``; fractions of those never matter."""
        return int(round(self.amount * NANOSECONDS.get(self.unit, 1), 6))

    @property
    def seconds(self) -> float:
        """In seconds, or in ticks for ``units``: the scale on which arrival rates are given."""
        return self.length / 1e9 if self.is_datetime else float(self.length)

    def __str__(self) -> str:
        return f"{Constant(self.amount)} {self.unit}"


@dataclass(frozen=True)
class Pattern:
    """A pattern: ``PATTERN structure WHERE conditions STRATEGY strategy WITHIN window``.

    Attributes
    ----------
    structure : Structure
        SEQ, AND and OR over variables, nested to any depth.
    conditions : tuple of Clause
        The WHERE clause in conjunctive normal form; empty if there is none. Conjuncts that repeat
        or are weaker than another one are left out.
    window : Window
        The WITHIN clause.
    strategy : Strategy, default ANY
        The STRATEGY clause.

    Raises
    ------
    PatternError
        If its parts do not fit together, see :mod:`cepbench.patterns.validity`.
    """

    structure: Structure
    conditions: tuple[Clause, ...]
    window: Window
    strategy: Strategy = ANY

    def __post_init__(self) -> None:
        scopes = check_structures(self.structure.alternatives())
        variables = {variable.name: variable for variable in self.structure.variables()}
        clauses = {clause.comparisons: clause for clause in self.conditions}
        kept = tuple(clauses[conjunct] for conjunct in without_implied(clauses))
        object.__setattr__(self, "conditions", kept)
        for clause in self.conditions:
            check_clause(clause, variables, scopes)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, negated ones too, each once, in the order in which they were written."""
        return tuple(dict.fromkeys(self.structure.variables()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all variables, negated ones too, in the order in which they were written."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def positive(self) -> tuple[Variable, ...]:
        """The plain and the Kleene variables: what a match binds to events."""
        return tuple(v for v in self.variables if v.kind is not Kind.NEGATED)

    @cached_property
    def positive_names(self) -> tuple[str, ...]:
        """Names of the plain and the Kleene variables, the columns of a result's matches."""
        return tuple(variable.name for variable in self.positive)

    @cached_property
    def negated(self) -> tuple[Variable, ...]:
        """The negated variables."""
        return tuple(v for v in self.variables if v.kind is Kind.NEGATED)

    @property
    def operator(self) -> Operator:
        """The outermost operator."""
        return self.structure.operator

    def branches(self) -> tuple[Pattern, ...]:
        """The disjunctive normal form: patterns without OR whose matches make up this one's.

        In the order of writing, each with this pattern's window and strategy and with the
        conditions all of whose variables it has; ``(self,)`` if there is no OR
        [kolchinsky2018]_, section 4.
        """
        return tuple(dict.fromkeys(self.iter_branches()))

    def iter_branches(self) -> Iterator[Pattern]:
        """The branches one by one, for whoever may not need all of them; equal ones twice."""
        structures = self.structure.alternatives()
        if structures == (self.structure,):
            yield self
            return
        for structure in structures:
            names = {variable.name for variable in structure.variables()}
            # Made without the checks of a new one: whatever holds of all conditions and branches
            # holds of these.
            branch = object.__new__(Pattern)
            vars(branch).update(
                structure=structure,
                conditions=tuple(c for c in self.conditions if names.issuperset(c.variables)),
                window=self.window,
                strategy=self.strategy,
            )
            yield branch

    def clauses_between(self, first: str, second: str) -> tuple[Clause, ...]:
        """The conditions over exactly these two variables, or over one if both are the same."""
        wanted = {first, second}
        return tuple(clause for clause in self.conditions if set(clause.variables) == wanted)

    def __str__(self) -> str:
        # Brackets only where a disjunction stands beside other conjuncts: NOT, AND, OR bind in
        # this order, as in SQL.
        parts = [
            f"({clause})"
            if len(clause.comparisons) > 1 and len(self.conditions) > 1
            else f"{clause}"
            for clause in self.conditions
        ]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        strategy = f" STRATEGY {self.strategy}" if self.strategy != ANY else ""
        return f"PATTERN {self.structure}{where}{strategy} WITHIN {self.window}"

    def describe(self) -> str:
        """The pattern over several lines, one conjunct a line."""
        lines = [f"PATTERN {self.structure}"]
        for number, clause in enumerate(self.conditions):
            text = f"({clause})" if len(clause.comparisons) > 1 else f"{clause}"
            lines.append(f"{'WHERE  ' if number == 0 else '   AND '} {text}")
        if self.strategy != ANY:
            lines.append(f"STRATEGY {self.strategy}")
        return "\n".join([*lines, f"WITHIN  {self.window}"])

    def _repr_html_(self) -> str:
        return f'<pre class="cep-pattern">{html.escape(self.describe())}</pre>'
