"""Ticker trades: the same events whatever the parts, a Poisson process of equal tickers."""

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
from cepbench.streams.ticker_trades import TICKERS, TickerTrades


def frame(trades: TickerTrades, first: int = 0, last: int | None = None) -> pd.DataFrame:
    return trades.table(first, trades.events if last is None else last).to_pandas()


@given(
    seed=st.integers(0, 2**63 - 1),
    events=st.integers(1, 60),
    types=st.integers(1, 40),
    per_window=st.sampled_from([0.5, 10, 100, 10_000]),
    cuts=st.lists(st.integers(0, 60), max_size=4),
)
def test_parts_are_the_whole(
    seed: int, events: int, types: int, per_window: float, cuts: list[int]
) -> None:
    trades = TickerTrades(events, seed, types, per_window)
    ends = sorted({0, events, *(min(cut, events) for cut in cuts)})
    parts = [frame(trades, *ends_of) for ends_of in pairwise(ends)]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), frame(trades))
    more = TickerTrades(events + 9, seed, types, per_window)
    pd.testing.assert_frame_equal(frame(more, 0, events), frame(trades))
    assert frame(trades).ts.is_monotonic_increasing
    assert set(frame(trades).symbol) <= set(TICKERS[:types])


def test_files_continue_the_times_of_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = frame(TickerTrades(900, 5))
    monkeypatch.setattr(TickerTrades, "per_file", 400)
    declared = make_stream(tmp_path / "made", TickerTrades(900, 5))
    assert len(TickerTrades(900, 5).files()) == 3 and declared.events == 900
    stream = cep.EventStream.from_parquet(tmp_path / "made")
    assert stream.to_pandas()["volume"].tolist() == whole["volume"].tolist()
    assert stream.timestamps.tolist() == whole["ts"].to_numpy().astype("M8[ns]").view("i8").tolist()


@pytest.mark.parametrize(("types", "per_window"), [(20, 10.0), (40, 100.0)])
def test_trades_are_a_poisson_process_of_equal_tickers(types: int, per_window: float) -> None:
    trades = frame(TickerTrades(200_000, 1, types, per_window))
    assert list(trades) == ["symbol", "ts", "price", "volume"]
    counts = trades.symbol.value_counts()
    assert len(counts) == types and set(counts.index) == set(TICKERS[:types])
    # Five standard deviations of the extreme ones.
    expected = 200_000 / types
    assert np.abs(counts - expected).max() < 5 * expected**0.5
    milliseconds = trades.ts.to_numpy().view("i8")
    assert milliseconds[-1] == pytest.approx(1000 * expected / per_window, rel=5 / 200_000**0.5)
    # Numbers in windows of 1000 ms have the variance of their mean.
    windows = np.bincount(milliseconds[trades.symbol == "DELL"] // 1000)[:-1]
    assert windows.mean() == pytest.approx(per_window, rel=0.06)
    assert windows.var() / windows.mean() == pytest.approx(1.0, abs=5 * (2 / len(windows)) ** 0.5)


def test_prices_and_volumes_are_uniform_and_independent() -> None:
    trades = frame(TickerTrades(200_000, 2))
    assert (trades.price.min(), trades.price.max()) == (1_000, 9_999)
    assert (trades.volume.min(), trades.volume.max()) == (1, 1000)
    assert trades.price.mean() == pytest.approx(5499.5, abs=5 * 2598 / 200_000**0.5)
    assert trades.volume.mean() == pytest.approx(500.5, abs=5 * 289 / 200_000**0.5)
    numbers = trades.assign(symbol=trades.symbol.cat.codes)[["symbol", "price", "volume"]]
    off_diagonal = numbers.corr().to_numpy()[np.triu_indices(3, 1)]
    assert np.abs(off_diagonal).max() < 5 / 200_000**0.5


def test_forty_tickers_are_forty() -> None:
    assert len(set(TICKERS)) == 40 and {"DELL", "IPIX", "AMAT", "QQQ"} <= set(TICKERS[:20])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"events": 0}, "events must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"types": 41}, "types must be at most 40"),
        ({"per_window": 0}, "per_window must be at least 0.001"),
        ({"per_window": "x"}, "per_window must be a number"),
    ],
)
def test_mistakes_say_what_is_wrong(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        TickerTrades(**{"events": 10, **wrong})
