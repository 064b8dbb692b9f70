"""Explanations as people see them: texts word for word, pictures and tables as well-formed HTML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cepbench.patterns.parse import parse
from cepbench.planning.planners.generate import plan
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.explainer.columns import percent, short
from cepbench.presentation.explainer.explain import explain
from cepbench.presentation.explainer.explanation import Explanation
from cepbench.streams.event_stream import EventStream
from tests.presentation.reporting.offline import read_page

PATTERN = parse(
    "PATTERN SEQ(A a, NOT(N n), B b, KL(C c)) WHERE a.x < b.x AND c.x > 0 WITHIN 10 seconds"
)
STATISTICS = Statistics(
    rates={"a": 2.0, "b": 0.5, "c": 0.3, "n": 0.01},
    selectivities={("a", "b"): 0.25, ("c", "c"): 0.5},
)


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_texts_keep_to_a_width(width: int) -> None:
    found = explain(PATTERN, plan(PATTERN, STATISTICS, "GREEDY"), STATISTICS)
    lines = found.describe(width).splitlines()
    assert max(map(len, lines)) <= width
    together = " ".join(" ".join(lines).split())
    assert together == " ".join(found.describe().split())


def test_an_order_plan_in_text() -> None:
    # c: 2^3 / 2; c, b: 4 · 5 / 2; c, b, a: 10 · 20 / 4 / 2.
    found = explain(PATTERN, plan(PATTERN, STATISTICS, "GREEDY"), STATISTICS)
    assert replace(found, stakes=None, choice=None).describe() == (
        """\
order plan by GREEDY, seed 0, estimated cost 39 (order-throughput)
order: c → b → a
                         per second  partial  est.
                     arrivals  rows  matches  cost
3. c, b, a                  –     –       25  64 %
├ 2. c, b                   –     –       10  26 %
│ ├ 1. c: sets of C       0.3     –        4  10 %
│ └ b: B                  0.5   0.5        5   0 %
├ a: A                      2     2       20   0 %
└ n: no N                0.01     –        –     –"""
    )


def test_a_tree_plan_in_text() -> None:
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x WITHIN 10 units")
    statistics = Statistics(
        cardinalities={"a": 1e9, "b": 123456, "c": 0.00001}, selectivities={("a", "b"): 1e-4}
    )
    found = explain(pattern, TreePlan((("c", "a"), "b")), statistics)
    assert replace(found, stakes=None, choice=None).describe() == (
        """\
tree plan by hand, estimated cost 1e+09 (tree-throughput)
                           per tick  partial   est.
                  arrivals     rows  matches   cost
c, a, b                  –      37k     123k   <1 %
├ c, a                   –    2,000      10k   <1 %
│ ├ c: C           1.0e-06  1.0e-06  1.0e-05   <1 %
│ └ a: A              100M     100M       1G  100 %
└ b: B               12.3k    12.3k     123k   <1 %"""
    )


def events(count: int = 900) -> EventStream:
    """Three types in turn, one a second; x of a is below that of b in one half of the stream."""
    x = np.where(np.arange(count) < count // 2, 0.0, 2.0)
    return EventStream.from_pandas(
        pd.DataFrame(
            {
                "type": ["A", "B", "C"] * (count // 3),
                "time": pd.to_datetime(np.arange(count), unit="s"),
                "x": np.where(np.arange(count) % 3 == 0, x, 1.0),
            }
        ),
        type="type",
        time="time",
    )


RUN = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x WITHIN 29 seconds")


@pytest.fixture(scope="module")
def run() -> Explanation:
    wrong = Statistics(cardinalities={"a": 10, "b": 10, "c": 10}, selectivities={("a", "b"): 0.01})
    return explain(RUN, TreePlan((("a", "b"), "c")), wrong, events())


def test_a_run_in_text(run: Explanation) -> None:
    table, told = run.describe().split("\n\n")
    head, *lines = table.splitlines()
    assert head == "tree plan by hand, estimated cost 41 (tree-throughput)"
    # What is stored and tested is the engine's own affair, and times are nobody's to foretell.
    end = lines[0].index("estimate") + len("estimate")
    assert "\n".join(line[:end] for line in lines) == (
        """\
                  partial matches  rows created  estimate
                     est.  actual  est.  actual    off by
a, b, c                10       –   930   43.9k   ×47.2!!
├ a, b                  1    46.2    62   2,945   ×46.2!!
│ ├ a: A               10    9.68   310     300     ÷1.03
│ └ b: B               10    9.68   310     300     ÷1.03
└ c: C                 10    9.68   310     300     ÷1.03"""
    )
    assert [line[end:].split()[-4:-2] for line in lines[2:]] == [
        [share, "%"] for share in ("24", "2", "24", "24", "24")
    ]
    matches, work, engines, worst, time, legend, *at_stake = run.sentences()
    assert engines.startswith("Expected times to count the matches of this stream: ")
    assert run.stakes is not None and at_stake == run.stakes.sentences()
    assert re.fullmatch(r"43,900 matches in 900 events; \S+ s by the tree evaluator\.", matches)
    assert run.metrics is not None and work == f"Work: {run.metrics.work.text()}."
    assert work.startswith("Work: 2,945 partial matches, ")
    assert worst == (
        "The worst estimate is at the root (a, b, c), 47.2 times too low (rows: 930 expected, "
        "43.9k measured). The error originates at (a, b) (partial matches: 1 expected, 46.2 measured)."
    )
    assert re.fullmatch(
        r"Most time was spent in .*: \d+ % of the \S+ s of all nodes; its expected share of the cost "
        r"is \d+ %\.",
        time,
    )
    assert legend.startswith("Off by: ") and " ".join(told.split()) == " ".join(run.sentences())


def test_html_is_well_formed_and_loads_nothing(run: Explanation) -> None:
    branches = parse("PATTERN OR(SEQ(A a, B b), AND(C c, NOT(B n), A d)) WITHIN 5 seconds")
    statistics = Statistics(cardinalities=dict.fromkeys("abcd", 2.0))
    for found in (
        run,
        explain(PATTERN, OrderPlan(["a", "b", "c"]), STATISTICS),
        explain(branches, plan(branches, statistics), statistics, events()),
        explain(parse("PATTERN SEQ(A a) WITHIN 5 seconds"), OrderPlan(["a"]), statistics, events()),
    ):
        html = found._repr_html_()
        ET.fromstring(html)
        page = read_page(html)
        assert not page.loads and not page.scripts
        assert not any("id" in attributes for _, attributes in page.elements)
        pictures = [name for name, _ in page.elements if name == "svg"]
        assert len(pictures) == len(found.plan.parts)
        rows = [name for name, _ in page.elements if name == "tr"]
        headings = len(found.plan.parts) if isinstance(found.plan, UnionPlan) else 0
        assert len(rows) == 2 + len(found.nodes) + headings
        for sentence in found.sentences():
            assert sentence in page.text


def test_names_are_shown_as_they_are_written() -> None:
    hostile = "<script>alert(\"1\")</script>&'x'"
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 5 seconds")
    text = str(pattern).replace("A a", f'A "{hostile}"'.replace('"1"', "1"))
    named = parse(text)
    name = named.positive_names[0]
    statistics = Statistics(cardinalities={name: 2.0, "b": 3.0})
    found = explain(named, OrderPlan([name, "b"]), statistics, events())
    page = read_page(found._repr_html_())
    assert not page.scripts and name in page.text and name in found.describe()


def lines_of(html: str) -> list[float]:
    picture = ET.fromstring(html).find(".//{http://www.w3.org/2000/svg}svg")
    assert picture is not None
    return [
        float(line.attrib["stroke-width"])
        for line in picture.iter("{http://www.w3.org/2000/svg}line")
    ]


def test_lines_are_thicker_where_there_are_more_partial_matches(run: Explanation) -> None:
    # Each parent's left line, then the right one: a, b, (a, b), c.
    a, b, both, c = lines_of(run._repr_html_())
    measured = run.nodes.set_index("variables")["measured"]
    assert measured["a, b"] > 4 * measured["a"]
    assert both == 11 and both - a == pytest.approx(
        10 / 3 * np.log10(measured["a, b"] / measured["a"]), abs=0.1
    )
    assert a == b == c
    expected = explain(RUN, run.plan, Statistics(cardinalities={"a": 1, "b": 1, "c": 1000}))
    assert lines_of(expected._repr_html_()) == pytest.approx([1, 1, 1, 11])


def test_bad_estimates_are_marked_by_shape_and_colour(run: Explanation) -> None:
    page = read_page(run._repr_html_())
    corners = [its["points"] for name, its in page.elements if name == "polygon"]
    colours = {its["fill"] for name, its in page.elements if name == "polygon"}
    assert len(corners) == 2 and len(colours) == 1  # (a, b) and the root; leaves are right

    def points_up(corner: str) -> bool:
        first, _, tip = (float(point.split(",")[1]) for point in corner.split())
        return tip < first

    assert all(map(points_up, corners))
    over = Statistics(cardinalities=dict.fromkeys("abc", 1000.0))
    high = read_page(explain(RUN, run.plan, over, events())._repr_html_())
    lower = [its for name, its in high.elements if name == "polygon"]
    assert len(lower) == 5 and not any(points_up(its["points"]) for its in lower)
    assert colours.isdisjoint({its["fill"] for its in lower})
    right = Statistics(cardinalities={"a": 29 / 3, "b": 29 / 3, "c": 29 / 3},
                       selectivities={("a", "b"): 0.5})  # fmt: skip
    good = read_page(explain(RUN, run.plan, right, events())._repr_html_())
    assert not any(name == "polygon" for name, _ in good.elements)


def test_plans_of_many_variables() -> None:
    names = [f"v{i}" for i in range(60)]
    items = ", ".join(f"T{i} v{i}" for i in range(60))
    pattern = parse(f"PATTERN SEQ({items}) WITHIN 5 seconds")
    statistics = Statistics(cardinalities=dict.fromkeys(names, 1.5))
    found = explain(pattern, OrderPlan(names), statistics)
    described = found.describe()
    assert "\n└ v59: T59 " in described
    assert "\n60. v0, v1, …, v59 (60) " in described
    assert "8. v0, v1, v2, v3, v4, v5, v6, v7<" in found._repr_html_()
    ET.fromstring(found._repr_html_())
    assert found.nodes["cost"].sum() == pytest.approx(found.plan.cost)


def test_numbers() -> None:
    for number, text in {
        0: "0", 0.00012: "1.2e-04", 0.0123: "0.0123", 12.34: "12.3", 99.94: "99.9", 99.96: "100",
        1234.5: "1,234", 9999.4: "9,999", 9_999.6: "10k", 999_600: "1M", 12_345_678: "12.3M",
        1e15: "1.0e15", float("nan"): "–", float("inf"): "∞",
    }.items():  # fmt: skip
        assert short(number) == text
        assert len(text) <= 7
    assert [percent(x) for x in (0, 0.001, 0.006, 0.5, 1, float("nan"))] == [
        "0 %", "<1 %", "1 %", "50 %", "100 %", "–"
    ]  # fmt: skip
