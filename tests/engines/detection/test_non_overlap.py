"""OUTPUT non_overlap: of matches that overlap in time within a partition, the first one."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.result import Metrics
from cepbench.errors import UnsupportedTaskError
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    able,
    branch_plans,
    construct_cases,
)
from tests.engines.detection.strategies import Case, batches_of, events_of, stream_of
from tests.naive.matcher import labelled_matches, naive_matches

pytestmark = pytest.mark.kernel

BOTH = FAMILIES | GROUP_FAMILIES


@pytest.mark.parametrize("family", ["everything", "twins", "groups and disjunction"])
@given(data=st.data())
@examples(5)
def test_every_evaluator_and_any_batches(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(BOTH[family], sizes=(1, 3)))
    case = replace(case, pattern=replace(case.pattern, output="non_overlap"))
    expected = labelled_matches(case.pattern, case.events)
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    for evaluator in able(case.pattern):
        plan = data.draw(branch_plans(evaluator, case.pattern))
        check(case, expected, plan, evaluator)
        check_in_batches(case, expected, plan, evaluator, batches, restored)


@pytest.mark.parametrize("family", ["everything", "groups and disjunction"])
@given(data=st.data())
@examples(5)
def test_a_whole_stream_in_rounds(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(BOTH[family], sizes=(1, 3)))
    case = replace(case, pattern=replace(case.pattern, output="non_overlap"))
    expected = labelled_matches(case.pattern, case.events)
    with pieces_of(events=data.draw(st.integers(1, 3)), matches=data.draw(st.integers(1, 9))):
        for evaluator in able(case.pattern):
            check(case, expected, data.draw(branch_plans(evaluator, case.pattern)), evaluator)


@pytest.mark.parametrize("evaluator", ["tree", "zstream", "stack-nfa"])
def test_few_matches_are_in_memory_at_once(evaluator: str) -> None:
    """Of 600,000 matches some 1,200 are reported; all would take 14 MB."""
    rng = np.random.default_rng(1)
    table = {"type": rng.choice(list("ABC"), 12_000), "ts": np.arange(12_000)}
    stream = EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")
    text = "PATTERN SEQ(A a, B b, C c) {}WITHIN 60 units"
    plan = None if evaluator == "stack-nfa" else TreePlan((("a", "b"), "c"))
    peaks = []
    for output in ("OUTPUT non_overlap ", ""):
        pattern = parse(text.format(output))
        evaluate(pattern, stream[:500], plan, evaluator=evaluator)
        tracemalloc.start()
        result = evaluate(pattern, stream, plan, evaluator=evaluator)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert result.metrics.matches > 500_000
    assert peaks[0] < peaks[1] / 4


#: A stream with two symbols, missing in two events.
STREAM = events_of("A@1 A@2 B@3 A@4 B@5 A@6 B@7 B@8").assign(
    s=pd.Categorical(["p", "q", "p", "q", "q", None, None, "p"], categories=["p", "q"])
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Of those that end together the latest start.
        ("SEQ(A a, B b)", {(1, 2), (3, 4), (5, 6)}),
        ("SEQ(A a, B b) WHERE [s]", {(0, 2), (3, 4)}),
        ("SEQ(A a, B b) STRATEGY partition_contiguity(s)", {(0, 2), (3, 4)}),
        ("SEQ(A a, B b) STRATEGY strict_contiguity", {(1, 2), (3, 4), (5, 6)}),
        # The fewest events, then the smallest positions.
        ("SEQ(A a, KL(ANY b), B c)", {(0, (1,), 2), (3, (4,), 6)}),
        ("SEQ(A a, KL(B b), B c)", {(1, (2,), 4), (5, (6,), 7)}),
        ("AND(A a, A b)", {(0, 1), (3, 5)}),
        # Those that end before it are negated.
        ("SEQ(A a, B b, NOT(A n)) WHERE a.s != 'q'", {(0, 6)}),
    ],
)
def test_by_hand(text: str, expected: set[tuple]) -> None:
    pattern = parse(f"PATTERN {text} OUTPUT non_overlap WITHIN 7 units")
    assert naive_matches(pattern, STREAM) == expected


#: Where batches decide: what, the window, the events, what is reported, and at which of them no key is.
LIVE = {
    # At 6, B@4 and A@6 wait for no C, and so does what ends at B@4 or A@4, which comes first.
    "a tie one window later": (
        "AND(A a, B b, NOT(C n))", 2, "C@0 B@3 B@4 A@4 A@6 B@9", {(3, 2)}, ()
    ),
    # The same event as either variable.
    "events without a key": ("OR(A a, A b) WHERE [s]", 2, "A@1 A@2 A@3", {0, 1, 2}, (0, 2)),
    # When the pair is decided, the end of what it overlaps with is the oldest event kept.
    "the first kept event": (
        "OR(SEQ(A a, B b, NOT(C n)), A c)", 3, "C@0 B@0 A@4 C@7 B@7 A@7 A@7 B@10", {2, 5, 6}, ()
    ),
    "the first kept event of a pair": (
        "AND(A a, B b, NOT(C n))", 3, "A@0 B@0 C@3 C@7 A@10 A@10 B@13 A@16 C@19 A@19 B@20 C@24",
        {(5, 6)}, (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LIVE)
@given(data=st.data())
@examples(3)
def test_one_event_at_a_time(what: str, data: st.DataObject) -> None:
    text, window, written, reported, keyless = LIVE[what]
    pattern = parse(f"PATTERN {text} OUTPUT non_overlap WITHIN {window} units")
    events = events_of(written).assign(s=1.0)
    events.loc[list(keyless), "s"] = np.nan
    case = Case(pattern, events)
    expected = labelled_matches(pattern, events)
    positions = {tuple(p for p in match[1] if p is not None) for match in expected}
    assert positions == {its if isinstance(its, tuple) else (its,) for its in reported}
    batches = [case.stream[row : row + 1] for row in range(len(events))]
    restored = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    for evaluator in able(pattern):
        plan = data.draw(branch_plans(evaluator, pattern))
        check_in_batches(case, expected, plan, evaluator, batches, restored)


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, KL(B b), B c)",
        "SEQ(KL(A a), KL(B b)) WHERE [s]",
        "KL(ANY a) WHERE [s]",
        "SEQ(KL(A a), B b) STRATEGY partition_contiguity(s)",
        "SEQ(A a, KL(ANY b), A c) STRATEGY strict_contiguity",
    ],
)
@given(data=st.data())
@examples(10)
def test_engines_of_automata_leave_other_matches_out(text: str, data: st.DataObject) -> None:
    pattern = parse(f"PATTERN {text} OUTPUT non_overlap WITHIN 5 units")
    size = data.draw(st.integers(0, 10))
    gaps = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    events = pd.DataFrame(
        {
            "type": [*"AB", *data.draw(st.text("AB", min_size=size, max_size=size))],
            "time": [-100, -50, *np.cumsum(gaps)],
            "s": [1.0, 1.0, *(data.draw(st.sampled_from([1.0, 2.0, np.nan])) for _ in range(size))],
        }
    )
    batches = data.draw(batches_of(stream_of(events)))
    for evaluator in ("sase", "sase-basic", "sase-backtrack"):
        detector = Detector(pattern, evaluator=evaluator)
        found = [detector.push(batch) for batch in batches]
        rows = [row for one in found for row in one.itertuples(index=False, name=None)]
        assert len(rows) == len(set(rows))
        assert set(rows) == naive_matches(pattern, events)


def test_more_matches_than_could_be_listed() -> None:
    events = pd.DataFrame({"type": [*"AA", *"B" * 60, "C"], "time": range(63)})
    pattern = parse("PATTERN SEQ(A a, KL(B b), C c) OUTPUT non_overlap WITHIN 99 units")
    detector = Detector(pattern, evaluator="sase")
    assert detector.push(stream_of(events)).values.tolist() == [[1, (2,), 62]]


def test_the_state_is_bounded_and_counting_selects_too() -> None:
    times = np.arange(30_000)
    events = pd.DataFrame(
        {"type": np.where(times % 3 < 2, "A", "B"), "time": times, "s": times // 99}
    )
    pattern = parse("PATTERN SEQ(A a, B b) WHERE [s] OUTPUT non_overlap WITHIN 30 units")
    detector = Detector(pattern, evaluator="stack-nfa", output="count")
    stream = stream_of(events)
    found, stored = [], []
    for batch in stream.batches(1000):
        found.append(detector.push(batch))
        stored.append(sum(array.nbytes for array in detector.snapshot().values()))
    assert sum(found) + detector.flush() == 10_000
    assert detector.metrics().matches == 10_000
    assert max(stored[3:]) < 1.2 * max(stored[:3])


def test_who_only_counts_cannot_select() -> None:
    counting = Evaluator("counts", lambda task: None, without_plan=True, outputs=("count",))  # type: ignore
    with pytest.raises(UnsupportedTaskError, match='counts cannot give output="matches"'):
        Detector(
            "PATTERN SEQ(A a) OUTPUT non_overlap WITHIN 7 units", evaluator=counting, output="count"
        )


def test_who_selects_is_left_alone() -> None:
    class Selecting:
        def __init__(self, task: object) -> None:
            assert task.pattern.output == "non_overlap"  # type: ignore[attr-defined]
            assert task.output == "count"  # type: ignore[attr-defined]

        def push(self, batch: object) -> int:
            return 3

        def finish(self) -> int:
            return 0

        def metrics(self) -> Metrics:
            return Metrics()

    evaluator = Evaluator("selects", Selecting, without_plan=True, selects_output=True)  # type: ignore
    detector = Detector(
        "PATTERN SEQ(A a) OUTPUT non_overlap WITHIN 7 units", evaluator=evaluator, output="count"
    )
    assert detector.push(stream_of(events_of("A@1"))) == 3
