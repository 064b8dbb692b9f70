"""Pages open offline, draw their charts, and show every name as text and never as markup."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import cepbench as cep
from cepbench.presentation.figures import interactive
from cepbench.presentation.figures.offline import VEGALITE_MIME
from cepbench.presentation.figures.recording import RECORD_MIME
from cepbench.presentation.reporting.downloads import Download, Downloads
from cepbench.presentation.reporting.navigation import Navigation
from cepbench.presentation.reporting.pages import Page, body_of, page_of
from cepbench.presentation.reporting.shell import CONTENT_POLICY, write_assets
from tests.presentation.figures.test_figures import MINE, OURS, summary_of
from tests.presentation.reporting.browser import Browser
from tests.presentation.reporting.offline import read_page

EVIL = "<script>alert(1)</script>"
EVIL_IMAGE = '"><img src=x onerror=alert(2)>'
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def shown(thing: Any) -> Any:
    """The output of a cell that ends with ``thing``, as the notebook's kernel makes it."""
    data, metadata = DisplayFormatter().format(thing)
    return new_output("execute_result", data, metadata=metadata, execution_count=1)


def chart_output(generators: dict[str, str]) -> Any:
    drawing = interactive.bars_by_group(summary_of(generators), "events_per_second")
    return new_output("display_data", {VEGALITE_MIME: drawing.to_dict(), "text/plain": "a chart"})


def html_of(notebook: Any, **details: Any) -> str:
    """The page of a notebook, as the site has it."""
    page = Page("own", title=notebook.metadata.get("title", "own"))
    body = body_of(notebook, folder="own", **details)
    return page_of(page, body, Navigation.of([page.entry]))


def notebook_of(*outputs: Any, source: str = "1 + 1", tags: tuple[str, ...] = ()) -> Any:
    cell = new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})
    metadata = {"title": "A title", "kernelspec": {"name": "python3", "display_name": "Python"}}
    return new_notebook(cells=[new_markdown_cell("# Heading"), cell], metadata=metadata)


@pytest.fixture(scope="module")
def page() -> str:
    """A page with charts of user-named generators, a table, a picture, text and an error."""
    return html_of(
        notebook_of(
            chart_output(OURS | MINE),
            shown(pd.DataFrame({"a": [1.0]})),
            new_output("display_data", {"image/png": PICTURE}),
            new_output("stream", name="stdout", text="some text\n"),
            chart_output(OURS),
        )
    )


def test_the_reader_of_pages_finds_whatever_would_be_loaded() -> None:
    html = """
        <link rel="stylesheet" href="https://a/x.css"><script src="//b/x.js"></script>
        <img srcset="x.png 1x, http://c/x.png 2x"><div style="background: url(https://d/x.png)">
        <style>@import "e.css"; p { src: url('http://f/x.woff') }</style>
        <script>fetch("https://g/x"); import('https://h/x')</script>
        <body onload="fetch('https://i/x')"><iframe src="https://j"></iframe>
        <a href="https://fine.example">a link that waits for a click</a><img src="data:x">
    """
    loads = read_page(html).loads
    found = [load.partition(": ")[2].split("/")[2 if "//" in load else 0] for load in loads]
    assert sorted(name.strip() for name in found) == [*"abcd", "e.css", *"fghij"]


def test_a_page_loads_files_beside_it_and_forbids_others(page: str) -> None:
    parsed = read_page(page)
    assert parsed.loads == []
    names = [tag for tag, _ in parsed.elements]
    policies = [
        number
        for number, (tag, attributes) in enumerate(parsed.elements)
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert parsed.elements[policies[0]][1]["content"] == CONTENT_POLICY
    assert policies[0] < min(names.index("script"), names.index("link"))
    assert "default-src 'none'" in CONTENT_POLICY and "http" not in CONTENT_POLICY
    # No script that stands in a page is ever run; what stands there is data.
    (scripts,) = (part for part in CONTENT_POLICY.split("; ") if part.startswith("script-src"))
    assert "unsafe-inline" not in scripts
    assert all(a.get("type") == "application/json" for a, text in parsed.scripts if text)


def test_every_chart_is_there_once_and_says_what_it_is(page: str) -> None:
    scripts = read_page(page).scripts
    charts = [json.loads(text) for attributes, text in scripts if "data-chart" in attributes]
    assert len(charts) == 2
    assert all("vconcat" in chart or "hconcat" in chart for chart in charts)
    assert all(chart["description"].startswith("Throughput") for chart in charts)
    assert [a["src"] for a, _ in scripts if "src" in a] == ["assets/vega.js", "assets/site.js"]
    assert len(page) < 100_000


def test_a_widget_leaves_the_picture_that_stands_for_it() -> None:
    view = {"model_id": "1", "version_major": 2, "version_minor": 0}
    widget = "application/vnd.jupyter.widget-view+json"
    html = html_of(
        notebook_of(new_output("display_data", {widget: view, "text/html": "<p>a picture</p>"}))
    )
    assert "<p>a picture</p>" in html and widget not in html


def test_a_page_without_charts_loads_no_vega() -> None:
    html = html_of(notebook_of(new_output("stream", name="stdout", text="some text")))
    assert "some text" in html and "vega" not in html.lower()


def saved(stem: str) -> Any:
    return new_output("display_data", {RECORD_MIME: {"figure": stem}})


SVG = new_output("display_data", {"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'/>"})


def classes_of(html: str) -> list[str]:
    return [a["class"] for tag, a in read_page(html).elements if tag == "figure"]


def test_a_figure_that_is_saved_right_after_its_chart_is_its_twin_for_print() -> None:
    cells = [
        new_code_cell("chart", outputs=[chart_output(OURS)]),
        new_code_cell("save_figure(…)", outputs=[saved("figure_1"), SVG]),
    ]
    notebook = new_notebook(cells=cells)
    body = body_of(notebook, folder="own")
    assert body.figures == ["figure_1"]
    assert classes_of(body.html) == ["drawn has-twin", "drawn twin"]
    assert 'id="chart-0"' in body.html
    assert list(body.pictures) == ["own/pictures/0.svg"]
    assert body.pictures["own/pictures/0.svg"] == SVG.data["image/svg+xml"].encode()
    links = [a.get("href") for tag, a in read_page(body.html).elements if tag == "a"]
    assert links == ["own/figure_1.svg", "own/figure_1.png"]
    (picture,) = (a for tag, a in read_page(body.html).elements if tag == "img")
    assert picture["alt"].startswith("Throughput") and picture["src"] == "own/pictures/0.svg"


def test_links_of_a_page_in_a_folder_lead_out_of_it() -> None:
    cells = [new_code_cell("chart", outputs=[chart_output(OURS)])]
    cells.append(new_code_cell("…", outputs=[saved("figure_1"), SVG]))
    body = body_of(new_notebook(cells=cells), folder="mei2009/figure_1")
    page = Page("mei2009/figure_1", "T")
    elements = read_page(page_of(page, body, Navigation.of([page.entry]))).elements
    links = [a.get("src") or a.get("href") for _, a in elements if "src" in a or "href" in a]
    assert links and all(link.startswith(("../", "#")) for link in links)
    assert "../mei2009/figure_1/figure_1.svg" in links


def test_any_other_figure_is_shown_on_the_screen_too() -> None:
    chart = new_code_cell("chart", outputs=[chart_output(OURS)])
    several = new_code_cell("…", outputs=[saved("figure_1"), SVG, saved("figure_2"), SVG])
    unsaved = new_code_cell("d", outputs=[SVG])
    for cells, looks in (
        ([several], ["drawn", "drawn"]),
        ([chart, unsaved], ["drawn", "drawn"]),
        ([chart, new_markdown_cell("text"), several], ["drawn", "drawn", "drawn"]),
        ([chart, several], ["drawn has-twin", "drawn twin", "drawn"]),
    ):
        body = body_of(new_notebook(cells=cells), folder="own")
        assert classes_of(body.html) == looks
        assert body.figures == (["figure_1", "figure_2"] if several in cells else [])


@pytest.fixture(scope="module")
def things_with_evil_names() -> dict[str, Any]:
    names = [EVIL, EVIL_IMAGE]
    frame = pd.DataFrame(
        {
            "symbol": [names[k % 2] for k in range(40)],
            "ts": pd.to_datetime(np.arange(40), unit="s", utc=True),
            "x": np.linspace(0, 1, 40),
        }
    )
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="ts")
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    text = f"PATTERN SEQ({quoted[0]} a, {quoted[1]} b) WHERE a.x < b.x WITHIN 5 seconds"
    pattern = cep.parse(text)
    statistics = cep.measure_statistics(pattern, stream)
    tree = cep.plan(pattern, statistics, generator="DP-B")
    order = cep.plan(pattern, statistics, generator="DP-LD")
    result = cep.evaluate(pattern, stream, tree)
    return {
        "pattern": pattern,
        "stream": stream,
        "statistics": statistics,
        "tree plan": tree,
        "order plan": order,
        "result": result,
        "comparison": cep.compare(
            pattern, stream, statistics=statistics, generators=["GREEDY"], repetitions=1, seconds=0
        ),
        "table": frame,
        "text": text,
    }


def test_names_in_results_are_text_and_never_markup(things_with_evil_names: dict) -> None:
    named = 0
    for what, thing in things_with_evil_names.items():
        parsed = read_page(html_of(notebook_of(shown(thing))))
        assert not any("alert(1)" in text for _, text in parsed.scripts), what
        assert not any("onerror" in attributes for _, attributes in parsed.elements), what
        named += "alert(1)" in parsed.text
    assert named >= 3  # and shown they are: in the pattern, the table and the text at least


def test_names_in_charts_texts_and_sources_are_text_and_never_markup() -> None:
    generators = OURS | {EVIL: "order", "</script><img src=x onerror=alert(2)>": "tree"}
    stream = new_output("stream", name="stdout", text=f"{EVIL}\n{EVIL_IMAGE}\n")
    error = new_output("error", ename=EVIL, evalue=EVIL, traceback=[EVIL])
    notebook = notebook_of(chart_output(generators), stream, error, source=f"x = '{EVIL}'")
    notebook.metadata["title"] = EVIL
    parsed = read_page(html_of(notebook))
    assert not any("onerror" in attributes for _, attributes in parsed.elements)
    carrying = [attributes for attributes, text in parsed.scripts if "alert(1)" in text]
    assert [attributes.get("type") for attributes in carrying] == ["application/json"]
    assert parsed.text.count("alert(1)") >= 4  # title, source, text, error


def test_files_are_as_large_as_they_are() -> None:
    sizes = {"small": 7, "medium": 41_400, "large": 3_200_000}
    links = tuple((name, f"own/{name}.csv", size) for name, size in sizes.items())
    page = Page("own", "T", downloads=Downloads(tables=(Download("table", links),)))
    body = body_of(notebook_of(), folder="own")
    text = read_page(page_of(page, body, Navigation.of([page.entry]))).text
    shown_sizes = [" ".join(text.partition(name)[2].split()[:2]) for name in sizes]
    assert shown_sizes == ["7 Bytes,", "41.4 kB,", "3.2 MB"]


def test_code_is_folded_unless_the_page_is_read_for_it() -> None:
    def unfolded(*tags: str, **details: str) -> list[bool]:
        elements = read_page(html_of(notebook_of(tags=tags), **details)).elements
        return ["open" in a for tag, a in elements if tag == "details" and a["class"] == "code"]

    assert unfolded() == [False] and unfolded(code="shown") == [True]
    for tag in ("parameters", "injected-parameters", "fold"):
        assert unfolded(tag, code="shown") == [False]


def test_a_page_of_results_has_its_figure_first_and_its_method_last() -> None:
    """Each cell once; without a tag the first chart leads, and what is before the first section is method."""

    def text(words: str) -> Any:
        return new_output("stream", name="stdout", text=words)

    lead, other = (new_code_cell("c", outputs=[chart_output(OURS), text(f"{n}|")]) for n in "ab")
    cells = [
        new_markdown_cell("# T\n\nwhat differs"), new_code_cell("early", outputs=[text("early|")]),
        new_markdown_cell("## The sweep", metadata={"tags": ["method"]}),
        new_code_cell("s", outputs=[text("sweep|")]), new_markdown_cell("## One"), lead,
        new_code_cell("…", outputs=[saved("figure_1"), SVG]), new_markdown_cell("### Part"), other,
        new_code_cell("quiet"),
        new_code_cell("f", outputs=[text("written|")], metadata={"tags": ["fold"]}),
    ]  # fmt: skip

    def parts(notebook: Any) -> list[list[str]]:
        body = body_of(notebook, folder="own", code="last")
        found = (read_page(part).text for part in (body.lead, body.html, body.method))
        words = (
            "what differs",
            "early|",
            "The sweep",
            "sweep|",
            "One",
            "a|",
            "Part",
            "b|",
            "quiet",
            "written|",
        )
        return [[word for word in words if word in text] for text in found]

    notebook = new_notebook(cells=cells)
    method = ["what differs", "early|", "The sweep", "sweep|", "quiet", "written|"]
    assert parts(notebook) == [["a|"], ["One", "Part", "b|"], method]
    other.metadata["tags"] = ["lead"]
    assert parts(notebook) == [["b|"], ["One", "a|", "Part"], method]
    plain = new_notebook(cells=[new_code_cell("c", outputs=[text("a|")])])
    assert parts(plain) == [[], ["a|"], []]


def test_a_finding_that_leads_its_page_stands_there_alone() -> None:
    told = new_output("display_data", {"text/markdown": "Found."})
    record = new_output("display_data", {RECORD_MIME: {"finding": "Found."}})
    notebook = notebook_of(told, record, told, record)
    body = body_of(notebook, folder="own", code="last")
    assert body.found == "Found."
    assert (body.lead + body.html + body.method).count("Found.") == 1
    assert body_of(notebook, folder="own").html.count("Found.") == 2


def test_a_progress_bar_is_shown_as_it_ended() -> None:
    text = "0%\r50%\r\x1b[32m100%\x1b[0m\ndone\r\n"
    parsed = read_page(html_of(notebook_of(new_output("stream", name="stderr", text=text))))
    assert "100%\ndone" in parsed.text
    assert "50%" not in parsed.text and "[32m" not in parsed.text


def test_pieces_of_one_progress_bar_are_one_line() -> None:
    pieces = [
        new_output("stream", name="stderr", text=text)
        for text in ("\rsweep: 1%", "\rsweep: 50%", "\rsweep: 100%", "\n")
    ]
    after = new_output("stream", name="stdout", text="done\n")
    parsed = read_page(html_of(notebook_of(*pieces, after)))
    assert parsed.text.count("sweep:") == 1 and "sweep: 100%" in parsed.text
    assert "done" in parsed.text


def test_streams_in_turn_stay_in_turn() -> None:
    names = ("stdout", "stderr", "stdout", "stdout", "stderr")
    written = [
        new_output("stream", name=name, text=f"line {number}\n")
        for number, name in enumerate(names)
    ]
    shown = re.findall(
        r"output_(stdout|stderr) [^>]*>\s*<pre>(.*?)</pre>", html_of(notebook_of(*written)), re.S
    )
    assert shown == [
        ("stdout", "line 0\n"), ("stderr", "line 1\n"), ("stdout", "line 2\nline 3\n"),
        ("stderr", "line 4\n"),
    ]  # fmt: skip


def test_the_notebook_stays_as_it_was() -> None:
    notebook = notebook_of(chart_output(OURS), new_output("stream", name="stdout", text="a\rb"))
    before = nbformat.writes(notebook)
    html_of(notebook)
    assert nbformat.writes(notebook) == before


@pytest.mark.xdist_group("notebooks")
def test_charts_are_drawn_in_a_browser_without_a_network(
    page: str, chromium: Browser, tmp_path: Path
) -> None:
    write_assets(tmp_path)
    (tmp_path / "own" / "pictures").mkdir(parents=True)
    (tmp_path / "own" / "pictures" / "0.png").write_bytes(base64.b64decode(PICTURE))
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    chromium.open(tmp_path / "page.html", 1280)
    assert chromium.console == []  # neither an error nor a request that the policy refused
    parsed = read_page(chromium.html())
    drawn = [attributes for tag, attributes in parsed.elements
             if tag in ("canvas", "svg") and "marks" in attributes.get("class", "")]  # fmt: skip
    assert len(drawn) == 2
    assert all(int(float(canvas["width"])) > 300 for canvas in drawn)
    assert "could not be drawn" not in parsed.text


@pytest.mark.xdist_group("notebooks")
def test_the_browser_would_report_a_request(page: str, chromium: Browser, tmp_path: Path) -> None:
    asking = page.replace("<body>", '<body><img src="https://elsewhere.example/x.png">', 1)
    assert asking != page
    write_assets(tmp_path)
    (tmp_path / "page.html").write_text(asking, encoding="utf-8")
    chromium.open(tmp_path / "page.html", 1280)
    assert any("elsewhere.example" in line and "Content Security Policy" in line
               for line in chromium.console)  # fmt: skip
