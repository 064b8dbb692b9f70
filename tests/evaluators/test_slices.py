"""Detection in slices of time and by key: the matches of one pass, each in one slice."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PartialMatchLimitError, StreamError, UnsupportedPatternError
from cepbench.evaluators.registry import EVALUATORS
from cepbench.evaluators.slices import Batch, Slice, SliceDetection, cut
from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import looks_back, shared_keys
from cepbench.streams.columns import CodedStrings
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples
from tests.evaluators.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    NEXT,
    able,
    branch_plans,
    construct_cases,
)
from tests.evaluators.strategies import Case, batches_of, events_of, stream_of

#: Those of tied conditions too, so that streams can be divided by key.
ALL = FAMILIES | GROUP_FAMILIES | {f"{name}, next": its for name, its in NEXT.items()}


def parts_of(stream: EventStream, key: str | None, parts: int) -> np.ndarray:
    """The part of each event, by its value of a key."""
    if key is None:
        return np.zeros(len(stream), np.int64)
    column = stream.column(key)
    if isinstance(column, CodedStrings):
        return column.codes % parts
    return np.nan_to_num(column, nan=7.0).astype(np.int64) % parts


def batches_with_positions(stream: EventStream, pieces: list[EventStream]) -> Iterator[Batch]:
    for piece in pieces:
        yield replace(piece, positions=None), pa.array(piece.whole_positions())


def rows_of(tables: list[pa.Table], pattern: Pattern) -> Counter[tuple[Any, ...]]:
    names = [*pattern.positive_names, *(["branch"] if len(pattern.branches()) > 1 else [])]
    rows = (row for table in tables for row in table.to_pylist())
    return Counter(
        tuple(tuple(its) if isinstance(its := row[name], list) else its for name in names)
        for row in rows
    )


@st.composite
def starts_in(draw: st.DrawFn, case: Case) -> list[int]:
    """Times to cut at: of events, between them, and outside; some slices without any event."""
    times = sorted({0, *case.events["time"].tolist()})
    near = st.sampled_from(times).flatmap(lambda time: st.integers(time - 1, time + 1))
    return sorted(draw(st.sets(near, max_size=5)))


@pytest.mark.kernel
@pytest.mark.parametrize("family", ALL)
@given(data=st.data())
@examples(8)
def test_any_slices_any_keys(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(ALL[family]))
    pattern, stream = case.pattern, case.stream
    if data.draw(st.booleans()):
        pattern = replace(pattern, equivalences=("s",))
    if pattern.strategy.name not in ("consuming",) and data.draw(st.integers(0, 3)) == 0:
        pattern = replace(pattern, output="non_overlap")
    keys = shared_keys(pattern)
    needs_key = pattern.output != "all" or pattern.strategy.name == "consuming"
    if needs_key and not keys:
        with pytest.raises(UnsupportedPatternError, match="one pass"):
            SliceDetection(pattern)
        return
    key = data.draw(st.sampled_from(keys)) if keys and (needs_key or data.draw(st.booleans())) else None
    parts = 1 if key is None else data.draw(st.integers(1, 3))
    of_event = parts_of(stream, key, parts)
    starts = [] if needs_key else data.draw(starts_in(case))
    for evaluator in able(pattern):
        plan = data.draw(branch_plans(evaluator, pattern))
        try:
            whole = cep.evaluate(pattern, stream, plan, evaluator=evaluator, output="arrow")
        except UnsupportedPatternError:
            continue
        found, counted = [], 0
        detection = SliceDetection(pattern, evaluator, key=key)
        counter = SliceDetection(pattern, evaluator, counts=True, key=key)
        for number, (start, end) in enumerate(cut(starts)):
            part = Slice(number, start, end, plan)
            for its in range(parts):
                needed = detection.events_of(part, stream.timestamps) & (of_event == its)
                rows = np.flatnonzero(needed)
                pieces = data.draw(batches_of(stream.with_rows(rows, rows)))
                found += detection.matches(part, batches_with_positions(stream, pieces))
                counts = counter.count(part, ((piece, None) for piece in pieces)).to_pylist()
                counted += counts[0]["matches"]
                assert counts[0]["events"] + counts[0]["copied"] == len(rows)
        assert rows_of(found, pattern) == rows_of([whole.arrow], pattern)
        assert counted == whole.metrics.matches
