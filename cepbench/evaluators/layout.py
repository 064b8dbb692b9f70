"""A pattern and a plan as the tables that the join kernels read.

Every node of the plan gets just those columns that a join above it will look at: timestamps where
an order of events is still to be checked, positions where events must differ or are reported, and
the values that later conditions compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from cepbench.evaluators.programs import (
    Derived,
    ProgramWriter,
    derived_values,
    operator_code,
    separated_sides,
)
from cepbench.kernels import tables
from cepbench.patterns.model import Clause, Pattern, Variable

#: A plan's tree: a variable's name, or a pair of trees.
Tree = str | tuple["Tree", "Tree"]


@dataclass
class _Node:
    """One node while the layout is being made."""

    variables: tuple[str, ...]
    left: int = -1
    right: int = -1
    timestamps: set[str] = field(default_factory=set)
    positions: set[str] = field(default_factory=set)
    values: set[Derived] = field(default_factory=set)
    clauses: list[Clause] = field(default_factory=list)
    order: list[tuple[str, str]] = field(default_factory=list)
    distinct: list[tuple[str, str]] = field(default_factory=list)
    drives: tuple[bool, bool] = (False, False)
    is_sorted: bool = True


@dataclass(frozen=True)
class JoinLayout:
    """A pattern and a plan, ready to run.

    Attributes
    ----------
    plan : cepbench.kernels.tables.Plan
    leaves : tuple of Variable
        In the order of the pattern; leaf ``i`` is node ``i``.
    filters : tuple of tuple of Clause
        Conditions on each leaf alone.
    values : tuple of tuple of Expression
        What each leaf's float columns hold.
    nodes : tuple of tuple of str
        The variables of each node.
    """

    plan: tables.Plan
    leaves: tuple[Variable, ...]
    filters: tuple[tuple[Clause, ...], ...]
    values: tuple[tuple[Derived, ...], ...]
    nodes: tuple[tuple[str, ...], ...]

    @property
    def integer_columns(self) -> int:
        """The largest number of integer columns that any node has."""
        return int(self.plan.nodes[:, tables.INTS].max())


def join_layout(
    pattern: Pattern, tree: Tree, *, positions: bool, code: Callable[[str], float]
) -> JoinLayout:
    """Lay out ``pattern`` for evaluation along ``tree``.

    Parameters
    ----------
    pattern : Pattern
    tree : nested pairs of names
        Over exactly the pattern's variables.
    positions : bool
        Whether matches are to be reported (else only counted, and no positions are kept for it).
    code : callable
        Text → its code, for texts that conditions mention.
    """
    before = pattern.structure.precedence()
    nodes = [_Node((variable.name,)) for variable in pattern.variables]
    leaf_of = {name: number for number, name in enumerate(pattern.names)}

    def add(part: Tree) -> int:
        if isinstance(part, str):
            return leaf_of[part]
        left, right = add(part[0]), add(part[1])
        joined = nodes[left].variables + nodes[right].variables
        nodes.append(_Node(tuple(sorted(joined, key=pattern.names.index)), left, right))
        return len(nodes) - 1

    root = add(tree)
    for node in nodes[len(leaf_of) :]:
        _find_conditions(node, nodes, pattern, before)
    if positions:
        nodes[root].positions = set(pattern.names)
    for node in reversed(nodes[len(leaf_of) :]):
        _pass_needs_down(node, nodes)
    return _Writer(pattern, nodes, before, positions, code).layout()


def _find_conditions(
    node: _Node, nodes: list[_Node], pattern: Pattern, before: set[tuple[str, str]]
) -> None:
    """What the join at ``node`` has to check."""
    left, right = set(nodes[node.left].variables), set(nodes[node.right].variables)
    node.clauses = [
        clause
        for clause in pattern.conditions
        if set(clause.variables) <= left | right
        and not set(clause.variables) <= left
        and not set(clause.variables) <= right
    ]

    def implied(x: str, y: str) -> bool:
        return any((x, z) in before and (z, y) in before for z in node.variables)

    node.order = [
        (x, y)
        for x, y in sorted(before)
        if ((x in left and y in right) or (x in right and y in left)) and not implied(x, y)
    ]
    types = {variable.name: variable.type for variable in pattern.variables}
    node.distinct = [
        (x, y)
        for x in nodes[node.left].variables
        for y in nodes[node.right].variables
        if types[x] == types[y] and (x, y) not in before and (y, x) not in before
    ]

    def can_be_last(mine: set[str], other: set[str]) -> bool:
        return not any(all((x, y) in before for x in mine) for y in other)

    node.drives = (can_be_last(left, right), can_be_last(right, left))
    # Rows that drive alone, in order of time, make rows in the same order.
    driver = nodes[node.left if node.drives[0] else node.right]
    node.is_sorted = not all(node.drives) and driver.is_sorted


def _pass_needs_down(node: _Node, nodes: list[_Node]) -> None:
    """Let the children keep what this join reads and what its parents asked it to keep."""
    for child in (nodes[node.left], nodes[node.right]):
        mine = set(child.variables)
        child.timestamps |= mine & (
            node.timestamps | {name for pair in node.order for name in pair}
        )
        child.positions |= mine & (
            node.positions | {name for pair in node.distinct for name in pair}
        )
        read = {value for clause in node.clauses for value in derived_values(clause)}
        child.values |= {value for value in node.values | read if value[0] in mine}


class _Writer:
    """Numbers the columns and writes the tables."""

    def __init__(
        self,
        pattern: Pattern,
        nodes: list[_Node],
        before: set[tuple[str, str]],
        positions: bool,
        code: Callable[[str], float],
    ) -> None:
        self.pattern = pattern
        self.nodes = nodes
        self.before = before
        self.reports = positions
        self.programs = ProgramWriter(code)
        self.root = len(nodes) - 1
        # Column numbers by what they hold: ("timestamp", a), ("position", a).
        self.ints: list[dict[tuple[str, str], int]] = []
        self.floats: list[dict[Derived, int]] = []
        self.table = np.full((len(nodes), tables.NODE_COLUMNS), -1, np.int64)

    def layout(self) -> JoinLayout:
        leaves = self.pattern.variables
        parent = {
            child: number
            for number, node in enumerate(self.nodes)
            for child in (node.left, node.right)
            if child >= 0
        }
        for number, node in enumerate(self.nodes):
            self._number_columns(number, node)
        rules: list[tuple[int, int, int]] = []
        spans = np.zeros((len(self.nodes), tables.RULE_KINDS + 1), np.int64)
        for number, node in enumerate(self.nodes):
            row = self.table[number]
            if number in parent:
                above = self.nodes[parent[number]]
                row[tables.KEPT] = above.drives[1] if above.left == number else above.drives[0]
            if node.left >= 0:
                row[tables.LEFT], row[tables.RIGHT] = node.left, node.right
                row[tables.LEFT_DRIVES], row[tables.RIGHT_DRIVES] = node.drives
            spans[number, 0] = len(rules)
            for kind, written in enumerate(self._rules(number, node)):
                rules += written
                spans[number, kind + 1] = len(rules)
        plan = tables.Plan(
            nodes=self.table,
            spans=spans,
            rules=np.array(rules, np.int64).reshape(-1, 3),
            constants=np.array(self.programs.constants, np.float64),
            window=self.pattern.window.length,
        )
        alone = [
            tuple(
                clause
                for clause in self.pattern.conditions
                if set(clause.variables) == {variable.name}
            )
            for variable in leaves
        ]
        values = tuple(tuple(self.floats[number]) for number in range(len(leaves)))
        names = tuple(node.variables for node in self.nodes)
        return JoinLayout(plan, leaves, tuple(alone), values, names)

    def _number_columns(self, number: int, node: _Node) -> None:
        row = self.table[number]
        columns: dict[tuple[str, str], int] = {}
        if node.left < 0:
            (name,) = node.variables
            columns = {("timestamp", name): 0, ("position", name): 1}
            row[tables.EARLIEST], row[tables.LATEST] = 0, 0
            count = 2
        else:
            row[tables.EARLIEST], row[tables.LATEST] = 0, 1
            count = 2
            for name in node.variables:
                others = [other for other in node.variables if other != name]
                if all((name, other) in self.before for other in others):
                    columns["timestamp", name] = 0
                elif all((other, name) in self.before for other in others):
                    columns["timestamp", name] = 1
                elif name in node.timestamps:
                    columns["timestamp", name] = count
                    count += 1
            for name in node.variables:
                if name in node.positions:
                    columns["position", name] = count
                    count += 1
        row[tables.INTS], row[tables.FLOATS] = count, len(node.values)
        row[tables.SORTED] = node.is_sorted
        self.ints.append(columns)
        ordered = sorted(node.values, key=lambda value: (value[0], str(value[1])))
        self.floats.append({value: column for column, value in enumerate(ordered)})

    def _rules(self, number: int, node: _Node) -> Iterable[list[tuple[int, int, int]]]:
        """The rules of each kind, in the order of their numbers."""
        if node.left < 0:
            return [[] for _ in range(tables.RULE_KINDS)]
        bounds = [self._bounds(node, outer_side=0), self._bounds(node, outer_side=1)]
        tested = []
        for rules, inner in zip(bounds, (node.right, node.left), strict=True):
            found = set() if not self.nodes[inner].is_sorted else {self.table[inner, tables.LATEST]}
            columns = {column for _, column, _ in rules} - found
            tested.append([(column, 0, 0) for column in sorted(columns)])
        compared, programs = self._conditions(node)
        distinct = [
            (self.ints[node.left]["position", x], self.ints[node.right]["position", y], 0)
            for x, y in node.distinct
        ]
        return [*self._copies(number, node), *bounds, *tested, distinct, compared, programs]

    def _copies(self, number: int, node: _Node) -> list[list[tuple[int, int, int]]]:
        ints: list[tuple[int, int, int]] = []
        floats: list[tuple[int, int, int]] = []
        for side, child in enumerate((node.left, node.right)):
            mine = self.nodes[child].variables
            if number == self.root:
                # The root's rows are matches: only positions, one a variable of the pattern.
                if self.reports:
                    ints += [
                        (side, self.ints[child]["position", name], self.pattern.names.index(name))
                        for name in mine
                    ]
                continue
            ints += [
                (side, self.ints[child][key], target)
                for key, target in self.ints[number].items()
                if key[1] in mine and target > 1
            ]
            floats += [
                (side, self.floats[child][value], target)
                for value, target in self.floats[number].items()
                if value[0] in mine
            ]
        return [ints, floats]

    def _bounds(self, node: _Node, *, outer_side: int) -> list[tuple[int, int, int]]:
        """What an outer row on one side says about the timestamps of inner rows."""
        outer, inner = (node.left, node.right) if outer_side == 0 else (node.right, node.left)
        mine, its = self.ints[outer], self.ints[inner]
        bounds = []
        for x, y in node.order:
            if x in self.nodes[outer].variables:
                bounds.append((tables.AFTER, its["timestamp", y], mine["timestamp", x]))
            else:
                bounds.append((tables.BEFORE, its["timestamp", x], mine["timestamp", y]))
        earliest, latest = (int(self.table[inner, c]) for c in (tables.EARLIEST, tables.LATEST))
        if node.drives[outer_side]:
            newest = int(self.table[outer, tables.LATEST])
            bounds.append((tables.SINCE, earliest, newest))
            if earliest != latest and self.nodes[inner].is_sorted:
                # It follows, and narrows the range.
                bounds.append((tables.SINCE, latest, newest))
        if node.drives[1 - outer_side]:
            bounds.append((tables.UNTIL, latest, int(self.table[outer, tables.EARLIEST])))
        return bounds

    def _conditions(
        self, node: _Node
    ) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
        """Plain comparisons of two columns, and programs for all other clauses."""
        left, right = self.floats[node.left], self.floats[node.right]
        mine = set(self.nodes[node.left].variables)
        compared, programs = [], []
        for clause in node.clauses:
            sides = separated_sides(clause)
            if sides is None:
                programs += self.programs.instructions(
                    clause, mine, left.__getitem__, right.__getitem__
                )
                continue
            first, operator, second = sides
            if first[0] not in mine:
                first, operator, second = second, _FLIPPED[operator], first
            compared.append((left[first], right[second], operator_code(operator)))
        return compared, programs


_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
