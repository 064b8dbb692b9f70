"""Arguments that are queries: a workload, or a pattern or its text."""

from __future__ import annotations

from typing import Any

from cepbench.arguments import kind_of
from cepbench.errors import PlanError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.workloads.model import Workload


def queries_from(given: Any, *, aggregates: bool = False) -> Pattern | Workload:
    """The workload of an argument, or the pattern as :func:`~cepbench.patterns.given.pattern_from` gives it."""
    return given if isinstance(given, Workload) else pattern_from(given, aggregates=aggregates)


def workload_from(given: Any) -> Workload:
    """The workload of an argument; PlanError if it is not a workload."""
    if isinstance(given, Workload):
        return given
    raise PlanError(
        f"workload must be a cep.Workload, not {kind_of(given)}; cep.plan plans a pattern"
    )
