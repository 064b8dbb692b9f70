"""Planners of workloads that reuse matches: CHASE against all plans, the others by their definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError, PlanGeneratorError, PlanningRefusedError, StatisticsError
from cepbench.planning.costs.reuse import ReuseProblem
from cepbench.planning.planners.sharing.generate import planned_sources
from cepbench.planning.plans.evaluator_names import BUILT_IN
from cepbench.planning.plans.reuse import Reuse, in_order

OF_MATCHES = [name for name, its in cep.WORKLOAD_PLANNERS.items() if its.shares == "matches"]

HIERARCHY = cep.ConceptHierarchy({"Computer": ["INTC", "MSFT", "DELL"], "EDU": ["EFC", "OREL"]})

#: q1, q2, q9, q13, q14 and q15 of Figure 19 of [liu2011].
FIGURE_19 = {
    "q1": "SEQ(INTC a, Finance b, EDU c)",
    "q2": "SEQ(DELL d, INTC a, Finance b, EDU c)",
    "q9": "SEQ(Computer a, Finance b, EDU c)",
    "q13": "SEQ(MSFT d, INTC a, Finance b, EDU c)",
    "q14": "SEQ(DELL d, INTC a, Finance b, EFC c)",
    "q15": "SEQ(DELL d, INTC a, Finance b, OREL c)",
}
#: Most events are DELL and MSFT; else sorting the matches of q1 (8) costs more than it saves.
RATES = {
    "INTC": 2, "MSFT": 100, "DELL": 100, "Computer": 202, "Finance": 3, "EDU": 4, "EFC": 0.5,
    "OREL": 0.5,
}  # fmt: skip


def planned(planner: str | None = None, **options) -> cep.WorkloadPlan:
    texts = {query: f"PATTERN {text} WITHIN 2 seconds" for query, text in FIGURE_19.items()}
    workload = cep.Workload(texts, hierarchy=HIERARCHY)
    statistics = {
        query: cep.Statistics(rates={v.name: RATES[str(v.type)] for v in pattern.positive})
        for query, pattern in workload.patterns.items()
    }
    return cep.plan_workload(workload, statistics, planner, **{"cost": "e-cube"} | options)


def all_plans(problem: ReuseProblem) -> Iterator[dict[str, str | None]]:
    choices = [[None, *(e.source for e in problem.edges if e.query == q)] for q in problem.scratch]
    for its in product(*choices):
        sources = dict(zip(problem.scratch, its, strict=True))
        try:
            in_order(sources)
        except PlanError:
            continue
        yield sources


@st.composite
def problems(draw: st.DrawFn) -> ReuseProblem:
    """Costs from few numbers, so that many are equal."""
    levels = sorted(draw(st.lists(st.integers(0, 3), min_size=1, max_size=5)))
    queries = [f"q{number}" for number in range(len(levels))]
    costs = st.integers(0, 6).map(float)
    edges = []
    for (level, general), (below, specific) in combinations(zip(levels, queries, strict=True), 2):
        if level == below:  # equal queries
            edges.append(Reuse(specific, general, "down", (), "nothing", cost=draw(costs)))
            continue
        if draw(st.booleans()):
            edges.append(Reuse(specific, general, "down", (), "pattern", cost=draw(costs)))
        if draw(st.booleans()):
            edges.append(Reuse(general, specific, "up", (), "pattern", cost=draw(costs)))
    return ReuseProblem({query: draw(costs) for query in queries}, edges)


def sources_of(problem: ReuseProblem, planner: str) -> dict[str, str | None]:
    entry = cep.WORKLOAD_PLANNERS[planner]
    return dict(planned_sources(entry, problem, np.random.default_rng(0)))


@given(problems())
def test_chase_is_optimal(problem: ReuseProblem) -> None:
    """Lemma 1: each query has one source, and no cost depends on how the source is computed."""
    found = sources_of(problem, "CHASE")
    assert problem.cost(found) == min(map(problem.cost, all_plans(problem)))
    for query, source in found.items():
        if source is not None:
            edge = problem.edge(source, query)
            assert edge is not None and edge.cost < problem.scratch[query]


@given(problems())
def test_the_other_planners(problem: ReuseProblem) -> None:
    assert not any(sources_of(problem, "NAIVE").values())
    for planner, method in (("TOP-DOWN", "down"), ("BOTTOM-UP", "up")):
        for query, source in sources_of(problem, planner).items():
            costs = {
                edge.source: edge.cost
                for edge in problem.edges
                if edge.query == query
                and (edge.method == method or (method == "up" and edge.change == "nothing"))
            }
            if source is None:
                assert not costs
            else:
                assert costs[source] == min(costs.values())


def test_figure_19() -> None:
    """As the paper says, q1 is computed first, and q9 upwards and q13 downwards from it.

    It says so of q2 too, which by (17) is cheaper from q14, since few EDU events are EFC.
    """
    plan = planned()
    assert plan.planner == "CHASE" and plan.cost == pytest.approx(plan.steps["cost"].sum())
    assert plan.order[0] == "q1" and plan.sources is not None and plan.sources["q1"] is None
    for query, method in (("q9", "up"), ("q13", "down"), ("q14", "down"), ("q15", "down")):
        assert (plan.reuse(query).source, plan.reuse(query).method) == ("q1", method)
    assert (plan.reuse("q2").source, plan.reuse("q2").method) == ("q14", "up")
    costs = plan.graph.set_index(["source", "query"])["cost"]
    assert costs["q14", "q2"] < costs["q1", "q2"] < plan.graph["cost"][1] == 6400
    costs = {name: planned(name).cost for name in OF_MATCHES}
    with_virtual = [name for name in OF_MATCHES if cep.WORKLOAD_PLANNERS[name].virtual]
    assert all(costs.pop(name) < plan.cost for name in with_virtual)
    assert min(costs.values()) == costs["CHASE"] == plan.cost
    assert plan.graph["cost"].notna().all() and len(plan.graph) > len(plan.steps)
    down = planned("top-down")
    assert [*down.steps["method"]] == ["scratch", *["down"] * 5] and down.order[0] == "q9"
    up = planned("bottom-up")
    assert {up.reuse(query).method for query in ("q1", "q9")} == {"up"}


def test_the_default_planner_depends_on_agg() -> None:
    texts = {
        "q1": "PATTERN SEQ(A a, B b) WITHIN 1 s",
        "q2": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 1 s",
    }
    its = cep.Statistics(rates={"a": 1, "b": 1})
    for queries, planner in ((("q1", "q2"), "CHASE"), (("q2",), "SHARON")):
        workload = cep.Workload({query: texts[query] for query in queries})
        assert cep.plan_workload(workload, dict.fromkeys(queries, its)).planner == planner


def test_delays() -> None:
    texts = {
        "q1": "PATTERN SEQ(A a, B b) WITHIN 1 s",
        "q2": "PATTERN SEQ(A a, B b, C c) WITHIN 1 s",
    }
    its = cep.Statistics(rates={"a": 1, "b": 1, "c": 1})
    workload, statistics = cep.Workload(texts), dict.fromkeys(texts, its)
    for delays, sources in ((False, {"q1": None, "q2": None}), (True, {"q1": "q2", "q2": None})):
        plan = cep.plan_workload(workload, statistics, "BOTTOM-UP", delays=delays)
        assert plan.sources == sources and plan.delays is delays


def test_every_plan_can_be_run() -> None:
    """Of each construct two queries are equal, and one has an item more."""
    shapes = {
        "seq": "SEQ(A a, {}C c)", "not": "SEQ(A a, NOT(N n), {}C c)", "late": "SEQ(A a, {}C c, NOT(N n))",
        "and": "AND(A a, {}C c)", "kl": "SEQ(A a, {}KL(C c))", "or": "OR(SEQ(A a, {}C c), SEQ(B e, A d))",
        "next": "SEQ(A a, {}C c) STRATEGY next",
    }  # fmt: skip
    texts = {
        f"{name} {number}": f"PATTERN {shape.format(more)} WITHIN 4 units"
        for name, shape in shapes.items()
        for number, more in enumerate(("", "", "B b, "))
    }
    events = pd.DataFrame({"type": [*"AABCANCBCC"], "time": range(10)})
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    workload = cep.Workload(texts)
    statistics = cep.measure_statistics(workload, stream)
    alone = [
        len(cep.evaluate(cep.Workload({query: text}), stream)[query].matches)
        for query, text in texts.items()
    ]
    for planner in OF_MATCHES:
        plan = cep.plan_workload(workload, statistics, planner, delays=True)
        found = cep.evaluate(workload, stream, plan)
        assert [len(found[query].matches) for query in texts] == alone
        assert planner == "NAIVE" or any(plan.sources.values())


def test_plans_of_queries_from_scratch() -> None:
    plan = planned(generator="dp-b")
    assert {*plan.plans} == {query for query, source in plan.sources.items() if source is None}
    assert plan.plans["q1"].generator == "DP-B"
    assert not planned().plans


def test_a_user_defined_planner() -> None:
    with cep.WORKLOAD_PLANNERS.restored():

        @cep.workload_planner("MINE", source="[mine]")
        def mine(problem, rng):
            return dict.fromkeys(problem.scratch) | {"q2": "q1"}

        plan = planned("mine")
        assert plan.planner == "MINE" and plan.describe().count(" from q1") == 1
        assert not cep.WORKLOAD_PLANNERS["MINE"].is_builtin
        with pytest.raises(PlanGeneratorError, match="CHASE is the name of a built-in planner"):
            cep.workload_planner("chase")(mine)
        with pytest.raises(PlanGeneratorError, match="is a function, not 3"):
            cep.workload_planner("OTHER")(3)  # type: ignore[type-var]


def refusing(problem, rng):
    raise PlanningRefusedError("too many queries")


BROKEN = {
    "ZeroDivisionError": lambda problem, rng: 1 / 0,
    "returned 3; a plan is a mapping": lambda problem, rng: 3,
    "a mapping of every query": lambda problem, rng: {"q1": None},
    r"'q99' as the source of 'q1'; there is no such edge": (
        lambda problem, rng: dict.fromkeys(problem.scratch) | {"q1": "q99"}
    ),
    "no such edge": lambda problem, rng: dict.fromkeys(problem.scratch) | {"q13": "q2"},
    "a circle: q1 from q9 from q1": (
        lambda problem, rng: dict.fromkeys(problem.scratch) | {"q1": "q9", "q9": "q1"}
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_errors_of_user_defined_planners(message: str) -> None:
    with cep.WORKLOAD_PLANNERS.restored():
        cep.workload_planner("BROKEN")(BROKEN[message])
        with pytest.raises(PlanGeneratorError, match=message):
            planned("broken")
        cep.workload_planner("REFUSING")(refusing)
        with pytest.raises(PlanningRefusedError, match="too many queries"):
            planned("refusing")


def test_other_errors() -> None:
    with pytest.raises(PlanGeneratorError, match=r"no planner of workloads 'CHSE'.* 'CHASE'"):
        planned("CHSE")
    with pytest.raises(
        PlanGeneratorError, match="the cost of reused matches is one of calibrated, e-cube"
    ):
        planned(cost="throughput")
    with pytest.raises(PlanGeneratorError, match="delays is True or False"):
        planned(delays=2)
    with pytest.raises(PlanGeneratorError, match="no plan generator 'DP-X'"):
        planned(generator="DP-X")
    with pytest.raises(PlanError, match=r"cep\.Workload"):
        cep.plan_workload({"q": "PATTERN SEQ(A a) WITHIN 1 s"}, {}, "CHASE")
    with pytest.raises(StatisticsError, match="no statistics of query 'q'"):
        cep.plan_workload(cep.Workload({"q": "PATTERN SEQ(A a) WITHIN 1 s"}), {})


@pytest.mark.parametrize("planner", OF_MATCHES)
def test_checked_planners_pass(planner: str) -> None:
    report = cep.check_workload_planner(planner)
    assert report.passed and (report.table["ratio"] >= 1 - 1e-9).all()
    assert "passed: 7 of 7 runs" in report.describe()
    if planner in ("CHASE", "STEINER", "FORESTS"):
        assert report.table["ratio"].tolist() == [1.0] * 7


def test_the_checks_find_mistakes() -> None:
    with cep.WORKLOAD_PLANNERS.restored():

        @cep.workload_planner("UNSEEDED")
        def unseeded(problem, rng):
            return {
                query: edges[np.random.default_rng().integers(len(edges))]
                for query in problem.scratch
                for edges in [[None, *(e.source for e in problem.edges if e.query == query)][:2]]
                for edges in [edges if edges[-1] is None or edges[-1] < query else [None]]
            }

        @cep.workload_planner("GREEDY")
        def greedy(problem, rng):
            problem.scratch["q0"] = 0.0

        report = cep.check_workload_planner(unseeded)
        assert not report.passed and "two plans for the same seed" in report.describe()
        assert set(cep.check_workload_planner("greedy").table["status"]) == {"error"}
        assert "item assignment" in cep.check_workload_planner("greedy")._repr_html_()
        cep.workload_planner("REFUSING")(refusing)
        assert not cep.check_workload_planner("refusing").passed
    with pytest.raises(PlanGeneratorError, match="shares counts"):
        cep.check_workload_planner("SHARON")
    with pytest.raises(PlanGeneratorError, match=r"refusing is not registered.*\"REFUSING\""):
        cep.check_workload_planner(refusing)


def test_planned_sources_are_those_that_a_live_stream_allows() -> None:
    workload = cep.Workload(
        {
            "early": "PATTERN SEQ(A a, C c) WITHIN 4 s",
            "long": "PATTERN SEQ(A a, C c, B b) WITHIN 4 s",
            "longer": "PATTERN SEQ(A a, C c, D d) WITHIN 4 s",
            "before": "PATTERN SEQ(B b, A a, C c) WITHIN 4 s",
            "not": "PATTERN SEQ(A a, C c, NOT(B n)) WITHIN 4 s",
        }
    )
    statistics = {
        query: cep.Statistics(rates={variable.name: 1.0 for variable in pattern.variables})
        for query, pattern in workload.patterns.items()
    }

    @cep.workload_planner("FROM-LONG")
    def from_long(problem, rng):
        assert problem.edge("early", "not") is not None
        return dict.fromkeys(problem.scratch, "early") | {"early": "long", "long": None}

    plan = cep.plan_workload(workload, statistics, "FROM-LONG", delays=True)
    assert plan.sources == {
        "early": "long", "long": None, "longer": "early", "before": None, "not": "early",
    }  # fmt: skip
    cep.Detector(workload, plan)
    with pytest.raises(PlanGeneratorError, match="there is no such edge"):
        cep.plan_workload(workload, statistics, "FROM-LONG")
    for planner in OF_MATCHES:
        for delays in (False, True):
            plan = cep.plan_workload(workload, statistics, planner, delays=delays)
            cep.Detector(workload, plan)
    with pytest.raises(PlanError, match="'early' would report matches late"):
        cep.WorkloadPlan(workload, sources=dict.fromkeys(workload.patterns) | {"early": "not"})


def test_the_name_of_an_evaluator_is_checked() -> None:
    assert tuple(name for name, its in cep.EVALUATORS.items() if its.is_builtin) == BUILT_IN
    workload = cep.Workload({"q": "PATTERN SEQ(A a, B b) WITHIN 9 units"})
    rates = {"q": cep.Statistics(rates={"a": 1.0, "b": 1.0})}
    with pytest.raises(
        PlanGeneratorError, match=r"no evaluator 'hierarchical-stack'.* did you mean"
    ):
        cep.plan_workload(workload, rates, evaluator="hierarchical-stack")
    named = cep.plan_workload(workload, rates, evaluator="Hierarchical_Stacks")
    assert named == cep.plan_workload(workload, rates, evaluator="hierarchical-stacks")
    with cep.EVALUATORS.restored():
        cep.plan_evaluator("my-engine")(lambda pattern, stream, plan: None)
        cep.plan_workload(workload, rates, evaluator="My_Engine")
