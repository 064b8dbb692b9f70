"""Folders with partitions in their names, by path: Spark's tasks read what from_parquet reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.planning.statistics.arrivals import arrival_table, arrivals_in
from cepbench.spark.aggregation import aggregate
from cepbench.spark.detection import detect
from cepbench.spark.statistics import arrival_rates, measure_statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATTERN = "SEQ(A a, B b) WHERE a.x < b.x"


@pytest.mark.parametrize(
    "keys", [["symbol"], ["month"], ["year", "month", "symbol"], ["month", "lot"]]
)
def test_partitions_are_columns(spark: SparkSession, tmp_path: Path, keys: list[str]) -> None:
    rng = np.random.default_rng(len(keys))
    size = 60
    frame = pd.DataFrame(
        {
            "symbol": rng.choice(["A", "B", "C/é"], size),
            "ts": pd.date_range("2024-01-31 23:30", periods=size, freq="min"),
            "x": rng.integers(0, 9, size).astype(float),
            "year": 2024,
            "month": [1] * 30 + [2] * 30,
            "lot": rng.choice(["u", "v"], size),
        }
    )
    frame.to_parquet(tmp_path, partition_cols=keys, index=False)
    (tmp_path / "README.md").write_text("about")
    stream = cep.EventStream.from_parquet(tmp_path, sort=True)
    assert len(stream) == size
    pattern = cep.parse(
        f"PATTERN {PATTERN} AND a.month <= b.month AND a.lot = b.lot WITHIN 9 minutes"
    )
    plan = cep.OrderPlan(["a", "b"])
    result = cep.evaluate(pattern, stream, plan)
    due = result.in_whole_stream(stream).matches
    assert len(due) > 5
    found = detect(tmp_path, pattern, plan, time="ts", type="symbol", output="arrow")
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(
        due.itertuples(index=False, name=None)
    )
    counted = cep.parse(f"PATTERN {PATTERN} GROUP BY month AGG COUNT WITHIN 9 minutes")
    pd.testing.assert_frame_equal(
        aggregate(tmp_path, counted, type="symbol", slices=3).values,
        cep.aggregate(counted, stream).values,
    )
    if keys == ["symbol"]:
        pd.testing.assert_frame_equal(
            arrival_rates(spark, tmp_path), arrival_table([arrivals_in(stream)])
        )
        measured = measure_statistics(spark, tmp_path, {"p": pattern})["p"]
        assert measured.rates.keys() == {"a", "b"}
