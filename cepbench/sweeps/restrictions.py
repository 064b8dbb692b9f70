"""Restrictions of a sweep's workload, in sentences for its readers."""

from __future__ import annotations

from collections.abc import Sequence

from cepbench.sweeps.configuration import SweepConfig


def restrictions(config: SweepConfig, user_defined: Sequence[str] = ()) -> list[str]:
    """Restrictions of a sweep's workload, a sentence each.

    Parameters
    ----------
    config : SweepConfig
    user_defined : sequence of str
        User-defined plan generators that were measured beside those of the configuration.
    """
    found = []
    if config.max_partial_matches is not None:
        found.append(
            "Identifiers were drawn again whenever a plan could have held more than "
            f"{config.max_partial_matches:,.0f} partial matches. That shortens the run and "
            "excludes the patterns on which plans differ most, so ratios are smaller than on an "
            "unrestricted workload."
        )
    if "kleene" in config.pattern_sets:
        found.append(
            "The event under KL has an identifier with at most "
            f"{config.max_kleene_events:g} expected events per window, since each set of its "
            "events is a match of its own."
        )
    if "disjunction" in config.pattern_sets:
        found.append("The size of a disjunction is that of each of its three sequences.")
    if any("contiguity" in strategy for strategy in config.strategies):
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
    run = "once" if config.repetitions == 1 else f"{config.repetitions} times"
    if config.pattern_sets:
        found.append(f"{config.patterns} patterns of each size in each set, each plan run {run}.")
    if config.user_patterns:
        number = len(config.user_patterns)
        patterns = "1 pattern" if number == 1 else f"{number} patterns"
        found.append(f"{patterns} chosen by hand, each plan run {run}.")
    return found
