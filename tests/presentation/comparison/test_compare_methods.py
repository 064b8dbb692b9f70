"""Aggregation methods side by side."""

from __future__ import annotations

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError, StreamError
from cepbench.presentation.comparison.table import COLUMNS
from tests.engines.detection.strategies import stream_of

pytestmark = pytest.mark.kernel

STREAM = stream_of(
    pd.DataFrame({"type": list("ABABB"), "time": [1, 2, 3, 4, 9], "x": [1.5, 2, 3, 4, 5]})
)
PATTERN = "PATTERN SEQ(A a, B b) {} AGG COUNT, SUM(a.x) WITHIN 6 units"


class Wrong:
    def __init__(self, task: object) -> None: ...

    def push(self, batch: cep.EventStream) -> list:
        return [(4, 9, (), (7, 1.0))]


class Broken(Wrong):
    def push(self, batch: cep.EventStream) -> list:
        raise ValueError("of this kind")


def test_all_methods() -> None:
    cep.aggregator("wrong")(Wrong)
    cep.aggregator("broken")(Broken)
    done: list[tuple[int, int]] = []
    table = cep.compare(
        PATTERN.format("WHERE a.x < b.x"), STREAM, repetitions=2, seconds=0,
        on_progress=lambda *its: done.append(its),
    ).set_index("method")  # fmt: skip
    names = list(cep.AGGREGATORS)
    assert list(table.index) == names
    assert [table.index.name, *table.columns] == list(COLUMNS["method"])
    ok = table[table["status"] == "ok"]
    assert {"a-seq", "two-step"} <= set(ok.index)
    assert (ok["runs"] == 2).all() and (ok["values"] == 3).all()
    assert (ok["seconds"] > 0).all()
    assert ok["events_per_second"].tolist() == pytest.approx((5 / ok["seconds"]).tolist())
    assert table.loc["two-step", "updates"] == 4
    assert table["status"].drop(ok.index).to_dict() == {
        "dpc": "refused", "window-product": "refused",
        "wrong": "error", "broken": "error",
    }  # fmt: skip
    assert table.loc["dpc", "reason"].startswith("dpc keeps no first events")
    assert table.loc["wrong", "reason"].startswith(
        "not the values of order-statistics: position = "
    )
    assert table.loc["broken", "reason"].endswith(
        "the method broken failed: ValueError('of this kind')"
    )
    assert done[0] == (0, 3 * len(names)) and done[-1] == (3 * len(names), 3 * len(names))


def test_some_methods_in_html() -> None:
    table = cep.compare(
        PATTERN.format(""), STREAM, methods=["DPC", "two_step"], repetitions=1, seconds=0
    )
    assert table["status"].tolist() == ["refused", "ok"]
    assert table["reason"][0].startswith("row 4: the event of row 0 expires")
    page = table._repr_html_()
    assert "peak counters" in page and "refused: row 4" in page and "100.0%" in page


def test_runs_until_the_time_is_over() -> None:
    table = cep.compare(
        PATTERN.format(""), STREAM, methods=["two-step"], repetitions=1, seconds=0.05
    )
    assert table["runs"][0] > 1


def test_arguments() -> None:
    with pytest.raises(ExperimentError, match="generators are not for a pattern with AGG"):
        cep.compare(PATTERN.format(""), STREAM, generators=["GREEDY"])
    with pytest.raises(ExperimentError, match="methods are for a pattern with AGG"):
        cep.compare("PATTERN SEQ(A a, B b) WITHIN 6 units", STREAM, methods=["a-seq"])


def test_a_stream_that_does_not_fit_is_no_row_of_each_method() -> None:
    for query, words in {
        "SEQ(A a, Z b) AGG COUNT": "no event of type 'Z'",
        "SEQ(A a, B b) AGG SUM(b.y)": r"AGG SUM\(b.y\): the stream has no attribute",
        "SEQ(A a, B b) WHERE a.y > 1 AGG COUNT": "the stream has no attribute 'y'",
        "SEQ(A a, B b) AGG COUNT WITHIN 5 seconds": "needs a datetime column",
    }.items():
        text = f"PATTERN {query}" if "WITHIN" in query else f"PATTERN {query} WITHIN 6 units"
        with pytest.raises(StreamError, match=words):
            cep.compare(text, STREAM, repetitions=1, seconds=0, missing_types="error")
