"""Aggregation methods of users: registered, run by the same calls, and checked against the matches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.errors import (
    EvaluationError,
    ExperimentError,
    SnapshotError,
    UnsupportedPatternError,
)
from cepbench.experiments.conformance.aggregator_checks import PATTERNS, aggregate_check_stream
from cepbench.experiments.plugins import load_plugins
from tests.engines.detection.strategies import stream_of
from tests.naive.aggregates import naive_rows

STREAM = stream_of(pd.DataFrame({"type": list("ABABB"), "time": [1, 2, 3, 4, 9], "x": 1.5}))
PATTERN = cep.parse("PATTERN SEQ(A a, B b) AGG COUNT, SUM(a.x) WITHIN 6 units")


class Borrowed:
    """The values of another method."""

    def __init__(self, task: AggregationTask) -> None:
        self._inner = cep.Aggregator(task.pattern, "two-step", emit=task.emit, scope=task.scope)

    def push(self, batch: cep.EventStream) -> list[Any]:
        return [tuple(row) for row in self._inner.take(batch)]


class Whole(Borrowed):
    """With all methods."""

    def value(self, time: int) -> list[Row]:
        return self._inner.rows_at(time)

    def metrics(self) -> AggregateMetrics:
        return AggregateMetrics(updates=7)

    def snapshot(self) -> dict[str, np.ndarray]:
        return self._inner.snapshot()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._inner = cep.Aggregator.restore(state)


@pytest.mark.parametrize("name", cep.AGGREGATORS)
def test_the_built_in_methods_pass(name: str) -> None:
    some = ["rise", "groups", "trend", "disjunction"]
    report = cep.check_aggregator(name, patterns=some, seed=3)
    assert report.passed, report.describe()
    assert list(report.table["pattern"].unique()) == some
    assert {"change/stream", "times", "batches", "snapshots"} <= set(report.table["check"])
    assert (report.table["status"] == "ok").all() == (name == "two-step")
    assert repr(report) == f"<{report.describe().splitlines()[0]}>"
    assert "<pre>" in report._repr_html_()


@pytest.mark.parametrize("name", PATTERNS)
def test_what_is_expected_is_naive(name: str) -> None:
    stream = aggregate_check_stream(0)[: 25 if "KL" in PATTERNS[name] else 50]
    text = f"PATTERN {PATTERNS[name]} WITHIN 30 units"
    pattern = cep.parse(text).with_hierarchy(stream.hierarchy)
    found = cep.aggregate(pattern, stream, "two-step", evaluator="lazy-nfa").rows
    frame = stream.to_pandas()
    expected = sorted(naive_rows(pattern, frame))
    assert [row[:3] for row in sorted(found)] == [row[:3] for row in expected]
    for row, its in zip(sorted(found), expected, strict=True):
        for one, two in zip(row.values, its.values, strict=True):
            assert one == two or one == pytest.approx(float(two))
    assert any(row.values[0] for row in found) != (name == "no match")


def test_a_method_of_ones_own_is_everywhere() -> None:
    assert cep.aggregator("mine", source="a paper")(Whole) is Whole
    result = cep.aggregate(PATTERN, STREAM, "MINE", emit="change")
    own = cep.aggregate(PATTERN, STREAM, "two-step", emit="change")
    pd.testing.assert_frame_equal(result.values, own.values)
    assert (result.method, result.metrics.updates) == ("mine", 7)
    assert cep.AGGREGATORS["mine"].source == "a paper"
    at = cep.aggregate(PATTERN, STREAM, "mine", at=[3, 7]).values
    assert at["COUNT"].tolist() == [1, 3]
    assert cep.Aggregator(PATTERN).method != "mine"
    report = cep.check_aggregator("mine", patterns=["labels", "trend"])
    assert report.passed and (report.table["status"] == "ok").all()
    assert {"times", "snapshots"} <= set(report.table["check"])


def test_a_method_has_to_declare_that_it_takes_concepts() -> None:
    """Those that compare an event's own type with an item's would give wrong values."""
    for concepts in (False, True):
        cep.aggregator("mine", concepts=concepts)(Borrowed)
        report = cep.check_aggregator("mine", patterns=["concept", "types"])
        assert report.passed == concepts
        assert set(report.table["status"]) == {"ok" if concepts else "refused"}
    cep.aggregator("mine")(Borrowed)
    for query, what in {
        "SEQ(X a) AGG COUNT": r"items of a concept \(X\)",
        "SEQ(A a) GROUP BY type(a) AGG COUNT": r"GROUP BY type\(a\)",
    }.items():
        with pytest.raises(UnsupportedPatternError, match=f"mine does not declare .*{what}"):
            cep.aggregate(f"PATTERN {query} WITHIN 3 units", aggregate_check_stream(), "mine")
    with pytest.raises(EvaluationError, match="mine: concepts"):
        cep.aggregator("mine", concepts="yes")


def test_push_suffices() -> None:
    cep.aggregator("mine")(Borrowed)
    assert cep.aggregate(PATTERN, STREAM, "mine").metrics.updates == 0
    report = cep.check_aggregator("mine", patterns=["sums"])
    assert report.passed and not {"times", "snapshots"} & set(report.table["check"])
    live = cep.Aggregator(PATTERN, "mine")
    live.push(STREAM)
    with pytest.raises(EvaluationError, match="the method mine has no value; add it to Borrowed"):
        live.value()
    with pytest.raises(EvaluationError, match="the method mine has no snapshot"):
        live.snapshot()


def test_metrics_and_snapshots_that_are_none_change_nothing() -> None:
    given: dict[str, Any] = {}
    methods = {name: lambda self, name=name: given[name] for name in ("metrics", "snapshot")}
    cep.aggregator("mine")(type("Mine", (Whole,), methods))
    live = cep.Aggregator(PATTERN, "mine")
    given["snapshot"] = None
    with pytest.raises(EvaluationError, match="the method mine failed: TypeError"):
        live.snapshot()
    for part in ([1], np.array(["2026"], "datetime64[Y]")):
        given["snapshot"] = {"its": part}
        with pytest.raises(SnapshotError, match=r"the state cannot be saved: '.*/its' is"):
            live.snapshot()
    given["metrics"] = None
    with pytest.raises(EvaluationError, match="the method mine gave None as its metrics"):
        _ = live.metrics
    assert len(live.push(STREAM))


class OneMore(Whole):
    def push(self, batch: cep.EventStream) -> list[Any]:
        return [
            row._replace(values=(row.values[0] + row.position % 2, *row.values[1:]))
            for row in self._inner.take(batch)
        ]


class Forgets(Whole):
    """Its snapshots lack what came before."""

    def restore(self, state: dict[str, np.ndarray]) -> None:
        pass


class Sparse(Whole):
    def push(self, batch: cep.EventStream) -> list[Any]:
        return self._inner.take(batch)[:-1]


class Eager(Whole):
    def push(self, batch: cep.EventStream) -> list[Any]:
        return [row for row in self._inner.take(batch) for _ in range(2)]


class Fails(Whole):
    def push(self, batch: cep.EventStream) -> list[Any]:
        raise ValueError("of this kind")


class Picky(Whole):
    def __init__(self, task: AggregationTask) -> None:
        if task.pattern.group_by:
            raise UnsupportedPatternError("no groups")
        super().__init__(task)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (OneMore, ", and it should be"),
        (Forgets, "returned a row of position"),
        (Sparse, "is missing"),
        (Eager, "should be"),
        (Fails, "the method mine failed: ValueError('of this kind')"),
    ],
)
def test_what_is_wrong_is_found(made: type, words: str) -> None:
    cep.aggregator("mine")(made)
    report = cep.check_aggregator("mine", patterns=["pair"])
    assert not report.passed
    wrong = report.table[report.table["status"] == "error"]
    assert wrong["reason"].str.contains(words, regex=False).any()
    assert "FAILED" in report.describe()
    if made is Forgets:
        assert set(wrong["check"]) == {"snapshots"}


def test_what_is_refused_is_no_failure() -> None:
    cep.aggregator("mine")(Picky)
    report = cep.check_aggregator("mine", patterns=["groups", "pair"])
    assert report.passed and "no groups" in report.describe()
    assert not cep.check_aggregator("mine", patterns=["groups"]).passed


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (None, "returned None; it has to return a list of rows"),
        ([(0, 1, (1,))], "it has to return a list of rows"),
        ([("x", 1, (), (1, 1.0))], "it has to return a list of rows"),
        ([(0, 1, (), (1,))], "0 keys and 1 values; the pattern has 0 keys and 2 aggregates"),
        ([(0, 1, ("k",), (1, 1.0))], "1 keys and 2 values"),
        ([(0.5, 1, (), (1, 1.0))], "it has to return a list of rows"),
        ([(np.inf, 1, (), (1, 1.0))], "it has to return a list of rows"),
        ([(0, 1, (), (-1, 1.0))], "returned -1 for COUNT; a value is an int of at least 0"),
        ([(0, 7, (), (1, 1.0))], "a row of position 0 at 7, and this event is at 1"),
        (
            [(1, 2, (), (1, 1.0)), (0, 1, (), (1, 1.0))],
            "a row of position 0 after 1; return rows in the order",
        ),
        ([(0, 1, (), (1.5, 1.0))], "returned 1.5 for COUNT; a value is an int"),
        ([(0, 1, (), (1, "2"))], "returned '2' for SUM(a.x)"),
        ([(5, 1, (), (1, 2.0))], "a row of position 5, and the batch has 0 to 4"),
    ],
)
def test_what_are_no_rows(rows: Any, words: str) -> None:
    cep.aggregator("mine")(type("Mine", (Borrowed,), {"push": lambda self, batch: rows}))
    with pytest.raises(EvaluationError) as refused:
        cep.aggregate(PATTERN, STREAM, "mine")
    assert words in str(refused.value)


def test_numbers_of_numpy_and_missing_values() -> None:
    rows = [(np.int64(1), np.int64(2), (), (np.int32(3), np.nan)), (1, 2, (), (4, np.float64(2)))]
    cep.aggregator("mine")(type("Mine", (Borrowed,), {"push": lambda self, batch: rows}))
    found = cep.aggregate(PATTERN, STREAM, "mine")
    assert found.rows == [Row(1, 2, (), (3, None)), Row(1, 2, (), (4, 2.0))]


def test_what_cannot_be_registered() -> None:
    with pytest.raises(EvaluationError, match="needs a name"):
        cep.aggregator("")
    with pytest.raises(EvaluationError, match="a class with a method push, not"):
        cep.aggregator("mine")(len)  # type: ignore[type-var]
    with pytest.raises(EvaluationError, match="a-seq is the name of a built-in"):
        cep.aggregator("A_Seq")(Whole)
    with pytest.raises(EvaluationError, match="did you mean 'two-step'"):
        cep.check_aggregator("two-stop")
    with pytest.raises(ExperimentError, match="each of patterns is one of"):
        cep.check_aggregator("two-step", patterns=["pears"])


def test_plugins(tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import cepbench\n@cepbench.aggregator('mine')\nclass Mine:\n    def push(self, batch): ...\n"
    )
    load_plugins(plugin)
    assert not cep.AGGREGATORS["mine"].is_builtin


@pytest.mark.parametrize(
    ("found", "expected", "words"),
    [
        ([1, 2], [1, 2], None),
        ([1, 3], [1, 2], "position = 2, SUM(a.x) = 3, and it should be position = 2, SUM(a.x) = 2"),
        ([1], [1, 2], "position = 2, SUM(a.x) = 2 is missing"),
        ([1, 2], [1], "position = 2, SUM(a.x) = 2 is one value too many"),
        ([1.0, None], [1.0, None], None),
        ([1.0, None], [1.0, 2.0], "SUM(a.x) = nan, and it should be"),
        ([1e10, 1e-1], [1e10, 1e-1 + 1e-3], None),
        ([1.0], [1.0 + 1e-6], "and it should be"),
        ([np.inf, -np.inf], [np.inf, -np.inf], None),
        ([10**30], [10**30], None),
        ([10**30], [10**30 + 1], "and it should be"),
    ],
)
def test_differences(found: list, expected: list, words: str | None) -> None:
    pattern = cep.parse("PATTERN SEQ(A a) AGG SUM(a.x) WITHIN 6 units")
    one, two = (
        pd.DataFrame({"position": range(1, len(its) + 1), "SUM(a.x)": its})
        for its in (found, expected)
    )
    said = difference(one, two, pattern)
    assert said is words if words is None else words in str(said)
