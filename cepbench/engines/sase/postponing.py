"""Runs that wait until the plain items of a match are there, so that few Kleene sets are formed.

Where V keeps runs apart, a loop makes a run for each set of events, whether or not the last item ever
comes. Here a second automaton, that of the plain items alone, runs ahead. Events wait until it accepts;
then those of the window before its last event are run by the whole automaton.

Source: the postponing of [zhang2014]_.

Differs from the paper: which sets fit is found by runs over the events that waited, not from the
matches of the plain items; so partitions wait together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.runs.work import Work
from cepbench.engines.sase.automaton_engine import joined, no_events
from cepbench.engines.sase.engine import SaseEngine
from cepbench.engines.sase.kernels import tables
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream


def check_postponable(pattern: Pattern) -> None:
    """Check that Kleene variables stand between plain items in every branch, under STRATEGY any.

    Raises
    ------
    UnsupportedPatternError
        Otherwise.
    """
    branches = pattern.branches()
    if pattern.strategy.name != "any":
        raise UnsupportedPatternError(
            f"postpone=True: under STRATEGY {pattern.strategy} a run takes what comes next; it cannot "
            "wait for the last item; leave postpone out"
        )
    for branch in branches:
        for variable in (branch.positive[0], branch.positive[-1]):
            if variable.is_set:
                raise UnsupportedPatternError(
                    f"postpone=True: no item {'before' if variable == branch.positive[0] else 'after'} "
                    f"{variable} says that its events are needed; leave postpone out",
                    culprit=variable,
                )


class PostponingEngine(SaseEngine):
    """Merges equivalent runs over the events of windows in which all plain items have been found.

    The first and last positive items are plain, and the strategy is any.
    """

    SAVED = ("_waiting.rows", "_waiting.times", "_waiting.flags", "_waiting.values", "_ahead")

    def __init__(self, task: BranchTask, *, compresses: bool = False) -> None:
        super().__init__(task, compresses=compresses)
        (tree,) = task.trees
        pattern: Pattern = tree.pattern
        sets = [variable for variable in pattern.positive if variable.is_set]
        plain = replace(pattern.without((*pattern.negated, *sets)), returns=(), output="all")
        self._ahead = SaseEngine(
            replace(task, branches=[plain], trees=[automaton(plain)], reports=True),
            compresses=True,
        )
        self._waiting = no_events(len(self.layout.columns))

    def _events(self, part: EventStream, first_position: int) -> tables.Events:
        """The events that may be in matches by now, of this round and of those that waited."""
        events = joined(self._waiting, super()._events(part, first_position))
        rows, times, flags, values, _ = events
        first = first_position - len(self._waiting.times)
        accepted = [graph for _, graph in self._ahead.run(part, first_position, ended=False).graphs]
        # In the order of the stream.
        lasts = np.concatenate([np.empty(0, np.int64), *(g.last_positions() for g in accepted)])
        lasts -= first
        window = self.layout.plan.window
        end = int(lasts[-1]) + 1 if len(lasts) else 0
        due = rows[rows < end]
        due = due[times[due] >= times[lasts[np.searchsorted(lasts, due)]] - window]
        begin = max(end, int(np.searchsorted(times, times[-1] - window)))
        self._waiting = tables.Events(
            rows[rows >= begin] - begin,
            times[begin:],
            flags[begin:],
            values[:, begin:],
            first + begin,
        )
        # As kernels are compiled for them.
        its = times[:end]
        its.flags.writeable = False
        return tables.Events(due, its, flags[:end], np.ascontiguousarray(values[:, :end]), first)

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`; of both automata."""
        return dict(Work.total([super().work, self._ahead.work]))

    def _bytes(self) -> int:
        # With the four numbers of the engine ahead.
        return super()._bytes() + self._ahead.state_bytes(beyond=Engine) + 4 * 8
