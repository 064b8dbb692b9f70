"""Negated items whose events end runs: the matches are those of the filter, and of the naive twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.negation import with_negation
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.runs.result import RunCounts
from cepbench.errors import EvaluationError
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.checks import found_in
from tests.engines.detection.strategies import events_of, stream_of

#: Pattern, the variables decided early, and the states of the automaton.
DECIDED = [
    ("SEQ(A a, NOT(B n), C c)", "n", "a, c, F"),
    ("SEQ(A a, NOT(B n), C c) WHERE n.x = a.x", "n", "a, c, F"),
    ("SEQ(A a, NOT(B n), C c) WHERE n.x = c.x", "", "a, c, F"),
    ("SEQ(NOT(B n), A a, C c)", "", "a, c, F"),
    ("SEQ(A a, C c, NOT(B n))", "", "a, c, F"),
    ("SEQ(A a, NOT(OR(B n, D m)), C c) WHERE m.x > c.x", "n", "a, c, F"),
    ("SEQ(KL(A a), NOT(B n), C c)", "n", "a[1], a[i] blocked, a[i], c, F"),
    ("SEQ(KL(A a), NOT(B n), C c) WHERE n.x < sum(a.x)", "n", "a[1], a[i] blocked, a[i], c, F"),
    ("SEQ(KL(A a), NOT(B n), C c) WHERE n.x < a.x", "n", "a[1], a[i] blocked, a[i], c, F"),
    ("SEQ(KL(A a), NOT(B n), C c) WHERE n.x != a.x", "", "a[1], a[i], c, F"),
    ("SEQ(A a, NOT(B n), C c) STRATEGY partition_contiguity(x)", "", "a, c, F"),
    ("SEQ(A a, NOT(B n), C c) WHERE [x] STRATEGY partition_contiguity(x)", "n", "a, c, F"),
]


@pytest.mark.parametrize(("text", "early", "states"), DECIDED)
def test_what_is_decided_early(text: str, early: str, states: str) -> None:
    compiled = automaton(f"PATTERN {text} WITHIN 9 units")
    assert isinstance(compiled, Automaton)
    forbidding = with_negation(compiled)
    assert " ".join(variable.name for variable in forbidding.forbidden) == early
    assert forbidding.text == states
    # What the events of its own edges satisfy does not change.
    its = forbidding.table()
    is_own = ~its["state"].str.endswith("blocked") & (its["edge"] != "forbid")
    assert its[is_own].to_dict("list") == compiled.table().to_dict("list")


def test_a_run_ends_at_a_forbidden_event() -> None:
    """Whatever comes later; with the filter each run makes its matches."""
    events = stream_of(events_of("A@1 A@2 B@3 " + " ".join(f"C@{k}" for k in range(4, 40))))
    runs = {}
    for negation in ("early", "filter"):
        result = evaluate(
            "PATTERN SEQ(A a, NOT(B n), C c) WITHIN 99 units",
            events,
            evaluator="sase",
            options={"negation": negation},
        )
        assert result.matches.empty
        assert isinstance(result.runs, RunCounts)
        runs[negation] = result.runs.output_complexity
    assert runs == {"early": 0, "filter": 2 * 2 * 36}


def test_a_forbidden_event_blocks_a_loop_until_its_next_event() -> None:
    events = stream_of(events_of("A@1 A@2 B@3 C@4 A@5 C@6"))
    pattern = parse("PATTERN SEQ(KL(A a), NOT(B n), C c) STRATEGY next WITHIN 9 units")
    result = evaluate(pattern, events, evaluator="sase", output="compressed")
    expected = {(0, ((0, 1, 4), 5)), (0, ((1, 4), 5)), (0, ((4,), 5))}
    assert set(found_in(pattern, result.matches)) == expected


def test_a_forbidden_event_does_not_end_a_run_that_goes_on_at_the_same_time() -> None:
    events = stream_of(events_of("A@1 B@2 C@2 D@3"))
    pattern = parse("PATTERN SEQ(A a, NOT(B n), C c, D d) STRATEGY next WITHIN 9 units")
    result = evaluate(pattern, events, evaluator="sase")
    assert found_in(pattern, result.matches) == [(0, (0, 2, 3))]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("SEQ(KL(A a), NOT(B n), C c) WHERE a[i].x > a[i-1].x AND n.x < a[1].x STRATEGY next", {}),
        ("SEQ(A a, NOT(B n), C c) WHERE n.x < a.x", {}),
        ("SEQ(A a, KL(B b), C c) WHERE b[i].x > max(b[..i-1].x)", {"postpone": True}),
    ],
    ids=["loop", "plain", "postponed"],
)
def test_memory_is_bounded_by_the_window(text: str, options: dict[str, Any]) -> None:
    peaks = []
    for events in (10_000, 50_000):
        number = np.arange(events)
        columns = {
            "type": list("AABBBCABBC") * (events // 10),
            "time": number,
            "x": number * 37 % 50,
        }
        stream = EventStream.from_pandas(pd.DataFrame(columns), type="type", time="time")
        pattern = f"PATTERN {text} WITHIN 30 units"
        with pieces_of(events=500):
            result = evaluate(pattern, stream, evaluator="sase", options=options, output="count")
        assert result.metrics.matches > events / 10
        peaks.append(result.metrics.peak_bytes)
    assert peaks[0] == peaks[1]


def test_unknown_ways_to_negate_are_refused() -> None:
    events = stream_of(events_of("A@1 B@2 C@3"))
    pattern = "PATTERN SEQ(A a, NOT(B n), C c) WITHIN 9 units"
    with pytest.raises(EvaluationError, match="sase: negation is one of early, filter"):
        evaluate(pattern, events, evaluator="sase", options={"negation": "never"})
