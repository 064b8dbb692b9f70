"""Engines that keep runs apart: Figures 4 and 7 of [agrawal2008], and the buffer of every trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.sase.kernels import versioned_buffer as stored
from cepbench.engines.sase.sase_basic import BasicEngine
from cepbench.errors import EvaluationError, PartialMatchLimitError
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples
from tests.engines.detection.constructs import able, construct_cases
from tests.engines.detection.strategies import events_of, stream_of
from tests.engines.sase.test_sase import BOTH, QUERY_3, stock

pytestmark = pytest.mark.kernel


def engine_of(pattern: cep.Pattern) -> BasicEngine:
    """An engine that keeps the runs of one automaton apart."""
    task = BranchTask.of_one(pattern, cep.automaton(pattern))
    return BasicEngine(replace(task, limit=10**6))


def pointers_of(engine: BasicEngine) -> list[list[object]]:
    """The buffer of an engine, as :meth:`cepbench.presentation.explainer.Trace.pointers`, sorted."""
    (automaton,) = engine.task.trees
    names = [state.name for state in automaton.states]
    entries, pointers, bounds = engine.buffer
    versions = engine.state.versions

    def dewey(prefix: int, digit: int) -> str:
        if prefix < 0:
            return str(digit)
        before = versions[prefix % len(versions)]
        return f"{dewey(before[stored.PREFIX], before[stored.DIGIT])}.{digit}"

    def position(stack: int, entry: int) -> int:
        return int(entries[stack, entry % entries.shape[1], stored.AT_POSITION])

    found: list[list[object]] = []
    for stack, (first, behind, _) in enumerate(bounds.tolist()):
        for entry in range(first, behind):
            begin = entries[stack, entry % entries.shape[1], stored.FIRST_POINTER]
            for number in range(begin, stored.first_pointer_behind(engine.buffer, stack, entry)):
                to, its, prefix, digit = pointers[stack, number % pointers.shape[1]].tolist()
                before = ["", -1] if to < 0 else [names[to], position(to, its)]
                found.append([names[stack], position(stack, entry), *before, dewey(prefix, digit)])
    return sorted(found)


def test_the_versions_and_pointers_of_figure_4() -> None:
    engine = engine_of(parse(QUERY_3))
    engine.run(stock()[:4], 0, ended=False)
    assert pointers_of(engine) == [
        ["a[1]", 0, "", -1, "1"],
        ["a[1]", 2, "", -1, "2"],
        ["a[i]", 1, "a[1]", 0, "1.0"],
        ["a[i]", 2, "a[i]", 1, "1.0"],
        ["a[i]", 3, "a[1]", 2, "2.0"],
        ["a[i]", 3, "a[i]", 2, "1.0"],
    ]
    engine.run(stock()[4:], 4, ended=False)
    assert [pointer for pointer in pointers_of(engine) if pointer[0] == "b"] == [
        ["b", 5, "a[i]", 3, "2.0.0"],  # R2
        ["b", 5, "a[i]", 4, "1.0.0"],  # R1
        ["b", 7, "a[i]", 5, "2.1.0"],
        ["b", 7, "a[i]", 6, "1.1.0"],  # R3
    ]


@pytest.mark.parametrize("family", BOTH)
@given(data=st.data())
@examples(8)
def test_the_buffer_is_that_of_the_trace(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(BOTH[family], sizes=(1, 3)))
    # Nothing expires. An engine by itself does not know the order of arrival.
    window = replace(case.pattern.window, amount=1000)
    pattern = replace(case.pattern, output="all", order="time", window=window)
    if not len(case.stream) or "sase-basic" not in able(pattern) or len(pattern.branches()) > 1:
        return
    try:
        traced = cep.trace(pattern, case.stream)
    except EvaluationError:
        return
    engine = engine_of(pattern)
    engine.run(case.stream, 0, ended=False)
    expected = traced.pointers(len(case.stream)).to_numpy().tolist()
    assert pointers_of(engine) == sorted(expected)


#: A single Kleene item, and two others; what each may take.
FIGURE_7 = (
    "PATTERN SEQ(S a+, S b, S c) WHERE a[1].starts = 1 AND a[2..].loops = 1 AND b.ends = 1"
    " AND c.closes = 1 STRATEGY strict_contiguity WITHIN 9 units"
)


@pytest.mark.parametrize("evaluator", ["sase-basic", "sase-backtrack"])
def test_room_for_runs_is_kept_and_given_back(evaluator: str) -> None:
    """Room is made for twice as many runs, not anew with each push, and given back when they expire."""
    frame = pd.DataFrame({"type": "A", "time": 0, "x": np.arange(5000)})
    detector = Detector("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 9 units", evaluator=evaluator)
    rooms = []
    for batch in stream_of(frame).batches(50):
        detector.push(batch)
        rooms.append(len(detector.snapshot()["run/engines/0/pool/runs"]))
    assert rooms == sorted(rooms)
    assert len(set(rooms)) == 8
    assert all(
        live <= room <= 4 * live for live, room in zip(range(50, 5001, 50), rooms, strict=True)
    )
    assert detector.metrics().peak_partial_matches == 5000
    later = pd.DataFrame({"type": ["A", "B"], "time": 20, "x": 0})
    detector.push(stream_of(later))
    assert len(detector.snapshot()["run/engines/0/pool/runs"]) == 32
    # A run that accepts gives its room back at once.
    text = "PATTERN SEQ(A a, B b) STRATEGY next WITHIN 99 units"
    detector = Detector(text, evaluator=evaluator)
    detector.push(stream_of(events_of(" ".join(f"A@{t} B@{t + 1}" for t in range(0, 90, 2)))))
    assert detector.metrics().matches == 45
    assert len(detector.snapshot()["run/engines/0/pool/runs"]) == 32


def test_the_moves_of_figure_7() -> None:
    """A run that may take and proceed is split, and the second one reads again what the first had."""
    columns = {
        "type": "S", "time": range(1, 7), "starts": [1, 0, 0, 0, 0, 0], "loops": [0, 1, 1, 1, 0, 0],
        "ends": [0, 0, 1, 0, 1, 0], "closes": [0, 0, 0, 0, 0, 1],
    }  # fmt: skip
    stream = EventStream.from_pandas(pd.DataFrame(columns), type="type", time="time")
    detector = Detector(FIGURE_7, evaluator="sase-backtrack", node_times=True)
    assert detector.push(stream).values.tolist() == [[(0, 1, 2, 3), 4, 5]]
    edges = detector.node_metrics().set_index(["state", "edge"])
    assert edges.loc["a[i]", "tested"].tolist() == [5, 5, 5]  # events 2 to 5, the third one twice
    assert edges["passed"].to_dict() == {
        ("a[1]", "begin"): 1,
        ("a[i]", "take"): 4,
        # After the third event, where it may take too, and reads on; after the fifth one.
        ("a[i]", "proceed"): 3,
        ("a[i]", "ignore"): 0,
        ("b", "begin"): 3,
        ("b", "ignore"): 0,
        ("c", "begin"): 1,  # the first run fails, the second one produces a match
        ("c", "ignore"): 0,
    }
    assert edges.loc[("c", "begin"), "tested"] == 2
    runs = detector.metrics().runs
    assert runs is not None
    assert (runs.runs_started, runs.runs_split, runs.peak_runs, runs.events_reprocessed) == (
        1,
        1,
        2,
        2,
    )


def test_backtracking_ends_at_the_match_to_report() -> None:
    """Of a long batch, no run of a partition reads on when the match before its last event is known."""
    events = stream_of(events_of(" ".join(f"{kind}@{i}" for i, kind in enumerate("ABBC" * 50))))
    text = "PATTERN SEQ(A a, KL(B b), C c) STRATEGY next OUTPUT {} WITHIN 200 units"
    every, one = (
        evaluate(text.format(output), events, evaluator="sase-backtrack").runs
        for output in ("all", "non_overlap")
    )
    assert every is not None and one is not None
    assert one.runs_per_step * 10 < every.runs_per_step


def test_runs_that_split_off_are_limited() -> None:
    events = stream_of(events_of("A@0 " + " ".join(f"B@{i}" for i in range(1, 40))))
    pattern = parse("PATTERN SEQ(A a, KL(B b)) WITHIN 99 units")
    with pytest.raises(
        PartialMatchLimitError, match="more than 20 runs with different sets of b split"
    ):
        evaluate(
            pattern, events, evaluator="sase-backtrack", output="count", partial_match_limit=20
        )
