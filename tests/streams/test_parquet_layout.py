"""Partitions in the names of folders are columns; other files in a folder are not events."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench import EventStream
from cepbench.errors import DatasetError, StreamError
from cepbench.streams.columns import CodedStrings
from cepbench.streams.dataset_folder import DECLARATION
from cepbench.streams.generated import make_stream
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.parquet_layout import open_parquet, parquet_files


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "symbol": ["A", "B"] * 4,
            "ts": pd.date_range("2024-01-31 23:56", periods=8, freq="min"),
            "x": np.arange(8.0),
        }
    )


def hive(frame: pd.DataFrame, path: Path, *keys: str) -> Path:
    """The frame partitioned by some columns, by hand: as it is written and with escapes."""
    for number, (values, part) in enumerate(frame.groupby(list(keys), dropna=False, sort=False)):
        named = zip(keys, values, strict=True)
        folder = path.joinpath(
            *(
                f"{key}={'__HIVE_DEFAULT_PARTITION__' if pd.isna(value) else value}"
                for key, value in named
            )
        )
        folder.mkdir(parents=True, exist_ok=True)
        part.drop(columns=list(keys)).to_parquet(folder / f"{number}.parquet", index=False)
    return path


def events(stream: EventStream) -> list[tuple]:
    columns = [
        [None if c < 0 else column.values[c] for c in column.codes]
        if isinstance(column, CodedStrings)
        else [None if v != v else v for v in column.tolist()]
        for column in (*stream.attributes.values(),)
    ]
    names = [stream.type_names[code] for code in stream.type_codes]
    return list(zip(names, *columns, strict=True))


@pytest.mark.parametrize("month", [["Jan"] * 4 + ["Feb"] * 4, [1] * 4 + [2] * 4, ["2020-01"] * 8])
@pytest.mark.parametrize("layout", ["column", "folders"])
def test_a_month_of_the_user_is_an_attribute(
    frame: pd.DataFrame, tmp_path: Path, month: list, layout: str
) -> None:
    """Our own data sets have folders of this name; theirs mean what they like."""
    table = frame.assign(month=month)
    if layout == "column":
        table.to_parquet(tmp_path / "events.parquet")
    else:
        hive(table, tmp_path, "month")
    read = {"type": "symbol", "time": "ts", "sort": True, "positions": True}
    for bounds in ({}, {"start": datetime(2024, 2, 1)}, {"end": datetime(2024, 2, 1, 0, 2)}):
        stream = EventStream.from_parquet(tmp_path, **read, **bounds)
        low, high = bounds.get("start", frame.ts[0]), bounds.get("end", datetime(2025, 1, 1))
        due = table[(table.ts >= low) & (table.ts < high)]
        due = due[["symbol", "x", "month"]]
        assert events(stream) == list(due.itertuples(index=False, name=None))
    only = EventStream.from_parquet(tmp_path, types=["B"], **read)
    assert [name for name, *_ in events(only)] == ["B"] * 4


@pytest.mark.parametrize("engine", ["pandas", "arrow"])
def test_types_in_the_names_of_folders(frame: pd.DataFrame, tmp_path: Path, engine: str) -> None:
    names = ["007", "7", "A/B", "é ü", "1E5", "x=y", "TRUE", "%20"]
    table = frame.assign(symbol=names)
    if engine == "pandas":
        table.to_parquet(tmp_path, partition_cols=["symbol"])
    else:
        pq.write_to_dataset(pa.Table.from_pandas(table), tmp_path, partition_cols=["symbol"])
    stream = EventStream.from_parquet(tmp_path, type="symbol", sort=True)
    assert events(stream) == list(zip(names, table.x, strict=True))
    some = EventStream.from_parquet(tmp_path, types=["7", "é ü"], sort=True, positions=True)
    assert events(some) == [("7", 1.0), ("é ü", 3.0)]
    whole = EventStream.from_parquet(tmp_path, sort=True)
    assert list(some.whole_positions()) == list(whole.whole_positions()[[1, 3]])
    pattern = cep.parse('PATTERN SEQ("007" a, "A/B" b) WHERE a.x < b.x WITHIN 5 minutes')
    plan = cep.OrderPlan(["a", "b"])
    assert cep.evaluate(pattern, stream, plan).matches.values.tolist() == [[0, 2]]
    nothing = table.assign(symbol=None).astype({"symbol": object})
    hive(nothing, tmp_path / "nothing", "symbol")
    with pytest.raises(StreamError, match="no event type in column 'symbol'"):
        EventStream.from_parquet(tmp_path / "nothing")


def test_several_levels_and_missing_values(frame: pd.DataFrame, tmp_path: Path) -> None:
    table = frame.assign(
        year=[2024] * 4 + [2025] * 4,
        month=["01", "02"] * 4,
        code=["7", "07", None, "7"] * 2,
        size=[-1, None] * 4,
    )
    table["size"] = table["size"].astype("Int64")
    path = hive(table, tmp_path / "levels", "year", "month", "code", "size")
    stream = EventStream.from_parquet(path, sort=True)
    assert list(stream.attributes) == ["x", "year", "month", "code", "size"]
    due = table.assign(month=[1, 2] * 4).drop(columns=["ts"])
    due = due.astype(object).where(due.notna(), None)
    assert events(stream) == [tuple(row) for row in due.values.tolist()]
    # 07 and 7 are two texts, so the column is not one of numbers.
    assert stream.attributes["code"].values == ("7", "07")  # type: ignore[union-attr]
    chosen = EventStream.from_parquet(path, attributes=["month"], types=["A"], sort=True)
    assert events(chosen) == [("A", 1)] * 4


def test_files_that_are_no_events(frame: pd.DataFrame, tmp_path: Path) -> None:
    deep = tmp_path / "a=1" / "_b=x"
    deep.mkdir(parents=True)
    frame[:4].to_parquet(tmp_path / "a=1" / "0")  # as Hive and Impala name them
    frame[4:].to_parquet(deep / "1.PARQUET", index=False)
    for name in (
        "README.md",
        "_SUCCESS",
        ".DS_Store",
        ".0.parquet.crc",
        "_metadata",
        "x.parquet.tmp",
    ):
        (tmp_path / name).write_text("no Parquet")
    for folder in ("_temporary", ".ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        frame.to_parquet(tmp_path / folder / "again.parquet")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(parquet_files(tmp_path)) == 2
    stream = EventStream.from_parquet(tmp_path)
    assert [x for _, x, *_ in events(stream)] == list(frame.x)
    assert [b for *_, b in events(stream)] == [None] * 4 + ["x"] * 4
    (tmp_path / "broken.parquet").write_text("no Parquet")
    with pytest.raises(DatasetError, match=r"broken\.parquet"):
        EventStream.from_parquet(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(DatasetError, match="no Parquet file below"):
        EventStream.from_parquet(tmp_path / "none")


def test_a_column_of_the_files_takes_precedence(frame: pd.DataFrame, tmp_path: Path) -> None:
    folder = tmp_path / "x=9"
    folder.mkdir()
    frame.to_parquet(folder / "0.parquet")
    assert [x for _, x in events(EventStream.from_parquet(tmp_path))] == list(frame.x)


@pytest.mark.parametrize("z", ["1", 1, 1.0])
def test_a_file_without_the_column_has_what_its_folder_says(
    frame: pd.DataFrame, tmp_path: Path, z: Any
) -> None:
    """As if another tool wrote some of the files."""
    frame = frame[:3].assign(symbol=list("ABC"), z=[z, None, None])
    for place, symbol in enumerate("ABC"):
        folder = (
            tmp_path / f"symbol={symbol}" / f"z={'__HIVE_DEFAULT_PARTITION__' if place == 2 else 2}"
        )
        folder.mkdir(parents=True)
        own = frame[place : place + 1]
        own = own[["symbol", "ts", "z"]] if place == 0 else own[["ts"]]
        own.to_parquet(folder / "0.parquet", index=False)
    stream = EventStream.from_parquet(tmp_path)
    second = "2" if z == "1" else 2
    assert events(stream) == [("A", z), ("B", second), ("C", None)]


def test_columns_of_all_files(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Also those that the first file lacks, or has no value of."""
    first = frame[:4].assign(note=None, n=[1, 2, 3, 4])
    first.to_parquet(tmp_path / "0.parquet")
    frame[4:].assign(note="k", n=0.5, late=1).to_parquet(tmp_path / "1.parquet", index=False)
    stream = EventStream.from_parquet(tmp_path)
    assert events(stream) == [
        *(("A" if i % 2 == 0 else "B", float(i), None, i + 1.0, None) for i in range(4)),
        *(("A" if i % 2 == 0 else "B", float(i), "k", 0.5, 1) for i in range(4, 8)),
    ]
    frame.iloc[-1:].assign(n=2**53 + 1).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(DatasetError, match=r"column 'n' of .* cannot be read as double.* 900719"):
        EventStream.from_parquet(tmp_path)
    assert len(EventStream.from_parquet(tmp_path, attributes=["x"])) == 9
    frame.assign(x="text").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(
        DatasetError, match=r"column 'x' has type double in .*0\.parquet and string"
    ):
        EventStream.from_parquet(tmp_path)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (pa.array(["p", "q"], pa.string_view()), pa.array(["q", None]), ["p", "q", "q", None]),
        (pa.array(["p", "q"]).dictionary_encode(), pa.array(["q", None]), ["p", "q", "q", None]),
        (pd.Categorical(["p", "q"], ordered=True), pd.Categorical(["q", "p"]), list("pqqp")),
        (pa.array([Decimal("1.5"), None]), pa.array([2, 2**40]), [1.5, None, 2, 2**40]),
    ],
    ids=["view", "codes", "ordered", "decimals"],
)
@pytest.mark.parametrize("chosen", [{}, {"types": ["A"]}, {"start": datetime(2024, 1, 31)}])
def test_a_column_that_files_store_in_two_ways(
    frame: pd.DataFrame, tmp_path: Path, one: Any, other: Any, expected: list, chosen: dict
) -> None:
    for number, column in enumerate((one, other)):
        table = pa.Table.from_pandas(frame[["symbol", "ts"]][2 * number : 2 * number + 2])
        pq.write_table(table.append_column("k", pa.array(column)), tmp_path / f"{number}.parquet")
    stream = EventStream.from_parquet(tmp_path, attributes=["k"], **chosen)
    assert [k for _, k in events(stream)] == (expected[::2] if "types" in chosen else expected)


def test_files_with_times_of_several_zones(frame: pd.DataFrame, tmp_path: Path) -> None:
    for place, zone in enumerate(("Europe/Berlin", "America/New_York")):
        part = frame[4 * place : 4 * place + 4]
        part.assign(ts=part.ts.dt.tz_localize("UTC").dt.tz_convert(zone)).to_parquet(
            tmp_path / f"{place}.parquet"
        )
    stream = EventStream.from_parquet(tmp_path, start=frame.ts[3], positions=True)
    assert stream.to_pandas()["time"].tolist() == frame.ts[3:].tolist()
    assert stream.whole_positions().tolist() == [3, 4, 5, 6, 7]
    frame.to_parquet(tmp_path / "2.parquet")
    with pytest.raises(DatasetError, match=r"column 'ts' has type timestamp.*with one type"):
        EventStream.from_parquet(tmp_path)


def test_columns_of_odd_names(tmp_path: Path) -> None:
    """Without a name, as pandas writes an index to CSV; and twice the same one."""
    table = pa.table([pa.array(["A"]), pa.array([1]), pa.array([2])], ["symbol", "ts", ""])
    pq.write_table(table, tmp_path / "0.parquet")
    assert list(EventStream.from_parquet(tmp_path).attributes) == [""]
    pq.write_table(table.rename_columns(["symbol", "ts", "ts"]), tmp_path / "1.parquet")
    with pytest.raises(DatasetError, match=r"two columns of .*1\.parquet are named 'ts'"):
        EventStream.from_parquet(tmp_path)


def test_a_folder_that_says_no_type(frame: pd.DataFrame, tmp_path: Path) -> None:
    hive(frame.assign(symbol=["A"] * 4 + [None] * 4, z=1), tmp_path, "symbol", "z")
    with pytest.raises(StreamError, match="row 4: no event type in column 'symbol'"):
        EventStream.from_parquet(tmp_path)


def test_nested_fields_are_not_taken_for_columns(frame: pd.DataFrame, tmp_path: Path) -> None:
    """A nested ``symbol`` before the column of this name: row groups are chosen by the column."""
    nested = frame.assign(first=[{"symbol": "Z", "ts": 0}] * 8)[["first", "symbol", "ts", "x"]]
    nested.to_parquet(tmp_path / "0.parquet", row_group_size=2)
    stream = EventStream.from_parquet(tmp_path, types=["A"], attributes=["x"])
    assert [x for _, x in events(stream)] == [0, 2, 4, 6]


def test_columns_named_as_those_of_our_own_data_sets(frame: pd.DataFrame, tmp_path: Path) -> None:
    table = frame.assign(sequence=[7, 7, 3, 3, 1, 1, 0, 0], row=1, difference=2.0, file="f")
    table = table.rename(columns={"symbol": "sequence_2", "ts": "position"})
    table.to_parquet(tmp_path / "0.parquet")
    read = {"type": "sequence_2", "time": "position"}
    stream = EventStream.from_parquet(tmp_path, **read)  # type: ignore[arg-type]
    assert list(stream.attributes) == ["x", "sequence", "row", "difference", "file"]
    assert list(stream.attributes["sequence"]) == list(table.sequence)
    some = EventStream.from_parquet(tmp_path, types=["B"], positions=True, **read)  # type: ignore[arg-type]
    assert list(some.whole_positions()) == [1, 3, 5, 7]


def test_months_of_our_own_exclude_files(tmp_path: Path) -> None:
    stream = NasdaqStyle(identifiers=3, days=40, seed=1)
    make_stream(tmp_path / "own", stream)
    own = tmp_path / "own"
    months = sorted(folder.name for folder in own.glob("month=*"))
    assert len(months) == 2
    dataset = open_parquet(own)
    assert "month" not in dataset.schema.names
    february = pa.scalar(datetime(2008, 2, 1), dataset.schema.field("ts").type)
    later = dataset.get_fragments(filter=pa.dataset.field("ts") >= february)
    assert {Path(its.path).parent.name for its in later} == {months[1]}
    whole = EventStream.from_parquet(own)
    part = EventStream.from_parquet(own, start=datetime(2008, 2, 1), positions=True)
    assert 0 < len(part) < len(whole)
    assert list(part.whole_positions()) == list(range(len(whole) - len(part), len(whole)))
    # Without the declaration it is Parquet like any other, and loses no event.
    (own / DECLARATION).unlink()
    other = EventStream.from_parquet(own, start=datetime(2008, 2, 1), sort=True)
    assert len(other) == len(part) and "month" in other.attributes


def test_home_folders(frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    frame.to_parquet(tmp_path / "x.parquet")
    assert len(EventStream.from_parquet("~/x.parquet")) == len(frame)
    assert len(EventStream.from_parquet(Path("~"))) == len(frame)
    monkeypatch.chdir(tmp_path)
    frame.to_parquet("~no user.parquet")
    assert len(EventStream.from_parquet("~no user.parquet")) == len(frame)
    Path("~no user.parquet").unlink()
    make_stream("~/own", NasdaqStyle(identifiers=2, days=1, seed=1))
    assert cep.open_dataset("~/own").path == tmp_path / "own"
    detector = cep.Detector("PATTERN SEQ(A a, B b) WITHIN 5 minutes", cep.OrderPlan(["a", "b"]))
    detector.save("~/state.npz")
    assert (tmp_path / "state.npz").is_file()
