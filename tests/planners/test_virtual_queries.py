"""STEINER and FORESTS against all plans: virtual queries, unions, join orders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.costs.reuse import ReuseProblem, Sources
from cepbench.errors import PlanError, PlanGeneratorError
from cepbench.planners.sharing.generate import planned_sources
from cepbench.plans.reuse import Reuse, Source, in_order


@st.composite
def problems(draw: st.DrawFn, most: int = 4) -> ReuseProblem:
    """Queries and virtual ones, edges between any two, and unions of queries; many costs are equal."""
    queries = [f"q{number}" for number in range(draw(st.integers(1, most)))]
    virtual = [f"v{number}" for number in range(draw(st.integers(0, 3)))]
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
