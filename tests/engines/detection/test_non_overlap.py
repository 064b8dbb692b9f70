"""OUTPUT non_overlap: of matches that overlap in time within a partition, the first one."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.result import Metrics
from cepbench.errors import UnsupportedTaskError
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from tests.budgets import examples, only_compiled
from tests.drawn_events import drawn_stream
from tests.engines.detection.checks import check_in_batches
from tests.engines.detection.constructs import (
    able,
    branch_plans,
)
from tests.engines.detection.strategies import Case, events_of, stream_of
from tests.naive.matcher import labelled_matches

pytestmark = pytest.mark.kernel


@only_compiled
@pytest.mark.parametrize("evaluator", ["tree", "zstream", "stack-nfa"])
def test_few_matches_are_in_memory_at_once(evaluator: str) -> None:
    """Of 600,000 matches some 1,200 are reported; all would take 14 MB."""
    stream = drawn_stream(12_000, "ABC", seed=1, names=("type", "ts"))
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
@examples(2)
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


def test_more_matches_than_could_be_listed() -> None:
    events = pd.DataFrame({"type": [*"AA", *"B" * 60, "C"], "time": range(63)})
    pattern = parse("PATTERN SEQ(A a, KL(B b), C c) OUTPUT non_overlap WITHIN 99 units")
    detector = Detector(pattern, evaluator="sase")
    assert detector.push(stream_of(events)).values.tolist() == [[1, (2,), 62]]


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
