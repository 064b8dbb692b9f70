"""The project's own plan generators, by what they take."""

from __future__ import annotations

import cepbench.planners  # noqa: F401  (registers them)
from cepbench.planners.registry import PLAN_GENERATORS

BUILT_IN = [name for name, generator in PLAN_GENERATORS.items() if generator.is_builtin]

#: These refuse problems whose conditions do not have the shape that they need.
SELECTIVE = ["IKKBZ", "DPCCP"]

#: These plan anything, up to their size.
UNIVERSAL = [name for name in BUILT_IN if name not in SELECTIVE]
