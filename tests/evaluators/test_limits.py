"""The partial-match limit is one for all nodes together, and exact."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import PartialMatchLimitError
from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.joins import engine
from cepbench.kernels.joins import pool
from cepbench.patterns.parse import parse
from cepbench.plans.model import OrderPlan, TreePlan
from cepbench.streams.event_stream import EventStream
from tests.evaluators.strategies import PLANNED, events_of, stream_of

pytestmark = pytest.mark.kernel

#: Everything is within one window, so whatever is made is kept: 4 events of each type.
STREAM = stream_of(events_of(" ".join(f"{'ABCD'[i % 4]}@{i}" for i in range(16))))
PATTERN = parse("PATTERN AND(A a, B b, C c, D d) WITHIN 1000 units")

#: Plans and what they store: pairs and triples of 4 events of each type.
PLANS = {
    "chain": (OrderPlan(["a", "b", "c", "d"]), 4**2 + 4**3, PLANNED),
    "bushy": (
        TreePlan((("a", "b"), ("c", "d"))),
        4**2 + 4**2,
        ["tree", "tree-instances", "zstream"],
    ),
}


@pytest.mark.parametrize(
    ("shape", "evaluator"), [(shape, name) for shape in PLANS for name in PLANS[shape][2]]
)
@pytest.mark.parametrize("output", ["matches", "count"])
def test_partial_matches_of_all_nodes_count_together(
    shape: str, evaluator: str, output: str
) -> None:
    plan, needed, _ = PLANS[shape]
    limits = {"evaluator": evaluator, "output": output}
    metrics = evaluate(PATTERN, STREAM, plan, partial_match_limit=needed, **limits).metrics
    assert metrics.peak_partial_matches == needed
    assert metrics.matches == 4**4  # which are not stored, and need not be few
    with pytest.raises(PartialMatchLimitError, match=f"more than {needed - 1} partial matches"):
        evaluate(PATTERN, STREAM, plan, partial_match_limit=needed - 1, **limits)


@pytest.mark.parametrize("plan", [OrderPlan(["a", "b", "c"]), TreePlan(("c", ("a", "b")))])
@given(
    times=st.lists(st.integers(0, 3), min_size=20, max_size=60).map(np.cumsum),
    kinds=st.lists(st.sampled_from("AABC"), min_size=60, max_size=60),
)
def test_the_limit_is_exact_however_steps_are_put_together(
    plan: OrderPlan | TreePlan, times: np.ndarray, kinds: list[str]
) -> None:
    """Rare events make long steps, within which more come into being than ever live at a time."""
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x <= b.x WITHIN 8 units")
    events = pd.DataFrame({"type": kinds[: len(times)], "time": times})
    events = events.assign(
        type=pd.Categorical(events["type"], list("ABC")), x=np.arange(len(events)) % 3
    )
    stream = stream_of(events)

    def outcome(limit: int) -> list[int] | str:
        try:
            result = evaluate(pattern, stream, plan, evaluator="tree", partial_match_limit=limit)
        except PartialMatchLimitError as error:
            return str(error)
        return [*result.nodes["created"], result.metrics.peak_partial_matches]

    with mock.patch.object(engine, "UNSORTED_EVENTS_PER_STEP", 1):
        moment_by_moment = [outcome(limit) for limit in range(1, 40, 3)]
    assert [outcome(limit) for limit in range(1, 40, 3)] == moment_by_moment


@pytest.mark.parametrize("output", ["arrow", "count"])
def test_the_room_for_sets_changes_no_match(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """A pool that is compacted every few sets, and one that never is."""
    rng = np.random.default_rng(3)
    events = pd.DataFrame(
        {"type": rng.choice(list("ABC"), 400), "time": np.arange(400), "x": rng.random(400)}
    )
    stream = EventStream.from_pandas(events, type="type", time="time")
    text = "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x WITHIN 12 units"
    plan = OrderPlan(["a", "b", "c"])
    found = []
    for room in (0, 1 << 20):
        monkeypatch.setattr(pool, "LEAST_ROOM", room)
        found.append(evaluate(text, stream, plan, output=output))
    few, many = found
    assert few.metrics.matches == many.metrics.matches > 100
    if output == "arrow":
        assert few.arrow.equals(many.arrow)
