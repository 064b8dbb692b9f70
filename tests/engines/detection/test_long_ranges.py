"""Joins of rows with so many others that blocks of these are left out by their extreme values."""

from __future__ import annotations

import operator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples, only_compiled

pytestmark = [pytest.mark.kernel, only_compiled]

_OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "!=": lambda one, other: (one < other) | (one > other),
}  # fmt: skip


@pytest.mark.parametrize("order", ["ab", "ba"])
@given(
    compared=st.sampled_from([*_OPERATORS]),
    slope=st.sampled_from([0.0, 0.05, -0.05]),
    window=st.sampled_from([150, 400, 5_000]),
    also=st.booleans(),
    seed=st.integers(0, 1_000),
)
@examples(30)
def test_blocks_leave_out_no_partner(
    order: str, compared: str, slope: float, window: int, also: bool, seed: int
) -> None:
    """Values drift or do not, some are missing, equal or infinite; pandas tells the pairs."""
    rng, size = np.random.default_rng(seed), 700
    x = np.round(rng.normal(slope * np.arange(size), 3.0), 1)
    x[rng.random(size) < 0.05] = np.nan
    x[rng.random(size) < 0.01] = np.inf
    events = pd.DataFrame(
        {
            "type": rng.choice(list("AB"), size, p=[0.3, 0.7]),
            "time": np.sort(rng.integers(0, size, size)),
            "x": x,
            "y": rng.random(size),
        }
    )
    more = " AND a.y < b.y" if also else ""
    pattern = parse(
        f"PATTERN SEQ(A a, B b) WHERE a.x + 9 {compared} b.x{more} WITHIN {window} units"
    )
    rows = events.reset_index().assign(key=0)
    pairs = rows[rows["type"] == "A"].merge(
        rows[rows["type"] == "B"], on="key", suffixes=("_a", "_b")
    )
    gap = pairs["time_b"] - pairs["time_a"]
    fits = (gap > 0) & (gap <= window) & _OPERATORS[compared](pairs["x_a"] + 9, pairs["x_b"])
    if also:
        fits &= pairs["y_a"] < pairs["y_b"]
    expected = sorted(zip(pairs["index_a"][fits], pairs["index_b"][fits], strict=True))
    stream = EventStream.from_pandas(events, type="type", time="time")
    found = evaluate(pattern, stream, OrderPlan([*order]), evaluator="tree")
    assert sorted(found.matches.itertuples(index=False, name=None)) == expected
    counted = evaluate(pattern, stream, OrderPlan([*order]), evaluator="tree", output="count")
    assert counted.metrics.matches == len(expected)
    # A pair is compared whether its block is left out or not.
    assert counted.metrics.work == found.metrics.work
