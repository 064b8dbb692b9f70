"""The command run inside the test, and small data in a folder of its own."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cepbench.presentation.commands.app import app

ROOT = Path(__file__).resolve().parents[3]

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command, given as one line or as a list of words; other than ``code`` is a failure."""
    monkeypatch.setenv("CEPBENCH_DATASETS", str(ROOT / "datasets"))
    monkeypatch.setenv("COLUMNS", "100")

    def run(command: str | list[str], *, code: int = 0, stdin: str | None = None) -> Result:
        words = shlex.split(command) if isinstance(command, str) else command
        result = CliRunner().invoke(app, words, input=stdin, prog_name="cepbench")
        if result.exit_code != code and not isinstance(result.exception, SystemExit | None):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def told(run: Run) -> Callable[..., Any]:
    """What a command with ``--json`` writes."""

    def told(words: list[str], **options: Any) -> Any:
        return json.loads(run([*words, "--json"], **options).stdout)

    return told


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    count = 90
    return pd.DataFrame(
        {
            "symbol": rng.choice(["A", "B", "C", "D"], count, p=[0.3, 0.4, 0.1, 0.2]),
            "ts": np.sort(rng.integers(0, 120, count)),
            "x": rng.integers(0, 9, count),
            "name": rng.choice(["one", "two"], count),
        }
    )


@pytest.fixture
def data(tmp_path: Path, frame: pd.DataFrame) -> str:
    frame.to_parquet(tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")
