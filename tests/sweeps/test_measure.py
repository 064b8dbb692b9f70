"""Measuring one pattern: order of the runs, rows of every outcome, resuming."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.arguments import whole
from cepbench.costs.models import cost_model
from cepbench.errors import CepbenchError, EvaluationError, ExperimentError, PlanGeneratorError
from cepbench.evaluators.protocol import Option
from cepbench.evaluators.registry import plan_evaluator
from cepbench.planners.registry import default_generators, plan_generator
from cepbench.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.statistics.measure import measure_statistics
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from cepbench.sweeps import measure
from cepbench.sweeps.cells import (
    ERROR,
    LATENCY,
    LIMIT,
    METRICS,
    OF_METHODS,
    OK,
    REFUSED,
    RESULT_SCHEMA,
    Cell,
    cell_of,
    check_agreement,
    results_frame,
)
from cepbench.sweeps.compare import COLUMNS, compare
from cepbench.sweeps.grid import Grid
from cepbench.sweeps.measure import measure_pattern
from cepbench.sweeps.workload import PatternSpec
from tests.evaluators.dummy_engine import DECLARED, EveryCombination

TEXT = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.difference < c.difference "
    "AND b.difference > c.difference WITHIN 60 seconds"
)
SPEC = PatternSpec("sequence-3-0000", "sequence", 3, TEXT, 0)


def cells_of(
    generators: list[str], evaluators: list[str] | None, repetitions: int, **more: Any
) -> list[Cell]:
    return Grid(
        generators=generators, evaluators=evaluators, repetitions=repetitions, **more
    ).cells()


@pytest.fixture(scope="module")
def stream() -> EventStream:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "symbol": rng.choice(list("AABCCCC"), size=800),
            "ts": pd.Timestamp("2026-01-05 09:30")
            + pd.to_timedelta(np.sort(rng.integers(0, 3000, size=800)), unit="s"),
            "difference": rng.normal(size=800),
        }
    )
    return EventStream.from_pandas(frame, type="symbol", time="ts")


@pytest.fixture(scope="module")
def statistics(stream: EventStream) -> Statistics:
    return measure_statistics(SPEC.pattern, stream)


def outcome(rows: pd.DataFrame, generator: str) -> pd.Series:
    return rows[rows["generator"] == generator].iloc[0]


def test_repetitions_are_the_outer_loop_and_rotate() -> None:
    cells = cells_of(["TRIVIAL", "DP-B", "DP-LD"], None, 3)
    assert [(cell.generator, cell.repetition) for cell in cells] == [
        ("TRIVIAL", 0),
        ("DP-B", 0),
        ("DP-LD", 0),
        ("DP-B", 1),
        ("DP-LD", 1),
        ("TRIVIAL", 1),
        ("DP-LD", 2),
        ("TRIVIAL", 2),
        ("DP-B", 2),
    ]
    assert {cell.generator: cell.evaluator for cell in cells} == {
        "TRIVIAL": "lazy-nfa",
        "DP-LD": "lazy-nfa",
        "DP-B": "tree",
    }


def test_orders_run_in_evaluators_of_trees_unless_they_may_not() -> None:
    both = ["lazy-nfa", "tree", "lazy-nfa-instances", "tree-instances"]
    grid = Grid(generators=["GREEDY", "DP-B"], evaluators=both, repetitions=1)
    ran_in = {cell[:2] for cell in grid.cells()}
    assert ran_in == {("GREEDY", name) for name in both} | {
        ("DP-B", "tree"), ("DP-B", "tree-instances"),
    }  # fmt: skip
    apart = {cell[:2] for cell in replace(grid, orders_in_trees=False).cells()}
    assert ran_in - apart == {("GREEDY", "tree"), ("GREEDY", "tree-instances")}
    with pytest.raises(ExperimentError, match="none of the evaluators tree"):
        replace(grid, evaluators=["tree"], orders_in_trees=False).cells()


def test_named_evaluators_run_what_they_can() -> None:
    cells = cells_of(["TRIVIAL", "DP-B"], ["lazy-nfa", "tree"], 1)
    assert cells == [
        Cell("TRIVIAL", "lazy-nfa", 0),
        Cell("TRIVIAL", "tree", 0),
        Cell("DP-B", "tree", 0),
    ]
    with pytest.raises(ExperimentError, match=r"DP-B makes tree plans.*add 'tree'"):
        cells_of(["TRIVIAL", "DP-B"], ["lazy-nfa"], 1)
    with pytest.raises(EvaluationError, match="no evaluator 'nfa'"):
        cells_of(["TRIVIAL"], ["nfa"], 1)
    with pytest.raises(PlanGeneratorError, match="no plan generator 'TRIVAL'"):
        cells_of(["TRIVAL"], None, 1)
    with pytest.raises(ExperimentError, match="0 repetitions"):
        cells_of(["TRIVIAL"], None, 0)


def test_strategies_and_weights_of_latency_make_cells() -> None:
    strategies, alphas = ["any", "consuming"], [0, 0.5, 1]
    cells = cells_of(["TRIVIAL", "DP-B"], None, 2, strategies=strategies, alphas=alphas)
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 3
    first, second = cells[:12], cells[12:]
    assert {cell.repetition for cell in first} == {0}
    # The same runs again, a place later.
    assert [cell._replace(repetition=1) for cell in [*first[1:], first[0]]] == second
    assert {(cell.strategy, cell.alpha) for cell in cells} == {
        (strategy, float(alpha)) for strategy in strategies for alpha in alphas
    }


def test_every_cell_is_a_whole_row(stream: EventStream, statistics: Statistics) -> None:
    generators = default_generators(user_defined=False)
    rows = list(
        measure_pattern(
            SPEC,
            stream,
            statistics,
            Grid(generators=generators, repetitions=2),
            columns={"dataset": "made up"},
        )
    )
    assert [cell_of(row) for row in rows] == cells_of(generators, None, 2)
    assert all(json.loads(json.dumps(row)) == row for row in rows)
    frame = results_frame(rows)
    assert list(frame.columns) == RESULT_SCHEMA.names
    assert (frame["status"] == OK).all() and frame["reason"].isna().all()
    missing = ["reason", "measured_with", "details", "commit", *LATENCY, *OF_METHODS]
    assert not frame.drop(columns=missing).isna().any(axis=None)
    assert frame[list(LATENCY)].isna().all(axis=None)  # nobody asked for it
    assert set(frame["strategy"]) == {"any"} and set(frame["alpha"]) == {0.0}
    assert (frame["events"] == len(stream)).all() and (frame["plan_seconds"] > 0).all()
    assert outcome(frame, "TRIVIAL")["plan"] == "a, b, c"
    assert outcome(frame, "DP-B")["plan"].count("(") == 2
    np.testing.assert_allclose(np.log(frame["plan_cost"]), frame["plan_log_cost"])
    check_agreement(frame)
    assert frame["matches"].iloc[0] > 0


def test_finished_cells_are_not_measured_again(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = cells_of(["TRIVIAL", "DP-B"], None, 2)
    timed = []
    real = measure.evaluate

    def counting(pattern: Any, events: EventStream, plan: Any, **options: Any) -> Any:
        if len(events) == len(stream):
            timed.append(options["evaluator"])
        return real(pattern, events, plan, **options)

    monkeypatch.setattr(measure, "evaluate", counting)
    monkeypatch.setattr(measure, "WARM_UP_EVENTS", 100)
    rows = list(
        measure_pattern(
            SPEC,
            stream,
            statistics,
            Grid(generators=["TRIVIAL", "DP-B"], repetitions=2),
            finished=cells[:3],
        )
    )
    assert [cell_of(row) for row in rows] == cells[3:]
    assert timed == ["lazy-nfa"]
    assert not list(
        measure_pattern(
            SPEC, stream, statistics, Grid(generators=["TRIVIAL"], repetitions=2), finished=cells
        )
    )


def test_refusals_limits_and_failures_are_rows(stream: EventStream, statistics: Statistics) -> None:
    @plan_generator("SMALL-ONLY", kind="order", max_size=2)
    def small_only(problem: Any, rng: Any) -> Any:
        return range(problem.n)

    @plan_generator("BROKEN", kind="tree")
    def broken(problem: Any, rng: Any) -> Any:
        return ((0, 1), 1)

    names = ["SMALL-ONLY", "BROKEN", "TRIVIAL"]
    rows = results_frame(
        measure_pattern(SPEC, stream, statistics, Grid(generators=names, repetitions=1))
    )
    assert list(rows["status"]) == [REFUSED, ERROR, OK]
    assert "PlanningRefusedError: SMALL-ONLY takes at most 2" in rows["reason"].iloc[0]
    assert (
        "BROKEN returned ((0, 1), 1) for 3 events: 1 ('b') appears twice" in rows["reason"].iloc[1]
    )
    assert rows[list(METRICS)].iloc[:2].isna().all(axis=None)

    limited = results_frame(
        measure_pattern(
            SPEC,
            stream,
            statistics,
            Grid(generators=["TRIVIAL"], repetitions=2, partial_match_limit=2),
        )
    )
    assert list(limited["status"]) == [LIMIT] * 2
    assert limited["plan"].notna().all() and limited["matches"].isna().all()
    # Bounds, since the runs would have gone on.
    assert (limited["partial_matches_created"] == 2).all() and (limited["seconds"] > 0).all()
    assert (limited["events"] == len(stream)).all()
    expected = limited["events"] / limited["seconds"]
    assert limited["events_per_second"].to_numpy() == pytest.approx(expected.to_numpy(float))
    assert limited["reason"].str.startswith("PartialMatchLimitError: ").all()


class _OwnExit(BaseException):
    """Neither an Exception nor the exit of the interpreter."""


@pytest.mark.parametrize("failure", [SystemExit(3), _OwnExit("gone"), ValueError("x")])
def test_what_user_defined_code_raises_is_a_row(
    stream: EventStream, statistics: Statistics, failure: BaseException
) -> None:
    """But for the user's own interruption."""

    @plan_generator("LEAVES", kind="order")
    def leaves(problem: Any, rng: Any) -> Any:
        raise failure

    @plan_evaluator("leaving")
    def leaving(pattern: Any, stream: Any, plan: Any) -> Any:
        raise failure

    @cost_model("LEFT")
    def left(problem: Any, tree: Any) -> float:
        raise failure

    grid = Grid(generators=["LEAVES", "TRIVIAL"], evaluators=["tree", "leaving"], repetitions=1)
    rows = results_frame(measure_pattern(SPEC, stream, statistics, grid))
    status = dict(
        zip(zip(rows["generator"], rows["evaluator"], strict=True), rows["status"], strict=True)
    )
    assert [name for name, found in status.items() if found == OK] == [("TRIVIAL", "tree")]
    assert rows["reason"][rows["status"] == ERROR].str.contains(type(failure).__name__).all()
    by_cost = measure_pattern(
        SPEC, stream, statistics, Grid(generators=["SA"], repetitions=1, cost="LEFT")
    )
    assert [row["status"] for row in by_cost] == [ERROR]

    failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        list(measure_pattern(SPEC, stream, statistics, grid))


def test_matches_of_batches_are_dropped(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[tuple[str, int]] = []

    class Counted(measure.Detector):
        def push(self, batch: EventStream) -> Any:
            pushed.append((self.output, len(batch)))
            return super().push(batch)

    monkeypatch.setattr(measure, "Detector", Counted)
    monkeypatch.setattr(measure, "BATCH_EVENTS", 300)
    outputs = ["count", "matches", "arrow"]
    grid = Grid(generators=["TRIVIAL"], repetitions=1, outputs=outputs)
    rows = results_frame(measure_pattern(SPEC, stream, statistics, grid))
    assert list(rows["output"]) == outputs and rows["matches"].nunique() == 1
    assert rows["matches"].iloc[0] > 0 and rows["events"].eq(len(stream)).all()
    batches = [("arrow", 300), ("arrow", 300), ("arrow", 200)]
    assert pushed == batches * 2  # one is the warm-up


def test_strategies_weights_and_latency_are_handed_on(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who gets what; with stand-ins, so that each call can be seen."""
    plans: list[tuple[str, float]] = []
    runs: list[tuple[str, float, bool]] = []

    @dataclass(frozen=True)
    class Plan:
        weight: float
        kind: str = "order"
        text: str = "a, b, c"
        cost: float = 1.0
        log_cost: float = 0.0

        @property
        def parts(self) -> tuple[Plan, ...]:
            return (self,)

    def planning(pattern: Any, *_: Any, alpha: float = 0.0, **__: Any) -> Plan:
        plans.append((str(pattern.strategy), alpha))
        return Plan(alpha)

    def evaluating(pattern: Any, _: Any, plan: Plan, *, latency: bool = False, **__: Any) -> Any:
        runs.append((str(pattern.strategy), plan.weight, latency))
        metrics = dict.fromkeys(METRICS.keys() - OF_METHODS.keys(), 1)
        metrics |= dict.fromkeys(LATENCY, math.nan)
        if latency:
            # Slow, and without a value where a pattern has no match.
            metrics |= {"seconds": 100, "latency_mean": 2.5, "latency_p95": 3.5}
        return SimpleNamespace(metrics=SimpleNamespace(to_dict=lambda: metrics, details={}))

    monkeypatch.setattr(measure, "make_plan", planning)
    monkeypatch.setattr(measure, "evaluate", evaluating)
    monkeypatch.setattr(measure, "load_kernels", lambda generator: None)
    strategies = ["any", "consuming"]
    rows = list(
        measure_pattern(
            SPEC,
            stream,
            statistics,
            Grid(
                generators=["TRIVIAL"],
                repetitions=2,
                strategies=strategies,
                alphas=[0.0, 0.5],
                latency=True,
            ),
        )
    )
    combined = [(strategy, alpha) for strategy in strategies for alpha in (0.0, 0.5)]
    assert plans == combined
    timed = runs[2:]  # both strategies were warmed up
    assert {run[:2] for run in timed} == set(combined) and len(timed) == 2 * 2 * 4
    # Throughput comes first and is never taken from a run that looks at the clock.
    assert [latency for *_, latency in timed] == [False, True] * 8
    for row in rows:
        assert row["seconds"] == 1
        assert [row[name] for name in LATENCY] == [2.5, None, 3.5, None]
        assert (row["strategy"], row["alpha"]) in combined
        assert ("STRATEGY consuming" in row["pattern"]) == (row["strategy"] == "consuming")
    assert len(results_frame(rows)) == 8


def test_windows_and_options_are_handed_on(
    stream: EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[tuple[float, str, str]] = set()
    real = measure.evaluate

    def evaluating(pattern: Any, events: EventStream, plan: Any, **more: Any) -> Any:
        if len(events) == len(stream):
            seen.add((pattern.window.seconds, more["evaluator"], json.dumps(more.get("options"))))
        return real(pattern, events, plan, **more)

    @plan_evaluator("blocks", options={"block": Option(1, partial(whole, least=1))})
    def blocks(pattern: Any, events: Any, plan: Any, *, block: int) -> Any:
        assert block in (1, 2)
        return real(pattern, events, plan, evaluator="tree").matches

    monkeypatch.setattr(measure, "evaluate", evaluating)
    monkeypatch.setattr(measure, "WARM_UP_EVENTS", 100)
    windows = ("30 seconds", "60 seconds")
    grid = Grid(
        generators=["TRIVIAL", "DP-B"], repetitions=2, windows=windows, share_equal_plans=True,
        evaluators=["lazy-nfa", "Blocks"], options={"BLOCKS": ('{"block": 1}', '{"block": 2}')},
    )  # fmt: skip
    # The order in one of them, order and tree in the other.
    assert len(grid.cells()) == len(set(grid.cells())) == 2 * 2 * (1 + 2 * 2)
    statistics = {
        window: measure_statistics(SPEC.under(window=window).pattern, stream) for window in windows
    }
    rows = results_frame(measure_pattern(SPEC, stream, statistics, grid))
    assert (rows["status"] == OK).all(), rows["reason"].unique()
    assert seen == {
        (seconds, *how)
        for seconds in (30, 60)
        for how in (("lazy-nfa", "{}"), ("blocks", '{"block": 1}'), ("blocks", '{"block": 2}'))
    }
    assert {cell_of(row) for row in rows.to_dict("records")} == set(grid.cells())
    assert rows["measured_with"].isna().all()  # options are runs of their own
    for window, found in rows.groupby("window"):
        assert found["pattern"].str.endswith(f"WITHIN {window}").all()
    matches = rows.groupby("window")["matches"].first()
    assert 0 < matches["30 seconds"] < matches["60 seconds"]
    check_agreement(rows)
    for message, how in (
        ("no evaluator 'trie'.*did you mean 'tree'", {"options": {"trie": ("{}",)}}),
        ("no option 'bloc'.*did you mean 'block'", {"options": {"blocks": ('{"bloc": 1}',)}}),
        ("block must be", {"options": {"blocks": ('{"block": 0}',)}}),
        ("options of 'blocks', in which no plan of the", {"evaluators": ["tree"]}),
    ):
        with pytest.raises(CepbenchError, match=message):
            replace(grid, **how).cells()


def test_an_evaluator_without_a_plan_has_cells_of_its_own(
    stream: EventStream, statistics: Statistics
) -> None:
    plan_evaluator("combinations", **DECLARED)(EveryCombination)
    grid = Grid(generators=["TRIVIAL"], evaluators=["combinations", "tree"], repetitions=1)
    rows = results_frame(measure_pattern(SPEC, stream, statistics, grid))
    assert list(rows["generator"]) == ["none", "TRIVIAL"] == [cell[0] for cell in grid.cells()]
    assert (rows["status"] == OK).all() and rows["matches"].nunique() == 1
    unplanned = rows.iloc[0]
    assert unplanned["plan_kind"] == "none" and pd.isna(unplanned["plan"])
    assert json.loads(unplanned["details"])["tried"] > 0 and pd.isna(rows["details"].iloc[1])
    alone = replace(grid, evaluators=["combinations"])
    assert [cell.generator for cell in alone.cells()] == ["none"]


def test_equal_plans_run_once_if_asked(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []
    real = measure.evaluate

    def counting(pattern: Any, events: EventStream, plan: Any, **options: Any) -> Any:
        if len(events) == len(stream):
            timed.append(plan.text)
        return real(pattern, events, plan, **options)

    monkeypatch.setattr(measure, "evaluate", counting)
    monkeypatch.setattr(measure, "WARM_UP_EVENTS", 100)
    names = ["GREEDY", "DP-LD", "II-GREEDY", "DP-B"]
    alone = results_frame(
        measure_pattern(SPEC, stream, statistics, Grid(generators=names, repetitions=2))
    )
    assert len(timed) == 8 and alone["measured_with"].isna().all()
    timed.clear()
    shared = results_frame(
        measure_pattern(
            SPEC, stream, statistics, Grid(generators=names, repetitions=2, share_equal_plans=True)
        )
    )
    assert list(shared["plan"]) == list(alone["plan"])
    assert len(timed) == 2 * shared["plan"].nunique() == len(set(timed)) * 2 < 8
    assert (shared["matches"] == alone["matches"]).all()
    for _, rows in shared.groupby(["repetition", "plan"]):
        # One was run, the others say that they repeat it.
        assert rows["measured_with"].isna().sum() == 1 and rows["seconds"].nunique() == 1
        own = rows[rows["measured_with"].isna()].iloc[0]
        assert set(rows["measured_with"].dropna()) <= {own["generator"]}
    assert shared.groupby("plan")["seconds"].nunique().max() == 2  # repetitions are never shared


def test_plans_on_one_line() -> None:
    orders = [OrderPlan(["c", "a"]), OrderPlan(["b"])]
    trees = [TreePlan((("a", "c"), "b")), TreePlan(("d", "e"))]
    assert orders[0].text == "c, a" and trees[0].text == "((a, c), b)"
    for parts, text in ((orders, "c, a | b"), (trees, "((a, c), b) | (d, e)")):
        assert UnionPlan(parts).text == text


def test_agreement_is_asked_within_a_strategy(stream: EventStream, statistics: Statistics) -> None:
    rows = results_frame(
        measure_pattern(
            SPEC, stream, statistics, Grid(generators=["TRIVIAL", "DP-B"], repetitions=1)
        )
    )
    other = rows.assign(strategy="consuming", matches=rows["matches"] + 5)
    check_agreement(pd.concat([rows, other], ignore_index=True))
    weighed = rows.assign(alpha=1.0, matches=rows["matches"] + 5)
    with pytest.raises(ExperimentError, match=r"sequence-3-0000 \(any\) has \d+ matches"):
        check_agreement(pd.concat([rows, weighed], ignore_index=True))


def test_other_failures_are_rows(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*_: Any, **__: Any) -> Any:
        raise MemoryError("too much")

    monkeypatch.setattr(measure, "evaluate", out_of_memory)
    (row,) = measure_pattern(SPEC, stream, statistics, Grid(generators=["TRIVIAL"], repetitions=1))
    assert (row["status"], row["reason"]) == (ERROR, "MemoryError: too much")


def test_compare_has_a_row_for_each_of_the_paper_s_generators_and_one_s_own(
    stream: EventStream,
) -> None:
    @plan_generator("MY-IDEA", kind="order")
    def my_idea(problem: Any, rng: Any) -> Any:
        return sorted(range(problem.n), key=problem.rate)

    table = compare(SPEC.pattern, stream, repetitions=3, seconds=0)
    assert list(table["generator"]) == [*default_generators(user_defined=False), "MY-IDEA"]
    assert list(table.columns) == list(COLUMNS)
    assert (table["status"] == OK).all() and table["matches"].nunique() == 1
    assert (table["events_per_second_q1"] <= table["events_per_second"]).all()
    assert (table["events_per_second"] <= table["events_per_second_q3"]).all()
    costs = table.set_index("generator")["cost"]
    assert costs["DP-B"] <= costs[["ZSTREAM", "ZSTREAM-ORD"]].min()


def test_compare_shows_failures_beside_the_others(
    stream: EventStream, statistics: Statistics
) -> None:
    @plan_generator("SMALL-ONLY", kind="order", max_size=2)
    def small_only(problem: Any, rng: Any) -> Any:
        return range(problem.n)

    table = compare(
        SPEC.pattern,
        stream,
        statistics=statistics,
        generators=["SMALL-ONLY", "GREEDY"],
        repetitions=1,
        seconds=0,
    )
    assert list(table["status"]) == [REFUSED, OK]
    assert pd.isna(table["events_per_second"].iloc[0]) and pd.isna(table["matches"].iloc[0])


def test_two_numbers_of_matches_are_never_silent(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = measure.evaluate

    def one_too_many(pattern: Any, events: EventStream, plan: Any, **options: Any) -> Any:
        result = real(pattern, events, plan, **options)
        if options["evaluator"] == "tree":
            object.__setattr__(result.metrics, "matches", result.metrics.matches + 1)
        return result

    monkeypatch.setattr(measure, "evaluate", one_too_many)
    with pytest.raises(ExperimentError, match=r"matches by TRIVIAL in lazy-nfa .* by DP-B in tree"):
        compare(
            SPEC.pattern,
            stream,
            statistics=statistics,
            generators=["TRIVIAL", "DP-B"],
            repetitions=1,
            seconds=0,
        )


@pytest.mark.parametrize("difference", [-1, 1])
def test_one_match_more_or_less_is_no_agreement(difference: int) -> None:
    rows = pd.DataFrame(
        {
            "pattern_id": "p", "pattern": "PATTERN …", "strategy": "any", "status": OK,
            "stream": "", "window": "", "options": "{}",
            "generator": ["GREEDY", "DP-LD", "DP-B"], "evaluator": "tree", "plan": "a, b",
            "matches": [5, 5, 5], "digest": None,
        }
    )  # fmt: skip
    check_agreement(rows)
    for place, found in enumerate((5 + difference,) * 2, start=1):
        other = rows.copy()
        other.loc[place, "matches"] = found
        with pytest.raises(
            ExperimentError, match=rf"has 5 matches by GREEDY .* but {found} matches by"
        ):
            check_agreement(other)
        other.loc[place, "status"] = LIMIT  # what did not end has no number to compare
        check_agreement(other)


def test_policies_and_plans_batch_by_batch(stream: EventStream) -> None:
    """Both see the same batches; each run states its seconds, an adaptive one its switches."""
    grid = Grid(
        generators=["ZSTREAM"],
        policies={
            "follows": {"policy": "threshold", "threshold": 0.0, "gain": 0.0},
            "stays": {"policy": "static", "cost": "zstream-columnar"},
        },
        batch_size=1_000,
        repetitions=2,
        alphas=(0.0, 0.5),
        latency=True,
        share_equal_plans=True,
    )
    rows = [*measure_pattern(SPEC, stream, measure_statistics(TEXT, stream), grid)]
    assert {(row["status"], row["matches"]) for row in rows} == {(OK, rows[0]["matches"])}
    assert [row["generator"] for row in rows].count("ZSTREAM") == 4
    adaptive = [row for row in rows if row["generator"] != "ZSTREAM"]
    assert {row["alpha"] for row in adaptive} == {0.0} and len(adaptive) == 4
    for row in rows:
        details = json.loads(row["details"])
        assert len(details["batch_seconds"]) == math.ceil(len(stream) / 1_000)
        assert sum(details["batch_seconds"]) <= row["seconds"] * 1.5
        assert ("switches" in details) == (row["generator"] != "ZSTREAM")
        assert row["plan_kind"] == "tree" and row["measured_with"] in (None, "ZSTREAM")
    assert json.loads(adaptive[0]["details"]).keys() == json.loads(adaptive[1]["details"]).keys()
    # Without a size the plan sees the whole stream at once, and rounds are long.
    whole_stream = replace(grid, batch_size=0, repetitions=1, alphas=(0.0,), latency=False)
    for row in measure_pattern(SPEC, stream, measure_statistics(TEXT, stream), whole_stream):
        assert row["matches"] == rows[0]["matches"]
        assert (row["details"] is None) == (row["generator"] == "ZSTREAM")
