"""Counts without runs: the matches of the naive twin, at any size, by start and as a product."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.sase.counting import CountingEngine, CountLayout, count_layout
from cepbench.errors import PartialMatchLimitError, UnsupportedPatternError
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples
from tests.engines.detection.constructs import Family, construct_cases
from tests.engines.detection.strategies import batches_of, events_of, stream_of
from tests.naive.matcher import labelled_matches

_KINDS = (Kind.PLAIN, Kind.PLAIN, Kind.KLEENE, Kind.NEGATED)
SEQUENCES = Family(_KINDS, (Operator.SEQ,), types=(2, 3, 1))


def layout_of(pattern: Pattern) -> CountLayout | None:
    """How the matches of a pattern without OR are counted; None if by runs."""
    return count_layout(task_of(pattern))


def task_of(pattern: Pattern) -> BranchTask:
    return BranchTask.of_one(pattern, automaton(pattern), reports=False)


@pytest.mark.kernel
@given(data=st.data())
@examples(8)
def test_the_matches_of_the_naive_twin_in_digits(data: st.DataObject) -> None:
    """As after counts that do not fit an integer: after each batch, restored after any of them."""
    case = data.draw(construct_cases(SEQUENCES))
    # An engine by itself knows no other order.
    case = replace(case, pattern=replace(case.pattern, order="time"))
    try:
        assume(layout_of(case.pattern) is not None)
    except UnsupportedPatternError:
        assume(False)
    # A set stands in a match as the tuple of its positions.
    lasts = sorted(
        max(np.hstack([*match])) for _, match in labelled_matches(case.pattern, case.events)
    )

    def new_engine() -> CountingEngine:
        task = task_of(case.pattern)
        layout = count_layout(task)
        assert layout is not None
        return CountingEngine(task, layout)

    engine = new_engine()
    engine.widen()
    counted = position = 0
    with pieces_of(events=data.draw(st.sampled_from([3, inf]))):
        for batch in data.draw(batches_of(case.stream)):
            if len(batch):
                counted += engine.run(batch, position, ended=False).number
            position += len(batch)
            assert counted == np.searchsorted(lasts, position)
            if data.draw(st.booleans()):
                state, engine = engine.snapshot(), new_engine()
                engine.restore(state)
    assert counted + engine.run(None, position, ended=True).number == len(lasts)


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, KL(B b), C c)",
        "SEQ(KL(A a), KL(B b), KL(C c))",
        "SEQ(NOT(C m), KL(A a), KL(B b), NOT(A n), C c)",
        "SEQ(KL(A a), KL(B b), C c) WHERE b.x > a[1].x AND [y]",
        "SEQ(A a, KL(B b), NOT(A n), KL(C c)) WHERE [y]",
    ],
)
def test_large_counts_are_those_of_merged_runs(text: str, seeds) -> None:
    for seed in seeds(2):
        rng = np.random.default_rng(seed)
        events = pd.DataFrame(
            {
                "type": rng.choice([*"ABBBC"], 900),
                "time": np.sort(rng.integers(0, 300, 900)),
                "x": rng.integers(0, 9, 900),
                "y": rng.integers(0, 2, 900),
            }
        )
        stream = EventStream.from_pandas(events, type="type", time="time")
        pattern = parse(f"PATTERN {text} WITHIN {rng.integers(100, 200)} units")
        positive = pattern.without(pattern.negated)
        assert layout_of(pattern) is not None

        def counts(
            pattern: Pattern, stream: EventStream = stream, **more: Any
        ) -> tuple[list[int], float]:
            detector = Detector(pattern, evaluator="sase", output="count", **more)
            found = [detector.push(batch) for batch in stream.batches(97)]
            runs = detector.metrics().runs
            assert runs is not None
            return found, runs.runs_per_step

        (with_not, _), (without, none) = counts(pattern), counts(positive)
        assert max(without) > 1 << 62
        assert any(with_not)
        merged, some = counts(positive, node_times=True)
        assert merged == without
        assert none == 0 < some


@pytest.mark.parametrize("condition", ["", " AND a.x < c.x"])
def test_partitions_stay_between_rounds_until_their_events_have_left(condition: str) -> None:
    """As with runs, one event at a time, over keys that come back, go for good or are missing."""
    number = 3000
    rng = np.random.default_rng(3)
    keys = rng.integers(0, np.linspace(5, 400, number).astype(int)).astype(float)
    keys[rng.random(number) < 0.1] = np.nan
    events = pd.DataFrame(
        {"type": rng.choice([*"ABC"], number), "time": np.arange(number) // 2, "k": keys}
    )
    events["time"] += 500 * (events.index >= number - 9)
    stream = EventStream.from_pandas(events.assign(x=rng.random(number)), type="type", time="time")
    pattern = parse(f"PATTERN SEQ(A a, KL(B b), C c) WHERE [k]{condition} WITHIN 60 units")
    layout = layout_of(pattern)
    assert layout is not None
    assert layout.items.by_start == bool(condition)
    without = Detector(pattern, evaluator="sase", output="count")
    runs = Detector(pattern, evaluator="sase", output="count", node_times=True)
    partitions = []
    for at, batch in enumerate(stream.batches(1), 1):
        assert without.push(batch) == runs.push(batch)
        if at % 8 == 0:  # a snapshot takes longer than a push
            partitions.append(len(without.snapshot()["run/engines/0/partitions/values"]))
    assert without.flush() == runs.flush()
    assert runs.metrics().matches > 50
    # There are 120 events in a window, and as many partitions again before they are dropped.
    assert 60 < max(partitions) <= 2 * 120 + 17
    assert partitions[-1] <= 9


@pytest.mark.parametrize("size", [20, 61, 62, 63, 93, 200])
@pytest.mark.parametrize("condition", ["", "WHERE a[1].x < b.x AND a[1].x < c.x"])
def test_exact_at_any_size(size: int, condition: str) -> None:
    names = ["A"] * size + ["B"] * size + ["C"] * size
    events = pd.DataFrame({"type": names, "time": range(3 * size), "x": range(3 * size)})
    pattern = parse(f"PATTERN SEQ(KL(A a), KL(B b), KL(C c)) {condition} WITHIN 999 units")
    stream = EventStream.from_pandas(events, type="type", time="time")
    for batch in (3 * size, size // 2):
        detector = Detector(pattern, evaluator="sase", output="count")
        assert sum(map(detector.push, stream.batches(batch))) == (2**size - 1) ** 3


@pytest.mark.parametrize(
    ("text", "by_start"),
    [
        ("SEQ(A a, B b)", False),
        ("SEQ(A a, KL(B b), NOT(C n), C c) WHERE a.x > 1 AND n.x < 2 AND [y]", False),
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x != c.x", True),
        ("SEQ(KL(A a), B b) WHERE a[1].x < b.x", True),
        # A comparison with another event than the first, an expression over two, and what is known
        # of a NOT only later or of two events.
        ("SEQ(A a, B b, C c) WHERE b.x < c.x", None),
        ("SEQ(KL(A a), B b) WHERE a.x < b.x", None),
        ("SEQ(A a, B b) WHERE a.x + b.x > 1", None),
        ("SEQ(A a, B b, NOT(C n))", None),
        ("SEQ(A a, NOT(B n), C c) WHERE a.x < n.x", None),
        ("SEQ(A a, B b) STRATEGY next", None),
    ],
)
def test_what_is_counted_without_runs(text: str, by_start: bool | None) -> None:
    layout = layout_of(parse(f"PATTERN {text} WITHIN 9 units"))
    assert (None if layout is None else layout.items.by_start) == by_start


def test_options_that_ask_for_runs() -> None:
    events = stream_of(events_of("A@1 B@2 C@3 A@4 C@5"))
    pattern = parse("PATTERN SEQ(A a, NOT(B n), C c) WITHIN 8 units")
    for options in ({}, {"negation": "filter"}, {"postpone": True}):
        result = evaluate(pattern, events, evaluator="sase", output="count", options=options)
        assert result.metrics.matches == 1
        assert (result.runs.runs_per_step > 0) == bool(options)


def test_metrics() -> None:
    events = stream_of(events_of("A@1 A@2 B@3 A@9 C@9 C@12").assign(x=np.arange(6.0)))
    for condition, peak in (("", 0), ("WHERE a.x < c.x", 3), ("WHERE a.x < b.x", 0)):
        pattern = parse(f"PATTERN SEQ(A a, B b, C c) {condition} WITHIN 8 units")
        result = evaluate(pattern, events, evaluator="sase", output="count")
        assert result.metrics.matches == 2
        assert result.metrics.peak_partial_matches == peak
        runs = result.runs
        assert (runs.runs_started, runs.runs_merged, runs.peak_runs) == (3, 0, peak)
        assert runs.seconds_matching > 0


def test_many_starts_are_an_error() -> None:
    events = stream_of(events_of(" ".join(f"A@{i}" for i in range(50))).assign(x=np.arange(50.0)))
    pattern = parse("PATTERN SEQ(A a, KL(B b)) WHERE a.x < b.x WITHIN 99 units")
    with pytest.raises(PartialMatchLimitError, match="runs of the automaton"):
        evaluate(pattern, events, evaluator="sase", output="count", partial_match_limit=20)
    short = replace(pattern, conditions=())
    found = evaluate(short, events, evaluator="sase", output="count", partial_match_limit=20)
    assert found.metrics.matches == 0
