"""What a reader has to know of a sweep's workload before its figures, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from cepbench.sweeps.configuration import SweepConfig


def restrictions(config: SweepConfig, own: Sequence[str] = ()) -> list[str]:
    """What a reader has to know of a sweep's workload, a sentence each.

    Parameters
    ----------
    config : SweepConfig
    own : sequence of str
        Users' plan generators that were measured beside those of the configuration.
    """
    found = []
    if config.max_partial_matches is not None:
        found.append(
            "Identifiers were drawn again whenever a plan could have held more than "
            f"{config.max_partial_matches:,.0f} partial matches. That keeps the run short and "
            "takes away just the patterns on which plans differ most, so ratios are smaller than "
            "on an unrestricted workload."
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
            "A pattern runs on the events of its own types, and contiguity is meant among those: "
            "in the stream of all identifiers hardly any match would be contiguous."
        )
    if config.share_equal_plans:
        found.append(
            "Where several generators find the same plan for a pattern, it runs once and counts "
            "for each of them."
        )
    if own:
        them = "It was" if len(own) == 1 else "They were"
        found.append(
            f"{' and '.join(own)} came to the sweep from a user's file or notebook. {them} measured "
            "on the same patterns and statistics, but not in turns with the others, so that the "
            "others need not be measured again: where the machine was faster or slower meanwhile, "
            "so are all of their runs. Ratios of partial matches know no clock."
        )
    run = "once" if config.repetitions == 1 else f"{config.repetitions} times"
    if config.pattern_sets:
        found.append(f"{config.patterns} patterns of each size in each set, each plan run {run}.")
    if config.user_patterns:
        number = len(config.user_patterns)
        patterns = "1 pattern" if number == 1 else f"{number} patterns"
        found.append(f"{patterns} chosen by hand, each plan run {run}.")
    return found
