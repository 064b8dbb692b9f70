"""The report that was built last: every page, figure and table of it that a reader relies on.

Building it takes minutes, and that every notebook runs is what building it shows. So these tests
read a built one, in ``CEPBENCH_REPORT``; ``make report-check`` runs them on ``reports/``.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest

from cepbench.engines.aggregation.e_cube import E_CUBE
from cepbench.experiments.analysis.checks import NO_DATA
from cepbench.experiments.analysis.settings import ENGINES
from cepbench.experiments.studies.kolchinsky2018 import STUDY
from cepbench.experiments.studies.kolchinsky2018.planning import TIME_BUDGET
from cepbench.experiments.studies.mei2009.runs import MAKING
from cepbench.experiments.studies.qi2014.runs import ALL_RATES
from cepbench.experiments.studies.registry import STUDIES, find_study
from cepbench.experiments.sweeps.cells import OK, REFUSED, RESULT_SCHEMA
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.planning.planners.registry import PLAN_GENERATORS, default_generators
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.verdicts import by_claim, counts_of
from tests.presentation.reporting.browser import Browser
from tests.presentation.reporting.crates import checked_crate
from tests.presentation.reporting.legible import illegible
from tests.presentation.reporting.offline import Page, read_page

ROOT = Path(__file__).resolve().parents[2]
STEMS = (
    "quickstart", "tutorial", "explore", "user_defined_generator", "cluster", "figures_3_4_5", "figure_6", "figure_7",
    "figure_8", "figure_9", "figure_7_extended", "when_plans_matter", "robustness", "cost_models",
    "ledger", "mei2009/figures_8_9", "mei2009/figures_10_11", "mei2009/figures_12_13_table_3",
    "mei2009/figure_14", "mei2009/figures_15_16", "mei2009/figure_17_tables_4_5", "mei2009/operators",
    "mei2009/ledger",
    "agrawal2008/automaton", "agrawal2008/figure_8a_table_2", "agrawal2008/figure_8b_8c",
    "agrawal2008/figure_8d", "agrawal2008/figure_8e", "agrawal2008/figure_8f",
    "agrawal2008/figure_8g_table_3", "agrawal2008/price_increase", "agrawal2008/ledger",
    "qi2014/figure_12", "qi2014/figure_13", "qi2014/figure_14", "qi2014/figure_15", "qi2014/figure_16",
    "qi2014/expiry", "qi2014/ledger", "liu2011/figures_13_14_15", "liu2011/figure_16",
    "liu2011/figure_17", "liu2011/figure_18", "liu2011/figure_19", "liu2011/scale",
    "liu2011/drift", "liu2011/evacuation", "liu2011/ledger",
)  # fmt: skip
SETS = ("sequence", "negation", "conjunction", "kleene", "disjunction")
#: Pages with a fixed number of charts.
CHARTS = {
    "figures_3_4_5": 18, "figure_6": 4, "figure_7": 2, "figure_8": 1, "figure_9": 2,
    "figure_7_extended": 6, "when_plans_matter": 4, "robustness": 4, "cost_models": 3, "tutorial": 1,
    "cluster": 4,
    "mei2009/figures_8_9": 5, "mei2009/figures_10_11": 3, "mei2009/figures_12_13_table_3": 4,
    "mei2009/figures_15_16": 3, "mei2009/figure_14": 4, "mei2009/figure_17_tables_4_5": 1,
    "mei2009/operators": 1,
    "agrawal2008/figure_8a_table_2": 1, "agrawal2008/figure_8b_8c": 2, "agrawal2008/figure_8d": 2,
    "agrawal2008/figure_8e": 1, "agrawal2008/figure_8f": 1, "agrawal2008/figure_8g_table_3": 2,
    "agrawal2008/price_increase": 2, "qi2014/figure_12": 2, "qi2014/figure_13": 2,
    "qi2014/figure_14": 2, "qi2014/figure_15": 1, "qi2014/figure_16": 4, "qi2014/expiry": 2,
    "liu2011/figures_13_14_15": 8, "liu2011/figure_16": 4, "liu2011/figure_17": 4,
    "liu2011/figure_18": 4, "liu2011/figure_19": 5, "liu2011/scale": 3,
    "liu2011/drift": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def report() -> Path:
    """The folder of a report in its quick or full profile."""
    folder = ROOT / os.environ["CEPBENCH_REPORT"]
    assert (folder / "index.html").is_file(), f"there is no report in {folder}; run make report"
    return folder


@pytest.fixture(scope="module")
def files(report: Path) -> dict[str, Path]:
    """Page -> its file; the pages of make docs and of the benchmarks are others'.

    Pages of the first study have their stems, as those of no study, others the study's key besides.
    """
    others = ("docs", "assets", "data", "benchmarks")
    found = [
        path
        for path in report.rglob("*.html")
        if path.relative_to(report).parts[0] not in others and path.stem != "benchmarks"
    ]
    names = {path: path.relative_to(report).with_suffix("").as_posix() for path in sorted(found)}
    files = {name.removeprefix(f"{STUDY.key}/"): path for path, name in names.items()}
    assert len(files) == len(found)
    return files


@pytest.fixture(scope="module")
def pages(files: dict[str, Path]) -> dict[str, Page]:
    return {stem: read_page(path.read_text(encoding="utf-8")) for stem, path in files.items()}


def table(files: dict[str, Path], stem: str, name: str = "results") -> pd.DataFrame:
    """A table that a notebook wrote, beside its page."""
    return pd.read_parquet(files[stem].with_suffix("") / f"{name}.parquet")


def charts_of(page: Page) -> int:
    return sum("chart" in a.get("class", "").split() for _, a in page.elements)


def test_a_page_for_every_notebook_and_an_index(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    assert set(pages) >= {"index", *STEMS}
    for page in pages.values():
        assert page.loads == []
    index = pages["index"].elements
    links = {
        a["href"].removesuffix(".html").removeprefix(f"{STUDY.key}/")
        for tag, a in index
        if tag == "a" and a["href"].endswith("html")
    }
    assert set(STEMS) <= links
    front, *cards = [a["src"] for tag, a in index if tag == "img"]
    assert front == "assets/front.svg" and len(cards) == len(STUDIES)


def test_every_file_that_a_page_links_is_there(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    by_file = {path.resolve(): pages[stem] for stem, path in files.items()}
    seen = 0
    for stem, path in files.items():
        for tag, a in pages[stem].elements:
            target, _, anchor = a.get("href", "").partition("#")
            if tag != "a" or "://" in target:
                continue
            seen += 1
            file = (path.parent / target).resolve() if target else path.resolve()
            assert file.is_file(), f"{path.name}: {target}"
            if anchor and "=" not in anchor and file in by_file:
                assert anchor in [a.get("id") for _, a in by_file[file].elements], anchor
    assert seen > 100


@pytest.mark.parametrize(
    ("stem", "sets", "variants"),
    [("figures_3_4_5", SETS, 1), ("figure_8", ("sequence",), 5), ("figure_9", ("sequence",), 3)],
)
def test_the_results_hold_every_generator_and_every_cell(
    files: dict[str, Path], stem: str, sets: tuple[str, ...], variants: int
) -> None:
    results = table(files, stem)
    assert list(results.columns) == RESULT_SCHEMA.names
    join_based = read_sweep("kolchinsky2018/latency").config("data").generators or ()
    expected = set(join_based if stem == "figure_8" else default_generators(user_defined=False))
    assert set(results["generator"]) == expected
    assert tuple(results["pattern_set"].unique()) == sets
    sweeps = [(json.loads(its), rows) for its, rows in results.groupby("configuration")]
    assert len(sweeps) == (1 if stem == "figure_9" else 2)
    for asked, rows in sweeps:
        regimes = [asked | changes for changes in asked["regimes"].values()]
        assert set(rows["regime"]) == set(asked["regimes"]) >= {"sparse", "dense"}
        patterns = sum(
            len(each["pattern_sets"]) * len(each["sizes"]) * each["patterns"] for each in regimes
        )
        assert len(rows) == len(expected) * patterns * asked["repetitions"] * variants
    found = results[results["status"] == OK]
    assert len(found) > 0.9 * len(results)
    assert (found.groupby(["pattern_id", "strategy"])["matches"].nunique() == 1).all()
    assert results["seed"].nunique() == 1


def test_the_crate_has_every_page_and_the_sweeps_that_notebooks_read(
    report: Path, files: dict[str, Path]
) -> None:
    crate = checked_crate(report)
    assert {path.relative_to(report).as_posix() for path in files.values()} <= set(crate)
    named = {its for its in crate if its.startswith("data/sweeps/")}
    there = {
        path.relative_to(report).as_posix() for path in report.glob("data/sweeps/*/results.parquet")
    }
    assert named and named <= there
    papers = [its for its, entity in crate.items() if entity["@type"] == "ScholarlyArticle"]
    assert papers == [f"https://doi.org/{study.reference.doi}" for study in STUDIES.values()]


def test_sweeps_are_shared_by_notebooks(report: Path) -> None:
    sweeps = {
        path.parent.name.partition("-")[0] for path in report.glob("data/sweeps/*/sweep.json")
    }
    assert sweeps >= {"instances", "latency", "latency_instances", "strategies", "types"}
    assert sweeps >= {"selectivity", "rates", "plans", "negation", "web_log"}
    assert sweeps >= {"queries", "window_size", "merging", "non_overlap", "price_increase"}


def test_every_figure_is_there_still_and_moving(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    for stem, expected in CHARTS.items():
        assert charts_of(pages[stem]) == expected, stem
        assert list(files[stem].with_suffix("").glob("*.svg")), stem
    for stem in ("figures_3_4_5", "figure_6", "figure_7", "figure_8", "figure_9"):
        assert "Verdicts on the claims" in pages[stem].text
    assert "MY-IDEA" in pages["quickstart"].text
    for name, page in pages.items():
        assert "Traceback" not in page.text and "Warning" not in page.text, name


def test_the_tutorial_ends_with_a_figure_of_all_generators(files: dict[str, Path]) -> None:
    results = table(files, "tutorial")
    assert set(results["generator"]) == set(default_generators(user_defined=False))
    assert set(results["pattern_set"]) == {"sequence", "conjunction"}
    assert set(results["status"]) == {OK}
    assert (results.groupby("generator").size().nunique()) == 1
    assert len(list(files["tutorial"].with_suffix("").glob("*.svg"))) == 1


def test_the_tutorial_begins_with_plans_that_differ(pages: dict[str, Page]) -> None:
    """Its prose says what was counted; how fast plans are is said too, but asked by no test."""
    text = " ".join(pages["tutorial"].text.split())
    made = re.search(
        r"The written order created ([\d,]+) partial matches, the best one ([\d,]+)", text
    )
    assert made is not None and "million events per second" in text
    written, best = (int(number.replace(",", "")) for number in made.groups())
    assert written > 100 * best > 0
    costs = re.search(r"The written order costs ([\d,]+) times as much", text)
    assert costs is not None and int(costs[1].replace(",", "")) > 50


def test_cost_models_are_held_against_what_was_counted(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    found = table(files, "cost_models")
    assert set(found["pattern_set"]) == {"sequence", "conjunction"}
    assert set(found["model"]) == {"adjacent", "exact", "joint"}
    assert (found["q_error"] >= 1).all()
    case = table(files, "cost_models", "case")
    assert len(case) == 9 and case["matches"].nunique() == 1
    assert len(list(files["cost_models"].with_suffix("").glob("figure_*.svg"))) == 3
    assert "P3 backwards. By partial matches the best order is" in pages["cost_models"].text


def test_figure_7_goes_on_with_every_generator(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    costs = table(files, "figure_7_extended")
    built_in = {name for name, g in PLAN_GENERATORS.items() if g.is_builtin}
    assert set(costs["generator"]) == built_in
    assert set(costs["pattern_set"]) == {"sequence", "acyclic"}
    # What could not be planned is a row as well.
    assert costs.groupby("generator").size().nunique() == 1
    assert {OK} <= set(costs["status"]) <= {OK, REFUSED, TIME_BUDGET}
    for name in built_in:
        assert name in pages["figure_7_extended"].text
    exact = costs[costs["generator"].isin(["DP-LD", "DP-B"]) & (costs["status"] == OK)]
    assert (exact["distance"].dropna() == 1).all()
    assert (costs["distance"].dropna() >= 1 - 1e-9).all()


def test_plans_from_wrong_numbers_are_costed_and_run(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    planned, measured = table(files, "robustness"), table(files, "robustness", "measured")
    built_in = {name for name, g in PLAN_GENERATORS.items() if g.is_builtin}
    for rows in (planned, measured):
        assert set(rows["generator"]) == built_in
        assert set(rows["status"]) <= {OK, REFUSED}
        assert set(rows["factor"]) == {1, 2, 5, 10, 100}
    # Patterns, run along every different plan of theirs, find the same matches by all.
    assert (measured.groupby("pattern_id")["matches"].nunique() == 1).all()
    assert measured["pattern_id"].nunique() >= 2
    text = " ".join(pages["robustness"].text.split())
    assert "Order plans. " in text and "Tree plans. " in text and "regret of" in text


def test_restrictions_of_the_workload_are_on_its_page(pages: dict[str, Page]) -> None:
    for text in ("Identifiers were drawn again", "under KL has an identifier with at most 5"):
        assert text in " ".join(pages["figures_3_4_5"].text.split())


def test_the_ledger_has_read_every_notebook_and_is_on_the_index(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    verdicts = table(files, "ledger", "ledger")
    every = by_claim(verdicts)
    assert list(every["id"]) == [claim.id for claim in claims(STUDY)]
    assert not verdicts["detail"].str.contains("did not run|have no column").any()
    small = verdicts[verdicts["id"] == "planning-negligible-when-small"]
    assert (small["patterns"] >= 1).all()
    # Claims about throughput are judged in every regime of their sweep, on partial matches first.
    gain = verdicts[verdicts["id"] == "join-orders-faster"]
    assert set(gain["regime"]) == set(table(files, "figures_3_4_5")["regime"])
    assert set(gain["engine"]) == set(ENGINES.values())
    assert list(gain["basis"])[::2] == ["partial matches"] * (len(gain) // 2)
    text = " ".join(pages["index"].text.split())
    for verdict, count in counts_of(verdicts).items():
        assert f"{count} {verdict}" in text or not count
    for claim in claims(STUDY):
        assert claim.statement in " ".join(pages["ledger"].text.split())


def test_plans_of_the_second_study_find_the_same_matches_and_its_claims_are_judged(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    # Figure 14 has no numbers of matches: its page ends with an error where they differ. That of operators
    # has several queries in a setting.
    others = ("mei2009/figure_14", "mei2009/operators")
    for stem in (name for name in CHARTS if name.startswith("mei2009/") and name not in others):
        runs = table(files, stem)
        # On the streams of each setting, whatever their seeds, every plan and engine has the same.
        found = runs.groupby(["pattern_set", "evaluator", "generator"])["matches"].agg(frozenset)
        assert (found.groupby("pattern_set").nunique() == 1).all(), stem
        assert set(runs["status"]) == {OK} and runs.groupby("pattern_set").size().min() >= 20
    verdicts = table(files, "mei2009/ledger", "ledger")
    found = claims(find_study("mei2009"))
    assert list(by_claim(verdicts)["id"]) == [claim.id for claim in found]
    # Only plans as given count their records.
    assert not verdicts.loc[~verdicts["also"], "lack"].eq(NO_DATA).any()
    engines = {
        f"{engine}{how}"
        for engine in ("zstream", "zstream, as given", "columnar")
        for how in ("", MAKING)
    }
    # A quick report has the columnar engine nowhere, and plans that make matches in Figure 14 alone.
    least = {"", "zstream, as given", "zstream", f"zstream{MAKING}"}
    assert least <= set(verdicts["engine"]) <= {"", *engines}
    accesses = " ".join(pages["mei2009/figure_17_tables_4_5"].text.split())
    assert "6,775 11,610 16,083" in accesses or "6775 11610 16083" in accesses


def test_engines_of_the_third_study_find_the_same_matches_and_its_claims_are_judged(
    files: dict[str, Path], pages: dict[str, Page]
) -> None:
    for stem in (name for name in CHARTS if name.startswith("agrawal2008/")):
        runs = table(files, stem)
        seed = runs["repetition"].str.partition(".")[0]
        of_stream = runs.groupby(["pattern_set", "query", seed])["matches"]
        assert (of_stream.nunique() == 1).all() and (runs["matches"] > 0).all(), stem
        assert set(seed) == {*"01234"}
        cells = runs.groupby(["pattern_set", "query"])
        assert set(runs["status"]) == {OK} and cells.size().min() >= 5
    verdicts = table(files, "agrawal2008/ledger", "ledger")
    assert list(by_claim(verdicts)["id"]) == [
        claim.id for claim in claims(find_study("agrawal2008"))
    ]
    assert not verdicts["lack"].eq(NO_DATA).any()
    judged = verdicts.set_index("id")["verdict"]
    for claim in ("length-p1s3", "runs-p2s3", "reprocessed-p1s3", "merged-p1s3-2000"):
        assert judged[claim] == "holds"  # no clock has a say in these
    merged = " ".join(pages["agrawal2008/figure_8g_table_3"].text.split())
    assert "runs merged (%), p1s3, in the paper 47.9 50.9 66.6 75.3" in merged


def test_methods_of_the_fourth_study_find_the_same_values_and_its_claims_are_judged(
    files: dict[str, Path],
) -> None:
    for stem in (name for name in CHARTS if name.startswith("qi2014/figure")):
        runs = table(files, stem)
        # Savings are differences of runs, and what only counts has no values.
        runs = runs[
            ~runs["generator"].str.startswith("saved by") & runs["method"].fillna("").ne("")
        ]
        runs = runs[runs["regime"] != ALL_RATES]
        assert set(runs["status"]) == {OK} and runs.groupby(["regime", "pattern"]).size().min() >= 5
        # What lists matches is stopped once it has listed enough.
        stopped = runs[runs["digest"].isna()]
        assert set(stopped["method"]) <= {"two-step", E_CUBE}, stem
        ended = runs.drop(stopped.index)
        seeds = ended["repetition"].str.partition(".")[0]
        cells = ended.groupby(["regime", "pattern", seeds])
        assert (cells["digest"].nunique() == 1).all() and (ended["values"] > 0).all(), stem
    verdicts = table(files, "qi2014/ledger", "ledger")
    assert list(by_claim(verdicts)["id"]) == [claim.id for claim in claims(find_study("qi2014"))]
    assert not verdicts["lack"].eq(NO_DATA).any()
    judged = verdicts.set_index("id")["verdict"]
    for claim in (
        "objects-by-length", "fewer-objects", "updates-linear", "objects-linear", "a-seq-work",
        "two-step-work", "equation-3", "pretree-free-work", "gain-at-length-5-work",
    ):  # fmt: skip
        assert set(judged[[claim]]) == {"holds"}  # no clock has a say in these


def test_planners_of_the_fifth_study_find_the_same_matches_and_its_claims_are_judged(
    files: dict[str, Path],
) -> None:
    for stem in (name for name in CHARTS if name.startswith("liu2011/figure")):
        runs = table(files, stem)
        assert set(runs["status"]) == {OK}, stem
        runs = runs[runs["pattern_set"] != "every plan"]
        seeds = runs["repetition"].astype(str).str.partition(".")[0]
        cells = runs.groupby(["pattern_set", "pattern", seeds])
        assert (cells["digest"].nunique() == 1).all() and (runs["matches"] > 0).all(), stem
        assert runs.groupby(["pattern_set", "regime", "generator"]).size().min() >= 5, stem
    verdicts = table(files, "liu2011/ledger", "ledger")
    assert list(by_claim(verdicts)["id"]) == [claim.id for claim in claims(find_study("liu2011"))]
    assert not verdicts["lack"].eq(NO_DATA).any()


def test_heads_of_tables_are_words(files: dict[str, Path]) -> None:
    """But on pages that teach, whose readers need the names of the columns."""
    teaching = {
        "quickstart", "tutorial", "explore", "user_defined_generator", "liu2011/evacuation",
    }  # fmt: skip
    for stem in {*STEMS, "index"} - teaching:
        html = files[stem].read_text(encoding="utf-8")
        heads = re.findall(r"<th\b[^>]*>(.*?)</th>", html, re.DOTALL)
        assert not [head for head in heads if "_" in re.sub(r"<[^>]*>", "", head)], stem


def test_pages_do_not_say_where_the_project_lies(files: dict[str, Path]) -> None:
    for path in files.values():
        assert str(ROOT) not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.parametrize("stem", ["index", *STEMS])
def test_charts_are_drawn_without_a_network(
    files: dict[str, Path], chromium: Browser, stem: str
) -> None:
    chromium.open(files[stem], 1280)
    assert chromium.console == []  # a warning of Vega's is a line as well
    page = read_page(chromium.html())
    drawn = [a for tag, a in page.elements if tag == "svg" and "marks" in a.get("class", "")]
    assert len(drawn) == charts_of(page) == CHARTS.get(stem, charts_of(page))


def sheets_of(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.xdist_group("notebooks")
def test_a_figure_is_seen_without_scrolling(files: dict[str, Path], chromium: Browser) -> None:
    """What was found and the beginning of its figure, within 500 pixels of the top; on a phone within
    the first screen, so that a swipe shows it; on paper with its verdicts on two sheets.
    """
    top = "document.querySelector('figure.drawn').getBoundingClientRect().top"
    of_studies = [
        stem for stem, path in files.items() if stem in CHARTS and path.parent.name in STUDIES
    ]
    assert len(of_studies) > 30
    for stem in of_studies:
        chromium.open(files[stem], 1440)
        assert chromium.evaluate(top) <= 500, stem
        assert chromium.evaluate("!!document.querySelector('.found')"), stem
        assert sheets_of(chromium.printed()) <= 2, stem
        chromium.open(files[stem], 390, height=844)
        assert chromium.evaluate(top) <= 844, stem
    chromium.open(files["index"], 1440)
    assert chromium.evaluate("document.documentElement.scrollHeight") <= 1_800  # two screens


@pytest.mark.xdist_group("notebooks")
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_pages_can_be_read(files: dict[str, Path], chromium: Browser, width: int) -> None:
    """No page is wider than the screen, none says anything on the console, no text is small or pale."""
    for stem, path in files.items():
        chromium.open(path, width)
        assert chromium.console == [], stem
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width, stem
        assert illegible(chromium) == [], stem
