"""What must not change a plan's cost, or only in one direction, for every plan generator.

No plan is known here to be right. Two problems are planned whose costs must have a relation that
holds whatever the plans are.
"""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.plans.model import OrderPlan, Plan
from tests.budgets import examples
from tests.generators import BUILT_IN, SELECTIVE, UNIVERSAL
from tests.planning_cases import STRATEGIES, Case, random_case

#: What these find depends on how the pattern is written: by their space, by chance, or by the
#: order in which they try their moves.
BY_WRITING = ["TRIVIAL", "ZSTREAM", "II-RANDOM", "II-GREEDY", "QUICKPICK", "FLIPS", "SA", "2PO"]
FREE_OF_WRITING = [name for name in BUILT_IN if name not in BY_WRITING]

EXACT = [name for name in BUILT_IN if PLAN_GENERATORS[name].exact]

every_generator = pytest.mark.parametrize("name", BUILT_IN)
every_exact = pytest.mark.parametrize("name", EXACT)
seeds = st.integers(0, 10_000)
a_few = examples(5)


def case_for(name: str, seed: int, n: int, operator: str = "AND", **about) -> Case:
    """Any problem, or one whose conditions form a tree for those that need such a shape."""
    case = random_case(seed, n, operator, **about)
    if name not in SELECTIVE:
        return case
    rng = np.random.default_rng([seed, n, 5])
    rows = [[Fraction(1)] * n for _ in range(n)]
    for i in range(n):
        rows[i][i] = case.selectivities[i][i]
        if i and operator == "AND":
            j = int(rng.integers(i))
            rows[i][j] = rows[j][i] = Fraction(float(np.float32(10 ** rng.uniform(-3, -0.1))))
    return dataclasses.replace(case, selectivities=tuple(map(tuple, rows)))


def moved(problem: CostedProblem, order: list[int]) -> CostedProblem:
    """The same problem with its variables written in another order."""
    return dataclasses.replace(
        problem,
        names=tuple(problem.names[i] for i in order),
        log_cardinality=problem.log_cardinality[order],
        log_selectivity=problem.log_selectivity[np.ix_(order, order)],
        last=None if problem.last is None else order.index(problem.last),
        log_arrivals=problem.log_arrivals[order],
    )


def indices(made: Plan):
    """Of a plan over v0, v1, …: a list, or nested pairs."""

    def index(part):
        return int(part[1:]) if isinstance(part, str) else tuple(map(index, part))

    return [index(one) for one in made.order] if isinstance(made, OrderPlan) else index(made.tree)


def log_cost(problem: CostedProblem, content) -> float:
    if isinstance(content, list):
        return problem.log_order_cost(content)
    return problem.log_tree_cost(content)


def without(content, dropped: int):
    """An order or a tree without one of its variables."""
    if isinstance(content, list):
        return [i for i in content if i != dropped]
    if isinstance(content, int):
        return None if content == dropped else content
    left, right = (without(half, dropped) for half in content)
    if left is None or right is None:
        return right if left is None else left
    return (left, right)


@pytest.mark.parametrize("name", FREE_OF_WRITING)
@given(seed=seeds, n=st.integers(2, 8), data=st.data())
@a_few
def test_relabelled_events_cost_the_same(name, seed, n, data) -> None:
    problem = case_for(name, seed, n).problem
    order = data.draw(st.permutations(range(n)))
    expected = plan_problem(problem, name).log_cost
    assert plan_problem(moved(problem, order), name).log_cost == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in EXACT if name not in ("ZSTREAM", "IKKBZ")])
@given(seed=seeds, n=st.integers(2, 7), data=st.data(), strategy=st.sampled_from(STRATEGIES))
@a_few
def test_relabelled_events_cost_the_same_under_every_cost_model(
    name, seed, n, data, strategy
) -> None:
    case = dataclasses.replace(
        case_for(name, seed, n, data.draw(st.sampled_from(["AND", "SEQ"]))),
        strategy=strategy,
        alpha=Fraction(data.draw(st.sampled_from([0, 1, 100]))),
        last=n - 1,
    )
    problem = case.problem
    order = data.draw(st.permutations(range(n)))
    expected = plan_problem(problem, name).log_cost
    assert plan_problem(moved(problem, order), name).log_cost == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [*FREE_OF_WRITING, "ZSTREAM"])
@given(seed=seeds, n=st.integers(2, 8))
@a_few
def test_a_sequence_written_backwards_costs_the_same(name, seed, n) -> None:
    # Neighbours without another condition are equally selective, of which LINDP may need some only.
    problem = case_for("DPCCP" if name == "LINDP" else name, seed, n, "SEQ").problem
    backwards = moved(problem, list(range(n))[::-1])
    expected = plan_problem(problem, name).log_cost
    assert plan_problem(backwards, name).log_cost == pytest.approx(expected, abs=1e-9)


# Those that want conditions of some shape would refuse it.
@pytest.mark.parametrize("name", UNIVERSAL)
@given(seed=seeds, n=st.integers(1, 7), operator=st.sampled_from(["AND", "SEQ"]))
@a_few
def test_one_more_event_without_conditions_costs_little(name, seed, n, operator) -> None:
    # It is expected once a window, so that a set of variables has the size that it has without it.
    problem = case_for(name, seed, n).problem
    more = CostedProblem(
        (*problem.names, f"v{n}"),
        np.append(problem.log_cardinality, 0.0),
        np.pad(problem.log_selectivity, (0, 1)),
        operator=operator,
    )
    made = plan_problem(more, name)
    dropped = log_cost(problem, without(indices(made), n))
    assert dropped <= made.log_cost + 1e-9
    if name in EXACT:
        before = plan_problem(problem, name).cost
        # Joined last: its own leaf in a tree, and the whole once more.
        leaf = 1 if made.kind == "tree" else 0
        most = before + leaf + problem.partial_matches(range(n))
        assert (before + leaf) * (1 - 1e-9) <= made.cost <= most * (1 + 1e-9)


@every_generator
@given(seed=seeds, power=st.integers(-20, 20), operator=st.sampled_from(["AND", "SEQ"]))
@a_few
def test_a_longer_window_and_rarer_events_are_the_same_problem(name, seed, power, operator) -> None:
    case = case_for(name, seed, 6, operator)
    scale = Fraction(2) ** power
    wider = dataclasses.replace(
        case.problem,
        window=float(case.window * scale),
    )
    as_patterns = dataclasses.replace(
        case, window=case.window * 2**20, rates=tuple(rate / 2**20 for rate in case.rates)
    )
    expected = plan_problem(case.problem, name, seed=1)
    for other in (wider, as_patterns.problem):
        made = plan_problem(other, name, seed=1)
        assert indices(made) == indices(expected)
        assert made.log_cost == pytest.approx(expected.log_cost, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != "IKKBZ"])
@pytest.mark.parametrize("strategy", STRATEGIES[1:], ids=lambda one: one.name)
def test_the_same_where_events_are_used_up(name, strategy, seeds) -> None:
    for seed in seeds(3):
        case = dataclasses.replace(case_for(name, seed, 6, "SEQ"), strategy=strategy)
        rarer = dataclasses.replace(
            case,
            window=case.window * 1024,
            rates=tuple(rate / 1024 for rate in case.rates),
            stream_rate=case.stream_rate / 1024,
        )
        expected = plan_problem(case.problem, name, seed=1)
        made = plan_problem(rarer.problem, name, seed=1)
        assert indices(made) == indices(expected)
        assert made.log_cost == pytest.approx(expected.log_cost, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if "EFREQ" not in name])
@given(seed=seeds, n=st.integers(1, 7))
@a_few
def test_a_filter_is_as_good_as_a_lower_rate(name, seed, n) -> None:
    # EFREQ looks at rates before filters; LINDP and the rest at what passes them.
    problem = case_for(name, seed, n).problem
    filters = np.diagonal(problem.log_selectivity)
    filtered = dataclasses.replace(
        problem,
        log_cardinality=problem.log_cardinality + filters,
        log_selectivity=problem.log_selectivity - np.diag(filters),
    )
    expected = plan_problem(problem, name, seed=2).log_cost
    assert plan_problem(filtered, name, seed=2).log_cost == pytest.approx(expected, abs=1e-9)


@every_exact
@given(seed=seeds, n=st.integers(2, 7), data=st.data())
@a_few
def test_less_selective_conditions_make_nothing_cheaper(name, seed, n, data) -> None:
    problem = case_for(name, seed, n, data.draw(st.sampled_from(["AND", "SEQ"]))).problem
    i = data.draw(st.integers(0, n - 1))
    j = data.draw(st.integers(0, n - 1))
    weaker = problem.log_selectivity.copy()
    # Half as strong a condition is still one, so that the predicate graph stays.
    weaker[i, j] = weaker[j, i] = weaker[i, j] / 2
    less = dataclasses.replace(problem, log_selectivity=weaker)
    assert plan_problem(less, name).log_cost >= plan_problem(problem, name).log_cost - 1e-9


@every_exact
@given(seed=seeds, n=st.integers(2, 7), data=st.data())
@a_few
def test_more_events_make_nothing_cheaper(name, seed, n, data) -> None:
    problem = case_for(name, seed, n).problem
    more = problem.log_cardinality.copy()
    more[data.draw(st.integers(0, n - 1))] += data.draw(st.floats(0, 5))
    plenty = dataclasses.replace(problem, log_cardinality=more)
    assert plan_problem(plenty, name).log_cost >= plan_problem(problem, name).log_cost - 1e-9


@pytest.mark.parametrize("name", [name for name in EXACT if name != "IKKBZ"])
@given(seed=seeds, n=st.integers(1, 7))
@a_few
def test_weighing_latency_more_makes_nothing_cheaper(name, seed, n) -> None:
    case = dataclasses.replace(case_for(name, seed, n), last=n // 2)
    costs = [
        plan_problem(dataclasses.replace(case, alpha=Fraction(alpha)).problem, name).log_cost
        for alpha in (0, 1, 2, 50)
    ]
    assert all(less <= more + 1e-9 for less, more in itertools.pairwise(costs))
