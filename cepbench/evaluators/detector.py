"""Incremental detection: events in, batch by batch, matches out; state that can be put away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import pandas as pd

from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PartialMatchLimitError,
    SnapshotError,
    StreamError,
)
from cepbench.evaluators.layout import JoinLayout, join_layout
from cepbench.evaluators.programs import new_stack
from cepbench.evaluators.registry import evaluator_for
from cepbench.evaluators.result import Metrics, matches_frame
from cepbench.evaluators.snapshot import (
    NodeState,
    header_of,
    pack,
    plan_from_json,
    plan_to_json,
    unpack,
)
from cepbench.kernels import tables
from cepbench.kernels.advance import advance
from cepbench.kernels.filters import BLOCK
from cepbench.kernels.join import OUTER_BLOCK
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.model import Attribute, Pattern
from cepbench.patterns.parse import parse, reread
from cepbench.plans.model import OrderPlan, TreePlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit
from cepbench.streams.numeric import NumericReader

#: Events are taken in steps of this part of a window, so that what is expired is soon forgotten.
STEPS_PER_WINDOW = 8

#: Partial matches that may be stored; a few gigabytes at most.
PARTIAL_MATCH_LIMIT = 20_000_000


class Detector:
    """Finds the matches of a pattern in a stream that comes in batches.

    However the stream is cut, the matches are the same. What is kept between batches is
    proportional to what arrives within a window.

    Parameters
    ----------
    pattern : Pattern
    plan : OrderPlan or TreePlan
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; by default the one made for the kind of plan.
    output : {"matches", "count"}
    partial_match_limit : int
        How many partial matches may be stored before the run ends with an error.

    Raises
    ------
    PlanError, EvaluationError, UnsupportedPatternError
        If plan, evaluator and pattern do not fit each other.
    """

    def __init__(
        self,
        pattern: Pattern,
        plan: OrderPlan | TreePlan,
        *,
        evaluator: str | None = None,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    ) -> None:
        if output not in ("matches", "count"):
            raise EvaluationError(f'output is "matches" or "count", not {output!r}')
        if partial_match_limit < 1:
            raise EvaluationError(
                f"partial_match_limit must be positive, not {partial_match_limit}"
            )
        plan.check(pattern.names)
        chosen = evaluator_for(plan, evaluator)
        self.pattern = pattern
        self.plan = plan
        self.evaluator = chosen.name
        self.output = output
        self.partial_match_limit = partial_match_limit
        self._reader = NumericReader()
        self._layout = join_layout(
            pattern,
            chosen.structure(plan),
            positions=output == "matches",
            code=self._reader.code,
        )
        self._kept = NodeState.empty(len(self._layout.plan.nodes))
        self._scratch = _scratch(self._layout)
        self._position = 0
        self._first: int | None = None
        self._last: int | None = None
        self._matches = 0
        self._seconds = 0.0
        self._ended = ""
        warm_up()

    @property
    def position(self) -> int:
        """How many events have been pushed: the position of the next one."""
        return self._position

    def push(self, batch: EventStream) -> pd.DataFrame | int:
        """Take in the next events and give the matches that they complete.

        Parameters
        ----------
        batch : EventStream
            Events that follow those pushed before; timestamps never decrease.

        Returns
        -------
        DataFrame or int
            One row a match with the positions of its events, counted from the first event ever
            pushed; or how many matches there are, for ``output="count"``.

        Raises
        ------
        StreamError
            If the batch does not fit the pattern or starts before the last one ended.
        PartialMatchLimitError
            If more partial matches would have to be stored than allowed. The detector is of no
            further use then.
        """
        matches, found = self.advance(batch)
        return found if self.output == "count" else matches_frame(self.pattern, matches)

    def flush(self) -> pd.DataFrame | int:
        """Say that the stream has ended; gives the matches that waited for its end.

        Only a trailing negation makes a match wait, so there are none for patterns of plain events.
        """
        self._refuse_if_ended()
        self._ended = "was flushed"
        if self.output == "count":
            return 0
        return matches_frame(self.pattern, np.empty((len(self.pattern.names), 0), np.int64))

    def advance(self, batch: EventStream) -> tuple[np.ndarray, int]:
        """As :meth:`push`, but gives an int64 array (variables, matches) and their number."""
        self._refuse_if_ended()
        if not isinstance(batch, EventStream):
            raise EvaluationError(
                f"push takes an EventStream, not a {type(batch).__name__}; "
                "see EventStream.from_pandas and from_arrow"
            )
        began = time.perf_counter()
        check_fit(self.pattern, batch)
        if not len(batch):
            return np.empty((len(self.pattern.names), 0), np.int64), 0
        if self._last is not None and batch.timestamps[0] < self._last:
            raise StreamError(
                f"row {self._position}: this batch starts at {batch.timestamps[0]}, before the "
                f"last event pushed ({self._last}); push batches in the order of time",
                row=self._position,
            )
        matches, found = self._run(batch)
        if self._first is None:
            self._first = int(batch.timestamps[0])
        self._last = int(batch.timestamps[-1])
        self._position += len(batch)
        self._matches += found
        self._seconds += time.perf_counter() - began
        return matches, found

    def metrics(self) -> Metrics:
        """What the detection took so far."""
        inner = self._kept.counts[len(self._layout.leaves) : -1]
        span = 0 if self._first is None or self._last is None else self._last - self._first
        return Metrics(
            seconds=self._seconds,
            events=self._position,
            matches=self._matches,
            partial_matches_created=int(inner[:, tables.CREATED].sum()),
            mean_partial_matches=float(inner[:, tables.LIFETIME].sum() / span) if span else 0.0,
            peak_partial_matches=int(self._kept.peaks[tables.PEAK_PARTIAL_MATCHES]),
            peak_buffered_events=int(self._kept.peaks[tables.PEAK_EVENTS]),
            peak_bytes=int(self._kept.peaks[tables.PEAK_BYTES]),
            comparisons=int(self._kept.counts[:, tables.COMPARED].sum()),
        )

    def node_metrics(self) -> pd.DataFrame:
        """What happened at each node: variables, rows created, comparisons, most rows stored."""
        return pd.DataFrame(
            {
                "variables": [", ".join(names) for names in self._layout.nodes],
                "created": self._kept.counts[:, tables.CREATED],
                "comparisons": self._kept.counts[:, tables.COMPARED],
                "peak_stored": self._kept.counts[:, tables.PEAK],
            }
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays, for example for ``numpy.savez``."""
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
        }
        return pack(header, self._layout.plan.nodes, self._kept)

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Detector:
        """A detector that goes on where :meth:`snapshot` was taken, in whatever process.

        Parameters
        ----------
        snapshot : mapping of str to ndarray
            As given by :meth:`snapshot`, or loaded by ``numpy.load``.

        Raises
        ------
        SnapshotError
            If it is not a snapshot, is one of another version, or is damaged.
        """
        header = header_of(snapshot)
        try:
            detector = cls(
                reread(header["pattern"]),
                plan_from_json(header["plan"]),
                evaluator=header["evaluator"],
                output=header["output"],
                partial_match_limit=header["partial_match_limit"],
            )
        except CepbenchError as error:
            raise SnapshotError(f"the snapshot's header makes no detector: {error}") from error
        detector._kept = unpack(snapshot, detector._layout.plan.nodes)
        detector._position, detector._matches = header["position"], header["matches"]
        detector._first, detector._last = header["first"], header["last"]
        detector._seconds = header["seconds"]
        detector._reader = NumericReader(header["texts"])
        return detector

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise EvaluationError(f"this detector {self._ended}; make a new one")

    def _run(self, batch: EventStream) -> tuple[np.ndarray, int]:
        events, starts, values, value_starts = self._leaf_events(batch)
        if len(self._layout.leaves) == 1:
            return events[1:], events.shape[1]
        kept = self._kept
        # Divisions by zero are part of a condition's value, not a mistake.
        with np.errstate(all="ignore"):
            kept.ints, kept.floats, matches, found, outcome = advance(
                self._layout.plan,
                max(1, self.pattern.window.length // STEPS_PER_WINDOW),
                self.partial_match_limit,
                kept.state,
                kept.counts,
                kept.peaks,
                kept.ints,
                kept.floats,
                self._scratch,
                events,
                starts,
                values,
                value_starts,
                self.output == "matches",
            )
        if outcome == tables.TOO_MANY:
            self._ended = "has stored too many partial matches"
            raise PartialMatchLimitError(self._too_many())
        return matches[:, :found], found

    def _too_many(self) -> str:
        first = len(self._layout.leaves)
        rows = self._kept.state[first:, tables.END] - self._kept.state[first:, tables.START]
        names = ", ".join(self._layout.nodes[first + int(rows.argmax())])
        return (
            f"more than {self.partial_match_limit:,} partial matches have to be stored, most of "
            f"them over ({names}); try another plan generator, a shorter window or more conditions, "
            "or allow more with partial_match_limit"
        )

    def _reading(self, batch: EventStream, rows: np.ndarray) -> Callable[[Attribute], np.ndarray]:
        return lambda attribute: self._reader.read(batch, attribute.name, rows)

    def _leaf_events(self, batch: EventStream) -> tuple[np.ndarray, ...]:
        """For each variable the events that it could be bound to, with the values that count."""
        type_codes = {name: code for code, name in enumerate(batch.type_names)}
        chosen, columns = [], []
        for leaf, variable in enumerate(self._layout.leaves):
            rows = np.flatnonzero(batch.type_codes == type_codes.get(variable.type, -1))
            for clause in self._layout.filters[leaf]:
                held = clause_holds(clause, self._reading(batch, rows), self._reader.code)
                rows = rows[np.broadcast_to(held, rows.shape)]
            chosen.append(rows)
            for _, expression in self._layout.values[leaf]:
                values = expression_values(
                    expression, self._reading(batch, rows), self._reader.code
                )
                columns.append(np.broadcast_to(values, rows.shape))
        counts = np.array([len(rows) for rows in chosen])
        widths = self._layout.plan.nodes[: len(chosen), tables.FLOATS]
        all_rows = np.concatenate(chosen)
        return (
            np.array([batch.timestamps[all_rows], all_rows + self._position]),
            np.concatenate(([0], np.cumsum(counts))),
            np.concatenate([np.empty(0), *columns]),
            np.cumsum(counts * widths) - counts * widths,
        )


def _scratch(layout: JoinLayout) -> tables.Scratch:
    columns = layout.integer_columns
    return tables.Scratch(
        mask=np.empty(BLOCK, np.uint8),
        chosen=np.empty(BLOCK, np.int64),
        stack=new_stack(),
        low=np.empty((columns, OUTER_BLOCK), np.int64),
        high=np.empty((columns, OUTER_BLOCK), np.int64),
        starts=np.empty(OUTER_BLOCK, np.int64),
        stops=np.empty(OUTER_BLOCK, np.int64),
        rectangle=np.empty(tables.RECTANGLE, np.int64),
        progress=np.empty(tables.PROGRESS, np.int64),
    )


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    pattern = parse("PATTERN AND(A a, B b) WITHIN 1 units")
    layout = join_layout(pattern, ("a", "b"), positions=True, code=float)
    kept = NodeState.empty(len(layout.plan.nodes))
    advance(
        layout.plan,
        1,
        1,
        kept.state,
        kept.counts,
        kept.peaks,
        kept.ints,
        kept.floats,
        _scratch(layout),
        np.zeros((2, 2), np.int64),
        np.array([0, 1, 2]),
        np.empty(0),
        np.zeros(2, np.int64),
        True,
    )
