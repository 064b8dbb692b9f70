"""Only what an event still to come can extend is kept, whichever side of a join it is on."""

from __future__ import annotations

from typing import Any

import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.engines.detection.strategies import events_of, stream_of

pytestmark = pytest.mark.kernel

#: Time stands still within a step of one tick: 30 events, all within a window of 12.
STREAM = stream_of(events_of(" ".join(f"{'ABC'[i % 3]}@{i // 3}" for i in range(30))))

#: Plans of a sequence of a, b and c, and the nodes that hold rows at the end of any step.
KEPT = {
    "a, b, c": (OrderPlan(["a", "b", "c"]), {"a", "a, b"}),
    "c, a, b": (OrderPlan(["c", "a", "b"]), {"a", "b"}),
    "b, c, a": (OrderPlan(["b", "c", "a"]), {"b", "a"}),
    "b, a, c": (OrderPlan(["b", "a", "c"]), {"a", "a, b"}),
    "(a, b), c": (TreePlan((("a", "b"), "c")), {"a", "a, b"}),
    "c, (a, b)": (TreePlan(("c", ("a", "b"))), {"a", "a, b"}),
    "c, (b, a)": (TreePlan(("c", ("b", "a"))), {"a", "a, b"}),
    "(a, c), b": (TreePlan((("a", "c"), "b")), {"a", "b"}),
    "b, (c, a)": (TreePlan(("b", ("c", "a"))), {"a", "b"}),
    "a, (b, c)": (TreePlan(("a", ("b", "c"))), {"a", "b"}),
    "(c, b), a": (TreePlan((("c", "b"), "a")), {"a", "b"}),
}


@pytest.mark.parametrize("shape", KEPT)
def test_a_sequence_keeps_what_waits_for_a_later_event(shape: str) -> None:
    plan, expected = KEPT[shape]
    pattern = parse("PATTERN SEQ(A a, B b, C c) WITHIN 12 units")
    nodes = evaluate(pattern, STREAM, plan, evaluator="tree").nodes
    assert set(nodes.loc[nodes["peak_stored"] > 0, "variables"]) == expected
    assert (nodes["created"] > 0).all()


@pytest.mark.parametrize("tree", [(("a", "b"), "c"), ("c", ("b", "a")), (("c", "a"), "b")])
def test_a_conjunction_keeps_everything_but_matches(tree: Any) -> None:
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 12 units")
    nodes = evaluate(pattern, STREAM, TreePlan(tree)).nodes
    assert (nodes["peak_stored"].iloc[:-1] > 0).all()
    assert nodes["peak_stored"].iloc[-1] == 0
