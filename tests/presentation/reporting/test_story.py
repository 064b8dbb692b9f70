"""Sentences of the front page, from tables whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK
from cepbench.presentation.reporting.states import EXCEEDS, FAILS, HOLDS, IN_WORK, UNDECIDED
from cepbench.presentation.reporting.story import Cell, JudgedClaim, facts


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


@pytest.mark.parametrize(
    ("work", "time", "verdict", "shown"),
    [
        ([HOLDS, HOLDS], [HOLDS, HOLDS], HOLDS, ["time", "time"]),
        ([UNDECIDED, HOLDS], [HOLDS, HOLDS], UNDECIDED, ["work", "work"]),
        ([HOLDS, HOLDS], [UNDECIDED, FAILS], UNDECIDED, ["time", "time"]),
        ([HOLDS, HOLDS], [FAILS, HOLDS], IN_WORK, ["work", "time", "work", "time"]),
    ],
)
def test_a_claim_shows_the_basis_that_decides(
    work: list[str], time: list[str], verdict: str, shown: list[str]
) -> None:
    ranges = {"work": (2.0, 9.0), "time": (1.0, 3.0)}
    cells = [
        Cell("", "2", "", its, (2.0, 2.0, 2.0), expected=ranges[basis], also=also, basis=basis)
        for also, *found in (
            (True, EXCEEDS, EXCEEDS),
            *((False, *its) for its in zip(work, time, strict=True)),
        )
        for basis, its in zip(("work", "time"), found, strict=True)
    ]
    claim = JudgedClaim("", tuple(cells), verdict)
    assert [cell.basis for cell in claim.deciding] == shown
    assert claim.scale.count('class="mark"') == 2  # those that are expected in one range
