"""The plan of a pattern for which none is given."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import evaluator_without_plan, runs_some, runs_without
from cepbench.engines.runs.protocol import Evaluator
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.model import CostModel
from cepbench.planning.planners.generate import plan_branches
from cepbench.planning.planners.registry import PlanGenerator, default_generator, find_generator
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.statistics.measure import active_time, slice_sample, slices_of
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Of a long stream statistics are sampled in so many slices, each of so many events or of two windows, with
#: so many pairs in all.
_SLICES, _EVENTS, _PAIRS = 4, 2_500, 4_000

#: How many samples in slices a stream keeps, and the events that each has at most.
_KEPT, _MOST_KEPT = 4, 50_000

#: What is known of slices of a stream: begin and length → what a sampler found there.
Known = dict[tuple[int, int | None], dict[Hashable, Any]]


def generator_for(
    patterns: Iterable[Pattern],
    evaluator: str | Evaluator | None = None,
    cost: CostModel | None = None,
) -> PlanGenerator:
    """The default generator for patterns and an evaluator: of orders, if that does not run all trees."""
    kinds = ("tree",) if evaluator is None else evaluator_for(evaluator).kinds
    return default_generator(
        max(len(branch.planned_names) for its in patterns for branch in its.branches()),
        "order" if "order" in kinds and "tree" not in kinds else "tree",
        cost,
    )


def generator_or_automaton(
    pattern: Pattern, evaluator: str | Evaluator | None = None, generator: str | None = None
) -> tuple[PlanGenerator | None, AnyPlan | None]:
    """The generator whose plan an evaluator runs; or None and the automaton, if any, of one without."""
    chosen = _chosen(pattern, evaluator)
    used = find_generator(generator or generator_for([pattern], chosen))
    if chosen is None or not runs_without(chosen, [used.kind]):
        return used, None
    return None, automaton(pattern) if runs_some(chosen, "automaton") else None


def _chosen(pattern: Pattern, evaluator: str | Evaluator | None) -> Evaluator | None:
    """The evaluator, by default the one that needs no plan under the pattern's strategy, if any."""
    return (
        evaluator_without_plan(pattern.strategy.name)
        if evaluator is None
        else evaluator_for(evaluator)
    )


def planned(
    pattern: Pattern, stream: EventStream, evaluator: str | Evaluator | None = None
) -> AnyPlan | None:
    """The default generator's plan by statistics sampled from a stream that the pattern fits.

    None where the evaluator, or the default one of the strategy, runs without.
    """
    chosen = _chosen(pattern, evaluator)
    if chosen is not None and (chosen.without_plan or not {"order", "tree"} & {*chosen.kinds}):
        return None
    statistics, _ = sampled(pattern, stream)
    return default_plan(pattern, statistics, evaluator)


def default_plan(
    pattern: Pattern, statistics: Statistics, evaluator: str | Evaluator | None = None
) -> AnyPlan | None:
    """The default generator's plan; None under a strategy that none evaluates by plans."""
    if evaluator is None and evaluator_without_plan(pattern.strategy.name) is not None:
        return None
    generator = None if evaluator is None else generator_for([pattern], evaluator)
    return plan_branches(pattern, branch_problems(pattern, statistics), generator)


def sampled(
    pattern: Pattern, stream: EventStream, known: Known | None = None
) -> tuple[Statistics, float]:
    """Statistics of a stream that the pattern fits, and its active time in seconds (or ticks).

    Those of a long stream are from slices all over it, which takes the same time however long it is, unless windows have many events.
    ``known`` is what was found for other patterns, by the slices' size and the window.
    """
    known = {} if known is None else known
    size = _EVENTS
    # Neighbours are close, however long the window is.
    if len(stream) and not pattern.strategy.name.endswith("_contiguity"):
        length = max(1, int(stream.timestamps[-1] - stream.timestamps[0]))
        size = max(size, math.ceil(2 * len(stream) * pattern.window.length / length))
    if len(stream) <= 2 * _SLICES * size:
        sample = slice_sample(pattern, stream, 0, _PAIRS, known=known.setdefault((0, None), {}))
        return sample.to_statistics(), sample.active
    window = pattern.window.length
    its = known.setdefault((size, window), {})
    if not its:
        its |= _kept_slices(pattern, stream, size)
    part, times = its["slices"]
    sample = slice_sample(pattern, part, 0, _PAIRS, known=its, times=times)
    return sample.to_statistics(), sample.active * len(stream) / len(part)


def _kept_slices(pattern: Pattern, stream: EventStream, size: int) -> dict[Hashable, Any]:
    """Slices all over a stream, and their active time, which depend on the window alone.

    The stream keeps the last few of them, if they are short.
    """
    window, step = pattern.window.length, len(stream) // _SLICES
    found: dict[Hashable, Any] | None = stream.samples.get((size, window))
    if found is None:
        starts = range((step - size) // 2, len(stream) - size + 1, step)
        part, times = slices_of(stream, starts, size, window)
        found = {"slices": (part, times), ("active", window): active_time(pattern, part, times)}
        if len(part) <= _MOST_KEPT:
            for oldest in [*stream.samples][: 1 - _KEPT]:
                stream.samples.pop(oldest, None)
            stream.samples[size, window] = found
    return found


def sampled_queries(
    queries: Mapping[str, Pattern], stream: EventStream, known: Known | None = None
) -> tuple[dict[str, Statistics], float]:
    """Statistics of each query by a sample of a stream that all fit, and the longest active time."""
    known = {} if known is None else known
    found = {query: sampled(pattern, stream, known) for query, pattern in queries.items()}
    return {q: its for q, (its, _) in found.items()}, max(its for _, its in found.values())


def equal_rates(pattern: Pattern) -> Statistics:
    """Statistics by which all variables are equally frequent."""
    return Statistics(
        cardinalities=dict.fromkeys(pattern.names, 1.0), stream_rate=1.0, partitions=1.0
    )
