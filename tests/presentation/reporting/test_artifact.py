"""ARTIFACT.md has each claim of the ledgers, with its range and command; numbers are those of a report."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_notebook

from cepbench.experiments.studies.registry import STUDIES, find_study
from cepbench.presentation.reporting.artifact import expected, text_of
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.verdicts import ledger
from tests.presentation.reporting.made_results import inside, table_measuring

FILE = Path(__file__).resolve().parents[3] / "ARTIFACT.md"
STUDY = "kolchinsky2018"


def rows_of(lines: list[str]) -> list[list[str]]:
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [row for row in cells if row[0] != "`cepbench claim`"]


def test_it_has_the_claims_of_the_ledgers() -> None:
    written = [row[:4] for row in rows_of(FILE.read_text(encoding="utf-8").splitlines())]
    assert written == [
        [its.id, its.figure, its.statement, expected(its)]
        for study in STUDIES.values()
        for its in claims(study)
    ], "make it anew: python -m cepbench.presentation.reporting.artifact reports >ARTIFACT.md"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Notebooks that took a minute, with a sweep of two; one claim has results."""
    one = claims(find_study(STUDY))[0]
    for study in STUDIES.values():
        for name in study.notebooks:
            folder = tmp_path / study.key / name
            folder.mkdir(parents=True)
            about = {
                "papermill": {"duration": 60.0},
                "cepbench": {
                    "machine": {"processor": "P", "cores": "2"},
                    "versions": {"cepbench": "9"},
                    "memory": 2_000_000,
                },
            }
            if name == one.results:
                about["sweeps"] = [f"{STUDY}/its"]
            nbformat.write(new_notebook(metadata=about), folder / f"{name}.ipynb")
        tables = {}
        if study.key == STUDY:
            tables[one.results] = table_measuring(one.main, inside(one.main))
        (tmp_path / study.key / "ledger").mkdir()
        ledger(study.key, tables).to_parquet(tmp_path / study.key / "ledger" / "ledger.parquet")
    sweep = tmp_path / "data" / "sweeps" / "its-00"
    sweep.mkdir(parents=True)
    (sweep / "memory.json").write_text('{"bytes": 3000000}')
    for name, content, when in (
        ("sweep.json", '{"data": "stream"}', 1000),
        ("results.parquet", "", 1120),
    ):
        (sweep / name).write_text(content)
        os.utime(sweep / name, (when, when))
    (tmp_path / "data" / "stream").mkdir()
    (tmp_path / "data" / "stream" / "events").write_bytes(bytes(5_000_000))
    return tmp_path


def test_numbers_and_minutes_are_those_of_the_report(report: Path) -> None:
    lines = list(text_of(report))
    rows = {row[0]: row for row in rows_of(lines)}
    one, *others = claims(find_study(STUDY))
    assert rows[one.id][4].startswith(f"holds: {inside(one.main):.2f}")
    assert rows[one.id][6:8] == ["3.0", "3 MB"] and rows[one.id][8] == "5 MB"
    elsewhere = next(its for its in others if its.results != one.results)
    assert rows[elsewhere.id][4] == "not testable" and rows[elsewhere.id][6] == "1.0"
    assert any("Measured on P, 2 cores, cepbench 9." in line for line in lines)
    assert f"cepbench claim {one.id}" in lines
