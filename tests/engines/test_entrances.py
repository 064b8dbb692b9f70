"""One truth at every entrance: whatever the events come in, and wherever, the matches are the same.

A table of events is brought in every form that users have it in, to every call that takes events.
The right matches are those of two loops over the rows, here.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import cepbench as cep
from cepbench.presentation.commands.app import app
from tests.budgets import crossed
from tests.planning.sql.in_duckdb import queried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Form = Callable[[pd.DataFrame], Any]

EVENTS = 40
MINUTES = 6
#: Until here one column has no value at all, as the first chunk, file or batch of a stream may.
SILENT = 8

#: Conditions as cepbench reads them, and as Python does.
CONDITIONS: dict[str, tuple[str, Callable[[Row, Row], bool]]] = {
    "texts": ("a.code = b.code", lambda a, b: a["code"] is not None and a["code"] == b["code"]),
    "constants": (
        "a.month = 'Jan' AND b.code = 'x'",
        lambda a, b: a["month"] == "Jan" and b["code"] == "x",
    ),
    "booleans": (
        "a.flag AND b.flag = false",
        lambda a, b: a["flag"] is True and b["flag"] is False,
    ),
    "numbers": ("a.n < b.n", lambda a, b: None not in (a["n"], b["n"]) and a["n"] < b["n"]),
    "keys": ("[month]", lambda a, b: a["month"] == b["month"]),
}
#: Some of each kind at once.
CONDITIONS["any of them"] = (
    "(a.code = b.code OR a.flag AND b.flag = false OR a.n < b.n AND b.n = 4) AND a.month != 'Feb'",
    lambda a, b: (
        a["month"] != "Feb"
        and (
            CONDITIONS["texts"][1](a, b)
            or CONDITIONS["booleans"][1](a, b)
            or (CONDITIONS["numbers"][1](a, b) and b["n"] == 4)
        )
    ),
)
#: For files, whose columns enter as those in memory do.
FEW = ("keys", "any of them")


def text_of(condition: str, clause: str = "") -> str:
    where = CONDITIONS[condition][0]
    text = f"PATTERN SEQ(A a, B b) WHERE {where} {clause} WITHIN {MINUTES} minutes"
    return text if clause else f"{text} RETURN a.row AS x, b.row AS y"


def counted(condition: str) -> str:
    return text_of(condition, "AGG COUNT, SUM(b.row)")


@functools.cache
def events() -> pd.DataFrame:
    """Microseconds, so that every format holds the times; with ties and missing values."""
    rng = np.random.default_rng(32)
    minutes = np.sort(rng.integers(0, 20, EVENTS))
    code = rng.choice(["x", "y", "3", None], EVENTS).astype(object)
    code[:SILENT] = None
    return pd.DataFrame(
        {
            "symbol": rng.choice(["A", "B", "C"], EVENTS, p=[0.4, 0.5, 0.1]),
            "ts": np.datetime64("2026-01-05T09:30:00.000001") + minutes * np.timedelta64(1, "m"),
            "row": np.arange(EVENTS),
            "code": code,
            "month": rng.choice(["Jan", "Feb"], EVENTS),
            "flag": rng.choice(np.array([True, False, None], dtype=object), EVENTS),
            "n": [None if rng.random() < 0.2 else int(rng.integers(0, 5)) for _ in range(EVENTS)],
        }
    ).astype({"ts": "datetime64[us]", "n": "Int64"})


@functools.cache
def expected(condition: str) -> list[tuple[int, int]]:
    holds = CONDITIONS[condition][1]
    rows = pa.Table.from_pandas(events(), preserve_index=False).to_pylist()
    window = pd.Timedelta(minutes=MINUTES)
    found = [
        (a["row"], b["row"])
        for a, b in itertools.product(rows, rows)
        if a["symbol"] == "A" and b["symbol"] == "B" and a["ts"] < b["ts"]
        if b["ts"] - a["ts"] <= window and holds(a, b)
    ]
    assert found, "a condition that never holds shows nothing"
    return sorted(found)


def read(frame: pd.DataFrame, **options: Any) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts", **options)


def table_of(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def from_arrow(table: Any) -> cep.EventStream:
    return cep.EventStream.from_arrow(table, type="symbol", time="ts")


def with_dictionaries(table: pa.Table) -> pa.Table:
    for name in ("symbol", "code", "month"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).dictionary_encode())
    return table


#: Tables in memory → stream.
FRAMES: dict[str, Form] = {
    "pandas": read,
    "pandas objects": lambda frame: read(frame.astype({"n": object, "symbol": object})),
    "pandas floats": lambda frame: read(frame.astype({"n": float})),
    "pandas nullable": lambda frame: read(frame.convert_dtypes()),
    "pandas on Arrow": lambda frame: read(frame.convert_dtypes(dtype_backend="pyarrow")),
    "pandas categories": lambda frame: read(
        frame.astype(dict.fromkeys(["symbol", "code", "month"], "category"))
    ),
    "pandas with a zone": lambda frame: read(
        frame.assign(ts=frame["ts"].dt.tz_localize("UTC").dt.tz_convert("America/New_York"))
    ),
    "pandas, unsorted": lambda frame: read(frame.sample(frac=1, random_state=1).sort_values(
        "symbol", kind="stable"), sort=True),
    "polars": lambda frame: from_arrow(pl.from_pandas(frame).to_arrow()),
    "arrow": lambda frame: from_arrow(table_of(frame)),
    "arrow dictionaries": lambda frame: from_arrow(with_dictionaries(table_of(frame))),
    "arrow reader": lambda frame: from_arrow(table_of(frame).to_reader(max_chunksize=5)),
    "arrow batch": lambda frame: from_arrow(table_of(frame).combine_chunks().to_batches()[0]),
}  # fmt: skip


def parquet(path: Path, frame: pd.DataFrame, *, unit: str = "us", zone: str | None = None) -> Path:
    table = table_of(frame)
    ts = table.column("ts").cast(pa.timestamp(unit)).cast(pa.timestamp(unit, tz=zone))
    table = table.set_column(table.column_names.index("ts"), "ts", ts)
    pq.write_table(table, path / "events.parquet")
    return path / "events.parquet"


def hive(path: Path, frame: pd.DataFrame, *names: str) -> Path:
    schema = table_of(frame).select(list(names)).schema
    ds.write_dataset(
        table_of(frame),
        path / "by",
        format="parquet",
        partitioning=ds.partitioning(schema, flavor="hive"),
    )
    return path / "by"


def in_files(path: Path, frame: pd.DataFrame) -> Path:
    """The first file has a column of type null, and another file lies beside."""
    folder = path / "files"
    folder.mkdir()
    for number, part in enumerate([frame[:SILENT], frame[SILENT:]]):
        table = pa.Table.from_pandas(part, preserve_index=False)
        assert number or pa.types.is_null(table.schema.field("code").type)
        pq.write_table(table, folder / f"{number}.parquet")
    (folder / "README.md").write_text("How these were made.\n")
    return folder


def dictionaries(path: Path, frame: pd.DataFrame) -> Path:
    pq.write_table(with_dictionaries(table_of(frame)), path / "coded.parquet")
    return path / "coded.parquet"


#: Files → path. Nothing is said of their order, so they are sorted when read.
FILES: dict[str, Callable[[Path, pd.DataFrame], Path]] = {
    "microseconds": parquet,
    "nanoseconds": functools.partial(parquet, unit="ns"),
    "a zone": functools.partial(parquet, zone="UTC"),
    "dictionaries": dictionaries,
    "a first file without texts": in_files,
    "folders by symbol": lambda path, frame: hive(path, frame, "symbol"),
    "folders by month": lambda path, frame: hive(path, frame, "month"),
    "folders by month and symbol": lambda path, frame: hive(path, frame, "month", "symbol"),
    "unsorted": lambda path, frame: parquet(path, frame[::-1]),
}

ORDER = cep.OrderPlan(["b", "a"])


def pairs(table: Any) -> list[tuple[int, int]]:
    rows = table.to_pylist() if isinstance(table, pa.Table) else table.to_dict("records")
    return sorted((int(row["x"]), int(row["y"])) for row in rows)


def batches(stream: cep.EventStream) -> Iterable[cep.EventStream]:
    return stream.batches(5)


def live(
    stream: cep.EventStream, condition: str, *, restored: bool = False
) -> list[tuple[int, int]]:
    detector = cep.Detector(text_of(condition), ORDER)
    found = []
    for batch in batches(stream):
        found += pairs(detector.push(batch))
        if restored:
            detector = cep.Detector.restore(detector.snapshot())
    return sorted(found + pairs(detector.flush()))


def adaptive(stream: cep.EventStream, condition: str) -> list[tuple[int, int]]:
    detector = cep.AdaptiveDetector(text_of(condition))
    found = [pairs(detector.push(batch)) for batch in batches(stream)]
    return sorted(itertools.chain(*found, pairs(detector.flush())))


def workload_of(condition: str) -> cep.Workload:
    more = f"PATTERN SEQ(A a, B b, C c) WITHIN {MINUTES} minutes"
    return cep.Workload({"q": text_of(condition), "other": more})


def live_workload(stream: cep.EventStream, condition: str) -> list[tuple[int, int]]:
    detector = cep.Detector(workload_of(condition))
    found = [pairs(detector.push(batch)["q"]) for batch in batches(stream)]
    return sorted(itertools.chain(*found, pairs(detector.flush()["q"])))


def in_duckdb(stream: cep.EventStream, condition: str) -> list[tuple[int, int]]:
    events = stream.to_pandas().reset_index()
    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", events)
    return sorted(queried(connection, cep.to_sql(text_of(condition)))[1])


def last_value(stream: cep.EventStream, condition: str) -> tuple[int, int]:
    values = cep.aggregate(counted(condition), stream, scope="stream").values
    return int(values["COUNT"].iloc[-1]), int(values["SUM(b.row)"].iloc[-1])


def last_live_value(stream: cep.EventStream, condition: str) -> tuple[int, int]:
    aggregator = cep.Aggregator(counted(condition), scope="stream")
    pushed = [aggregator.push(batch) for batch in batches(stream)]
    values = pd.concat([its for its in [*pushed, aggregator.flush()] if len(its)])
    return int(values["COUNT"].iloc[-1]), int(values["SUM(b.row)"].iloc[-1])


#: Calls that take a stream → the matches, or how many they are and the sum of their last rows.
ENTRANCES: dict[str, Callable[[cep.EventStream, str], Any]] = {
    "evaluate": lambda stream, of: pairs(cep.evaluate(text_of(of), stream, ORDER).matches),
    "without a plan": lambda stream, of: pairs(
        cep.evaluate(text_of(of), stream, evaluator="stack-nfa").matches
    ),
    "planned": lambda stream, of: pairs(
        cep.evaluate(text_of(of), stream, cep.plan(text_of(of), cep.measure_statistics(text_of(of), stream))).matches
    ),
    "live": live,
    "restored": functools.partial(live, restored=True),
    "adaptive": adaptive,
    "workload": lambda stream, of: pairs(cep.evaluate(workload_of(of), stream)["q"].matches),
    "live workload": live_workload,
    "SQL": in_duckdb,
    "values": last_value,
    "live values": last_live_value,
}  # fmt: skip


def check(stream: cep.EventStream, tried: Iterable[tuple[str, str]]) -> None:
    """That each of these entrances finds what is right under a condition."""
    for condition, entrance in tried:
        right = expected(condition)
        total = (len(right), sum(last for _, last in right))
        due = total if entrance.endswith("values") else right
        assert ENTRANCES[entrance](stream, condition) == due, (entrance, condition)


#: Every two of form, condition and entrance; one form has all conditions at all entrances below.
OF_FRAMES = crossed(FRAMES, CONDITIONS, ENTRANCES)
OF_FILES = crossed(FILES, FEW, ENTRANCES)


@pytest.mark.seeded
@pytest.mark.parametrize("form", FRAMES)
def test_tables_in_memory(form: str) -> None:
    check(FRAMES[form](events()), [tried for its, *tried in OF_FRAMES if its == form])


@pytest.mark.seeded
@pytest.mark.parametrize("form", FILES)
def test_files(form: str, tmp_path: Path) -> None:
    path = FILES[form](tmp_path, events())
    stream = cep.EventStream.from_parquet(path, type="symbol", time="ts", sort=True)
    check(stream, [tried for its, *tried in OF_FILES if its == form])


def test_csv(tmp_path: Path) -> None:
    events().to_csv(tmp_path / "events.csv", index=False)
    stream = read(pd.read_csv(tmp_path / "events.csv", parse_dates=["ts"]))
    check(stream, itertools.product(CONDITIONS, ENTRANCES))


def chunks(path: Path, size: int) -> Iterator[cep.EventStream]:
    options: Any = {"parse_dates": ["ts"], "dtype": {"code": str}}
    with pd.read_csv(path, chunksize=size, **options) as parts:
        yield from map(read, parts)


@pytest.mark.parametrize("size", [1, SILENT])
def test_csv_in_chunks(size: int, tmp_path: Path) -> None:
    """The type of a column is decided for each chunk: integer, float, text, or none."""
    events().to_csv(tmp_path / "events.csv", index=False)
    read_in_chunks = [*chunks(tmp_path / "events.csv", size)]
    for condition in CONDITIONS:
        detector = cep.Detector(text_of(condition), ORDER)
        restored = cep.Detector(text_of(condition), ORDER)
        aggregator = cep.Aggregator(counted(condition), scope="stream")
        found, again, values = [], [], []
        for batch in read_in_chunks:
            found += pairs(detector.push(batch))
            again += pairs(restored.push(batch))
            restored = cep.Detector.restore(restored.snapshot())
            values.append(aggregator.push(batch))
        right = expected(condition)
        assert sorted(found + pairs(detector.flush())) == right
        assert sorted(again + pairs(restored.flush())) == right
        last = pd.concat([its for its in [*values, aggregator.flush()] if len(its)]).iloc[-1]
        assert (int(last["COUNT"]), int(last["SUM(b.row)"])) == (
            len(right), sum(last for _, last in right)
        )  # fmt: skip


@pytest.mark.parametrize("form", FILES)
def test_the_command(form: str, tmp_path: Path) -> None:
    path = FILES[form](tmp_path, events())
    for condition in FEW:
        out = tmp_path / "matches.csv"
        ran = CliRunner().invoke(
            app, ["run", text_of(condition), "--data", str(path), "--output", str(out)]
        )
        assert ran.exit_code == 0, ran.output
        assert pairs(pd.read_csv(out)) == expected(condition), condition
        ran = CliRunner().invoke(
            app,
            ["aggregate", counted(condition), "--data", str(path), "--scope", "stream", "--json"],
        )
        assert ran.exit_code == 0, ran.output
        assert json.loads(ran.stdout)["last_values"][-1]["COUNT"] == len(expected(condition))


@pytest.mark.parametrize("form", FILES)
def test_spark_by_path(spark: SparkSession, form: str, tmp_path: Path) -> None:
    path = FILES[form](tmp_path, events())
    found = cep.spark.detect(
        path, text_of("any of them"), ORDER, time="ts", type="symbol", output="arrow", slices=3
    )
    assert pairs(found) == expected("any of them")
    values = cep.spark.aggregate(
        path, counted("keys"), time="ts", type="symbol", scope="trigger"
    ).values
    assert values["COUNT"].sum() == len(expected("keys"))


@pytest.mark.parametrize("form", ["a table", "microseconds", "folders by month"])
def test_spark_by_frame(spark: SparkSession, form: str, tmp_path: Path) -> None:
    """Of a table, and of files that Spark itself reads."""
    if form == "a table":
        frame = spark.createDataFrame(table_of(events()))
    else:
        frame = spark.read.parquet(str(FILES[form](tmp_path, events())))
    found = cep.spark.detect(
        frame, text_of("any of them"), ORDER, time="ts", type="symbol", id="row", output="arrow",
        slices=3,
    )  # fmt: skip
    assert pairs(found) == expected("any of them")


def test_nested_columns_are_named_when_they_are_read() -> None:
    frame = events().assign(parts=[[1, 2]] * EVENTS)
    check(read(frame), itertools.product(FEW, ENTRANCES))
    with pytest.raises(cep.CepbenchError, match="'parts' has type list"):
        cep.evaluate(
            "PATTERN SEQ(A a) WHERE a.parts = 1 WITHIN 1 minutes", read(frame), cep.OrderPlan(["a"])
        )
