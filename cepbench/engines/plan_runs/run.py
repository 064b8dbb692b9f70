"""Runs along trees: one engine per branch, union of matches, metrics, state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.groups import GroupEngine
from cepbench.engines.plan_runs.node_table import PlanNodeTable
from cepbench.engines.plan_runs.union import Union, waits
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Task
from cepbench.engines.runs.result import Metrics
from cepbench.errors import EvaluationError, UnsupportedPatternError
from cepbench.kernels import counts
from cepbench.planning.plans.model import Plan
from cepbench.planning.plans.tree import Placements, Tree, leaves, left_deep
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

_NO_TIMES = np.empty(0, np.int64)

#: Opens the engine of some branches.
Opens = Callable[[BranchTask], Engine | GroupEngine]


class PlanRun(Stateful):
    """A run of one task along a tree, or an automaton, for each branch.

    Branches that consume each other's events have one engine; so have the numbers in each of
    ``groups``, by default one. Branches that consume each other's events and wait for a negated event
    after all others are unsupported, unless one has groups.
    """

    SAVED = ("_first", "_last", "_reader", "_union", "_engines")

    def __init__(
        self,
        task: Task,
        trees: Sequence[Any],
        engine: Opens,
        groups: Sequence[Sequence[int]] | None = None,
    ) -> None:
        branches = task.pattern.branches()
        placements: list[Placements] = [()] * len(branches)
        if task.plan is not None:
            placements = [part.placements for part in task.plan.parts]
        # Branches that consume each other's events run together.
        together = task.pattern.strategy.name == "consuming" and len(branches) > 1
        grouped = any(branch.groups for branch in branches)
        if together and not grouped and any(waits(branch) for branch in branches):
            raise UnsupportedPatternError(
                "STRATEGY consuming under OR cannot wait for a negated event behind the others; "
                "put an item after the NOT, or evaluate the branches one by one"
            )
        self._task = task
        self._reader = NumericReader(2 * branches[0].window.length)
        self._union = Union(branches)
        numbers = list(range(len(branches)))
        self._groups = [numbers] if together else groups or [[number] for number in numbers]
        self._engines = []
        for group in self._groups:
            of_group = BranchTask(
                branches=[branches[number] for number in group],
                trees=[trees[number] for number in group],
                placements=[placements[number] for number in group],
                written=task.pattern.positive_names,
                reader=self._reader,
                reports=task.output != "count" or any(map(self._union.compares, group)),
                limit=task.partial_match_limit,
                timed=task.latency,
                watched=task.node_times,
            )
            has_groups = any(branch.groups for branch in of_group.branches)
            opened = GroupEngine(of_group, engine) if has_groups else engine(of_group)
            self._engines.append(opened)
        self._position = task.position
        self._first: int | None = None
        self._last: int | None = None

    def push(self, batch: EventStream) -> Found:
        """See :meth:`cepbench.engines.runs.protocol.Run.push`."""
        if self._first is None:
            self._first = int(batch.timestamps[0])
        self._last = int(batch.timestamps[-1])
        found = self._run(batch, ended=self._task.whole)
        self._position += len(batch)
        return found

    def finish(self) -> Found:
        """See :meth:`cepbench.engines.runs.protocol.Run.finish`."""
        if self._task.whole and self._first is not None:
            return Found(0, ())  # all matches were returned for the only batch
        return self._run(None, ended=True)

    def _run(self, batch: EventStream | None, *, ended: bool) -> Found:
        found: dict[int, Found] = {}
        for group, engine in zip(self._groups, self._engines, strict=True):
            its = engine.run(batch, self._position, ended=ended)
            found[group[0]] = its
            if len(group) > 1:
                # The first branch of an engine stands for all in the number of matches.
                for number, matches in zip(group, its.matches, strict=True):
                    found[number] = Found(its.number if number == group[0] else 0, (matches,))
        times = batch.timestamps if batch is not None else _NO_TIMES
        given = [found[number] for number in range(len(found))]
        return self._union.of(given, times, self._position, ended=ended)

    def metrics(self) -> Metrics:
        """Metrics of the run so far, summed over branches."""
        span = self._span()
        branches = [branch for engine in self._engines for branch in engine.node_counts()]
        created = reduce(np.add, (branch.partial_matches.sum(axis=0) for branch in branches))
        stored = sum(branch.lifetimes[branch.leaves : -1].sum() for branch in branches)
        peaks = reduce(np.add, (engine.peaks for engine in self._engines))
        latency = None
        if self._task.latency:
            latency = Latency(np.sum([engine.latencies for engine in self._engines], axis=0))
        return Metrics(
            partial_matches_created=int(created[counts.CREATED]),
            mean_partial_matches=float(stored) / span if span else 0.0,
            peak_partial_matches=int(peaks[counts.PEAK_PARTIAL_MATCHES]),
            peak_buffered_events=int(peaks[counts.PEAK_EVENTS]),
            peak_bytes=int(peaks[counts.PEAK_BYTES]),
            comparisons=sum(int(branch.counts[:, counts.COMPARED].sum()) for branch in branches),
            latency=latency,
        )

    def _span(self) -> int:
        """The time from the first event to the last, in the unit of the timestamps."""
        return 0 if self._first is None or self._last is None else self._last - self._first

    def node_table(self) -> PlanNodeTable:
        """See :class:`cepbench.engines.runs.protocol.Run`."""
        found = [
            pair
            for group, engine in zip(self._groups, self._engines, strict=True)
            for pair in zip(group, engine.node_counts(), strict=False)
        ]
        numbers = [number for number, _ in found] if len(self._task.pattern.branches()) > 1 else []
        counted = [branch for _, branch in found]
        return PlanNodeTable(counted, numbers, self._span(), self._task.node_times)


def chain(plan: Plan) -> Tree[str]:
    """The chain of states as a left-deep tree: states are left children, buffers right ones.

    A plan that joins two partial matches, which a chain of states cannot, is an EvaluationError.
    """
    order: list[str] = []
    tree = plan.tree
    while isinstance(tree, tuple):
        # Of two single events the left one is first in the order.
        before, buffer = reversed(tree) if isinstance(tree[1], tuple) else tree
        if isinstance(buffer, tuple):
            raise EvaluationError(
                f"the lazy NFA takes up one event at a time, but this plan joins "
                f"({', '.join(leaves(tree[0]))}) with ({', '.join(leaves(tree[1]))}); "
                'use evaluator="tree", or an order plan'
            )
        order.append(buffer)
        tree = before
    order.append(tree)
    return left_deep(order[::-1])


def run_of_parts(engine: Opens, shape: Callable[[Plan], Tree[str]], task: Task) -> PlanRun:
    """Run the parts of the plan along trees of a shape: their own, left-deep for orders, or chains."""
    assert task.plan is not None
    return PlanRun(task, [shape(part) for part in task.plan.parts], engine)
