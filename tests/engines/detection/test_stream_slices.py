"""Detection in slices of time and by key: the matches of one pass, each in one slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepbench as cep
from cepbench.engines.detection.slices import SliceDetection
from cepbench.engines.runs.slices import Batch, Budget, Slice, cut
from cepbench.errors import StreamError
from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import looks_back, shared_keys
from cepbench.streams.columns import CodedStrings
from cepbench.streams.event_stream import EventStream
from tests.contract.ways import batches_with_positions, matches_of
from tests.drawn_events import drawn_stream
from tests.engines.detection.strategies import events_of, stream_of


def parts_of(stream: EventStream, key: str | None, parts: int) -> np.ndarray:
    """The part of each event, by its value of a key."""
    if key is None:
        return np.zeros(len(stream), np.int64)
    column = stream.column(key)
    if isinstance(column, CodedStrings):
        return column.codes % parts
    return np.nan_to_num(column, nan=7.0).astype(np.int64) % parts


def rows_of(tables: list[pa.Table], pattern: Pattern) -> Counter[tuple[Any, ...]]:
    names = [*pattern.positive_names, *(["branch"] if len(pattern.branches()) > 1 else [])]
    rows = (row for table in tables for row in table.to_pylist())
    return Counter(
        tuple(tuple(its) if isinstance(its := row[name], list) else its for name in names)
        for row in rows
    )


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(NOT(D n), A a, B b) WITHIN 3 units",
        "SEQ(A a, B b, NOT(D n)) WITHIN 3 units",
        "AND(A a, B b, NOT(D n)) WITHIN < 3 units",
        "SEQ(GROUP(D g, *), A a, B b) WITHIN 3 units",
        "SEQ(A a, B b, KL(B c)) WITHIN 3 units",
    ],
)
def test_any_two_slices_of_short_streams(text: str, seeds: Callable[[int], Sequence[int]]) -> None:
    """Cut at each time, where all that a match depends on is just inside, or just outside."""
    pattern = cep.parse(f"PATTERN {text}")
    known = cep.Statistics(cardinalities=dict.fromkeys(pattern.names, 1.0))
    plan = cep.plan(pattern, known)
    detection = SliceDetection(pattern)
    for seed in seeds(5):
        stream = drawn_stream(14, "ABD", seed=seed, within=9)
        whole = cep.evaluate(pattern, stream, plan, output="arrow")
        for start in range(10):
            found, counted = [], 0
            for number, (begin, end) in enumerate(cut([start])):
                part = Slice(number, begin, end, plan)
                rows = np.flatnonzero(detection.events_of(part, stream.timestamps))
                pieces = [stream.with_rows(rows, rows)]
                found += matches_of(detection, part, pieces, cuts=False)
                (counts,) = detection.count(part, ((piece, None) for piece in pieces)).to_pylist()
                counted += counts["matches"]
            assert rows_of(found, pattern) == rows_of([whole.arrow], pattern)
            assert counted == whole.metrics.matches


@pytest.mark.parametrize(
    "text", ["SEQ(A a, B b)", "SEQ(NOT(D n), A a, B b)"], ids=["counted", "listed"]
)
def test_a_slice_that_is_cut_needs_no_event_after_its_matches(text: str) -> None:
    pattern = cep.parse(f"PATTERN {text} WITHIN 3 units")
    stream = stream_of(events_of(" ".join(f"{'ABDAB'[k % 5]}@{k // 2}" for k in range(40))))
    plan = cep.OrderPlan(["a", "b"])
    detection, part = SliceDetection(pattern), Slice(0, None, None, plan)
    events, matches = 0, 0
    while True:
        budget, read = Budget(0.0), []

        def one_by_one(part: Slice = part, read: list[EventStream] = read) -> Iterator[Batch]:
            for row in np.flatnonzero(detection.events_of(part, stream.timestamps)):
                read.append(stream[row : row + 1])
                yield read[-1], None

        (counts,) = detection.count(part, one_by_one(), budget).to_pylist()
        whole = replace(part, end=budget.cut)
        times = stream.timestamps[detection.events_of(whole, stream.timestamps)]
        own = (times >= (whole.start or 0)) & (times < (whole.end or 99))
        assert (counts["events"], counts["copied"]) == (own.sum(), (~own).sum())
        assert len(read) <= len(times) + 1  # by which it sees that there is nothing left
        events, matches = events + counts["events"], matches + counts["matches"]
        if budget.cut is None:
            break
        part = replace(part, start=budget.cut)
    assert events == len(stream)
    assert matches == cep.evaluate(pattern, stream, plan, output="count").metrics.matches > 10


def test_events_of_one_time_are_in_one_slice() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 2 units")
    stream = stream_of(events_of("A@1 A@3 B@3 A@3 B@3 B@4 B@5 A@6"))
    detection = SliceDetection(pattern)
    plan = cep.OrderPlan(["a", "b"])
    found = []
    for number, (start, end) in enumerate(cut([3, 4, 100])):
        part = Slice(number, start, end, plan)
        rows = np.flatnonzero(detection.events_of(part, stream.timestamps))
        tables = detection.matches(part, batches_with_positions([stream.with_rows(rows, rows)]))
        found.append([tuple(row.values()) for table in tables for row in table.to_pylist()])
    assert [sorted(its) for its in found] == [
        [(0, 2), (0, 4)],
        [(1, 5), (1, 6), (3, 5), (3, 6)],
        [],
        [],
    ]


@pytest.mark.parametrize(
    ("text", "back", "keys"),
    [
        ("SEQ(A a, NOT(N n), C c) WHERE [k]", False, ("k",)),
        ("SEQ(NOT(N n), A a, C c) WHERE [k]", True, ("k",)),
        ("SEQ(A a, C c, NOT(N n)) WHERE a.k = c.k", False, ()),
        ("AND(A a, NOT(N n)) WHERE a.k = n.k", True, ("k",)),
        ("SEQ(GROUP(A a, +), B b, C c) WHERE a.k = b.k AND b.k = c.k", True, ("k",)),
        # Only the negated event has both values.
        ("SEQ(A a, NOT(N n), C c) WHERE a.k = n.k AND n.k = c.k", False, ()),
        ("SEQ(A a, B b) WHERE a.k = b.l", False, ()),
        ("SEQ(A a, B b) WHERE (a.k = b.k OR a.x = 1)", False, ()),
        ("SEQ(A a, KL(B b)) WHERE a.k = b[last].k", False, ()),
        ("SEQ(KL(B b)) WHERE b[i].k > 1", False, ()),
        ("SEQ(KL(B b)) WHERE [k]", False, ("k",)),
        ("SEQ(A a, KL(B b), C c) WHERE a.k = b.k AND b.k = c.k STRATEGY next", False, ("k",)),
        ("SEQ(A a, KL(B b), C c) WHERE a.k = c.k AND b.k = c.k STRATEGY next", False, ()),
        ("SEQ(KL(A a), B b) WHERE a.k = b.k STRATEGY next", False, ()),
        ("SEQ(A a, B b) WHERE a.k = b.k STRATEGY next OUTPUT non_overlap", False, ()),
        ("SEQ(A a, KL(B b), C c) WHERE [k] STRATEGY next", False, ("k",)),
        ("SEQ(A a, B b) WHERE [k, l] STRATEGY strict_contiguity", False, ()),
        ("SEQ(A a, B b) WHERE [k] STRATEGY partition_contiguity(l)", False, ("l",)),
        ("SEQ(A a, NOT(N n), B b) STRATEGY partition_contiguity(l)", False, ()),
        ("SEQ(A a, B b) WHERE [k, l] OUTPUT non_overlap", False, ("k", "l")),
        ("SEQ(A a, B b) WHERE a.k = b.k OUTPUT non_overlap", False, ()),
        ("OR(SEQ(A a, B b), SEQ(A a, C c)) WHERE a.k = b.k", False, ()),
    ],
)  # fmt: skip
def test_reach_of_matches(text: str, back: bool, keys: tuple[str, ...]) -> None:
    pattern = cep.parse(f"PATTERN {text} WITHIN 5 units")
    assert (looks_back(pattern), shared_keys(pattern)) == (back, keys)


def test_an_error_names_its_slice() -> None:
    stream = stream_of(events_of("A@1 B@3"))
    part = Slice(4, None, None, cep.OrderPlan(["a", "b"]))
    backward = batches_with_positions([stream[1:], stream[:1]])
    with pytest.raises(StreamError, match=r"^slice 4: row 1: this batch starts at 1"):
        list(
            SliceDetection(cep.parse("PATTERN SEQ(A a, B b) WITHIN 2 units")).matches(
                part, backward
            )
        )
