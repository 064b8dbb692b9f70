"""RETURN of values, from V or along the graph: the rows are those of the naive twin and of lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.runs.result import Result
from cepbench.errors import EvaluationError, PartialMatchLimitError
from cepbench.patterns.parse import parse
from tests.budgets import INTERPRETED
from tests.engines.detection.returns import plain
from tests.engines.detection.strategies import Case, events_of, stream_of
from tests.naive.automaton import automaton_matches
from tests.naive.returns import returned_row

ABC = "SEQ(A a, KL(B b), C c)"
LEAST = f"{ABC} WHERE b[i].x >= min(b[..i-1].x)"
SUMS = f"{ABC} WHERE c.x < sum(b.x) AND c.x <= count(b.x) "

#: Pattern, columns, and whether V has them.
RETURNED = [
    (ABC, "c, c.x, c.n, c.m + 1 AS more, c.s", True),
    (ABC, "a.x, c.x", False),
    (ABC, "count(b.x) AS n", False),
    (f"{ABC} WHERE [s]", "a.s, b[1].s AS first, b[last].s AS last, c.n", True),
    (f"{ABC} WHERE [s]", "a.n, c.s", False),
    (f"{ABC} WHERE [m] AND c.x > a.x", "a.m - c.x AS less, b[1].m AS b", True),
    (LEAST, "min(b.x) AS least, c", True),
    (LEAST, "max(b.x) AS most", False),
    (SUMS, "sum(b.x) AS total, avg(b.x) AS mean, count(b.n) AS n, c.s", True),
    (SUMS, "sum(b.m) AS total", False),
    ("SEQ(KL(A a), NOT(B n), C c)", "c.n", True),
    ("SEQ(KL(A a), NOT(B n), C c) WHERE n.x < sum(a.x) AND c.x > sum(a.x)", "sum(a.x), c", True),
    ("SEQ(KL(A a), NOT(B n), C c) WHERE n.x < sum(a.x)", "max(a.x), c", False),
    ("SEQ(A a, KL(B b)) WHERE b[i].x > max(b[..i-1].x)", "max(b.x) AS most, b[last].n AS n", True),
    ("SEQ(A a, KL(B b)) WHERE b[i].x > max(b[..i-1].x)", "max(b.x) AS most, b[1].n AS n", False),
    ("SEQ(KL(A a), KL(B b), A c) WHERE b[i].x >= avg(a.x)", "avg(a.x) AS mean, c", True),
    ("SEQ(KL(A a), B b, C c) WHERE b.x >= avg(a.x)", "avg(a.x) AS mean, c", False),
    ("SEQ(A a, KL(A b), A c) WHERE a.x <= max(b.x) AND c.m > 1", "c.s, max(b.x) AS x, c.x", True),
    ("SEQ(A a)", "a, a.x, a.s", True),
    ("KL(A a)", "a[last].s AS s", True),
]
ENDS = ("", "STRATEGY next", "STRATEGY strict_contiguity", "STRATEGY partition_contiguity(s)")


def case_of(rng: np.random.Generator, text: str) -> Case:
    """A stream in which many events have the same time, with all kinds of attributes."""
    size = rng.integers(9, 14)
    columns = {
        "time": np.cumsum(rng.integers(3, size=size) > 0),
        "type": pd.Categorical(rng.choice(list("AABBC"), size), list("ABC")),
        "x": rng.choice([1, 1.5, 2, 2, np.nan], size),
        "m": rng.choice([1, 1, 1, 2], size),
        # Not all of them are floats of 64 bits.
        "n": 2**53 + rng.choice([1, 1, 1, 2], size),
        "s": pd.Categorical(rng.choice(["p", "p", "q", None], size), ["p", "q"]),
    }
    return Case(parse(text), pd.DataFrame(columns))


@pytest.mark.kernel
@pytest.mark.parametrize(("text", "columns", "in_vector"), RETURNED)
def test_the_rows_are_those_of_the_twin(text: str, columns: str, in_vector: bool, seeds) -> None:
    found = 0
    for seed in seeds(12):
        rng = np.random.default_rng(seed)
        pattern = (
            f"PATTERN {text} {ENDS[seed % len(ENDS)]} WITHIN {rng.choice([4, 9])} units "
            f"RETURN {columns}"
        )
        case = case_of(rng, pattern)
        events = int(rng.choice([3, 1000]))
        rows = case.events.to_dict("records")
        expected = [
            tuple(map(plain, returned_row(case.pattern, match, rows)))
            for _, match in automaton_matches(case.pattern, case.events)
        ]
        found += len(expected)
        with pieces_of(events=events):
            result = evaluate(case.pattern, case.stream, evaluator="sase", output="arrow")
            _check_result(result, case, expected)
            _check_in_batches(case, expected, rng)
        # Matches are filtered by a NOT there.
        filtered = "NOT" in text and case.pattern.strategy.name == "partition_contiguity"
        assert (result.values is not None) == (in_vector and not filtered)
    assert found > 0 or INTERPRETED  # by so few seeds


def _check_result(result: Result, case: Case, expected: list[Any]) -> None:
    listed = evaluate(case.pattern, case.stream, evaluator="sase")
    assert result.arrow.schema == listed.arrow.schema
    assert result.metrics.matches == len(expected)
    assert _sorted(result.arrow.to_pylist()) == sorted(expected, key=repr)
    assert _sorted(listed.arrow.to_pylist()) == sorted(expected, key=repr)
    pd.testing.assert_series_equal(result.matches.dtypes, listed.matches.dtypes)
    assert _sorted(result.matches.to_dict("records")) == sorted(expected, key=repr)
    ends = [its.as_stream("D").timestamps.tolist() for its in (result, listed)]
    assert ends[0] == ends[1]


def _check_in_batches(case: Case, expected: list[Any], rng: np.random.Generator) -> None:
    cuts = sorted(rng.integers(len(case.stream) + 1, size=rng.integers(6)).tolist())
    for output in ("matches", "arrow"):
        detector = Detector(case.pattern, evaluator="sase", output=output)
        found: list[Any] = []
        for i, j in pairwise([0, *cuts, len(case.stream)]):
            found += _records(detector.push(case.stream[i:j]))
            if rng.integers(2):
                detector = Detector.restore(detector.snapshot())
        found += _records(detector.flush())
        assert _sorted(found) == sorted(expected, key=repr)


def _records(table: Any) -> list[dict[str, Any]]:
    its = table.to_dict("records") if isinstance(table, pd.DataFrame) else table.to_pylist()
    return list(its)


def _sorted(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted((tuple(map(plain, row.values())) for row in rows), key=repr)


def test_positions_are_shown_in_the_whole_stream() -> None:
    events = stream_of(events_of("A@1 B@2 A@3 B@4"))
    result = evaluate(
        "PATTERN SEQ(A a, B b) WITHIN 9 units RETURN b",
        events[2:],
        evaluator="sase",
        output="arrow",
    )
    assert result.values is not None
    assert result.in_whole_stream(events[2:]).arrow.to_pydict() == {"b": [3]}
    with pytest.raises(
        EvaluationError, match='not their positions; evaluate with output="matches"'
    ):
        _ = result.positions


@pytest.mark.parametrize("columns", ["c", "count(b.s) AS n"], ids=["V", "graph"])
def test_sets_that_could_not_be_listed_are_refused(columns: str) -> None:
    events = stream_of(pd.DataFrame({"type": ["A", *"B" * 90, "C"], "time": range(92), "s": "p"}))
    pattern = f"PATTERN {ABC} WITHIN 99 units RETURN {columns}"
    with pytest.raises(PartialMatchLimitError, match="matches end with one event"):
        evaluate(pattern, events, evaluator="sase", output="arrow")


def test_values_of_many_matches_are_written_in_rounds() -> None:
    """More than there is room for at once, many of one run."""
    number = np.arange(20_000)
    events = pd.DataFrame({"type": list("AABAB") * 4_000, "time": number, "x": number % 97})
    pattern = "PATTERN SEQ(KL(A a), B b) STRATEGY next WITHIN 20 units RETURN b.x, b"
    result = evaluate(pattern, stream_of(events), evaluator="sase", output="arrow")
    listed = evaluate(pattern, stream_of(events), evaluator="sase")
    assert result.values is not None
    assert len(listed.arrow) > 1 << 15
    assert result.arrow.equals(listed.arrow)
