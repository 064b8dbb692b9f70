"""The charts of estimates show every row that they are given, in both libraries."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.figures.matplotlib_panels import save_figure
from cepbench.presentation.figures.q_errors import Axis, q_errors_by_events
from tests.presentation.figures.test_figures import small_texts

SUMMARY = pd.DataFrame(
    [
        (pattern_set, model, events, 10, 1.0 + rank * events, 3.0 + rank * events, 99.0, 1.0)
        for pattern_set in ("sequence", "conjunction")
        for rank, model in enumerate(("exact", "adjacent", "joint"))
        for events in (1, 2, 3)
    ],
    columns=["pattern_set", "model", "events", "nodes", "median", "p95", "largest", "median_ratio"],
)
POINTS = pd.DataFrame(
    {
        "model": ["exact", "exact", "joint"],
        "kind": ["one", "two", "two"],
        "measured": [1.0, 10.0, 100.0],
        "estimated": [2.0, 5.0, 100.0],
        "name": ["p", "q", ""],
    }
)
AXES = Axis("measured", "measured"), Axis("estimated", "estimated")
LOOK: dict[str, Any] = {"panel": "model", "colour": "kind", "title": "both"}


def values_of(node: Any) -> list[dict[str, Any]]:
    """All rows in the data sets of a specification."""
    return [row for rows in json.loads(node.to_json())["datasets"].values() for row in rows]


def test_every_point_is_in_its_panel(tmp_path: Any) -> None:
    figure = static.scatter_in_panels(
        POINTS, *AXES, **LOOK, headings={"joint": "together"}, diagonal=True, label="name"
    )
    first, second = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["exact", "together"]
    drawn = [tuple(line.get_xydata()[0]) for line in first.lines if len(line.get_xdata()) == 1]
    assert drawn == [(1.0, 2.0), (10.0, 5.0)]
    assert [text.get_text() for text in first.texts] == ["p", "q"]
    assert first.get_xlim() == second.get_xlim()
    assert small_texts(figure) == []
    assert small_texts(static.q_errors_by_events(SUMMARY)) == []
    chart = interactive.scatter_in_panels(
        POINTS, *AXES, **LOOK, diagonal=True, label="name", tooltip=["name"]
    )
    points = [row for row in values_of(chart) if "kind" in row]
    assert sorted(row["estimated"] for row in points) == [2, 5, 100]
    assert all(path.stat().st_size for path in save_figure(figure, tmp_path, "figure"))


def test_colours_do_not_depend_on_the_order_of_rows() -> None:
    def colours(rows: pd.DataFrame) -> dict[str, Any]:
        drawn = static.scatter_in_panels(rows, *AXES, **LOOK).axes
        return {
            str(its.get_label()): its.lines[0].get_color() for a in drawn for its in a.containers
        }

    assert set(colours(POINTS)) == {"one", "two"}
    assert colours(POINTS) == colours(POINTS.iloc[::-1])


def test_ticks_begin_at_a_factor_of_1_and_end_at_2_or_more() -> None:
    large, small = (q_errors_by_events(SUMMARY.assign(p95=p95)).y.ticks for p95 in (100.0, 1.0))
    assert large[0] == 1 and small[-1] == 2


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ExperimentError, match="no rows to draw"):
        static.q_errors_by_events(SUMMARY.head(0))
    with pytest.raises(ExperimentError, match="no rows to draw"):
        interactive.scatter_in_panels(POINTS.head(0), *AXES, **LOOK)
