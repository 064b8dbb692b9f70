"""Nanoseconds of each kind of work that the cost ``calibrated`` counts, measured once per installation.

:mod:`cepbench.sweeps.unit_costs` measures them and stores them beside the compiled kernels; where nobody
has, they are those of one machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from cepbench.files import write_json
from cepbench.kernels.cache_folder import digest_of, made_private, private_folders

#: Kind, an attribute of :class:`cepbench.costs.reuse_calibrated.Work` → nanoseconds.
FIXED: Mapping[str, float] = {
    "scanned": 10.0, "events": 17.0, "paired": 11.0, "joined": 12.0, "probed": 14.0, "looked": 16.0,
    "made": 12.0, "tested": 3.9, "projected": 40.0, "indexed": 2.0, "copied": 0.16,
}  # fmt: skip


@cache
def unit_costs() -> Mapping[str, float]:
    """Those stored for the present kernels, else :data:`FIXED`."""
    for folder in private_folders():
        with suppress(OSError, ValueError):
            found = json.loads((folder / _file_name()).read_text(encoding="utf-8"))
            if _is_whole(found):
                return dict(found)
    return FIXED


def _is_whole(found: Any) -> bool:
    if not isinstance(found, dict) or found.keys() != FIXED.keys():
        return False
    return all(isinstance(its, float) and 0.0 <= its < math.inf for its in found.values())


def store(costs: Mapping[str, float]) -> None:
    """Store measured costs in the first writable folder, for processes started from now on."""
    for folder in private_folders():
        with suppress(OSError):
            write_json(made_private(folder) / _file_name(), costs)
            return


def _file_name() -> str:
    # Other kernels take other times.
    return f"unit-costs-{digest_of('joins')}-{digest_of('match_extension')}.json"
