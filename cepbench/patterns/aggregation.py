"""The clauses GROUP BY and AGG: aggregates over the matches of a pattern [qi2014]_, section 2.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cepbench.errors import (
    PatternNameError,
    PatternOperatorError,
    PatternSyntaxError,
    UnsupportedPatternError,
    did_you_mean,
)
from cepbench.patterns.expressions import quoted_unless_plain
from cepbench.patterns.structure import Structure, Variable
from cepbench.patterns.validity import blaming, check_bound

#: The functions over all matches.
FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX")


@dataclass(frozen=True, slots=True)
class EventType:
    """The type of an event as a key of GROUP BY, ``type(a)`` and ``type(a, level)``."""

    #: Of the concept that the event is of; without one, or above this level, its own type.
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """One key of the GROUP BY clause."""

    attribute: str | EventType
    #: Whose event's value labels a match. Without it all events of a match have to share the value,
    #: as by ``[attribute]``, negated ones included.
    variable: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.attribute, EventType) and self.variable is None:
            raise PatternSyntaxError("GROUP BY of a type without an item; write GROUP BY type(a)")

    def __str__(self) -> str:
        if isinstance(self.attribute, str):
            return _dotted(self.variable, self.attribute)
        level = "" if self.attribute.level is None else f", {self.attribute.level}"
        return f"type({_dotted(self.variable)}{level})"


@dataclass(frozen=True, slots=True)
class MatchAggregate:
    """One value of the AGG clause.

    Raises PatternNameError if the function is unknown; PatternSyntaxError if a function other than
    COUNT has no attribute.
    """

    function: str
    #: Over whose events it is, each once for every match that it is in. Without it, COUNT is the
    #: number of matches.
    variable: str | None = None
    #: Over whose values it is; missing ones are skipped. Without it, COUNT is over events.
    attribute: str | None = None

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise PatternNameError(
                f"unknown aggregate {self.function!r}; use one of {', '.join(FUNCTIONS)}"
                f"{did_you_mean(self.function.upper(), FUNCTIONS)}"
            )
        if self.function != "COUNT" and self.attribute is None:
            raise PatternSyntaxError(
                f"{self} has no attribute; write {self.function}({self.variable or 'a'}.price)"
            )

    def __str__(self) -> str:
        if self.variable is None:
            return self.function
        return f"{self.function}({_dotted(self.variable, self.attribute)})"


def _dotted(*names: str | None) -> str:
    return ".".join(quoted_unless_plain(name) for name in names if name is not None)


def check_aggregation(
    group_by: Sequence[Grouping],
    aggregates: Sequence[MatchAggregate],
    variables: Mapping[str, Variable],
    branches: Sequence[Structure],
) -> None:
    """Check that each key and each aggregate has a value for every match.

    Raises PatternSyntaxError for GROUP BY without AGG; PatternNameError for an unknown variable,
    and an aggregate that is listed twice; PatternOperatorError for a negated variable, and a key of
    a variable that has a set of events or is not in all branches; UnsupportedPatternError if a
    negation or group may be decided only when all events of the match have been seen.
    """
    if group_by and not aggregates:
        raise PatternSyntaxError(
            "GROUP BY without AGG; add what to compute for each group, as in GROUP BY "
            f"{', '.join(map(str, group_by))} AGG COUNT",
            culprit=group_by[0],
        )
    parts: list[Grouping | MatchAggregate] = [*group_by, *aggregates]
    for part in parts:
        if part.variable is not None:
            with blaming(part):
                clause = "GROUP BY" if isinstance(part, Grouping) else "AGG"
                check_bound(clause, part.variable, variables)
    for key in group_by:
        if key.variable is not None:
            with blaming(key):
                _check_key(key, variables[key.variable], branches)
    for place, aggregate in enumerate(aggregates):
        if aggregate in aggregates[:place]:
            raise PatternNameError(f"AGG lists {aggregate} twice; remove one", culprit=aggregate)
    if aggregates:
        for variable in (its for branch in branches for its in branch.open_items(at_start=False)):
            raise UnsupportedPatternError(
                f"AGG with {variable}, which no other item follows: it is decided only when the "
                "window has passed, and the match no longer counts; put an item after it, or leave "
                "it out",
                culprit=aggregates[0],
            )


def _check_key(key: Grouping, variable: Variable, branches: Sequence[Structure]) -> None:
    """Check that a key has one value for each match."""
    if variable.is_set:
        shared = ""
        if isinstance(key.attribute, str):
            name = quoted_unless_plain(key.attribute)
            shared = f"{name}, which all events of a match then share, or by "
        raise PatternOperatorError(
            f"GROUP BY {key}, but {variable.name} has a set of events with a value each; group by "
            f"{shared}another variable"
        )
    without = next((b for b in branches if variable not in b.variables()), None)
    if without is not None:
        raise PatternOperatorError(
            f"GROUP BY {key}, but {without}, an alternative of OR, has no {variable.name}; use "
            "this name in each alternative, or write one pattern for each"
        )
