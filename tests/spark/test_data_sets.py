"""Data sets by Spark and without it: the same files, and files of one's own by the command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from typer.testing import CliRunner

import cepbench as cep
from cepbench.presentation.commands.app import app
from cepbench.spark.generate import generate_stream
from cepbench.streams.company_trades import CompanyTrades
from cepbench.streams.dataset_folder import read_declaration
from cepbench.streams.evacuation import Evacuation
from cepbench.streams.generated import make_stream
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.stock_rates import StockRates
from cepbench.streams.stock_ticker import StockTicker
from cepbench.streams.synthetic import GeneratedStream
from cepbench.streams.ticker_trades import TickerTrades
from cepbench.streams.web_log import WebLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def digests(path: Path) -> dict[str, str]:
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*.parquet"))
    }


@pytest.mark.parametrize(
    "stream",
    [
        CompanyTrades(900_000, 9, segments=[{"DELL": 0.1}, {}]),
        Evacuation(90_000, 9),
        NasdaqStyle(identifiers=25, days=22, seed=9),
        StockRates(900_000, 9, segments=[{"rates": {"IBM": 9.0}}, {}]),
        StockTicker(900_000, 9),
        TickerTrades(900_000, 9),
        WebLog(days=2, seed=9),
    ],
    ids=lambda stream: stream.kind,
)
def test_a_loop_writes_the_files_that_spark_writes(
    spark: SparkSession, tmp_path: Path, stream: GeneratedStream
) -> None:
    loop = make_stream(tmp_path / "loop", stream)
    assert generate_stream(spark, tmp_path / "spark", stream, progress=False) == loop
    assert len(digests(tmp_path / "loop")) > 1
    assert digests(tmp_path / "loop") == digests(tmp_path / "spark")
    # Each takes the other's for its own.
    assert make_stream(tmp_path / "spark", stream) == read_declaration(tmp_path / "loop")


def test_spark_makes_what_is_long_and_what_a_master_is_given_for(
    spark: SparkSession, catalogue: Path
) -> None:
    """Which says that it runs under another master; what is short needs none."""
    make = ["data", "make", "--days", "30", "--json"]
    short = CliRunner().invoke(app, [*make, "nasdaq-style/short", "--identifiers", "5"])
    assert short.exit_code == 0, short.output
    events = len(cep.open_dataset("nasdaq-style/short").stream())
    assert json.loads(short.stdout)["events"] == events
    for name, identifiers in (("given", "5"), ("long", "2100")):
        asked = [f"nasdaq-style/{name}", "--identifiers", identifiers, "--master", "local[7]"]
        other = CliRunner().invoke(app, [*make, *asked])
        assert other.exit_code == 1
        assert "a Spark session is running under master 'local[2]', not 'local[7]'" in other.stderr
    given = ["nasdaq-style/given", "--identifiers", "5", "--master", "local[2]"]
    made = CliRunner().invoke(app, [*make, *given])
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["events"] == events


@pytest.mark.parametrize(
    ("kind", "file"),
    [("minute-bars", "sample.txt"), ("lobster", "sample_2026-01-05_message.csv")],
)
def test_files_of_ones_own_become_what_the_sample_is(
    spark: SparkSession, catalogue: Path, kind: str, file: str
) -> None:
    """Two readers of one format, Spark's and that of samples, agree on every row."""
    source = str(catalogue / kind / file)
    done = CliRunner().invoke(app, ["data", "ingest", kind, source, "--name", "mine", "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    sample, mine = cep.open_dataset(f"{kind}/sample"), cep.open_dataset(f"{kind}/mine")
    assert report["events"] == mine.events == sample.events
    assert report["quarantined"] == len(sample.quarantine()) == sum(report["reasons"].values())
    pd.testing.assert_frame_equal(mine.quarantine(), sample.quarantine(), check_dtype=False)
    one, other = (d.stream().to_pandas().astype({"type": str}) for d in (mine, sample))
    pd.testing.assert_frame_equal(one, other[list(one.columns)])
    again = CliRunner().invoke(app, ["data", "ingest", kind, source, "--name", "mine"])
    assert f'open it with cep.open_dataset("{kind}/mine")' in again.stderr
    assert f"{sample.events:,} events" in again.stdout
