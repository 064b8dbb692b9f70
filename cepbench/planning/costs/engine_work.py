"""The work that engines are expected to do for a pattern, and the time that it takes.

An engine works in one of a few forms: it joins along a plan, or from the last item on; it moves runs of an
automaton from item to item, each by itself or those with equal values as one; or it counts without
runs, by starts, as a product, or by ranks of values. What it is expected to do in its form follows from rates and selectivities, and what a unit of it takes
is measured, see :mod:`cepbench.planning.costs.unit_costs`.

A Kleene variable has the sets of independent events: with j of k − 1 + j ordered events in the set, the
expected number is that of k − 1 + j items, over all j; a condition on neighbours counts as one on each event.
Under ``next`` a run reads one event an item, and those of a window in a loop. What conditions on aggregates reject is not
estimated.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import combinations, pairwise

from cepbench.patterns.equivalences import equated
from cepbench.patterns.model import Aggregate, Operator, Pattern
from cepbench.patterns.neighbours import neighbours_of
from cepbench.patterns.reach import with_shared_keys
from cepbench.patterns.stars import stars_of
from cepbench.planning.costs.expected_rows import ExpectedRows
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.unit_costs import COUNTING, NOT_OF_STARS, ONLY_JOINS, TREE, unit_costs
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.tree import Tree, leaves, post_order, right_deep
from cepbench.planning.statistics.model import Statistics

#: Engine → the form in which it works, but where :data:`_COUNTED` has another. Of engines that
#: are about as fast the first is chosen; lazy-nfa is left out, whose joins are those of tree.
FORMS = {
    "tree": "joins",
    "zstream": "joins",
    "stack-nfa": "stacks",
    "hierarchical-stacks": "stacks",
    "sase": "merged",
    "sase-backtrack": "runs",
    "sase-basic": "runs",
    "tree-instances": "joins",
    "lazy-nfa-instances": "joins",
}

#: Engine → the form in which it counts matches that it need not find, and the name of its costs.
_COUNTED = {"sase": ("counted", COUNTING), "zstream": ("stars", "zstream")}

#: Blocks of 32 events that a row looks at for the next ones of its set under contiguity, each of which takes about as
#: long as a step of a set.
_LOOKS = 2.0

#: The fewest events of which trees over ranks are made.
_CHUNK = 64.0

#: Expected events of which joins can count the sets, if up to 62 do not overflow.
_MOST_COUNTED = 45.0

#: Expected rows of a window that are far from any limit of partial matches.
_MOST_STORED = 1e6

#: Expected events below which (1 - exp(-n)) / n is 1 - n / 2.
_FEW = 1e-6

#: The logarithm of the largest number of sets, and expected events beyond which it is reached.
_LARGEST, _MANY = 60.0, 400.0


class EngineRows(ExpectedRows):
    """A branch of a pattern, as engines work on it."""

    def __init__(self, pattern: Pattern, statistics: Statistics) -> None:
        branch = pattern.without(pattern.groups)
        super().__init__(branch, statistics)
        self.pattern = branch
        #: Events of groups per window, for each match.
        self.grouped = sum(statistics.cardinality(v.name, self.window) for v in pattern.groups)
        self.sets = {item.name for item in self.items if item.is_set}
        self.sizes |= {name: self.size(name) for name in self.sets}
        cardinality, each = statistics.cardinality, statistics.selectivity_of_events
        #: Events per window of which sets may have more than one, and those of other items.
        self.looped = self.sizes | {
            name: cardinality(name, self.window) * each(name, name) for name in self.sets
        }
        clauses = branch.conditions
        #: Pairs with a condition that is more than an equality, and with one on single events.
        self.compared_pairs: set[frozenset[str]] = set()
        self.elementwise: set[frozenset[str]] = set()
        for clause in clauses:
            pairs = {*map(frozenset, combinations(clause.variables, 2))}
            if not (clause.is_elementwise and equated(clause)):
                self.compared_pairs |= pairs
            if clause.is_elementwise:
                self.elementwise |= pairs
        #: Sets with conditions on neighbours, on the first or the last event, and those of which a value of
        #: the whole set is read.
        self.stepwise = {
            term.variable
            for clause in clauses
            for term in clause.attributes()
            if term.element == "previous"
        }
        self.ended = {
            term.variable
            for clause in clauses
            for term in clause.attributes()
            if term.element in ("first", "last")
        }
        self.aggregated: set[str] = set()
        #: Of these those of which a sum is read, which nearly each set has for itself.
        self.summed: set[str] = set()
        for clause in clauses:
            its = [term for term in clause.terms() if isinstance(term, Aggregate)]
            if its:
                self.aggregated.update(clause.variables)
            if any(term.function in ("sum", "avg") for term in its):
                self.summed.update(clause.variables)
        self.strategy = branch.strategy.name
        negated = sum(self.size(v.name) for its in self.negated for v in its)
        self.arriving = (sum(self.looped.values()) + negated) / (self.window or math.inf)
        #: Whether equalities divide all items into partitions.
        self.is_partitioned = self.is_equal(*self.names) or branch.strategy.attribute is not None

    def rows(
        self,
        names: Collection[str],
        apart: Collection[str] = (),
        *,
        hashed: bool = True,
        kept: bool = True,
        sets: bool = True,
    ) -> float:
        """As of the class above; without ``sets`` a Kleene variable has single events."""
        bound = [name for name in self.names if name in names]
        if self.strategy.endswith("_contiguity"):
            return self._successive(bound, apart)
        found = super().rows(bound, apart, hashed=hashed, kept=kept)
        if self.strategy == "consuming":
            return min(found, *(self.rates[name] for name in bound))
        for name in self.sets.intersection(bound if sets else ()).difference(apart):
            found *= self._sets(self._fitting(name, bound, apart), len(bound) - 1)[0]
        return found

    def _fitting(self, name: str, bound: Collection[str], apart: Collection[str] = ()) -> float:
        """Events in a window that fit into a set beside an event of each other item."""
        found = self.looped[name]
        for other in bound:
            if {name, other} in self.elementwise and other not in apart:
                found *= self.statistics.selectivity_of_events(name, other)
        return found

    def _successive(self, bound: list[str], apart: Collection[str]) -> float:
        """Rows of successive events of the stream or of a partition."""
        found = self.rates[bound[0]]
        equal = self.statistics.partitions if self.pattern.strategy.attribute else None
        for one, other in pairwise(bound):
            found *= min(1.0, self.rates[other] / max(self.stream_rate, SMALLEST))
            if self.statistics.has_selectivity(one, other) and (one in apart) == (other in apart):
                # Equality of the partition is part of it.
                found *= min(1.0, self.selectivity(one, other) * (equal or 1.0))
        return found

    def _sets(self, fitting: float, others: int) -> tuple[float, float]:
        """How many times as many rows have a set of some events as have one event, beside other items,
        and how many events these sets have on average.
        """
        most = math.exp(_LARGEST)
        if fitting > _MANY:
            return most, fitting / 2
        term = total = members = 1.0
        for more in range(1, int(3 * fitting) + 40):
            term *= fitting / (others + more if self.in_order else more + 1)
            its = term if self.in_order else term * (others + 1 + more) / (others + 1)
            total += its
            members += its * (more + 1)
        return min(total, most), members / total

    @cached_property
    def members(self) -> float:
        """Events in the sets of a match."""
        others = len(self.names) - 1
        return sum(self._sets(self._fitting(its, self.names), others)[1] for its in self.sets)

    @cached_property
    def found(self) -> float:
        """Matches per second."""
        if self.strategy != "next":
            return self.all
        first, found = self.names[0], self.rates[self.names[0]]
        for one, other in pairwise(self.names):
            # In the rest of the window; a copy leaves a loop at each of them.
            fitting = self.sizes[other] * self.selectivity(first, other) / 2
            found *= fitting if one in self.sets else -math.expm1(-fitting)
        return found

    @cached_property
    def least(self) -> dict[str, float]:
        """The work in every form."""
        keyed = [name for name in self.names if self.is_equal(name)]
        if self.pattern.strategy.attribute is not None:
            keyed = self.names
        return {
            "scanned": self.stream_rate * (len(self.names) + self.checks),
            "events": self.arriving,
            "keyed": sum(self.rates[name] for name in keyed),
            "grouped": self.grouped * self.found,
        }

    def _checked(self, parts: Iterable[list[str]]) -> float:
        """Events of NOT that are looked at until one is found: more than one for a row if they are compared.

        Each NOT is tested on rows of the first of the parts, which are bound one after the other, with all that it is
        compared with and the items beside it.
        """
        tested = [*parts, self.names]
        looks = 0.0
        for place, variables in enumerate(self.negated):
            for name in (variable.name for variable in variables):
                others = [x for x in self.names if self.statistics.has_selectivity(name, x)]
                needed = {*others, *self.names[max(place - 1, 0) : place + 1]}
                part = next(its for its in tested if needed <= {*its})
                share = math.prod(self.selectivity(name, other) for other in others)
                gap = self.size(name) / len(part)
                looked = max(1.0, gap * _until_first(gap * share)) if others else 1.0
                rows = self.rows(part, kept=False)
                looks += looked * (max(rows, self.found) if part is self.names else rows)
        return looks

    def joined(self, tree: Tree[str], *, counts: bool, backwards: bool = False) -> dict[str, float]:
        """Of joins along a plan, or ``backwards`` from the last item on."""
        work = dict.fromkeys(ONLY_JOINS, 0.0)
        for node in post_order(tree):
            if not isinstance(node, tuple):
                continue
            names, apart = [*leaves(node)], [*leaves(node[0 if backwards else 1])]
            is_root = len(names) == len(self.names)
            if not is_root:
                work["made"] += self.rows(names)
            beside = [name for name in names if name not in apart]
            of_rows = "_rows" if len(names) > 2 else ""
            between = [(one, other) for one in apart for other in beside]
            if len(apart) > 1 < len(beside) and self._crosses(apart, beside):
                work["crossed"] += self.rows(names, apart)
            compared = [pair for pair in between if {*pair} in self.compared_pairs]
            if compared:
                paired = self.rows(names, apart)
                work[f"paired{of_rows}"] += paired
                work["visited"] += paired * (is_root and not counts)
                # Events of made records, or at the end of a sequence all, whatever they are joined with.
                tested = sum(self.rows(pair, pair[1:]) for pair in compared)
                if is_root and of_rows and self.in_order:
                    work["tested_rows"] += tested
                else:
                    work["tested"] += min(tested, paired)
            # Stacks have events of one partition alone.
            if not (backwards and self.is_partitioned) and any(
                self.is_equal(*pair) for pair in between
            ):
                work[f"equal{of_rows}"] += self.rows(names, apart, hashed=False)
            sets = [child for child in node if isinstance(child, str) and child in self.sets]
            made = [] if is_root and counts and self._counts_sets(sets[-1:]) else [names]
            made += [sets[:-1]]  # the other one is joined with nothing before
            for its in made:
                if self.sets.intersection(its):
                    kind = "steps" if self.stepwise.intersection(its) else "sets"
                    work[kind] += self._whatever_ends.rows(its)
            if self.strategy.endswith("_contiguity") and self.sets.intersection(apart):
                work["steps"] += _LOOKS * self.rows(beside or apart)
        parts = ([*leaves(node)] for node in post_order(tree) if isinstance(node, tuple))
        return self.least | work | {"checked": self._checked(parts)}

    def _counts_sets(self, last: list[str]) -> bool:
        """Whether no sets are made where matches are counted: those joined last, if any, in closed form."""
        if self.stepwise or self.aggregated:
            return False
        fitting = (self._fitting(name, self.names) for name in last)
        return self.ended.isdisjoint(last) and all(its < _MOST_COUNTED for its in fitting)

    @cached_property
    def _whatever_ends(self) -> EngineRows:
        """Without conditions on the first and the last event of sets, which are made before these are tested."""
        known = self.statistics
        if not known.event_selectivities:
            return self
        selectivities = {**known.selectivities, **known.event_selectivities}
        return EngineRows(
            self.pattern, replace(known, selectivities=selectivities, event_selectivities={})
        )

    def stars(self, tree: Tree[str]) -> dict[str, float] | None:
        """Of matches of a SEQ that are counted around one event, instead of joined; None if they cannot be."""
        if not self.in_order or self.checks or self.sets or self.equal_names:
            return None
        at = self.names.index
        pairs = (sorted(map(at, its)) for its in self.compared_pairs)
        tested = frozenset((pair[0], pair[-1]) for pair in pairs)
        are_stars = [
            bool(stars_of(tuple(sorted(map(at, leaves(node)))), tested, is_root=node is tree))
            for node in post_order(tree)
            if isinstance(node, tuple)
        ]
        if not (are_stars and are_stars[-1]):
            return None
        work = self.joined(tree, counts=True)
        # Rows of nodes within are counted too, up to the limit of those that may be stored.
        is_counted = len(self.names) <= 3 or work["made"] * self.window <= _MOST_STORED
        # Pairs of events are tested all the same.
        unmade = NOT_OF_STARS if all(are_stars) and is_counted else ("crossed",)
        return work | dict.fromkeys(unmade, 0.0)

    def _crosses(self, one: list[str], other: list[str]) -> bool:
        """Whether more than a range of one event tells which rows of two nodes fit."""
        if not self.in_order:
            return True
        before, after = sorted((one, other), key=lambda its: self.names.index(its[0]))
        between = ({x, y} for x in before[:-1] for y in after)
        is_behind = self.names.index(before[-1]) < self.names.index(after[0])
        return not is_behind or any(pair in self.compared_pairs for pair in between)

    @property
    def _prefixes(self) -> list[list[str]]:
        return [self.names[:size] for size in range(2, len(self.names) + 1)]

    def run(self) -> dict[str, float]:
        """Of runs of an automaton, each by itself."""
        first, starts = self.names[0], self.rates[self.names[0]]
        if self.strategy == "next":
            reads = 0.0
            for name in self.names[1:]:
                fitting = self._in_loop(name)  # in the rest of the window
                reads += fitting if name in self.sets else -math.expm1(-fitting)
            work = dict.fromkeys(("visits", "made"), starts * reads + self.found)
        else:
            loops = [[first]] if first in self.sets else []
            prefixes = self._prefixes
            hashed = self.is_partitioned
            work = {
                "visits": sum(
                    self.rows(its, its[-1:], hashed=hashed, kept=False) for its in prefixes
                )
                + sum(map(self._looped, loops + prefixes)),
                "made": sum(self.rows(its, kept=False) for its in loops + prefixes),
            }
        return self.least | work | {"starts": starts, "checked": self._checked(self._prefixes)}

    def _looped(self, names: list[str], *, sets: bool = True) -> float:
        """What runs that have bound a set last read of its later events in the window."""
        if names[-1] not in self.sets or self.strategy.endswith("_contiguity"):
            return 0.0
        rows = self.rows(names, kept=False, sets=sets)
        return rows * self._in_loop(names[-1]) / len(names)

    def _in_loop(self, name: str) -> float:
        """Events of an item in a window that are of a run's partition."""
        first = self.names[0]
        if not self.is_partitioned or len(self.names) == 1:
            return self.looped[name]
        # Events of the first item share it as often as they do with the second one.
        return self.looped[name] * self.selectivity(first, self.names[1] if name == first else name)

    def merged(self) -> dict[str, float]:
        """Of runs of which those of equal values are one."""
        work, first = self.run(), self.names[0]
        work["made"] = 0.0
        if self.strategy.endswith("_contiguity"):
            return work
        looping, visits = 0.0, 0.0
        if self._is_in_loops(first, 1) and self.strategy != "next":
            # Each event, whatever its step, is the last one of some runs, since the first start in the window.
            events = self.statistics.cardinality(first, self.window)
            share = self._in_loop(first) / max(self.looped[first], SMALLEST)
            starts = events * self.sizes[first] / max(self.looped[first], SMALLEST) * share
            looping = events * share * (1.0 - _until_first(starts))
            visits = events / (self.window or math.inf) * looping
        for place, following in enumerate(self.names[1:], 1):
            before = self.names[:place]
            read = {name for name in before if self._is_read_later(name, place)}
            its = self.rows(
                [*read, following], (following,), hashed=self.is_partitioned,
                kept=False, sets=bool(read & self.summed),
            )  # fmt: skip
            # Runs of equal values are one, and other values do not differ.
            values = math.prod(self._values(name, place) for name in read)
            its = min(its, self.rates[following] * values)
            if place == 1:
                its = max(its, self.rates[following] * looping)
            if self._is_in_loops(following, place + 1):
                its += self._looped(
                    [*(its for its in before if its in read), following], sets=False
                )
            visits += its
        # Merged runs are no more than all.
        work["visits"] = visits if self.strategy == "next" else min(visits, work["visits"])
        return work

    def _values(self, name: str, place: int) -> float:
        """How many values an item has that those from a place on are to equal; infinite if they compare it."""
        others = self.names[place:]
        if name in self.summed or any({name, other} in self.compared_pairs for other in others):
            return math.inf
        if name in self.aggregated | self.stepwise:
            return self._in_loop(name)
        equal = (self.selectivity(name, its) for its in others if self.is_equal(name, its))
        return 1.0 / max(min(equal), SMALLEST)

    def _is_in_loops(self, name: str, place: int) -> bool:
        """Whether runs differ in what their set, which those from a place on may read, has."""
        if name in self.stepwise | self.aggregated:
            return True
        return name in self.sets and self._is_read_later(name, place)

    def _is_read_later(self, name: str, place: int) -> bool:
        """Whether items from a place on are compared with those before it by more than the partition."""
        if name in self.aggregated or (name in self.stepwise and self.names[place - 1] == name):
            return True
        return any(
            {name, other} in self.compared_pairs
            or (self.is_equal(name, other) and not self.is_partitioned)
            for other in self.names[place:]
        )

    def counted(self) -> dict[str, float] | None:
        """Of matches that are counted without runs; None if runs differ in more than their start."""
        first, names = self.names[0], {*self.names}
        if self.pattern.output != "all":
            return None
        work = self.least | dict.fromkeys(("counters", "by_start", "ranked"), 0.0)
        work["checked"] = self._checked(self._prefixes)
        found = neighbours_of(with_shared_keys(self.pattern))
        if found is not None and (any(found.compared) or not self.in_order):
            # Levels of the trees over the events in a window, or in the shortest chunk.
            steps = len(names) * math.log2(_CHUNK + self.arriving * self.window)
            return work | {"ranked": self.arriving * steps}
        rules = [pair for pair in self.compared_pairs if pair <= names]
        if not self.is_partitioned:
            rules += map(frozenset, self.equal_names)
        if (
            self.strategy != "any"
            or not self.in_order
            or self.stepwise
            or self.aggregated
            or self.negated[-1]
            or any(first not in pair for pair in rules)
            or any(not pair <= names for pair in self.compared_pairs)
        ):
            return None
        by_start = self.arriving * self.sizes[first] if rules else 0.0
        return work | {"counters": self.arriving * len(names), "by_start": by_start}


def _until_first(events: float) -> float:
    """How far the first of an expected number of events is, as a share of where they are."""
    return -math.expm1(-events) / events if events > _FEW else 1.0 - events / 2


def expected_work(
    pattern: Pattern, statistics: Statistics, plan: AnyPlan | None, *, counts: bool
) -> dict[str, dict[str, float]]:
    """Form of work → kind → its amount per second of the stream.

    Joins need a plan; the forms that are not possible are missing. ``counts``: matches are only
    counted.
    """
    branches = [EngineRows(branch, statistics) for branch in pattern.branches()]
    forms: dict[str, list[dict[str, float] | None]] = {
        "stacks": [
            its.joined(right_deep(its.names), counts=counts, backwards=True) for its in branches
        ]
    }
    is_read_in_order = not pattern.structure.has(Operator.AND)
    if is_read_in_order:
        forms |= {
            "runs": [its.run() for its in branches],
            "merged": [its.merged() for its in branches],
        }
    # Of the branches of an OR only sequences are counted.
    if counts and (is_read_in_order or len(branches) == 1):
        forms["counted"] = [its.counted() for its in branches]
    if plan is not None:
        trees = [part.tree for part in plan.parts]
        forms["joins"] = [
            its.joined(tree, counts=counts) for its, tree in zip(branches, trees, strict=True)
        ]
        if counts:
            forms["stars"] = [its.stars(tree) for its, tree in zip(branches, trees, strict=True)]
    listed = _listed(branches, counts=counts)
    found = {
        form: _sum([*parts, listed])
        for form, parts in forms.items()
        if not any(part is None for part in parts)
    }
    if "merged" in found and (counts or pattern.output != "all"):
        # Matches of runs that are one are counted at once; those that do not overlap have an event once.
        its = found["merged"]
        most = sum(branch.arriving for branch in branches)
        its["matches"] = min(its["matches"], its["visits"])
        its |= {kind: min(its[kind], most) for kind in ("written", "members")}
    return found


def _listed(branches: Collection[EngineRows], *, counts: bool) -> dict[str, float]:
    """The matches, and what it takes to list them."""
    listed = {"matches": sum(its.found for its in branches), "written": 0.0, "members": 0.0}
    if not counts:
        listed["written"] = sum(its.found * len(its.names) for its in branches)
        listed["members"] = sum(its.found * its.members for its in branches)
    return listed


def _nanoseconds(work: Mapping[str, float], costs: Mapping[str, float]) -> float:
    return sum(amount * costs.get(kind, 0.0) for kind, amount in work.items())


def _sum(parts: Iterable[Mapping[str, float] | None]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for kind, amount in (part or {}).items():
            total[kind] = total.get(kind, 0.0) + amount
    return total


def priced_in(engine: str, work: Collection[str]) -> tuple[str, str]:
    """The name of an engine's costs, and the form in which it works, of the possible ones."""
    form, name = _COUNTED.get(engine, ("", engine))
    return (name, form) if form in work else (engine, FORMS[engine])


def joining_seconds(
    pattern: Pattern, statistics: Statistics, plan: AnyPlan, engine: str, *, counts: bool
) -> float:
    """What an engine is expected to take to join along a plan, per second (or tick) of the stream.

    One without costs of its own is priced as ``tree``.
    """
    work, _ = _joins(pattern, statistics, plan, counts=counts)
    return 1e-9 * _nanoseconds(work, _of_joins(engine))


def _joins(
    pattern: Pattern, statistics: Statistics, plan: AnyPlan, *, counts: bool
) -> tuple[dict[str, float], dict[str, float]]:
    """The expected work of joins along a plan, and what other forms share with it."""
    branches = [EngineRows(branch, statistics) for branch in pattern.branches()]
    trees = [part.tree for part in plan.parts]
    joined = (its.joined(tree, counts=counts) for its, tree in zip(branches, trees, strict=True))
    work = _sum([*joined, _listed(branches, counts=counts)])
    return work, _sum(its.least for its in branches)


def counted_seconds(
    engine: str, events: int, items: int, work: Mapping[str, int], *, written: int
) -> float:
    """What an engine is expected to have taken for joins that it counted.

    No more than that: what it does not count, such as lookups by equal values, is left out.

    Parameters
    ----------
    engine : str
        One without costs of its own is priced as ``tree``.
    events, items : int
        Of the stream, and of the pattern.
    work : mapping
        See :mod:`cepbench.engines.runs.work`.
    written : int
        Positions in the matches that were listed.
    """
    costs = _of_joins(engine)
    counted = {
        "scanned": events * items,
        "made": work.get("partial_matches_created", 0),
        "paired_rows": work.get("comparisons", 0),
        "tested_rows": work.get("comparisons", 0),
        "written": written,
    }
    return 1e-9 * _nanoseconds(counted, costs)


def opening_seconds() -> float:
    """What a pattern takes whatever its work: how fast an installation is at what is not compiled."""
    return 1e-9 * unit_costs()["alone"][TREE]["opened"]


def _of_joins(engine: str) -> Mapping[str, float]:
    return unit_costs()["alone"][engine if FORMS.get(engine) == "joins" else TREE]


def expected_seconds(
    pattern: Pattern,
    statistics: Statistics,
    plan: AnyPlan | None,
    *,
    counts: bool,
    active: float,
    within: float = math.inf,
) -> dict[str, float]:
    """Engine → the seconds that it is expected to take for some active seconds (or ticks) of a stream.

    Parameters
    ----------
    plan : AnyPlan, optional
        For engines that join; these are missing without.
    counts : bool
        Whether matches are only counted.
    active : float
        See :func:`cepbench.planning.statistics.measure.active_time`.
    within : float
        Engines that do not join may be left out, if what all forms of work share takes each of them so many seconds
        more than one that joins.
    """
    branches = len(pattern.branches())

    def priced(name: str, work: Mapping[str, float]) -> float:
        costs = unit_costs()["alone"][name]
        return 1e-9 * (active * _nanoseconds(work, costs) + branches * costs["opened"])

    if within < math.inf and plan is not None and not counts:
        joins, least = _joins(pattern, statistics, plan, counts=counts)
        found = {its: priced(its, joins) for its, form in FORMS.items() if form == "joins"}
        most = min(found.values()) + within
        if all(priced(its, least) > most for its in FORMS.keys() - found.keys()):
            return found
    work = expected_work(pattern, statistics, plan, counts=counts)
    names = {engine: priced_in(engine, work) for engine in FORMS}
    return {its: priced(name, work[form]) for its, (name, form) in names.items() if form in work}
