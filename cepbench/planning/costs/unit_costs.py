"""Nanoseconds of each kind of work that the cost ``calibrated`` counts, measured once per installation.

:mod:`cepbench.experiments.sweeps.unit_costs` measures them and stores them beside the compiled kernels; where nobody
has, they are those of one machine.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from cepbench.arguments import folded
from cepbench.files import write_json
from cepbench.kernels.cache_folder import digest_of, made_private, private_folders

#: The environment variable with the folder of stored costs, instead of that of the compiled kernels.
VARIABLE = "CEPBENCH_UNIT_COSTS"

#: The evaluator that joins as reuse does, and as which evaluators without costs of their own are priced.
TREE = "tree"

#: Evaluator → kind, an attribute of :class:`cepbench.planning.costs.reuse_calibrated.Work` → nanoseconds. Those of
#: reuse are the ones of :data:`TREE`; others have what a query from scratch does with them.
FIXED: Mapping[str, Mapping[str, float]] = {
    TREE: {
        "scanned": 10.0, "events": 17.0, "paired": 11.0, "joined": 12.0, "probed": 14.0, "looked": 16.0,
        "made": 12.0, "tested": 3.9, "projected": 40.0, "indexed": 2.0, "copied": 0.16,
    },
    "hierarchical-stacks": {"events": 16.0, "paired": 8.7, "joined": 11.0, "probed": 0.7},
}  # fmt: skip


@cache
def unit_costs() -> Mapping[str, Mapping[str, float]]:
    """Those stored for the present kernels, else :data:`FIXED`."""
    for folder in _folders():
        with suppress(OSError, ValueError):
            found = json.loads((folder / _file_name()).read_text(encoding="utf-8"))
            if _is_whole(found):
                return found
    return FIXED


def priced_as(evaluator: str | None) -> str:
    """The evaluator of :data:`FIXED` as which one is priced: itself, or :data:`TREE`."""
    by_name = {folded(name): name for name in FIXED}
    return TREE if evaluator is None else by_name.get(folded(evaluator), TREE)


def _is_whole(found: Any) -> bool:
    if not isinstance(found, dict) or found.keys() != FIXED.keys():
        return False
    return all(
        isinstance(costs, dict)
        and costs.keys() == FIXED[evaluator].keys()
        and all(isinstance(its, float) and 0.0 <= its < math.inf for its in costs.values())
        for evaluator, costs in found.items()
    )


def store(costs: Mapping[str, Mapping[str, float]]) -> None:
    """Store measured costs in the first writable folder, for processes started from now on."""
    for folder in _folders():
        with suppress(OSError):
            write_json(made_private(folder) / _file_name(), costs)
            return


def _folders() -> Iterable[Path]:
    named = os.environ.get(VARIABLE)
    return [Path(named)] if named else private_folders()


def _file_name() -> str:
    # Other kernels take other times.
    engines = Path(__file__).parents[2] / "engines"
    kernels = (
        "joins/kernels/advance.py",
        "reuse/kernels/extend.py",
        "hierarchical_stacks/kernels/sequences.py",
    )
    digests = (digest_of(engines / kernel) for kernel in kernels)
    return f"unit-costs-{'-'.join(digests)}.json"
