"""Incremental detection: events in, batch by batch, matches out; state that can be put away."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import choice, flag, whole
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PartialMatchLimitError,
    PlanError,
    SnapshotError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.evaluators.arrow_matches import arrow_table
from cepbench.evaluators.joins.engine import Engine
from cepbench.evaluators.joins.partitions import PartitionRanks
from cepbench.evaluators.joins.snapshot import (
    pack,
    plan_from_json,
    plan_to_json,
    read_snapshot,
    sealed,
    unpack,
    unsealed,
    write_snapshot,
)
from cepbench.evaluators.joins.union import Union, waits
from cepbench.evaluators.latency import Latency
from cepbench.evaluators.matches import BranchMatches, branches_frame
from cepbench.evaluators.node_table import NodeTable
from cepbench.evaluators.registry import evaluator_for
from cepbench.evaluators.result import Metrics
from cepbench.kernels.joins import tables
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import reread
from cepbench.plans.given import plan_from
from cepbench.plans.model import Plan, UnionPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit
from cepbench.streams.given import stream_from
from cepbench.streams.numeric import NumericReader

#: What may be asked for: how many matches there are, a DataFrame or an Arrow table of them.
OUTPUTS = ("matches", "arrow", "count")

#: Partial matches that may be stored; a few gigabytes at most.
PARTIAL_MATCH_LIMIT = 20_000_000


class Detector:
    """Finds the matches of a pattern in a stream that comes in batches.

    However the stream is cut, the matches are the same. What is kept between batches is
    proportional to what arrives within a window.

    Parameters
    ----------
    pattern : Pattern or str
        Or its text.
    plan : OrderPlan, TreePlan or UnionPlan
        One plan, or for a pattern with OR one for each of its branches.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; by default the one made for the kind of plan.
    output : {"matches", "arrow", "count"}
        What :meth:`push` gives: a DataFrame or an Arrow table of the matches, or their number.
    partial_match_limit : int
        How many partial matches may be stored before the run ends with an error.
    latency : bool
        Whether to measure when each match is reported. Events are then taken up one timestamp
        after the other, as on a live stream, which takes longer in all.
    node_times : bool
        Whether to measure how much time goes into each node of the plan.

    Raises
    ------
    PatternError, PlanError, EvaluationError, UnsupportedPatternError
        If an argument makes no sense, or plan, evaluator and pattern do not fit each other.
    """

    def __init__(
        self,
        pattern: Pattern | str,
        plan: Plan | UnionPlan,
        *,
        evaluator: str | None = None,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
        latency: bool = False,
        node_times: bool = False,
    ) -> None:
        pattern, plan = pattern_from(pattern), plan_from(plan)
        output = choice(output, "output", OUTPUTS, EvaluationError)
        limit = whole(partial_match_limit, "partial_match_limit", EvaluationError, least=1)
        latency = flag(latency, "latency", EvaluationError)
        node_times = flag(node_times, "node_times", EvaluationError)
        branches = pattern.branches()
        check_parts(plan, branches)
        if len(branches) > 1 and "branch" in pattern.positive_names:
            raise EvaluationError(
                "under OR, the table of matches has a column 'branch' of its own; rename the "
                "variable 'branch'"
            )
        chosen = evaluator_for(plan, evaluator)
        if chosen.run is not None:
            raise EvaluationError(
                f"the evaluator {chosen.name} takes whole streams, not batches; use cep.evaluate"
            )
        self.pattern = pattern
        self.plan = plan
        self.evaluator = chosen.name
        self.output = output
        self.partial_match_limit = limit
        self._timed = latency
        self._watched = node_times
        self._reader = NumericReader()
        self._union = Union(pattern)
        # Branches that consume each other's events run together.
        together = pattern.strategy.name == "consuming" and len(branches) > 1
        if together and any(waits(branch) for branch in branches):
            raise UnsupportedPatternError(
                "STRATEGY consuming under OR cannot wait for a negated event behind the others; "
                "put an item after the NOT, or evaluate the branches one by one"
            )
        trees = [chosen.structure(part) for part in plan.parts]
        numbers = list(range(len(branches)))
        self._engines = [
            Engine(
                [branches[number] for number in group],
                [trees[number] for number in group],
                written=pattern.positive_names,
                reader=self._reader,
                reports=output != "count" or any(map(self._union.compares, group)),
                limit=limit,
                timed=latency,
                watched=node_times,
            )
            for group in ([numbers] if together else [[number] for number in numbers])
        ]
        self._position = 0
        self._first: int | None = None
        self._last: int | None = None
        self._matches = 0
        self._seconds = 0.0
        self._ended = ""

    @property
    def position(self) -> int:
        """How many events have been pushed: the position of the next one."""
        return self._position

    def push(self, batch: EventStream) -> Any:
        """Take in the next events and give the matches that they complete.

        Parameters
        ----------
        batch : EventStream
            Events that follow those pushed before; timestamps never decrease.

        Returns
        -------
        DataFrame, pyarrow.Table or int
            One row a match with the positions of its events, counted from the first event ever
            pushed, a tuple or list of them for a Kleene variable; or how many matches there are,
            for ``output="count"``. Of a pattern with OR as in ``Result.matches``.

        Raises
        ------
        StreamError
            If the batch does not fit the pattern or starts before the last one ended.
        PartialMatchLimitError
            If more partial matches would have to be stored than allowed. The detector is of no
            further use then.
        """
        matches, found = self.advance(batch)
        return self._shown(matches, found)

    def flush(self) -> Any:
        """Say that the stream has ended; gives the matches that waited for its end.

        A match waits while a negated event may still come that would rule it out: behind its last
        event, or for a negation under AND on either side.
        """
        self._refuse_if_ended()
        began = time.perf_counter()
        matches, found = self._run(None, ended=True)
        self._seconds += time.perf_counter() - began
        self._ended = "was flushed"
        return self._shown(matches, found)

    def advance(
        self, batch: EventStream, *, ended: bool = False
    ) -> tuple[list[BranchMatches], int]:
        """As :meth:`push`, but gives the matches of each branch as arrays, and their number.

        With ``ended`` no further events follow, and what waits is given too.
        """
        self._refuse_if_ended()
        batch = stream_from(batch, "the batch")
        began = time.perf_counter()
        check_fit(self.pattern, batch)
        if len(batch) and self._last is not None and batch.timestamps[0] < self._last:
            raise StreamError(
                f"row {self._position}: this batch starts at {batch.timestamps[0]}, before the "
                f"last event pushed ({self._last}); push batches in the order of time",
                row=self._position,
            )
        if len(batch):
            if self._first is None:
                self._first = int(batch.timestamps[0])
            self._last = int(batch.timestamps[-1])
        matches, found = self._run(batch if len(batch) else None, ended=ended)
        self._position += len(batch)
        if ended:
            self._ended = "has been told that its stream ended"
        self._seconds += time.perf_counter() - began
        return matches, found

    def _run(self, batch: EventStream | None, *, ended: bool) -> tuple[list[BranchMatches], int]:
        """What the engines find, each match once."""
        try:
            found = [engine.run(batch, self._position, ended=ended) for engine in self._engines]
        except PartialMatchLimitError:
            self._ended = "has stored too many partial matches"
            raise
        times = batch.timestamps if batch is not None else np.empty(0, np.int64)
        number, matches = self._union.of(found, times, self._position, ended=ended)
        self._matches += number
        return [part for part in matches if part is not None], number

    def _shown(self, matches: Sequence[BranchMatches], found: int) -> Any:
        if self.output == "count":
            return found
        if self.output == "arrow":
            return arrow_table(self.pattern, matches)
        if len(matches) == 1:
            return matches[0].frame()
        return branches_frame(self.pattern.positive_names, matches)

    def metrics(self) -> Metrics:
        """What the detection took so far; of several branches, all of them together."""
        span = self._span()
        created, lifetime, comparisons = 0, 0, 0
        peaks = np.zeros(tables.PEAKS, np.int64)
        for engine in self._engines:
            counts = engine.state.counts
            nodes = engine.layout.plan.nodes
            is_inner = np.arange(len(nodes)) >= engine.layout.plan.inner
            inner = counts[is_inner & (nodes[:, tables.IS_ROOT] == 0)]
            created += int(inner[:, tables.CREATED].sum())
            lifetime += int(inner[:, tables.LIFETIME].sum())
            comparisons += int(counts[:, tables.COMPARED].sum())
            peaks += engine.state.peaks
        return Metrics(
            seconds=self._seconds,
            events=self._position,
            matches=self._matches,
            partial_matches_created=created,
            mean_partial_matches=lifetime / span if span else 0.0,
            peak_partial_matches=int(peaks[tables.PEAK_PARTIAL_MATCHES]),
            peak_buffered_events=int(peaks[tables.PEAK_EVENTS]),
            peak_bytes=int(peaks[tables.PEAK_BYTES]),
            comparisons=comparisons,
            latency=self.latency(),
        )

    def _span(self) -> int:
        """The time from the first event to the last, in the unit of the timestamps."""
        return 0 if self._first is None or self._last is None else self._last - self._first

    def latency(self) -> Latency | None:
        """The distribution of latencies so far; None if they are not measured."""
        if not self._timed:
            return None
        return Latency(np.sum([engine.latencies for engine in self._engines], axis=0))

    def node_metrics(self) -> pd.DataFrame:
        """What happened at each node of the plan.

        Returns
        -------
        DataFrame
            Leaves first, those of the positive variables in the order of the pattern, then the
            negated ones; then the inner nodes, children before parents, the root last. Columns:
            ``variables``; ``created``, rows that came into being; ``comparisons``; ``peak_stored``,
            most rows that could still be extended; ``mean_stored``, rows that coexist within the
            window, averaged over time (NaN at the root, whose rows are matches); ``seconds`` that
            went into the node (NaN unless ``node_times`` was asked for). With OR also ``branch``.
        """
        return self.node_table().frame()

    def node_table(self) -> NodeTable:
        """What :meth:`node_metrics` shows, as it is now."""
        branches = [counts for engine in self._engines for counts in engine.node_counts()]
        return NodeTable(branches, self._span(), self._watched)

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays; :meth:`save` writes them to a file.

        A digest over all of them is one of them, so that :meth:`restore` sees any damage.
        """
        self._refuse_if_ended()
        header = {
            "pattern": str(self.pattern),
            "plan": plan_to_json(self.plan),
            "evaluator": self.evaluator,
            "output": self.output,
            "partial_match_limit": self.partial_match_limit,
            "position": self._position,
            "first": self._first,
            "last": self._last,
            "matches": self._matches,
            "seconds": self._seconds,
            "texts": self._reader.texts,
            "latency": self._timed,
            "node_times": self._watched,
            "partitions": [
                [] if engine.ranks is None else [list(pair) for pair in engine.ranks.counts.items()]
                for engine in self._engines
            ],
        }
        arrays = {"union": self._union.packed()}
        for number, engine in enumerate(self._engines):
            packed = pack(engine.layout.plan.nodes, engine.state)
            packed["latencies"] = engine.latencies.copy()
            arrays |= {f"{number}/{name}": array for name, array in packed.items()}
        return sealed(header, arrays)

    def save(self, path: str | Path) -> None:
        """Write a :meth:`snapshot` to a file for :meth:`load`, which is there whole or not at all.

        Parameters
        ----------
        path : path
            Of a file of whatever name; one that is there is replaced once the new one is whole.

        Raises
        ------
        SnapshotError
            If it cannot be written.
        """
        write_snapshot(self.snapshot(), path)

    @classmethod
    def load(cls, path: str | Path) -> Detector:
        """A detector that goes on where :meth:`save` was called, in whatever process.

        Parameters
        ----------
        path : path
            Of a file that :meth:`save` wrote, or ``numpy.savez`` from a :meth:`snapshot`.

        Raises
        ------
        SnapshotError
            If it cannot be read, is not a snapshot, is one of another version, or is damaged.
        """
        return cls.restore(read_snapshot(path))

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Detector:
        """A detector that goes on where :meth:`snapshot` was taken, in whatever process.

        Nothing of a snapshot is used before its digest has been found to be that of its arrays.
        That shows damage, not forgery: whoever can write a snapshot can take its digest.

        Parameters
        ----------
        snapshot : mapping of str to ndarray
            As given by :meth:`snapshot`, or loaded by ``numpy.load``.

        Raises
        ------
        SnapshotError
            If it is not a snapshot, is one of another version, or is damaged.
        """
        header, arrays = unsealed(snapshot)
        try:
            detector = cls(
                reread(header["pattern"]),
                plan_from_json(header["plan"]),
                evaluator=header["evaluator"],
                output=header["output"],
                partial_match_limit=header["partial_match_limit"],
                latency=header["latency"],
                node_times=header["node_times"],
            )
        except CepbenchError as error:
            raise SnapshotError(f"the snapshot's header makes no detector: {error}") from error
        for number, engine in enumerate(detector._engines):
            own = {
                name.removeprefix(f"{number}/"): array
                for name, array in arrays.items()
                if name.startswith(f"{number}/")
            }
            engine.state = unpack(own, engine.layout.plan)
            engine.restore_latencies(own)
            if engine.ranks is not None:
                engine.ranks = PartitionRanks(
                    engine.ranks.attribute, dict(header["partitions"][number])
                )
        detector._union.restore(detector.pattern, arrays)
        detector._position, detector._matches = header["position"], header["matches"]
        detector._first, detector._last = header["first"], header["last"]
        detector._seconds = header["seconds"]
        for text in header["texts"]:
            detector._reader.code(text)
        return detector

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise EvaluationError(f"this detector {self._ended}; make a new one")


def check_parts(plan: Plan | UnionPlan, branches: Sequence[Pattern]) -> None:
    """See that there is a plan for each branch, over its variables.

    Raises
    ------
    PlanError
        If not.
    """
    if len(plan.parts) != len(branches):
        wanted = (
            "a UnionPlan with a plan for each"
            if len(branches) > 1
            else "an OrderPlan or a TreePlan"
        )
        raise PlanError(
            f"the pattern has {len(branches)} branches and the plan {len(plan.parts)}; "
            f"give {wanted}"
        )
    for part, branch in zip(plan.parts, branches, strict=True):
        part.check(branch.positive_names)
