"""Sentences of the front page, from tables whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK
from cepbench.presentation.reporting.story import facts


def test_only_runs_that_ended_well_are_counted(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {
            "pattern": ["p", "p", "q", "q"],
            "generator": ["DP-LD", "left-deep", "DP-LD", "GREEDY"],
            "status": [OK, LIMIT, OK, ERROR],
            "seconds": [1.0, 9.0, None, 2.0],  # a bound where a run came to its limit
            "events": [2_500_000, 7, 7, 7],
        }
    )
    (tmp_path / "figure_9").mkdir()
    rows.to_parquet(tmp_path / "figure_9" / "results.parquet")
    assert dict(map(reversed, facts(tmp_path, ["figure_9", "figure_6"]))) == {
        "runs measured": "1", "events processed": "2.5 million", "patterns": "2",
        "plan generators": "2",
    }  # fmt: skip
