"""``cepbench claim``: the verdict of the report, from what was measured or is measured now."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from cepbench.experiments.studies.registry import STUDIES, find_study
from cepbench.presentation.commands.completion import complete_claims
from cepbench.presentation.reporting.claims import Claim, claims
from cepbench.presentation.reporting.verdicts import ledger
from tests.notebooks.tiny import write_notebook
from tests.presentation.reporting.made_results import inside, table_measuring

STUDY = "kolchinsky2018"


@pytest.fixture
def one() -> Claim:
    """A claim with one test, of a range with an end."""
    return next(its for its in claims(find_study(STUDY)) if len(its.tests) == 1)


@pytest.fixture
def report(tmp_path: Path, one: Claim) -> Path:
    folder = tmp_path / "site" / STUDY / one.results
    folder.mkdir(parents=True)
    table_measuring(one.main, inside(one.main)).to_parquet(folder / "results.parquet")
    return tmp_path / "site"


def test_all_claims_are_listed(run) -> None:
    rows = json.loads(run("claim --json").stdout)
    assert [row["id"] for row in rows] == [
        its.id for study in STUDIES.values() for its in claims(study)
    ]
    shown = run("claim --study liu2011").stdout
    assert all(its.id in shown for its in claims(find_study("liu2011")))
    assert STUDY not in shown


def test_what_was_measured_is_judged(run, report: Path, one: Claim) -> None:
    result = run(["claim", one.id, "--output", str(report)])
    table = pd.read_parquet(report / STUDY / one.results / "results.parquet")
    judged = ledger(STUDY, {one.results: table})
    its = judged[judged["id"] == one.id]
    assert one.statement.split()[0] in result.stdout and "measured before" in result.stderr
    assert f"\n{its['overall'].iloc[0]}\n" in result.stdout
    told = json.loads(run(["claim", one.id, "--output", str(report), "--json"]).stdout)
    assert told["tests"][0]["value"] == pytest.approx(its["value"].iloc[0])
    assert told["tests"][0]["verdict"] == its["verdict"].iloc[0] == "holds"


@pytest.mark.xdist_group("notebooks")
def test_only_its_notebook_is_run(
    run, report: Path, one: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = report / STUDY / one.results / "results.parquet"
    made.rename(tmp_path / "made.parquet")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebooks" / STUDY).mkdir(parents=True)
    write_notebook(
        tmp_path / "notebooks" / STUDY / f"{one.results}.ipynb",
        f'profile = "quick"\nseed = 0\noutput = "{made.parent}"',
        f"import shutil; shutil.copy('{tmp_path}/made.parquet', '{made}')",
    )
    result = run(["claim", one.id, "--output", str(report)])
    assert f"{STUDY}/{one.results}: running" in result.stderr
    assert "\nholds\n" in result.stdout


def test_an_unknown_claim(run, one: Claim) -> None:
    near = one.id[:-1]
    said = run(["claim", near], code=1).stderr
    assert f"claim '{near}': there is none" in said and one.id in said
    assert "is not one of --study" in run(["claim", one.id, "--study", "liu2011"], code=1).stderr


def test_no_notebooks(run, one: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no folder notebooks" in run(["claim", one.id], code=1).stderr


def test_ids_are_completed(one: Claim) -> None:
    assert one.id in complete_claims(one.id[:3])
    assert complete_claims("nothing-such") == []
