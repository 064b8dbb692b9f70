"""Plans explained: estimates against the paper's formulas, measurements against counting by hand."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import EvaluationError, PlanError, StatisticsError, StreamError
from cepbench.experiments.studies.kolchinsky2018.node_counts import restricted
from cepbench.patterns.model import Kind, Operator, Pattern, Variable
from cepbench.patterns.parse import parse
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import default_generators
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.planning.statistics.measure import active_time, measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.explainer.explain import explain
from cepbench.presentation.explainer.explanation import Explanation
from tests.budgets import examples
from tests.engines.detection.constructs import FAMILIES, able, branch_plans, construct_cases
from tests.engines.detection.strategies import (
    PLANNED,
    Case,
    cases,
    plans_for,
    statistics_for,
    stream_of,
)
from tests.engines.detection.test_metrics import part_of, steady_events
from tests.naive.matcher import labelled_matches, naive_matches
from tests.naive.values import clause_true
from tests.planning.costs.test_costs import random_tree
from tests.planning_cases import READINGS, STRATEGIES, modelled, random_case

readings = pytest.mark.parametrize(
    ("operator", "time_selectivity"), READINGS, ids=["AND", "SEQ-adjacent", "SEQ-exact"]
)

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 20 units"
STATISTICS = Statistics(
    cardinalities={"a": 8, "b": 4, "c": 2}, selectivities={("a", "b"): 0.5, ("c", "c"): 0.25}
)


def named(tree, names):
    return names[tree] if isinstance(tree, int) else tuple(named(part, names) for part in tree)


def variables(row: Mapping[Hashable, Any]) -> list[str]:
    return row["variables"].split(", ")


# Estimates


@readings
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 5), alpha=st.sampled_from([0, 1, 100]))
@examples(4)
def test_estimates_are_the_papers(operator, time_selectivity, strategy, seed, n, alpha) -> None:
    case = modelled(random_case(seed, n, operator, time_selectivity), strategy, Fraction(alpha))
    rng = np.random.default_rng(seed)
    tree = named(random_tree(rng, rng.permutation(n).tolist()), case.names)
    order = [case.names[i] for i in rng.permutation(n).tolist()]
    for chosen, cost in (
        (TreePlan(tree), case.tree_cost(tree)),
        (OrderPlan(order), case.order_cost(order)),
    ):
        found = explain(
            case.pattern,
            chosen,
            case.statistics,
            time_selectivity=time_selectivity,
            alpha=float(alpha),
            last=case.last_name,
        )
        nodes = found.nodes
        assert len(nodes) == 2 * n - 1
        for row in nodes.to_dict("records"):
            members = [case.names.index(name) for name in variables(row)]
            expected = float(case.partial_matches(members))
            assert row["estimated"] == pytest.approx(expected, rel=1e-9)
            assert math.exp(row["log_estimated"]) == pytest.approx(expected, rel=1e-9)
            if len(members) == 1:
                (i,) = members
                assert row["arrival_rate"] == pytest.approx(float(case.rates[i]))
                assert row["estimated_rate"] == pytest.approx(expected / case.window)
            elif strategy.name == "any":
                assert row["estimated_rate"] == pytest.approx(len(members) * expected / case.window)
            else:
                assert math.isnan(row["estimated_rate"])
        assert nodes["cost"].sum() == pytest.approx(float(cost), rel=1e-9)
        assert nodes["cost_share"].sum() == pytest.approx(1)
        assert found.plan.cost == pytest.approx(float(cost), rel=1e-9)
        if not alpha:
            steps = nodes["variables"] if chosen.kind == "tree" else nodes[nodes["step"] > 0]
            assert nodes.loc[steps.index, "cost"].tolist() == pytest.approx(
                nodes.loc[steps.index, "estimated"].tolist()
            )


@pytest.mark.parametrize("generator", default_generators())
@pytest.mark.parametrize("alpha", [0.0, 2.5])
@pytest.mark.parametrize("time_selectivity", ["adjacent", "exact"])
def test_every_generators_plan(generator, alpha, time_selectivity) -> None:
    pattern = parse(TEXT)
    made = plan(pattern, STATISTICS, generator, alpha=alpha, time_selectivity=time_selectivity)
    found = explain(pattern, made, STATISTICS, time_selectivity=time_selectivity)
    assert found.nodes["cost"].sum() == pytest.approx(made.cost)
    assert found.plan.tree == made.tree and found.plan.generator == generator
    assert not found.remarks
    assert made.describe().splitlines()[0].partition(", stopped")[0] in found.describe()


def test_branches_are_one_plan() -> None:
    pattern = parse("PATTERN OR(SEQ(A a, B b, C c), AND(B b, D d)) WITHIN 10 units")
    statistics = Statistics(cardinalities={"a": 2, "b": 3, "c": 4, "d": 50})
    for alpha in (0.0, 3.0):
        made = plan(pattern, statistics, "GREEDY", alpha=alpha, last="d")
        found = explain(pattern, made, statistics, last="d")
        assert isinstance(found.plan, UnionPlan) and found.plan.alpha == alpha
        assert found.nodes["branch"].tolist() == [0] * 5 + [1] * 3
        # Branches run side by side, so the latency of the slowest alone is part of the cost.
        assert found.nodes["cost"].sum() == pytest.approx(made.cost)
        assert not found.remarks
        described = found.describe()
        assert described.index("branch 0") < described.index("branch 1")


def test_only_the_slowest_branch_adds_latency_to_the_cost() -> None:
    pattern = parse("PATTERN OR(SEQ(A a, B b, C c), AND(B b, D d)) WITHIN 10 units")
    statistics = Statistics(cardinalities={"a": 2, "b": 3, "c": 4, "d": 50})
    chosen = UnionPlan([OrderPlan(["c", "a", "b"]), OrderPlan(["d", "b"])])
    found = explain(pattern, chosen, statistics, alpha=10.0, last="d")
    # c: 4; c, a: 4 · 2; c, a, b: 4 · 2 · 3 / 4. After c come a and b, 5 in all; after d comes b, 3.
    costs = found.nodes.set_index(["branch", "variables"])["cost"]
    assert costs.loc[0].to_dict() == pytest.approx(
        {"c": 4, "a": 20, "c, a": 8, "b": 30, "c, a, b": 6}
    )
    assert costs.loc[1].to_dict() == pytest.approx({"d": 50, "b": 0, "d, b": 150})
    assert found.plan.cost == pytest.approx(costs.sum()) == pytest.approx(268)


def test_a_plan_made_for_other_numbers_says_so() -> None:
    pattern = parse(TEXT)
    made = plan(pattern, STATISTICS, "DP-B")
    other = Statistics(cardinalities={"a": 1, "b": 4, "c": 2})
    found = explain(pattern, made, other)
    assert found.nodes["cost"].sum() == pytest.approx(found.plan.cost) != pytest.approx(made.cost)
    (remark,) = found.remarks
    assert f"made for a cost of {made.cost:.4g}" in remark and remark in found.describe()
    assert found.plan.gap is None  # it was the best by the other numbers


def test_sets_too_large_for_a_float() -> None:
    pattern = parse("PATTERN SEQ(A a, KL(B b)) WITHIN 10 units")
    statistics = Statistics(cardinalities={"a": 2, "b": 5_000})
    found = explain(pattern, TreePlan(("a", "b")), statistics)
    sets = found.nodes.iloc[1]
    assert sets["estimated"] == math.inf
    assert sets["log_estimated"] == pytest.approx(5_000 * math.log(2))
    assert found.nodes["cost_share"].sum() == pytest.approx(1)
    assert "10^1505.1" in found.describe() and "10^1505.1" in found._repr_html_()
    assert math.isnan(sets["estimated_rate"]) and sets["arrival_rate"] == pytest.approx(500)


def test_what_has_no_estimate_says_so() -> None:
    pattern = parse("PATTERN SEQ(A a, AND(B b, C c)) WITHIN 20 units")
    stream = stream_of(steady_events(200))
    chosen = OrderPlan(["c", "a", "b"])
    for its_stream in (None, stream):
        found = explain(pattern, chosen, STATISTICS, its_stream, time_selectivity="exact")
        assert found.nodes[["estimated", "cost", "estimated_rate"]].isna().all(axis=None)
        assert found.nodes["arrival_rate"].notna().sum() == 3
        assert found.plan.cost is None
        assert "No estimates: " in found.describe() and "nests" in found.describe()
        assert "No estimates: " in found._repr_html_()
    assert found.nodes["q_error"].isna().all()
    assert found.nodes["created"].iloc[-1] == found.metrics.matches > 0


def test_negated_variables_are_checks() -> None:
    pattern = parse(
        "PATTERN SEQ(A a, NOT(D n), B b, C c, NOT(E m)) WHERE n.x > a.x AND m.x > c.x WITHIN 20 units"
    )
    statistics = Statistics(cardinalities={"a": 2, "b": 3, "c": 4, "n": 5})
    found = explain(pattern, TreePlan((("b", "a"), "c")), statistics)
    negated = found.nodes.iloc[5:]
    assert negated["kind"].tolist() == ["negated"] * 2
    assert negated["variables"].tolist() == ["n", "m"]
    # n is between a and b; m may come until the window of the first event ends.
    assert found.nodes.loc[negated["parent"], "variables"].tolist() == ["b, a", "b, a, c"]
    assert negated["arrival_rate"].tolist() == pytest.approx([0.25, math.nan], nan_ok=True)
    assert negated[["estimated", "cost"]].isna().all(axis=None)
    assert found.nodes["cost"].sum() == pytest.approx(found.plan.cost)
    assert "n: no D" in found.describe() and ">no m<" in found._repr_html_()


# Measurements


def lives(case: Case, names: list[str]) -> tuple[int, float]:
    """How many partial matches there are over some variables, and the sum of their lives."""
    times = case.events["time"].to_numpy()
    part = part_of(case.pattern, set(names))
    matches = naive_matches(part, case.events)
    spans = [times[list(match)].max() - times[list(match)].min() for match in matches]
    return len(matches), float(sum(case.pattern.window.length - span for span in spans))


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", PLANNED)
@given(data=st.data())
@examples(4)
def test_measured_against_counting(evaluator: str, data: st.DataObject) -> None:
    case = data.draw(cases(sizes=(1, 4)))
    chosen = data.draw(plans_for(evaluator, case.pattern.names))
    statistics = data.draw(statistics_for(case))
    found = explain(case.pattern, chosen, statistics, case.stream, evaluator=evaluator)
    ticks = 10**9 if case.pattern.window.is_datetime else 1
    window = case.pattern.window.seconds
    active = max(active_time(case.pattern, case.stream), window)
    for row in found.nodes.to_dict("records"):
        created, life = lives(case, variables(row))
        assert row["created"] == created
        k = len(variables(row))
        if not active:
            assert math.isnan(row["measured"])
        elif row["parent"] >= 0 or k == 1:
            # Of a window of length 0 a row lives for the moment of its events.
            total = life / ticks if window else created
            assert row["measured"] == pytest.approx(total / active)
            least = (window or 1.0) / k / active
            expected = q_error(row["estimated"], row["measured"], least)
            assert row["q_error"] == pytest.approx(float(expected)) or row["parent"] < 0
        else:
            assert math.isnan(row["measured"])
        if row["parent"] < 0 and active and window:
            expected = q_error(k * row["estimated"] * active / window, created, 1)
            assert row["q_error"] == pytest.approx(float(expected))
    metrics = found.metrics
    assert metrics.matches == len(naive_matches(case.pattern, case.events))
    assert found.nodes["created"].iloc[-1] == metrics.matches
    inner = found.nodes[(found.nodes["kind"] == "join") & (found.nodes["parent"] >= 0)]
    assert inner["created"].sum() == metrics.partial_matches_created
    assert found.nodes["comparisons"].sum() == metrics.comparisons
    assert found.nodes["time_share"].sum() == pytest.approx(1) or not found.nodes["seconds"].any()


@pytest.mark.kernel
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@examples(3)
def test_every_construct(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES[family]))
    evaluator = data.draw(st.sampled_from([e for e in able(case.pattern) if e in PLANNED]))
    chosen = data.draw(branch_plans(evaluator, case.pattern))
    statistics = data.draw(statistics_for(case))
    found = explain(case.pattern, chosen, statistics, case.stream, evaluator=evaluator)
    nodes, metrics = found.nodes, found.metrics
    matches = labelled_matches(case.pattern, case.events)
    assert metrics.matches == len(matches)
    assert nodes["comparisons"].sum() == metrics.comparisons
    assert nodes["log_cost"].max() <= found.plan.log_cost + 1e-9
    assert np.logaddexp.reduce(nodes["log_cost"].dropna()) == pytest.approx(found.plan.log_cost)
    for number, (branch, part) in enumerate(
        zip(case.pattern.branches(), chosen.parts, strict=True)
    ):
        its = nodes[nodes["branch"] == number].set_index("node")
        size = 2 * len(part.names) - 1
        assert its["variables"].tolist()[size:] == [v.name for v in branch.negated]
        assert {*variables(its.loc[size - 1])} == {*part.names}
        root = its.index[its["parent"] < 0]
        assert root.tolist() == [size - 1]
        for variable in branch.variables:
            (row,) = its[its["variables"] == variable.name].to_dict("records")
            if row["parent"] >= 0 and variable.kind is not Kind.KLEENE:
                assert row["created"] == arrived(case, branch, variable)
                assert its.loc[row["parent"], "kind"] == "join" or size == 1
        if len(chosen.parts) == 1:
            assert its.loc[size - 1, "created"] == metrics.matches
    assert_shown(found)


@pytest.mark.kernel
@given(data=st.data())
@examples(5)
def test_sets_of_events_against_counting(data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES["nested Kleene"], sizes=(2, 4)))
    evaluator = data.draw(st.sampled_from([e for e in able(case.pattern) if e in PLANNED]))
    chosen = data.draw(branch_plans(evaluator, case.pattern))
    statistics = data.draw(statistics_for(case))
    found = explain(case.pattern, chosen, statistics, case.stream, evaluator=evaluator)
    times = case.events["time"].to_numpy()
    window = case.pattern.window
    ticks = 10**9 if window.is_datetime else 1
    active = max(active_time(case.pattern, case.stream), window.seconds)
    for row in found.nodes.to_dict("records"):
        if row["kind"] != "join":
            continue
        matches = naive_matches(restricted(case.pattern, variables(row)), case.events)
        assert row["created"] == len(matches)
        if row["parent"] >= 0 and active:
            bound = [np.hstack([times[np.array(p)] for p in match]) for match in matches]
            life = sum(window.length - int(its.max() - its.min()) for its in bound)
            # In the order of arrival it is known to half a unit of time a row.
            known = 0.5 * len(matches) + 1 if case.pattern.order == "arrival" else 0.0
            assert row["measured"] * ticks * active == pytest.approx(life, rel=1e-6, abs=known)
        assert (
            math.isnan(row["estimated_created"])
            == any(
                v.kind is Kind.KLEENE and v.name in variables(row) for v in case.pattern.variables
            )
            or not window.length
        )


def arrived(case: Case, branch: Pattern, variable: Variable) -> int:
    """Events that a variable may be bound to, whatever the others are bound to."""
    alone = [c for c in branch.conditions if {*c.variables} == {variable.name}]
    return sum(
        variable.type in (None, row["type"])
        and all(clause_true(c, {variable.name: row}) for c in alone)
        for row in case.events.to_dict("records")
    )


def assert_shown(found: Explanation) -> None:
    described = found.describe()
    assert all(len(line) <= 100 for line in described.splitlines())
    assert "nan" not in described and "inf" not in described.replace("∞", "")
    for row in found.nodes.to_dict("records"):
        assert row["variables"] in described
    assert "nan" not in found._repr_html_()


def test_the_node_that_the_estimate_is_worst_at_is_named() -> None:
    rng = np.random.default_rng(3)
    events = steady_events(3_000).assign(x=rng.normal(size=3_000))
    stream = stream_of(events)
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x WITHIN 30 units")
    right = measure_statistics(pattern, stream)
    chosen = TreePlan((("a", "b"), "c"))
    good = explain(pattern, chosen, right, stream)
    assert "No estimate is off by more than a factor of 1." in good.describe()
    assert "!" not in good.describe().split("\n\n")[0]
    wrong = replace(right, selectivities={("a", "b"): 0.01})
    bad = explain(pattern, chosen, wrong, stream)
    worst = bad.nodes.loc[bad.nodes["variables"] == "a, b"].iloc[0]
    assert worst["q_error"] > 40
    assert "worst estimate is at" in bad.describe() and "times too low" in bad.describe()
    line = next(line for line in bad.describe().splitlines() if line.startswith("├ a, b"))
    assert f"×{worst['q_error']:.3g}!!" in line
    high = explain(
        pattern, chosen, replace(right, rates={**right.rates, "c": 50 * right.rates["c"]}), stream
    )
    assert "times too high" in high.describe() and "÷" in high.describe()


def test_the_node_that_took_most_time_is_named() -> None:
    # Which one it is only a clock knows.
    stream = stream_of(steady_events(2_000))
    pattern = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x WITHIN 40 units")
    found = explain(
        pattern, TreePlan((("a", "b"), "c")), measure_statistics(pattern, stream), stream
    )
    assert found.nodes["time_share"].sum() == pytest.approx(1)
    assert 0 < found.nodes["seconds"].sum() <= found.metrics.seconds
    slowest = found.nodes.loc[found.nodes["seconds"].idxmax()]
    (told,) = [line for line in found.sentences() if "Most time" in line]
    assert f"({slowest['variables']})" in told
    assert f"{100 * slowest['time_share']:.0f} % of the" in told
    assert found.describe().splitlines()[2].rstrip().endswith("time")


def test_pauses_are_no_time_in_which_events_could_arrive() -> None:
    """Nights between trading days; rates do not count them, so measurements must not either."""
    day = steady_events(2_000)
    days = pd.concat([day.assign(time=day["time"] + 10**7 * k) for k in range(3)])
    stream = stream_of(days.reset_index(drop=True))
    pattern = parse("PATTERN AND(A a, B b, C c) WITHIN 30 units")
    found = explain(
        pattern, OrderPlan(["a", "b", "c"]), measure_statistics(pattern, stream), stream
    )
    assert found.nodes["q_error"].max() < 1.2
    assert len(found.nodes["q_error"].dropna()) == 5


def test_an_empty_stream() -> None:
    pattern = parse(TEXT)
    empty = stream_of(steady_events(10).iloc[:0])
    found = explain(pattern, OrderPlan(["a", "b", "c"]), STATISTICS, empty)
    assert found.metrics.matches == 0 and found.nodes["created"].eq(0).all()
    assert_shown(found)


def test_a_chain_of_joins_in_either_evaluator() -> None:
    pattern = parse(TEXT)
    stream = stream_of(steady_events(500))
    # Written with its deeper side on the right; the automaton takes it as an order.
    chosen = TreePlan(("b", ("c", "a")))
    counts = [
        explain(pattern, chosen, STATISTICS, stream, evaluator=evaluator).nodes
        for evaluator in PLANNED
    ]
    assert counts[0]["variables"].tolist() == ["b", "c", "a", "c, a", "b, c, a"]
    assert counts[0]["created"].tolist() == counts[1]["created"].tolist()


# Errors


def test_what_does_not_fit_is_refused() -> None:
    pattern = parse(TEXT)
    stream = stream_of(steady_events(50))
    with pytest.raises(PlanError, match="lacks variable 'c'"):
        explain(pattern, OrderPlan(["a", "b"]), STATISTICS)
    with pytest.raises(PlanError, match="variable 'z' that the pattern has not"):
        explain(pattern, TreePlan((("a", "b"), ("c", "z"))), STATISTICS)
    with pytest.raises(PlanError, match="1 branches and the plan 2"):
        explain(pattern, UnionPlan([OrderPlan(["a", "b", "c"])] * 2), STATISTICS)
    with pytest.raises(PlanError, match=r"not a list; write cep\.OrderPlan\(\['a', 'b', 'c'\]\)"):
        explain(pattern, ["a", "b", "c"], STATISTICS)
    chosen = OrderPlan(["a", "b", "c"])
    with pytest.raises(StatisticsError, match="no rate or cardinality for variable 'c'"):
        explain(pattern, chosen, Statistics(cardinalities={"a": 1, "b": 2}))
    with pytest.raises(
        StatisticsError, match="time_selectivity is one of adjacent, exact, not 'typo'"
    ):
        explain(pattern, chosen, STATISTICS, time_selectivity="typo")
    loose = parse("PATTERN AND(A a, B b) WITHIN 5 units")
    with pytest.raises(StatisticsError, match="last"):
        explain(loose, OrderPlan(["a", "b"]), STATISTICS, alpha=1.0)
    other = parse("PATTERN SEQ(A a, Z z) WITHIN 5 units")
    counts = Statistics(cardinalities={"a": 1, "z": 1})
    with pytest.raises(StreamError, match=r"no event of type 'Z'"):
        explain(other, OrderPlan(["a", "z"]), counts, stream, missing_types="error")
    with pytest.raises(EvaluationError, match="no evaluator 'lazy'"):
        explain(pattern, chosen, STATISTICS, evaluator="lazy")
    bushy = parse("PATTERN AND(A a, B b, C c, D d) WITHIN 5 units")
    four = Statistics(cardinalities=dict.fromkeys("abcd", 1.0))
    with pytest.raises(EvaluationError, match='use evaluator="tree"'):
        explain(bushy, TreePlan((("a", "b"), ("c", "d"))), four, evaluator="lazy-nfa")


def test_operators_are_all_tried() -> None:
    """The families above are every construct but groups, which are refused by name."""
    assert {operator for family in FAMILIES.values() for operator in family.operators} == {
        *Operator
    }
    assert {kind for family in FAMILIES.values() for kind in family.kinds} == {*Kind} - {Kind.GROUP}
