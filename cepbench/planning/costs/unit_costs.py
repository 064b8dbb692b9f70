"""Nanoseconds of each kind of work of engines and of reuse, measured once per installation.

:mod:`cepbench.experiments.sweeps.unit_costs` measures them and stores them beside the compiled kernels; where nobody
has, they are those of one machine.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
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

#: The evaluator sase where it counts without runs.
COUNTING = "sase, counting"

#: Kinds of work of joins alone.
ONLY_JOINS = [
    "made",
    "crossed",
    "paired",
    "paired_rows",
    "equal",
    "equal_rows",
    "visited",
    "sets",
    "steps",
]

#: Kinds of work of joins, of runs, and of counting without runs, see :mod:`cepbench.planning.costs.engine_work`.
JOINS = [
    "opened",
    "scanned",
    "events",
    "keyed",
    "checked",
    "grouped",
    *ONLY_JOINS,
    "matches",
    "written",
    "members",
]
RUNS = [
    "opened",
    "scanned",
    "events",
    "keyed",
    "checked",
    "starts",
    "visits",
    "made",
    "matches",
    "written",
    "members",
]
COUNTS = ["opened", "scanned", "events", "keyed", "checked", "counters", "by_start", "ranked"]


def _costs(kinds: Sequence[str], *nanoseconds: float) -> dict[str, float]:
    return dict(zip(kinds, map(float, nanoseconds), strict=True))


#: Evaluator → kind → nanoseconds. Under ``reuse`` of :class:`cepbench.planning.costs.reuse_calibrated.Work`: those of
#: reuse are the ones of :data:`TREE`; others have what a query from scratch does with them. Under ``alone``
#: of a pattern by itself, see :mod:`cepbench.planning.costs.engine_work`; ``opened`` is what a branch takes whatever
#: its work.
FIXED: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "reuse": {
        TREE: {
            "scanned": 10.0, "events": 17.0, "paired": 11.0, "joined": 12.0, "probed": 14.0, "looked": 16.0,
            "made": 12.0, "tested": 3.9, "projected": 40.0, "indexed": 2.0, "copied": 0.16,
        },
        "hierarchical-stacks": {"events": 16.0, "paired": 8.7, "joined": 11.0, "probed": 0.7},
    },
    "alone": {
        "tree": _costs(JOINS, 340_000, 0.12, 42, 8.3, 3, 0.63, 15, 0.37, 0.048, 0.9, 0.33, 7.3, 1, 7, 67, 0, 1.1, 20),
        "zstream": _costs(JOINS, 460_000, 0.097, 24, 77, 0.00026, 0.58, 2.2, 36, 0.15, 0.18, 3.4, 1.6, 0.94, 0, 0, 0, 0.46, 0),
        "stack-nfa": _costs(JOINS, 400_000, 1.8, 26, 23, 7.1, 0.61, 3.2, 0, 0.31, 0.43, 0.65, 0.6, 0.63, 0, 0, 0, 1.3, 0),
        "hierarchical-stacks": _costs(JOINS, 500_000, 2.6, 38, 20, 5.9, 0.57, 13, 0, 0.62, 0.0077, 0.72, 0.24, 0.68, 0, 0, 0, 1.5, 0),
        "sase": _costs(RUNS, 720_000, 2.1, 75, 170, 0.27, 1_600, 130, 0, 17, 2.8, 2.4),
        "sase-backtrack": _costs(RUNS, 510_000, 2.1, 11, 50, 60, 51, 21, 12, 0, 27, 7.2),
        "sase-basic": _costs(RUNS, 580_000, 2.1, 3.8, 30, 210, 79, 27, 16, 0, 48, 47),
        COUNTING: _costs(COUNTS, 800_000, 2.4, 10, 63, 0.039, 12, 0.24, 6.1),
        "tree-instances": _costs(JOINS, 470_000, 0.11, 120, 1.8, 22, 0.56, 32, 24, 3.5, 8.2, 7.7, 14, 0.78, 2.3, 130, 11, 2.5, 9.8),
        "lazy-nfa-instances": _costs(JOINS, 430_000, 0.049, 120, 0, 22, 0.57, 28, 0, 4.2, 9.2, 4.3, 12, 0, 4.2, 130, 9.6, 3, 9),
    },
}  # fmt: skip


@cache
def unit_costs() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Those stored for the present kernels, else :data:`FIXED`."""
    for folder in _folders():
        with suppress(OSError, ValueError):
            found = json.loads((folder / _file_name()).read_text(encoding="utf-8"))
            if _is_whole(found):
                return found
    return FIXED


def priced_as(evaluator: str | None) -> str:
    """The evaluator as which one is priced in plans of reuse: itself, or :data:`TREE`."""
    by_name = {folded(name): name for name in FIXED["reuse"]}
    return TREE if evaluator is None else by_name.get(folded(evaluator), TREE)


def _is_whole(found: Any, like: Any = FIXED) -> bool:
    """Whether what is stored has a cost wherever ``like`` has one."""
    if isinstance(like, float):
        return isinstance(found, float) and 0.0 <= found < math.inf
    return (
        isinstance(found, dict)
        and found.keys() == like.keys()
        and all(_is_whole(found[key], its) for key, its in like.items())
    )


def store(costs: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
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
        "stack_nfa/kernels/search.py",
        "zstream/kernels/join.py",
        "sase/kernels/advance.py",
    )
    digests = (digest_of(engines / kernel) for kernel in kernels)
    return f"unit-costs-{'-'.join(digests)}.json"
