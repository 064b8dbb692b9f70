"""All kinds of detectors and aggregators, for tests of what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import cepbench as cep

_PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.x <= c.x {}WITHIN 9 units"
_WORKLOAD = cep.Workload(
    {
        "wide": "PATTERN SEQ(A a, C c) WITHIN 9 units",
        "narrow": "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x WITHIN 9 units",
        "alone": "PATTERN SEQ(B b, C c) WHERE b.x <= c.x WITHIN 5 units",
    }
)
_REUSES = cep.WorkloadPlan(_WORKLOAD, sources={"wide": None, "narrow": "wide", "alone": None})
_COUNTS = cep.Workload(
    {
        name: str(its).replace(" WITHIN", " AGG COUNT WITHIN")
        for name, its in _WORKLOAD.patterns.items()
    }
)

#: Name → a new detector or aggregator.
SHELLS: dict[str, Callable[[], Any]] = {
    "lazy-nfa": lambda: cep.Detector(_PATTERN.format(""), cep.OrderPlan(["c", "a", "b"])),
    "tree": lambda: cep.Detector(_PATTERN.format(""), cep.TreePlan((("a", "b"), "c"))),
    "zstream": lambda: cep.Detector(
        _PATTERN.format(""), cep.TreePlan(("a", ("b", "c"))), evaluator="zstream"
    ),
    "sase": lambda: cep.Detector(_PATTERN.format(""), evaluator="sase"),
    "stack-nfa": lambda: cep.Detector(_PATTERN.format(""), evaluator="stack-nfa"),
    "hierarchical-stacks": lambda: cep.Detector(
        _PATTERN.format(""), evaluator="hierarchical-stacks"
    ),
    "output": lambda: cep.Detector(
        _PATTERN.format("OUTPUT non_overlap "), cep.TreePlan((("a", "b"), "c"))
    ),
    "returns": lambda: cep.Detector(
        _PATTERN.format("") + " RETURN a, c.x AS last", cep.TreePlan((("a", "b"), "c"))
    ),
    "workload": lambda: cep.Detector(_WORKLOAD, _REUSES),
    "shared stacks": lambda: cep.Detector(_WORKLOAD, evaluator="hierarchical-stacks"),
    "adaptive": lambda: cep.AdaptiveDetector(_PATTERN.format(""), batch_size=5),
    "adaptive workload": lambda: cep.AdaptiveDetector(_WORKLOAD, batch_size=5),
    "two-step": lambda: cep.Aggregator(_aggregated(), "two-step"),
    "greta": lambda: cep.Aggregator(_aggregated(), "greta"),
    "a-seq": lambda: cep.Aggregator("PATTERN SEQ(A a, B b) AGG COUNT, SUM(b.x) WITHIN 9 units"),
    "slack": lambda: cep.Aggregator(_aggregated(), "greta", slack=1),
    "counts": lambda: cep.Aggregator(_COUNTS),
}

#: Those that are aggregators.
COUNTING = ("two-step", "greta", "a-seq", "slack", "counts")


def _aggregated() -> str:
    return _PATTERN.format("AGG COUNT, SUM(c.x) ")


def events(number: int, seed: int, start: int = 0, **columns: Any) -> cep.EventStream:
    """So many random events, one a unit of time."""
    rng = np.random.default_rng(seed)
    table = {
        "type": rng.choice(list("ABC"), number),
        "ts": np.arange(start, start + number),
        "x": rng.integers(0, 50, number),
        **columns,
    }
    return cep.EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")


def plain(found: Any) -> Any:
    """What a push returned, in any order."""
    if isinstance(found, dict):
        return {name: plain(its) for name, its in found.items()}
    if isinstance(found, pa.Table):
        found = found.to_pandas()
    return sorted(map(repr, found.values.tolist())) if isinstance(found, pd.DataFrame) else found
