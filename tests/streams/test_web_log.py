"""The web log: exact numbers, a part of the month, visitors, day and night."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import DatasetError
from cepbench.streams.web_log import DAYS, PAGES, VISITORS, WebLog

pytestmark = pytest.mark.xdist_group("web log")  # the month is made once


@pytest.fixture(scope="module")
def month() -> pd.DataFrame:
    log = WebLog()
    days = pa.concat_tables([log.table(day) for day in range(DAYS)])
    return days.unify_dictionaries().to_pandas()


def test_the_month_has_the_papers_numbers(month: pd.DataFrame) -> None:
    assert len(month) == WebLog().expected == 1_500_000
    counts = month["Description"].value_counts()
    assert counts[["Publication", "Project", "Course"]].tolist() == [6_775, 11_610, 16_083]
    assert counts.to_dict() == {name: records for name, (records, _, _) in PAGES.items()}
    assert str(month.ts.min().date()) == "2009-02-22" and str(month.ts.max().date()) == "2009-03-22"
    assert month.ts.is_monotonic_increasing
    assert (month["symbol"] == month["Description"]).all()
    assert (month.ts.dt.microsecond == 0).all()


@given(st.integers(0, 2**70))
def test_the_numbers_are_exact_with_every_seed(seed: int) -> None:
    counts = WebLog(seed=seed).counts
    assert counts.sum(axis=0).tolist() == [records for records, _, _ in PAGES.values()]
    assert counts.min() > 0


def test_fewer_days_are_a_part() -> None:
    one, two = WebLog(days=2, seed=5), WebLog(days=9, seed=5)
    assert one.table(1).equals(two.table(1))
    assert one.expected == sum(one.table(day).num_rows for day in range(2))
    assert not WebLog(seed=6).table(1).slice(0, 50).equals(two.table(1).slice(0, 50))


def test_visitors_are_heavy_tailed(month: pd.DataFrame) -> None:
    counts = month["IP address"].value_counts().to_numpy()
    harmonic = (1.0 / np.arange(1, VISITORS + 1)).sum()
    # The share of the first, and the probability that two records have one visitor.
    assert counts[0] / len(month) == pytest.approx(1.0 / harmonic, rel=0.02)
    shares = counts / len(month)
    assert (shares**2).sum() == pytest.approx(np.pi**2 / 6 / harmonic**2, rel=0.02)
    # As provenance.md says.
    assert round(100 / harmonic) == 9 and round(100 * (shares**2).sum(), 1) == 1.3
    ranks = np.array([1, 10, 100, 1_000])
    assert counts[ranks - 1] * ranks == pytest.approx(len(month) / harmonic, rel=0.15)
    assert len(counts) > 0.5 * VISITORS and np.median(counts) < 10


def test_visitors_have_addresses_of_their_own(month: pd.DataFrame) -> None:
    parts = month["IP address"].drop_duplicates().str.split(".", expand=True).astype(int)
    assert (parts[0] == 10).all() and parts.max().max() <= 255 and parts.min().min() >= 0
    assert len(parts) <= VISITORS


def test_pages_are_of_their_kind_and_heavy_tailed(month: pd.DataFrame) -> None:
    for kind, (_, form, size) in PAGES.items():
        of_kind = month.loc[month["Description"] == kind, "Access-URL"]
        urls = of_kind.cat.remove_unused_categories().value_counts()
        assert set(urls.index) <= {form.format(page + 1) for page in range(size)}
        assert urls.index[0] == form.format(1)
        if size > 1:
            assert urls.iloc[0] == pytest.approx(2 * urls.iloc[1], rel=0.15)


def test_days_are_busier_than_nights_and_weeks_than_weekends(month: pd.DataFrame) -> None:
    by_hour = month.ts.dt.hour.value_counts()
    assert by_hour[[13, 14, 15]].sum() > 4 * by_hour[[3, 4, 5]].sum()
    by_day = month.ts.dt.date.value_counts()
    weekend = np.array([day.weekday() >= 5 for day in by_day.index])
    assert by_day[~weekend].min() > 1.4 * by_day[weekend].max()


def test_a_pattern_of_one_visitor_finds_what_pandas_finds() -> None:
    """Query 8 by brute force on a part: visitors and their accesses are where they should be."""
    import cepbench as cep

    dataset = cep.open_dataset("web-log/sample")
    stream = dataset.stream()
    pattern = dataset.patterns["same-visitor"]
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream))
    events = stream.to_pandas()[["type", "time", "IP address"]].astype({"type": str})
    a, b, c = (events[events["type"] == kind] for kind in ("Publication", "Project", "Course"))
    joined = a.merge(b, on="IP address", suffixes=("", "_b")).merge(
        c, on="IP address", suffixes=("", "_c")
    )
    within = joined.time_c - joined.time <= pd.Timedelta(hours=10)
    expected = ((joined.time < joined.time_b) & (joined.time_b < joined.time_c) & within).sum()
    assert cep.evaluate(pattern, stream, plan).metrics.matches == expected > 0


@pytest.mark.parametrize(
    ("days", "told"), [(0, "days must be at least 1"), (30, "days must be at most 29")]
)
def test_days_are_those_of_the_month(days: int, told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        WebLog(days=days)
