"""Contiguity: the neighbour of an event is looked up, however far the window reaches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from tests.budgets import examples
from tests.engines.detection.checks import check, found_in
from tests.engines.detection.strategies import Case, plans_for, stream_of
from tests.naive.matcher import labelled_matches


def events(count: int, seed: int) -> pd.DataFrame:
    """Events of which several share a timestamp, in partitions of all sizes, and in none."""
    rng = np.random.default_rng(seed)
    partitions = rng.choice([0.0, 1.0, 2.0, np.nan], count, p=[0.6, 0.28, 0.1, 0.02])
    # And many that soon have no more events.
    short = rng.random(count) < 0.2
    partitions[short] = 3 + np.arange(count)[short] // 60
    return pd.DataFrame(
        {
            "type": rng.choice(list("AB"), count, p=[0.6, 0.4]),
            "time": np.cumsum(rng.choice([0, 1, 2], count, p=[0.2, 0.5, 0.3])),
            "x": rng.choice([0.0, 1.0, 2.0, np.nan], count),
            "s": partitions,
        }
    )


def neighbours(
    frame: pd.DataFrame, kinds: str, strategy: str, window: int
) -> list[tuple[int, ...]]:
    """The positions of events of these types, each the next one and with a greater x than the first."""
    parts = [frame] if strategy == "strict_contiguity" else [p for _, p in frame.groupby("s")]
    found = []
    for part in parts:
        rows = [part.assign(position=part.index).shift(-n) for n in range(len(kinds))]
        holds = rows[-1]["time"] - rows[0]["time"] <= window
        holds &= rows[0]["x"] <= rows[-1]["x"]
        for n, kind in enumerate(kinds):
            holds &= (rows[n]["type"] == kind) | (kind == "?") & rows[n]["type"].notna()
            holds &= (rows[n]["time"] > rows[n - 1]["time"]) if n else True
        found += zip(*(its["position"][holds].astype(int) for its in rows), strict=True)
    return sorted(found)


@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity"])
@pytest.mark.parametrize("kinds", ["??A?", "ABAB", "?A"])
@given(data=st.data())
@examples(3)
def test_every_plan_of_long_streams(kinds: str, strategy: str, data: st.DataObject) -> None:
    frame = events(3_000, data.draw(st.integers(0, 9)))
    window = data.draw(st.sampled_from([5, 60, 10_000]))
    names = "abcd"[: len(kinds)]
    items = (
        f"{'ANY' if kind == '?' else kind} {name}" for kind, name in zip(kinds, names, strict=True)
    )
    chosen = "" if strategy == "strict_contiguity" else "(s)"
    pattern = parse(
        f"PATTERN SEQ({', '.join(items)}) WHERE a.x <= {names[-1]}.x "
        f"STRATEGY {strategy}{chosen} WITHIN {window} units"
    )
    expected = neighbours(frame, kinds, strategy, window)
    assert expected
    stream = stream_of(frame)
    for evaluator in ("tree", "lazy-nfa", "sase"):
        plan = data.draw(plans_for(evaluator, names))
        result = evaluate(pattern, stream, plan, evaluator=evaluator)
        assert sorted(row for _, row in found_in(pattern, result.matches)) == expected
        detector, found = Detector(pattern, plan, evaluator=evaluator), []
        size = data.draw(st.sampled_from([17, 256, 1_000]))
        for begin in range(0, len(stream), size):
            found += found_in(pattern, detector.push(stream[begin : begin + size]))
            if data.draw(st.booleans()):
                detector = Detector.restore(detector.snapshot())
        assert sorted(row for _, row in found) == expected


@pytest.mark.kernel
@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity(s)"])
def test_events_that_do_not_determine_those_before_a_set(strategy: str) -> None:
    """Several pairs of an a and a c have the same c, next to which d is."""
    pattern = parse(f"PATTERN SEQ(A a, KL(A b), A c, A d) STRATEGY {strategy} WITHIN 9 units")
    case = Case(pattern, pd.DataFrame({"type": "A", "time": range(8), "s": 1}))
    expected = labelled_matches(pattern, case.events)
    assert len(expected) == 15
    check(case, expected, TreePlan(((("a", "c"), "d"), "b")), "tree")
