"""Reading slices of Parquet files: all events of a slice in order, whatever the files' layout."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.slices import SliceDetection
from cepbench.engines.runs.slices import Slice
from cepbench.errors import StreamError
from cepbench.spark.frames import Columns
from cepbench.spark.parquet_slices import ParquetSlices
from cepbench.streams.row_groups import RowGroups, row_groups

COLUMNS = Columns("at", "symbol", ("lot",))


#: Rows read and ordered at a time.
SMALL = {"read": 24, "ordered": 5}


@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_all_events_of_a_slice_in_order(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    """Sorted by time, by type or not at all; events of one time by identifier or row."""
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("slices")
    size = data.draw(st.integers(0, 80), "events")
    frame = pd.DataFrame(
        {
            "at": rng.integers(0, data.draw(st.sampled_from([3, 50, 2**61]), "times"), size),
            "symbol": rng.choice(list("ABCD"), size),
            "lot": rng.integers(0, 3, size),
            "id": rng.permutation(size),
        }
    )
    frame["name"] = [f"{number:03}" for number in frame["id"]]
    layout = data.draw(st.sampled_from(["at", "symbol", "id"]), "layout")
    frame = frame.sort_values(layout, kind="stable").reset_index(drop=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=2), "files"))
    for number, (one, other) in enumerate(zip([0, *cuts], [*cuts, size], strict=True)):
        table = pa.Table.from_pandas(frame[one:other], preserve_index=False)
        pq.write_table(table, path / f"{number}.parquet", row_group_size=9)
    types = data.draw(st.sampled_from(["A a, B b", "A a, C c", "ANY a, ANY b"]), "types")
    pattern = cep.parse(f"PATTERN SEQ({types}) WHERE [lot] WITHIN 2 units")
    detection = SliceDetection(pattern, key="lot")
    bound = st.none() | st.sampled_from([0, 1, *map(int, frame["at"])])
    start, end = data.draw(bound, "start"), data.draw(bound, "end")
    part = Slice(0, start, end, None)
    id = data.draw(st.sampled_from(["id", "name", None]), "id")
    files = ParquetSlices(path, replace(COLUMNS, id=id), detection.types, **SMALL)
    _ = files.groups
    files = pickle.loads(pickle.dumps(files))  # as tasks get it

    wanted = frame[detection.events_of(part, frame["at"].to_numpy())]
    if detection.types is not None:
        wanted = wanted[wanted["symbol"].isin(detection.types)]
    wanted = wanted.sort_values(["at", id] if id else "at", kind="stable")
    seen = 0
    for parts in (1, 2):
        for of_key in range(parts):
            batches = list(files.batches(detection, replace(part, of_key=of_key, parts=parts)))
            assert all(len(stream) <= 5 for stream, _ in batches)
            lots = np.concatenate([[], *(s.column("lot") for s, _ in batches)])
            times = np.concatenate([[], *(s.timestamps for s, _ in batches)])
            its = wanted if parts == 1 else wanted[wanted["lot"].isin(lots)]
            np.testing.assert_array_equal(times, its["at"])
            np.testing.assert_array_equal(lots, its["lot"])
            if id is not None:
                assert [i for _, ids in batches for i in ids.to_pylist()] == its[id].tolist()
            seen += len(times)
    assert seen == 2 * len(wanted)


@pytest.mark.parametrize(
    "columns",
    [
        (pa.array([-0.0, 0.0, 1.5, -0.0]), pa.array([0.0, 1.5, 2.5, float("nan")])),
        (pa.array([0, 3, -7, 2]), pa.array([2.0, 3.0, -0.0, -7.0])),
        (pa.array([0, 3, -7, 2], pa.int8()), pa.array([-7, 2, 3, 2**40])),
        (pa.array(["p", "q", "", "p"]), pa.array(["q", "r", "p", ""], pa.large_string())),
        (
            pa.array(["p", "q", "r", "p"]).dictionary_encode(),
            pa.array(["r", "q", "p", "q"]).dictionary_encode(),
        ),
    ],
    ids=["zeros", "integers and floats", "widths", "texts", "dictionaries"],
)
def test_equal_keys_are_of_one_part_whatever_the_files_have(
    columns: tuple[pa.Array, pa.Array], tmp_path: Path
) -> None:
    for number, keys in enumerate(columns):
        table = pa.table(
            {"at": range(4 * number, 4 * number + 4), "symbol": ["A", "B"] * 2, "lot": keys}
        )
        pq.write_table(table, tmp_path / f"{number}.parquet")
    pattern = cep.parse("PATTERN SEQ(A a, B b) WHERE [lot] WITHIN 9 units")
    detection = SliceDetection(pattern, key="lot")
    files = ParquetSlices(tmp_path, COLUMNS, detection.types)
    _ = files.groups
    keys = pd.Series([key for its in columns for key in its.to_pylist()])
    part_of = {}
    for of_key in range(4):
        for stream, _ in files.batches(detection, Slice(0, None, None, None, of_key, 4)):
            part_of |= dict.fromkeys(stream.timestamps.tolist(), of_key)
    parts = pd.Series(part_of).sort_index()
    assert parts.index.tolist() == [*range(8)]
    assert (parts.groupby(keys).nunique() == 1).all()
    assert parts.nunique() > 1


def groups(first: list[int], last: list[int], rows: list[int]) -> RowGroups:
    zeros = np.zeros(len(rows), np.int64)
    return RowGroups(None, "", "", zeros, zeros, *map(np.array, (first, last, zeros, rows)))  # type: ignore[arg-type]


def test_steps_end_where_no_row_group_is_read_twice() -> None:
    by_time = groups([*range(0, 100, 10)], [*range(9, 109, 10)], [5] * 10)
    assert list(by_time.steps(0, 100, 24)) == [(t, t + 10) for t in range(0, 60, 10)] + [(60, 100)]
    # Three months that are sorted by type: five row groups of each.
    months = groups([0] * 5 + [30] * 5 + [60] * 5, [29] * 5 + [59] * 5 + [89] * 5, [4] * 15)
    assert list(months.steps(0, 90, 24)) == [(0, 30), (30, 60), (60, 90)]
    assert list(months.steps(20, 70, 24)) == [(20, 30), (30, 60), (60, 70)]
    # Nothing but to read them again.
    unsorted = groups([0] * 10, [99] * 10, [10] * 10)
    assert list(unsorted.steps(0, 100, 24)) == [(0, 24), (24, 48), (48, 72), (72, 96), (96, 100)]
    assert list(groups([], [], []).steps(0, 1)) == [(0, 1)]


def test_a_sample_of_row_groups_has_all_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"at": range(400), "symbol": ["A", "B"] * 200, "lot": 0})
    frame.loc[15, "symbol"] = "C"
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "events.parquet", row_group_size=10)
    stream, times_as_many = ParquetSlices(tmp_path, COLUMNS, ["A", "B"], sampled=100).sample()
    assert stream.counts_by_type() == {"A": 50, "B": 50} and times_as_many == 4
    assert np.diff(stream.timestamps).max() == 31  # every fourth row group
    stream, times_as_many = ParquetSlices(tmp_path, COLUMNS, ["A", "C"], sampled=100).sample()
    assert stream.counts_by_type() == {"A": 200, "B": 0, "C": 1} and times_as_many == 1


@pytest.mark.parametrize("stated", [True, False])
def test_times_that_a_footer_does_not_state_are_read(tmp_path: Path, stated: bool) -> None:
    path = tmp_path / "events.parquet"
    # A part of a nested column has the name of the time too.
    whens = pa.array([3, 1700000000000000001, 2], pa.timestamp("ns", "Europe/Berlin"))
    nested = pa.array([{"at": 9}] * 3)
    table = pa.table({"nested": nested, "at": whens, "symbol": list("ABC")})
    pq.write_table(table, path, row_group_size=2, write_statistics=stated)
    found = row_groups(ParquetSlices(path, COLUMNS).dataset(), "symbol", "at")
    assert found.first.tolist() == [3, 2]
    assert found.last.tolist() == [1700000000000000001, 2]
    assert found.begin.tolist() == [0, 2]
    missing = pa.table({"at": [1, None], "symbol": ["A", "B"]})
    pq.write_table(missing, path, write_statistics=stated)
    with pytest.raises(StreamError, match="no timestamp in column 'at'"):
        row_groups(ParquetSlices(path, COLUMNS).dataset(), "symbol", "at")
