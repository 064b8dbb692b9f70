"""Planners of workloads side by side: rows, shared runs, failures, and wrong results."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.runs.protocol import Evaluator
from tests.drawn_events import drawn_stream, normal
from tests.presentation.reporting.offline import read_page

HIERARCHY = cep.ConceptHierarchy({"C": ["A", "B"]})
TEXTS = {
    "q1": "PATTERN SEQ(C c, D d) WITHIN 5 units",
    "q2": "PATTERN SEQ(A a, D d) WITHIN 5 units",
    "q3": "PATTERN SEQ(C c, B b, D d) WHERE c.x < d.x WITHIN 5 units",
}
WORKLOAD = cep.Workload(TEXTS, hierarchy=HIERARCHY)
ONCE = {"repetitions": 1, "seconds": 0}


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return drawn_stream(300, "ABD", seed=3, x=normal)


@pytest.fixture
def ran() -> list[str]:
    """The patterns that the evaluator ``recorded`` has run."""
    found: list[str] = []

    @cep.plan_evaluator("recorded", kinds=["tree"], constructs=["SEQ", "concept"])
    def recorded(pattern: Any, events: Any, plan: Any) -> pd.DataFrame:
        found.append(str(pattern))
        return cep.evaluate(pattern, events, plan, evaluator="tree").matches

    return found


def test_planners_and_evaluators(stream) -> None:
    done = []
    table = cep.compare(
        WORKLOAD, stream, repetitions=2, seconds=0, on_progress=lambda *its: done.append(its)
    )
    planners = [n for n, its in cep.WORKLOAD_PLANNERS.items() if its.shares == "matches"]
    assert {"NAIVE", "TOP-DOWN", "BOTTOM-UP", "CHASE"} <= {*planners}
    assert list(table["evaluator"]) == [
        name for name in ("tree", "hierarchical-stacks") for _ in planners
    ]
    assert list(table["planner"]) == 2 * planners
    assert (table["status"] == "ok").all()
    alone = sum(
        cep.evaluate(pattern, stream, evaluator="stack-nfa").metrics.matches
        for pattern in WORKLOAD.patterns.values()
    )
    assert set(table["matches"]) == {alone}
    statistics = cep.measure_statistics(WORKLOAD, stream)
    for row in table.to_dict("records"):
        plan = cep.plan_workload(
            WORKLOAD, statistics, row["planner"], delays=True, evaluator=row["evaluator"]
        )
        assert row["cost"] == pytest.approx(plan.cost)
        assert row["plan"].count("from") == sum(it is not None for it in plan.sources.values())
    naive = table[table["planner"] == "NAIVE"]
    assert (naive["times_naive"] == 1).all() and (naive["reused"] == 0).all()
    own = table[table["measured_with"].isna()]
    assert (own["runs"] == 2).all()
    assert done[0] == (0, 3 * len(table)) and done[-1] == (3 * len(table), 3 * len(table))
    page = table._repr_html_()
    read_page(page)
    assert "× NAIVE" in page and "q1 = PATTERN" in page


def test_different_plans_take_turns(stream, ran) -> None:
    """Of each one run to compare matches, and so many in turn, each turn one planner later."""
    planners = ["NAIVE", "TOP-DOWN"]
    statistics = cep.measure_statistics(WORKLOAD, stream)
    turns = []
    for planner in planners:
        plan = cep.plan_workload(WORKLOAD, statistics, planner, delays=True, evaluator="recorded")
        turns.append([str(WORKLOAD.patterns[q]) for q in plan.order if plan.sources[q] is None])
    one, other = turns
    assert len(other) < len(one) == len(WORKLOAD.patterns)
    cep.compare(
        WORKLOAD, stream, planners=planners, evaluators=["recorded"], repetitions=2, seconds=0
    )
    assert ran == [*one, *other, *one, *other, *other, *one]


def test_equal_plans_share_their_runs(stream, ran) -> None:
    @cep.workload_planner("LIKE-NAIVE")
    def none(problem: Any, rng: Any) -> Any:
        return dict.fromkeys(problem.scratch)

    table = cep.compare(
        WORKLOAD, stream, planners=["naive", "LIKE-NAIVE"], evaluators=["recorded"], **ONCE
    )
    assert len(ran) == 2 * len(WORKLOAD.patterns)
    one, other = table.to_dict("records")
    assert other["measured_with"] == "NAIVE" and other["planner"] == "LIKE-NAIVE"
    for name in ("events_per_second", "runs", "matches", "times_naive", "status"):
        assert one[name] == other[name]
    assert "those of NAIVE" in table._repr_html_()


def test_failures_of_runs_are_rows(stream) -> None:
    workload = cep.Workload({**TEXTS, "q4": "PATTERN AND(A a, D d) WITHIN 5 units"})
    plain = stream.with_hierarchy(HIERARCHY)
    table = cep.compare(workload, plain, planners=["NAIVE", "CHASE"], **ONCE).set_index(
        ["evaluator", "planner"]
    )
    assert table.loc[("tree", "NAIVE"), "status"] == "ok"
    refused = table.loc[("hierarchical-stacks", "NAIVE")]
    assert refused["status"] == "refused" and "cannot run AND" in refused["reason"]
    shown = cep.compare(workload, plain, planners=["NAIVE"], **ONCE)._repr_html_()
    assert "refused: query" in shown
    limited = cep.compare(
        WORKLOAD, stream, planners=["NAIVE"], evaluators=["tree"], partial_match_limit=1, **ONCE
    )
    assert set(limited["status"]) == {"partial_match_limit"}

    @cep.workload_planner("BROKEN")
    def broken(problem: Any, rng: Any) -> Any:
        raise ValueError("no")

    one, other = cep.compare(
        WORKLOAD, stream, planners=["BROKEN", "NAIVE"], evaluators=["tree"], **ONCE
    ).to_dict("records")
    assert (one["status"], other["status"]) == ("error", "ok") and "BROKEN failed" in one["reason"]


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_failure_ends_the_runs_of_one_plan_only_and_an_interrupt_all(stream, place) -> None:
    runs: dict[str, int] = {"failing": 0, "steady": 0}
    error: BaseException = MemoryError("too much")

    def run(name: str) -> Any:
        def found(pattern: Any, events: Any, plan: Any) -> pd.DataFrame:
            runs[name] += 1
            if name == "failing" and runs[name] == place:
                raise error
            return cep.evaluate(pattern, events, plan, evaluator="tree").matches

        return found

    for name in runs:
        cep.plan_evaluator(name, kinds=["tree"], constructs=["SEQ", "concept"])(run(name))
    simple = cep.Workload({"q1": TEXTS["q1"]}, hierarchy=HIERARCHY)
    asked = {"planners": ["NAIVE"], "evaluators": [*runs], "repetitions": 2, "seconds": 0.0}
    one, other = cep.compare(simple, stream, **asked).to_dict("records")
    assert one["status"] == "error" and "too much" in one["reason"]
    assert other["status"] == "ok" and other["runs"] == 2
    assert runs == {"failing": 1 if place == 1 else 3, "steady": 3}
    error = KeyboardInterrupt()
    runs["failing"] = 0
    with pytest.raises(KeyboardInterrupt):
        cep.compare(simple, stream, **asked)


def test_other_matches_are_an_error_even_if_as_many(stream) -> None:
    @cep.plan_evaluator("shifted", kinds=["tree"], constructs=["SEQ", "concept"])
    def shifted(pattern: Any, events: Any, plan: Any) -> pd.DataFrame:
        found = cep.evaluate(pattern, events, plan, evaluator="tree").matches
        if len(pattern.names) == 2 and "A" in pattern.types and "B" not in pattern.types:
            found.iloc[0] = found.iloc[0] + 1
        return found

    with pytest.raises(
        cep.CepbenchError, match="NAIVE on shifted finds other matches of query 'q2' than NAIVE on"
    ):
        cep.compare(WORKLOAD, stream, planners=["NAIVE"], evaluators=["tree", "shifted"], **ONCE)


def test_numbers_that_change_between_runs_are_an_error(stream) -> None:
    counted = []

    @cep.plan_evaluator("forgets", kinds=["tree"], constructs=["SEQ", "concept"])
    def forgets(pattern: Any, events: Any, plan: Any) -> pd.DataFrame:
        counted.append(pattern)
        found = cep.evaluate(pattern, events, plan, evaluator="tree").matches
        return found[len(counted) - 1 :]

    last = cep.EventStream.from_pandas(
        pd.DataFrame({"type": list("AD"), "time": [0, 1], "x": [0.0, 1.0]}),
        type="type", time="time", hierarchy=HIERARCHY,
    )  # fmt: skip
    simple = cep.Workload({"q1": TEXTS["q1"]}, hierarchy=HIERARCHY)
    with pytest.raises(cep.CepbenchError, match="other matches of query 'q1'"):
        cep.compare(simple, last, planners=["NAIVE"], evaluators=["forgets"], **ONCE)
    assert len(counted) == 2


def test_the_matches_of_an_evaluator_come_in_any_order(stream) -> None:
    @cep.plan_evaluator("backwards", kinds=["tree"], constructs=["SEQ", "concept"])
    def backwards(pattern: Any, events: Any, plan: Any) -> pd.DataFrame:
        return cep.evaluate(pattern, events, plan, evaluator="tree").matches[::-1]

    assert isinstance(cep.EVALUATORS["backwards"], Evaluator)
    table = cep.compare(
        WORKLOAD, stream, planners=["NAIVE"], evaluators=["tree", "backwards"], **ONCE
    )
    assert (table["status"] == "ok").all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"generators": ["DP-B"]}, "generators are for single patterns; of a workload, give planners"),
        ({"methods": ["a-seq"]}, "methods are for single patterns"),
        ({"planners": ["CHAS"]}, "did you mean 'CHASE'"),
        ({"planners": ["SHARON"]}, "SHARON shares counts of sequences"),
        ({"planners": "CHASE"}, "planners"),
        ({"evaluators": ["tre"]}, "did you mean 'tree'"),
        ({"evaluators": []}, "need a name each"),
        ({"options": {"tree": {"x": 1}}}, "option"),
        ({"options": 3}, "options must be a mapping"),
        ({"cost": "e_cube"}, "did you mean|is one of"),
        ({"statistics": {}}, "no statistics of query 'q1'"),
        ({"output": "arrow"}, "output"),
        ({"repetitions": 0}, "repetitions"),
        ({"stream": "events"}, "must be an EventStream"),
        ({"pattern": {"q1": "PATTERN A a WITHIN 5 units"}}, "pattern must be"),
        (
            {
                "pattern": cep.Workload({"q": "PATTERN SEQ(Z z) WITHIN 5 units"}),
                "missing_types": "error",
            },
            "query 'q': no event of type 'Z'",
        ),
        (
            {"pattern": cep.Workload({"q": "PATTERN SEQ(A a) WHERE a.y > 1 WITHIN 5 units"})},
            "query 'q': .*'y'",
        ),
        (
            {"pattern": cep.Workload({"q": "PATTERN SEQ(A a) AGG COUNT WITHIN 5 units"})},
            "query 'q' has AGG COUNT.*cep.aggregate",
        ),
    ],
)  # fmt: skip
def test_bad_input_raises(given, message: str, stream) -> None:
    with pytest.raises(cep.CepbenchError, match=message):
        cep.compare(**{"pattern": WORKLOAD, "stream": stream, **ONCE, **given})
    if "planners" not in given:
        with pytest.raises(cep.CepbenchError, match="planners are of workloads"):
            cep.compare("PATTERN SEQ(A a) WITHIN 5 units", stream, planners=["CHASE"])
