"""Results of an evaluation: matches and metrics."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from math import nan
from typing import Protocol

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import text
from cepbench.engines.runs.arrow_matches import arrow_table, event_time, with_events
from cepbench.engines.runs.choice import Choice
from cepbench.engines.runs.compressed import CompressedMatches, drawn_numbers
from cepbench.engines.runs.kernels.values import Rows
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.matches import BranchMatches, picked
from cepbench.engines.runs.returned import frame_of, returned_table, values_table
from cepbench.engines.runs.work import WORDS, Work
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from

#: Matches that are printed.
_SHOWN = 10

#: Columns of the table behind :meth:`Result.as_stream`.
_TYPE, _TIME = " type", " time"


@dataclass(frozen=True, kw_only=True)
class RunCounts:
    """What the runs of an automaton did [agrawal2008]_, sections 4.1 and 6; NaN if not measured."""

    runs_started: int = 0  #: runs that an event of the first item started
    runs_split: int = 0  #: copies of runs, made where a run could move in two ways
    runs_merged: int = 0  #: runs that became part of another one
    runs_per_step: float = nan  #: runs that were looked at, averaged over the events
    #: The same had no runs been merged. With merging it is known if matches are only counted and
    #: ``node_times`` are measured.
    runs_apart_per_step: float = nan
    peak_runs: int = 0  #: maximum number of runs at a time
    match_length: float = nan  #: events of a match, averaged over those that were listed
    output_complexity: int = 0  #: events in all matches that were listed: the sum of their lengths
    events_reprocessed: int = 0  #: events read again after backtracking
    #: Time of the moves of runs, of the construction of matches, and of updates of the buffer.
    seconds_matching: float = nan
    seconds_construction: float = nan
    seconds_buffer: float = nan

    @property
    def merged_percent(self) -> float:
        """Of the runs without merging the share that merging saves, in per cent; NaN if not known.

        At a step, as the paper's Table 3 seems to count it.
        """
        apart = self.runs_apart_per_step
        return 100 * (1 - self.runs_per_step / apart) if apart > 0 else nan

    def to_dict(self) -> dict[str, float]:
        """All by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {
            "merged_percent": self.merged_percent
        }


@dataclass(frozen=True)
class Metrics:
    """Metrics of an evaluation [kolchinsky2018]_, section 6.2.

    A run sets those that its evaluator measures; others are NaN. The front end adds the first
    three.

    Raises
    ------
    EvaluationError
        If a detail has the name of a metric.
    """

    seconds: float = 0.0  #: wall-clock time of the evaluation, without compilation and set-up
    events: int = 0  #: events pushed, of any type
    matches: int = 0
    #: Partial matches of two events or more, without matches.
    partial_matches_created: int | float = nan
    #: Partial matches that coexist within the window, averaged over time; the cost models estimate
    #: this as the sum of PM over the inner nodes below the root.
    mean_partial_matches: float = nan
    #: Maximum number of stored partial matches: those that a later event can extend, in the engines
    #: that go event by event those within the window.
    peak_partial_matches: int | float = nan
    peak_buffered_events: int | float = nan  #: maximum number of stored single events, likewise
    #: Maximum size of stored events and partial matches, including expired ones not yet evicted.
    peak_bytes: int | float = nan
    #: Pairs whose conditions were tested one by one, without those skipped by a search in time. It
    #: may vary slightly with the size of batches, which affects the time of eviction.
    comparisons: int | float = nan
    latency: Latency | None = None  #: detection latency, if measured
    runs: RunCounts | None = None  #: what the runs of an automaton did, if the evaluator has one
    #: Further metrics, specific to the evaluator.
    details: Mapping[str, float] = field(default_factory=dict)
    #: What was done, in the words of :data:`~cepbench.engines.runs.work.WORDS`, two of which are also
    #: metrics above.
    work: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        if self.details and (taken := self.details.keys() & _metric_names()):
            raise EvaluationError(
                f"details of metrics need other names than {', '.join(sorted(taken))}, which are "
                "those of metrics"
            )
        work = dict(self.work)
        for name in _WORDS:
            value = getattr(self, name)
            if value == value:
                work[name] = value
            elif name in work:
                object.__setattr__(self, name, work[name])
        object.__setattr__(self, "work", Work(work))

    @property
    def events_per_second(self) -> float:
        """Throughput; NaN if the time is too short to measure."""
        return self.events / self.seconds if self.seconds > 0 else float("nan")

    def to_dict(self) -> dict[str, float]:
        """All metrics by name, and details; latencies are in seconds, NaN if not measured."""
        special = ("latency", "runs", "details", "work")
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in special}
        measured = {
            f"latency_{name}": getattr(self.latency, name) if self.latency else float("nan")
            for name in ("mean", "median", "p95", "p99")
        }
        runs = self.runs.to_dict() if self.runs else {}
        return {
            "events_per_second": self.events_per_second, **plain, **measured, **runs,
            **self.work, **self.details,
        }  # fmt: skip

    def describe(self) -> str:
        """One line per metric."""
        return "\n".join(
            f"{name.replace('_', ' '):<26}{value:>18,.6g}"
            if isinstance(value, float)
            else f"{name.replace('_', ' '):<26}{value:>18,}"
            for name, value in self.to_dict().items()
            if self.latency is not None or not name.startswith("latency")
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>"


@cache
def _metric_names() -> frozenset[str]:
    """The names of all metrics, without details."""
    return frozenset(Metrics().to_dict()) | WORDS.keys()


#: The metrics that are words of work.
_WORDS = ("partial_matches_created", "comparisons")


class NodeTable(Protocol):
    """Metrics by node of a plan, converted to a table on demand."""

    def frame(self) -> pd.DataFrame:
        """One row per node; see :meth:`cepbench.engines.detection.detector.Detector.node_metrics`."""
        ...


class Numbered(Protocol):
    """Matches that are found by their numbers, one without the others."""

    def picked(self, numbers: Sequence[int]) -> tuple[BranchMatches, ...]:
        """The matches of these ascending numbers, by branch, with positions in the evaluated stream."""
        ...


def check_evaluated(stream: EventStream, events: int) -> None:
    """Raise a StreamError if it is no stream, or has another number of events than the evaluated one."""
    if len(stream_from(stream)) != events:
        raise StreamError(
            f"the result is that of a stream of {events:,} events, and this one has {len(stream):,}; give "
            "the stream that was evaluated, which is the part"
        )


@dataclass(frozen=True)
class Result:
    """Matches and metrics of one evaluation."""

    pattern: Pattern
    plan: AnyPlan | None
    evaluator: str
    metrics: Metrics
    #: Metrics by node of the plan, see :attr:`nodes`; None if the evaluator has none.
    node_table: NodeTable | None = field(repr=False)
    #: Each branch's matches in the order in which they were found; None if only counted.
    found: tuple[BranchMatches, ...] | None = field(repr=False)
    #: The stream; None if it is not at hand.
    events: EventStream | None = field(default=None, repr=False)
    #: The positions to show for positions in the stream, int64; see :meth:`in_whole_stream`.
    places: np.ndarray | None = field(default=None, repr=False)
    #: The matches as a graph, see :attr:`compressed`.
    graph: CompressedMatches | None = field(default=None, repr=False)
    #: The matches that were only counted, to draw from; see :meth:`sample`.
    counted: Numbered | None = field(default=None, repr=False)
    #: What RETURN needs of the matches, if the evaluator found no more; they have no
    #: :attr:`positions` then, and those of one last event are in :attr:`matches` as found.
    values: Rows | None = field(default=None, repr=False)
    #: Expected times of engines, by which the evaluator was chosen; None if plan or evaluator were given.
    choice: Choice | None = None

    @property
    def latency(self) -> Latency | None:
        """Detection latency; None if not measured."""
        return self.metrics.latency

    @property
    def runs(self) -> RunCounts | None:
        """What the runs of an automaton did; None if the evaluator has none."""
        return self.metrics.runs

    @property
    def compressed(self) -> CompressedMatches:
        """The matches as a graph: counted, sampled and enumerated without a list of them.

        Raises
        ------
        EvaluationError
            If matches were not kept as a graph.
        """
        if self.graph is None:
            raise EvaluationError(
                f"the {self.metrics.matches:,} matches were not kept as a graph; "
                'evaluate with output="compressed"'
            )
        return self.graph if self.places is None else self.graph.moved(self.places)

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """One row per node of the plan; see :meth:`Detector.node_metrics`.

        Raises
        ------
        EvaluationError
            If the evaluator has no metrics by node.
        """
        if self.node_table is None:
            raise EvaluationError(
                f"the evaluator {self.evaluator} counts nothing at the nodes of a plan; "
                'evaluate or explain with evaluator="tree"'
            )
        return self.node_table.frame()

    @cached_property
    def matches(self) -> pd.DataFrame:
        """One row per match: :attr:`positions`, or the columns of the pattern's RETURN clause.

        RETURN gives a variable as in :attr:`positions`; an attribute with its type in the stream,
        of a Kleene variable tuples; aggregates and other expressions as numbers. Missing values
        are NaN, None or pd.NA, depending on the type. The order is that of :attr:`positions`.

        Raises
        ------
        EvaluationError
            If matches were only counted.
        """
        return frame_of(self._in_order()[0]) if self.pattern.returns else self.positions

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """``n`` matches drawn independently and uniformly, in the columns and order of :attr:`matches`.

        Matches that were only counted, or kept as a graph, are not listed.

        Parameters
        ----------
        n : int
        seed : int

        Returns
        -------
        DataFrame
            With ``n`` rows, some of which may be the same match.

        Raises
        ------
        EvaluationError
            If there are no matches, or an argument is invalid.
        UnsupportedTaskError
            If matches were only counted, and which there are depends on others.
        """
        numbers = drawn_numbers(n, self.metrics.matches, seed)
        if self.values is not None:
            return frame_of(self.arrow.take(pa.array(numbers, pa.int64())))
        its = self.graph or self.counted
        found = picked(self._listed, numbers) if its is None else its.picked(numbers)
        return replace(self, found=found, graph=None, counted=None).matches

    def as_stream(self, type: str) -> EventStream:
        """The matches as events, for the next pattern (composition [agrawal2008]_, section 2).

        Parameters
        ----------
        type : str
            The type of all events.

        Returns
        -------
        EventStream
            One event a match, with the timestamp of its last event and the columns of RETURN as
            attributes, in the order of :attr:`matches`.

        Raises
        ------
        EvaluationError
            If the pattern returns no columns, or lists of values; or if matches were only counted.
        StreamError
            If a column cannot be an attribute.
        """
        type = text(type, "type", EvaluationError)
        if not self.pattern.returns:
            raise EvaluationError(
                "the pattern returns positions, which mean nothing in another stream; add RETURN "
                "with the values that the next pattern needs, such as RETURN sum(b.price) AS total"
            )
        table, last = self._in_order()
        for column in table.schema:
            if pa.types.is_large_list(column.type):
                raise EvaluationError(
                    f"RETURN has all values of a Kleene variable in {column.name!r}, and an "
                    "attribute of an event is one value; return b[1].x, b[last].x or an aggregate"
                )
        assert self.events is not None
        times = self.events.timestamps[last]
        if self.events.is_datetime:
            times = times.view("datetime64[ns]")
        # A type without events is known, too.
        codes = pa.array(np.zeros(len(last), np.int32))
        types = pa.DictionaryArray.from_arrays(codes, [type])
        # No column of RETURN is named so.
        table = table.append_column(_TYPE, types).append_column(_TIME, pa.array(times))
        return EventStream.from_arrow(table, type=_TYPE, time=_TIME)

    def _in_order(self) -> tuple[pa.Table, np.ndarray]:
        """The columns of RETURN in the order of matches, and the positions of their last events."""
        if self.values is not None:
            return self.arrow, self.values.lasts[-1]
        table, last = self._sorted(shown=False)
        return self._returned(table), last

    def _sorted(self, *, shown: bool) -> tuple[pa.Table, np.ndarray]:
        """Positions, in the stream or those to show, in the order of matches, and the last ones."""
        # In the order of the stream, which is not that of a file that had to be sorted.
        parts = [part.taken(part.in_order()) for part in self._listed]
        last = np.concatenate([part.last_positions() for part in parts])
        table = arrow_table(self.pattern, self._shown(parts) if shown else parts)
        if len(parts) == 1:
            return table, last
        order = np.argsort(last, kind="stable")
        return table.take(pa.array(order)), last[order]

    def _first(self, most: int) -> pd.DataFrame:
        """The first of :attr:`matches` with the times of their events, and what conditions read of them."""
        if self.pattern.returns or self.events is None:
            return self.matches.head(most)
        positions = self._sorted(shown=False)[0].slice(0, most)
        read = [event_time(self.events), *self.pattern.attributes]
        whole = self.places is not None
        return frame_of(with_events(positions, self.events, attributes=read, whole=whole))

    @cached_property
    def positions(self) -> pd.DataFrame:
        """One row per match, one column per positive variable with the positions of its events.

        The column of a Kleene variable has tuples of positions. Matches are sorted by the position
        of their last event, then by their positions in written order, so the table does not depend
        on the plan. With OR there are the columns of all branches, with missing values for
        variables that a branch lacks, and ``branch``, the number of the branch in
        ``pattern.branches()``; rows are sorted by last position, then by branch.

        Raises
        ------
        EvaluationError
            If matches were only counted.
        """
        return frame_of(self._sorted(shown=True)[0])

    @cached_property
    def arrow(self) -> pa.Table:
        """:attr:`matches` as an Arrow table, in the order found.

        Positions are neither copied nor sorted, which would take longer than finding them. The
        column of a Kleene variable has lists; missing values are null; the branches of an OR are
        concatenated.

        Raises
        ------
        EvaluationError
            If matches were only counted.
        """
        if self.values is not None:
            assert self.events is not None
            return values_table(self.values, self.pattern, self.events, places=self.places)
        if self.pattern.returns and self.graph is not None:
            assert self.events is not None
            return self.compressed.returned(self.events)
        if self.pattern.returns:
            return self._returned(arrow_table(self.pattern, self._listed))
        return arrow_table(self.pattern, self._shown(self._listed))

    def in_whole_stream(self, stream: EventStream) -> Result:
        """The result with positions in the whole stream of which ``stream`` is a part.

        Parameters
        ----------
        stream : EventStream
            The evaluated stream: a slice, some types or some days of another one, or one that had to
            be sorted, whose matches then have rows of the file; the matches are still in the order of
            time, and so are the events of a Kleene variable.

        Raises
        ------
        StreamError
            If the stream has no positions in a whole stream, or another number of events than the
            evaluated one.
        """
        check_evaluated(stream, self.metrics.events)
        kept = (self.found, self.graph, self.values)
        if all(its is None for its in kept) and (self.counted is None or stream.positions is None):
            return self
        return replace(self, places=stream.whole_positions())

    def _returned(self, positions: pa.Table) -> pa.Table:
        assert self.events is not None
        return returned_table(positions, self.pattern, self.events, places=self.places)

    def _shown(self, found: Sequence[BranchMatches]) -> Sequence[BranchMatches]:
        """Matches with the positions to show."""
        places = self.places
        return found if places is None else [part.moved(places.__getitem__) for part in found]

    @cached_property
    def _listed(self) -> tuple[BranchMatches, ...]:
        """The matches, if need be enumerated."""
        if self.graph is not None:
            return self.graph.branch_matches()
        if self.values is not None:
            raise EvaluationError(
                "the matches' values were kept for RETURN, but not their positions; "
                'evaluate with output="matches"'
            )
        if self.found is None:
            raise EvaluationError(
                f"the {self.metrics.matches:,} matches were only counted; "
                'evaluate with output="matches" or "arrow" to keep them'
            )
        return self.found

    def describe(self) -> str:
        """The evaluator, the plan and the metrics."""
        plan = "no plan" if self.plan is None else self.plan.describe()
        chosen = "" if self.choice is None else f"\n{self.choice}"
        return f"{self.evaluator}: {plan}{chosen}\n{self.metrics.describe()}"

    def __repr__(self) -> str:
        plan = "" if self.plan is None else f" along {self.plan.text}"
        its = self.metrics
        found = f"{its.matches:,} match{'' if its.matches == 1 else 'es'}"
        return (
            f"{type(self).__name__}({found} by {self.evaluator}{plan} over {its.events:,} events "
            f"in {its.seconds:.3g} s)"
        )

    def __str__(self) -> str:
        if (self.found is None and self.values is None) or not self.metrics.matches:
            return repr(self)
        more = self.metrics.matches - _SHOWN
        rest = f"\n… and {more:,} more" if more > 0 else ""
        return f"{self!r}\n{self._first(_SHOWN).to_string()}{rest}"

    def _repr_html_(self) -> str:
        found = ""
        if self.graph is not None:
            found = self.compressed._repr_html_()
        if self.found is not None or self.values is not None:
            found = self._first(_SHOWN).to_html(escape=True, index=False)
        heading = f"{self.metrics.matches:,} matches by the {self.evaluator} evaluator"
        return f"<p>{html.escape(heading)}</p>{found}{self.metrics._repr_html_()}"


def shown_bytes(number: float | None) -> str:
    """A number of bytes with three digits and a unit, such as ``41.4 kB``; empty if missing."""
    if number is None or pd.isna(number):
        return ""
    for unit in ("B", "kB", "MB"):
        # Larger numbers would be rounded to the next unit.
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"
