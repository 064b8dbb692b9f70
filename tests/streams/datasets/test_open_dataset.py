"""Opening data sets: by name from anywhere, by path, made when needed, refused when wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import DatasetError, StreamError
from cepbench.streams.dataset_folder import DECLARATION, UNFINISHED
from cepbench.streams.datasets.catalogue import folders, roots
from cepbench.streams.datasets.checksums import stream_checksum
from cepbench.streams.generated import make_stream
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.ten_symbols import TenSymbols, ten_symbols

SMALL = {"identifiers": 20, "days": 3, "seed": 4}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A data set of one's own, beside any catalogue."""
    make_stream(tmp_path / "small", NasdaqStyle(**SMALL))
    return tmp_path / "small"


def with_quick(catalogue: Path, **changes: object) -> None:
    """Declare quick smaller, so that making it takes no time; then change what is declared."""
    file = catalogue / "ten-symbols" / "dataset.toml"
    before, _, after = file.read_text(encoding="utf-8").partition("[variants.quick]")
    assert after
    values = {"events": 500, "parameters": "{ events = 500, seed = 3 }"} | changes
    lines = "".join(f"{name} = {value}\n" for name, value in values.items())
    text = f'about = "tiny"\npath = "data/quick"\nmade = "on first use"\n{lines}'
    file.write_text(f"{before}[variants.quick]\n{text}", encoding="utf-8")


def test_the_list_names_every_variant_and_how_to_get_it(catalogue: Path) -> None:
    listed = cep.open_dataset()
    assert set(listed.index) == {
        "nasdaq-style/sample", "nasdaq-style/quick", "nasdaq-style/full", "ten-symbols/sample",
        "ten-symbols/quick", "minute-bars/sample", "lobster/sample", "stock-rates/sample",
        "stock-rates/quick", "stock-rates/full", "stock-rates/segments", "web-log/sample",
        "web-log/quick", "web-log/full", "stock-ticker/sample", "stock-ticker/quick",
        "company-trades/sample", "company-trades/full", "evacuation/sample", "evacuation/full",
        "stock-ticker/full", "ticker-trades/sample", "ticker-trades/full", "ticker-trades/forty",
    }  # fmt: skip
    at_hand = listed["at hand"]
    assert at_hand["lobster/sample"] == "here"
    assert at_hand["nasdaq-style/quick"] == "made on first use"
    assert at_hand["nasdaq-style/full"] == "cepbench data make nasdaq-style/full"
    for name in listed.index[at_hand == "here"]:
        dataset = cep.open_dataset(name)
        assert len(dataset.stream()) == dataset.events == listed.loc[name, "events"]
        assert str(catalogue) in str(dataset.path)


def test_the_sample_is_the_beginning_of_the_stream_that_is_drawn(catalogue: Path) -> None:
    style = NasdaqStyle(identifiers=75, days=2, seed=0)
    drawn = style.table(np.arange(75), 0, 2).to_pandas().sort_values(["ts", "sequence"])
    found = cep.open_dataset("nasdaq-style/sample").stream().to_pandas()
    for name, column in {"symbol": "type", "ts": "time", "price": "price"}.items():
        assert found[column].astype(drawn[name].dtype).tolist() == drawn[name].tolist()


def test_a_variant_is_made_on_first_use_and_only_then(
    catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_quick(catalogue)
    dataset = cep.open_dataset("ten-symbols")
    told = capsys.readouterr().err
    assert told == "cepbench: making the data set ten-symbols/quick, 500 events, once ...\n"
    drawn = ten_symbols(500, 3)
    stream = dataset.stream()
    assert dataset.name == "ten-symbols/quick"
    assert (stream.timestamps == drawn["ts"].to_numpy() * 1_000_000).all()
    assert stream.to_pandas()["difference"].tolist() == drawn["difference"].tolist()
    assert dataset.counts.to_dict() == drawn["symbol"].value_counts(sort=False).to_dict()
    written = (dataset.path / DECLARATION).stat().st_mtime_ns
    assert len(cep.open_dataset("ten-symbols/quick").stream()) == 500
    assert capsys.readouterr().err == ""
    assert (dataset.path / DECLARATION).stat().st_mtime_ns == written
    assert {path.name for path in dataset.path.parent.iterdir()} <= {"quick", ".quick.lock"}


def test_parameters_that_do_not_fit_say_where(catalogue: Path) -> None:
    with_quick(catalogue, parameters="{ events = 500, sed = 3 }")
    told = r"dataset\.toml: variants\.quick\.parameters: .*one of .*, not 'sed'; .*mean 'seed'"
    with pytest.raises(DatasetError, match=told):
        cep.open_dataset("ten-symbols/quick")


def test_what_was_stopped_half_way_is_made_anew(catalogue: Path) -> None:
    with_quick(catalogue)
    folder = catalogue / "ten-symbols" / "data" / "quick"
    folder.mkdir(parents=True)
    (folder / UNFINISHED).write_text("{}", encoding="utf-8")
    assert len(cep.open_dataset("ten-symbols/quick").stream()) == 500


#: Makes a data set as soon as it may go on, and prints when it begins and what it opened.
SLOW = """
import shutil, sys
import cepbench as cep
from cepbench.streams import generated
make = generated.make_stream
def slow(path, stream):
    path.mkdir()
    (path / "half.parquet").write_text("half")
    print("at work", flush=True)
    sys.stdin.readline()
    shutil.rmtree(path)
    return make(path, stream)
generated.make_stream = slow
print(len(cep.open_dataset("ten-symbols/quick").stream()))
"""


def test_of_two_processes_one_makes_it_and_what_a_killed_one_left_is_removed(
    catalogue: Path,
) -> None:
    with_quick(catalogue)
    folder = catalogue / "ten-symbols" / "data"

    def started() -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, "-c", SLOW], **pipes)

    with started() as killed:
        assert killed.stdout is not None and killed.stdout.readline() == b"at work\n"
        killed.kill()
    assert (folder / ".quick.unfinished" / "half.parquet").exists()
    with started() as first:
        assert first.stdout is not None and first.stdout.readline() == b"at work\n"
        with started() as second:
            assert first.communicate(b"\n")[0] == second.communicate()[0] == b"500\n"
    assert {path.name for path in folder.iterdir()} <= {"quick", ".quick.lock"}


def test_declared_quick_streams_are_those_of_the_arithmetic(catalogue: Path) -> None:
    """The checksum in git is held against what this machine makes."""
    dataset = cep.open_dataset("nasdaq-style/quick")
    style = NasdaqStyle(identifiers=120, days=10, seed=0)
    assert dataset.events == len(dataset.stream()) == 179_233
    assert set(dataset.counts.index) == set(style.symbols)
    sample = cep.open_dataset("nasdaq-style/sample")
    same = dataset.stream(types=sample.counts.index, days=2).to_pandas()
    beginning = sample.stream().to_pandas()
    same, beginning = (f.astype({"type": str, "sector": str}) for f in (same, beginning))
    pd.testing.assert_frame_equal(same, beginning)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"events": 501}, "the number of events is 500, but .*dataset.toml expects 501; delete"),
        ({"sha256": '"abc"'}, "the SHA-256 of its events is [0-9a-f]{64}, but .* expects abc"),
    ],
)
def test_what_is_not_what_was_declared_is_refused(
    catalogue: Path, changes: dict[str, object], told: str
) -> None:
    with_quick(catalogue, **changes)
    for _ in range(2):
        with pytest.raises(DatasetError, match=told) as caught:
            cep.open_dataset("ten-symbols/quick")
        caught.match("requirements.txt")
        caught.match(str(catalogue / "ten-symbols" / "data" / "quick"))
    # By its path it can be opened: nothing is declared about it but by itself.
    opened = cep.open_dataset(catalogue / "ten-symbols" / "data" / "quick")
    assert len(opened.stream()) == 500 and "p3" in opened.patterns


def test_a_changed_sample_is_refused(catalogue: Path) -> None:
    file = catalogue / "minute-bars" / "sample.txt"
    text = file.read_text(encoding="utf-8")
    assert "MSFT,200801020930,12.58" in text
    file.write_text(text.replace("MSFT,200801020930,12.58", "MSFT,200801020930,12.57", 1))
    with pytest.raises(DatasetError, match=r"sample.txt: the SHA-256 .* git checkout -- .*txt"):
        cep.open_dataset("minute-bars/sample")
    file.unlink()
    with pytest.raises(DatasetError, match=r"sample.txt is missing; .*git checkout"):
        cep.open_dataset("minute-bars")


def test_what_only_spark_makes_says_how(catalogue: Path) -> None:
    with pytest.raises(DatasetError, match=r"`cepbench data make nasdaq-style/full`, or .* quick"):
        cep.open_dataset("nasdaq-style/full")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "nasdaqstyle/quick",
            r"no data set or path 'nasdaqstyle/quick'; .*did you mean 'nasdaq-st",
        ),
        ("nasdaq-style/quik", r"'nasdaq-style' has no variant 'quik'; .*did you mean 'quick'\?"),
        (
            "xyz",
            r"no data set or path 'xyz'; there are company-trades, evacuation, lobster, minute-bars",
        ),
        ("./xyz", r"there is no data set or Parquet file xyz; check the path"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(catalogue: Path, name: str, told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        cep.open_dataset(name)


def test_it_works_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder without a catalogue, that of the checkout is found; a nearer one comes first."""
    monkeypatch.delenv("CEPBENCH_DATASETS", raising=False)
    monkeypatch.chdir(tmp_path)
    committed = Path(cep.__file__).resolve().parents[1] / "datasets"
    assert folders()["nasdaq-style"] == committed / "nasdaq-style"
    near = tmp_path / "datasets" / "nasdaq-style"
    near.mkdir(parents=True)
    assert folders()["nasdaq-style"] == committed / "nasdaq-style"  # no declaration, no data set
    (near / "dataset.toml").write_bytes((committed / "nasdaq-style/dataset.toml").read_bytes())
    assert folders()["nasdaq-style"] == near
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert folders()["nasdaq-style"] == near
    monkeypatch.setenv("CEPBENCH_DATASETS", os.pathsep.join([str(below), str(committed)]))
    assert roots()[:2] == [below, committed]
    assert folders()["nasdaq-style"] == committed / "nasdaq-style"


def test_without_any_catalogue_a_name_says_what_to_do(tmp_path: Path) -> None:
    """The package alone, neither checked out nor installed with its data sets."""
    package = Path(cep.__file__).parent
    shutil.copytree(package, tmp_path / "cepbench", ignore=shutil.ignore_patterns("bundled"))
    code = "import cepbench as cep; cep.open_dataset('nasdaq-style/quick')"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "CEPBENCH_DATASETS": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert "DatasetError: no data set 'nasdaq-style/quick'" in done.stderr
    assert "set CEPBENCH_DATASETS to its folder" in done.stderr


def test_a_folder_of_events_opens_by_its_path(small: Path) -> None:
    dataset = cep.open_dataset(small)
    assert dataset.kind == "nasdaq-style" and dataset.declaration.parameters["seed"] == 4
    assert len(dataset.stream()) == dataset.events > 1_000
    # Of a known kind: its columns are explained, and its patterns are there.
    assert dataset.schema.loc["difference", "unit"] == "dollars"
    assert list(dataset.schema.index) == ["symbol", "ts", "price", "difference", "sector"]
    assert "four-stocks" in dataset.patterns
    (small / "month=2008-01" / "part-00000.parquet").rename(small / "x.parquet")
    (small / DECLARATION).unlink()
    with pytest.raises(DatasetError, match=r"not a cepbench data set.*EventStream.from_parquet"):
        cep.open_dataset(str(small))


def test_undeclared_folders_below_data_have_names(catalogue: Path) -> None:
    make_stream(catalogue / "nasdaq-style" / "data" / "mine", NasdaqStyle(**SMALL))
    dataset = cep.open_dataset("nasdaq-style/mine")
    assert dataset.name == "nasdaq-style/mine" and dataset.variant is None
    listed = cep.open_dataset()
    assert listed.loc["nasdaq-style/mine", "events"] == dataset.events
    with pytest.raises(DatasetError, match="did you mean 'mine'"):
        cep.open_dataset("nasdaq-style/mien")
    make_stream(catalogue / "ten-symbols" / "data" / "other", TenSymbols(10))
    assert cep.open_dataset(catalogue / "ten-symbols/data/other").name == "ten-symbols/other"


def test_a_slice_of_the_events(small: Path) -> None:
    dataset = cep.open_dataset(small)
    everything = dataset.stream().to_pandas()
    expected = everything[everything["type"].isin(["MSFT", "CSCO"])].reset_index(drop=True)
    some = dataset.stream(types=["MSFT", "CSCO"], attributes=["price"]).to_pandas()
    assert list(some.columns) == ["type", "time", "price"]
    assert some["price"].tolist() == expected["price"].tolist()
    pattern = cep.parse("PATTERN SEQ(MSFT a, CSCO b, MSFT c) WITHIN 5 minutes")
    assert len(dataset.stream(pattern)) == len(expected) == len(dataset.stream(["MSFT", "CSCO"]))
    assert dataset.stream(types="MSFT").type_names == ("MSFT",)
    assert dataset.stream(first=7).to_pandas().equals(everything[:7])
    by_day = everything.groupby(everything["time"].dt.date).size().tolist()
    assert len(by_day) == 3
    assert len(dataset.stream(days=2)) == sum(by_day[:2])
    assert len(dataset.stream(days=9)) == len(everything)
    assert len(dataset.stream(start=datetime(2008, 1, 3), days=2)) == by_day[1]
    assert len(dataset.stream(end=datetime(2008, 1, 3, tzinfo=UTC))) == by_day[0]


def test_a_slice_of_a_source_file(catalogue: Path) -> None:
    dataset = cep.open_dataset("lobster/sample")
    everything = dataset.stream().to_pandas()
    edge = datetime(2026, 1, 5, 9, 40)
    early = dataset.stream(types=["execution_buy"], end=edge).to_pandas()
    late = dataset.stream(types=["execution_buy"], start=edge).to_pandas()
    of_type = everything[everything["type"] == "execution_buy"]
    assert len(early) + len(late) == len(of_type) == dataset.counts["execution_buy"]
    assert early["time"].max() < pd.Timestamp(edge) <= late["time"].min()
    assert early["price"].tolist() == of_type["price"].tolist()[: len(early)]
    shifted = edge.replace(tzinfo=timezone(timedelta(hours=1)))
    assert len(dataset.stream(start=shifted)) == len(everything)
    assert len(dataset.stream(days=1, first=3)) == 3


def test_a_slice_begins_with_its_start_and_ends_before_its_end(catalogue: Path) -> None:
    """Bars come at whole minutes, many of them at one: all belong to the slice that begins there."""
    dataset = cep.open_dataset("minute-bars/sample")
    times = dataset.stream().to_pandas()["time"]
    edge = datetime(2008, 1, 2, 10, 30)
    assert (times == edge).sum() > 1
    assert len(dataset.stream(start=edge)) == (times >= edge).sum()
    assert len(dataset.stream(end=edge)) == (times < edge).sum()
    file = catalogue / "minute-bars" / "sample.txt"
    file.write_text("".join(f"A,{day}0000,1,1,1,1,1\n" for day in (19691231, 19700101, 19700102)))
    declared = catalogue / "minute-bars" / "dataset.toml"
    declared.write_text(declared.read_text(encoding="utf-8").partition("events =")[0])
    early = cep.open_dataset("minute-bars/sample")
    epoch = datetime(1970, 1, 1)
    assert [len(early.stream(start=epoch)), len(early.stream(end=epoch))] == [2, 1]


def test_a_file_that_is_neither_parquet_nor_a_source(catalogue: Path) -> None:
    with_quick(catalogue)
    file = catalogue / "ten-symbols" / "dataset.toml"
    declared = file.read_text(encoding="utf-8").replace('"data/quick"', '"quick.csv"')
    file.write_text(declared.replace('"on first use"', '"committed"'), encoding="utf-8")
    (catalogue / "ten-symbols" / "quick.csv").write_text("symbol,ts\nA,1\n")
    with pytest.raises(DatasetError, match=r"quick\.csv cannot be read as Parquet"):
        cep.open_dataset("ten-symbols/quick").stream()


def test_the_number_of_events_is_checked_beside_the_checksum(catalogue: Path) -> None:
    with_quick(catalogue)
    digest = stream_checksum(cep.open_dataset("ten-symbols/quick").stream())
    with_quick(catalogue, events=501, sha256=f'"{digest}"')
    with pytest.raises(DatasetError, match="the number of events is 500"):
        cep.open_dataset("ten-symbols/quick")


@pytest.mark.parametrize(
    ("asked", "error", "told"),
    [
        ({"types": ["MSTF"]}, DatasetError, "no events of type 'MSTF'; did you mean 'MSFT'"),
        ({"attributes": ["prize"]}, StreamError, "'prize'"),
        ({"first": 0}, DatasetError, "first must be at least 1, not 0"),
        ({"days": 1, "end": datetime(2008, 1, 3)}, DatasetError, "give one of them"),
        ({"end": 5}, StreamError, "datetimes for a datetime column.*but got 5"),
        ({"start": "soon"}, StreamError, "datetimes for a datetime column.*but got 'soon'"),
    ],
)
@pytest.mark.parametrize("name", ["nasdaq-style/sample", "minute-bars/sample"])
def test_a_slice_that_cannot_be_is_refused(
    catalogue: Path, name: str, asked: dict[str, object], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        cep.open_dataset(name).stream(**asked)


def test_a_data_set_shows_itself(catalogue: Path) -> None:
    for name in (
        "nasdaq-style/sample",
        "minute-bars/sample",
        "lobster/sample",
        "ten-symbols/sample",
    ):
        dataset = cep.open_dataset(name)
        text = dataset.describe()
        assert f"{dataset.events:,}" in text and str(dataset.path) in text
        assert repr(dataset).startswith(f"Dataset('{name}': ")
        cell = ET.fromstring(dataset._repr_html_().replace("&nbsp;", " "))
        shown = "".join(cell.itertext())
        assert dataset.entry.title in shown and str(catalogue) not in shown
        for pattern in dataset.patterns:
            assert pattern in text and pattern in shown
        for column in dataset.stream().attributes:
            assert column in dataset.schema.index, f"{name} does not explain {column}"
        assert (dataset.schema["meaning"].str.len() > 5).all()
        assert dataset.entry.provenance.startswith("# Where")


def test_rows_that_cannot_be_read_are_kept(catalogue: Path) -> None:
    bars = cep.open_dataset("minute-bars/sample").quarantine()
    assert list(bars.columns) == ["file", "row", "text", "reason"]
    lines = (catalogue / "minute-bars" / "sample.txt").read_text(encoding="utf-8").splitlines()
    assert [lines[row - 1] for row in bars["row"]] == bars["text"].tolist()
    assert bars["reason"].tolist()[:2] == ["open is not a number", "high is below low"]
    assert bars["reason"].str.contains("earlier than row").sum() == 1
    assert cep.open_dataset("nasdaq-style/sample").quarantine().empty
    messages = cep.open_dataset("lobster/sample").quarantine()
    assert len(messages) == 3 and (messages["reason"].iloc[0] == "type is none of 1 to 5")


def test_differences_of_a_source_file_are_to_the_price_before(catalogue: Path) -> None:
    for name in ("minute-bars/sample", "lobster/sample"):
        found = cep.open_dataset(name).stream().to_pandas()
        expected = found.groupby("type", observed=True)["price"].diff()
        np.testing.assert_allclose(found["difference"], expected, atol=1e-6)


def test_opening_starts_no_java(catalogue: Path) -> None:
    script = (
        "import sys, cepbench as cep\n"
        "cep.open_dataset('nasdaq-style/sample').stream()\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules} & {'pyspark', 'py4j', 'numba'}))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
