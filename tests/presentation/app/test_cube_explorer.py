"""The explorer of a workload without a front end: clicks, errors, and its static picture."""

from __future__ import annotations

import ipywidgets as widgets
import pytest

import cepbench as cep
from cepbench.presentation.app.cube import CubeExplorer
from tests.drawn_events import drawn_stream, normal
from tests.presentation.app.widget_tree import inside, texts
from tests.presentation.reporting.offline import read_page

HIERARCHY = cep.ConceptHierarchy({"C": ["A", "B"]})
WORKLOAD = cep.Workload(
    {
        "q1": "PATTERN SEQ(C c, D d) WITHIN 5 units",
        "q2": "PATTERN SEQ(A a, D d) WHERE a.x < d.x WITHIN 5 units",
    },
    hierarchy=HIERARCHY,
)


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return drawn_stream(200, "ABD", seed=3, x=normal)


def count(pattern: str, stream: cep.EventStream) -> int:
    return cep.evaluate(
        cep.parse(pattern).with_hierarchy(HIERARCHY), stream, evaluator="stack-nfa"
    ).metrics.matches


def test_clicks(stream) -> None:
    app = cep.explore(WORKLOAD, stream)
    assert isinstance(app, CubeExplorer) and app.chosen == "q1"
    found = count("PATTERN SEQ(C c, D d) WITHIN 5 units", stream)
    assert app.buttons["q1"].description == f"q1: {found:,}"
    assert app.buttons["q1"].button_style == "primary"
    app.buttons["q2"].click()
    assert app.chosen == "q2" and app.buttons["q2"].button_style == "primary"
    app.moves["roll up", "q1"].click()
    button = app.moves["drill down", "c: B"]
    found = count("PATTERN SEQ(B c, D d) WITHIN 5 units", stream)
    assert button.description == f"c: B ({found:,})"
    button.click()
    assert app.chosen == "q1.1" and app.matches.metrics.matches == found
    assert f"{found:,} matches" in texts(app.widget) and "q1, c: B" in texts(app.widget)
    assert set(app.buttons) == {"q1", "q2", "q1.1"}
    # And back.
    app.moves["roll up", "q1"].click()
    assert app.chosen == "q1" and ("drill down", "q1.1") in app.moves
    assert app.error == ""


def test_an_item_is_written(stream) -> None:
    app = cep.explore(stream, WORKLOAD)
    app.insert.click()
    assert "write an item first" in app.error
    app.item.value = "Z z"
    app.insert.click()
    assert "no event of type &#39;Z&#39;" in app.error and app.chosen == "q1"
    assert set(app.buttons) == {"q1", "q2"}
    app.item.value, app.place.value = "B b", 2
    app.insert.click()
    assert app.error == "" and app.chosen == "q1.1" and app.item.value == ""
    assert app.matches.metrics.matches == count("PATTERN SEQ(C c, B b, D d) WITHIN 5 units", stream)
    assert app.place.max == 4


def test_boxes_are_where_the_lines_end(stream) -> None:
    app = cep.explore(WORKLOAD, stream)
    (grid,) = (its for its in inside(app.widget) if isinstance(its, widgets.GridBox))
    lines, *boxes = grid.children
    assert boxes == list(app.buttons.values())
    assert {its.layout.grid_area for its in grid.children} == {"1 / 1 / 2 / 2"}
    tops = [int(its.layout.margin.split("px")[0]) for its in boxes]
    assert tops[0] < tops[1] and "<rect" not in lines.value and "<path" in lines.value


def test_a_front_end_without_widgets_gets_a_picture(stream) -> None:
    app = cep.explore(WORKLOAD, stream)
    bundle = app._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    page = bundle["text/html"]
    read_page(page)
    assert "q2" in page and "drill down" in page and "<svg" in page
    assert bundle["text/plain"] == "CubeExplorer(2 queries, chosen 'q1')"


def test_sources_of_events() -> None:
    dataset = cep.open_dataset("ten-symbols/sample")
    workload = cep.Workload({"q": "PATTERN SEQ(s0 a, s1 b) WITHIN 1 seconds"})
    apps = [
        cep.explore(workload, dataset), cep.explore("ten-symbols/sample", workload),
        cep.explore(dataset, workload),
    ]  # fmt: skip
    assert len({app.matches.metrics.matches for app in apps}) == 1
    for given, message in (
        ((workload, None), "dataset must be an EventStream"),
        ((workload, "nowhere/at-all"), "nowhere"),
        ((workload, workload), "dataset must be an EventStream"),
    ):
        with pytest.raises(cep.CepbenchError, match=message):
            cep.explore(*given)
    with pytest.raises(cep.CepbenchError, match="no query 'q2'"):
        apps[0].choose("q2")
