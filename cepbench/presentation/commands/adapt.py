"""``cepbench adapt``: run plans that follow the statistics of a stream."""

from __future__ import annotations

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs
from cepbench.presentation.commands.options import declared, examples

EXAMPLES = examples(
    "cepbench adapt --pattern-name rare-last --data nasdaq-style/sample \\\n"
    "    --generator DP-LD --batch-size 4000 --policy threshold"
)


@declared
def adapt(
    inputs: Inputs,
    generator: str | None = None,
    evaluator: str | None = None,
    option: list[str] | None = None,
    cost: str = "throughput",
    policy: str = "amortized",
    threshold: float = 0.5,
    gain: float = 0.1,
    batch_size: int = 65_536,
) -> None:
    """Run plans that follow the stream's statistics.

    Counts the matches, and shows each change of the plan. The first plan is made for the statistics
    of the first round, or for those of --statistics.
    """
    options = named_values(option or (), "--option", typer.BadParameter)
    pattern = inputs.read_pattern()

    from cepbench.engines.adaptation.adapt import AdaptiveResult
    from cepbench.engines.adaptation.adapt import adapt as adapted
    from cepbench.engines.detection.planned import generator_for
    from cepbench.planning.costs.models import cost_from
    from cepbench.planning.planners.generate import plan
    from cepbench.planning.statistics.model import Statistics

    pattern, stream = inputs.read_stream(pattern)
    initial = None
    generator = generator or generator_for([pattern], evaluator, cost_from(cost)).name
    if inputs.statistics is not None:
        known: Statistics = inputs.read_statistics(pattern, stream)
        initial = plan(pattern, known, generator, seed=inputs.seed, cost=cost)
    with out.progress("running"):
        result = adapted(
            pattern,
            stream,
            generator=generator,
            evaluator=evaluator,
            options=options,
            cost=cost,
            threshold=threshold,
            gain=gain,
            policy=policy,
            initial=initial,
            batch_size=batch_size,
            output="count",
            seed=inputs.seed,
        )
    assert isinstance(result, AdaptiveResult)  # of a pattern
    metrics, switches = result.metrics, result.switches
    if inputs.json:
        out.write_json(
            {
                "pattern": str(pattern),
                "evaluator": result.evaluator,
                "policy": policy,
                "plan": None if result.plan is None else result.plan.text,
                "metrics": out.as_dict(metrics),
                "switches": switches,
                "statistics": result.statistics,
            }
        )
        return
    out.write_text(f"plans by {generator}, run by {result.evaluator}, policy {policy}")
    out.write_line()
    out.write_metrics(metrics)
    out.write_line()
    if switches.empty:
        out.write_text("The plan was not changed.")
        return
    rows = switches.assign(
        ms=1000 * switches["seconds"],
        gain=[f"{100 * gain:.0f} %" for gain in switches["predicted_gain"]],
    )
    out.write_table(
        rows.to_dict("records"),
        {"position": "position", "gain": "gain", "ms": "ms", "new plan": "new", "reason": "reason"},
        right=["gain"],
        shrink="reason",
    )
