"""What the checks share: the rows of runs, and their report."""

from __future__ import annotations

from typing import Any

import pytest

import cepbench as cep
from cepbench.errors import PlanningRefusedError, UnsupportedPatternError
from cepbench.experiments.conformance import workload_planner_checks
from cepbench.experiments.conformance.checker import CheckReport, checked

COLUMNS = ("pattern", "text", "check", "status", "reason", "matches", "seconds")


def raising(error: BaseException) -> Any:
    def run() -> None:
        raise error

    return run


def row(pattern: str) -> dict[str, object]:
    return {"pattern": pattern, "text": f"PATTERN {pattern}", "check": "all", "matches": 7}


def test_a_row_says_what_came_of_a_run() -> None:
    runs = {
        "fine": (lambda: None, "ok", None),
        "wrong": (lambda: "1 too many", "error", "1 too many"),
        "refused": (raising(UnsupportedPatternError("no OR")), "refused", "no OR"),
        "too large": (raising(PlanningRefusedError("of 9")), "refused", "of 9"),
        "broken": (raising(ZeroDivisionError("by 0")), "error", "ZeroDivisionError: by 0"),
        "ended": (raising(SystemExit(2)), "error", "SystemExit: 2"),
    }
    table = checked(((row(name), run) for name, (run, *_) in runs.items()), COLUMNS)
    found = zip(table["pattern"], table["status"], table["reason"], strict=True)
    assert [*found] == [(name, status, reason) for name, (_, status, reason) in runs.items()]
    assert (table["seconds"] >= 0).all()
    report = CheckReport("a {name}", 3, table, "matches", "{name}: {verdict}, {refused}, {seed}")
    assert not report.passed and repr(report) == "<a {name}: FAILED: 1 of 6 runs, 2, 3>"
    assert report.describe().splitlines()[2:5] == [
        "  ok       fine               7 matches: all",
        "  FAILED   wrong              1 too many",
        "                              all: PATTERN wrong",
    ]
    passing = CheckReport("x", 0, table[table["status"] != "error"], "matches", "{verdict}")
    assert passing.passed
    assert not CheckReport("x", 0, table[table["status"] == "refused"], "matches", "").passed


def test_who_interrupts_a_check_ends_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        checked([(row("long"), raising(KeyboardInterrupt()))], COLUMNS)


def test_the_text_of_a_problem_makes_it() -> None:
    table = cep.check_workload_planner("NAIVE", seed=5).table
    for its in table.itertuples():
        problem = eval(str(its.text), {**vars(workload_planner_checks), "seed": 5})
        assert (len(problem.scratch), len(problem.edges)) == (its.queries, its.edges)
        assert sum(problem.scratch.values()) == its.cost
