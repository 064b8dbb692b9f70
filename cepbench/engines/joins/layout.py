"""Compilation of a pattern and a plan to tables for the join kernels.

Every node of the plan has only the columns that joins above it read: timestamps for conditions on
order, positions of events that must be distinct or are reported, and values of later conditions.
They are determined in :mod:`cepbench.engines.plan_runs.nodes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.plan_runs.engine import Layout
from cepbench.engines.plan_runs.nodes import Key, Node, PlannedNodes, Tree
from cepbench.engines.plan_runs.programs import (
    Codes,
    Compared,
    RowPrograms,
    Rule,
    SetPlace,
    contiguous_ranks,
    distinct_events,
    rule_tables,
)
from cepbench.engines.plan_runs.tables import PlanTables
from cepbench.kernels.counts import lifetime_shift
from cepbench.kernels.instructions import LOAD_LEFT, LOAD_RIGHT
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Clause, Kind, Pattern
from cepbench.patterns.negations import Check
from cepbench.planning.plans.tree import Placements


@dataclass(frozen=True, kw_only=True)
class JoinLayout(Layout):
    """A compiled pattern and plan; for a check, ``nodes`` has the variables of the rows it tests."""

    plan: tables.Plan
    values: tuple[tuple[Derived, ...], ...]  #: the values in each leaf's float columns
    #: What is known of the place of an event in its partition, in addition to timestamp and position:
    #: its rank, as 0, the position of the event so many before it, or, negative, its timestamp; None if
    #: nothing is asked but of positions in the stream.
    places: list[int] | None

    @property
    def integer_columns(self) -> int:
        """The maximum number of integer columns of a node."""
        return int(self.plan.nodes[:, tables.INTS].max())


def join_layout(
    branches: Sequence[Pattern],
    trees: Sequence[Tree],
    placements: Sequence[Placements],
    written: Sequence[str],
    positions: bool,
    *,
    code: Codes,
) -> JoinLayout:
    """Compile branches for evaluation along their trees; see :class:`PlanTables`.

    The plans of several branches run in common steps, with a stored root for each that does not
    wait; see :mod:`cepbench.engines.joins.kernels.consume`. Without ``positions`` matches are only
    counted.
    """
    writer = _Writer(branches, trees, placements, written, code, positions=positions)
    return writer.layout(positions=positions)


class _Writer(PlanTables):
    """Writes the tables of all branches."""

    columns = tables.NODE_COLUMNS
    has_checks = True

    def layout(self, *, positions: bool) -> JoinLayout:
        for column in (
            tables.FIRST_CHECK, tables.LAST_CHECK, tables.SET_LIMIT, tables.SET_RUN, tables.IS_ROOT,
            tables.KEPT,
        ):  # fmt: skip
            self.table[:, column] = 0
        self.table[:, tables.RETAINED] = 1
        several = len(self.planned) > 1
        # A match of several branches has the number of its branch in its first column.
        column = int(several)
        writers = []
        for branch, part in enumerate(self.planned):
            writer = _BranchWriter(self, branch, part, column, positions=positions)
            writer.write()
            writers.append(writer)
            column = writer.columns
            self.table[writer.place(len(part.nodes) - 1), tables.IS_ROOT] = 1
            if several:
                self.table[writer.place(len(part.nodes) - 1), tables.BRANCH] = branch
        spans, rules = rule_tables(self.owned, tables.RULE_KINDS)
        first, inner = writers[0], int(self.firsts[2, 0])
        plan = tables.Plan(
            nodes=self.table,
            spans=spans,
            rules=rules,
            constants=np.array(self.programs.constants, np.float64),
            window=first.window,
            lifetime_shift=lifetime_shift(first.window),
            inner=inner,
            stored=first.stored,
            waits=first.waits,
            late_first=inner - sum(check.is_late for _, check in first.checks),
            late_last=inner,
            consuming=first.consuming,
        )
        return JoinLayout(
            plan=plan,
            **self.shared(),
            values=tuple(
                tuple(floats) for its in writers for floats in its.floats[: its.planned.inner]
            ),
            places=first.places,
            columns=column if positions else 0,
        )


class _BranchWriter:
    """Numbers the columns of one branch, which begin at a column of a match, and writes its part of
    the tables.
    """

    def __init__(
        self, whole: _Writer, branch: int, planned: PlannedNodes, column: int, *, positions: bool
    ) -> None:
        self.pattern = planned.pattern
        self.planned = planned
        self.nodes = planned.nodes
        self.window = self.pattern.window.length
        self.whole, self.table, self.programs = whole, whole.table, whole.programs
        #: Node → its number in the tables.
        self.place = partial(whole.place, branch)
        self.first_check = int(whole.firsts[1, branch])
        self.row_programs = RowPrograms(
            self.programs, lambda leaf, value: self.floats[leaf][value], planned.leaf_of
        )
        self.places = None
        if self.pattern.strategy.name == "partition_contiguity" or planned.reach:
            self.places = [0] * planned.needs_ranks + planned.earlier
            self.places += [-planned.reach] * (planned.reach > 0)
        # Late checks last, so that both kinds are contiguous.
        self.checks = sorted(
            ((node, check) for node in planned.nodes for check in node.checks),
            key=lambda pair: pair[1].is_late,
        )
        self.root = self.nodes[-1]
        self.consuming = whole.consuming
        self.waits = tables.WAITS_NOT
        if any(check.is_late for _, check in self.checks):
            self.waits = tables.WAITS_LATEST if self.consuming else tables.WAITS_EARLIEST
        self.stored = bool(
            self.root.checks
            or self.root.rows
            or self.root.far_distinct
            or self.root.is_contiguous
            or self.consuming
        )
        self.targets: dict[str, int] = {}
        self.columns = column
        for variable in self.pattern.positive if positions else ():
            self.targets[variable.name] = self.columns
            self.columns += 2 if variable.kind is Kind.KLEENE else 1
        # Column numbers by content, for each node.
        self.ints: list[dict[Key, int]] = []
        self.floats: list[dict[Derived, int]] = []

    def write(self) -> None:
        """Write all nodes and checks."""
        owned, names = self.whole.owned, self.whole.names
        for number, node in enumerate(self.nodes):
            self._number_columns(number, node)
        self._fill_nodes()
        for number in range(self.planned.inner):
            owned[self.place(number)] = self._leaf_rules(number)
        for place, (node, check) in enumerate(self.checks, self.first_check):
            names[place] = node.variables
            owned[place] = self._check_rules(node, check)
        for number, node in enumerate(self.nodes):
            names[self.place(number)] = node.variables
            if not node.is_leaf:
                owned[self.place(number)] = self._rules(number)

    def _number_columns(self, number: int, node: Node) -> None:
        ints, count = _integer_columns(node, self.planned, self.places)
        self.ints.append(ints)
        self.floats.append(_float_columns(node))
        row = self.table[self.place(number)]
        row[tables.INTS], row[tables.FLOATS] = count, len(node.values)
        row[tables.EARLIEST], row[tables.LATEST] = 0, 0 if node.is_leaf else 1
        row[tables.SORTED] = node.is_sorted

    def _fill_nodes(self) -> None:
        """The nodes' children, retention of rows, kinds and checks."""
        nodes, table, inner = self.nodes, self.table, self.planned.inner
        for number, node in enumerate(nodes[inner:], start=inner):
            row = table[self.place(number)]
            row[tables.KIND] = tables.SETS if node.makes else tables.JOINS
            row[tables.LEFT] = self.place(node.left) if node.left >= 0 else -1
            row[tables.RIGHT] = self.place(node.right)
            row[tables.LEFT_DRIVES], row[tables.RIGHT_DRIVES] = node.drives
            if node.left >= 0:
                table[self.place(node.left), tables.KEPT] = node.drives[1]
            table[self.place(node.right), tables.KEPT] = node.drives[0]
            if node.makes:
                self._fill_sets(number, node, row)
        for number, name in enumerate(node.variables[0] for node in nodes[:inner]):
            row = table[self.place(number)]
            # Sets refer to their members by number, and negated events are read again.
            if name in self.planned.kleene or number >= len(self.pattern.positive):
                row[tables.KEPT] = 1
            # Of rows that wait for the window of their latest event, members are as old as that.
            if name in self.planned.kleene and self.waits == tables.WAITS_LATEST:
                row[tables.RETAINED] = 2
        for place, (node, check) in enumerate(self.checks, self.first_check):
            tested = table[self.place(self._number(node))]
            negated = self.place(self.planned.leaf_of[check.name])
            table[place, tables.LEFT] = self.place(self._number(node))
            table[place, tables.RIGHT] = negated
            if check.is_late:
                late_by = int(self.waits == tables.WAITS_LATEST) + int(check.within[0])
                table[negated, tables.RETAINED] = 1 + late_by
                continue
            if tested[tables.FIRST_CHECK] == tested[tables.LAST_CHECK]:
                tested[tables.FIRST_CHECK] = place
            tested[tables.LAST_CHECK] = place + 1

    def _number(self, node: Node) -> int:
        return next(number for number, other in enumerate(self.nodes) if other is node)

    def _fill_sets(self, number: int, node: Node, row: np.ndarray) -> None:
        name, ints = node.makes, self.ints[number]
        if name not in self.planned.kleene:
            row[tables.SET_LIMIT] = 1
            return
        row[tables.SET] = ints.get(("start", name), -1)
        if self._is_direct_root(node):
            row[tables.SET] = self.targets.get(name, -1)
            return
        for end, column in (("earliest", tables.SET_EARLIEST), ("latest", tables.SET_LATEST)):
            where = ints.get((end, name), -1)
            row[column] = where if where > 1 else -1
        if "contiguity" in self.pattern.strategy.name and self.planned.is_chain:
            row[tables.SET_STEP] = self.ints[node.right]["rank", name]
            row[tables.SET_ENDS] = ints.get(("first", name), -1)
            # Equalities with an event of the row leave one partition, those with a set do not.
            if self.places is None or set(node.variables) - self.planned.kleene:
                begins = any(y == name for _, y, *_ in node.apart)
                ends = any(x == name for x, *_ in node.apart)
                row[tables.SET_RUN] = tables.ALONE + tables.BEGINS * begins + tables.ENDS * ends

    def _is_direct_root(self, node: Node) -> bool:
        return node is self.root and not self.stored

    def _leaf_rules(self, number: int) -> dict[int, list[Rule]]:
        if not self.consuming or number >= len(self.pattern.positive):
            return {}
        kind = 2 if self.nodes[number].variables[0] in self.planned.kleene else 0
        return {tables.POSITIONS: [(1, kind, 0, 0)]}

    def _rules(self, number: int) -> dict[int, list[Rule]]:
        node = self.nodes[number]
        written = self._copies(number, node)
        sides = (0,) if node.makes else (0, 1)
        for side in sides if node.left >= 0 else ():
            outer, inner = ((node.left, node.right), (node.right, node.left))[side]
            bounds = self._bounds(node, side, outer, inner)
            latest = self.table[self.place(inner), tables.LATEST]
            found = {latest} if self.nodes[inner].is_sorted else set()
            if node.successor and node.drives[side]:
                written[tables.LOOKUP_LEFT + side] = [self._lookup(node.successor, outer, inner)]
                found = set()
            tested = sorted({column for _, column, *_ in bounds} - found)
            written[tables.BOUNDS_LEFT + side] = bounds
            written[tables.TESTED_LEFT + side] = [(column, 0, 0, 0) for column in tested]
        written[tables.DISTINCT] = [
            (self.ints[node.left]["position", x], self.ints[node.right]["position", y], 0, 0)
            for x, y in node.distinct
        ]
        if node.left >= 0:
            written |= self._conditions(node.joined, node.left, node.right)
        if not node.makes:
            written[tables.RANKS] = self._ranks(node)[:1]
        for clause in node.steps:
            place = (self.place(node.right), -1)
            left = self.floats[node.left] if node.left >= 0 else {}
            written.setdefault(tables.STEP, []).extend(
                self.row_programs.clause(clause, {node.makes: place}, left)
            )
        written[tables.ROW] = self._row_rules(number, node)
        written[tables.POSITIONS] = list(self._positions(number, node))
        if node is self.root and self.stored:
            written[tables.OUTPUT] = self._output(self.ints[number])
        return written

    def _bounds(self, node: Node, side: int, outer: int, inner: int) -> list[Rule]:
        """The bounds on rows of the child ``inner`` by a row of the child ``outer`` on a side."""
        mine, its = self.ints[outer], self.ints[inner]
        outer_row, inner_row = self.table[self.place(outer)], self.table[self.place(inner)]
        outer_variables = self.nodes[outer].variables
        bounds: list[Rule] = []
        for x, y in node.order:
            if x in outer_variables:
                bounds.append((tables.LOWER, its["earliest", y], mine["latest", x], 1))
            else:
                bounds.append((tables.UPPER, its["latest", x], mine["earliest", y], 0))
        earliest, latest = int(inner_row[tables.EARLIEST]), int(inner_row[tables.LATEST])
        if node.drives[side]:
            newest = int(outer_row[tables.LATEST])
            bounds.append((tables.LOWER, earliest, newest, -self.window))
            if earliest != latest and self.nodes[inner].is_sorted:
                # Implied, but narrows the range.
                bounds.append((tables.LOWER, latest, newest, -self.window))
        if node.drives[1 - side]:
            oldest = int(outer_row[tables.EARLIEST])
            bounds.append((tables.UPPER, latest, oldest, self.window + 1))
        if self.planned.reach:
            bounds.append((tables.LOWER, latest, mine["reach", outer_variables[0]], 0))
        for x, y, least, most in node.apart:
            # Of a set the last event is before what follows it, and the first one behind what it follows.
            if x in outer_variables:
                one, other = _rank(its, "first", y), _rank(mine, "last", x)
            else:
                one, other = _rank(its, "last", x), _rank(mine, "first", y)
                least, most = -most, -least
            # Of the set that is made here all events are behind the first one, and before the last.
            if node.makes != y:
                bounds.append((tables.UPPER, one, other, most + 1))
            if node.makes != x:
                bounds.append((tables.LOWER, one, other, least))
        return bounds

    def _ranks(self, node: Node) -> list[Rule]:
        """The ranks by which rows of the children are found, if differences of two are known."""
        left, right = self.ints[node.left], self.ints[node.right]
        if self.planned.reach:
            return [(-1, -1, 0, 0)]
        return [
            (_rank(left, "last", x), _rank(right, "first", y), least, 0)
            if x in self.nodes[node.left].variables
            else (_rank(left, "first", y), _rank(right, "last", x), -least, 0)
            for x, y, least, most in node.apart
            if least == most
        ]

    def _lookup(self, successor: tuple[str, str, int], outer: int, inner: int) -> Rule:
        x, y, distance = successor
        mine, its = self.ints[outer], self.ints[inner]["position", x]
        if self.places is None:
            return its, mine["position", y], -distance, 0
        return its, mine[_place(distance), y], 0, 0

    def _row_rules(self, number: int, node: Node) -> list[Rule]:
        ints, floats = self.ints[number], self.floats[number]
        sets = self._sets(number)
        rules: list[Rule] = []
        for clause in node.rows:
            rules += self.row_programs.clause(clause, sets, floats)
        for x, y in node.far_distinct:
            inside = [sets[name] for name in (x, y) if name in sets]
            plain = [ints["position", name] for name in (x, y) if name not in sets]
            second = inside[1] if len(inside) > 1 else None
            rules += distinct_events(inside[0], second, plain[0] if plain else None)
        if node.is_contiguous:
            columns = [ints["rank", name] for name in node.variables if name not in sets]
            rank = 1 if self.places is None else 2
            rules += contiguous_ranks(columns, list(sets.values()), rank)
        return rules

    def _sets(self, number: int) -> dict[str, SetPlace]:
        """Where rows of a node say of their sets, and the leaves of the sets' members."""
        return {
            name: (self.place(self.planned.leaf_of[name]), column)
            for (what, name), column in self.ints[number].items()
            if what == "start"
        }

    def _positions(self, number: int, node: Node) -> Iterable[Rule]:
        ints, names = self.ints[number], node.variables
        if node is self.root:
            names = tuple(sorted(names, key=self.whole.written.index))
        for name in names:
            if self._is_direct_root(node):
                if name in self.targets and name in self.planned.kleene:
                    yield self.targets[name], 1, 0, 0
            elif ("start", name) in ints:
                yield ints["start", name], 1, 0, 0
            elif ("position", name) in ints:
                yield ints["position", name], 0, 0, 0

    def _output(self, ints: dict[Key, int]) -> list[Rule]:
        """The copies from a row of a stored root to a match."""
        rules: list[Rule] = []
        for name, target in self.targets.items():
            if name in self.planned.kleene:
                start = ints["start", name]
                rules += [(start, target, 0, 0), (start + 1, target + 1, 0, 0)]
            else:
                rules.append((ints["position", name], target, 0, 0))
        return rules

    def _copies(self, number: int, node: Node) -> dict[int, list[Rule]]:
        """The columns that a row copies from its children."""
        ints: list[Rule] = []
        floats: list[Rule] = []
        direct = self._is_direct_root(node)
        for side, child in enumerate((node.left, node.right)):
            if child < 0:
                continue
            below = self.ints[child]
            for name in self.nodes[child].variables:
                if name == node.makes and name in self.planned.kleene:
                    continue  # written when the set is created
                if direct and name in self.targets:
                    target = self.targets[name]
                    wanted = {("start" if ("start", name) in below else "position", name): target}
                elif direct:
                    continue
                else:
                    wanted = {
                        key: column
                        for key, column in self.ints[number].items()
                        if key[1] == name and column > 1
                    }
                for key, column in wanted.items():
                    ints.append((side, below[key], column, 0))
                    if key[0] == "start":
                        ints.append((side, below[key] + 1, column + 1, 0))
            if not direct:
                floats += [
                    (side, self.floats[child][value], column, 0)
                    for value, column in self.floats[number].items()
                    if value[0] in self.nodes[child].variables
                ]
        return {tables.COPY_INT: sorted(set(ints)), tables.COPY_FLOAT: floats}

    def _check_rules(self, node: Node, check: Check) -> dict[int, list[Rule]]:
        number = self._number(node)
        ints, floats = self.ints[number], self.floats[number]
        leaf = self.planned.leaf_of[check.name]
        bounds = [(tables.LOWER, 0, ints["latest", x], 1) for x in check.after]
        bounds += [(tables.UPPER, 0, ints["earliest", y], 0) for y in check.before]
        row = self.table[self.place(number)]
        if check.within[0]:
            bounds.append((tables.LOWER, 0, int(row[tables.LATEST]), -self.window))
        if check.within[1]:
            bounds.append((tables.UPPER, 0, int(row[tables.EARLIEST]), self.window + 1))
        sets = self._sets(number)
        plain = [c for c in check.clauses if not set(c.variables) & self.planned.kleene]
        rules: list[Rule] = []
        for clause in check.clauses:
            if clause not in plain:
                rules += self.row_programs.clause(clause, sets, floats, negated=check.name)
        for name in check.distinct:
            if name in sets:
                rules += distinct_events(sets[name])
        return {
            tables.BOUNDS_LEFT: bounds,
            tables.DISTINCT: [
                (ints["position", name], 1, 0, 0) for name in check.distinct if name not in sets
            ],
            **self._conditions(plain, number, leaf),
            tables.ROW: rules,
        }

    def _conditions(self, tested: Iterable[Clause], one: int, other: int) -> dict[int, list[Rule]]:
        """Conditions on pairs of rows of two nodes, without sets."""
        mine, left, right = self.nodes[one].variables, self.floats[one], self.floats[other]

        def compare(found: Compared) -> Rule:
            return left[found.left], right[found.right], found.operator, 0

        def load(value: Derived) -> Rule:
            if value[0] in mine:
                return LOAD_LEFT, left[value], 0, 0
            return LOAD_RIGHT, right[value], 0, 0

        rules, programs = self.programs.conditions(tested, mine, compare, load)
        return {tables.COMPARE: rules, tables.PROGRAM: programs}


def _integer_columns(
    node: Node, planned: PlannedNodes, places: Sequence[int] | None
) -> tuple[dict[Key, int], int]:
    """The integer columns of a node, and how many there are.

    Columns 0 and 1 are the earliest and the latest timestamp of a row, hence the timestamp of a
    variable that precedes or follows all others; for an event, its timestamp and position. Others
    are by ``earliest``, ``latest``, ``position``, ``rank``, ``1 before`` (the position of the event
    before it in its partition), ``reach`` (the timestamp of that before which no event is of its
    match), ``first`` and ``last`` (the ranks of a set's ends) or ``start`` (of a
    set, followed by its size) and a variable's name. For ``places`` see :class:`JoinLayout`; without them positions are ranks.
    """
    columns: dict[Key, int] = {}
    ranks = places is not None
    if node.is_leaf:
        (name,) = node.variables
        columns = {("earliest", name): 0, ("latest", name): 0, ("position", name): 1}
        for column, place in enumerate(places or (), 2):
            columns[_place(place), name] = column
        if places is None:
            columns["rank", name] = 1
        return columns, 2 + len(places or ())
    count = 2
    before = planned.before
    for name in node.variables:
        others = [other for other in node.variables if other != name]
        is_first = all((name, other) in before for other in others)
        is_last = all((other, name) in before for other in others)
        ends = {key for key in node.times if key[1] == name}
        if name not in planned.kleene and (is_first or is_last or ends):
            # A single event is both.
            column = 0 if is_first else (1 if is_last else count)
            columns["earliest", name] = columns["latest", name] = column
            count = max(count, column + 1)
            continue
        if is_first:
            columns["earliest", name] = 0
        if is_last:
            columns["latest", name] = 1
        for key in sorted(ends - columns.keys()):
            columns[key] = count
            count += 1
    for name in node.variables:
        if name in node.ranks & planned.kleene:
            columns["first", name], columns["last", name] = count, count + 1
            count += 2
        elif name in node.positions or (name in node.ranks and not ranks):
            columns["position", name] = count
            if not ranks:
                columns["rank", name] = count
            count += 1
        if name in node.ranks - planned.kleene and ranks:
            columns["rank", name] = count
            count += 1
        for place in sorted(place for place, other in node.earlier if other == name):
            columns[_place(place), name] = count
            count += 1
        if name in node.sets:
            columns["start", name] = count
            count += 2
    return columns, count


def _place(place: int) -> str:
    """What a number of :attr:`JoinLayout.places` is of a variable."""
    if place == 0:
        return "rank"
    return f"{place} before" if place > 0 else "reach"


def _rank(columns: Mapping[Key, int], end: str, name: str) -> int:
    """The column with the rank of a variable's event, or of the ``first`` or ``last`` one of its set."""
    return columns[end if (end, name) in columns else "rank", name]


def _float_columns(node: Node) -> dict[Derived, int]:
    """The float columns of a node."""
    ordered = sorted(node.values, key=lambda value: (value[0], str(value[1])))
    return {value: column for column, value in enumerate(ordered)}
