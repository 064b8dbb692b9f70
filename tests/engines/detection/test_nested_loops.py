"""The documentation's engine of one's own finds what the twin finds, in batches and restored."""

from __future__ import annotations

from pathlib import Path

import pytest

import cepbench as cep
from cepbench.experiments.plugins import load_plugins

NAME, FILE = "nested-loops", Path(__file__).parents[3] / "docs" / "nested_loops.py"


@pytest.fixture(autouse=True)
def registered() -> None:
    load_plugins([FILE])


def test_it_is_short_and_passes_its_checks() -> None:
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 150
    report = cep.check_evaluator(NAME)
    assert report.passed, report.describe()
    assert set(report.table[report.table["status"] == "refused"]["pattern"]) == {
        "kleene", "consuming", "strict contiguity",
    }  # fmt: skip
