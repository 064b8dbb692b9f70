"""Values that conditions make equal: k − 1 equalities between k variables, however they are written."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import cepbench as cep
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.models import cost_from
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.plans.tree import leaves, post_order
from tests.generators import BUILT_IN
from tests.naive import plans as naive

#: Conditions over a, b, c, d and e; the classes of equal values; and the selectivities of the pairs.
CASES = {
    "all": ("[k]", ["abcde"], {"ab": 0.1, "bc": 0.1, "cd": 0.1, "de": 0.1}),
    "twice": ("[k, j]", ["abcde"], {"ab": 0.1, "bc": 0.1, "cd": 0.1, "de": 0.1}),
    "some": ("a.k = c.k AND c.k = d.j", ["acd"], {"ac": 0.1, "cd": 0.1}),
    "two": (
        "a.k = b.k AND b.k = d.k AND c.j = d.j AND d.j = e.j",
        ["abd", "cde"],
        {"ab": 0.1, "bd": 0.1, "cd": 0.1, "de": 0.1},
    ),
    "both": (
        "[k] AND a.j = c.j AND c.j = e.j AND a.x < b.x",
        ["abcde", "ace"],
        {"ab": 0.05, "bc": 0.1, "cd": 0.1, "de": 0.1, "ac": 0.1, "ce": 0.1},
    ),
    "written twice": (
        "a.k = b.k AND b.k = c.k AND a.k = c.k", ["abc"], {"ab": 0.1, "bc": 0.1, "ac": 0.1}
    ),
}  # fmt: skip
RATES = {"a": 30.0, "b": 5.0, "c": 12.0, "d": 7.0, "e": 21.0}
#: The selectivity of a.x < b.x.
OTHER = {"both": ("ab", 0.5)}


def problem_of(case: str, cost: str = "throughput", strategy: str = "") -> CostedProblem:
    """Under AND, so that only conditions have selectivities."""
    text, _, selectivities = CASES[case]
    pattern = cep.parse(
        f"PATTERN AND(A a, B b, C c, D d, E e) WHERE {text} {strategy} WITHIN 10 units"
    )
    statistics = cep.Statistics(
        cardinalities=RATES,
        selectivities={(pair[0], pair[1]): value for pair, value in selectivities.items()},
    )
    return CostedProblem.from_pattern(pattern, statistics, cost=cost_from(cost))


def log_size(case: str, names: str, *, consuming: bool = False) -> float:
    """ln of the partial matches over some variables, if an equality has selectivity 1/10."""
    events = [RATES[name] for name in names]
    size = min(events) if consuming else math.prod(events)
    for members in CASES[case][1]:
        size *= 0.1 ** max(sum(name in members for name in names) - 1, 0)
    pair, value = OTHER.get(case, ("ab", 1.0))
    return math.log(size * (value if {*pair} <= {*names} else 1.0))


SETS = ["".join(names) for k in range(1, 6) for names in itertools.combinations("abcde", k)]


@pytest.mark.parametrize("strategy", ["", "STRATEGY consuming"])
@pytest.mark.parametrize("case", CASES)
def test_every_set_has_one_equality_fewer_than_equal_values(case: str, strategy: str) -> None:
    problem = problem_of(case, strategy=strategy)
    members = np.array([[name in names for name in "abcde"] for names in SETS])
    found = problem.log_sizes(members)
    wanted = [log_size(case, names, consuming=bool(strategy)) for names in SETS]
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    by_set = [problem.log_partial_matches(np.flatnonzero(row).tolist()) for row in members]
    np.testing.assert_allclose(by_set, wanted, atol=1e-9)
    for order in itertools.islice(itertools.permutations(range(5)), 0, None, 7):
        prefixes = ["".join("abcde"[i] for i in sorted(order[: k + 1])) for k in range(5)]
        np.testing.assert_allclose(
            problem.log_node_sizes("order", order),
            [wanted[SETS.index(names)] for names in prefixes],
            atol=1e-9,
        )
    tree = ((0, (2, 4)), (3, 1))
    below = ["".join("abcde"[i] for i in sorted(leaves(node))) for node in post_order(tree)]
    np.testing.assert_allclose(
        problem.log_node_sizes("tree", tree), [wanted[SETS.index(its)] for its in below], atol=1e-9
    )


@pytest.mark.parametrize("cost", ["throughput", "comparisons", "zstream", "zstream-repaired"])
@pytest.mark.parametrize("case", CASES)
def test_a_join_of_two_sets_has_the_selectivity_of_what_it_adds(case: str, cost: str) -> None:
    """Pairs compared by ``comparisons``, and records made by ZStream's operators, of all splits."""
    if cost.startswith("zstream") and case == "both":
        pytest.skip("shares the selectivity of a pair among its conditions")
    problem = problem_of(case, cost)
    for names in SETS:
        for left in SETS:
            right = "".join(name for name in names if name not in left)
            if not {*left} < {*names}:
                continue
            sides = [np.array([[name in side for name in "abcde"]]) for side in (left, right)]
            added = log_size(case, names) - log_size(case, left) - log_size(case, right)
            if not cost.startswith("zstream"):
                assert problem.log_conditions(*sides)[0] == pytest.approx(added, abs=1e-9)
                continue
            cards = [problem.cost.log_cards(problem, side) for side in sides]  # type: ignore[attr-defined]
            join = problem.cost.joined(problem, *sides, *cards)  # type: ignore[attr-defined]
            assert join.made[0] == pytest.approx(log_size(case, names), abs=1e-9)
            assert join.read[0] == pytest.approx(log_size(case, names), abs=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_generator_plans_by_these_sizes(name: str, case: str) -> None:
    """Searches of compiled kernels too, whose sizes are products over pairs."""
    generator = PLAN_GENERATORS[name]
    problem = problem_of(case)
    if name == "IKKBZ" and case in ("some", "both", "written twice"):
        with pytest.raises(cep.CepbenchError, match=r"closes one|no cross products"):
            shape_of(generator, problem)
        return
    if name == "DPCCP" and case in ("some", "written twice"):
        with pytest.raises(cep.CepbenchError, match="no cross products"):
            shape_of(generator, problem)
        return
    plan = shape_of(generator, problem)

    def order_cost(order: Any) -> float:
        return sum(
            math.exp(log_size(case, "".join("abcde"[i] for i in order[: k + 1])))
            for k in range(len(order))
        )

    def tree_cost(tree: Any) -> float:
        return sum(
            math.exp(log_size(case, "".join("abcde"[i] for i in leaves(node))))
            for node in post_order(tree)
        )

    if generator.kind == "order":
        assert problem.order_cost(plan) == pytest.approx(order_cost(plan))
        if name in ("DP-LD", "IDP"):
            assert order_cost(plan) == pytest.approx(
                min(map(order_cost, itertools.permutations(range(5))))
            )
        if name == "GREEDY":
            assert plan == naive.greedy_order(5, order_cost)
    else:
        assert problem.tree_cost(plan) == pytest.approx(tree_cost(plan))
        if name == "DP-B":
            assert tree_cost(plan) == pytest.approx(min(map(tree_cost, naive.all_trees(range(5)))))


def shape_of(generator: Any, problem: CostedProblem) -> Any:
    """The shape that a generator finds."""
    rng = np.random.default_rng(0)
    more = (Budget(),) if generator.anytime else ()
    found = generator.function(problem, rng, *more)
    return getattr(found, "plan", found)
