"""Incremental detection over batches of events, with state that can be saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pandas as pd
import pyarrow as pa

from cepbench.arguments import kind_of
from cepbench.engines.detection.arrival import ArrivalRun, by_arrival
from cepbench.engines.detection.live import Live
from cepbench.engines.detection.non_overlap import NonOverlap
from cepbench.engines.detection.pushes import Progress
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, refuse, task_for, unpacked
from cepbench.engines.detection.user_defined import found_from
from cepbench.engines.runs.arrow_matches import arrow_table
from cepbench.engines.runs.compressed import CompressedMatches
from cepbench.engines.runs.graph_matches import graph_of_matches
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.matches import BranchMatches, Found, matches_by_branch
from cepbench.engines.runs.protocol import Arguments, Evaluator, Given, Task
from cepbench.engines.runs.result import Metrics, NodeTable
from cepbench.engines.runs.returned import frame_of, returned_table, values_table
from cepbench.engines.runs.snapshot import unsealed
from cepbench.engines.runs.work import Work
from cepbench.errors import EvaluationError, SnapshotError, failures_of
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.state import Arrays
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit
from cepbench.streams.recent import RecentEvents

#: For how many windows events are kept for RETURN and OUTPUT: a match may wait for one window after
#: its last event, if another one that it may lose its events to has to wait.
WINDOWS_KEPT = 2


class Detector(Live):
    """Finds the matches of a pattern in a stream that arrives in batches.

    The matches do not depend on how the stream is divided. The state between batches is
    proportional to the events within a window.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        A pattern or its text; or a workload, see
        :class:`~cepbench.engines.detection.workload_detector.WorkloadDetector`.
    plan : OrderPlan, TreePlan, Automaton or UnionPlan, optional
        One plan, or for a pattern with OR one for each of its branches; None for an evaluator that
        runs without a plan.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``, in any case; by default the first one for this kind of plan.
    options : mapping, optional
        Options of the evaluator by name; others have their defaults.
    output : {"matches", "arrow", "count", "compressed"}
        The result of :meth:`push`: a DataFrame or an Arrow table of the matches, their number, or
        :class:`~cepbench.engines.runs.compressed.CompressedMatches`.
    partial_match_limit : int
        Maximum number of stored partial matches; a run that exceeds it is an error.
    latency : bool
        Whether to measure detection latency. Every timestamp is then a separate step, as on a live
        stream, which is slower.
    node_times : bool
        Whether to measure the time spent in each node of the plan.
    position : int
        Position of the first event to be pushed, if it is not the first of its stream; positions of
        matches count from there. See the notes.

    Raises
    ------
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or plan, evaluator and pattern do not fit each other.
    UnsupportedPatternError, UnsupportedTaskError
        If the evaluator does not declare a requested capability; the message names those that do.

    Notes
    -----
    A detector that starts within a stream has no state of earlier events. It finds every match all
    of whose events are pushed. To find all matches that end in a slice, start one window earlier,
    and drop the matches that end before the slice. If a NOT comes first in a SEQ or is under AND,
    events up to one more window earlier can negate a match, so start two windows earlier; a match
    that waits for a trailing negation (:meth:`flush`) needs the events of one more window. Strict
    contiguity compares positions, partition contiguity differences of ranks within a partition;
    both hold in any slice without gaps. Under ``STRATEGY consuming`` each match depends on all
    earlier ones: only a detector from the beginning of the stream, or a restored one, finds the
    same matches. Under ``OUTPUT non_overlap`` likewise; a match is reported when none with an
    earlier last event can come, which may negated items make one window later.

    A push happens whole or not at all, see :class:`~cepbench.engines.detection.live.Live`.
    """

    KIND = "detector with one plan"

    SAVED = ("_matches", "_past_counts", "_recent", "_selection", "_run")

    _matches = 0

    #: The metrics of runs by other plans before the present one.
    _past: Metrics | None = None

    #: The events kept for RETURN and OUTPUT.
    _recent: RecentEvents | None = None

    #: What selects by OUTPUT, if the evaluator does not.
    _selection: NonOverlap | None = None

    _run: Any

    def __init__(
        self,
        pattern: Pattern | Workload | str,
        plan: AnyPlan | WorkloadPlan | Mapping[str, AnyPlan] | None = None,
        *,
        evaluator: str | Evaluator | None = None,
        options: Mapping[str, Any] | None = None,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
        latency: bool = False,
        node_times: bool = False,
        position: int = 0,
    ) -> None:
        asked = Arguments(
            evaluator=evaluator,
            options=options,
            output=output,
            partial_match_limit=partial_match_limit,
            latency=latency,
            node_times=node_times,
            position=position,
        )
        self._set_up(pattern, plan, asked)

    def _set_up(self, pattern: Any, plan: Any, asked: Arguments) -> None:
        self._open(task_for(pattern_from(pattern), plan, asked))

    @classmethod
    def of_task(cls, task: Task) -> Self:
        """A detector for a task of :func:`cepbench.engines.detection.tasks.task_for`."""
        detector = cls.__new__(cls)
        detector._open(task)
        return detector

    def _open(self, task: Task) -> None:
        evaluator, output = task.evaluator, task.output
        self.pattern = task.pattern
        self.plan = task.plan
        self.evaluator = evaluator.name
        self.options = dict(task.options)
        self.output = output
        self.partial_match_limit = task.partial_match_limit
        self._task = task
        self._evaluator = evaluator
        if output == "arrow":  # no matter of evaluators
            task = replace(task, output="matches")
        self._start(task.position)
        self._read([task.pattern], exact=not evaluator.is_builtin)
        kept: set[str] | None = None
        if self.pattern.returns and not (task.whole or output in ("count", "compressed")):
            kept = {a.name for column in self.pattern.returns for a in column.attributes()}
        # What matches return is no matter of evaluators.
        plain = replace(self.pattern, returns=()) if self.pattern.returns else self.pattern
        if plain.output != "all" and not evaluator.selects_output:
            self._selection = NonOverlap(plain)
            kept = {*(kept or ()), *self._selection.attributes}
            if not evaluator.prunes_output:
                plain = replace(plain, output="all")
            in_graphs = self._selection.takes_graphs and "compressed" in evaluator.outputs
            task = replace(task, output="compressed" if in_graphs else "matches")
        if output == "compressed":
            kept = set() if kept is None else kept  # a run may list matches instead
        if not evaluator.is_builtin:
            plain = plain.expanded  # it may read conditions only
        #: What the run gets of the task.
        self._run_task = replace(task, pattern=plain)
        self._run = self._called(by_arrival, self._run_task)
        if kept is not None:
            span = WINDOWS_KEPT * plain.window.length
            self._recent = RecentEvents(kept, span, task.position)

    def push(self, batch: EventStream) -> Any:
        """Process the next events and return the matches that they complete.

        Parameters
        ----------
        batch : EventStream
            The next events; timestamps must not decrease.

        Returns
        -------
        DataFrame, pyarrow.Table, int or CompressedMatches
            One row per match with the positions of its events in the stream, a tuple or list of
            them for a Kleene variable; or the number of matches, for ``output="count"``; or a graph
            of them, for ``output="compressed"``. With OR as in ``Result.matches``.

        Raises
        ------
        StreamError
            If the batch does not fit the pattern, starts before the last one ended, or has texts where
            there were numbers. Nothing has changed; push the corrected batch.
        PartialMatchLimitError
            If the limit is exceeded. The detector cannot be used any more.
        FailedStateError
            If an earlier push failed, or was interrupted, in the middle; see the notes.
        """
        return self._pushed(batch, shows=True)

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        if not len(batch):
            return self._given(self._nothing(batch), shows=shows)
        given = self._called(self._run.push, batch)
        self._note_time()
        if self._recent is not None:
            self._recent.push(batch)
        self._progress = progress
        return self._given(self._counted(given, ended=False), shows=shows)

    def _nothing(self, batch: EventStream) -> Any:
        """What is found in no event."""
        return Found(0, ())

    def _end(self, *, shows: bool) -> Any:
        given = self._called(self._run.finish)
        self._note_time()
        return self._given(self._counted(given, ended=True), shows=shows)

    def prepare(self, batch: EventStream) -> None:
        """Check that a run under ORDER BY arrival takes the next events; an error changes nothing."""
        if len(batch) and isinstance(self._run, ArrivalRun):
            self._run.prepare(batch)

    def stamp_by(self, clock: ArrivalClock | None) -> None:
        """Let a clock stamp the events, before the first one, where they are stamped."""
        if clock is not None and isinstance(self._run, ArrivalRun):
            self._run.start(clock)

    @property
    def clock(self) -> ArrivalClock | None:
        """The clock that stamps the events, before the first one; None if none is chosen."""
        return self._run.chosen if isinstance(self._run, ArrivalRun) else None

    def _check_fit(self, batch: EventStream) -> None:
        check_fit(self.pattern, batch)

    def adopt(self, old: Detector) -> bool:
        """Go on where a detector of the same task with another plan is, if the evaluator's runs can.

        Returns whether that is possible.
        """
        if not self._evaluator.adopts:
            return False
        with self._state.changing("a change of the plan"):
            adopted = bool(self._called(self._run.adopt, old._run))
            if adopted:
                self._succeed(old)
        return adopted

    def resume(self, old: Any, events: EventStream) -> None:
        """Go on where a detector of the same task with another plan is.

        Parameters
        ----------
        old : Detector
            It cannot be used any more.
        events : EventStream
            Those that may be in a match yet to come, from :attr:`position` on to the last one that
            was pushed to ``old``. What is found in them is not reported.
        """
        with self._state.changing("a change of the plan"):
            if len(events):
                self._called(self._run.push, events)
            self._succeed(old)

    def _succeed(self, old: Detector) -> None:
        """Take over what does not depend on the plan, and add up the metrics."""
        self._past = old.metrics()
        for name in ("_progress", "_seconds", "_matches", "_recent", "_selection"):
            setattr(self, name, getattr(old, name))

    @property
    def considered(self) -> int:
        """How many matches were found of which OUTPUT selects; 0 if the evaluator selects itself."""
        return 0 if self._selection is None else self._selection.considered

    @property
    def shares(self) -> bool:
        """Whether the evaluator can share state between several detectors."""
        return self._evaluator.together is not None

    def evaluator_of(self, query: str) -> str:
        """What computes a query."""
        return self.evaluator

    def leave(self) -> None:
        """Go out of use, where the evaluator shares state between several detectors."""
        self._state.end("was left")
        if self.shares:
            with self._state.changing("leaving"):
                self._called(self._run.leave)

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the evaluator; an error of a user-defined one names it."""
        if self._evaluator.is_builtin:
            return function(*arguments)
        with failures_of(f"the evaluator {self._evaluator.name}", EvaluationError):
            return function(*arguments)

    def _counted(self, given: Given, *, ended: bool) -> Found:
        if not isinstance(given, Found):
            its = self._progress
            positions = range(its.position - its.events, its.position)
            given = found_from(self.evaluator, given, self._run_task, positions)
        if self._selection is not None:
            assert self._recent is not None
            self._check_kept(self._recent, [m for m in given.matches if m is not None])
            given = self._selection.of(given, self._recent, ended=ended)
        if self.output == "compressed" and not given.graphs:
            given = self._in_graphs(given)
        self._matches += given.number
        return given

    def _in_graphs(self, found: Found) -> Found:
        """Listed matches as a graph for each branch."""
        assert self._recent is not None
        its = [(n, part) for n, part in enumerate(found.matches) if part is not None and len(part)]
        self._check_kept(self._recent, [part for _, part in its])
        times, first = self._recent.stream.timestamps, self._recent.first
        graphs = tuple(
            (number, graph_of_matches(part, times[part.last_positions() - first]))
            for number, part in its
        )
        return Found(found.number, (), graphs)

    def in_branches(self, found: Sequence[Found]) -> tuple[BranchMatches, ...]:
        """The matches of several batches, concatenated by branch."""
        return matches_by_branch(self.pattern, found)

    def _shown(self, found: Found) -> Any:
        if self.output == "count":
            return found.number
        if self.output == "compressed":
            return CompressedMatches(self.pattern, found.graphs)
        if found.values is not None:
            assert self._recent is not None
            kept = self._recent
            table = values_table(found.values, self.pattern, kept.stream, first=kept.first)
            return table if self.output == "arrow" else frame_of(table)
        matches = self.in_branches([found])
        if self.pattern.returns:
            assert self._recent is not None
            self._check_kept(self._recent, matches)
        return shown_matches(self.pattern, matches, self.output, self._recent)

    def _check_kept(self, recent: RecentEvents, matches: Sequence[BranchMatches]) -> None:
        """Check that the events of the matches are still kept."""
        firsts = [part.first_positions().min() for part in matches if len(part)]
        if firsts and min(firsts) < recent.first:
            raise EvaluationError(
                f"the evaluator {self.evaluator} reported a match that begins at position "
                f"{min(firsts)} more than {WINDOWS_KEPT} windows after it, when the values for "
                "RETURN and OUTPUT are no longer kept; leave them out, or use cep.evaluate"
            )

    def metrics(self) -> Metrics:
        """Metrics of the detection so far, summed over branches."""
        with self._state.changing("reading metrics", reads=True):
            counted = self._called(self._run.metrics)
        if not isinstance(counted, Metrics):
            raise EvaluationError(
                f"the evaluator {self.evaluator} gave {kind_of(counted)} as its metrics; a run's "
                "metrics() returns cepbench.engines.runs.result.Metrics"
            )
        if self._past is not None:
            counted = added(self._past, counted)
        events = self._progress.events
        return replace(counted, seconds=self._seconds, events=events, matches=self._matches)

    def latency(self) -> Latency | None:
        """The distribution of latencies so far; None if not measured."""
        return self.metrics().latency

    def node_metrics(self) -> pd.DataFrame:
        """Metrics of each node of the plan.

        Returns
        -------
        DataFrame
            Leaves of the positive variables in written order, of the negated ones, then the inner
            nodes, children before parents, the root last. Columns: ``variables``; ``created``, rows
            created; ``comparisons``; ``peak_stored``, maximum number of extensible rows;
            ``mean_stored``, rows that coexist within the window, averaged over time (NaN at the
            root, whose rows are matches); ``seconds`` spent in the node (NaN without
            ``node_times``). With OR also ``branch``. Of an automaton one row per edge: ``state``,
            ``edge``; ``tested`` and ``passed``, runs and events for which it was tested and held;
            ``time_share``, its share of the tests; ``mean_runs`` and ``peak_runs``, the runs stored
            in the state, see :func:`cepbench.engines.sase.edge_table.edge_counts`. They are NaN
            without ``node_times``.

        Raises
        ------
        UnsupportedTaskError
            If the evaluator has no metrics by node.
        """
        table = self.node_table()
        if table is None:
            refuse(self._evaluator, "count what happens at nodes", lambda e: e.node_times)
        return table.frame()

    def node_table(self) -> NodeTable | None:
        """The table of :meth:`node_metrics`; None if the evaluator has none."""
        if not self._evaluator.node_times:
            return None
        with self._state.changing("reading metrics", reads=True):
            table: NodeTable = self._run.node_table()
            return table

    @property
    def _past_counts(self) -> dict[str, Any] | None:
        if self._past is None:
            return None
        return {name: getattr(self._past, name) for name in (*_LARGEST, "details", "work")}

    @_past_counts.setter
    def _past_counts(self, counts: dict[str, Any] | None) -> None:
        self._past = None if counts is None else Metrics(**counts)

    def check_saves(self) -> None:
        """See :meth:`cepbench.engines.detection.live.Live.check_saves`."""
        if not self._evaluator.snapshots:
            refuse(self._evaluator, "save its state", lambda e: e.snapshots)

    def _header(self) -> dict[str, Any]:
        task = replace(self._task, plan=self.plan, position=self.position)
        return task.packed()

    @classmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        return cls.of_task(unpacked(header))

    def resume_from(self, snapshot: Arrays) -> None:
        """Go on where a detector with the same arguments was; parameters as :meth:`restore`.

        Raises
        ------
        SnapshotError
            Also if the other detector had another pattern, plan or evaluator.
        """
        header, arrays = unsealed(snapshot, self.CALLED)
        mine = json.loads(json.dumps(self._header()))
        other = [
            name for name in ("pattern", "plan", "evaluator") if header.get(name) != mine[name]
        ]
        if other:
            raise SnapshotError(
                f"the snapshot is that of a detector with another {' and '.join(other)}; resume "
                "with the same, or start without the snapshot"
            )
        self._resume(arrays)


def shown_matches(
    pattern: Pattern, matches: Sequence[BranchMatches], output: str, recent: RecentEvents | None
) -> pd.DataFrame | pa.Table:
    """The matches of each branch as a table, of the values of kept events where the pattern returns such."""
    table = arrow_table(pattern, matches)
    if pattern.returns:
        assert recent is not None
        table = returned_table(table, pattern, recent.stream, first=recent.first)
    return table if output == "arrow" else frame_of(table)


#: Metrics of several runs of which the largest counts.
_LARGEST = ("peak_partial_matches", "peak_buffered_events", "peak_bytes")


def added(first: Metrics, second: Metrics) -> Metrics:
    """The metrics of two runs, one after the other; without means, which are of a single one."""
    largest: dict[str, Any] = {
        name: max(getattr(second, name), getattr(first, name)) for name in _LARGEST
    }
    names = dict.fromkeys([*first.details, *second.details])
    details = {name: first.details.get(name, 0) + second.details.get(name, 0) for name in names}
    return Metrics(**largest, details=details, work=Work.total([first.work, second.work]))
