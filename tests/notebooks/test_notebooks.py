"""All notebooks run from top to bottom, through the same door as ``make report``."""

from __future__ import annotations

import ast
import re
from os.path import normpath
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from papermill.exceptions import PapermillExecutionError

from cepbench.errors import PlanGeneratorError, ReportError
from cepbench.planners.registry import PLAN_GENERATORS, default_generators
from cepbench.reporting.ledger import claims, counts_of
from cepbench.reporting.notebooks import parameters_of, run_notebook
from cepbench.reporting.requests import report_stems, requests_for, stems_of
from cepbench.reporting.site import build_report
from cepbench.studies.kolchinsky2018 import STUDY
from cepbench.studies.kolchinsky2018.planning import TIME_BUDGET
from cepbench.sweeps.cells import OK, REFUSED, RESULT_SCHEMA
from cepbench.sweeps.sweep_file import read_sweep
from tests.reporting.chromium import open_page
from tests.reporting.offline import Page, read_page

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
STUDY_STEMS = stems_of([STUDY])
PATHS = sorted([*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("*/*.ipynb")])
SETS = ("sequence", "negation", "conjunction", "kleene", "disjunction")
TINY = {
    "identifiers": 12, "days": 1, "patterns": 1, "repetitions": 1, "sizes": [3, 4],
    "large_sizes": [3, 8], "budget_seconds": 2.0, "case_events": 6_000,
}  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole report from tiny parameters."""
    folder = tmp_path_factory.mktemp("report")
    build_report(folder, notebooks=NOTEBOOKS, seed=3, parameters=TINY, say=lambda line: None)
    return folder


@pytest.fixture(scope="module")
def pages(report: Path) -> dict[str, Page]:
    return {
        path.relative_to(report).with_suffix("").as_posix(): read_page(
            path.read_text(encoding="utf-8")
        )
        for path in html_of(report)
    }


def html_of(report: Path) -> list[Path]:
    return sorted([*report.glob("*.html"), *report.glob(f"{STUDY.key}/*.html")])


def test_a_page_a_notebook_and_an_index(pages: dict[str, Page]) -> None:
    assert set(pages) == {"index", *report_stems()}
    for page in pages.values():
        assert page.loads == []
    links = {a.get("href") for tag, a in pages["index"].elements if tag == "a"}
    assert {f"{stem}.html" for stem in report_stems()} <= links
    pictures = {Path(a["src"]).stem for tag, a in pages["index"].elements if tag == "img"}
    for figure in ("3", "4", "5", "6a", "6b", "7a", "7b", "8", "9"):
        assert f"figure_{figure}" in pictures


def test_every_file_that_a_page_links_is_there(report: Path, pages: dict[str, Page]) -> None:
    links = {
        (stem, a["href"]) for stem, page in pages.items() for tag, a in page.elements if tag == "a"
    }
    assert len(links) > 100
    for stem, link in links:
        path, _, anchor = link.partition("#")
        target = normpath(Path(stem).parent / path)
        assert (report / target).is_file() or not path, link
        if path and anchor:
            ids = [a.get("id") for _, a in pages[target.removesuffix(".html")].elements]
            assert anchor in ids, link


@pytest.mark.parametrize(
    ("stem", "sets", "variants"),
    [("figures_3_4_5", SETS, 1), ("figure_8", ("sequence",), 3), ("figure_9", ("sequence",), 3)],
)
def test_the_results_hold_every_generator_and_every_cell(
    report: Path, stem: str, sets: tuple[str, ...], variants: int
) -> None:
    results = pd.read_parquet(report / STUDY.key / stem / "results.parquet")
    assert list(results.columns) == RESULT_SCHEMA.names
    join_based = read_sweep("kolchinsky2018/latency").config("data").generators or ()
    expected = set(join_based if stem == "figure_8" else default_generators(own=False))
    assert set(results["generator"]) == expected
    assert tuple(results["pattern_set"].unique()) == sets
    # A pattern of each of two sizes, run once.
    assert len(results) == len(expected) * len(sets) * 2 * variants
    assert set(results["status"]) == {OK}
    assert (results.groupby(["pattern_id", "strategy"])["matches"].nunique() == 1).all()
    assert set(results["seed"]) == {3}


def test_sweeps_are_shared_by_notebooks(report: Path) -> None:
    sweeps = [path.name.partition("-")[0] for path in (report / "data" / "sweeps").iterdir()]
    assert sorted(sweeps) == ["latency", "strategies", "types"]


def test_every_figure_is_there_still_and_moving(report: Path, pages: dict[str, Page]) -> None:
    charts = {"figures_3_4_5": 17, "figure_6": 3, "figure_7": 2, "figure_8": 1, "figure_9": 2}
    for stem, expected in charts.items():
        page = pages[f"{STUDY.key}/{stem}"]
        found = [a for _, a in page.elements if a.get("class") == "chart"]
        assert len(found) == expected, stem
        assert list((report / STUDY.key / stem).glob("figure_*.svg")), stem
        assert "What became of the claims" in page.text
    assert "MY-IDEA" in pages["quickstart"].text
    for name, page in pages.items():
        assert "Traceback" not in page.text and "Warning" not in page.text, name


def test_the_tutorial_ends_with_a_figure_of_all_generators(
    report: Path, pages: dict[str, Page]
) -> None:
    results = pd.read_parquet(report / "tutorial" / "results.parquet")
    assert set(results["generator"]) == set(default_generators(own=False))
    assert set(results["pattern_set"]) == {"sequence", "conjunction"}
    assert len(results) == len(default_generators(own=False)) * 4 and set(results["status"]) == {OK}
    charts = [a for _, a in pages["tutorial"].elements if a.get("class") == "chart"]
    assert len(charts) == 1 == len(list((report / "tutorial").glob("*.svg")))


def test_the_tutorial_begins_with_plans_that_differ(pages: dict[str, Page]) -> None:
    """Its prose says what was counted; how fast plans are is said too, but asked by no test."""
    text = " ".join(pages["tutorial"].text.split())
    made = re.search(
        r"The written order made ([\d,]+) partial matches, the best one ([\d,]+)", text
    )
    assert made is not None and "million events pass per second" in text
    written, best = (int(number.replace(",", "")) for number in made.groups())
    assert written > 100 * best > 0
    costs = re.search(r"The written order costs ([\d,]+) times as much", text)
    assert costs is not None and int(costs[1].replace(",", "")) > 50


def test_cost_models_are_held_against_what_was_counted(
    report: Path, pages: dict[str, Page]
) -> None:
    found = pd.read_parquet(report / "kolchinsky2018/cost_models" / "results.parquet")
    assert set(found["pattern_set"]) == {"sequence", "conjunction"}
    assert set(found["model"]) == {"adjacent", "exact", "joint"}
    assert (found["q_error"] >= 1).all()
    case = pd.read_parquet(report / "kolchinsky2018/cost_models" / "case.parquet")
    assert len(case) == 9 and case["matches"].nunique() == 1
    charts = [
        a for _, a in pages["kolchinsky2018/cost_models"].elements if a.get("class") == "chart"
    ]
    assert (
        len(charts) == 3 == len(list((report / "kolchinsky2018/cost_models").glob("figure_*.svg")))
    )
    assert (
        "P3 backwards. By partial matches the best order is"
        in pages["kolchinsky2018/cost_models"].text
    )


def test_figure_7_goes_on_with_every_generator(report: Path, pages: dict[str, Page]) -> None:
    page = pages["kolchinsky2018/figure_7_extended"]
    assert len([a for _, a in page.elements if a.get("class") == "chart"]) == 6
    costs = pd.read_parquet(report / "kolchinsky2018/figure_7_extended" / "results.parquet")
    built_in = {name for name, g in PLAN_GENERATORS.items() if g.is_builtin}
    assert set(costs["generator"]) == built_in
    assert set(costs["pattern_set"]) == {"sequence", "acyclic"}
    # A pattern of each of two sizes and shapes; what could not be planned is a row as well.
    assert len(costs) == len(built_in) * 4
    assert {OK} <= set(costs["status"]) <= {OK, REFUSED, TIME_BUDGET}
    for name in built_in:
        assert name in page.text
    exact = costs[costs["generator"].isin(["DP-LD", "DP-B"])]
    assert (exact["distance"] == 1).all() and (costs["distance"].dropna() >= 1 - 1e-9).all()


def test_plans_from_wrong_numbers_are_costed_and_run(report: Path, pages: dict[str, Page]) -> None:
    page = pages["kolchinsky2018/robustness"]
    assert len([a for _, a in page.elements if a.get("class") == "chart"]) == 4
    planned = pd.read_parquet(report / "kolchinsky2018/robustness" / "results.parquet")
    measured = pd.read_parquet(report / "kolchinsky2018/robustness" / "measured.parquet")
    built_in = {name for name, g in PLAN_GENERATORS.items() if g.is_builtin}
    for table in (planned, measured):
        assert set(table["generator"]) == built_in
        assert set(table["status"]) <= {OK, REFUSED}
        assert set(table["factor"]) == {1, 2, 5, 10, 100}
    # Two patterns, run along every different plan of theirs, find the same matches by all.
    assert (measured.groupby("pattern_id")["matches"].nunique() == 1).all()
    assert measured["pattern_id"].nunique() == 2
    text = " ".join(page.text.split())
    assert "Order plans. " in text and "Tree plans. " in text and "regret of" in text


def test_restrictions_of_the_workload_are_on_its_page(pages: dict[str, Page]) -> None:
    for text in ("Identifiers were drawn again", "under KL has an identifier with at most 5"):
        assert text in " ".join(pages["kolchinsky2018/figures_3_4_5"].text.split())


def test_the_ledger_has_read_every_notebook_and_is_on_the_index(
    report: Path, pages: dict[str, Page]
) -> None:
    verdicts = pd.read_parquet(report / "kolchinsky2018/ledger" / "ledger.parquet")
    assert list(verdicts["id"]) == [claim.id for claim in claims(STUDY)]
    assert not verdicts["why"].str.contains("did not run").any()
    # Two patterns of a set and size are too few for most, but not for the largest of all times.
    assert (verdicts.set_index("id").loc["planning-negligible-when-small", "patterns"]) == 1
    text = " ".join(pages["index"].text.split())
    for verdict, count in counts_of(verdicts).items():
        assert f"{verdict} {count} of {len(verdicts)} claims" in text
    for claim in claims(STUDY):
        assert claim.statement in " ".join(pages["kolchinsky2018/ledger"].text.split())


def test_heads_of_tables_are_words(report: Path, pages: dict[str, Page]) -> None:
    """But on pages that teach, whose readers need the names of the columns."""
    for stem in ("index", *STUDY_STEMS):
        html = (report / f"{stem}.html").read_text(encoding="utf-8")
        heads = re.findall(r"<th\b[^>]*>(.*?)</th>", html, re.DOTALL)
        assert not [head for head in heads if "_" in re.sub(r"<[^>]*>", "", head)], stem


def test_pages_do_not_say_where_the_project_lies(report: Path) -> None:
    for path in html_of(report):
        assert str(NOTEBOOKS.parent) not in path.read_text(encoding="utf-8"), path.name


def test_charts_of_the_report_are_drawn_without_a_network(report: Path) -> None:
    charts_of = {
        "figures_3_4_5": 17, "figure_6": 3, "figure_8": 1, "figure_7_extended": 6, "robustness": 4,
    }  # fmt: skip
    for path in html_of(report):
        opened = open_page(path)
        assert opened.console == [], path.name  # a warning of Vega's is a line as well
        elements = read_page(opened.html).elements
        drawn = [a for tag, a in elements if tag == "svg" and "marks" in a.get("class", "")]
        places = [a for _, a in elements if "chart" in a.get("class", "").split()]
        assert len(drawn) == charts_of.get(path.stem, len(places)) == len(places), path.name


def test_notebooks_stay_without_outputs(report: Path) -> None:
    for path in PATHS:
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
    with pytest.raises(
        ReportError, match=r"no parameter 'sead' in own.ipynb; did you mean 'seed'\?"
    ):
        run_notebook(path, tmp_path / "x.ipynb", {"sead": 1})
    with pytest.raises(
        ReportError, match=r"no parameter 'patern' in any notebook; did you mean 'patt"
    ):
        build_report(tmp_path / "r", notebooks=NOTEBOOKS, parameters={"patern": 1})
    with pytest.raises(ReportError, match="unknown profile 'fast'; there are quick and full"):
        build_report(tmp_path / "r", notebooks=NOTEBOOKS, profile="fast")
    with pytest.raises(ReportError, match=r"there is no notebook .*quickstart\.ipynb"):
        build_report(tmp_path / "r", notebooks=tmp_path)
    with pytest.raises(PlanGeneratorError, match=r"no Python file mine\.py"):
        build_report(tmp_path / "r", only=["ledger"], notebooks=NOTEBOOKS, plugins=["mine.py"])
    with pytest.raises(ReportError, match=r"own\.ipynb takes no plug-ins"):
        build_report(tmp_path / "r", only=[str(path)], plugins=[write_plugin(tmp_path)])
    assert not (tmp_path / "r").exists()


def write_plugin(folder: Path) -> Path:
    path = folder / "my_generators.py"
    path.write_text(
        "import cepbench as cep\n"
        "@cep.plan_generator('BACKWARDS', kind='order')\n"
        "def backwards(problem, rng):\n"
        "    return range(problem.n)[::-1]\n",
        encoding="utf-8",
    )
    return path


def test_any_notebook_becomes_a_page_and_stays_one(tmp_path: Path) -> None:
    """With what it asks for: its folder in the report, profile and seed, plug-ins."""
    sources = (
        'output = "output/x"\nplugin = ""\ndata = "mine.parquet"\nseed = 1',
        "from cepbench.reporting.opening import open_notebook\n"
        "folder = open_notebook(output, plugin)\n"
        "from cepbench.planners.registry import own_generators\n"
        "(folder / 'told.txt').write_text(f'{own_generators()} {data} {seed}')",
    )
    path = write_notebook(tmp_path, *sources)
    report = tmp_path / "report"
    build_report(
        report, only=[str(path)], seed=7, plugins=[write_plugin(tmp_path)], say=lambda line: None
    )
    assert (report / "own" / "told.txt").read_text() == "['BACKWARDS'] mine.parquet 7"
    text = read_page((report / "own.html").read_text("utf-8")).text
    assert "Your pages" in text and "own · cepbench" in text
    other = path.rename(tmp_path / "second.ipynb")
    build_report(report, only=[str(other)], say=lambda line: None)
    for stem in ("index", "own", "second"):
        links = [
            a["href"]
            for tag, a in read_page((report / f"{stem}.html").read_text("utf-8")).elements
            if tag == "a"
        ]
        assert {"own.html", "second.html"} <= set(links)


def test_a_parameter_that_is_not_declared_ends_a_run_by_plain_papermill(tmp_path: Path) -> None:
    """papermill itself warns and runs on with the default."""
    sources = (
        'profile = "quick"\noutput = "out"',
        "from cepbench.reporting.opening import open_notebook\nopen_notebook(output)",
    )
    path = write_notebook(tmp_path, *sources)
    with pytest.raises(PapermillExecutionError) as failed:
        papermill.execute_notebook(
            path, tmp_path / "x.ipynb", {"profil": "full"}, cwd=tmp_path, progress_bar=False
        )
    assert failed.value.ename == "ReportError"
    assert "no parameter 'profil' in this notebook; did you mean 'profile'?" in failed.value.evalue


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_notebook_checks_what_it_is_handed(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    (parameters,) = (c for c in cells if "parameters" in c.metadata.get("tags", []))
    call = "open_notebook(output, plugin)" if path.stem != "ledger" else "open_notebook(output)"
    assert f"folder = {call}" in cells[cells.index(parameters) + 1].source
    assert ("plugin" in parameters_of(path)) == (path.stem != "ledger")


def test_a_warning_is_an_error_where_that_is_asked_for(tmp_path: Path) -> None:
    path = write_notebook(tmp_path, "n = 1", "import warnings; warnings.warn('too few patterns')")
    run_notebook(path, tmp_path / "out" / "own.ipynb", {})
    with pytest.raises(ReportError, match=r"own\.ipynb, cell 2 warns: .*too few patterns"):
        run_notebook(path, tmp_path / "out" / "own.ipynb", {}, strict=True)


def tiny_for(stems: list[str]) -> dict[str, Any]:
    """Those of the tiny parameters that some of these notebooks have."""
    known = {
        name for request in requests_for(stems, NOTEBOOKS) for name in parameters_of(request.path)
    }
    return {name: value for name, value in TINY.items() if name in known}


def test_a_generator_from_a_file_is_in_the_figures_and_nothing_is_measured_again(
    report: Path, tmp_path: Path
) -> None:
    stems = ["figures_3_4_5", "figure_6", "figure_8"]
    sweeps = {path: path.read_bytes() for path in report.glob("data/sweeps/*/results.parquet")}
    build_report(
        tmp_path, notebooks=NOTEBOOKS, only=stems, seed=3, parameters=tiny_for(stems),
        data=report / "data",
        plugins=[write_plugin(tmp_path)], say=lambda line: None,
    )  # fmt: skip
    assert len(sweeps) == 3
    for path, content in sweeps.items():
        assert path.read_bytes() == content
    for stem in stems:
        own, alone = (
            pd.read_parquet(folder / STUDY.key / stem / "results.parquet")
            for folder in (tmp_path, report)
        )
        mine = own[own["generator"] == "BACKWARDS"]
        assert len(mine) and set(own["generator"]) == {*alone["generator"], "BACKWARDS"}
        assert len(own) == len(alone) + len(mine)  # Figure 6 draws as many plans of the others
        text = (tmp_path / STUDY.key / f"{stem}.html").read_text(encoding="utf-8")
        assert "BACKWARDS" in text and "BACKWARDS came to the sweep" in text


def test_the_notebook_of_an_own_generator_names_it_once(tmp_path: Path) -> None:
    """Its function, in a cell of its own, is all that a reader replaces."""
    path = NOTEBOOKS / "own_generator.ipynb"
    naming = [c for c in nbformat.read(path, as_version=4).cells if "lookahead" in c.source.lower()]
    assert len(naming) == 1 and "check_generator" not in naming[0].source
    copy = tmp_path / "balanced.ipynb"
    copy.write_bytes(path.read_bytes())
    plugin = tmp_path / "my_generators.py"
    plugin.write_text(
        "import cepbench as cep\n"
        "@cep.plan_generator('BALANCED', kind='tree')\n"
        "def balanced(problem, rng):\n"
        "    def build(part):\n"
        "        half = len(part) // 2\n"
        "        return part[0] if not half else (build(part[:half]), build(part[half:]))\n"
        "    return build(list(range(problem.n)))\n",
        encoding="utf-8",
    )
    build_report(
        tmp_path / "r", only=[str(copy)], plugins=[plugin], say=lambda line: None,
        parameters=tiny_for(["own_generator"]) | {"identifiers": 40},
    )  # fmt: skip
    page = read_page((tmp_path / "r" / "balanced.html").read_text(encoding="utf-8"))
    text = " ".join(page.text.split())
    table = pd.read_parquet(tmp_path / "r" / "balanced" / "results.parquet")
    assert set(table["generator"]) == {*default_generators(own=False), "BALANCED"}
    assert "LOOKAHEAD" not in text.replace('"LOOKAHEAD"', "")  # but in the code of the example
    assert re.search(
        r"BALANCED finds a plan of least cost on \d+% of these problems, ZSTREAM", text
    )
