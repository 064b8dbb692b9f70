"""Counts over SEQ of plain items, for which there is a kernel of its own, of any size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from tests.budgets import examples
from tests.engines.detection.strategies import batches_of

pytestmark = pytest.mark.kernel


def expected(kinds: str, times: list[int], number: int, items: str, window: int) -> list[int]:
    """The counts after the events of the last item, from all of the window; ``number`` of each kind."""
    found = []
    for place, now in enumerate(times):
        if kinds[place] != items[-1]:
            continue
        counts = [1] + [0] * len(items)
        for time in sorted({time for time in times if now - window <= time < now}):
            these = [kind for kind, its in zip(kinds, times, strict=True) if its == time]
            for item in reversed(range(len(items))):
                counts[item + 1] += counts[item] * these.count(items[item]) * number
        before = [kind for kind, its in zip(kinds[:place], times, strict=False) if its == now]
        already = before.count(items[-1]) * number
        found += [counts[-1] + counts[-2] * (already + k) for k in range(1, number + 1)]
    return found


@given(data=st.data())
@examples(20)
def test_counts_of_any_size(data: st.DataObject) -> None:
    # A timestamp multiplies counts by the number of its events.
    size, number = data.draw(st.integers(1, 20)), data.draw(st.sampled_from([1, 3, 100]))
    length = data.draw(st.integers(1, 9))
    window = data.draw(st.integers(max(length - 1, 1), 15))
    items = data.draw(st.text("AB", min_size=length, max_size=length))
    kinds = data.draw(st.text("ABC", min_size=size, max_size=size))
    gaps = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    times = np.cumsum(gaps).tolist()
    frame = pd.DataFrame({"type": [*kinds], "time": times})
    frame = frame.loc[frame.index.repeat(number)]
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    variables = ", ".join(f"{kind} x{place}" for place, kind in enumerate(items))
    query = f"PATTERN SEQ({variables}) AGG COUNT WITHIN {window} units"
    live = cep.Aggregator(query, "window-product")
    found: list[int] = []
    for batch in data.draw(batches_of(stream)):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        found += [row.values[0] for row in live.take(batch)]
    assert found == expected(kinds, times, number, items, window)


def test_counts_beyond_64_bits_of_events_apart() -> None:
    kinds = "".join(40 * kind for kind in "ABCDEFGHIJKLM") * 3
    stream = cep.EventStream.from_pandas(
        pd.DataFrame({"type": [*kinds], "time": range(len(kinds))}), type="type", time="time"
    )
    items = ", ".join(f"{kind} x{kind}" for kind in "ABCDEFGHIJKLM")
    query = f"PATTERN SEQ({items}) AGG COUNT WITHIN 700 units"
    live = cep.Aggregator(query, "window-product")
    found = [row.values[0] for batch in stream.batches(7) for row in live.take(batch)]
    # Of all, from A to L, 40 each; those of M are one more at each trigger.
    assert found[:40] == [40**12 * k for k in range(1, 41)]
    for method in ("window-product", "a-seq"):
        assert found == [row.values[0] for row in cep.aggregate(query, stream, method).rows]
    assert found[-1] > 2**64


@pytest.mark.parametrize("condition", ["", "WHERE x.v > 2"])
def test_concepts(condition: str) -> None:
    """An event of a type is one of the concepts above it, so that some are of several items."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"type": rng.choice([*"ABCD"], 60), "time": np.arange(60) // 2})
    frame["v"] = rng.integers(0, 9, 60)
    hierarchy = cep.ConceptHierarchy({"Y": {"X": ["A", "B"], "C": []}})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=hierarchy)
    query = f"PATTERN SEQ(X x, Y y, A a, Y z) {condition} AGG COUNT WITHIN 9 units"
    due = [row.values for row in cep.aggregate(query, stream, "two-step").rows]
    pattern, stream = cep.parse(query).with_hierarchy(hierarchy), stream.with_hierarchy(None)
    for method in ("window-product", "a-seq"):
        assert [row.values for row in cep.aggregate(pattern, stream, method).rows] == due
    assert due[-1] != (0,)


@pytest.mark.parametrize("method", ["window-product", "a-seq"])
def test_partitions_of_large_integers(method: str) -> None:
    """Floats would not tell them apart."""
    frame = pd.DataFrame({"type": [*"AABB"], "time": range(4), "k": [2**60, 2**60 + 1] * 2})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    query = "PATTERN SEQ(A a, B b) GROUP BY k AGG COUNT WITHIN 9 units"
    values = cep.aggregate(query, stream, method).values
    assert values[["k", "COUNT"]].to_numpy().tolist() == [[2**60, 1], [2**60 + 1, 1]]
