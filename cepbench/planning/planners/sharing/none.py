"""NONE: every query by itself."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.sharing import Cuts, SharingProblem


def none(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """No cuts and no shared prefixes [qi2014]_, section 3."""
    return {}, False
