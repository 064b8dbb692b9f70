"""IKKBZ against all orders without cross products, and what it refuses."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.generate import plan, plan_problem
from cepbench.planning.planners.ikkbz import best_order
from tests.budgets import only_compiled
from tests.naive import plans as naive
from tests.planning_cases import STRATEGIES, Case, ln, modelled, random_case

pytestmark = pytest.mark.kernel


def with_conditions(case: Case, pairs: dict[tuple[int, int], Fraction]) -> Case:
    """The same filters, and conditions over these pairs of variables alone."""
    rows = [[Fraction(1)] * case.n for _ in range(case.n)]
    for i in range(case.n):
        rows[i][i] = case.selectivities[i][i]
    for (i, j), selectivity in pairs.items():
        rows[i][j] = rows[j][i] = selectivity
    return dataclasses.replace(case, selectivities=tuple(map(tuple, rows)))


def tree_case(seed: int, n: int, *, powers: tuple[float, float] = (-3, 1)) -> Case:
    """A conjunction whose conditions form a random tree."""
    rng = np.random.default_rng([seed, n, 1])
    names = rng.permutation(n).tolist()
    pairs = {
        (names[j], names[int(rng.integers(j))]): Fraction(
            float(np.float32(10 ** rng.uniform(-3, 0)))
        )
        for j in range(1, n)
    }
    return with_conditions(random_case(seed, n, powers=powers), pairs)


def chain_case(seed: int, n: int) -> Case:
    """A sequence in which only neighbours have conditions, the order in time among them."""
    rng = np.random.default_rng([seed, n, 2])
    pairs = {
        (i, i + 1): Fraction(float(np.float32(10 ** rng.uniform(-3, 0)))) for i in range(n - 1)
    }
    return with_conditions(random_case(seed, n, "SEQ"), pairs)


def star_case(seed: int, n: int) -> Case:
    """A conjunction in which one variable in the middle has a condition with each other one."""
    rng = np.random.default_rng([seed, n, 3])
    middle = n // 2
    pairs = {
        (i, middle): Fraction(float(np.float32(10 ** rng.uniform(-3, 0))))
        for i in range(n)
        if i != middle
    }
    return with_conditions(random_case(seed, n), pairs)


def assert_best_without_cross_products(case: Case) -> None:
    problem = case.problem
    made = plan_problem(problem, "IKKBZ")
    order = [problem.names.index(name) for name in made.order]
    space = naive.connected_orders(case.n, lambda i, j: problem.log_selectivity[i, j] != 0)
    assert order in space
    least = min(case.order_cost(one) for one in space)
    assert ln(case.order_cost(order)) == pytest.approx(ln(least), rel=1e-13, abs=1e-9)
    assert made.log_cost == pytest.approx(ln(least), rel=1e-12, abs=1e-9)
    # Proven over its own space.
    assert made.log_bound == made.log_cost


@pytest.mark.parametrize("of_shape", [tree_case, chain_case, star_case])
@pytest.mark.parametrize("n", range(1, 9))
def test_the_best_order_without_cross_products(of_shape, n, seeds) -> None:
    for seed in seeds(6 if n < 7 else 1):
        assert_best_without_cross_products(of_shape(seed, n).in_floats())


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
def test_rates_over_many_powers_of_ten(seed, n) -> None:
    assert_best_without_cross_products(tree_case(seed, n, powers=(-12, 12)))


@pytest.mark.parametrize("n", [4, 5, 6])
def test_ranks_above_a_half_where_most_variables_multiply(n, seeds) -> None:
    # Products grow along most orders, so that ranks lie between 1/2 and 1.
    for seed in seeds(20):
        rng = np.random.default_rng([seed, n, 4])
        edges = [(int(rng.integers(j)), j) for j in range(1, n)]
        pairs = np.zeros((n, n))
        for i, j in edges:
            pairs[i, j] = pairs[j, i] = rng.uniform(-2, 0)
        names = tuple(f"v{i}" for i in range(n))
        problem = CostedProblem(names, rng.uniform(0, 5, n), pairs)
        space = naive.connected_orders(n, lambda i, j, edges=edges: tuple(sorted((i, j))) in edges)
        least = min(problem.log_order_cost(order) for order in space)
        found = problem.log_order_cost(best_order(problem, edges))
        assert found == pytest.approx(least, rel=1e-12, abs=1e-9)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 6), data=st.data())
def test_ties_and_products_of_one(seed, n, data) -> None:
    # Numbers so few that sequences are often equally good, and often neither grow nor shrink.
    case = tree_case(seed, n)
    rates = data.draw(st.lists(st.sampled_from([1, 2, 4]), min_size=n, max_size=n))
    pairs = {
        (i, j): Fraction(1, data.draw(st.sampled_from([2, 4, 8])))
        for i in range(n)
        for j in range(i)
        if case.selectivities[i][j] != 1
    }
    case = with_conditions(case, pairs)
    rates = tuple(Fraction(rate, case.window) for rate in rates)
    assert_best_without_cross_products(dataclasses.replace(case, rates=rates))


@pytest.mark.parametrize("expected", [3, 900, 20_000])
def test_kleene_sets_without_end(expected, seeds) -> None:
    for seed in seeds(4):
        case = tree_case(seed, 6)
        rates = list(case.rates)
        rates[1] = rates[4] = Fraction(expected, case.window)
        rates[2] = Fraction(2 * expected, case.window)
        case = dataclasses.replace(case, rates=tuple(rates), kleene=frozenset({1, 2, 4}))
        assert_best_without_cross_products(case)


@only_compiled
def test_long_chains_and_trees_are_at_least_local_minima() -> None:
    # Exchanging two neighbours of the order, where the conditions allow it, gains nothing.
    for case in (tree_case(5, 120), chain_case(5, 120), star_case(5, 120)):
        problem = case.problem
        made = plan_problem(problem, "IKKBZ")
        order = [problem.names.index(name) for name in made.order]
        adjacent = problem.log_selectivity != 0
        for k in range(1, len(order)):
            assert adjacent[order[k], order[:k]].any()
        for k in range(1, len(order) - 1):
            swapped = [*order[:k], order[k + 1], order[k], *order[k + 2 :]]
            if adjacent[order[k + 1], order[:k]].any():
                assert problem.log_order_cost(swapped) >= made.log_cost - 1e-9


def test_the_order_along_a_chosen_tree_counts_its_edges_alone() -> None:
    whole = random_case(3, 7).problem
    edges = [(0, 3), (3, 1), (3, 6), (6, 2), (2, 4), (4, 5)]
    chosen = np.zeros((7, 7))
    for i, j in edges:
        chosen[i, j] = chosen[j, i] = whole.log_selectivity[i, j] - 0.5
    chosen[np.diag_indices(7)] = np.diagonal(whole.log_selectivity)
    alone = CostedProblem(whole.names, whole.log_cardinality, chosen)
    with_others = np.where(chosen == 0, -7.0, chosen)
    with_others[np.diag_indices(7)] = np.diagonal(chosen)
    others = CostedProblem(whole.names, whole.log_cardinality, with_others)
    order = best_order(others, edges)
    assert [whole.names[i] for i in order] == plan_problem(alone, "IKKBZ").order


def test_equally_good_variables_stand_as_they_were_written() -> None:
    star = with_conditions(
        Case("AND", 1, (Fraction(4),) * 6, ((Fraction(1),) * 6,) * 6),
        {(0, j): Fraction(1, 2) for j in range(1, 6)},
    )
    assert plan_problem(star.problem, "IKKBZ").order == list(star.names)


def test_a_cycle_is_refused_with_the_pair_that_closes_it() -> None:
    case = with_conditions(
        random_case(1, 4),
        {pair: Fraction(1, 3) for pair in [(0, 1), (1, 2), (2, 3), (1, 3)]},
    )
    with pytest.raises(PlanningRefusedError, match=r"between v2 and v3 closes one; choose DP-LD"):
        plan_problem(case.problem, "IKKBZ")


def test_parts_without_conditions_between_them_are_refused() -> None:
    case = with_conditions(random_case(1, 4), {(0, 2): Fraction(1, 3), (1, 3): Fraction(1, 3)})
    with pytest.raises(PlanningRefusedError, match=r"no conditions connect v0 with v1; choose"):
        plan_problem(case.problem, "IKKBZ")


@pytest.mark.parametrize("strategy", STRATEGIES[1:], ids=lambda one: one.name)
def test_strategies_that_use_events_up_are_refused(strategy) -> None:
    case = dataclasses.replace(chain_case(2, 4), strategy=strategy)
    with pytest.raises(PlanningRefusedError, match=f"under {strategy.name} the rarest"):
        plan_problem(case.problem, "IKKBZ")


def test_latency_and_the_exact_order_in_time_are_refused() -> None:
    case = chain_case(2, 4)
    with pytest.raises(PlanningRefusedError, match=r"alpha = 0\.5 adds latency; choose alpha = 0"):
        plan_problem(modelled(case, STRATEGIES[0], Fraction(1, 2)).problem, "IKKBZ")
    with pytest.raises(PlanningRefusedError, match='choose "adjacent"'):
        plan(case.pattern, case.statistics, "IKKBZ", time_selectivity="exact")


def test_the_order_in_time_alone_makes_a_chain_of_a_sequence() -> None:
    case = with_conditions(random_case(4, 5, "SEQ"), {})
    assert_best_without_cross_products(case)
    free = dataclasses.replace(case, operator="AND")
    with pytest.raises(PlanningRefusedError, match="no conditions connect"):
        plan_problem(free.problem, "IKKBZ")


def test_the_advice_takes_the_problem_itself() -> None:
    for size, advised in ((3, "choose DP-LD or IDP$"), (25, "choose IDP$")):
        pattern = cep.parse(
            f"PATTERN AND({', '.join(f'T{k} v{k}' for k in range(size))}) WITHIN 9 units"
        )
        rates = cep.Statistics(rates=dict.fromkeys(pattern.names, 1.0))
        with pytest.raises(PlanningRefusedError, match=advised):
            cep.plan(pattern, rates, "IKKBZ")
