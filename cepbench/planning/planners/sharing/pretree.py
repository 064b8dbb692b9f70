"""PRETREE: queries that begin with the same items share their counts."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.sharing import Cuts, SharingProblem


def pretree(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """No cuts, and shared prefixes, which cost nothing [qi2014]_, section 4.1."""
    return {}, True
