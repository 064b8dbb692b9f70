"""The cost model of workload plans against the updates that runs count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.kernels.counts import LANES
from tests.planned_workloads import sharing_cost

#: Events per second.
RATES = {"A": 20, "B": 30, "C": 10, "D": 15, "E": 25}

#: Of the stream: the first window, in which the counters begin at none, is a small part of it.
SECONDS = 60

WORKLOAD = cep.Workload(
    {
        "P": "PATTERN SEQ(A a, B b, C c, D d) WHERE b.x < 80 AGG COUNT WITHIN 1 s",
        "Q": "PATTERN SEQ(A a, B b, KL(C c), E d) WHERE b.x < 80 AGG COUNT WITHIN 2 s",
        "R": "PATTERN SEQ(E a, B b, C c, D d) WHERE b.x < 80 AGG COUNT, SUM(d.x) WITHIN 1 s",
    }
)


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    rng = np.random.default_rng(3)
    count = rng.poisson(sum(RATES.values()) * SECONDS)
    share = np.array([*RATES.values()]) / sum(RATES.values())
    seconds = np.sort(rng.uniform(0, SECONDS, count))
    events = pd.DataFrame(
        {
            "type": rng.choice([*RATES], count, p=share),
            "at": pd.Timestamp("2026-01-05") + pd.to_timedelta(seconds, unit="s"),
            "x": rng.integers(0, 100, count),
        }
    )
    return cep.EventStream.from_pandas(events, type="type", time="at")


def counted_and_expected(plan: cep.WorkloadPlan, stream: cep.EventStream) -> tuple[int, float]:
    cost = sharing_cost(plan, cep.measure_statistics(plan.workload, stream))
    expected = cost.updates + LANES * cost.followed + cost.products
    counted = cep.aggregate(plan.workload, stream, "a-seq", sharing=plan).metrics.updates
    return counted, expected * SECONDS


@pytest.mark.parametrize(
    ("cuts", "shares_prefixes"),
    [
        ({"P": [1], "R": [1]}, False),
        ({"P": [1], "R": [1]}, True),
        ({"P": [2], "Q": [2], "R": [2]}, False),
        ({"P": [1], "Q": [1], "R": [1]}, True),
        ({"Q": [3]}, True),
        ({"P": [1, 3], "R": [1, 3]}, False),
    ],
)
def test_updates(
    stream: cep.EventStream, cuts: dict[str, list[int]], shares_prefixes: bool
) -> None:
    plan = cep.WorkloadPlan(WORKLOAD, cuts, shares_prefixes)
    counted, expected = counted_and_expected(plan, stream)
    assert counted == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("shares_prefixes", [False, True])
def test_the_updates_of_queries_that_share_nothing(
    stream: cep.EventStream, shares_prefixes: bool
) -> None:
    """Each is counted by itself, where every total has counters of its own."""
    plan = cep.WorkloadPlan(WORKLOAD, {}, shares_prefixes)
    counted, expected = counted_and_expected(plan, stream)
    assert counted == pytest.approx(expected, rel=0.05)
