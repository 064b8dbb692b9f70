"""Plans for single kernels, which read little of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.kernels import counts
from cepbench.kernels.instructions import RULE_COLUMNS


def a_plan(**known: Any) -> tables.Plan:
    """A plan of one node and no rules, but for what is given."""
    return tables.Plan(
        **{
            "nodes": np.zeros((1, tables.NODE_COLUMNS), np.int64),
            "spans": np.zeros((1, tables.RULE_KINDS + 1), np.int64),
            "rules": np.empty((0, RULE_COLUMNS), np.int64),
            "constants": np.empty(0),
            "window": 0,
            "lifetime_shift": 0,
            "inner": 0,
            "stored": True,
            "waits": tables.WAITS_NOT,
            "late_first": 0,
            "late_last": 0,
            "consuming": False,
            **known,
        }
    )


def a_state(plan: tables.Plan, **known: np.ndarray) -> tables.NodeState:
    """What is stored at the nodes of a plan: nothing, but for what is given."""
    nodes = len(plan.nodes)
    return tables.NodeState(
        **{
            "rows": np.zeros((nodes, tables.STATE_COLUMNS), np.int64),
            "counts": np.zeros((nodes, counts.COUNT_COLUMNS), np.int64),
            "peaks": np.zeros(counts.PEAKS, np.int64),
            "ints": np.empty(0, np.int64),
            "floats": np.empty(0),
            "members": np.empty((2, 0), np.int64),
            "used": np.zeros(1, np.int64),
            **known,
        }
    )
