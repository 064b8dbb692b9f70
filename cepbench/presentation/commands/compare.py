"""``cepbench compare``: plan generators side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs, check_kind, texts
from cepbench.presentation.commands.options import declared, examples

if TYPE_CHECKING:
    from cepbench.experiments.sweeps.compare import Comparison

EXAMPLES = examples("cepbench compare --pattern-name rare-last --data nasdaq-style/sample")

#: Ratio of the quartiles of a plan's runs above which a warning of noise is printed.
NOISY = 1.5


@declared
def compare(
    inputs: Inputs,
    generator: list[str] | None = None,
    planner: list[str] | None = None,
    method: list[str] | None = None,
    evaluator: list[str] | None = None,
    option: list[str] | None = None,
    repetitions: int = 3,
    seconds: float = 0.3,
    cost: str | None = None,
) -> None:
    """Plan with every plan generator and measure every distinct plan.

    Throughputs are medians of interleaved runs; generators with equal plans share them. All plans
    must find the same number of matches; a difference is an error.

    Of several queries, each on lines that begin with its name, Q1 = PATTERN …, the planners of what
    they reuse, on each evaluator; all plans must find the same matches.

    Of a pattern with AGG, the aggregation methods, without plans; all must compute the same values.
    """
    options = named_values(option or (), "--option", typer.BadParameter)
    asked = inputs.read_queries()
    check_kind(asked, planner)
    asked, stream = inputs.read_stream(asked)

    from cepbench.experiments.sweeps.compare import compare as comparison_of

    known = None if inputs.statistics is None else inputs.read_statistics(asked, stream)
    with out.progress_of_runs("running plans") as on_progress:
        table = comparison_of(
            asked,
            stream,
            statistics=known,
            generators=list(dict.fromkeys(generator)) if generator else None,
            planners=planner or None,
            methods=method or None,
            evaluators=evaluator or None,
            options=_options_by_evaluator(evaluator, options),
            repetitions=repetitions,
            seconds=seconds,
            seed=inputs.seed,
            cost=cost,
            on_progress=on_progress,
        )
    if inputs.json:
        out.write_json(
            {
                **texts(asked),
                "events": len(stream),
                "repetitions": repetitions,
                "seconds": seconds,
                "seed": inputs.seed,
                "rows": table,
            }
        )
        return
    out.write_line(asked.describe())
    out.write_line(f"{len(stream):,} events")
    out.write_line()
    _show(table)


def _options_by_evaluator(
    evaluators: list[str] | None, given: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Options for each of the named evaluators that has them."""
    from cepbench.engines.detection.registry import evaluator_for
    from cepbench.engines.detection.tasks import options_of

    if not given:
        return {}
    if not evaluators:
        raise typer.BadParameter("it needs an --evaluator that has it", param_hint="'--option'")
    chosen = [evaluator_for(name) for name in evaluators]
    for name in given:
        if not any(name in entry.options for entry in chosen):
            options_of(chosen[0], {name: given[name]})  # raises, with the nearest name
    return {e.name: {k: v for k, v in given.items() if k in e.options} for e in chosen}


#: Heading → the column that it shows as a notebook does, if the comparison has it.
_NUMBERS = {
    "time": "seconds", "events/s": "events_per_second", "runs": "runs", "updates": "updates",
    "objects": "peak_objects", "stored": "peak_partial_matches", "memory": "peak_bytes",
    "compared": "comparisons", "reused": "reused", "matches": "matches", "values": "values",
}  # fmt: skip

#: Columns of texts, first.
_NAMES = ("generator", "planner", "method", "evaluator")


def _show(table: Comparison) -> None:
    from cepbench.experiments.sweeps.compare import shown

    fastest = table["events_per_second"].max()
    plan = "from other queries" if "planner" in table else "plan" if "plan" in table else "reason"
    rows: list[dict[str, Any]] = []
    for row in table.to_dict("records"):
        line: dict[str, Any] = {name: row[name] for name in _NAMES if name in row}
        rows.append(line)
        if row["status"] != "ok":
            line[plan] = f"{row['status']}: {row['reason']}"
            continue
        line |= {head: shown(row, name) for head, name in _NUMBERS.items() if name in row}
        line |= {
            "est. cost": _cost(row.get("cost")),
            "": out.share_bar(row["events_per_second"] / fastest),
            "× NAIVE": row.get("times_naive"),
            plan: row.get("plan") or "",
        }
        if isinstance(row.get("measured_with"), str):
            line["runs"] = f"as {row['measured_with']}"
    time, speed, *others = _NUMBERS
    heads = [*_NAMES, "est. cost", time, speed, "", "× NAIVE", *others, plan]
    out.write_table(
        rows,
        [head for head in heads if any(line.get(head) not in (None, "") for line in rows)],
        right=["est. cost", *_NUMBERS],
        shrink=plan,
        less=("compared", "", "stored", "runs"),
    )
    out.write_line()
    if "events_per_second_q1" in table:
        spread = (table["events_per_second_q3"] / table["events_per_second_q1"]).max()
        if spread > NOISY:
            out.write_text(
                f"The interquartile range of one plan's runs spans a factor of {spread:.2g}; use more "
                "--seconds or events before relying on small ratios."
            )
    shared = ", shared by equal plans" if "measured_with" in table else ""
    out.write_text(f"runs: interleaved{shared}; events/s: their median")
    if "comparisons" in table:
        out.write_text(
            "stored: peak number of partial matches; compared: pairs tested against conditions"
        )


def _cost(cost: float | None) -> str:
    """A cost, which runs without a plan have not."""
    if cost is None or math.isnan(cost):
        return ""
    return f"{cost:.4g}" if math.isfinite(cost) else "∞"
