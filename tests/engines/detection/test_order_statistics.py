"""Counts by ranks of values: those of the naive twin, and of matches found one by one on longer streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS, SCOPES
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.sase.order_statistics import compared_layout
from cepbench.engines.sequence_counts import order_statistics
from cepbench.engines.sequence_counts.kernels.tables import Events
from cepbench.engines.sequence_counts.order_statistics import ComparedWindow
from cepbench.errors import UnsupportedPatternError
from cepbench.kernels.instructions import LESS
from cepbench.patterns.model import MatchAggregate, Pattern
from cepbench.patterns.neighbours import neighbours_of
from cepbench.patterns.parse import parse
from tests.budgets import examples
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
    counts = [MatchAggregate("COUNT")]
    counts += [MatchAggregate("COUNT", name, "x") for name in case.pattern.positive_names]
    pattern = replace(case.pattern, aggregates=tuple(counts))
    options = {
        "emit": data.draw(st.sampled_from(EMITS)),
        "scope": data.draw(st.sampled_from(SCOPES)),
    }
    rows = []
    with scanning(data.draw(_SCANNED)):
        live = cep.Aggregator(pattern, "order-statistics", **options)
        for batch in data.draw(batches_of(case.stream)):
            if data.draw(st.booleans()):
                live = cep.Aggregator.restore(live.snapshot())
            rows += live.take(batch)
    assert set(rows) == naive_rows(pattern, case.events, **options)


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
@pytest.mark.parametrize("few", [-(1 << 40), 1 << 40], ids=["trees", "scans"])
def test_windows_that_move_over_a_long_stream(scope: str, few: int) -> None:
    """Trees are built anew many times, also within a batch."""
    rng = np.random.default_rng(4)
    events = pd.DataFrame(
        {
            "type": rng.choice([*"AB"], 1500),
            "time": np.sort(rng.integers(0, 3000, 1500)),
            "x": rng.integers(0, 50, 1500),
            "k": rng.integers(0, 3, 1500),
        }
    )
    for structure, compared, twin in (
        ("SEQ(A a, ANY b, ANY c)", "a.x < b.x AND b.x >= c.x", "greta"),
        ("SEQ(A a, ANY b, ANY c)", "a.x != b.x AND b.x = c.x", "greta"),
        ("SEQ(A a, ANY b, ANY c)", "b.x > c.x", "greta"),
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
        text = f"PATTERN {structure} WHERE [k] AND {compared} AGG COUNT, COUNT(b.x) WITHIN 90 units"
        stream = stream_of(events)
        with scanning(few):
            found = cep.aggregate(text, stream, "order-statistics", scope=scope).rows
            live = cep.Aggregator(text, "order-statistics", scope=scope)
        assert max(row.values[0] for row in found) > 10
        assert found == cep.aggregate(text, stream, twin, scope=scope).rows
        assert [row for batch in stream.batches(400) for row in live.take(batch)] == found


@pytest.mark.kernel
@pytest.mark.parametrize("scope", SCOPES)
def test_what_stands_between_forbidden_events(scope: str, seeds) -> None:
    """Those that are forbidden share timestamps with others, and items, and leave the window one by one."""
    for seed in seeds(3):
        rng = np.random.default_rng(seed)
        events = pd.DataFrame(
            {
                "type": rng.choice([*"AABBC"], 60),
                "time": np.sort(rng.integers(0, 60, 60)),
                "x": rng.integers(0, 9, 60).astype(float),
            }
        )
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
            np.array([1, 2, 4]), ((0, 0, LESS), None), 9, counts_window=True, weighted=0
        )
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
    with pytest.raises(UnsupportedPatternError, match="order-statistics"):
        cep.Aggregator(asked.format("COUNT, SUM(b.x)"), "order-statistics")


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
