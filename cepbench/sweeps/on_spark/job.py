"""A sweep as a Spark job: one task measures all plan generators on one pattern and stream.

Runs on any Spark master whose workers see the folder of results and the data under the same paths
(``local[*]`` does by itself; on a cluster use a shared file system) and have cepbench installed.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from cepbench.costs.models import UserCost, cost_from
from cepbench.errors import DatasetError, ExperimentError
from cepbench.evaluators.protocol import Evaluator
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planners.registry import (
    PlanGenerator,
    default_generators,
    find_generator,
    own_generators,
)
from cepbench.spark.jobs import run_job
from cepbench.spark.statistics import arrival_rates, measure_statistics
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from cepbench.sweeps.cells import check_agreement
from cepbench.sweeps.configuration import SweepConfig, evaluators_of, identity_of
from cepbench.sweeps.grid import Grid
from cepbench.sweeps.measure import measure_pattern
from cepbench.sweeps.store import (
    Journal,
    ResultsStore,
    count_rows,
    journal_path,
    of_stream,
    read_kept,
    rows_of,
)
from cepbench.sweeps.user_parts import own_folder, read_with_own
from cepbench.sweeps.user_patterns import USER, user_specs
from cepbench.sweeps.warm_up import compile_kernels
from cepbench.sweeps.workload import PatternSpec, draw_workload


@dataclass(frozen=True, slots=True)
class SweepJob:
    """What every task of a sweep needs; travels to the workers."""

    config: SweepConfig
    configuration: str
    folder: Path
    parts: bytes
    beside: Path | None = None

    def grid(self) -> Grid:
        """In a worker: the cells of each pattern; registers user-defined evaluators."""
        generators, evaluators, cost = cloudpickle.loads(self.parts)
        for entry in evaluators:
            EVALUATORS.add(entry)
        return replace(self.config.grid(generators), cost=cost)


@dataclass(frozen=True, slots=True)
class Task:
    """One pattern on one stream, and its statistics by window as they are kept."""

    spec: PatternSpec
    stream: str
    statistics: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(
        cls, config: SweepConfig, spec: PatternSpec, stream: str, statistics: Mapping[str, Any]
    ) -> Self:
        """With what :func:`measured_statistics` has of the pattern."""
        windows = config.windows or ("",)
        return cls(spec, stream, {w: statistics[_measured_name(spec, w)] for w in windows})

    def measured(self) -> dict[str, Statistics]:
        """Statistics of the stream that the pattern runs on: the events of its own types."""
        return {
            window: of_own_types(Statistics.from_dict(found), self.spec.pattern)
            for window, found in self.statistics.items()
        }


def run_sweep(
    spark: SparkSession,
    config: SweepConfig,
    path: str | Path,
    *,
    own: Sequence[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Measure a workload, or resume an earlier, killed run of the same sweep.

    Draws the patterns, measures their statistics, then measures all plan generators on each
    pattern. Every finished row is on the disk at once, so a killed sweep loses none of them and
    repeats none. A generator that refuses and a run that needs too much memory are rows.

    Parameters
    ----------
    spark : SparkSession
        With any master. A core measures one pattern at a time; more cores than the machine has
        spoil the times.
    config : SweepConfig
    path : path
        Folder of results, on a file system that all workers share.
    own : sequence of str, optional
        User-defined plan generators that are measured on the same patterns beside those of the
        configuration, each in a folder within that of the sweep: what has been measured stays.
        By default all that are registered if the configuration names no generators, else none.
    progress : bool
        Whether to show a bar with finished patterns and the time that is left.

    Returns
    -------
    DataFrame
        As :func:`cepbench.sweeps.store.read_results` returns it, pattern sets in the order
        of the configuration.

    Raises
    ------
    ExperimentError
        If the configuration makes no sense, the folder belongs to another sweep or is in use, a
        pattern could not be measured at all, or two plans of a pattern found different numbers
        of matches.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.2. Differs from the paper: a pattern runs on the events of
    its own types, and throughput counts those; reading and sorting out the others is no part of
    the times.
    """
    if own is None:
        own = own_generators() if config.generators is None else ()
    _measured(spark, config, Path(path), progress=progress)
    for name in own:
        part = replace(config, generators=(name,))
        _measured(spark, part, own_folder(path, name), beside=Path(path), progress=progress)
    return finished_results(config, path, own)


def finished_results(
    config: SweepConfig, path: str | Path, own: Sequence[str] | None = None
) -> pd.DataFrame:
    """The rows of a finished sweep as :func:`run_sweep` returns them; nothing is run.

    Parameters
    ----------
    config, path, own
        As :func:`run_sweep` takes them.

    Raises
    ------
    ExperimentError
        If the folder holds no sweep, or two plans of a pattern found different numbers of
        matches.
    """
    results = read_with_own(path, own)
    check_agreement(results)
    results = _in_order(results, "stream", list(config.data_of))
    return _in_order(results, "pattern_set", [*config.pattern_sets, USER])


def _in_order(results: pd.DataFrame, name: str, order: Sequence[str]) -> pd.DataFrame:
    """Rows sorted by the place of a column's value in this order."""
    ranks = {value: rank for rank, value in enumerate(order)}
    return results.sort_values(
        name, key=lambda values: values.map(ranks), kind="stable", ignore_index=True
    )


def _measured(
    spark: SparkSession,
    config: SweepConfig,
    path: Path,
    *,
    beside: Path | None = None,
    progress: bool,
) -> None:
    """Fill one folder; with ``beside``, from the patterns and statistics of a finished sweep."""
    config, generators = resolved(config)
    cells = config.grid(generators).cells()
    identity = identity_of(config, generators)
    with ResultsStore(path, identity) as store:
        if store.is_complete:
            return

        def kept(name: str, make: Callable[[], Any]) -> Any:
            return store.kept(name, make if beside is None else partial(read_kept, beside, name))

        specs = workload_of(
            config,
            {
                stream: kept(
                    of_stream("cardinalities", stream),
                    partial(cardinalities_of, spark, config, data),
                )
                for stream, data in config.data_of.items()
            },
        )
        tasks = []
        for stream, data in config.data_of.items():
            statistics = kept(
                of_stream("statistics", stream),
                partial(measured_statistics, spark, config, data, specs, progress=progress),
            )
            tasks += [Task.of(config, spec, stream, statistics) for spec in specs]
        pending = [
            task
            for task in tasks
            if not set(cells) <= store.finished(task.spec.pattern_id, task.stream)
        ]
        # Shuffled, so that the finished part tells the duration of the rest.
        random.Random(config.seed).shuffle(pending)
        # Compiled here once if need be; the workers then only load from the disk cache.
        compile_kernels()
        job = SweepJob(
            config,
            json.dumps(identity),
            store.path.resolve(),
            pickled(config, generators),
            beside and beside.resolve(),
        )
        failures = _run(spark, job, pending, len(cells), progress=progress)
        if failures:
            raise ExperimentError(
                f"{len(failures)} of {len(tasks)} patterns could not be measured; the first: "
                f"{failures[0]}. What is finished is kept: repair this and run the sweep again"
            )
        store.compact()


def resolved(config: SweepConfig) -> tuple[SweepConfig, list[PlanGenerator]]:
    """The configuration with the names of its plan generators, and those themselves.

    Where it names none they are cepbench's default ones; user-defined ones are measured beside
    them.
    """
    names = default_generators(own=False) if config.generators is None else config.generators
    generators = [find_generator(name) for name in names]
    return replace(config, generators=tuple(entry.name for entry in generators)), generators


def workload_of(
    config: SweepConfig, cardinalities: Mapping[str, Mapping[str, float]]
) -> list[PatternSpec]:
    """The patterns of a sweep, those that it draws before the user-defined ones.

    Parameters
    ----------
    config : SweepConfig
    cardinalities : mapping of str to mapping of str to float
        Of each stream, as :func:`cardinalities_of` returns them. With several, patterns are over
        the identifiers that all of them have, and the bounds on their work hold on all.
    """
    largest = most_of(cardinalities)
    user = user_specs(config.user_patterns, largest.keys(), config.seed)
    if not config.pattern_sets:
        return user
    drawn = draw_workload(
        largest,
        pattern_sets=config.pattern_sets,
        sizes=config.sizes,
        patterns=config.patterns,
        seed=config.seed,
        window=config.windows[0] if config.windows else config.window,
        attribute=config.attribute,
        max_partial_matches=config.max_partial_matches,
        max_kleene_events=config.max_kleene_events,
    )
    return [*drawn, *user]


def most_of(cardinalities: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The most events per window of each identifier that all streams have."""
    streams = list(cardinalities.values())
    everywhere = set.intersection(*map(set, streams))
    return {name: max(of[name] for of in streams) for name in streams[0] if name in everywhere}


def cardinalities_of(spark: SparkSession, config: SweepConfig, data: str) -> dict[str, float]:
    """Events of each identifier in the largest window, on average over the time with any."""
    windows = config.windows or (config.window,)
    seconds = max(parse(f"PATTERN SEQ(A a) WITHIN {each}").window.seconds for each in windows)
    rates = arrival_rates(spark, data, progress=False)
    rates = rates[rates["events"] > 0]
    if rates.empty:
        raise ExperimentError(f"{data} holds no events")
    return {str(symbol): float(rate * seconds) for symbol, rate in rates["rate"].items()}


def measured_statistics(
    spark: SparkSession,
    config: SweepConfig,
    data: str,
    specs: Sequence[PatternSpec],
    *,
    progress: bool,
) -> dict[str, Any]:
    """What the plans of the patterns are made from, on one stream and under each window."""
    patterns = {
        _measured_name(spec, window): spec.under(window=window).pattern
        for spec in specs
        for window in config.windows or ("",)
    }
    measured = measure_statistics(spark, data, patterns, seed=config.seed, progress=progress)
    return {name: found.to_dict() for name, found in measured.items()}


def _measured_name(spec: PatternSpec, window: str) -> str:
    return f"{spec.pattern_id} within {window}" if window else spec.pattern_id


def pickled(config: SweepConfig, generators: Sequence[PlanGenerator]) -> bytes:
    """Generators, evaluators and cost for the workers: user-defined ones by their code."""
    evaluators, cost = evaluators_of(config), cost_from(config.cost)
    parts: list[PlanGenerator | Evaluator] = [*generators, *evaluators]
    functions = [part.function for part in parts if not part.is_builtin]
    functions += [cost.function] if isinstance(cost, UserCost) else []
    with ExitStack() as by_value:
        for name in {function.__module__ for function in functions}:
            # Workers cannot import a user's module; what stands in a notebook goes by value anyway.
            if name != "__main__" and name in sys.modules:
                module = sys.modules[name]
                cloudpickle.register_pickle_by_value(module)
                by_value.callback(cloudpickle.unregister_pickle_by_value, module)
        named = [g.name if g.is_builtin else g for g in generators]
        theirs = [entry for entry in evaluators if not entry.is_builtin]
        return bytes(cloudpickle.dumps((named, theirs, cost)))


def _run(
    spark: SparkSession, job: SweepJob, pending: Sequence[Task], cells: int, *, progress: bool
) -> list[str]:
    """Measure the pending patterns, a task each; why any of them failed."""
    known: dict[str, tuple[int, int]] = {}
    before = count_rows(job.folder, known)
    try:
        outcome = run_job(
            spark,
            partial(_measure_one, job),
            pending,
            name="sweep",
            unit="pattern",
            partitions=len(pending),
            finished=lambda: (count_rows(job.folder, known) - before) // cells,
            progress=progress,
        )
    except DatasetError as error:
        raise ExperimentError(
            f"{error}. What is finished is kept: run the sweep again to resume it"
        ) from error
    return [failure for failure in outcome if failure is not None]


def _measure_one(job: SweepJob, task: Task) -> str | None:
    """Measure what is missing of one pattern; in a Spark worker. None, or what went wrong."""
    spec, data = task.spec, job.config.data_of[task.stream]
    try:
        with Journal(journal_path(job.folder, spec.pattern_id, task.stream)) as journal:
            for row in measure_pattern(
                spec,
                own_stream(data, spec.pattern),
                task.measured(),
                job.grid(),
                columns={
                    "dataset": Path(data).name,
                    "stream": task.stream,
                    "configuration": job.configuration,
                },
                finished=journal.finished,
                beside=rows_of(job.beside, spec.pattern_id, task.stream) if job.beside else (),
            ):
                journal.append(row)
    except Exception as error:  # reported with its pattern by the driver; the other tasks go on
        return f"{of_stream(spec.pattern_id, task.stream)}: {type(error).__name__}: {error}"
    return None


def own_stream(data: str, pattern: Pattern) -> EventStream:
    """What a pattern runs on: the events of its own types, with what its conditions read."""
    names = {attribute.name for clause in pattern.conditions for attribute in clause.attributes()}
    types = [variable.type for variable in pattern.variables]
    return EventStream.from_parquet(data, types=types, attributes=sorted(names))


def of_own_types(statistics: Statistics, pattern: Pattern) -> Statistics:
    """Statistics of the stream that the pattern runs on: the events of its own types."""
    rates = statistics.rates or {}
    by_type = {v.type: rates[v.name] for v in pattern.variables if v.name in rates}
    return replace(statistics, stream_rate=sum(by_type.values()) or None)
