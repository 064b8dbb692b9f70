"""The statistics of rounds: what a sample has, and what averages make of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cepbench.engines.adaptation.averages import EVENTS, PAIRS, SPAN, Averages
from cepbench.errors import SnapshotError
from cepbench.kernels.sampling import ORDERED, SAME, UNORDERED, draw_candidates
from cepbench.patterns.parse import parse
from cepbench.planning.statistics.measure import measure_statistics, slice_sample
from tests.budgets import examples
from tests.engines.adaptation.drifting import segments
from tests.engines.detection.constructs import FAMILIES, GROUP_FAMILIES, construct_cases
from tests.engines.detection.strategies import stream_of

pytestmark = pytest.mark.kernel

PATTERN = parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 20 units")


@given(data=st.data())
@examples(3)
def test_a_draw_is_one_of_each_stratum_of_all_candidates(data: st.DataObject) -> None:
    n, most = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 9))
    codes = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    gaps = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    times, window = np.cumsum(gaps, dtype=np.int64), data.draw(st.integers(0, 6))
    types = data.draw(st.lists(st.sets(st.integers(0, 2)), min_size=2, max_size=2))
    rows = [[row for row in range(n) if codes[row] in its] for its in types]
    fractions = np.sort(data.draw(st.lists(st.floats(0, 0.99), min_size=most, max_size=most)))
    expected = {
        SAME: [(row, row) for row in rows[0]],
        UNORDERED: [
            (x, y) for x, y in product(*rows) if x != y and abs(times[x] - times[y]) <= window
        ],
        ORDERED: [(x, y) for x, y in product(*rows) if 0 < times[y] - times[x] <= window],
    }
    for relation, candidates in expected.items():
        counts, totals = np.zeros(2, np.int64), np.zeros(1, np.int64)
        drawn = np.zeros((1, 2, most), np.int64)
        active = draw_candidates(
            np.array(codes, np.int32),
            times,
            np.array([[code in its for code in range(3)] for its in types]),
            np.array([(0, 0 if relation == SAME else 1, relation)]),
            window,
            3,
            fractions,
            counts,
            totals,
            drawn,
        )
        assert counts.tolist() == [*map(len, rows)]
        total = len(candidates)
        assert totals.tolist() == [total]
        ranks = range(total) if total <= most else (fractions * total).astype(int).tolist()
        found = [*zip(*drawn[0, :, : len(ranks)].tolist(), strict=True)]
        assert found == [candidates[rank] for rank in ranks]
        assert active == sum(gap if gap <= 3 else window for gap in gaps[1:])


@pytest.mark.parametrize("family", FAMILIES | GROUP_FAMILIES)
@given(data=st.data())
@examples(2)
def test_a_sample_of_few_events_is_exact(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases((FAMILIES | GROUP_FAMILIES)[family]))
    assume(len(case.stream) and case.pattern.window.length)
    found = Averages(case.pattern, 0, 9).of(case.stream)
    sample = slice_sample(case.pattern, case.stream, 0, 10**6)
    measured = [*(sample.pairs | sample.sets).values()]
    partition = sample.partition
    assert found.packed[0] == pytest.approx([
        sample.active,
        sample.stream_events,
        *((partition.candidates, partition.held) if partition else (0.0, 0.0)),
        *sample.events.values(),
        *(its.candidates for its in measured),
        *(its.held for its in measured),
    ])  # fmt: skip


def test_averages_are_bounded_and_never_zero() -> None:
    """All events if they are few, the last ones otherwise; what never came counts as half."""
    first, later = segments((0.02, 0.49, 0.49))[:EVENTS], segments((0.49, 0.49, 0.02))
    averages = Averages(PATTERN, 0, EVENTS)
    assert averages.current() is None
    averages.add(first)
    exact = measure_statistics(PATTERN, first, pairs=10**6)
    found = averages.current().statistics
    assert found.rates == exact.rates
    assert found.selectivity("a", "c") == pytest.approx(exact.selectivity("a", "c"), abs=0.1)
    again = Averages(PATTERN, 0, EVENTS)
    again.restore(averages.snapshot())
    assert again.current().statistics == found
    assert again.unpacked(averages.current().packed).statistics == found
    for _ in range(SPAN // EVENTS):
        averages.add(later)
    assert averages.current().statistics.rates == averages.of(later).statistics.rates
    assert averages.current().packed[1] == PAIRS * SPAN // EVENTS  # drawn in so many rounds
    assert {name for name, _, _ in averages.current().changes(again.current())} == {
        "events per second, a", "events per second, c",
    }  # fmt: skip
    only = stream_of(pd.DataFrame({"type": ["A", "C"] * 9, "time": range(18), "x": range(18)}))
    rare = Averages(parse("PATTERN SEQ(A a, B b, C c) WHERE a.x > c.x WITHIN 9 units"), 0, 9)
    found = rare.of(only).statistics
    assert found.rates["b"] == pytest.approx(0.5 / 17)
    assert 0 < found.selectivity("a", "c") < 0.02
    # Ten windows, after which a pause counts as one, may be beyond 64 bits.
    longest = parse(f"PATTERN SEQ(A a, C c) WITHIN {2**61} units")
    assert Averages(longest, 0, 9).of(only).statistics.rates["a"] == pytest.approx(9 / 2**61)
    with pytest.raises(SnapshotError, match="its averages are of another pattern"):
        again.restore(averages.snapshot() | {"numbers": np.ones((1, 1))})
