"""Ticks of chosen rates and selectivities: counts, exact probabilities, parts and segments."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import DatasetError
from cepbench.seeds import counted_draws
from cepbench.streams.stock_rates import StockRates

#: Prices are uniform, so that a selectivity of two names follows from where their prices begin.
WIDTH = 10.0


def frame(ticks: StockRates, first: int = 0, last: int | None = None) -> pd.DataFrame:
    table = ticks.table(first, ticks.events if last is None else last)
    return table.to_pandas().astype({"symbol": str, "name": str})


def share_above(one: pd.Series, other: pd.Series) -> float:
    """The share of all pairs in which the first is greater."""
    below = np.searchsorted(np.sort(other.to_numpy()), one.to_numpy(), side="left")
    return float(below.sum() / len(one) / len(other))


def probability_above(distance: float) -> float:
    """That one uniform variable is above another, whose range begins ``distance`` lower: by area."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    return float(np.clip(grid + distance, 0.0, 1.0).mean())


def test_draws_are_those_of_their_number() -> None:
    every = counted_draws(4, 0, 50, 1)
    assert (counted_draws(4, 17, 9, 1) == every[17:26]).all()
    assert len(np.unique(every)) == every.size
    for other in (counted_draws(5, 0, 50, 1), counted_draws(4, 0, 50, 2), counted_draws(4, 0, 50)):
        assert not np.isin(other, every).any()


@given(
    seed=st.integers(0, 2**70),
    events=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    segments=st.integers(0, 7),
)
def test_parts_are_the_whole(seed: int, events: int, cuts: list[int], segments: int) -> None:
    sets = [{"rates": {"IBM": float(k)}, "selectivities": {"IBM > Sun": k / 7}} for k in range(7)]
    ticks = StockRates(events, seed, segments=sets[:segments])
    ends = sorted({0, events, *(min(cut, events) for cut in cuts)})
    parts = [frame(ticks, *ends_of) for ends_of in pairwise(ends)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), frame(ticks))
    if not segments:
        more = StockRates(events + 9, seed)
        pd.testing.assert_frame_equal(frame(more, 0, events), frame(ticks))


def test_columns() -> None:
    ticks = frame(StockRates(20_000))
    assert list(ticks) == ["symbol", "ts", "id", "name", "price", "volume"]
    assert (ticks.ts == np.arange(20_000)).all() and (ticks.id == ticks.ts).all()
    assert set(ticks["name"]) == {"IBM", "Sun", "Oracle", "Google"}
    assert (ticks["name"] == ticks["symbol"]).all()
    assert (ticks.volume % 100 == 0).all() and ticks.volume.min() == 100
    assert ticks.volume.max() == 5_000


def test_names_come_at_their_rates_and_independently() -> None:
    rates = {"IBM": 50.0, "Sun": 1.0, "Oracle": 2.0, "Nobody": 0.0}
    ticks = frame(StockRates(200_000, 3, rates=rates))
    counts = ticks["symbol"].value_counts().reindex(list(rates), fill_value=0)
    expected = 200_000 * np.array(list(rates.values())) / 53.0
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()
    # The name after a rare one is as any other.
    after = ticks["symbol"].shift(-1)[ticks["symbol"] == "Oracle"]
    assert (after == "IBM").mean() == pytest.approx(50 / 53, abs=0.02)
    pd.testing.assert_frame_equal(
        frame(StockRates(99, 3, rates=dict(reversed(rates.items())))), ticks[:99]
    )


@given(st.floats(0.0, 1.0))
def test_the_selectivity_is_exact(selectivity: float) -> None:
    rates = {"a": 1.0, "b": 1.0, "c": 1.0}
    ticks = StockRates(1, rates=rates, selectivities={"a > b": selectivity, "b < c": 0.25})
    ((_, lowest),) = ticks.drawn
    a, b, c = lowest / WIDTH
    assert probability_above(a - b) == pytest.approx(selectivity, abs=1e-4)
    assert probability_above(c - b) == pytest.approx(0.25, abs=1e-4)
    assert lowest.min() == 100.0
    other_way = StockRates(1, rates=rates, selectivities={"c > b": 0.25, "b < a": selectivity})
    assert other_way == ticks and other_way.name == ticks.name


@pytest.mark.parametrize("selectivity", [1.0, 1 / 2, 1 / 8, 1 / 32, 1 / 50, 0.0])
def test_the_stream_has_the_selectivity(selectivity: float) -> None:
    chosen = {"Oracle > Sun": selectivity, "Oracle > Google": 1.0}
    prices = frame(StockRates(100_000, 1, selectivities=chosen)).groupby("symbol")["price"]
    of = dict(iter(prices))
    found = share_above(of["Oracle"], of["Sun"])
    # Over the pairs of 25,000 ticks each it has a standard deviation of at most 0.0026.
    assert found == pytest.approx(selectivity, abs=0.01)
    if selectivity in (0.0, 1.0):
        assert found == selectivity
    assert share_above(of["Oracle"], of["Google"]) == 1.0
    for values in of.values():
        assert values.max() - values.min() == pytest.approx(WIDTH, abs=0.01)


def test_segments_have_their_own_rates_and_selectivities() -> None:
    ticks = StockRates(
        90_000,
        rates=dict.fromkeys(("IBM", "Sun", "Oracle", "Google"), 1.0),
        selectivities={"Oracle > Sun": 1.0, "Oracle > Google": 1.0},
        segments=[
            {"rates": {"IBM": 0.01}},
            {"selectivities": {"Oracle > Sun": 1 / 50}},
            {"selectivities": {"Google < Oracle": 1 / 50}},
        ],
    )
    third = [frame(ticks, first, first + 30_000) for first in (0, 30_000, 60_000)]
    shares = [float((part["symbol"] == "IBM").mean()) for part in third]
    assert shares == pytest.approx([0.01 / 3.01, 0.25, 0.25], abs=0.01)
    found = []
    for part in third:
        of = dict(iter(part.groupby("symbol")["price"]))
        found.append([share_above(of["Oracle"], of[name]) for name in ("Sun", "Google")])
    assert np.array(found) == pytest.approx(
        np.array([[1.0, 1.0], [0.02, 1.0], [1.0, 0.02]]), abs=0.005
    )
    # The first segment is the beginning of a stream of its parameters.
    first = StockRates(
        90_000, rates={**ticks.rates, "IBM": 0.01}, selectivities=ticks.selectivities
    )
    pd.testing.assert_frame_equal(frame(first, 0, 30_000), third[0])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"events": 0}, "events must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"rates": 3}, "rates must be a table such as .*, not 3"),
        ({"rates": {"IBM": -1}}, "the rate of IBM must be at least 0, not -1"),
        ({"rates": {"IBM": 0}}, "rates: at least one name needs a rate above 0"),
        ({"selectivities": {"IBM > Sun": 1.5}}, "selectivity of IBM > Sun must be at most 1"),
        ({"selectivities": {"IBM = Sun": 0.5}}, "'IBM = Sun' is not a comparison of two names"),
        (
            {"selectivities": {"IBM > Snu": 0.5}},
            "each name is one of .*, not 'Snu'; did you mean 'Sun'",
        ),
        ({"selectivities": {"IBM > IBM": 0.5}}, "'IBM > IBM' closes a cycle"),
        (
            {"selectivities": {"IBM > Sun": 0.5, "Sun > Oracle": 0.5, "IBM < Oracle": 0.5}},
            "closes a cycle; leave one",
        ),
        (
            {"segments": [{"rate": {}}]},
            "a segment: each name is one of .*, not 'rate'; did you mean 'rates'",
        ),
        (
            {"segments": [{"rates": {"IBN": 1}}]},
            "rates of a segment: each name is one of .*, not 'IBN'; .*'IBM'",
        ),
        (
            {"segments": [{"rates": dict.fromkeys(("IBM", "Sun", "Oracle", "Google"), 0)}]},
            "above 0",
        ),
        ({"segments": {"rates": {}}}, "each of segments must be a table"),
    ],
)
def test_mistakes_say_what_is_wrong(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        StockRates(**{"events": 10, **wrong})
