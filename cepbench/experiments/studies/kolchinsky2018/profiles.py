"""Parameters of the notebooks in each profile; those of sweeps are in their files.

The full profile is the size of [kolchinsky2018]_, section 6.3; the quick one takes minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepbench.experiments.studies.kolchinsky2018.distances import SIZES
from cepbench.experiments.studies.runs import sized

#: Notebook -> profile -> parameters.
_PARAMETERS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    # Patterns of each size up to a largest one, and seconds of each generator, for a workload.
    "figure_7": {
        "quick": {"patterns": {16: 6, 22: 2}, "budget_seconds": 2.5},
        "full": {"patterns": {22: 10}, "budget_seconds": 3600.0},
    },
    # Sizes, patterns of each size and shape, seconds of each generator for a shape, and seconds of
    # each plan of a search that continues beyond that.
    "figure_7_extended": {
        "quick": {
            "sizes": (3, 4, *range(6, 25, 2), 50, 100, 200),
            "patterns": 3,
            "budget_seconds": 1.0,
            "plan_seconds": 0.1,
        },
        "full": {"sizes": SIZES, "patterns": 20, "budget_seconds": 900.0, "plan_seconds": 5.0},
    },
    # Draws of errors for a pattern; patterns whose plans are run, and how often.
    "robustness": {
        "quick": {"draws": 2, "measured_patterns": 12, "repetitions": 3},
        "full": {"draws": 10, "measured_patterns": 100, "repetitions": 5},
    },
    # What partial matches are counted on: the stream, patterns of each size, bound on the number.
    "cost_models": {
        "quick": {"identifiers": 60, "days": 2, "patterns": 8, "max_partial_matches": 2e4},
        "full": {"identifiers": 2100, "days": 5, "patterns": 100, "max_partial_matches": 1e5},
    },
}


def parameters_of(notebook: str, profile: str) -> dict[str, Any]:
    """Parameters of a notebook that does more than read a sweep, in a profile of the study."""
    return sized(_PARAMETERS[notebook], profile)
