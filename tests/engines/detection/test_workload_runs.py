"""Workloads: every query gets its own matches."""

from __future__ import annotations

import pandas as pd
import pytest

import cepbench as cep
from tests.drawn_events import drawn_stream, uniform
from tests.naive.matcher import naive_matches

TEXTS = {
    "q1": "PATTERN SEQ(A a, B b) WITHIN 4 units",
    "q2": "PATTERN AND(B b, C c) WHERE b.x < c.x WITHIN 4 units",
    "q3": "PATTERN OR(SEQ(A a, C c), B b) WITHIN 2 units",
    "q4": "PATTERN SEQ(A a, C c) STRATEGY next WITHIN 4 units RETURN a.x AS x",
}
FRAME = pd.DataFrame(
    {"type": list("ABACBCBC"), "time": [1, 2, 3, 3, 4, 5, 5, 9], "x": [1, 2, 3, 4, 3, 2, 1, 5]}
)
STREAM = cep.EventStream.from_pandas(FRAME, type="type", time="time")
WORKLOAD = cep.Workload(TEXTS)


def test_each_query_gets_the_matches_it_has_alone() -> None:
    found = cep.evaluate(WORKLOAD, STREAM)
    assert list(found) == list(TEXTS)
    for query in ("q1", "q2"):
        pattern = WORKLOAD.patterns[query]
        rows = set(found[query].matches.itertuples(index=False, name=None))
        assert rows == naive_matches(pattern, FRAME)
    order = cep.UnionPlan([cep.OrderPlan(["a", "c"]), cep.OrderPlan(["b"])])
    alone = cep.evaluate(TEXTS["q3"], STREAM, order)
    pd.testing.assert_frame_equal(found["q3"].matches, alone.matches)
    pd.testing.assert_frame_equal(found["q4"].matches, cep.evaluate(TEXTS["q4"], STREAM).matches)
    assert found.metrics.matches == sum(len(its.matches) for its in found.values())
    assert found.steps["results"].tolist() == [len(its.matches) for its in found.values()]
    assert found.steps["source"].isna().all()


def test_plans_evaluators_and_outputs_are_those_of_single_queries() -> None:
    workload = cep.Workload({query: TEXTS[query] for query in ("q1", "q2")})
    plans = {"q1": cep.OrderPlan(["b", "a"]), "q2": cep.OrderPlan(["c", "b"])}
    found = cep.evaluate(workload, STREAM, plans, output="count")
    assert {its.evaluator for its in found.values()} == {"lazy-nfa"}
    assert found["q1"].plan == plans["q1"]
    for evaluator in ("lazy-nfa", "tree", "zstream", "stack-nfa"):
        queries = cep.Workload({"q1": TEXTS["q1"]})
        again = cep.evaluate(queries, STREAM, evaluator=evaluator, output="arrow")
        assert again["q1"].arrow.num_rows == found["q1"].metrics.matches


def test_queries_on_shared_stacks() -> None:
    """Each has the matches that it has alone; events are stored once for all of them."""
    texts = {query: TEXTS[query] for query in ("q1", "q3")}
    texts["q5"] = "PATTERN SEQ(A a, B b, NOT(C n)) WITHIN 3 units"
    workload = cep.Workload(texts)
    found = cep.evaluate(workload, STREAM, evaluator="hierarchical-stacks")
    alone = {q: cep.evaluate(t, STREAM, evaluator="hierarchical-stacks") for q, t in texts.items()}
    for query, its in alone.items():
        pd.testing.assert_frame_equal(found[query].matches, its.matches)
        assert found[query].metrics.matches == its.metrics.matches
    # q5 waits, and has stacks of its own.
    q1, q3, q5 = (found[query].metrics for query in texts)
    assert q1.peak_buffered_events == q3.peak_buffered_events
    assert q1.peak_buffered_events > alone["q1"].metrics.peak_buffered_events
    assert q5.peak_buffered_events == alone["q5"].metrics.peak_buffered_events
    assert found.steps["seconds"].sum() == pytest.approx(found.metrics.seconds)
    counted = cep.evaluate(workload, STREAM, evaluator="hierarchical-stacks", output="count")
    assert [its.metrics.matches for its in counted.values()] == [
        len(its.matches) for its in alone.values()
    ]
    with pytest.raises(
        cep.CepbenchError, match=r"query 'q2': .*hierarchical-stacks cannot run AND"
    ):
        cep.evaluate(WORKLOAD, STREAM, evaluator="hierarchical-stacks")


@pytest.mark.parametrize(
    ("texts", "given", "message"),
    [
        (TEXTS, {"plan": "q1"}, "no planner of workloads"),
        (TEXTS, {"plan": {"q": cep.OrderPlan(["a"])}}, "has a query 'q' that the workload has not"),
        (TEXTS, {"plan": {"q1": cep.OrderPlan(["a"])}}, "query 'q1': the plan lacks variable 'b'"),
        (TEXTS, {"latency": True}, "one by one"),
        (
            {"q": "PATTERN SEQ(Z z) WITHIN 1 units"},
            {"missing_types": "error"},
            "query 'q': no event of type 'Z'",
        ),
        ({"q": "PATTERN SEQ(A a) AGG COUNT WITHIN 1 units"}, {}, "query 'q': .*cep.aggregate"),
    ],
)
def test_errors_name_the_query(texts, given, message) -> None:
    with pytest.raises(cep.CepbenchError, match=message):
        cep.evaluate(cep.Workload(texts), STREAM, **given)


def test_a_result_knows_its_queries() -> None:
    with pytest.raises(cep.CepbenchError, match="no query 'q5'; it has q1, q2, q3, q4"):
        cep.evaluate(WORKLOAD, STREAM)["q5"]


FAMILY = cep.Workload(
    {"root": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 30 units"}
    | {
        f"refined {k}": f"PATTERN SEQ(A a, B b, {type} c) WHERE a.x < b.x WITHIN 30 units"
        for k, type in enumerate("CDEFGH")
    }
)


def of_types(events: int) -> cep.EventStream:
    return drawn_stream(events, "ABCDEFGH", x=uniform)


def test_the_name_of_a_planner_stands_for_its_plan_where_that_pays() -> None:
    stream = of_types(40_000)
    found = cep.evaluate(FAMILY, stream, "CHASE", output="count")
    assert found.steps["source"].notna().sum() == 6
    alone = cep.evaluate(FAMILY, stream, output="count")
    assert alone.steps["source"].isna().all()
    assert {q: its.metrics.matches for q, its in found.items()} == {
        q: its.metrics.matches for q, its in alone.items()
    }


def test_no_plan_is_made_where_queries_are_counted_before_matches_are_listed() -> None:
    made = []

    @cep.workload_planner("NOTED")
    def noted(problem, rng):
        made.append(problem)
        return dict.fromkeys(problem.scratch)

    items = "A a, B b, C c"
    ends = ["", *(f", {type} d" for type in "DEFGH")]
    texts = {f"q{end[2:3]}": f"PATTERN SEQ({items}{end}) WITHIN 200 units" for end in ends}
    workload, stream = cep.Workload(texts), of_types(40_000)
    counted = cep.evaluate(workload, stream, "NOTED", output="count")
    assert not made and counted["q"].choice.evaluator != "tree"
    joined = cep.evaluate(workload, stream, "NOTED", evaluator="tree", output="count")
    assert len(made) == 1
    for query, its in counted.items():
        assert its.metrics.matches == joined[query].metrics.matches > 0


def test_each_query_runs_by_itself_where_planning_does_not_pay() -> None:
    short = cep.evaluate(FAMILY, of_types(100), "CHASE")
    assert short.steps["source"].isna().all()
    apart = {
        "q": "PATTERN SEQ(A a, B b) WITHIN 9 units",
        "r": "PATTERN SEQ(B a, A b) WITHIN 9 units",
    }
    long = cep.evaluate(cep.Workload(apart), of_types(40_000), "CHASE", output="count")
    assert long.steps["source"].isna().all() and long["q"].plan is not None


@pytest.mark.parametrize(("most", "reusing"), [(1, 0), (6, 6)])
def test_a_plan_runs_where_it_is_expected_to_save_more_than_estimates_err(
    most: int, reusing: int
) -> None:
    costs = []

    @cep.workload_planner("SOME")
    def some(problem, rng):
        children = [query for query in problem.scratch if query != "root"]
        sources = dict.fromkeys(problem.scratch) | dict.fromkeys(children[:most], "root")
        costs.append(problem.cost(sources) / problem.cost(dict.fromkeys(problem.scratch)))
        return sources

    found = cep.evaluate(FAMILY, of_types(40_000), "SOME", output="count")
    assert found.steps["source"].notna().sum() == reusing
    assert costs[0] < (0.75 if reusing else 1.0)


def test_a_planner_is_one_of_matches() -> None:
    with pytest.raises(cep.CepbenchError, match="no planner of workloads 'CHASSE'"):
        cep.evaluate(FAMILY, of_types(100), "CHASSE")
    with pytest.raises(cep.CepbenchError, match="SHARON shares counts"):
        cep.evaluate(FAMILY, of_types(100), "SHARON")
