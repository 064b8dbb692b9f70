"""Compilation of patterns and plans to tables for the kernels of the instance-based engines.

Conditions are assigned to nodes by :mod:`cepbench.engines.plan_runs.nodes`, as for the join engine.
Here they read the events of an instance, which is a record of references to events.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.engines.plan_runs.engine import Layout, columns_of
from cepbench.engines.plan_runs.nodes import Node, PlannedNodes, Tree, raw_values
from cepbench.engines.plan_runs.programs import (
    Codes,
    RowPrograms,
    Rule,
    compared,
    rule_tables,
)
from cepbench.engines.plan_runs.tables import PlanTables
from cepbench.kernels.counts import lifetime_shift
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Attribute, Clause, Expression, Kind, Pattern, Variable
from cepbench.patterns.negations import Check
from cepbench.planning.plans.tree import Placements


@dataclass(frozen=True, kw_only=True)
class InstanceLayout(Layout):
    """Compiled patterns and plans."""

    plan: tables.Plan
    #: The columns of an event filled by each leaf, with their expressions.
    values: tuple[tuple[tuple[int, Expression], ...], ...]
    width: int  #: number of columns of an event
    has_sets: bool


def instance_layout(
    branches: Sequence[Pattern],
    trees: Sequence[Tree],
    placements: Sequence[Placements],
    written: Sequence[str],
    code: Codes,
) -> InstanceLayout:
    """Compile branches to tables; see :class:`PlanTables`."""
    return _Writer(branches, trees, placements, written, code, positions=True).layout()


class _Columns:
    """Numbers the stored values of the events of each type, or of all, if an event can be bound to
    variables of different types.
    """

    def __init__(self, *, overlap: bool) -> None:
        self._overlap = overlap
        self._of_type: dict[str | None, dict[object, int]] = {}
        self.of_leaf: dict[int, dict[int, Expression]] = {}

    def number(self, leaf: int, variable: Variable, expression: Expression) -> int:
        """The column of an expression over one variable's event."""
        key: object = (leaf, expression)
        if isinstance(expression, Attribute):
            # Stored once for all variables of a type.
            key = expression.name
        columns = self._of_type.setdefault(None if self._overlap else variable.type, {})
        column = columns.setdefault(key, len(columns))
        self.of_leaf.setdefault(leaf, {})[column] = expression
        return column

    @property
    def width(self) -> int:
        """The maximum number of columns of events of any type."""
        return max(map(len, self._of_type.values()), default=0)


class _Writer(PlanTables):
    """Numbers columns of values, and writes the rules."""

    columns = tables.NODE_COLUMNS
    late = False  #: whether matches are deferred

    def layout(self) -> InstanceLayout:
        self.values = _Columns(overlap=_types_overlap(self.planned))
        several = len(self.planned) > 1
        column = int(several)
        for branch, part in enumerate(self.planned):
            writer = _BranchWriter(self, branch, part)
            writer.write(column)
            column += columns_of(part.pattern)
            root = writer.place(len(part.nodes) - 1)
            self.table[root, tables.BRANCH] = branch if several else -1
        spans, rules = rule_tables(self.owned, tables.RULE_KINDS)
        plan = tables.Plan(
            nodes=self.table,
            spans=spans,
            rules=rules,
            constants=np.array(self.programs.constants, np.float64),
            window=self.planned[0].pattern.window.length,
            lifetime_shift=lifetime_shift(self.planned[0].pattern.window.length),
            leaves=self.leaves,
            retained=max(
                int(self.table[: self.leaves, tables.RETAINED].max()),
                # Matches are decided when the window of their last event has passed.
                1 + int(self.late and self.consuming),
            ),
            late=self.late,
            consuming=self.consuming,
        )
        return InstanceLayout(
            plan=plan,
            **self.shared(),
            values=tuple(
                tuple(self.values.of_leaf.get(leaf, {}).items()) for leaf in range(self.leaves)
            ),
            width=self.values.width,
            columns=column,
            has_sets=any(part.kleene for part in self.planned),
        )


def _types_overlap(planned: Sequence[PlannedNodes]) -> bool:
    """Whether one event can be of different types of variables, maybe of different branches."""
    by_type = {leaf.type: leaf for part in planned for leaf in part.branch.leaves}
    return any(
        planned[0].pattern.overlap(*pair) for pair in itertools.combinations(by_type.values(), 2)
    )


class _BranchWriter:
    """Writes the nodes of one branch."""

    def __init__(self, whole: _Writer, branch: int, planned: PlannedNodes) -> None:
        self.whole = whole
        self.planned = planned
        self.pattern = planned.pattern
        #: Node → its number in the tables.
        self.place = partial(whole.place, branch)
        self.leaf_of = {name: self.place(at) for name, at in planned.leaf_of.items()}
        self.programs = RowPrograms(whole.programs, self._read, self.leaf_of)

    def write(self, column: int) -> None:
        """Write all nodes; the branch's matches begin at ``column``."""
        planned, whole = self.planned, self.whole
        for number, node in enumerate(planned.nodes):
            place = self.place(number)
            whole.names[place] = node.variables
            row = whole.table[place]
            if node.is_leaf:
                row[tables.IS_NEGATED] = planned.branch.leaves[number].kind is Kind.NEGATED
                row[tables.RETAINED], row[tables.WIDTH] = 1, 0
                continue
            is_root = node is planned.nodes[-1]
            row[tables.LEFT] = self.place(node.left) if node.left >= 0 else -1
            row[tables.RIGHT] = self.place(node.right)
            row[tables.WIDTH] = tables.VARIABLES + len(node.variables)
            row[tables.LEFT_DRIVES], row[tables.RIGHT_DRIVES] = node.drives
            row[tables.MAKES] = self.leaf_of[node.makes] if node.makes in planned.kleene else -1
            row[tables.IS_ROOT] = is_root
            row[tables.IS_ORDERED] = node.is_ordered
            whole.owned[place] = self._rules(node, column if is_root else None)
            self._write_checks(node, row)
            late = row[tables.LAST_CHECK] < row[tables.LAST_LATE]
            whole.late |= bool(late)
            row[tables.IS_STORED] = not is_root or late or row[tables.MAKES] >= 0

    def _rules(self, node: Node, column: int | None) -> dict[int, list[Rule]]:
        kleene = self.planned.kleene
        names: Iterable[str] = node.variables
        if column is not None:
            names = sorted(names, key=self.whole.written.index)
        slots: list[Rule] = []
        # Columns of a match are in the order of the branch's variables.
        targets: dict[str, int] = {}
        if column is not None:
            for name in self.pattern.positive_names:
                targets[name] = column
                column += 2 if name in kleene else 1
        for name in names:
            slots.append((self.leaf_of[name], int(name in kleene), targets.get(name, -1), 0))
        # Of the set under construction the new member is tested.
        made = kleene - {node.makes}
        return {
            tables.SLOTS: slots,
            tables.ORDER: [self._pair(x, y, made) for x, y in node.order],
            tables.DISTINCT: [
                self._pair(x, y, made) for x, y in (*node.distinct, *node.far_distinct)
            ],
            **self._conditions(node.joined),
            tables.STEP: self._clauses(node.steps, kleene),
            tables.ROW: self._clauses(node.rows, kleene),
        }

    def _write_checks(self, node: Node, row: np.ndarray) -> None:
        owned = self.whole.owned
        row[tables.FIRST_CHECK] = len(owned)
        owned += [self._check_rules(check) for check in node.checks if not check.is_late]
        row[tables.LAST_CHECK] = len(owned)
        owned += [self._check_rules(check) for check in node.checks if check.is_late]
        row[tables.LAST_LATE] = len(owned)
        for check in node.checks:
            is_asked_later = check.is_late and (check.within[0] or self.whole.consuming)
            self.whole.table[self.leaf_of[check.name], tables.RETAINED] = 1 + int(is_asked_later)

    def _check_rules(self, check: Check) -> dict[int, list[Rule]]:
        kleene, name = self.planned.kleene, check.name
        plain = [clause for clause in check.clauses if not set(clause.variables) & kleene]
        others = [clause for clause in check.clauses if set(clause.variables) & kleene]
        order = [(x, name) for x in check.after] + [(name, y) for y in check.before]
        return {
            tables.SLOTS: [(self.leaf_of[name], 0, -1, 0)],
            tables.ORDER: [self._pair(x, y, kleene) for x, y in order],
            tables.DISTINCT: [self._pair(x, name, kleene) for x in check.distinct],
            **self._conditions(plain),
            tables.ROW: self._clauses(others, kleene),
        }

    def _pair(self, x: str, y: str, sets: Container[str]) -> Rule:
        return self.leaf_of[x], int(x in sets), self.leaf_of[y], int(y in sets)

    def _conditions(self, clauses: Iterable[Clause]) -> dict[int, list[Rule]]:
        """Comparisons of two values, and programs for all other conditions on single events."""
        pairs = [(clause, compared(clause)) for clause in clauses]
        rules = [
            (self._value(found.left), self._value(found.right), found.operator, 0)
            for _, found in pairs
            if found is not None
        ]
        others = [clause for clause, found in pairs if found is None]
        return {tables.COMPARE: rules, tables.CLAUSES: self._clauses(others, ())}

    def _clauses(self, clauses: Iterable[Clause], sets: Collection[str]) -> list[Rule]:
        places = {name: (self.leaf_of[name], 0) for name in sets}
        rules: list[Rule] = []
        for clause in clauses:
            plain = [value for value in raw_values(clause) if value[0] not in sets]
            own: dict[Derived, int] = {value: self._value(value) for value in plain}
            rules += self.programs.clause(clause, places, own)
        return rules

    def _value(self, derived: Derived) -> int:
        """A value of a plain variable's event, as one number."""
        leaf = self.leaf_of[derived[0]]
        return leaf * tables.VALUE + self._read(leaf, derived)

    def _read(self, leaf: int, derived: Derived) -> int:
        name, expression = derived
        return self.whole.values.number(leaf, self.planned.branch.variables[name], expression)
