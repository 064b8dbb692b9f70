"""Concepts on Spark: data sets that state a hierarchy, and statistics and aggregates under it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cepbench as cep
from cepbench.errors import DatasetError, HierarchyError, StatisticsError, StreamError
from cepbench.spark.aggregation import aggregate
from cepbench.spark.generate import generate_stream
from cepbench.spark.ingest import ingest_minute_bars
from cepbench.spark.statistics import measure_statistics
from cepbench.streams.company_trades import HIERARCHY, CompanyTrades

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHER = cep.ConceptHierarchy({"Firm": ["DELL"]})

WORKLOAD = cep.Workload(
    {
        "q1": "PATTERN SEQ(Computer a, Finance b) WHERE a.price < b.price WITHIN 100 milliseconds",
        "q2": "PATTERN AND(DELL a, Company b, AMAT c) WITHIN 20 milliseconds",
    }
)

GROUPED = (
    "PATTERN SEQ(Company a, NOT(Finance n), AMAT b) GROUP BY type(a, {}) AGG COUNT, MAX(a.price) "
    "WITHIN 30 milliseconds"
)


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("concepts") / "data"
    generate_stream(spark, path, CompanyTrades(4_000), partitions=3, progress=False)
    return path


@pytest.fixture(scope="module")
def bars(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Minute bars, with and without a hierarchy."""
    folder = tmp_path_factory.mktemp("bars")
    lines = [
        f"{('DELL', 'INTC', 'QQQ')[k % 3]},{200801020930 + k // 4},1,1,1,{1 + k % 5},9"
        for k in range(120)
    ]
    (folder / "bars.txt").write_text("\n".join(lines) + "\n")
    for stated in (False, True):
        ingest_minute_bars(
            spark,
            folder / "bars.txt",
            folder / str(stated),
            hierarchy=HIERARCHY if stated else None,
            progress=False,
        )
    return {stated: folder / str(stated) for stated in (False, True)}


def test_data_sets_state_the_hierarchy(
    spark: SparkSession, data: Path, bars: dict[bool, Path]
) -> None:
    assert cep.EventStream.from_parquet(data).hierarchy == HIERARCHY
    ingested = cep.EventStream.from_parquet(bars[True], types=["Computer"])
    assert ingested.hierarchy == HIERARCHY
    assert ingested.counts_by_type() == {"Computer": 0, "INTC": 40, "MSFT": 0, "DELL": 40}
    assert cep.EventStream.from_parquet(bars[False]).hierarchy is None
    given = cep.EventStream.from_parquet(bars[False], types=["Computer"], hierarchy=HIERARCHY)
    assert given.hierarchy == HIERARCHY and len(given) == 80
    with pytest.raises(StreamError, match="states another concept hierarchy"):
        cep.EventStream.from_parquet(bars[True], hierarchy=OTHER)
    source = bars[True].parent / "bars.txt"
    with pytest.raises(DatasetError):  # made with the hierarchy
        ingest_minute_bars(spark, source, bars[True], progress=False)
    with pytest.raises(HierarchyError, match="not a dict"):
        ingest_minute_bars(spark, source, bars[True], hierarchy={"A": ["B"]})  # type: ignore[arg-type]


def test_statistics(spark: SparkSession, data: Path, bars: dict[bool, Path]) -> None:
    stream = cep.EventStream.from_parquet(data)
    found = measure_statistics(spark, data, WORKLOAD, partitions=2, progress=False)
    direct = cep.measure_statistics(WORKLOAD, stream)
    under = cep.Workload(WORKLOAD.patterns, hierarchy=HIERARCHY)
    assert found == measure_statistics(spark, data, under, partitions=1, progress=False)
    for query, its in found.items():
        assert set(its.selectivities) == set(direct[query].selectivities)
        for variable in WORKLOAD.patterns[query].variables:
            due = direct[query].cardinality(variable.name, 1.0)
            assert its.cardinality(variable.name, 1.0) == pytest.approx(due, rel=0.01)
    ((pair, value),) = found["q1"].selectivities.items()
    assert value == pytest.approx(direct["q1"].selectivities[pair], abs=0.1)
    # A hierarchy of the pattern alone, of which some types have no events.
    query = "PATTERN SEQ(Computer a, QQQ b) WHERE a.price < b.price WITHIN 10 minutes"
    pattern = cep.parse(query).with_hierarchy(HIERARCHY)
    one, two = (
        measure_statistics(spark, bars[stated], {"q": its}, progress=False)
        for stated, its in ((False, pattern), (True, cep.parse(query)))
    )
    assert one == two
    several = {"one": pattern, "two": pattern.with_hierarchy(OTHER)}
    with pytest.raises(StatisticsError, match="several concept hierarchies"):
        measure_statistics(spark, bars[False], several)


@pytest.mark.parametrize("emit", ["trigger", "change"])
def test_aggregates(spark: SparkSession, data: Path, emit: str) -> None:
    for level in (1, 7):
        text = GROUPED.format(level)
        found = aggregate(data, text, emit=emit, slices=5)
        expected = cep.aggregate(text, cep.EventStream.from_parquet(data), emit=emit)
        assert found.rows == expected.rows and len(found.rows) > 100
        assert len({row.key for row in found.rows}) == {1: 3, 7: 9}[level]


def test_aggregates_under_the_hierarchy_of_the_pattern(
    spark: SparkSession, bars: dict[bool, Path]
) -> None:
    text = "PATTERN SEQ(Computer a, QQQ b) GROUP BY type(a) AGG COUNT WITHIN 5 minutes"
    pattern = cep.parse(text).with_hierarchy(HIERARCHY)
    rows = [
        aggregate(bars[stated], its, slices=3).rows
        for stated, its in ((False, pattern), (True, text), (True, pattern))
    ]
    expected = cep.aggregate(text, cep.EventStream.from_parquet(bars[True])).rows
    assert rows == [expected] * 3 and {row.key for row in expected} == {("DELL",), ("INTC",)}
    with pytest.raises(StreamError, match="another concept hierarchy"):
        aggregate(bars[True], replace(pattern, hierarchy=OTHER))
