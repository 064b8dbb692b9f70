"""What users hand in, brought to one type or refused by name."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepbench as cep
from cepbench import arguments
from cepbench.engines.joins.kernels import advance
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PatternError,
    PlanError,
    PlanGeneratorError,
    StatisticsError,
    StreamError,
    did_you_mean,
)
from cepbench.planning.planners.budget import UNLIMITED, Budget

TEXT = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 units"
FRAME = pd.DataFrame({"kind": list("ABBA") * 5, "at": range(20), "x": np.linspace(0, 1, 20)})
STREAM = cep.EventStream.from_pandas(FRAME, type="kind", time="at")
PATTERN = cep.parse(TEXT)
PLAN = cep.OrderPlan(["a", "b"])
STATISTICS = cep.Statistics(rates={"a": 1, "b": 2})


@pytest.mark.parametrize(
    "given",
    [1000, 1000.0, np.int16(1000), np.uint64(1000), np.float32(1000), Fraction(1000),
     Decimal("1e3"), np.int64(1000)],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_whole_numbers_of_all_types_become_one(given: Any) -> None:
    found = arguments.whole(given, "rows", StreamError, least=1)
    assert type(found) is int
    assert found == 1000
    assert type(arguments.number(given, "rows", StreamError)) is float
    assert cep.plan(PATTERN, STATISTICS, "II-RANDOM", seed=given).seed == 1000
    detector = cep.Detector(PATTERN, PLAN, partial_match_limit=given)
    assert type(detector.partial_match_limit) is int


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("10", "must be a whole number, not '10'"),
        (True, "must be a whole number, not True"),
        (np.bool_(True), "must be a whole number"),
        (None, "must be a whole number, not None"),
        (1.5, "must be a whole number, not 1.5"),
        (math.nan, "must be a whole number, not nan"),
        (math.inf, "must be a whole number, not inf"),
        (Fraction(10**400, 3), "must be a whole number"),
        (1j, "must be a whole number, not a complex"),
        (np.timedelta64(5, "s"), "must be a whole number, not "),
        (np.timedelta64(5, "ns"), "must be a whole number, not "),
        (Decimal("sNaN"), "must be a whole number, not Decimal('sNaN')"),
        (np.arange(2), "must be a whole number, not a ndarray"),
        (0, "must be at least 1, not 0"),
        (-1, "must be at least 1, not -1"),
        (10**30, "must be at most 9,223,372,036,854,775,807, not a number of 100 bits"),
        (10**9999, "not a number of 33216 bits"),
        (1e300, "must be at most"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_whole_number(given: Any, message: str) -> None:
    calls: list[Any] = [
        lambda: arguments.whole(given, "rows", EvaluationError, least=1),
        lambda: cep.Detector(PATTERN, PLAN, partial_match_limit=given),
        lambda: cep.evaluate(PATTERN, STREAM, PLAN, partial_match_limit=given),
        lambda: cep.match_batches(PATTERN, STREAM, PLAN, rows=given),
        lambda: cep.explain(PATTERN, PLAN, STATISTICS, STREAM, partial_match_limit=given),
    ]
    for call in calls:
        with pytest.raises(EvaluationError) as caught:
            call()
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("3", "must be a number, not '3'"),
        (True, "must be a number, not True"),
        (pd.NA, "must be a number"),
        (np.timedelta64(5, "ns"), "must be a number, not "),
        (Decimal("sNaN"), "must be finite and fit a float"),
        (math.nan, "must be finite and fit a float, not nan"),
        (-math.inf, "must be finite and fit a float, not -inf"),
        (10**400, "must be finite and fit a float, not a number of 1329 bits"),
        (-1, "must be at least 0, not -1"),
        (9, "must be at most 5, not 9"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_number(given: Any, message: str) -> None:
    with pytest.raises(StatisticsError) as caught:
        arguments.number(given, "rate", StatisticsError, least=0.0, most=5.0)
    assert str(caught.value) == f"rate {message}" or message in str(caught.value)


def test_no_type_of_a_number_compiles_the_kernels_again() -> None:
    """A float as limit took half a minute, for Numba made all of the engine's kernels anew."""

    def compilations() -> int:
        kernels = vars(advance).values()
        return sum(len(kernel.signatures) for kernel in kernels if hasattr(kernel, "signatures"))

    cep.evaluate(PATTERN, STREAM, PLAN, partial_match_limit=1000)
    compiled = compilations()
    assert compiled
    for limit in (1e3, np.float32(1000), np.int16(1000), np.uint64(1000), Decimal(1000)):
        found = cep.evaluate(PATTERN, STREAM, PLAN, partial_match_limit=limit)
        assert found.metrics.matches
        assert compilations() == compiled


def test_budgets_of_any_size() -> None:
    assert Budget(steps=10**30).most_steps == UNLIMITED
    assert Budget(steps=np.float64(5)).most_steps == 5
    assert Budget(seconds=Fraction(1, 2)).seconds == 0.5
    for wrong in ({"seconds": 10**400}, {"seconds": True}, {"steps": 1.5}, {"steps": "9"}):
        with pytest.raises(PlanGeneratorError, match="a budget"):
            Budget(**wrong)


def test_a_text_is_taken_where_a_pattern_is_due() -> None:
    result = cep.evaluate(TEXT, STREAM, PLAN)
    assert result.pattern == PATTERN
    pd.testing.assert_frame_equal(result.matches, cep.evaluate(PATTERN, STREAM, PLAN).matches)
    assert cep.plan(TEXT, STATISTICS) == cep.plan(PATTERN, STATISTICS)
    assert cep.measure_statistics(TEXT, STREAM) == cep.measure_statistics(PATTERN, STREAM)
    assert cep.to_sql(TEXT) == cep.to_sql(PATTERN)
    assert cep.explain(TEXT, PLAN, STATISTICS).describe()
    assert cep.Detector(TEXT, PLAN).pattern == PATTERN
    assert cep.predicate_graph(TEXT).pattern == PATTERN
    assert cep.OutputProfiler(TEXT).pattern == PATTERN
    compared = cep.compare(TEXT, STREAM, generators=["GREEDY"], repetitions=1, seconds=0)
    assert compared["matches"].tolist() == [result.metrics.matches]
    with pytest.raises(PatternError, match="line 1, column"):
        cep.evaluate("SEQ(A a) WITHIN", STREAM, PLAN)


#: A mistake, the error that it is, and what the message must say.
MISTAKES: dict[str, tuple[Any, type[CepbenchError], str]] = {
    "a frame as stream": (
        lambda: cep.evaluate(PATTERN, FRAME, PLAN), StreamError,
        r'stream must be an EventStream, not a DataFrame; .*cep\.EventStream\.from_pandas\(frame, '
        r'type="…", time="…"\).*it has kind, at, x',
    ),
    "an Arrow table as stream": (
        lambda: cep.compare(TEXT, pa.Table.from_pandas(FRAME)), StreamError,
        r'cep\.EventStream\.from_arrow\(table, type="…", time="…"\)',
    ),
    "a path as stream": (
        lambda: cep.measure_statistics(PATTERN, Path("bars.parquet")), StreamError,
        r"from_parquet\('bars\.parquet', type=",
    ),
    "a data set as stream": (
        lambda: cep.compare(TEXT, cep.open_dataset("nasdaq-style/sample")), StreamError,
        r"dataset\.stream\(\)",
    ),
    "pattern and stream exchanged": (
        lambda: cep.evaluate(STREAM, PATTERN, PLAN), PatternError,
        "pattern must be a Pattern or its text, not an EventStream.*order of the arguments",
    ),
    "a list as plan": (
        lambda: cep.evaluate(PATTERN, STREAM, ["a", "b"]), PlanError,
        r"not a list; write cep\.OrderPlan\(\['a', 'b'\]\)",
    ),
    "a list of plans as plan": (
        lambda: cep.evaluate(PATTERN, STREAM, [PLAN]), PlanError, r"cep\.UnionPlan\(\[",
    ),
    "nested pairs as plan": (
        lambda: cep.evaluate(PATTERN, STREAM, (("a", "b"), "c")), PlanError, "cep.TreePlan",
    ),
    "a generator's name as plan": (
        lambda: cep.evaluate(PATTERN, STREAM, "GREEDY"), PlanError,
        r"cep\.plan\(pattern, statistics, 'GREEDY'\)",
    ),
    "no plan": (
        lambda: cep.Detector(PATTERN, None), PlanError, r"cep\.plan\(pattern, statistics\)",
    ),
    "a stream as statistics": (
        lambda: cep.plan(PATTERN, STREAM), StatisticsError,
        r"cep\.measure_statistics\(pattern, stream\)",
    ),
    "a mapping as statistics": (
        lambda: cep.explain(PATTERN, PLAN, {"a": 1}), StatisticsError, r"cep\.Statistics\(rates=",
    ),
    "one generator instead of a list": (
        lambda: cep.compare(PATTERN, STREAM, generators="GREEDY"), PlanGeneratorError,
        r'generators must be a list such as \["GREEDY", "DP-LD"\], not \'GREEDY\'',
    ),
    "a switch that is a text": (
        lambda: cep.evaluate(PATTERN, STREAM, PLAN, latency="yes"), EvaluationError,
        "latency is True or False, not 'yes'",
    ),
    "an output that there is not": (
        lambda: cep.evaluate(PATTERN, STREAM, PLAN, output="counts"), EvaluationError,
        "one of matches, arrow, count, compressed, not 'counts'; did you mean 'count'",
    ),
    "positions of another stream": (
        lambda: cep.match_timeline(STREAM[:5], cep.evaluate(TEXT, STREAM, PLAN), PATTERN),
        EvaluationError, "positions beyond the stream's 5 events",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_beginners_mistake_is_answered_with_what_to_write(mistake: str) -> None:
    make, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        make()


def test_values_are_quoted_in_a_line_at_most() -> None:
    for long in (
        "x" * 10**6,
        list(range(10**6)),
        {n: n for n in range(10**4)},
        10**5000,
        "\n" * 999,
    ):
        assert len(arguments.shown(long)) < 200
        assert "\n" not in arguments.shown(long)
    assert arguments.shown("GREEDY") == "'GREEDY'"


def test_the_nearest_name() -> None:
    assert did_you_mean("prise", ["price", "volume"]) == "; did you mean 'price'?"
    for far in ("zzz", None, 3, "x" * 10**6):
        assert did_you_mean(far, ["price", "volume"]) == ""


@pytest.mark.parametrize("name", ["\ud800", "line\nbreak", " ", "", None, 3])
def test_names_that_cannot_be_shown_are_refused(name: Any) -> None:
    """Charts and pages of a generator called by half a surrogate pair ended in raw errors."""
    with pytest.raises(PlanGeneratorError, match="needs a name"):
        cep.plan_generator(name, kind="order")
    with pytest.raises(EvaluationError, match="needs a name"):
        cep.plan_evaluator(name)
