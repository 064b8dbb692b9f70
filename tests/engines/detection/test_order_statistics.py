"""Counts by ranks of values: those of the naive twin, and of matches found one by one on longer streams."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS, SCOPES
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.sase.order_statistics import compared_layout
from cepbench.errors import UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.model import MatchAggregate, Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.numeric import NumericReader
from tests.budgets import examples
from tests.engines.detection.strategies import (
    OPERATORS,
    Case,
    batches_of,
    event_frames,
    stream_of,
)
from tests.naive.aggregates import naive_rows
from tests.naive.matcher import labelled_matches

_ITEMS = st.sampled_from(["A", "B", "ANY", "ANY"])
_COMPARED = st.sampled_from(OPERATORS)


@st.composite
def compared_cases(draw: st.DrawFn) -> Case:
    """Two or three plain items, of which neighbours are compared, once or not."""
    names = "abc"[: draw(st.sampled_from([3, 2, 3]))]
    items = ", ".join(f"{draw(_ITEMS)} {name}" for name in names)
    own = {name: draw(st.sampled_from(["{}.x", "{}.y", "{}.y * 2 - 1"])) for name in names}
    pairs = [*zip(names, names[1:])]
    if len(pairs) == 2:
        pairs = draw(st.sampled_from([pairs, pairs, pairs[:1], pairs[1:]]))
    written = []
    for pair in pairs:
        left, right = draw(st.permutations(pair))
        sides = (own[name].format(name) for name in (left, right))
        written.append(f" {draw(_COMPARED)} ".join(sides))
    written += draw(st.sampled_from([[], [], ["[s]"], ["[y]"], ["a.x > 0"], ["[s]", "b.x != 1"]]))
    length = draw(st.sampled_from(["5 units", "< 4 units", "20 units", "2 units"]))
    text = f"PATTERN SEQ({items}) WHERE {' AND '.join(written)} WITHIN {length}"
    try:
        pattern = parse(text)
    except UnsatisfiablePatternError:  # such as a.y < b.y * 2 - 1 and b.x = 1 with [y]
        assume(False)
    return Case(pattern, draw(event_frames(("A", "B"))))


def layout_of(pattern: Pattern) -> Any:
    return compared_layout(
        BranchTask(
            [pattern], [automaton(pattern)], [()], pattern.positive_names, NumericReader(),
            reports=False, limit=99, timed=False, watched=False,
        )  # fmt: skip
    )


@pytest.mark.kernel
@given(data=st.data())
@examples(80)
def test_the_matches_of_the_naive_twin(data: st.DataObject) -> None:
    """After each batch, restored after any of them."""
    case = data.draw(compared_cases())
    assert layout_of(case.pattern) is not None
    lasts = sorted(max(match) for _, match in labelled_matches(case.pattern, case.events))
    detector = cep.Detector(case.pattern, evaluator="sase", output="count")
    counted = 0
    with pieces_of(events=data.draw(st.sampled_from([3, inf]))):
        for batch in data.draw(batches_of(case.stream)):
            counted += detector.push(batch)
            assert counted == np.searchsorted(lasts, detector.position)
            if data.draw(st.booleans()):
                detector = cep.Detector.restore(detector.snapshot())
    assert counted + detector.flush() == len(lasts)


@pytest.mark.kernel
@given(data=st.data())
@examples(100)
def test_values_in_batches_with_restorations(data: st.DataObject) -> None:
    case = data.draw(compared_cases())
    counts = [MatchAggregate("COUNT")]
    counts += [MatchAggregate("COUNT", name, "x") for name in case.pattern.positive_names]
    pattern = replace(case.pattern, aggregates=tuple(counts))
    options = {"emit": data.draw(st.sampled_from(EMITS)), "scope": data.draw(st.sampled_from(SCOPES))}
    live = cep.Aggregator(pattern, "order-statistics", **options)
    rows = []
    for batch in data.draw(batches_of(case.stream)):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        rows += live.take(batch)
    assert set(rows) == naive_rows(pattern, case.events, **options)
