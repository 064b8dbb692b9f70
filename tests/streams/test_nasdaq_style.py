"""The NASDAQ-style stream: rates, prices, correlation, and parts that equal the whole."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import DatasetError
from cepbench.streams.nasdaq_style import RATES_PER_WINDOW, WINDOWS_PER_DAY, NasdaqStyle


def frame(style: NasdaqStyle, first: int = 0, last: int | None = None) -> pd.DataFrame:
    everyone = np.arange(style.identifiers)
    table = style.table(everyone, first, style.days if last is None else last)
    return table.to_pandas().astype({"symbol": str, "sector": str})


@pytest.fixture(scope="module")
def style() -> NasdaqStyle:
    return NasdaqStyle(identifiers=40, days=15, seed=3)


@pytest.fixture(scope="module")
def events(style: NasdaqStyle) -> pd.DataFrame:
    return frame(style)


def test_a_year_of_all_identifiers_has_the_papers_size() -> None:
    style = NasdaqStyle()
    assert len(set(style.symbols)) == len(style.sectors) == 2100
    assert style.symbols[:3] == ("MSFT", "GOOG", "INTC")
    # Patterns of users have these names.
    assert style.symbols[100:2100:400] == ("AQJA", "JILV", "KZYH", "MRKT", "OIXF")
    assert style.expected_events(days=252) == pytest.approx(80.5e6, rel=0.01)
    least, most = RATES_PER_WINDOW
    assert least <= style.rates.min() < 1.01 and 44 < style.rates.max() <= most
    assert np.median(style.rates) < style.rates.mean() / 2, "few identifiers are frequent"


def test_events_arrive_at_the_promised_rates(style: NasdaqStyle, events: pd.DataFrame) -> None:
    counts = events.groupby("symbol").size().reindex(list(style.symbols)).to_numpy()
    expected = style.rates * WINDOWS_PER_DAY * style.days
    # Poisson: five standard deviations are exceeded once in millions.
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()
    quarters = np.histogram(events.ts.dt.hour * 60 + events.ts.dt.minute, 4, (570, 960))[0]
    assert quarters.max() / quarters.min() < 1.05


def test_times_lie_within_trading_hours_and_differ(events: pd.DataFrame) -> None:
    opening = events.ts.dt.normalize() + pd.Timedelta(hours=9, minutes=30)
    assert (events.ts >= opening).all()
    assert (events.ts < opening + pd.Timedelta(hours=6, minutes=30)).all()
    assert (events.ts.dt.dayofweek < 5).all()
    assert (events.groupby("symbol").ts.diff().dropna() > pd.Timedelta(0)).all()


def test_difference_is_to_the_previous_price_also_across_days(events: pd.DataFrame) -> None:
    steps = events.groupby("symbol", sort=False).price.diff()
    first = ~events.symbol.duplicated()
    assert (events.difference.isna() == first).all()
    np.testing.assert_allclose(events.difference[~first], steps[~first], atol=1e-9)
    assert (events.price > 0).all()


def test_parts_equal_the_whole(style: NasdaqStyle, events: pd.DataFrame) -> None:
    more = NasdaqStyle(identifiers=60, days=20, seed=3)
    some = np.array([31, 4, 17])
    part = more.table(some, 6, 9).to_pandas().astype({"symbol": str, "sector": str})
    days = style.dates[[6, 9]]
    inside = events[(events.ts >= days[0]) & (events.ts < days[1])]
    expected = pd.concat([inside[inside.sequence == identifier] for identifier in some])
    pd.testing.assert_frame_equal(part, expected.reset_index(drop=True))


def test_another_seed_is_another_stream(events: pd.DataFrame) -> None:
    other = frame(NasdaqStyle(identifiers=40, days=15, seed=4))
    assert set(other.ts[:100]).isdisjoint(events.ts[:100])


def test_rates_lie_between_other_bounds() -> None:
    style = NasdaqStyle(identifiers=200, days=1, least_rate=8, most_rate=16)
    assert 8 <= style.rates.min() < 8.2 and 15.5 < style.rates.max() <= 16
    assert set(NasdaqStyle(identifiers=5, least_rate=3, most_rate=3).rates) == {3}


def test_rates_drift_from_segment_to_segment(events: pd.DataFrame) -> None:
    style = NasdaqStyle(40, 15, 3, drift=8, segment_minutes=130)
    drifting = frame(style)
    # On average over segments they are as they were, and the times differ all the same.
    assert len(drifting) == pytest.approx(len(events), rel=0.1)
    assert (drifting.groupby("symbol").ts.diff().dropna() > pd.Timedelta(0)).all()
    minute = drifting.ts.dt.hour * 60 + drifting.ts.dt.minute - 570
    segments = drifting.groupby([drifting.sequence, drifting.ts.dt.date, minute // 130]).size()
    counts = segments.unstack([1, 2]).fillna(0).to_numpy()
    assert counts.shape == (40, 45)
    frequent = counts[style.rates > 20] / style.rates[style.rates > 20][:, None] / 6.5
    usual = (8 - 1 / 8) / (2 * np.log(8))
    assert frequent.min() < 0.1 and 3 < frequent.max() < 8 / usual * 1.25
    # Uniform in the logarithm, with the noise of Poisson.
    assert np.log(frequent).std() == pytest.approx(np.log(8) / 3**0.5, rel=0.1)


def test_the_day_is_busy_at_its_ends(events: pd.DataFrame) -> None:
    found = frame(NasdaqStyle(40, 15, 3, intraday=4.0))
    assert len(found) == pytest.approx(len(events), rel=0.03)
    minute = (found.ts.dt.hour * 60 + found.ts.dt.minute - 570).to_numpy()
    counts = np.bincount(minute, minlength=390).reshape(13, 30).sum(axis=1)
    from_noon = (np.arange(390) - 194.5) / 194.5
    rate = (1 + 3 * from_noon**2).reshape(13, 30).sum(axis=1)
    np.testing.assert_allclose(counts / counts.sum(), rate / rate.sum(), rtol=0.06)


def test_the_identifiers_of_a_sector_burst_together(events: pd.DataFrame) -> None:
    style = NasdaqStyle(40, 15, 3, bursts=9.0)
    found = frame(style)
    assert len(found) == pytest.approx(len(events), rel=0.06)
    minute = (found.ts.dt.hour * 60 + found.ts.dt.minute - 570).to_numpy()
    day = pd.factorize(found.ts.dt.date, sort=True)[0]
    counts = np.zeros((40, 15, 390))
    np.add.at(counts, (found.sequence.to_numpy(), day, minute), 1)
    busy = np.array([[style.bursting(k, d) for d in range(15)] for k in range(40)])
    levels = np.unique(busy)
    np.testing.assert_allclose(levels, [1 / 1.8, 9 / 1.8])
    in_burst = busy == levels[1]
    for level, where in ((1 / 1.8, ~in_burst), (9 / 1.8, in_burst)):
        rates = np.broadcast_to(style.rates[:, None, None] / 20, where.shape)[where]
        assert counts[where].sum() == pytest.approx(level * rates.sum(), rel=0.03)
    assert in_burst.mean() == pytest.approx(0.1, abs=0.03)
    starts = (in_burst[..., 1:] & ~in_burst[..., :-1]).sum() + in_burst[..., 0].sum()
    assert in_burst.sum() / starts == pytest.approx(5, abs=1)
    sectors = np.unique(style.sectors)
    for sector in sectors:
        same = in_burst[style.sectors == sector]
        assert (same == same[0]).all()
    assert len({in_burst[style.sectors == s][0].tobytes() for s in sectors}) == len(sectors) > 5


def test_shared_shocks_correlate_the_changes() -> None:
    found, prices = {}, {}
    for shocks in (0.0, 20.0):
        style = NasdaqStyle(24, 4, 3, least_rate=40.0, shocks=shocks)
        events = frame(style)
        prices[shocks] = np.log(events.price)
        by_minute = events.pivot_table(
            index=events.ts.dt.floor("10min"), columns="symbol", values="difference", aggfunc="sum"
        )
        scale = by_minute / by_minute.std()
        correlations = scale.corr().to_numpy()[np.triu_indices(24, 1)]
        found[shocks] = float(np.mean(correlations))
    assert abs(found[0.0]) < 0.03 and found[20.0] > 0.15
    moved = (
        (prices[20.0] - prices[0.0]).groupby([events.sector, events.symbol], observed=True).std()
    )
    spread = moved.groupby("sector", observed=True).agg(lambda its: its.max() / its.min())
    assert spread.max() > 3  # each identifier has a weight of its own


@pytest.mark.parametrize(
    "shape", [{"drift": 5, "segment_minutes": 77}, {"bursts": 6, "intraday": 3, "shocks": 4}]
)
def test_parts_of_a_stream_of_another_shape_equal_the_whole(shape: dict[str, Any]) -> None:
    more, less = (NasdaqStyle(n, d, 3, **shape) for n, d in ((9, 6), (5, 4)))
    some = np.array([4, 1])
    pd.testing.assert_frame_equal(
        more.table(some, 2, 4).to_pandas(),
        less.table(some, 2, 4).to_pandas(),
        check_categorical=False,
    )


def test_days_are_weekdays_from_the_first_day() -> None:
    style = NasdaqStyle(days=7, first_day=date(2008, 1, 5))
    assert style.dates[0] == np.datetime64("2008-01-07")
    assert style.dates[5] == np.datetime64("2008-01-14")


@pytest.mark.parametrize(
    "wrong",
    [
        {"identifiers": 0}, {"identifiers": 10**6}, {"days": 0}, {"seed": -1}, {"least_rate": 0},
        {"most_rate": 0.5}, {"drift": 0.9}, {"drift": 1e3}, {"segment_minutes": 0},
        {"intraday": 0.5}, {"bursts": 0.0}, {"shocks": -1.0},
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match=f"{next(iter(wrong))} must"):
        NasdaqStyle(**wrong)
