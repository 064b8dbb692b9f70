"""Matches that were only counted, some of which are found without the others, by counting those of fewer events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cepbench.engines.detection.chosen import Chosen, chosen
from cepbench.engines.detection.task_runs import run_tasks
from cepbench.engines.detection.tasks import task_for
from cepbench.engines.runs.matches import BranchMatches, joined, no_matches, picked
from cepbench.engines.runs.protocol import Arguments, Task
from cepbench.engines.runs.result import Result
from cepbench.engines.runs.slices import selection
from cepbench.errors import UnsupportedTaskError
from cepbench.patterns.expressions import Attribute, Clause, Comparison, Constant
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.streams.event_stream import EventStream

#: The attribute by which events are told apart; no attribute of a user has such a name.
_POSITION = " position"


def results_of(tasks: Sequence[Task], stream: EventStream) -> list[Result]:
    """As :func:`cepbench.engines.detection.task_runs.run_tasks`; matches that are only counted can be drawn from."""
    return [
        result
        if task.output != "count"
        else replace(result, counted=CountedMatches(task, stream, result.metrics.matches))
        for task, result in zip(tasks, run_tasks(tasks, stream), strict=True)
    ]


@dataclass(frozen=True, eq=False)
class CountedMatches:
    """The matches of a task that counts them, numbered.

    They are in the order of the events of their first plain variable, of those alike by the second one, and so
    on. A match is found by halving the events of a variable: the matches of one half are counted, in the windows
    around it, until few are left.

    Attributes
    ----------
    task : Task
    stream : EventStream
    number : int
        Of all matches.
    listed : int
        How many matches are listed rather than counted in parts.
    """

    task: Task
    stream: EventStream
    number: int
    listed: int = 1 << 17

    @cached_property
    def _rows(self) -> dict[str, np.ndarray]:
        """The rows of the events of each plain variable that all matches have."""
        branches = [
            {its.name for its in branch.positive if its.kind is Kind.PLAIN}
            for branch in self.task.pattern.branches()
        ]
        return {
            its.name: self.stream.rows_of(its.type)
            for its in self.task.pattern.variables
            if all(its.name in names for names in branches)
        }

    @cached_property
    def _ends(self) -> tuple[list[str], list[str]]:
        """The variables before all others, and those after all others."""
        branches = [branch.structure for branch in self.task.pattern.branches()]
        orders = [(its.precedence(), {one.name for one in its.variables()}) for its in branches]

        def is_end(name: str, *, first: bool) -> bool:
            return all(
                ((name, other) if first else (other, name)) in pairs
                for pairs, names in orders
                for other in names - {name}
            )

        first, last = (
            [name for name in self._rows if is_end(name, first=its)] for its in (True, False)
        )
        return first, last

    @cached_property
    def _events(self) -> EventStream:
        attributes = {**self.stream.attributes, _POSITION: np.arange(len(self.stream))}
        return replace(self.stream, attributes=attributes)

    def picked(self, numbers: Sequence[int]) -> tuple[BranchMatches, ...]:
        """The matches of these ascending numbers, by branch.

        An UnsupportedTaskError if which matches there are depends on others.
        """
        pattern = self.task.pattern
        if pattern.selects or pattern.strategy.name == "next":
            raise UnsupportedTaskError(
                f"under {selection(pattern)} fewer events have other matches, by the number of which those "
                'that were only counted are drawn; evaluate with output="matches"'
            )
        found = [[no_matches(branch.positive)] for branch in pattern.branches()]
        if numbers:
            whole = {name: (0, len(rows)) for name, rows in self._rows.items()}
            for parts in self._within(numbers, self.number, whole):
                for its, part in zip(found, parts, strict=True):
                    its.append(part)
        return tuple(map(joined, found))

    def _within(
        self, numbers: Sequence[int], total: int, ranges: dict[str, tuple[int, int]]
    ) -> Iterator[tuple[BranchMatches, ...]]:
        """The matches of these numbers among all ``total`` of which each variable's event is in a range of its rows."""
        ranges = self._near(ranges)
        name = next((name for name, (first, last) in ranges.items() if last - first > 1), None)
        if total <= self.listed or name is None:
            yield self._listed(numbers, ranges)
            return
        first, last = ranges[name]
        middle = (first + last) // 2
        left, right = ranges | {name: (first, middle)}, ranges | {name: (middle, last)}
        before = self._counted(left)
        place = bisect_left(numbers, before)
        if place:
            yield from self._within(numbers[:place], before, left)
        if place < len(numbers):
            behind = [number - before for number in numbers[place:]]
            yield from self._within(behind, total - before, right)

    def _near(self, ranges: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Ranges without the events that are in no window with events of all others."""
        near = self._window(ranges)
        narrowed = {}
        for name, (first, last) in ranges.items():
            ends = np.searchsorted(self._rows[name][first:last], (near.start, near.stop))
            narrowed[name] = (first + int(ends[0]), first + int(ends[1]))
        return narrowed

    def _window(self, ranges: dict[str, tuple[int, int]]) -> slice:
        """The rows of the events on which the matches of ranges may depend."""
        times, length = self.stream.timestamps, self.task.pattern.window.length
        begin, end = 0, len(times)
        for name, (first, last) in ranges.items():
            if first == last:
                return slice(0, 0)
            own = times[self._rows[name][[first, last - 1]]]
            before, after = (0 if name in its else length for its in self._ends)
            begin = max(begin, int(np.searchsorted(times, own[0] - before)))
            end = min(end, int(np.searchsorted(times, own[1] + after, side="right")))
        return slice(begin, max(begin, end))

    def _counted(self, ranges: dict[str, tuple[int, int]]) -> int:
        # An automaton is of the pattern without ranges.
        plan = None if self.task.evaluator.without_plan else self.task.plan
        return self._run(ranges, plan, self._asked).metrics.matches

    def _listed(
        self, numbers: Sequence[int], ranges: dict[str, tuple[int, int]]
    ) -> tuple[BranchMatches, ...]:
        """The matches of these numbers: of a graph where sets may have many and an engine gives one, else of all."""
        pattern, window = self._with(ranges), self._window(ranges)
        its = Chosen(None, None, None)
        output = "compressed" if any(one.is_set for one in pattern.positive) else "matches"
        for kind in dict.fromkeys((output, "matches")):
            if its.choice is None:
                asked = replace(self._asked, evaluator=None, options=None, output=kind)
                its = chosen(pattern, self._events[window], asked, whole_stream=True)
        result = self._run(ranges, its.plan, replace(asked, evaluator=its.evaluator))
        if result.graph is not None:
            found = result.graph.picked(numbers)
        else:
            assert result.found is not None
            found = picked(result.found, numbers)
        return tuple(part.moved(lambda rows: rows + window.start) for part in found)

    @property
    def _asked(self) -> Arguments:
        task = self.task
        return Arguments(
            evaluator=task.evaluator,
            options=task.options,
            output="count",
            partial_match_limit=task.partial_match_limit,
        )

    def _run(
        self, ranges: dict[str, tuple[int, int]], plan: AnyPlan | None, asked: Arguments
    ) -> Result:
        """The result for the matches of ranges, which are in the events around them."""
        task = task_for(self._with(ranges), plan, asked, whole_stream=True)
        (result,) = run_tasks([task], self._events[self._window(ranges)])
        return result

    def _with(self, ranges: dict[str, tuple[int, int]]) -> Pattern:
        """The pattern of the matches of ranges, without RETURN."""
        pattern = self.task.pattern
        bounds = [
            Clause((Comparison(operator, Attribute(name, _POSITION), Constant(int(row))),))
            for name, (first, last) in ranges.items()
            if 0 < last - first < len(rows := self._rows[name])
            for operator, row in ((">=", rows[first]), ("<=", rows[last - 1]))
        ]
        return replace(pattern, conditions=(*pattern.conditions, *bounds), returns=())
