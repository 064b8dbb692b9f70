"""A switch that takes over the buffers of the running plan changes no match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cepbench.engines.adaptation.detector import AdaptiveDetector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.zstream.engine import ZStreamEngine
from cepbench.engines.zstream.zstream import ZSTREAM
from cepbench.kernels import counts
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from cepbench.streams.numeric import NumericReader
from tests.engines.detection.strategies import events_of, stream_of

pytestmark = pytest.mark.kernel

REBUILDING = replace(ZSTREAM, adopts=False)


def engine_along(pattern: Pattern, tree: Any, reader: NumericReader) -> ZStreamEngine:
    task = replace(BranchTask.of_one(pattern, tree), reader=reader, limit=999)
    return ZStreamEngine(task, batch_size=999, hashing=True, as_given=False)


def test_buffers_of_the_same_variables_are_not_made_again() -> None:
    """Whatever the plan inside them is; nothing that no later event joins is made."""
    stream = stream_of(events_of("A@1 B@2 C@3 D@4 A@5 A@6 B@7 C@8 C@9 D@10 A@11 D@12 A@13"))
    pattern = parse("PATTERN SEQ(A a, B b, C c, D d, A e) WITHIN 20 units")
    below = ((("a", "b"), "c"), "d"), (("a", ("b", "c")), "d"), (("a", "b"), ("c", "d"))
    expected = len(evaluate(pattern, stream, TreePlan((below[0], "e"))).matches)
    reader = NumericReader()
    engine = engine_along(pattern, (below[0], "e"), reader)
    found = engine.run(stream[:8], 0, ended=False).number
    for tree, is_made in (
        (below[1], []),
        (below[2], [("a", "b"), ("c", "d"), ("a", "b", "c", "d")]),
    ):
        old, engine = engine, engine_along(pattern, (tree, "e"), reader)
        assert engine.adopt(old)
        (counted,) = engine.node_counts()
        names = zip(counted.variables, counted.counts[:, counts.CREATED], strict=True)
        assert [names for names, made in names if made] == is_made
    found += engine.run(stream[8:], 8, ended=False).number
    assert found + engine.run(None, 13, ended=True).number == expected


def test_a_detector_hands_over_its_buffers() -> None:
    """So that a switch takes no assembly of the window's events."""
    stream = stream_of(events_of("A@1 B@2 C@3 A@4 B@5 C@6 A@7 B@8 C@9"))
    pattern = parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 20 units")
    created = []
    for evaluator in (ZSTREAM, REBUILDING):
        detector = AdaptiveDetector(
            pattern, evaluator=evaluator, policy="static",
            initial=TreePlan(((("a", "b"), "c"), "d")),
        )  # fmt: skip
        detector.push(stream)
        detector.push(stream_of(events_of("D@10")))
        detector.switch(TreePlan((("a", ("b", "c")), "d")))
        detector.push(stream_of(events_of("D@11")))
        created.append(detector.metrics().partial_matches_created)
    assert 0 < created[0] < created[1]


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
