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
    shown = run(["plan", *words(bars, "COUNT(*)")], code=1).stderr.splitlines()
    (place,) = (at for at, line in enumerate(shown) if set(line.strip()) == {"^"})
    assert shown[place - 1][shown[place].index("^") :].startswith("COUNT(*)")


def test_what_does_not_fit_is_named(bars: Path, run: Run) -> None:
    assert "COUNT(*)" in run(["plan", *words(bars, "COUNT(*)")], code=1).stderr
    refused = run(["run", *words(bars), "--limit", "3"], code=2).stderr
    assert "takes --output and --count" in refused
    assert "is not for SQL" in run(["run", *words(bars), "--within", "5 s"], code=2).stderr


def test_a_query_of_rows_alone_is_explained(bars: Path, run: Run, told: Callable[..., Any]) -> None:
    shown = run(["explain", *words(bars, "COUNT(*)")]).stdout
    assert "automaton of 3 states and 3 edges, in each partition by symbol" in shown
    assert "WITHIN bounds a match: its rows are less than INTERVAL '1' HOUR apart" in shown
    assert "2 matches in 5 events of 2 partitions, the largest of 3 rows" in shown
    assert "line 2, column 28: no pattern means exactly the same as COUNT(*)" in shown
    assert "with MEASURES without high:\n  SELECT * FROM events" in shown
    html = bars.with_name("rows.html")
    found = told(["explain", *words(bars, "COUNT(*)"), "--no-run", "--html", str(html)])
    assert [state["then"] for state in found["states"]] == ["1 A", "2 B", "match"]
    assert found["metrics"] is None
    assert found["changes"] == ["MEASURES without high"]
    assert "No plan is chosen" in html.read_text(encoding="utf-8")
    assert (
        "COUNT(*)"
        in run(["explain", *words(bars, "COUNT(*)"), "--evaluator", "tree"], code=1).stderr
    )


EQL = "sequence by symbol with maxspan=1h [bar where price < 2] [bar where price > 2]"
SIGMA = """correlation:
  type: temporal_ordered
  rules: [bar, cry]
  group-by: [symbol]
  timespan: 1h
"""


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(
    ("text", "name", "dialect", "matches"),
    [
        (EQL, "rule.eql", "eql", 2),
        (SIGMA, "rule.yml", "sigma", 1),
        (SIGMA, "rule.YAML", "sigma", 1),
    ],
)
def test_rules_of_other_systems(
    bars: Path,
    run: Run,
    told: Callable[..., Any],
    text: str,
    name: str,
    dialect: str,
    matches: int,
    by_name: bool,
) -> None:
    frame = pd.read_csv(bars)
    frame.loc[3, "kind"] = "cry" if dialect == "sigma" else "bar"
    frame[frame["kind"].eq("bar") | (frame.index == 3)].drop(
        index=[0] if dialect == "sigma" else []
    ).to_csv(bars, index=False)
    file = bars.with_name(name if by_name else "rule.txt")
    file.write_text(text, encoding="utf-8")
    given = [str(file), "--data", str(bars), "--columns", "kind,ts"]
    given += [] if by_name else ["--dialect", dialect]
    assert told(["run", *given])["metrics"]["matches"] == matches
    assert "ORDER BY arrival" in told(["explain", *given])["pattern"]
    assert "matches" in run(["explain", *given]).stdout


def test_files_that_are_no_queries_are_named(bars: Path, run: Run) -> None:
    file = bars.with_name("query.sql")
    rest = ["--data", str(bars), "--columns", "kind,ts"]
    for content, says in (
        (b"", "the query is empty"),
        (QUERY.format(measure="B.price").encode("utf-16"), "is not UTF-8"),
        (b'{"query": "x"}', "no MATCH_RECOGNIZE"),
    ):
        file.write_bytes(content)
        assert says in run(["run", str(file), *rest], code=1).stderr.replace("\n", " ")
    missing = str(bars.with_name("none.sql"))
    assert "nor a readable file" in run(["run", missing, *rest], code=1).stderr.replace("\n", " ")
