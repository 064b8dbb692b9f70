"""All plan generators, aggregation methods or planners side by side on one stream."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import MOST, callback, choice, kind_of, number, texts, whole
from cepbench.arguments import seed as seed_from
from cepbench.engines.aggregation.aggregate import aggregate
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.tables import check_values
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS, evaluator_for
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, evaluator_without_plan, options_of
from cepbench.engines.runs.work import WORDS, Work
from cepbench.errors import ExperimentError, PlanGeneratorError, errors_naming
from cepbench.experiments.sweeps.cells import (
    ERROR,
    NO_PLAN,
    OK,
    Cell,
    check_agreement,
    results_frame,
)
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern, run_arguments
from cepbench.experiments.sweeps.rotation import Agreement, Progress, throughput
from cepbench.experiments.sweeps.workload import GivenSpec
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import cost_from
from cepbench.planning.costs.problem import TIME_SELECTIVITIES
from cepbench.planning.costs.reuse import REUSE_COSTS
from cepbench.planning.planners.registry import PlanGenerator, generators_from
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.given import statistics_from, workload_statistics
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.presentation.comparison.table import Comparison
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from

#: The planner that the others are compared with.
_NAIVE = "NAIVE"


def compare(
    pattern: Pattern | str | Workload,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    statistics: Statistics | Mapping[str, Statistics] | None = None,
    generators: Sequence[str | PlanGenerator] | None = None,
    evaluators: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    planners: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    repetitions: int = 3,
    seconds: float = 0.3,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    output: str = "count",
    cost: str | CostModel | None = None,
    on_progress: Callable[[int, int], object] | None = None,
    missing_types: str = "warn",
) -> Comparison:
    """Plan a pattern with every plan generator and run every plan on the stream.

    Evaluators that run without these plans have a row of their own, of the generator ``none``. Every
    different plan is run by itself, the runs interleaved; generators whose plans are equal share its
    figures.

    For a pattern with AGG, run every aggregation method instead, and compare their values; nothing is
    planned, and of the other arguments only ``repetitions``, ``seconds`` and ``on_progress`` matter.

    Of a workload, plan with every planner that reuses matches, and run every plan on several
    evaluators. The first run of each plan is not measured, and its matches are compared with those of
    the others.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        A pattern, its text, or a workload without AGG.
    stream, type, time
        See :func:`cepbench.evaluate`.
    statistics : Statistics, optional
        For planning; by default measured on the stream, if there is anything to plan. Of a workload
        those of every query.
    generators : sequence of str or PlanGenerator, optional
        Such as names in ``cep.PLAN_GENERATORS``; by default those of
        :func:`cepbench.planning.planners.registry.default_generators`.
    evaluators : sequence of str, optional
        See :class:`cepbench.experiments.sweeps.grid.Grid`; for a workload names in ``cep.EVALUATORS``, by default
        ``tree`` and those that share state between queries.
    methods : sequence of str, optional
        For a pattern with AGG: names in ``cep.AGGREGATORS``, by default all.
    planners : sequence of str, optional
        For a workload: names in ``cep.WORKLOAD_PLANNERS``, by default all that reuse matches.
    options : mapping, optional
        Evaluator -> its options by name; others have their defaults.
    repetitions : int
        Minimum runs of each different plan, after a warm-up.
    seconds : float
        Minimum time of each different plan's runs together, since single short runs are noisy; an
        hour at most. With 0 there are ``repetitions`` runs.
    seed : int
        Of sampled statistics and randomized plan generators.
    time_selectivity : str
        See :func:`cepbench.planning.planners.generate.plan`.
    partial_match_limit : int
        A run that stores more partial matches ends with status ``partial_match_limit``.
    output : str
        ``count`` only counts matches, ``matches`` also builds them.
    cost : str or CostModel, optional
        The cost that plans minimize, by default ``"throughput"``, see
        :func:`cepbench.planning.planners.generate.plan`; generators that cannot minimize it are rows with status
        ``refused``. Of a workload ``"calibrated"``, the default, or ``"e-cube"``.
    on_progress : callable, optional
        Called with the numbers of finished and of all runs, first with 0; for a progress bar.
        Runs beyond the repetitions are added as they come.
    missing_types : {"warn", "error"}
        As in :func:`cepbench.evaluate`.

    Returns
    -------
    Comparison
        A DataFrame with one row a generator (and evaluator), as registered: the plan, its estimated
        ``cost``, ``plan_seconds`` to make it, median ``events_per_second`` and quartiles (``_q1``,
        ``_q3``) over so many ``runs``, ``measured_with`` (the generator above whose plan is equal
        and whose runs these are, else missing), peaks (number and bytes), ``comparisons``,
        ``work``, what was done in the words of :data:`~cepbench.engines.runs.work.WORDS`, as a text,
        ``matches``; ``status`` is ``ok``, or says with ``reason`` why there are no figures.
        With AGG one row a method: median ``seconds``, the other metrics of
        :class:`~cepbench.engines.aggregation.protocol.AggregateMetrics`, and the number of ``values``;
        values other than those of the first method that runs are an ``error``.
        Of a workload one row a planner and evaluator: the ``plan``'s queries that are computed from
        others, ``times_naive``, the throughput relative to that of NAIVE on the same evaluator, and
        ``reused``, the matches made of those of other queries; other columns are as above. Plans may
        have queries whose matches would be late on a live stream (``delays=True``).

    Raises
    ------
    PlanGeneratorError
        If a generator, a planner or the cost is unknown.
    ExperimentError
        If an argument is invalid, or two runs found different matches, of a pattern different numbers
        of them.
    EvaluationError
        If an evaluator or one of its options is unknown.
    StreamError
        If the stream does not have the types or attributes asked for.
    """
    how: dict[str, Any] = {
        "generators": (),
        "repetitions": whole(repetitions, "repetitions", ExperimentError, least=1),
        "share_equal_plans": True,
        "seconds": number(seconds, "seconds", ExperimentError, least=0.0, most=3_600.0),
        "seed": seed_from(seed, ExperimentError, most=MOST),  # a column of the rows' table
        "time_selectivity": choice(
            time_selectivity, "time_selectivity", TIME_SELECTIVITIES, ExperimentError
        ),
        "partial_match_limit": whole(
            partial_match_limit, "partial_match_limit", ExperimentError, least=1
        ),
        "outputs": (choice(output, "output", ("count", "matches"), ExperimentError),),
    }
    on_progress = callback(on_progress, "on_progress", ExperimentError)
    asked: Any = queries_from(pattern, aggregates=True)
    if asked.by_query:
        kind = "planner"
        _refuse("are for single patterns; of a workload, give planners",
                generators=generators, methods=methods)  # fmt: skip
        how |= {"planners": _planners(planners), "evaluators": _of_workloads(evaluators)}
        if not (how["planners"] and how["evaluators"]):
            raise ExperimentError(
                "planners and evaluators need a name each; leave them out for the default ones"
            )
        how["reuse_cost"] = choice(
            "calibrated" if cost is None else cost, "the cost of reused matches", REUSE_COSTS,
            PlanGeneratorError,
        )  # fmt: skip
    elif asked.aggregates:
        kind = "method"
        _refuse("are of workloads; for a pattern give generators", planners=planners)
        _refuse("are not for a pattern with AGG; give methods",
                generators=generators, evaluators=evaluators)  # fmt: skip
        chosen = AGGREGATORS if methods is None else texts(methods, "methods", ExperimentError)
        how["methods"] = list(dict.fromkeys(AGGREGATORS.find(name).name for name in chosen))
    else:
        kind = "generator"
        _refuse("are of workloads; for a pattern give generators", planners=planners)
        _refuse("are for a pattern with AGG; give generators or evaluators", methods=methods)
        how["generators"] = generators_from(generators)
        if evaluators is not None:
            how["evaluators"] = texts(evaluators, "evaluators", ExperimentError)
        elif alone := evaluator_without_plan(asked.strategy.name):
            how["evaluators"] = [alone.name]
        how["cost"] = cost_from("throughput" if cost is None else cost)
    if kind != "method":
        how["options"] = _options(options)
    grid = Grid(**how)
    cells = grid.cells()
    first: FirstMatches | FirstValues | None = None
    known: dict[str, Any] = {}
    measured, reused = [], []
    with reporting_missing_types(missing_types):
        stream = events_from(stream, type, time)
        asked, stream = under_one_hierarchy(asked, stream)
        untimed = 0 if kind == "generator" else len(cells) // grid.repetitions
        progress = Progress(on_progress, len(cells) + untimed)
        if kind == "planner":
            first = FirstMatches(asked, stream, grid, progress)
        elif kind == "method":
            first = FirstValues(asked, stream, progress)
        if kind != "method" and any(cell.generator != NO_PLAN for cell in cells):
            if statistics is None:
                statistics = measure_statistics(asked, stream, seed=grid.seed)
            checked: Callable[[Any], Any] = (
                partial(workload_statistics, asked) if asked.by_query else statistics_from
            )
            known = {"": checked(statistics)}
        for row in measure_pattern(GivenSpec.of(asked), stream, known, grid, first=first):
            measured.append(row)
            reused.append(first.check(row) if isinstance(first, FirstMatches) else None)
            progress.add(1)
        progress.finish()
    runs = results_frame(measured).assign(reused=pd.array(reused, "Int64"))
    if kind == "generator":
        check_agreement(runs)
    rows = [_side(its) for _, its in runs.groupby(["generator", "evaluator"], sort=False)]
    if isinstance(first, FirstMatches):
        rows.sort(key=lambda row: how["evaluators"].index(row["evaluator"]))
        for row in rows:
            row["plan"] = first.computed.get(
                (row["measured_with"] or row["planner"], row["evaluator"])
            )
        speeds = {(row["planner"], row["evaluator"]): row["events_per_second"] for row in rows}
        for row in rows:
            naive = speeds.get((_NAIVE, row["evaluator"])) or math.nan
            row["times_naive"] = row["events_per_second"] / naive
    return Comparison.of(rows, kind, asked.describe(), len(stream))


def _refuse(why: str, **given: Any) -> None:
    """Raise if an argument is given that is not for what is compared."""
    for name, value in given.items():
        if value is not None:
            raise ExperimentError(f"{name} {why}")


def _options(given: Any) -> dict[str, tuple[str]]:
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ExperimentError(
            f'options must be a mapping such as {{"tree": {{"name": 1}}}}, not {kind_of(given)}'
        )
    return {
        name: (json.dumps(options_of(evaluator_for(name), its)),) for name, its in given.items()
    }


def _planners(given: Sequence[str] | None) -> list[str]:
    """The names of planners that reuse matches; by default of all."""
    if given is None:
        return [name for name, entry in WORKLOAD_PLANNERS.items() if entry.shares == "matches"]
    entries = [WORKLOAD_PLANNERS.find(name) for name in texts(given, "planners", ExperimentError)]
    for entry in entries:
        if entry.shares != "matches":
            raise ExperimentError(
                f"planner {entry.name} shares counts of sequences, for cep.aggregate; name planners "
                "that reuse matches, such as CHASE"
            )
    return list(dict.fromkeys(entry.name for entry in entries))


def _of_workloads(given: Sequence[str] | None) -> list[str]:
    """The names of evaluators; by default ``tree`` and those that share state between queries."""
    if given is None:
        return ["tree", *(name for name, entry in EVALUATORS.items() if entry.together is not None)]
    names = texts(given, "evaluators", ExperimentError)
    return list(dict.fromkeys(evaluator_for(name).name for name in names))


def _side(runs: pd.DataFrame) -> Any:
    """One row of the comparison from all runs of one plan or method in one evaluator."""
    failed = runs[runs["status"] != OK]
    shown = runs.iloc[0] if failed.empty else failed.iloc[0]
    # In the first repetition plans run in the order of their generators.
    of_first = runs["measured_with"].iloc[0]
    row: Any = {
        **shown.to_dict(),
        "planner": shown["generator"],
        "cost": shown["plan_cost"],
        "measured_with": None if pd.isna(of_first) else of_first,
    }
    if not failed.empty:
        return row
    counted = json.loads(row["details"] or "{}") | row
    work = {word: counted[word] for word in WORDS if not pd.isna(counted.get(word))}
    row |= throughput(runs["events_per_second"]) | {"work": Work(work).text()}
    if row["method"]:
        seconds, events = runs["seconds"].median(), shown["events"]
        row |= {
            "seconds": seconds,
            "events_per_second": events / seconds if seconds else math.nan,
            "seconds_per_slide": seconds / events if events else math.nan,
        }
    return row


def computed_from_others(plan: WorkloadPlan) -> str:
    """The queries that a plan computes from the matches of others, and how, in its order."""
    ways = map(plan.reuse, plan.order)
    return "; ".join(f"{way.query} {way}" for way in ways if way.source is not None)


class FirstValues:
    """First runs of aggregation methods; other values than those of the first are an ``error``.

    A StreamError if the stream does not fit the pattern, whatever the method.
    """

    def __init__(self, pattern: Pattern, stream: EventStream, progress: Progress) -> None:
        check_fit(pattern.without_aggregate(), stream)
        check_types(pattern, stream)
        check_values(pattern, stream)
        self._agreement = Agreement(lambda found, first: difference(found, first, pattern))
        self._stream, self._progress = stream, progress

    def __call__(self, cell: Cell, pattern: Pattern, plan: None) -> Mapping[str, Any]:
        self._progress.add(1)
        found = aggregate(pattern, self._stream, cell.generator).values
        if wrong := self._agreement.violated(cell.generator, found):
            return {"status": ERROR, "reason": f"not the values of {wrong[0]}: {wrong[1]}"}
        return {}


class FirstMatches:
    """First runs of workloads; other matches than those of the first are an ExperimentError.

    Their numbers are compared with those of all later runs.

    ``computed``: planner and evaluator → the queries that its plan computes from others.

    An ExperimentError or StreamError for queries that no run could evaluate on the stream.
    """

    def __init__(
        self, workload: Workload, stream: EventStream, grid: Grid, progress: Progress
    ) -> None:
        for query, pattern in workload.patterns.items():
            if pattern.aggregates:
                raise ExperimentError(
                    f"query {query!r} has AGG {pattern.aggregates[0]}; of a workload, matches are "
                    "compared. cep.aggregate(workload, stream, sharing=...) computes its values; for "
                    "matches use pattern.without_aggregate()"
                )
            with errors_naming(query):
                check_types(pattern, stream)
                check_fit(pattern, stream)
        self._workload, self._stream, self._grid, self._progress = workload, stream, grid, progress
        self._agreement = Agreement()
        self.computed: dict[tuple[str, str], str] = {}

    def __call__(self, cell: Cell, workload: Workload, plan: WorkloadPlan) -> Mapping[str, Any]:
        self._progress.add(1)
        self.computed[cell.generator, cell.evaluator] = computed_from_others(plan)
        how = {**run_arguments(cell, self._grid), "output": "matches"}
        found = evaluate(workload, self._stream, plan, **how)
        for query, result in found.items():
            self._compare(cell.generator, cell.evaluator, query, result.metrics.matches)
            hashed = pd.util.hash_pandas_object(result.matches, index=False).to_numpy(np.uint64)
            # Of the matches in any order.
            its = int(hashed.sum(dtype=np.uint64))
            self._compare(cell.generator, cell.evaluator, query, its, "matches")
        return {}

    def check(self, row: Mapping[str, Any]) -> int:
        """Compare the numbers of matches of a finished run; how many were reused."""
        if row["status"] != OK:
            return 0
        steps = json.loads(row["details"])["steps"]
        for step in steps:
            if step["query"] in self._workload.patterns:
                self._compare(row["generator"], row["evaluator"], step["query"], step["results"])
        return sum(step["reused"] for step in steps)

    def _compare(
        self, planner: str, evaluator: str, query: str, found: int, what: str = "number"
    ) -> None:
        run = f"{planner} on {evaluator}"
        if wrong := self._agreement.violated(run, found, (query, what)):
            raise ExperimentError(
                f"{run} finds other matches of query {query!r} than {wrong[0]}; one of both is wrong. "
                "cep.check_evaluator finds out about a user-defined evaluator"
            )
