"""A snapshot has nothing in common with what goes on: neither the one it is of, nor one restored from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import (
    AdaptationError,
    EvaluationError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.patterns.model import Kind
from tests.engines.detection.test_snapshots import KEEPING

PATTERNS = [
    *KEEPING.values(),
    "SEQ(A a, GROUP(B b, +), C c) WITHIN 9 units",
    "AND(A a, B b, NOT(C n)) OUTPUT non_overlap WITHIN 9 units",
    "SEQ(A a, KL(B b), C c) STRATEGY next WITHIN 20 units",
    "SEQ(A a, KL(B b)) STRATEGY partition_contiguity(s) OUTPUT non_overlap WITHIN 20 units",
]

COUNTED = [
    "SEQ(A a, B b, C c) AGG COUNT, SUM(b.n), AVG(c.x), MIN(a.x) WITHIN 20 units",
    "SEQ(A a, B b, C c) AGG COUNT WITHIN 999 units",  # which never expires
    "SEQ(A a, NOT(D d), B b) AGG COUNT WITHIN 20 units",
    "SEQ(A a, B b, C c) GROUP BY s AGG COUNT, MAX(b.n) WITHIN 9 units",
    "SEQ(A a, KL(B b), C c) GROUP BY s AGG COUNT, SUM(b.n) WITHIN 9 units",
]

QUERIES = cep.Workload.parse(
    """q1 = PATTERN SEQ(A a, C c) WITHIN 20 units
    q2 = PATTERN SEQ(A a, B b, C c) WITHIN 20 units
    q3 = PATTERN SEQ(A a, NOT(D n), C c) WITHIN 20 units"""
)
COUNTED_QUERIES = cep.Workload.parse(
    """q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 20 units
    q2 = PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 20 units"""
)

SHARED = cep.WorkloadPlan(COUNTED_QUERIES, {"q2": (1,)}, shares_prefixes=True)
REUSED = cep.WorkloadPlan(COUNTED_QUERIES, sources={"q1": None, "q2": "q1"})

#: By which something is no way to run a pattern.
REFUSALS = (AdaptationError, EvaluationError, UnsupportedPatternError, UnsupportedTaskError)


@pytest.fixture(name="batches", scope="module")
def growing_batches() -> list[cep.EventStream]:
    """Ever more events in a window, so that also peaks and arrays grow after a snapshot."""
    rng = np.random.default_rng(3)
    gaps = np.repeat([4, 2, 1, 0], [20, 20, 30, 30])
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABCD"), 100, p=[0.3, 0.3, 0.3, 0.1]),
            "time": np.cumsum(gaps),
            "x": rng.normal(size=100),
            "n": rng.integers(0, 9, 100),
            "s": rng.choice(["p", "q"], 100),
        }
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    return [stream[: 100 // 4], *(stream[at : at + 15] for at in range(25, 100, 15))]


def plan_of(pattern: cep.Pattern, entry: Any) -> Any:
    if not {"order", "tree"} & {*entry.kinds, *entry.some_kinds}:
        return None
    names = [
        [its.name for its in branch.positive if its.kind is not Kind.GROUP]
        for branch in pattern.branches()
    ]
    if "order" in entry.kinds:
        plans: list[Any] = [cep.OrderPlan(its) for its in names]
    else:
        plans = [cep.TreePlan(reduce(lambda left, name: (left, name), its)) for its in names]
    return plans[0] if len(plans) == 1 else cep.UnionPlan(plans)


def detectors(entry: Any) -> Iterator[Callable[[], Any]]:
    for text in PATTERNS:
        pattern = cep.parse(f"PATTERN {text}")
        plan = plan_of(pattern, entry)
        for output in ("matches", "count"):
            yield partial(
                cep.Detector, pattern, plan, evaluator=entry.name, output=output, latency=entry.latency
            )  # fmt: skip
    yield partial(cep.Detector, QUERIES, evaluator=entry.name)
    if {"order", "tree"} & {*entry.kinds}:
        for asked in (cep.parse(f"PATTERN {PATTERNS[0]}"), QUERIES):
            yield partial(
                cep.AdaptiveDetector, asked, evaluator=entry.name, policy="clairvoyant",
                batch_size=30, gain=0.0,
            )  # fmt: skip


def aggregators(entry: Any) -> Iterator[Callable[[], Any]]:
    for text in COUNTED:
        for options in ({}, {"emit": "change", "scope": "stream"}, {"slack": 3}):
            yield partial(cep.Aggregator, f"PATTERN {text}", entry.name, **options)
    yield partial(cep.Aggregator, COUNTED_QUERIES, entry.name)
    if entry.name == "a-seq":
        yield partial(cep.Aggregator, COUNTED_QUERIES, sharing=SHARED)
    if entry.name == "two-step":
        yield partial(cep.Aggregator, COUNTED_QUERIES, sharing=REUSED)


def contents(snapshot: dict[str, np.ndarray]) -> dict[str, tuple[Any, ...]]:
    return {name: (its.dtype, its.shape, its.tobytes()) for name, its in snapshot.items()}


def check(opened: Any, batches: list[cep.EventStream]) -> None:
    """A snapshot of it stays as it was, whatever is pushed, also to two that are restored from it."""
    snapshot = opened.snapshot()
    taken = contents(snapshot)
    restored = [type(opened).restore(snapshot) for _ in range(2)]
    for batch in batches:
        expected = shown(opened.push(batch))
        assert contents(snapshot) == taken
        for its in restored:  # in turn, so that they would disturb each other, too
            assert shown(its.push(batch)) == expected
    assert contents(snapshot) == taken


def shown(found: Any) -> str:
    if isinstance(found, dict):
        return str({name: shown(its) for name, its in found.items()})
    return str(found.values.tolist() if isinstance(found, pd.DataFrame) else found)


def checked(ways: Iterator[Callable[[], Any]], batches: list[cep.EventStream]) -> int:
    """How many of the ways there are; others are refused."""
    number = 0
    for open_one in ways:
        try:
            opened = open_one()
            opened.push(batches[0])
        except REFUSALS:
            continue
        check(opened, batches[1:])
        number += 1
    return number


@pytest.mark.parametrize("name", [its.name for its in cep.EVALUATORS.values() if its.snapshots])
def test_detectors(name: str, batches: list[cep.EventStream]) -> None:
    assert checked(detectors(cep.EVALUATORS[name]), batches) >= 2


@pytest.mark.parametrize("name", cep.AGGREGATORS)
def test_aggregators(name: str, batches: list[cep.EventStream]) -> None:
    assert checked(aggregators(cep.AGGREGATORS[name]), batches) >= 1
