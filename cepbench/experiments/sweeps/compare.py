"""All plan generators, aggregation methods or planners side by side on one stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pandas as pd

from cepbench.arguments import MOST, callback, choice, kind_of, number, texts, whole
from cepbench.arguments import seed as seed_from
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, evaluator_without_plan, options_of
from cepbench.engines.runs.result import shown_bytes
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import NO_PLAN, OK, check_agreement, results_frame
from cepbench.experiments.sweeps.compare_methods import METHOD_COLUMNS, compare_methods
from cepbench.experiments.sweeps.compare_planners import PLANNER_COLUMNS, compare_planners
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.markup import Html, shortened
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import cost_from
from cepbench.planning.costs.problem import TIME_SELECTIVITIES
from cepbench.planning.planners.registry import PlanGenerator, generators_from
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import reporting_missing_types, under_one_hierarchy
from cepbench.streams.given import Frame, events_from

#: Columns of the comparison, in order.
COLUMNS = (
    "generator", "plan_kind", "evaluator", "plan", "cost", "plan_seconds", "events_per_second",
    "events_per_second_q1", "events_per_second_q3", "runs", "measured_with",
    "peak_partial_matches", "peak_bytes", "comparisons", "matches", "status", "reason",
)  # fmt: skip

#: Columns that a notebook shows before the numeric ones, and those.
_TEXTS = ("plan generator", "evaluator", "plan")
_METHOD_TEXTS = ("method",)
_NUMBERS = (
    "estimated cost", "planning", "events/s", "middle half of the runs", "runs",
    "peak partial matches", "peak memory", "comparisons", "matches",
)  # fmt: skip
_METHOD_NUMBERS = (
    "time", "time per event", "events/s", "runs", "updates", "peak counters", "peak objects",
    "peak memory", "values",
)  # fmt: skip
_PLANNER_TEXTS = ("planner", "evaluator", "computed from others")
_PLANNER_NUMBERS = (
    "estimated cost", "planning", "events/s", "middle half of the runs", "× NAIVE", "runs",
    "peak memory", "reused", "matches",
)  # fmt: skip

#: Characters of a workload's plan that are shown.
_LONGEST_PLAN = 200

# The bars behind the throughputs show the fast plans at a glance.
_PAGE = Html(
    """<pre class="cep-pattern">{{ pattern }}</pre>
<table class="dataframe cep-comparison"><thead><tr>
{% for name in texts %}<th style="text-align:left">{{ name }}</th>{% endfor %}
{% for name in numbers %}<th style="text-align:right">{{ name }}</th>{% endfor %}
</tr></thead><tbody>
{% for named, share, cells, reason in rows %}
<tr>{% for text in named %}<td>{{ text }}</td>{% endfor %}
{% if reason %}
<td colspan="{{ numbers | length }}" style="text-align:left">{{ reason }}</td>
{% endif %}
{% for cell in cells %}
<td style="text-align:right;{% if loop.index == 3 %}background:linear-gradient(to left,
rgba(31,119,180,.25) {{ share }}%,transparent 0){% endif %}">{{ cell }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table>"""
)


class Comparison(pd.DataFrame):
    """The result of :func:`compare`: a DataFrame with an HTML table for notebooks."""

    _metadata: ClassVar = ["pattern"]
    #: The pattern's text.
    pattern: str = ""

    def _repr_html_(self) -> str:
        fastest = self["events_per_second"].max()
        shown, texts, numbers = next(
            its for column, its in _SHOWN_BY_COLUMN.items() if column in self
        )
        rows = [shown(row, fastest) for row in self.to_dict("records")]
        return str(_PAGE(pattern=self.pattern, texts=texts, numbers=numbers, rows=rows))


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
    repetitions = whole(repetitions, "repetitions", ExperimentError, least=1)
    seconds = number(seconds, "seconds", ExperimentError, least=0.0, most=3_600.0)
    on_progress = callback(on_progress, "on_progress", ExperimentError)
    if isinstance(pattern, Workload):
        for name, value in {"generators": generators, "methods": methods}.items():
            if value is not None:
                raise ExperimentError(
                    f"{name} are for single patterns; of a workload, give planners"
                )
        with reporting_missing_types(missing_types):
            by_planner = compare_planners(
                pattern,
                events_from(stream, type, time),
                statistics=statistics,
                planners=planners,
                evaluators=evaluators,
                options=_options(options),
                repetitions=repetitions,
                seconds=seconds,
                seed=seed_from(seed, ExperimentError, most=MOST),
                partial_match_limit=whole(
                    partial_match_limit, "partial_match_limit", ExperimentError, least=1
                ),
                output=choice(output, "output", ("count", "matches"), ExperimentError),
                cost="calibrated" if cost is None else cost,
                on_progress=on_progress,
            )
        return _comparison(by_planner, PLANNER_COLUMNS, str(pattern))
    if planners is not None:
        raise ExperimentError("planners are of workloads; for a pattern give generators")
    cost = "throughput" if cost is None else cost
    pattern, stream = under_one_hierarchy(
        pattern_from(pattern, aggregates=True), events_from(stream, type, time)
    )
    if pattern.aggregates:
        for name, value in {"generators": generators, "evaluators": evaluators}.items():
            if value is not None:
                raise ExperimentError(f"{name} are not for a pattern with AGG; give methods")
        with reporting_missing_types(missing_types):
            by_method = compare_methods(
                pattern, stream, methods,
                repetitions=repetitions, seconds=seconds, on_progress=on_progress,
            )  # fmt: skip
        return _comparison(by_method, METHOD_COLUMNS, pattern.describe())
    if methods is not None:
        raise ExperimentError("methods are for a pattern with AGG; give generators or evaluators")
    chosen = generators_from(generators)
    if evaluators is not None:
        evaluators = texts(evaluators, "evaluators", ExperimentError)
    elif alone := evaluator_without_plan(pattern.strategy.name):
        evaluators = [alone.name]
    seed = seed_from(seed, ExperimentError, most=MOST)  # a column of the rows' table
    choice(time_selectivity, "time_selectivity", TIME_SELECTIVITIES, ExperimentError)
    limit = whole(partial_match_limit, "partial_match_limit", ExperimentError, least=1)
    choice(output, "output", ("count", "matches"), ExperimentError)
    given = _options(options)
    statistics = None if statistics is None else statistics_from(statistics)
    spec = PatternSpec("pattern", str(pattern.operator), len(pattern.names), str(pattern), seed)
    grid = Grid(
        generators=chosen,
        evaluators=evaluators,
        options={
            name: (json.dumps(options_of(evaluator_for(name), its)),) for name, its in given.items()
        },
        repetitions=repetitions,
        share_equal_plans=True,
        seconds=seconds,
        seed=seed,
        time_selectivity=time_selectivity,
        partial_match_limit=limit,
        outputs=(output,),
        cost=cost_from(cost),
    )
    cells = grid.cells()
    with reporting_missing_types(missing_types):
        if statistics is None and any(cell.generator != NO_PLAN for cell in cells):
            statistics = measure_statistics(pattern, stream, seed=seed)
        runs = measure_pattern(spec, stream, statistics or {}, grid)
        if on_progress is not None:
            runs = _reporting(runs, len(cells), on_progress)
        rows = results_frame(runs)
    check_agreement(rows)
    sides = [its for _, its in rows.groupby(["generator", "evaluator"], sort=False)]
    firsts: dict[tuple[str, str], str] = {}
    return _comparison([_side(its, firsts) for its in sides], COLUMNS, pattern.describe())


def _options(given: Any) -> Mapping[str, Mapping[str, Any]]:
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ExperimentError(
            f'options must be a mapping such as {{"tree": {{"name": 1}}}}, not {kind_of(given)}'
        )
    return given


def _comparison(rows: list[dict[str, Any]], columns: tuple[str, ...], pattern: str) -> Comparison:
    comparison = Comparison(rows, columns=list(columns))
    comparison.pattern = pattern
    return comparison


def _reporting(
    rows: Iterator[dict[str, Any]], total: int, on_progress: Callable[[int, int], object]
) -> Iterator[dict[str, Any]]:
    on_progress(0, total)
    for count, row in enumerate(rows, start=1):
        on_progress(count, max(count, total))
        yield row


def _side(runs: pd.DataFrame, firsts: dict[tuple[str, str], str]) -> dict[str, object]:
    """One row of the comparison from all runs of one plan in one evaluator.

    ``firsts`` has evaluator and plan → the first generator with it, and is added to.
    """
    failed = runs[runs["status"] != OK]
    shown = runs.iloc[0] if failed.empty else failed.iloc[0]
    row: dict[str, object] = {name: shown[name] for name in COLUMNS if name in runs}
    row["cost"] = shown["plan_cost"]
    if failed.empty:
        speeds = runs["events_per_second"]
        row["events_per_second"] = speeds.median()
        row["events_per_second_q1"] = speeds.quantile(0.25)
        row["events_per_second_q3"] = speeds.quantile(0.75)
        row["runs"] = len(runs)
    first = firsts.setdefault((shown["evaluator"], shown["plan"]), shown["generator"])
    row["measured_with"] = None if first == shown["generator"] else first
    return row


def _shown_row(row: Mapping[Any, Any], fastest: float) -> tuple[list[str], str, list[str], str]:
    """Texts, the throughput's percentage of the fastest, and numbers or why there are none."""
    named = [row["generator"], row["evaluator"], "" if pd.isna(row["plan"]) else row["plan"]]
    if row["status"] != OK:
        return named, "", [], f"{row['status']}: {row['reason']}"
    speed, low, high = (row[f"events_per_second{end}"] for end in ("", "_q1", "_q3"))
    shared = row["measured_with"]
    numbers = [
        "" if pd.isna(row["cost"]) else f"{row['cost']:.3g}",
        "" if pd.isna(row["plan_seconds"]) else f"{1e3 * row['plan_seconds']:.2f} ms",
        f"{speed:,.0f}",
        f"{low:,.0f} – {high:,.0f}",
        f"{row['runs']:,.0f}" if pd.isna(shared) else f"those of {shared}",
        _counted(row["peak_partial_matches"]),
        shown_bytes(row["peak_bytes"]),
        _counted(row["comparisons"]),
        f"{row['matches']:,}",
    ]
    return named, f"{100 * speed / fastest:.1f}", numbers, ""


def _shown_method(row: Mapping[Any, Any], fastest: float) -> tuple[list[str], str, list[str], str]:
    """As :func:`_shown_row`, of an aggregation method."""
    if row["status"] != OK:
        return [row["method"]], "", [], f"{row['status']}: {row['reason']}"
    numbers = [
        f"{1e3 * row['seconds']:,.3g} ms",
        f"{1e9 * row['seconds_per_slide']:,.0f} ns",
        f"{row['events_per_second']:,.0f}",
        f"{row['runs']:,.0f}",
        _counted(row["updates"]),
        _counted(row["peak_counters"]),
        _counted(row["peak_objects"]),
        shown_bytes(row["peak_bytes"]),
        _counted(row["values"]),
    ]
    return [row["method"]], f"{100 * row['events_per_second'] / fastest:.1f}", numbers, ""


def _shown_planner(row: Mapping[Any, Any], fastest: float) -> tuple[list[str], str, list[str], str]:
    """As :func:`_shown_row`, of a planner of workloads."""
    plan = "" if pd.isna(row["plan"]) else shortened(row["plan"], _LONGEST_PLAN)
    named = [row["planner"], row["evaluator"], plan]
    if row["status"] != OK:
        return named, "", [], f"{row['status']}: {row['reason']}"
    speed, low, high = (row[f"events_per_second{end}"] for end in ("", "_q1", "_q3"))
    shared = row["measured_with"]
    numbers = [
        f"{row['cost']:.3g}",
        f"{1e3 * row['plan_seconds']:.2f} ms",
        f"{speed:,.0f}",
        f"{low:,.0f} – {high:,.0f}",
        "" if pd.isna(row["times_naive"]) else f"{row['times_naive']:.2f}",
        f"{row['runs']:,.0f}" if pd.isna(shared) else f"those of {shared}",
        shown_bytes(row["peak_bytes"]),
        _counted(row["reused"]),
        _counted(row["matches"]),
    ]
    return named, f"{100 * speed / fastest:.1f}", numbers, ""


def _counted(number: float) -> str:
    return "" if bool(pd.isna(number)) else f"{number:,.0f}"


#: The first column of a comparison → how its rows are shown, and the headings of texts and numbers.
_SHOWN_BY_COLUMN: Mapping[str, tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]] = {
    "generator": (_shown_row, _TEXTS, _NUMBERS),
    "method": (_shown_method, _METHOD_TEXTS, _METHOD_NUMBERS),
    "planner": (_shown_planner, _PLANNER_TEXTS, _PLANNER_NUMBERS),
}
