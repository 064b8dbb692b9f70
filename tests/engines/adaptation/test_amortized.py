"""By default planning is a small share of a run: joins of long windows, which take minutes uncompiled."""

from __future__ import annotations

import pytest

import cepbench as cep
from cepbench.engines.adaptation.policies import SHARE, Situation, amortized, threshold
from tests.engines.adaptation.drifting import DRIFT, SIZE


@pytest.mark.parametrize(("generator", "cost"), [("DP-LD", "throughput"), ("ZSTREAM", "zstream")])
def test_by_default_planning_is_a_small_share_of_the_run(generator: str, cost: str) -> None:
    @cep.adaptation_policy("as by default")
    def as_by_default(situation: Situation) -> str | None:
        seen.append(situation)
        reason = amortized(situation)
        if threshold(situation) is not None:
            (waited if reason is None else planned).append(situation)
        return reason

    how = {"generator": generator, "cost": cost, "batch_size": SIZE, "gain": 0.0, "output": "count"}
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN {} units"
    for window in (20, 2000):
        seen: list[Situation] = []
        waited: list[Situation] = []
        planned: list[Situation] = []
        found = cep.adapt(pattern.format(window), DRIFT, policy="as by default", **how)
        its = cep.adapt(pattern.format(window), DRIFT, **how)
        assert its.switches["position"].tolist() == found.switches["position"].tolist()
        assert [situation.since for situation in seen[:2]] == [SIZE, 2 * SIZE]
        expected = sum(situation.expected_seconds for situation in planned)
        assert len(planned) * seen[0].plans.planning_seconds <= SHARE * expected
        if window == 20:  # a few milliseconds
            assert waited and not planned
        else:
            assert planned
            later = seen[seen.index(planned[0]) + 1]
            assert later.since == 2 * SIZE
