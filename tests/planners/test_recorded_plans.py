"""Every plan generator still makes the plans that it made of 500 problems, at the same costs."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.planners.record_plans import PATH, PROBLEMS, recorded

#: How far costs may be from the recorded ones: sums in another order differ.
TOLERANCE = 1e-12
_TEXTS = ("plan", "complete", "cost_model")


@pytest.fixture(scope="module")
def before() -> pd.DataFrame:
    return _comparable(pd.read_parquet(PATH))


def _comparable(table: pd.DataFrame) -> pd.DataFrame:
    """Without what is missing, and without the words in which generators refuse."""
    costs = [column for column in table.columns if column.startswith("log_")]
    table = table.assign(refused=table["refused"].notna())
    return table.astype(dict.fromkeys(costs, float)).fillna(dict.fromkeys(_TEXTS, ""))


@pytest.mark.parametrize("part", range(10))
def test_plans_and_costs_are_those_that_were_recorded(before: pd.DataFrame, part: int) -> None:
    numbers = range(part, PROBLEMS, 10)
    rows = _comparable(pd.DataFrame([row for number in numbers for row in recorded(number)]))
    wanted = before[before["problem"].isin(numbers)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[wanted.columns], wanted, rtol=TOLERANCE, atol=TOLERANCE)
