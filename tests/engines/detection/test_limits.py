"""The partial-match limit is one for all nodes together, and exact."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.pieces import pieces_of
from cepbench.errors import PartialMatchLimitError
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.budgets import only_compiled
from tests.drawn_events import drawn_stream, uniform
from tests.engines.detection.strategies import PLANNED, events_of, stream_of

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

    with pieces_of(events=1):
        moment_by_moment = [outcome(limit) for limit in range(1, 40, 3)]
    assert [outcome(limit) for limit in range(1, 40, 3)] == moment_by_moment


@only_compiled
@pytest.mark.parametrize("output", ["arrow", "count"])
def test_sets_of_earlier_windows_make_room(output: str) -> None:
    """So many sets that their pool is compacted again and again; the other engine has none."""
    stream = drawn_stream(4_000, "ABC", seed=3, x=uniform)
    text = "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x WITHIN 12 units"
    plan = OrderPlan(["a", "b", "c"])
    pooled, apart = (
        evaluate(text, stream, plan, evaluator=name, output=output)
        for name in ("lazy-nfa", "lazy-nfa-instances")
    )
    assert pooled.metrics.matches == apart.metrics.matches > 10_000
    if output == "arrow":
        assert sorted(map(str, pooled.arrow.to_pylist())) == sorted(
            map(str, apart.arrow.to_pylist())
        )


@only_compiled
@pytest.mark.parametrize("evaluator", ["tree", "lazy-nfa"])
def test_the_events_in_sets_of_partial_matches_are_limited(evaluator: str) -> None:
    """Few partial matches may have large sets; those of matches are as large as the result."""
    number = 400
    events = pd.DataFrame({"type": "A", "time": range(number), "x": -np.arange(number)})
    falling = "ANY a, KL(ANY b)"
    text = "PATTERN SEQ({}) WHERE b[i].x < a.x STRATEGY strict_contiguity WITHIN 1000 units"
    how = {"evaluator": evaluator, "partial_match_limit": 100_000}
    plan = OrderPlan(["a", "b"])
    listed = evaluate(parse(text.format(falling)), stream_of(events), plan, **how)
    assert listed.metrics.matches == number * (number - 1) // 2
    longer = parse(text.format(f"{falling}, ANY c"))
    with pytest.raises(PartialMatchLimitError, match="5,242,880 events in sets of partial"):
        evaluate(longer, stream_of(events), OrderPlan(["a", "b", "c"]), **how)
