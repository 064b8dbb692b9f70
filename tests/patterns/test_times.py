"""Conditions on time: the difference of two times and a duration, and the order of two times."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import StreamError, UnsupportedPatternError
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.expressions import Attribute
from cepbench.patterns.parse import parse, reread
from cepbench.patterns.times import LONGEST, in_order, part_of_times
from tests.budgets import examples

BASE = int(pd.Timestamp("2024-03-01 12:00:00.000000001").value)
SECOND = 10**9
ORDERED = cep.OrderPlan(["a", "b", "c"])
JOINED = cep.TreePlan((("a", "b"), "c"))


def stream(*times: int, types: str = "ABBC", name: str = "ts") -> cep.EventStream:
    frame = pd.DataFrame({"type": list(types), name: np.array(times) + BASE})
    frame[name] = frame[name].astype("datetime64[ns]")
    return cep.EventStream.from_pandas(frame, type="type", time=name)


EVENTS = stream(0, 5 * SECOND, 100 * SECOND, 101 * SECOND)


def of(where: str, within: str = "1 hour", structure: str = "SEQ(A a, B b, C c)") -> cep.Pattern:
    return parse(f"PATTERN {structure} WHERE {where} WITHIN {within}")


def rows(found: Any) -> list[Any]:
    return [[*row] for row in found.itertuples(index=False, name=None)]


SPELLINGS = [
    ("b.ts - a.ts <= 10 s", "b.ts - a.ts <= 10 seconds"),
    ("10000 ms >= b.ts - a.ts", "b.ts - a.ts <= 10 seconds"),
    ("b.ts <= a.ts + 10s", "b.ts - a.ts <= 10 seconds"),
    ("a.ts + 1.5 min - b.ts < 0 s", "b.ts - a.ts > 90 seconds"),
    ("NOT (b.ts - a.ts < 1.5 us)", "b.ts - a.ts >= 1500 nanoseconds"),
    ("b.ts - (a.ts - 1 s) = 3 s", "b.ts - a.ts = 2 seconds"),
    ("b.ts - a.ts > -3 s", "a.ts - b.ts < 3 seconds"),
]


@pytest.mark.parametrize(("written", "canonical"), SPELLINGS)
def test_spellings(written: str, canonical: str) -> None:
    pattern = of(written)
    assert str(pattern.conditions[0]) == canonical
    assert parse(str(pattern)) == pattern
    # What engines and snapshots have is written in the same way.
    assert reread(str(pattern.expanded)).expanded == pattern.expanded


@pytest.mark.parametrize(
    ("where", "due"),
    [
        ("b.ts - a.ts <= 10 s", [[0, 1, 3]]),
        ("b.ts - a.ts <= 5 s", [[0, 1, 3]]),
        ("b.ts - a.ts < 5 s", []),
        ("b.ts - a.ts <= 4999999999 ns", []),
        ("c.ts - b.ts <= 1 s AND a.ts < c.ts", [[0, 2, 3]]),
        ("b.ts > a.ts", [[0, 1, 3], [0, 2, 3]]),
        ("b.ts = a.ts", []),
    ],
)
def test_every_engine_and_sql(where: str, due: list[list[int]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    pattern = of(where)
    for evaluator in ("lazy-nfa", "tree", "lazy-nfa-instances", "zstream", "stack-nfa", "sase",
                      "sase-basic", "sase-backtrack", "hierarchical-stacks"):  # fmt: skip
        plan = {
            "lazy-nfa": ORDERED,
            "lazy-nfa-instances": ORDERED,
            "tree": JOINED,
            "zstream": JOINED,
        }
        found = cep.evaluate(pattern, EVENTS, plan.get(evaluator), evaluator=evaluator)
        assert rows(found.matches) == due, evaluator
    for method in ("greta", "two-step"):
        counted = str(pattern).replace("WITHIN", "AGG COUNT WITHIN")
        counts = cep.aggregate(counted, EVENTS, method).values["COUNT"].tolist()
        assert counts == [len(due)] * len(counts) and counts == counts[:1], method
    for plan in (None, ORDERED):
        query = cep.to_sql(pattern, plan, time_column="ts")
        with duckdb.connect() as connection:
            connection.register(
                "events", EVENTS.to_pandas().reset_index().rename(columns={"time": "ts"})
            )
            assert [[*row] for row in connection.execute(query).fetchall()] == due


def test_negation_sets_and_groups() -> None:
    plan = cep.OrderPlan(["a", "c"])
    for gap, due in (("4 s", [[0, 3]]), ("5 s", [])):
        pattern = of(f"b.ts - a.ts <= {gap}", structure="SEQ(A a, NOT(B b), C c)")
        assert rows(cep.evaluate(pattern, EVENTS, plan).matches) == due
        assert rows(cep.evaluate(pattern, EVENTS, evaluator="sase").matches) == due
    for gap, due in (("94 s", 2), ("95 s", 3)):
        pattern = of(f"b[i].ts - b[i-1].ts <= {gap}", structure="SEQ(A a, KL(B b), C c)")
        assert cep.evaluate(pattern, EVENTS, ORDERED).metrics.matches == due
        assert cep.evaluate(pattern, EVENTS, evaluator="sase").metrics.matches == due
    pattern = of("b.ts - a.ts <= 10 s", structure="SEQ(A a, GROUP(B b, *), C c)")
    assert rows(cep.evaluate(pattern, EVENTS, plan).matches) == [[0, (1,), 3]]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_live_and_restored(cut: int) -> None:
    detector = cep.Detector(of("b.ts - a.ts <= 10 s AND c.ts > a.ts"), ORDERED)
    found = rows(detector.push(EVENTS[:cut]))
    detector = cep.Detector.restore(detector.snapshot())
    assert found + rows(detector.push(EVENTS[cut:])) + rows(detector.flush()) == [[0, 1, 3]]


def test_ticks() -> None:
    frame = pd.DataFrame({"type": list("ABBC"), "at": [0, 5, 100, 101]})
    events = cep.EventStream.from_pandas(frame, type="type", time="at")
    for where in ("b.at - a.at <= 10", "b.at - a.at <= 10 units", "b.at < a.at + 10 units"):
        found = cep.evaluate(of(where, "1000 units"), events, ORDERED)
        assert rows(found.matches) == [[0, 1, 3]]


def test_what_a_time_is_not_for() -> None:
    for where, words in (
        ("b.ts - a.ts <= 10", "ts is the time of the stream, a datetime; .*<= 10 seconds"),
        ("b.at - a.at <= 10 s", "'at' is not the time of the stream.*that is 'ts'"),
    ):
        with pytest.raises(StreamError, match=words):
            cep.evaluate(of(where), EVENTS, ORDERED)
    with pytest.raises(StreamError, match="'ts' is the time of the stream"):
        cep.aggregate("PATTERN SEQ(A a, B b) AGG MAX(b.ts) WITHIN 1 hour", EVENTS)
    with pytest.raises(UnsupportedPatternError, match="ts is the time, a datetime"):
        cep.to_sql(of("b.ts - a.ts <= 10"), time_column="ts")


def test_an_attribute_of_that_name_is_an_attribute() -> None:
    frame = pd.DataFrame({"type": list("AB"), "time": [1, 2], "copy": [7, 3]})
    events = cep.EventStream.from_pandas(
        frame.rename(columns={"copy": "ts"}), type="type", time="time"
    )
    pattern = of("b.ts < a.ts", "9 units", "SEQ(A a, B b)")
    assert cep.evaluate(pattern, events, evaluator="sase").metrics.matches == 1


ticks = st.integers(-(2**62), 2**62)


@examples(25)
@given(ticks, st.one_of(ticks, st.integers(-3, 3)), st.integers(-3, 3), st.integers(0, LONGEST))
def test_differences_and_order_are_exact(
    earlier: int, apart: int, near: int, duration: int
) -> None:
    later = min(max(earlier + (apart if abs(apart) > 3 else duration + near), -(2**62)), 2**62)
    times = {"a": np.array([earlier]), "b": np.array([later])}
    for sign, due in (("<=", later - earlier <= duration), (">", later - earlier > duration)):
        pattern = of(f"b.ts - a.ts {sign} {duration} ns")
        (clause,) = pattern.expanded.conditions

        def values(attribute: Attribute) -> np.ndarray:
            return part_of_times(attribute.name, times[attribute.variable]).astype(np.float64)

        assert clause_holds(clause, values, float).tolist() == [due]
    one, other = in_order(times["a"]), in_order(times["b"])
    assert ((one < other).tolist(), (one == other).tolist()) == (
        [earlier < later],
        [earlier == later],
    )


@pytest.mark.parametrize(
    ("where", "by_time", "by_arrival"),
    [
        ("b.ts - a.ts <= 10 seconds", [[0, 2]], [[0, 1], [0, 2]]),
        ("b.ts - a.ts <= 0 seconds", [], [[0, 1]]),
        ("b.ts > a.ts", [[0, 2], [0, 3]], [[0, 2], [0, 3]]),
        ("b.ts = a.ts", [], [[0, 1]]),
    ],
)
@pytest.mark.parametrize("order", ["time", "arrival"])
def test_they_read_timestamps_in_the_order_of_arrival_too(
    where: str, by_time: list[Any], by_arrival: list[Any], order: str
) -> None:
    """Engines are given other times then."""
    events = stream(0, 0, 5 * SECOND, 20 * SECOND, types="ABBB")
    text = f"PATTERN SEQ(A a, B b) WHERE {where} ORDER BY {order} {{}}WITHIN 1 hour"
    due = by_time if order == "time" else by_arrival
    plan = cep.OrderPlan(["b", "a"])
    for evaluator in ("tree", "lazy-nfa", "zstream", "stack-nfa", "sase"):
        its = {"lazy-nfa": plan}.get(evaluator, cep.TreePlan(("b", "a")))
        its = None if evaluator in ("stack-nfa", "sase") else its
        assert rows(cep.evaluate(text.format(""), events, its, evaluator=evaluator).matches) == due
    detector = cep.Detector(text.format(""), plan)
    found: list[Any] = []
    for batch in events.batches(1):
        found += rows(detector.push(batch))
        detector = cep.Detector.restore(detector.snapshot())
    assert found == due
    counted = cep.aggregate(text.format("AGG COUNT "), events, scope="stream").values
    assert counted["COUNT"].iloc[-1] == len(due)
