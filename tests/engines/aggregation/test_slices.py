"""The rows of slices, joined, are those of one pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS
from cepbench.engines.aggregation.slices import SliceTask
from cepbench.errors import EvaluationError, UnsupportedPatternError
from tests.budgets import examples
from tests.engines.aggregation.cases import SEQUENCES, aggregate_cases, methods_for


@given(data=st.data())
@examples(40)
def test_slices_together_are_one_pass(data: st.DataObject) -> None:
    case = data.draw(aggregate_cases(SEQUENCES) | aggregate_cases())
    scope = data.draw(st.sampled_from(["window", "trigger"]))
    emit = data.draw(st.sampled_from(EMITS))
    method = data.draw(st.sampled_from(methods_for(case.pattern, scope)))
    try:
        task = SliceTask(case.pattern, method, emit, scope, None)
    except UnsupportedPatternError:
        assume(False)
    times = case.stream.timestamps
    known = sorted({*times.tolist()}) or [0]
    # Between any two events, and beyond them.
    cuts = data.draw(st.lists(st.integers(0, len(known)), max_size=5).map(sorted))
    starts = [-(2**62), *(known[cut] if cut < len(known) else known[-1] + 1 for cut in cuts)]
    parts = data.draw(st.integers(1, 3)) if task.shared_key else 1
    rows = []
    for part in range(parts):
        slices = []
        for start, end in zip(starts, [*starts[1:], 2**62], strict=True):
            first, last = np.searchsorted(times, [start - task.lead, end])
            slices.append(task.values(case.stream[first:last], start, (part, parts)))
        rows += task.joined(slices)
    expected = cep.aggregate(case.pattern, case.stream, method, emit=emit, scope=scope)
    assert sorted(rows, key=lambda row: row.position) == expected.rows


def test_groups_of_earlier_slices_have_their_rows() -> None:
    """A trigger gives a value of each group seen so far that agrees with it."""
    frame = pd.DataFrame({"kind": list("ABABB"), "at": [1, 2, 51, 52, 99], "v": list("uwvww")})
    stream = cep.EventStream.from_pandas(frame, type="kind", time="at")
    pattern = cep.parse("PATTERN SEQ(A a, B b) GROUP BY a.v AGG COUNT WITHIN 9 units")
    task = SliceTask(pattern, None, "trigger", "window", None)
    slices = [
        task.values(stream[:2], 0), task.values(stream[2:4], 50), task.values(stream[4:], 60),
    ]  # fmt: skip
    found = [(row.position, row.key, row.values) for row in task.joined(slices)]
    assert found == [
        (1, ("u",), (1,)), (3, ("u",), (0,)), (3, ("v",), (1,)), (4, ("u",), (0,)), (4, ("v",), (0,)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "options", "kind", "words"),
    [
        ("SEQ(A a, B b) AGG COUNT", {"scope": "stream"}, EvaluationError, "add up the values of scope='trigger'"),
        ("SEQ(A a, B b) STRATEGY consuming AGG COUNT", {}, UnsupportedPatternError, "STRATEGY consuming: a match depends on all earlier"),
        ("SEQ(A a, B b) OUTPUT non_overlap AGG COUNT", {}, UnsupportedPatternError, "OUTPUT non_overlap: a match depends on all"),
        ("SEQ(NOT(N n), A a, B b) GROUP BY a.v AGG COUNT", {}, UnsupportedPatternError, "GROUP BY a.v with a NOT or a group before"),
        ("SEQ(A a, B b) AGG COUNT", {"method": "a-sec"}, EvaluationError, "did you mean 'a-seq'"),
    ],
)  # fmt: skip
def test_what_needs_one_pass_is_refused(text, options, kind, words) -> None:
    given = {"method": None, "emit": "trigger", "scope": "window", "evaluator": None, **options}
    with pytest.raises(kind) as refused:
        SliceTask(cep.parse(f"PATTERN {text} WITHIN 9 units"), **given)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("structure", "windows"),
    [
        ("SEQ(A a, NOT(N n), KL(B b), C c)", 1),
        ("SEQ(NOT(N n), A a, C c)", 2),
        ("SEQ(GROUP(B b, +), C c)", 2),
        ("OR(SEQ(A a, C c), SEQ(NOT(N n), B b))", 2),
    ],
)
def test_the_lead_is_one_window_or_two(structure: str, windows: int) -> None:
    pattern = cep.parse(f"PATTERN {structure} AGG COUNT WITHIN < 9 units")
    assert SliceTask(pattern, None, "trigger", "window", None).lead == 8 * windows
