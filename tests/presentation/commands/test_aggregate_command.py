"""``cepbench aggregate`` tells what ``cep.aggregate`` computes."""

from __future__ import annotations

import pandas as pd
import pyarrow.csv as csv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS, SCOPES
from cepbench.presentation.commands import completion

PATTERN = (
    "PATTERN SEQ(A a, B b) WHERE a.x < b.x GROUP BY b.name AGG COUNT, AVG(b.x) WITHIN 10 units"
)


@pytest.fixture(scope="module")
def stream(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts")


@pytest.mark.parametrize("options", [{}, {"scope": "stream"}, {"emit": "change"}])
def test_the_last_values_are_those_of_the_library(options, told, run, stream, data) -> None:
    expected = cep.aggregate(PATTERN, stream, **options)
    words = ["aggregate", PATTERN, "--data", data]
    words += [word for name, value in options.items() for word in (f"--{name}", value)]
    document = told(words)
    assert document["last_values"] == expected.arrow.to_pylist()[-5:]
    assert document["values"] == len(expected.values) > 5
    assert (document["pattern"], document["method"]) == (PATTERN, expected.method)
    assert document["metrics"]["updates"] == expected.metrics.updates
    shown = run(words).stdout
    assert f"The last 5 of {len(expected.values)} values:" in shown
    assert len(shown.splitlines()) == 2 + 5 + 2 + 6


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_all_values_are_written(ending, run, told, stream, data, tmp_path) -> None:
    file = tmp_path / f"values.{ending}"
    # Positions are those of the whole stream, whichever types are read.
    words = ["aggregate", PATTERN, "--data", data, "--only-types", "--method", "Two-Step"]
    words += ["--output", str(file)]
    expected = cep.aggregate(PATTERN, stream, "two-step")
    assert f"{len(expected.values)} values are in {file}." in run(words).stdout
    document = told(words)
    assert (document["output"], document["last_values"]) == (str(file), [])
    if ending == "csv":
        found = csv.read_csv(file).cast(expected.arrow.schema)
    else:
        found = pq.read_table(file) if ending == "parquet" else ipc.open_file(file).read_all()
    assert found.equals(expected.arrow)


def test_values_at_times(told, run, stream, data) -> None:
    words = ["aggregate", PATTERN, "--data", data, "--at", "60", "--at", "30"]
    assert (
        told(words)["last_values"] == cep.aggregate(PATTERN, stream, at=[60, 30]).arrow.to_pylist()
    )
    shown = run([*words, "--at", "noon"], code=2).stderr
    assert "'noon' is not an integer" in shown
    sample = ["--data", "nasdaq-style/sample", "--at"]
    dated = ["aggregate", "PATTERN SEQ(CSCO a, MSFT b) AGG COUNT WITHIN 20 minutes", *sample]
    (row,) = told([*dated, "2008-01-02 12:00"])["last_values"]
    assert row["COUNT"] == 261
    for text in ("noon", "12:00", "01/02/2008", ""):
        assert f"{text!r} is not a datetime" in run([*dated, text], code=2).stderr


def test_a_workload(told, run, stream, data, tmp_path) -> None:
    queries = f"Q1 = {PATTERN}\nQ2 = PATTERN SEQ(B a, C c) AGG COUNT WITHIN 5 units"
    (tmp_path / "queries.txt").write_text(queries)
    expected = cep.aggregate(cep.Workload.parse(queries), stream)
    words = ["aggregate", str(tmp_path / "queries.txt"), "--data", data]
    for own in ([], ["--only-types"], ["--sharing", "pretree"]):
        document = told([*words, *own])
        assert document["sharing"] == ("pretree" if "--sharing" in own else None)
        assert document["last_values"] == expected.arrow.to_pylist()[-5:]
        assert document["values"] == len(expected.values)
        assert document["pattern"] == queries
    shown = run([*words, "--sharing", "PRETREE"]).stdout
    assert "sharing by PRETREE" in shown and "query  position" in shown
    assert "did you mean 'PRETREE'" in run([*words, "--sharing", "PRETRE"], code=1).stderr
    at = cep.aggregate(cep.Workload.parse(queries), stream, at=[50])
    assert told([*words, "--at", "50"])["last_values"] == at.arrow.to_pylist()[-5:]
    lacking = queries.replace("C c)", "C c) WHERE c.y > 1")
    assert "query 'Q2'" in run([*words[:1], lacking, *words[2:]], code=1).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([PATTERN.replace(" AGG COUNT, AVG(b.x)", "").replace(" GROUP BY b.name", "")], "the pattern has no AGG"),
        ([PATTERN, "--method", "a-sec"], "did you mean 'a-seq'"),
        ([PATTERN, "--emit", "always"], "emit is one of trigger, change"),
        ([PATTERN, "--method", "a-seq", "--evaluator", "tree"], "uses no evaluator"),
        ([PATTERN.replace("AVG(b.x)", "AVG(b.name)")], "name is a text"),
    ],
)  # fmt: skip
def test_mistakes_are_told(words, message, run, data) -> None:
    assert message in run(["aggregate", *words, "--data", data], code=1).stderr


@pytest.mark.parametrize("command", ["plan", "run", "adapt", "explain"])
def test_commands_for_matches_name_what_is_for_values(command, run, data) -> None:
    assert "cep.aggregate computes it" in run([command, PATTERN, "--data", data], code=1).stderr


def test_methods_are_compared(run, told, stream, data) -> None:
    words = ["compare", PATTERN, "--data", data, "--repetitions", "1", "--seconds", "0"]
    document = told(words)
    assert document["pattern"] == PATTERN
    assert [row["method"] for row in document["rows"]] == list(cep.AGGREGATORS)
    expected = len(cep.aggregate(PATTERN, stream).values)
    assert {row["values"] for row in document["rows"] if row["status"] == "ok"} == {expected}
    (row,) = told([*words, "-m", "two-step"])["rows"]
    assert (row["method"], row["status"]) == ("two-step", "ok")
    lines = run(words).stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("two-step"))
    assert line.split()[-1] == f"{expected}"
    (line,) = (line for line in lines if line.startswith("dpc"))
    assert "refused: " in line
    assert "give methods" in run([*words, "-g", "DP-B"], code=1).stderr
    plain = PATTERN.replace(" AGG COUNT, AVG(b.x)", "").replace(" GROUP BY b.name", "")
    assert "are for a pattern with AGG" in (
        run([words[0], plain, *words[2:], "-m", "greta"], code=1).stderr
    )


def test_names_are_completed() -> None:
    builtin = {name for name, entry in cep.AGGREGATORS.items() if entry.is_builtin}
    assert set(completion.complete_aggregators("")) == builtin
    assert completion.complete_emits("") == list(EMITS)
    assert completion.complete_scopes("") == list(SCOPES)
    planners = {name for name, its in cep.WORKLOAD_PLANNERS.items() if its.is_builtin}
    assert set(completion.complete_sharing("")) == planners
