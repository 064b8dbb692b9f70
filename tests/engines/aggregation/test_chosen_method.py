"""On a long stream another method is taken than the first one that runs a pattern, where it is faster."""

from __future__ import annotations

import pandas as pd
import pytest

import cepbench as cep
from tests.drawn_events import below, drawn_stream, uniform


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    """Three events of A and three of B, and four of others, in ten units of time."""
    events = 18_000
    return drawn_stream(events, "ABN", p=[0.3, 0.3, 0.4], id=below(50), n=below(1000), x=uniform)


@pytest.mark.parametrize(
    ("body", "method"),
    [
        # There are three tenths as many first events in the window as it has units.
        ("WHERE a.x < b.x AGG COUNT WITHIN 500 units", "a-seq"),
        ("WHERE a.x < b.x AGG SUM(b.x) WITHIN 500 units", "a-seq"),
        ("WHERE a.x < b.x AGG COUNT WITHIN 9000 units", "order-statistics"),
        ("WHERE a.x < b.x AGG SUM(b.n) WITHIN 100 units", "a-seq"),
        ("WHERE a.x < b.x AGG SUM(b.n) WITHIN 500 units", "order-statistics"),
        ("WHERE a.x < b.x AGG MIN(a.x) WITHIN 500 units", "a-seq"),
        ("WHERE a.x < b.x AGG MIN(a.x), MAX(b.n) WITHIN 2500 units", "order-statistics"),
        # A match needs one of fifty values.
        ("WHERE a.x < b.x AND [id] AGG COUNT WITHIN 400 units", "two-step"),
        ("WHERE a.x < b.x AND a.id = b.id AGG COUNT WITHIN 400 units", "two-step"),
        ("WHERE a.x < b.x AND [id] AGG COUNT WITHIN 5000 units", "a-seq"),
        ("WHERE a.x < b.x AND [id] AGG SUM(a.n) WITHIN 2500 units", "order-statistics"),
        ("GROUP BY id AGG SUM(a.n) WITHIN 100 units", "two-step"),
        ("GROUP BY id AGG SUM(a.n) WITHIN 9000 units", "window-product"),
        ("AGG COUNT WITHIN 10 units", "window-product"),
    ],
)
def test_the_faster_method_is_taken_and_has_the_same_values(
    body: str, method: str, stream: cep.EventStream
) -> None:
    query = f"PATTERN SEQ(A a, B b) {body}"
    result = cep.aggregate(query, stream)
    assert result.method == method
    by_place = cep.Aggregator(query).method
    assert (result.reason is None) == (method == by_place)
    assert f"by {method}" in result.describe() and (result.reason or "") in result.describe()
    expected = cep.aggregate(query, stream, by_place)
    assert expected.method == by_place and expected.reason is None
    pd.testing.assert_frame_equal(result.values, expected.values, check_dtype=False)


def test_sets_in_partitions_are_listed_if_they_are_small(stream: cep.EventStream) -> None:
    query = "PATTERN SEQ(A a, KL(B b), N c) WHERE [id] AGG COUNT WITHIN {} units"
    for length, method in ((50, "two-step"), (900, "window-product")):
        assert cep.aggregate(query.format(length), stream).method == method


def test_matches_are_listed_where_greta_would_count_few(stream: cep.EventStream) -> None:
    query = "PATTERN SEQ(A a, B b, N c) WHERE b.x < c.x AND a.n < c.n AND b.n < c.n AGG MAX(c.x) WITHIN {} units"
    for length, method in ((10, "two-step"), (200, "greta")):
        assert cep.aggregate(query.format(length), stream).method == method


def test_what_is_asked_for_and_short_streams_are_by_place(stream: cep.EventStream) -> None:
    query = "PATTERN SEQ(A a, B b) WHERE a.x < b.x {}AGG COUNT WITHIN 300 units"
    seq, place = query.format(""), "order-statistics"
    assert cep.aggregate(seq, stream, place).method == place
    assert cep.aggregate(seq, stream[:12_000]).method == place
    assert cep.aggregate(seq, stream, evaluator="tree").method == "two-step"
    assert cep.aggregate(cep.Workload({"q": seq}), stream).method == place
    # Nothing has a rate in a window of no length.
    together = "PATTERN AND(A a, B b) WHERE a.x < b.x AND [id] AGG COUNT WITHIN 0 units"
    assert cep.aggregate(together, stream).method == place
    assert cep.aggregate(query.format("ORDER BY arrival "), stream).method == place
