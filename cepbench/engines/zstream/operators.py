"""A plan as ZStream's operators: what each reads of its input buffers [mei2009]_, section 4.4.

Conditions are placed by :class:`cepbench.engines.plan_runs.nodes.PlannedNodes`. An operator pairs the
records of its *outer* buffer with rows of a *key*: the leaf that is its inner buffer, or the leaf of
one event of the inner records. Order, window and pushed-down negation are ranges of rows of the
key; comparisons of one event with the key's are bitmaps; what remains is tested on the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np

from cepbench.engines.plan_runs.nodes import Node, PlannedNodes, Tree, raw_values
from cepbench.engines.plan_runs.programs import compared
from cepbench.engines.zstream.stars import Bound, Comparison, Star, Stars
from cepbench.kernels import counts
from cepbench.kernels.instructions import EQUAL
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Attribute, Clause, Expression, Pattern
from cepbench.patterns.negations import Check, PlacedGroup
from cepbench.patterns.structure import first_of, last_of
from cepbench.planning.plans.tree import Placements

#: Windows are cut to this, which no two timestamps are apart.
_LONGEST = 1 << 62


@dataclass(frozen=True)
class Table:
    """Bitmaps of comparisons of the events of leaf ``x`` with those of ``y`` between two bounds."""

    x: int
    y: int
    low: int
    high: int
    comparisons: tuple[Comparison, ...]


@dataclass
class Negation:
    """A filter of records by the events of a negated leaf [mei2009]_, section 4.4.2: NEG."""

    leaf: int
    #: The column of a record, and the number of the bound that its event sets for rows of ``leaf``.
    lows: list[tuple[int, int]] = field(default_factory=list)
    highs: list[tuple[int, int]] = field(default_factory=list)
    #: The column of a record, and a comparison of its event with the negated one.
    comparisons: list[tuple[int, Comparison]] = field(default_factory=list)
    #: All conditions on the record and the negated event, if some are not such comparisons.
    clauses: list[Clause] = field(default_factory=list)
    #: Columns whose events are not the negated one.
    distinct: list[int] = field(default_factory=list)
    is_late: bool = False  #: whether records wait until their window has passed


@dataclass
class Join:
    """A SEQ or AND of two buffers; without an outer one, the records of a leaf's events."""

    #: Numbers of the buffers; ``outer`` is -1 for a pattern of one variable.
    outer: int
    inner: int
    #: Whether a record of the outer, the inner buffer can hold the last event.
    outer_drives: bool
    inner_drives: bool
    #: The leaf of each column of its records; those of the outer buffer come first.
    columns: tuple[int, ...]
    key: int = 0  #: which of the inner buffer's columns the ranges are of
    #: The column of an outer record, and the number of the bound that its event sets.
    lows: list[tuple[int, int]] = field(default_factory=list)
    highs: list[tuple[int, int]] = field(default_factory=list)
    #: Those of negations that are filters of its records (NEG), but can be ranges, since they
    #: depend on one of the two events at most.
    filter_lows: list[tuple[int, int]] = field(default_factory=list)
    filter_highs: list[tuple[int, int]] = field(default_factory=list)
    tables: list[tuple[int, Table]] = field(default_factory=list)
    #: A column of the inner buffer that holds the first event of its records, if that is restricted
    #: by ``start_lows``; else -1.
    start: int = -1
    start_lows: list[tuple[int, int]] = field(default_factory=list)
    #: Column of the outer record and of its event's values, the same of the inner one; if any,
    #: inner records are found by hashing, and no bitmaps are made.
    equalities: list[tuple[int, int, int, int]] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)  #: what is tested on new records,
    #: Such as the order of two columns and that they are not the same event,
    order: list[tuple[int, int]] = field(default_factory=list)
    distinct: list[tuple[int, int]] = field(default_factory=list)
    window: bool = False  #: and whether they fit the window
    negations: list[Negation] = field(default_factory=list)
    #: Those that records must have [mei2009]_, section 4.4.5: KSEQ.
    groups: list[PlacedGroup] = field(default_factory=list)
    #: Columns that can hold the first, the last event of a record.
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    is_kept: bool = False  #: whether later rounds read its records
    #: The negated variables that its records are checked against.
    applied: frozenset[str] = frozenset()

    @property
    def made_of(self) -> tuple[frozenset[int], frozenset[str]]:
        """Leaves and negations, by which the records of all plans are the same."""
        return frozenset(self.columns), self.applied

    @property
    def is_range(self) -> bool:
        """Whether its records are ranges of events of a leaf, with bits, for each outer record."""
        return self.outer >= 0 and self.key == 0 and self.is_exact and not self.equalities

    @property
    def drives(self) -> tuple[bool, bool]:
        """Whether a record of the outer, and the inner, buffer can hold the last event."""
        return self.outer_drives, self.inner_drives

    @property
    def has_filters(self) -> bool:
        """Whether some of its ranges are those of filters."""
        return bool(self.filter_lows or self.filter_highs)

    @property
    def is_exact(self) -> bool:
        """Whether no record has to be tested once it is made."""
        tests = (self.clauses, self.order, self.distinct, self.window, self.negations, self.groups)
        return not any(tests)


class Operators:
    """The operators of a plan for a pattern without OR and KL.

    Negated variables without a placement, see :class:`cepbench.planning.plans.model.TreePlan`, are
    pushed down where that is exact. With ``hashing`` equalities are evaluated by hashing [mei2009]_,
    section 5.2.2; ``reports`` says whether matches are listed, or only counted. ``as_given`` makes all
    records, and tests conditions and filters on each. Records below the root must have the groups. ``outer`` is the outer variable of a plan of two; by default the one that can
    come last, or that a negation mentions.
    """

    def __init__(
        self,
        pattern: Pattern,
        tree: Tree,
        *,
        placements: Placements = (),
        hashing: bool,
        as_given: bool,
        reports: bool,
        groups: Sequence[PlacedGroup] = (),
        outer: str = "",
    ) -> None:
        self._outer = outer
        self._planned = PlannedNodes(pattern, tree, positions=True, placements=placements)
        #: Negated variables that are placed above the leaf beside them, as filters.
        self._filters = {name for name, below in placements if len(below) > 1}
        self._before = self._planned.before
        self._leaf_of = self._planned.leaf_of
        self._hashing = hashing
        self.as_given = as_given
        self.count_columns = counts.WORK_COLUMNS if as_given else counts.COUNT_COLUMNS
        #: Its variables, and the conditions on each alone; see
        #: :class:`~cepbench.engines.plan_runs.engine.Layout`.
        self.leaves = self._planned.branch.leaves
        self.positive = len(pattern.positive)  #: how many leaves are positive
        self.filters = tuple(self._planned.branch.filters.values())
        #: The columns of values of each leaf.
        self.values: list[dict[Expression, int]] = [{} for _ in self.leaves]
        self.window = min(pattern.window.length, _LONGEST)
        names = pattern.positive_names
        #: The leaves that may come last.
        self.finals = [self._leaf_of[name] for name in last_of(names, self._before)]
        #: The variables of each node, leaves first.
        self.names: list[tuple[str, ...]] = [(leaf.name,) for leaf in self.leaves]
        self._numbers: dict[Bound, int] = {}
        #: Buffer ``len(leaves) + i`` holds the records of join ``i``; children before parents.
        self.joins: list[Join] = []
        inner = self._planned.inner
        for number, node in enumerate(self._planned.nodes[inner:], inner):
            self.names.append(node.variables)
            self.joins.append(self._join(number, node))
        for group in groups:
            # At the root it is formed for each match anyway.
            lowest = next(
                (join for join in self.joins if group.is_formed_at({*self.variables_of(join)})),
                None,
            )
            if lowest not in (None, self.joins[-1]):
                lowest.groups.append(group)
        for join in self.joins:
            children = (join.inner, join.outer)
            for child, sibling_drives in zip(children, join.drives, strict=True):
                if child >= len(self.leaves):
                    self.joins[child - len(self.leaves)].is_kept = sibling_drives

        checks = [check for node in self._planned.nodes for check in node.checks]
        #: Negated leaves that are asked for events before the window of the latest event.
        self.looks_back = {self._leaf_of[c.name] for c in checks if c.is_late and c.within[0]}
        columns = self.variables_of(self.joins[-1])
        #: int64 (columns,); where each column of the root's records is in a match.
        self.targets = np.array([names.index(name) for name in columns], np.int64)
        #: Whether the positions of events are asked for.
        self.has_positions = reports or any(
            join.distinct or any(negation.distinct for negation in join.negations)
            for join in self.joins
        )
        #: Whether a bushy plan is evaluated along another one, see :func:`operators_of`; ``names``
        #: are those of the plan that was given.
        self.is_rotated = False
        #: The number in ``names`` of each node of the plan that was given.
        self.order = list(range(len(self.names)))
        #: If no record is made at all: the nodes that are counted instead.
        self.stars = None if reports or as_given else self._stars()
        #: Those that are evaluated, by node.
        self.chosen: list[tuple[Star, ...]] = []
        #: Whether matches are counted, or listed, without making the records of the join before the
        #: root.
        self.counts_last = not (self.stars or as_given) and self._can_count_last()
        if self.counts_last:
            below = self.joins[-2]
            if below.outer >= len(self.leaves):
                self.joins[below.outer - len(self.leaves)].is_kept |= below.is_kept

    def _stars(self) -> Stars | None:
        order = [self.leaves[leaf].name for leaf in range(self.positive)]
        if (
            len(self.joins) < 2
            or self.positive < len(self.leaves)
            or any((x, y) not in self._before for x, y in pairwise(order))
            or any(join.clauses or join.equalities for join in self.joins)
        ):
            return None
        comparisons: dict[tuple[int, int], tuple[Comparison, ...]] = {}
        for node in self._planned.nodes:
            for clause in node.joined:
                for x, y in permutations(clause.variables):
                    pair = self._leaf_of[x], self._leaf_of[y]
                    comparisons[pair] = (*comparisons.get(pair, ()), self._compared(clause, x))
        if len(self.joins) == 2 and comparisons:
            # Counting the last join, which is told the rows by bits too, looks at the same pairs.
            return None
        found = Stars(
            [tuple(sorted(join.columns)) for join in self.joins], self.window, comparisons
        )
        return found if found.is_possible() else None

    def choose_stars(self, sizes: Sequence[int], share: float) -> None:
        """Choose the stars to evaluate; see :meth:`Stars.cheapest`."""
        assert self.stars is not None
        self.chosen = self.stars.cheapest(sizes, share)
        self._numbers = {}
        for stars in self.chosen:
            for leg in (leg for star in stars for leg in star.legs):
                for bound in (leg.low, leg.high, *([leg.moving] if leg.moving else [])):
                    self._number(bound)

    def number_of(self, bound: Bound) -> int:
        """The number of a bound of a star."""
        return self._numbers[bound]

    @property
    def made(self) -> list[Join]:
        """The joins whose records are made, but for the root."""
        return [] if self.stars else self.joins[: -2 if self.counts_last else -1]

    def _can_count_last(self) -> bool:
        leaves, root = len(self.leaves), self.joins[-1]
        if root.outer < leaves or root.inner >= leaves or not root.is_range:
            return False
        below = self.joins[root.outer - leaves]
        event = len(below.columns) - 1
        return below.inner < leaves and below.is_range and all(at == event for at, _ in root.tables)

    def _names(self, number: int) -> tuple[str, ...]:
        """The variable of each column of a buffer."""
        if number < len(self.leaves):
            return (self.leaves[number].name,)
        return self.variables_of(self.joins[number - len(self.leaves)])

    def variables_of(self, join: Join) -> tuple[str, ...]:
        """The variable of each column of a join's records."""
        return tuple(self.leaves[leaf].name for leaf in join.columns)

    def value(self, derived: Derived) -> int:
        """The number of a column of values of a variable's leaf."""
        name, expression = derived
        columns = self.values[self._leaf_of[name]]
        return columns.setdefault(expression, len(columns))

    @property
    def bounds(self) -> list[Bound]:
        """All that the joins read, by number."""
        return list(self._numbers)

    def _number(self, bound: Bound) -> int:
        return self._numbers.setdefault(bound, len(self._numbers))

    def _bound(self, x: str, y: str, shift: int) -> int:
        return self._number(Bound(self._leaf_of[x], self._leaf_of[y], shift))

    def _low(self, x: str, y: str) -> int:
        """The first row of ``y`` that order and window allow for an event of ``x``."""
        return self._bound(x, y, 1 if (x, y) in self._before else -self.window)

    def _high(self, x: str, y: str) -> int:
        return self._bound(x, y, 0 if (y, x) in self._before else self.window + 1)

    def _join(self, number: int, node: Node) -> Join:
        if node.left < 0:
            join = Join(-1, node.right, False, True, (node.right,), first=(0,), last=(0,))
            self._add_negations(join, node.checks)
            return join
        outer, inner, drives = node.right, node.left, node.drives[::-1]
        if self._is_swapped(number, node):
            outer, inner, drives = inner, outer, drives[::-1]
        names = (*self._names(outer), *self._names(inner))
        join = Join(outer, inner, *drives, tuple(self._leaf_of[name] for name in names))
        join.first = tuple(names.index(name) for name in first_of(names, self._before))
        join.last = tuple(names.index(name) for name in last_of(names, self._before))
        self._add_ranges(join, node)
        pushed = self._push_negations(join, node.checks)
        self._add_conditions(join, node)
        self._add_negations(join, [check for check in node.checks if check not in pushed])
        below = [
            self.joins[side - len(self.leaves)]
            for side in (outer, inner)
            if side >= len(self.leaves)
        ]
        join.applied = frozenset(check.name for check in node.checks).union(
            *(child.applied for child in below)
        )
        return join

    def _is_swapped(self, number: int, node: Node) -> bool:
        """Whether the left buffer is the outer one: the right one is then a leaf, or comes first.

        As given the right one is, as in Algorithm 1, unless NSEQ is on the left.
        """
        leaves = len(self.leaves)
        if self.as_given:
            before = {*self._names(node.left)}
            beside = (
                {*self._planned.placements.get(check.name, self._ties(check))}
                for check in node.checks
            )
            return any(len(names) == 1 and names <= before for names in beside)
        if (node.left < leaves) != (node.right < leaves):
            return node.right < leaves
        if self._outer:
            return self._names(node.left) == (self._outer,)
        if node.left < leaves and not all(node.drives):
            # A negation tied to the earlier event alone is a range of rows of the later one.
            (left,) = self._names(node.left)
            tied = {name for check in node.checks for name in self._ties(check)}
            if len(tied) == 1:
                return tied == {left}
            parent = next((p for p in self._planned.nodes if number in (p.left, p.right)), None)
            if parent and parent.drives == (number == parent.right, number == parent.left):
                # What comes later joins these records as far as the window of the earlier event
                # allows, and is therefore looked up once for all records with that event.
                return node.drives[1]
        return node.drives[0] and not node.drives[1]

    def _add_ranges(self, join: Join, node: Node) -> None:
        outer, inner = self._names(join.outer), self._names(join.inner)
        # The last event of the inner records, of which the order says most; the first if NSEQ is on
        # their left.
        is_turned = self.as_given and join.outer == node.left
        key = (first_of if is_turned else last_of)(inner, self._before)[-1]
        join.key = inner.index(key)
        at = {name: place for place, name in enumerate((*outer, *inner))}
        for x, y in node.order:
            if y == key and x in outer:
                join.lows.append((at[x], self._bound(x, y, 1)))
            elif x == key and y in outer:
                join.highs.append((at[y], self._bound(y, x, 0)))
            else:
                join.order.append((at[x], at[y]))
        firsts, lasts = first_of(outer, self._before), last_of(outer, self._before)
        early = {
            v for v in first_of(inner, self._before) for x in lasts if (x, v) not in self._before
        }
        late = {
            v for v in last_of(inner, self._before) for x in firsts if (v, x) not in self._before
        }
        join.lows += [(at[x], self._low(x, key)) for x in lasts if (x, key) not in self._before]
        join.highs += [(at[x], self._high(x, key)) for x in firsts if (key, x) not in self._before]
        if early - {key}:
            if len(early) == 1 and len(first_of(inner, self._before)) == 1:
                (start,) = early
                join.start = inner.index(start)
                join.start_lows = [(at[x], self._low(x, start)) for x in lasts]
            else:
                join.window = True
        join.window |= bool(late - {key})
        join.distinct = [(at[x], at[y]) for x, y in node.distinct]

    def _ties(self, check: Check) -> set[str]:
        """The positive variables that a negation's conditions mention."""
        return {name for clause in check.clauses for name in clause.variables} - {check.name}

    def _push_negations(self, join: Join, checks: Sequence[Check]) -> list[Check]:
        """Make ranges of negations where that is exact: NSEQ; gives those."""
        pushed = []
        outer, key = self._names(join.outer), self._names(join.inner)[join.key]
        for check in checks:
            sides = [*map(compared, check.clauses)]
            if len(check.after) != 1 or len(check.before) != 1 or None in sides or check.distinct:
                continue
            is_filter = check.name in self._filters
            if is_filter and (self.as_given or join.inner >= len(self.leaves)):
                continue
            after, before = check.after[0], check.before[0]
            if before in outer and after == key and self._ties(check) <= {before}:
                x, is_after = before, False
            elif after in outer and before == key and self._ties(check) <= {after}:
                x, is_after = after, True
            else:
                continue
            bound = Bound(
                self._leaf_of[x],
                self._leaf_of[key],
                int(is_after),
                self._leaf_of[check.name],
                tuple(self._compared(clause, x) for clause in check.clauses),
                is_after,
                len(self.names) - 1,
            )
            lows, highs = join.lows, join.highs
            if is_filter:
                lows, highs = join.filter_lows, join.filter_highs
            (highs if is_after else lows).append((outer.index(x), self._number(bound)))
            pushed.append(check)
        return pushed

    def _compared(self, clause: Clause, x: str) -> Comparison:
        """A comparison of two values with that of ``x`` on the left."""
        found = compared(clause, (x,))
        assert found is not None
        return self.value(found.left), self.value(found.right), found.operator

    def _add_conditions(self, join: Join, node: Node) -> None:
        outer, inner = self._names(join.outer), self._names(join.inner)
        key = inner[join.key]
        tested: dict[str, list[Comparison]] = {}
        others: list[Clause] = []
        equal: list[Clause] = []
        paired: list[tuple[Derived, Derived]] = []
        for clause in node.joined:
            found = compared(clause, outer)
            if found is not None and found.operator == EQUAL and self._hashing:
                paired.append((found.left, found.right))
                equal.append(clause)
            elif found is not None and key in clause.variables and not self.as_given:
                (x,) = set(clause.variables) - {key}
                tested.setdefault(x, []).append(self._compared(clause, x))
            else:
                others.append(clause)
        join.equalities = [
            (outer.index(left[0]), self.value(left), inner.index(right[0]), self.value(right))
            for left, right in paired
        ]
        if join.equalities:
            # Few records are left to test, each by itself.
            others = [clause for clause in node.joined if clause not in equal]
            join.window |= bool(join.start_lows)
            join.start, join.start_lows, tested = -1, [], {}
        for x, comparisons in tested.items():
            table = Table(
                self._leaf_of[x], self._leaf_of[key], self._low(x, key), self._high(x, key),
                tuple(comparisons),
            )  # fmt: skip
            join.tables.append((outer.index(x), table))
        join.clauses = others
        self._read(others)

    def _read(self, clauses: Sequence[Clause]) -> None:
        """Have leaves hold what clauses on records read."""
        for clause in clauses:
            for value in raw_values(clause):
                self.value(value)

    def _add_negations(self, join: Join, checks: Sequence[Check]) -> None:
        names = self.variables_of(join)
        at = {name: place for place, name in enumerate(names)}
        for check in checks:
            found = Negation(self._leaf_of[check.name], is_late=check.is_late)
            found.lows = [(at[x], self._bound(x, check.name, 1)) for x in check.after]
            found.highs = [(at[x], self._bound(x, check.name, 0)) for x in check.before]
            if check.within[0]:
                lasts = last_of(names, self._before)
                found.lows += [(at[x], self._low(x, check.name)) for x in lasts]
            if check.within[1]:
                firsts = first_of(names, self._before)
                found.highs += [(at[x], self._high(x, check.name)) for x in firsts]
            found.distinct = [at[x] for x in check.distinct]
            if found.distinct or None in map(compared, check.clauses):
                found.clauses = list(check.clauses)
                self._read(found.clauses)
            else:
                for clause in check.clauses:
                    (x,) = set(clause.variables) - {check.name}
                    found.comparisons.append((at[x], self._compared(clause, x)))
            join.negations.append(found)

    def precedes(self, x: str, y: str) -> bool:
        """Whether the pattern puts a variable before another one."""
        return (x, y) in self._before

    def stand_for(self, names: tuple[str, ...]) -> None:
        """Count the records of the last two variables where those of the join below are counted."""
        self.names[-2], self.is_rotated = names, True
        root = self.joins[-1]
        z, y = (self.leaves[leaf].name for leaf in root.columns[-2:])
        # What the window says of them is implied only beside a record that comes before both.
        root.lows.append((len(root.columns) - 2, self._low(z, y)))
        root.highs.append((len(root.columns) - 2, self._high(z, y)))

    def place(self, attribute: Attribute) -> tuple[int, int]:
        """The leaf and the column of values of an attribute that clauses on records read."""
        leaf = self._leaf_of[attribute.variable]
        return leaf, self.values[leaf][Attribute(attribute.variable, attribute.name)]


@lru_cache(maxsize=64)
def operators_of(
    pattern: Pattern,
    tree: Tree,
    *,
    placements: Placements,
    hashing: bool,
    as_given: bool,
    reports: bool,
    groups: Sequence[PlacedGroup],
) -> tuple[Operators, ...]:
    """The operators that evaluate a plan, with alternatives; see :class:`Operators`.

    They are kept, as a plan is often run again, and are to be copied: stars are chosen for a run.

    A join of two leaves without conditions between them has either of them as the outer one.

    The records of a pair of events on one side of a bushy plan's root are counted for each record on
    the other side, and are not made: a plan ``(X, (y, z))`` is evaluated as ``((X, y), z)``, and
    ``((y, z), X)`` as ``(y, (z, X))``, for neither makes a record in the join before the root. A
    plan of two pairs has both alternatives. A plan ``as_given`` has none.
    """

    def along(tree: Tree, outer: str = "") -> Operators:
        return Operators(
            pattern, tree, placements=placements, hashing=hashing, as_given=as_given, reports=reports,
            groups=groups, outer=outer,
        )  # fmt: skip

    planned = along(tree)
    is_settled = (
        as_given
        or planned.stars
        or planned.counts_last
        or any(join.groups for join in planned.joins)
    )
    if is_settled or isinstance(tree, str):
        return (planned,)
    left, right = tree
    root = planned.joins[-1]
    if isinstance(left, str) and isinstance(right, str):
        if root.is_range and not root.tables:
            turned = along(tree, planned.leaves[root.inner].name)
            if turned.joins[-1].is_range:
                return (planned, turned)
        return (planned,)
    if isinstance(left, str) or isinstance(right, str):
        return (planned,)
    right_is_outer = root.outer == len(planned.names) - 2
    if root.drives[right_is_outer]:  # the left side can come last
        return (planned,)
    found = []
    for pair, rotate in (
        (right, lambda y, z: ((left, z), y)),
        (left, lambda y, z: (y, (z, right))),
    ):
        for y, z in (pair[::-1], pair):
            if not (isinstance(y, str) and isinstance(z, str)):
                continue
            operators = along(rotate(y, z))
            drives = operators.joins[-1].drives
            if operators.counts_last and (
                drives == (False, True) or (drives == (True, False) and operators.precedes(y, z))
            ):
                names = next(its for its in planned.names if set(its) == {y, z})
                operators.stand_for(names)
                operators.order = [operators.names.index(its) for its in planned.names]
                found.append(operators)
                break
    return tuple(found) or (planned,)
