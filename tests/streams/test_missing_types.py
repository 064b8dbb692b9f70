"""A type without events binds nothing, everywhere, and is reported once a call."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import MissingTypeWarning, StreamError

FRAME = pd.DataFrame({"type": list("ABAB"), "ts": [1, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0]})
STREAM = cep.EventStream.from_pandas(FRAME, type="type", time="ts")
GUARDED = "PATTERN SEQ(A a, B b, NOT(C c)) WITHIN 9 units"
LACKING = "PATTERN SEQ(A a, C c) WITHIN 9 units"
PLAN = cep.OrderPlan(["a", "b"])
RATES = cep.Statistics(rates={"a": 1, "b": 1, "c": 0})
WORKLOAD = cep.Workload({"q": GUARDED, "r": LACKING})
COUNTED = "PATTERN SEQ(A a, C c) AGG COUNT WITHIN 9 units"

CALLS: dict[str, Callable[..., Any]] = {
    "evaluate": lambda **given: cep.evaluate(GUARDED, STREAM, PLAN, **given),
    "sase": lambda **given: cep.evaluate(LACKING, STREAM, evaluator="sase", **given),
    "a workload": lambda **given: cep.evaluate(WORKLOAD, STREAM, **given),
    "match_batches": lambda **given: list(cep.match_batches(GUARDED, STREAM, PLAN, **given)),
    "measure_statistics": lambda **given: cep.measure_statistics(GUARDED, STREAM, **given),
    "of a workload": lambda **given: cep.measure_statistics(WORKLOAD, STREAM, **given),
    "aggregate": lambda **given: cep.aggregate(COUNTED, STREAM, **given),
    "explain": lambda **given: cep.explain(GUARDED, PLAN, RATES, STREAM, **given),
    "adapt": lambda **given: cep.adapt(GUARDED, STREAM, **given),
    "trace": lambda **given: cep.trace(GUARDED, STREAM, **given),
    "compare": lambda **given: cep.compare(
        GUARDED, STREAM, generators=["GREEDY", "TRIVIAL"], seconds=0, repetitions=1, **given
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_one_warning_a_call(call: str) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        CALLS[call]()
    (one,) = found
    assert one.category is MissingTypeWarning and one.filename == __file__
    said = str(one.message)
    assert "no event of type 'C' (variable 'c'; the nearest is 'B')" in said
    assert "whose types are A, B" in said


@pytest.mark.parametrize("call", CALLS)
def test_an_error_if_asked(call: str) -> None:
    with pytest.raises(StreamError, match="no event of type 'C'"):
        CALLS[call](missing_types="error")
    with pytest.raises(StreamError, match=r"missing_types is one of warn, error.*did you mean"):
        CALLS[call](missing_types="eror")


def found(call: Callable[[], Any]) -> Any:
    with pytest.warns(MissingTypeWarning):
        return call()


def test_what_is_found() -> None:
    one = found(lambda: cep.evaluate(GUARDED, STREAM, PLAN))
    assert one.matches.to_numpy().tolist() == [[0, 1], [0, 3], [2, 3]]
    several = found(lambda: cep.evaluate(WORKLOAD, STREAM))
    assert {name: its.metrics.matches for name, its in several.items()} == {"q": 3, "r": 0}
    assert found(lambda: cep.aggregate(COUNTED, STREAM)).values.empty
    kleene = "PATTERN OR(SEQ(A a, KL(C c)), SEQ(A a, B b)) WITHIN 9 units"
    assert found(lambda: cep.evaluate(kleene, STREAM, evaluator="sase")).metrics.matches == 3
    statistics = found(lambda: cep.measure_statistics(GUARDED, STREAM))
    assert statistics.rates["c"] == 0.0 < statistics.rates["a"]


def test_live_it_is_no_matter_what_a_batch_lacks() -> None:
    detector = cep.Detector(GUARDED, PLAN)
    assert not len(detector.push(STREAM[:2])) and not len(detector.push(STREAM[2:]))
    assert len(detector.flush()) == 3


def test_the_nearest_name_is_suggested() -> None:
    frame = FRAME.assign(type=["MSFT", "GOOG"] * 2)
    stream = cep.EventStream.from_pandas(frame, type="type", time="ts")
    with pytest.warns(MissingTypeWarning, match=r"'MSTF' \(variable 'a'; did you mean 'MSFT'\?\)"):
        cep.evaluate("PATTERN SEQ(MSTF a, GOOG b) WITHIN 9 units", stream, PLAN)


def test_under_a_hierarchy_names_are_declared() -> None:
    stream = STREAM.with_hierarchy(cep.ConceptHierarchy({"T": ["A", "B", "D"]}))
    with pytest.raises(StreamError, match="no event of type 'C'"):
        cep.evaluate(GUARDED, stream, PLAN)
    assert cep.evaluate(GUARDED.replace("C c", "D c"), stream, PLAN).metrics.matches == 3


@pytest.mark.parametrize(
    "strategy", ["any", "consuming", "strict_contiguity", "partition_contiguity(x)"]
)
def test_plans_of_empty_streams_and_of_missing_types(strategy: str) -> None:
    pattern = f"PATTERN SEQ(A a, C c, B b) WHERE a.x < b.x STRATEGY {strategy} WITHIN 9 units"
    empty = cep.measure_statistics(pattern, STREAM[:0])
    assert dict(empty.rates or {}) == {"a": 0.0, "c": 0.0, "b": 0.0}
    with pytest.warns(MissingTypeWarning):
        missing = cep.measure_statistics(pattern, STREAM)
    for generator in ("DP-LD", "DP-B", "GREEDY", "ZSTREAM"):
        for statistics in (empty, missing):
            plan = cep.plan(pattern, statistics, generator)
            assert (
                sorted(plan.text) and cep.evaluate(pattern, STREAM[:0], plan).metrics.matches == 0
            )


@pytest.mark.parametrize(
    "pattern", [GUARDED, LACKING, GUARDED.replace("WITHIN", "STRATEGY next WITHIN")]
)
def test_empty_streams_are_silent(pattern: str) -> None:
    assert cep.evaluate(pattern, STREAM[:0], evaluator="sase").metrics.matches == 0
    assert cep.aggregate(COUNTED, STREAM[:0]).values.empty


def test_types_that_are_integers_in_a_file(tmp_path: Path) -> None:
    """A name that is no integer is a type without events."""
    FRAME.assign(type=[1, -2, 1, -2]).to_parquet(tmp_path / "events.parquet")
    read = cep.EventStream.from_parquet(
        tmp_path / "events.parquet", type="type", types=["1", "-2", "3", "X", "1.0", "²"]
    )
    assert read.counts_by_type() == {"1": 2, "-2": 2, "3": 0, "X": 0, "1.0": 0, "²": 0}


@pytest.mark.parametrize("name", ["007", "-0", "300", "9" * 20, "٧"])
def test_names_that_no_integer_of_a_file_is_written_as(tmp_path: Path, name: str) -> None:
    types = pd.Series([7, 0, 7, 0], dtype="int8")
    FRAME.assign(type=types).to_parquet(tmp_path / "events.parquet")
    stream = cep.EventStream.from_parquet(tmp_path / "events.parquet", type="type", types=[name])
    assert len(stream) == 0
    both = cep.EventStream.from_parquet(tmp_path / "events.parquet", type="type", types=[name, "7"])
    assert both.counts_by_type()["7"] == len(both) == 2
