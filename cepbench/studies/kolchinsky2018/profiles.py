"""The experiments of [kolchinsky2018]_, section 6.3, in a quick and in a full profile.

The full profile is the paper's; the quick one is made of fewer patterns over a shorter stream of
fewer identifiers, and leaves out the patterns that take longest. The sweeps themselves are files,
see :mod:`cepbench.sweeps.sweep_file`. Notebooks and ``make sweep`` take folders from here, so
that either goes on where the other stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cepbench.errors import ExperimentError
from cepbench.sweeps.configuration import SweepConfig
from cepbench.sweeps.sweep_file import PAPER_SWEEPS, read_sweep

PROFILES = ("quick", "full")

#: Name -> which figures its sweep is for; each is a file in :data:`SWEEPS`.
EXPERIMENTS: Mapping[str, str] = {name: read_sweep(name).title for name in PAPER_SWEEPS}

_PLANNING: Mapping[str, Mapping[str, Any]] = {
    "quick": {"patterns": 10, "budget_seconds": 20.0},
    "full": {"patterns": 10, "budget_seconds": 3 * 3600.0},
}

_COST_MODELS: Mapping[str, Mapping[str, Any]] = {
    "quick": {"identifiers": 60, "days": 2, "patterns": 8, "max_partial_matches": 2e4},
    "full": {"identifiers": 2100, "days": 5, "patterns": 100, "max_partial_matches": 1e5},
}

_DISTANCES: Mapping[str, Mapping[str, Any]] = {
    "quick": {"patterns": 3, "budget_seconds": 2.0, "plan_seconds": 0.1},
    "full": {"patterns": 20, "budget_seconds": 900.0, "plan_seconds": 5.0},
}

_ROBUSTNESS: Mapping[str, Mapping[str, Any]] = {
    "quick": {"draws": 2, "measured_patterns": 12, "repetitions": 3},
    "full": {"draws": 10, "measured_patterns": 100, "repetitions": 5},
}


def stream_parameters(profile: str, **changes: int) -> dict[str, int]:
    """``identifiers`` and ``days`` of the stream; changes that are 0 keep the profile's.

    All of the paper's sweeps run on one and the same.

    Raises
    ------
    ExperimentError
        If there is no such profile.
    """
    _check(profile)
    stream = read_sweep(PAPER_SWEEPS[0], profile=profile).stream
    return {**(stream or {}), **{name: value for name, value in changes.items() if value}}


def sweep_config(profile: str, experiment: str, data: str | Path, **changes: Any) -> SweepConfig:
    """The configuration of one experiment's sweep, as its file says.

    Parameters
    ----------
    profile : str
        Of :data:`PROFILES`.
    experiment : str
        A key of :data:`EXPERIMENTS`.
    data : path
    **changes
        Keys of its file to set otherwise.

    Raises
    ------
    ExperimentError
        If there is no such profile, experiment or key, or a value makes no sense.
    """
    _check(profile)
    if experiment not in EXPERIMENTS:
        raise ExperimentError(
            f"unknown experiment {experiment!r}; there are {', '.join(EXPERIMENTS)}"
        )
    return read_sweep(experiment, profile=profile, changes=changes).config(data)


def sweep_folder(root: str | Path, experiment: str, config: SweepConfig) -> Path:
    """Where the results of a sweep are kept below a folder of data.

    Named by the configuration: another one is another sweep, an equal one goes on. Where the data
    lies is no part of the name.
    """
    return Path(root) / "sweeps" / config.folder_name(experiment)


def planning_parameters(profile: str) -> dict[str, Any]:
    """``patterns`` of each size and ``budget_seconds`` of each generator, for Figure 7."""
    _check(profile)
    return dict(_PLANNING[profile])


def cost_model_parameters(profile: str) -> dict[str, Any]:
    """What partial matches are counted on: stream, patterns of each size, bound on their number."""
    _check(profile)
    return dict(_COST_MODELS[profile])


def distance_parameters(profile: str) -> dict[str, Any]:
    """For Figure 7 extended: numbers of patterns and seconds.

    ``patterns`` of each size and shape, ``budget_seconds`` of each generator for a shape, and
    ``plan_seconds`` of each plan of a search that goes on beyond its budget.
    """
    _check(profile)
    return dict(_DISTANCES[profile])


def robustness_parameters(profile: str) -> dict[str, Any]:
    """``draws`` of errors for a pattern; ``measured_patterns`` and their ``repetitions``."""
    _check(profile)
    return dict(_ROBUSTNESS[profile])


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


def _check(profile: str) -> None:
    if profile not in PROFILES:
        raise ExperimentError(f"unknown profile {profile!r}; there are {' and '.join(PROFILES)}")
