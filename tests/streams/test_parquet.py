"""Reading slices of Parquet: order, filters, names of types, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepbench import EventStream
from cepbench.errors import DatasetError, StreamError
from cepbench.streams import parquet
from cepbench.streams.dataset_folder import (
    DECLARATION,
    Declaration,
    begin_dataset,
    finish_dataset,
    read_declaration,
)

START = datetime(2008, 1, 31, 12)


def events(count: int = 400, seed: int = 0) -> pd.DataFrame:
    """Events over two months in order of arrival, with ties in time."""
    rng = np.random.default_rng(seed)
    steps = np.sort(rng.integers(0, 48 * 3600, count) // 600 * 600)
    return pd.DataFrame(
        {
            "symbol": rng.choice(["X", "Y", "Z"], count),
            "ts": pd.Timestamp(START) + pd.to_timedelta(steps, unit="s"),
            "price": rng.random(count),
            "sequence": np.arange(count),
        }
    )


@pytest.fixture
def frame() -> pd.DataFrame:
    return events()


@pytest.fixture
def dataset(tmp_path: Path, frame: pd.DataFrame) -> Path:
    path = tmp_path / "made"
    assert begin_dataset(path, kind="test", parameters={"seed": 0}) is None
    by_month = frame.sort_values(["symbol", "ts", "sequence"]).groupby(
        frame.ts.dt.strftime("%Y-%m")
    )
    for month, part in by_month:
        folder = path / f"month={month}"
        folder.mkdir()
        for number, half in enumerate((part[: len(part) // 2], part[len(part) // 2 :])):
            table = pa.Table.from_pandas(half, preserve_index=False)
            table = table.set_column(1, "ts", table.column("ts").cast(pa.timestamp("ms")))
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=16)
    counts = {**frame.symbol.value_counts().sort_index().to_dict(), "SILENT": 0}
    declaration = Declaration(
        kind="test", parameters={"seed": 0}, events=len(frame), counts=counts, columns={}
    )
    finish_dataset(path, declaration)
    return path


def rows(stream: EventStream) -> list[tuple[object, ...]]:
    return list(stream.to_pandas().astype({"type": str}).itertuples(index=False, name=None))


def expected(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return list(frame[["symbol", "ts", "price"]].itertuples(index=False, name=None))


@pytest.mark.parametrize("dictionary", [True, False])
def test_row_groups_without_a_wanted_type_are_not_read(
    tmp_path: Path, frame: pd.DataFrame, dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.Table.from_pandas(frame.sort_values(["symbol", "ts"]), preserve_index=False)
    if dictionary:
        table = table.set_column(0, "symbol", table.column("symbol").dictionary_encode())
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=10)
    # One file that knows nothing of its values: all of it has to be read.
    pq.write_table(table[:15], tmp_path / "two.parquet", row_group_size=10, write_statistics=False)
    kept: list[int] = []
    real = parquet.with_row_groups_of

    def counting(*arguments: Any) -> Any:
        found = real(*arguments)
        kept.append(sum(len(fragment.row_groups) for fragment in found.get_fragments()))
        return found

    monkeypatch.setattr(parquet, "with_row_groups_of", counting)
    for types in (["X"], ["Y"], ["Z"], ["Z", "X"], ["BEFORE"], ["ZZZ"], ["XX"]):
        stream = EventStream.from_parquet(tmp_path, types=types, attributes=["price"], sort=True)
        ordered = table.column("symbol").to_pylist()
        groups = [set(ordered[k : k + 10]) for k in range(0, len(ordered), 10)]
        possible = [g for g in groups if any(min(g) <= name <= max(g) for name in types)]
        assert kept.pop() == len(possible) + 2
        assert len(stream) == sum(name in types for name in [*ordered, *ordered[:15]])


def test_a_data_set_comes_in_order_of_arrival(dataset: Path, frame: pd.DataFrame) -> None:
    stream = EventStream.from_parquet(dataset)
    assert rows(stream) == expected(frame)
    assert stream.type_names == ("X", "Y", "Z", "SILENT")
    assert list(stream.attributes) == ["price"]


def test_types_of_another_column_than_the_declared_one(dataset: Path, frame: pd.DataFrame) -> None:
    file = dataset / DECLARATION
    # Its types would be in a column "type".
    file.write_text(file.read_text().replace('"kind": "test"', '"kind": "stock-ticker"'))
    assert rows(EventStream.from_parquet(dataset, type="symbol")) == expected(frame)
    only = EventStream.from_parquet(dataset, type="symbol", types=["X", "NEW"])
    assert rows(only) == expected(frame[frame["symbol"] == "X"])


def test_only_the_slice_that_is_asked_for(dataset: Path, frame: pd.DataFrame) -> None:
    start, end = START + timedelta(hours=3), START + timedelta(hours=30)
    stream = EventStream.from_parquet(dataset, types=["Z", "X"], start=start, end=end)
    inside = frame[frame.symbol.isin(["X", "Z"]) & (frame.ts >= start) & (frame.ts < end)]
    assert 0 < len(inside) < len(frame)
    assert rows(stream) == expected(inside)
    assert stream.type_names == ("Z", "X")


@pytest.mark.parametrize("types", [None, ["Z", "X"], ["Y"], ["SILENT"]])
@pytest.mark.parametrize("hours", [(None, None), (3, 30), (None, 5), (20, None), (60, None)])
def test_positions_in_the_whole_data_set(
    dataset: Path, frame: pd.DataFrame, types: list[str] | None, hours: tuple[int | None, ...]
) -> None:
    start, end = (None if h is None else START + timedelta(hours=h) for h in hours)
    stream = EventStream.from_parquet(dataset, types=types, start=start, end=end, positions=True)
    inside = frame[
        (frame.symbol.isin(types) if types else True)
        & (frame.ts >= (start or frame.ts.min()))
        & (frame.ts < (end or frame.ts.max() + pd.Timedelta("1s")))
    ]
    assert list(stream.whole_positions()) == list(inside.index)
    part = EventStream.from_parquet(dataset, types=types, start=start, end=end)
    assert rows(part) == rows(stream)
    if types or start or end:
        with pytest.raises(StreamError, match="positions=True"):
            part.whole_positions()
        assert part[1:].positions is None and part.of_types(["X"]).positions is None


def test_positions_in_parquet_in_no_order(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Those of the rows as they lie, also of a stream that sort=True puts in another order."""
    shuffled = frame.sample(frac=1, random_state=1).drop(columns="sequence")
    for number, part in enumerate((shuffled[:150], shuffled[150:])):
        part.to_parquet(tmp_path / f"{number}.parquet")
    lain = shuffled.reset_index(drop=True)
    for types in (None, ["Y", "Z"]):
        part = EventStream.from_parquet(tmp_path, types=types, sort=True, positions=True)
        due = lain if types is None else lain[lain.symbol.isin(types)]
        due = due.sort_values("ts", kind="stable")
        assert list(part.whole_positions()) == list(due.index)
        assert list(part.attributes["price"]) == list(due.price)
        assert part.was_sorted and "sorted by time" in part.describe()
    (tmp_path / "sorted").mkdir()
    # A month of somebody's own making, which is not that of the events.
    for month, part_of in (("01", frame[:7]), ("00", frame[7:])):
        folder = tmp_path / "sorted" / f"year={2010 - int(month)}" / f"month={month}"
        folder.mkdir(parents=True)
        part_of.to_parquet(folder / "events.parquet")
    lying = EventStream.from_parquet(tmp_path / "sorted", types=["Y"], positions=True)
    assert list(lying.whole_positions()) == list(frame.index[frame.symbol == "Y"])


def test_no_positions_among_events_without_a_time(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.loc[frame.index[frame.symbol == "X"][3], "ts"] = None
    frame.to_parquet(tmp_path / "gap.parquet")
    read = {"types": ["Y"], "sort": True}
    assert len(EventStream.from_parquet(tmp_path / "gap.parquet", **read)) > 0  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="no timestamp in column 'ts'"):
        EventStream.from_parquet(tmp_path / "gap.parquet", **read, positions=True)  # type: ignore[arg-type]


def test_bounds_in_another_time_zone_and_finer_than_the_column(
    dataset: Path, frame: pd.DataFrame
) -> None:
    moment = frame.ts[200]
    just_after = moment + pd.Timedelta("1ns")
    for start in (moment.tz_localize(UTC).tz_convert(timezone(timedelta(hours=5))), moment):
        assert rows(EventStream.from_parquet(dataset, start=start)) == expected(
            frame[frame.ts >= moment]
        )
    assert rows(EventStream.from_parquet(dataset, start=just_after)) == expected(
        frame[frame.ts > moment]
    )
    assert rows(EventStream.from_parquet(dataset, end=just_after)) == expected(
        frame[frame.ts <= moment]
    )


def test_bounds_beyond_all_times(dataset: Path, frame: pd.DataFrame) -> None:
    """As those who mean none write them."""
    first, last = datetime.min, np.datetime64("9999-12-31")
    assert rows(EventStream.from_parquet(dataset, start=first, end=last)) == expected(frame)
    assert not len(EventStream.from_parquet(dataset, start=last))
    assert not len(EventStream.from_parquet(dataset, end=first))


def test_a_slice_without_events_still_knows_its_types(dataset: Path) -> None:
    stream = EventStream.from_parquet(dataset, types=["SILENT", "X"], end=START)
    assert len(stream) == 0
    assert stream.type_names == ("SILENT", "X")


def test_many_types(dataset: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    plain = tmp_path / "plain.parquet"
    frame.to_parquet(plain)
    many = [f"T{i}" for i in range(500)]
    stream = EventStream.from_parquet(plain, types=[*many, "Y"], attributes=["price"])
    assert rows(stream) == expected(frame[frame.symbol == "Y"])
    assert stream.type_names == (*many, "Y")


def test_any_parquet_file_keeps_its_rows_and_columns(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    frame.rename(columns={"symbol": "kind", "ts": "at"}).to_parquet(path)
    stream = EventStream.from_parquet(path, type="kind", time="at")
    assert list(stream.attributes) == ["price", "sequence"]
    assert rows(stream) == list(
        frame[["symbol", "ts", "price", "sequence"]].itertuples(index=False, name=None)
    )


def test_integer_time(tmp_path: Path) -> None:
    path = tmp_path / "ticks.parquet"
    pd.DataFrame({"symbol": ["A", "B", "A"], "ts": [3, 5, 9]}).to_parquet(path)
    assert len(EventStream.from_parquet(path, start=5, end=9)) == 1
    with pytest.raises(StreamError, match="integers for an integer one"):
        EventStream.from_parquet(path, start=START)


def test_unordered_parquet_is_refused_unless_sorted(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "reversed.parquet"
    frame[::-1].to_parquet(path)
    with pytest.raises(StreamError, match="sort=True"):
        EventStream.from_parquet(path)
    assert (EventStream.from_parquet(path, sort=True).to_pandas().time.diff()[1:] >= "0s").all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"types": ["XX"]}, DatasetError, "did you mean 'X'"),
        (
            {"attributes": ["prize"]},
            StreamError,
            "no column 'prize'; there are price; did you mean 'price'",
        ),
        ({"time": "when"}, StreamError, "no column 'when'"),
        ({"start": 17}, StreamError, "datetimes for a datetime column"),
        ({"path": ""}, DatasetError, "not the text ''"),
        ({"end": pd.NaT}, StreamError, "datetimes for a datetime column"),
        ({"start": np.datetime64("NaT")}, StreamError, "datetimes for a datetime column"),
    ],
)
def test_what_is_refused(
    dataset: Path, arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        EventStream.from_parquet(**{"path": dataset, **arguments})  # type: ignore[arg-type]


def test_missing_unfinished_empty_and_garbage(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="there is no data set"):
        EventStream.from_parquet(tmp_path / "nowhere")
    begin_dataset(tmp_path / "begun", kind="test", parameters={})
    with pytest.raises(DatasetError, match="is incomplete"):
        EventStream.from_parquet(tmp_path / "begun")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no Parquet file"):
        EventStream.from_parquet(tmp_path / "empty")
    (tmp_path / "garbage.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DatasetError, match="cannot be read as Parquet"):
        EventStream.from_parquet(tmp_path / "garbage.parquet")


def test_a_finished_data_set_is_found_again_and_another_refused(
    dataset: Path, tmp_path: Path
) -> None:
    assert begin_dataset(dataset, kind="test", parameters={"seed": 0}) == read_declaration(dataset)
    with pytest.raises(DatasetError, match="seed 0 found, 1 requested"):
        begin_dataset(dataset, kind="test", parameters={"seed": 1})
    with pytest.raises(DatasetError, match="test found, other requested"):
        begin_dataset(dataset, kind="other", parameters={"seed": 0})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(DatasetError, match="not empty"):
        begin_dataset(tmp_path / "mine", kind="test", parameters={})
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_what_a_killed_writer_left_is_deleted(tmp_path: Path) -> None:
    path = tmp_path / "killed"
    begin_dataset(path, kind="test", parameters={"seed": 0})
    (path / "month=2008-01").mkdir()
    (path / "month=2008-01" / "half.parquet").touch()
    hidden = [
        ".part-00000.parquet.0f",
        ".empty.parquet.0f",
        "._unfinished.json.7",
        "._dataset.json.7",
    ]
    for name in hidden:
        (path / name).touch()
    assert begin_dataset(path, kind="test", parameters={"seed": 1}) is None
    assert [file.name for file in path.rglob("*")] == ["_unfinished.json"]
    # Killed so early that not even that was written.
    (path / "_unfinished.json").rename(path / "._unfinished.json.7")
    assert begin_dataset(path, kind="test", parameters={"seed": 1}) is None
    assert [file.name for file in path.rglob("*")] == ["_unfinished.json"]


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_dates_are_times(tmp_path: Path, kind: pa.DataType) -> None:
    """Daily data, from any source: a date is its midnight, also beside a file of timestamps."""
    days = pa.array(pd.to_datetime(["2024-01-02", "2024-01-03", "2024-01-03", "2024-01-05"]))
    table = pa.table({"symbol": list("ABAB"), "date": days.cast(kind), "close": [1, 2, 3, 4]})
    (tmp_path / "folder").mkdir()
    pq.write_table(table, tmp_path / "folder" / "0.parquet")
    pq.write_table(table.set_column(1, "date", days)[3:], tmp_path / "folder" / "1.parquet")
    frame = table.to_pandas()
    frame.to_csv(tmp_path / "days.csv", index=False, date_format="%Y-%m-%d")
    columns: dict[str, Any] = {"type": "symbol", "time": "date"}
    for stream in (
        EventStream.from_arrow(table, **columns),
        EventStream.from_pandas(frame, **columns),
        EventStream.from_csv(tmp_path / "days.csv", **columns),
        EventStream.from_parquet(tmp_path / "folder" / "0.parquet", **columns),
        EventStream.from_parquet(tmp_path / "folder", **columns)[:4],
    ):
        assert stream.is_datetime
        assert stream.timestamps.tolist() == days.cast(pa.int64()).to_pylist()
    part = EventStream.from_parquet(
        tmp_path / "folder", **columns, start="2024-01-03", end="2024-01-04 12:00", positions=True
    )
    assert part.positions is not None
    assert part.positions.tolist() == [1, 2]
