"""Failures of a stream's detection; ``tests.spark.live_failures`` kills a hundred processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.budgets import SOAK
from tests.spark import live_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What a micro-batch writes after its state, in this order.
SINK, COMMIT = "found/_spark_metadata", "checkpoint/commits"

IN_SOAK = pytest.mark.skipif(SOAK is None, reason="takes long: make soak")


@pytest.mark.usefixtures("one_task")
@pytest.mark.parametrize("lost", [[SINK, COMMIT], pytest.param([COMMIT], marks=IN_SOAK)])
def test_each_match_once_if_a_micro_batch_was_cut_short(
    spark: SparkSession, tmp_path: Path, lost: list[str]
) -> None:
    live_failures.write_stream(tmp_path / "events", 1, files=3)
    later = sorted((tmp_path / "events").glob("*"))[2:]
    for file in later:
        file.rename(tmp_path / file.name)
    live_failures.write(live_failures.stream_of(spark, tmp_path, "lot"), tmp_path)
    # Micro-batches 0 and 1 are of a file each, 2 is of the watermark.
    for name in ["checkpoint/offsets/2", f"{SINK}/2", f"{COMMIT}/2", *(f"{its}/1" for its in lost)]:
        file = tmp_path / name
        file.unlink()
        (file.parent / f".{file.name}.crc").unlink()
    for file in later:
        (tmp_path / file.name).rename(file)
    live_failures.write(live_failures.stream_of(spark, tmp_path, "lot"), tmp_path)
    matches, late = live_failures.compare(tmp_path)
    assert matches > 10
    assert late


@IN_SOAK
def test_each_match_once_after_kills(tmp_path: Path) -> None:
    live_failures.write_stream(tmp_path / "events", 1, files=6)
    killed = live_failures.run(tmp_path, ["python", "driver", "java"], "lot", 0)
    assert killed.total() == 3
    matches, late = live_failures.compare(tmp_path)
    assert matches > 20
    assert 5 < late < 30
