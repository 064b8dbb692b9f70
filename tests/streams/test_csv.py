"""CSV files are the streams that pandas makes of the same rows; what is no table is an error with its line."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import DatasetError, StreamError

FIELDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=4)


def stream_of(folder: Path, content: bytes | str, name: str = "events.csv", **how: object):
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return cep.EventStream.from_csv(folder / name, type="kind", time="at", **how)


@given(st.data())
def test_a_file_is_read_as_its_rows_are_written(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("csv")
    number = data.draw(st.integers(1, 5))

    def column(of: st.SearchStrategy) -> list:
        return data.draw(st.lists(of, min_size=number, max_size=number))

    frame = pd.DataFrame(
        {
            "kind": column(FIELDS.filter(bool)),
            "at": sorted(column(st.integers(-(2**40), 2**40))),
            # As texts: with a letter in front no column is of numbers.
            "text": ["t" + its for its in column(FIELDS)],
            "x": column(st.floats(allow_nan=False, allow_infinity=False)),
            "n": column(st.integers(-(2**63), 2**63 - 1)),
        }
    )
    ending, tab = data.draw(st.sampled_from([(".csv", ","), (".tsv", "\t"), (".csv.gz", ",")]))
    frame.to_csv(folder / f"its{ending}", index=False, sep=tab, lineterminator="\n")
    read = cep.EventStream.from_csv(folder / f"its{ending}", type="kind", time="at")
    made = cep.EventStream.from_pandas(frame, type="kind", time="at")
    pd.testing.assert_frame_equal(
        read.to_pandas().astype({"type": object, "text": object}),
        made.to_pandas().astype({"type": object, "text": object}),
        check_dtype=False,  # floats that are all whole are written with a point
    )


def test_types_are_texts_and_empty_fields_missing_values(tmp_path: Path) -> None:
    read = stream_of(tmp_path, "kind,at,x,s\nNA,1,,\nTRUE,2,1.5,b\n7,3,2,NA\n")
    assert read.types_at().tolist() == ["NA", "TRUE", "7"]
    first, *others = read.column("x").tolist()
    assert math.isnan(first) and others == [1.5, 2.0]
    assert read.column("s").tolist() == [None, "b", "NA"]


def test_times_are_dates_or_integers(tmp_path: Path) -> None:
    dates = "kind,at\nA,2024-01-02 09:30:00\nB,2024-01-02T09:30:00.5\n"
    assert stream_of(tmp_path, dates).to_pandas()["time"].tolist() == [
        pd.Timestamp("2024-01-02 09:30:00"),
        pd.Timestamp("2024-01-02 09:30:00.5"),
    ]
    zoned = stream_of(tmp_path, "kind,at\nA,2024-01-02 09:30:00+01:00\n")
    assert zoned.to_pandas()["time"].tolist() == [pd.Timestamp("2024-01-02 08:30:00")]
    for time, words in (
        ("09:30:00", "time column 'at' has type time32"),
        ("1704187800.5", "time column 'at' has type double"),
        ("1\nB,yesterday", "times in 'at' are all as in ISO 8601, .*'yesterday'"),
        ("2024-01-02\nB,2024-02-30", "ISO 8601, .*'2024-02-30'"),
    ):
        with pytest.raises(StreamError, match=words):
            stream_of(tmp_path, f"kind,at\nA,{time}\n")


def test_rows_out_of_order_are_sorted_where_asked_and_keep_their_numbers(tmp_path: Path) -> None:
    rows = "kind,at\nA,3\nB,1\nC,1\n"
    with pytest.raises(StreamError) as refused:
        stream_of(tmp_path, rows)
    assert refused.value.row == 1
    assert [*stream_of(tmp_path, rows, sort=True).positions] == [1, 2, 0]


BROKEN = {
    "short row": (
        "kind,at,x\nA,1,2\nB,2\n",
        StreamError,
        "line 3: the first line names 3 columns, .* has 2",
    ),
    "long row": (
        "kind,at\nA,1\nB,2,3\n",
        StreamError,
        "line 3: the first line names 2 columns, .* has 3",
    ),
    "other separator": ("kind;at\nA;1\n", StreamError, "separated by commas, .* has ';'"),
    "twice": ("kind,at,kind\nA,1,2\n", StreamError, "two columns are named 'kind'"),
    "empty": ("", DatasetError, "cannot be read as CSV"),
    "open quote": ('kind,at,x\nA,1,"a\nB,2,b\n', StreamError, "line 2: the quote of this field"),
    "text behind a quote": (
        'kind,at,x\nA,1,a\nB,2,"5\\" pipe"\n',  # as Spark and MySQL write it
        StreamError,
        "line 3: the quote of this field is not closed at its end.* written twice",
    ),
    "UTF-16": ("kind,at\nA,1\n".encode("utf-16"), DatasetError, "UTF-16.*the text is UTF-8"),
    "names in Latin 1": ("kind,at,Größe\n".encode("latin-1"), DatasetError, "the text is UTF-8"),
    "names alone": ("kind,at\n", StreamError, "no rows below the names"),
    "not UTF-8": (b"kind,at\n\xff,1\n", DatasetError, "the text is UTF-8"),
    "missing type": ("kind,at\n,1\n", StreamError, "type"),
    "missing time": ("kind,at\nA,1\nB,\n", StreamError, "time"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_table_of_events_is_an_error_that_says_where(tmp_path: Path, case: str) -> None:
    content, error, message = BROKEN[case]
    with pytest.raises(error, match=message):
        stream_of(tmp_path, content)


def test_a_damaged_or_missing_file_is_an_error(tmp_path: Path) -> None:
    packed = gzip.compress(b"kind,at\nA,1\n" * 100)
    with pytest.raises(DatasetError, match="cannot be read as CSV"):
        stream_of(tmp_path, packed[: len(packed) // 2], "events.csv.gz")
    with pytest.raises(DatasetError, match="there is no file"):
        cep.EventStream.from_csv(tmp_path / "nowhere.csv", type="kind", time="at")


def test_quotes_where_they_are_due(tmp_path: Path) -> None:
    """One within a field that does not begin with one is a character as others."""
    rows = '"kind","at","x"\r\nA,1,"a ""b"", c\nd" \r\n"B",2,5" pipe\r\nC,3,""""\r\nD,4,""'
    for content in (rows, "\ufeff" + rows):
        read = stream_of(tmp_path, content)
        assert read.types_at().tolist() == ["A", "B", "C", "D"]
        assert read.column("x").tolist() == ['a "b", c\nd ', '5" pipe', '"', None]


@pytest.mark.parametrize(
    ("fields", "is_read"),
    [
        (["12345678901234567890", "12345678901234567891"], False),
        (["9007199254740993", "0.5", ""], False),
        (["-9007199254740993", "inf", "9007199254740992"], False),
        (["9007199254740992", "0.5"], True),
        (["10000000000000000000000", "1"], True),
        (["1e300", "9007199254740993.0", "0.1"], True),
    ],
)
def test_integers_are_exact_or_refused(tmp_path: Path, fields: list[str], is_read: bool) -> None:
    """Arrow reads those beyond 64 bits, or beside a fraction, as floats; other floats are none."""
    rows = [f"A,{at},{field}" for at, field in enumerate(fields)]
    read = stream_of(tmp_path, "\n".join(["kind,at,x", *rows]))
    if is_read:
        assert read.column("x").tolist() == [float(field) for field in fields]
    else:
        with pytest.raises(StreamError, match=r"'x' has type decimal.*cannot be compared"):
            read.column("x")


@pytest.mark.parametrize("name", ["e.csv", "E.CSV.GZ", "e.csv.gz"])
def test_gzip_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    read = stream_of(tmp_path, gzip.compress(b"kind,at\nA,1\n"), name)
    assert read.types_at().tolist() == ["A"]
