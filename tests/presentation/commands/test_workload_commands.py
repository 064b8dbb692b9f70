"""Commands with several queries in one file, and with concepts: they tell what the library computes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench.presentation.commands import completion

HIERARCHY = cep.ConceptHierarchy({"E": {"F": ["A", "B"]}, "C": [], "D": []})
TEXT = """\
q1 = PATTERN SEQ(F a, C c) WITHIN 10 units
q2 = PATTERN SEQ(A a, C c) WHERE a.x < c.x
     WITHIN 10 units
q3 = PATTERN SEQ(F a, NOT(D n), C c) WITHIN 10 units"""
WORKLOAD = cep.Workload.parse(TEXT, hierarchy=HIERARCHY)
FEW = ["--repetitions", "1", "--seconds", "0"]


@pytest.fixture(scope="module")
def stream(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts", hierarchy=HIERARCHY)


@pytest.fixture
def inputs(tmp_path: Path, data: str) -> list[str]:
    """A file of queries, the data and the concepts."""
    (tmp_path / "queries.txt").write_text(TEXT)
    (tmp_path / "concepts.json").write_text(json.dumps({"E": {"F": ["A", "B"]}, "C": [], "D": []}))
    return [
        str(tmp_path / "queries.txt"), "--data", data, "--hierarchy", str(tmp_path / "concepts.json")
    ]  # fmt: skip


def test_run(run, told, stream, inputs, tmp_path) -> None:
    statistics = cep.measure_statistics(WORKLOAD, stream)
    for planner in ("CHASE", "top-down"):
        plan = cep.plan_workload(WORKLOAD, statistics, planner, delays=True)
        document = told(["run", *inputs, "--planner", planner])
        assert document["planner"] == planner.upper()
        assert document["cost"] == pytest.approx(plan.cost)
        assert [its["source"] for its in document["plan"]] == list(plan.steps["source"])
        found = cep.evaluate(WORKLOAD, stream, plan)
        assert {its["query"]: its["results"] for its in document["steps"]} == {
            query: its.metrics.matches for query, its in found.items()
        }
        assert document["metrics"]["matches"] == found.metrics.matches > 50
    shown = run(["run", *inputs, "--planner", "TOP-DOWN", "--count"]).stdout
    assert "workload plan by TOP-DOWN" in shown and "down from q1 (concept)" in shown
    assert f"{found.metrics.matches:,} matches of 3 queries in 90 events" in shown


def test_matches_are_written_query_by_query(run, told, stream, inputs, tmp_path) -> None:
    words = ["run", *inputs, "--only-types", "--evaluator", "hierarchical-stacks"]
    words += ["--output", str(tmp_path / "found.parquet"), "--attribute", "x"]
    alone = {query: cep.evaluate(WORKLOAD, stream)[query].matches for query in WORKLOAD.patterns}
    shown = run(words).stdout
    for query, expected in alone.items():
        file = tmp_path / f"found.{query}.parquet"
        assert f"{len(expected)} matches of {query} are in {file}." in shown
        found = pq.read_table(file).to_pandas().sort_values(["a", "c"], ignore_index=True)
        expected = expected.sort_values(["a", "c"], ignore_index=True)
        assert found[["a", "c"]].to_numpy().tolist() == expected[["a", "c"]].to_numpy().tolist()
        assert found["a.x"].tolist() == stream.attributes["x"][expected["a"]].tolist()
    document = told(words)
    assert document["output"]["q2"] == str(tmp_path / "found.q2.parquet")
    assert document["evaluators"]["q1"] in ("hierarchical-stacks", "down", "up")


def test_plan(run, told, stream, inputs, tmp_path) -> None:
    document = told(["plan", *inputs])
    statistics = cep.measure_statistics(WORKLOAD, stream)
    assert {q: cep.Statistics.from_dict(its) for q, its in document["statistics"].items()} == (
        statistics
    )
    planners = [n for n, its in cep.WORKLOAD_PLANNERS.items() if its.shares == "matches"]
    assert [row["planner"] for row in document["plans"]] == planners
    for row in document["plans"]:
        plan = cep.plan_workload(WORKLOAD, statistics, row["planner"], delays=True)
        assert row["cost"] == pytest.approx(plan.cost) and row["status"] == "ok"
        assert [its["source"] for its in row["steps"]] == list(plan.steps["source"])
    # Its output is a file of statistics, with which no data is needed.
    (tmp_path / "p.json").write_text(json.dumps(document))
    queries, _, _, *hierarchy = inputs
    without = [queries, *hierarchy, "--statistics", str(tmp_path / "p.json")]
    again = told(["plan", *without, "--planner", "CHASE", "--cost", "e-cube", "-g", "DP-B"])
    plan = cep.plan_workload(
        WORKLOAD, statistics, "CHASE", cost="e-cube", generator="DP-B", delays=True
    )
    (row,) = again["plans"]
    assert row["cost"] == pytest.approx(plan.cost) and again["cost"] == "e-cube"
    shown = run(["plan", *inputs, "--planner", "naive", "--planner", "top-down"]).stdout
    assert shown.count("workload plan by") == 2 and "q2: down from q1 (concept)" in shown
    # The cheapest one.
    assert run(["plan", *inputs]).stdout.count("workload plan by") == 1
    explained = told(["explain", *without, "--no-run"])
    assert "results" not in explained["steps"][0]


def test_planners_of_counts(run, tmp_path, data) -> None:
    (tmp_path / "counted.txt").write_text(
        "q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10 units\n"
        "q2 = PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 10 units"
    )
    shown = run(["plan", str(tmp_path / "counted.txt"), "--data", data]).stdout
    assert "SHARON" in shown and "CHASE" not in shown
    refused = run(["run", str(tmp_path / "counted.txt"), "--data", data], code=1).stderr
    assert "AGG" in refused and "cep.aggregate" in refused


def test_explain(run, told, stream, inputs, tmp_path) -> None:
    file = tmp_path / "page.html"
    document = told(["explain", *inputs, "--planner", "TOP-DOWN", "--html", str(file)])
    assert [its["query"] for its in document["steps"]] == ["q1", "q2", "q3"]
    assert [its["source"] for its in document["steps"]] == [None, "q1", "q1"]
    assert document["findings"] and "<svg" in file.read_text(encoding="utf-8")
    shown = run(["explain", *inputs, "--planner", "TOP-DOWN"]).stdout
    assert "down from q1" in shown and "from scratch" in shown


def test_compare(run, told, stream, inputs) -> None:
    document = told(["compare", *inputs, *FEW, "--evaluator", "tree", "--planner", "CHASE"])
    (row,) = document["rows"]
    assert (row["planner"], row["evaluator"], row["status"]) == ("CHASE", "tree", "ok")
    total = cep.evaluate(WORKLOAD, stream).metrics.matches
    assert row["matches"] == total
    shown = run(["compare", *inputs, *FEW]).stdout
    assert "hierarchical-stacks" in shown and "× NAIVE" in shown


def test_concepts_of_one_pattern(told, run, stream, inputs) -> None:
    _, *others = inputs
    pattern = "PATTERN SEQ(F a, C c) WITHIN 10 units"
    expected = cep.evaluate(WORKLOAD, stream)["q1"].metrics.matches
    for only in ([], ["--only-types"]):
        assert told(["run", pattern, *others, *only])["metrics"]["matches"] == expected
    counted = pattern.replace("WITHIN", "AGG COUNT WITHIN")
    assert (
        told(["aggregate", counted, *others, "--scope", "stream"])["last_values"][-1]
        == (cep.aggregate(counted, stream, scope="stream").arrow.to_pylist()[-1])
    )


def test_queries_as_printed(told, tmp_path, data) -> None:
    (tmp_path / "printed.txt").write_text("q1: SEQ(A, ¬ B, C)\nq2: SEQ(A, C)\n")
    words = [str(tmp_path / "printed.txt"), "--data", data, "--dialect", "e-cube"]
    document = told(["run", *words, "--within", "10 units"])
    assert document["queries"]["q1"] == "PATTERN SEQ(A A, NOT(B B), C C) WITHIN 10 units"
    single = told(["run", "SEQ(A, ¬ B, C)", *words[1:], "--within", "10 units"])
    counts = {its["query"]: its["results"] for its in document["steps"]}
    assert single["metrics"]["matches"] == counts["q1"] > 0


@pytest.mark.filterwarnings("always::cepbench.errors.MissingTypeWarning")
def test_a_type_without_events_is_a_warning(run, inputs, data) -> None:
    shown = " ".join(run(["run", inputs[0], "--data", data]).stderr.split())
    assert "warning: no event of type 'F' (variable" in shown


def test_errors(run, inputs, data, tmp_path) -> None:
    queries, *others = inputs
    for words, code, message in (
        (["adapt", *inputs], 2, "it has several queries, q1, q2, q3; this command takes one pattern"),
        (["run", *inputs, "--limit", "3"], 2, "'--limit': it is for single patterns"),
        (["plan", *inputs, "--alpha", "2"], 2, "'--alpha': it is for single patterns"),
        (["plan", *inputs, "-g", "DP-B", "-g", "DP-LD"], 2, "plans of one generator"),
        (["run", *inputs, "--planner", "CHAS"], 1, "did you mean 'CHASE'?"),
        (["compare", *inputs, "-g", "DP-B"], 1, "give planners"),
        (["plan", *inputs, "--cost", "latency"], 1, "is one of calibrated, e-cube"),
        (["run", "PATTERN SEQ(A a) WITHIN 5 units", *others, "--planner", "CHASE"], 2,
         "'--planner': it is for several queries"),
        (["explain", "PATTERN SEQ(A a) WITHIN 5 units", *others, "--planner", "CHASE"], 2,
         "'--planner': it is for several queries"),
        (["plan", queries, "--statistics", "nowhere.json"], 1, "cannot be read as JSON"),
        (["run", queries, *others[:3], str(tmp_path / "none.json")], 1, "none.json cannot be read"),
    ):  # fmt: skip
        assert message in " ".join(run(words, code=code).stderr.split()), words
    (tmp_path / "two.json").write_text('{"E": ["A"], "F": ["A"]}')
    shown = run(["run", queries, *others[:3], str(tmp_path / "two.json")], code=1).stderr
    assert "'A' has two parents, 'E' and 'F'" in shown
    (tmp_path / "some.json").write_text('{"q1": {"rates": {"a": 1, "c": 1}}}')
    words = ["plan", queries, "--statistics", str(tmp_path / "some.json"), *others[2:]]
    assert "no statistics of query q2, q3" in run(words, code=1).stderr
    (tmp_path / "named.txt").write_text('"a/b" = PATTERN SEQ(A a) WITHIN 5 units')
    words = ["run", str(tmp_path / "named.txt"), *others, "-o", str(tmp_path / "o.csv")]
    assert "'a/b' cannot be part of a file's name" in run(words, code=2).stderr


def test_completion() -> None:
    assert completion.complete_planners("CH") == ["CHASE"]
    assert set(completion.complete_planners("")) == {
        name
        for name, its in cep.WORKLOAD_PLANNERS.items()
        if its.shares == "matches" and its.is_builtin
    }
