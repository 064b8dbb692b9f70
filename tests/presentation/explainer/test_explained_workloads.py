"""Explained plans of workloads: estimates, measurements, and which reuse was worth it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.presentation.explainer.columns import MARKED
from cepbench.presentation.explainer.workload import WorkloadExplanation
from tests.drawn_events import drawn_stream, normal
from tests.presentation.reporting.offline import read_page

HIERARCHY = cep.ConceptHierarchy({"C": ["A", "B"]})
WORKLOAD = cep.Workload(
    {
        "q1": "PATTERN SEQ(C c, D d) WITHIN 5 units",
        "q2": "PATTERN SEQ(A a, D d) WITHIN 5 units",
        "q3": "PATTERN SEQ(C c, B b, D d) WHERE c.x < d.x WITHIN 5 units",
    },
    hierarchy=HIERARCHY,
)
BY_HAND = cep.WorkloadPlan(WORKLOAD, sources={"q1": None, "q2": "q1", "q3": "q1"})


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return drawn_stream(300, "ABD", seed=3, x=normal, hierarchy=HIERARCHY)


@pytest.fixture(scope="module")
def statistics(stream: cep.EventStream) -> Mapping[str, cep.Statistics]:
    return cep.measure_statistics(WORKLOAD, stream)


def test_costs_are_those_of_the_planner(stream, statistics) -> None:
    for cost in ("calibrated", "e-cube"):
        plan = cep.plan_workload(WORKLOAD, statistics, "TOP-DOWN", cost=cost)
        found = cep.explain(WORKLOAD, plan, statistics, cost=cost).steps
        assert list(found["query"]) == list(plan.order)
        assert list(found["cost"]) == pytest.approx(list(plan.steps["cost"]))
        assert found["cost"].sum() == pytest.approx(plan.cost)
        naive = cep.plan_workload(WORKLOAD, statistics, "NAIVE", cost=cost)
        assert found["scratch_cost"].sum() == pytest.approx(naive.cost)
        assert "seconds" not in found


def test_measurements_are_those_of_each_query(stream, statistics) -> None:
    found = cep.explain(WORKLOAD, BY_HAND, statistics, stream, evaluator="hierarchical-stacks")
    steps = found.steps.set_index("query")
    for query, pattern in WORKLOAD.patterns.items():
        alone = cep.evaluate(pattern, stream, evaluator="hierarchical-stacks").metrics.matches
        row = steps.loc[query]
        assert row["results"] == alone > 50
        assert row["q_error"] == pytest.approx(
            max(alone / row["estimated"], row["estimated"] / alone)
        )
        assert row["q_error"] < 2  # independent events: the estimate is of the right size
    assert (steps["seconds"] > 0).all() and (steps["scratch_seconds"] > 0).all()
    assert steps.loc["q1", "worth_it"] is None
    for query in ("q2", "q3"):
        row = steps.loc[query]
        assert row["worth_it"] is bool(row["seconds"] < row["scratch_seconds"])
        assert row["reused"] == row["results"]
    assert found.metrics.matches == steps["results"].sum()


def explained(stream: Any, statistics: Any) -> WorkloadExplanation:
    """Measured, with times made up: by the plan and from scratch, in milliseconds."""
    found = cep.explain(WORKLOAD, BY_HAND, statistics, stream)
    assert list(found.steps["query"]) == ["q1", "q2", "q3"]
    steps = found.steps.assign(
        seconds=[0.004, 0.001, 1.5],
        scratch_seconds=[0.002, 0.005, 0.75],
        worth_it=pd.Series([None, True, False], dtype=object),
    )
    return replace(found, steps=steps)


def test_what_was_worth_it(stream, statistics) -> None:
    found = explained(stream, statistics)
    expected = found.steps["cost"] < found.steps["scratch_cost"]
    assert list(expected) == [False, True, True]
    sentences = [
        "All queries took 1.5 s, from scratch 757 ms: 1.99 times as slow.",
        "Worth it: q2 from q1, 1 ms instead of 5 ms.",
        "Not worth it: q3 from q1, 1.5 s instead of 750 ms (expected otherwise).",
    ]
    assert found.sentences() == sentences
    off = replace(
        found, steps=found.steps.assign(estimated=[1e9, 1e-9, 1], q_error=[4.0, 3.0, 1.1])
    )
    assert off.sentences() == [
        *sentences,
        f"Matches off by a factor of {MARKED[0]:g} or more: q1 ÷4, q2 ×3; × more, ÷ fewer than "
        "expected.",
    ]


def test_text_and_picture(stream, statistics) -> None:
    found = explained(stream, statistics)
    headline, head, *lines = found.describe().splitlines()
    assert headline == "workload plan by hand"
    assert head.split()[:2] == ["query", "computed"] and head.endswith("time  from scratch")
    assert [line.split("  ")[0] for line in lines[:3]] == ["q1", "q2", "q3"]
    assert lines[2].startswith("q3     down from q1") and lines[2].endswith("1.5 s        750 ms")
    page = found._repr_html_()
    read_page(page)
    drawing = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    texts = ["".join(it.itertext()) for it in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert f"{found.steps['results'][0]} in 4 ms" in texts
    # Only the line to q3 is marked.
    assert page.count("stroke-dasharray") == 1
    without = cep.explain(WORKLOAD, BY_HAND, statistics)
    assert "matches per tick" in without.describe() and without.sentences() == []
    read_page(without._repr_html_())
    assert "not run" in repr(without) and "matches" in repr(found)


def test_without_reuse_there_is_nothing_to_compare(stream, statistics) -> None:
    found = cep.explain(WORKLOAD, None, statistics, stream)
    assert found.steps["source"].isna().all() and found.steps["scratch_seconds"].isna().all()
    assert found.sentences() == []
    empty = cep.EventStream.from_pandas(
        pd.DataFrame({"type": [], "time": [], "x": []}).astype({"type": str, "time": int}),
        type="type", time="time", hierarchy=HIERARCHY,
    )  # fmt: skip
    nothing = cep.explain(WORKLOAD, BY_HAND, statistics, empty)
    assert list(nothing.steps["results"]) == [0, 0, 0]
    assert nothing.describe()


def test_a_limit_that_only_the_queries_from_scratch_exceed(stream, statistics) -> None:
    found = cep.explain(WORKLOAD, BY_HAND, statistics, stream, partial_match_limit=4)
    (remark,) = found.remarks
    assert remark.startswith("From scratch the workload cannot be run: query 'q3': more than")
    assert found.sentences()[0] == remark and found.metrics.matches > 0
    assert found.steps["worth_it"].isna().all() and math.isnan(found.steps["scratch_seconds"][0])


def test_virtual_queries_and_several_sources(stream, statistics) -> None:
    workload = cep.Workload(
        {
            "x": "PATTERN SEQ(A a, D d, A e) WITHIN 5 units",
            "y": "PATTERN SEQ(A a, D d, B e) WITHIN 5 units",
            "z": "PATTERN SEQ(A a, D d, C e) WITHIN 5 units",
        },
        hierarchy=HIERARCHY,
    )
    plan = cep.WorkloadPlan(
        workload,
        sources={"x": "v", "y": "v", "z": ("x", "y"), "v": None},
        virtual={"v": "PATTERN SEQ(A a, D d) WITHIN 5 units"},
    )
    found = cep.explain(workload, plan, cep.measure_statistics(workload, stream), stream)
    steps = found.steps.set_index("query")
    assert list(steps.index) == list(plan.order)
    assert math.isnan(steps.loc["v", "scratch_seconds"])
    assert (steps.loc[["x", "y", "z"], "scratch_seconds"] > 0).all()
    assert steps.loc["z", "results"] == steps.loc["z", "reused"]
    assert "union from x, y" in found.describe()
    read_page(found._repr_html_())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"statistics": None, "stream": None}, "there are no statistics of query 'q1'"),
        ({"statistics": cep.Statistics(rates={"a": 1})}, "are a mapping of its queries"),
        ({"alpha": 1.0}, "of plans of single patterns"),
        ({"cost": "throughput"}, "is one of calibrated, e-cube"),
        ({"plan": cep.OrderPlan(["a"])}, "is a cep.WorkloadPlan"),
        ({"evaluator": "treee"}, "did you mean 'tree'"),
        ({"stream": "events"}, "must be an EventStream"),
    ],
)
def test_errors(given, message: str, stream, statistics) -> None:
    arguments = {"plan": BY_HAND, "statistics": statistics, "stream": stream}
    with pytest.raises(cep.CepbenchError, match=message):
        cep.explain(WORKLOAD, **{**arguments, **given})
