"""Measuring plan generators on a pattern, or methods or planners on a workload: interleaved, a row a run."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import pandas as pd

from cepbench.engines.adaptation.detector import BATCH_SIZE, AdaptiveDetector
from cepbench.engines.aggregation.workload_run import SHARED
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import evaluator_for
from cepbench.errors import (
    ExperimentError,
    PlanningRefusedError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.sweeps.aggregation import MatchLimitError, aggregated
from cepbench.experiments.sweeps.cells import (
    ERROR,
    LATENCY,
    LIMIT,
    METRICS,
    NO_PLAN,
    OK,
    RESULT_SCHEMA,
    Cell,
    cell_of,
    provenance,
)
from cepbench.experiments.sweeps.grid import POLICY_GENERATOR, Grid
from cepbench.experiments.sweeps.queries import reused
from cepbench.experiments.sweeps.rotation import Agreement, longer, outcome_of
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.planners.generate import plan as make_plan
from cepbench.planning.planners.registry import PlanGenerator, find_generator
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.statistics.output_profiler import OutputProfiler
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

#: Events of the untimed run with which each evaluator is warmed up, and the most matches that a method
#: lists in it.
WARM_UP_EVENTS, WARM_UP_MATCHES = 1_000, 100_000

#: Events of a batch whose matches are built and dropped.
BATCH_EVENTS = 16_384


#: Columns of a row that are fields of the grid.
_OF_GRID = ("seed", "time_selectivity", "partial_match_limit")


@dataclass(frozen=True, slots=True)
class Planned:
    """The outcome of planning; OK without a plan for what needs none beforehand."""

    plan_kind: str
    plan: Any
    seconds: float | None
    status: str
    reason: str | None

    @property
    def identity(self) -> str | None:
        """Equal for equal plans; None without a plan. An adaptive run is like no other one."""
        if isinstance(self.plan, WorkloadPlan):
            return str(self.plan.to_dict())
        return self.plan and self.plan.text


#: (cell, pattern or workload, its plan) → the outcome of a run that failed, else an empty mapping.
FirstRun = Callable[[Cell, Any, Any], Mapping[str, Any]]

_UNPLANNED = Planned(NO_PLAN, None, None, OK, None)


def measure_pattern(
    spec: PatternSpec,
    stream: EventStream,
    statistics: Statistics | Mapping[str, Statistics],
    grid: Grid,
    *,
    columns: Mapping[str, str] = MappingProxyType({}),
    finished: Collection[Cell] = (),
    beside: Iterable[Mapping[str, Any]] = (),
    first: FirstRun | None = None,
) -> Iterator[dict[str, Any]]:
    """Plan with every generator, then run every plan as often as the grid says, or for some time.

    All plans are made first; then every evaluator runs on the beginning of the stream untimed;
    then the runs follow in the order of :meth:`cepbench.experiments.sweeps.grid.Grid.cells`, and more of them
    where the grid's ``seconds`` asks for it.

    Yields rows with the columns of :data:`cepbench.experiments.sweeps.cells.RESULT_SCHEMA`.

    Source: [kolchinsky2018]_, section 6.2. Differs from the paper: repetitions, and times taken
    on a warm engine.

    Parameters
    ----------
    statistics
        What the plans are made from; under several windows, by window. Those of a window that it
        lacks are measured on the stream.
    columns
        For the results rows: ``dataset`` and ``stream``, names of the data and within the sweep,
        and ``configuration``, everything that a run depends on as JSON.
    finished
        Cells that need not be measured again.
    beside
        Rows of other generators that were measured before on the same pattern and stream; with
        ``share_equal_plans`` their runs count for equal plans.
    first
        Instead of the untimed runs on the beginning: one run of each different plan. It compares what
        the run finds with what others have found, and returns the ``status`` and ``reason`` of all
        runs of a plan that failed. Without it digests of all runs are compared.
    """
    done = set(finished)
    missing = [cell for cell in grid.cells() if cell not in done]
    if not missing:
        return
    plans = Plans(spec, stream.indexed(), statistics, grid, missing)
    methods = grid.aggregations()
    agreement = Agreement()
    alike = _Alike(grid.share_equal_plans)
    failed: dict[tuple[Any, ...], dict[str, Any]] = {}
    if first is None:
        _warm_up(plans, stream, missing, grid)
    else:
        failed = _first_runs(plans, missing, alike, first)
    measured: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {
        (row["repetition"], alike.key(cell_of(row), row["plan"])): (
            row["measured_with"] or row["generator"],
            {name: row.get(name) for name in ("status", "reason", "details", *METRICS)},
        )
        for row in beside
        if row["plan"] is not None
    }
    for cell in itertools.chain(missing, alike.further(grid.repetitions, grid.seconds)):
        entry = plans.of(cell)
        row: dict[str, Any] = {
            **dict.fromkeys(RESULT_SCHEMA.names),
            "pattern_set": spec.pattern_set,
            "size": spec.size,
            "pattern_id": spec.pattern_id,
            "pattern": plans.specs[cell.strategy, cell.window].text,
            "regime": spec.regime,
            **cell._asdict(),
            **dict.fromkeys(("dataset", "stream", "configuration"), ""),
            **columns,
            **{name: getattr(grid, name) for name in _OF_GRID},
            **dict(zip(("method", "sharing"), methods.get(cell.generator, ("", "")), strict=True)),
            "plan_kind": entry.plan_kind,
            "plan_seconds": entry.seconds,
            "status": entry.status,
            "reason": entry.reason,
            **provenance(),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        if entry.status == OK:
            if isinstance(entry.plan, WorkloadPlan):
                row |= {"plan": entry.plan.describe(), "plan_cost": entry.plan.cost}
            elif entry.plan is not None:
                names = {"plan": "text", "plan_cost": "cost", "plan_log_cost": "log_cost"}
                row |= {column: getattr(entry.plan, its) for column, its in names.items()}
            same = (cell.repetition, alike.key(cell, entry.identity or cell.generator))
            if same in measured:
                row["measured_with"], outcome = measured[same]
                alike.joined(cell, same[1])
            else:
                began = time.perf_counter()
                outcome = failed.get(same[1]) or _run(
                    plans.query(cell), stream, entry.plan, cell, grid
                )
                digest = None if first else outcome.get("digest")
                wrong = digest and agreement.violated(cell.generator, digest, cell.window)
                if wrong:
                    reason = f"its values differ from those of {wrong[0]}; one of both is wrong"
                    outcome |= {"status": ERROR, "reason": reason}
                spent = time.perf_counter() - began
                # The digest of values takes longer than a method on a short stream.
                spent = (grid.methods and outcome.get("seconds")) or spent
                alike.ran(cell, same[1], spent, outcome["status"])
                measured[same] = cell.generator, outcome
            row |= outcome
        yield row


class _Alike:
    """Groups of cells that share one measurement because their plans are equal; their run times."""

    def __init__(self, share: bool) -> None:
        self._share = share
        self._cells: dict[tuple[Any, ...], dict[Cell, None]] = {}
        self._spent: dict[tuple[Any, ...], float] = {}

    def key(self, cell: Cell, plan: str | None) -> tuple[Any, ...]:
        """The key of a cell's group."""
        if not self._share:
            return cell._replace(repetition=0)
        return (cell.evaluator, cell.strategy, cell.window, cell.options, cell.output, plan)

    def ran(self, cell: Cell, key: tuple[Any, ...], seconds: float, status: str) -> None:
        """Add the time of a run; an unsuccessful one needs no further run."""
        self._spent[key] = self._spent.get(key, 0.0) + (seconds if status == OK else math.inf)
        self.joined(cell, key)

    def joined(self, cell: Cell, key: tuple[Any, ...]) -> None:
        """Add a cell that takes over the outcome of its group's run."""
        self._cells.setdefault(key, {})[cell._replace(repetition=0)] = None

    def further(self, repetitions: int, seconds: float) -> Iterator[Cell]:
        """Cells to run after the repetitions, until each group was run for so many seconds."""
        runs = dict.fromkeys(self._spent, repetitions)
        for key in longer(self._spent, seconds):
            for cell in self._cells[key]:
                yield cell._replace(repetition=runs[key])
            runs[key] += 1


class Plans:
    """The plans that cells of one pattern need, or why there are none.

    ``spec``, ``stream``, ``statistics``, ``grid``: see :func:`measure_pattern`.

    ``specs``: strategy and window -> the pattern under them.
    """

    def __init__(
        self,
        spec: PatternSpec,
        stream: EventStream,
        statistics: Statistics | Mapping[str, Any],
        grid: Grid,
        cells: Sequence[Cell],
    ) -> None:
        self.specs = {
            (strategy, window): spec.under(strategy, window)
            for strategy in grid.strategies
            for window in grid.windows
        }
        self._queries = {
            key: its.query.with_hierarchy(stream.hierarchy) for key, its in self.specs.items()
        }
        self._stream, self._grid = stream, grid
        self._statistics: dict[str, Any] = (
            dict.fromkeys(grid.windows, statistics)
            if isinstance(statistics, Statistics)
            else dict(statistics)
        )
        self._generators = grid.plan_generators()
        self._adaptive, self._methods = grid.policy_kinds(), grid.aggregations()
        self._last: dict[str, Any] = {}
        if any(cell.alpha for cell in cells):
            for window in grid.windows:
                pattern = self.specs[grid.strategies[0], window].pattern
                self._last[window] = expected_last(pattern, stream, self._statistics[window])
        self._found: dict[tuple[str, ...], Planned] = {}
        for cell in cells:
            if (purpose := self._purpose(cell)) not in self._found:
                self._found[purpose] = self._made(cell)

    def of(self, cell: Cell) -> Planned:
        """The plan that a cell runs."""
        return self._found[self._purpose(cell)]

    def query(self, cell: Cell) -> Pattern | Workload:
        """The pattern or workload that a cell runs, with its strategy and window, under the stream's concepts."""
        return self._queries[cell.strategy, cell.window]

    def _purpose(self, cell: Cell) -> tuple[str, ...]:
        """The part of a cell that its plan depends on."""
        evaluator = cell.evaluator if self._grid.planners else ""
        return cell.generator, cell.strategy, str(cell.alpha), cell.window, evaluator

    def _made(self, cell: Cell) -> Planned:
        grid, name = self._grid, cell.generator
        if name in self._adaptive:
            return replace(_UNPLANNED, plan_kind=self._adaptive[name])
        sharing = self._methods[name][1] if self._methods else ""
        if NO_PLAN in (name, sharing):
            return _UNPLANNED
        generator = self._generators.get(name)
        how: dict[str, Any] = {"seed": grid.seed}
        if generator is not None:
            how |= {"time_selectivity": grid.time_selectivity, "cost": grid.cost}
            how |= {"alpha": cell.alpha, "last": self._last.get(cell.window)}
        elif sharing:
            if self._methods[name][0] == SHARED:
                # What the planner's paper chooses, whatever queries take by another method.
                how["method"] = SHARED
        else:
            # At the end of a stream that is run as a whole no match is late.
            how |= {"delays": not grid.batch_size, "evaluator": cell.evaluator}
            how |= {"cost": grid.reuse_cost}

        def make() -> tuple[Any, float]:
            query = self.query(cell)
            if cell.window not in self._statistics:
                measured = measure_statistics(query, self._stream, seed=grid.seed)
                self._statistics[cell.window] = measured
            return timed_plan(
                query, self._statistics[cell.window], generator or sharing or name, **how
            )

        return _planned(generator.kind if generator else NO_PLAN, make)


def _planned(kind: str, make: Callable[[], tuple[Any, float]]) -> Planned:
    try:
        plan, seconds = make()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # one broken generator is a row; the sweep must go on
        return Planned(kind, None, None, **outcome_of(error, PlanningRefusedError, named=True))
    return Planned(kind, plan, seconds, OK, None)


def timed_plan(
    queries: Pattern | Workload, statistics: Any, planner: Any, **options: Any
) -> tuple[Any, float]:
    """A plan and the seconds of planning, without the loading of compiled code.

    Of a workload the refinements of its queries are part of planning.

    ``queries``, ``statistics``, ``planner``, ``**options``: as :func:`cepbench.plan` takes them, or
    of a workload :func:`cepbench.plan_workload`, with their errors.
    """
    if queries.by_query:
        make: Callable[[Any], Any] = partial(
            plan_workload, statistics=statistics, planner=planner, **options
        )
        # Planners of shared counts compile nothing.
        if WORKLOAD_PLANNERS.find(planner).shares == "matches":
            make(copy(queries))
        # A workload computes its refinements on first use, and each copy anew.
        queries = copy(queries)
    else:
        generator = find_generator(planner)
        load_kernels(generator)
        make = partial(make_plan, statistics=statistics, generator=generator, **options)
    began = time.perf_counter()
    found = make(queries)
    return found, time.perf_counter() - began


@lru_cache(maxsize=256)
def load_kernels(generator: PlanGenerator) -> None:
    """Plan a small pattern, once, so that planning times exclude the loading of compiled code."""
    # Connected without a cycle: some generators take no other pattern.
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 1 units")
    statistics = Statistics(
        cardinalities={"a": 1.0, "b": 2.0, "c": 3.0},
        selectivities={("a", "b"): 0.5, ("b", "c"): 0.5},
    )
    # A generator that cannot plan this one may well plan the real one.
    _planned(generator.kind, lambda: (make_plan(pattern, statistics, generator), 0.0))


def _warm_up(plans: Plans, stream: EventStream, cells: Sequence[Cell], grid: Grid) -> None:
    seen = set()
    grid = replace(grid, latency=False)
    if grid.methods:
        grid = replace(grid, partial_match_limit=WARM_UP_MATCHES)
    for cell in cells:
        plan, status = plans.of(cell).plan, plans.of(cell).status
        # An evaluator may hold separate kernels for both kinds of plan, and for its options.
        if status == OK:
            kernels = (engine_of(cell, plan, grid), cell.strategy, cell.options, cell.output)
            if kernels not in seen:
                seen.add(kernels)
                beginning = stream[:WARM_UP_EVENTS]
                _run(plans.query(cell), beginning, plan, cell, grid)


def _first_runs(
    plans: Plans, cells: Sequence[Cell], alike: _Alike, first: FirstRun
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The outcome of each group of cells whose first run failed."""
    outcomes: dict[tuple[Any, ...], dict[str, Any]] = {}
    for cell in cells:
        entry = plans.of(cell)
        key = alike.key(cell, entry.identity or cell.generator)
        if entry.status == OK and key not in outcomes:
            try:
                outcomes[key] = dict(first(cell, plans.query(cell), entry.plan))
            except (KeyboardInterrupt, ExperimentError):
                raise
            except BaseException as error:  # any failure is a row
                outcomes[key] = outcome_of(error, UnsupportedPatternError, UnsupportedTaskError)
    return {key: outcome for key, outcome in outcomes.items() if outcome}


def engine_of(cell: Cell, plan: Any, grid: Grid) -> tuple[str, str | None]:
    """What the compiled code of a run depends on, beside its options, strategy and output."""
    if grid.methods or grid.planners:
        return cell.evaluator, cell.generator
    return cell.evaluator, plan and plan.kind


def run_arguments(cell: Cell, grid: Grid) -> dict[str, Any]:
    """Keyword arguments of :func:`cepbench.engines.detection.evaluate.evaluate` for a cell."""
    return {
        "evaluator": cell.evaluator,
        "output": cell.output,
        "partial_match_limit": grid.partial_match_limit,
        "options": json.loads(cell.options),
    }


def evaluated(
    query: Pattern | Workload, stream: EventStream, plan: Any, cell: Cell, grid: Grid
) -> dict[str, Any]:
    """The metrics of a cell's run, on the stream as a whole or batch by batch.

    In batches of the grid's size, and of an adaptive run, they include ``batch_seconds``, a list; of
    the latter also ``switches``, a list with a dict of :class:`~cepbench.engines.adaptation.rounds.Switch` each.
    """
    if grid.methods:
        method, _ = grid.aggregations()[cell.generator]
        return aggregated(query, stream, method, grid.partial_match_limit, plan)
    how = run_arguments(cell, grid)
    if query.by_query:
        return reused(query, stream, plan, grid.batch_size, **how)
    policy = grid.policies.get(cell.generator)
    if policy is not None:
        size = grid.batch_size or BATCH_SIZE
        adaptive: dict[str, Any] = {
            "generator": POLICY_GENERATOR,
            "cost": grid.cost,
            "seed": grid.seed,
            "batch_size": size,
        }
        detector: Detector = AdaptiveDetector(query, **how, **{**adaptive, **policy})
    elif grid.batch_size or cell.output == "arrow":
        size = grid.batch_size or BATCH_EVENTS
        detector = Detector(query, plan, **how)
    else:
        return evaluate(query, stream, plan, **how).metrics.to_dict()
    # Matches may take more memory than there is: each batch's are dropped.
    seconds = [spent for spent, _ in timed_pushes(detector, stream.batches(size))]
    detector.flush()
    found: dict[str, Any] = detector.metrics().to_dict()
    if grid.batch_size or policy is not None:
        found["batch_seconds"] = seconds
    if isinstance(detector, AdaptiveDetector):
        found["switches"] = detector.switches.to_dict("records")
    return found


def timed_pushes(detector: Any, batches: Iterable[EventStream]) -> Iterator[tuple[float, Any]]:
    """The seconds of each push, and what it returned."""
    for batch in batches:
        began = time.perf_counter()
        found = detector.push(batch)
        yield time.perf_counter() - began, found


def _run(
    query: Pattern | Workload, stream: EventStream, plan: Any, cell: Cell, grid: Grid
) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        measured = evaluated(query, stream, plan, cell, grid) | dict.fromkeys(LATENCY)
        is_adaptive = cell.generator in grid.policies
        if (
            not query.by_query
            and grid.latency
            and not is_adaptive
            and evaluator_for(cell.evaluator).latency
        ):
            how = run_arguments(cell, grid)
            timed = evaluate(query, stream, plan, latency=True, **how).metrics.to_dict()
            measured |= {name: timed[name] for name in LATENCY}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # one broken run is a row; the sweep must go on
        refusals = [UnsupportedPatternError] if grid.methods else []
        outcome = outcome_of(error, *refusals, named=True)
        if isinstance(error, MatchLimitError):
            return outcome | _columns(error.measured)
        if outcome["status"] == LIMIT:
            # Bounds: the run would have taken longer, and had more partial matches.
            seconds = time.perf_counter() - began
            outcome |= {
                "seconds": seconds,
                "events": len(stream),
                "events_per_second": len(stream) / seconds if seconds else None,
                "partial_matches_created": grid.partial_match_limit,
                "peak_partial_matches": grid.partial_match_limit,
            }
        return outcome
    return {"status": OK, "reason": None, **_columns(measured)}


def _columns(measured: Mapping[str, Any]) -> dict[str, Any]:
    """What a run measured by column; what is no metric of all engines is in the details."""
    # None for NaN, a metric that is not counted: JSON has no NaN.
    known = {name: value if value == value else None for name, value in measured.items()}
    own = {name: known.pop(name) for name in measured if name not in METRICS}
    return {"details": json.dumps(own, sort_keys=True) if own else None, **known}


#: Matches from which orders of arrival are compared, and the most events read for them.
ENOUGH_MATCHES = 1_000
MOST_EVENTS = 100_000

_PROFILED_BATCH = 500


def expected_last(
    pattern: Pattern, stream: EventStream, statistics: Statistics
) -> list[str | None]:
    """The variable whose event completes most matches, for each branch of a pattern.

    None if the pattern alone determines the last event. Without any match it is the last variable
    in the pattern's text.

    ``stream``: read until :data:`ENOUGH_MATCHES` are found, or :data:`MOST_EVENTS` are seen.
    ``statistics``: for the plans of these runs.

    Source: [kolchinsky2018]_, section 5.1.
    """
    return [_last(branch, stream, statistics) for branch in pattern.branches()]


def _last(branch: Pattern, stream: EventStream, statistics: Statistics) -> str | None:
    possible = TemporalOrder(branch).latest()
    if len(possible) == 1:
        return None
    profiler = OutputProfiler(branch)
    (found_plan,) = make_plan(branch, statistics, "GREEDY").parts
    detector = Detector(branch, found_plan)
    for batch in stream[:MOST_EVENTS].batches(_PROFILED_BATCH):
        found = detector.push(batch)
        assert isinstance(found, pd.DataFrame)
        profiler.add(found)
        if profiler.matches_seen >= ENOUGH_MATCHES:
            break
    return str(profiler.last_variable) if profiler.matches_seen else possible[-1]
