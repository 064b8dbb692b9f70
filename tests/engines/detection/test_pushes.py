"""A push happens whole or not at all, in every detector and aggregator."""

from __future__ import annotations

import copy
import inspect
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError, FailedStateError, StreamError
from tests.engines.detection.live_shells import SHELLS, events, plain

FIRST, SECOND, THIRD = events(12, 1), events(9, 2, start=12), events(8, 3, start=21)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Any:
    """One that was pushed some events."""
    made = SHELLS[request.param]()
    made.push(FIRST)
    return made


class _Interrupt:
    """Raises KeyboardInterrupt when a function is called, like a stop button; counts calls before.

    Or another error, as one that nobody expects.
    """

    def __init__(self, after: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.calls, self._after, self._error = 0, after, error

    def __enter__(self) -> _Interrupt:
        sys.setprofile(self._profiled)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profiled(self, frame: Any, event: str, _: object) -> None:
        # Python ignores what is raised in generators that are closed.
        code = frame.f_code
        is_generator = code.co_flags & inspect.CO_GENERATOR
        if event == "call" and "cepbench" in code.co_filename and not is_generator:
            self.calls += 1
            if self.calls == self._after:
                raise self._error


def test_an_interrupted_push_is_whole_or_fails_by_name(shell: Any) -> None:
    snapshot = shell.snapshot()
    kind = type(shell)
    due = [plain(shell.push(SECOND)), plain(shell.push(THIRD))]
    with _Interrupt(0) as counted:
        kind.restore(snapshot).push(SECOND)
    outcomes = set()
    for after in np.unique(np.linspace(1, counted.calls, 15).astype(int)).tolist():
        live = kind.restore(snapshot)
        try:
            with _Interrupt(after):
                live.push(SECOND)
        except KeyboardInterrupt:
            pass
        try:
            # Of a detector the position says whether the batch was taken.
            again = live.push(SECOND)
        except FailedStateError:
            outcomes.add("failed")
            for call in (_push_again, type(live).flush, type(live).snapshot, _metrics):
                with pytest.raises(FailedStateError, match=r"in a push .* the last snapshot"):
                    call(live)
        except StreamError:
            outcomes.add("taken")
            assert plain(live.push(THIRD)) == due[1]
        else:
            outcomes.add("not taken")
            assert [plain(again), plain(live.push(THIRD))] == due
    assert "failed" in outcomes
    again = kind.restore(snapshot)
    assert [plain(again.push(SECOND)), plain(again.push(THIRD))] == due


def _push_again(live: Any) -> Any:
    return live.push(SECOND)


def _metrics(live: Any) -> Any:
    return live.metrics if isinstance(live, cep.Aggregator) else live.metrics()


REFUSED = {
    "order": (events(5, 4, start=3), "before the last event pushed"),
    "text": (events(5, 4, start=12, x=list("abcde")), "text"),
    "boolean": (events(5, 4, start=12, x=[True, False, True, True, False]), "boolean"),
    "attribute": (
        cep.EventStream.from_pandas(
            pd.DataFrame({"type": list("AB"), "ts": [12, 13]}), type="type", time="ts"
        ),
        "no attribute 'x'",
    ),
    "time": (
        cep.EventStream.from_pandas(
            pd.DataFrame({"type": ["A"], "ts": pd.to_datetime(["2030-01-01"]), "x": [1]}),
            type="type",
            time="ts",
        ),
        "counts ticks",
    ),
    "no stream": (pd.DataFrame({"type": ["A"]}), "must be an EventStream"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_batch_changes_nothing(shell: Any, reason: str) -> None:
    twin = copy.copy(shell)
    batch, words = REFUSED[reason]
    with pytest.raises(StreamError, match=words):
        shell.push(batch)
    assert plain(shell.push(SECOND)) == plain(twin.push(SECOND))
    assert plain(shell.flush()) == plain(twin.flush())


@pytest.mark.parametrize("name", [*SHELLS])
def test_a_value_that_cannot_be_compared_changes_nothing(name: str) -> None:
    """But where engines alone know whether they read it."""
    live = SHELLS[name]()
    live.push(FIRST)
    twin = copy.copy(live)
    if name == "a-seq":  # compares nothing
        return
    large = events(6, 5, start=12, x=[2**60 + 1] * 6)
    with pytest.raises(StreamError, match="too large to compare exactly"):
        live.push(large)
    assert plain(live.push(SECOND)) == plain(twin.push(SECOND))


def test_copies_are_independent(shell: Any) -> None:
    due = plain(copy.deepcopy(shell).push(SECOND))
    for copied in (copy.copy(shell), copy.deepcopy(shell)):
        copied.push(events(9, 6, start=12))
        copied.flush()
    assert plain(shell.push(SECOND)) == due


def test_a_failure_of_one_query_is_one_of_all() -> None:
    """Those that share state, or reuse matches, fail together."""
    live: Any = SHELLS["workload"]()
    live.push(FIRST)
    twin = type(live).restore(live.snapshot())
    with _Interrupt(0) as counted:
        twin.push(SECOND)
    with pytest.raises(ZeroDivisionError), _Interrupt(counted.calls // 2, ZeroDivisionError):
        live.push(SECOND)
    with pytest.raises(FailedStateError, match="ZeroDivisionError"):
        live.push(SECOND)
    for change in (
        lambda: live.add("more", "PATTERN SEQ(A a) WITHIN 1 units"),
        lambda: live.remove("wide"),
    ):
        with pytest.raises(FailedStateError):
            change()


def test_a_refused_change_of_the_plan_changes_nothing() -> None:
    for name, plan in (
        ("adaptive", cep.OrderPlan(["a", "b", "c"])),
        (
            "adaptive workload",
            cep.WorkloadPlan(
                cep.Workload({"q": "PATTERN SEQ(A a) WITHIN 1 units"}), sources={"q": None}
            ),
        ),
    ):
        live: Any = SHELLS[name]()
        live.push(FIRST)
        twin = copy.copy(live)
        with pytest.raises(cep.CepbenchError):
            live.switch(plan)
        assert plain(live.push(SECOND)) == plain(twin.push(SECOND))


def test_reading_a_failed_detector_after_flush() -> None:
    """A detector that ended is whole."""
    live = SHELLS["tree"]()
    live.push(FIRST)
    live.flush()
    assert live.metrics().events == len(FIRST)
    with pytest.raises(EvaluationError, match="was flushed; make a new one"):
        live.push(SECOND)
