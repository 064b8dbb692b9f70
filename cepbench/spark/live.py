"""Detection of a pattern on a stream of Spark's Structured Streaming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructField, StructType

from cepbench.arguments import kind_of, text, whole
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.slices import check_key, matches_schema, types_of_matches
from cepbench.engines.detection.tasks import refuse
from cepbench.errors import EvaluationError, SparkSetupError, StreamError, errors_at
from cepbench.patterns.durations import slack_of
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern, Window
from cepbench.planning.plans.model import AnyPlan
from cepbench.spark.event_time import (
    FARTHEST_DATETIME,
    FARTHEST_NUMBER,
    LiveDetection,
    LiveState,
    bytes_of,
    table_of,
)
from cepbench.spark.frames import Columns, arrow_schema, column, compared, microseconds, plain
from cepbench.spark.jobs import check_is_builtin
from cepbench.spark.session import STATE_STORE
from cepbench.streams.fit import check_fit

#: The state of a detector: that of :class:`cepbench.spark.event_time.LiveState`, and its timer, or 0.
_STATE = "header STRING, snapshot BINARY, events BINARY, position LONG, pushed LONG, last LONG, timer LONG"

#: The columns of late and broken events, and of why they are there.
_LATE, _REASON = "late", "reason"

#: Columns of our own; an attribute does not begin with a space.
_AT = " at"

#: In the metadata of a column with a watermark.
_WATERMARK = "spark.watermarkDelayMs"

#: Ticks of the watermark's unit, a millisecond, for datetimes.
_MILLISECOND = 1_000_000

#: The time by which an event without one advances no watermark: year 1, before all others.
_NEVER = -62_135_596_800_000


def detect_stream(
    df: DataFrame,
    pattern: Pattern | str,
    plan: AnyPlan | None = None,
    *,
    time: str,
    type: str,
    id: str,
    key: str | None = None,
    detectors: int = 16,
    slack: float | str | Window = 0,
    evaluator: str | None = None,
) -> DataFrame:
    """Find all matches of a pattern in a stream of Spark's Structured Streaming, once each.

    An event is held back until the watermark, the greatest time of earlier micro-batches less the
    slack, is after it, and then goes through a detector in the order of time and identifier. Its
    snapshot and the events held back are the state that Spark saves with each micro-batch
    (``transformWithState``). The matches are those of :func:`detect` on all events that are not
    late or broken.

    Parameters
    ----------
    df : DataFrame
        A stream of events in any order, without a watermark.
    plan : OrderPlan, TreePlan, Automaton or UnionPlan, optional
        From statistics of earlier events; None for an evaluator that runs without a plan.
    time, type : str
        Columns with the timestamp (or an integer) and the type of each event. Events of other types
        than the pattern's advance the watermark.
    id : str
        The column that identifies events, and orders those of one timestamp.
    key : str, optional
        An attribute to which equalities tie all variables: its values are divided among several
        detectors, which run in parallel. Without it there is one detector, in one task.
    detectors : int
        How many detectors there are with a key; at least one for each core.
    slack : float, str or Window
        By how much an event may be late, as for :class:`cepbench.Aggregator`. An event that arrives
        when the watermark is after it is kept aside.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; a built-in one that can save its state.

    Returns
    -------
    DataFrame
        A stream, in append mode. For each variable the ``id`` of its event (a list for a Kleene
        variable or a group), or the columns of RETURN; with OR also ``branch``. Last ``late``: a
        struct of the columns of an event that is in no match, since it came too late or has no
        time, type or identifier, and ``reason``, which of these; both null for matches. So all are
        written to one sink, where each is once, after failures too, if the sink is a file.

    Raises
    ------
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or pattern, plan and evaluator do not fit each other.
    StreamError
        If the DataFrame does not fit the pattern or is not a stream.
    UnsupportedPatternError
        If equalities do not tie all variables to the key.
    SparkSetupError
        If the session has another state store than RocksDB.

    Notes
    -----
    The watermark advances between micro-batches. The last events are held back until later ones
    arrive, of whatever type. Once the watermark is more than a window after the last event of a
    detector, its waiting matches are reported and its state is removed; that of the first one then
    still says what is detected, so that a checkpoint is never continued by another detection.
    """
    if not isinstance(df, DataFrame):
        raise StreamError(f"df must be a Spark DataFrame, not {kind_of(df)}")
    pattern = pattern_from(pattern)
    check_is_builtin(evaluator, EVALUATORS, "cep.evaluate")
    columns = Columns.of(df, time, type, pattern.attributes, text(id, "id", StreamError))
    names = columns.all_names
    schema = arrow_schema(df, names)
    check_fit(pattern, columns.stream(schema.empty_table()))
    if not df.isStreaming:
        raise StreamError("df is not a stream; use cep.spark.detect")
    marks = [field.name for field in df.schema if _WATERMARK in field.metadata]
    if marks:
        raise StreamError(
            f"df has a watermark of column {marks[0]!r}, by which Spark drops late events; leave it "
            "out, and give slack="
        )
    store = df.sparkSession.conf.get(STATE_STORE[0])
    if store != STATE_STORE[1]:
        raise SparkSetupError(
            f"the session keeps state in {store}, which cannot keep that of Python; set "
            f"{STATE_STORE[0]} to {STATE_STORE[1]} first, as cepbench's spark_session does"
        )
    if key is not None:
        check_key(pattern, key)
    number = whole(detectors, "detectors", EvaluationError, least=1) if key is not None else 1
    detection = LiveDetection(pattern, plan, evaluator, columns, schema, key, number)
    chosen = EVALUATORS.find(detection.detector().evaluator)
    if not chosen.snapshots:
        refuse(chosen, "save its state", lambda e: e.snapshots)
    found = plain(
        matches_schema(pattern, columns.stream(schema.empty_table()), schema.field(id).type)
    )
    for name in (_LATE, _REASON):
        if name in found.names:
            raise EvaluationError(
                f"{name!r} is a column of late and broken events; rename that of the pattern"
            )
    unit = _MILLISECOND if pattern.window.is_datetime else 1
    kept = columns.of_type(types_of_matches(pattern))
    never = F.timestamp_millis(F.lit(_NEVER))
    marked = df.withColumn(_AT, F.coalesce(_timestamp(df, time), never)).withWatermark(
        f"`{_AT}`", f"{-(-slack_of(slack, pattern.window) // unit)} milliseconds"
    )
    if kept is not None:
        # Of the time too, lest Spark filter before it takes the watermark.
        marked = marked.where(kept | column(type).isNull() | (column(_AT) == never))
    part = F.lit(0) if key is None else F.pmod(F.hash(compared(df, key)), F.lit(number))
    rows = _Rows(found, schema)
    written = (
        # Without the column of the watermark, by which Spark would drop late events.
        marked.select(
            *(column(name).alias(f"c{n}") for n, name in enumerate(names)), part.alias("part")
        )
        .mapInArrow(_packed, "part INT, events BINARY")
        .groupBy("part")
        .transformWithStateInPandas(
            _Processor(detection, unit), "reason STRING, written BINARY", "Append", "EventTime"
        )
        .mapInArrow(rows.read, from_arrow_schema(rows.schema))
    )
    event = StructType([StructField(name, df.schema[name].dataType) for name in names])
    return written.select(
        *(F.col(f"m{n}").alias(name) for n, name in enumerate(found.names)),
        F.col(_LATE).cast(event).alias(_LATE),
        _REASON,
    )


def _timestamp(df: DataFrame, time: str) -> Column:
    """Times as those of a watermark, null if out of range; a unit of numbers is a millisecond."""
    micros = microseconds(df, time)
    if micros is None:
        millis = column(time).cast("bigint")
        its = millis.between(-FARTHEST_NUMBER, FARTHEST_NUMBER)
        return F.when(its, F.timestamp_millis(millis))
    farthest = FARTHEST_DATETIME // 1000
    return F.when(micros.between(-farthest, farthest), F.timestamp_micros(micros))


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of a detector as bytes in one row, since rows are dear in the operator.

    The number of the detector is in the last column. The first detector also gets a row without
    events, so that in every micro-batch it sees whether the checkpoint is its own.
    """
    yield pa.record_batch(
        {"part": pa.array([0], pa.int32()), "events": pa.array([None], pa.binary())}
    )
    for batch in batches:
        *columns, part = batch.columns
        events = pa.record_batch(columns, batch.schema.names[:-1])
        for number in part.unique():
            its = bytes_of(events.filter(pc.equal(part, number)))
            yield pa.record_batch({"part": [number], "events": [its]})


@dataclass(frozen=True)
class _Rows:
    """Rows of matches and of late and broken events, from the bytes that the operator returns."""

    found: pa.Schema
    events: pa.Schema

    @property
    def schema(self) -> pa.Schema:
        """Columns of matches, a struct of those of an event, and a reason; named by their place."""
        late = pa.struct([(f"c{n}", kind) for n, kind in enumerate(self.events.types)])
        return pa.schema(
            [
                *((f"m{n}", its) for n, its in enumerate(self.found.types)),
                (_LATE, late),
                (_REASON, pa.string()),
            ]
        )

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        *kinds, late, _ = self.schema.types
        for batch in batches:
            for reason, written in zip(*(its.to_pylist() for its in batch.columns), strict=True):
                table = table_of(written).cast(self.found if reason is None else self.events)
                for part in table.combine_chunks().to_batches():
                    if reason is None:
                        columns = [*part.columns, pa.nulls(len(part), late)]
                    else:
                        events = pa.StructArray.from_arrays(part.columns, fields=list(late))
                        columns = [*(pa.nulls(len(part), kind) for kind in kinds), events]
                    columns.append(pa.repeat(pa.scalar(reason, pa.string()), len(part)))
                    yield pa.record_batch(columns, schema=self.schema)


class _Processor(StatefulProcessor):
    """The detectors, in Spark workers."""

    def __init__(self, detection: LiveDetection, unit: int) -> None:
        self._detection = detection
        #: Ticks of a millisecond.
        self._unit = unit

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("detector", _STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        schema = self._detection.schema
        came = [
            table_of(written).rename_columns(schema.names).cast(schema)
            for frame in rows
            for written in frame["events"]
            if written is not None
        ]
        came = pa.concat_tables([schema.empty_table(), *came])
        return self._pushed(key, came, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        return self._pushed(key, self._detection.schema.empty_table(), timerValues, expired=True)

    def _pushed(
        self, key: Any, came: pa.Table, times: Any, *, expired: bool = False
    ) -> Iterator[pd.DataFrame]:
        now = times.getCurrentWatermarkInMs()
        # It is 0 before the first one.
        watermark = now * self._unit if now > 0 else None
        its = self._detection
        where = f"detector {key[0]} of {its.detectors}" if its.key is not None else ""
        with errors_at(where):
            state = LiveState.new(self._detection)
            if self._state.exists():
                *packed, timer = self._state.get()
                state = LiveState.of(self._detection, *packed)
                if timer and not expired:  # Spark itself removes a timer that expires
                    self._handle.deleteTimer(timer)
            came, broken = self._detection.sound(came)
            matches, late = state.push(came, watermark)
            timer = 0
            if state.due is not None:
                # There is no watermark before the first millisecond.
                timer = max(1, state.due // self._unit + 1)
                self._handle.registerTimer(timer)
            # The first one keeps what is detected.
            if timer or key[0] == 0:
                self._state.update((*state.packed(), timer))
            else:
                self._state.clear()
        aside = broken | ({"late": late} if len(late) else {})
        for reason, table in [*((None, its) for its in matches), *aside.items()]:
            yield pd.DataFrame({_REASON: [reason], "written": [bytes_of(table)]})
