"""Statistics by Spark: the same as measured directly, and however the work is divided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.planning.statistics.measure import merge_samples, sample_statistics
from cepbench.spark.generate import generate_stream
from cepbench.spark.statistics import arrival_rates, measure_statistics
from cepbench.streams.nasdaq_style import WINDOWS_PER_DAY, NasdaqStyle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STYLE = NasdaqStyle(identifiers=12, days=30, seed=5)
PATTERNS = {
    "pairs": cep.parse(
        "PATTERN SEQ(MSFT a, GOOG b, INTC c) WHERE a.difference < b.difference "
        "AND b.difference < c.difference WITHIN 20 minutes"
    ),
    "filter": cep.parse("PATTERN AND(ORCL a, CSCO b) WHERE a.price > 20 WITHIN 5 minutes"),
    "bare": cep.parse("PATTERN SEQ(AAPL a, AMZN b) WITHIN 20 minutes"),
}


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("statistics") / "data"
    generate_stream(spark, path, STYLE)
    return path


def test_the_same_however_the_work_is_divided(spark: SparkSession, data: Path) -> None:
    one = measure_statistics(spark, data, PATTERNS, seed=1, partitions=1)
    four = measure_statistics(spark, data, dict(reversed(PATTERNS.items())), seed=1, partitions=4)
    assert one == four
    assert list(one) == list(PATTERNS)
    assert measure_statistics(spark, data, PATTERNS, seed=2) != one


def test_close_to_what_is_measured_directly(spark: SparkSession, data: Path) -> None:
    found = measure_statistics(spark, data, PATTERNS)
    for name, pattern in PATTERNS.items():
        types = [variable.type for variable in pattern.variables]
        direct = cep.measure_statistics(pattern, cep.EventStream.from_parquet(data, types=types))
        for variable in pattern.variables:
            rate = STYLE.rates[STYLE.symbols.index(variable.type)] / 1200
            assert found[name].cardinality(variable.name, 1.0) == pytest.approx(rate, rel=0.15)
        assert set(found[name].selectivities) == set(direct.selectivities)
        for pair, value in direct.selectivities.items():
            error = np.hypot(found[name].standard_errors[pair], direct.standard_errors[pair])
            assert found[name].selectivities[pair] == pytest.approx(value, abs=5 * error + 1e-3)
    assert all(found["pairs"].standard_errors[pair] > 0 for pair in found["pairs"].selectivities)


def test_months_are_measured_one_by_one_and_put_together(spark: SparkSession, data: Path) -> None:
    found = measure_statistics(spark, data, PATTERNS, seed=3)
    whole = cep.EventStream.from_parquet(data)
    edge = int(np.searchsorted(whole.timestamps.view("M8[ns]"), np.datetime64("2008-02-01")))
    months = whole[:edge], whole[edge:]
    assert all(len(month) > 1_000 for month in months)
    for name, pattern in PATTERNS.items():
        types = [variable.type for variable in pattern.variables]
        samples = [
            sample_statistics(pattern, month.of_types(types), seed=3, stream_events=len(month))
            for month in months
        ]
        assert found[name] == merge_samples(samples).to_statistics()


def test_a_type_that_is_not_there(spark: SparkSession, data: Path) -> None:
    wrong = cep.parse("PATTERN SEQ(MSFT a, GOOGL b) WITHIN 20 minutes")
    with pytest.raises(DatasetError, match="did you mean 'GOOG'"):
        measure_statistics(spark, data, {"wrong": wrong})


def test_no_patterns(spark: SparkSession, data: Path) -> None:
    assert measure_statistics(spark, data, {}) == {}


def test_arrival_rates(spark: SparkSession, data: Path) -> None:
    rates = arrival_rates(spark, data)
    assert list(rates.index) == sorted(STYLE.symbols)
    expected = STYLE.rates[[STYLE.symbols.index(name) for name in rates.index]]
    assert (np.abs(rates.rate - expected / 1200) < 5 * rates.standard_error).all()
    assert rates.events.sum() / (STYLE.days * WINDOWS_PER_DAY) == pytest.approx(
        expected.sum(), rel=0.02
    )
    assert rates.equals(arrival_rates(spark, data, partitions=1))


def test_the_whole_stream_counts_for_contiguity(spark: SparkSession, data: Path) -> None:
    text = "PATTERN SEQ(MSFT a, GOOG b) STRATEGY {} WITHIN 20 minutes"
    patterns = {
        "strict": cep.parse(text.format("strict_contiguity")),
        "partition": cep.parse(text.format("partition_contiguity(price)")),
        "any": cep.parse(text.format("any")),
    }
    found = measure_statistics(spark, data, patterns)
    whole = cep.EventStream.from_parquet(data)
    for name, pattern in patterns.items():
        direct = cep.measure_statistics(pattern, whole)
        # Pauses are counted month by month, and without the events of other types.
        assert found[name].stream_rate == pytest.approx(direct.stream_rate, rel=0.15)
        assert cep.plan(pattern, found[name], "DP-LD").names
    partitions = cep.measure_statistics(patterns["partition"], whole).partitions
    assert found["partition"].partitions == pytest.approx(partitions, rel=0.5)
    assert found["strict"].partitions is None
