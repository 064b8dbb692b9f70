"""Whose turn it is, what becomes of failures, and who agrees with whom: without any engine."""

from __future__ import annotations

import pandas as pd

from cepbench.errors import (
    PartialMatchLimitError,
    PlanningRefusedError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.sweeps.rotation import (
    Agreement,
    Progress,
    longer,
    outcome_of,
    throughput,
)


def test_the_contender_with_the_least_time_runs_until_all_have_spent_enough() -> None:
    takes, spent = {"a": 0.25, "b": 1.0, "c": 3.0}, {"a": 0.25, "b": 1.0, "c": 3.0}
    ran = []
    for name in longer(spent, 2.0):
        assert spent[name] == min(spent.values()) < 2.0
        spent[name] += takes[name]
        ran.append(name)
    assert spent == {"a": 2.0, "b": 2.0, "c": 3.0} and ran.count("a") == 7
    assert not [*longer({"a": float("inf")}, 2.0)] and not [*longer({}, 2.0)]


def test_progress_ends_with_all_runs() -> None:
    reports: list[tuple[int, int]] = []
    progress = Progress(lambda *its: reports.append(its), 3)
    progress.add(1)
    progress.finish()
    progress.finish()
    progress.add(1)
    assert reports == [(0, 3), (1, 3), (3, 3), (4, 4)]


def test_outcomes() -> None:
    for error, status, reason in (
        (UnsupportedPatternError("no OR"), "refused", "no OR"),
        (UnsupportedTaskError("no options"), "refused", "no options"),
        (PartialMatchLimitError("more than 5"), "partial_match_limit", "more than 5"),
        (PlanningRefusedError("26 variables"), "error", "PlanningRefusedError: 26 variables"),
        (ValueError("no"), "error", "ValueError: no"),
    ):
        refusals = UnsupportedPatternError, UnsupportedTaskError
        assert outcome_of(error, *refusals) == {"status": status, "reason": reason}
    refused = outcome_of(PlanningRefusedError("n"), PlanningRefusedError, named=True)
    assert refused == {"status": "refused", "reason": "PlanningRefusedError: n"}
    assert outcome_of(UnsupportedPatternError("n"))["status"] == "error"
    assert outcome_of(ValueError("n"), named=False)["reason"] == "n"


def test_all_agree_with_the_first_run_of_the_same_question() -> None:
    agreement = Agreement()
    assert agreement.violated("one", 5, "q1") is None
    assert agreement.violated("two", 5, "q1") is None
    assert agreement.violated("two", 6, "q2") is None
    assert agreement.violated("three", 4, "q1") == ("one", True)
    # A later run of the first one, too.
    assert agreement.violated("one", 4, "q1") == ("one", True)
    assert agreement.violated("three", 4, "q2") == ("two", True)
    in_words = Agreement(lambda found, expected: f"{found} is not {expected}" * (found != expected))
    assert in_words.violated("one", 5) is None and in_words.violated("two", 5) is None
    assert in_words.violated("three", 4) == ("one", "4 is not 5")


def test_throughput() -> None:
    assert throughput(pd.Series([1.0, 5.0, 2.0, 4.0, 3.0])) == {
        "events_per_second": 3.0, "events_per_second_q1": 2.0, "events_per_second_q3": 4.0, "runs": 5
    }  # fmt: skip
    assert throughput(pd.Series([4.0]))["events_per_second"] == 4.0
