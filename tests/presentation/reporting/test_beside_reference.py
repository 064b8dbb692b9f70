"""This machine beside the reference: on the command line, and on a page of the report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from nbformat.v4 import new_markdown_cell
from typer.testing import CliRunner

from cepbench.experiments.studies.reference import keep_table, results_folder
from cepbench.experiments.studies.registry import find_study
from cepbench.presentation.commands.app import app
from cepbench.presentation.reporting.beside_reference import reference_ledger, verdicts_beside
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.reference_results import VERDICTS, keep_report
from cepbench.presentation.reporting.site import publish_report
from cepbench.presentation.reporting.states import FAILS, HOLDS
from cepbench.presentation.reporting.verdicts import ledger
from tests.experiments.studies.reference_package import kept, measured, package_in
from tests.presentation.reporting.made_results import inside, outside, table_measuring
from tests.presentation.reporting.offline import read_page
from tests.presentation.reporting.test_site import write_executed

STUDY = "kolchinsky2018"


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[Path]:
    reference_ledger.cache_clear()
    with package_in(tmp_path / "package") as folder:
        yield folder
    reference_ledger.cache_clear()


def run(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done.stdout if not code else done.stderr


def judged(report: Path, *, holds: bool) -> str:
    """A report in which one claim was judged; its id."""
    one = next(its for its in claims(find_study(STUDY)) if len(its.tests) == 1)
    value = inside(one.main) if holds else outside(one.main)[0]
    table = table_measuring(one.main, value)
    for name, its in ((one.results, table), ("ledger", ledger(STUDY, {one.results: table}))):
        (report / STUDY / name).mkdir(parents=True)
        its.to_parquet(
            report / STUDY / name / f"{'ledger' if name == 'ledger' else 'results'}.parquet"
        )
    return one.id


def test_a_sweep_is_compared_with_the_reference(tmp_path: Path) -> None:
    kept(measured(tmp_path / "there"))
    here = measured(tmp_path / "here", slower=1.5)
    text = run("sweep", "compare", "reference", here.folder)
    assert "In common: 27 runs; of these differ 0 matches, 0 plans, 0 work." in " ".join(
        text.split()
    )
    found = json.loads(run("sweep", "compare", here.folder, "reference", "--json"))
    assert (found["first"], found["second"]) == (here.folder.name, "reference")
    assert found["unequal"] == {"runs": 27, "matches": 0, "plans": 0, "work": 0}
    table = run("sweep", "compare", "reference", "--folder", tmp_path / "here")
    assert "kolchinsky2018/latency" in table and "full" in table
    (row,) = json.loads(
        run("sweep", "compare", "reference", "--folder", tmp_path / "here", "--json")
    )
    assert row["runs"] == 27 and row["ratio"] > 1.3


def test_nothing_to_compare(tmp_path: Path) -> None:
    assert "with what?" in run("sweep", "compare", "mine", code=1)
    assert "no finished sweep" in run("sweep", "compare", "reference", "--folder", tmp_path, code=1)
    assert "with itself" in run("sweep", "compare", "reference", "reference", code=1)
    lost = measured(tmp_path / "here").folder
    assert "no reference results of a sweep latency" in run(
        "sweep", "compare", "reference", lost, code=1
    )


def test_a_claim_beside_the_reference(tmp_path: Path) -> None:
    name = judged(tmp_path / "reference", holds=True)
    assert list(keep_report(tmp_path / "reference", "full"))
    judged(tmp_path / "here", holds=False)
    text = run("claim", name, "--output", tmp_path / "here")
    assert f"\n{FAILS}" in text and f"\nreference, full: {HOLDS}\n" in text
    assert "reference, quick" not in text
    (found,) = [its for its in verdicts_beside(tmp_path / "here") if its.link.endswith(name)]
    assert found.differs and (found.here, found.reference) == (
        FAILS,
        {"quick": None, "full": HOLDS},
    )


def test_the_page_has_what_differs_and_nothing_else(tmp_path: Path) -> None:
    there = measured(tmp_path / "reference" / "data")
    kept(there)
    name = judged(tmp_path / "reference", holds=True)
    list(keep_report(tmp_path / "reference", "full"))
    report = tmp_path / "here"
    judged(report, holds=False)
    measured(report / "data", comparisons=9)
    write_executed(report, "quickstart", new_markdown_cell("# First"))
    publish_report(report)
    text = " ".join(read_page((report / "reference.html").read_text(encoding="utf-8")).text.split())
    assert "27 runs were measured here and by the reference." in text
    statement = next(its.statement for its in claims(find_study(STUDY)) if its.id == name)
    others = len(claims(find_study(STUDY))) - 1
    assert f"{others} of {others + 1} claims have the same verdict" in text and statement in text
    assert "Beside the reference" in (report / "index.html").read_text(encoding="utf-8")
    shutil.rmtree(results_folder(STUDY))
    reference_ledger.cache_clear()
    publish_report(report)
    assert "Beside the reference" not in (report / "index.html").read_text(encoding="utf-8")


def test_the_kept_verdicts_are_those_of_the_ledger(tmp_path: Path) -> None:
    judged(tmp_path / "there", holds=True)
    whole = pd.read_parquet(tmp_path / "there" / STUDY / "ledger" / "ledger.parquet")
    keep_table(whole[VERDICTS], results_folder(STUDY) / "ledger")
    found = reference_ledger(STUDY, "full")
    assert found is not None
    pd.testing.assert_frame_equal(found, whole[VERDICTS].reset_index(drop=True), check_dtype=False)
