"""A small report, published: every link leads somewhere, and it fits every screen."""

from __future__ import annotations

import io
import json
import re
import time
import zlib
from itertools import pairwise
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pandas as pd
import pytest
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from typer.testing import CliRunner

from cepbench.errors import ReportError
from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.presentation.commands.app import app
from cepbench.presentation.figures.matplotlib_panels import save_figure
from cepbench.presentation.figures.recording import RECORD_MIME
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.downloads import MOST_CELLS, without_outputs
from cepbench.presentation.reporting.ledger import ledger_for_readers
from cepbench.presentation.reporting.navigation import Navigation, group_of, groups
from cepbench.presentation.reporting.requests import report_stems, requests_for
from cepbench.presentation.reporting.shell import with_contents
from cepbench.presentation.reporting.side_by_side import USES
from cepbench.presentation.reporting.site import Steps, publish_report
from cepbench.presentation.reporting.titles import summary_of, title_of, with_words
from cepbench.presentation.reporting.verdicts import ledger, numbers
from tests.presentation.figures.test_figures import OURS
from tests.presentation.reporting.browser import Browser
from tests.presentation.reporting.crates import checked_crate, references_in
from tests.presentation.reporting.legible import illegible
from tests.presentation.reporting.offline import Page, read_page
from tests.presentation.reporting.test_pages import chart_output, shown

WIDTHS = (390, 820, 1440)
RAN = {
    "parameters": {"profile": "quick", "seed": 3},
    "start_time": "2026-01-02T03:04:05+00:00",
    "duration": 61.0,
    "exception": None,
}
SWEEP = "data/sweeps/strategies-00/results.parquet"
INJECTED = new_code_cell("seed = 3", metadata={"tags": ["injected-parameters"]})


def write_executed(folder: Path, stem: str, *cells: Any, **metadata: Any) -> None:
    """A notebook as papermill leaves it."""
    (folder / stem).mkdir(parents=True, exist_ok=True)
    own = {
        "machine": {"processor": "X", "cores": "2"},
        "versions": {"cepbench": "9.9", "numpy": "8.8"},
        "commit": "abc with changes",
        "sweeps": [SWEEP, "data/sweeps/removed-00/results.parquet"],
    }
    notebook = new_notebook(
        cells=list(cells), metadata={"papermill": RAN, "cepbench": own, **metadata}
    )
    nbformat.write(notebook, folder / stem / f"{Path(stem).name}.ipynb")


def drawing() -> tuple[Figure, Any]:
    figure = Figure(figsize=(9, 3))
    figure.subplots().plot([1, 2])
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return figure, new_output("display_data", {"image/svg+xml": text.getvalue()})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tutorial, a figure with a chart and wide tables, the ledger, a benchmark, documentation."""
    folder = tmp_path_factory.mktemp("site")
    long = "x = " + " + ".join(["a_long_name"] * 40)
    write_executed(
        folder,
        "quickstart",
        new_markdown_cell("# Quick start"),
        new_code_cell("seed = 0", metadata={"tags": ["parameters"]}),
        INJECTED,
        new_code_cell(long, outputs=[new_output("stream", name="stdout", text=long)]),
        title="Quick start",
        summary="How it begins",
    )
    figure, output = drawing()
    table = pd.DataFrame({f"column {k}": [f"value {k}"] * 3 for k in range(30)})
    verdicts = ledger("kolchinsky2018", {})
    saved, finding = (
        new_output("display_data", {RECORD_MIME: what})
        for what in ({"figure": "figure_9"}, {"finding": "Plans <differ>."})
    )
    write_executed(
        folder,
        "kolchinsky2018/figure_9",
        new_markdown_cell("# Figure 9\n\nSome `code`.\n\n## Throughput"),
        new_code_cell("chart", outputs=[chart_output(OURS)]),
        new_code_cell('save_figure(figure, folder, "figure_9")\nfigure', outputs=[saved, output]),
        new_code_cell("figure", outputs=[output, shown(table), finding]),
        title="Figure 9: strategies",
    )
    save_figure(figure, folder / "kolchinsky2018/figure_9", "figure_9")
    table.to_parquet(folder / "kolchinsky2018/figure_9" / "summary.parquet")
    runs = {
        "pattern": ["p", "q"],
        "generator": "EFREQ",
        "status": "ok",
        "seconds": 1.0,
        "events": 600,
    }
    pd.DataFrame(runs).to_parquet(folder / "kolchinsky2018/figure_9" / "results.parquet")
    large = pd.DataFrame({"x": range(MOST_CELLS + 1)})
    large.to_parquet(folder / "kolchinsky2018/figure_9" / "large.parquet")
    verdicts["verdict"] = verdicts["overall"] = "holds"
    verdicts["lack"] = ""
    verdicts[["value", "low", "high"]] = 1.0, 0.5, 1.5
    write_executed(
        folder,
        "kolchinsky2018/ledger",
        new_markdown_cell("# The ledger"),
        new_code_cell("v", outputs=[shown(ledger_for_readers(verdicts, "../claims.html"))]),
        title="The ledger: all claims",
    )
    verdicts.to_parquet(folder / "kolchinsky2018/ledger/ledger.parquet")
    numbers("kolchinsky2018", {}).to_parquet(folder / "kolchinsky2018/ledger/numbers.parquet")
    write_executed(
        folder,
        "my_idea",
        new_markdown_cell("# My *idea*\n\nThe `rarest` first. And more."),
        new_code_cell("seed = 0", metadata={"tags": ["parameters"]}),
        new_code_cell("seed"),
    )
    (folder / SWEEP).parent.mkdir(parents=True)
    pd.DataFrame(runs).to_parquet(folder / SWEEP)
    (folder / SWEEP).with_name("sweep.json").write_text("{}")
    (folder / "benchmarks").mkdir()
    wide = "A <b> benchmark" + " 1.5" * 100
    (folder / "benchmarks" / "bench_joins.txt").write_text(wide, encoding="utf-8")
    for name in ("index", "language", "site", "reference/index"):
        path = folder / "docs" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<!DOCTYPE html><h1 id='x'>Documentation</h1>")
    head = "# Sphinx inventory version 2\n# Project: c\n# Version: \n# The remainder of this file is zlib.\n"
    listed = "a page std:doc -1 language.html The language card\ncepbench.plan py:function 1 reference/index.html#$ -\n"
    packed = head.encode() + zlib.compress(listed.encode())
    (folder / "docs" / "objects.inv").write_bytes(packed)
    publish_report(folder, on_progress=lambda *line: pytest.fail(": ".join(line)))
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    paths = [*site.glob("*.html"), *site.glob("kolchinsky2018/*.html")]
    return {
        path.relative_to(site).as_posix(): read_page(path.read_text(encoding="utf-8"))
        for path in paths
    }


def test_every_executed_notebook_is_a_page(pages: dict[str, Page]) -> None:
    assert set(pages) == {
        "index.html", "quickstart.html", "claims.html", "algorithms.html", "kolchinsky2018/figure_9.html",
        "kolchinsky2018/ledger.html", "my_idea.html", "reference.html", "benchmarks.html",
    }  # fmt: skip
    text = " ".join(pages["kolchinsky2018/figure_9.html"].text.split())
    for expected in (
        "2026-01-02 03:04 UTC, took 1 min 1 s", "seed = 3", "processor X", "versions cepbench 9.9",
        "summary: Parquet", "3 rows × 30 columns",
    ):  # fmt: skip
        assert expected in text.replace("processorX", "processor X").replace(
            "versionscepbench", "versions cepbench"
        ), expected


def test_the_crate_has_each_run_with_what_it_read_used_and_wrote(site: Path) -> None:
    crate = checked_crate(site)
    run = crate["#kolchinsky2018/figure_9"]
    assert run["@type"] == "CreateAction"
    assert run["startTime"] == "2026-01-02T03:04:05+00:00"
    assert run["endTime"] == "2026-01-02T03:05:06+00:00"
    # Of the sweeps, that which is there.
    sweep, *parameters = [crate[its] for its in references_in(run["object"])]
    assert sweep["@id"] == SWEEP
    assert [(its["name"], its["value"]) for its in parameters] == [
        ("profile", "quick"),
        ("seed", 3),
    ]
    notebook, software, machine = (crate[its] for its in references_in(run["instrument"]))
    assert notebook["@id"] == "kolchinsky2018/figure_9/figure_9_without_outputs.ipynb"
    assert (software["softwareVersion"], software["identifier"]) == ("9.9", "abc with changes")
    assert crate[software["license"]["@id"]]["identifier"] == "Apache-2.0"
    needed = [crate[its] for its in references_in(software["softwareRequirements"])]
    assert [(its["name"], its["softwareVersion"]) for its in needed] == [("numpy", "8.8")]
    assert (machine["name"], machine["description"]) == ("X", "2 cores")
    written = set(references_in(run["result"]))
    stem = "kolchinsky2018/figure_9"
    names = ("figure_9.svg", "figure_9.ipynb", "summary.parquet", "summary.csv", "large.parquet")
    assert {f"{stem}.html", *(f"{stem}/{name}" for name in names)} <= written
    paper = crate[run["about"]["@id"]]
    assert paper["@id"] == f"https://doi.org/{STUDY.reference.doi}"
    assert paper["name"] == STUDY.reference.title
    root = crate["./"]
    assert [*references_in(root["citation"])] == [paper["@id"]]
    runs = [its for its, entity in crate.items() if entity["@type"] == "CreateAction"]
    assert len(runs) == 4 and runs == [*references_in(root["mentions"])]
    assert {"index.html", "claims.html", "docs/index.html", "benchmarks.html"} <= set(crate)


def seen_from(page: str, link: str) -> str:
    """Where a link on a page leads, relative to the site."""
    return normpath(Path(page).parent / unquote(link))


def test_every_link_leads_to_a_page_a_file_or_an_anchor(site: Path, pages: dict[str, Page]) -> None:
    links = 0
    for name, page in pages.items():
        assert page.loads == []
        for tag, attributes in page.elements:
            for key in ("href", "src", "data-chart", "aria-labelledby", "aria-controls"):
                if key not in attributes:
                    continue
                address = urlsplit(attributes[key])
                assert not address.scheme and not address.netloc, (name, attributes[key])
                is_id = not key.endswith(("href", "src"))
                target = "" if is_id or not address.path else seen_from(name, address.path)
                anchor = address.path if is_id else unquote(address.fragment)
                assert (site / (target or name)).is_file(), (name, tag, attributes[key])
                if "=" in anchor:  # a search
                    assert tag == "a" and target == "claims.html"
                elif anchor and (target or name) in pages:
                    found = [a.get("id") for _, a in pages[target or name].elements]
                    assert found.count(anchor) == 1, (name, tag, attributes[key])
                links += 1
    assert links > 150


def test_navigation_is_the_same_on_every_page_and_marks_the_current(
    pages: dict[str, Page],
) -> None:
    order = [
        "index.html", "quickstart.html", "claims.html", "algorithms.html", "kolchinsky2018/figure_9.html",
        "kolchinsky2018/ledger.html", "my_idea.html",
        "docs/index.html", "docs/language.html", "docs/reference/index.html", "reference.html", "benchmarks.html",
    ]  # fmt: skip
    for name, page in pages.items():
        links = [a for tag, a in page.elements if tag == "a" and "rel" not in a]
        listed = [seen_from(name, a["href"]) for a in links]
        start = listed.index("index.html", 2)  # after the link to the content and the name
        assert listed[start : start + len(order)] == order
        current = [a["href"] for a in links if a.get("aria-current") == "page"]
        assert [seen_from(name, href) for href in current] == [name]
        turns = {
            a["rel"]: seen_from(name, a["href"])
            for tag, a in page.elements
            if tag == "a" and "rel" in a
        }
        at = order.index(name)
        assert turns.get("prev") == (order[at - 1] if at else None)
        after = order[at + 1] if 0 < at < len(order) - 1 else None  # the front page's are its cards
        assert turns.get("next") == after


def test_the_front_page_leads_to_the_documentation(site: Path, tmp_path: Path) -> None:
    """Three pages of it, beside the navigation; none of them where they were not made."""
    front = (site / "index.html").read_text(encoding="utf-8")
    ways = front[front.index('class="ways"') : front.index("Machine, versions")]
    for link in ("docs/index.html", "docs/language.html", "docs/reference/index.html"):
        assert f'href="{link}"' in ways
    write_executed(tmp_path, "quickstart", title="Quick start")
    publish_report(tmp_path, on_progress=lambda *line: pytest.fail(": ".join(line)))
    alone = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "docs/" not in alone and "Documentation" not in alone


def test_a_page_is_in_the_group_of_its_study() -> None:
    root = Path(__file__).resolve().parents[3] / "notebooks"
    for request in requests_for([], root):
        stem, metadata = request.stem, nbformat.read(request.path, as_version=4).metadata
        assert group_of(stem) == (stem.partition("/")[0] if "/" in stem else "start")
        assert group_of(stem) in groups() and metadata["title"] and metadata["summary"]
        assert metadata["uses"] in USES
    assert group_of("x") == group_of("unknown2030/x") == "own"
    assert Navigation.of([]).neighbours("index.html") == (None, None)


def test_a_page_of_ones_own_says_what_it_is(pages: dict[str, Page]) -> None:
    """It is in a group of its own, called by its first heading, with its first sentence."""
    for name, page in pages.items():
        text = " ".join(page.text.split())
        assert "Your pages My idea" in text, name
    assert "The rarest first." in " ".join(pages["index.html"].text.split())


@pytest.mark.parametrize(
    ("cells", "metadata", "title", "summary"),
    [
        (["# One\n\nText."], {"title": "Two", "summary": "Said."}, "Two", "Said."),
        (["no heading"], {"title": " "}, "the file", "no heading"),
        (["![x](y.png)\n\n## **Bold** [link](z) of a_b\n", "Is it? Yes."], {},
         "Bold link of a_b", "x"),
        ([], {}, "the file", ""),
        (["# T\n\n" + "word " * 100], {}, "T", "word " * 49 + "word …"),
    ],
)  # fmt: skip
def test_titles_and_summaries(
    cells: list[str], metadata: dict[str, str], title: str, summary: str
) -> None:
    notebook = new_notebook(cells=list(map(new_markdown_cell, cells)), metadata=metadata)
    assert title_of(notebook, "the_file") == title
    assert summary_of(notebook) == summary


def test_a_table_with_words_for_names() -> None:
    index = pd.MultiIndex.from_tuples([(1, 2)], names=["pattern_set", None])
    table = pd.DataFrame({"times_trivial": [1.0], "model": "x"}, index=index)
    shown = with_words(table)
    assert list(shown.columns) == ["times trivial", "model"]
    assert list(shown.index.names) == ["pattern set", None]
    assert list(table.columns) == ["times_trivial", "model"]  # stays as it was
    assert list(table.index.names) == ["pattern_set", None]


def test_copies_of_a_notebook_are_told_apart(tmp_path: Path) -> None:
    for stem in ("user_defined_generator", "pair_first"):
        write_executed(tmp_path, stem, title="A plan generator of your own")
    publish_report(tmp_path, on_progress=lambda *line: pytest.fail(": ".join(line)))
    text = " ".join(read_page((tmp_path / "index.html").read_text("utf-8")).text.split())
    assert "Your pages pair first" in text


def test_which_notebooks_are_meant(tmp_path: Path) -> None:
    here, there = tmp_path / "notebooks", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        for stem in ("quickstart", "mine", "index"):
            (folder / f"{stem}.ipynb").touch()
    (there / "Zwei & drei.ipynb").touch()
    assert [request.stem for request in requests_for([], here)] == report_stems()
    named = requests_for(["mine", str(there / "Zwei & drei.ipynb"), "quickstart", "mine"], here)
    assert [request.stem for request in named] == ["quickstart", "mine", "Zwei_drei"]
    its = requests_for(["mine"], here, studies=["kolchinsky2018"])
    assert [request.stem for request in its] == [
        *(f"kolchinsky2018/{name}" for name in (*STUDY.notebooks, "ledger")), "mine",
    ]  # fmt: skip
    assert its[0].path == here / "kolchinsky2018" / "figures_3_4_5.ipynb"
    (here / "kolchinsky2018").mkdir()
    (here / "kolchinsky2018" / "figure_6.ipynb").touch()
    for name in ("figure_6", "kolchinsky2018/figure_6", str(its[1].path)):
        assert [request.stem for request in requests_for([name], here)] == [its[1].stem]
    (here / "ledger.ipynb").touch()  # one notebook for all studies
    (ledger,) = requests_for(["liu2011/ledger"], here)
    assert (ledger.stem, ledger.path) == ("liu2011/ledger", here / "ledger.ipynb")
    with pytest.raises(
        ReportError, match=r"no study 'kolchinski2018'; there are .*; did you mean 'kolchinsky"
    ):
        requests_for([], here, studies=["kolchinski2018"])
    for wanted, message in (
        (["mine", str(there / "mine.ipynb")], "would both be the page mine.html"),
        (["minne"], r"no notebook 'minne' in .*; did you mean 'mine'\?"),
        ([str(there / "min.ipynb")], r"there is no file .*min\.ipynb; did you mean 'mine'\?"),
        (["index"], "cannot be called 'index'"),
        ([str(there / "quickstart.ipynb")], "has a notebook quickstart of its own"),
    ):
        with pytest.raises(ReportError, match=message):
            requests_for(wanted, here)


def test_marks_of_the_ledger_lead_to_the_claims(pages: dict[str, Page]) -> None:
    links = [a for tag, a in pages["index.html"].elements if a.get("class") == "holds"]
    found = [a["href"] for a in links if a.get("aria-label")]
    for claim in claims(STUDY):
        assert f"claims.html#kolchinsky2018-{claim.id}" in found
    assert len(found) == len(claims(STUDY))


def test_numbers_of_the_front_page_are_those_of_the_results(pages: dict[str, Page]) -> None:
    text = " ".join(pages["index.html"].text.split())
    for expected in (
        "runs measured 2 ", "events processed 1,200 ", "patterns 2 ", "plan generators 1 ",
        f"{len(claims(STUDY))} holds", "not run: figures_3_4_5, figure_6,",
        "1.00 times the throughput of TRIVIAL and EFREQ 95 %: 0.50 to 1.50",
    ):  # fmt: skip
        assert expected.replace(" ", "") in text.replace(" ", ""), expected


def test_a_page_of_results_begins_with_what_was_found_and_its_figure(
    pages: dict[str, Page],
) -> None:
    """Then follow the paper's claims beside what was measured, and last how it was made, with all code."""
    page = pages["kolchinsky2018/figure_9.html"]
    text = " ".join(page.text.split())
    found, claim, method = "Plans <differ>.", "1.00 (0.50 to 1.50)", "Methodwhat differs"
    assert text.count(found) == 1 and text.index(found) < text.index(claim) < text.index(method)
    order = [a["class"] for _, a in page.elements if a.get("class") in
             ("found", "strip", "drawn has-twin", "drawn twin", "method", "code")]  # fmt: skip
    assert order == ["found", "strip", "drawn has-twin", "drawn twin", "method", *["code"] * 3]


def test_tables_can_be_taken_away_as_text(site: Path) -> None:
    folder = site / "kolchinsky2018" / "figure_9"
    written = pd.read_csv(folder / "summary.csv")
    pd.testing.assert_frame_equal(written, pd.read_parquet(folder / "summary.parquet"))
    assert (folder / "results.csv").exists() and not (folder / "large.csv").exists()


def test_the_notebook_can_be_taken_away_as_it_was_before_it_was_run(site: Path) -> None:
    bare = nbformat.read(site / "quickstart" / "quickstart_without_outputs.ipynb", as_version=4)
    assert [cell.source[:8] for cell in bare.cells] == ["# Quick ", "seed = 0", "x = a_lo"]
    assert not any(cell.get("outputs") for cell in bare.cells)
    assert set(bare.metadata) == {"title", "summary"}


def test_without_outputs_the_notebooks_of_this_project_are_as_they_are() -> None:
    root = Path(__file__).resolve().parents[3] / "notebooks"
    for stem in ("kolchinsky2018/figure_9", "ledger"):
        before = nbformat.read(root / f"{stem}.ipynb", as_version=4)
        ran = nbformat.read(root / f"{stem}.ipynb", as_version=4)
        ran.metadata["papermill"], ran.metadata["cepbench"] = RAN, {}
        for cell in ran.cells:
            cell.metadata["papermill"] = {"duration": 1.0}
            cell.metadata.setdefault("tags", [])
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [new_output("stream", text="x")], 7
        ran.cells.insert(2, INJECTED)
        assert without_outputs(ran) == before


def test_what_is_gone_from_the_results_is_gone_from_the_site(tmp_path: Path) -> None:
    cell, other = (new_code_cell("figure", outputs=[drawing()[1]]) for _ in range(2))
    write_executed(tmp_path, "own", cell, other)
    publish_report(tmp_path)
    assert len(list((tmp_path / "own" / "pictures").iterdir())) == 2
    write_executed(tmp_path, "own", cell)
    publish_report(tmp_path)
    assert len(list((tmp_path / "own" / "pictures").iterdir())) == 1


def test_a_notebook_that_failed_is_told_and_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    write_executed(tmp_path, "good", new_markdown_cell("# Good"))
    write_executed(tmp_path, "bad", new_markdown_cell("# Bad"), papermill={"exception": True})
    publish_report(tmp_path, on_progress=lambda *line: said.append(": ".join(line)))
    assert (tmp_path / "good.html").exists() and not (tmp_path / "bad.html").exists()
    assert said == ["bad: left out, since a cell of it failed; run it again"]


def test_nothing_to_publish_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"no executed notebook in .*cepbench report build"):
        publish_report(tmp_path)


def test_the_command_publishes_without_running(tmp_path: Path) -> None:
    write_executed(tmp_path, "own", new_markdown_cell("# Own"))
    done = CliRunner().invoke(app, ["report", "build", "--pages-only", "-o", str(tmp_path)])
    assert done.exit_code == 0 and f"open {tmp_path / 'index.html'}" in done.output
    assert (tmp_path / "own.html").exists()


def test_headings_go_down_one_step_at_a_time_and_pictures_have_words(
    pages: dict[str, Page],
) -> None:
    for name, page in pages.items():
        in_page = [tag for tag, _ in page.elements]
        after = in_page.index("main")
        levels = [int(tag[1]) for tag in in_page[after:] if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1, name
        assert all(b <= a + 1 for a, b in pairwise(levels)), (name, levels)
        assert dict(page.elements)["html"]["lang"] == "en"
        for landmark in ("header", "nav", "main", "footer"):
            assert landmark in in_page, name
        assert all("alt" in a for tag, a in page.elements if tag == "img"), name
        ids = [a["id"] for _, a in page.elements if "id" in a]
        assert len(ids) == len(set(ids)), name


@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_screen(site: Path, chromium: Browser, width: int) -> None:
    for name in (
        "index", "quickstart", "claims", "kolchinsky2018/figure_9", "kolchinsky2018/ledger", "benchmarks",
    ):  # fmt: skip
        chromium.open(site / f"{name}.html", width)
        assert chromium.console == [], name
        assert illegible(chromium) == [], name
        wide = chromium.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (name, wide)
        assert chromium.evaluate("document.body.scrollWidth") <= width, name
    chromium.open(site / "kolchinsky2018/figure_9.html", width)
    over = chromium.evaluate(
        "[...document.querySelectorAll('svg.marks')].map("
        "chart => chart.getBoundingClientRect().right - innerWidth)"
    )
    assert len(over) == 1 and over[0] <= 0


@pytest.mark.xdist_group("notebooks")
def test_the_switch_shows_the_code_and_the_menu_the_pages(site: Path, chromium: Browser) -> None:
    chromium.open(site / "my_idea.html", 390)
    folded = "[...document.querySelectorAll('details.code')].filter(cell => !cell.open).length"
    cells = chromium.evaluate("document.querySelectorAll('details.code').length")
    assert chromium.evaluate(folded) == cells == 2
    button = "document.getElementById('show-code')"
    says = f"[{button}.textContent, {button}.getAttribute('aria-expanded')]"
    assert chromium.evaluate(says) == ["Show code", "false"]
    chromium.evaluate(f"{button}.click()")
    assert chromium.evaluate(folded) == 0
    assert chromium.evaluate(says) == ["Hide code", "true"]
    chromium.evaluate(f"{button}.click()")
    assert chromium.evaluate(folded) == cells
    assert chromium.evaluate(says) == ["Show code", "false"]
    # A cell that is opened by hand counts too.
    chromium.evaluate("document.querySelector('details.code').open = true")
    chromium.wait(f"{button}.textContent === 'Hide code'")
    chromium.evaluate(f"{button}.click()")
    assert chromium.evaluate(folded) == cells
    chromium.evaluate("localStorage.clear()")
    height = "document.querySelector('nav.pages').getBoundingClientRect().height"
    assert chromium.evaluate(height) == 0
    chromium.evaluate("document.getElementById('menu').click()")
    assert chromium.evaluate(height) > 100


@pytest.mark.xdist_group("notebooks")
def test_the_switch_begins_with_what_is_seen(site: Path, chromium: Browser) -> None:
    chromium.open(site / "quickstart.html", 1280)
    says = "document.getElementById('show-code').textContent"
    assert chromium.evaluate(says) == "Hide code"  # a page that is read for its code
    chromium.open(site / "kolchinsky2018/figure_9.html", 1280)
    assert chromium.evaluate("document.getElementById('show-code')") is None  # a page of results


@pytest.mark.xdist_group("notebooks")
def test_a_claim_is_found_by_its_words_and_a_search_can_be_shared(
    site: Path, chromium: Browser
) -> None:
    chromium.open(site / "claims.html", 1280)
    rows = "[...document.querySelectorAll('.filtered > details')].filter(row => !row.hidden)"
    assert chromium.evaluate(f"{rows}.length") == len(claims(STUDY))
    words = "memory clearly ZSTREAM-ORD"
    chromium.evaluate(
        f"(() => {{ const field = document.querySelector('.filters input'); field.value = '{words}';"
        " field.dispatchEvent(new Event('input')); })()"
    )
    (found,) = [c for c in claims(STUDY) if all(word in c.statement for word in words.split())]
    shown = f"{rows}.map(row => row.querySelector('.statement').textContent)"
    assert chromium.evaluate(shown) == [found.statement]
    says = "document.querySelector('.filters output').textContent"
    assert chromium.evaluate(says) == "1 claim"
    assert chromium.evaluate("location.hash") == "#text=memory+clearly+ZSTREAM-ORD"
    address = (site / "claims.html").resolve().as_uri()
    chromium.call("Page.navigate", url="about:blank")
    chromium.call("Page.navigate", url=f"{address}#text=ZSTREAM-ORD+clearly+memory")
    chromium.wait("document.querySelector('.filters output')?.textContent === '1 claim'")
    # A link to a claim opens it, whatever was searched for before.
    chromium.evaluate("location.hash = 'kolchinsky2018-contiguity-restricts'")
    chromium.wait(f"{rows}.length === {len(claims(STUDY))}")
    opened = "document.querySelector('.claim[open]')"
    chromium.wait(f"{opened}?.getBoundingClientRect().bottom < 900")  # it is scrolled to
    row = chromium.evaluate(f"{opened}.querySelector('tbody tr').innerText")
    assert "1.00 (0.50 to 1.50)\t1 or more" in row


@pytest.mark.xdist_group("notebooks")
def test_whatever_the_site_has_is_found_from_every_page(site: Path, chromium: Browser) -> None:
    links = "[...document.querySelectorAll('#found a')].map(a => [a.lastChild.textContent, a.getAttribute('href')])"
    for page, root in (("index", ""), ("kolchinsky2018/figure_9", "../")):
        chromium.open(site / f"{page}.html", 390)
        for words, kind, link in (
            ("9 strategies", "page", "kolchinsky2018/figure_9.html"),
            ("throughput", "section", "kolchinsky2018/figure_9.html#Throughput"),
            ("fewer CONTIGUITY restricts", "claim", "claims.html#kolchinsky2018-contiguity-restricts"),
            ("dp-ld:", "plan generator", "algorithms.html#text=DP-LD"),
            ("card", "documentation", "docs/language.html"),
            ("cepbench.plan", "reference", "docs/reference/index.html#cepbench.plan"),
        ):  # fmt: skip
            chromium.evaluate(
                "(() => { const field = document.getElementById('search');"
                f" field.value = {json.dumps(words)}; field.dispatchEvent(new Event('input')); }})()"
            )
            chromium.wait(
                f"JSON.stringify({links}).includes({json.dumps(json.dumps(root + link))})"
            )
            assert [kind, root + link] in chromium.evaluate(links), words
        assert chromium.evaluate("document.documentElement.scrollWidth") <= 390
        first = chromium.evaluate("document.querySelector('#found a').href")
        assert first == f"{(site / 'docs/reference/index.html').as_uri()}#cepbench.plan"
        chromium.open(site / f"{page}.html", 1280)
        chromium.evaluate(
            "(() => { const field = document.getElementById('search');"
            " field.value = 'no such thing'; field.dispatchEvent(new Event('input')); })()"
        )
        chromium.wait("document.getElementById('found').innerText === 'nothing found'")
        assert chromium.console == []


def test_a_long_page_begins_with_its_contents(site: Path, pages: dict[str, Page]) -> None:
    name = "kolchinsky2018/figure_9.html"
    page = (site / name).read_text(encoding="utf-8")
    box = page[page.index('<details class="contents">') : page.index("</nav></details>")]
    listed = re.findall(r'<a href="#([^"]+)">', box)
    headings = [a["id"] for tag, a in pages[name].elements if tag in ("h2", "h3") and "id" in a]
    assert listed == headings and len(listed) >= 4
    assert box.count("<li>") == box.count("</li>") and box.count("<ol>") == box.count("</ol>")
    assert "contents" not in (site / "my_idea.html").read_text(encoding="utf-8")


def test_contents_nest_and_are_escaped() -> None:
    short = "<main><h1>T</h1><h2 id='a'>A</h2><h3 id='b'>B</h3></main>"
    assert with_contents(short) == short
    long = (
        "<h2 id='no'>outside</h2><main><h1>T</h1><h2 id='a'>A &lt;i&gt;<a class='anchor-link' "
        "href='#a'>¶</a></h2><h3 id='b'>B</h3><h3 id='c'>C</h3><h2>no id</h2><h2 id='d'>D</h2></main>"
    )
    box = with_contents(long).partition("</h1>\n")[2].partition("<h2")[0]
    assert "".join(box.split("\n")) == (
        '<details class="contents"><summary>On this page</summary>'
        '<nav aria-label="On this page"><ol><li><a href="#a">A &lt;i&gt;</a><ol><li>'
        '<a href="#b">B</a></li><li><a href="#c">C</a></li></ol></li><li><a href="#d">D</a></li>'
        "</ol></nav></details>"
    )


@pytest.mark.xdist_group("notebooks")
def test_paper_has_the_figure_for_print_and_no_navigation(site: Path, chromium: Browser) -> None:
    chromium.open(site / "kolchinsky2018/figure_9.html", 1000)
    seen = (
        "(() => Object.fromEntries(['.has-twin', '.twin', 'nav.pages', '.method', '.rest', '.on-paper', "
        "'.verdicts']"
        ".map(name => [name, document.querySelector(name).getClientRects().length > 0])))()"
    )
    on_screen = {".has-twin", "nav.pages", ".method", ".rest", ".verdicts"}
    on_paper = {".twin", ".on-paper", ".verdicts"}
    assert {name for name, is_seen in chromium.evaluate(seen).items() if is_seen} == on_screen
    chromium.call("Emulation.setEmulatedMedia", media="print")
    assert {name for name, is_seen in chromium.evaluate(seen).items() if is_seen} == on_paper
    chromium.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.xdist_group("notebooks")
def test_an_explanation_stays_with_its_picture_on_paper(site: Path, chromium: Browser) -> None:
    """The second page has its words too; a picture alone would need no font."""
    (site / "paper.html").write_text(
        """<!DOCTYPE html><html><head><link rel="stylesheet" href="assets/site.css"></head><body>
        <main><p>First</p><div style="height: 650px"></div>
        <div class="output"><div class="output_html"><div class="cep-explanation">
        <p>order plan<br>order: a, b</p>
        <figure><svg width="300" height="400"><rect width="300" height="400"/></svg></figure>
        </div></div></div></main></body></html>""",
        encoding="utf-8",
    )
    chromium.open(site / "paper.html", 1000)
    (site / "paper.html").unlink()
    objects = re.findall(rb"\d+ 0 obj\s*<<(.*?)>>\s*endobj", chromium.printed(), re.DOTALL)
    pages = [each for each in objects if re.search(rb"/Type\s*/Page\b", each)]
    assert [b"/Font" in page for page in pages] == [True, True]


@pytest.mark.xdist_group("notebooks")
def test_a_tooltip_says_what_a_bar_is(site: Path, chromium: Browser) -> None:
    chromium.open(site / "kolchinsky2018/figure_9.html", 1440)
    chromium.evaluate("document.querySelector('.chart').scrollIntoView()")
    bar = "document.querySelector('svg.marks .mark-rect path[aria-label]').getBoundingClientRect()"
    at = {
        axis: chromium.evaluate(f"{bar}.{axis} + {bar}.{size} * 0.8")
        for axis, size in (("x", "width"), ("y", "height"))
    }
    chromium.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
    chromium.wait("!!document.querySelector('#vg-tooltip-element.visible')")
    text = chromium.evaluate("document.querySelector('#vg-tooltip-element').textContent")
    assert "plan generator" in text


def test_a_second_report_is_as_if_there_had_been_no_first(tmp_path: Path) -> None:
    """Pictures, tables and pages of earlier results are replaced, whatever is newer or larger now."""

    def publish(folder: Path, points: list[int], rows: int) -> None:
        figure = Figure(figsize=(9, 3))
        figure.subplots().plot(points)
        saved = new_output("display_data", {RECORD_MIME: {"figure": "figure_9"}})
        title = new_markdown_cell(f"# Figure 9\n\nOf {rows} rows.", id="one")
        cell = new_code_cell(f"draw({points})", outputs=[saved], id="two")
        write_executed(folder, "kolchinsky2018/figure_9", title, cell, title="Figure 9")
        own = folder / "kolchinsky2018/figure_9"
        save_figure(figure, own, "figure_9")
        pd.DataFrame({"x": range(rows)}).to_parquet(own / "table.parquet")
        publish_report(folder)

    publish(tmp_path / "again", [1, 2], 3)
    first = contents_of(tmp_path / "again")
    time.sleep(0.02)  # a coarse clock of files
    publish(tmp_path / "again", [2, 1], MOST_CELLS + 1)
    publish(tmp_path / "once", [2, 1], MOST_CELLS + 1)
    found, expected = (contents_of(tmp_path / name) for name in ("again", "once"))
    assert {*first} - {*expected} == {"kolchinsky2018/figure_9/table.csv"}
    assert {*found} == {*expected}
    changed = {name for name in expected if expected[name] != first.get(name)}
    assert "kolchinsky2018/figure_9/thumbnails/figure_9.png" in changed
    assert {name for name in expected if expected[name] != found[name]} == set()


def contents_of(folder: Path) -> dict[str, bytes]:
    """Path → contents of each file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_progress_says_which_step_it_is_and_about_how_long_the_rest_takes() -> None:
    told: list[tuple[str, str]] = []
    now = [0.0]
    weights = {"sweep a": 2.0, "sweep b": 2.0, "c": 1.0, "d": 1.0, "e": 1.0}
    steps = Steps(lambda *line: told.append(line), weights, clock=lambda: now[0])
    for seconds, what, state in (
        (120.0, "sweep a", "120 s"), (120.0, "sweep b", "120 s"), (0.0, "c", "running"),
        (60.0, "c", "60 s"), (60.0, "d", "60 s"), (60.0, "e", "60 s"),
    ):  # fmt: skip
        now[0] += seconds
        steps(what, state)
        if what == "sweep b":
            steps.ended("sweeps")
    steps("f", "left out")
    steps.ended("notebooks")
    assert steps.phases == {"sweeps": 240, "notebooks": 180}
    assert told == [
        ("sweep a", "120 s (step 1 of 5, about 5 min left)"),
        ("sweep b", "120 s (step 2 of 5, about 3 min left)"),
        ("c", "running"),
        ("c", "60 s (step 3 of 5, about 2 min left)"),
        ("d", "60 s (step 4 of 5, about 1 min left)"),
        ("e", "60 s (step 5 of 5)"),
        ("f", "left out"),
    ]
