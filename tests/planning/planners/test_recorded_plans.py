"""Every plan generator makes the plans that were recorded for drawn problems, at the same costs.

``make test`` takes every tenth of the 500 problems, ``make soak`` all of them.
"""

from __future__ import annotations

import pandas as pd
import pytest

from tests.budgets import SOAK
from tests.planning.planners.record_plans import PATH, PROBLEMS, recorded

#: How far costs may be from the recorded ones: sums in another order differ.
TOLERANCE = 1e-12
_TEXTS = ("plan", "complete", "cost_model")
#: The tests are this many, so that workers share the problems.
PARTS = 5
STEP = PARTS * (10 if SOAK is None else 1)


@pytest.fixture(scope="module")
def before() -> pd.DataFrame:
    return _comparable(pd.read_parquet(PATH))


def _comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Without what is missing, and without the words in which generators refuse."""
    costs = [column for column in table.columns if column.startswith("log_")]
    table = table.assign(refused=table["refused"].notna())
    return table.astype(dict.fromkeys(costs, float)).fillna(dict.fromkeys(_TEXTS, ""))


@pytest.mark.seeded
@pytest.mark.parametrize("part", range(PARTS))
def test_plans_and_costs_are_those_that_were_recorded(before: pd.DataFrame, part: int) -> None:
    numbers = range(part, PROBLEMS, STEP)
    rows = _comparable(pd.DataFrame([row for number in numbers for row in recorded(number)]))
    wanted = before[before["problem"].isin(numbers)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[wanted.columns], wanted, rtol=TOLERANCE, atol=TOLERANCE)
