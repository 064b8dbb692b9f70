"""Detection by Spark from the command line and from a notebook's cell: the matches of one pass."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from IPython.core.error import UsageError
from typer.testing import CliRunner

import cepbench as cep
from cepbench.presentation.commands.app import app

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell
    from pyspark.sql import SparkSession

PATTERN = "PATTERN SEQ(CSCO a, MSFT b) WHERE a.difference < b.difference WITHIN 20 minutes"


def counted(frame: pd.DataFrame) -> Counter[Any]:
    return Counter(frame.itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def expected() -> cep.Result:
    stream = cep.open_dataset("nasdaq-style/sample").stream()
    plan = cep.plan(PATTERN, cep.measure_statistics(PATTERN, stream))
    return cep.evaluate(PATTERN, stream, plan)


def run(*options: str, code: int = 0) -> Any:
    command = ["run", PATTERN, "--data", "nasdaq-style/sample", "--spark", *options, "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else result.output


def test_the_command(spark: SparkSession, expected: cep.Result, tmp_path: Path) -> None:
    outcome = run()
    assert outcome["matches"] == expected.metrics.matches > 100
    assert outcome["master"] == "local[2]" and outcome["tasks"] > 1
    written = tmp_path / "matches.parquet"
    assert run("--output", str(written))["matches"] == expected.metrics.matches
    assert counted(pd.read_parquet(written)) == counted(expected.matches)
    assert "another name" in run("--output", str(written), code=2)
    assert "--limit" in run("--limit", "3", code=2)


def test_the_magic(spark: SparkSession, expected: cep.Result, shell: InteractiveShell) -> None:
    df = spark.read.parquet(str(cep.open_dataset("nasdaq-style/sample").path))
    shell.push({"df": df.withColumnRenamed("ts", "at")})
    found = shell.run_cell_magic("cep", "--data df --columns symbol,at", PATTERN)
    assert counted(found.toPandas()) == counted(expected.matches)
    values = shell.run_cell_magic(
        "cep", "--columns symbol,at", "PATTERN SEQ(CSCO a, MSFT b) AGG COUNT WITHIN 1 minute"
    )
    assert len(values.rows) > 20
    with pytest.raises(UsageError, match="not for Spark"):
        shell.run_cell_magic("cep", "--columns symbol,at --explain", PATTERN)
