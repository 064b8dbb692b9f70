"""Rates, predicate graphs, plans side by side and what-ifs against naive twins and plain calls."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import PlanGeneratorError, StatisticsError, StreamError
from cepbench.patterns.model import Window
from tests.presentation.reporting.offline import read_page

PATTERN = cep.parse(
    "PATTERN SEQ(A a, NOT(N n), B b, KL(C c), D d) WHERE a.x < b.x AND c.x > 0 AND a.x > d.x "
    "WITHIN 10 seconds"
)
PLAIN = cep.parse("PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND c.x > d.x WITHIN 20 minutes")
BRANCHED = cep.parse(
    "PATTERN OR(SEQ(A a, B b), AND(B b, C c, D d)) WHERE a.x < b.x AND c.x > d.x WITHIN 10 units"
)
STATISTICS = cep.Statistics(
    rates={"a": 0.02, "b": 0.005, "c": 0.003, "d": 0.01},
    selectivities={("a", "b"): 0.25, ("c", "d"): 0.5},
    standard_errors={"a": 0.001, "b": 0.001, "c": 0.002, ("a", "b"): 0.01, ("c", "d"): 0.02},
)


def stream_of(times: np.ndarray, types: list[str], unit: str | None = "s") -> cep.EventStream:
    frame = pd.DataFrame({"type": types, "time": times, "x": np.arange(len(times), dtype=float)})
    if unit is not None:
        frame["time"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(times, unit=unit)
    return cep.EventStream.from_pandas(frame, type="type", time="time")


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    """Two hours of one day and one of the next, nothing in between."""
    rng = np.random.default_rng(5)
    seconds = np.sort(
        np.concatenate([rng.integers(601, 7100, 500), rng.integers(86_400, 90_000, 300)])
    )
    return stream_of(seconds, rng.choice(list("ABC"), len(seconds), p=[0.6, 0.3, 0.1]).tolist())


@pytest.mark.parametrize("every", [600, "10 minutes", Window(10, "minutes")])
def test_rates_are_those_of_counting_by_hand(stream, every) -> None:
    found = cep.rates_over_time(stream, ["C", "A"], every)
    assert list(found.columns) == ["time", "type", "events", "rate"]
    assert list(found["type"].unique()) == ["C", "A"]
    frame = stream.to_pandas()
    first, last = frame["time"].iloc[0], frame["time"].iloc[-1]
    for row in found.itertuples():
        end = row.time + pd.Timedelta(minutes=10)
        inside = frame[(frame["time"] >= row.time) & (frame["time"] < end)]
        assert row.events == (inside["type"] == row.type).sum()
        if len(inside):
            length = (min(end, last) - max(row.time, first)).total_seconds()
            assert row.rate == pytest.approx(row.events / length)
        else:
            assert math.isnan(row.rate)
    assert found["events"].sum() == frame["type"].isin(["A", "C"]).sum()
    assert found["rate"].isna().any() and (found["time"].dt.minute % 10 == 0).all()


def test_rates_in_ticks_and_by_themselves() -> None:
    own = stream_of(np.array([3, 4, 4, 12, 25]), list("ABABA"), unit=None)
    found = cep.rates_over_time(own, every=10)
    # Ticks 3 to 10, 10 to 20 and 20 to 25.
    assert found["events"].tolist() == [2, 0, 1, 1, 1, 0]
    assert found["rate"].tolist() == pytest.approx([2 / 7, 0, 1 / 5, 1 / 7, 1 / 10, 0])
    rng = np.random.default_rng(1)
    many = stream_of(np.sort(rng.integers(0, 100_000, 900)), list("ABCDEFGHI") * 100)
    assert cep.rates_over_time(many)["type"].nunique() == 8
    assert 40 <= cep.rates_over_time(many)["time"].nunique() <= 85


def test_rates_refuse_what_makes_no_sense(stream) -> None:
    for arguments, message in [
        ({"types": ["AA"]}, "no events of type 'AA'; did you mean 'A'"),
        ({"types": []}, "types names no type"),
        ({"every": "soon"}, "every = 'soon' is not a length of time; give a number of seconds"),
        ({"every": 0}, "a length greater than 0"),
        ({"every": "5 units"}, "this stream's time is a datetime"),
        ({"every": "1 ms"}, "cuts the stream into"),
    ]:
        with pytest.raises(StreamError, match=re.escape(message)):
            cep.rates_over_time(stream, **arguments)
    with pytest.raises(StreamError, match="empty stream"):
        cep.rates_over_time(stream[:0])


def test_a_predicate_graph_has_every_variable_and_condition() -> None:
    statistics = cep.Statistics(
        rates={"a": 2.0, "b": 0.5, "c": 0.3, "d": 1.0, "n": 0.01},
        selectivities={("a", "b"): 0.25, ("c", "c"): 0.5},
    )
    graph = cep.predicate_graph(PATTERN, statistics)
    nodes = graph.nodes.set_index("variable")
    assert nodes["kind"].to_dict() == {
        "a": "plain", "n": "negated", "b": "plain", "c": "kleene", "d": "plain",
    }  # fmt: skip
    assert nodes["per_window"].to_dict() == {"a": 20, "n": 0.1, "b": 5, "c": 3, "d": 10}
    assert (nodes.loc["c", "filter"], nodes.loc["c", "filter_selectivity"]) == ("c.x > 0", 0.5)
    edges = graph.edges
    conditions = edges[edges["kind"] == "condition"]
    assert conditions[["first", "second", "condition"]].values.tolist() == [
        ["a", "b", "a.x < b.x"], ["a", "d", "a.x > d.x"],
    ]  # fmt: skip
    assert conditions["selectivity"].iloc[0] == 0.25 and math.isnan(
        conditions["selectivity"].iloc[1]
    )
    order = edges[edges["kind"] == "time order"].set_index(["first", "second"])["selectivity"]
    # A negated variable stands between its neighbours, and counts for nothing.
    assert set(order.index) == {("a", "b"), ("b", "c"), ("c", "d"), ("a", "n"), ("n", "b")}
    assert order[order.notna()].to_dict() == {("a", "b"): 0.5, ("b", "c"): 0.5, ("c", "d"): 0.5}


def test_the_picture_of_a_graph_tells_time_from_conditions() -> None:
    for pattern in (PATTERN, PLAIN, BRANCHED, cep.parse("PATTERN AND(A a, B b) WITHIN 1 s")):
        graph = cep.predicate_graph(pattern)
        html = graph._repr_html_()
        ET.fromstring(html)
        page = read_page(html)
        assert not page.loads and not page.scripts
        assert not any("id" in attributes for _, attributes in page.elements)
        kinds = graph.edges["kind"].value_counts()
        tags = [tag for tag, _ in page.elements]
        assert tags.count("polygon") == kinds.get("time order", 0)
        assert tags.count("path") == len(graph.edges)
        assert tags.count("svg") == len(pattern.branches())
        for row in graph.edges.itertuples():
            assert row.condition in page.text
        for row in graph.nodes.itertuples():
            assert row.type in page.text


@pytest.mark.parametrize("pattern", [PLAIN, BRANCHED], ids=["sequence", "with OR"])
def test_plans_are_those_of_the_plain_call(pattern: cep.Pattern) -> None:
    side = cep.plans_side_by_side(pattern, STATISTICS, seed=3)
    assert list(side.table["generator"])[:9] == list(cep.PLAN_GENERATORS)[:9]
    for row in side.table.itertuples():
        alone = cep.plan(pattern, STATISTICS, row.generator, seed=3)
        assert side.plans[row.generator] == alone
        assert row.cost == pytest.approx(alone.cost)
        assert row.plan == alone.text
    for _, same_kind in side.table.groupby("plan_kind"):
        assert same_kind["relative_cost"].min() == 1
        least = same_kind["cost"].min()
        assert same_kind["relative_cost"].tolist() == pytest.approx(
            (same_kind["cost"] / least).tolist()
        )
        for row in same_kind.itertuples():
            before = same_kind.loc[: row.Index - 1]
            assert list(row.same_as) == list(before[before["plan"] == row.plan]["generator"])


def test_the_picture_of_plans_is_of_one_scale_and_says_what_is_equal() -> None:
    side = cep.plans_side_by_side(PLAIN, STATISTICS, ["TRIVIAL", "GREEDY", "II-GREEDY", "DP-B"])
    html = side._repr_html_()
    ET.fromstring(html)
    page = read_page(html)
    plans = side.table.drop_duplicates(["plan_kind", "plan"])
    assert [tag for tag, _ in page.elements].count("svg") == len(plans) == 3
    # Equal plans share a panel, in which each generator has its colour.
    shown = [
        text.split(",") for text in re.findall(r"<figcaption>(.*?)</figcaption>", html, re.DOTALL)
    ]
    names = [[re.sub("<.*?>", "", name).strip() for name in group] for group in shown]
    assert names == [["TRIVIAL"], ["GREEDY", "II-GREEDY"], ["DP-B"]]
    # Each leaf has its type below it.
    for name in "ABCD":
        assert len(re.findall(rf">\s*{name}\s*</text>", html)) == len(plans), name
    # The lines above the four events are equally thick in every picture.
    widths = [float(a["stroke-width"]) for tag, a in page.elements if tag == "line"]
    pictures = [set(widths[first : first + 6]) for first in range(0, len(widths), 6)]
    assert len(pictures) == 3 and len(set.intersection(*pictures)) == 4
    for name, colour in {"TRIVIAL": "#777777", "DP-B": "#117733"}.items():
        assert name in page.text
        assert sum(a.get("stroke") == colour for _, a in page.elements) == 6
    assert "SideBySide(4 plans" in repr(side) and "II-GREEDY" in side.describe()


def test_a_generator_that_refuses_says_why() -> None:
    cyclic = cep.parse(
        "PATTERN AND(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AND a.x < 2 * c.x WITHIN 5 s"
    )
    numbers = cep.Statistics(
        cardinalities=dict.fromkeys("abc", 4.0),
        selectivities={("a", "b"): 0.5, ("b", "c"): 0.4, ("a", "c"): 0.3},
    )
    side = cep.plans_side_by_side(cyclic, numbers, ["GREEDY", "IKKBZ"])
    reason = side.table.set_index("generator").loc["IKKBZ", "reason"]
    assert "IKKBZ" in reason and set(side.plans) == {"GREEDY"}
    assert reason[:40] in read_page(side._repr_html_()).text
    with pytest.raises(PlanGeneratorError, match="did you mean 'GREEDY'"):
        cep.plans_side_by_side(cyclic, numbers, ["GREDY"])


def test_what_if_plans_by_the_changed_numbers() -> None:
    found = cep.what_if(
        PLAIN, STATISTICS, window="5 minutes", rates={"c": 2.0}, selectivities={("b", "a"): 1e-3},
        alpha=0.5, seed=2,
    )  # fmt: skip
    pattern = cep.parse(str(PLAIN).replace("20 minutes", "5 minutes"))
    statistics = cep.Statistics(
        rates={"a": 0.02, "b": 0.005, "c": 2.0, "d": 0.01},
        selectivities={("a", "b"): 1e-3, ("c", "d"): 0.5},
        standard_errors={"a": 0.001, "b": 0.001, ("c", "d"): 0.02},
    )
    assert found.pattern == pattern and found.statistics == statistics
    # What was put in by hand was not measured.
    assert found.statistics.standard_errors == statistics.standard_errors
    for row in found.table.itertuples():
        new = cep.plan(pattern, statistics, row.generator, seed=2, alpha=0.5)
        old = cep.plan(PLAIN, STATISTICS, row.generator, seed=2)
        assert found.plans[row.generator] == new and row.cost == pytest.approx(new.cost)
        assert row.changed == (new.text != old.text)
        kept = cep.explain(pattern, old, statistics, alpha=0.5).plan
        assert row.cost_kept == pytest.approx(kept.cost)
        assert row.regret == pytest.approx(kept.cost / new.cost)
    assert found.table["changed"].any() and not found.table["changed"].all()
    page = read_page(found._repr_html_())
    assert page.text.count("changed; the old plan would cost") == found.table["changed"].sum()


def test_nothing_changed_changes_nothing() -> None:
    cardinalities = cep.Statistics(
        cardinalities={"a": 24.0, "b": 6.0, "c": 3.6, "d": 12.0},
        selectivities=STATISTICS.selectivities,
    )
    for statistics in (STATISTICS, cardinalities):
        found = cep.what_if(PLAIN, statistics)
        assert not found.table["changed"].any()
        assert found.table["regret"].tolist() == pytest.approx([1.0] * 9)
    # Cardinalities are of the pattern's window, and grow with it.
    longer = cep.what_if(PLAIN, cardinalities, window=40)
    assert longer.statistics.cardinality("a", 2400) == pytest.approx(48.0)
    assert cep.what_if(BRANCHED, STATISTICS, window=5).pattern.window == Window(5, "units")
    half_open = cep.parse(str(BRANCHED).replace("WITHIN", "WITHIN <"))
    assert cep.what_if(half_open, STATISTICS, window=5).pattern.window == Window(5, "units", True)


def test_what_if_refuses_what_makes_no_sense() -> None:
    for arguments, message in [
        ({"rates": {"e": 1.0}}, "rates: the statistics have no variable 'e'; they have a, b"),
        (
            {"selectivities": {("a", "e"): 1.0}},
            "selectivities: the statistics have no variable 'e'",
        ),
        ({"selectivities": {("a", "b"): 2.0}}, "a probability is at most 1"),
        ({"window": "5 units"}, "one counts ticks"),
        ({"window": "wide"}, "window = 'wide' is not a length of time; give a number of minutes"),
        ({"alpha": -1}, "alpha must be at least 0, not -1"),
    ]:
        with pytest.raises(StatisticsError, match=re.escape(message)):
            cep.what_if(PLAIN, STATISTICS, **arguments)
