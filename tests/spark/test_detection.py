"""Detection by Spark: the matches of one pass, however the stream is divided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import cepbench as cep
from cepbench.engines.detection.slices import SliceDetection
from cepbench.engines.runs.slices import Budget, Slice
from cepbench.errors import (
    DatasetError,
    EvaluationError,
    MissingTypeWarning,
    PartialMatchLimitError,
    PatternError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.spark.balance import Density, Slices, planned_slices
from cepbench.spark.detection import DetectionJob
from cepbench.spark.slice_job import TimeLimit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = 600
#: One slice is shorter than the windows below, and one without events.
STARTS = (40, 42, 500)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Integer times with many ties, in no order; ``no`` is an event's position once sorted."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "symbol": rng.choice(list("ABCD"), EVENTS),
            "at": rng.integers(0, 120, EVENTS),
            "ven.ue": rng.choice(["x", "y", None], EVENTS),
            "lot": rng.integers(1, 4, EVENTS),
        }
    )
    order = np.argsort(frame["at"].to_numpy(), kind="stable")
    return frame.assign(no=np.argsort(order))


@pytest.fixture(scope="module")
def df(spark: SparkSession, frame: pd.DataFrame) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False)).cache()


def rows(found: pa.Table | Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(tuple(v) if isinstance(v, list) else v for v in row.values())
        for row in (found.to_pylist() if isinstance(found, pa.Table) else found)
    )


def in_one_pass(frame: pd.DataFrame, text: str, plan: Any = None, **options: Any) -> cep.Result:
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="at", sort=True)
    return cep.evaluate(text, stream, plan, output="arrow", **options)


#: With an attribute to divide the stream by, instead of time or if that is refused; and what events
#: are named by: their positions or a column.
CASES = [
    ("SEQ(NOT(D n), A a, B b) WHERE a.lot < b.lot WITHIN < 5 units", None, "no"),
    ("SEQ(A a, KL(B b)) WHERE a.lot = b.lot WITHIN 3 units RETURN a, b, b.lot", "lot", None),
    ("OR(SEQ(A a, C c), AND(A a, B b, NOT(D n))) WITHIN 3 units", None, "no"),
    ("AND(A a, ANY b) STRATEGY strict_contiguity WITHIN 4 units", None, None),
    ("SEQ(A a, B b, C c) WHERE [lot] STRATEGY consuming WITHIN 9 units", "lot", "no"),
    ("SEQ(A a, NOT(D n), B b, C c) ORDER BY arrival WITHIN 2 units", None, "no"),
]


def plan_of(pattern: cep.Pattern) -> Any:
    arrivals = dict.fromkeys(pattern.names, 1.0)
    return cep.plan(pattern, cep.Statistics(cardinalities=arrivals, stream_rate=1.0))


def check_divisions(
    events: DataFrame | Path,
    stream: cep.EventStream,
    cases: Iterable[tuple[str, str | None, str | None]],
    positions: Sequence[int] | None = None,
) -> None:
    """All cases in one Spark job, their rows as JSON; positions are those of the stream or as given."""
    found, expected = [], Counter()
    for text, key, id in cases:
        pattern = cep.parse(f"PATTERN {text}")
        plan = plan_of(pattern)
        whole = cep.evaluate(pattern, stream, plan, output="arrow")
        assert whole.metrics.matches > 20
        listed = rows(whole.arrow)
        if positions is not None and id is None and not pattern.returns:
            listed = Counter({tuple(positions[p] for p in row): n for row, n in listed.items()})
        expected.update({(text, *row): n for row, n in listed.items()})
        is_consuming = pattern.strategy.name == "consuming"
        made = Slices(STARTS, 1 if key is None else 2, key, not is_consuming, (plan,))
        given = events
        if isinstance(events, DataFrame) and id is not None:
            given = events.repartition(3, "lot")  # the order of the rows does not matter
        options: dict[str, Any] = {"time": "at", "type": "symbol", "id": id, "key": key}
        its = cep.spark.detect(given, pattern, **options, slices=made)
        row = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
        found.append(its.select(F.lit(text).alias("case"), row.alias("row")))
    listed = reduce(DataFrame.unionAll, found).toArrow().to_pylist()
    read = ({"case": its["case"]} | json.loads(its["row"]) for its in listed)
    assert rows(read) == expected


def test_any_division_is_one_pass(df: DataFrame, frame: pd.DataFrame) -> None:
    in_order = frame.sort_values("at", kind="stable")
    check_divisions(df, cep.EventStream.from_pandas(in_order, type="symbol", time="at"), CASES)


#: Of files: identifiers, values alone, positions in the whole stream.
FILE_CASES = [
    ("SEQ(NOT(D n), A a, B b) WHERE a.lot < b.lot WITHIN < 5 units", None, "no"),
    ('SEQ(A a, B b, C c) WHERE ["ven.ue"] STRATEGY consuming WITHIN 9 units', "ven.ue", "no"),
    ("AND(A a, ANY b) STRATEGY strict_contiguity WITHIN 4 units RETURN a.lot, b.lot", None, None),
    ("AND(A a, ANY b) STRATEGY strict_contiguity WITHIN 4 units", None, None),
    ("SEQ(A a, ANY b) ORDER BY arrival STRATEGY strict_contiguity WITHIN 4 units", None, None),
]


@pytest.fixture(scope="module")
def folder(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The events in two files of many row groups."""
    path = tmp_path_factory.mktemp("detection")
    for part, its in frame.groupby(frame["at"] < 45):
        table = pa.Table.from_pandas(its, preserve_index=False)
        pq.write_table(table, path / f"{part}.parquet", row_group_size=40)
    return path


def test_tasks_read_their_slices_of_files(spark: SparkSession, folder: Path) -> None:
    """Events of one time are in the order of the files, whose rows are their positions."""
    frame = pd.concat(map(pd.read_parquet, sorted(folder.iterdir())), ignore_index=True)
    in_order = frame.sort_values("at", kind="stable")
    stream = cep.EventStream.from_pandas(in_order, type="symbol", time="at")
    check_divisions(folder, stream, FILE_CASES, in_order.index.to_list())


AWKWARD = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.X = b.X WITHIN 1 minute"


def awkward(folder: Path) -> pd.DataFrame:
    """Events as pandas writes them, in two files: nanoseconds, names that differ by case, and so on."""
    size = 120
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "symbol": pd.Categorical(rng.choice(["A", "B"], size)),
            # Two events are a minute apart, or a nanosecond more.
            "ts": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(60 * rng.integers(0, 12, size), unit="s")
            + pd.to_timedelta(rng.integers(0, 2, size), unit="ns"),
            "x": rng.normal(size=size),
            "X": rng.integers(0, 2, size).astype(np.uint8),
            "unused": [[1]] * size,
            "no": pd.Categorical([f"{number:03}" for number in rng.permutation(size)]),
            "number": np.arange(size, dtype=np.uint32),
        }
    )
    folder.mkdir()
    frame[:50].to_parquet(folder / "first.parquet")
    frame[50:].to_parquet(folder / "second.parquet")
    return frame


def test_what_pandas_writes(spark: SparkSession, tmp_path: Path) -> None:
    frame = awkward(tmp_path / "événements 1")
    path = (tmp_path / "événements 1").as_uri()
    options: dict[str, Any] = {"time": "ts", "type": "symbol"}
    in_order = frame.sort_values("ts", kind="stable")
    rows_of = in_order.index.to_list()
    stream = cep.EventStream.from_pandas(in_order.drop(columns="no"), type="symbol", time="ts")
    plan = cep.OrderPlan(["a", "b"])
    whole = cep.evaluate(AWKWARD, stream, plan)
    expected = {tuple(rows_of[p] for p in row) for row in whole.matches.to_numpy()}
    assert len(expected) > 20

    made = cep.spark.slices(path, AWKWARD, plan, **options, tasks=2)
    found = cep.spark.detect(path, AWKWARD, **options, slices=made, output="arrow")
    assert set(rows(found)) == expected
    found = cep.spark.detect(path, AWKWARD, **options, id="no", slices=made, output="arrow")
    assert set(rows(found)) == {tuple(frame["no"][p] for p in row) for row in expected}
    measured = cep.spark.measure_statistics(path, AWKWARD, **options)
    assert set(measured.rates or {}) == {"a", "b"}
    counted = cep.spark.aggregate(path, AWKWARD.replace("WITHIN", "AGG COUNT WITHIN"), slices=2)
    assert counted.rows == cep.aggregate(counted.pattern, stream).rows


NO_PARQUET = {
    "events.csv": "symbol,ts\nA,1\n",
    "folder/events.csv": "symbol,ts\nA,1\n",
    "text.parquet": "no Parquet at all",
    "empty/README": "",
}


def test_what_is_no_parquet_is_refused_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    for name, content in NO_PARQUET.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "empty" / "README").unlink()
    text = "PATTERN SEQ(A a, B b) WITHIN 1 units"
    for name in ("events.csv", "folder", "text.parquet", "empty", "missing", "*.parquet"):
        options: dict[str, Any] = {"time": "ts", "type": "symbol"}
        given = str(tmp_path / name)
        for call in (
            lambda: cep.spark.detect(given, text, **options),  # noqa: B023
            lambda: cep.spark.measure_statistics(given, text, **options),  # noqa: B023
            lambda: cep.spark.aggregate(given, text.replace("WITHIN", "AGG COUNT WITHIN")),  # noqa: B023
        ):
            with pytest.raises(DatasetError) as raised:
                call()
            assert str(tmp_path) in str(raised.value) and len(str(raised.value)) < 500
    with pytest.raises(DatasetError, match=r"spark\.read\.parquet"):
        cep.spark.detect("s3://bucket/events", text, time="ts", type="symbol")


def test_columns_that_differ_by_case_in_a_data_frame(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "A", 1.0, 2.0)], ["ts", "symbol", "x", "X"])
    options: dict[str, Any] = {"time": "ts", "type": "symbol"}
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 1 units"
    with pytest.raises(StreamError, match=r"'x' and 'X' apart; set spark\.sql\.caseSensitive"):
        cep.spark.detect(df, text, **options)


@pytest.fixture(scope="module")
def long_frame() -> pd.DataFrame:
    """More events than a detector gets at a time."""
    rng = np.random.default_rng(8)
    kinds = {"symbol": rng.choice(list("ABCD"), 70_000), "lot": rng.integers(0, 30, 70_000)}
    return pd.DataFrame({"at": np.sort(rng.integers(0, 40_000, 70_000)), **kinds})


@pytest.mark.parametrize(
    ("text", "reads", "id", "key", "output"),
    [
        ("SEQ(NOT(D n), A a, B b) WHERE a.lot = b.lot", "files", "no", None, "arrow"),
        ("SEQ(NOT(D n), A a, B b) WHERE a.lot = b.lot", "files", None, None, "count"),
        ("SEQ(A a, B b) WHERE a.lot = b.lot", "events", None, None, "arrow"),
        ("SEQ(A a, KL(B b), NOT(D n)) WHERE [lot]", "events", "no", "lot", "count"),
    ],
)
def test_slices_that_take_too_long_are_cut(
    spark: SparkSession, long_frame: pd.DataFrame, tmp_path: Path,
    text: str, reads: str, id: str | None, key: str | None, output: str,
) -> None:  # fmt: skip
    """Each after its first batch."""
    pattern = cep.parse(f"PATTERN {text} WITHIN 20 units")
    plan = plan_of(pattern)
    frame = long_frame.assign(no=range(len(long_frame)))
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="at")
    whole = cep.evaluate(pattern, stream, plan, output="arrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=9_000)
    given = tmp_path if reads == "files" else spark.createDataFrame(table)
    job = DetectionJob.of(given, pattern, "at", "symbol", id, key, None, output)
    made = Slices((3_000,), 1 if key is None else 2, key, plans=(plan,), patience=0.0)
    rounds = job.at_once(made, DataFrame.toArrow)
    assert len(rounds) > 1
    if output == "arrow":
        assert rows(pa.concat_tables(rounds)) == rows(whole.arrow)
        return
    counts = pa.concat_tables(rounds).to_pandas()
    assert counts["matches"].sum() == whole.metrics.matches > 20
    assert counts["events"].sum() == (stream.of_types(pattern.types or ()).timestamps >= 0).sum()
    # The rest of the second slice, or of each of its parts, was divided.
    assert len(counts) >= 2 * made.tasks


def test_a_rest_is_worth_the_events_around_it() -> None:
    """Not shorter than two windows, nor divided into pieces that are."""
    cuts = SimpleNamespace(value=[(1, 500)])
    whole = Slices((100, 700), plans=(None,))
    limit = TimeLimit(0.0, 40, cuts)  # type: ignore[arg-type]
    for wanted, expected in [(3, [500, 566, 633, 700]), (99, [500, 540, 580, 620, 660, 700])]:
        pieces = limit.rests(whole.all_parts(), 2_000, wanted)
        assert [its.start for its in pieces] + [pieces[-1].end] == expected
        assert {its.number for its in pieces} == {1}
    frame = pd.DataFrame({"type": ["A"], "time": [661]})
    events = cep.EventStream.from_pandas(frame, type="type", time="time")
    for end, cut in [(701, None), (702, 662), (None, 662)]:
        budget = Budget(0.0, 40)
        budget.after(Slice(0, 0, end, None), events)
        assert budget.cut == cut


def test_slices_from_a_sample(df: DataFrame, frame: pd.DataFrame) -> None:
    text = 'PATTERN SEQ(A a, B b) WHERE ["ven.ue"] OUTPUT non_overlap WITHIN 5 units'
    options: dict[str, Any] = {"time": "at", "type": "symbol"}
    by_key = cep.spark.slices(df, text, **options, tasks=3)
    assert (by_key.tasks, by_key.key, by_key.copied) == (3, "ven.ue", 0)
    counts = cep.spark.detect(df, text, **options, slices=by_key, output="count").toPandas()
    expected = in_one_pass(frame, text, plan_of(cep.parse(text)))
    assert counts["matches"].sum() == expected.metrics.matches > 20
    assert (counts["events"].sum(), counts["copied"].sum()) == (sum(frame["symbol"] < "C"), 0)

    text = text.replace("OUTPUT non_overlap ", "")
    by_time = cep.spark.slices(df, text, "per-slice", **options, tasks=3)
    assert by_time.tasks == len(by_time.plans) == 3
    counts = cep.spark.detect(df, text, **options, slices=by_time, output="count").toPandas()
    expected = in_one_pass(frame, text, plan_of(cep.parse(text)))
    assert counts["matches"].sum() == expected.metrics.matches
    table = by_time.table.sort_values("start", na_position="first")
    measured = counts.sort_values("slice")
    np.testing.assert_allclose(table["events"], measured["events"], rtol=0.2)
    np.testing.assert_allclose(table["copied"], measured["copied"], atol=15)
    assert table["work"].max() < 1.3 * table["work"].min()
    assert "3 tasks: 3 slices of time" in repr(by_time) and "copied" in repr(by_time)


def test_slices_balance_partial_matches_and_not_events() -> None:
    """Half of the events in a tenth of the time, where there are most partial matches."""
    rng = np.random.default_rng(5)
    times = np.sort(
        np.concatenate((rng.integers(0, 90_000, 5000), rng.integers(90_000, 100_000, 5000)))
    )
    types = rng.choice(["A", "B"], len(times)).astype(object)
    events = pd.DataFrame({"time": times, "type": types})
    density = Density.of(times, types, {"A": sum(types == "A"), "B": sum(types == "B")})
    assert density.events.sum() == pytest.approx(10_000)
    detection = SliceDetection(cep.parse("PATTERN SEQ(A a, B b) WITHIN 400 units"))
    pieces = [cep.EventStream.from_pandas(events, type="type", time="time", attributes=["type"])]
    made = planned_slices(detection, density, pieces, None, "DP-B", tasks=4, cores=2)
    assert made.starts[0] > 80_000
    assert made.table["work"].max() < 1.4 * made.table["work"].min()
    assert made.table["events"].max() > 2 * made.table["events"].min()
    assert made.table["seconds"].min() > 0
    # Without a wish, no more slices than keep copied events below a twentieth.
    few = planned_slices(detection, density, pieces, None, "DP-B", tasks=None, cores=100)
    assert few.tasks == 100  # but one for each core
    some = planned_slices(detection, density, pieces, None, "DP-B", tasks=None, cores=2)
    assert 2 <= some.tasks < 8 and some.copied < 0.06
    tied = SliceDetection(cep.parse("PATTERN SEQ(A a, B b) WHERE [type] WITHIN 400 units"))
    both = planned_slices(tied, density, pieces, None, "DP-B", tasks=None, cores=2)
    assert (both.key, both.tasks >= 8) == ("type", True) and both.copied < 0.06


def test_the_engine_of_the_least_expected_time_runs_all_slices(
    df: DataFrame, frame: pd.DataFrame
) -> None:
    text = "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].lot > b[i-1].lot WITHIN 4 units"
    columns = {"time": "at", "type": "symbol"}
    made = cep.spark.slices(df, text, **columns, tasks=2, output="count")
    assert made.choice is not None
    first, second, *_ = made.choice.seconds.items()
    assert first[1] <= second[1] + 2e-4 and first[0] == made.choice.evaluator != second[0]
    assert f"{first[0]} was chosen" in made.describe()
    job = DetectionJob.of(df, cep.parse(text), "at", "symbol", None, None, None, "count")
    assert job.divided(made).slicer.evaluator == first[0]
    found = cep.spark.detect(df, text, **columns, slices=made, id="no")
    assert found.count() == in_one_pass(frame, text).metrics.matches
    for given in ({"evaluator": "tree"}, {"generator": "GREEDY"}):
        assert cep.spark.slices(df, text, **columns, tasks=2, **given).choice is None


def test_datetimes_are_divided_as_the_same_stream_in_milliseconds() -> None:
    rng = np.random.default_rng(5)
    early, late = rng.choice(9 * 10**6, 300, replace=False), rng.choice(10**6, 300, replace=False)
    times = np.sort(np.concatenate((early, late + 9 * 10**6)))
    frame = pd.DataFrame({"type": rng.choice([*"AAB"], 600), "time": times})
    found = []
    for unit, text in ((1, "400000 units"), (10**6, "400 seconds")):
        times = frame["time"] if unit == 1 else pd.to_datetime(frame["time"], unit="ms")
        stream = cep.EventStream.from_pandas(frame.assign(time=times), type="type", time="time")
        types = frame["type"].to_numpy(object)
        density = Density.of(stream.timestamps, types, frame["type"].value_counts().to_dict())
        detection = SliceDetection(cep.parse(f"PATTERN SEQ(A a, B b) WITHIN {text}"))
        made = planned_slices(detection, density, [stream], None, "DP-B", tasks=4, cores=2)
        found.append((np.array(made.starts) / unit, made.table))
    (starts, table), (of_datetimes, its_table) = found
    np.testing.assert_allclose(starts, of_datetimes, atol=100)
    for name in ("events", "copied", "partial_matches", "work"):
        np.testing.assert_allclose(table[name], its_table[name], rtol=0.02)
    assert table["partial_matches"].min() > 10


def test_statistics_and_plans(df: DataFrame, frame: pd.DataFrame) -> None:
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.lot < b.lot AND c.lot = 1 WITHIN 20 units"
    found = cep.spark.measure_statistics(df, text, time="at", type="symbol")
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="at", sort=True)
    direct = cep.measure_statistics(text, stream)
    for name, rate in (direct.rates or {}).items():
        assert (found.rates or {})[name] == pytest.approx(rate, rel=0.1)
    assert set(found.selectivities) == set(direct.selectivities)
    for pair, value in direct.selectivities.items():
        assert found.selectivities[pair] == pytest.approx(value, rel=0.2)
    planned = cep.spark.plan(df, text, "DP-LD", time="at", type="symbol")
    assert planned == cep.plan(text, found, "DP-LD")


def test_datetimes_and_nothing(spark: SparkSession) -> None:
    frame = pd.DataFrame(
        {"ts": pd.date_range("2026-01-05", periods=40, freq="s"), "type": ["A", "B"] * 20}
    )
    # Arrow has no intervals of months.
    df = spark.createDataFrame(frame).withColumn("lag", F.expr("INTERVAL '1' MONTH"))
    text = "PATTERN SEQ(A a, B b) WITHIN 2 seconds"
    options: dict[str, Any] = {"time": "ts", "type": "type", "output": "arrow"}
    expected = cep.evaluate(
        text, cep.EventStream.from_pandas(frame, type="type", time="ts"), cep.OrderPlan(["a", "b"])
    )
    found = cep.spark.detect(df, text, slices=3, **options)
    assert rows(found) == Counter(expected.matches.itertuples(index=False, name=None))
    nothing = cep.spark.detect(df.limit(0), text, slices=1, **options)
    assert (nothing.num_rows, nothing.column_names) == (0, ["a", "b"])
    with pytest.raises(StreamError, match="no type for column 'lag', interval month"):
        cep.spark.detect(df, text.replace("WITHIN", "WHERE [lag] WITHIN"), **options)
    never = F.when(F.col("type") == "A", F.col("ts")).otherwise(F.expr("TIMESTAMP'9999-12-31'"))
    with pytest.raises(StreamError, match="'ts' does not fit nanoseconds"):
        cep.spark.detect(df.withColumn("ts", never), text, slices=3, **options)


@pytest.mark.parametrize(
    ("text", "options", "kind", "words"),
    [
        ("SEQ(A a, X b)", {}, MissingTypeWarning, "no event of type 'X'"),
        ("SEQ(A a, B b) WHERE a.lott > 1", {}, StreamError, "did you mean 'lot'"),
        ("SEQ(A a, B b)", {"time": "when"}, StreamError, "no column 'when'"),
        ("SEQ(A a, B b)", {"time": "symbol"}, StreamError, r"'symbol' has type string; .*cast\(\"timestamp\"\)"),
        ("SEQ(A a, B b)", {"key": "lot"}, UnsupportedPatternError, r"WHERE \[lot\]"),
        ("SEQ(A a, B b) STRATEGY consuming", {}, UnsupportedPatternError, "cut in time"),
        ("SEQ(A a, B b) OUTPUT non_overlap", {}, UnsupportedPatternError, "in one pass"),
        ("SEQ(A a, B b) AGG COUNT", {}, PatternError, "cep.aggregate"),
        ("SEQ(A a, B b)", {"output": "table"}, EvaluationError, "matches, count, arrow"),
        ("SEQ(A a, B b)", {"evaluator": "mine"}, EvaluationError, "mine is user-defined"),
        ("SEQ(A a, B b)", {"plan": "best"}, EvaluationError, "per-slice"),
        ("SEQ(A a, B b)", {"slices": 0}, EvaluationError, "slices"),
        ("SEQ(A a, B b)", {"slices": Slices(STARTS, 2, "lot")}, UnsupportedPatternError, "key='lot'"),
        ("SEQ(A a, B b) WHERE [lot] STRATEGY consuming", {"slices": Slices(STARTS)}, EvaluationError,
         "slices are of time"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_the_job(
    df: DataFrame, text: str, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    @cep.plan_evaluator(name="mine")
    def nothing(pattern: cep.Pattern, stream: cep.EventStream, plan: Any) -> Any:
        raise AssertionError

    with pytest.raises(kind, match=words):
        cep.spark.detect(
            df, f"PATTERN {text} WITHIN 5 units", **{"time": "at", "type": "symbol"} | options
        )


def test_an_error_of_a_task_is_the_one_it_raised(df: DataFrame) -> None:
    pattern = "PATTERN SEQ(A a, KL(B b)) WITHIN 100 units"
    made = Slices((60,), plans=(cep.OrderPlan(["a", "b"]),))
    with pytest.raises(PartialMatchLimitError, match=r"^slice \d: so many events"):
        cep.spark.detect(df, pattern, time="at", type="symbol", slices=made, output="arrow")
