"""The engines that go event by event: what they hold, for how long, and what they have tested."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.engines.detection.strategies import cases, events_of, plans_for, stream_of
from tests.engines.detection.test_metrics import most_at_once, part_of, spans, steady_events
from tests.naive.matcher import naive_matches

INSTANCES = ("lazy-nfa-instances", "tree-instances")

each_engine = pytest.mark.parametrize("evaluator", INSTANCES)

#: The four cameras of the paper's Figure 1, with the order of its Figure 1(b).
CAMERAS = parse("PATTERN SEQ(A a, B b, C c, D d) WITHIN 10 units")
LAZY = OrderPlan(["d", "a", "b", "c"])
PASSING = "A@1 A@2 B@3 C@4 D@5"


@pytest.mark.kernel
@each_engine
def test_the_four_cameras(evaluator: str) -> None:
    """Nothing happens until d arrives; then each a, and the one b, and the one c are retrieved."""
    result = evaluate(CAMERAS, stream_of(events_of(PASSING)), LAZY, evaluator=evaluator)
    nodes, metrics = result.nodes.set_index("variables"), result.metrics
    assert result.matches.to_numpy().tolist() == [[0, 2, 3, 4], [1, 2, 3, 4]]
    created = {"a, d": 2, "a, b, d": 2, "a, b, c, d": 2}
    assert nodes["created"].to_dict() == {"a": 2, "b": 1, "c": 1, "d": 1, **created}
    assert metrics.partial_matches_created == metrics.peak_partial_matches == 4
    assert metrics.peak_buffered_events == 5
    # d with both a; (d, a) with b, twice; (d, a, b) with c, twice.
    assert nodes["comparisons"].to_dict() == {**dict.fromkeys("abcd", 0), **created}
    # The engine of joins has dropped what nothing will extend.
    joins = evaluate(CAMERAS, stream_of(events_of(PASSING)), LAZY, evaluator="lazy-nfa").metrics
    assert (joins.partial_matches_created, joins.peak_partial_matches) == (4, 0)


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("later", "created", "peak"), [("D@11", 8, 8), ("D@12", 6, 4), ("D@13", 4, 4)]
)
@each_engine
def test_instances_leave_when_their_first_event_is_out_of_the_window(
    evaluator: str, later: str, created: int, peak: int
) -> None:
    """A second d finds both a, one or none; what the first one found is there for as long."""
    stream = stream_of(events_of(f"{PASSING} {later}"))
    metrics = evaluate(CAMERAS, stream, LAZY, evaluator=evaluator).metrics
    assert metrics.partial_matches_created == created
    assert metrics.peak_partial_matches == peak


@pytest.mark.kernel
@each_engine
@given(data=st.data())
def test_what_is_stored_is_what_the_window_holds(evaluator: str, data: st.DataObject) -> None:
    """Of sequences as of conjunctions, neither more nor less at the worst moment."""
    case = data.draw(cases(sizes=(2, 4)))
    plan = data.draw(plans_for(evaluator, case.pattern.names))
    metrics = evaluate(case.pattern, case.stream, plan, evaluator=evaluator).metrics
    assert metrics.peak_partial_matches == most_at_once(case, spans(case, plan, single=False))
    leaves = spans(case, TreePlan(plan.tree), single=True)
    assert metrics.peak_buffered_events == most_at_once(case, leaves)


@pytest.mark.kernel
@each_engine
@given(data=st.data())
def test_every_node_makes_the_matches_of_its_part_of_the_pattern(
    evaluator: str, data: st.DataObject
) -> None:
    case = data.draw(cases(sizes=(1, 4)))
    plan = data.draw(plans_for(evaluator, case.pattern.names))
    nodes = evaluate(case.pattern, case.stream, plan, evaluator=evaluator).nodes
    for names, created in zip(nodes["variables"], nodes["created"], strict=True):
        part = part_of(case.pattern, set(names.split(", ")))
        assert created == len(naive_matches(part, case.events))


@pytest.mark.kernel
@each_engine
def test_instances_that_hold_a_consumed_event_leave(evaluator: str) -> None:
    pattern = parse("PATTERN SEQ(A a, B b, C c) STRATEGY consuming WITHIN 1000 units")
    block = "A@{} B@{} B@{} C@{}"
    text = " ".join(block.format(*range(4 * i, 4 * i + 4)) for i in range(40))
    stream = stream_of(events_of(text))
    result = evaluate(pattern, stream, OrderPlan(["a", "b", "c"]), evaluator=evaluator)
    assert result.matches.to_numpy().tolist() == [[4 * i, 4 * i + 1, 4 * i + 3] for i in range(40)]
    # In each block a with either b; the second b of all blocks before waits on.
    assert result.metrics.peak_partial_matches == 2
    assert result.metrics.partial_matches_created == 2 * 40
    assert result.metrics.peak_buffered_events == 4 + 39


#: What makes the arrays grow: many events, instances, cells, matches within a window.
CROWDED = {
    "sequence": "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 200 units",
    "conjunction": "AND(A a, B b, C c) WHERE a.x < c.x WITHIN 60 units",
    "sets": "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x AND b.x > a.x WITHIN 60 units",
    "sets at the end": "SEQ(A a, KL(B b)) WHERE b[i].x > b[i-1].x AND sum(b.x) > 1 WITHIN 60 units",
    "negation": "SEQ(A a, NOT(B n), C c) WHERE n.x > a.x WITHIN 200 units",
    "waiting": "AND(A a, C c, NOT(B n)) WHERE n.x > a.x + 1 WITHIN 100 units",
    "consuming": "SEQ(A a, B b, C c) WHERE a.x < c.x STRATEGY consuming WITHIN 200 units",
    "consuming sets": "AND(A a, KL(B b)) WHERE b[i].x > b[i-1].x STRATEGY consuming WITHIN 60 units",
    "consuming, waiting": "SEQ(A a, C c, NOT(B n)) WHERE n.x > 2 STRATEGY consuming WITHIN 90 units",
}


@pytest.mark.parametrize("name", CROWDED)
@each_engine
def test_crowded_windows(evaluator: str, name: str) -> None:
    pattern = parse(f"PATTERN {CROWDED[name]}")
    stream = stream_of(steady_events(600))
    plan = OrderPlan(pattern.positive_names[::-1])
    expected = evaluate(pattern, stream, plan, evaluator="tree")
    assert expected.metrics.matches > 100
    found = evaluate(pattern, stream, plan, evaluator=evaluator)
    pd.testing.assert_frame_equal(found.matches, expected.matches)
    counted = evaluate(pattern, stream, plan, evaluator=evaluator, output="count").metrics
    assert counted.matches == expected.metrics.matches
    detector = Detector(pattern, plan, evaluator=evaluator)
    pieces = []
    for batch in stream.batches(150):
        pieces.append(detector.push(batch))
        detector = Detector.restore(detector.snapshot())
    pieces.append(detector.flush())
    its = detector.metrics()
    assert len(pd.concat(pieces)) == expected.metrics.matches
    assert its.comparisons == found.metrics.comparisons
    assert its.peak_partial_matches == found.metrics.peak_partial_matches


def test_both_take_the_plans_of_their_columnar_twins() -> None:
    for name in ("lazy-nfa", "tree"):
        one, other = EVALUATORS[name], EVALUATORS[f"{name}-instances"]
        assert (one.kinds, one.some_kinds) == (other.kinds, other.some_kinds)
        assert set(other.strategies) < set(one.strategies)
