"""Joint selectivities of conditions that share a variable."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cepbench.arguments import whole
from cepbench.errors import StatisticsError
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.equivalences import closed
from cepbench.patterns.model import Attribute, Clause, Kind, Pattern
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.numeric import NumericReader

#: Sampled combinations of events.
DRAWS = 100_000


@dataclass(frozen=True, eq=False)
class JointConditions:
    """The conditions of a pattern on sampled combinations of events."""

    #: The one or two variables of each group of conditions.
    variables: tuple[frozenset[str], ...]
    #: Conditions over the same variables are one group. Bool, shape (groups, draws).
    held: np.ndarray

    def log_factor(self, names: Iterable[str]) -> float:
        """ln of the correction of the product of selectivities over some variables.

        The correction is the frequency with which the conditions among ``names`` hold jointly,
        divided by the product of their individual frequencies; it is 1 if no two of them share a
        variable. Conditions that never held jointly count as half a draw.
        """
        wanted = frozenset(names)
        within = [k for k, those in enumerate(self.variables) if those <= wanted]
        total = 0.0
        for linked in _components(self.variables, within):
            singly = self.held[linked].mean(axis=1)
            if len(linked) > 1 and singly.all():
                together = float(self.held[linked].all(axis=0).mean())
                least = 0.5 / self.held.shape[1]
                total += math.log(max(together, least)) - float(np.log(singly).sum())
        return total


def measure_joint(
    pattern: Pattern, stream: EventStream, *, seed: int = 0, draws: int = DRAWS
) -> JointConditions:
    """Evaluate all conditions on the same sampled combinations of events.

    For three values from the same distribution, ``a < b`` and ``b < c`` hold with probability 1/2
    each and jointly with 1/6, not 1/4. The cost models of [kolchinsky2018]_, section 3, multiply
    selectivities as if conditions were independent.

    Every variable is bound to an event of its type drawn from the whole stream, independently of
    the others: correlation within a window is part of the measured selectivity of a pair already,
    and cancels in the correction.

    Conditions on Kleene variables are ignored, that is, assumed independent.

    Raises StreamError if the pattern does not fit the stream; StatisticsError if ``draws`` is not
    positive, or the stream has no event of some type.
    """
    whole(draws, "draws", StatisticsError, least=1)
    pattern, stream = under_one_hierarchy(pattern, stream)
    check_fit(pattern, stream)
    with reporting_missing_types("error"):
        check_types(pattern, stream)
    groups: dict[frozenset[str], list[Clause]] = {}
    plain = {variable.name for variable in pattern.variables if variable.kind is Kind.PLAIN}
    for clause in pattern.expanded.conditions:
        if clause.is_elementwise and plain.issuperset(clause.variables):
            groups.setdefault(frozenset(clause.variables), []).append(clause)
    rng = np.random.default_rng(seed)
    drawn: dict[str, np.ndarray] = {}
    for variable in pattern.variables:
        rows = stream.rows_of(variable.type)
        if not len(rows):
            raise StatisticsError(
                f"the stream has no event of type {variable.type_text} to draw for variable "
                f"{variable.name!r}; measure on a stream that has"
            )
        drawn[variable.name] = rng.choice(rows, draws)
    reader = NumericReader()

    def values(attribute: Attribute) -> np.ndarray:
        return reader.read(stream, attribute.name, drawn[attribute.variable])

    held = np.ones((len(groups), draws), dtype=bool)
    for row, clauses in zip(held, groups.values(), strict=True):
        for clause in clauses:
            row &= clause_holds(clause, values, reader.code)
    return JointConditions(tuple(groups), held)


def _components(variables: tuple[frozenset[str], ...], among: list[int]) -> list[list[int]]:
    """Connected components of conditions by shared variables."""
    linked = map(frozenset, closed(sorted(variables[k]) for k in among))
    return [[k for k in among if variables[k] <= names] for names in linked]
