"""The kernels behind the generators, one by one; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.kernels.dp_b import cheapest_tree, cheapest_tree_in_logs
from cepbench.planning.kernels.dp_ld import cheapest_order
from cepbench.planning.kernels.iterative_improvement import descend
from cepbench.planning.kernels.log_sums import PLAIN_RANGE, log_add
from cepbench.planning.kernels.subset_sizes import log_subset_sizes
from cepbench.planning.kernels.zstream import cheapest_cuts
from cepbench.planning.planners.budget import UNLIMITED, Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.iterative_improvement import all_moves
from cepbench.planning.planners.registry import PLAN_GENERATORS
from tests.naive import plans as naive
from tests.planning_cases import READINGS, random_case

pytestmark = pytest.mark.kernel

readings = pytest.mark.parametrize(
    ("operator", "time_selectivity"), READINGS, ids=["AND", "SEQ-adjacent", "SEQ-exact"]
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (0.0, 0.0, math.log(2)),
        (math.log(3), math.log(4), math.log(7)),
        (5000.0, 5000.0, 5000 + math.log(2)),
        (-5000.0, -5001.0, -5000 + math.log1p(math.exp(-1))),
        (5000.0, -5000.0, 5000.0),
        (-math.inf, 3.0, 3.0),
        (3.0, -math.inf, 3.0),
    ],
)
def test_log_add(a, b, expected) -> None:
    assert log_add(a, b) == pytest.approx(expected, abs=1e-12)
    assert log_add(b, a) == log_add(a, b)


@readings
@pytest.mark.parametrize("n", range(1, 8))
def test_every_set_has_its_size(operator, time_selectivity, n) -> None:
    problem = random_case(n, n, operator, time_selectivity).problem
    sizes = log_subset_sizes(problem.terms)
    assert sizes.shape == (2**n,)
    assert sizes[0] == problem.log_order_factor[0]
    for mask in range(1, 2**n):
        members = [i for i in range(n) if mask >> i & 1]
        assert sizes[mask] == pytest.approx(problem.log_partial_matches(members), abs=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("n", range(1, 6))
def test_dynamic_programming_needs_sizes_only(n, alpha, seeds) -> None:
    for seed in seeds(5):
        # Sizes of sets that no product of rates and selectivities makes.
        rng = np.random.default_rng([n, seed])
        sizes = rng.normal(0, 3, size=2**n)
        delay = rng.normal(0, 3, size=n)
        last = int(rng.integers(n)) if alpha else -1
        log_alpha = math.log(alpha) if alpha else -math.inf

        def order_cost(order, sizes=sizes, delay=delay, last=last) -> float:
            masks = itertools.accumulate(1 << i for i in order)
            late = order[order.index(last) + 1 :] if last >= 0 else []
            return sum(math.exp(sizes[mask]) for mask in masks) + alpha * sum(np.exp(delay[late]))

        def tree_cost(tree, sizes=sizes, last=last) -> tuple[int, float]:
            if isinstance(tree, int):
                return 1 << tree, math.exp(sizes[1 << tree])
            (left, a), (right, b) = tree_cost(tree[0]), tree_cost(tree[1])
            cost = a + b + math.exp(sizes[left | right])
            if last >= 0 and (left | right) >> last & 1:
                cost += alpha * math.exp(sizes[right if left >> last & 1 else left])
            return left | right, cost

        for in_logs in (False, True):
            costs, delays = (sizes, delay + log_alpha) if in_logs else (
                np.exp(sizes), np.exp(delay + log_alpha))  # fmt: skip
            order = cheapest_order(costs, delays, last, in_logs, UNLIMITED).tolist()
            assert sorted(order) == list(range(n))
            assert order_cost(order) == pytest.approx(min(map(order_cost, naive.all_orders(n))))

        if n < 3:
            continue
        trees = [tree_cost(tree)[1] for tree in naive.all_trees(list(range(n)))]
        shared = sum(math.exp(sizes[1 << i]) for i in range(n)) + math.exp(sizes[-1])
        # Whatever tree is known beforehand, the cheapest one itself among them.
        limit = (min(trees) if seed % 2 else max(trees)) - shared
        plain, alone = np.exp(sizes), alpha * np.exp(sizes[1 << np.arange(n)])
        nodes, bound, _ = cheapest_tree(plain, alone, alpha, last, limit, UNLIMITED, UNLIMITED)
        logs, _ = cheapest_tree_in_logs(
            sizes, log_alpha, last, n, math.log(limit), UNLIMITED, UNLIMITED
        )
        assert nodes.shape == (n - 1, 2) and logs.tolist() == nodes.tolist()
        left_of = dict(nodes.tolist())
        assert all(left & mask == left and 0 < left < mask for mask, left in left_of.items())

        def built(mask: int, left_of=left_of):
            if mask & (mask - 1) == 0:
                return mask.bit_length() - 1
            return (built(left_of[mask]), built(mask ^ left_of[mask]))

        assert tree_cost(built(2**n - 1))[1] == pytest.approx(min(trees))
        assert bound <= (min(trees) - shared) * (1 + 1e-9)


@pytest.mark.parametrize("n", range(3, 8))
@pytest.mark.parametrize("name", ["DP-LD", "DP-B"])
def test_plain_numbers_and_logarithms_find_the_same_plan(name, n) -> None:
    # With one plentiful variable more, which comes last, numbers lie too far apart for plain ones.
    rng = np.random.default_rng(n)
    pairs = np.triu(rng.uniform(-4, 0, size=(n, n)), 1)
    names = tuple(f"v{i}" for i in range(n))
    near = CostedProblem(names, rng.uniform(0, 4, size=n), pairs + pairs.T)
    far = CostedProblem(
        (*near.names, "more"),
        np.append(near.log_cardinality, 8 * PLAIN_RANGE),
        np.pad(near.log_selectivity, (0, 1)),
    )
    plan = PLAN_GENERATORS[name].function
    for problem in (near, far):
        found = plan(problem, np.random.default_rng(0), Budget()).plan
        if problem is near:
            expected = [*found, n] if name == "DP-LD" else (found, n)
        else:
            assert found == expected


@pytest.mark.parametrize("name", ["DP-LD", "DP-B"])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_an_ended_search_says_how_far_it_is_from_the_best(name, alpha, seeds) -> None:
    for seed in seeds(6):
        case = random_case(seed, 7, "SEQ" if seed % 2 else "AND").in_floats()
        problem = dataclasses.replace(
            case.problem, cost=Throughput(alpha), last=6 if alpha else None
        )
        best = plan_problem(problem, name)
        ended = plan_problem(problem, name, budget=Budget(steps=1))
        assert best.complete and best.gap == 0
        assert not ended.complete and ended.gap >= 0
        assert ended.log_bound <= best.log_cost <= ended.log_cost + 1e-12
        assert "stopped by its budget, at most" in ended.describe()
        late = plan_problem(problem, name, budget=1e-9)
        assert late.complete or late.log_cost == ended.log_cost


@readings
def test_cuts_lie_inside_their_interval(operator, time_selectivity) -> None:
    problem = random_case(3, 9, operator, time_selectivity).problem
    cuts = cheapest_cuts(problem.terms)
    for i, j in itertools.combinations(range(9), 2):
        assert i < cuts[i, j] <= j


def test_of_equally_good_cuts_the_leftmost_is_taken() -> None:
    # Three leaves alike, or mirrored: both trees cost the same, to the last bit.
    for ends, middle in ((1.5, 1.5), (0.25, 2.0), (2.0, -1.0)):
        log_factor = np.array([ends, middle, ends])
        pairs = np.array([[0, -0.5, -0.25], [-0.5, 0, -0.5], [-0.25, -0.5, 0]])
        problem = CostedProblem(("a", "b", "c"), log_factor, pairs)
        cuts = cheapest_cuts(problem.terms)
        assert cuts[0, 2] == 1
        assert plan_problem(problem, "ZSTREAM").tree == ("a", ("b", "c"))


@readings
@pytest.mark.parametrize("n", range(1, 7))
def test_the_descent_takes_the_moves_that_a_naive_one_takes(
    operator, time_selectivity, n, seeds
) -> None:
    for seed in seeds(4):
        # In fractions, for floats lose the gain of a small prefix beside a large one.
        case = random_case(seed, n, operator, time_selectivity)
        rng = np.random.default_rng(seed)
        start = rng.permutation(n).astype(np.int64)
        moves = rng.permutation(all_moves(n, rng))
        order = start.copy()
        problem = case.problem
        steps, complete = descend(order, moves, problem.terms, UNLIMITED, UNLIMITED)
        assert complete and steps >= len(moves)
        assert order.tolist() == naive.descent(start.tolist(), moves.tolist(), case.order_cost)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_moves_are_all_swaps_and_all_three_cycles(n) -> None:
    made = set()
    for i, j, k in all_moves(n, np.random.default_rng(0)).tolist():
        order = list(range(n))
        order[i], order[j], order[k] = (j, i, i) if j == k else (j, k, i)
        made.add(tuple(order))
    expected = {tuple(order) for order in naive.neighbours(list(range(n)))}
    assert made == expected
    assert len(all_moves(n, np.random.default_rng(0))) == len(expected)


def test_sampled_cycles_are_of_three_positions() -> None:
    n = 40
    moves = all_moves(n, np.random.default_rng(0))
    swaps, cycles = moves[: n * (n - 1) // 2], moves[n * (n - 1) // 2 :]
    assert len({tuple(sorted(row[:2])) for row in swaps.tolist()}) == len(swaps)
    assert len(cycles) == 10_000
    assert all(len(set(row)) == 3 for row in cycles.tolist())
    # Every position is as likely as any other in each of the three places.
    for place in range(3):
        times = np.bincount(cycles[:, place], minlength=n)
        assert times.min() > 150 and times.max() < 350


@pytest.mark.parametrize("name", ["DP-LD", "DP-B"])
@pytest.mark.parametrize("log_cardinality", [-1400.0, 1400.0])
def test_numbers_near_each_other_may_be_far_from_one(name, log_cardinality) -> None:
    for n in (1, 2, 3, 5):
        names = tuple(f"v{i}" for i in range(n))
        cardinalities = np.full(n, log_cardinality)
        cardinalities[1:] = 0.0
        problem = CostedProblem(names, cardinalities, np.zeros((n, n)))
        assert plan_problem(problem, name).log_cost >= log_cardinality
