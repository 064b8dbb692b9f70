"""Matches as a graph: everything said of them is true of the list of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from itertools import combinations, islice
from math import comb, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.runs.compressed import CompressedMatches
from cepbench.engines.runs.graph_drawing import graph_diagram
from cepbench.engines.runs.returned import returned_table, values_suffice
from cepbench.errors import EvaluationError, UnsupportedTaskError
from tests.budgets import examples
from tests.engines.detection.graph_engine import GRAPHS
from tests.naive.matcher import labelled_matches

PATTERNS = [
    "PATTERN SEQ(A a, KL(B b), C c) WITHIN 6 units",
    "PATTERN SEQ(KL(A a), KL(B b)) WITHIN 5 units",
    "PATTERN SEQ(A a, B b, A c) WITHIN 7 units",
    "PATTERN KL(A a) WITHIN 3 units",
    "PATTERN OR(SEQ(A a, KL(B b)), SEQ(C c, A d)) WITHIN 4 units",
]


def stream_of(types: list[str], times: list[int]) -> cep.EventStream:
    """Behind one event of each type, so that all types are there, and positions are shifted."""
    frame = pd.DataFrame(
        {"type": [*"ABC", *types], "ts": [-2, -1, 0, *times], "x": np.arange(3.0 + len(types))}
    )
    return cep.EventStream.from_pandas(frame, type="type", time="ts")[3:]


#: In which each pattern and branch has matches, sets of several events among them.
OF_EACH = stream_of([*"ABBABCA"], [1, 2, 2, 3, 4, 5, 6])


@st.composite
def streams(draw: st.DrawFn) -> cep.EventStream:
    types = draw(st.lists(st.sampled_from("ABC"), max_size=11))
    gaps = draw(st.lists(st.integers(0, 2), min_size=len(types), max_size=len(types)))
    return stream_of(types, np.cumsum(gaps).tolist())


def listed(pattern: cep.Pattern, stream: cep.EventStream) -> list[dict[str, Any]]:
    """The matches, by trying every combination of events."""
    frame = pd.DataFrame(
        {
            "type": np.array(stream.type_names)[stream.type_codes],
            "time": stream.timestamps,
            "x": stream.attributes["x"],
        }
    )
    branches = pattern.branches()
    rows = []
    for branch, positions in labelled_matches(pattern, frame):
        row = dict(zip(pattern.positive_names, positions, strict=True))
        if len(branches) > 1:
            row = {name: row[name] for name in branches[branch].positive_names}
            row["branch"] = branch
        rows.append(row)
    return rows


def positions_of(row: dict[str, Any]) -> list[int]:
    """All positions of a match, in written order."""
    found: list[int] = []
    for name, its in row.items():
        if name != "branch":
            found += its if isinstance(its, tuple) else [its]
    return found


def as_counter(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def table_of(frame: pd.DataFrame) -> dict[int, int]:
    return dict(frame[[frame.columns[0], "matches"]].itertuples(index=False))


@pytest.mark.parametrize("text", PATTERNS)
@given(stream=streams(), size=st.integers(1, 12))
@example(stream=OF_EACH, size=2)
@examples(2)
def test_everything_said_is_true_of_the_list(text: str, stream: cep.EventStream, size: int) -> None:
    pattern = cep.parse(text)
    rows = listed(pattern, stream)
    detector = cep.Detector(pattern, evaluator=GRAPHS, output="compressed")
    pushed: list[CompressedMatches] = [detector.push(batch) for batch in stream.batches(size)]
    assert detector.flush().count() == 0
    assert detector.metrics().matches == len(rows)
    assert as_counter([row for one in pushed for row in one.enumerate()]) == as_counter(rows)
    result = cep.evaluate(pattern, stream, evaluator=GRAPHS, output="compressed")
    its = result.compressed
    assert its.count() == result.metrics.matches == len(rows)
    enumerated = list(its.enumerate())
    assert as_counter(enumerated) == as_counter(rows)
    all_positions = [positions_of(row) for row in rows]
    lasts, firsts = Counter(map(max, all_positions)), Counter(map(min, all_positions))
    assert table_of(its.last_events()) == lasts
    assert its.last_events()["ts"].tolist() == stream.timestamps[sorted(lasts)].tolist()
    assert table_of(its.first_events()) == firsts
    assert table_of(its.lengths()) == Counter(map(len, all_positions))
    assert its.nodes["matches"].sum() == len(rows)
    # Sets are tuples here and lists there.
    rows_of_table = [
        {name: tuple(its) if isinstance(its, list) else its for name, its in row.items()}
        for row in its.expand().to_pylist()
    ]
    expanded = [{k: v for k, v in row.items() if v is not None} for row in rows_of_table]
    assert as_counter(expanded) == as_counter(rows)
    if rows:
        sampled = its.sample(4, seed=3)
        assert sampled.equals(its.sample(4, seed=3))
        drawn = [
            {k: v for k, v in row.items() if isinstance(v, tuple) or not pd.isna(v)}
            for row in sampled.astype(object).to_dict("records")
        ]
        assert not as_counter(drawn).keys() - as_counter(rows).keys()
        graph_parts = list(its.parts)
        numbers = [list(range(sum(part.counts))) for _, part in graph_parts]
        picked = [
            [position for its in history for position in its]
            for (number, part), own in zip(graph_parts, numbers, strict=True)
            for history in part.picked(own, len(pattern.branches()[number].positive))
        ]
        assert picked == [positions_of(row) for row in enumerated]


#: Without lists; the last two with them.
RETURNS = [
    "b[1].x AS first, b[last].x AS last, a.x AS a, c",
    "sum(b.x) - a.x AS rise, avg(b.x) AS mean, c.x AS c, count(b.x) AS n",
    "max(b.x) AS most, min(b.x) AS least, max(b.x) / count(b.x) AS share",
    "min(b.y) AS least, max(b.y) AS most, sum(b.y) AS total",
    "sum(b.x) AS total, b",
    "b.x AS values",
]


@pytest.mark.parametrize("returns", RETURNS)
@given(stream=streams())
@example(stream=OF_EACH)
@examples(2)
def test_columns_of_return_are_those_of_the_list(returns: str, stream: cep.EventStream) -> None:
    y = np.where(np.arange(len(stream)) % 4 == 3, np.nan, stream.attributes["x"] * 7 % 5)
    stream = replace(stream, attributes={**stream.attributes, "y": y})
    pattern = cep.parse(f"{PATTERNS[0]} RETURN {returns}")
    result = cep.evaluate(pattern, stream, evaluator=GRAPHS, output="compressed")
    assert values_suffice(pattern) == (RETURNS.index(returns) < 4)
    expected = returned_table(result.compressed.expand(), pattern, stream)
    assert result.arrow.equals(expected)


def test_the_result_enumerates_on_demand() -> None:
    pattern = cep.parse(
        "PATTERN SEQ(A a, KL(B b), C c) WITHIN 9 units RETURN a.x, count(b.x) AS n, c"
    )
    stream = stream_of(list("ABBC"), [1, 2, 3, 4])
    result = cep.evaluate(pattern, stream, evaluator=GRAPHS, output="compressed")
    assert result.matches.to_dict("list") == {"a.x": [3.0] * 3, "n": [1, 2, 1], "c": [3] * 3}
    assert result.arrow.num_rows == 3
    whole = result.in_whole_stream(stream)
    assert whole.positions["c"].tolist() == [6, 6, 6]
    assert next(whole.compressed.enumerate())["a"] == 3
    assert table_of(whole.compressed.last_events()) == {6: 3}
    assert table_of(whole.compressed.first_events()) == {3: 3}
    assert whole.compressed.nodes["position"].dropna().tolist() == [3, 4, 5, 5, 6]


@pytest.mark.kernel
@pytest.mark.parametrize("number", [60, 200])
def test_more_matches_than_could_be_listed(number: int) -> None:
    stream = stream_of(["A", *"B" * number, "C"], list(range(1, number + 3)))
    pattern = f"PATTERN SEQ(A a, KL(B b), C c) WITHIN {number + 2} units"
    result = cep.evaluate(pattern, stream, evaluator=GRAPHS, output="compressed")
    its = result.compressed
    assert its.count() == result.metrics.matches == 2**number - 1
    assert table_of(its.last_events()) == {number + 1: 2**number - 1}
    assert table_of(its.first_events()) == {0: 2**number - 1}
    assert table_of(its.lengths()) == {2 + k: comb(number, k) for k in range(1, number + 1)}
    assert f"{2**number - 1:,} matches" in its.describe()
    assert len(list(islice(its.enumerate(), 100))) == 100
    drawn = its.sample(400, seed=1)
    assert len(set(drawn["b"])) == 400
    # The number of Bs in a uniform match is binomial, n/2 ± √n/2 a draw.
    mean = drawn["b"].map(len).mean()
    assert abs(mean - number / 2) < 4 * sqrt(number) / 2 / sqrt(400)


def test_a_sample_is_uniform() -> None:
    stream = stream_of(list("ABABCBC"), list(range(1, 8)))
    its = cep.evaluate(PATTERNS[0], stream, evaluator=GRAPHS, output="compressed").compressed
    drawn = Counter(its.sample(20_000, seed=7).itertuples(index=False, name=None))
    assert len(drawn) == its.count()
    expected = 20_000 / its.count()
    squares = sum((times - expected) ** 2 / expected for times in drawn.values())
    freedom = its.count() - 1
    assert squares < freedom + 4 * sqrt(2 * freedom)


def test_tables_and_drawing_show_the_graph() -> None:
    stream = stream_of(list("ABBC"), [1, 2, 3, 4])
    its = cep.evaluate(PATTERNS[0], stream, evaluator=GRAPHS, output="compressed").compressed
    events = its.nodes[its.nodes["kind"] == "event"]
    assert events[["variable", "position", "matches"]].values.tolist() == [
        ["a", 0, 0], ["b", 1, 0], ["b", 2, 0], ["b", 2, 0], ["c", 3, 3],
    ]  # fmt: skip
    assert set(its.pointers["kind"]) <= {"predecessor", "event", "left", "right"}
    assert (its.pointers["target"] < its.pointers["node"]).all()
    drawing = ET.fromstring(its._repr_svg_())
    assert sum(one.tag.endswith("rect") for one in drawing.iter()) == len(events)
    assert "3 matches in a graph of" in its._repr_html_()
    assert "3 matches" in repr(its)


def test_boxes_of_a_drawing_are_apart_and_its_lines_are_pointers() -> None:
    stream = stream_of(list("AABABBACC"), [1, 1, 2, 2, 3, 4, 4, 5, 6])
    for pattern in PATTERNS[:4]:
        its = cep.evaluate(pattern, stream, evaluator=GRAPHS, output="compressed").compressed
        drawn = graph_diagram(its.nodes, its.pointers)
        assert len(drawn.boxes) == len(its.nodes) > 5
        for one, other in combinations(drawn.boxes, 2):
            x, y = abs(one.x - other.x), abs(one.y - other.y)
            assert x > (one.width + other.width) / 2 or y > (one.height + other.height) / 2
        boxes = dict(zip(its.nodes["node"], drawn.boxes, strict=True))
        ends = {
            (boxes[target].at(1, 0), boxes[node].at(-1, 0))
            for node, target in its.pointers[["node", "target"]].itertuples(index=False)
        }
        assert {(line.ends[0], line.ends[-1]) for line in drawn.lines} == ends


def test_what_cannot_be_done_is_refused() -> None:
    stream = stream_of(list("ABC"), [1, 2, 3])
    pattern = cep.parse("PATTERN SEQ(A a, C c) WITHIN 9 units")
    with pytest.raises(UnsupportedTaskError, match='"compressed"'):
        cep.evaluate(pattern, stream, evaluator="stack-nfa", output="compressed")
    counted = cep.evaluate(pattern, stream, evaluator="stack-nfa", output="count")
    with pytest.raises(EvaluationError, match='output="compressed"'):
        _ = counted.compressed
    assert counted.runs is None
    none = cep.evaluate(
        "PATTERN SEQ(C c, A a) WITHIN 9 units", stream, evaluator=GRAPHS, output="compressed"
    ).compressed
    assert none.count() == 0 and len(none.nodes) == 0 and none.expand().num_rows == 0
    assert none.sample(0).empty and none.lengths().empty and none.last_events().empty
    with pytest.raises(EvaluationError, match="no matches"):
        none.sample(1)
    with pytest.raises(EvaluationError, match="n must be"):
        none.sample(-1)
    many = stream_of(["A"] * 150 + ["C"] * 60, list(range(1, 211)))
    large = cep.evaluate(
        "PATTERN SEQ(A a, C c) WITHIN 500 units", many, evaluator=GRAPHS, output="compressed"
    ).compressed
    with pytest.raises(EvaluationError, match="too many to draw"):
        large._repr_svg_()
    assert "<svg" not in large._repr_html_()
