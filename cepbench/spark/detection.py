"""Detection of a pattern on a Spark DataFrame, in slices of the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from cepbench.arguments import choice, whole
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.slices import QUERY, SliceDetection
from cepbench.engines.detection.workload_evaluate import given_plan
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.spark.balance import Density, Slices, planned_slices
from cepbench.spark.frames import opened
from cepbench.spark.jobs import check_is_builtin, watched
from cepbench.spark.slice_job import SliceJob, TimeLimit, events_of, nothing_of
from cepbench.streams.event_stream import EventStream

#: Sampled events of each type, and events of the parts in which selectivities are measured.
_SAMPLED, _PIECES, _PIECE_EVENTS = 20_000, 4, 10_000

T = TypeVar("T")


def detect(
    df: DataFrame | str | Path,
    pattern: Pattern | str | Workload,
    plan: AnyPlan | WorkloadPlan | str | None = None,
    *,
    time: str,
    type: str,
    id: str | None = None,
    key: str | None = None,
    generator: str | None = None,
    evaluator: str | None = None,
    output: str = "matches",
    slices: Slices | int | None = None,
) -> Any:
    """Find all matches of a pattern in a DataFrame or Parquet files of events, in parallel.

    Tasks take slices of time with the events around them on which their matches depend: those of a
    window after it, and, where a NOT or a group stands before the first item, of a window before
    it. A match belongs to the slice of its earliest event. Where matches depend on all earlier ones
    (``STRATEGY consuming``, ``OUTPUT non_overlap``), tasks take parts of the values of an attribute
    that all events of a match share. The matches are those of :func:`cepbench.evaluate` on the
    whole stream. A task holds the events of a few windows.

    Parameters
    ----------
    df : DataFrame, str or Path
        Events in any order. Of the path of a Parquet file or folder, such as a data set, each task
        reads its own slice, without a shuffle; times may have nanoseconds, which Spark's own do not.
    pattern : Pattern, str or Workload
        Of a workload every query gets its own matches; its plan is run in each slice.
    plan : OrderPlan, TreePlan, Automaton, UnionPlan, WorkloadPlan or "per-slice", optional
        By default one plan for all slices, from statistics measured on a sample, of a workload that
        of CHASE; ``"per-slice"`` makes one for the arrival rates of each slice.
    time, type : str
        Columns with the timestamp (or an integer) and the type of each event.
    id : str, optional
        A column that identifies events, and orders those of one timestamp. Without it events of one
        timestamp are in the order of the DataFrame's partitions and rows (of a path as in
        :meth:`EventStream.from_parquet`), and matches have positions in the whole stream: of a path
        the rows of the files, one after the other, or the places in a data set; of a DataFrame the
        places in order of time, for which all events are sorted, also those of types that the
        pattern does not have.
    key : str, optional
        An attribute by whose values the stream is divided instead of time; equalities must tie all
        variables of each query to it. By default one is used if matches depend on earlier ones, and besides time
        if slices for all cores would copy too many events.
    generator : str, optional
        A name in ``cep.PLAN_GENERATORS``, if a plan is made; by default that of :func:`cepbench.plan`,
        of orders for an evaluator that does not run all trees.
    evaluator : str, optional
        A name in ``cep.EVALUATORS``; a built-in one. By default, if there is neither plan nor generator, the
        one of the least expected time on the sample, of a workload one for each query, see ``Slices.choice``; else that
        of the plan's kind.
    output : {"matches", "count", "arrow"}
        A DataFrame of matches; a DataFrame with a row for each task (``slice``, ``events`` of its
        own, ``copied`` ones, ``matches``, ``seconds`` in detectors); or, at once and with a progress
        bar, an Arrow table of the matches. A slice that takes much longer than expected is then cut,
        and the rest divided among all cores.
    slices : Slices or int, optional
        As :func:`slices` returns them, or the number of tasks.

    Returns
    -------
    DataFrame or pyarrow.Table
        Lazy, unless ``output="arrow"``: only the sample is read before an action. For each variable
        the ``id`` of its event (a list for a Kleene variable or a group), or the columns of RETURN;
        with OR also ``branch``. Rows are in no order. Of a workload each row has the name of its
        ``query``, and in a struct of that name these columns; counts have in ``matches`` a struct
        of the queries; and of Arrow tables there is a mapping, as of :func:`cepbench.evaluate`.

    Raises
    ------
    PatternError, PlanError, EvaluationError
        If an argument is invalid, or pattern, plan and evaluator do not fit each other.
    StreamError
        If the DataFrame does not fit the pattern.
    DatasetError
        If there is no such path, or no Parquet.
    UnsupportedPatternError
        If matches depend on all earlier ones, and no attribute divides the stream.
    """
    job = DetectionJob.of(df, pattern, time, type, id, key, evaluator, output)
    made = slices
    if not isinstance(made, Slices):
        made = job.slices(given_plan(pattern, plan), generator, made)
    elif plan is not None:
        raise EvaluationError("plan= and slices= with plans of their own; leave out plan=")
    job = job.divided(made)
    if output != "arrow":
        return job.run(made)
    table = pa.concat_tables(job.at_once(made, DataFrame.toArrow))
    return _by_query(table) if job.slicer.pattern.by_query else table


def slices(
    df: DataFrame | str | Path,
    pattern: Pattern | str | Workload,
    plan: AnyPlan | WorkloadPlan | str | None = None,
    *,
    time: str,
    type: str,
    key: str | None = None,
    generator: str | None = None,
    evaluator: str | None = None,
    output: str = "matches",
    tasks: int | None = None,
) -> Slices:
    """How :func:`detect` would divide a stream, and what it would cost, from a sample.

    Parameters
    ----------
    df, pattern, plan, time, type, key, generator, evaluator, output
        See :func:`detect`.
    tasks : int, optional
        By default four per core; fewer if more than 5 % of the events would be copied between
        slices and there is no key to divide them by, but at least one per core.

    Returns
    -------
    Slices
        For ``slices=``; ``describe()`` and ``table`` have the expected events, copied events,
        partial matches and seconds.

    Raises
    ------
    CepbenchError
        As :func:`detect`.
    """
    job = DetectionJob.of(df, pattern, time, type, None, key, evaluator, output)
    return job.slices(given_plan(pattern, plan), generator, tasks)


@dataclass(frozen=True)
class DetectionJob(SliceJob[SliceDetection]):
    """A DataFrame or files, and what is detected in them."""

    @classmethod
    def of(
        cls,
        df: DataFrame | str | Path,
        pattern: Pattern | str | Workload,
        time: str,
        type: str,
        id: str | None,
        key: str | None,
        evaluator: str | None,
        output: str,
    ) -> Self:
        """Check the arguments of :func:`detect`."""
        given = opened(df)
        pattern = queries_from(pattern)
        given_plan(pattern, None)  # without AGG
        _check_names(pattern.queries)
        choice(output, "output", ("matches", "count", "arrow"), EvaluationError)
        check_is_builtin(evaluator, EVALUATORS, "cep.evaluate")
        if isinstance(given, DataFrame) and given.isStreaming:
            raise StreamError("df is a stream; use cep.spark.detect_stream")
        detection = SliceDetection(pattern, evaluator, output == "count", key)
        events = events_of(given, detection, time, type, id)
        if key is None and not detection.by_time:
            detection = replace(detection, key=detection.keys[0])
        return cls.fitting(events, detection, nothing_of(events))

    # -- the plan of the job --------------------------------------------------------------------

    def slices(
        self,
        plan: AnyPlan | str | None,
        generator: str | None,
        tasks: int | None,
        *,
        sample: tuple[Density, list[EventStream]] | None = None,
        cores: int | None = None,
    ) -> Slices:
        """Slices, by default from a new sample of the events, and for the cores of the session."""
        if isinstance(plan, str):
            choice(plan, "plan", ("per-slice",), EvaluationError)
        if tasks is not None:
            tasks = whole(tasks, "slices", EvaluationError, least=1)
        density, pieces = sample or self.sample()
        if cores is None:
            if not str(self.spark.sparkContext.master).startswith("local"):
                self.spark.range(1).count()  # cores are counted once executors have registered
            cores = self.spark.sparkContext.defaultParallelism
        return planned_slices(
            self.slicer, density, pieces, plan, generator, tasks=tasks, cores=cores
        )

    def sample(self) -> tuple[Density, list[EventStream]]:
        """When how many events of each type arrive, and some parts of the stream."""
        types = self.slicer.pattern.types
        times, names, totals = self.events.sampled_by_type(types, _SAMPLED)
        hierarchy = self.slicer.pattern.hierarchy
        known = {*totals, *(() if hierarchy is None else hierarchy.names)}
        if not known.issuperset(types or ()) and (present := self.events.known_types()):
            self.report(present)
        density = Density.of(times, names, totals)
        pieces = self.events.events(_pieces(density))
        return density, [its.with_hierarchy(hierarchy) for its in pieces]

    def divided(self, made: Slices) -> Self:
        """The job divided as given, which is checked, and so are plan and engine."""
        if made.by_time and made.starts and not self.slicer.by_time:
            raise EvaluationError(
                "the slices are of time, and matches depend on all earlier ones; make them for this "
                "pattern by cep.spark.slices"
            )
        evaluator = self.slicer.evaluator or made.evaluator
        slicer = replace(self.slicer, key=made.key, evaluator=evaluator)
        slicer.detector(made.plans[0], output="count" if slicer.counts else "matches")
        return replace(self, slicer=slicer)

    # -- at once --------------------------------------------------------------------------------

    def at_once(self, made: Slices, action: Callable[[DataFrame], T]) -> list[T]:
        """Act on the matches, or their numbers, in one DataFrame after the other.

        Tasks that take too long hand back the rests of their slices, which are divided among all
        cores and make the next DataFrame. A slice that was cut has its matches until there, for
        which it needs the events of one more window.
        """
        parts, cut, found = made.all_parts(), 0, []
        while parts:
            limit = TimeLimit.of(self.spark, made, self.slicer.tail)
            name = f"detect, the rest of {cut} slices" if cut else "detect"
            with watched(self.spark, name, "task"):
                found.append(action(self.run(made, parts if cut else None, limit)))
            cut = len(limit.cuts.value)
            cores = self.spark.sparkContext.defaultParallelism
            parts = limit.rests(parts, self.events.extent[1], 2 * cores) if cut else []
        return found


def _pieces(density: Density) -> list[tuple[int, int]]:
    """Parts of the stream, in ticks, in which selectivities are measured."""
    below = np.concatenate(([0.0], np.cumsum(density.events)))
    if not below[-1]:
        return []
    share = min(1.0 / _PIECES, _PIECE_EVENTS / below[-1])
    at = (np.arange(_PIECES) + 0.5) / _PIECES - share / 2
    bounds = np.interp(np.concatenate((at, at + share)) * below[-1], below, density.edges)
    return list(map(tuple, bounds.astype(np.int64).reshape(2, -1).T.tolist()))


def _check_names(queries: Iterable[str]) -> None:
    """Raise an EvaluationError if the matches of queries cannot be columns of one DataFrame."""
    names = Counter([QUERY, *map(str.lower, queries)])
    for query in queries:
        if names[query.lower()] > 1:
            raise EvaluationError(
                f"query {query!r}: Spark does not tell its column from {QUERY!r} or that of another "
                "query, whatever the case; choose another name"
            )


def _by_query(table: pa.Table) -> dict[str, pa.Table]:
    """The matches of each query of a workload, with columns of their own."""
    _, *queries = table.column_names
    return {
        query: pa.Table.from_struct_array(table.filter(pc.field(QUERY) == query).column(query))
        for query in queries
    }
