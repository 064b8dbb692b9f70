"""A switch that takes over the buffers of the running plan changes no match."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cepbench.adaptation.detector import AdaptiveDetector
from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.zstream.engine import ZStreamEngine
from cepbench.evaluators.zstream.zstream import ZSTREAM
from cepbench.patterns.parse import parse
from cepbench.plans.model import TreePlan
from tests.budgets import examples
from tests.evaluators.checks import found_in
from tests.evaluators.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    able,
    branch_plans,
    construct_cases,
)
from tests.evaluators.strategies import batches_of, events_of, stream_of
from tests.naive.matcher import labelled_matches

pytestmark = pytest.mark.kernel

REBUILDING = replace(ZSTREAM, adopts=False)


@pytest.mark.parametrize("family", ["negation", "nested negation", "disjunction", "groups"])
@given(data=st.data())
@examples(10)
def test_switches_inside_a_window(family: str, data: st.DataObject) -> None:
    """From every plan to every other one, with the buffers and without."""
    case = data.draw(construct_cases((FAMILIES | GROUP_FAMILIES)[family], sizes=(3, 4)))
    pattern = case.pattern
    assume(pattern.window.length and "zstream" in able(pattern))
    trees = branch_plans("zstream", pattern).filter(lambda plan: plan.kind == "tree")
    plan = data.draw(trees)
    size = data.draw(st.integers(1, 9))
    detectors = [
        AdaptiveDetector(
            pattern, evaluator=evaluator, policy="static", initial=plan, batch_size=size, output=output
        )
        for evaluator in (ZSTREAM, REBUILDING)
        for output in ("matches", "count")
    ]  # fmt: skip
    found, counted = [], [0, 0]
    for batch in data.draw(batches_of(case.stream)):
        adopted, number, rebuilt, its_number = (each.push(batch) for each in detectors)
        found += found_in(pattern, adopted)
        assert set(found_in(pattern, rebuilt)) == set(found_in(pattern, adopted))
        counted[0] += number
        counted[1] += its_number
        assert counted == [len(found)] * 2
        plan = data.draw(trees)
        for each in detectors:
            each.switch(plan)
    found += found_in(pattern, detectors[0].flush())
    assert len(found) == len(set(found)), "the same match twice"
    assert set(found) == labelled_matches(pattern, case.events)


def test_buffers_of_the_same_variables_are_not_made_again(monkeypatch) -> None:
    """Whatever the plan inside them is; nothing that no later event joins is made."""
    adopted, made = [], []
    adopt, make = ZStreamEngine.adopt, ZStreamEngine._count
    monkeypatch.setattr(
        ZStreamEngine, "adopt", lambda self, old: adopted.append(adopt(self, old)) or adopted[-1]
    )
    monkeypatch.setattr(
        ZStreamEngine,
        "_count",
        lambda self, assembly, found: (
            made.append(assembly.tallies[:, 0].tolist()) or make(self, assembly, found)
        ),
    )
    stream = stream_of(events_of("A@1 B@2 C@3 D@4 A@5 A@6 B@7 C@8 C@9 D@10 A@11 D@12 A@13"))
    pattern = parse("PATTERN SEQ(A a, B b, C c, D d, A e) WITHIN 20 units")
    below = ((("a", "b"), "c"), "d"), (("a", ("b", "c")), "d"), (("a", "b"), ("c", "d"))
    plans = [TreePlan((tree, "e")) for tree in below]
    expected = len(evaluate(pattern, stream, plans[0]).matches)
    detector = AdaptiveDetector(pattern, evaluator="zstream", policy="static", initial=plans[0])
    found = len(detector.push(stream[:8]))
    for plan, is_made in zip(
        plans[1:], ([], [("a", "b"), ("c", "d"), ("a", "b", "c", "d")]), strict=True
    ):
        made.clear()
        detector.switch(plan)
        engine = detector._run._inner._run._opened[0]
        (tally,) = made
        names = [names for names, its in zip(engine.layout.nodes, tally, strict=True) if its]
        assert names == is_made
    assert adopted == [True, True]
    assert found + len(detector.push(stream[8:])) + len(detector.flush()) == expected


def test_what_no_round_has_assembled_is_not_assembled_by_a_switch() -> None:
    """Events of idle rounds are new to the next one, which would join them again."""
    pattern = parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 20 units")
    right, left = TreePlan(("a", ("b", ("c", "d")))), TreePlan(((("a", "b"), "c"), "d"))
    stream = stream_of(events_of("A@1 B@2 C@3 D@4 A@5 B@6 C@7 D@8"))
    detector = AdaptiveDetector(pattern, evaluator="zstream", policy="static", initial=right)
    found = len(detector.push(stream[:4])) + len(detector.push(stream[4:6]))
    detector.switch(left)
    assert found + len(detector.push(stream[6:])) == len(evaluate(pattern, stream, left).matches)
    assert found == 1
