"""When plans of workloads are made anew, what they are made from, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES, adaptation_policy
from cepbench.engines.adaptation.workload_plans import WorkloadPlans
from cepbench.engines.runs.protocol import Arguments
from cepbench.errors import AdaptationError, CepbenchError, SnapshotError
from cepbench.planning.costs.reuse import plan_cost
from tests.budgets import examples
from tests.engines.adaptation.drifting import segments
from tests.engines.reuse.test_reuse import HIERARCHY, frames, workloads
from tests.naive.matcher import naive_matches

WORKLOAD = cep.Workload(
    {
        "q1": "PATTERN SEQ(A a, C c) WITHIN 30 units",
        "q2": "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 30 units RETURN b.x AS x",
        "q3": "PATTERN SEQ(X a, C c) WITHIN 30 units",
    },
    hierarchy=HIERARCHY,
)

#: Events of each segment, in rounds of :data:`SIZE`.
SEGMENT, SIZE = 10_000, 1000

#: First B is rare, then A and C.
DRIFT = segments((0.49, 0.02, 0.49), (0.02, 0.93, 0.05), size=SEGMENT)

#: First A, then C: by which a join should begin.
ORDERS = segments((0.02, 0.49, 0.49), (0.49, 0.49, 0.02), size=SEGMENT)


def test_by_default_matches_are_shared_where_that_pays() -> None:
    """Planning takes as long as many rounds, and reuse some time in each, however few its events."""
    statistics = cep.measure_statistics(WORKLOAD, DRIFT[-SEGMENT:])
    shared = cep.plan_workload(WORKLOAD, statistics).sources
    assert any(shared.values())
    asked = Arguments(evaluator=None, options=None, output="count", partial_match_limit=10**6)
    how = dict.fromkeys(("generator", "planner", "cost", "initial"))
    how |= {"policy": ADAPTATION_POLICIES["amortized"], "threshold": 0.5, "gain": 0.1, "seed": 0}
    for size, found in ((SIZE, dict.fromkeys(WORKLOAD.patterns)), (10**6, shared)):
        plans, first, _ = WorkloadPlans.of(WORKLOAD, asked, batch_size=size, **how)
        assert not any(first.sources.values())
        assert plans.plan(statistics).sources == found
    detector = cep.AdaptiveDetector(WORKLOAD, batch_size=SIZE)
    detector.push(DRIFT[:SIZE])
    assert detector.plan.sources == first.sources


@pytest.mark.parametrize("policy", ["threshold", "bound", "clairvoyant"])
def test_a_plan_is_replaced_when_the_stream_changes(policy: str) -> None:
    found = cep.adapt(WORKLOAD, DRIFT, policy=policy, batch_size=SIZE)
    statistics = cep.measure_statistics(WORKLOAD, DRIFT[-SEGMENT:])
    last = cep.plan_workload(WORKLOAD, statistics)
    first = cep.plan_workload(WORKLOAD, cep.measure_statistics(WORKLOAD, DRIFT[:SIZE]))
    assert plan_cost(first, statistics, "calibrated") > 1.2 * last.cost
    assert plan_cost(found.plan, statistics, "calibrated") < 1.15 * last.cost
    assert found.steps["source"].tolist() == [found.plan.sources[q] for q in WORKLOAD.patterns]
    assert 1 <= len(found.switches) <= 3
    assert (found.switches["position"] >= SEGMENT).all()
    assert (found.switches["predicted_gain"] > 0.1).all()
    assert plan_cost(last, statistics, "calibrated") == pytest.approx(last.cost)
    expected = cep.evaluate(WORKLOAD, DRIFT, last)
    for query in WORKLOAD.patterns:
        pd.testing.assert_frame_equal(found[query].matches, expected[query].matches)
    assert found.metrics.matches == expected.metrics.matches
    assert found.metrics.events == len(DRIFT)
    rates = found.statistics.query("query == 'q2' and variables == 'b'")["value"]
    assert len(rates) == 2 * SEGMENT / SIZE and rates.iloc[-1] > 5 * rates.iloc[0]


def test_nothing_changes_where_nothing_does() -> None:
    steady = segments((0.3, 0.3, 0.4), (0.3, 0.3, 0.4), size=SEGMENT)
    for policy in ("threshold", "static"):
        assert cep.adapt(WORKLOAD, steady, policy=policy, batch_size=SIZE).switches.empty
    assert cep.adapt(WORKLOAD, DRIFT, policy="static", batch_size=SIZE).switches.empty
    assert cep.adapt(WORKLOAD, DRIFT, gain=1000.0, batch_size=SIZE, output="count").switches.empty


@pytest.mark.kernel
def test_a_given_plan_is_replaced_if_it_is_bad() -> None:
    bad = cep.WorkloadPlan(WORKLOAD, sources={"q1": "q2", "q2": None, "q3": None})
    how = {"initial": bad, "batch_size": SIZE, "output": "count"}
    assert cep.adapt(WORKLOAD, DRIFT, policy="static", **how).plan == bad
    assert cep.adapt(WORKLOAD, DRIFT[:SIZE], **how).plan == bad
    switches = cep.adapt(WORKLOAD, DRIFT, policy="threshold", **how).switches
    assert switches["reason"].iloc[0] == "the running plan was made without statistics"
    assert switches["old"].iloc[0] == "q1 from q2"
    assert switches["position"].iloc[0] == 0


@pytest.mark.kernel
@given(workloads(), frames(), st.data())
@examples(8)
def test_planners_in_every_round(workload, frame, data) -> None:
    @adaptation_policy("always")
    def planned_anew(situation: object) -> str:
        assert situation.log_bound <= situation.log_cost + 1e-9  # type: ignore[attr-defined]
        return "again"

    @adaptation_policy("often")
    def replanned(situation: object) -> str:
        return "again"

    assume(all(pattern.window.length for pattern in workload.patterns.values()))
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    able = [name for name, its in cep.WORKLOAD_PLANNERS.items() if its.shares == "matches"]
    planner = data.draw(st.sampled_from(able))
    policies = ["always", *ADAPTATION_POLICIES]
    if cep.WORKLOAD_PLANNERS[planner].virtual:
        policies = ["often", "threshold", "static", "clairvoyant"]
    policy = data.draw(st.sampled_from(policies))
    how = {"planner": planner, "policy": policy, "threshold": 0.0, "gain": 0.0}
    try:
        found = cep.adapt(workload, stream, **how, batch_size=data.draw(st.integers(1, 5)))
    except CepbenchError as error:
        assume("on a live stream" not in str(error))
        raise
    for query, pattern in workload.patterns.items():
        rows = [*found[query].matches.itertuples(index=False, name=None)]
        assert len(rows) == len({*rows}) == found[query].metrics.matches
        assert {*rows} == naive_matches(pattern.with_hierarchy(HIERARCHY), frame)


def test_with_plans_of_a_generator() -> None:
    found = cep.adapt(
        WORKLOAD,
        ORDERS,
        generator="DP-LD",
        evaluator="lazy-nfa",
        planner="NAIVE",
        policy="threshold",
        gain=0.0,
        batch_size=SIZE,
    )
    assert len(found.switches) >= 1
    assert found.plan.plans["q2"].text in found.switches["new"].iloc[-1]
    expected = cep.evaluate(WORKLOAD, ORDERS)
    for query in WORKLOAD.patterns:
        pd.testing.assert_frame_equal(found[query].matches, expected[query].matches)


def test_the_plan_of_a_query_that_depends_on_all_events_stays() -> None:
    texts = {**{q: str(its) for q, its in WORKLOAD.patterns.items()}, "q4": f"{TAKEN}"}
    workload = cep.Workload(texts, hierarchy=HIERARCHY)
    detector = cep.AdaptiveDetector(
        workload, generator="DP-LD", planner="NAIVE", policy="threshold", gain=0.0, batch_size=SIZE,
        output="count",
    )  # fmt: skip
    counts = dict.fromkeys(texts, 0)
    for batch in ORDERS.batches(300):
        for query, number in detector.push(batch).items():
            counts[query] += number
    assert len(detector.switches) >= 1
    alone = cep.Detector(TAKEN, cep.OrderPlan(["a", "b", "c"]), output="count")
    assert counts["q4"] == alone.push(ORDERS) > 0


TAKEN = "PATTERN SEQ(A a, B b, C c) STRATEGY consuming WITHIN 30 units"


def test_outputs_and_files(tmp_path) -> None:
    shown = {}
    for output in ("matches", "arrow", "count"):
        detector = cep.AdaptiveDetector(WORKLOAD, batch_size=SIZE, output=output, position=7)
        first = detector.push(DRIFT[:2500])
        detector.save(tmp_path / "saved.npz")
        detector = cep.AdaptiveDetector.load(tmp_path / "saved.npz")
        assert isinstance(detector, cep.AdaptiveDetector) and detector.position == 2507
        assert detector.averages is not None and [*detector.statistics] == [*WORKLOAD.patterns]
        second = detector.push(DRIFT[2500:4000])
        shown[output] = {
            query: sum(each if output == "count" else len(each) for each in (its, second[query]))
            for query, its in first.items()
        }
        assert detector.metrics().matches == sum(shown[output].values()) > 0
        assert detector.push(DRIFT[:0]).keys() == WORKLOAD.patterns.keys()
    assert shown["matches"] == shown["arrow"] == shown["count"]
    assert [*first] == [*WORKLOAD.patterns]
    with pytest.raises(SnapshotError, match="adaptive detector; restore it by"):
        cep.Detector.restore(detector.snapshot())
    with pytest.raises(SnapshotError, match="detector with one plan; restore it by"):
        cep.AdaptiveDetector.restore(cep.Detector(WORKLOAD).snapshot())
    detector.flush()
    with pytest.raises(CepbenchError, match="was flushed"):
        detector.push(DRIFT[:0])


OTHER = cep.Workload({"q1": WORKLOAD.patterns["q1"]}, hierarchy=HIERARCHY)
LATE = cep.Workload(
    {"q1": "PATTERN SEQ(A a) WITHIN 3 units", "q2": "PATTERN SEQ(A a, B b) WITHIN 3 units"}
)

SETS = cep.Workload({"q": "PATTERN SEQ(KL(A a), B b) WITHIN 3 units"})
PARTS = {"v": "PATTERN SEQ(B b) WITHIN 3 units"}
WHOLES = {"v": "PATTERN SEQ(A a, NOT(C c), B b) WITHIN 3 units"}


def reusing(workload: cep.Workload, virtual: dict[str, str], **sources: Any) -> cep.WorkloadPlan:
    """A plan with a virtual query v, which is computed from scratch."""
    return cep.WorkloadPlan(workload, sources={**sources, "v": None}, virtual=virtual)


@pytest.mark.parametrize(
    ("workload", "given", "message"),
    [
        (SETS, {"initial": reusing(SETS, PARTS, q="v"), "evaluator": "hierarchical-stacks"},
         "query 'q': the evaluator hierarchical-stacks cannot run KL"),
        (LATE, {"initial": reusing(LATE, WHOLES, q1=None, q2="v")},
         r"of a virtual query of initial= \(v\) nothing can be estimated"),
        (WORKLOAD, {"planner": "CHASEE"}, "did you mean 'CHASE'"),
        (WORKLOAD, {"planner": "SHARON"}, "SHARON shares counts, .* choose one of NAIVE"),
        (WORKLOAD, {"cost": "throughput"}, "cost"),
        (WORKLOAD, {"policy": "sometimes"}, "adaptation policy"),
        (WORKLOAD, {"threshold": -1}, "threshold"),
        (WORKLOAD, {"batch_size": 0}, "batch_size"),
        (WORKLOAD, {"output": "compressed"}, "output"),
        (WORKLOAD, {"generator": "DP-B", "policy": "bound"}, "no lower bound .* without generator"),
        (WORKLOAD, {"planner": "STEINER", "policy": "bound"}, "no lower bound"),
        (WORKLOAD, {"generator": "DP-B", "evaluator": "lazy-nfa"},
         "lazy-nfa does not run all tree plans"),
        (WORKLOAD, {"initial": cep.WorkloadPlan(OTHER, sources={"q1": None})}, "another workload"),
        (WORKLOAD, {"initial": cep.OrderPlan(["a"])}, "plan of a workload"),
        (WORKLOAD, {"initial": cep.WorkloadPlan(WORKLOAD)}, "cuts"),
        (LATE, {"initial": cep.WorkloadPlan(LATE, sources={"q1": "q2", "q2": None}, delays=True)},
         "matches of q1 late, so a change of the plan would lose or double"),
        (cep.Workload({"q": "PATTERN AND(A a, B b) WITHIN 0 units"}), {},
         "query 'q': a window of length 0"),
        (cep.Workload({"q": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 3 units"}), {},
         "cep.aggregate"),
    ],
)  # fmt: skip
def test_what_is_refused(workload, given, message) -> None:
    with pytest.raises(CepbenchError, match=message):
        cep.AdaptiveDetector(workload, **given)
    with pytest.raises(CepbenchError, match=message):
        cep.adapt(workload, DRIFT, **given)


def test_a_pattern_has_no_planner() -> None:
    with pytest.raises(AdaptationError, match="planner= is of workloads"):
        cep.adapt(WORKLOAD.patterns["q1"], DRIFT, planner="CHASE")


def test_a_plan_that_is_refused_changes_nothing() -> None:
    detector = cep.AdaptiveDetector(WORKLOAD, policy="static", batch_size=SIZE, output="count")
    before = detector.push(DRIFT[:SIZE])
    with pytest.raises(CepbenchError, match="another workload"):
        detector.switch(cep.WorkloadPlan(OTHER, sources={"q1": None}))
    tree = cep.WorkloadPlan(
        WORKLOAD,
        sources=dict.fromkeys(WORKLOAD.patterns),
        plans={"q1": cep.TreePlan(("a", "c"))},
    )
    detector = cep.AdaptiveDetector(
        WORKLOAD, policy="static", batch_size=SIZE, output="count", evaluator="hierarchical-stacks"
    )
    assert detector.push(DRIFT[:SIZE]) == before
    plan = detector.plan
    with pytest.raises(CepbenchError, match="cannot run tree plans"):
        detector.switch(tree)
    assert detector.switches.empty and detector.plan == plan
    detector.push(DRIFT[SIZE : 2 * SIZE])


def test_a_bound_is_below_every_plan() -> None:
    statistics = cep.measure_statistics(WORKLOAD, DRIFT)
    seen = []

    @adaptation_policy("seen")
    def look(situation):
        seen.append(situation.log_bound)

    cep.adapt(WORKLOAD, DRIFT[:SIZE], policy="seen", batch_size=SIZE, output="count")
    statistics = cep.measure_statistics(WORKLOAD, DRIFT[:SIZE])
    for sources in ({"q2": "q1"}, {"q1": "q2"}, {"q3": "q1"}, {"q1": "q3"}, {}):
        plan = cep.WorkloadPlan(WORKLOAD, sources={**dict.fromkeys(WORKLOAD.patterns), **sources})
        # Sampled and measured statistics differ a little.
        assert math.exp(seen[0]) <= 1.1 * plan_cost(plan, statistics, "calibrated")
