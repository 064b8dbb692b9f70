"""Both notebooks run from top to bottom, through the same door as ``make report``."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import cepbench as cep
from cepbench.errors import ReportError
from cepbench.experiments.cells import OK, RESULT_SCHEMA
from cepbench.reporting.__main__ import main
from cepbench.reporting.notebooks import parameters_of, run_notebook
from cepbench.reporting.site import build_report
from tests.reporting.chromium import open_page
from tests.reporting.offline import Page, read_page

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
TINY = {"identifiers": 12, "days": 1, "patterns": 1, "repetitions": 1, "sizes": [3, 4]}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole report from tiny parameters."""
    folder = tmp_path_factory.mktemp("report")
    build_report(folder, notebooks=NOTEBOOKS, seed=3, parameters=TINY, say=lambda line: None)
    return folder


@pytest.fixture(scope="module")
def pages(report: Path) -> dict[str, Page]:
    return {
        path.stem: read_page(path.read_text(encoding="utf-8")) for path in report.glob("*.html")
    }


def test_a_page_a_notebook_and_an_index(pages: dict[str, Page]) -> None:
    assert set(pages) == {"index", "quickstart", "figures_3_4_5"}
    for page in pages.values():
        assert page.loads == []
    links = {a.get("href") for tag, a in pages["index"].elements if tag == "a"}
    assert {"quickstart.html", "figures_3_4_5.html"} <= links
    pictures = [tag for tag, _ in pages["index"].elements if tag == "img"]
    assert len(pictures) == 6


def test_every_file_that_the_index_links_is_there(report: Path, pages: dict[str, Page]) -> None:
    links = {a["href"] for tag, a in pages["index"].elements if tag == "a"}
    assert len(links) > 8
    for link in links:
        assert (report / link).is_file(), link


def test_the_results_hold_every_generator_and_every_cell(report: Path) -> None:
    results = pd.read_parquet(report / "figures_3_4_5" / "results.parquet")
    assert list(results.columns) == RESULT_SCHEMA.names
    built_in = {name for name, g in cep.PLAN_GENERATORS.items() if g.is_builtin}
    assert set(results["algorithm"]) == built_in
    assert len(results) == len(built_in) * 2 * 2  # sets × sizes, one pattern and repetition each
    assert set(results["status"]) == {OK}
    assert (results.groupby("pattern_id")["matches"].nunique() == 1).all()
    assert set(results["seed"]) == {3}


def test_pages_show_charts_claims_and_no_errors(pages: dict[str, Page]) -> None:
    figures = pages["figures_3_4_5"]
    charts = [a for tag, a in figures.elements if a.get("class") == "chart"]
    assert len(charts) == 6  # Figures 3 and 4, and two pattern sets by throughput and by memory
    assert figures.text.count("throughput, DP-B / ZSTREAM") >= 3
    assert "findings came out as in the paper" in figures.text
    assert "Restricted workload" in figures.text
    assert "MY-IDEA" in pages["quickstart"].text
    for page in pages.values():
        assert "Traceback" not in page.text and "Warning" not in page.text


def test_pages_do_not_say_where_the_project_lies(report: Path) -> None:
    for path in report.glob("*.html"):
        assert str(NOTEBOOKS.parent) not in path.read_text(encoding="utf-8"), path.name


def test_charts_of_the_report_are_drawn_without_a_network(report: Path) -> None:
    opened = open_page(report / "figures_3_4_5.html")
    assert opened.console == []
    drawn = [a for tag, a in read_page(opened.html).elements
             if tag in ("canvas", "svg") and "marks" in a.get("class", "")]  # fmt: skip
    assert len(drawn) == 6


def test_notebooks_stay_without_outputs(report: Path) -> None:
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        assert not any(cell.get("outputs") for cell in cells)


def write_notebook(folder: Path, *sources: str) -> Path:
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}}
    path = folder / "own.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_a_cell_that_fails_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, "n = 1", "print('so far', n)", "1 / 0")
    executed = tmp_path / "out" / "own.ipynb"
    with pytest.raises(ReportError, match=r"own.ipynb, cell \d+: ZeroDivisionError"):
        run_notebook(path, executed, {"n": 5})
    assert "so far 5" in executed.read_text(encoding="utf-8")


def test_kernels_of_one_folder_keep_apart(tmp_path: Path) -> None:
    """A kernel's sockets are in a folder of its own, not beside the notebook, for all to take."""
    path = write_notebook(tmp_path, "n = 1", "import os; print(os.listdir())")
    executed = run_notebook(path, tmp_path / "out" / "own.ipynb", {})
    assert set(ast.literal_eval(executed.cells[-1].outputs[0].text)) == {"own.ipynb", "out"}


def test_unknown_parameters_fail_before_anything_runs(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, "seed = 0  # of all", "1 / 0")
    assert parameters_of(path) == {"seed": "0"}
    with pytest.raises(ReportError, match=r"no parameter 'sead'; did you mean 'seed'\?"):
        run_notebook(path, tmp_path / "x.ipynb", {"sead": 1})
    with pytest.raises(ReportError, match="no notebook has a parameter 'patern'"):
        build_report(tmp_path / "r", notebooks=NOTEBOOKS, parameters={"patern": 1})
    with pytest.raises(ReportError, match="unknown profile 'fast'; there are quick and full"):
        build_report(tmp_path / "r", notebooks=NOTEBOOKS, profile="fast")
    with pytest.raises(ReportError, match=r"there is no notebook .*quickstart\.ipynb"):
        build_report(tmp_path / "r", notebooks=tmp_path)
    assert not (tmp_path / "r").exists()


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--output", str(tmp_path / "r"), "--notebooks", str(tmp_path)]) == 1
    assert "error: there is no notebook" in capsys.readouterr().err
