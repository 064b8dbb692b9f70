"""The nodes of a plan's tree: their variables, conditions and columns.

From these :mod:`cepbench.engines.joins.layout` makes the tables that the kernels read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise

from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.programs import derived_values
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Attribute, Clause, Pattern
from cepbench.patterns.negations import Check
from cepbench.planning.plans.tree import Placements

#: A plan's tree: a variable's name, or a pair of trees.
Tree = str | tuple["Tree", "Tree"]

#: The content of an integer column of a row: a keyword and a variable's name.
Key = tuple[str, str]


@dataclass
class Node:
    """One node of a plan."""

    variables: tuple[str, ...]  #: bound by its rows, in the order of the pattern
    #: Numbers of its children; -1 for none. A node that creates sets has the leaf of the Kleene
    #: variable on the right, and may have no left child.
    left: int = -1
    right: int = -1
    makes: str = ""  #: the variable of the sets that it creates, or ""
    #: Variables whose timestamps ("earliest" or "latest", name), positions, ranks and sets its rows
    #: have.
    times: set[Key] = field(default_factory=set)
    positions: set[str] = field(default_factory=set)
    ranks: set[str] = field(default_factory=set)
    #: How many events before a variable's event in its partition, negative for its time, and that variable.
    earlier: set[tuple[int, str]] = field(default_factory=set)
    sets: set[str] = field(default_factory=set)
    values: set[Derived] = field(default_factory=set)  #: the values that its rows have
    #: Conditions on pairs of rows of its children.
    joined: list[Clause] = field(default_factory=list)
    #: Conditions on neighbours in the set under construction, and on new rows.
    steps: list[Clause] = field(default_factory=list)
    rows: list[Clause] = field(default_factory=list)
    #: Pairs x, y of variables, one of each child, such that x is earlier.
    order: list[tuple[str, str]] = field(default_factory=list)
    #: Pairs that must be different events: one of each child, and those with sets.
    distinct: list[tuple[str, str]] = field(default_factory=list)
    far_distinct: list[tuple[str, str]] = field(default_factory=list)
    #: Pairs x, y, one of each child, x before y in the pattern, with minimum and maximum of
    #: rank(y) - rank(x); of sets the rank of the last event of x and of the first one of y.
    apart: list[tuple[str, str, int, int]] = field(default_factory=list)
    #: One such pair x, y of which x is earlier, and rank(y) - rank(x), if there is one row at most with
    #: an x that can join a row with a y.
    successor: tuple[str, str, int] | None = None
    checks: list[Check] = field(default_factory=list)
    #: Whether a row of the left and the right child can have the last event.
    drives: tuple[bool, bool] = (False, False)
    #: Whether each variable of the left child is earlier or later than each of the right one.
    is_ordered: bool = False
    is_sorted: bool = True  #: whether rows are created in the order of their latest timestamp
    is_contiguous: bool = False  #: whether rows must be tested for consecutive ranks

    @property
    def is_leaf(self) -> bool:
        """Whether its rows are events."""
        return self.right < 0


class PlannedNodes:
    """The nodes of a plan for a pattern without OR."""

    def __init__(
        self, pattern: Pattern, tree: Tree, *, positions: bool, placements: Placements = ()
    ) -> None:
        if not is_plain_chain(pattern):
            # Else events whose ranks are looked up are of one partition.
            pattern = pattern.with_partition()
        self.pattern = pattern
        #: The variables below the lowest node at which a negated variable may be checked.
        self.placements = dict(placements)
        branch = self.branch = CompiledBranch.of(pattern)
        self.before, self.kleene, self.leaf_of = branch.before, branch.kleene, branch.leaf_of
        #: Leaves of the positive variables in the order of the pattern, then of the negated ones;
        #: then the inner nodes, children before parents.
        self.nodes = [Node((leaf.name,)) for leaf in branch.leaves]
        self.inner = len(self.nodes)  #: the number of the first inner node
        root = self._add(tree)
        if self.nodes[root].is_leaf:
            self._make_sets(-1, root)
        for node in self.nodes[self.inner :]:
            self._find_conditions(node)
        self._place_checks()
        self.checks = sum(len(node.checks) for node in self.nodes)  #: how many there are
        self._find_ranks()
        root_node = self.nodes[-1]
        if positions:
            root_node.positions |= set(pattern.positive_names) - self.kleene
            root_node.sets |= self.kleene
        if pattern.strategy.name == "consuming":
            for node in self.nodes[self.inner :]:
                node.positions |= set(node.variables) - self.kleene
                node.sets |= set(node.variables) & self.kleene
        for node in reversed(self.nodes[self.inner :]):
            self._add_own_needs(node)
            self._pass_needs_down(node)

    def _add(self, part: Tree) -> int:
        if isinstance(part, str):
            return self.leaf_of[part]
        left, right = self._add(part[0]), self._add(part[1])
        if self._is_kleene_leaf(right):
            if self._is_kleene_leaf(left):
                left = self._make_sets(-1, left)
            return self._make_sets(left, right)
        if self._is_kleene_leaf(left):
            return self._make_sets(right, left)
        self.nodes.append(Node(self._joined(left, right), left, right))
        return len(self.nodes) - 1

    def _make_sets(self, left: int, leaf: int) -> int:
        (name,) = self.nodes[leaf].variables
        variables = self._joined(left, leaf) if left >= 0 else (name,)
        self.nodes.append(Node(variables, left, leaf, makes=name))
        return len(self.nodes) - 1

    def _is_kleene_leaf(self, number: int) -> bool:
        return self.nodes[number].is_leaf and self.nodes[number].variables[0] in self.kleene

    def _joined(self, left: int, right: int) -> tuple[str, ...]:
        both = {*self.nodes[left].variables, *self.nodes[right].variables}
        return tuple(name for name in self.pattern.positive_names if name in both)

    def _find_conditions(self, node: Node) -> None:
        """The conditions to check at ``node``."""
        right = set(self.nodes[node.right].variables)
        left = set(node.variables) - right
        before, equalities = self.before, self.branch.equalities
        equal = equalities.between(left, right, self.kleene - {node.makes})
        unwritten = [clause for clause in equal if clause not in equalities]
        for clause in (*unwritten, *self.pattern.conditions):
            mentioned = set(clause.variables)
            if not mentioned <= left | right or mentioned <= left:
                continue
            if clause in equalities and clause not in equal:
                continue  # follows from those tested here and below
            if mentioned <= right and (node.makes == "" or clause.is_elementwise):
                continue
            self._assign(clause, node, mentioned)

        def implied(x: str, y: str) -> bool:
            return any((x, z) in before and (z, y) in before for z in node.variables)

        node.order = [
            (x, y)
            for x, y in sorted(before)
            if ((x in left and y in right) or (x in right and y in left)) and not implied(x, y)
        ]
        for x in (name for name in node.variables if name in left):
            for y in (name for name in node.variables if name in right):
                if self._overlap(x, y) and not {(x, y), (y, x)} & before:
                    # A set under construction is tested event by event.
                    far = x in self.kleene or (y in self.kleene and y != node.makes)
                    (node.far_distinct if far else node.distinct).append((x, y))

        def can_be_last(mine: set[str], other: set[str]) -> bool:
            return bool(mine) and not any(all((x, y) in before for x in mine) for y in other)

        node.drives = (can_be_last(left, right), can_be_last(right, left))
        node.is_ordered = all({(x, y), (y, x)} & before for x in left for y in right)
        # If one side drives alone, in time order, rows are created in that order.
        driver = self.nodes[node.left if node.drives[0] else node.right]
        node.is_sorted = not node.makes and not all(node.drives) and driver.is_sorted

    def _assign(self, clause: Clause, node: Node, mentioned: set[str]) -> None:
        others = mentioned - {node.makes}
        if not mentioned & self.kleene or (
            node.makes in mentioned and clause.is_elementwise and not others & self.kleene
        ):
            node.joined.append(clause)
        elif node.makes in mentioned and not others & self.kleene and _holds_step_by_step(clause):
            node.steps.append(clause)
        else:
            node.rows.append(clause)

    def _place_checks(self) -> None:
        """Check each negated variable at the lowest node, at or above its placement, where it is exact."""
        for check in self.branch.checks:
            placed = set(self.placements.get(check.name, ()))
            for node in self.nodes[self.inner :]:
                if placed <= set(node.variables) and check.is_exact_at(set(node.variables)):
                    node.checks.append(check)
                    break

    def _overlap(self, x: str, y: str) -> bool:
        """Whether one event can be bound to either variable."""
        variables = self.branch.variables
        return self.pattern.overlap(variables[x], variables[y])

    def _find_ranks(self) -> None:
        """The bounds on differences of ranks under contiguity."""
        if "contiguity" not in self.pattern.strategy.name:
            return
        positive = self.pattern.positive_names
        is_chain = self.is_chain
        self.nodes[-1].is_contiguous = bool(self.kleene) or not is_chain
        for node in self.nodes[self.inner :]:
            if node.is_contiguous:
                node.ranks |= set(node.variables) - self.kleene
                node.sets |= set(node.variables) & self.kleene
            right = set(self.nodes[node.right].variables)
            for x, y in combinations(node.variables, 2):
                limits = self._ranks_between(x, y, positive, is_chain)
                if (x in right) != (y in right) and limits is not None:
                    node.apart.append((x, y, *limits))
            if is_chain and node.left >= 0 and not node.makes:
                self._find_successor(node)

    def _find_successor(self, node: Node) -> None:
        """The pair of variables by which the only row of a child that can join is found."""
        driven, driver = self.nodes[node.left], self.nodes[node.right]
        if node.drives[0]:
            driven, driver = driver, driven
        apart = {(x, y): most for x, y, _, most in node.apart}
        apart |= {(y, x): -least for x, y, least, _ in node.apart}
        last = driven.variables[-1]
        next_one = next((y for y in driver.variables if apart.get((last, y), 0) > 0), "")
        # Rows are created in the order of their last event. They differ in it if it determines all
        # others, and so do all differences of ranks.
        if (
            driven.is_sorted
            and not self.kleene & {next_one, *driven.variables}
            and all((x, next_one) in apart for x in driven.variables)
        ):
            node.successor = (last, next_one, apart[last, next_one])
            node.apart = []

    def _ranks_between(
        self, x: str, y: str, positive: tuple[str, ...], is_chain: bool
    ) -> tuple[int, int] | None:
        at, to = positive.index(x), positive.index(y)
        if not is_chain:
            return None if self.kleene else (1 - len(positive), len(positive) - 1)
        if self.kleene & set(positive[min(at, to) + 1 : max(at, to)]):
            return None
        return to - at, to - at

    @property
    def is_chain(self) -> bool:
        """Whether all items of the pattern are ordered in time."""
        return _is_chain(self.branch)

    @property
    def reach(self) -> int:
        """How many events before another one an event of its match can be, if they are in no order; 0
        where that is not bounded by their number.
        """
        is_bounded = "contiguity" in self.pattern.strategy.name and not (
            self.is_chain or self.kleene
        )
        return (len(self.pattern.positive) - 1) * is_bounded

    @property
    def needs_ranks(self) -> bool:
        """Whether ranks are compared, in addition to those that are looked up."""
        return any(node.apart or node.is_contiguous for node in self.nodes)

    @property
    def earlier(self) -> list[int]:
        """How many events before another one in its partition the events are that are looked up."""
        if self.pattern.strategy.attribute is None:
            return []
        return sorted({node.successor[2] for node in self.nodes if node.successor})

    def _add_own_needs(self, node: Node) -> None:
        """Add the columns that the conditions on a node's rows read."""
        for check in node.checks:
            node.times |= {("latest", name) for name in check.after}
            node.times |= {("earliest", name) for name in check.before}
            self._need_events(node, check.distinct)
            for clause in check.clauses:
                self._need_clause(node, clause, joins=True)
        for clause in node.rows:
            self._need_clause(node, clause, joins=False)
        for pair in node.far_distinct:
            self._need_events(node, pair)

    def _need_events(self, node: Node, names: tuple[str, ...]) -> None:
        node.positions |= set(names) - self.kleene
        node.sets |= set(names) & self.kleene

    def _need_clause(self, node: Node, clause: Clause, *, joins: bool) -> None:
        """Add the columns that a clause reads from a row; the rest is read from members of sets."""
        mine = set(node.variables)
        looks_into_set = bool(set(clause.variables) & self.kleene)
        node.sets |= set(clause.variables) & self.kleene & mine
        if joins and not looks_into_set:
            node.values |= {value for value in derived_values(clause) if value[0] in mine}
        else:
            node.values |= {
                (name, attribute)
                for name, attribute in raw_values(clause)
                if name in mine - self.kleene
            }

    def _pass_needs_down(self, node: Node) -> None:
        """Add to the children the columns that this node and its parents read."""
        times = set(node.times)
        for x, y in node.order:
            times |= {("latest", x), ("earliest", y)}
        positions = node.positions | {name for pair in node.distinct for name in pair}
        ranks = node.ranks | {name for x, y, *_ in node.apart for name in (x, y)}
        earlier = set(node.earlier)
        if self.reach:
            children = (its for its in (node.left, node.right) if its >= 0)
            earlier |= {(-self.reach, self.nodes[its].variables[0]) for its in children}
        if node.successor:
            x, y, distance = node.successor
            positions |= {x}
            if self.pattern.strategy.attribute is None:
                positions |= {y}
            else:
                earlier |= {(distance, y)}
        values = set(node.values)
        values |= {value for clause in node.joined for value in derived_values(clause)}
        sets, negated = set(node.sets), {check.name for check in self.branch.checks}
        for clause in node.steps:
            values |= set(raw_values(clause))
        for clause in [*node.rows, *(c for check in node.checks for c in check.clauses)]:
            # Members are read at the leaf.
            for name, attribute in raw_values(clause):
                if name in self.kleene or name in negated:
                    leaf = self.nodes[self.leaf_of[name]]
                    leaf.values.add((name, Attribute(name, attribute.name)))
        for check in node.checks:
            leaf = self.nodes[self.leaf_of[check.name]]
            for clause in check.clauses:
                if not set(clause.variables) & self.kleene:
                    found = derived_values(clause)
                    leaf.values |= {value for value in found if value[0] == check.name}
        for child in (node.left, node.right):
            if child < 0:
                continue
            below = self.nodes[child]
            mine = set(below.variables)
            below.times |= {key for key in times if key[1] in mine}
            below.positions |= positions & mine
            below.ranks |= ranks & mine
            below.earlier |= {its for its in earlier if its[1] in mine}
            if not below.is_leaf:
                below.sets |= sets & mine
            below.values |= {value for value in values if value[0] in mine}


def is_plain_chain(pattern: Pattern) -> bool:
    """Whether each item is a single event, and earlier than the next one; of two items or more."""
    branch = CompiledBranch.of(pattern)
    return len(pattern.positive) > 1 and not branch.kleene and _is_chain(branch)


def _is_chain(branch: CompiledBranch) -> bool:
    return all(pair in branch.before for pair in pairwise(branch.pattern.positive_names))


def raw_values(clause: Clause) -> list[tuple[str, Attribute]]:
    """The attributes that a clause reads, with their variables, of any member."""
    found = [(a.variable, Attribute(a.variable, a.name)) for a in clause.attributes()]
    return list(dict.fromkeys(found))


def _holds_step_by_step(clause: Clause) -> bool:
    """Whether a clause on neighbours that holds for a set also holds for its prefixes."""
    if not clause.is_running:
        return False
    for term in clause.terms():
        if isinstance(term, Attribute):
            if term.element == "last":
                return False
        elif not term.before:
            return False
    return True
