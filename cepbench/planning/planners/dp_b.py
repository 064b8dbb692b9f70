"""DP-B: the best tree, by dynamic programming over all splits of all sets of variables."""

from __future__ import annotations

import math

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.dp_b import cheapest_tree, cheapest_tree_in_logs
from cepbench.planning.kernels.terms import CostTerms
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import greedy
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.planners.zstream import improved, tree_over
from cepbench.planning.plans.tree import Tree

#: The known tree's cost is scaled to e to this power: more expensive sets are pruned, and numbers
#: 10^580 times smaller do not underflow.
_TOP = 650.0
#: If ln of the costs has a larger range, the search runs in logarithms, many times slower.
_RANGE = 1340.0

#: Number of variables up to which trying all splits takes less time than a second known tree.
_SMALL = 4
#: Number of variables from which rounds of flips improve the known tree.
_LARGE = 19
_ROUNDS = 40


@plan_generator(
    "DP-B",
    kind="tree",
    exact=True,
    costs="joins",
    space="all bushy trees, cross products included",
    source="[selinger1979]_ in [kolchinsky2018]_, section 6.1",
    max_size=24,
    anytime=True,
)
def dp_b(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The tree of least cost: bushy dynamic programming, bounded by a tree found beforehand.

    The left child of a node holds the earliest written variable below the node. Of equally good
    splits the one whose left child has the smallest set is taken, sets being compared as binary
    numbers in which the first written variable is the lowest digit.

    A step of its budget is a split tried. When its budget ends, it returns its initial tree and a
    lower bound.

    Worst case: O(3^n) splits and (2·n + 32)·2^n bytes, if all sets cost the same and none can be
    pruned. Sets that cost more than a known tree, alone or with a bound of the cost outside them,
    are pruned with all their splits, see :mod:`cepbench.planning.kernels.dp_b`; with measured rates
    and selectivities more than 99 % of the splits are never tried.

    Differs from [kolchinsky2018]_: the paper tries all splits, which took more than 50 hours for 22
    events (section 6.3). The plan is the same.
    """
    if problem.cost.form != "sets":
        return any_cost.cheapest_tree(problem, budget)
    n = problem.n
    deadline = budget.deadline()
    known = _known_tree(problem)
    if n <= 2:
        return Found(known, steps=0)
    terms = problem.terms
    sizes = problem.log_subset_sizes()
    shared = float(np.logaddexp.reduce([*sizes[1 << np.arange(n)], sizes[-1]]))
    log_limit = _log_inner_cost(terms, sizes, known)
    log_bound = -math.inf
    if log_limit - float(sizes[1:].min()) < _RANGE:
        scale = _TOP - log_limit
        alone = sizes[1 << np.arange(n)] + (terms.log_weight + scale)
        sizes += scale
        with np.errstate(over="ignore"):
            nodes, bound, steps = cheapest_tree(
                np.exp(sizes, out=sizes),
                np.exp(alone),
                math.exp(min(terms.log_weight, _TOP)),
                terms.last,
                math.exp(_TOP),
                budget.most_steps,
                deadline,
            )
        log_bound = math.log(bound) - scale if bound > 0.0 else -math.inf
    else:
        nodes, steps = cheapest_tree_in_logs(
            sizes, terms.log_weight, terms.last, n, log_limit, budget.most_steps, deadline
        )
    if len(nodes):
        return Found(any_cost.tree_of_splits(dict(nodes.tolist()), n), steps=steps)
    return Found(known, float(np.logaddexp(shared, log_bound)), complete=False, steps=steps)


def _known_tree(problem: CostedProblem) -> Tree[int]:
    """A cheap tree, found quickly; the cheaper it is, the more is pruned."""
    tree = tree_over(problem, range(problem.n))
    if problem.n <= _SMALL:
        return tree
    rng = np.random.default_rng(0)
    tree = min(tree, tree_over(problem, greedy(problem, rng)), key=problem.log_tree_cost)
    # For fewer variables all splits take less time than a better tree.
    return improved(problem, tree, rng, _ROUNDS)[0] if problem.n >= _LARGE else tree


def _log_inner_cost(terms: CostTerms, sizes: np.ndarray, tree: Tree[int]) -> float:
    """ln of the cost of a tree without its leaves and root."""
    costs: list[float] = []

    def visit(node: Tree[int]) -> int:
        if not isinstance(node, tuple):
            return 1 << int(node)
        left, right = visit(node[0]), visit(node[1])
        if terms.last >= 0 and (left | right) >> terms.last & 1:
            sibling = right if left >> terms.last & 1 else left
            costs.append(terms.log_weight + sizes[sibling])
        if (left | right) + 1 < len(sizes):
            costs.append(sizes[left | right])
        return left | right

    visit(tree)
    return float(np.logaddexp.reduce(costs))
