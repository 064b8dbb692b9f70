"""SQL with MATCH_RECOGNIZE by commands: its rows by itself, and the pattern that says the same with plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.presentation.commands.conftest import Run

QUERY = """SELECT * FROM bars MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
  MEASURES A.price AS low, {measure} AS high AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A B) WITHIN INTERVAL '1' HOUR DEFINE B AS B.price > 2 * PREV(B.price))"""


@pytest.fixture
def bars(tmp_path: Path) -> Path:
    file = tmp_path / "bars.csv"
    times = pd.date_range("2026-01-05", periods=5, freq="min")
    frame = pd.DataFrame({"kind": "bar", "ts": times, "symbol": list("xyxxy")})
    frame.assign(price=[1.0, 5.0, 3.0, 7.0, 6.0]).to_csv(file, index=False)
    return file


def words(bars: Path, measure: str = "B.price") -> list[str]:
    query = bars.with_name("query.sql")
    query.write_text(QUERY.format(measure=measure))
    return [str(query), "--data", str(bars), "--columns", "kind,ts"]


def test_a_query_runs_by_itself(bars: Path, run: Run, told: Callable[..., Any]) -> None:
    shown = run(["run", *words(bars)]).stdout
    assert shown.startswith("2 matches in 5 events, 2 rows")
    found = told(["run", *words(bars)])
    assert found["rows"] == 2
    assert found["first_rows"] == [
        {"symbol": "x", "low": 1.0, "high": 3.0},
        {"symbol": "x", "low": 3.0, "high": 7.0},
    ]
    output = bars.with_name("rows.csv")
    assert "2 rows are in" in run(["run", *words(bars), "--output", str(output)]).stdout
    assert pd.read_csv(output)["high"].tolist() == [3.0, 7.0]
    assert "low" not in run(["run", *words(bars), "--count"]).stdout


def test_with_plans_the_counterpart_runs(bars: Path, run: Run) -> None:
    assert "SEQ(ANY A, ANY B)" in run(["plan", *words(bars)]).stdout
    shown = run(["run", *words(bars), "--evaluator", "tree"]).stdout
    assert "run by tree" in shown
    assert "7" in shown


def test_the_counterpart_is_explained(bars: Path, run: Run) -> None:
    assert "partition_contiguity" in run(["explain", *words(bars)]).stdout


def test_a_clause_without_counterpart_is_marked(bars: Path, run: Run) -> None:
    shown = run(["explain", *words(bars, "COUNT(*)")], code=1).stderr.splitlines()
    (place,) = (at for at, line in enumerate(shown) if set(line.strip()) == {"^"})
    assert shown[place - 1][shown[place].index("^") :].startswith("COUNT(*)")


def test_what_does_not_fit_is_named(bars: Path, run: Run) -> None:
    assert "COUNT(*)" in run(["plan", *words(bars, "COUNT(*)")], code=1).stderr
    refused = run(["run", *words(bars), "--limit", "3"], code=2).stderr
    assert "takes --output and --count" in refused
    assert "is not for SQL" in run(["run", *words(bars), "--within", "5 s"], code=2).stderr
