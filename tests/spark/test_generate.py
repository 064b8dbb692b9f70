"""The generated data set: the same however it is made, reused, refused, and finished if killed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F

from cepbench import EventStream
from cepbench.errors import DatasetError
from cepbench.spark.generate import generate_stream
from cepbench.streams.nasdaq_style import NasdaqStyle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STYLE = NasdaqStyle(identifiers=30, days=25, seed=7)


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generate") / "data"
    generate_stream(spark, path, STYLE, partitions=1)
    return path


def digests(path: Path) -> dict[str, str]:
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*.parquet"))
    }


def test_the_same_with_four_tasks(spark: SparkSession, data: Path, tmp_path: Path) -> None:
    generate_stream(spark, tmp_path / "four", STYLE, partitions=4)
    assert len(digests(data)) > 4, "otherwise there is nothing to divide"
    assert digests(tmp_path / "four") == digests(data)


def test_the_events_are_those_of_the_arithmetic(data: Path) -> None:
    expected = STYLE.table(np.arange(STYLE.identifiers), 0, STYLE.days).to_pandas()
    expected = expected.sort_values(["ts", "sequence"]).reset_index(drop=True)
    stream = EventStream.from_parquet(data)
    assert stream.type_names == STYLE.symbols
    found = stream.to_pandas().rename(columns={"type": "symbol", "time": "ts"})
    for name in ("symbol", "ts", "price", "difference", "sector"):
        pd.testing.assert_series_equal(
            found[name].reset_index(drop=True), expected[name], check_dtype=False,
            check_categorical=False, check_names=False,
        )  # fmt: skip


def test_the_declaration(spark: SparkSession, data: Path) -> None:
    declaration = generate_stream(spark, data, STYLE)
    stream = EventStream.from_parquet(data)
    assert declaration.events == len(stream)
    assert declaration.counts == stream.counts_by_type()
    assert declaration.parameters["seed"] == 7
    assert "20 minutes" in declaration.notes["arrival rates"]
    assert json.loads((data / "_dataset.json").read_text())["columns"]["ts"] == "timestamp[ms]"


def test_spark_reads_it_too(spark: SparkSession, data: Path) -> None:
    found = spark.read.parquet(str(data)).groupBy("symbol").agg(F.count("*"), F.min("ts")).collect()
    stream = EventStream.from_parquet(data)
    assert {symbol: count for symbol, count, _ in found} == stream.counts_by_type()
    assert pd.Timestamp(min(first for *_, first in found)).value == stream.timestamps[0]


def test_a_finished_data_set_is_reused_and_others_are_refused(
    spark: SparkSession, data: Path
) -> None:
    def written() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for file in data.rglob("*")}

    before = written()
    generate_stream(spark, data, STYLE)
    assert written() == before, "made anew"
    with pytest.raises(DatasetError, match="seed 7 found, 8 requested"):
        generate_stream(spark, data, replace(STYLE, seed=8))


def test_a_generation_that_failed_is_done_again(
    spark: SparkSession, data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "failed"
    path.mkdir()
    (path / "_unfinished.json").touch()
    obstacle = path / sorted(month.name for month in data.glob("month=*"))[-1]
    obstacle.write_text("a file where a folder must be")
    with pytest.raises(DatasetError, match="FileExistsError"):
        generate_stream(spark, path, STYLE, partitions=1)
    assert json.loads((path / "_unfinished.json").read_text())["parameters"]["seed"] == 7
    with pytest.raises(DatasetError, match="is incomplete"):
        EventStream.from_parquet(path)
    obstacle.unlink()
    next(path.rglob("*.parquet")).write_bytes(b"half")
    (path / "month=1999-01").mkdir()
    (path / "month=1999-01" / "part-00000.parquet").write_bytes(b"of other parameters")
    generate_stream(spark, path, STYLE)
    assert digests(path) == digests(data)


def test_a_folder_of_something_else_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="not empty"):
        generate_stream(spark, tmp_path, STYLE)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_failing_task_says_why(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "_unfinished.json").write_text("{}")
    (tmp_path / "data" / "month=2008-01").write_text("a file where a folder must be")
    with pytest.raises(DatasetError) as caught:
        generate_stream(spark, tmp_path / "data", NasdaqStyle(identifiers=3, days=1))
    told = str(caught.value)
    for part in ("the job 'generate' failed: FileExistsError", "month=2008-01", "mkdir"):
        assert part in told
    assert "\n" not in told and len(told) < 400, "the stacks stay in the error's cause"
    assert caught.value.__cause__ is not None
