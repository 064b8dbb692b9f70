"""Every value of every method is the naive one, however the stream is divided."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import StreamError, UnsupportedPatternError

pytestmark = pytest.mark.kernel

COUNTING = ["window-product", "a-seq", "greta", "dpc"]
EXACT = ["two-step", *COUNTING]


def values_by(method: str, pattern: str, events: str, **columns: list) -> list[tuple]:
    """The last row of values; events are written as their types, one at each time."""
    frame = pd.DataFrame({"type": [*events], "time": range(len(events))}).assign(**columns)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    return [row.values for row in cep.aggregate(f"PATTERN {pattern}", stream, method).rows]


@pytest.mark.parametrize("method", EXACT)
def test_sums_and_extremes_of_section_5(method: str) -> None:
    query = "SEQ(A a, B b, C c, D d) AGG SUM(c.w), MAX(c.w), AVG(c.w) WITHIN 9 units"
    found = values_by(method, query, "ABCDCD", w=[0, 0, 1, 0, 10, 0])
    assert found == [(1, 1, 1.0), (12, 10, 4.0)]


@pytest.mark.parametrize("method", COUNTING)
def test_counts_of_sets_are_exact(method: str) -> None:
    """2^k - 1 sets, each element in half of all subsets."""
    k = 150
    query = (
        "SEQ(A a, KL(B b), C c) AGG COUNT, COUNT(b), SUM(b.w), MIN(b.w), SUM(a.w) WITHIN 999 units"
    )
    weights = [-7, *range(-60, k - 60), 0]
    found = values_by(method, query, "A" + "B" * k + "C", w=weights)
    sets, half = 2**k - 1, 2 ** (k - 1)
    assert found == [(sets, k * half, half * sum(weights[1:-1]), -60, -7 * sets)]


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("extreme", [2**63 - 3, -(2**63) + 2])
def test_integers_of_64_bits(method: str, extreme: int) -> None:
    query = "SEQ(A a, B b) AGG SUM(a.w), MIN(a.w), MAX(b.w) WITHIN 9 units"
    found = values_by(method, query, "AAABB", w=[extreme] * 5)
    assert found == [(3 * extreme, extreme, extreme), (6 * extreme, extreme, extreme)]


@pytest.mark.parametrize("method", EXACT)
def test_infinite_values(method: str) -> None:
    query = "SEQ(A a, B b, C c) AGG SUM(b.w), MAX(b.w), MIN(b.w) WITHIN 9 units"
    # The first B completes nothing.
    found = values_by(method, query, "BABCBC", w=[-np.inf, 0, 1.5, 0, -np.inf, 0])
    assert found == [(1.5, 1.5, 1.5), (-np.inf, 1.5, -np.inf)]


def test_conditions_on_the_first_event() -> None:
    """The paper's first query, which its own method cannot run."""
    query = "SEQ(A a, NOT(N n), B b) WHERE a.w != b.w AGG COUNT, SUM(a.w) WITHIN 9 units"
    for method in ("a-seq", "two-step"):
        found = values_by(method, query, "ANAABB", w=[1, 0, 2, 3, 3, 9])
        assert found == [(1, 2), (3, 7)]


@pytest.mark.parametrize(
    ("method", "pattern", "words"),
    [
        ("window-product", "SEQ(A a, B b) WHERE a.w < b.w", "the condition a.w < b.w; use the method a-seq"),
        ("window-product", "SEQ(KL(A a), B b) WHERE a.w <= a[1].w", "the condition a.w <= a[1].w; use the method a-seq"),
        ("window-product", "SEQ(NOT(N n), A a, B b)", "NOT before the first item"),
        ("a-seq", "SEQ(A a, B b, C c) WHERE a.w > 0 AND b.w < c.w", "the condition b.w < c.w"),
        ("a-seq", "SEQ(A a, KL(B b), C c) WHERE b[i].w < b[i-1].w", "the condition b[i].w < b[i-1].w; use the method greta or two-step"),
        ("greta", "SEQ(A a, B b, C c, D d) WHERE b.w < c.w AND b.w < d.w", "the condition b.w < d.w; use the method two-step"),
        ("greta", "SEQ(A a, KL(B b), C c) WHERE b.w < c.w", "the condition b.w < c.w; use the method two-step"),
        ("greta", "SEQ(A a, KL(B b), C c) WHERE sum(b.w) < 9", "the condition sum(b[].w) < 9; use the method two-step"),
        ("greta", "SEQ(A a, NOT(N n), B b) WHERE n.w < b.w", "the condition n.w < b.w; use the method two-step"),
        ("greta", "AND(A a, B b)", "greta cannot aggregate AND; use the method two-step"),
        ("a-seq", "SEQ(A a, NOT(B n), C c) WHERE n.w < a.w", "the condition n.w < a.w"),
        ("a-seq", "AND(A a, B b)", "AND"),
        ("a-seq", "OR(A a, B b)", "OR"),
        ("a-seq", "SEQ(A a, GROUP(B b, +), C c)", "the group GROUP(B b, +)"),
        ("a-seq", "SEQ(A a, B b) STRATEGY next", "STRATEGY next"),
        ("a-seq", "SEQ(A a, B b) OUTPUT non_overlap", "OUTPUT non_overlap"),
        ("window-product", "SEQ(A a, B b) GROUP BY a.w", "GROUP BY a.w, which only labels"),
        ("window-product", "SEQ(KL(A a)) WHERE [w]", "[w] with a single item"),
    ],
)  # fmt: skip
def test_refusals_name_the_construct(method: str, pattern: str, words: str) -> None:
    with pytest.raises(UnsupportedPatternError) as refused:
        cep.Aggregator(f"PATTERN {pattern} AGG COUNT WITHIN 9 units", method)
    assert words in str(refused.value)
    assert "two-step" in str(refused.value)
    # By default, a method that runs it is taken.
    assert cep.Aggregator(f"PATTERN {pattern} AGG COUNT WITHIN 9 units").method != method


def test_the_value_falls_when_any_partition_expires() -> None:
    """Without GROUP BY, which HPC [qi2014]_, section 3.4, does not see."""
    frame = pd.DataFrame({"type": list("AABBB"), "time": [0, 3, 4, 5, 8], "k": list("uvuvv")})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    pattern = "PATTERN SEQ(A a, B b) WHERE [k] AGG COUNT WITHIN 5 units"
    for method in set(EXACT) - {"dpc"}:
        rows = cep.aggregate(pattern, stream, method).rows
        assert [row.values for row in rows] == [(1,), (2,), (2,)]


def test_values_of_another_type_are_refused() -> None:
    live = cep.Aggregator("PATTERN SEQ(A a) AGG SUM(a.w) WITHIN 9 units")
    frame = pd.DataFrame({"type": ["A"], "time": [0], "w": [1]})
    live.push(cep.EventStream.from_pandas(frame, type="type", time="time"))
    with pytest.raises(StreamError, match="w had integers in the batches before and has floats"):
        live.push(cep.EventStream.from_pandas(frame.assign(w=1.5), type="type", time="time"))


@pytest.mark.parametrize(("query", "value"), [("MIN(a.w)", 2**63 - 1), ("MAX(a.w)", -(2**63))])
def test_integers_that_stand_for_missing_values(query: str, value: int) -> None:
    with pytest.raises(StreamError, match="use the method two-step"):
        values_by("a-seq", f"SEQ(A a, B b) AGG {query} WITHIN 9 units", "AB", w=[value, 0])
