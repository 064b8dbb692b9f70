"""A catalogue of its own for every test, so that none depends on what somebody has made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

#: The catalogue in git.
CATALOGUE = Path(__file__).resolve().parents[2] / "datasets"


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the committed catalogue that is found before any other."""
    copy = tmp_path / "catalogue"
    shutil.copytree(CATALOGUE, copy, ignore=shutil.ignore_patterns("data"))
    monkeypatch.setenv("CEPBENCH_DATASETS", str(copy))
    return copy
