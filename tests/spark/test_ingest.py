"""Ingest: events and quarantine together are all rows; differences; order; real files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cepbench import EventStream
from cepbench.errors import DatasetError
from cepbench.presentation.commands.app import app
from cepbench.spark.generate import generate_stream
from cepbench.spark.ingest import ingest_lobster, ingest_minute_bars
from cepbench.spark.statistics import arrival_rates
from cepbench.streams.dataset_folder import unfinished_dataset
from cepbench.streams.ten_symbols import TenSymbols

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BARS = """\
ticker,time,open,high,low,close,volume
MSFT,200801312359,10,10,10,10.00,1
DRIV,200801312359,20,20,20,20.00,1
MSFT,200802010000,10,11,10,10.33,2
<b>,200802010000,10
DRIV,200802010000,20,20,20,20.10,2
MSFT,200802010000,10,11,10,10.30,3
DRIV,200801310000,20,20,20,20.10,2
"""
LATER = "DRIV,200802010001,20,20,20,19.99,5\r\nMSFT,200802010001,11,11,11,11.00,7\r\n"


@pytest.fixture(params=["here", "spark"])
def where(request: pytest.FixtureRequest) -> SparkSession | None:
    """How files are ingested: in this process, or by Spark."""
    return None if request.param == "here" else request.getfixturevalue("spark")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    later, bars = tmp_path / "later.txt", tmp_path / "bars.txt"
    later.write_bytes(LATER.encode())
    bars.write_text(BARS)
    return [later, bars]


def test_only_one_process_ingests_into_a_folder(
    spark: SparkSession, files: list[Path], tmp_path: Path
) -> None:
    target = tmp_path / "data"
    with unfinished_dataset(target, kind="minute-bars", parameters={}):
        for again in (
            lambda: ingest_minute_bars(spark, files, target),
            lambda: generate_stream(spark, target, TenSymbols(10), progress=False),
        ):
            with pytest.raises(DatasetError, match=rf"process {os.getpid()} \(.*already writes"):
                again()
    assert ingest_minute_bars(spark, files, target).events == 7  # what was begun is made anew


def test_minute_bars(where: SparkSession | None, files: list[Path], tmp_path: Path) -> None:
    report = ingest_minute_bars(where, files, tmp_path / "data")
    table = EventStream.from_parquet(tmp_path / "data").to_pandas()
    minutes = (table.time - pd.Timestamp("2008-01-31 23:59")).dt.seconds // 60
    found = list(zip(table.type, minutes, table.price, table.volume, strict=True))
    assert found == [
        ("MSFT", 0, 10.0, 1),
        ("DRIV", 0, 20.0, 1),
        ("MSFT", 1, 10.33, 2),
        ("DRIV", 1, 20.1, 2),
        ("MSFT", 1, 10.3, 3),
        ("DRIV", 2, 19.99, 5),
        ("MSFT", 2, 11.0, 7),
    ]
    nan = np.nan
    np.testing.assert_array_equal(table.difference, [nan, nan, 0.33, 0.1, -0.03, -0.11, 0.7])
    assert sorted(f.name for f in (tmp_path / "data").glob("month=*")) == [
        "month=2008-01",
        "month=2008-02",
    ]
    assert not (tmp_path / "data" / "_staging").exists()

    assert (report.events, report.quarantined) == (7, 3)
    assert [(f.name, f.rows, f.events, f.quarantined) for f in report.files] == [
        ("later.txt", 2, 2, 0),
        ("bars.txt", 8, 5, 3),
    ]
    aside = report.quarantine()
    assert list(aside.file) == ["bars.txt"] * 3
    assert list(aside.row) == [1, 5, 8]
    assert list(aside.text) == [BARS.splitlines()[row - 1] for row in aside.row]
    assert report.reasons == {
        "time is not YYYYMMDDhhmm": 1,
        "3 fields instead of 7": 1,
        "earlier than a row before it": 1,
    }
    assert "3 rows in quarantine" in repr(report)
    assert "3 fields instead of 7" in report._repr_html_()


def test_sorting_keeps_what_comes_in_any_order(
    where: SparkSession | None, files: list[Path], tmp_path: Path
) -> None:
    report = ingest_minute_bars(where, files, tmp_path / "data", sort=True)
    assert (report.events, report.quarantined) == (8, 2)
    table = EventStream.from_parquet(tmp_path / "data", types=["DRIV"]).to_pandas()
    assert table.time.is_monotonic_increasing
    assert list(table.price) == [20.1, 20.0, 20.1, 19.99]


def bar(ticker: str, minute: int, price: float) -> str:
    return f"{ticker},{200801020930 + minute},{price:.2f},{price:.2f},{price:.2f},{price:.2f},1"


def test_files_that_share_minutes_follow_one_another(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the numbers of their rows, however large they are and in how many batches they come.

    Spark reads the largest file first.
    """
    rng = np.random.default_rng(2)
    first = [bar("MSFT", 0, 10 + k) for k in range(4)] + [bar("DRIV", 1, 50), bar("MSFT", 1, 99)]
    prices = np.round(rng.uniform(10, 90, 3_000), 2)
    second = [bar(("MSFT", "DRIV")[k % 2], 1 + k // 1_500, price) for k, price in enumerate(prices)]
    for name, lines in {"b.txt": first, "a.txt": second}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(size)
    spark.conf.set(size, "70")
    try:
        for name, session in (("data", spark), ("here", None)):
            files = [tmp_path / "b.txt", tmp_path / "a.txt"]
            ingest_minute_bars(session, files, tmp_path / name)
    finally:
        spark.conf.set(size, before)
    rows = [line.split(",") for line in (*first, *second)]
    source = pd.DataFrame(
        {
            "type": [r[0] for r in rows],
            "minute": [r[1] for r in rows],
            "price": [float(r[5]) for r in rows],
        }
    ).sort_values("minute", kind="stable", ignore_index=True)
    table = EventStream.from_parquet(tmp_path / "data").to_pandas()
    assert list(table.type) == list(source.type)
    assert list(table.price) == list(source.price)
    np.testing.assert_allclose(table.difference, source.groupby("type").price.diff(), atol=1e-9)
    # Each file of the data set is sorted as its readers rely on.
    stored = pq.read_table(tmp_path / "data" / "month=2008-01").to_pandas()
    keys = list(zip(stored.symbol, stored.ts, stored.sequence, strict=True))
    assert keys == sorted(keys)
    here = pq.read_table(tmp_path / "here" / "month=2008-01").to_pandas()
    pd.testing.assert_frame_equal(here, stored)


def test_the_same_files_are_not_read_twice(
    where: SparkSession | None, files: list[Path], tmp_path: Path
) -> None:
    first = ingest_minute_bars(where, files, tmp_path / "data")
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "data").rglob("*")}
    again = ingest_minute_bars(where, files, tmp_path / "data")
    assert again == first
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "data").rglob("*")} == written
    files[0].write_text(LATER + LATER)
    with pytest.raises(DatasetError, match="other parameters"):
        ingest_minute_bars(where, files, tmp_path / "data")


def test_files_without_a_good_row_write_nothing(where: SparkSession | None, tmp_path: Path) -> None:
    """And the error shows what the files look like."""
    empty, garbage = tmp_path / "empty.txt", tmp_path / "garbage.txt"
    empty.touch()
    garbage.write_text("nothing, or <b>so</b>\n" * 5)
    with pytest.raises(
        DatasetError,
        match=r"no row of empty\.txt, garbage\.txt is valid, so nothing was written: the first is 'nothing, "
        r"or <b>so</b>' \(2 fields instead of 7\); a row of minute-bars is ticker,YYYYMMDDhhmm,open,",
    ):
        ingest_minute_bars(where, [empty, garbage], tmp_path / "data")
    with pytest.raises(DatasetError, match=r"empty\.txt is valid.* there are no rows; a row"):
        ingest_minute_bars(where, empty, tmp_path / "data")
    (tmp_path / "data").mkdir()
    garbage.write_bytes(np.random.default_rng(0).bytes(10_000))
    with pytest.raises(DatasetError, match="is valid"):
        ingest_minute_bars(where, garbage, tmp_path / "data")
    # What somebody else put beside an unfinished one stays.
    with unfinished_dataset(tmp_path / "data", kind="minute-bars", parameters={}):
        (tmp_path / "data" / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="is valid"):
        ingest_minute_bars(where, garbage, tmp_path / "data")
    assert (tmp_path / "data" / "notes.txt").read_text() == "mine"
    (tmp_path / "data" / "notes.txt").unlink()
    for left in (tmp_path / "data").iterdir():
        left.unlink()
    (tmp_path / "data").rmdir()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["empty.txt", "garbage.txt"]


def test_rows_of_other_years(where: SparkSession | None, tmp_path: Path) -> None:
    """They are put aside like other malformed rows, and never end the ingest."""
    file = tmp_path / "bars.txt"
    good = "MSFT,200802010930,31.2,31.4,31.1,31.3,100\n"
    years = ["0001", "1066", "1677", "1823", "2116", "2263", "2300", "9999"]
    file.write_text(good + "".join(good.replace("2008", year) for year in years) + good)
    report = ingest_minute_bars(where, file, tmp_path / "data", sort=True)
    assert (report.events, report.quarantined) == (3, 7)  # 1 February 2116 is one of them
    assert list(report.quarantine().row) == [2, 3, 4, 5, 7, 8, 9]
    assert "7 of the 10 rows of bars.txt are no minute-bars" in report.warning
    assert report.warning in report.describe()
    assert len(EventStream.from_parquet(tmp_path / "data")) == 3

    messages = tmp_path / "AAPL_2300-01-02_message.csv"
    messages.write_text("34200.5,1,1,100,5853300,1\n" * 3)
    today = tmp_path / "AAPL_2012-06-21_message.csv"
    today.write_text("34200.5,1,1,100,5853300,1\n" * 4)
    report = ingest_lobster(where, [messages, today], tmp_path / "book")
    assert [(f.rows, f.events, f.quarantined) for f in report.files] == [(3, 0, 3), (4, 4, 0)]
    assert len(EventStream.from_parquet(tmp_path / "book")) == 4


def test_files_of_another_kind(spark: SparkSession, tmp_path: Path) -> None:
    messages = tmp_path / "AAPL_2012-06-21_message.csv"
    messages.write_text("34200.5,1,1,100,5853300,1\n" * 3)
    with pytest.raises(DatasetError, match="has lobster rows, not minute-bars"):
        ingest_minute_bars(spark, messages, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    done = CliRunner().invoke(
        app, ["data", "ingest", "minute-bars", str(messages), "--output", str(tmp_path / "data")]
    )
    assert done.exit_code == 1 and "ingest it as lobster" in " ".join(done.stderr.split())


def test_files_that_are_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="there is no file"):
        ingest_minute_bars(spark, tmp_path / "absent.txt", tmp_path / "data")
    with pytest.raises(DatasetError, match="name at least one"):
        ingest_minute_bars(spark, [], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_damaged_file_leaves_an_unfinished_data_set(
    where: SparkSession | None, tmp_path: Path
) -> None:
    file = tmp_path / "AAPL_2012-06-21.csv.gz"
    file.write_bytes(b"\x1f\x8bno")
    with pytest.raises(DatasetError, match=r"AAPL_2012-06-21\.csv\.gz cannot be read"):
        ingest_lobster(where, file, tmp_path / "data")
    with pytest.raises(DatasetError, match="is incomplete"):
        EventStream.from_parquet(tmp_path / "data")


def test_real_minute_bars(where: SparkSession | None, real_data: Path, tmp_path: Path) -> None:
    files = [real_data / "nasdaq_minute_bars.txt"]
    report = ingest_minute_bars(where, files, tmp_path / "data")
    assert (report.events, report.quarantined) == (1652, 0)
    names = ["type", "time", "open", "high", "low", "price", "volume"]
    source = pd.read_csv(files[0], names=names, parse_dates=["time"], date_format="%Y%m%d%H%M")
    table = EventStream.from_parquet(tmp_path / "data").to_pandas().reset_index(drop=True)
    for name in names:
        assert list(table[name]) == list(source[name])
    assert table.time.duplicated().sum() > 500, "ties keep the order of the file"
    steps = source.groupby("type").price.diff()
    np.testing.assert_allclose(table.difference, steps, atol=1e-9)


def test_real_messages(
    where: SparkSession | None, spark: SparkSession, real_data: Path, tmp_path: Path
) -> None:
    (file,) = real_data.glob("lobster_*_message.csv")
    report = ingest_lobster(where, file, tmp_path / "data")
    names = ["seconds", "kind", "order_id", "size", "price", "direction"]
    source = pd.read_csv(file, names=names)
    assert (report.events, report.quarantined) == (len(source), 0)
    table = EventStream.from_parquet(tmp_path / "data").to_pandas().reset_index(drop=True)
    assert list(table.order_id) == list(source.order_id)
    np.testing.assert_allclose(table.price, source.price / 10_000)
    midnight = pd.Timestamp("2012-06-21").value
    seconds = (table.time.astype("int64") - midnight) / 1e9
    np.testing.assert_allclose(seconds, source.seconds, atol=1e-9)
    assert (
        report.declaration.counts["execution_sell"]
        == ((source.kind == 4) & (source.direction == -1)).sum()
    )
    steps = source.groupby(["kind", "direction"]).price.diff() / 10_000
    np.testing.assert_allclose(table.difference, steps, atol=1e-9)
    rates = arrival_rates(spark, tmp_path / "data")
    assert rates.rate.sum() == pytest.approx(len(source) / 3600, rel=0.01)
