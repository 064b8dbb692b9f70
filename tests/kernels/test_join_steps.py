"""The parts of the join, and the length of its steps, which changes nothing that is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.joins.kernels.candidates import (
    GUIDE,
    OUTER_BLOCK,
    first_at_least,
    total_length,
)
from cepbench.engines.joins.kernels.equality import FEWEST_INNER, FEWEST_OUTER
from cepbench.engines.joins.kernels.filters import BLOCK
from cepbench.engines.joins.kernels.pairs import FEW
from cepbench.engines.runs.pieces import pieces_of
from cepbench.kernels.sorting import sorted_by
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from tests.budgets import examples, only_compiled
from tests.engines.detection.strategies import Case, cases, stream_of, tree_plans
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel


@given(
    st.one_of(
        st.lists(st.integers(-3, 3), max_size=12),
        st.lists(st.integers(-(2**62), 2**62), min_size=9, max_size=40),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=9, max_size=20),
        st.lists(st.integers(0, 5) | st.integers(0, 10**6), min_size=9, max_size=40),
    ).map(sorted),
    st.data(),
    st.integers(0, 5),
)
def test_searches_in_a_sorted_column(column: list[int], data: st.DataObject, offset: int) -> None:
    near = st.sampled_from([value + d for value in column for d in (-1, 0, 1)] or [0])
    values = data.draw(
        st.lists(st.integers(-4, 4) | near.filter(lambda v: -(2**63) <= v < 2**63), min_size=1)
    )
    found = np.full(len(values) + 1, -1)
    guide = np.full(GUIDE + 1, -1)
    first_at_least(
        np.array(column, np.int64), offset, np.array(values, np.int64), found, len(values), guide
    )
    for row, value in zip(found, values, strict=False):
        assert row == offset + sum(entry < value for entry in column)
    assert found[-1] == -1


@given(st.lists(st.integers(-1, 3), max_size=30))
def test_rows_sorted_by_small_numbers(numbers: list[int]) -> None:
    order, stops = sorted_by(np.array(numbers, np.int32), -1, 5)
    expected = [[row for row, its in enumerate(numbers) if its == k] for k in range(-1, 4)]
    assert [its.tolist() for its in np.split(order, stops[1:-1])] == expected
    assert (stops[0], stops[-1]) == (0, len(numbers))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_lengths_of_ranges(ranges: list[tuple[int, int]]) -> None:
    starts, stops = (np.array([r[k] for r in ranges], np.int64) for k in range(2))
    expected = sum(max(0, stop - start) for start, stop in ranges)
    assert total_length(starts, stops, len(ranges)) == expected


@given(
    data=st.data(),
    case=cases(sizes=(2, 4)),
    ticks=st.sampled_from([1, 4, 50]),
    enough=st.sampled_from([1, 2, 3, 5, 1000]),
)
def test_the_length_of_a_step_changes_no_match(
    data: st.DataObject, case: Case, ticks: int, enough: int
) -> None:
    """From one tick to a whole window at once; and no count depends on what a step is made of."""
    plan = data.draw(tree_plans(case.pattern.names))
    # A window is divided into a few moments, each of several ticks.
    window = case.pattern.window
    pattern = replace(case.pattern, window=replace(window, amount=window.amount * ticks))
    time = case.events["time"]
    first = time.iloc[:1].sum()
    stream = Case(pattern, case.events.assign(time=first + (time - first) * ticks)).stream
    results = []
    for events_per_step in (1, enough):
        with pieces_of(events=events_per_step):
            results.append(evaluate(pattern, stream, plan, evaluator="tree"))
    expected = naive_matches(case.pattern, case.events)
    for result in results:
        found = [tuple(row) for row in result.matches.to_numpy().tolist()]
        assert len(found) == len(set(found))
        assert set(found) == expected
    counted = ["variables", "created", "peak_stored", "mean_stored"]
    assert_frame_equal(results[0].nodes[counted], results[1].nodes[counted])
    for name in ("peak_partial_matches", "peak_buffered_events", "mean_partial_matches"):
        assert getattr(results[0].metrics, name) == getattr(results[1].metrics, name)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("a.x < b.x", np.less),
        ("a.x + b.x > b.x * 0.5", lambda a, b: a + b > b * 0.5),
        (None, lambda a, b: np.full(np.broadcast(a, b).shape, True)),
    ],
    ids=["comparison", "program", "none"],
)
@pytest.mark.parametrize("operator", ["SEQ", "AND"])
@pytest.mark.parametrize("tree", [("a", "b"), ("b", "a")])
def test_more_candidates_than_a_block_holds(tree, operator: str, condition, holds) -> None:
    """None is skipped or looked at twice where one block ends and the next begins."""
    count = 2 * BLOCK + 7
    rng = np.random.default_rng(0)
    kinds = np.array(["A"] * count + ["B"] * 3)
    time = np.concatenate([np.sort(rng.integers(0, 900, count)), [900, 901, 901]])
    x = rng.normal(size=len(kinds))
    where = f"WHERE {condition}" if condition else ""
    pattern = parse(f"PATTERN {operator}(A a, B b) {where} WITHIN 890 units")
    stream = stream_of(pd.DataFrame({"type": kinds, "time": time, "x": x}))
    a, b = np.arange(count)[:, None], np.arange(count, count + 3)[None, :]
    expected = np.argwhere(holds(x[a], x[b]) & (time[b] - time[a] <= 890)) + np.array([0, count])
    result = evaluate(pattern, stream, TreePlan(tree))
    assert len(expected) > BLOCK
    assert sorted(result.matches.to_numpy().tolist()) == sorted(expected.tolist())
    counted = evaluate(pattern, stream, TreePlan(tree), output="count")
    assert counted.metrics.matches == len(expected)


@only_compiled
@pytest.mark.parametrize("operator", ["SEQ", "AND"])
@pytest.mark.parametrize("tree", [(("a", "b"), "c"), ("c", ("b", "a")), (("c", "b"), "a")])
def test_more_outer_rows_than_a_block_holds(operator: str, tree: tuple) -> None:
    """All in one step: few a, many b, and some c among them, which see them sorted by time."""
    # Where there is no room for a row, a new block begins: so many that others are passed too.
    counts = {"A": 60, "B": 5 * OUTER_BLOCK, "C": 4}
    rng = np.random.default_rng(8)
    kinds = rng.permutation(np.repeat(list(counts), list(counts.values())))
    events = pd.DataFrame(
        {
            "type": kinds,
            "time": np.sort(rng.integers(0, 90, len(kinds))),
            "x": rng.normal(size=len(kinds)).round(1),
        }
    )
    pattern = parse(f"PATTERN {operator}(A a, B b, C c) WHERE a.x < b.x WITHIN 800 units")
    result = evaluate(pattern, stream_of(events), TreePlan(tree), evaluator="tree")
    time, x = events["time"].to_numpy(), events["x"].to_numpy()
    rows = [np.flatnonzero(kinds == kind) for kind in counts]
    a, b, c = np.ix_(*rows)
    holds = x[a] < x[b]
    if operator == "SEQ":
        holds = holds & (time[a] < time[b]) & (time[b] < time[c])
    expected = np.argwhere(np.broadcast_to(holds, tuple(map(len, rows))))
    assert len(expected) > 10_000
    found = {tuple(row) for row in result.matches.to_numpy().tolist()}
    assert len(found) == len(result.matches)
    assert found == {(rows[0][i], rows[1][j], rows[2][k]) for i, j, k in expected}


@pytest.mark.parametrize("operator", ["SEQ", "AND"])
def test_outer_rows_of_later_blocks_are_counted_by_their_own_values(operator: str) -> None:
    count = 2 * OUTER_BLOCK + 88
    rng = np.random.default_rng(4)
    kinds = rng.permutation(np.repeat(["A", "B"], count))
    time, x = np.sort(rng.integers(0, 90, 2 * count)), rng.normal(size=2 * count)
    stream = stream_of(pd.DataFrame({"type": kinds, "time": time, "x": x}))
    pattern = parse(f"PATTERN {operator}(A a, B b) WHERE a.x < b.x WITHIN 800 units")
    holds = x[kinds == "A"][:, None] < x[kinds == "B"][None, :]
    if operator == "SEQ":
        holds &= time[kinds == "A"][:, None] < time[kinds == "B"][None, :]
    counted = evaluate(pattern, stream, TreePlan(("a", "b")), output="count")
    assert counted.metrics.matches == holds.sum() > count


_HOLDS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": lambda a, b: (a < b) | (a > b),
}


@pytest.mark.parametrize("operator", ["SEQ", "AND"])
@pytest.mark.parametrize("tree", [(("a", "b"), "c"), ("c", ("b", "a")), (("c", "a"), "b")])
@given(
    compared=st.tuples(st.sampled_from([*_HOLDS]), st.sampled_from([*_HOLDS])),
    events=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    window=st.integers(2, 90),
    values=st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan, -np.inf]), min_size=1),
    seed=st.integers(0, 999),
)
@examples(4)
def test_short_and_long_ranges(
    operator: str,
    tree: tuple,
    compared: tuple[str, str],
    events: tuple[int, int],
    window: int,
    values: list[float],
    seed: int,
) -> None:
    """Pairs of a block are listed where there are few, else inner rows are taken as they lie."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(np.repeat(["A", "B"], events))
    table = pd.DataFrame(
        {
            "type": kinds,
            "time": np.sort(rng.integers(0, 90, len(kinds))),
            "x": rng.choice(values, len(kinds)),
            "y": rng.choice(values, len(kinds)),
        }
    )
    first, second = compared
    pattern = parse(
        f"PATTERN {operator}(A a, B b, A c) WHERE a.x {first} b.x AND b.y {second} c.y "
        f"WITHIN {window} units"
    )
    time, x, y = (table[name].to_numpy() for name in ("time", "x", "y"))
    places = [np.flatnonzero(kinds == kind) for kind in "ABA"]
    a, b, c = np.ix_(*places)
    holds = (a != c) & _HOLDS[first](x[a], x[b]) & _HOLDS[second](y[b], y[c])
    holds &= np.ptp(np.broadcast_arrays(time[a], time[b], time[c]), axis=0) <= window
    if operator == "SEQ":
        holds &= (time[a] < time[b]) & (time[b] < time[c])
    expected = [
        tuple(int(rows[at]) for rows, at in zip(places, found, strict=True))
        for found in np.argwhere(holds)
    ]
    stream = stream_of(table)
    for evaluator in ("tree", "lazy-nfa") if tree == (("a", "b"), "c") else ("tree",):
        plan = TreePlan(tree) if evaluator == "tree" else OrderPlan(("a", "b", "c"))
        result = evaluate(pattern, stream, plan, evaluator=evaluator)
        assert sorted(map(tuple, result.matches.to_numpy().tolist())) == sorted(expected)
        counted = evaluate(pattern, stream, plan, output="count", evaluator=evaluator)
        assert counted.metrics.matches == len(expected)


@pytest.mark.parametrize("inner", [FEW - 1, FEW, FEW + 1])
@pytest.mark.parametrize("output", ["matches", "count"])
def test_as_many_pairs_as_can_be_listed(inner: int, output: str) -> None:
    """Blocks of outer rows with just so many inner rows each, and no room for what they make."""
    outers = 3 * OUTER_BLOCK + 5
    time = np.repeat(np.arange(outers) * 10, 1 + inner) + np.tile([0] + [1] * inner, outers)
    kinds = np.tile(["A"] + ["B"] * inner, outers)
    table = pd.DataFrame({"type": kinds, "time": time, "x": np.arange(len(kinds)) % 7})
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x != b.x WITHIN 5 units")
    x = table["x"].to_numpy().reshape(outers, 1 + inner)
    result = evaluate(pattern, stream_of(table), TreePlan(("a", "b")), output=output)
    assert result.metrics.matches == (x[:, :1] != x[:, 1:]).sum()
    assert result.metrics.comparisons == outers * inner
    if output == "matches":
        found = result.matches.to_numpy()
        assert (found[:, 0] // (1 + inner) == found[:, 1] // (1 + inner)).all()
        assert len(np.unique(found, axis=0)) == len(found) == result.metrics.matches


@pytest.mark.parametrize("operator", ["SEQ", "AND"])
@pytest.mark.parametrize("window", [800, 60], ids=["one step", "many steps"])
@given(
    rest=st.sampled_from(["", " AND a.y <= b.y AND a.y + b.y != 3"]),
    tree=st.sampled_from([(("a", "b"), "c"), ("c", ("b", "a")), (("a", "c"), "b")]),
    values=st.lists(st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf, -1e300, 7e8]), min_size=1),
    seed=st.integers(0, 99),
)
@examples(6)
def test_equal_values_are_found_by_an_index(
    operator: str, rest: str, tree: tuple, window: int, values: list[float], seed: int
) -> None:
    """Missing values, both zeros, many rows of one value, and conditions beside the equality."""
    rng = np.random.default_rng(seed)
    counts = {"A": 4 * FEWEST_OUTER, "B": 2 * FEWEST_INNER, "C": 2}
    kinds = rng.permutation(np.repeat(list(counts), list(counts.values())))
    events = pd.DataFrame(
        {
            "type": kinds,
            "time": np.sort(rng.integers(0, 90, len(kinds))),
            "x": rng.choice(values, len(kinds)),
            "y": rng.integers(0, 4, len(kinds)),
        }
    )
    pattern = parse(
        f"PATTERN {operator}(A a, B b, C c) WHERE a.x = b.x{rest} WITHIN {window} units"
    )
    time, x, y = (events[name].to_numpy() for name in ("time", "x", "y"))
    places = [np.flatnonzero(kinds == kind) for kind in counts]
    a, b, c = np.ix_(*places)
    equal = x[a] == x[b]
    holds = equal & (np.ptp(np.broadcast_arrays(time[a], time[b], time[c]), axis=0) <= window)
    if rest:
        holds &= (y[a] <= y[b]) & (y[a] + y[b] != 3)
    if operator == "SEQ":
        holds &= (time[a] < time[b]) & (time[b] < time[c])
    expected = [
        tuple(int(rows[at]) for rows, at in zip(places, found, strict=True))
        for found in np.argwhere(holds)
    ]
    result = evaluate(pattern, stream_of(events), TreePlan(tree), evaluator="tree")
    assert sorted(map(tuple, result.matches.to_numpy().tolist())) == sorted(expected)
    counted = evaluate(pattern, stream_of(events), TreePlan(tree), output="count", evaluator="tree")
    assert counted.metrics.matches == len(expected)


@pytest.mark.parametrize("output", ["matches", "count"])
@pytest.mark.parametrize("values", [1, 5, 400])
def test_what_has_another_value_is_not_looked_at(output: str, values: int) -> None:
    counts = {"A": FEWEST_OUTER, "B": FEWEST_INNER}
    kinds = np.repeat(list(counts), list(counts.values()))
    x = np.arange(len(kinds)) % values
    events = pd.DataFrame({"type": kinds, "time": 0, "x": x})
    pattern = parse("PATTERN AND(A a, B b) WHERE a.x = b.x WITHIN 900 units")
    metrics = evaluate(pattern, stream_of(events), TreePlan(("a", "b")), output=output).metrics
    equal = (x[: counts["A"], None] == x[None, counts["A"] :]).sum()
    assert metrics.matches == metrics.comparisons == equal


@pytest.mark.parametrize("output", ["matches", "count"])
def test_more_equal_rows_than_a_block_holds(output: str) -> None:
    counts = {"A": FEWEST_OUTER, "B": 2 * BLOCK + 7}
    kinds = np.repeat(list(counts), list(counts.values()))
    events = pd.DataFrame({"type": kinds, "time": np.arange(len(kinds)) // 100, "x": 1.0})
    pattern = parse("PATTERN AND(A a, B b) WHERE a.x = b.x WITHIN 900 units")
    result = evaluate(pattern, stream_of(events), TreePlan(("a", "b")), output=output)
    assert result.metrics.matches == counts["A"] * counts["B"] == result.metrics.comparisons
    if output == "matches":
        assert len(result.matches.drop_duplicates()) == len(result.matches)
