"""The chart of a value series: its lines are the values, at any size, and it says what it leaves out."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.aggregation.aggregate import AggregateResult
from cepbench.engines.aggregation.protocol import AggregateMetrics, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.errors import EvaluationError


def result_of(
    text: str, rows: list[tuple[Any, ...]], *, group: list[str] | None = None
) -> AggregateResult:
    """A result with these values, one row a tick."""
    pattern = cep.parse(f"PATTERN SEQ(A a, B b) {text} WITHIN 9 units")
    keys = group or [()] * len(rows)
    made = [
        Row(n, n, (key,) if group else (), its)
        for n, (key, its) in enumerate(zip(keys, rows, strict=True))
    ]
    floats = [each.function == "AVG" for each in pattern.aggregates]
    return AggregateResult(pattern, "two-step", AggregateMetrics(), Rows.of(made, floats), False)


def panels_of(result: AggregateResult) -> tuple[list[dict[str, Any]], list[pd.DataFrame], str]:
    """The lines of each panel, their rows, and the subtitle."""
    chart = cep.value_series(result).to_dict()
    lines = [panel["layer"][0] for panel in chart["vconcat"]]
    # altair moves data that is the same in all layers, or panels, above them.
    places = [
        next(each["data"] for each in (line, panel, chart) if "data" in each)
        for line, panel in zip(lines, chart["vconcat"], strict=True)
    ]
    data = [pd.DataFrame(chart["datasets"][place["name"]]) for place in places]
    return lines, data, chart["title"]["subtitle"]


def test_a_panel_for_each_aggregate_and_a_line_for_each_group() -> None:
    result = result_of(
        "GROUP BY a.v AGG COUNT, AVG(b.x)", [(1, 0.5), (2, None), (0, 2.0)], group=list("uvu")
    )
    (counts, means), data, subtitle = panels_of(result)
    assert [line["encoding"]["y"]["title"] for line in (counts, means)] == ["COUNT", "AVG(b.x)"]
    assert counts["encoding"]["color"]["scale"]["domain"] == ["u", "v"]
    assert counts["mark"]["interpolate"] == "step-after"
    assert data[0][["group", "height", "value"]].to_numpy().tolist() == [
        ["u", 1.0, "1"], ["u", 0.0, "0"], ["v", 2.0, "2"],
    ]  # fmt: skip
    assert data[1].set_index("group").loc["v", "value"] == "none"
    assert subtitle == "pick groups in the legend"


def test_groups_with_commas_are_told_apart() -> None:
    groups = [("u, v", "w"), ("u", "v, w")]
    pattern = cep.parse("PATTERN SEQ(A a, B b) GROUP BY a.v, b.v AGG COUNT WITHIN 9 units")
    rows = Rows.of([Row(n, n, group, (1,)) for n, group in enumerate(groups)], [False])
    (counts,), _, _ = panels_of(
        AggregateResult(pattern, "two-step", AggregateMetrics(), rows, False)
    )
    assert counts["encoding"]["color"]["scale"]["domain"] == ['"u, v", w', 'u, "v, w"']


def test_a_step_ends_where_the_value_is_missing() -> None:
    _, (data,), _ = panels_of(result_of("AGG AVG(b.x)", [(1.5,), (None,), (2.5,), (None,)]))
    assert data["time"].tolist() == [0, 1, 1, 2, 3, 3]
    assert data["height"].fillna(-1).tolist() == [1.5, 1.5, -1, 2.5, 2.5, -1]


def test_values_beyond_floats() -> None:
    (line,), (data,), _ = panels_of(result_of("AGG COUNT", [(0,), (3,), (10**5000,)]))
    foot = line["encoding"]["y"]["scale"]["domain"][0]
    assert data["height"].tolist() == [foot, math.log10(3), 5000.0]
    assert foot < 0
    assert data["value"].tolist() == ["0", "3", "1.0000 × 10⁵⁰⁰⁰"]
    labels = json.loads(line["encoding"]["y"]["axis"]["labelExpr"].partition("[")[0])
    assert (labels[str(foot)], labels["0"], labels["5000"]) == ("0", "1", "10⁵⁰⁰⁰")
    # An axis with negative values is linear.
    _, (data,), _ = panels_of(result_of("AGG SUM(b.x)", [(-1,), (10**400,), (10**5,)]))
    assert data["height"].fillna(0).tolist() == [-1, -1, 0, 10**5]
    assert data["value"].tolist()[2] == "1.0000 × 10⁴⁰⁰"


def test_many_values_keep_the_least_and_the_greatest() -> None:
    heights = np.random.default_rng(0).integers(5, 90, 30_000)
    heights[[7, 20_000]] = [2, 99]
    _, (data,), subtitle = panels_of(result_of("AGG COUNT", [(int(h),) for h in heights]))
    assert len(data) <= 4500
    assert (data["height"].min(), data["height"].max()) == (2, 99)
    assert (heights[data["time"]] == data["height"]).all()
    assert data["time"].is_monotonic_increasing
    assert "the least and the greatest" in subtitle


def test_many_groups_show_those_with_most_values() -> None:
    group = [str(n % 20) for n in range(100)] + ["most"] * 9
    _, (data,), subtitle = panels_of(
        result_of("GROUP BY a.v AGG COUNT", [(1,)] * len(group), group=group)
    )
    assert data["group"].nunique() == 8 and "most" in set(data["group"])
    assert "the 8 of 21 groups with most values" in subtitle


def test_a_line_for_each_query_of_a_workload() -> None:
    frame = pd.DataFrame({"type": list("ABBAB"), "time": range(5), "x": [1, 2, 3, 4, 5]})
    frame["v"] = list("uvwuv")
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    workload = cep.Workload.parse("""
        Q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 9 units
        Q2 = PATTERN SEQ(B a, B b) GROUP BY v AGG COUNT, SUM(b.x) WITHIN 9 units
    """)
    (counts, sums), data, _ = panels_of(cep.aggregate(workload, stream))
    assert counts["encoding"]["color"]["title"] == "query, v"
    assert data[0].loc[data[0]["group"] == "Q1", "height"].tolist() == [1, 2, 4]
    assert set(data[1]["group"]) == {"Q2, v", "Q2, w"}
    assert sums["encoding"]["y"]["title"] == "SUM(b.x)"


def test_pauses_are_left_out() -> None:
    stream = cep.open_dataset("nasdaq-style/sample").stream()
    result = cep.aggregate("PATTERN SEQ(CSCO a, MSFT b) AGG COUNT WITHIN 3 minutes", stream)
    (line,), (data,), subtitle = panels_of(result)
    assert line["encoding"]["x"]["field"] == "place" and "dashed" in subtitle
    assert data["place"].max() < 14 * 3600
    assert data["height"].tolist() == result.values["COUNT"].tolist()


def test_no_value_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="there is no value to draw"):
        cep.value_series(result_of("AGG COUNT", []))
