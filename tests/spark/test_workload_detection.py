"""Workloads on Spark: every query has the matches of one pass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench.engines.runs.choice import Choice
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    MissingTypeWarning,
    PlanError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.spark.balance import Slices
from cepbench.spark.detection import DetectionJob
from tests.drawn_events import below, drawn_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORKLOAD = cep.Workload(
    {
        "short": "PATTERN SEQ(A a, B b) WHERE a.lot = b.lot WITHIN 9 units",
        "long": "PATTERN SEQ(A a, KL(C c), B b) WHERE a.lot = b.lot AND c.lot = a.lot WITHIN 9 units",
        "of values": "PATTERN AND(C c, NOT(D n)) WHERE n.lot = c.lot WITHIN 3 units RETURN c.lot, c",
    }
)
OPTIONS: dict[str, Any] = {"time": "at", "type": "symbol"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    frame = drawn_events(500, "ABCD", seed=4, within=400, names=("symbol", "at"), lot=below(3))
    return frame.assign(no=range(len(frame)))


@pytest.fixture(scope="module")
def df(spark: SparkSession, frame: pd.DataFrame) -> DataFrame:
    return spark.createDataFrame(frame)


@pytest.fixture(scope="module")
def whole(frame: pd.DataFrame) -> Any:
    stream = cep.EventStream.from_pandas(frame, type="symbol", time="at")
    return cep.evaluate(WORKLOAD, stream, output="arrow")


def rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(tuple(v) if isinstance(v, list) else v for v in row.values())
        for row in table.to_pylist()
    )


def test_every_query_has_its_matches(
    df: DataFrame, frame: pd.DataFrame, whole: Any, tmp_path: Path
) -> None:
    plan = cep.WorkloadPlan(WORKLOAD, sources={"short": None, "long": "short", "of values": None})
    made = Slices((100, 103, 300), plans=(plan,))
    found = cep.spark.detect(df, WORKLOAD, **OPTIONS, slices=made, output="arrow")
    assert [*found] == [*WORKLOAD.patterns]
    for query, its in whole.items():
        assert rows(found[query]) == rows(its.arrow) and its.metrics.matches > 20
    orders = {"long": cep.OrderPlan(["b", "a", "c"])}
    lazy = cep.spark.detect(df, WORKLOAD, orders, **OPTIONS, id="no", slices=2)
    matches = lazy.where("query = 'long'").select("long.*").toArrow()
    assert rows(matches) == rows(whole["long"].arrow)
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "events.parquet")
    counts = cep.spark.detect(tmp_path, WORKLOAD, **OPTIONS, slices=made, output="count")
    numbers = pd.DataFrame([row["matches"].asDict() for row in counts.collect()]).sum()
    assert numbers.to_dict() == {query: its.metrics.matches for query, its in whole.items()}


def test_each_query_from_scratch_has_the_engine_of_the_least_expected_time(
    df: DataFrame, whole: Any
) -> None:
    made = cep.spark.slices(df, WORKLOAD, **OPTIONS, tasks=2)
    (plan,) = made.plans
    scratch = {query for query in WORKLOAD.patterns if plan.reuse(query).source is None}
    assert {*made.choice} == scratch and made.evaluator.keys() == scratch
    for query, choice in made.choice.items():
        assert f"{query}: {choice.evaluator} was chosen" in made.describe()
    engines = {"short": "sase", "of values": "zstream"}
    plan = cep.WorkloadPlan(WORKLOAD, sources={"short": None, "long": "short", "of values": None})
    choices = {query: Choice(engine, dict) for query, engine in engines.items()}
    made = Slices((100, 300), plans=(plan,), choice=choices)
    job = DetectionJob.of(df, WORKLOAD, "at", "symbol", None, None, None, "arrow").divided(made)
    detector = job.slicer.detector(plan)
    assert {query: detector.evaluator_of(query) for query in engines} == engines
    found = cep.spark.detect(df, WORKLOAD, **OPTIONS, slices=made, output="arrow")
    for query, its in whole.items():
        assert rows(found[query]) == rows(its.arrow)
    made = cep.spark.slices(df, WORKLOAD, **OPTIONS, tasks=2, evaluator="tree")
    assert made.choice is None


def test_slices_for_counts_of_what_is_only_counted_list_no_matches(df: DataFrame) -> None:
    made = Slices((100, 300), choice=Choice("sase", dict))
    text = "PATTERN AND(A a, B b) WHERE a.lot < b.lot WITHIN 9 units"
    counts = cep.spark.detect(df, text, **OPTIONS, slices=made, output="count").toPandas()
    matches = cep.spark.detect(df, text, **OPTIONS, evaluator="tree", output="arrow")
    assert counts["matches"].sum() == len(matches) > 0
    with pytest.raises(UnsupportedPatternError, match="sase cannot run AND"):
        cep.spark.detect(df, text, **OPTIONS, slices=made)


def test_statistics_and_plans(df: DataFrame, frame: pd.DataFrame) -> None:
    found = cep.spark.measure_statistics(df, WORKLOAD, **OPTIONS)
    assert [*found] == [*WORKLOAD.patterns]
    alone = cep.spark.measure_statistics(df, WORKLOAD.patterns["long"], **OPTIONS)
    for name, rate in alone.rates.items():
        assert found["long"].rates[name] == pytest.approx(rate, rel=0.1)
    assert found["long"].stream_rate == pytest.approx(alone.stream_rate, rel=0.1)
    for pair, value in alone.selectivities.items():
        assert found["long"].selectivities[pair] == pytest.approx(value, rel=0.2)
    planned = cep.spark.plan(df, WORKLOAD, "CHASE", **OPTIONS)
    assert planned == cep.plan_workload(WORKLOAD, found, "CHASE")
    made = cep.spark.slices(df, WORKLOAD, "per-slice", **OPTIONS, tasks=3)
    assert made.tasks == len(made.plans) == 3
    assert all(plan.workload == WORKLOAD for plan in made.plans)
    by_key = cep.spark.slices(df, WORKLOAD, **OPTIONS, key="lot", tasks=3)
    assert (by_key.tasks, by_key.key, by_key.copied) == (3, "lot", 0)


def test_a_type_without_events_is_reported_once(df: DataFrame) -> None:
    queries = {
        "q": "PATTERN SEQ(A a, X b) WITHIN 5 units",
        "r": "PATTERN SEQ(B a, X b) WITHIN 9 units",
    }
    with pytest.warns(MissingTypeWarning, match="no event of type 'X'") as reported:
        found = cep.spark.detect(df, cep.Workload(queries), **OPTIONS, slices=1, output="arrow")
    assert len(reported) == 1
    assert "missing_types=" not in str(reported[0].message)  # which detect does not have
    assert [table.num_rows for table in found.values()] == [0, 0]


@pytest.mark.parametrize(
    ("queries", "options", "kind", "words"),
    [
        ({"q": "SEQ(A a, B b) WHERE a.lott > 1"}, {}, StreamError, "did you mean 'lot'"),
        ({"q": "SEQ(A a, B b) WHERE [lot]"}, {"key": "no"}, CepbenchError, "divided by lot"),
        ({"q": "SEQ(A a, B b) STRATEGY consuming"}, {}, CepbenchError, "in one pass"),
        ({"q": "SEQ(A a, B b) AGG COUNT"}, {}, EvaluationError, "query 'q'.* cep.aggregate"),
        ({"q": "SEQ(A a, B b)", "Q": "SEQ(A a, C b)"}, {}, EvaluationError, "another name"),
        ({"Query": "SEQ(A a, B b)"}, {}, EvaluationError, "another name"),
        ({"q": "SEQ(A a, B b)"}, {"plan": cep.OrderPlan(["a", "b"])}, PlanError, "WorkloadPlan"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_the_job(
    df: DataFrame, queries: dict[str, str], options: dict[str, Any], kind: type[CepbenchError],
    words: str,
) -> None:  # fmt: skip
    workload = cep.Workload({q: f"PATTERN {its} WITHIN 5 units" for q, its in queries.items()})
    with pytest.raises(kind, match=words):
        cep.spark.detect(df, workload, **OPTIONS, **options)
