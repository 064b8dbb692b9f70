"""The shortest programs: a call without a plan, and a frame as it is, do what the explicit calls do."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepbench as cep
from cepbench.engines.detection.planned import generator_for
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    MissingTypeWarning,
    PlanningRefusedError,
    StreamError,
)
from cepbench.planning.costs.models import cost_from
from cepbench.planning.planners.registry import DEFAULT_GENERATORS, default_generator

FRAME = pd.DataFrame(
    {"kind": list("ABCABBCA") * 5, "at": range(40), "x": [3, 1, 4, 1, 5, 9, 2, 6] * 5}
)
STREAM = cep.EventStream.from_pandas(FRAME, type="kind", time="at")
TEXT = "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 9 units"
COUNTED = "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 9 units"
WORKLOAD = cep.Workload({"q": TEXT, "r": "PATTERN SEQ(B b, C c) WITHIN 9 units"})
VALUES = cep.Workload({"q": COUNTED})
STATISTICS = cep.measure_statistics(TEXT, STREAM)
COLUMNS = {"type": "kind", "time": "at"}


def frames_of(frame: pd.DataFrame) -> dict[str, Any]:
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "an Arrow table": pa.Table.from_pandas(frame),
        "a RecordBatch": pa.RecordBatch.from_pandas(frame),
    }


FRAMES = frames_of(FRAME)

#: As Spark has them: it would be collected.
OF_SPARK = type(
    "DataFrame", (), {"__module__": "pyspark.sql", "__arrow_c_stream__": lambda _: FRAME}
)()

#: Verb and kind of query → the call on a stream, and what to compare of its result.
VERBS = {
    "evaluate": lambda stream, **how: cep.evaluate(TEXT, stream, **how).matches,
    "evaluate a workload": lambda stream, **how: cep.evaluate(WORKLOAD, stream, **how)["r"].matches,
    "aggregate": lambda stream, **how: cep.aggregate(COUNTED, stream, **how).values,
    "aggregate a workload": lambda stream, **how: cep.aggregate(VALUES, stream, **how).values,
    "adapt": lambda stream, **how: cep.adapt(TEXT, stream, batch_size=8, **how).matches,
    "adapt a workload": lambda stream, **how: cep.adapt(
        WORKLOAD, stream, batch_size=8, **how
    )["r"].matches,
    "compare": lambda stream, **how: cep.compare(
        TEXT, stream, generators=["DP-B"], repetitions=1, seconds=0, **how
    )[["plan", "cost", "matches"]],
    "compare a workload": lambda stream, **how: cep.compare(
        WORKLOAD, stream, planners=["NAIVE"], repetitions=1, seconds=0, **how
    )[["planner", "plan", "matches"]],
    "compare methods": lambda stream, **how: cep.compare(
        COUNTED, stream, repetitions=1, seconds=0, **how
    )[["method", "updates"]],
    "explain": lambda stream, **how: cep.explain(
        TEXT, cep.plan(TEXT, STATISTICS), STATISTICS, stream, **how
    ).nodes.filter(regex="^(node|created|expected)"),
    "explain a workload": lambda stream, **how: cep.explain(
        WORKLOAD, stream=stream, **how
    ).steps[["query", "results", "estimated"]],
    "match_batches": lambda stream, **how: pa.concat_tables(
        cep.match_batches(TEXT, stream, **how)
    ).to_pandas(),
    "trace": lambda stream, **how: cep.trace(TEXT, stream, **how).matches,
    "measure_statistics": lambda stream, **how: pd.DataFrame(
        cep.measure_statistics(TEXT, stream, **how).rows()
    ),
    "measure_statistics of a workload": lambda stream, **how: pd.DataFrame(
        cep.measure_statistics(WORKLOAD, stream, **how)["r"].rows()
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_a_frame_is_taken_as_the_stream_that_is_made_of_it(verb: str) -> None:
    expected = VERBS[verb](STREAM)
    assert len(expected)
    for frame in FRAMES.values():
        pd.testing.assert_frame_equal(VERBS[verb](frame, **COLUMNS), expected)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("given", "how", "message"),
    [
        (FRAME, {}, r'not a DataFrame; name its .*type="…" .*\.from_pandas.*it has kind, at, x$'),
        (
            FRAMES["polars"],
            {},
            r'name its columns .* by type="…" and time="…", or .*from_arrow\(frame',
        ),
        (
            FRAME,
            {"type": "kind"},
            r'time="…" is missing, .*event times; the DataFrame has kind, at, x',
        ),
        (
            FRAMES["an Arrow table"],
            {"time": "at"},
            r'type="…" is missing, .*the Table has kind, at, x',
        ),
        (FRAME, {"type": "kindd", "time": "at"}, "no column 'kindd'.*did you mean 'kind'"),
        (FRAMES["polars"], {"type": "kind", "time": "a"}, "no column 'a'; there are kind, at, x"),
        (FRAME, {"type": "kind", "time": 3}, "time must be a text"),
        (FRAME[::-1], COLUMNS, "row 1: .*make the EventStream with sort=True"),
        (STREAM, COLUMNS, "an EventStream has them already, leave them out"),
        (STREAM, {"time": "at"}, "an EventStream has them already"),
        (pl.from_pandas(FRAME).lazy(), COLUMNS, r"call collect\(\) first"),
        (FRAMES["polars"]["kind"], COLUMNS, "^a Series cannot be read"),
        (OF_SPARK, COLUMNS, r"cep\.spark\.detect\(df, pattern"),
        (
            FRAMES["polars"].with_columns(pl.col("at").cast(pl.String)),
            COLUMNS,
            r"use datetimes or integers: frame.with_columns\(polars.col\('at'\)",
        ),
        ("events.csv", COLUMNS, r"EventStream.from_csv\("),
        (None, COLUMNS, "stream must be an EventStream, not None"),
    ],
)
def test_what_is_no_stream_is_an_error_that_says_how(verb, given, how, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        VERBS[verb](given, **how)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "PATTERN SEQ(A a, KL(B b), C c) WITHIN 4 units",
        "PATTERN SEQ(A a, NOT(B n), C c) WITHIN 4 units",
        "PATTERN OR(SEQ(A a, B b), AND(C c, B d)) WITHIN 4 units",
        "PATTERN SEQ(A a, B b) STRATEGY strict_contiguity WITHIN 4 units",
        "PATTERN SEQ(A a, B b) STRATEGY consuming WITHIN 4 units",
    ],
)
@pytest.mark.parametrize("events", [40, 7, 1, 0])
def test_without_a_plan_that_of_the_default_generator_runs(text: str, events: int) -> None:
    stream = STREAM[:events]
    found = cep.evaluate(text, stream)
    plan = cep.plan(text, cep.measure_statistics(text, stream))
    explicit = cep.evaluate(text, stream, plan)
    assert (found.plan, found.evaluator) == (explicit.plan, explicit.evaluator)
    assert found.plan.generator == "DP-B" and "DP-B" in found.describe()
    pd.testing.assert_frame_equal(found.matches, explicit.matches)


@pytest.mark.parametrize("strategy", ["", "STRATEGY consuming ", "STRATEGY strict_contiguity "])
def test_a_window_without_length_has_a_plan_although_it_has_no_rates(strategy: str) -> None:
    text = f"PATTERN AND(A a, B b) {strategy}WITHIN 0 units"
    together = cep.EventStream.from_pandas(FRAME.assign(at=FRAME["at"] // 2), **COLUMNS)
    found = cep.evaluate(text, together)
    assert found.plan.generator == "DP-B"
    assert (
        found.metrics.matches
        == cep.evaluate(text, together, cep.OrderPlan(["b", "a"])).metrics.matches
        > 0
    )
    assert not len(cep.evaluate(text, STREAM[:0]).matches)


@pytest.mark.parametrize("evaluator", ["tree", "zstream", "lazy-nfa", "lazy-nfa-instances"])
def test_an_evaluator_without_a_plan_gets_one_that_it_runs(evaluator: str) -> None:
    found = cep.evaluate(TEXT, STREAM, evaluator=evaluator)
    assert found.evaluator == evaluator
    assert found.plan.generator == ("DP-LD" if "lazy-nfa" in evaluator else "DP-B")
    pd.testing.assert_frame_equal(found.matches, cep.evaluate(TEXT, STREAM).matches)


@pytest.mark.parametrize("evaluator", [None, "tree", "stack-nfa"])
def test_the_queries_of_a_workload_without_a_plan_run_as_each_does_alone(evaluator) -> None:
    found = cep.evaluate(WORKLOAD, STREAM, evaluator=evaluator)
    for query, pattern in WORKLOAD.patterns.items():
        alone = cep.evaluate(pattern, STREAM, evaluator=evaluator)
        assert (found[query].plan, found[query].evaluator) == (alone.plan, alone.evaluator)
        pd.testing.assert_frame_equal(found[query].matches, alone.matches)
    # Beside given plans, a query without one keeps its written order.
    plans = {"q": cep.plan(TEXT, STATISTICS)}
    written = cep.evaluate(WORKLOAD, STREAM, plans)["r"].plan
    assert written.tree == ("b", "c") and written.generator is None


def test_explained_on_a_stream_statistics_are_measured() -> None:
    plan = cep.plan(TEXT, STATISTICS)
    found = cep.explain(TEXT, plan, stream=FRAME, **COLUMNS)
    assert found.nodes["log_estimated"].equals(
        cep.explain(TEXT, plan, STATISTICS).nodes["log_estimated"]
    )
    measured = cep.measure_statistics(WORKLOAD, STREAM)
    steps = cep.explain(WORKLOAD, stream=FRAME, **COLUMNS).steps
    assert steps["estimated"].equals(
        cep.explain(WORKLOAD, None, measured, STREAM).steps["estimated"]
    )
    with pytest.raises(CepbenchError, match="give cep"):
        cep.explain(TEXT, plan)


def test_no_events_have_no_matches() -> None:
    for empty in frames_of(FRAME[:0]).values():
        assert not len(cep.evaluate(TEXT, empty, **COLUMNS).matches)


def test_a_live_detector_without_a_plan_says_who_needs_none() -> None:
    for evaluator in (None, "tree"):
        with pytest.raises(
            CepbenchError,
            match=r"cep\.plan\(pattern, statistics\) makes .*, cep\.AdaptiveDetector\(pattern\) chooses",
        ):
            cep.Detector(TEXT, evaluator=evaluator)


def test_strategies_and_evaluators_without_plans_keep_their_own() -> None:
    found = cep.evaluate("PATTERN SEQ(A a, B b) STRATEGY next WITHIN 4 units", STREAM)
    assert found.plan is None and found.evaluator in ("sase", "sase-backtrack")
    assert cep.evaluate(TEXT, STREAM, evaluator="stack-nfa").plan is None
    with pytest.raises(EvaluationError, match="output"):
        cep.evaluate(TEXT, STREAM, output="lists")


def test_a_missing_type_is_reported_once() -> None:
    with pytest.warns(MissingTypeWarning) as caught:
        assert not len(cep.evaluate("PATTERN SEQ(A a, D d) WITHIN 4 units", STREAM).matches)
    assert len(caught) == 1
    with pytest.raises(StreamError, match="type 'D'"):
        cep.evaluate("PATTERN SEQ(A a, D d) WITHIN 4 units", STREAM, missing_types="error")


def wide(variables: int, operator: str = "AND") -> cep.Pattern:
    names = ", ".join(f"A v{number}" for number in range(variables))
    return cep.parse(f"PATTERN {operator}({names}) WITHIN 40 units")


@pytest.mark.parametrize(("kind", "n"), [("tree", 24), ("order", 24)])
def test_beyond_the_variables_of_the_best_plans_a_heuristic_plans(kind: str, n: int) -> None:
    best, beyond = DEFAULT_GENERATORS[kind]
    assert cep.PLAN_GENERATORS[best].max_size == n and cep.PLAN_GENERATORS[beyond].max_size is None
    assert default_generator(n, kind).name == best
    assert default_generator(n + 1, kind).name == beyond


def test_a_call_without_a_generator_is_not_refused_for_its_variables() -> None:
    pattern, flat = wide(26), cep.Statistics(rates={f"v{number}": 1.0 for number in range(26)})
    assert cep.plan(pattern, flat).generator == "ZSTREAM-ORD"
    with pytest.raises(PlanningRefusedError, match="DP-B takes at most 24"):
        cep.plan(pattern, flat, "DP-B")
    found = cep.evaluate(pattern, STREAM[:5], output="count")
    assert (found.plan.generator, found.metrics.matches) == ("ZSTREAM-ORD", 0)
    # Costs that are not sums over sets are searched without kernels, over fewer variables.
    several = wide(15)
    rates = cep.Statistics(rates={f"v{number}": 1.0 for number in range(15)})
    assert cep.plan(several, rates, cost="comparisons").generator == "ZSTREAM-ORD"
    with pytest.raises(PlanningRefusedError, match="DP-B takes at most 14"):
        cep.plan(several, rates, "DP-B", cost="comparisons")
    assert generator_for([several], cost=cost_from("comparisons")).name == "ZSTREAM-ORD"


def test_an_evaluator_of_orders_gets_the_best_order() -> None:
    pattern = cep.parse(TEXT)
    for evaluator in cep.EVALUATORS.values():
        kind = generator_for([pattern], evaluator.name).kind
        assert kind in evaluator.kinds or not {"order", "tree"} & {*evaluator.kinds}
    found = cep.adapt(pattern, STREAM, evaluator="lazy-nfa", batch_size=8)
    assert found.plan.generator == "DP-LD"
    assert cep.adapt(pattern, STREAM, batch_size=8).plan.generator == "DP-B"
