"""A branch of a pattern as engines compile it: its variables, and the conditions on them.

All that does not depend on an engine or a plan is found once for each branch. An engine's layout is a
view of it: it numbers the values that it stores of events in its own columns, and tests conditions
where its idea wants them.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

from cepbench.engines.plan_runs.programs import compared
from cepbench.kernels.instructions import EQUAL
from cepbench.patterns.equivalences import Equalities, equal_values
from cepbench.patterns.model import Clause, Expression, Kind, Pattern
from cepbench.patterns.negations import Check


class CompiledBranch:
    """What all engines read of a pattern without OR."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        #: The positive ones in the order of the pattern, then the negated ones.
        self.leaves = (*pattern.positive, *pattern.negated)
        #: Variable → its place in ``leaves``.
        self.leaf_of = {leaf.name: number for number, leaf in enumerate(self.leaves)}
        self.variables = {variable.name: variable for variable in pattern.variables}
        self.kleene = frozenset(v.name for v in pattern.variables if v.kind is Kind.KLEENE)
        self.before = frozenset(pattern.structure.precedence())  #: the pattern's precedence
        alone = [c for c in pattern.conditions if len({*c.variables}) == 1 and c.is_elementwise]
        #: Conditions on each leaf alone, as far as single events satisfy them.
        self.filters = {
            leaf.name: tuple(clause for clause in alone if leaf.name in clause.variables)
            for leaf in self.leaves
        }
        #: Of the negated variables.
        self.checks = tuple(Check.of(pattern, variable.name) for variable in pattern.negated)
        #: Of the plain and Kleene variables.
        self.equalities = Equalities(pattern.conditions, pattern.planned_names)

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(pattern: Pattern) -> CompiledBranch:
        """The cached compilation of a pattern."""
        return CompiledBranch(pattern)

    @property
    def is_late(self) -> bool:
        """Whether a negated event may arrive after all other events."""
        return any(check.is_late for check in self.checks)

    @cached_property
    def between_positive(self) -> list[Clause]:
        """The conditions that mention no negated variable."""
        negated = {check.name for check in self.checks}
        return [c for c in self.pattern.conditions if negated.isdisjoint(c.variables)]

    @cached_property
    def partitions(self) -> list[dict[str, Expression]]:
        """The values that all events of a match share [wu2006]_: PAIS.

        Each is of all positive variables, and of the negated ones whose events are restricted to those
        with the same value.
        """
        parts = []
        for equal in equal_values(self.between_positive):
            part: dict[str, Expression] = {}
            for name, expression in equal:
                part.setdefault(name, expression)
            if part.keys() != set(self.pattern.positive_names):
                continue
            for check in self.checks:
                for clause in check.clauses:
                    found = compared(clause, (check.name,))
                    if found is not None and found.operator == EQUAL:
                        name, expression = found.right
                        if part.get(name) == expression:
                            part.setdefault(*found.left)
            parts.append(part)
        return parts
