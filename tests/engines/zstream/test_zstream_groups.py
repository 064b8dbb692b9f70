"""Groups in ZStream's engine: formed at their node, wherever the plan places them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError
from tests.budgets import only_compiled
from tests.engines.detection.strategies import TYPES, event_frames, events_of, stream_of
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel

#: On single events, finished groups, and both with variables that may be joined above the group.
CONDITIONS = (
    "b.x >= a.x", "b.y != d.y", "b.x < c.x", "b.s = a.s", "b.y >= 0",
    "sum(b.y) > 0", "sum(b.x) > 1", "count(b.x) > 1", "max(b.x) > c.x", "avg(b.x) < d.x",
    "b[1].y < b[last].y", "b[i].x >= b[i-1].x", "sum(b.y) > 2 * c.y", "a.y <= c.y",
)  # fmt: skip


@given(data=st.data())
def test_a_node_keeps_the_records_that_have_a_group(data: st.DataObject) -> None:
    """As many as the twin finds, if no later event is needed to make them."""
    size = data.draw(st.sampled_from("+23"))
    condition = data.draw(st.sampled_from([c for c in CONDITIONS if "d." not in c]))
    events = data.draw(event_frames("ABBC", most=18))
    events.loc[len(events)] = ["D", max(events["time"], default=0) + 1, 0.0, 0, "p"]
    events["type"] = pd.Categorical(events["type"], categories=TYPES)
    pair = f"SEQ(A a, GROUP(B b, {size}), C c"
    where = f"WHERE {condition} WITHIN 99 units"
    groups = naive_matches(cep.parse(f"PATTERN {pair}) {where}"), events)
    nodes = cep.evaluate(
        f"PATTERN {pair}, D d) {where}", stream_of(events), cep.TreePlan((("a", "c"), "d")),
        evaluator="zstream",
    ).nodes  # fmt: skip
    created = nodes.set_index("variables")["created"]["a, c"]
    assert created == len({(a, c) for a, _, c in groups})


@pytest.mark.parametrize(
    ("structure", "condition"),
    [
        ("SEQ(A a, GROUP(B b, +), C c, D d)", "b.x > d.x"),
        ("SEQ(A a, GROUP(B b, +), C c, D d)", "sum(b.x) > d.x"),
        ("SEQ(D d, A a, GROUP(B b, +), C c)", "b.x != d.x"),
        ("SEQ(GROUP(B b, +), A a, C c, D d)", "a.x < d.x"),
        ("SEQ(A a, C c, D d, GROUP(B b, +))", "a.x < c.x"),
        ("AND(SEQ(A a, GROUP(B b, +), C c), B d)", "a.x < c.x"),
    ],
)
def test_a_group_that_depends_on_what_is_joined_above(structure: str, condition: str) -> None:
    """By a condition, the window, or by not being that event: it is larger without it."""
    rng = np.random.default_rng(4)
    events = pd.DataFrame({"type": rng.choice(list("ABBCD"), 80), "time": np.arange(80)})
    events["x"] = rng.integers(0, 4, 80)
    text = f"PATTERN {structure} WHERE {condition} AND count(b.x) < 3 WITHIN 14 units"
    pattern, stream = cep.parse(text), stream_of(events)
    expected = naive_matches(pattern, events)
    assert len(expected) > 2
    for tree in ((("a", "c"), "d"), ("a", ("c", "d")), (("a", "d"), "c")):
        found = cep.evaluate(pattern, stream, cep.TreePlan(tree), evaluator="zstream")
        assert {*found.matches.itertuples(index=False, name=None)} == expected
    low = cep.TreePlan((("a", "c"), "d"), placements={"b": ("a", "c")})
    with pytest.raises(PlanError, match="places 'b', a group, at the node over a, c; place it at"):
        cep.evaluate(pattern, stream, low, evaluator="zstream")


@pytest.mark.parametrize(
    ("size", "condition", "kept"),
    [
        # Figure 6's pairs of a and c, with their groups b2 b3 b5 or b2 b3 and b3 b5.
        ("+", "sum(b.v) > 9", 1),
        ("+", "sum(b.v) > 10", 0),
        ("2", "sum(b.v) > 7", 1),
        ("2", "sum(b.v) > 8", 0),
        ("*", "count(b.v) < 3", 1),
        ("+", "b.v > a.v", 1),
    ],
)
def test_figure_6_below_the_root(size: str, condition: str, kept: int) -> None:
    events = events_of("A@1 B@2 B@3 B@5 C@6 D@7 A@8 C@9 D@10")
    events["v"] = [2, 2, 3, 5, 0, 0, 0, 0, 0]
    pattern = (
        f"PATTERN SEQ(A a, GROUP(B b, {size}), C c, D d) WHERE {condition} AND c.v <= d.v "
        "WITHIN 6 units"
    )
    made = {}
    for below in (("a", "c"), ("a", "c", "d")):
        plan = cep.TreePlan((("a", "c"), "d"), placements={"b": below})
        for evaluator in ("zstream", "tree", "lazy-nfa"):
            found = cep.evaluate(pattern, stream_of(events), plan, evaluator=evaluator)
            nodes = found.nodes.set_index("variables")["created"]
            made[evaluator, below] = nodes["a, c"]
            assert len(found.matches) == kept
    # Groups are formed from two pairs of a and c, at their node or at the root.
    assert made["zstream", ("a", "c")] == kept
    assert {*made.values()} - {kept} == {2}


@only_compiled
@pytest.mark.parametrize("size", ["+", "2", "*"])
def test_sums_of_many_groups(size: str) -> None:
    """Groups in the middle of long streams, in many rounds: whole and fractional values."""
    rng = np.random.default_rng(6)
    events = pd.DataFrame({"type": rng.choice(list("ABBCD"), 600), "time": np.arange(600) // 2})
    for values in (rng.integers(0, 9, 600), rng.random(600) * 9):
        events["x"] = np.where(rng.random(600) < 0.1, np.nan, values)
        found: dict[Any, Any] = {}
        for below in (("a", "c"), ("a", "c", "d")):
            for rounds in (64, 4096):
                found[below, rounds] = cep.evaluate(
                    f"PATTERN SEQ(A a, GROUP(B b, {size}), C c, D d) "
                    "WHERE sum(b.x) > 8 AND b.x > a.x WITHIN 12 units",
                    stream_of(events), cep.TreePlan((("a", "c"), "d"), placements={"b": below}),
                    evaluator="zstream", options={"batch_size": rounds},
                )  # fmt: skip
        first, *others = found.values()
        assert len(first.matches) > 100
        for other in others:
            pd.testing.assert_frame_equal(other.matches, first.matches)
