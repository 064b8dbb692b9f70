"""Planners of workloads: against each other, and against all plans."""

from __future__ import annotations

import string
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError, PlanGeneratorError, PlanningRefusedError, StatisticsError
from cepbench.planning.costs.sharing import SharingProblem
from cepbench.planning.planners.sharing.generate import ERROR
from cepbench.planning.planners.sharing.independent_set import heaviest_independent_set
from tests.planned_workloads import Planned, planned, planned_workloads, sharing_cost

HEURISTICS = ("NONE", "PRETREE", "CHOP-CONNECT", "SHARON")
OF_COUNTS = [name for name, its in cep.WORKLOAD_PLANNERS.items() if its.shares == "aggregates"]


def counted(its: Planned, planner: str | None = None) -> cep.WorkloadPlan:
    """The plan of queries that A-Seq counts, whatever it gains."""
    return cep.plan_workload(*its, planner=planner, method="a-seq")


def all_plans(its: Planned) -> dict[str, cep.WorkloadPlan]:
    return {name: counted(its, name) for name in OF_COUNTS}


@given(planned_workloads())
def test_sharon_is_between_the_others_and_the_optimum(its: Planned) -> None:
    plans = all_plans(its)
    assert [*plans] == [*HEURISTICS, "EXHAUSTIVE"]
    for name, plan in plans.items():
        assert plan.planner == name and plan.workload == its[0]
        assert plan.cost == pytest.approx(sharing_cost(plan, its[1]).total)
    least = plans["EXHAUSTIVE"].cost * (1 - 1e-9)
    assert least <= plans["SHARON"].cost
    for name in HEURISTICS:
        assert plans["SHARON"].cost * (1 - 1e-9) <= plans[name].cost


def test_sharon_is_nearly_optimal() -> None:
    """What is not optimal misses cuts in several queries at once."""
    rng = np.random.default_rng(8)
    ratios = []
    for _ in range(50):
        common = [*rng.choice([*"ABCDE"], 3)]
        queries = {}
        for k in range(rng.integers(2, 4)):
            own = [*rng.choice([*"ABCDE"], rng.integers(1, 5))]
            at = rng.integers(0, len(own) + 1)
            queries[f"Q{k}"] = [*own[:at], *common, *own[at:]][:4]
        rates = {type: float(10 ** rng.uniform(-1, 2)) for type in "ABCDE"}
        windows = {query: int(rng.choice([1, 5])) for query in queries}
        its = planned(queries, rates, windows=windows)
        costs = [counted(its, name).cost for name in ("SHARON", "EXHAUSTIVE")]
        ratios.append(costs[0] / costs[1])
    assert np.quantile(ratios, 0.95) < 1.03
    assert np.mean(np.array(ratios) < 1 + 1e-9) > 0.9


def rates(of_each: float) -> dict[str, float]:
    return dict.fromkeys(string.ascii_uppercase, of_each)


def test_a_common_prefix_needs_no_cuts() -> None:
    its = planned({"P": "ABCDEFGH", "Q": "ABCDEFIJ"}, rates(300))
    plans = {name: counted(its, name) for name in HEURISTICS}
    for name in ("PRETREE", "SHARON"):
        assert plans[name].shares_prefixes and not any(plans[name].cuts.values())
        assert plans[name].cost < 0.67 * plans["NONE"].cost


@pytest.mark.parametrize("active", [5, 300])
def test_a_long_common_end_is_chopped_off(active: float) -> None:
    queries = {name: name + "ABCDEFGHIJ" for name in "PQRS"}
    its = planned(queries, rates(active))
    for planner in ("CHOP-CONNECT", "SHARON"):
        plan = counted(its, planner)
        (cut,) = plan.cuts["P"]
        assert plan.cuts == dict.fromkeys(queries, (cut,))
        assert [len(table.segments) for table in plan.tables] == [1, 4, 1, 1, 1]
        assert plan.cost < 0.67 * counted(its, "NONE").cost


def test_cuts_before_the_last_one_change_nothing() -> None:
    ends = {"P": "KL", "Q": "MN", "R": "OP", "S": "TU"}
    queries = {query: f"{end[0]}ABCDEFGHIJ{end[1]}" for query, end in ends.items()}
    its = planned(queries, rates(300))
    around = cep.WorkloadPlan(its[0], dict.fromkeys(queries, (1, 11)))
    behind = cep.WorkloadPlan(its[0], dict.fromkeys(queries, (11,)))
    assert sharing_cost(around, its[1]) == sharing_cost(behind, its[1])


def test_nothing_in_common() -> None:
    its = planned({"P": "ABCDEFGH", "Q": "IJKLMNOP", "R": "QRSTUVWX"}, rates(300))
    for name in ("PRETREE", "CHOP-CONNECT"):
        assert not any(cep.plan_workload(*its, planner=name).cuts.values())
    plan = counted(its)
    assert plan.planner == "SHARON" and not plan.shares_prefixes
    assert plan.cost <= counted(its, "none").cost


def test_a_query_is_chopped_at_a_rare_event() -> None:
    """Then the items behind it change the counters of few START events."""
    its = planned({"P": "ABCDEFGH"}, rates(1000) | {"D": 1.0})
    plan = counted(its)
    assert plan.cuts == {"P": (3,)}
    assert plan.cost < 0.8 * counted(its, "NONE").cost


def test_what_is_not_counted_by_segments_is_left_alone() -> None:
    workload = cep.Workload(
        {
            "P": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 1 s",
            "Q": "PATTERN SEQ(A a, B b) STRATEGY next AGG COUNT WITHIN 1 s",
            "R": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 1 s",
        }
    )
    statistics = dict.fromkeys("PQR", cep.Statistics(rates={"a": 3, "b": 3}))
    plan = counted((workload, statistics), "PRETREE")
    assert plan.shares_prefixes and plan.segments("Q") == () and plan.cuts["Q"] == ()


@given(planned_workloads(), st.none() | st.sampled_from([0.01, 1.0, 1e4]))
def test_a_plan_shares_nothing_unless_that_is_expected_to_be_slower(
    its: Planned, length: float | None
) -> None:
    nothing = cep.plan_workload(*its, planner="NONE", length=length)
    for name in OF_COUNTS:
        plan = cep.plan_workload(*its, planner=name, length=length)
        is_shared = plan.shares_prefixes or any(plan.cuts.values())
        assert plan.cost <= (1 - ERROR if is_shared else 1) * nothing.cost


@pytest.mark.parametrize("planner", ["PRETREE", "SHARON"])
def test_a_common_prefix_is_shared_unless_windows_have_many_starts(planner: str) -> None:
    """The window's product takes the same time however many there are."""
    queries = {f"Q{k}": "ABCDEF" + "GHIJKLMN"[k] for k in range(8)}
    for active, is_shared in ((30, True), (100_000, False)):
        plan = cep.plan_workload(*planned(queries, rates(active)), planner=planner)
        assert plan.shares_prefixes == is_shared


@pytest.mark.parametrize("planner", ["CHOP-CONNECT", "SHARON"])
def test_fewer_plans_are_costed_of_a_short_stream(planner: str) -> None:
    """As many as the time without a plan, and what is saved, allow for."""
    queries = {f"Q{k}": [*"ABCDEFGH"[k:], *"ABCDEFGH"[:k]] for k in range(6)}
    costed = []
    for length in (1.0, 100.0, None):
        problem = SharingProblem(*planned(queries, rates(30)), windowed=True, length=length)
        cep.WORKLOAD_PLANNERS[planner].plan(problem, np.random.default_rng(0))
        costed.append(problem.costed)
    assert costed == sorted(costed) and costed[0] < costed[-1]


def test_errors() -> None:
    its = planned(dict.fromkeys("PQRSTU", "ABCDEFGH"), rates(300))
    with pytest.raises(PlanningRefusedError, match=r"100,000 plans, .* has 524,288; choose SHARON"):
        cep.plan_workload(*its, planner="EXHAUSTIVE")
    with pytest.raises(PlanGeneratorError, match=r"no planner of workloads 'SHARN'.* 'SHARON'"):
        cep.plan_workload(*its, planner="SHARN")
    with pytest.raises(PlanGeneratorError, match="method is one of a-seq, not 'greta'"):
        cep.plan_workload(*its, method="greta")
    with pytest.raises(PlanGeneratorError, match="length"):
        cep.plan_workload(*its, length=-1.0)
    with pytest.raises(PlanGeneratorError, match="seed"):
        cep.plan_workload(*its, seed=-1)
    with pytest.raises(StatisticsError, match=r"measure_statistics\(workload, stream\)"):
        cep.plan_workload(its[0], {})
    with pytest.raises(PlanError, match=r"cep\.Workload"):
        cep.plan_workload("PATTERN SEQ(A a) WITHIN 1 s", {})


def test_the_registry() -> None:
    for name, entry in cep.WORKLOAD_PLANNERS.items():
        assert entry.name == name and entry.shares in ("aggregates", "matches") and entry.is_builtin
    assert "poppe2018" in cep.WORKLOAD_PLANNERS["SHARON"].source


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[set[int]]]:
    size = draw(st.integers(0, 8))
    weights = draw(st.lists(st.integers(0, 20).map(float), min_size=size, max_size=size))
    conflicts: list[set[int]] = [set() for _ in range(size)]
    for one, other in combinations(range(size), 2):
        if draw(st.booleans()):
            conflicts[one].add(other)
            conflicts[other].add(one)
    return weights, conflicts


@given(graphs())
def test_the_heaviest_independent_set(graph: tuple[list[float], list[set[int]]]) -> None:
    weights, conflicts = graph
    independent = [
        its
        for number in range(len(weights) + 1)
        for its in combinations(range(len(weights)), number)
        if all(other not in conflicts[one] for one, other in combinations(its, 2))
    ]
    found = heaviest_independent_set(weights, conflicts)
    assert found in independent
    assert sum(weights[v] for v in found) == max(sum(weights[v] for v in s) for s in independent)
    # Ended early it is at least the greedy choice's bound.
    ended = heaviest_independent_set(weights, conflicts, most_sets=1)
    assert ended in independent
    positive = {v for v, weight in enumerate(weights) if weight}
    bound = sum(weights[v] / (1 + len(conflicts[v] & positive)) for v in positive)
    assert sum(weights[v] for v in ended) >= bound - 1e-9


def test_a_set_of_greatest_score() -> None:
    """The score need not be the sum of the weights."""
    apart: list[set[int]] = [{1}, {0}, set()]
    near = [{1, 2}, {0, 2}, {0, 1}]
    scores = {(0,): 3.0, (1,): 2.0, (2,): 2.0, (0, 2): 1.0, (1, 2): 4.0}
    found = heaviest_independent_set(
        [3, 3, 3], apart, near=near, score=lambda its: scores.get(tuple(its), 0.0)
    )
    assert found == (1, 2)
