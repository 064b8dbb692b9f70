"""The Spark session: its settings, its reuse, and what it says when it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cepbench.errors import SparkSetupError
from cepbench.spark.java import class_archive, find_java
from cepbench.spark.session import scratch_folder, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_settings(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.ui.enabled") == "false"
    moment = spark.sql("SELECT timestamp '2008-02-01 09:30:00' AS at").toPandas()["at"][0]
    assert moment == datetime(2008, 2, 1, 9, 30)


def test_java_maps_its_archive_of_classes(spark: SparkSession) -> None:
    options = spark.sparkContext.getConf().get("spark.driver.extraJavaOptions")
    archive = class_archive(find_java())
    assert (f"-XX:SharedArchiveFile={archive}" in options) == archive.exists()


def test_workers_run_this_python(spark: SparkSession) -> None:
    found = spark.sparkContext.parallelize([0], 1).map(_interpreter).collect()
    assert found == [sys.executable]


def _interpreter(_: int) -> str:
    return sys.executable


# Workers cannot import test modules, so the function goes to them by value.
_interpreter.__module__ = "__main__"


def test_a_running_session_is_used_again(spark: SparkSession) -> None:
    assert spark_session() is spark
    assert spark_session(spark.sparkContext.master) is spark
    with pytest.raises(SparkSetupError, match=r"spark\.stop\(\) first"):
        spark_session("local[1]")


def test_the_environment_is_as_before(spark: SparkSession) -> None:
    assert "SPARK_LOCAL_IP" not in os.environ


#: Makes a scratch folder, and keeps it.
SCRATCH = """
import time
from cepbench.spark.session import scratch_folder
print(scratch_folder(), flush=True)
time.sleep(600)
"""


def test_scratch_folders_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", SCRATCH]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True}
    pipes["env"] = os.environ | {"TMPDIR": str(tmp_path)}
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    others = tmp_path / "cepbench-spark-of-others"  # without a lock: not of this version
    others.mkdir()
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, **pipes) as alive:
        assert killed.stdout is not None and alive.stdout is not None
        left, kept = (Path(its.stdout.readline().strip()) for its in (killed, alive))
        (left / "spark.log").write_text("so far")
        (left / "blocks").mkdir()
        assert scratch_folder().parent == left.parent == kept.parent == tmp_path
        assert left.exists() and kept.exists()
        killed.kill()
        killed.wait()
        scratch_folder()
        assert not left.exists()
        assert kept.exists() and others.exists()
        alive.kill()


def test_a_master_that_does_not_exist(tmp_path: Path) -> None:
    program = (
        "from cepbench.errors import SparkSetupError\n"
        "from cepbench.spark.session import spark_session\n"
        "try:\n    spark_session(memory='512m')\n"
        "except SparkSetupError as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "CEPBENCH_SPARK_MASTER": "nonsense"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.stderr == ""
    assert "'nonsense'" in result.stdout
    assert "CEPBENCH_SPARK_MASTER" in result.stdout
    assert not list(tmp_path.iterdir())
