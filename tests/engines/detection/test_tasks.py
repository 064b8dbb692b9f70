"""Tasks: made once of arguments, written as JSON, and what a run sees of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import cepbench as cep
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, task_for, unpacked
from cepbench.engines.runs.protocol import Arguments, Task
from cepbench.errors import EvaluationError, UnsupportedTaskError
from cepbench.experiments.conformance.evaluator_checks import check_stream
from tests.engines.detection.dummy_engine import DECLARED, EveryCombination

PATTERN = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 30 units")
ORDER = cep.OrderPlan(["c", "a", "b"])
OR = cep.parse(
    "PATTERN OR(SEQ(A a, B b), SEQ(A a, NOT(D d), C c)) WHERE a.x = 0.1 WITHIN 9 seconds"
)
COMPANY = cep.ConceptHierarchy({"Company": ["A", "B"]})
OF_CONCEPTS = cep.parse("PATTERN SEQ(Company a, C c) WITHIN 5 units RETURN a.x AS first")


def asked(**given: Any) -> Arguments:
    plain = {"evaluator": None, "options": None, "output": "matches", "partial_match_limit": 99}
    return Arguments(**plain | given)


TASKS = {
    "an order": (PATTERN, ORDER, asked(latency=True, position=7)),
    "placements": (
        cep.parse("PATTERN SEQ(A a, NOT(D d), B b) WITHIN 30 units"),
        cep.TreePlan((("a", "b"), {"d": ("a", "b")})),
        asked(node_times=True),
    ),
    "a union": (
        OR,
        cep.UnionPlan([cep.OrderPlan(["b", "a"]), cep.OrderPlan(["c", "a"])]),
        asked(output="count"),
    ),
    "an automaton": (PATTERN, cep.automaton(PATTERN), asked(evaluator="SASE", output="compressed")),
    "no plan": (OR, None, asked(evaluator="sase", options={"postpone": True}, output="arrow")),
    "concepts": (
        OF_CONCEPTS.with_hierarchy(COMPANY),
        cep.OrderPlan(["a", "c"]),
        asked(output="arrow"),
    ),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_goes_to_json_and_back(name: str) -> None:
    pattern, plan, how = TASKS[name]
    task = task_for(pattern, plan, how)
    assert task.output == how.output and task == task_for(pattern, plan, task)
    packed = json.loads(json.dumps(task.packed()))
    assert unpacked(packed) == task


def test_the_evaluator_of_a_task_is_kept_with_another_plan() -> None:
    task = task_for(PATTERN, ORDER, asked())
    other = task_for(PATTERN, cep.OrderPlan(["a", "b", "c"]), task)
    assert other == replace(task, plan=cep.OrderPlan(["a", "b", "c"]))
    with pytest.raises(UnsupportedTaskError, match="lazy-nfa cannot run automaton plans"):
        task_for(PATTERN, cep.automaton(PATTERN), task)


@pytest.mark.parametrize("output", ["matches", "arrow", "count"])
def test_runs_see_no_arrow(output: str) -> None:
    """They find matches or count; whether as a table of Arrow or not is no matter of theirs."""
    seen: list[Task] = []

    class Noting(EveryCombination):
        def __init__(self, task: Task) -> None:
            super().__init__(task)
            seen.append(task)

    cep.plan_evaluator("noting", **DECLARED)(Noting)
    how = {"evaluator": "noting", "output": output}
    cep.evaluate(PATTERN, check_stream(), **how)
    detector = cep.Detector(PATTERN, **how)
    assert detector.output == cep.Detector.restore(detector.snapshot()).output == output
    assert [task.output for task in seen] == ["count" if output == "count" else "matches"] * 3
    assert {task.evaluator.name for task in seen} == {"noting"}
    assert {task.partial_match_limit for task in seen} == {PARTIAL_MATCH_LIMIT}


WORKLOAD = cep.Workload({"one": PATTERN, "two": "PATTERN SEQ(A a, B b) WITHIN 9 units"})


@pytest.mark.parametrize("make", [cep.Detector, cep.AdaptiveDetector])
def test_options_of_a_workload_are_a_mapping(make: Any) -> None:
    with pytest.raises(EvaluationError, match=r"query 'one': options must be a mapping"):
        make(WORKLOAD, options=3)


def test_options_of_a_workload_are_those_given_when_it_was_opened() -> None:
    options = {"postpone": False}
    detector = cep.Detector(WORKLOAD, evaluator="sase", options=options)
    options["postpone"] = 3
    detector.add("three", "PATTERN SEQ(B b, C c) WITHIN 9 units")
    assert cep.Detector.restore(detector.snapshot()).options == {"postpone": False}
