"""The calibrated cost of reused matches: expected numbers against those of streams, and work by hand."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given

import cepbench as cep
from cepbench.errors import PlanGeneratorError
from cepbench.planning.costs.expected_rows import share_without
from cepbench.planning.costs.reuse import ReuseProblem, plan_cost
from cepbench.planning.costs.reuse_calibrated import Calibrated, Work
from cepbench.planning.plans.reuse import reuses
from tests.drawn_events import below, drawn_stream, uniform
from tests.planning.costs.test_e_cube import HIERARCHY, sequences

CONCEPTS = cep.ConceptHierarchy({"G": ["A", "B"]})

#: About 5 events of each type in a window; the id is one of 4.
QUERIES = {
    "ac": "SEQ(A a, C c)",
    "abc": "SEQ(A a, B b, C c)",
    "abcd": "SEQ(A a, B b, C c, D d)",
    "and": "AND(A a, B b)",
    "concept": "SEQ(G g, C c)",
    "not": "SEQ(A a, NOT(B n), C c)",
    "equal": "SEQ(A a, C c) WHERE [id]",
    "equal3": "SEQ(A a, B b, C c) WHERE [id]",
    "filter": "SEQ(A a, C c) WHERE a.x > 0.7",
    "or": "OR(SEQ(A a, C c), SEQ(B b, D d))",
}


@cache
def measured() -> tuple[cep.Workload, cep.EventStream, dict[str, cep.Statistics]]:
    stream = drawn_stream(
        6_000, "ABCD", seed=7, within=100 * 6_000, id=below(4), x=uniform, hierarchy=CONCEPTS
    )
    texts = {query: f"PATTERN {text} WITHIN 2000 units" for query, text in QUERIES.items()}
    workload = cep.Workload(texts, hierarchy=CONCEPTS)
    return workload, stream, cep.measure_statistics(workload, stream)


def test_expected_matches_are_those_of_a_stream() -> None:
    workload, stream, statistics = measured()
    found = cep.evaluate(workload, stream, output="count").steps.set_index("query")["results"]
    model = Calibrated(workload, statistics, {})
    for query in QUERIES:
        ratio = model.matches(query) * 600_000 / found[query]
        assert 0.85 < ratio < 1.2, (query, ratio)


@pytest.mark.parametrize(
    ("source", "query"),
    [("abc", "ac"), ("not", "ac"), ("ac", "concept"), ("equal", "ac"), ("filter", "ac")],
)
def test_expected_share_of_the_matches_that_a_specific_query_contains(source, query) -> None:
    workload, stream, statistics = measured()
    plan = cep.WorkloadPlan(workload, sources=dict.fromkeys(QUERIES) | {query: source})
    steps = cep.evaluate(workload, stream, plan).steps.set_index("query")
    share = steps["reused"][query] / steps["results"][query]
    assert Calibrated(workload, statistics, {}).contained(plan.reuse(query)) == pytest.approx(
        share, abs=0.06
    )


def by_hand(*, evaluator: str | None = None, **queries: str) -> Calibrated:
    """Windows of 10 s and 1 event per second of each type, 2 of G."""
    texts = {query: f"PATTERN {text} WITHIN 10 s" for query, text in queries.items()}
    workload = cep.Workload(texts, hierarchy=CONCEPTS)
    statistics = {
        query: cep.Statistics(
            rates={v.name: 2.0 if v.type == "G" else 1.0 for v in pattern.variables},
            stream_rate=9,
            selectivities={("a", "b"): 0.5} if pattern.conditions else {},
        )
        for query, pattern in workload.patterns.items()
    }
    plans = {"planned": cep.TreePlan(("a", ("b", "c")))}
    its_plans = {q: p for q, p in plans.items() if q in queries}
    return Calibrated(workload, statistics, its_plans, evaluator)


def test_a_condition_between_variables_that_are_no_neighbours_counts() -> None:
    texts = {"near": "a.x < b.x", "far": "a.x < c.x", "both": "a.x < b.x AND a.x < c.x"}
    workload = cep.Workload(
        {q: f"PATTERN SEQ(A a, B b, C c) WHERE {text} WITHIN 10 s" for q, text in texts.items()}
    )
    shares = {("a", "b"): 0.5, ("a", "c"): 0.25}
    statistics = {
        query: cep.Statistics(
            rates=dict.fromkeys("abc", 1.0),
            selectivities={pair: its for pair, its in shares.items() if f"{pair[1]}.x" in text},
        )
        for query, text in texts.items()
    }
    model = Calibrated(workload, statistics, {})
    all_three = 10**3 / 2 / 10
    assert model.matches("near") == pytest.approx(all_three * 0.5)
    assert model.matches("far") == pytest.approx(all_three * 0.25)
    assert model.matches("both") == pytest.approx(all_three * 0.125)


def work(source: str, query: str) -> Work:
    model = by_hand(source=source, query=query)
    texts = {"source": source, "query": query}
    workload = cep.Workload(
        {name: f"PATTERN {text} WITHIN 10 s" for name, text in texts.items()}, hierarchy=CONCEPTS
    )
    (way,) = reuses(workload, "source", "query")
    return model.work(way)


#: Of A and C, those without a B between them: each length of the gap is equally likely.
NO_B = (1 - math.exp(-10)) / 10


def near(**numbers: float) -> Work:
    return Work(**{name: pytest.approx(number) for name, number in numbers.items()})


def test_work_from_scratch() -> None:
    model = by_hand(
        written="SEQ(A a, B b, C c, D d)",
        planned="SEQ(A a, B b, C c)",
        two="SEQ(A a, NOT(B n), C c)",
    )
    pairs = 10 + 50 + 1000 / 6
    found = model.work_from_scratch("written")
    assert found == near(scanned=9 * 4, events=4, joined=pairs)
    # First b and c, which are two neighbours in 10 s.
    found = model.work_from_scratch("planned")
    assert found == near(scanned=9 * 3, events=3, joined=60)
    kept = 10 * NO_B
    found = model.work_from_scratch("two")
    assert found == near(scanned=9 * 3, events=2, joined=kept, probed=kept)
    found = by_hand(tested="SEQ(A a, B b) WHERE a.x < b.x").work_from_scratch("tested")
    assert found == near(scanned=9 * 2, events=2, joined=5, paired=10)
    assert model.scratch("written") == model.work_from_scratch("written").nanoseconds() > 0


def test_work_from_scratch_on_stacks_goes_from_the_last_item_on() -> None:
    queries = {"written": "SEQ(G a, B b, C c, D d)", "planned": "SEQ(A a, B b, G c)"}
    model = by_hand(evaluator="Hierarchical_Stacks", **queries)
    found = model.work_from_scratch("written")
    assert found == near(scanned=9 * 4, events=5, joined=10 + 50 + 2000 / 6)
    # Without the plan: the suffixes of the written order.
    found = model.work_from_scratch("planned")
    assert found == near(scanned=9 * 3, events=4, joined=20 + 100)
    found = by_hand(evaluator="hierarchical-stacks", tested="SEQ(A a, B b) WHERE a.x < b.x")
    assert found.work_from_scratch("tested") == near(scanned=9 * 2, events=2, joined=5, paired=10)
    for query in queries:
        assert model.scratch(query) < by_hand(**queries).scratch(query)


def test_reuse_pays_on_the_tree_where_stacks_store_each_event_once() -> None:
    """Rare items in a dense stream: ``tree`` lists the events of each query, stacks those of all."""
    workload = cep.Workload(
        {"q1": "PATTERN SEQ(A a, C c) WITHIN 9 s", "q2": "PATTERN SEQ(A a, B b, C c) WITHIN 9 s"}
    )
    its = cep.Statistics(rates=dict.fromkeys("abc", 0.1), stream_rate=100)
    statistics = dict.fromkeys(workload.patterns, its)
    problems = [
        ReuseProblem.of(workload, statistics, evaluator=evaluator)
        for evaluator in ("tree", "hierarchical-stacks")
    ]
    edges = [problem.edge("q1", "q2") for problem in problems]
    assert edges[0] == edges[1]  # matches are reused alike
    for planner in ("CHASE", "STEINER", "FORESTS"):
        for evaluator, source in ((None, "q1"), ("sase", "q1"), ("Hierarchical-Stacks", None)):
            plan = cep.plan_workload(workload, statistics, planner, evaluator=evaluator)
            assert plan.sources == {"q1": None, "q2": source}
    assert plan_cost(plan, statistics, "calibrated", "hierarchical-stacks") == pytest.approx(
        sum(problems[1].scratch.values())
    )
    for wrong in (1, ""):
        with pytest.raises(PlanGeneratorError, match="evaluator"):
            cep.plan_workload(workload, statistics, evaluator=wrong)


def test_work_from_more_general_matches() -> None:
    found = work("SEQ(A a, C c)", "SEQ(A a, B b, C c)")
    assert found == near(indexed=9, probed=10, made=50, copied=3 * 50 + 2 * 10)
    found = work("SEQ(A a, C c)", "SEQ(A a, B b, C c) WHERE a.x < b.x")
    assert found == near(indexed=9, probed=10, looked=50, made=25, copied=3 * 25 + 2 * 10)
    assert work("SEQ(G a, C c)", "SEQ(A a, C c)") == near(tested=20, copied=2 * 10 + 2 * 20)
    kept = 10 * NO_B
    found = work("SEQ(A a, C c)", "SEQ(A a, NOT(B n), C c)")
    assert found == near(indexed=9, probed=kept, copied=2 * kept + 2 * 10)


def test_work_from_more_specific_matches() -> None:
    # C, then A and C, all of which are tested, and none of which has to be extended.
    found = work("SEQ(A a, B b, C c)", "SEQ(A a, C c)")
    assert found == near(
        indexed=9 * 3, projected=50, made=1 + 10, probed=1 + 10, tested=10,
        copied=(3 + 2) * 50 + 2 * 10 * NO_B,
    )  # fmt: skip
    # Begins with the events of G, of which half are no A.
    found = work("SEQ(A a, C c)", "SEQ(G a, C c)")
    assert found == near(indexed=9 * 2, tested=2, made=2 + 10, probed=1, copied=2 * 10)


@pytest.mark.parametrize("items", [1, 2, 3, 5])
@pytest.mark.parametrize("events", [0.0, 0.1, 3.0, 40.0, 250.0])
def test_the_share_of_gaps_without_events(items: int, events: float) -> None:
    """The mean of exp(−m·u) for u of the distribution Beta(1, k − 1), by quadrature."""
    expected = math.exp(-events)
    if items > 1:
        u = (np.arange(200_000) + 0.5) / 200_000
        expected = np.mean((items - 1) * (1 - u) ** (items - 2) * np.exp(-events * u))
    assert share_without(events, items) == pytest.approx(expected, abs=2e-4)


def test_one_source_for_nine_children_is_worth_it() -> None:
    queries = {"root": "SEQ(A a, B b, C c) WHERE b.x < c.x"}
    queries |= {f"q{k}": f"SEQ(A a, B b, C c, T{k} t) WHERE b.x < c.x" for k in range(9)}
    texts = {query: f"PATTERN {text} WITHIN 100 s" for query, text in queries.items()}
    workload = cep.Workload(texts)
    statistics = {
        query: cep.Statistics(
            rates={name: 0.02 if name == "t" else 0.5 for name in pattern.names},
            selectivities={("b", "c"): 0.01},
        )
        for query, pattern in workload.patterns.items()
    }
    plan = cep.plan_workload(workload, statistics)
    assert plan.sources == dict.fromkeys(queries, "root") | {"root": None}
    naive = cep.plan_workload(workload, statistics, "NAIVE")
    assert plan.cost is not None and naive.cost is not None and naive.cost > 4 * plan.cost


def test_events_are_looked_up_by_equalities() -> None:
    """Other conditions are tested pair by pair, whatever their selectivity."""
    costs = {}
    for operator in "=<":
        condition = f"WHERE a.x {operator} b.x AND b.x {operator} c.x WITHIN 100 s"
        workload = cep.Workload(
            {
                "q1": f"PATTERN SEQ(A a, C c) WHERE a.x {operator} c.x WITHIN 100 s",
                "q2": f"PATTERN SEQ(A a, B b, C c) {condition}",
            }
        )
        pairs = [("a", "b"), ("b", "c"), ("a", "c")]
        statistics = {
            "q1": cep.Statistics(rates={"a": 2.0, "c": 2.0}, selectivities={("a", "c"): 0.01}),
            "q2": cep.Statistics(
                rates=dict.fromkeys("abc", 2.0), selectivities=dict.fromkeys(pairs, 0.01)
            ),
        }
        problem = ReuseProblem.of(workload, statistics)
        edge = problem.edge("q1", "q2")
        costs[operator] = (problem.scratch["q1"], problem.scratch["q2"], edge.cost)
    for equal, less in zip(costs["="], costs["<"], strict=True):
        assert equal < less / 2


@given(sequences())
def test_every_cost_is_a_number(queries: dict[str, str]) -> None:
    texts, statistics = {}, {}
    for query, types in queries.items():
        items = [
            f"NOT({t[1:]} {t[1:].lower()})" if t[0] == "-" else f"{t} {t.lower()}"
            for t in types.split()
        ]
        texts[query] = f"PATTERN SEQ({', '.join(items)}) WHERE [id] WITHIN 10 s"
        names = [t.lstrip("-").lower() for t in types.split()]
        statistics[query] = cep.Statistics(
            rates={name: 0.0 if name == "d" else 2.0 for name in names}
        )
    workload = cep.Workload(texts, hierarchy=HIERARCHY)
    problem = ReuseProblem.of(workload, statistics, "calibrated", delays=True)
    for cost in (*problem.scratch.values(), *(edge.cost for edge in problem.edges)):
        assert 0 <= cost < math.inf
