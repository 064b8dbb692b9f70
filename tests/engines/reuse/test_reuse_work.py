"""What the steps of a workload count is what the definitions of the counts say, counted by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.runs.pieces import pieces_of
from tests.drawn_events import drawn_events
from tests.naive.matcher import naive_matches

HIERARCHY = cep.ConceptHierarchy({"X": ["A", "B"]})


def drawn(seed: int, events: int = 60) -> pd.DataFrame:
    return drawn_events(events, "ABCDE", seed=seed)


def steps_of(queries: dict[str, str], sources: dict[str, str | None], frame: pd.DataFrame, **how):
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    workload = cep.Workload(queries, hierarchy=HIERARCHY)
    plan = cep.WorkloadPlan(workload, sources=sources, delays=True)
    found = cep.evaluate(workload, stream, plan, **{"evaluator": "hierarchical-stacks", **how})
    return found.steps.set_index("query")


def number(text: str, frame: pd.DataFrame) -> int:
    return len(naive_matches(cep.parse(text).with_hierarchy(HIERARCHY), frame))


#: Items of a query, and its suffixes of two items or more.
SUFFIXES = {
    "X a, C c, D d": ["X a, C c, D d", "C c, D d"],
    "A a, NOT(B n), C c, D d": ["A a, NOT(B n), C c, D d", "C c, D d"],
    "A a, B b, C c, D d": ["A a, B b, C c, D d", "B b, C c, D d", "C c, D d"],
}


@pytest.mark.parametrize("items", SUFFIXES)
@pytest.mark.parametrize("output", ["arrow", "count"])
@pytest.mark.parametrize("at_once", [math.inf, 1, 7])
def test_stacks_assemble_every_suffix(items: str, output: str, at_once: float) -> None:
    frame = drawn(1)
    query = f"PATTERN SEQ({items}) WITHIN 9 units"
    with pieces_of(events=at_once, matches=at_once):  # whatever the input is cut into
        (step,) = steps_of({"q": query}, {"q": None}, frame, output=output).itertuples()
    by_hand = [number(f"PATTERN SEQ({its}) WITHIN 9 units", frame) for its in SUFFIXES[items]]
    assert step.results == by_hand[0] > 0
    assert step.assembled == sum(by_hand)
    assert step.types_tested == step.source_matches == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_more_specific_query_joins_or_tests_the_matches_of_its_source(seed: int) -> None:
    frame = drawn(seed)
    queries = {
        "general": "PATTERN SEQ(X a, C c) WITHIN 9 units",
        "concept": "PATTERN SEQ(A a, C c) WITHIN 9 units",
        "item": "PATTERN SEQ(X a, D d, C c) WITHIN 9 units",
        "both": "PATTERN SEQ(A a, D d, C c) WITHIN 9 units",
        "gap": "PATTERN SEQ(X a, NOT(D n), C c) WITHIN 9 units",
    }
    sources = dict.fromkeys(queries, "general") | {"general": None}
    for output in ("arrow", "count"):
        steps = steps_of(queries, sources, frame, output=output)
        count = {query: number(text, frame) for query, text in queries.items()}
        work = steps[["assembled", "types_tested", "source_matches"]]
        assert work.loc["concept"].tolist() == [0, count["general"], 0]
        assert work.loc["item"].tolist() == [count["item"], 0, count["general"]]
        assert work.loc["both"].tolist() == [count["both"], count["general"], count["concept"]]
        assert work.loc["gap"].tolist() == [0, 0, count["general"]]


@pytest.mark.parametrize("seed", range(3))
def test_a_more_general_query_projects_its_source_and_assembles_the_others(seed: int) -> None:
    frame = drawn(seed)
    queries = {
        "general": "PATTERN SEQ(X a, C c) WITHIN 9 units",
        "concept": "PATTERN SEQ(A a, C c) WITHIN 9 units",
    }
    steps = steps_of(queries, {"general": "concept", "concept": None}, frame)
    step = steps.loc["general"]
    # All events of X are known to be of A or not before any is joined to a C.
    assert step["types_tested"] == frame["type"].isin(["A", "B"]).sum()
    assert step["source_matches"] == 0 and step["assembled"] == step["delta"] > 0
    queries["item"] = "PATTERN SEQ(X a, D d, C c) WITHIN 9 units"
    steps = steps_of(queries, {"general": "item", "item": None, "concept": None}, frame)
    step = steps.loc["general"]
    assert step["types_tested"] == 0
    assert step["source_matches"] == number(queries["item"], frame) > step["reused"]


def test_figure_8_assembles_only_what_is_missing() -> None:
    """Of four pairs of A and T, the two of t9 have no D between them."""
    frame = pd.DataFrame({"type": list("GAAGTDDT"), "time": [1, 5, 6, 7, 9, 10, 12, 15]})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    workload = cep.Workload(
        {
            "q3": "PATTERN SEQ(G g, A a, T t) WITHIN 48 units",
            "q6": "PATTERN SEQ(G g, A a, D d, T t) WITHIN 48 units",
        }
    )
    plan = cep.WorkloadPlan(workload, sources={"q3": "q6", "q6": None})
    steps = cep.evaluate(workload, stream, plan, evaluator="hierarchical-stacks").steps
    step = steps.set_index("query").loc["q3"]
    assert (step["reused"], step["delta"]) == (2, 2)
    # Two matches of q6 for each D; A before t9, and then G before each of them.
    assert (step["source_matches"], step["assembled"]) == (4, 2 + 2)
