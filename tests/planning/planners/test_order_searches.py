"""Searches over orders: budgets, what each never loses to, and blocks of dynamic programming."""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np
import pytest

from cepbench.planning.planners.budget import UNLIMITED, Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.iterative_dp import block_length, iterative_dp, sets_of_blocks
from cepbench.planning.planners.iterative_improvement import ii_greedy, ii_random
from cepbench.planning.planners.simulated_annealing import (
    annealed,
    log_allowances,
    simulated_annealing,
)
from cepbench.planning.planners.two_phase import two_phase
from tests.budgets import only_compiled
from tests.planning_cases import ALPHAS, READINGS, STRATEGIES, modelled, random_case

pytestmark = pytest.mark.kernel


def rng_of(seed: int = 3):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("search", [ii_random, ii_greedy])
def test_a_descent_takes_no_more_steps_than_it_may(search) -> None:
    problem = random_case(2, 12, "SEQ").problem
    costs = []
    whole = search(problem, rng_of(), Budget())
    assert whole.complete and whole.steps > 500
    for steps in (1, 40, 200, whole.steps - 1):
        found = search(problem, rng_of(), Budget(steps=steps))
        assert found.steps == steps and not found.complete
        assert sorted(found.plan) == list(range(12))
        costs.append(problem.log_order_cost(found.plan))
    # The same moves as without a budget, so each goes on where the shorter one ended.
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] >= problem.log_order_cost(whole.plan) - 1e-9


def test_ii_random_starts_again_while_steps_are_left() -> None:
    problem = random_case(4, 10, powers=(-1, 1)).problem
    once = ii_random(problem, rng_of(), Budget())
    more = ii_random(problem, rng_of(), Budget(steps=20 * once.steps))
    assert more.steps == 20 * once.steps and not more.complete
    # Its first descent is the one without a budget.
    assert problem.log_order_cost(more.plan) <= problem.log_order_cost(once.plan)
    best = plan_problem(problem, "DP-LD").log_cost
    assert problem.log_order_cost(more.plan) == pytest.approx(best, abs=1e-9)


def test_ii_greedy_has_one_start() -> None:
    problem = random_case(4, 10).problem
    once, more = (ii_greedy(problem, rng_of(), Budget(steps=s)) for s in (10**6, 10**7))
    assert once == more and once.complete


def test_one_variable_takes_no_time() -> None:
    problem = random_case(4, 1).problem
    assert plan_problem(problem, "II-RANDOM", budget=60).order == ["v0"]


@pytest.mark.parametrize("n", [2, 7])
def test_seconds_are_kept(n) -> None:
    problem = random_case(4, n).problem
    plan_problem(problem, "II-RANDOM")
    before = time.perf_counter()
    made = plan_problem(problem, "II-RANDOM", budget=0.2)
    assert 0.2 <= time.perf_counter() - before < 2
    assert not made.complete
    assert made.log_cost <= plan_problem(problem, "II-RANDOM").log_cost + 1e-12


@only_compiled
@pytest.mark.parametrize("search", [simulated_annealing, two_phase])
def test_annealing_keeps_to_its_steps_and_never_loses_to_its_start(search) -> None:
    problem = random_case(7, 8, "SEQ", powers=(-1, 1)).problem
    start = plan_problem(problem, "GREEDY").log_cost
    whole = search(problem, rng_of(), Budget())
    assert whole.complete
    for steps in (1, 150, 1000, whole.steps - 1):
        found = search(problem, rng_of(), Budget(steps=steps))
        assert found.steps == steps and not found.complete
        assert sorted(found.plan) == list(range(8))
        assert problem.log_order_cost(found.plan) <= start + 1e-12
    best = plan_problem(problem, "DP-LD").log_cost
    assert problem.log_order_cost(whole.plan) == pytest.approx(best, abs=1e-9)


def test_annealing_goes_uphill_out_of_a_local_minimum() -> None:
    problem = random_case(56, 8, powers=(-1, 1)).problem
    minimum = ii_random(problem, rng_of(), Budget()).plan
    best = plan_problem(problem, "DP-LD").log_cost
    assert problem.log_order_cost(minimum) > best + 1e-6
    found = annealed(problem, np.array(minimum), 2.0, rng_of(), UNLIMITED, UNLIMITED)
    assert problem.log_order_cost(found.plan) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("search", [simulated_annealing, two_phase, iterative_dp])
def test_no_seconds_left(search) -> None:
    problem = random_case(7, 60, "SEQ").problem
    start = plan_problem(problem, "GREEDY").log_cost
    found = search(problem, rng_of(), Budget(seconds=1e-9))
    assert not found.complete
    assert problem.log_order_cost(found.plan) <= start + 1e-12


@pytest.mark.parametrize(("operator", "time_selectivity"), READINGS)
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_each_block_is_the_cheapest_next_one(operator, time_selectivity, n) -> None:
    for length in {block_length(n, sets_of_blocks(n, k)) for k in range(1, n + 1)}:
        for strategy in STRATEGIES:
            for alpha in ALPHAS[:2]:
                case = modelled(
                    random_case(n, n, operator, time_selectivity).in_floats(), strategy, alpha
                )
                problem = case.problem
                found = iterative_dp(problem, rng_of(), Budget(steps=sets_of_blocks(n, length)))
                assert found.steps == sets_of_blocks(n, length)
                # Block by block, for equally good blocks need not lead to equal costs.
                for begin in range(0, n, length):
                    prefix, left = found.plan[:begin], found.plan[begin:]
                    blocks = itertools.permutations(left, min(length, len(left)))
                    least = min(case.order_cost([*prefix, *block]) for block in blocks)
                    cost = case.order_cost(found.plan[: begin + length])
                    assert cost == pytest.approx(least, rel=1e-9)
                assert (found.log_bound is None) == (length < n)


def test_blocks_are_as_long_as_their_sets_allow() -> None:
    for n in (1, 4, 9, 30):
        for most in (1, 50, 1000, 10**6):
            length = block_length(n, most)
            assert length == 1 or sets_of_blocks(n, length) <= most
            assert all(sets_of_blocks(n, k) > most for k in range(length + 1, n + 1))
    assert sets_of_blocks(4, 2) == (4 + 6) + (2 + 1)
    assert [block_length(n, 1 << 22) for n in (20, 50, 100, 200)] == [20, 4, 3, 2]


def test_annealing_goes_uphill_less_the_colder_it_is() -> None:
    # One that adds the part x is taken with a probability of exp(-x / temperature).
    chances = (np.arange(10_000) + 0.5) / 10_000
    for temperature in (2.0, 0.3, 0.01):
        most = np.exp(log_allowances(temperature, chances))
        assert np.exp(-most / temperature) == pytest.approx(chances, rel=1e-9)
        for part in (0.001, 0.1, 1.0):
            taken = (part <= most).mean()
            assert taken == pytest.approx(np.exp(-part / temperature), abs=2e-4)
    assert np.isfinite(log_allowances(1.0, np.zeros(1))).all()


def test_the_second_phase_begins_at_the_best_minimum_and_lukewarm(monkeypatch) -> None:
    problem = random_case(56, 8, powers=(-1, 1)).problem
    begun = []

    def spied(problem, start, temperature, *rest):
        begun.append((start, temperature))
        return annealed(problem, start, temperature, *rest)

    monkeypatch.setattr(sys.modules[two_phase.__module__], "annealed", spied)
    two_phase(problem, rng_of(), Budget())
    ((start, temperature),) = begun
    # What is a tenth worse is taken every third time.
    assert np.exp(-0.1 / temperature) == pytest.approx(1 / np.e)
    greedy_minimum = ii_greedy(problem, rng_of(), Budget()).plan
    assert problem.log_order_cost(start) <= problem.log_order_cost(greedy_minimum)
    best = plan_problem(problem, "DP-LD").log_cost
    assert problem.log_order_cost(start) == pytest.approx(best, abs=1e-9)
