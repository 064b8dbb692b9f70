"""What an evaluator or a method does not declare is refused by name, with the names of those that do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cepbench as cep
from cepbench.engines.detection.tasks import constructs_of, runs_some
from cepbench.engines.runs.protocol import CONSTRUCTS, Evaluator
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PlanError,
    SnapshotError,
    StreamError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.patterns.model import STRATEGIES
from tests.contract.entries import EVALUATORS
from tests.contract.live import events, opened, written_plan
from tests.contract.snapshots import header_of, with_header

EACH = pytest.mark.parametrize("name", EVALUATORS)

STREAM = events(0, 60)

#: A pattern of each construct, with as few others as it needs.
OF_CONSTRUCTS = {
    "SEQ": "SEQ(A a, B b)",
    "AND": "AND(A a, B b)",
    "OR": "OR(SEQ(A a, B b), SEQ(C c, D d))",
    "NOT": "SEQ(A a, NOT(B n), C c)",
    "KL": "SEQ(A a, KL(B b), C c)",
    "GROUP": "SEQ(A a, GROUP(B b, +), C c)",
    "nesting": "SEQ(A a, AND(B b, C c))",
    "concept": "SEQ(X a, C c)",
}
CONCEPTS = cep.ConceptHierarchy({"X": ["A", "B"]})

ORDER, TREE = cep.OrderPlan(["a", "b"]), cep.TreePlan(("a", "b"))
PLAIN = cep.parse(f"PATTERN {OF_CONSTRUCTS['SEQ']} WITHIN 9 units")


def test_there_is_a_pattern_of_every_construct() -> None:
    assert {*OF_CONSTRUCTS} == {*CONSTRUCTS}
    for construct, text in OF_CONSTRUCTS.items():
        pattern = cep.parse(f"PATTERN {text} WITHIN 9 units").with_hierarchy(CONCEPTS)
        assert construct in constructs_of(pattern)


def evaluated(pattern: cep.Pattern, plan: Any, **how: Any) -> cep.Result:
    return cep.evaluate(pattern, STREAM, plan, **how)


def undeclared(entry: Evaluator) -> Iterator[tuple[str, Callable[[Evaluator], bool], Any, type]]:
    """What an evaluator lacks, who has it, a task that needs it, and the error."""
    for construct, text in OF_CONSTRUCTS.items():
        pattern = cep.parse(f"PATTERN {text} WITHIN 9 units").with_hierarchy(CONCEPTS)
        if not constructs_of(pattern) - {construct} <= {*entry.constructs}:
            continue
        words = "items of a concept (X)" if construct == "concept" else construct
        yield (
            f"run {words}", lambda e, its=construct: its in e.constructs,
            {"pattern": pattern, "plan": written_plan(pattern, entry)}, UnsupportedPatternError,
        )  # fmt: skip
    for strategy in STRATEGIES:
        by = "(s)" if strategy == "partition_contiguity" else ""
        pattern = cep.parse(f"PATTERN SEQ(A a, B b) STRATEGY {strategy}{by} WITHIN 9 units")
        yield (
            f"run STRATEGY {strategy}", lambda e, its=strategy: its in e.strategies,
            {"pattern": pattern, "plan": written_plan(pattern, entry)}, UnsupportedPatternError,
        )  # fmt: skip
    plain = {"pattern": PLAIN, "plan": written_plan(PLAIN, entry)}
    for plan in (ORDER, TREE, cep.automaton(PLAIN)):
        yield (
            f"run {plan.kind} plans", lambda e, its=plan.kind: runs_some(e, its),
            {"pattern": PLAIN, "plan": plan}, UnsupportedTaskError,
        )  # fmt: skip
    yield (
        "run without a plan",
        lambda e: e.without_plan,
        plain | {"plan": None},
        UnsupportedTaskError,
    )
    for output in ("matches", "count", "compressed"):
        yield (
            f'give output="{output}"', lambda e, its=output: its in e.outputs,
            plain | {"output": output}, UnsupportedTaskError,
        )  # fmt: skip
    yield "measure latency", lambda e: e.latency, plain | {"latency": True}, UnsupportedTaskError
    yield (
        "measure times of nodes", lambda e: e.node_times, plain | {"node_times": True},
        UnsupportedTaskError,
    )  # fmt: skip


@EACH
def test_what_is_declared_runs_and_nothing_else(name: str) -> None:
    entry = cep.EVALUATORS[name]
    for words, has, task, error in undeclared(entry):
        given = {**task, "evaluator": name}
        pattern, plan = given.pop("pattern"), given.pop("plan")
        for run in (cep.Detector, evaluated):
            if run is evaluated and words == "run without a plan":
                continue  # it plans by itself
            if has(entry):
                run(pattern, plan, **given)
                continue
            with pytest.raises(error) as refused:
                run(pattern, plan, **given)
            able = [its.name for its in cep.EVALUATORS.values() if has(its)]
            due = f"the evaluator {name} cannot {words}; {', '.join(able) or 'no other one'} can"
            assert due in str(refused.value)
    if not entry.node_times:
        with pytest.raises(UnsupportedTaskError, match="cannot count what happens at nodes; lazy"):
            cep.Detector(PLAIN, written_plan(PLAIN, entry), evaluator=name).node_metrics()


@EACH
def test_options(name: str) -> None:
    entry = cep.EVALUATORS[name]
    task = {"plan": written_plan(PLAIN, entry), "evaluator": name}
    its = cep.Detector(PLAIN, **task)
    assert its.options == {key: option.default for key, option in entry.options.items()}
    for key, option in entry.options.items():
        assert option.check(option.default, key, EvaluationError) == option.default
        with pytest.raises(EvaluationError, match=f"{name}: {key}"):
            cep.Detector(PLAIN, **task, options={key: object()})
    for given, words in (
        ({"nothing": 1}, rf"{name} has no option 'nothing'; it has {', '.join(entry.options) or 'none'}"),
        ([("nothing", 1)], "options must be a mapping"),
    ):  # fmt: skip
        with pytest.raises(EvaluationError, match=words):
            cep.Detector(PLAIN, **task, options=given)


#: What no detector takes: arguments, the error, and its words.
NEVER: list[tuple[dict[str, Any], type[CepbenchError], str]] = [
    ({"output": "both"}, EvaluationError, "one of matches, arrow, count, compressed, not 'both'"),
    ({"partial_match_limit": 0}, EvaluationError, "partial_match_limit must be at least 1"),
    ({"partial_match_limit": 2**63}, EvaluationError, "partial_match_limit must be at most"),
    ({"position": -1}, EvaluationError, "position must be at least 0"),
    ({"position": 2**63 - 3}, EvaluationError, "position must be at most 4,611,686,018,427,387,904"),
    ({"latency": "yes"}, EvaluationError, "latency"),
    ({"node_times": 2}, EvaluationError, "node_times"),
]  # fmt: skip


@EACH
def test_arguments_that_mean_nothing(name: str) -> None:
    entry = cep.EVALUATORS[name]
    plan = written_plan(PLAIN, entry)
    for given, error, words in NEVER:
        with pytest.raises(error, match=words):
            cep.Detector(PLAIN, plan, evaluator=name, **given)
    if plan is not None:
        for names, words in (("a", "lacks variable 'b'"), ("abc", "'c' that the pattern has not")):
            its = cep.OrderPlan([*names]) if plan.kind == "order" else tree_of(names)
            with pytest.raises(PlanError, match=words):
                cep.Detector(PLAIN, its, evaluator=name)


def tree_of(names: str) -> cep.TreePlan:
    return cep.TreePlan(names if len(names) == 1 else ((names[0], names[1]), names[2]))


def test_an_unknown_name_suggests_the_nearest() -> None:
    for name in EVALUATORS:
        with pytest.raises(
            EvaluationError, match=rf"no evaluator '{name}x'.*did you mean '{name}'"
        ):
            cep.Detector(PLAIN, ORDER, evaluator=f"{name}x")
    for name in cep.AGGREGATORS:
        with pytest.raises(EvaluationError, match=rf"did you mean '{name}'"):
            cep.Aggregator("PATTERN SEQ(A a) AGG COUNT WITHIN 9 units", f"{name}x")


@pytest.mark.parametrize("name", [*EVALUATORS, *cep.AGGREGATORS])
def test_nothing_after_the_end(name: str) -> None:
    """Nor anything of another time or kind before; a snapshot of another entry is none of this one."""
    _, _, live = next(opened(name, STREAM))
    earlier = re.escape("before the last event pushed")
    for batch, words in (
        (events(0, 15), rf"row 60: .*{earlier}"),
        (
            STREAM.to_pandas(),
            "must be an EventStream, not a DataFrame|EventStream, not a DataFrame",
        ),
    ):
        with pytest.raises(StreamError, match=words):
            live.push(batch)
    assert live.position == 60
    if name in EVALUATORS:
        entry = cep.EVALUATORS[name]
        snapshot = live.snapshot()
        for changed, words in (
            ({"evaluator": "nothing-like-it"}, "no evaluator 'nothing-like-it'"),
            ({"options": {"nothing": 1}}, "has no option 'nothing'"),
        ):
            with pytest.raises(SnapshotError, match=words):
                type(live).restore(with_header(snapshot, header_of(snapshot) | changed))
        assert entry.snapshots
    live.flush()
    for action in (lambda: live.push(STREAM), live.flush, live.snapshot):
        with pytest.raises(EvaluationError, match="was flushed; make a new one"):
            action()


@EACH
def test_too_many_partial_matches(name: str) -> None:
    """It stops before more is stored than allowed, says what can be done, and is not used again."""
    entry = cep.EVALUATORS[name]
    pattern = cep.parse(
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 9999 units"
    )
    task = {"plan": written_plan(pattern, entry), "evaluator": name}
    plenty = cep.Detector(pattern, **task)
    plenty.push(events(0, 120))
    needed = plenty.metrics().peak_partial_matches
    if not needed > 100:  # it stores none, or does not say
        return
    if plenty.metrics().runs is None:  # runs have limits of other kinds, too
        cep.Detector(pattern, **task, partial_match_limit=int(needed)).push(events(0, 120))
    live = cep.Detector(pattern, **task, partial_match_limit=100)
    with pytest.raises(cep.errors.PartialMatchLimitError, match=r"100 (partial|runs).*limit"):
        live.push(events(0, 120))
    assert not live.metrics().peak_partial_matches > 100
    for action in (lambda: live.push(events(120, 130)), live.snapshot):
        with pytest.raises(EvaluationError, match=r"too many partial matches|failed in a push"):
            action()
