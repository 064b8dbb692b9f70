"""DP-B where exhaustive search cannot go: against the plain dynamic programming over all splits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.bench_planning import random_problem
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.subset_sizes import log_subset_sizes
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.generate import plan_problem
from tests.naive.plans import plain_bushy_cost


def plain_cost(problem: CostedProblem) -> float:
    sizes = np.exp(log_subset_sizes(problem.terms))
    return plain_bushy_cost(sizes, problem.n, problem.alpha, problem.terms.last)


def alike(n: int, rate: float, selectivity: float) -> CostedProblem:
    """All rates and selectivities equal, so that nothing can be left out."""
    log_selectivity = np.full((n, n), math.log(selectivity))
    np.fill_diagonal(log_selectivity, 0.0)
    names = tuple(f"v{i}" for i in range(n))
    return CostedProblem(names, np.full(n, math.log(rate)), log_selectivity)


@pytest.mark.parametrize("strategy", ["any", "consuming"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("n", [9, 12, 14])
def test_it_costs_what_the_plain_search_finds_to_twelve_digits(n, alpha, strategy, seeds) -> None:
    for seed in seeds(3 if n < 14 else 1):
        problem = random_problem(n, seed, strategy, alpha)
        made = plan_problem(problem, "DP-B")
        assert math.exp(made.log_cost) == pytest.approx(plain_cost(problem), rel=1e-12)


def test_it_does_from_a_start_that_flips_improved() -> None:
    problem = random_problem(19, 0)
    begun = plan_problem(problem, "DP-B", budget=Budget(steps=1))
    made = plan_problem(problem, "DP-B")
    assert begun.log_cost <= plan_problem(problem, "ZSTREAM-ORD").log_cost
    assert made.log_cost <= begun.log_cost and begun.log_bound <= made.log_cost
    assert begun.gap >= 0 and made.gap == 0


@pytest.mark.parametrize(("rate", "selectivity"), [(1.0, 1.0), (2.0, 0.5), (20.0, 0.5), (5.0, 0.9)])
def test_where_nothing_can_be_left_out_it_is_exact_too(rate, selectivity) -> None:
    problem = alike(12, rate, selectivity)
    made = plan_problem(problem, "DP-B")
    assert math.exp(made.log_cost) == pytest.approx(plain_cost(problem), rel=1e-12)


def test_most_splits_are_never_tried() -> None:
    problem = random_problem(16, 1)
    plain = 3**16 // 2
    for steps in (plain // 100, plain // 20):
        if plan_problem(problem, "DP-B", budget=Budget(steps=steps)).complete:
            return
    pytest.fail("more than a twentieth of all splits was tried")
