"""Sweeps over planners of workloads: their grid, rows by query, agreement, and mistakes that are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import ERROR, NO_PLAN, OK, check_agreement, results_frame
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.estimate import time_pattern
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.on_spark.job import run_sweep, sweep_data, workload_of
from cepbench.experiments.sweeps.queries import query_rows, results_over_time
from cepbench.experiments.sweeps.restrictions import restrictions
from cepbench.experiments.sweeps.sweep_file import read_sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = """
q1 = PATTERN SEQ(INTC a, Finance b, Education c) WITHIN 30 milliseconds
q2 = PATTERN SEQ(DELL d, INTC a, Finance b, Education c) WITHIN 30 milliseconds
"""
CONFIG = {
    "data": "x",
    "planners": ["NAIVE", "TOP-DOWN", "BOTTOM-UP"],
    "evaluators": ["tree", "hierarchical-stacks"],
    "user_workloads": {"w": QUERIES},
    "repetitions": 2,
}


@pytest.fixture(scope="module")
def sample() -> cep.EventStream:
    return cep.open_dataset("company-trades/sample").stream()[:1000]


def rows_of(sample: cep.EventStream, **changes: Any) -> pd.DataFrame:
    config = SweepConfig.from_dict(CONFIG | changes)
    assert sample.hierarchy is not None
    counts = {"": dict.fromkeys(sample.type_names, 1.0)}
    specs = workload_of(config, counts, concepts=sample.hierarchy.names)
    grid = config.grid([])
    return results_frame(row for spec in specs for row in measure_pattern(spec, sample, {}, grid))


def test_cells_are_planners_in_evaluators_and_windows() -> None:
    config = SweepConfig.from_dict({**CONFIG, "windows": ["10 milliseconds", "1 seconds"]})
    cells = config.grid([]).cells()
    assert len(cells) == len(set(cells)) == 3 * 2 * 2 * 2
    assert {cell.generator for cell in cells} == set(config.planners)
    assert SweepConfig.from_dict(config.to_dict()) == config
    assert "planners" not in SweepConfig(data="x").to_dict()
    alone = Grid(generators=[], planners=["CHASE"], repetitions=1).cells()
    assert [(cell.generator, cell.evaluator) for cell in alone] == [("CHASE", "tree")]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"planners": ["CHAZE"]}, "each of planners is one of NAIVE, .* did you mean 'CHASE'"),
        ({"planners": ["SHARON"]}, "each of planners is one of NAIVE, "),
        ({"planners": []}, "user_workloads run by planners, or by aggregation methods"),
        ({"methods": ["a-seq"]}, "is about plans, and methods run none"),
        ({"generators": ["GREEDY"]}, "generators is about single patterns, and planners are of"),
        ({"latency": True}, "latency is about single patterns"),
        ({"user_patterns": {"a": "PATTERN SEQ(A a) WITHIN 1 units"}}, "user_patterns is about sing"),
        ({"user_workloads": {}}, "the sweep has no patterns: name user_workloads"),
        (
            {"user_workloads": {"w": "q = PATTERN SEQ(A a) AGG COUNT WITHIN 1 units"}},
            "'w' of user_workloads has AGG",
        ),
    ],
)  # fmt: skip
def test_a_sweep_is_of_planners_or_not(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ExperimentError, match=told):
        SweepConfig.from_dict({**CONFIG, **changes})


def test_rows_have_the_matches_and_the_way_of_each_query(sample: cep.EventStream) -> None:
    rows = rows_of(sample)
    assert (rows["status"] == OK).all(), rows["reason"].dropna().unique()
    assert len(rows) == 3 * 2 * 2 and (rows["plan_kind"] == NO_PLAN).all()
    assert (rows["plan_cost"] > 0).all() and (rows["plan_seconds"] > 0).all()
    workload = cep.Workload.parse(QUERIES, hierarchy=sample.hierarchy)
    alone = {query: its.metrics.matches for query, its in cep.evaluate(workload, sample).items()}
    assert set(rows["matches"]) == {sum(alone.values())} and min(alone.values()) > 0
    own = query_rows(rows)
    assert len(own) == 2 * len(rows)
    assert (own["results"] == own["query"].map(alone)).all()
    assert (own["reused"] + own["delta"] == own["results"]).all()
    sources = {
        (row.generator, row.query): row.source for row in own.itertuples() if row.source is not None
    }
    assert sources == {("TOP-DOWN", "q2"): "q1", ("BOTTOM-UP", "q1"): "q2"}
    keys = ["generator", "evaluator", "repetition"]
    both = own.groupby(keys).agg({"seconds": "sum", "cost": "sum"})
    of_runs = rows.set_index(keys).loc[both.index]
    assert both["seconds"].to_numpy() == pytest.approx(of_runs["seconds"].to_numpy(float))
    assert both["cost"].to_numpy() == pytest.approx(of_runs["plan_cost"].to_numpy(float))
    check_agreement(rows)
    rows.loc[3, "digest"] = "0"
    with pytest.raises(ExperimentError, match="differ from those of"):
        check_agreement(rows)
    assert results_over_time(rows).empty


def test_runs_in_batches_have_their_results_over_time(sample: cep.EventStream) -> None:
    rows = rows_of(sample, batch_size=300, repetitions=1)
    assert (rows["status"] == OK).all(), rows["reason"].dropna().unique()
    assert query_rows(rows).empty and rows["digest"].nunique() == 1
    assert set(rows["digest"]) == set(rows_of(sample, repetitions=1)["digest"])
    curves = results_over_time(rows)
    for (planner, evaluator), curve in curves.groupby(["generator", "evaluator"]):
        assert len(curve) == 5 and curve["seconds"].is_monotonic_increasing
        assert curve["matches"].is_monotonic_increasing
        row = rows[(rows["generator"] == planner) & (rows["evaluator"] == evaluator)].iloc[0]
        assert curve["matches"].iloc[-1] == row["matches"]
        assert (
            json.loads(row["details"])["batch_matches"]
            == curve["matches"].diff().fillna(curve["matches"].iloc[0]).astype(int).tolist()
        )


def test_a_planner_whose_queries_differ_is_an_error(sample: cep.EventStream) -> None:
    """The last run of a query, which is by the last planner, misses a match."""
    calls: list[int] = []
    wrong = 0

    @cep.plan_evaluator("forgets", kinds=["tree"], constructs=["SEQ", "concept"])
    def forgets(pattern: Any, events: Any, plan: Any) -> pd.DataFrame:
        calls.append(len(calls) + 1)
        found = cep.evaluate(pattern, events, plan, evaluator="tree").matches
        return found[1:] if calls[-1] == wrong else found

    right = rows_of(sample, evaluators=["forgets"], repetitions=1)
    assert (right["status"] == OK).all() and right["matches"].min() > 0
    wrong = 2 * len(calls)
    rows = rows_of(sample, evaluators=["forgets"], repetitions=1)
    assert len(calls) == wrong
    assert rows.set_index("generator")["status"].to_dict() == {
        "NAIVE": OK, "TOP-DOWN": OK, "BOTTOM-UP": ERROR,
    }  # fmt: skip


def test_an_estimate_runs_every_planner(sample: cep.EventStream) -> None:
    config = SweepConfig.from_dict(CONFIG)
    (spec,) = workload_of(
        config,
        {"": dict.fromkeys(sample.type_names, 1.0)},
        concepts=sample.hierarchy.names,  # type: ignore[union-attr]
    )
    timing = time_pattern(spec, sample, {}, config.grid([]), long_enough=0.0)
    assert timing.planning > 0 and timing.running > 0 and timing.limited == 0


def test_sentences_name_planners() -> None:
    assert restrictions(SweepConfig.from_dict(CONFIG)) == [
        "1 workload chosen by hand, each planner run 2 times."
    ]


FILE = f"""
planners = ["NAIVE", "CHASE"]
evaluators = ["hierarchical-stacks"]
repetitions = 1
seconds = 0
data = {{ kind = "company-trades", events = 900, rates = {{ DELL = 2 }} }}
[user_workloads]
w = '''{QUERIES}'''
"""


def test_a_file_runs_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Concepts are known from the files of the stream, in the driver and in the workers."""
    (tmp_path / "mine.toml").write_text(FILE, encoding="utf-8")
    sweep = read_sweep(tmp_path / "mine.toml")
    assert "  planners    NAIVE, CHASE\n" in sweep.describe()
    config = sweep.config(sweep_data(spark, sweep, tmp_path))
    rows = run_sweep(spark, config, tmp_path / "results")
    assert (rows["status"] == OK).all(), rows["reason"].dropna().unique()
    assert len(rows) == 2 and rows["digest"].nunique() == 1 and rows["matches"].iloc[0] > 0
    assert set(query_rows(rows)["query"]) == {"q1", "q2"}
