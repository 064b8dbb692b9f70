"""Whose turn it is, what becomes of failures, and who agrees with whom: without any engine."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import (
    ExperimentError,
    PartialMatchLimitError,
    PlanningRefusedError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.sweeps.rotation import (
    Agreement,
    Contender,
    outcome_of,
    take_turns,
    throughput,
)


class Runs:
    """Contenders whose runs take as long as they are said to, and who ran when."""

    def __init__(self, takes: dict[str, float], failures: dict[tuple[str, int], Any]) -> None:
        self.takes, self.failures = takes, failures
        self.ran: list[str] = []
        self.contenders = [Contender({"name": its}, self._run_of(its)) for its in takes]

    def _run_of(self, name: str) -> Any:
        def run(first: bool) -> tuple[float, dict[str, Any]]:
            assert first == (name not in self.ran)
            self.ran.append(name)
            if error := self.failures.get((name, self.ran.count(name))):
                raise error
            return (99.0 if first else self.takes[name]), {"found": self.ran.count(name)}

        return run

    def measured(self, repetitions: int, seconds: float, **more: Any) -> list[Contender]:
        how = {"rows": len(self.contenders), "on_progress": None} | more
        return take_turns(self.contenders, repetitions=repetitions, seconds=seconds, **how)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.25, 0.5, 1.0, 3.0]), min_size=1),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_each_runs_as_often_and_as_long_as_asked_in_turns(takes, repetitions, seconds) -> None:
    runs = Runs(takes, {})
    measured = runs.measured(repetitions, seconds)
    assert [its.row["name"] for its in measured] == [*takes]
    for contender in measured:
        its = takes[contender.row["name"]]
        # The first run, of 99 seconds, is not among them.
        assert contender.seconds == [its] * max(repetitions, math.ceil(seconds / its))
        assert contender.row["status"] == "ok"
        assert contender.row["found"] == len(contender.seconds) + 1
    assert runs.ran[: len(takes) * (1 + repetitions)] == [*takes] * (1 + repetitions)
    spent = {name: repetitions * its for name, its in takes.items()}
    for name in runs.ran[len(takes) * (1 + repetitions) :]:
        assert spent[name] == min(spent.values())
        spent[name] += takes[name]


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_failure_ends_the_runs_of_one_contender_only(place: int) -> None:
    reports: list[tuple[int, int]] = []
    runs = Runs({"a": 1.0, "b": 1.0}, {("a", place): MemoryError("too much")})
    (left,) = runs.measured(3, 0, rows=3, on_progress=lambda *its: reports.append(its))
    assert left.row == {"name": "b", "status": "ok", "reason": None, "found": 4}
    one = runs.contenders[0].row
    assert (one["status"], one["reason"]) == ("error", "MemoryError: too much")
    assert Counter(runs.ran) == {"a": place, "b": 4}
    # The third row has nothing to run.
    assert reports[:2] == [(0, 12), (4, 12)] and reports[-1] == (12, 12)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ExperimentError("others were found")])
@pytest.mark.parametrize("place", [1, 2])
def test_interrupts_and_disagreement_are_no_rows(error: BaseException, place: int) -> None:
    with pytest.raises(type(error)):
        Runs({"a": 1.0}, {("a", place): error}).measured(2, 0)


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
    assert throughput([1.0, 5.0, 2.0, 4.0, 3.0]) == {
        "events_per_second": 3.0, "events_per_second_q1": 2.0, "events_per_second_q3": 4.0, "runs": 5
    }  # fmt: skip
    assert throughput([4.0])["events_per_second"] == 4.0
