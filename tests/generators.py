"""The project's own plan generators, by what they take."""

from __future__ import annotations

from collections.abc import Iterable

import cepbench.planning.planners  # noqa: F401  (registers them)
from cepbench.planning.planners.registry import PLAN_GENERATORS
from tests.budgets import INTERPRETED

BUILT_IN = [name for name, generator in PLAN_GENERATORS.items() if generator.is_builtin]

#: These refuse problems whose conditions do not have the shape that they need.
SELECTIVE = ["IKKBZ", "DPCCP"]

#: These plan anything, up to their size.
UNIVERSAL = [name for name in BUILT_IN if name not in SELECTIVE]


def affordable(names: Iterable[str]) -> list[str]:
    """Those of them that can be asked for many plans where kernels are not compiled.

    The annealing ones try thousands of neighbours for each plan; there they are tested over a few.
    """
    return [name for name in names if not (INTERPRETED and name in ("SA", "2PO"))]
