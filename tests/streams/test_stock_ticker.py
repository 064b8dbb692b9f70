"""The stock ticker: one walk per symbol, whatever the parts, with the paper's probabilities."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.streams.generated import make_stream
from cepbench.streams.stock_ticker import StockTicker


def frame(ticks: StockTicker, first: int = 0, last: int | None = None) -> pd.DataFrame:
    return ticks.table(first, ticks.events if last is None else last).to_pandas()


@given(
    seed=st.integers(0, 2**63 - 1),
    events=st.integers(1, 60),
    symbols=st.integers(1, 5),
    p=st.sampled_from([0.0, 0.3, 0.55, 0.7, 1.0]),
    prices=st.sampled_from([1, 2, 5, 20, 1000]),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_parts_are_the_whole(
    seed: int, events: int, symbols: int, p: float, prices: int, cuts: list[int]
) -> None:
    ticks = StockTicker(events, seed, p, symbols, prices)
    ends = sorted({0, events, *(min(cut, events) for cut in cuts)})
    parts = [frame(ticks, *ends_of) for ends_of in pairwise(ends)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), frame(ticks))
    more = StockTicker(events + 9, seed, p, symbols, prices)
    pd.testing.assert_frame_equal(frame(more, 0, events), frame(ticks))
    for _, of_symbol in frame(ticks).groupby("symbol")["price"]:
        assert of_symbol.between(0, prices - 1).all()
        for before, after in pairwise(of_symbol):
            risen = (before + 1) % prices
            fallen = {before, max(before - 1, 0)}
            assert after in ({risen} if p == 1.0 else fallen if p == 0.0 else {risen, *fallen})


def test_prices_of_a_tick_at_a_time() -> None:
    # The unbounded walk gives the steps; each is taken by itself.
    for prices, p in ((40, 0.7), (3, 0.34), (1000, 0.95)):
        ticks = frame(StockTicker(20_000, 4, p, 2, prices))
        free = frame(StockTicker(20_000, 4, p, 2, 10**9))
        for (_, own), (_, apart) in zip(
            ticks.groupby("symbol")["price"], free.groupby("symbol")["price"], strict=True
        ):
            expected = [own.iloc[0]]
            for step in np.diff(apart):
                price = expected[-1] + step
                expected.append(0 if price == prices else max(price, 0))
            assert own.tolist() == expected
            assert own.max() == prices - 1 and own.min() == 0


def test_files_continue_the_walk_of_those_before(tmp_path: Path) -> None:
    ticks = StockTicker(900_000, 5, symbols=3)
    declared = make_stream(tmp_path / "made", ticks)
    assert declared.counts == {"STOCK": 900_000} and len(ticks.files()) == 3
    stream = cep.EventStream.from_parquet(tmp_path / "made")
    assert stream.type_names == ("STOCK",)
    found = stream.to_pandas()[["symbol", "price", "volume"]]
    drawn = frame(ticks)[["symbol", "price", "volume"]]
    pd.testing.assert_frame_equal(found, drawn, check_names=False)
    for _, prices in found.groupby("symbol")["price"]:
        assert set(np.diff(prices)) == {-999, -1, 0, 1}


@pytest.mark.parametrize("p", [0.7, 0.55])
def test_prices_and_volumes_have_the_papers_probabilities(p: float) -> None:
    ticks = frame(StockTicker(200_000, 1, p))
    assert list(ticks) == ["type", "ts", "symbol", "price", "volume"]
    assert (ticks["type"] == "STOCK").all() and (ticks.ts == np.arange(200_000)).all()
    # Five standard deviations of a share of 1/2 of 200,000, which are the widest.
    assert ticks.symbol.value_counts(normalize=True)[[1, 2]].tolist() == pytest.approx(
        [0.5, 0.5], abs=0.006
    )
    moved = ticks.groupby("symbol")["price"].diff().dropna().replace(-999, 1)
    steps = moved.value_counts(normalize=True)
    assert steps[[1, -1, 0]].tolist() == pytest.approx([p, (1 - p) / 2, (1 - p) / 2], abs=0.006)
    assert ticks.volume.min() == 1 and ticks.volume.max() == 1000
    assert (ticks.volume < 150).mean() == pytest.approx(0.149, abs=0.004)
    assert ticks.volume.corr(ticks.symbol) == pytest.approx(0.0, abs=0.012)
    assert ticks.price.min() == 0 and ticks.price.max() == 999


def test_first_prices_are_from_0_to_999() -> None:
    first = frame(StockTicker(20_000, 2, symbols=4_000)).groupby("symbol")["price"].first()
    assert first.min() >= 0 and first.max() <= 999
    assert first.mean() == pytest.approx(499.5, abs=5 * 289 / len(first) ** 0.5)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"events": 0}, "events must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"p": 1.5}, "p must be at most 1"),
        ({"p": "x"}, "p must be a number"),
        ({"symbols": 0}, "symbols must be at least 1"),
        ({"prices": 0}, "prices must be at least 1"),
    ],
)
def test_mistakes_say_what_is_wrong(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        StockTicker(**{"events": 10, **wrong})
