"""Sentences of the front page, from tables whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from cepbench.reporting.story import facts, further
from cepbench.sweeps.cells import ERROR, LIMIT, OK

NAN = float("nan")


def distances(*rows: tuple[str, str, str, float, int]) -> pd.DataFrame:
    """Pattern set, kind of plan, generator, mean distance and the largest size planned."""
    columns = ["pattern_set", "plan_kind", "generator", "geometric_mean", "largest"]
    return pd.DataFrame(rows, columns=columns)


def told(folder: Path, table: pd.DataFrame) -> str:
    (folder / "figure_7_extended").mkdir(exist_ok=True)
    table.to_parquet(folder / "figure_7_extended" / "distances.parquet")
    return " ".join(text for text, _ in further(folder))


def test_the_closest_generator_is_that_of_all_patterns(tmp_path: Path) -> None:
    every = [
        ("sequence", "order", "GREEDY", 1.5, 200), ("acyclic", "order", "GREEDY", 1.25, 200),
        ("sequence", "tree", "GOO", 1.75, 200), ("acyclic", "tree", "GOO", 2.5, 200),
    ]  # fmt: skip
    expected = ("GREEDY comes within a factor of 1.500", "GOO comes within a factor of 2.500")
    whole = told(tmp_path, distances(*every))
    assert all(text in whole for text in expected) and "up to 200 events" in whole
    # One that plans, or is compared on, the patterns of one set alone is no rival to the others.
    few = [
        ("sequence", "order", "FEW", NAN, 200), ("acyclic", "order", "FEW", 1.0, 200),
        ("sequence", "tree", "SMALL", 1.0, 20), ("acyclic", "tree", "SMALL", 1.0, 200),
        ("acyclic", "tree", "ONE", 1.0, 200),
    ]  # fmt: skip
    assert told(tmp_path, distances(*few, *every)) == whole


def test_only_runs_that_ended_well_are_counted(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "pattern": ["p", "p", "q", "q"],
            "generator": ["A", "B", "A", "C"],
            "status": [OK, LIMIT, OK, ERROR],
            "seconds": [1.0, 9.0, None, 2.0],  # a bound where a run came to its limit
            "events": [2_500_000, 7, 7, 7],
        }
    )
    (tmp_path / "figure_9").mkdir()
    rows.to_parquet(tmp_path / "figure_9" / "results.parquet")
    assert dict(map(reversed, facts(tmp_path, ["figure_9", "figure_6"]))) == {
        "runs measured": "1", "events gone through": "2.5 million", "patterns": "2",
        "plan generators": "3",
    }  # fmt: skip
