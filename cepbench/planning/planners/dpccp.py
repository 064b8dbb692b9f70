"""DPCCP: the best tree without cross products, by dynamic programming over connected sets."""

from __future__ import annotations

import numpy as np

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.dpccp import (
    cheapest_connected_tree,
    count_pairs,
    count_sets,
    list_sets,
)
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.goo import smallest_joins
from cepbench.planning.planners.predicate_graph import adjacency, components
from cepbench.planning.planners.registry import plan_generator

#: Limit of connected sets, which take nearly 1 GiB; a star of 24 variables has half as many.
MOST_SETS = 1 << 24

#: Limit of pairs, which take 10 to 20 seconds; a clique of 18 variables has fewer, one of 19 more.
MOST_PAIRS = 1 << 28


@plan_generator(
    "DPCCP",
    kind="tree",
    exact=True,
    costs="sets",
    space="all bushy trees without cross products",
    source="[moerkotte2006]_, section 3",
    max_size=62,
    anytime=True,
    default=False,
)
def dpccp(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The tree of least cost without cross products, in one step per connected subgraph pair.

    Two variables are adjacent if there is a condition on both, the order in time included. Dynamic
    programming enumerates the pairs of disjoint connected sets with adjacent members: n³/6 for a
    chain, n·2^n/4 for a star and 3^n/2 for a clique. Of equally good pairs it takes the first of
    the enumeration; the left child of a node holds the earliest written variable below the node.

    A step of its budget is a pair. When its budget ends, it returns the tree of GOO without cross
    products and a lower bound, the cost of the leaves and the root.

    Limits: it refuses disconnected predicate graphs, which have no such tree, those of more than
    2^24 connected sets, and without a budget more than 2^28 pairs.

    Differs from [moerkotte2006]_: variables keep their written numbers instead of those of a
    breadth-first search, and all connected sets are listed first. Either way a set comes after all
    its subsets.
    """
    n = problem.n
    adjacent = adjacency(problem)
    parts = components(adjacent)
    if len(parts) > 1:
        one, other = (problem.names[part[0]] for part in parts[:2])
        raise PlanningRefusedError(
            f"DPCCP makes no cross products, and no conditions connect {one} with {other}: the "
            f"predicate graph falls into {len(parts)} parts; choose DP-B, GOO or QUICKPICK"
        )
    if n == 1:
        return Found(0)
    deadline = budget.deadline()
    neighbours = adjacent @ (1 << np.arange(n, dtype=np.int64))
    count = count_sets(neighbours, MOST_SETS)
    if count > MOST_SETS:
        raise PlanningRefusedError(
            f"DPCCP takes at most {MOST_SETS:,} connected sets of variables, and the predicate "
            f"graph of these {n} has more; choose GOO, QUICKPICK or LINDP"
        )
    sets, sizes = list_sets(neighbours, problem.terms, count)
    if problem.partly_equal is not None:
        sizes -= problem.partly_equal.log_repeated_in(sets)
    if not budget.is_limited and count_pairs(neighbours, sets, MOST_PAIRS) > MOST_PAIRS:
        raise PlanningRefusedError(
            f"DPCCP without a budget takes at most {MOST_PAIRS:,} pairs of connected sets, and the "
            f"predicate graph of these {n} variables has more; give it a budget, or choose DP-B, "
            "GOO or LINDP"
        )
    nodes, complete, steps = cheapest_connected_tree(
        neighbours, sets, sizes, problem.terms, budget.most_steps, deadline
    )
    if complete:
        left_of = {left | right: left for left, right in nodes.tolist()}
        return Found(any_cost.tree_of_splits(left_of, n), steps=steps)
    nodes_of_all = [[i] for i in range(n)] + [list(range(n))]
    shared = np.logaddexp.reduce([problem.log_partial_matches(node) for node in nodes_of_all])
    known = smallest_joins(problem, adjacent)
    return Found(known, float(shared), complete=False, steps=steps)
