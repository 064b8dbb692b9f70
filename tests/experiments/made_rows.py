"""Rows as a sweep has them, with the numbers that a test is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from types import SimpleNamespace
from typing import Any

from cepbench.experiments.sweeps.cells import OK
from cepbench.planning.planners.registry import PLAN_GENERATORS

#: What most rows have.
USUAL = {
    "pattern_set": "sequence", "size": 3, "regime": "", "strategy": "any", "alpha": 0.0,
    "repetition": 0, "status": OK,
}  # fmt: skip


def made_rows(
    numbers: Callable[[Any], Mapping[str, Any]], **settings: Iterable[Any]
) -> list[dict[str, Any]]:
    """A row for each combination of the settings, of which the last one varies fastest.

    It has the kind of plan of its generator and the engine of that, what most rows have, and the
    ``numbers`` of all these. The setting ``number`` tells patterns of a set and size apart.
    """
    rows = []
    for values in product(*settings.values()):
        run = SimpleNamespace(**USUAL, number=0)
        vars(run).update(zip(settings, values, strict=True))
        if "number" in settings:
            run.pattern_id = f"{run.regime}{run.pattern_set}-{run.size}-{run.number}"
        if "generator" in settings:
            run.plan_kind = PLAN_GENERATORS[run.generator].kind
            run.evaluator = "tree" if run.plan_kind == "tree" else "lazy-nfa"
        row = {**vars(run), **numbers(run)}
        del row["number"]
        rows.append(row)
    return rows
