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
    "tested",
    "tested_rows",
    "equal",
    "equal_rows",
    "visited",
    "sets",
    "steps",
]

#: Those that are not done where matches are counted around one event.
NOT_OF_STARS = [kind for kind in ONLY_JOINS if not kind.startswith("tested")]

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
#: Those of engines that test conditions on pairs of rows, and of those that test pairs of events, whatever
#: other events these are joined with.
BY_ROWS = [kind for kind in JOINS if not kind.startswith("tested")]
BY_EVENTS = [kind for kind in JOINS if not kind.startswith("paired")]
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
        "tree": _costs(BY_ROWS, 330_000, 0.32, 27, 7.6, 5.5, 1.3, 33, 0.3, 0.02, 0.1, 0.2, 0.84, 0.12, 17, 83, 0, 1.5, 6.5),
        "zstream": _costs(BY_EVENTS, 430_000, 0.14, 11, 89, 0.00024, 1.3, 4.4, 47, 0.096, 0.75, 1.5, 1.2, 0.11, 0, 0, 0, 0.7, 0),
        "stack-nfa": _costs(BY_ROWS, 390_000, 1.1, 24, 19, 4.4, 1.3, 1.9, 0, 0.035, 0.6, 0.37, 0.92, 0.67, 0, 0, 0, 1.7, 0),
        "hierarchical-stacks": _costs(BY_ROWS, 500_000, 2.3, 34, 12, 6.7, 1.2, 13, 0, 0.094, 0.0074, 0.6, 0.13, 0.87, 0, 0, 0, 1.5, 0),
        "sase": _costs(RUNS, 580_000, 1.2, 20, 210, 0.25, 1_700, 60, 0, 38, 2.3, 2),
        "sase-backtrack": _costs(RUNS, 500_000, 1.4, 9.4, 57, 57, 60, 21, 1.4, 6.1, 23, 4.2),
        "sase-basic": _costs(RUNS, 580_000, 1.5, 3.5, 40, 82, 61, 32, 6.3, 0, 29, 65),
        COUNTING: _costs(COUNTS, 670_000, 1.7, 11, 65, 0.038, 14, 0.21, 8),
        "tree-instances": _costs(BY_ROWS, 420_000, 0.11, 94, 1.7, 24, 0.97, 42, 26, 5.5, 8.7, 7.5, 1.6, 0.65, 3.5, 210, 11, 2.3, 5.1),
        "lazy-nfa-instances": _costs(BY_ROWS, 390_000, 0.055, 97, 5, 25, 1, 33, 0, 5.9, 7.6, 4.9, 2.3, 0, 7.5, 210, 9, 1.9, 4.8),
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
