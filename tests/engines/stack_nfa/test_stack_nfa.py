"""The stack NFA: its stacks by hand, its partitions, and any rounds."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.stack_nfa.engine import StackEngine
from cepbench.patterns.model import Attribute
from cepbench.patterns.parse import parse
from cepbench.planning.plans.tree import Tree
from cepbench.presentation.comparison.compare import compare
from tests.engines.detection.strategies import events_of, stream_of
from tests.engines.detection.test_metrics import steady_events

pytestmark = pytest.mark.kernel


def stacks_of(text: str, tree: Tree[str], events: pd.DataFrame) -> dict[str, list[Any]]:
    """Of each item the position of each instance, and that of its RIP."""
    pattern = parse(f"PATTERN {text}")
    run = StackEngine(BranchTask.of_one(pattern, tree))
    held = run.arrived(stream_of(events), 0)
    tops = run.arranged(held)
    found: dict[str, list[Any]] = {}
    for item, name in enumerate(pattern.positive_names):
        below = held[item - 1].positions.tolist() if item else []
        found[name] = [
            (position, below[top - 1] if item else None)
            for position, top in zip(held[item].positions.tolist(), tops[item], strict=True)
        ]
    return found


def test_stacks_by_hand() -> None:
    """Only active events are pushed, each points to the most recent one of the item before."""
    events = events_of("B@0 A@1 C@2 B@3 A@4 D@5 B@6 A@6 C@7 D@8")
    tree = ("a", ("b", "d"))
    assert stacks_of("SEQ(A a, B b, D d) WITHIN 10 units", tree, events) == {
        "a": [(1, None), (4, None), (7, None)],
        "b": [(3, 1), (6, 4)],
        "d": [(5, 3), (9, 6)],
    }
    result = evaluate(
        "PATTERN SEQ(A a, B b, D d) WITHIN 10 units", stream_of(events), evaluator="stack_nfa"
    )
    assert result.matches.to_numpy().tolist() == [[1, 3, 5], [1, 3, 9], [1, 6, 9], [4, 6, 9]]
    # The window is pushed into the stacks.
    assert stacks_of("SEQ(A a, B b) WITHIN 1 units", ("a", "b"), events)["b"] == []


def test_partitioned_stacks_by_hand() -> None:
    """An instance points to the most recent one of its partition; missing values are in none."""
    events = events_of("A@1 A@2 A@3 B@4 B@5 B@6 B@7").assign(k=[1, 2, None, 2, 1, None, 3])
    text = "SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 units"
    assert stacks_of(text, ("a", "b"), events) == {
        "a": [(0, None), (1, None)],
        "b": [(4, 0), (3, 1)],
    }


@pytest.mark.parametrize(
    ("conditions", "shared"),
    [
        ("a.k = b.k AND b.k = c.k", ["abc"]),
        ("a.k = c.k AND c.k = b.k AND n.k = b.k", ["abcn"]),
        ("a.k = b.k AND a.x = b.x AND b.k = c.k AND c.x = a.x AND n.x = a.x", ["abc", "abcn"]),
        # Not through a negated variable, nor if an item is free.
        ("a.k = b.k AND n.k = b.k AND n.k = c.k", []),
        ("a.k = b.k AND c.k > b.k", []),
    ],
)
def test_values_that_all_events_share(conditions: str, shared: list[str]) -> None:
    branch = parse(f"PATTERN SEQ(A a, B b, NOT(B n), C c) WHERE {conditions} WITHIN 9 units")
    found = CompiledBranch.of(branch).partitions
    assert [sorted(part) for part in found] == [list(names) for names in shared]
    for part in found:
        assert len({value.name for value in part.values() if isinstance(value, Attribute)}) == 1


@pytest.mark.parametrize("evaluator", ["stack-nfa", "hierarchical-stacks"])
def test_what_the_search_extends(evaluator: str) -> None:
    """Sequences are extended from the last item on, and only those that conditions leave."""
    events = pd.DataFrame({"type": list("AABBC"), "time": range(5), "x": [0.0, 1.0, 2.0, 0.5, 1.0]})
    text = "PATTERN SEQ(A a, B b, C c) WHERE b.x < c.x AND a.x < b.x WITHIN 9 units"
    metrics = evaluate(text, stream_of(events), evaluator=evaluator).metrics
    # Both b are compared with c, both a with the only b that is left.
    assert (metrics.matches, metrics.partial_matches_created, metrics.comparisons) == (1, 1, 4)


def test_it_is_compared_with_engines_that_run_plans() -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 20 units"
    found = compare(
        text, stream_of(steady_events(300)), generators=["TRIVIAL", "DP-B"],
        evaluators=["tree", "stack_nfa"], repetitions=1, seconds=0,
    )  # fmt: skip
    rows = found[["generator", "evaluator", "status"]].to_numpy().tolist()
    assert rows == [
        ["none", "stack-nfa", "ok"], ["TRIVIAL", "tree", "ok"], ["DP-B", "tree", "ok"]
    ]  # fmt: skip
    assert found["matches"].nunique() == 1


def test_kernels_are_compiled_once() -> None:
    """Whatever the pattern: one item, no negation, no condition."""
    from cepbench.engines.stack_nfa.kernels import search

    if not hasattr(search.search, "signatures"):
        pytest.skip("kernels are not compiled")
    for text in ("SEQ(A a)", "SEQ(NOT(B n), A a)", "SEQ(A a, B b, A c) WHERE a.x < c.x"):
        evaluate(
            f"PATTERN {text} WITHIN 5 units", stream_of(steady_events(20)), evaluator="stack-nfa"
        )
    assert len(search.search.signatures) == 1
