"""The commands ``plan``, ``run`` and ``explain`` of several queries, a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.errors import CepbenchError, PlanGeneratorError, PlanningRefusedError, StatisticsError
from cepbench.presentation.commands.match_files import match_writer
from cepbench.presentation.commands.output import (
    progress,
    width,
    write_json,
    write_line,
    write_table,
)

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern
    from cepbench.planning.plans.workload import WorkloadPlan
    from cepbench.planning.workloads.model import Workload
    from cepbench.presentation.commands.inputs import Inputs
    from cepbench.streams.event_stream import EventStream

#: Of one pattern's options: their names, and the values that they have if they are not given.
_OF_PATTERNS: Mapping[str, Any] = {
    "alpha": 0.0, "last": None, "rewrite": False, "time": None, "limit": None,
}  # fmt: skip


def check_options(**given: Any) -> None:
    """Refuse options that only single patterns have.

    Raises
    ------
    typer.BadParameter
    """
    for name, value in given.items():
        if value != _OF_PATTERNS[name]:
            raise typer.BadParameter(
                "it is for single patterns, and there are several queries; leave it out",
                param_hint=f"'--{name}'",
            )


def check_pattern(*, planner: str | Sequence[str] | None) -> None:
    """Refuse the option that only several queries have.

    Raises
    ------
    typer.BadParameter
    """
    if planner:
        raise typer.BadParameter(
            "it is for several queries, Q1 = PATTERN … Q2 = PATTERN …, and this is one pattern; give "
            "--generator",
            param_hint="'--planner'",
        )


def only_one(generator: Sequence[str] | None) -> str | None:
    """The generator along whose plans queries from scratch are joined; None for none.

    Raises
    ------
    typer.BadParameter
        If there are several.
    """
    if generator and len(generator) > 1:
        raise typer.BadParameter(
            "the queries computed from scratch are joined along plans of one generator; give one",
            param_hint="'--generator'",
        )
    return generator[0] if generator else None


def plan(
    inputs: Inputs,
    workload: Workload,
    planners: Sequence[str] | None,
    generator: str | None,
    cost: str | None,
) -> None:
    """The plans of several planners with their costs, then the cheapest one or the named ones."""
    from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS

    stream = None
    if inputs.statistics is None:
        workload, stream = _read(inputs, workload)
    statistics = inputs.read_statistics(workload, stream)
    counted = all(pattern.aggregates for pattern in workload.patterns.values())
    shares = "aggregates" if counted else "matches"
    names = planners or [n for n, entry in WORKLOAD_PLANNERS.items() if entry.shares == shares]
    rows: list[dict[str, Any]] = []
    plans: dict[str, WorkloadPlan] = {}
    for name in dict.fromkeys(WORKLOAD_PLANNERS.find(name).name for name in names):
        row: dict[str, Any] = {"planner": name, "cost": None, "seconds": None, "steps": []}
        found, outcome = planned(
            workload, statistics, name, delays=True, seed=inputs.seed, generator=generator,
            cost=cost or "calibrated",
        )  # fmt: skip
        rows.append(row | outcome)
        if found is not None:
            plans[name] = found
            steps = [] if found.sources is None else found.steps
            rows[-1] |= {"cost": found.cost, "steps": steps}
    if not plans:
        raise PlanGeneratorError("\n".join(f"{row['planner']}: {row['reason']}" for row in rows))
    if inputs.json:
        of_queries = {query: its.to_dict() for query, its in statistics.items()}
        write_json(
            {**texts(workload), "statistics": of_queries, "cost": cost or "calibrated",
             "plans": rows}
        )  # fmt: skip
        return
    least = min(row["cost"] for row in rows if row["cost"] is not None)
    lines = []
    for row in rows:
        line = {"planner": row["planner"]}
        lines.append(line)
        if row["cost"] is None:
            line["from other queries"] = f"{row['status']}: {row['reason']}"
            continue
        its_plan = plans[row["planner"]]
        ways = () if its_plan.sources is None else map(its_plan.reuse, its_plan.order)
        line |= {
            "est. cost": f"{row['cost']:,.4g}",
            "× least": f"{row['cost'] / least:,.3g}" if least else "",
            "ms": f"{1e3 * row['seconds']:.2f}",
            "from other queries": "; ".join(f"{its.query} {its}" for its in ways if its.sources),
        }
    write_line(str(workload))
    write_line()
    write_table(
        lines, ["planner", "est. cost", "× least", "ms", "from other queries"],
        right=["est. cost", "× least", "ms"], shrink="from other queries",
    )  # fmt: skip
    cheapest = min(plans.values(), key=lambda its: its.cost or 0.0)
    for its in plans.values() if planners else [cheapest]:
        write_line()
        write_line(its.describe())


def run(
    inputs: Inputs,
    workload: Workload,
    planner: str | None,
    generator: str | None,
    *,
    evaluator: str | None,
    options: Mapping[str, Any],
    output: Path | None,
    attributes: Sequence[str],
    count: bool,
) -> None:
    """Run the queries by one plan; write the matches of each to a file of its own."""
    from cepbench.engines.detection.evaluate import evaluate
    from cepbench.engines.runs.arrow_matches import event_time, with_events
    from cepbench.experiments.sweeps.measure import WARM_UP_EVENTS
    from cepbench.presentation.commands.matching import position_columns

    files = {} if output is None else _files(output, workload)
    workload, stream = _read(inputs, workload, positions=not count)
    statistics = inputs.read_statistics(workload, stream)
    plan = _plan(inputs, workload, statistics, planner, generator=generator, evaluator=evaluator)
    how: dict[str, Any] = {"evaluator": evaluator, "options": options}
    how["output"] = "count" if count else "arrow"
    with progress("warming up"):
        evaluate(workload, stream[:WARM_UP_EVENTS], plan, **how)
    with progress("running"):
        found = evaluate(workload, stream, plan, **how)
    for query, file in files.items():
        table = found[query].in_whole_stream(stream).arrow
        if not workload.patterns[query].returns:
            names = [event_time(stream), *attributes]
            table = with_events(found[query].arrow, stream, names, whole=True)
        with match_writer(file, table.schema, position_columns(workload.patterns[query])) as write:
            write(table)
    steps = found.steps
    evaluators = {query: its.evaluator for query, its in found.items()}
    metrics = {k: v for k, v in found.metrics.to_dict().items() if not k.startswith("latency")}
    if inputs.json:
        write_json(
            {
                **texts(workload),
                "planner": plan.planner,
                "cost": plan.cost,
                "plan": plan.steps,
                "evaluators": evaluators,
                "metrics": metrics,
                "steps": steps,
                "output": {query: str(file) for query, file in files.items()},
            }
        )
        return
    write_line(plan.describe().splitlines()[0])
    write_line()
    rows = [
        {
            "query": row["query"],
            "computed": str(plan.reuse(row["query"])),
            "by": evaluators.get(row["query"], "") if row["source"] is None else "",
            "matches": row["results"],
            "reused": row["reused"],
            "new": row["delta"],
            "ms": f"{1e3 * row['seconds']:.2f}",
        }
        for row in steps.to_dict("records")
    ]
    write_table(
        rows, ["query", "computed", "by", "matches", "reused", "new", "ms"], right=["ms"],
        shrink="computed",
    )  # fmt: skip
    write_line()
    write_line(
        f"{found.metrics.matches:,} matches of {len(found)} queries in {found.metrics.events:,} events, "
        f"in {found.metrics.seconds:.3g} s"
    )
    for query, file in files.items():
        write_line(f"{found[query].metrics.matches:,} matches of {query} are in {file}.")


def explain(
    inputs: Inputs,
    workload: Workload,
    planner: str | None,
    generator: str | None,
    *,
    evaluator: str | None,
    options: Mapping[str, Any],
    runs: bool,
    html: Path | None,
) -> Any:
    """The explanation, after writing it; see :func:`cepbench.explain`."""
    from cepbench.presentation.explainer.explain import explain as explanation_of

    stream = None
    if runs or inputs.statistics is None:
        workload, stream = _read(inputs, workload)
    statistics = inputs.read_statistics(workload, stream)
    plan = _plan(inputs, workload, statistics, planner, generator=generator, evaluator=evaluator)
    with progress("running the plan" if runs else "explaining the plan"):
        found = explanation_of(
            workload,
            plan,
            statistics,
            stream if runs else None,
            evaluator=evaluator,
            options=options,
        )
    if inputs.json:
        write_json(
            {
                **texts(workload),
                "planner": plan.planner,
                "cost": plan.cost,
                "evaluator": found.evaluator,
                "steps": found.steps,
                "findings": found.sentences(),
                "html": html,
            }
        )
    else:
        write_line(found.describe(width()))
    return found


def _read(
    inputs: Inputs, workload: Workload, *, positions: bool = False
) -> tuple[Workload, EventStream]:
    """The stream, and the workload under its concepts."""
    from cepbench.streams.fit import under_one_hierarchy

    return under_one_hierarchy(workload, inputs.read_stream(workload, positions=positions))


def _plan(
    inputs: Inputs, workload: Workload, statistics: Any, planner: str | None, **options: Any
) -> WorkloadPlan:
    from cepbench.planning.planners.sharing.generate import plan_workload

    name = planner or "CHASE"
    with progress(f"planning with {name}"):
        return plan_workload(workload, statistics, name, delays=True, seed=inputs.seed, **options)


def planned(
    asked: Pattern | Workload, statistics: Any, planner: str, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """A plan, or None, and its columns: ``status``, ``reason`` and the ``seconds`` of planning.

    Raises
    ------
    StatisticsError
        If statistics are missing or invalid, for any planner.
    """
    from cepbench.experiments.sweeps.measure import timed_plan
    from cepbench.experiments.sweeps.rotation import outcome_of

    with progress(f"planning with {planner}"):
        try:
            found, seconds = timed_plan(asked, statistics, planner, **options)
        except StatisticsError:
            raise
        except CepbenchError as error:
            return None, outcome_of(error, PlanningRefusedError, named=False)
    return found, {"status": "ok", "reason": None, "seconds": seconds}


def texts(asked: Pattern | Workload) -> dict[str, Any]:
    """The text of the pattern, or those of all queries, as the first key of a JSON document."""
    if not asked.by_query:
        return {"pattern": str(asked)}
    return {"queries": {query: str(its) for query, its in asked.queries.items()}}


def _files(output: Path, workload: Workload) -> dict[str, Path]:
    """Query → its file: matches.q1.parquet of matches.parquet."""
    found = {}
    for query in workload.patterns:
        if Path(query).name != query:
            raise typer.BadParameter(
                f"the name of query {query!r} cannot be part of a file's name; rename it",
                param_hint="'--output'",
            )
        found[query] = output.with_suffix(f".{query}{output.suffix}")
    return found
