"""A sweep as a Spark job: one task measures all plan generators on one pattern and stream.

Runs on any Spark master whose workers see the folder of results and the data under the same paths
(``local[*]`` does by itself; on a cluster use a shared file system) and have cepbench installed.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.runs.protocol import Evaluator
from cepbench.errors import DatasetError, ExperimentError
from cepbench.experiments.sweeps.cells import NO_PLAN, check_agreement
from cepbench.experiments.sweeps.configuration import SweepConfig, evaluators_of, identity_of
from cepbench.experiments.sweeps.estimate import (
    Timing,
    choose_sample,
    estimate_table,
    read_estimate,
    time_pattern,
    write_estimate,
)
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.store import (
    Journal,
    ResultsStore,
    count_rows,
    journal_path,
    of_stream,
    read_kept,
    read_with_user_parts,
    rows_of,
    user_folder,
)
from cepbench.experiments.sweeps.sweep_file import Sweep, data_paths
from cepbench.experiments.sweeps.warm_up import compile_kernels
from cepbench.experiments.sweeps.workload import (
    USER,
    WORKLOAD,
    PatternSpec,
    count_draws,
    draw_workload,
    user_specs,
)
from cepbench.files import write_json
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.patterns.times import read_columns
from cepbench.planning.costs.models import UserCost, cost_from
from cepbench.planning.planners.registry import (
    PlanGenerator,
    default_generators,
    find_generator,
    user_defined_generators,
)
from cepbench.planning.statistics.model import Statistics
from cepbench.spark.generate import generate_stream
from cepbench.spark.jobs import run_job
from cepbench.spark.statistics import GROUP, arrival_rates, attribute_quantiles, measure_statistics
from cepbench.streams.event_stream import EventStream
from cepbench.streams.generated import make_stream
from cepbench.streams.parquet_layout import hierarchy_of_parquet
from cepbench.streams.synthetic import GeneratedStream


@dataclass(frozen=True, slots=True)
class SweepJob:
    """The input that all tasks of a sweep share; sent to the workers."""

    config: SweepConfig
    configuration: str
    folder: Path
    parts: bytes
    beside: Path | None = None

    def grid(self, stream: str) -> Grid:
        """In a worker: the cells of each pattern on a stream; registers user-defined evaluators."""
        generators, evaluators, cost = cloudpickle.loads(self.parts)
        for entry in evaluators:
            EVALUATORS.add(entry)
        return replace(self.config.grid(generators, stream), cost=cost)


@dataclass(frozen=True, slots=True)
class Task:
    """One pattern on one stream, and its statistics by window, as JSON objects."""

    spec: PatternSpec
    stream: str
    statistics: Mapping[str, Mapping[str, Any]]

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
    user_defined: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Measure a workload, or resume an earlier, killed run of the same sweep.

    Draws the patterns, measures their statistics, then measures all plan generators on each
    pattern. Every finished row is written at once: a killed sweep loses no row and repeats
    none. Refusals of generators and runs at the partial-match limit are rows.

    The rows are as of :func:`cepbench.experiments.sweeps.store.read_results`, pattern sets in the order
    of the configuration.

    An ExperimentError if the configuration is invalid, the folder belongs to another sweep or is in
    use, a pattern could not be measured at all, or two plans of a pattern found different numbers
    of matches.

    Source: [kolchinsky2018]_, section 6.2. Differs from the paper: a pattern runs on the events of
    its own types, and throughput counts those; reading and sorting out the others is no part of
    the times.

    Parameters
    ----------
    spark
        With any master. A core measures one pattern at a time; times are invalid with more cores
        than the machine has.
    path
        Folder of results, on a file system that all workers share.
    user_defined
        Names of user-defined plan generators to measure on the same patterns, each in a folder
        within that of the sweep, so that finished rows of the others are kept. By default all
        that are registered if the configuration names no generators, else none.
    """
    if user_defined is None:
        user_defined = user_defined_generators() if config.generators is None else ()
    _measured(spark, config, Path(path))
    for name in user_defined:
        part = replace(config, generators=(name,), plans=(), policies=())
        _measured(spark, part, user_folder(path, name), beside=Path(path))
    return finished_results(config, path, user_defined)


def finished_results(
    config: SweepConfig, path: str | Path, user_defined: Sequence[str] | None = None
) -> pd.DataFrame:
    """The rows of a finished sweep as :func:`run_sweep` returns them; nothing is run.

    ``config``, ``path``, ``user_defined``: see :func:`run_sweep`.

    An ExperimentError if the folder holds no sweep, or two plans of a pattern found different
    numbers of matches.
    """
    results = read_with_user_parts(path, user_defined)
    check_agreement(results)
    sets = [name for part in config.workloads.values() for name in part.pattern_sets]
    orders = {
        "pattern_set": [*dict.fromkeys(sets), USER, WORKLOAD],
        "regime": list(dict.fromkeys([*config.workloads, ""])),
        "stream": list(config.data_of),
    }
    return results.sort_values(
        list(orders),
        key=lambda column: pd.Categorical(column, orders[str(column.name)], ordered=True),
        ignore_index=True,
    )


def _measured(
    spark: SparkSession, config: SweepConfig, path: Path, *, beside: Path | None = None
) -> None:
    """Fill one folder; with ``beside``, from the patterns and statistics of a finished sweep."""
    config, generators = resolved(config)
    cells = {stream: config.grid(generators, stream).cells() for stream in config.data_of}
    identity = identity_of(config, generators)
    with ResultsStore(path, identity) as store:
        if store.is_complete:
            return

        def keep(name: str, make: Callable[[], Any]) -> Any:
            return store.kept(name, make if beside is None else partial(read_kept, beside, name))

        specs = drawn_workload(spark, config, keep)
        if beside is None:
            store.kept("draws", partial(count_draws, specs))
        tasks = tasks_of(spark, config, specs, keep)
        pending = [
            task
            for task in tasks
            if not set(cells[task.stream]) <= store.finished(task.spec.pattern_id, task.stream)
        ]
        # Shuffled, so that the finished part predicts the duration of the rest.
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
        failures = _run(spark, job, pending, len(next(iter(cells.values()))))
        if failures:
            raise ExperimentError(
                f"{len(failures)} of {len(tasks)} patterns could not be measured; the first: "
                f"{failures[0]}. Finished rows are kept: repair this and run the sweep again"
            )
        store.compact()


def resolved(config: SweepConfig) -> tuple[SweepConfig, list[PlanGenerator]]:
    """The configuration with the names of its plan generators, and the generators.

    If it names none, they are the built-in default ones; user-defined ones are measured beside
    them.
    """
    names = (
        default_generators(user_defined=False) if config.generators is None else config.generators
    )
    generators = [find_generator(name) for name in names]
    return replace(config, generators=tuple(entry.name for entry in generators)), generators


def workload_of(
    config: SweepConfig,
    cardinalities: Mapping[str, Mapping[str, float]],
    quantiles: Mapping[str, Sequence[float]] = MappingProxyType({}),
    concepts: Collection[str] = (),
) -> list[PatternSpec]:
    """The patterns of a sweep, those that it draws before the user-defined ones.

    With several streams, patterns are over identifiers that all of them have, and the bounds on their
    work hold on all; see :func:`cardinalities_by_stream`. ``quantiles`` are those of the attribute that
    predicates compare, for each identifier, on the first stream; read where predicates are drawn for a
    selectivity. ``concepts`` are the names in the hierarchies of the streams, of which user-defined
    patterns may be.
    """
    largest = most_of(cardinalities)
    known = {*largest, *concepts}
    specs = []
    for regime, part in config.workloads.items():
        if part.pattern_sets:
            least = dict(part.least_rate) if isinstance(part.least_rate, tuple) else part.least_rate
            specs += draw_workload(
                largest,
                least_rate=least,
                window=part.windows[0] if part.windows else part.window,
                quantiles={name: np.array(values) for name, values in quantiles.items()},
                regime=regime,
                **{name: getattr(part, name) for name in _AS_DRAWN},
            )
    return [
        *specs,
        *user_specs(config.user_patterns, known, config.seed),
        *user_specs(config.user_workloads, known, config.seed, WORKLOAD),
    ]


#: Fields of a configuration that are options of drawing.
_AS_DRAWN = ("pattern_sets", "sizes", "patterns", "seed", "attribute", "max_partial_matches",
             "max_kleene_events", "most_rate", "predicates", "selectivities")  # fmt: skip


def most_of(cardinalities: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The most events per window of each identifier that all streams have."""
    streams = list(cardinalities.values())
    everywhere = set.intersection(*map(set, streams))
    return {name: max(of[name] for of in streams) for name in streams[0] if name in everywhere}


#: (name, function) → the JSON object of this name in a sweep's folder, or else the function's.
Keep = Callable[[str, Callable[[], Any]], Any]


def drawn_workload(spark: SparkSession, config: SweepConfig, keep: Keep) -> list[PatternSpec]:
    """The patterns of a sweep, from what they are drawn from on its streams."""
    cardinalities = cardinalities_by_stream(spark, config, keep)
    quantiles: Mapping[str, Sequence[float]] = {}
    if any(part.selectivities for part in config.workloads.values()):
        stream, data = next(iter(config.data_of.items()))
        quantiles = keep(
            of_stream("quantiles", stream),
            partial(attribute_quantiles, spark, data, config.attribute),
        )
    stated = [hierarchy_of_parquet(Path(data)) for data in config.data_of.values()]
    concepts = {name for hierarchy in stated for name in (hierarchy.names if hierarchy else ())}
    return workload_of(config, cardinalities, quantiles, concepts)


def cardinalities_by_stream(
    spark: SparkSession, config: SweepConfig, keep: Keep
) -> dict[str, dict[str, float]]:
    """Events of each identifier in the largest window, on average over the time with any.

    An ExperimentError if a stream has no events.
    """
    windows = {
        each or config.window for stream in config.data_of for each in config.windows_on(stream)
    }
    seconds = max(parse(f"PATTERN SEQ(A a) WITHIN {each}").window.seconds for each in windows)

    def measured(data: str) -> dict[str, float]:
        rates = arrival_rates(spark, data, progress=False)
        rates = rates[rates["events"] > 0]
        if rates.empty:
            raise ExperimentError(f"{data} holds no events")
        return {str(symbol): float(rate * seconds) for symbol, rate in rates["rate"].items()}

    return {
        stream: keep(of_stream("cardinalities", stream), partial(measured, data))
        for stream, data in config.data_of.items()
    }


def tasks_of(
    spark: SparkSession, config: SweepConfig, specs: Sequence[PatternSpec], keep: Keep
) -> list[Task]:
    """Each pattern on each stream, with its statistics there under each window if plans need any."""
    generators = resolved(config)[1]

    def measured(data: str, patterns: Mapping[str, Pattern]) -> dict[str, Any]:
        found = measure_statistics(spark, data, patterns, seed=config.seed)
        return {name: each.to_dict() for name, each in found.items()}

    tasks = []
    for stream, data in config.data_of.items():
        cells = config.grid(generators, stream).cells()
        of_workloads = config.methods or config.planners
        planned = [] if of_workloads else [cell for cell in cells if cell.generator != NO_PLAN]
        windows = {cell.window: None for cell in planned}
        # Name of the statistics -> the pattern under that window.
        named = {
            (spec, window): f"{spec.pattern_id} within {window}" if window else spec.pattern_id
            for spec in specs
            for window in windows
        }
        patterns = {
            name: spec.under(window=window).pattern for (spec, window), name in named.items()
        }
        statistics = (
            keep(of_stream("statistics", stream), partial(measured, data, patterns))
            if patterns
            else {}
        )
        tasks += [
            Task(spec, stream, {window: statistics[named[spec, window]] for window in windows})
            for spec in specs
        ]
    return tasks


def pickled(config: SweepConfig, generators: Sequence[PlanGenerator]) -> bytes:
    """Generators, evaluators and cost for the workers: user-defined ones by their code."""
    evaluators, cost = evaluators_of(config), cost_from(config.cost)
    parts: list[PlanGenerator | Evaluator] = [*generators, *evaluators]
    functions = [part.function for part in parts if not part.is_builtin]
    functions += [cost.function] if isinstance(cost, UserCost) else []
    with ExitStack() as by_value:
        for name in {function.__module__ for function in functions}:
            # Workers cannot import a user's module; a notebook's objects go by value anyway.
            if name != "__main__" and name in sys.modules:
                module = sys.modules[name]
                cloudpickle.register_pickle_by_value(module)
                by_value.callback(cloudpickle.unregister_pickle_by_value, module)
        named = [g.name if g.is_builtin else g for g in generators]
        theirs = [entry for entry in evaluators if not entry.is_builtin]
        return bytes(cloudpickle.dumps((named, theirs, cost)))


def _run(spark: SparkSession, job: SweepJob, pending: Sequence[Task], cells: int) -> list[str]:
    """Measure the pending patterns, a task each; returns the reasons of failures."""
    known: dict[str, tuple[int, int]] = {}
    before = count_rows(job.folder, known)
    try:
        outcome = run_job(
            spark,
            partial(_measure_one, job),
            pending,
            name="sweep",
            unit="pattern",
            # Where runs take a minimum time together, there are more rows than cells.
            finished=lambda: min((count_rows(job.folder, known) - before) // cells, len(pending)),
        )
    except DatasetError as error:
        raise ExperimentError(
            f"{error}. Finished rows are kept: run the sweep again to resume it"
        ) from error
    return [failure for failure in outcome if failure is not None]


def _measure_one(job: SweepJob, task: Task) -> str | None:
    """Measure the missing cells of one pattern, in a Spark worker; None, or why it failed."""
    spec, data = task.spec, job.config.data_of[task.stream]
    try:
        with Journal(journal_path(job.folder, spec.pattern_id, task.stream)) as journal:
            for row in measure_pattern(
                spec,
                own_stream(data, spec, job.config),
                task.measured(),
                job.grid(task.stream),
                columns={
                    "dataset": Path(data).name,
                    "stream": task.stream,
                    "configuration": job.configuration,
                },
                finished=journal.finished,
                beside=rows_of(job.beside, spec.pattern_id, task.stream) if job.beside else (),
            ):
                journal.append(row)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # reported with its pattern by the driver; the other tasks go on
        return f"{of_stream(spec.pattern_id, task.stream)}: {type(error).__name__}: {error}"
    return None


def own_stream(data: str, spec: PatternSpec, config: SweepConfig) -> EventStream:
    """The events of a pattern's types, with the attributes that it reads.

    With a ``duration``, those of the stream's beginning.
    """
    types = [pattern.types for pattern in spec.patterns]
    known = dict.fromkeys(name for each in types for name in each or ())
    stream = EventStream.from_parquet(
        data,
        types=None if None in types else list(known),
        attributes=sorted(
            {name for pattern in spec.patterns for name in read_columns(pattern.attributes)}
        ),
    )
    duration = config.in_regime(spec.regime).duration
    if not duration or not len(stream):
        return stream
    end = stream.timestamps[0] + parse(f"PATTERN SEQ(A a) WITHIN {duration}").window.length
    return stream[: int(np.searchsorted(stream.timestamps, end, side="left"))]


def of_own_types(statistics: Statistics, pattern: Pattern) -> Statistics:
    """Statistics of the stream that the pattern runs on: the events of its own types."""
    if pattern.types is None:
        return statistics
    rates = statistics.rates or {}
    by_type = {v.type: rates[v.name] for v in pattern.variables if v.name in rates}
    return replace(statistics, stream_rate=sum(by_type.values()) or None)


def sweep_data(spark: SparkSession, sweep: Sweep, root: str | Path) -> dict[str, Path]:
    """The path of each stream of a sweep; streams that are missing are generated first.

    See :func:`cepbench.experiments.sweeps.sweep_file.data_paths`, also for errors.

    ``root``: folder for generated streams, which all sweeps share.
    """
    found = data_paths(sweep, root)
    missing = {
        found[name]: its for name, its in sweep.generated.items() if not found[name].exists()
    }
    if len(missing) > 1:  # each as a whole beside others: most are one file
        made = [*missing.items()]
        run_job(spark, _make, made, name="generate", unit="stream")
    for name, stream in sweep.generated.items():
        generate_stream(spark, found[name], stream)
    return found


def _make(its: tuple[Path, GeneratedStream]) -> None:
    """Generate a stream in a Spark worker."""
    make_stream(*its)


def estimate_sweep(spark: SparkSession, config: SweepConfig, path: str | Path) -> pd.DataFrame:
    """Estimate the duration of :func:`cepbench.experiments.sweeps.on_spark.job.run_sweep`.

    A sample of the patterns is read, planned, and run on parts of its events, one pattern a core.
    The estimate is stored in the folder of the sweep and reused. User-defined generators that are
    measured beside the sweep are not included.

    The table is that of :func:`cepbench.experiments.sweeps.estimate.estimate_table`.

    ``path``: folder of results, on a file system that all workers share.

    An ExperimentError if the folder belongs to another sweep or is in use.
    """
    config, generators = resolved(config)
    identity = identity_of(config, generators)
    cores = spark.sparkContext.defaultParallelism
    with ResultsStore(path, identity) as store:
        found = read_estimate(store.path)
        if found is not None:
            return found
        cardinalities = cardinalities_by_stream(spark, config, store.kept)
        specs = drawn_workload(spark, config, store.kept)
        sample = choose_sample(specs, most_of(cardinalities), seed=config.seed)
        began = time.perf_counter()
        tasks = tasks_of(spark, config, [each.spec for each in sample], lambda _, make: make())
        groups = math.ceil(len(specs) / GROUP) / math.ceil(len(sample) / GROUP)
        measuring = cores * (time.perf_counter() - began) * groups
        compile_kernels()
        parts = pickled(config, generators)
        job = SweepJob(config, json.dumps(identity), store.path.resolve(), parts)
        kept = store.path / "estimate"
        kept.mkdir(exist_ok=True)
        timings = run_job(
            spark,
            partial(_time_one, job, kept),
            tasks,
            name="estimate",
            unit="pattern",
            partitions=len(tasks),
            finished=lambda: sum(1 for _ in kept.glob("*.json")),
        )
        table = estimate_table(sample, timings, cores, measuring=measuring, seed=config.seed)
        write_estimate(store.path, table)
    return table


def _time_one(job: SweepJob, kept: Path, task: Task) -> Timing:
    """Time one sampled pattern in a Spark worker, unless a killed estimate already has."""
    spec = task.spec
    path = kept / f"{of_stream(spec.pattern_id, task.stream)}.json"
    if path.exists():
        return Timing(**json.loads(path.read_text(encoding="utf-8")))
    began = time.process_time()
    stream = own_stream(job.config.data_of[task.stream], spec, job.config)
    reading = time.process_time() - began
    timing = time_pattern(spec, stream, task.measured(), job.grid(task.stream), reading=reading)
    write_json(path, asdict(timing))
    return timing
