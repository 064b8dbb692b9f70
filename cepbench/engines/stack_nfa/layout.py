"""Compilation of a sequence to tables for the backward search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cepbench.engines.plan_runs.engine import Layout
from cepbench.engines.plan_runs.kernels import sequences
from cepbench.engines.plan_runs.nodes import PlannedNodes
from cepbench.engines.plan_runs.programs import Codes, ProgramWriter, Rule, rule_tables
from cepbench.engines.plan_runs.sequences import candidate_rules
from cepbench.engines.stack_nfa.kernels import search
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Clause, Expression, Pattern
from cepbench.patterns.negations import Check
from cepbench.planning.plans.tree import Tree


@dataclass(frozen=True, kw_only=True)
class SequenceLayout(Layout):
    """A compiled sequence."""

    plan: search.Plan
    #: The columns of values of each stack, by their numbers.
    values: tuple[tuple[tuple[int, Expression], ...], ...]
    #: The columns by which each stack is partitioned, counted within it; none for all stacks, or
    #: for those of negated items whose events are of any partition.
    keys: tuple[tuple[int, ...], ...]
    checks: tuple[Check, ...]  #: of the negated items, in the order of their stacks
    window: int


def sequence_layout(branch: Pattern, tree: Tree[str], code: Codes) -> SequenceLayout:
    """Compile a SEQ of plain and negated items, none of which comes last; the tree is right-deep in
    written order, as the search binds them.
    """
    return _Writer(branch, tree, code).layout()


class _Writer:
    """Numbers columns and writes rules."""

    def __init__(self, branch: Pattern, tree: Tree[str], code: Codes) -> None:
        self._branch = branch
        self._planned = PlannedNodes(branch, tree, positions=False)
        self._programs = ProgramWriter(code)
        self._columns: dict[Derived, int] = {}
        self._partitions = self._planned.branch.partitions

    def layout(self) -> SequenceLayout:
        planned, items = self._planned, len(self._branch.positive)
        branch, checks = planned.branch, planned.branch.checks
        joins = planned.nodes[planned.inner :] if items > 1 else []
        # The first join binds the item before the last one.
        owned: list[dict[int, list[Rule]]] = [
            self._rules(name, join.joined)
            for name, join in zip(self._branch.positive_names, reversed(joins), strict=False)
        ]
        owned += [{} for _ in range(items - len(owned))]
        owned += [self._rules(check.name, check.clauses) for check in checks]
        shared = [
            [self._column((leaf.name, part[leaf.name])) for part in self._partitions]
            if self._is_partitioned(leaf.name)
            else []
            for leaf in branch.leaves
        ]
        columns = [
            [(n, value) for (name, value), n in self._columns.items() if name == leaf.name]
            for leaf in branch.leaves
        ]
        spans, rules = rule_tables(owned, sequences.RULE_KINDS)
        leaf_of = branch.leaf_of
        plan = search.Plan(
            items=items,
            spans=spans,
            rules=rules,
            constants=np.array(self._programs.constants, np.float64),
            negations=np.array(
                [
                    (
                        leaf_of[check.name],
                        leaf_of[check.after[0]] if check.after else items - 1,
                        leaf_of[check.before[0]],
                    )
                    for check in checks
                ],
                np.int64,
            ).reshape(-1, 3),
        )
        return SequenceLayout(
            leaves=branch.leaves,
            filters=tuple(branch.filters.values()),
            nodes=tuple(node.variables for node in planned.nodes),
            columns=items,
            plan=plan,
            values=tuple(map(tuple, columns)),
            keys=tuple(
                tuple([n for n, _ in its].index(number) for number in numbers)
                for its, numbers in zip(columns, shared, strict=True)
            ),
            checks=checks,
            window=self._branch.window.length,
        )

    def _is_partitioned(self, name: str) -> bool:
        return all(name in part for part in self._partitions)

    def _rules(self, name: str, clauses: Iterable[Clause]) -> dict[int, list[Rule]]:
        """The conditions that are tested for each candidate of a variable."""

        def is_shared(left: Derived, right: Derived) -> bool:
            return self._is_partitioned(name) and any(
                part.get(left[0]) == left[1] and part.get(right[0]) == right[1]
                for part in self._partitions
            )

        return candidate_rules(
            self._programs,
            name,
            clauses,
            self._column,
            lambda value: self._planned.leaf_of[value[0]],
            is_shared,
        )

    def _column(self, derived: Derived) -> int:
        return self._columns.setdefault(derived, len(self._columns))
