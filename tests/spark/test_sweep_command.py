"""``python -m cepbench.spark``: data, estimate and results by one command; mistakes that are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cepbench.experiments.cells import OK
from cepbench.experiments.estimate import read_estimate
from cepbench.experiments.store import read_results
from cepbench.spark.__main__ import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TINY = [
    "--profile=quick", "--experiment=latency", "--identifiers=12", "--days=1",
    "--set", "sizes=[3]", "--set", "patterns=2", "--set", "repetitions=1",
    "--set", 'algorithms=["GREEDY", "DP-B"]',
]  # fmt: skip


def test_estimate_then_run_then_nothing_left(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data", str(tmp_path)]
    assert main([*TINY, *where, "--estimate-only"]) == 0
    told = capsys.readouterr().out
    assert "events of 12 identifiers" in told and "from 2 of 2 patterns" in told
    (folder,) = (tmp_path / "sweeps").iterdir()
    table = read_estimate(folder)
    assert table is not None and table["core_seconds"].iloc[-1] > 0
    assert len(read_results(folder)) == 0

    assert main([*TINY, *where]) == 0
    assert "latency: 12 rows\n" in capsys.readouterr().out
    results = read_results(folder)
    assert (results["status"] == OK).all() and set(results["alpha"]) == {0, 0.5, 1}
    # Again: the estimate is kept, the results stay as they are.
    before = (folder / "results.parquet").read_bytes()
    assert main([*TINY, *where]) == 0
    assert (folder / "results.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "patterns"], "must be FIELD=VALUE"),
        (["--set", "patterns=many"], "must be FIELD=VALUE"),
        (["--set", "pattern=3"], "did you mean 'patterns'"),
        (["--days=-1"], "days is -1"),
        (["--master=yarn"], "a Spark session is running under master"),
    ],
)
def test_mistakes_are_told(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert main(["--profile=quick", "--data", str(tmp_path), *arguments]) == 1
    assert message in capsys.readouterr().err
