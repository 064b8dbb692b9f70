"""Restrictions of a sweep's workload, in sentences for its readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.experiments.sweeps.configuration import SweepConfig


def restrictions(
    config: SweepConfig,
    user_defined: Sequence[str] = (),
    draws: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> list[str]:
    """Restrictions of a sweep's workload, a sentence each.

    ``user_defined``: user-defined plan generators that were measured beside those of the
    configuration. ``draws``: see :func:`cepbench.experiments.sweeps.workload.count_draws`.
    """
    found = []
    for regime, part in config.workloads.items():
        if part.pattern_sets:
            sentences = [*_of_drawing(part), *_of_draws(draws.get(regime, {}))]
            found += [f"{regime}: {sentence}" if regime else sentence for sentence in sentences]
    sets = {name for part in config.workloads.values() for name in part.pattern_sets}
    if "kleene" in sets:
        found.append(
            "The event under KL has an identifier with at most "
            f"{config.max_kleene_events:g} expected events per window, since each set of its "
            "events is a match of its own."
        )
    if "disjunction" in sets:
        found.append("The size of a disjunction is that of each of its three sequences.")
    if "strict_contiguity" in config.strategies:
        found.append(
            "A pattern runs on the events of its own types, and contiguity is relative to those: "
            "in the stream of all identifiers hardly any match would be contiguous."
        )
    if config.share_equal_plans:
        found.append(
            "A plan that several generators find for a pattern runs once and counts for each."
        )
    if user_defined:
        were = "was" if len(user_defined) == 1 else "were"
        found.append(
            f"{' and '.join(user_defined)}, user-defined, {were} measured on the same patterns and "
            "statistics but not interleaved with the others, which need not be measured again: "
            "a machine that ran faster or slower meanwhile shifts all of their times. Ratios of "
            "partial matches do not depend on time."
        )
    if config.partial_match_limit < PARTIAL_MATCH_LIMIT:
        what = ("lists", "matches") if config.methods else ("stores", "partial matches")
        found.append(
            f"A run ends when it {what[0]} more than {config.partial_match_limit:,} {what[1]}; "
            "what it took until then is a bound."
        )
    run = "once" if config.repetitions == 1 else f"{config.repetitions} times"
    of = "method" if config.methods else "planner" if config.planners else "plan"
    for name, written in (("pattern", config.user_patterns), ("workload", config.user_workloads)):
        if written:
            number = f"1 {name}" if len(written) == 1 else f"{len(written)} {name}s"
            found.append(f"{number} chosen by hand, each {of} run {run}.")
    return found


def _of_drawing(config: SweepConfig) -> list[str]:
    """What the patterns of one regime are drawn from."""
    found = []
    if config.max_partial_matches is not None:
        found.append(
            "Identifiers were drawn again whenever a plan could have held more than "
            f"{config.max_partial_matches:,.0f} partial matches. That shortens the run and "
            "excludes the patterns on which plans differ most, so ratios are smaller than on an "
            "unrestricted workload."
        )
    least = config.least_rate
    rates = [f"at least {least:g}"] if isinstance(least, float) and least else []
    if isinstance(least, tuple):
        rates += [f"at least {rate:g} ({name})" for name, rate in least]
    rates += [] if config.most_rate is None else [f"at most {config.most_rate:g}"]
    if rates:
        found.append(f"Identifiers have {', '.join(rates)} expected events per window.")
    if config.selectivities:
        low, high = config.selectivities
        found.append(
            f"Predicates are drawn for selectivities from {low:g} to {high:g}, uniformly in their "
            "logarithm."
        )
    if config.predicates == "n":
        found.append("A pattern has as many predicates as events.")
    if config.duration:
        found.append(f"Patterns run on the first {config.duration} of the stream.")
    run = "once" if config.repetitions == 1 else f"{config.repetitions} times"
    found.append(f"{config.patterns} patterns of each size in each set, each plan run {run}.")
    return found


def _of_draws(draws: Mapping[str, Any]) -> list[str]:
    """How many draws were rejected."""
    reasons = [
        f"{draws[name]:,} {because}"
        for name, because in (
            ("out_of_bounds", "because a bound on the identifiers' rates or work was exceeded"),
            ("contradictory", "because their predicates contradict each other"),
        )
        if draws.get(name)
    ]
    if not reasons:
        return []
    return [f"For {draws['patterns']:,} patterns draws were rejected: {' and '.join(reasons)}."]
