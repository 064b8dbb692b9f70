"""Measuring all plan generators on one pattern, interleaved, one results row a run."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cepbench.errors import ExperimentError, PartialMatchLimitError, PlanningRefusedError
from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.registry import default_evaluator, evaluator_for
from cepbench.evaluators.tasks import PARTIAL_MATCH_LIMIT
from cepbench.patterns.parse import parse
from cepbench.planners.generate import plan as make_plan
from cepbench.planners.registry import PlanGenerator, find_generator
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from cepbench.sweeps.cells import (
    ERROR,
    LATENCY,
    LIMIT,
    METRICS,
    OK,
    REFUSED,
    Cell,
    provenance,
)
from cepbench.sweeps.profiler import expected_last
from cepbench.sweeps.workload import PatternSpec

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern

#: Events of the stream that each evaluator sees before anything is timed.
WARM_UP_EVENTS = 5_000


@dataclass(frozen=True, slots=True)
class Planned:
    """A generator's plan for the pattern, or why there is none."""

    plans: str
    plan: Any
    seconds: float | None
    status: str
    reason: str | None


#: Generator, strategy and weight of latency: what a plan is made for.
Purpose = tuple[str, str, float]


def cells_of(
    generators: Sequence[str | PlanGenerator],
    evaluators: Sequence[str] | None,
    repetitions: int,
    strategies: Sequence[str] = ("any",),
    alphas: Sequence[float] = (0.0,),
) -> list[Cell]:
    """All cells of one pattern, in the order of their measurement.

    Repetitions are the outer loop, and every repetition starts one run later, so that a drift of
    the machine's speed falls on all generators alike and ratios are paired.

    Parameters
    ----------
    generators : sequence of str or PlanGenerator
        Names in :data:`cepbench.planners.registry.PLAN_GENERATORS`, or generators themselves.
    evaluators : sequence of str, optional
        Evaluators, each of which runs every plan that it can. By default every plan runs in the
        evaluator made for its kind: order plans in the lazy NFA and tree plans in the tree, as
        in [kolchinsky2018]_, section 6.2.
    repetitions : int
    strategies : sequence of str
        Selection strategies, as the pattern language writes them.
    alphas : sequence of float
        Weights of the latency in the cost of plans.

    Raises
    ------
    PlanGeneratorError
        If a generator is unknown.
    ExperimentError
        If an evaluator is unknown, or a generator's plans fit none of the evaluators.
    """
    if repetitions < 1:
        raise ExperimentError(f"{repetitions} repetitions: at least one is needed")
    chosen = None if evaluators is None else [evaluator_for(name) for name in evaluators]
    pairs: list[tuple[str, str]] = []
    for generator in map(_resolved, generators):
        kind = generator.kind
        fitting = [entry for entry in chosen or [default_evaluator(kind)] if kind in entry.kinds]
        if not fitting:
            raise ExperimentError(
                f"{generator.name} makes {kind} plans, which none of the evaluators "
                f"{', '.join(entry.name for entry in chosen or ())} runs; add "
                f"{default_evaluator(kind).name!r}"
            )
        pairs.extend((generator.name, evaluator.name) for evaluator in fitting)
    runs = [
        (*pair, strategy, float(alpha))
        for strategy, alpha, pair in itertools.product(strategies, alphas, pairs)
    ]
    cells: list[Cell] = []
    for repetition in range(repetitions):
        shift = repetition % max(1, len(runs))
        rotated = runs[shift:] + runs[:shift]
        cells.extend(
            Cell(name, evaluator, repetition, strategy, alpha)
            for name, evaluator, strategy, alpha in rotated
        )
    return cells


def _resolved(generator: str | PlanGenerator) -> PlanGenerator:
    return find_generator(generator) if isinstance(generator, str) else generator


def measure_pattern(
    spec: PatternSpec,
    stream: EventStream,
    statistics: Statistics,
    generators: Sequence[str | PlanGenerator],
    *,
    evaluators: Sequence[str] | None = None,
    repetitions: int = 3,
    strategies: Sequence[str] = ("any",),
    alphas: Sequence[float] = (0.0,),
    latency: bool = False,
    share_equal_plans: bool = False,
    seconds: float = 0.0,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    output: str = "count",
    dataset: str = "",
    configuration: str = "",
    finished: Collection[Cell] = (),
    beside: Iterable[Mapping[str, Any]] = (),
) -> Iterator[dict[str, Any]]:
    """Plan with every generator, then run every plan ``repetitions`` times, or for some time.

    All plans are made first; then every evaluator runs on the beginning of the stream untimed;
    then the runs follow in the order of :func:`cells_of`, and more of them where ``seconds`` asks
    for it.

    Parameters
    ----------
    spec : PatternSpec
    stream : EventStream
        What the pattern is evaluated on.
    statistics : Statistics
        What the plans are made from.
    generators : sequence of str or PlanGenerator
    evaluators : sequence of str, optional
        See :func:`cells_of`.
    repetitions : int
    strategies, alphas
        See :func:`cells_of`. Under AND, the event that is expected to arrive last is the one that
        most matches on the beginning of the stream end with.
    latency : bool
        Whether every run is followed by another one, of which only detection latency is taken:
        looking at the clock for every match would slow down the run that throughput is taken from.
    share_equal_plans : bool
        Whether equal plans of several generators run once in each repetition. The rows of the
        others repeat what was measured, and ``measured_with`` says whose run it was. That takes
        noise away from ratios, which are exactly 1 then, and no work.
    seconds : float
        How long each plan is run at least, all its runs together: after the repetitions, the plan
        that was run for the least time is run again, until none was run for less. So long and
        short runs alike fill the time together, and a drift of the machine falls on all of them.
    seed : int
        Of the plan generators that draw at random.
    time_selectivity : str
        See :func:`cepbench.planners.generate.plan`.
    partial_match_limit : int
        A run that stores more partial matches ends as a row with status ``partial_match_limit``.
    output : str
        ``count`` or ``matches``.
    dataset : str
        Name of the data for the results row.
    configuration : str
        All that the run depends on, as JSON, for the results row.
    finished : collection of Cell
        Cells that need not be measured again.
    beside : iterable of mapping
        Rows of other generators that were measured before on the same pattern and stream; with
        ``share_equal_plans`` their runs count for equal plans.

    Yields
    ------
    dict
        A row with the columns of :data:`cepbench.sweeps.cells.RESULT_SCHEMA`.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.2. Differs from the paper: repetitions, and times taken
    on a warm engine.
    """
    done = set(finished)
    cells = cells_of(generators, evaluators, repetitions, strategies, alphas)
    missing = [cell for cell in cells if cell not in done]
    if not missing:
        return
    specs = {strategy: spec.under(strategy) for strategy in strategies}
    patterns = {strategy: under.pattern for strategy, under in specs.items()}
    planned = plan_cells(missing, patterns, stream, statistics, generators, seed, time_selectivity)
    options = {"output": output, "partial_match_limit": partial_match_limit}
    _warm_up(patterns, stream, planned, missing, options)
    alike = _Alike(planned, share_equal_plans)
    measured: dict[tuple[Any, ...], tuple[str, dict[str, Any]]] = {
        (row["repetition"], (row["evaluator"], row["strategy"], row["plan"])): (
            row["measured_with"] or row["generator"],
            {name: row[name] for name in ("status", "reason", *METRICS) if name in row},
        )
        for row in beside
        if row["plan"] is not None
    }
    for cell in itertools.chain(missing, alike.further(repetitions, seconds)):
        entry = planned[cell.generator, cell.strategy, cell.alpha]
        row: dict[str, Any] = {
            "pattern_set": spec.pattern_set,
            "size": spec.size,
            "pattern_id": spec.pattern_id,
            "pattern": specs[cell.strategy].text,
            "generator": cell.generator,
            "plan_kind": entry.plans,
            "evaluator": cell.evaluator,
            "strategy": cell.strategy,
            "alpha": cell.alpha,
            "repetition": cell.repetition,
            "seed": seed,
            "time_selectivity": time_selectivity,
            "dataset": dataset,
            **options,
            "configuration": configuration,
            "plan": None,
            "plan_cost": None,
            "plan_log_cost": None,
            "measured_with": None,
            "plan_seconds": entry.seconds,
            "status": entry.status,
            "reason": entry.reason,
            **provenance(),
            "started_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        if entry.plan is not None:
            row |= {
                "plan": plan_text(entry.plan),
                "plan_cost": entry.plan.cost,
                "plan_log_cost": entry.plan.log_cost,
            }
            same = (cell.repetition, alike.key(cell))
            if same in measured:
                row["measured_with"], outcome = measured[same]
                alike.joined(cell)
            else:
                began = time.perf_counter()
                outcome = _run(
                    patterns[cell.strategy], stream, entry.plan, cell.evaluator, options, latency
                )
                alike.ran(cell, time.perf_counter() - began, outcome["status"])
                measured[same] = cell.generator, outcome
            row |= outcome
        yield row


class _Alike:
    """Cells that are one measurement, since their plans are equal, and how long each was run."""

    def __init__(self, planned: Mapping[Purpose, Planned], share: bool) -> None:
        self._planned = planned
        self._share = share
        self._cells: dict[tuple[Any, ...], dict[Cell, None]] = {}
        self._spent: dict[tuple[Any, ...], float] = {}

    def key(self, cell: Cell) -> tuple[Any, ...]:
        """Equal for two cells of one measurement."""
        if not self._share:
            return (cell.generator, cell.evaluator, cell.strategy, cell.alpha)
        plan = self._planned[cell.generator, cell.strategy, cell.alpha].plan
        return (cell.evaluator, cell.strategy, plan_text(plan))

    def ran(self, cell: Cell, seconds: float, status: str) -> None:
        """A cell was run for so long; one that did not come to its end needs no further run."""
        key = self.key(cell)
        self._spent[key] = self._spent.get(key, 0.0) + (seconds if status == OK else math.inf)
        self.joined(cell)

    def joined(self, cell: Cell) -> None:
        """A cell has the outcome of another one's run."""
        self._cells.setdefault(self.key(cell), {})[cell._replace(repetition=0)] = None

    def further(self, repetitions: int, seconds: float) -> Iterator[Cell]:
        """Cells to be run besides the repetitions, until each was run for so many seconds."""
        runs = dict.fromkeys(self._spent, repetitions)
        while runs and self._spent[last := min(runs, key=self._spent.__getitem__)] < seconds:
            for cell in self._cells[last]:
                yield cell._replace(repetition=runs[last])
            runs[last] += 1


def plan_cells(
    cells: Sequence[Cell],
    patterns: Mapping[str, Pattern],
    stream: EventStream,
    statistics: Statistics,
    generators: Sequence[str | PlanGenerator],
    seed: int,
    time_selectivity: str,
) -> dict[Purpose, Planned]:
    """The plans that cells of one pattern need, or why there are none.

    Parameters
    ----------
    cells : sequence of Cell
    patterns : mapping of str to Pattern
        Strategy -> the pattern under it.
    stream : EventStream
        Where the output profiler looks for matches, if latency has a weight.
    statistics, generators, seed, time_selectivity
        See :func:`measure_pattern`.
    """
    by_name = {generator.name: generator for generator in map(_resolved, generators)}
    last = None
    if any(cell.alpha for cell in cells):
        last = expected_last(next(iter(patterns.values())), stream, statistics)
    return {
        (name, strategy, alpha): _planned(
            by_name[name], patterns[strategy], statistics, seed, time_selectivity, alpha, last
        )
        for name, strategy, alpha in dict.fromkeys(
            (cell.generator, cell.strategy, cell.alpha) for cell in cells
        )
    }


def plan_text(plan: Any) -> str:
    """A plan on one line: ``c, a, b`` for an order, ``((a, c), b)`` for a tree.

    With a bar between the plans of several branches.
    """
    return " | ".join(
        ", ".join(part.order) if part.kind == "order" else _bracketed(part.tree)
        for part in plan.parts
    )


def _bracketed(tree: Any) -> str:
    return tree if isinstance(tree, str) else f"({', '.join(map(_bracketed, tree))})"


def _planned(
    generator: PlanGenerator,
    pattern: Pattern,
    statistics: Statistics,
    seed: int,
    time_selectivity: str,
    alpha: float,
    last: Any,
) -> Planned:
    load_kernels(generator)
    try:
        started = time.perf_counter()
        plan = make_plan(
            pattern,
            statistics,
            generator,
            seed=seed,
            time_selectivity=time_selectivity,
            alpha=alpha,
            last=last,
        )
        seconds = time.perf_counter() - started
    except PlanningRefusedError as error:
        return Planned(generator.kind, None, None, REFUSED, _reason(error))
    except Exception as error:  # one broken generator is a row; the sweep must go on
        return Planned(generator.kind, None, None, ERROR, _reason(error))
    return Planned(generator.kind, plan, seconds, OK, None)


def load_kernels(generator: PlanGenerator) -> None:
    """Plan something small, so that loading compiled code is not part of planning time."""
    # Connected without a cycle: some generators take no other pattern.
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 1 units")
    statistics = Statistics(
        cardinalities={"a": 1.0, "b": 2.0, "c": 3.0},
        selectivities={("a", "b"): 0.5, ("b", "c"): 0.5},
    )
    # A generator that cannot plan this one may well plan the real one.
    with suppress(Exception):
        make_plan(pattern, statistics, generator)


def _warm_up(
    patterns: Mapping[str, Pattern],
    stream: EventStream,
    planned: Mapping[Purpose, Planned],
    cells: Sequence[Cell],
    options: dict[str, Any],
) -> None:
    seen = set()
    for cell in cells:
        plan = planned[cell.generator, cell.strategy, cell.alpha].plan
        # An evaluator may hold separate kernels for both kinds of plan.
        if plan is None or (cell.evaluator, plan.kind, cell.strategy) in seen:
            continue
        seen.add((cell.evaluator, plan.kind, cell.strategy))
        beginning = stream[:WARM_UP_EVENTS]
        _run(patterns[cell.strategy], beginning, plan, cell.evaluator, options, latency=False)


def _run(
    pattern: Pattern,
    stream: EventStream,
    plan: Any,
    evaluator: str,
    options: dict[str, Any],
    latency: bool,
) -> dict[str, Any]:
    try:
        result = evaluate(pattern, stream, plan, evaluator=evaluator, **options)
        measured = _known(result.metrics.to_dict()) | dict.fromkeys(LATENCY)
        if latency:
            timed = evaluate(pattern, stream, plan, evaluator=evaluator, latency=True, **options)
            found = _known(timed.metrics.to_dict())
            measured |= {k: found[k] for k in LATENCY}
    except PartialMatchLimitError as error:
        return {"status": LIMIT, "reason": _reason(error)}
    except Exception as error:  # one broken run is a row; the sweep must go on
        return {"status": ERROR, "reason": _reason(error)}
    return {"status": OK, "reason": None, **measured}


def _known(metrics: dict[str, float]) -> dict[str, float | None]:
    """None for NaN, which is no JSON: latencies without a match, what an evaluator does not count."""
    return {k: v if v == v else None for k, v in metrics.items()}


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
