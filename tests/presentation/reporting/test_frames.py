"""DataFrames as a page shows them."""

from __future__ import annotations

import re

import pandas as pd

from cepbench.presentation.reporting.frames import folded_if_long, readable_frames

FRAME = pd.DataFrame({"plan": ["a<b", "c"], "pairs": [80368472, 17], "share": [0.25, float("nan")]})


def test_rows_have_no_numbers_and_texts_are_on_the_left() -> None:
    html = readable_frames(FRAME.to_html())
    assert re.findall("<t[hd][ >].*>", html) == [
        '<th class="text">plan</th>', "<th>pairs</th>", "<th>share</th>",
        '<td class="text">a&lt;b</td>', "<td>80,368,472</td>", "<td>0.25</td>",
        '<td class="text">c</td>', "<td>17</td>", "<td>–</td>",
    ]  # fmt: skip


def test_numbers_of_four_digits_have_commas_beside_larger_ones() -> None:
    def cells(*numbers: int) -> list[str]:
        return re.findall("<td>(.*)</td>", readable_frames(pd.DataFrame([numbers]).to_html()))

    assert cells(6775, 11610, 16083) == ["6,775", "11,610", "16,083"]
    assert cells(2008, 2026) == ["2008", "2026"]


def test_names_of_rows_stay() -> None:
    html = readable_frames(FRAME.set_index("plan").to_html())
    assert "<th>a&lt;b</th>" in html and 'class="text"' not in html
    by_pairs = readable_frames(FRAME.set_index("pairs").to_html())
    assert '<th class="text">plan</th>' in by_pairs and "<th>share</th>" in by_pairs
    assert "<th>0</th>" in readable_frames(FRAME.rename(index={1: 5}).to_html())


def test_several_heads_and_no_rows() -> None:
    crossed = FRAME.pivot_table(index="plan", columns="pairs", values=["share"])
    assert readable_frames(crossed.to_html()) == crossed.to_html()
    assert "pairs" in readable_frames(FRAME[:0].to_html())


def test_what_pandas_did_not_write_stays() -> None:
    for html in ("<p>12345</p>", FRAME.style.to_html()):
        assert readable_frames(html) == html


def test_long_tables_are_folded() -> None:
    short, long = (pd.DataFrame({"x": range(rows)}).to_html() for rows in (24, 25))
    assert folded_if_long(f"<svg></svg>{long}") == f"<svg></svg>{long}"
    assert folded_if_long(short) == short and folded_if_long("<p>text</p>") == "<p>text</p>"
    assert folded_if_long(long) == f"<details><summary>A table of 25 rows</summary>{long}</details>"
