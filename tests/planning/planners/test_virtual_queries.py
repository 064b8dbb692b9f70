"""STEINER and FORESTS against all plans: virtual queries, unions, join orders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError, PlanGeneratorError
from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.planners.sharing.generate import planned_sources
from cepbench.planning.plans.reuse import Reuse, Source, in_order
from tests.engines.reuse.test_reuse import HIERARCHY, chains


@st.composite
def problems(draw: st.DrawFn, most: int = 3) -> ReuseProblem:
    """Queries and virtual ones, edges between any two, and unions of queries; many costs are equal."""
    queries = [f"q{number}" for number in range(draw(st.integers(1, most)))]
    virtual = [f"v{number}" for number in range(draw(st.integers(0, 2)))]
    costs = st.integers(0, 9).map(float)
    names = [*queries, *virtual]
    edges = [
        Reuse(query, source, "down", cost=draw(costs))
        for source, query in product(names, names)
        if source != query and draw(st.booleans())
    ]
    unions: dict[tuple[str, Source], Reuse] = {}
    for query in queries:
        others = [its for its in queries if its != query]
        if len(others) > 1 and draw(st.booleans()):
            source = tuple(draw(st.lists(st.sampled_from(others), min_size=2, unique=True)))
            unions[query, source] = Reuse(query, source, "union", cost=draw(costs))
    scratch = {name: draw(costs) for name in names}
    return ReuseProblem(scratch, edges, frozenset(virtual), [*unions.values()])


def all_plans(problem: ReuseProblem) -> Iterator[Sources]:
    ways = (*problem.edges, *problem.unions)
    choices: list[list[Source | bool]] = [
        [
            None,
            *(way.source for way in ways if way.query == query),
            *([False] if query in problem.virtual else []),
        ]
        for query in problem.scratch
    ]
    for its in product(*choices):
        plan = {q: s for q, s in zip(problem.scratch, its, strict=True) if s is not False}
        try:
            in_order(plan)
        except (KeyError, PlanError):
            continue
        yield plan


def sources_of(problem: ReuseProblem, planner: str, seed: int = 0) -> Sources:
    entry = cep.WORKLOAD_PLANNERS[planner]
    return planned_sources(entry, problem, np.random.default_rng(seed))


def without_virtual(problem: ReuseProblem) -> ReuseProblem:
    """What CHASE gets."""
    scratch = {q: its for q, its in problem.scratch.items() if q not in problem.virtual}
    edges = [its for its in problem.edges if {its.query, *its.sources} <= scratch.keys()]
    return ReuseProblem(scratch, edges)


@given(problems())
def test_forests_is_optimal_and_steiner_between_it_and_chase(problem: ReuseProblem) -> None:
    chase = sources_of(without_virtual(problem), "CHASE")
    best = min(map(problem.cost, all_plans(problem)))
    assert problem.cost(sources_of(problem, "FORESTS")) == best
    steiner = problem.cost(sources_of(problem, "STEINER"))
    assert best <= steiner <= problem.cost(chase)


def test_one_virtual_query_for_many() -> None:
    """None of the queries refines another; the virtual one costs more than any of them."""
    queries = [f"q{number}" for number in range(20)]
    edges = [Reuse(query, "v", "down", cost=1.0) for query in queries]
    problem = ReuseProblem(
        dict.fromkeys(queries, 4.0) | {"v": 6.0, "w": 1.0}, edges, frozenset("vw")
    )
    for planner in ("STEINER", "FORESTS"):
        found = sources_of(problem, planner)
        assert found == {**dict.fromkeys(queries, "v"), "v": None}
        assert problem.cost(found) == 26.0


@given(problems(12), st.integers(0, 3))
def test_beyond_eight_queries_a_plan_depends_on_the_seed_alone(
    problem: ReuseProblem, seed: int
) -> None:
    found = sources_of(problem, "FORESTS", seed)
    assert found == sources_of(problem, "FORESTS", seed)
    assert problem.cost(found) <= problem.cost(sources_of(problem, "STEINER"))


BROKEN = {
    "and no source of v1": {"q1": "v1", "q2": None},
    "a mapping of every query": {"q1": None, "v1": None},
    r"the source of 'q1'; there is no such edge in problem.edges or problem.unions": {
        "q1": ("q2", "v1"), "q2": None, "v1": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("message", BROKEN)
def test_errors_of_user_defined_planners(message: str) -> None:
    scratch = dict.fromkeys(("q1", "q2", "q3", "v1"), 1.0)
    problem = ReuseProblem(
        scratch,
        [Reuse("q1", "v1", "down", cost=0.0)],
        frozenset({"v1"}),
        [Reuse("q1", ("q2", "q3"), "union", cost=0.0)],
    )
    with cep.WORKLOAD_PLANNERS.restored():

        @cep.workload_planner("BROKEN", virtual=True)
        def broken(problem, rng):
            return BROKEN[message] | ({} if "every" in message else {"q3": None})

        with pytest.raises(PlanGeneratorError, match=message):
            sources_of(problem, "BROKEN")

        @cep.workload_planner("WASTEFUL", virtual=True)
        def wasteful(problem, rng):
            return dict.fromkeys(problem.scratch)

        # A virtual query that is the source of none is not computed.
        assert "v1" not in sources_of(problem, "WASTEFUL")


TRADES = cep.ConceptHierarchy({"X": ["A", "B", "E"]})
STREAM = cep.EventStream.from_pandas(
    pd.DataFrame(
        {
            "type": np.random.default_rng(0).choice([*"AABBCDEN"], 600),
            "time": np.arange(600),
            "id": np.random.default_rng(1).integers(9, size=600),
        }
    ),
    type="type",
    time="time",
    hierarchy=TRADES,
)


def checked(planner: str, *texts: str, named: str = "q{}", **options) -> cep.WorkloadPlan:
    """The plan for some queries; each has the matches that it has alone, live too."""
    queries = {named.format(n): f"PATTERN {text}" for n, text in enumerate(texts, 1)}
    workload = cep.Workload(queries, hierarchy=TRADES)
    statistics = cep.measure_statistics(workload, STREAM)
    plan = cep.plan_workload(workload, statistics, planner, **options)
    found, alone = cep.evaluate(workload, STREAM, plan), cep.evaluate(workload, STREAM)
    detector = cep.Detector(workload, plan)
    pushed = [detector.push(batch) for batch in STREAM.batches(100)] + [detector.flush()]
    for query, its in alone.items():
        pd.testing.assert_frame_equal(found[query].matches, its.matches)
        assert sum(len(each[query]) for each in pushed) == len(its.matches) > 0
    return plan


def with_last(text: str, *windows: int) -> list[str]:
    """Queries that go on differently after the same beginning."""
    return [
        text.format(last, f"a{number}", f"b{number}", window)
        for number, last in enumerate("CDEN")
        for window in [windows[number % len(windows)]]
    ]


@pytest.mark.parametrize("planner", ["STEINER", "FORESTS"])
def test_other_names_of_variables_are_no_other_query(planner: str) -> None:
    """OpenCEP unites sub-patterns only where the variables are named equally."""
    plan = checked(
        planner, *with_last("SEQ(A {1}, B {2}, {0} z) WHERE {1}.id = {2}.id WITHIN {3} units", 60)
    )
    assert [str(its) for its in plan.virtual.values()] == [
        "PATTERN SEQ(A x1, B x2) WHERE x1.id = x2.id WITHIN 60 units"
    ]
    assert {*plan.sources.values()} == {None, *plan.virtual}


@pytest.mark.parametrize("planner", ["STEINER", "FORESTS"])
def test_a_query_that_is_named_as_a_virtual_one_would_be_stays(planner: str) -> None:
    text = "SEQ(A {1}, B {2}, {0} z) WHERE {1}.id = {2}.id WITHIN {3} units"
    plan = checked(planner, *with_last(text, 60), named="v{}")
    assert {*plan.virtual} == {"v5"} and {*plan.workload.patterns} == {"v1", "v2", "v3", "v4"}


@pytest.mark.parametrize("planner", ["STEINER", "FORESTS"])
def test_of_two_windows_the_longer_one_is_shared(planner: str) -> None:
    """OpenCEP takes the shorter one, and loses matches of the other query."""
    plan = checked(
        planner,
        *with_last("SEQ(A {1}, B {2}, {0} z) WHERE {1}.id = {2}.id WITHIN {3} units", 60, 50),
    )
    assert {str(its.window) for its in plan.virtual.values()} == {"60 units"}


@pytest.mark.parametrize("planner", ["STEINER", "FORESTS"])
def test_negations_are_shared(planner: str) -> None:
    """OpenCEP leaves them out of what it shares."""
    text = "SEQ(A {1}, NOT(E n), B {2}, {0} z) WHERE {1}.id = {2}.id WITHIN {3} units"
    plan = checked(planner, *with_last(text, 60)[:2], *with_last(text, 60)[3:])
    assert [str(its.structure) for its in plan.virtual.values()] == ["SEQ(A x1, NOT(E x2), B x3)"]


@pytest.mark.parametrize("planner", ["STEINER", "FORESTS"])
def test_kleene_items_are_not_lost(planner: str) -> None:
    """OpenCEP leaves them out of what it shares."""
    text = "SEQ(A {1}, KL(B {2}), {0} z) WHERE {1}.id = {2}.id WITHIN {3} units"
    checked(planner, *with_last(text, 8))


@pytest.mark.parametrize("planner", ["STEINER", "FORESTS"])
def test_a_concept_is_the_union_of_its_children(planner: str) -> None:
    """Only matches of the other child, E, are joined."""
    texts = [f"SEQ({type} a, C b, D c) WITHIN 60 units" for type in "XAB"]
    plan = checked(planner, *texts)
    assert (plan.reuse("q1").method, plan.reuse("q1").source) == ("union", ("q2", "q3"))
    assert plan.cost < checked("CHASE", *texts).cost
    united = cep.evaluate(plan.workload, STREAM, plan).steps.set_index("query").loc["q1"]
    first = cep.evaluate(plan.workload, STREAM)["q1"].matches["a"]
    assert united["delta"] == (STREAM.to_pandas()["type"].to_numpy()[first] == "E").sum() > 0


def test_unions_are_of_queries_that_have_no_match_in_common() -> None:
    queries = {
        f"q{type}": f"PATTERN SEQ({type} a, C b) WITHIN 9 units"
        for type in ("A", "AA", "X", "Y", "B")
    }
    hierarchy = cep.ConceptHierarchy({"X": {"A": ["AA"], "B": [], "Y": []}})
    workload = cep.Workload(queries, hierarchy=hierarchy)
    statistics = dict.fromkeys(queries, cep.Statistics(rates={"a": 1, "b": 1}))
    problem = ReuseProblem.of(workload, statistics, unions=True)
    assert [(its.query, its.source) for its in problem.unions] == [("qX", ("qA", "qY", "qB"))]
    # More specific, and further below.
    assert not ReuseProblem.of(workload, statistics).unions


def test_no_order_is_dearer_than_the_default_and_forests_takes_the_cheapest() -> None:
    texts = {"q1": "SEQ(A a, D d)", "q2": "SEQ(A a, B b, C c, D d)"}
    workload = cep.Workload({q: f"PATTERN {its} WHERE b.id = c.id WITHIN 60 units".replace(
        " WHERE b.id = c.id" if q == "q1" else "", "") for q, its in texts.items()})  # fmt: skip
    rates = {"a": 0.01, "b": 1.0, "c": 1.1, "d": 0.02}
    statistics = {
        q: cep.Statistics(
            rates={name: rates[name] for name in its.names},
            selectivities={("a", "c"): 0.001} if q == "q2" else {},
        )
        for q, its in workload.patterns.items()
    }
    plain = ReuseProblem.of(workload, statistics)
    every = ReuseProblem.of(workload, statistics, all_orders=True)
    for one, other in zip(plain.edges, every.edges, strict=True):
        assert (one.source, one.query) == (other.source, other.query)
        assert other.cost <= one.cost
    edge = every.edge("q1", "q2")
    assert edge is not None and edge.order == ("c", "b")
    plan = cep.plan_workload(workload, statistics, "FORESTS", generator="DP-B")
    chase = cep.plan_workload(workload, statistics, "CHASE", generator="DP-B")
    assert plan.cost <= chase.cost


@given(chains(), st.lists(st.floats(0.1, 50), min_size=12, max_size=12), st.booleans())
def test_forests_is_never_dearer_than_chase_with_dp_b(queries, rates, delays) -> None:
    workload = cep.Workload({f"q{k}": its for k, its in enumerate(queries)}, hierarchy=HIERARCHY)
    statistics = {
        query: cep.Statistics(rates=dict(zip(its.names, rates, strict=False)))
        for query, its in workload.patterns.items()
    }
    chase, steiner, forests = (
        cep.plan_workload(workload, statistics, planner, generator="DP-B", delays=delays).cost
        for planner in ("CHASE", "STEINER", "FORESTS")
    )
    naive = cep.plan_workload(workload, statistics, "NAIVE", delays=delays).cost
    least = 1 - 1e-9
    assert forests * least <= min(naive, steiner) and steiner * least <= chase
