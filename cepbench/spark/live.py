"""Detection of a pattern on a stream of Spark's Structured Streaming."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import TimestampType

from cepbench.arguments import kind_of, text
from cepbench.errors import CepbenchError, EvaluationError, SparkSetupError, StreamError
from cepbench.evaluators.registry import EVALUATORS
from cepbench.evaluators.slices import check_key, matches_schema, types_of_matches
from cepbench.evaluators.tasks import refuse
from cepbench.patterns.durations import slack_of
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern, Window
from cepbench.plans.model import AnyPlan
from cepbench.spark.detection import check_is_builtin
from cepbench.spark.event_time import LiveDetection, LiveState
from cepbench.spark.frames import (
    Columns,
    arrow_schema,
    column,
    compared,
    microseconds,
    plain,
)
from cepbench.spark.session import STATE_STORE
from cepbench.streams.fit import check_fit

#: The state of a key: that of :class:`cepbench.spark.event_time.LiveState`, and its timer.
_STATE = "snapshot BINARY, events BINARY, position LONG, pushed LONG, last LONG, timer LONG"

#: The column of late events.
_LATE = "late"

#: Columns of our own; an attribute does not begin with a space.
_AT = " at"

#: Ticks of the watermark's unit, a millisecond, for datetimes.
_MILLISECOND = 1_000_000


def detect_stream(
    df: DataFrame,
    pattern: Pattern | str,
    plan: AnyPlan | None = None,
    *,
    time: str,
    type: str,
    id: str,
    key: str | None = None,
    slack: float | str | Window = 0,
    evaluator: str | None = None,
) -> DataFrame:
    """Find all matches of a pattern in a stream of Spark's Structured Streaming, once each.

    An event is held back until the watermark, the greatest time of earlier micro-batches less the
    slack, is after it, and then goes through a detector in the order of time and identifier. Its
    snapshot and the events held back are the state that Spark saves with each micro-batch
    (``transformWithState``). The matches are those of :func:`detect` on all events that are not
    late.

    Parameters
    ----------
    df : DataFrame
        A stream of events in any order, without a watermark.
    pattern : Pattern or str
    plan : OrderPlan, TreePlan, Automaton or UnionPlan, optional
        From statistics of earlier events; None for an evaluator that runs without a plan.
    time, type : str
        Columns with the timestamp (or an integer) and the type of each event. Events of other types
        than the pattern's advance the watermark.
    id : str
        The column that identifies events, and orders those of one timestamp.
    key : str, optional
        An attribute to which equalities tie all variables: one detector for each of its values, in
        parallel. Without it there is one detector, in one task.
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
        struct of the columns of an event that came too late, and null for matches. So both are
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
    detector, its waiting matches are reported and its state is removed.
    """
    if not isinstance(df, DataFrame):
        raise StreamError(f"df must be a Spark DataFrame, not {kind_of(df)}")
    pattern = pattern_from(pattern)
    check_is_builtin(evaluator)
    columns = Columns.of(df, time, type, pattern.attributes, text(id, "id", StreamError))
    check_fit(pattern, columns.stream(arrow_schema(df).empty_table()))
    if not df.isStreaming:
        raise StreamError("df is not a stream; use cep.spark.detect")
    store = df.sparkSession.conf.get(STATE_STORE[0])
    if store != STATE_STORE[1]:
        raise SparkSetupError(
            f"the session keeps state in {store}, which cannot keep that of Python; set "
            f"{STATE_STORE[0]} to {STATE_STORE[1]} first, as cepbench's spark_session does"
        )
    if key is not None:
        check_key(pattern, key)
    names = list(dict.fromkeys([*columns.names, id]))
    schema = pa.schema([arrow_schema(df).field(name) for name in names])
    detection = LiveDetection(pattern, plan, evaluator, columns, id, schema)
    chosen = EVALUATORS.find(detection.detector().evaluator)
    if not chosen.snapshots:
        refuse(chosen, "save its state", lambda e: e.snapshots)
    found = plain(
        matches_schema(pattern, columns.stream(schema.empty_table()), schema.field(id).type)
    )
    if _LATE in found.names:
        raise EvaluationError(f"{_LATE!r} is the column of late events; rename that of the pattern")
    late = _micros(schema)
    processor = _Processor(detection, found, late)
    kept = columns.of_type(types_of_matches(pattern))
    marked = df.withColumn(_AT, _timestamp(df, time)).withWatermark(
        f"`{_AT}`", f"{-(-slack_of(slack, pattern.window) // processor.unit)} milliseconds"
    )
    if kept is not None:
        # Of the time too, lest Spark filter before it takes the watermark.
        marked = marked.where(kept | column(_AT).isNull())
    its = [
        F.unix_micros(column(name)) if _is_timestamp(df, name) else column(name) for name in names
    ]
    part = F.lit(0) if key is None else compared(df, key)
    rows = (
        # Without the column of the watermark, by which Spark would drop late events.
        marked.select(*(value.alias(f"c{n}") for n, value in enumerate(its)), part.alias("key"))
        .groupBy("key")
        .transformWithStateInPandas(
            processor, from_arrow_schema(processor.rows), "Append", "EventTime"
        )
    )
    event = [
        (F.timestamp_micros(F.col(f"c{n}")) if _is_timestamp(df, name) else F.col(f"c{n}")).alias(
            name
        )
        for n, name in enumerate(names)
    ]
    return rows.select(
        *(F.col(f"m{n}").alias(name) for n, name in enumerate(found.names)),
        F.when(F.col(_LATE), F.struct(*event)).alias(_LATE),
    )


def _is_timestamp(df: DataFrame, name: str) -> bool:
    return isinstance(df.schema[name].dataType, TimestampType)


def _timestamp(df: DataFrame, time: str) -> Column:
    """Times as those of a watermark; a unit of numbers is a millisecond."""
    micros = microseconds(df, time)
    if micros is None:
        return F.timestamp_millis(column(time).cast("bigint"))
    return F.timestamp_micros(micros)


def _micros(schema: pa.Schema) -> pa.Schema:
    """A schema with numbers for the timestamps that pandas would take for local ones."""
    return pa.schema(
        [
            (f"c{n}", pa.int64() if getattr(field.type, "tz", None) else field.type)
            for n, field in enumerate(schema)
        ]
    )


class _Processor(StatefulProcessor):
    """The detectors of keys, in Spark workers."""

    def __init__(self, detection: LiveDetection, found: pa.Schema, late: pa.Schema) -> None:
        self._detection = detection
        self._found = found
        self._late = late
        #: Of its rows: matches, late events, and which of them a row is.
        self.rows = pa.schema(
            [
                *((f"m{n}", kind) for n, kind in enumerate(found.types)),
                *late,
                (_LATE, pa.bool_()),
            ]
        )
        #: Ticks of a millisecond.
        self.unit = _MILLISECOND if detection.pattern.window.is_datetime else 1

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._state = handle.getValueState("detector", _STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        came = pa.concat_tables(
            pa.Table.from_pandas(frame[self._late.names], self._late, preserve_index=False)
            for frame in rows
        )
        came = came.rename_columns(self._detection.schema.names).cast(self._detection.schema)
        return self._pushed(key, came, timerValues)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[pd.DataFrame]:
        return self._pushed(key, self._detection.schema.empty_table(), timerValues)

    def _pushed(self, key: Any, came: pa.Table, times: Any) -> Iterator[pd.DataFrame]:
        now = times.getCurrentWatermarkInMs()
        # It is 0 before the first one.
        watermark = now * self.unit if now > 0 else None
        with _named(key):
            state, timer = LiveState.new(self._detection), None
            if self._state.exists():
                *packed, timer = self._state.get()
                state = LiveState.of(self._detection, *packed)
            matches, late = state.push(came, watermark)
            if timer is not None and timer > now:
                self._handle.deleteTimer(timer)
            if state.due is None:
                self._state.clear()
            else:
                # There is no watermark before the first millisecond.
                timer = max(1, state.due // self.unit + 1)
                self._handle.registerTimer(timer)
                self._state.update((*state.packed(), timer))
        for table in matches:
            yield self._frame(table.cast(self._found), "m")
        if len(late):
            kinds = pa.schema(zip(late.column_names, self._late.types, strict=True))
            yield self._frame(late.cast(kinds), "c")

    def _frame(self, table: pa.Table, prefix: str) -> pd.DataFrame:
        """Rows of one kind, the other's columns missing."""
        given: dict[str, Any] = {f"{prefix}{n}": its for n, its in enumerate(table.columns)}
        given[_LATE] = pa.repeat(prefix == "c", len(table))
        return pa.table(
            [given.get(field.name, pa.nulls(len(table), field.type)) for field in self.rows],
            schema=self.rows,
        ).to_pandas(integer_object_nulls=True)


@contextmanager
def _named(key: Any) -> Iterator[None]:
    """Errors say for which key they arose."""
    try:
        yield
    except CepbenchError as error:
        error.args = (f"key {key[0]!r}: {error}", *error.args[1:])
        raise
