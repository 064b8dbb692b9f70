"""ZStream's counts of records that are stars: nothing is made, and metrics are as if it were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.zstream.kernels import bounds
from cepbench.engines.zstream.stars import Stars
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.strategies import (
    TYPES,
    event_frames,
    stream_of,
    tree_plans,
    with_all_records,
)
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel


@st.composite
def stars(draw: st.DrawFn) -> Pattern:
    """Three variables without conditions, or four whose conditions mention one of them."""
    names = "abcd"[: draw(st.sampled_from([3, 4, 4, 4]))]
    items = ", ".join(f"{draw(st.sampled_from(TYPES[:3]))} {name}" for name in names)
    conditions = []
    if len(names) == 4:
        centre = draw(st.sampled_from(names))
        for other in set(names) - {centre}:
            for column in draw(st.sampled_from(["", "", "x", "y", "xy"])):
                operator = draw(st.sampled_from(["<", "<=", ">", "!="]))
                conditions.append(f"{centre}.{column} {operator} {other}.{column}")
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return parse(f"PATTERN SEQ({items}) {where}WITHIN {draw(st.integers(3, 12))} units")


@given(data=st.data())
def test_stars_are_counted_as_records_would_be(data: st.DataObject) -> None:
    """Matches are the naive twin's, and nodes those of the run that makes all records."""
    pattern = data.draw(stars())
    events = data.draw(event_frames(TYPES[:3]))
    plan = data.draw(tree_plans(pattern.positive_names))
    stream, expected = stream_of(events), len(naive_matches(pattern, events))

    text, _, more = with_all_records(str(pattern), plan.tree, events)

    def run(pattern: Pattern | str, stream: EventStream, output: str, size: int) -> Any:
        options = {"batch_size": size}
        return evaluate(pattern, stream, plan, evaluator="zstream", output=output, options=options)

    for size in (1, 4, 100):
        counted = run(pattern, stream, "count", size)
        made = run(text, stream_of(more), "arrow", size)
        assert counted.metrics.matches == expected
        columns = ["variables", "created", "mean_stored", "peak_stored"]
        pd.testing.assert_frame_equal(
            counted.nodes[columns].iloc[:-1], made.nodes[columns].iloc[:-1]
        )
        for name in ("partial_matches_created", "mean_partial_matches", "peak_partial_matches"):
            assert getattr(counted.metrics, name) == getattr(made.metrics, name)
    if len(stream):
        detector = Detector(pattern, plan, evaluator="zstream", output="count")
        found = 0
        for batch in stream.batches(data.draw(st.integers(1, len(stream)))):
            found += detector.push(batch)
            detector = Detector.restore(detector.snapshot())
        assert found + detector.flush() == expected


@pytest.mark.parametrize(
    "tree",
    [((("i", "s"), "o"), "g"), ("i", ("s", ("o", "g"))), (("i", "s"), ("o", "g")), ("i", (("s", "o"), "g"))],
)  # fmt: skip
def test_no_record_of_query_6_is_made(tree: Any) -> None:
    """Query 6 of [mei2009]_ along its four plans, with many events in a window."""
    rng = np.random.default_rng(6)
    kinds, x, window = rng.choice(list("ISOG"), 400), rng.random(400), 300
    i, s, o, g = (np.flatnonzero(kinds == kind) for kind in "ISOG")
    before = (s[:, None] < o) & (x[s][:, None] < x[o])
    after = (o[:, None] < g) & (x[o][:, None] > x[g])
    within = np.subtract.outer(g, i) <= window
    expected = int((((i[:, None] < s) @ before.astype(int)) * (after @ within.astype(int)).T).sum())
    events = pd.DataFrame({"type": kinds, "time": range(400), "x": x})
    text = "PATTERN SEQ(I i, S s, O o, G g) WHERE o.x > s.x AND o.x > g.x WITHIN 300 units"
    whole, _, more = with_all_records(text, tree, events)
    counted, made = (
        evaluate(
            pattern, stream_of(frame), TreePlan(tree), evaluator="zstream", output="count",
            options={"batch_size": 150},
        ).metrics
        for pattern, frame in ((text, events), (whole, more))
    )  # fmt: skip
    assert counted.matches == made.matches == expected > 0
    assert counted.partial_matches_created == made.partial_matches_created > 6_000
    # Of some ten thousand records, the first plan has half a megabyte.
    assert counted.peak_bytes < 12_000 < made.peak_bytes / 3


def test_of_two_spokes_the_rarer_one_is_taken() -> None:
    found = Stars([(0, 1), (0, 1, 2)], window=9, comparisons={})
    star = found.cheapest([1000, 10, 20], share=0.5)[-1][0]
    assert {star.centre, star.spoke.leaf} == {1, 2}


@given(data=st.data())
def test_first_rows(data: st.DataObject) -> None:
    """Against a binary search, with leaves of about one size and of very different ones."""
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    sizes = [data.draw(st.sampled_from([0, 1, 2, 30, 100, 600])) for _ in range(2)]
    times, others = (np.sort(rng.integers(0, 300, size)) for size in sizes)
    first = data.draw(st.integers(0, len(others)))
    shift = data.draw(st.integers(-40, 40))
    found = np.empty(len(times), np.int32)
    bounds.first_rows(times, others, first, shift, found)
    assert found.tolist() == np.maximum(first, np.searchsorted(others, times + shift)).tolist()
