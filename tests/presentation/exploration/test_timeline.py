"""Timelines of matches, charts of rates and comparisons: their rows, one by one."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError, StreamError
from cepbench.presentation.comparison.bars import comparison_bars
from cepbench.presentation.exploration.rates_chart import rates_chart
from cepbench.presentation.exploration.timeline import timeline
from cepbench.presentation.figures.styles import style_of


def stream_of(count: int, *, ticks: bool = False) -> cep.EventStream:
    rng = np.random.default_rng(4)
    times = np.sort(rng.integers(0, 4 * count, count))
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABCD"), count),
            "time": times
            if ticks
            else pd.Timestamp("2026-01-05") + pd.to_timedelta(times, unit="s"),
            "price": rng.normal(100, 1, count).round(2),
            "volume": rng.integers(1, 9, count),
            "venue": rng.choice(["x", "y"], count),
        }
    )
    return cep.EventStream.from_pandas(frame, type="type", time="time")


def found_in(stream: cep.EventStream, text: str) -> tuple[cep.Pattern, pd.DataFrame]:
    pattern = cep.parse(text)
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream))
    return pattern, cep.evaluate(pattern, stream, plan).matches


PATTERNS = {
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE a.price < b.price WITHIN 30 seconds",
    "kleene": "PATTERN SEQ(A a, KL(B b), C c) WHERE b.price > 101 WITHIN 30 seconds",
    "or": "PATTERN OR(SEQ(A a, NOT(D n), B b), AND(C c, D d)) WHERE c.price < d.price WITHIN 9 seconds",
    "any type": "PATTERN SEQ(A a, ANY b, NOT(ANY n), C c) WHERE b.price > 101 AND n.price > 101 "
    "WITHIN 9 seconds",
}


@pytest.mark.parametrize("name", PATTERNS)
def test_every_event_of_every_match_is_there(name: str) -> None:
    stream = stream_of(300)
    pattern, matches = found_in(stream, PATTERNS[name])
    assert 2 < len(matches) <= 300
    found = timeline(stream, matches, pattern, highlight=1)
    events = stream.to_pandas()
    expected = []
    for number, row in enumerate(matches.to_dict("records")):
        for variable in pattern.positive_names:
            cell = row[variable]
            places = cell if isinstance(cell, tuple) else () if pd.isna(cell) else (cell,)
            for place in places:
                event = events.loc[place]
                expected.append(
                    (
                        number,
                        variable,
                        event["type"],
                        place,
                        event["time"],
                        event["price"],
                        number == 1,
                    )
                )
    assert list(found.events.itertuples(index=False, name=None)) == expected
    used = {variable.type for variable in pattern.variables} | {event[2] for event in expected}
    curves = events[events["type"].isin(used)]
    assert found.curves["position"].tolist() == curves.index.tolist()
    assert found.curves["value"].tolist() == curves["price"].tolist()
    assert found.remarks == () and found.attribute == "price"
    times = [time for number, *_, time, _, _ in expected if number == 1]
    assert found.span == (min(times), max(times))


def test_a_stream_of_texts_has_matches_without_curves() -> None:
    frame = pd.DataFrame({"type": list("ABCAB"), "time": [1, 2, 3, 4, 5], "k": list("vwxyz")})
    frame["missing"] = None
    for columns in (["k"], [], ["k", "missing"]):
        stream = cep.EventStream.from_pandas(
            frame[["type", "time", *columns]], type="type", time="time"
        )
        text = "PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 2 units"
        matches = cep.evaluate(text, stream, cep.OrderPlan(["a", "b"])).matches
        found = timeline(stream, matches, text)
        assert found.attribute is None and "no attribute is a number" in found.remarks[-1]
        assert found.events["position"].tolist() == [3, 4]
        drawn = cep.match_timeline(stream, matches, text).to_dict()
        (panel, *_) = [each for each in drawn["vconcat"] if "layer" in each]
        marks = [layer["mark"]["type"] for layer in panel["layer"]]
        assert "line" not in marks and {"tick", "point", "text"} <= set(marks)
        with pytest.raises(StreamError):
            timeline(stream, matches, text, attribute="k")


def test_a_pattern_may_be_its_text() -> None:
    stream = stream_of(60)
    pattern, matches = found_in(stream, PATTERNS["sequence"])
    chart = cep.match_timeline(stream, matches, PATTERNS["sequence"])
    assert chart.to_dict() == cep.match_timeline(stream, matches, pattern).to_dict()


def test_windows_around_the_highlighted_match() -> None:
    stream = stream_of(300)
    pattern, matches = found_in(stream, PATTERNS["sequence"])
    found = timeline(stream, matches, pattern, highlight=5, windows=2)
    first, last = found.span
    reach = pd.Timedelta(seconds=60)
    inside = stream.to_pandas()[lambda events: events["time"].between(first - reach, last + reach)]
    assert found.curves["position"].tolist() == inside[inside["type"] != "D"].index.tolist()
    whole = [
        n for n, row in enumerate(matches.itertuples(index=False)) if {*row} <= {*inside.index}
    ]
    assert found.events["match"].unique().tolist() == whole and 5 in whole


def test_a_match_that_ends_just_outside_is_not_inside() -> None:
    frame = pd.DataFrame(
        {"type": list("ABABB"), "time": [0, 4, 10, 14, 15], "price": [1.0, 2.0, 1.0, 2.0, 3.0]}
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    pattern, matches = found_in(stream, "PATTERN SEQ(A a, B b) WITHIN 5 units")
    assert matches.values.tolist() == [[0, 1], [2, 3], [2, 4]]
    # From tick -5 to 9, from 5 to 19, and with half a window from 8 to 16 and 7 to 17.
    for highlight, windows, inside in ((0, 1, [0]), (1, 1, [1, 2]), (1, 0, [1]), (2, 0, [1, 2])):
        found = timeline(stream, matches, pattern, highlight=highlight, windows=windows)
        assert found.events["match"].unique().tolist() == inside
        assert found.remarks == ()


def test_what_is_too_much_is_thinned_and_said_so() -> None:
    stream = stream_of(20_000, ticks=True)
    pattern, matches = found_in(
        stream, "PATTERN SEQ(A a, B b) WHERE a.volume < b.volume WITHIN 8 units"
    )
    assert len(matches) > 300
    found = timeline(stream, matches, pattern, highlight=7, attribute="volume")
    assert 2000 < len(found.curves) <= 4500
    every = int(re.fullmatch(r"of volume one update in (\d+) drawn", found.remarks[1])[1])
    counts = stream.counts_by_type()
    assert len(found.curves) == sum(-(-counts[name] // every) for name in "AB")
    shown = found.events["match"].nunique()
    assert shown <= 301 and 7 in set(found.events["match"])
    assert found.remarks[0] == f"{shown} of {len(matches)} matches here marked"
    chart = cep.match_timeline(stream, matches, pattern, 7, attribute="volume").to_dict()
    assert all(remark in chart["title"]["subtitle"] for remark in found.remarks)


def test_a_chart_has_a_panel_a_type_and_one_match_marked() -> None:
    stream = stream_of(300)
    pattern, matches = found_in(stream, PATTERNS["or"])
    chart = cep.match_timeline(stream, matches, pattern, 2).to_dict()
    titles = [
        next(
            layer["encoding"]["y"]["title"] for layer in panel["layer"] if "y" in layer["encoding"]
        )
        for panel in chart["vconcat"]
    ]
    assert titles == ["A", "D", "B", "C"]  # D is also asked for, in the other branch
    names = [
        row["variable"]
        for panel in chart["vconcat"]
        for layer in panel["layer"]
        if layer["mark"]["type"] == "text"
        for row in chart["datasets"][layer["data"]["name"]]
    ]
    assert len(names) == 2
    empty = cep.match_timeline(stream, matches[:0], pattern).to_dict()
    assert "no matches" in empty["title"]["subtitle"]
    pattern, matches = found_in(stream, "PATTERN SEQ(ANY a, B b) WITHIN 9 seconds")
    chart = cep.match_timeline(stream, matches, pattern).to_dict()
    assert len(chart["vconcat"]) == 4  # b's type, and those of all events that a is bound to


def test_a_forbidden_type_is_marked_and_an_event_of_many_matches_drawn_once() -> None:
    stream = stream_of(300)
    text = "PATTERN SEQ(A a, NOT(D n), B b) WHERE a.price < b.price WITHIN 30 seconds"
    pattern, matches = found_in(stream, text)
    chart = cep.match_timeline(stream, matches, pattern, 1).to_dict()
    drawn, dashes = [], {}
    for panel in chart["vconcat"]:
        for layer in panel["layer"]:
            rows = chart["datasets"][layer["data"]["name"]]
            if layer["mark"]["type"] == "line":
                dashes[layer["encoding"]["y"]["title"]] = layer["mark"]["strokeDash"]
            elif layer["mark"]["type"] in ("tick", "point"):
                drawn += [(row["highlighted"], row["position"]) for row in rows]
                other = layer["mark"]["type"] == "tick"
                assert not other or layer["mark"]["orient"] == "vertical"
    assert dashes == {"A": [1, 0], "NOT D": [4, 2], "B": [1, 0]}
    assert "forbids (NOT)" in chart["title"]["subtitle"][0]
    found = timeline(stream, matches, pattern, highlight=1).events
    pairs = found[["highlighted", "position"]].drop_duplicates()
    assert len(pairs) < len(found)
    assert sorted(drawn) == sorted(pairs.itertuples(index=False, name=None))
    sequence, own = found_in(stream, PATTERNS["sequence"])
    assert "NOT" not in cep.match_timeline(stream, own, sequence).to_dict()["title"]["subtitle"][0]


@pytest.mark.parametrize("ticks", [True, False])
@pytest.mark.filterwarnings("ignore::cepbench.errors.MissingTypeWarning")
def test_a_stream_without_the_types_of_the_pattern_has_empty_panels(ticks: bool) -> None:
    stream = stream_of(30, ticks=ticks).of_types(["D"])
    window = "9 units" if ticks else "9 seconds"
    pattern = cep.parse(f"PATTERN SEQ(A a, B b) WITHIN {window}")
    chart = cep.match_timeline(stream, cep.evaluate(pattern, stream), pattern).to_dict()
    assert len(chart["vconcat"]) == 2 and "no matches" in chart["title"]["subtitle"]
    assert "NaT" not in str(chart)


def test_what_cannot_be_drawn_is_refused() -> None:
    stream = stream_of(300)
    pattern, matches = found_in(stream, PATTERNS["sequence"])
    with pytest.raises(EvaluationError, match=f"have the numbers 0 … {len(matches) - 1}"):
        cep.match_timeline(stream, matches, pattern, len(matches))
    with pytest.raises(StreamError, match="'venue' is a text"):
        cep.match_timeline(stream, matches, pattern, attribute="venue")
    with pytest.raises(StreamError, match="no attribute 'prise'"):
        cep.match_timeline(stream, matches, pattern, attribute="prise")
    with pytest.raises(StreamError, match="is the time of the stream"):
        cep.match_timeline(stream, matches, pattern, attribute=stream.time_name)
    with pytest.raises(StreamError, match="an empty stream has no timeline"):
        cep.match_timeline(stream[:0], matches[:0], pattern)


def test_bars_have_the_generators_colours_and_name_what_failed() -> None:
    stream = stream_of(300)
    table = cep.compare(cep.parse(PATTERNS["sequence"]), stream, repetitions=1, seconds=0)
    table.loc[0, ["status", "reason"]] = "limit", "too many"
    chart = comparison_bars(table).to_dict()
    assert "TRIVIAL: limit" in " ".join(chart["title"]["subtitle"])
    (rows,) = chart["datasets"].values()
    assert [row["series"] for row in rows] == table["generator"].tolist()[1:]
    assert [row["peak_bytes"] for row in rows] == table["peak_bytes"].tolist()[1:]
    colours = chart["hconcat"][1]["layer"][0]["encoding"]["color"]["scale"]["range"]
    assert colours[0] == style_of("EFREQ", "order").colour


def test_rates_are_drawn_per_minute_and_thinned_to_what_altair_takes() -> None:
    stream = stream_of(3000)
    rates = cep.rates_over_time(stream, every=60)
    (rows,) = rates_chart(rates).to_dict()["datasets"].values()
    assert [row["events"] for row in rows] == rates["events"].tolist()
    assert rows[5]["rate"] == pytest.approx(60 * rates["rate"].iloc[5])
    fine = rates_chart(cep.rates_over_time(stream, every=1)).to_dict()
    (rows,) = fine["datasets"].values()
    every = int(re.match(r"one interval in (\d+) drawn", fine["title"]["subtitle"])[1])
    assert len(rows) == 4 * -(-12_000 // every) <= 4500 + 4
