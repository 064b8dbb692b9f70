"""Automata in cep.explain, cep.compare, cep.evaluate and on the command line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import cepbench as cep
from cepbench.engines.runs.result import Metrics, RunCounts
from cepbench.errors import PlanError, UnsupportedTaskError
from cepbench.presentation.commands.app import app

PATTERN = "PATTERN OR(SEQ(A a, KL(B b)), SEQ(A a, B c)) WHERE b[i].x > b[i-1].x WITHIN 9 units"
PLAN = cep.automaton(PATTERN)


class NoMatches:
    """An engine of automata that finds nothing."""

    def __init__(self, task: Any) -> None:
        names = task.pattern.positive_names
        table = pd.DataFrame({name: np.zeros(0, dtype=np.int64) for name in (*names, "branch")})
        self.nothing = 0 if task.output == "count" else table

    def push(self, batch: cep.EventStream) -> Any:
        return self.nothing

    def finish(self) -> Any:
        return self.nothing

    def metrics(self) -> Metrics:
        return Metrics(
            peak_partial_matches=7, runs=RunCounts(runs_started=1234, runs_split=5, runs_merged=6)
        )


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    with cep.EVALUATORS.restored():
        cep.plan_evaluator(
            "no-matches", kinds=["automaton"], without_plan=True, strategies=["any", "next"]
        )(NoMatches)
        yield


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    frame = pd.DataFrame({"type": list("AB") * 50, "time": range(100), "x": np.arange(100.0)})
    return cep.EventStream.from_pandas(frame, type="type", time="time")


def test_an_automaton_is_explained(stream: cep.EventStream) -> None:
    found = cep.explain(PATTERN, evaluator="no-matches")
    assert list(found.nodes.columns) == [
        "branch", "state", "edge", "target", "formula", "consumes", "writes"
    ]  # fmt: skip
    assert found.nodes["branch"].tolist() == [0] * 6 + [1] * 3
    text = found.describe(width=200)
    assert text.startswith("union of 2 automaton plans by compilation")
    assert "Branch 0, at most exponentially many runs" in text
    assert "b[1]: begin-ignore; b[i]: take-proceed, take-ignore" in text
    assert "not run" in repr(found) and found.metrics is None
    ran = cep.explain(PATTERN, PLAN, stream=stream, evaluator="no-matches")
    assert "no-matches found 0 matches in 100 events" in ran.describe()
    assert (
        "at most 7 runs at a time" in ran.describe()
        and "1,234 runs started, 5 split off and 6" in ran.describe()
    )
    page = ET.fromstring(ran._repr_html_())
    assert len([1 for element in page.iter() if element.tag.endswith("}svg")]) == 2


@pytest.mark.parametrize("evaluator", ["sase", "sase-basic", "sase-backtrack"])
def test_edges_are_shown_with_their_passes(evaluator: str) -> None:
    frame = pd.DataFrame({"type": list("ABBB"), "time": range(4), "x": [0.0, 1.0, 3.0, 2.0]})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    text = PATTERN.replace("WITHIN", "STRATEGY next WITHIN")
    found = cep.explain(text, stream=stream, evaluator=evaluator)
    rows = found.nodes.set_index(["branch", "state", "edge"])
    assert rows["tested"][0, "b[i]", "take"] == 2 and rows["passed"][0, "b[i]", "take"] == 1
    # The set is complete after each of its two events.
    assert rows["tested"][0, "b[i]", "proceed"] == rows["passed"][0, "b[i]", "proceed"] == 2
    assert rows["passed"][1, "c", "begin"] == 1
    assert rows["time_share"].sum() == pytest.approx(1)
    rest = "0.75 1" if evaluator != "sase-backtrack" else "– –"
    lines = [" ".join(line.split()) for line in found.describe().splitlines()]
    assert f"b[i] take 2 1 50 % 20 % {rest}" in lines
    page = found._repr_html_()
    assert "1 of 2" in page and ("ø 0.75" in page) == (evaluator != "sase-backtrack")
    ET.fromstring(page)


def test_runs_that_never_split() -> None:
    found = cep.explain(
        "PATTERN SEQ(A a, B b) STRATEGY next WITHIN 9 units", evaluator="no-matches"
    )
    assert found.sentences() == ["At most W runs in a window of W events (runs never split)."]


def test_only_engines_of_automata_explain_them() -> None:
    with pytest.raises(UnsupportedTaskError, match=r"cannot run automaton plans.*no-matches"):
        cep.explain(PATTERN, evaluator="tree")


def test_an_automaton_is_of_its_pattern(stream: cep.EventStream) -> None:
    how: dict[str, Any] = {"evaluator": "no-matches", "output": "count"}
    assert cep.evaluate(PATTERN, stream, PLAN, **how).metrics.matches == 0
    returned = f"{PATTERN} RETURN a"
    assert cep.evaluate(returned, stream, PLAN, **how).plan == PLAN
    with pytest.raises(PlanError, match=r"compiled from .*b\[i-1\].*cep\.automaton\(pattern\)"):
        cep.evaluate(PATTERN.replace(">", "<"), stream, PLAN, **how)


def test_without_a_plan_nothing_is_measured_for_one(stream: cep.EventStream) -> None:
    table = cep.compare(PATTERN, stream, evaluators=["no-matches"], repetitions=1, seconds=0)
    assert table["generator"].tolist() == ["none"] and table["status"].tolist() == ["ok"]
    assert table["plan"].isna().all() and "nan" not in table._repr_html_()
    beside = cep.compare(
        "PATTERN SEQ(A a, B b) WHERE a.x > 999 WITHIN 9 units", stream, generators=["DP-LD"],
        evaluators=["lazy-nfa", "no-matches"], repetitions=1, seconds=0,
    )  # fmt: skip
    assert sorted(beside["generator"]) == ["DP-LD", "none"]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    frame = pd.DataFrame({"symbol": list("AB") * 50, "ts": range(100), "x": np.arange(100.0)})
    frame.to_parquet(tmp_path / "events.parquet")
    return [PATTERN, "--data", str(tmp_path / "events.parquet"), "--evaluator", "no-matches"]


def test_commands_run_without_a_plan(files: list[str]) -> None:
    found = json.loads(run("run", *files, "--count", "--json"))
    assert found["plan"] == "a, b[1], b[i], F | a, c, F" and found["generator"] == "compilation"
    assert "run by no-matches" in run("run", *files, "--count")
    assert "take-ignore" in run("explain", *files)
    explained = json.loads(
        run("explain", PATTERN, "--evaluator", "no-matches", "--no-run", "--json")
    )
    assert {row["edge"] for row in explained["nodes"]} == {"begin", "take", "proceed", "ignore"}
    assert "none" in run("compare", *files, "--seconds", "0", "--repetitions", "1")
    stack = [
        files[0].replace("KL(B b)", "B b").replace("b[i].x > b[i-1].x", "b.x > 0"),
        *files[1:-1],
    ]
    assert "without a plan, run by stack-nfa" in run("run", *stack, "stack-nfa", "--count")


def test_under_next_nothing_is_planned(stream: cep.EventStream) -> None:
    pattern = "PATTERN SEQ(A a, KL(B b)) STRATEGY next WITHIN 9 units"
    table = cep.compare(pattern, stream, repetitions=1, seconds=0)
    assert table[["generator", "evaluator", "status"]].to_numpy().tolist() == [
        ["none", "sase", "ok"]
    ]
