"""Engines that run plans: their input, and the parts that do not depend on how they join."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd

from cepbench.engines.plan_runs.by_type import TypeRows
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.partitions import PartitionRanks
from cepbench.engines.runs.matches import BranchMatches, Column, Found, SetColumn
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels import clock
from cepbench.kernels.batches import NEVER
from cepbench.kernels.counts import PEAKS
from cepbench.kernels.sorting import places_held
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.model import Clause, Expression, Kind, Pattern, Variable
from cepbench.patterns.negations import PlacedGroup
from cepbench.patterns.parse import parse
from cepbench.planning.plans.tree import Placements, right_deep
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: The matches of a batch as written by kernels: columns by match, and positions in sets.
Chunks = Sequence[tuple[np.ndarray, np.ndarray]]

_NO_MEMBERS = np.empty(0, np.int64)

#: Tests which records of a node have a group that meets all conditions on it, shape (records,). The
#: arguments are the variable of each column, and positions, shape (columns, records).
GroupTest = Callable[[Sequence[str], np.ndarray], np.ndarray]


@dataclass(frozen=True)
class BranchTask:
    """The task of one engine in a run."""

    branches: Sequence[Pattern]  #: without OR; several with the consuming strategy and one window
    #: A plan for each, or the order that an engine without plans always evaluates in.
    trees: Sequence[Any]
    #: The nodes at which each plan checks negated variables, if it says so.
    placements: Sequence[Placements]
    written: Sequence[str]  #: the variables of all branches in the order of the pattern
    reader: NumericReader  #: assigns codes to texts; may be shared
    reports: bool  #: whether matches are returned, or only counted
    limit: int  #: maximum number of stored partial matches
    timed: bool  #: whether to measure latencies
    watched: bool  #: whether to measure the time spent in each node
    #: Those of a single branch that an engine may test at a node below the root [mei2009]_, section
    #: 4.4.5: KSEQ. A group is a function of the node's events. So no record has to carry it: those
    #: without one are dropped, and it is formed again for each match.
    groups: Mapping[PlacedGroup, GroupTest] = field(default_factory=dict)

    @classmethod
    def of_one(cls, pattern: Pattern, tree: Any, *, reports: bool = True) -> Self:
        """A small task of one branch, to warm up an engine."""
        return cls(
            branches=[pattern],
            trees=[tree],
            placements=[()],
            written=pattern.positive_names,
            reader=NumericReader(),
            reports=reports,
            limit=99,
            timed=False,
            watched=False,
        )


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Compiled patterns and plans; each engine adds the tables of its kernels."""

    #: Leaf ``i`` is node ``i``; for each branch the positive variables, then the negated ones.
    leaves: tuple[Variable, ...]
    filters: tuple[tuple[Clause, ...], ...]  #: conditions on each leaf alone
    nodes: tuple[tuple[str, ...], ...]  #: the variables of each node
    #: The nodes of each branch without checks, the root last; empty for an engine of one branch.
    branches: tuple[tuple[int, ...], ...] = ()
    #: Number of columns of a match: the number of the branch if there are several, then for each
    #: variable of a branch the position of its event, or start and size of its set.
    columns: int


class Engine(Stateful, ABC):
    """Finds the matches of one branch of a pattern, or of several that consume each other's events."""

    SAVED: ClassVar[tuple[str, ...]] = ("latencies[:]", "ranks")

    #: Ranks of events within partitions, under partition contiguity.
    ranks: PartitionRanks | None = None

    def __init__(self, task: BranchTask) -> None:
        self.task = task
        self._peaks = np.zeros(PEAKS, np.int64)
        #: int64; matches by latency, in the bins of :mod:`cepbench.kernels.clock`; empty if not
        #: measured.
        self.latencies = np.zeros(clock.BINS if task.timed else 0, np.int64)

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`."""
        return self._peaks

    @abstractmethod
    def node_counts(self) -> Sequence[NodeCounts]:
        """Counts at the nodes of each branch's plan."""

    @abstractmethod
    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events, None for no events, at the end; ``ended`` if no events follow.

        A PartialMatchLimitError if the limit is exceeded, or a Kleene variable has too many sets to
        count.
        """

    def too_many(self, names: Iterable[str], *, members: int = 0) -> PartialMatchLimitError:
        """The error for too many partial matches, most of them over ``names``, or for ``members`` in their sets."""
        what = f"{self.task.limit:,} partial matches"
        if members:
            what = f"{members:,} events in sets of partial matches"
        return PartialMatchLimitError(
            f"more than {what} have to be stored, most of "
            f"them over ({', '.join(names)}); try another plan generator, a shorter window or more "
            "conditions, or allow more with partial_match_limit"
        )


class LeafEvents(NamedTuple):
    """The events that can be bound to leaves, leaf after leaf."""

    batch: EventStream
    rows: np.ndarray  #: int64 (n,)
    begins: list[int]  #: where those of each leaf begin, and n
    #: Of each leaf the code of the one type that it has, and the places of its events among those of the type; empty
    #: if the batch does not keep its rows by type.
    kept: list[tuple[int, np.ndarray | slice]]

    def take_times(self, into: np.ndarray) -> np.ndarray:
        """Write their timestamps into an int64 array, which is returned."""
        if not self.kept:
            # All rows exist, so nothing is clipped; this mode skips the check of bounds.
            return np.take(self.batch.timestamps, self.rows, out=into, mode="clip")
        for (begin, end), (code, places) in zip(pairwise(self.begins), self.kept, strict=True):
            into[begin:end] = self.batch.times_of_code(code)[places]
        return into


class PlanEngine(Engine):
    """An engine that joins, along a plan; the subclass sets its layout."""

    layout: Layout

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events; see :meth:`Engine.run`."""
        until = NEVER if batch is None or ended else int(batch.timestamps[-1])
        # Divisions by zero are valid values of conditions.
        with np.errstate(all="ignore"):
            chunks, found = self.advance(batch, first_position, until)
        return Found(found, self._matches(chunks))

    @abstractmethod
    def advance(
        self, batch: EventStream | None, first_position: int, until: int
    ) -> tuple[Chunks, int]:
        """Run the kernels on a batch, after which no event is earlier than ``until``; see
        :meth:`run`.

        Returns matches in the columns of the layout, with the array that the starts of sets refer
        to, and their number.
        """

    def without_sets(self, chunks: Iterable[np.ndarray]) -> Chunks:
        """Matches of plain variables, at least one chunk of them."""
        none = np.empty((self.layout.columns, 0), np.int64)
        return [(rows, _NO_MEMBERS) for rows in [*chunks] or [none]]

    def counts_by_branch(
        self, branches: Sequence[Sequence[int]], window: int, counts: np.ndarray
    ) -> list[NodeCounts]:
        """Counts by node, at the nodes of each branch."""
        leaves = len(self.layout.leaves)
        return [
            NodeCounts(
                variables=[self.layout.nodes[node] for node in nodes],
                leaves=sum(node < leaves for node in nodes),
                window=window,
                counts=counts[list(nodes)],
            )
            for nodes in branches
        ]

    def leaf_events(self, batch: EventStream) -> LeafEvents:
        """The events that can be bound to each leaf."""
        parts, codes = self._of_types.parts(batch)
        rows, kept = [], []
        for leaf, filters in zip(self.layout.leaves, self.layout.filters, strict=True):
            place = self._of_types.types.index(leaf.type)
            if codes is None:
                rows.append(self.fitting(batch, parts[place], filters))
                continue
            places = self.fitting_places(batch, filters, codes[place])
            rows.append(parts[place][places])
            kept.append((codes[place], places))
        return LeafEvents(batch, np.concatenate(rows), [0, *accumulate(map(len, rows))], kept)

    def leaf_values(
        self, events: LeafEvents, values: Sequence[Sequence[tuple[Any, Expression]]]
    ) -> np.ndarray:
        """The values of the expressions of each leaf.

        Float64 (most expressions of a leaf, rows), undefined where a leaf has fewer.
        """
        found = np.empty((max(map(len, values)), len(events.rows)))
        for number, its in enumerate(values):
            begin, end = events.begins[number : number + 2]
            if begin < end:
                code: int | None = None
                rows: np.ndarray | slice = events.rows[begin:end]
                if events.kept:
                    code, rows = events.kept[number]
                for column, (_, expression) in enumerate(its):
                    found[column, begin:end] = self.values(expression, events.batch, rows, code)
        return found

    @cached_property
    def _of_types(self) -> TypeRows:
        return TypeRows(dict.fromkeys(leaf.type for leaf in self.layout.leaves))

    def fitting(
        self,
        batch: EventStream,
        rows: np.ndarray,
        filters: Iterable[Clause],
        code: int | None = None,
    ) -> np.ndarray:
        """The rows whose events satisfy all conditions of a leaf alone.

        ``code``: of the type of which these are all rows, where the batch keeps them.
        """
        if code is not None:
            return rows[self.fitting_places(batch, filters, code)]
        for clause in filters if len(rows) else ():
            held = clause_holds(
                clause, self.task.reader.reading(batch, rows), self.task.reader.code
            )
            rows = rows[_places(held)]
        return rows

    def fitting_places(
        self, batch: EventStream, filters: Iterable[Clause], code: int
    ) -> np.ndarray | slice:
        """The places of such rows among those of a type, which the batch keeps."""
        places: np.ndarray | slice = slice(None)
        for clause in filters:
            held = clause_holds(
                clause, self.task.reader.reading(batch, places, code), self.task.reader.code
            )
            fitting = _places(held)
            places = fitting if isinstance(places, slice) else places[fitting]
        return places

    def values(
        self,
        expression: Expression,
        batch: EventStream,
        rows: np.ndarray | slice,
        code: int | None = None,
    ) -> np.ndarray:
        """The values of an expression over one variable, for rows bound to it, or one of all rows.

        ``code``: of a type whose rows the batch keeps; ``rows`` are then places among these.
        """
        return expression_values(
            expression, self.task.reader.reading(batch, rows, code), self.task.reader.code
        )

    def _matches(self, chunks: Chunks) -> tuple[BranchMatches | None, ...]:
        branches = self.task.branches
        if not self.task.reports:
            return (None,) * len(branches)
        several = len(branches) > 1
        found = []
        column = int(several)
        for number, branch in enumerate(branches):
            own = slice(column, column + columns_of(branch))
            pieces = [
                tuple(_columns(branch, rows[own, rows[0] == number] if several else rows, members))
                for rows, members in chunks
            ]
            found.append(BranchMatches(branch.positive_names, pieces))
            column = own.stop
        return tuple(found)


def _places(held: np.ndarray) -> np.ndarray:
    """The places at which a test holds, int64."""
    places = np.empty(len(held) + 1, np.int64)
    return places[: places_held(held, places)]


def columns_of(branch: Pattern) -> int:
    """The number of columns of a branch's variables in a match."""
    return sum(2 if variable.kind is Kind.KLEENE else 1 for variable in branch.positive)


def _columns(branch: Pattern, found: np.ndarray, members: np.ndarray) -> Iterator[Column]:
    at = 0
    for variable in branch.positive:
        if variable.kind is Kind.KLEENE:
            yield SetColumn(found[at], found[at + 1], members).copied()
            at += 2
        else:
            yield found[at]
            at += 1


def warm_up_pattern() -> Pattern:
    """A pattern to warm up an engine, so that its kernels are compiled or loaded."""
    events = pd.DataFrame({"type": ["A"], "time": [0]})
    stream = EventStream.from_pandas(events, type="type", time="time")
    for _ in range(2):  # the second time with kept rows by type
        TypeRows("A").of(stream)
    _places(np.ones(1, bool))
    return parse("PATTERN AND(A a, B b) WITHIN 1 units")


@cache
def warm_up_sequence(engine: Callable[[BranchTask], Engine]) -> None:
    """Run an engine without plans on a sequence, so that its kernels are compiled or loaded."""
    events = pd.DataFrame({"type": list("ANB"), "time": range(3), "x": [1.0, 2.0, 1.0]})
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse(
        "PATTERN SEQ(A a, NOT(N n), B b) WHERE a.x = b.x AND n.x < b.x AND b.x > 0 WITHIN 9 units"
    )
    task = BranchTask.of_one(pattern, right_deep(pattern.positive_names))
    engine(task).run(stream, 0, ended=True)
