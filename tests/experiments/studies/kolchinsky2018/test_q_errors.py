"""Estimated against measured partial matches: the rule, the models, the table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.experiments.studies.kolchinsky2018.q_error_tables import (
    KINDS,
    distinct_nodes,
    plan_regrets,
    q_error_summary,
    worst_nodes,
)
from cepbench.experiments.studies.kolchinsky2018.q_errors import MODELS, plan_nodes
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_stream, uniform

numbers = st.floats(0, 1e12)


@given(numbers, numbers, st.floats(0, 1))
def test_q_error_is_the_factor_either_way(estimated: float, measured: float, least: float) -> None:
    found = float(q_error(estimated, measured, least))
    assert found >= 1
    assert found == q_error(measured, estimated, least)
    if min(estimated, measured) > least > 0:
        assert found == pytest.approx(max(estimated, measured) / min(estimated, measured))


def test_q_error_of_nothing() -> None:
    # Nothing found: as if one had been, or next to nothing expected, which is right.
    found = q_error([0.0, 1e-9, 5.0, 0.0, 8.0], [0.0, 0.0, 0.0, 5.0, 2.0], 0.5)
    assert found.tolist() == [1, 1, 10, 10, 4]
    assert q_error([0.0, 3.0], [0.0, 0.0]).tolist() == [1, math.inf]
    assert math.isnan(q_error(1.0, math.nan, 0.1))


def spec(text: str, size: int = 3) -> PatternSpec:
    return PatternSpec(text, "own", size, text, 0)


@pytest.fixture(scope="module")
def poisson() -> EventStream:
    """Four types that arrive independently, x independent of everything; 4 in a window each."""
    return drawn_stream(80_000, "ABCD", seed=7, within=10_000_000, x=uniform)


@pytest.fixture(scope="module")
def table(poisson: EventStream) -> pd.DataFrame:
    specs = [
        spec("PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x WITHIN 2000 units", 4),
        spec("PATTERN AND(A a, B b, C c) WHERE a.x < b.x AND c.x > 0.9 WITHIN 2000 units"),
        spec("PATTERN SEQ(A a, AND(B b, C c)) WHERE a.x < b.x WITHIN 2000 units"),
        spec("PATTERN SEQ(A a, B b, C c, D d) WITHIN 2000 units", 4),
        spec("PATTERN OR(SEQ(A a, B b), AND(C c, D d)) WITHIN 2000 units", 2),
    ]
    return plan_nodes(specs, poisson, generators=["TRIVIAL", "DP-LD", "DP-B"])


def test_where_events_are_independent_exact_is_right(table: pd.DataFrame) -> None:
    flat = table[~table["pattern"].str.contains("SEQ\\(A a, AND") & ~table["linked"]]
    assert (flat.loc[flat["model"] == "exact", "q_error"] < 1.1).all()
    # 1/2 for each of three neighbours in place of 1/4!
    whole = flat[(flat["model"] == "adjacent") & (flat["events"] == 4)]
    assert whole["ratio"].to_numpy() == pytest.approx(3, rel=0.1)


def test_where_conditions_share_a_variable_joint_is_right(table: pd.DataFrame) -> None:
    linked = table[table["linked"] & table["pattern"].str.startswith("PATTERN SEQ(A a, B b, C c")]
    assert len(linked)
    by_model = linked.groupby("model")
    assert by_model["q_error"].max()["joint"] < 1.1
    # 1/4 in place of 1/6
    assert by_model["ratio"].median()["exact"] == pytest.approx(1.5, rel=0.1)


def test_k_times_as_many_are_created_as_are_alive(table: pd.DataFrame) -> None:
    often = table[table["matches"] > 10_000]
    assert (often["created"] / often["measured"] / often["events"]).between(0.9, 1.15).all()


def test_every_node_of_every_plan_is_there(table: pd.DataFrame, poisson: EventStream) -> None:
    assert set(table["model"]) == set(MODELS)
    for text, rows in table.groupby("pattern"):
        pattern = spec(str(text)).pattern
        statistics = measure_statistics(pattern, poisson, seed=0)
        for (generator, reading), its in rows.groupby(["generator", "time_selectivity"]):
            made = plan(pattern, statistics, str(generator), time_selectivity=str(reading))
            said = its[its["model"] == reading]
            estimates = np.concatenate([part.estimates for part in made.parts])
            assert np.log(said["estimated"].to_numpy()) == pytest.approx(estimates)
            assert said["variables"].str.len().tolist() == [
                len(", ".join(names)) for part in made.parts for names in part.nodes()
            ]


def test_what_a_model_refuses_has_no_estimate(table: pd.DataFrame) -> None:
    nested = table[table["pattern"].str.contains("SEQ\\(A a, AND")]
    assert set(nested["time_selectivity"]) == {"adjacent"}
    missing = nested.groupby("model")["estimated"].apply(lambda column: column.isna().all())
    assert missing.to_dict() == {"adjacent": False, "exact": True, "joint": True}
    assert nested["measured"].notna().all()


def test_distinct_nodes_and_their_summary(table: pd.DataFrame) -> None:
    nodes = distinct_nodes(table)
    assert not nodes.duplicated(["pattern_id", "branch", "variables", "model"]).any()
    kept = table[table["estimated"].notna() & (table["matches"] >= 30)]
    assert nodes["nodes"].sum() == len(kept)
    assert len(distinct_nodes(table, fewest=10**9)) == 0
    summary = q_error_summary(nodes, ["model", "events"]).set_index(["model", "events"])
    for key, its in nodes.groupby(["model", "events"]):
        row = summary.loc[key]
        assert row["nodes"] == len(its)
        assert row["median"] == pytest.approx(np.median(its["q_error"]))
        assert row["p95"] == pytest.approx(np.quantile(its["q_error"], 0.95))
        assert row["largest"] == its["q_error"].max()


def test_worst_nodes_say_why(table: pd.DataFrame) -> None:
    nodes = distinct_nodes(table)
    kinds = nodes.drop_duplicates(["pattern_id", "variables"]).set_index(
        ["pattern_id", "variables"]
    )
    chain = "PATTERN SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND b.x < c.x WITHIN 2000 units"
    assert kinds.loc[(chain, "a, b, c, d"), "kind"] == KINDS[3]
    assert kinds.loc[(chain, "a, b"), "kind"] == KINDS[1]
    assert kinds.loc[(chain, "d"), "kind"] == KINDS[0]
    flat = nodes[~nodes["pattern"].str.contains("SEQ\\(A a, AND")]
    worst = worst_nodes(flat, 2, model="adjacent")
    assert worst["q_error"].is_monotonic_decreasing and worst["pattern_id"].is_unique
    # 1/8 · 1/4 in place of 1/24 · 1/6
    first = worst.iloc[0]
    assert first["pattern_id"] == chain and first["variables"] == "a, b, c, d"
    assert first["q_error"] == pytest.approx(4.5, rel=0.1)
    assert first["adjacent"] / first["measured"] == pytest.approx(first["q_error"])
    assert first["joint_q_error"] < 1.1
    assert first["operator"] == "SEQ" and first["conditions"] == "a.x < b.x AND b.x < c.x"
    assert "neighbours only, 3.0 times 1/k!" in first["why"]
    assert worst_nodes(flat, 1, model="exact")["why"].str.contains("1.5 times less often").all()
    assert "one event" not in first["why"]


def test_regret_is_that_of_the_plan_that_a_model_finds_cheapest() -> None:
    rows = []
    for plan_name, (estimate, real) in {"p": (1.0, 30.0), "q": (2.0, 10.0)}.items():
        for node in range(2):
            rows.append(("s", 2, "id", "order", "m", plan_name, 0, node, estimate, real / 2))
    columns = ["pattern_set", "size", "pattern_id", "plan_kind", "model", "plan", "branch", "node",
               "estimated", "measured"]  # fmt: skip
    # Two generators with one plan are one plan.
    found = plan_regrets(pd.DataFrame([*rows, *rows[:2]], columns=columns))
    assert found[["plan", "regret"]].to_numpy().tolist() == [["p", 3.0]]


def test_a_chosen_plan_with_an_unmeasured_node_has_no_regret_and_no_other_model_either() -> None:
    nan = math.nan
    plans = {"p": [(1.0, 4.0), (1.0, nan)], "q": [(3.0, 10.0), (3.0, 2.0)]}
    rows = [
        ("s", 2, pattern_id, "order", model, name, 0, node, sign * estimate, real)
        for pattern_id in ("one", "two")
        for model, sign in (("m", 1.0), ("n", -1.0))
        for name, nodes in plans.items()
        for node, (estimate, real) in enumerate(nodes)
    ]
    columns = ["pattern_set", "size", "pattern_id", "plan_kind", "model", "plan", "branch", "node",
               "estimated", "measured"]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    # By m the plan p, whose second node has no number, is the cheapest; by n it is q.
    assert plan_regrets(table).empty
    table.loc[table["pattern_id"] == "two", "measured"] = 2.0
    found = plan_regrets(table)
    assert found[["pattern_id", "model", "plan", "regret"]].to_numpy().tolist() == [
        ["two", "m", "p", 1.0], ["two", "n", "q", 1.0],
    ]  # fmt: skip


def test_too_many_partial_matches_leave_a_gap(poisson: EventStream) -> None:
    found = plan_nodes(
        [spec("PATTERN AND(A a, B b, C c) WITHIN 20000 units")],
        poisson[:4_000],
        generators=["TRIVIAL"],
        partial_match_limit=100,
    )
    assert found.loc[found["events"] == 3, "measured"].isna().all()
    assert found.loc[found["events"] == 1, "measured"].notna().all()
