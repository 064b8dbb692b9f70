"""Negated items whose events end runs: the matches are those of the filter, and of the naive twin."""

from __future__ import annotations

from itertools import pairwise
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
from tests.budgets import INTERPRETED
from tests.contract.structures import GAPS
from tests.engines.detection.checks import Labelled, check, check_in_batches, found_in
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import Case, events_of, few_values, stream_of
from tests.naive.automaton import automaton_matches

CONDITIONS = ("n.x = 1", "n.x = a.x", "n.x >= a.x", "n.x > c.x", "c.x >= a.x")
OF_SETS = ("n.x = a[last].x", "n.x < sum(a.x)", "n.x < count(a.x)", "a[i].x >= a[i-1].x")
ENDS = (
    *("", "STRATEGY next ") * 4, "STRATEGY strict_contiguity ", "STRATEGY partition_contiguity(s) "
)  # fmt: skip


def case_of(rng: np.random.Generator) -> Case:
    """A pattern, and a stream in which many events have the same time."""
    structure = rng.choice(GAPS)
    conditions = ["[s]", "[x]", *CONDITIONS, *(OF_SETS if "KL(A a)" in structure else ())]
    chosen = [
        condition
        for condition in rng.choice(conditions, rng.choice([0, 1, 1, 2]), replace=False)
        if " c" in structure or "c.x" not in condition
    ]
    where = f"WHERE {' AND '.join(chosen)} " if chosen else ""
    end = rng.choice(ENDS) + rng.choice(["", "", "", "OUTPUT non_overlap "])
    size = rng.integers(8, 13)
    times = np.cumsum(rng.integers(3, size=size) > 0)
    window = rng.choice([9, 9, 4])
    pattern = parse(f"PATTERN {structure} {where}{end}WITHIN {window} units")
    return Case(pattern, few_values(rng, times, "AABC"))


@pytest.mark.kernel
def test_the_matches_of_the_naive_automaton(seeds) -> None:
    """Counted, listed or compressed, in batches, restored after any of them."""
    negated = 0
    for seed in seeds(60):
        rng = np.random.default_rng(seed)
        case = case_of(rng)
        if "sase" not in able(case.pattern):
            continue
        expected = automaton_matches(case.pattern, case.events)
        positive = sum(
            len(automaton_matches(branch.without(branch.negated), case.events))
            for branch in case.pattern.iter_branches()
        )
        if len(expected) < positive:
            negated += len(expected) > 0
            with pieces_of(events=int(rng.choice([3, 1000]))):
                _check(case, expected, rng)
    assert negated > 6 or INTERPRETED  # by so few seeds


def _check(case: Case, expected: set[Labelled], rng: np.random.Generator) -> None:
    cuts = sorted(rng.integers(len(case.stream) + 1, size=rng.integers(6)).tolist())
    batches = [case.stream[i:j] for i, j in pairwise([0, *cuts, len(case.stream)])]
    restored = rng.choice([True, False], len(batches)).tolist()
    check(case, expected, None, "sase")
    check_in_batches(case, expected, None, "sase", batches, restored)
    check(case, expected, None, "sase", {"negation": "filter"})
    compressed = evaluate(case.pattern, case.stream, evaluator="sase", output="compressed")
    assert compressed.compressed.count() == len(expected)
    assert set(found_in(case.pattern, compressed.matches)) == expected


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
