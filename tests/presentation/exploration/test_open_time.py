"""Time axes without closed hours, on a 24-hour clock: places, labels, and what charts say of it."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.presentation.exploration.open_time import OpenTime, without_pauses
from cepbench.presentation.exploration.rates_chart import rates_chart
from cepbench.presentation.exploration.timeline import timeline

MINUTE = 60 * 10**9
DAY = 24 * 60 * MINUTE


def at(text: str) -> int:
    return pd.Timestamp(text).value


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    """Three days from 09:30 to 16:00, and a weekend between the second and the third."""
    rng = np.random.default_rng(3)
    days = [at("2026-01-08 09:30"), at("2026-01-09 09:30"), at("2026-01-12 09:30")]
    times = np.sort(np.concatenate([day + rng.integers(0, 390, 400) * MINUTE for day in days]))
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABC"), len(times), p=[0.5, 0.3, 0.2]),
            "time": pd.to_datetime(times),
            "price": rng.normal(100, 1, len(times)),
        }
    )
    return cep.EventStream.from_pandas(frame, type="type", time="time")


def test_pauses_are_left_out_and_nothing_else() -> None:
    times = np.array([0, 10, 20, 1020, 1030, 1080, 9000]) * MINUTE
    hours = without_pauses(times, 200 * MINUTE)
    assert hours.pauses == [(20 * MINUTE, 1020 * MINUTE), (1080 * MINUTE, 9000 * MINUTE)]
    asked = np.array([0, 20, 500, 1020, 1021, 1080, 5000, 9000]) * MINUTE
    assert (hours.places(asked) / 60).tolist() == [0, 20, 20, 20, 21, 80, 80, 80]
    # A fiftieth of the whole is no pause, and neither is what is no longer than asked for.
    assert not without_pauses(np.array([0, 2, *range(3, 101)]) * MINUTE, 1).pauses
    assert without_pauses(np.array([0, 3, *range(4, 101)]) * MINUTE, 1).pauses
    assert not without_pauses(times, 9000 * MINUTE).pauses


def test_labels_are_times_of_24_hours_and_dates_where_a_day_begins() -> None:
    pause = (at("2026-01-08 16:00"), at("2026-01-09 09:30"))
    hours = OpenTime(at("2026-01-08 09:30"), at("2026-01-09 16:00"), [pause])
    labels = {place / 60: lines for place, lines in hours.labels().items()}
    assert labels == {
        30: ["10:00", "Jan 8"], 150: ["12:00"], 270: ["14:00"],
        420: ["10:00", "Jan 9"], 540: ["12:00"], 660: ["14:00"], 780: ["16:00"],
    }  # fmt: skip
    brief = OpenTime(at("2026-01-08 13:00:05"), at("2026-01-08 13:00:45"), [])
    assert list(brief.labels().values())[:2] == [["13:00:05", "Jan 8"], ["13:00:10"]]
    year = OpenTime(at("2026-01-01"), at("2026-03-01"), [])
    assert next(iter(year.labels().values())) == ["Jan 1"] and len(year.labels()) <= 10


def test_what_an_axis_writes_is_found_for_each_of_its_values(stream: cep.EventStream) -> None:
    axis = rates_chart(cep.rates_over_time(stream, every="7 minutes")).to_dict()
    axis = axis["layer"][0]["encoding"]["x"]["axis"]
    lines = json.loads(re.match(r"(\{.*\})\[format\(datum.value, '.6~g'\)\]", axis["labelExpr"])[1])
    assert {f"{value:.6g}" for value in axis["values"]} == set(lines)


def test_rates_have_no_closed_hours(stream: cep.EventStream) -> None:
    rates = cep.rates_over_time(stream, every="10 minutes")
    chart = rates_chart(rates).to_dict()
    lines, rules = chart["layer"]
    rows = pd.DataFrame(chart["datasets"][lines["data"]["name"]])
    assert "dashed" in chart["title"]["subtitle"] and len(chart["datasets"]) == 2
    assert len(chart["datasets"][rules["data"]["name"]]) == 2
    assert rows["place"].max() == 3 * 39 * 600  # seconds of three days
    kept = rates[rates["rate"].notna()]
    for name, own in rows.groupby("type"):
        asked = kept[kept["type"] == name]
        # Each day has one row more, where its last interval ends.
        assert len(own) == len(asked) + 3 and own["events"].sum() == asked["events"].sum()
        for _, session in own.groupby("session"):
            assert session["rate"].iloc[-1] == session["rate"].iloc[-2]
            assert (session["place"].diff().dropna() == 600).all() and len(session) == 40
    whole = rates_chart(cep.rates_over_time(stream[:300], every="10 minutes")).to_dict()
    assert whole["layer"][0]["encoding"]["x"]["type"] == "temporal" and len(whole["layer"]) == 1
    assert whole["layer"][0]["encoding"]["x"]["axis"]["format"]["hours"] == "%H:%M"


def test_a_timeline_has_no_closed_hours(stream: cep.EventStream) -> None:
    pattern = cep.parse("PATTERN SEQ(A a, B b) WHERE a.price > b.price + 3 WITHIN 20 minutes")
    found = cep.evaluate(
        pattern, stream, cep.plan(pattern, cep.measure_statistics(pattern, stream))
    )
    hours = timeline(stream, found, pattern).hours
    assert [pd.Timestamp(begin).day for begin, _ in hours.pauses] == [8, 9]
    chart = cep.match_timeline(stream, found, pattern, units={"price": "dollars"}).to_dict()
    assert chart["title"]["text"] == "Matches over the price of each type, in dollars"
    assert "time without any event left out" in chart["title"]["subtitle"]
    scales = [layer["encoding"]["x"].get("scale") for layer in chart["vconcat"][-1]["layer"]]
    (domain,) = [scale["domain"] for scale in scales if scale]  # in several Vega warns
    assert domain[1] == pytest.approx(float(hours.places(stream.timestamps)[-1]))
    assert domain[1] < 3 * 390 * 60 + 1
    near = cep.match_timeline(stream, found, pattern, windows=1).to_dict()
    assert near["vconcat"][-1]["layer"][0]["encoding"]["x"]["axis"]["format"]["minutes"] == "%H:%M"
