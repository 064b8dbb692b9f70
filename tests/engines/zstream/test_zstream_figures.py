"""ZStream's engine on the plans of Figures 3, 4 and 6 of [mei2009]_, each worked by hand.

Our text of the paper has lost the drawings. Queries, plans and, for Figure 6, the events are those
that it describes; the other events are made up, so that every operator keeps and drops some.
"""

from __future__ import annotations

import pandas as pd
import pytest

import cepbench as cep
from tests.engines.detection.strategies import events_of, stream_of
from tests.patterns.test_dialects import QUERIES

pytestmark = pytest.mark.kernel


def ticks(text: str) -> cep.EventStream:
    """Ticks ``name price volume``, one a second."""
    rows = [line.split() for line in text.split(",")]
    frame = pd.DataFrame(rows, columns=["name", "price", "volume"])
    frame = frame.astype({"price": float, "volume": float})
    frame["ts"] = pd.date_range("2009-06-29", periods=len(frame), freq="s")
    frame["kind"] = "tick"
    return cep.EventStream.from_pandas(frame, type="kind", time="ts")


def run(
    number: int, stream: cep.EventStream, plan: cep.TreePlan, hashing: bool, **values: float
) -> cep.Result:
    """A query of the paper, whose classes are ticks of any stock."""
    text, given, _ = QUERIES[number]
    pattern = cep.parse(text, {**given, **values}, dialect="zstream", classes="ANY")
    options = {"hashing": hashing}
    return cep.evaluate(pattern, stream, plan, evaluator="zstream", options=options)


@pytest.mark.parametrize("hashing", [True, False])
def test_figure_3_left_deep_plan_of_query_1(hashing: bool) -> None:
    """SEQ1 keeps what is 5 % above a Google tick, SEQ2 the same stock 10 % below that tick."""
    stream = ticks("IBM 110 1, Google 100 1, Sun 120 1, Google 101 1, IBM 80 1, Sun 95 1")
    result = run(1, stream, cep.TreePlan((("T1", "T2"), "T3")), hashing)
    # SEQ1: (0, 1), (0, 3) and (2, 3); 100 is not 5 % above 101. SEQ2: 95 is not below 90.9.
    assert result.matches.to_numpy().tolist() == [[0, 1, 4], [0, 3, 4]]
    nodes = result.nodes.set_index("variables")["created"].to_dict()
    assert nodes == {"T1": 6, "T2": 2, "T3": 6, "T1, T2": 3, "T1, T2, T3": 2}


@pytest.mark.parametrize("hashing", [True, False])
def test_figure_4_right_deep_plan_of_query_2(hashing: bool) -> None:
    """A tick above 50, and one of the same stock above 60 without one below 50 in between."""
    stream = ticks("IBM 60 1, Sun 55 1, IBM 40 1, Sun 62 1, IBM 70 1, IBM 65 1")
    result = run(2, stream, cep.TreePlan(("T1", "T3")), hashing)
    # IBM's tick of 40 negates all that begins with 0; it is no tick of Sun.
    assert result.matches.to_numpy().tolist() == [[1, 3], [4, 5]]
    nodes = result.nodes.set_index("variables")["created"].to_dict()
    assert nodes == {"T1": 5, "T3": 3, "T2": 1, "T1, T3": 2}


@pytest.mark.parametrize(("volume", "sums"), [(100, [150, 200]), (180, [200]), (200, [])])
def test_figure_4_plan_of_query_3(volume: int, sums: list[int]) -> None:
    """KSEQ makes every run of five Google ticks; the sum of their volumes is tested on each."""
    google = ", ".join(f"Google 1 {volume}" for volume in range(10, 70, 10))
    stream = ticks(f"IBM 10 1, {google}, IBM 13 1, IBM 11 1")
    result = run(3, stream, cep.TreePlan(("T1", "T3")), True, v=volume)
    assert result.matches.to_numpy().tolist() == [[0, total, 7] for total in sums]


@pytest.mark.parametrize(
    ("closure", "groups"), [("B*", [(1, 2, 3)]), ("B+", [(1, 2, 3)]), ("B^2", [(1, 2), (2, 3)])]
)
def test_figure_6(closure: str, groups: list[tuple[int, ...]]) -> None:
    """For c6 and a1 the maximal group is b2 b3 b5; the groups of two are b2 b3 and b3 b5."""
    pattern = cep.parse(f"PATTERN A;{closure};C WITHIN 10 units", dialect="zstream")
    stream = stream_of(events_of("A@1 B@2 B@3 B@5 C@6"))
    result = cep.evaluate(pattern, stream, cep.TreePlan(("A", "C")), evaluator="zstream")
    assert result.matches["B"].tolist() == groups
