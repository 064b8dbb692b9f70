"""Cost models in log space against the paper's formulas in exact fractions."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepbench.costs.models import COST_MODELS
from cepbench.costs.problem import SMALLEST, PlanningProblem
from cepbench.errors import PlanGeneratorError, StatisticsError, UnsupportedPatternError
from cepbench.patterns.model import Operator, Pattern, Structure, Variable, Window
from cepbench.statistics.model import Statistics
from tests.planning_cases import READINGS, Case, ln, random_case

readings = pytest.mark.parametrize(
    ("operator", "time_selectivity"), READINGS, ids=["AND", "SEQ-adjacent", "SEQ-exact"]
)


def random_tree(rng: np.random.Generator, members: list[int]):
    if len(members) == 1:
        return members[0]
    cut = int(rng.integers(1, len(members)))
    return (random_tree(rng, members[:cut]), random_tree(rng, members[cut:]))


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
@settings(deadline=None, max_examples=40)
def test_costs_equal_the_papers_formulas(operator, time_selectivity, seed, n) -> None:
    case = random_case(seed, n, operator, time_selectivity)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    tree = random_tree(rng, rng.permutation(n).tolist())
    problem = case.problem
    assert problem.log_order_cost(order) == pytest.approx(ln(case.order_cost(order)), abs=1e-10)
    assert problem.order_cost(order) == pytest.approx(float(case.order_cost(order)), rel=1e-10)
    assert problem.log_tree_cost(tree) == pytest.approx(ln(case.tree_cost(tree)), abs=1e-10)
    assert problem.tree_cost(tree) == pytest.approx(float(case.tree_cost(tree)), rel=1e-10)


@readings
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7))
@settings(deadline=None, max_examples=25)
def test_node_sizes_are_those_of_prefixes_and_of_nodes_in_post_order(
    operator, time_selectivity, seed, n
) -> None:
    case = random_case(seed, n, operator, time_selectivity)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    tree = random_tree(rng, order)
    sums = [case.order_cost(order[:k]) for k in range(n + 1)]
    prefixes = [ln(after - before) for before, after in itertools.pairwise(sums)]
    found = COST_MODELS["order-throughput"].log_node_sizes(case.problem, order)
    assert found == pytest.approx(prefixes, abs=1e-10)
    # Any set has one size, whatever the plan that reaches it.
    assert [case.problem.log_partial_matches(order[:k]) for k in range(1, n + 1)] == pytest.approx(
        prefixes, abs=1e-10
    )
    nodes = COST_MODELS["tree-throughput"].log_node_sizes(case.problem, tree)
    assert nodes == pytest.approx([ln(size) for size in case.tree_sizes(tree)], abs=1e-10)


def test_a_small_example_by_hand() -> None:
    # W = 10; a: 2, b: 1, c: 4 events per window; sel(a,c) = 1/4, filter on b = 1/2.
    pattern = Pattern(
        Structure(Operator.SEQ, tuple(Variable(name, name.upper()) for name in "abc")),
        (),
        Window(10, "seconds"),
    )
    statistics = Statistics(
        cardinalities={"a": 2, "b": 1, "c": 4}, selectivities={("c", "a"): 0.25, ("b", "b"): 0.5}
    )
    problem = PlanningProblem.from_pattern(pattern, statistics)
    # c: 4; c, a: 4·2/4 = 2 (not neighbours); c, a, b: 2 · 1/2 · 1/2 · 1/2 = 1/4.
    assert problem.order_cost([2, 0, 1]) == pytest.approx(4 + 2 + 0.25)
    # leaves 2 + 1/2 + 4, (a, b): 2 · 1/2 · 1/2 = 1/2, root: 1/4.
    assert problem.tree_cost(((0, 1), 2)) == pytest.approx(6.5 + 0.5 + 0.25)
    assert problem.rate(0) == pytest.approx(0.2)
    assert problem.cardinality(0) == pytest.approx(2)
    assert problem.selectivity(0, 1) == pytest.approx(0.5)
    assert problem.selectivity(0, 2) == pytest.approx(0.25)
    assert problem.selectivity(1, 1) == pytest.approx(0.5)
    assert problem.partial_matches([0, 2]) == pytest.approx(2)
    assert np.exp(problem.log_filtered) == pytest.approx([2, 0.5, 4])
    exact = PlanningProblem.from_pattern(pattern, statistics, "exact")
    # c: 4; c, a: 2 / 2!; all: 4 · 2 · 1 · 1/4 · 1/2 / 3!.
    assert exact.order_cost([2, 0, 1]) == pytest.approx(4 + 1 + 1 / 6)
    assert exact.selectivity(0, 1) == pytest.approx(1)


def test_trees_may_be_nested_lists() -> None:
    problem = random_case(1, 3).problem
    assert problem.log_tree_cost([[0, 2], 1]) == problem.log_tree_cost(((0, 2), 1))


def test_adjacent_and_exact_order_in_time() -> None:
    for n in (1, 2, 3, 4):
        case = random_case(3, n, "SEQ")
        exact = dataclasses.replace(case, time_selectivity="exact")
        order = list(range(n))
        # 1/2 for each of n - 1 neighbours against 1/n!.
        assert case.problem.log_partial_matches(order) - exact.problem.log_partial_matches(
            order
        ) == pytest.approx(math.lgamma(n + 1) - (n - 1) * math.log(2), abs=1e-10)
        conjunction = dataclasses.replace(case, operator="AND")
        both = dataclasses.replace(conjunction, time_selectivity="exact")
        assert both.problem.log_order_cost(order) == conjunction.problem.log_order_cost(order)


@given(rates=st.lists(st.floats(0, 1e200), min_size=1, max_size=12), seed=st.integers(0, 99))
@settings(deadline=None)
def test_costs_are_finite_in_log_space_at_any_rate(rates, seed) -> None:
    n = len(rates)
    base = random_case(seed, n)
    case = dataclasses.replace(base, rates=tuple(Fraction(rate) for rate in rates))
    problem = case.problem
    order = list(range(n))
    assert math.isfinite(problem.log_order_cost(order))
    if all(rate * case.window >= SMALLEST for rate in rates):
        assert problem.log_order_cost(order) == pytest.approx(ln(case.order_cost(order)), abs=1e-8)


def test_zero_rates_and_selectivities_count_as_the_smallest_float() -> None:
    zero = Case("AND", 1, (Fraction(0), Fraction(3)), ((Fraction(1),) * 2,) * 2)
    assert zero.problem.log_cardinality[0] == math.log(SMALLEST)
    never = Case(
        "AND",
        1,
        (Fraction(2), Fraction(3)),
        ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))),
    )
    assert never.problem.log_selectivity[0, 1] == math.log(SMALLEST)
    assert never.problem.order_cost([0, 1]) == pytest.approx(2)
    still = Case("AND", 0, (Fraction(2),), ((Fraction(1),),))
    assert still.problem.log_cardinality[0] == math.log(SMALLEST)
    assert math.isfinite(still.problem.log_rate(0))


def test_a_number_too_large_for_a_float_is_an_error_never_infinity() -> None:
    problem = PlanningProblem(("a", "b"), np.array([600.0, 900.0]), np.zeros((2, 2)))
    assert problem.cardinality(0) == pytest.approx(math.exp(600))
    for method, argument in (
        ("rate", 1),
        ("cardinality", 1),
        ("partial_matches", [0, 1]),
        ("order_cost", [0, 1]),
        ("tree_cost", (0, 1)),
    ):
        with pytest.raises(PlanGeneratorError, match=f"problem.log_{method}"):
            getattr(problem, method)(argument)
    assert problem.log_order_cost([0, 1]) == pytest.approx(1500)


@given(seed=st.integers(0, 999), n=st.integers(2, 6), factor=st.integers(2, 50))
@settings(deadline=None, max_examples=25)
def test_scaling_the_window_scales_every_prefix(seed, n, factor) -> None:
    case = random_case(seed, n, "SEQ")
    wider = dataclasses.replace(case, window=case.window * factor)
    order = list(range(n))
    sizes = COST_MODELS["order-throughput"].log_node_sizes
    grown = sizes(wider.problem, order) - sizes(case.problem, order)
    assert grown == pytest.approx(np.arange(1, n + 1) * math.log(factor), abs=1e-10)
    # With cardinalities given, the length of the window says nothing any more.
    fixed = Statistics(cardinalities=dict.fromkeys(case.names, 3.0))
    assert PlanningProblem.from_pattern(case.pattern, fixed).log_order_cost(
        order
    ) == PlanningProblem.from_pattern(wider.pattern, fixed).log_order_cost(order)


def test_an_unconditioned_variable_of_one_event_leaves_the_other_prefixes_alone() -> None:
    case = random_case(5, 4)
    rows = [[*row, Fraction(1)] for row in case.selectivities] + [[Fraction(1)] * 5]
    extra = dataclasses.replace(
        case, rates=(*case.rates, Fraction(1, 20)), selectivities=tuple(map(tuple, rows))
    )
    sizes = COST_MODELS["order-throughput"].log_node_sizes
    assert sizes(extra.problem, [0, 1, 2, 3, 4])[:4] == pytest.approx(
        sizes(case.problem, [0, 1, 2, 3])
    )
    assert sizes(extra.problem, [0, 1, 2, 3, 4])[4] == pytest.approx(
        sizes(case.problem, [0, 1, 2, 3])[3]
    )


def test_problems_that_make_no_sense_are_refused() -> None:
    one = np.zeros(1)
    with pytest.raises(StatisticsError, match="at least one"):
        PlanningProblem((), np.zeros(0), np.zeros((0, 0)))
    with pytest.raises(StatisticsError, match="log_cardinality has shape"):
        PlanningProblem(("a", "b"), one, np.zeros((2, 2)))
    with pytest.raises(StatisticsError, match="log_selectivity has shape"):
        PlanningProblem(("a",), one, np.zeros((2, 2)))
    with pytest.raises(StatisticsError, match="log_order_factor has shape"):
        PlanningProblem(("a",), one, np.zeros((1, 1)), np.zeros(5))
    for wrong in (math.inf, -math.inf, math.nan):
        with pytest.raises(StatisticsError, match="not finite"):
            PlanningProblem(("a",), np.array([wrong]), np.zeros((1, 1)))
    with pytest.raises(StatisticsError, match="not symmetric"):
        PlanningProblem(("a", "b"), np.zeros(2), np.array([[0.0, 1.0], [0.0, 0.0]]))
    case = random_case(0, 2)
    with pytest.raises(StatisticsError, match=r"'typo'.*adjacent, exact"):
        PlanningProblem.from_pattern(case.pattern, case.statistics, "typo")
    with pytest.raises(StatisticsError, match=r"no rate .*'v1'"):
        PlanningProblem.from_pattern(case.pattern, Statistics(rates={"v0": 1.0}))
    with pytest.raises(StatisticsError, match="too large for a float"):
        PlanningProblem.from_pattern(case.pattern, Statistics(rates={"v0": 1e308, "v1": 1}))
    three = random_case(0, 3)
    nested = Pattern(
        Structure(
            Operator.SEQ,
            (Variable("v0", "A"), Structure(Operator.AND, three.pattern.variables[1:])),
        ),
        (),
        Window(1, "units"),
    )
    with pytest.raises(UnsupportedPatternError, match="nests"):
        PlanningProblem.from_pattern(nested, three.statistics, "exact")


def test_a_problem_is_a_read_only_copy() -> None:
    cardinality = np.zeros(2)
    problem = PlanningProblem(("a", "b"), cardinality, np.zeros((2, 2)))
    cardinality[0] = 5
    assert problem.log_cardinality[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        problem.log_cardinality[0] = 1
