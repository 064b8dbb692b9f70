"""A live run over texts that never return: it finds what a whole stream has, and keeps those of its windows."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from tests.contract.live import plain

_PATTERN = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND a.g != 'g 1' WITHIN 9 units"
)
_WORKLOAD = cep.Workload(
    {
        "wide": "PATTERN SEQ(A a, C c) WHERE a.k = c.k WITHIN 9 units",
        "narrow": "PATTERN SEQ(A a, B b, C c) WHERE a.k = c.k AND a.g = b.g WITHIN 9 units",
    }
)
_REUSES = cep.WorkloadPlan(_WORKLOAD, sources={"wide": None, "narrow": "wide"})
_COUNTED = "PATTERN SEQ(A a, B b) WHERE [k] {}AGG COUNT WITHIN 9 units"


def _engine(name: str) -> cep.Detector:
    plans = {"order": cep.OrderPlan(["b", "a", "c"]), "tree": cep.TreePlan((("a", "b"), "c"))}
    entry = cep.EVALUATORS[name]
    plan = None if entry.without_plan else next(plans[kind] for kind in entry.kinds)
    return cep.Detector(_PATTERN, plan, evaluator=name)


#: Name → a new detector or aggregator.
SHELLS: dict[str, Callable[[], Any]] = {
    **{name: partial(_engine, name) for name, entry in cep.EVALUATORS.items() if entry.is_builtin},
    "one a key": lambda: cep.Detector(
        "PATTERN SEQ(A a, B b, C c) WHERE [k] OUTPUT non_overlap WITHIN 9 units", evaluator="sase"
    ),
    "negation": lambda: cep.Detector(
        "PATTERN SEQ(A a, NOT(B b), C c) WHERE a.k = c.k AND a.k = b.k WITHIN 9 units",
        cep.OrderPlan(["c", "a"]),
    ),
    "reuse": lambda: cep.Detector(_WORKLOAD, _REUSES),
    "shared stacks": lambda: cep.Detector(_WORKLOAD, evaluator="hierarchical-stacks"),
    "adaptive": lambda: cep.AdaptiveDetector(_PATTERN, evaluator="zstream", batch_size=20),
    **{
        name: partial(cep.Aggregator, _COUNTED.format(""), name)
        for name in ("a-seq", "greta", "two-step", "window-product")
    },
    "groups": lambda: cep.Aggregator(_COUNTED.format("GROUP BY a.k "), "a-seq"),
    "shared counts": lambda: cep.Aggregator(
        cep.Workload(
            {"one": _COUNTED.format(""), "other": _COUNTED.format("").replace("B b", "C b")}
        )
    ),
}

EVENTS = 600

#: Events in a batch.
BATCH = 20

#: How many keys may be kept, of 100; there are three in a window, and a few windows of events in a batch.
LONGEST = 80


def _stream(first: int, last: int) -> cep.EventStream:
    """A key is of a few units of time, and of them alone; each batch has a table of its texts."""
    rng = np.random.default_rng(0)
    keys = np.arange(EVENTS) // 12 * 2 + rng.integers(0, 3, EVENTS)
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABC"), EVENTS),
            "time": np.arange(EVENTS) // 2,
            "k": [f"key {number}" for number in keys],
            "g": [f"g {number}" for number in rng.integers(0, 3, EVENTS)],
        }
    )
    return cep.EventStream.from_pandas(frame.iloc[first:last], type="type", time="time")


#: Groups that were seen are reported for ever; statistics are of more windows than this stream has.
ENDURING = ("groups", "adaptive")


@pytest.mark.parametrize("name", SHELLS)
def test_texts_of_the_past_are_evicted_and_no_match_is_lost(name: str) -> None:
    whole, live = SHELLS[name](), SHELLS[name]()
    expected = [whole.push(_stream(0, EVENTS)), whole.flush()]
    found = []
    for first in range(0, EVENTS, BATCH):
        found.append(live.push(_stream(first, first + BATCH)))
        if first % 300 == 300 - BATCH:
            saved = live.snapshot()
            known = b"".join(part.tobytes() for part in saved.values())
            keys = [int(number) for number in re.findall(rb"key (\d+)", known)]
            assert name in ENDURING or min(keys, default=first) > first // 12 * 2 - LONGEST
            live = live.restore(saved)
    found.append(live.flush())
    assert plain_of(found) == plain_of(expected)


@pytest.mark.parametrize("name", [name for name in SHELLS if name in cep.EVALUATORS])
def test_restores_do_not_let_a_state_grow(name: str) -> None:
    live, sizes = SHELLS[name](), []
    for first in range(0, EVENTS, BATCH):
        live.push(_stream(first, first + BATCH))
        saved = live.snapshot()
        sizes.append(sum(part.nbytes for part in saved.values()))
        live = live.restore(saved)
    early, late = (max(part) for part in (sizes[5:15], sizes[-10:]))
    assert late < 1.5 * early, sizes


def plain_of(parts: list[Any]) -> Any:
    """All parts as one, by query where there are several."""
    if isinstance(parts[0], dict):
        return {query: plain_of([part[query] for part in parts]) for query in parts[0]}
    return plain(
        pd.concat([part if isinstance(part, pd.DataFrame) else part.matches for part in parts])
    )
