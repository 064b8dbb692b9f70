"""Every plan generator under every cost model: strategies, latency, nesting, Kleene closure."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.generate import plan, plan_problem
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.model import OrderPlan, Plan
from tests.budgets import crossed
from tests.generators import UNIVERSAL, affordable
from tests.naive import costs
from tests.naive import plans as naive
from tests.planning.planners.test_plan_spaces import (
    FLIPS,
    LOCAL_SEARCHES,
    SAMPLED,
    SPACES,
    joining_adds,
)
from tests.planning_cases import (
    ALPHAS,
    READINGS,
    STRATEGIES,
    Case,
    ln,
    modelled,
    random_case,
    random_nesting,
)

pytestmark = pytest.mark.kernel

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda one: one.name)
every_alpha = pytest.mark.parametrize("alpha", ALPHAS, ids=float)
every_generator = pytest.mark.parametrize("name", affordable(UNIVERSAL))
#: Every two of generator, strategy and weight of latency.
every_two = pytest.mark.parametrize(
    ("name", "strategy", "alpha"),
    crossed(affordable(UNIVERSAL), STRATEGIES, ALPHAS),
    ids=lambda one: float(one) if isinstance(one, Fraction) else getattr(one, "name", one),
)


def found(case: Case, name: str, seed: int = 0) -> Plan:
    return plan(
        case.pattern,
        case.statistics,
        name,
        seed=seed,
        time_selectivity=case.time_selectivity,
        alpha=float(case.alpha),
        last=case.last_name,
    )


def naive_cost(case: Case, made):
    if not isinstance(made, list | tuple | int | str):
        made = made.order if isinstance(made, OrderPlan) else made.tree
    return case.order_cost(made) if isinstance(made, list) else case.tree_cost(made)


def readings_of(seed: int, n: int, powers: tuple[float, float] = (-3, 1)) -> Iterator[Case]:
    """One case flat in each reading, and one nested."""
    for operator, time_selectivity in READINGS:
        yield random_case(seed, n, operator, time_selectivity, powers=powers)
    case = random_case(seed, n, powers=powers)
    rng = np.random.default_rng(seed)
    for operator in ("SEQ", "AND"):
        nesting = random_nesting(rng, 0, n, operator)
        if not isinstance(nesting, int):
            yield dataclasses.replace(case, nesting=nesting)


def assert_right(case: Case, name: str) -> None:
    """The plan of a search is the cheapest of its space, that of a local search a local minimum."""
    made = found(case, name)
    cost = naive_cost(case, made)
    assert made.log_cost == pytest.approx(ln(cost), abs=1e-9)
    if name in LOCAL_SEARCHES:
        for other in naive.neighbours(made.order):
            assert case.order_cost(other) >= cost * (1 - 1.1e-9)
    elif name == "GREEDY":
        # Step by step, for equally good variables need not lead to equal costs.
        for k in range(case.n):
            steps = [case.order_cost([*made.order[:k], v]) for v in made.order[k:]]
            assert steps[0] <= min(steps) * (1 + 1e-9)
    elif name == "GOO":
        assert_smallest_joins(case, made)
    elif name == FLIPS:
        over_its_leaves = naive.trees_over(naive.leaves_of(made.tree))
        least = min(naive_cost(case, one) for one in over_its_leaves)
        assert ln(cost) == pytest.approx(ln(least), abs=1e-9)
        assert made.log_cost <= found(case, "ZSTREAM-ORD").log_cost + 1e-9
    elif name in SAMPLED:
        every = np.array([ln(naive_cost(case, one)) for one in SAMPLED[name](case)])
        # Of five variables there are too many for a sample to be sure of the best.
        apart = ln(cost) - every.min() if case.n <= 4 else np.abs(ln(cost) - every).min()
        assert apart == pytest.approx(0, abs=1e-9)
    else:
        # Equally good orders of leaves need not lead to equal costs either.
        leaves = {
            "ZSTREAM-ORD": lambda: found(case, "GREEDY").order,
            "LINDP": lambda: naive.leaves_of(made.tree),
        }
        space = naive.trees_over(leaves[name]()) if name in leaves else SPACES[name](case)
        assert ln(cost) == pytest.approx(ln(min(naive_cost(case, one) for one in space)), abs=1e-9)


def assert_smallest_joins(case: Case, made: Plan) -> None:
    """Join by join: of the joins in the tree that can come next one adds as little as any pair."""
    added = joining_adds(case)
    trees = [[i] for i in range(case.n)]
    joins = [{case.names.index(leaf) for leaf in leaves} for leaves in made.nodes()]
    while len(trees) > 1:
        pairs = list(itertools.combinations(trees, 2))
        nexts = [pair for pair in pairs if {*pair[0], *pair[1]} in joins]
        left, right = min(nexts, key=lambda pair: added(*pair))
        assert added(left, right) <= min(added(*pair) for pair in pairs) * (1 + 1e-9)
        trees = [one for one in trees if one not in (left, right)] + [left + right]


@pytest.mark.seeded
@every_two
def test_every_generator_is_right_under_every_cost_model(name, strategy, alpha) -> None:
    for n in (1, 2, 4, 5):
        for case in readings_of(n, n):
            assert_right(modelled(case.in_floats(), strategy, alpha), name)


@every_strategy
@pytest.mark.parametrize("name", ["DP-LD", "DP-B", "ZSTREAM", "II-RANDOM"])
def test_the_same_over_six_variables(name, strategy) -> None:
    for case in readings_of(11, 6):
        assert_right(modelled(case.in_floats(), strategy, Fraction(1, 2)), name)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 5),
    strategy=st.sampled_from(STRATEGIES),
    alpha=st.sampled_from(ALPHAS),
    name=st.sampled_from(affordable(UNIVERSAL)),
)
def test_rates_over_many_powers_of_ten(seed, n, strategy, alpha, name) -> None:
    for case in readings_of(seed, n, powers=(-12, 12)):
        assert_right(modelled(case, strategy, alpha), name)


@every_strategy
@every_alpha
@pytest.mark.parametrize("kind", ["order", "tree"])
def test_costs_equal_the_papers_formulas(kind, strategy, alpha) -> None:
    for n in (1, 2, 4, 5):
        for case in readings_of(n + 20, n):
            under = modelled(case, strategy, alpha)
            rng = np.random.default_rng(n)
            if kind == "order":
                chosen = rng.permutation(n).tolist()
            else:
                trees = naive.all_trees(list(range(n)))
                chosen = trees[int(rng.integers(len(trees)))]
            problem = under.problem
            log_cost = problem.log_order_cost if kind == "order" else problem.log_tree_cost
            assert log_cost(chosen) == pytest.approx(ln(naive_cost(under, chosen)), abs=1e-9)
            # What a plan keeps as notes says the same.
            generator = PlanGenerator("FIXED", kind, lambda problem, rng, fixed=chosen: fixed)
            made = plan_problem(problem, generator)
            assert made.log_cost == pytest.approx(log_cost(chosen), abs=1e-9)
            assert made.alpha == alpha
            if not alpha:
                assert made.log_latency is None
                assert made.log_throughput == made.log_cost
            else:
                latency = under.latency(chosen)
                expected = ln(latency) if latency else -np.inf
                assert made.log_latency == pytest.approx(expected, abs=1e-9)
                total = np.logaddexp(made.log_throughput, ln(alpha) + made.log_latency)
                assert total == pytest.approx(made.log_cost, abs=1e-9)


@every_strategy
def test_a_generator_of_the_user_sees_the_same_costs(strategy) -> None:
    def by_order(problem: CostedProblem, rng):
        return min(itertools.permutations(range(problem.n)), key=problem.log_order_cost)

    def by_size(problem: CostedProblem, rng):
        """Only from sizes and delays, as dynamic programming does."""

        def cost(order):
            sizes = [problem.log_partial_matches(order[: k + 1]) for k in range(problem.n)]
            delays = problem.terms.log_delay[list(order[order.index(problem.last) + 1 :])]
            return np.logaddexp.reduce([*sizes, *delays])

        return min(itertools.permutations(range(problem.n)), key=cost)

    for case in readings_of(5, 4):
        problem = modelled(case, strategy, Fraction(1)).problem
        best = plan_problem(problem, "DP-LD").log_cost
        for function in (by_order, by_size):
            own = PlanGenerator("OWN", "order", function)
            assert plan_problem(problem, own).log_cost == pytest.approx(best, abs=1e-9)


@every_generator
def test_without_weight_latency_changes_nothing(name) -> None:
    case = random_case(9, 6)
    with_last = dataclasses.replace(case, last=2)
    assert found(with_last, name, 4) == found(case, name, 4)


@pytest.mark.parametrize("name", ["DP-LD", "DP-B", "ZSTREAM"])
def test_with_enough_weight_nothing_waits_for_the_last_event(name) -> None:
    case = dataclasses.replace(random_case(9, 5, "SEQ"), alpha=Fraction(10) ** 12)
    made = found(case, name)
    if name == "DP-LD":
        assert made.order[-1] == "v4"
    else:
        assert made.tree[1] == "v4" or made.tree[0] == "v4"


def kleene_case(expected: int, n: int = 5) -> Case:
    """A Kleene variable in the middle, of which ``expected`` events arrive per window."""
    case = random_case(3, n, "SEQ")
    rates = list(case.rates)
    rates[2] = Fraction(expected, case.window)
    return dataclasses.replace(case, rates=tuple(rates), kleene=frozenset({2}))


@pytest.mark.seeded
@every_two
def test_kleene_sets_without_end_are_planned(name, strategy, alpha) -> None:
    """2^20,000 sets in a window; the twin has them as exact fractions."""
    for expected in (3, 20_000):
        case = modelled(kleene_case(expected), strategy, alpha)
        made = found(case, name)
        cost = naive_cost(case, made)
        assert np.isfinite(made.log_cost)
        assert made.log_cost == pytest.approx(ln(cost), rel=1e-12, abs=1e-9)
        if name in ("DP-LD", "DP-B", "ZSTREAM"):
            least = min(naive_cost(case, one) for one in SPACES[name](case))
            assert ln(cost) == pytest.approx(ln(least), rel=1e-13, abs=1e-9)
        if expected == 20_000 and strategy.name == "any":
            assert made.cost == np.inf and "10^" in made.describe()
            if not alpha and made.kind == "order" and name not in ("TRIVIAL", "II-RANDOM"):
                assert made.order[-1] == "v2"


@every_generator
@every_strategy
def test_two_kleene_variables_of_two_hundred_thousand_events(name, strategy) -> None:
    case = kleene_case(200_000, 6)
    rates = [*case.rates[:5], Fraction(200_000, case.window)]
    twice = dataclasses.replace(case, rates=tuple(rates), kleene=frozenset({2, 5}))
    for alpha in (Fraction(0), Fraction(1)):
        made = found(modelled(twice, strategy, alpha), name)
        assert np.isfinite(made.log_cost)
        assert np.isfinite(made.estimates).all()


@every_generator
def test_a_kleene_variable_may_come_last(name) -> None:
    case = random_case(2, 4, "SEQ")
    rates = (*case.rates[:3], Fraction(6, case.window))
    case = dataclasses.replace(
        case, rates=rates, kleene=frozenset({3}), alpha=Fraction(1, 2)
    ).in_floats()
    assert case.problem.last == 3
    assert_right(dataclasses.replace(case, rates=rates), name)


def test_what_may_arrive_last_is_what_the_structure_says() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 6):
        for operator in ("SEQ", "AND"):
            for _ in range(6):
                nesting = random_nesting(rng, 0, n, operator)
                if isinstance(nesting, int):
                    continue
                case = dataclasses.replace(random_case(n, n), nesting=nesting)
                possible = costs.possible_last(nesting)
                expected = possible.pop() if len(possible) == 1 else None
                assert case.problem.last == expected
