"""A push happens whole or not at all, in every detector and aggregator."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import sys
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import FailedStateError, StreamError
from tests.contract.entries import LIVE
from tests.contract.live import events, opened, plain

FIRST, SECOND, THIRD = events(0, 24), events(24, 36), events(36, 48)

#: An entry and a way to run it: of each the first, and of one all that are of several queries or plans.
SHELLS = [
    *((name, "99999" if name == "dpc" else "") for name in LIVE),
    *(
        ("tree", words)
        for words in ("workload", "reuse", "adaptive", "adaptive queries", "RETURN", "non_overlap")
    ),
    ("hierarchical-stacks", "workload"),
    ("greta", "slack"),
    *((name, "sharing") for name in ("a-seq", "two-step")),
]


def shell_of(name: str, words: str) -> Any:
    """A detector or an aggregator that was pushed some events."""
    return next(live for _, _, live in opened(name, FIRST, having=words))


@pytest.fixture(params=SHELLS, ids=lambda its: " ".join(its))
def shell(request: pytest.FixtureRequest) -> Any:
    return shell_of(*request.param)


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


def with_x(values: list[Any]) -> cep.EventStream:
    """Events after the first ones, with other values."""
    frame = events(24, 24 + len(values)).to_pandas().assign(x=values)
    return cep.EventStream.from_pandas(frame, type="type", time="time")


def without_x() -> cep.EventStream:
    frame = events(24, 36).to_pandas().drop(columns="x")
    return cep.EventStream.from_pandas(frame, type="type", time="time")


DATED = pd.DataFrame({"type": ["A"], "time": pd.to_datetime(["2030-01-01"]), "x": [1]})

REFUSED = {
    "order": (events(6, 12), "before the last event pushed"),
    "text": (with_x([*"abcdefghijkl"]), "text"),
    "boolean": (with_x([True, False] * 6), "boolean"),
    "attribute": (without_x(), "no attribute 'x'"),
    "time": (cep.EventStream.from_pandas(DATED, type="type", time="time"), "counts ticks"),
    "no stream": (pd.DataFrame({"type": ["A"]}), "must be an EventStream"),
    "large": (with_x([2**60 + 1] * 12), r"too large to compare exactly|beyond 2\*\*53"),
}


def _refusal(live: Any, batch: Any) -> str | None:
    try:
        live.push(batch)
    except StreamError as error:
        return str(error)
    return None


@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_batch_changes_nothing(shell: Any, reason: str) -> None:
    """If it is refused: what reads or compares no ``x`` takes any."""
    twin = copy.copy(shell)
    batch, words = REFUSED[reason]
    refused = _refusal(shell, batch)
    if refused is None:
        assert reason in ("large", "text", "boolean", "attribute")
        return
    assert re.search(words, refused)
    if reason == "large":  # which some engines see when they have begun
        with suppress(FailedStateError):
            assert plain(shell.push(SECOND)) == plain(twin.push(SECOND))
        return
    assert plain(shell.push(SECOND)) == plain(twin.push(SECOND))
    assert plain(shell.flush()) == plain(twin.flush())


def test_copies_are_independent(shell: Any) -> None:
    due = plain(copy.deepcopy(shell).push(SECOND))
    for copied in (copy.copy(shell), copy.deepcopy(shell)):
        copied.push(events(24, 48, seed=6))
        copied.flush()
    assert plain(shell.push(SECOND)) == due


def test_copies_go_on_as_the_original(shell: Any) -> None:
    """Event by event, of which so few arrive that no engine arranges its arrays anew."""
    copies = [copy.copy(shell), pickle.loads(pickle.dumps(shell))]
    for batch in SECOND.batches(1):
        due = plain(shell.push(batch))
        for its in copies:
            assert plain(its.push(batch)) == due


def test_a_failure_of_one_query_is_one_of_all() -> None:
    """Those that share state, or reuse matches, fail together."""
    live = shell_of("tree", "reuse")
    twin = type(live).restore(live.snapshot())
    with _Interrupt(0) as counted:
        twin.push(SECOND)
    with pytest.raises(ZeroDivisionError), _Interrupt(counted.calls // 2, ZeroDivisionError):
        live.push(SECOND)
    with pytest.raises(FailedStateError, match="ZeroDivisionError"):
        live.push(SECOND)
    for change in (
        lambda: live.add("more", "PATTERN SEQ(A a) WITHIN 1 units"),
        lambda: live.remove("q1"),
    ):
        with pytest.raises(FailedStateError):
            change()


def test_a_refused_change_of_the_plan_changes_nothing() -> None:
    other = cep.Workload({"q": "PATTERN SEQ(A a) WITHIN 1 units"})
    for words, plan in (
        ("adaptive", cep.OrderPlan(["a", "b", "c"])),
        ("adaptive queries", cep.WorkloadPlan(other, sources={"q": None})),
    ):
        live = shell_of("tree", words)
        twin = copy.copy(live)
        with pytest.raises(cep.CepbenchError):
            live.switch(plan)
        assert plain(live.push(SECOND)) == plain(twin.push(SECOND))
