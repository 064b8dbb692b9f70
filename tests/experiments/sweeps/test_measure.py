"""Measuring one pattern: order of the runs, rows of every outcome, resuming."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.arguments import whole
from cepbench.engines.detection.registry import plan_evaluator
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.protocol import Option
from cepbench.engines.runs.result import Metrics
from cepbench.errors import CepbenchError, EvaluationError, ExperimentError, PlanGeneratorError
from cepbench.experiments.sweeps.cells import (
    ERROR,
    LATENCY,
    LIMIT,
    METRICS,
    OF_METHODS,
    OK,
    REFUSED,
    RESULT_SCHEMA,
    cell_of,
    check_agreement,
    results_frame,
)
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import (
    BATCH_EVENTS,
    WARM_UP_EVENTS,
    measure_pattern,
    timed_plan,
)
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.planning.costs.models import cost_model
from cepbench.planning.planners.registry import default_generators, plan_generator
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.comparison.compare import compare
from cepbench.presentation.comparison.table import COLUMNS
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_stream, normal
from tests.engines.detection.dummy_engine import DECLARED, EveryCombination

TEXT = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.difference < c.difference "
    "AND b.difference > c.difference WITHIN 60 seconds"
)
SPEC = PatternSpec("sequence-3-0000", "sequence", 3, TEXT, 0)


def grid_of(generators: list[str], repetitions: int = 1, **more: Any) -> Grid:
    return Grid(generators=generators, repetitions=repetitions, **more)


@pytest.fixture(scope="module")
def stream() -> EventStream:
    return drawn_stream(
        800, "AABCCCC", seed=7, seconds=3000, names=("symbol", "ts"), difference=normal
    )


@pytest.fixture(scope="module")
def statistics(stream: EventStream) -> Statistics:
    return measure_statistics(SPEC.pattern, stream)


@pytest.fixture(scope="module")
def measured(stream: EventStream, statistics: Statistics) -> Callable[..., pd.DataFrame]:
    """The rows of a grid, of one repetition where nothing else is asked for."""

    def measured(*generators: str, **more: Any) -> pd.DataFrame:
        grid = grid_of([*generators], **more)
        return results_frame(measure_pattern(SPEC, stream, statistics, grid))

    return measured


@pytest.fixture
def small_only() -> str:
    """A generator that refuses the pattern."""

    @plan_generator("SMALL-ONLY", kind="order", max_size=2)
    def small_only(problem: Any, rng: Any) -> Any:
        return range(problem.n)

    return "SMALL-ONLY"


@pytest.fixture
def ran() -> list[str]:
    """The plans that the evaluator ``recorded`` has run, warm-ups of each kind of plan included."""
    found: list[str] = []

    @plan_evaluator("recorded")
    def recorded(pattern: Any, events: EventStream, plan: Any) -> Any:
        found.append(plan.text)
        return cep.evaluate(pattern, events, plan, evaluator="tree").matches

    return found


def outcome(rows: pd.DataFrame, generator: str) -> pd.Series:
    return rows[rows["generator"] == generator].iloc[0]


def test_repetitions_are_the_outer_loop_and_rotate() -> None:
    cells = grid_of(["TRIVIAL", "DP-B", "DP-LD"], 3).cells()
    assert [(cell.generator, cell.repetition) for cell in cells] == [
        ("TRIVIAL", 0), ("DP-B", 0), ("DP-LD", 0),
        ("DP-B", 1), ("DP-LD", 1), ("TRIVIAL", 1),
        ("DP-LD", 2), ("TRIVIAL", 2), ("DP-B", 2),
    ]  # fmt: skip
    evaluators = {cell.generator: cell.evaluator for cell in cells}
    assert evaluators == {"TRIVIAL": "lazy-nfa", "DP-LD": "lazy-nfa", "DP-B": "tree"}


def test_orders_run_in_evaluators_of_trees_unless_they_may_not() -> None:
    both = ["lazy-nfa", "tree", "lazy-nfa-instances", "tree-instances"]
    grid = grid_of(["GREEDY", "DP-B"], evaluators=both)
    ran_in = {cell[:2] for cell in grid.cells()}
    assert ran_in == {("GREEDY", name) for name in both} | {
        ("DP-B", "tree"), ("DP-B", "tree-instances"),
    }  # fmt: skip
    apart = {cell[:2] for cell in replace(grid, orders_in_trees=False).cells()}
    assert ran_in - apart == {("GREEDY", "tree"), ("GREEDY", "tree-instances")}
    with pytest.raises(ExperimentError, match="none of the evaluators tree"):
        replace(grid, evaluators=["tree"], orders_in_trees=False).cells()


def test_named_evaluators_run_what_they_can() -> None:
    cells = grid_of(["TRIVIAL", "DP-B"], evaluators=["lazy-nfa", "tree"]).cells()
    assert [cell[:3] for cell in cells] == [
        ("TRIVIAL", "lazy-nfa", 0), ("TRIVIAL", "tree", 0), ("DP-B", "tree", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("generators", "more", "error", "words"),
    [
        (["TRIVIAL", "DP-B"], {"evaluators": ["lazy-nfa"]}, ExperimentError, "tree plans.*add 'tree'"),
        (["TRIVIAL"], {"evaluators": ["nfa"]}, EvaluationError, "no evaluator 'nfa'"),
        (["TRIVAL"], {}, PlanGeneratorError, "no plan generator 'TRIVAL'"),
        (["TRIVIAL"], {"repetitions": 0}, ExperimentError, "0 repetitions"),
    ],
)  # fmt: skip
def test_what_has_no_cells(
    generators: list[str], more: dict[str, Any], error: type[CepbenchError], words: str
) -> None:
    with pytest.raises(error, match=words):
        grid_of(generators, **more).cells()


def test_strategies_and_weights_of_latency_make_cells() -> None:
    strategies, alphas = ["any", "consuming"], [0, 0.5, 1]
    cells = grid_of(["TRIVIAL", "DP-B"], 2, strategies=strategies, alphas=alphas).cells()
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
    grid = grid_of(generators, 2)
    rows = list(measure_pattern(SPEC, stream, statistics, grid, columns={"dataset": "made up"}))
    assert [cell_of(row) for row in rows] == grid.cells()
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
    stream: EventStream, statistics: Statistics, ran: list[str]
) -> None:
    grid = grid_of(["TRIVIAL", "DP-B"], 2, evaluators=["recorded"])
    cells = grid.cells()
    rows = list(measure_pattern(SPEC, stream, statistics, grid, finished=cells[:3]))
    assert [cell_of(row) for row in rows] == cells[3:]
    assert ran == [rows[0]["plan"]] * 2  # one is the warm-up
    assert not list(measure_pattern(SPEC, stream, statistics, grid, finished=cells))
    assert len(ran) == 2


def test_no_run_is_the_one_that_finds_rows_by_type(
    stream: EventStream, statistics: Statistics
) -> None:
    fresh = stream.with_hierarchy(None)
    grid = grid_of(["ZSTREAM"], evaluators=["zstream"])
    (row,) = measure_pattern(SPEC, fresh, statistics, grid)
    assert row["status"] == OK
    # Zstream itself does not ask for them, and who is the first to ask gets none.
    assert fresh.rows_of_codes([0]) is not None


def test_refusals_limits_and_failures_are_rows(measured, stream, small_only: str) -> None:
    @plan_generator("BROKEN", kind="tree")
    def broken(problem: Any, rng: Any) -> Any:
        return ((0, 1), 1)

    rows = measured(small_only, "BROKEN", "TRIVIAL")
    assert list(rows["status"]) == [REFUSED, ERROR, OK]
    assert "PlanningRefusedError: SMALL-ONLY takes at most 2" in rows["reason"].iloc[0]
    assert (
        "BROKEN returned ((0, 1), 1) for 3 events: 1 ('b') appears twice" in rows["reason"].iloc[1]
    )
    assert rows[list(METRICS)].iloc[:2].isna().all(axis=None)

    limited = measured("TRIVIAL", repetitions=2, partial_match_limit=2)
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
def test_what_user_defined_code_raises_is_a_row(measured, failure: BaseException) -> None:
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

    rows = measured("LEAVES", "TRIVIAL", evaluators=["tree", "leaving"])
    ended = rows.loc[rows["status"] == OK, ["generator", "evaluator"]]
    assert ended.values.tolist() == [["TRIVIAL", "tree"]]
    assert rows["reason"][rows["status"] == ERROR].str.contains(type(failure).__name__).all()
    assert measured("SA", cost="LEFT")["status"].tolist() == [ERROR]

    failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        measured("LEAVES", "TRIVIAL", evaluators=["tree", "leaving"])


def test_matches_of_batches_are_dropped(measured, stream: EventStream) -> None:
    outputs = ["count", "matches", "arrow"]
    rows = measured("TRIVIAL", outputs=outputs)
    assert list(rows["output"]) == outputs and rows["matches"].nunique() == 1
    assert rows["matches"].iloc[0] > 0 and rows["events"].eq(len(stream)).all()


def test_only_arrow_is_made_in_batches() -> None:
    pushed: list[int] = []

    @plan_evaluator("idle")
    class Idle(EveryCombination):
        def push(self, batch: EventStream) -> pd.DataFrame:
            pushed.append(len(batch))
            return pd.DataFrame(columns=["a", "b", "c"])

    count = 2 * BATCH_EVENTS + 200
    frame = pd.DataFrame({"type": list("ABC") * count, "difference": 0.0})[:count]
    long = EventStream.from_pandas(frame.assign(time=range(count)), type="type", time="time")
    spec = replace(SPEC, text=TEXT.replace("seconds", "units"))
    statistics = measure_statistics(spec.pattern, long)
    for output, batches in (("matches", [count]), ("arrow", [BATCH_EVENTS, BATCH_EVENTS, 200])):
        grid = grid_of(["TRIVIAL"], evaluators=["idle"], outputs=[output])
        (row,) = measure_pattern(spec, long, statistics, grid)
        assert (row["status"], row["events"]) == (OK, count)
        assert pushed == [WARM_UP_EVENTS, *batches]
        pushed.clear()


def test_strategies_weights_and_latency_are_handed_on(
    stream: EventStream, statistics: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who gets what; runs that measure latency are slow, by a clock that only runs move."""
    plans: list[Any] = []
    runs: list[tuple[str, float, bool]] = []
    now = [0.0]

    @plan_generator("SEEN", kind="order")
    def seen(problem: Any, rng: Any) -> Any:
        plans.append(problem)
        return range(problem.n)

    @plan_evaluator("late", strategies=("any", "consuming"), latency=True)
    class Late(EveryCombination):
        def __init__(self, task: Any) -> None:
            super().__init__(task)
            self.latency = task.latency
            self.alpha = task.plan.parts[0].alpha
            runs.append((str(task.pattern.strategy), self.alpha, task.latency))

        def push(self, batch: EventStream) -> pd.DataFrame:
            now[0] += 100.0 if self.latency else 1.0
            return pd.DataFrame(columns=["a", "b", "c"])

        def metrics(self) -> Metrics:
            late = Latency.of(np.full(3 if self.alpha else 0, 2.5))
            return replace(super().metrics(), latency=late if self.latency else None)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    strategies = ["any", "consuming"]
    how = {"strategies": strategies, "alphas": [0.0, 0.5], "evaluators": ["late"]}
    grid = grid_of(["SEEN"], 2, latency=True, **how)
    rows = list(measure_pattern(SPEC, stream, statistics, grid))
    combined = [(strategy, alpha) for strategy in strategies for alpha in (0.0, 0.5)]
    assert len(plans) == 1 + len(combined)  # the first loads compiled code
    timed = runs[2:]  # both strategies were warmed up
    assert {run[:2] for run in timed} == set(combined) and len(timed) == 2 * 2 * 4
    # Throughput comes first and is never taken from a run that looks at the clock.
    assert [latency for *_, latency in timed] == [False, True] * 8
    for row in rows:
        assert row["status"] == OK, row["reason"]
        assert row["seconds"] == 1
        # Without a value where a pattern has no match.
        late = [row[name] for name in LATENCY]
        assert late == (pytest.approx([2.5] * 4, rel=0.02) if row["alpha"] else [None] * 4)
        assert (row["strategy"], row["alpha"]) in combined
        assert ("STRATEGY consuming" in row["pattern"]) == (row["strategy"] == "consuming")
    assert len(results_frame(rows)) == 8


def test_windows_and_options_are_handed_on(stream: EventStream) -> None:
    seen: set[tuple[float, int]] = set()

    @plan_evaluator("blocks", options={"block": Option(1, partial(whole, least=1))})
    def blocks(pattern: Any, events: Any, plan: Any, *, block: int) -> Any:
        seen.add((pattern.window.seconds, block))
        return cep.evaluate(pattern, events, plan, evaluator="tree").matches

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
    assert seen == {(30, 1), (30, 2), (60, 1), (60, 2)}
    assert {cell_of(row) for row in rows.to_dict("records")} == set(grid.cells())
    assert rows["measured_with"].isna().all()  # options are runs of their own
    for window, found in rows.groupby("window"):
        assert found["pattern"].str.endswith(f"WITHIN {window}").all()
    matches = rows.groupby("window")["matches"].first()
    assert 0 < matches["30 seconds"] < matches["60 seconds"]
    assert rows.groupby("window")["matches"].nunique().eq(1).all()
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
    grid = grid_of(["TRIVIAL"], evaluators=["combinations", "tree"])
    rows = results_frame(measure_pattern(SPEC, stream, statistics, grid))
    assert list(rows["generator"]) == ["none", "TRIVIAL"] == [cell[0] for cell in grid.cells()]
    assert (rows["status"] == OK).all() and rows["matches"].nunique() == 1
    unplanned = rows.iloc[0]
    assert unplanned["plan_kind"] == "none" and pd.isna(unplanned["plan"])
    assert json.loads(unplanned["details"])["tried"] > 0 and pd.isna(rows["details"].iloc[1])
    alone = replace(grid, evaluators=["combinations"])
    assert [cell.generator for cell in alone.cells()] == ["none"]


def test_equal_plans_run_once_if_asked(measured, ran: list[str]) -> None:
    names = ["GREEDY", "DP-LD", "II-GREEDY", "DP-B"]
    alone = measured(*names, repetitions=2, evaluators=["recorded"])
    # After a warm-up with each kind of plan.
    assert len(ran[2:]) == 8 and alone["measured_with"].isna().all()
    ran.clear()
    shared = measured(*names, repetitions=2, evaluators=["recorded"], share_equal_plans=True)
    timed = ran[2:]
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


def test_agreement_is_asked_within_a_strategy(measured) -> None:
    rows = measured("TRIVIAL", "DP-B")
    other = rows.assign(strategy="consuming", matches=rows["matches"] + 5)
    check_agreement(pd.concat([rows, other], ignore_index=True))
    weighed = rows.assign(alpha=1.0, matches=rows["matches"] + 5)
    with pytest.raises(ExperimentError, match=r"sequence-3-0000 \(any\) has \d+ matches"):
        check_agreement(pd.concat([rows, weighed], ignore_index=True))


def test_compare_has_a_row_for_each_of_the_paper_s_generators_and_one_s_own(
    stream: EventStream,
) -> None:
    @plan_generator("MY-IDEA", kind="order")
    def my_idea(problem: Any, rng: Any) -> Any:
        return sorted(range(problem.n), key=problem.rate)

    table = compare(SPEC.pattern, stream, repetitions=3, seconds=0)
    assert list(table["generator"]) == [*default_generators(user_defined=False), "MY-IDEA"]
    assert list(table.columns) == list(COLUMNS["generator"])
    assert (table["status"] == OK).all() and table["matches"].nunique() == 1
    assert (table["events_per_second_q1"] <= table["events_per_second"]).all()
    assert (table["events_per_second"] <= table["events_per_second_q3"]).all()
    costs = table.set_index("generator")["cost"]
    assert costs["DP-B"] <= costs[["ZSTREAM", "ZSTREAM-ORD"]].min()


def test_compare_shows_failures_beside_the_others(stream, statistics, small_only: str) -> None:
    table = compare(
        SPEC.pattern, stream, statistics=statistics, generators=[small_only, "GREEDY"],
        repetitions=1, seconds=0,
    )  # fmt: skip
    assert list(table["status"]) == [REFUSED, OK]
    assert pd.isna(table["events_per_second"].iloc[0]) and pd.isna(table["matches"].iloc[0])


def test_two_numbers_of_matches_are_never_silent(
    stream: EventStream, statistics: Statistics
) -> None:
    @plan_evaluator("lossy", kinds=["tree"])
    def lossy(pattern: Any, events: EventStream, plan: Any) -> Any:
        return cep.evaluate(pattern, events, plan, evaluator="tree").matches[1:]

    with pytest.raises(ExperimentError, match=r"matches by TRIVIAL in lazy-nfa .* by .* in lossy"):
        compare(
            SPEC.pattern, stream, statistics=statistics, generators=["TRIVIAL", "DP-B"],
            evaluators=["lazy-nfa", "lossy"], repetitions=1, seconds=0,
        )  # fmt: skip


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
    policies = {
        "follows": {"policy": "threshold", "threshold": 0.0, "gain": 0.0},
        "stays": {"policy": "static", "cost": "zstream-columnar"},
    }
    grid = grid_of(
        ["ZSTREAM"], 2, policies=policies, batch_size=1_000, alphas=(0.0, 0.5), latency=True,
        share_equal_plans=True,
    )  # fmt: skip
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


def test_planners_are_timed_by_their_names_in_any_case() -> None:
    """As they are found elsewhere; an unknown one is a named error, not a missing key."""
    text = "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 9 units"
    workload = cep.Workload({"q1": text, "q2": text.replace("A a", "C c")})
    stream = cep.EventStream.from_pandas(
        pd.DataFrame({"type": [*"ABCABC"], "time": range(6)}), type="type", time="time"
    )
    statistics = cep.measure_statistics(workload, stream)
    for name in ("pretree", "PRETREE"):
        plan, seconds = timed_plan(workload, statistics, name)
        assert isinstance(plan, cep.WorkloadPlan) and seconds > 0
    with pytest.raises(PlanGeneratorError, match="did you mean 'PRETREE'"):
        timed_plan(workload, statistics, "PRETRE")
