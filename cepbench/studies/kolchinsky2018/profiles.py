"""The experiments of [kolchinsky2018]_, section 6.3, in a quick and in a full profile.

The full profile is the paper's; the quick one is made of fewer patterns over a shorter stream of
fewer identifiers, and leaves out the patterns that take longest. The sweeps themselves are files,
see :mod:`cepbench.sweeps.sweep_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cepbench.errors import ExperimentError
from cepbench.sweeps.configuration import SweepConfig
from cepbench.sweeps.sweep_file import read_sweep

PROFILES = ("quick", "full")

#: Names of its sweep files, in the order of the figures.
EXPERIMENTS = ("types", "latency", "strategies")

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
    stream = read_sweep("kolchinsky2018/types", profile=profile).stream
    return {**(stream or {}), **{name: value for name, value in changes.items() if value}}


def sweep_config(profile: str, experiment: str, data: str | Path, **changes: Any) -> SweepConfig:
    """The configuration of one experiment's sweep, as its file says.

    Parameters
    ----------
    profile : str
        Of :data:`PROFILES`.
    experiment : str
        One of :data:`EXPERIMENTS`.
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
    return read_sweep(f"kolchinsky2018/{experiment}", profile=profile, changes=changes).config(data)


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


def _check(profile: str) -> None:
    if profile not in PROFILES:
        raise ExperimentError(f"unknown profile {profile!r}; there are {' and '.join(PROFILES)}")
