"""One small Spark session for all tests, and the real data where it is at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Options that make a short-lived Java start faster.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from cepbench.spark.session import spark_session

    session = spark_session(
        "local[2]",
        memory="1g",
        java_options=QUICK_JAVA,
        settings={"spark.sql.shuffle.partitions": "2"},
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real sample files; tests that need it are skipped where none is named."""
    named = os.environ.get("CEPBENCH_REAL_DATA")
    if not named:
        pytest.skip("CEPBENCH_REAL_DATA names no folder of real data")
    return Path(named)
