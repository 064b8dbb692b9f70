"""DPCCP against all trees without cross products, and what it refuses."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.dpccp import _place, _slots, count_pairs, count_sets, list_sets
from cepbench.planning.planners import dpccp as dpccp_module
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.goo import smallest_joins
from cepbench.planning.planners.predicate_graph import adjacency, components
from tests.budgets import crossed, only_compiled
from tests.naive import plans as naive
from tests.planning_cases import ALPHAS, STRATEGIES, Case, ln, modelled, random_case

pytestmark = pytest.mark.kernel

Pairs = list[tuple[int, int]]


def chain(n: int) -> Pairs:
    return [(i, i + 1) for i in range(n - 1)]


def cycle(n: int) -> Pairs:
    return chain(n) + ([(0, n - 1)] if n > 2 else [])


def star(n: int) -> Pairs:
    middle = n // 2
    return [(min(i, middle), max(i, middle)) for i in range(n) if i != middle]


def clique(n: int) -> Pairs:
    return list(itertools.combinations(range(n), 2))


def any_graph(n: int, seed: int = 0) -> Pairs:
    """Connected, over variables in any order, with as many conditions as chance wants."""
    rng = np.random.default_rng([n, seed])
    names, density = rng.permutation(n), rng.random()
    tree = {tuple(sorted((int(names[rng.integers(j)]), int(names[j])))) for j in range(1, n)}
    return sorted(tree | {pair for pair in clique(n) if rng.random() < density})


SHAPES = [chain, cycle, star, clique, any_graph]


def case_of(pairs: Pairs, n: int, seed: int = 0, operator: str = "AND", **about) -> Case:
    """Random rates and filters, and conditions over these pairs alone."""
    case = random_case(seed, n, operator, **about)
    rng = np.random.default_rng([n, seed, 1])
    rows = [[Fraction(1)] * n for _ in range(n)]
    for i in range(n):
        rows[i][i] = case.selectivities[i][i]
    for i, j in pairs:
        rows[i][j] = rows[j][i] = Fraction(float(np.float32(10 ** rng.uniform(-3, -0.01))))
    return dataclasses.replace(case, selectivities=tuple(map(tuple, rows)))


def connected_trees(case: Case) -> list:
    found = case.problem.log_selectivity
    return naive.connected_trees(list(range(case.n)), lambda i, j: found[i, j] != 0)


def joins_of(tree):
    """The indices below both halves of each inner node of a tree of names."""
    if isinstance(tree, str):
        return
    yield tuple([int(name[1:]) for name in naive.leaves_of(half)] for half in tree)
    for half in tree:
        yield from joins_of(half)


def assert_best_without_cross_products(case: Case) -> None:
    made = plan_problem(case.problem, "DPCCP")
    least = min(case.tree_cost(tree) for tree in connected_trees(case))
    assert ln(case.tree_cost(made.tree)) == pytest.approx(ln(least), rel=1e-13, abs=1e-9)
    assert made.log_cost == pytest.approx(ln(least), rel=1e-12, abs=1e-9)
    # Proven over its own space, in which it is.
    assert made.complete and made.log_bound == made.log_cost
    for left, right in joins_of(made.tree):
        assert case.problem.log_selectivity[np.ix_(left, right)].any()
        assert min(left) < min(right)


@pytest.mark.parametrize("of_shape", SHAPES)
@pytest.mark.parametrize("n", range(1, 8))
def test_the_best_tree_without_cross_products(of_shape, n, seeds) -> None:
    for seed in seeds(4 if n < 7 else 1):
        assert_best_without_cross_products(case_of(of_shape(n), n, seed).in_floats())


@only_compiled
@pytest.mark.parametrize("of_shape", [chain, cycle, star])
def test_the_same_over_eight_variables(of_shape) -> None:
    assert_best_without_cross_products(case_of(of_shape(8), 8).in_floats())


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
def test_any_graph_and_rates_over_many_powers_of_ten(seed, n) -> None:
    assert_best_without_cross_products(case_of(any_graph(n, seed), n, seed, powers=(-12, 12)))


@pytest.mark.seeded
@pytest.mark.parametrize(
    ("operator", "strategy", "alpha"),
    crossed(["AND", "SEQ"], STRATEGIES, ALPHAS),
    ids=lambda one: float(one) if isinstance(one, Fraction) else getattr(one, "name", one),
)
def test_every_cost_model(operator, strategy, alpha) -> None:
    for n in range(1, 7):
        case = case_of(any_graph(n, n), n, n, operator).in_floats()
        assert_best_without_cross_products(modelled(case, strategy, alpha))


@pytest.mark.parametrize("alpha", ALPHAS[:2], ids=float)
def test_the_exact_order_in_time(alpha) -> None:
    for n in range(1, 7):
        case = case_of(any_graph(n, n), n, n, "SEQ", time_selectivity="exact").in_floats()
        assert_best_without_cross_products(modelled(case, STRATEGIES[0], alpha))


@pytest.mark.parametrize("alpha", ALPHAS[:2], ids=float)
def test_kleene_sets_without_end(alpha) -> None:
    # Far beyond plain numbers, scaled or not.
    for expected in (3, 900, 20_000):
        case = case_of(any_graph(5, 1), 5)
        rates = list(case.rates)
        rates[1] = rates[4] = Fraction(expected, case.window)
        case = dataclasses.replace(case, rates=tuple(rates), kleene=frozenset({1, 4}))
        assert_best_without_cross_products(modelled(case, STRATEGIES[0], alpha))


@pytest.mark.parametrize("of_shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_connected_sets_and_their_pairs_are_listed_once(of_shape, n) -> None:
    case = modelled(case_of(of_shape(n), n, 3), STRATEGIES[1], Fraction(0))
    problem = case.problem
    adjacent = adjacency(problem)
    neighbours = adjacent @ (1 << np.arange(n, dtype=np.int64))
    subsets = [list(one) for k in range(1, n + 1) for one in itertools.combinations(range(n), k)]
    connected = {
        sum(1 << i for i in one): one
        for one in subsets
        if len(components(adjacent[np.ix_(one, one)])) == 1
    }
    assert count_sets(neighbours, 10_000) == len(connected)
    sets, sizes = list_sets(neighbours, problem.terms, len(connected))
    assert sorted(sets.tolist()) == sorted(connected)
    place = {mask: k for k, mask in enumerate(sets.tolist())}
    for mask, size in zip(sets.tolist(), sizes, strict=True):
        assert size == pytest.approx(problem.log_partial_matches(connected[mask]), abs=1e-9)
        for other in place:
            if other & mask == other and other & -other >= mask & -mask:
                assert place[other] <= place[mask]
    pairs = [
        (a, b)
        for a, b in itertools.combinations(connected, 2)
        if not a & b and adjacent[np.ix_(connected[a], connected[b])].any()
    ]
    assert count_pairs(neighbours, sets, 10_000) == len(pairs)
    if pairs:
        assert count_pairs(neighbours, sets, len(pairs) - 1) >= len(pairs)
        assert len(pairs) == plan_problem_steps(problem)


def plan_problem_steps(problem: CostedProblem) -> int | None:
    return dpccp_module.dpccp(problem, np.random.default_rng(0), Budget()).steps


@pytest.mark.parametrize("n", [4, 16, 25, 62])
def test_every_set_is_found_where_it_was_put(n) -> None:
    rng = np.random.default_rng(n)
    sets = np.unique(rng.integers(1, 1 << n, size=500))
    slots, spread, shift = _slots(sets, n)
    assert len(slots) == (1 << n if n <= 24 else 1024)
    for place, mask in enumerate(sets):
        assert _place(mask, sets, slots, spread, shift) == place


def test_chains_as_long_as_masks_are_wide() -> None:
    # The trees of a chain without cross products are those of ZSTREAM, and so are few cycles'.
    case = case_of(chain(62), 62)
    made = plan_problem(case.problem, "DPCCP")
    assert made.log_cost == pytest.approx(plan_problem(case.problem, "ZSTREAM").log_cost, abs=1e-9)
    ring = case_of(cycle(40), 40).problem
    assert plan_problem(ring, "DPCCP").log_cost <= plan_problem(ring, "ZSTREAM").log_cost + 1e-9


def test_more_variables_than_bits_are_refused() -> None:
    with pytest.raises(PlanningRefusedError, match="DPCCP takes at most 62 variables"):
        plan_problem(case_of(chain(63), 63).problem, "DPCCP")


def test_parts_without_conditions_between_them_are_refused() -> None:
    case = case_of([(0, 2), (1, 3)], 4)
    with pytest.raises(PlanningRefusedError, match=r"connect v0 with v1: .* into 2 parts; choose"):
        plan_problem(case.problem, "DPCCP")


def test_too_many_connected_sets_are_refused(monkeypatch) -> None:
    # As many of more than one variable as there are subsets of the others, in a star.
    monkeypatch.setattr(dpccp_module, "MOST_SETS", 2**9 + 9)
    assert plan_problem(case_of(star(10), 10).problem, "DPCCP").complete
    for n in (11, 62):
        with pytest.raises(PlanningRefusedError, match="takes at most 521 connected sets"):
            plan_problem(case_of(star(n), n).problem, "DPCCP")


def test_too_many_pairs_need_a_budget(monkeypatch) -> None:
    monkeypatch.setattr(dpccp_module, "MOST_PAIRS", 1000)
    # (3^7 − 2^8 + 1) / 2 = 966 and (3^8 − 2^9 + 1) / 2 = 3025 pairs.
    assert plan_problem(case_of(clique(7), 7).problem, "DPCCP").complete
    problem = case_of(clique(8), 8).problem
    with pytest.raises(PlanningRefusedError, match="without a budget takes at most 1,000 pairs"):
        plan_problem(problem, "DPCCP")
    assert plan_problem(problem, "DPCCP", budget=Budget(steps=3025)).complete


@pytest.mark.parametrize("of_shape", [chain, star, clique])
@pytest.mark.parametrize("strategy", STRATEGIES[:2], ids=lambda one: one.name)
def test_ended_by_its_budget_it_joins_greedily_and_says_so(of_shape, strategy) -> None:
    problem = modelled(case_of(of_shape(6), 6), strategy, Fraction(1)).problem
    best = plan_problem(problem, "DPCCP")
    for budget in (Budget(steps=5), Budget(seconds=1e-9)):
        made = plan_problem(problem, "DPCCP", budget=budget)
        if made.complete:
            # The clock is not looked at before many pairs.
            assert budget.steps == float("inf") and made == best
            continue
        greedy = smallest_joins(problem, adjacency(problem))
        assert made.log_cost == pytest.approx(problem.log_tree_cost(greedy))
        assert made.log_bound <= best.log_cost <= made.log_cost + 1e-9


def test_parts_of_a_graph() -> None:
    adjacent = np.zeros((6, 6), dtype=bool)
    for i, j in [(0, 4), (4, 2), (3, 5)]:
        adjacent[i, j] = adjacent[j, i] = True
    assert components(adjacent) == [[0, 2, 4], [1], [3, 5]]
