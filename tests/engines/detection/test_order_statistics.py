"""Counts by ranks of values: those of the naive twin, and of matches found one by one on longer streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.digits import MOST_EVENTS
from cepbench.engines.aggregation.protocol import EMITS, SCOPES
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.sase.order_statistics import compared_layout
from cepbench.engines.sequence_counts import order_statistics
from cepbench.engines.sequence_counts.kernels.tables import Events
from cepbench.engines.sequence_counts.order_statistics import ComparedWindow
from cepbench.errors import StreamError, UnsupportedPatternError
from cepbench.kernels.instructions import LESS
from cepbench.patterns.model import MatchAggregate, Operator, Pattern
from cepbench.patterns.neighbours import neighbours_of
from cepbench.patterns.parse import parse
from tests.budgets import examples
from tests.drawn_events import below, drawn_events, uniform
from tests.engines.aggregation.cases import compared_cases
from tests.engines.detection.strategies import (
    OPERATORS,
    batches_of,
    stream_of,
)
from tests.naive.aggregates import naive_rows
from tests.naive.matcher import labelled_matches


@contextmanager
def scanning(few: int) -> Iterator[None]:
    """Windows that are made meanwhile take scans for chunks of so few events, if a hundred are stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_statistics, "FEW", few)
        yield


#: No chunk, short ones, all.
_SCANNED = st.sampled_from([-(1 << 40), order_statistics.FEW, 1 << 40])


def has_extremes(pattern: Pattern, scope: str) -> bool:
    """Whether MIN and MAX are found by ranks, too."""
    found = neighbours_of(pattern)
    return (
        found is not None
        and found.closing is None
        and scope != "trigger"
        and pattern.structure.operator is Operator.SEQ
    )


def is_compared(pattern: Pattern) -> bool:
    """Whether its matches are counted by ranks."""
    found = neighbours_of(pattern)
    plan = None if found is None else automaton(found.pattern)
    return plan is not None and (
        compared_layout(BranchTask.of_one(pattern, plan, reports=False)) is not None
    )


@pytest.mark.kernel
@given(data=st.data())
@examples(8)
def test_the_matches_of_the_naive_twin(data: st.DataObject) -> None:
    """After each batch, restored after any of them."""
    case = data.draw(compared_cases(("SEQ", "AND")))
    assert is_compared(case.pattern)
    lasts = sorted(max(match) for _, match in labelled_matches(case.pattern, case.events))
    counted = 0
    with pieces_of(events=data.draw(st.sampled_from([3, inf]))), scanning(data.draw(_SCANNED)):
        detector = cep.Detector(case.pattern, evaluator="sase", output="count")
        for batch in data.draw(batches_of(case.stream)):
            counted += detector.push(batch)
            assert counted == np.searchsorted(lasts, detector.position)
            if data.draw(st.booleans()):
                detector = cep.Detector.restore(detector.snapshot())
    assert counted + detector.flush() == len(lasts)


@pytest.mark.kernel
@given(data=st.data())
@examples(8)
def test_values_in_batches_with_restorations(data: st.DataObject) -> None:
    case = data.draw(compared_cases(("SEQ", "AND")))
    options = {
        "emit": data.draw(st.sampled_from(EMITS)),
        "scope": data.draw(st.sampled_from(SCOPES)),
    }
    asked = [("COUNT", "x"), ("SUM", "x"), ("AVG", "x"), ("SUM", "y")]
    if has_extremes(case.pattern, options["scope"]):
        asked += [("MIN", "x"), ("MAX", "x"), ("MIN", "y"), ("MAX", "y")]
    aggregates = [MatchAggregate("COUNT")]
    aggregates += [
        MatchAggregate(function, name, attribute)
        for name in case.pattern.positive_names
        for function, attribute in data.draw(st.lists(st.sampled_from(asked), unique=True))
    ]
    pattern = replace(case.pattern, aggregates=tuple(aggregates))
    rows = []
    with scanning(data.draw(_SCANNED)):
        live = cep.Aggregator(pattern, "order-statistics", **options)
        for batch in data.draw(batches_of(case.stream)):
            if data.draw(st.booleans()):
                live = cep.Aggregator.restore(live.snapshot())
            rows += live.take(batch)
    assert set(rows) == naive_rows(pattern, case.events, **options)


_INTEGERS = st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63), 2**20, 1 - 2**40, 7, 0])
_FLOATS = st.sampled_from(
    [1e300, -1e300, 1e-300, 5e-324, 0.1, -37.42, 2.0**53 + 2, 1 / 3, 4e15 / 3, 0.0, np.nan]
)


@pytest.mark.kernel
@pytest.mark.parametrize("values", [_INTEGERS, _FLOATS], ids=["integers", "floats"])
@given(data=st.data())
@examples(8)
def test_sums_of_values_of_any_size(values: st.SearchStrategy, data: st.DataObject) -> None:
    """Of integers they are exact, and of floats within 10^-12 of the sum of absolute values."""
    case = data.draw(compared_cases(("SEQ", "AND")))
    number, dtype = len(case.events), np.int64 if values is _INTEGERS else np.float64
    drawn = np.array(data.draw(st.lists(values, min_size=number, max_size=number)), dtype)
    events = case.events.assign(w=drawn, size=np.abs(drawn.astype(float)))
    name = data.draw(st.sampled_from(case.pattern.positive_names))
    asked = [MatchAggregate(function, name, "w") for function in ("COUNT", "SUM", "AVG")]
    pattern = replace(case.pattern, aggregates=tuple(asked))
    scope = data.draw(st.sampled_from(SCOPES))
    rows = []
    with scanning(data.draw(_SCANNED)):
        live = cep.Aggregator(pattern, "order-statistics", scope=scope)
        for batch in data.draw(batches_of(stream_of(events))):
            if data.draw(st.booleans()):
                live = cep.Aggregator.restore(live.snapshot())
            rows += live.take(batch)
    if values is _INTEGERS:
        assert set(rows) == naive_rows(pattern, events, scope=scope)
        return
    sized = replace(pattern, aggregates=(*asked, MatchAggregate("SUM", name, "size")))
    due = {row[:3]: row.values for row in naive_rows(sized, events, scope=scope)}
    assert {row[:3] for row in rows} == due.keys()
    for row in rows:
        number, *values = row.values
        its_number, *its, size = due[row[:3]]
        assert number == its_number
        # An average is computed of smaller values, which are then no less than 2^-562.
        bounds = (1, 0), (number, 2.0**-560)
        for value, its_value, (divisor, least) in zip(values, its, bounds, strict=True):
            if its_value is None:
                assert value is None
            else:
                assert abs(Fraction(value) - its_value) <= Fraction(1e-12) * size / divisor + least


@pytest.mark.kernel
def test_sums_of_infinite_values_and_of_decimals() -> None:
    """Infinite values leave the window as others do, and sums of decimals are those of integers."""
    pattern = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AGG SUM(a.w), AVG(b.w) WITHIN 3 units"
    weights = [np.inf, 1, -np.inf, 2, 0, 3, 0.1, 4, 0.2, 5, 0.7, 6]
    events = pd.DataFrame({"type": [*"AB" * 6], "time": range(12), "x": [*range(12)], "w": weights})
    found = cep.aggregate(pattern, stream_of(events), "order-statistics", scope="trigger").rows
    assert [row.values for row in found] == [
        (np.inf, 1), (None, 2), (-np.inf, 3), (0.1, 4), (0.3, 5), (0.9, 6),
    ]  # fmt: skip


def test_every_float_is_summed_with_its_digits() -> None:
    """Sums of one value each."""
    rng, number = np.random.default_rng(2), 500
    weights = rng.normal(size=number) * 2.0 ** rng.integers(-30, 30, number)
    events = pd.DataFrame({"type": [*"AB" * number], "time": range(2 * number), "x": 1.0})
    events["w"] = np.repeat(weights, 2)
    pattern = "PATTERN SEQ(A a, B b) WHERE a.x = b.x AGG SUM(a.w), AVG(b.w) WITHIN 1 units"
    rows = cep.aggregate(pattern, stream_of(events), "order-statistics").rows
    found = np.array([row.values for row in rows])
    assert (np.abs(found - weights[:, None]) < 2.0**-40.9 * np.abs(weights[:, None])).all()


def test_a_digit_goes_with_the_last_event_that_has_it() -> None:
    pattern = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AGG SUM(a.w) WITHIN 99 units"
    events = pd.DataFrame({"type": "A", "time": range(400), "x": 1.0, "w": 1})
    events.loc[150, "w"] = 2**62
    live, sizes = cep.Aggregator(pattern, "order-statistics"), []
    for batch in stream_of(events).batches(100):
        live.push(batch)
        sizes.append(sum(its.nbytes for its in live.snapshot().values()))
    assert sizes[1] > 1.3 * sizes[0]
    assert sizes[-1] < 1.1 * sizes[0]


def test_a_digit_stays_while_matches_have_it_that_add_up_to_nothing() -> None:
    pattern = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AGG SUM(c.w) WITHIN 9 units"
    events = pd.DataFrame({"type": [*"ABCABCCC"], "time": [*range(7), 10]})
    events["x"] = [10, 11, 12, 0, 1, 2, -1, -1]
    events["w"] = [0, 0, 2**40, 0, 0, -(2**40), 0, 0]
    live = cep.Aggregator(pattern, "order-statistics")
    rows = [row for batch in stream_of(events).batches(1) for row in live.take(batch)]
    assert [row.values for row in rows] == [(2**40,), (0,), (0,), (-(2**40),)]


def test_more_events_than_sums_are_exact_for() -> None:
    events = pd.DataFrame({"type": ["A"] * (MOST_EVENTS + 1), "time": 0, "x": 1.0, "w": 1})
    for asked, is_refused in (("COUNT", False), ("SUM(a.w)", True)):
        live = cep.Aggregator(
            f"PATTERN SEQ(A a, B b) WHERE a.x < b.x AGG {asked} WITHIN 9 units", "order-statistics"
        )
        with pytest.raises(StreamError, match="at most") if is_refused else nullcontext():
            live.push(stream_of(events))
            live.push(stream_of(events[:1].assign(time=1)))


def test_partitions_of_the_past_go_without_further_events_of_the_pattern() -> None:
    detector = cep.Detector(
        "PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x WITHIN 9 units",
        evaluator="sase",
        output="count",
    )
    many = pd.DataFrame({"type": "A", "time": range(500), "x": 1.0, "k": range(500)})
    detector.push(stream_of(many.assign(time=0)))
    before = sum(its.nbytes for its in detector.snapshot().values())
    detector.push(stream_of(many.assign(type="C", time=many["time"] + 20)))
    assert sum(its.nbytes for its in detector.snapshot().values()) < before / 5


@pytest.mark.parametrize("scope", SCOPES)
def test_windows_that_move_over_a_long_stream(scope: str) -> None:
    """Trees are built anew many times, also within a batch."""
    rng = np.random.default_rng(4)
    events = pd.DataFrame(
        {
            "type": rng.choice([*"AB"], 1500),
            "time": np.sort(rng.integers(0, 3000, 1500)),
            "x": rng.integers(0, 50, 1500),
            "k": rng.integers(0, 3, 1500),
            # Few values have high digits, which come and go with them.
            "i": np.where(rng.random(1500) < 0.01, 1 << 45, rng.integers(-50, 50, 1500)),
            "r": np.where(rng.random(1500) < 0.1, np.nan, rng.random(1500)),
        }
    )
    for structure, compared, twin in (
        ("SEQ(A a, ANY b, ANY c)", "a.x < b.x AND b.x >= c.x", "greta"),
        ("SEQ(A a, ANY b, ANY c)", "a.x != b.x AND b.x = c.x", "greta"),
        ("SEQ(A a, ANY b, ANY c)", "b.x > c.x", "greta"),
        # Twice as many values as events.
        ("SEQ(ANY a, ANY b)", "a.r < 2 * b.r", "greta"),
        ("SEQ(A a, NOT(ANY n), B b)", "a.x < b.x AND n.x > 45", "greta"),
        ("SEQ(A a, NOT(B n), ANY b, ANY c)", "a.x < b.x AND b.x > c.x AND n.x > 45", "greta"),
        ("SEQ(A a, B b, NOT(ANY n), ANY c)", "a.x < b.x AND b.x > c.x AND n.x > 45", "greta"),
        (
            "SEQ(A a, NOT(A m), ANY b, NOT(B n), ANY c)",
            "a.x != b.x AND b.x >= c.x AND m.x > 45 AND n.x < 5",
            "greta",
        ),
        ("SEQ(A a, NOT(ANY n), B b)", "a.x < b.x AND n.x >= a.x + 40", "two-step"),
        (
            "SEQ(A a, NOT(A m), ANY b, NOT(B n), ANY c)",
            "a.x != b.x AND b.x >= c.x AND m.x > 45 AND n.x < b.x - 30",
            "two-step",
        ),
        ("AND(A a, ANY b, B c)", "a.x < b.x AND b.x >= c.x", "two-step"),
        ("AND(A a, ANY b, B c)", "a.x != b.x AND b.x = c.x", "two-step"),
        ("AND(A a, ANY b)", "a.x < b.x", "two-step"),
    ):
        last = "c" if " c)" in structure else "b"
        asked = f"COUNT, COUNT(b.x), SUM(a.i), SUM(b.i), AVG({last}.i)"
        if structure.startswith("SEQ") and twin == "greta" and scope != "trigger":
            asked += f", MIN(a.r), MAX(b.r), MIN({last}.r), MAX({last}.i)"
        text = f"PATTERN {structure} WHERE [k] AND {compared} AGG {asked} WITHIN 90 units"
        stream = stream_of(events)
        due = cep.aggregate(text, stream, twin, scope=scope).rows
        assert max(row.values[0] for row in due) > 10
        for few in (-(1 << 40), 1 << 40):
            with scanning(few):
                found = cep.aggregate(text, stream, "order-statistics", scope=scope).rows
                live = cep.Aggregator(text, "order-statistics", scope=scope)
            assert found == due
            assert [row for batch in stream.batches(400) for row in live.take(batch)] == due


@pytest.mark.kernel
@pytest.mark.parametrize("scope", SCOPES)
def test_what_stands_between_forbidden_events(scope: str, seeds) -> None:
    """Those that are forbidden share timestamps with others, and items, and leave the window one by one."""
    for seed in seeds(1):
        events = drawn_events(60, "AABBC", seed=seed, within=60, x=below(9), r=uniform)
        for structure, forbids in (
            ("SEQ(A a, NOT(ANY m), ANY b)", "m.x > 7"),
            ("SEQ(A a, NOT(C m), ANY b, NOT(A n), ANY c)", "m.x > 3 AND n.x > 7"),
            ("SEQ(A a, NOT(C m), NOT(ANY n), ANY b)", "m.x > 3 AND n.x > a.x + 4"),
            ("SEQ(A a, NOT(C m), ANY b, NOT(A n), ANY c)", "m.x > 3 AND n.x <= b.x - 3"),
        ):
            compared = "a.x != b.x" + " AND b.x != c.x" * (" c)" in structure)
            pattern = parse(
                f"PATTERN {structure} WHERE {compared} AND {forbids} AGG COUNT WITHIN 12 units"
            )
            if has_extremes(pattern, scope):
                its = [MatchAggregate("MIN", name, "r") for name in pattern.positive_names]
                pattern = replace(pattern, aggregates=(*pattern.aggregates, *its))
            due = naive_rows(pattern, events, scope=scope)
            for few in (-(1 << 40), 1 << 40):
                with scanning(few):
                    live = cep.Aggregator(pattern, "order-statistics", scope=scope)
                    batches = stream_of(events).batches(25)
                    assert {row for batch in batches for row in live.take(batch)} == due


@pytest.mark.kernel
@pytest.mark.parametrize("few", [-(1 << 40), 1 << 40], ids=["trees", "scans"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_missing_values_are_in_no_match(few: int, operator: str) -> None:
    events = pd.DataFrame(
        {"type": [*"ABABBAB"], "time": range(7), "x": [np.nan, 1, 2, np.nan, 0, 1, 2]}
    )
    pattern = parse(f"PATTERN SEQ(A a, B b) WHERE a.x {operator} b.x WITHIN 9 units")
    with scanning(few):
        found = cep.evaluate(pattern, stream_of(events), evaluator="sase", output="count")
    assert found.metrics.matches == len(labelled_matches(pattern, events)) > 0


@pytest.mark.kernel
@pytest.mark.parametrize("few", [-(1 << 40), 1 << 40], ids=["trees", "scans"])
def test_counts_beyond_64_bits(few: int) -> None:
    """First events of large weights stand for many."""
    many = 1 << 60
    with scanning(few):
        window = ComparedWindow(
            np.array([1, 2, 4]), ((0, 0, LESS), None), 9, counts_window=True
        ).weighing(0)
    window.add(1)
    flags, times = np.array([1, 1, 1, 1, 2, 4, 4, 4, 0]), np.array([0, 0, 0, 0, 1, 2, 3, 4, 99])
    rows, values = np.arange(9), -times[None].astype(float)
    weights, spans = np.full(9, many), np.array([0, 9])
    of_all = np.array([0])
    totals, done = window.push(
        Events(rows, times, flags, values, spans, 100, weights, rows, of_all), 9
    )
    assert totals.tolist() == [0, 0, 0, 0, 0, 4 * many, 8 * many, 12 * many, 0]
    assert done.tolist() == [4, 8, 0]
    assert window.take() == 12 * many


@pytest.mark.parametrize(
    ("text", "is_counted"),
    [
        ("SEQ(A a, B b) WHERE a.x < b.x", True),
        ("SEQ(A a, B b, C c) WHERE 2 * a.x < b.x AND b.x <= c.y - 1 AND [k] AND c.x > 3", True),
        ("SEQ(A a, NOT(C n), B b) WHERE a.x < b.x", True),
        ("SEQ(A a, NOT(C m), B b, NOT(A n), C c) WHERE a.x < b.x AND n.y > 1 AND [k]", True),
        # The values of b differ; not neighbours; twice; together; a set; four items.
        ("SEQ(A a, B b, C c) WHERE a.x < b.x AND b.y <= c.x", False),
        ("SEQ(A a, B b, C c) WHERE a.x < c.x", False),
        ("SEQ(A a, B b) WHERE a.x < b.x AND a.y < b.y", False),
        ("SEQ(A a, B b) WHERE a.x + b.x < 3", False),
        ("SEQ(A a, B b) WHERE a.x < b.x OR a.x > b.y", False),
        ("SEQ(A a, KL(B b)) WHERE a.x < b.x", False),
        ("SEQ(A a, B b, C c, A d) WHERE a.x < b.x", False),
        ("SEQ(A a, NOT(C n), B b) WHERE a.x < b.x AND n.y > a.y + 1", True),
        ("SEQ(A a, NOT(C m), B b, NOT(A n), C c) WHERE b.x < c.x AND b.y <= n.x", True),
        # NOT before the first item, equal to an item, compared with a later or an earlier one, twice.
        ("SEQ(NOT(C n), A a, B b) WHERE a.x < b.x", False),
        ("SEQ(A a, NOT(C n), B b) WHERE a.x < b.x AND n.x = a.x", False),
        ("SEQ(A a, NOT(C n), B b) WHERE a.x < b.x AND n.x > b.x", False),
        ("SEQ(A a, NOT(C n), B b, C c) WHERE a.x < b.x AND n.x > a.x", False),
        ("SEQ(A a, B b, NOT(C n), C c) WHERE a.x < b.x AND n.x > a.x", False),
        ("SEQ(A a, NOT(C n), B b) WHERE a.x < b.x AND n.x > a.x AND n.y > a.y", False),
        ("SEQ(A a, NOT(C m), NOT(A n), B b) WHERE a.x < b.x AND n.x > a.x AND m.y > a.y", False),
    ],
)
def test_what_is_counted_by_ranks(text: str, is_counted: bool) -> None:
    assert is_compared(parse(f"PATTERN {text} WITHIN 9 units")) == is_counted
    asked = f"PATTERN {text} AGG {{}} WITHIN 9 units"
    method = cep.Aggregator(asked.format("COUNT")).method
    assert (method == "order-statistics") == is_counted
    assert cep.Aggregator(asked.format("COUNT, SUM(b.x), AVG(a.y)")).method == method
    for scope in SCOPES:
        finds = is_counted and has_extremes(parse(f"PATTERN {text} WITHIN 9 units"), scope)
        error = pytest.raises(UnsupportedPatternError, match="order-statistics")
        with nullcontext() if finds else error:
            cep.Aggregator(asked.format("SUM(b.x), MAX(b.x)"), "order-statistics", scope=scope)


@pytest.mark.parametrize(
    ("text", "is_counted"),
    [
        ("AND(A a, B b) WHERE a.x < b.x", True),
        ("AND(A a, A b) WHERE a.x < b.x", True),
        # The middle item need not be written in the middle; nothing has to be compared.
        ("AND(A a, B b, C c) WHERE c.x < a.x AND b.x - 1 > a.x AND [k] AND b.y = 1", True),
        ("AND(A a, B b, A c) WHERE a.x < c.x AND b.x > a.x", True),
        ("AND(A a, B b, C c) WHERE c.x < a.x", True),
        # An event may be both of those that are not compared; all pairs; more than plain items.
        ("AND(A a, B b, A c) WHERE a.x < b.x AND b.x < c.x", False),
        ("AND(ANY a, B b, C c) WHERE a.x < b.x AND b.x < c.x", False),
        ("AND(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AND a.x > c.x - 2", False),
        ("AND(A a, SEQ(B b, C c)) WHERE a.x < b.x", False),
        ("AND(A a, KL(B b)) WHERE a.x < b.x", False),
    ],
)
def test_which_conjunctions_are_counted_by_ranks(text: str, is_counted: bool) -> None:
    method = cep.Aggregator(f"PATTERN {text} AGG COUNT WITHIN 9 units").method
    assert method == ("order-statistics" if is_counted else "two-step")
    assert cep.Aggregator(f"PATTERN {text} AGG MIN(b.x) WITHIN 9 units").method == "two-step"
    sase: dict[str, Any] = {"evaluator": "sase", "output": "count"}
    with nullcontext() if is_counted else pytest.raises(UnsupportedPatternError, match="one order"):
        cep.Detector(f"PATTERN {text} WITHIN 9 units", **sase)
    for other in ({"output": "arrow"}, {"node_times": True}, {"options": {"postpone": True}}):
        with pytest.raises(UnsupportedPatternError):
            cep.Detector(f"PATTERN {text} WITHIN 9 units", **{**sase, **other})


def test_a_nested_conjunction_is_refused_by_name() -> None:
    text = "PATTERN SEQ(A a, AND(B b, C c)) WHERE a.x < b.x AGG COUNT WITHIN 9 units"
    with pytest.raises(
        UnsupportedPatternError, match="cannot aggregate AND; use the method two-step"
    ):
        cep.Aggregator(text, "order-statistics")


def test_no_event_of_a_conjunction_is_bound_twice() -> None:
    """An event of two items is beside others alone, also after it has entered, and before it leaves."""
    events = pd.DataFrame({"type": [*"ABAACABB"], "time": [0, 0, 1, 1, 1, 3, 6, 9], "x": 1.0})
    pattern = parse(
        "PATTERN AND(A a, ANY b, B c) WHERE a.x <= b.x AND b.x = c.x AGG COUNT WITHIN 5 units"
    )
    for few in (-(1 << 40), 1 << 40):
        with scanning(few):
            found = cep.aggregate(pattern, stream_of(events), "order-statistics").rows
        assert {*found} == naive_rows(pattern, events)
