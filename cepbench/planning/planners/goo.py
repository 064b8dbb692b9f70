"""GOO: greedy operator ordering, the smallest join first."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import plan_generator


@plan_generator(
    "GOO",
    kind="tree",
    costs="sets",
    space="all bushy trees, cross products included, one join at a time",
    source="[fegaras1998]_",
    default=False,
)
def goo(problem: CostedProblem, rng: np.random.Generator) -> Any:
    """Greedy operator ordering: join the pair of trees that adds least to the cost, in O(n³).

    It begins with one tree per variable. Without latency it takes the join with the fewest partial
    matches; with latency, joining a tree with the one that holds the last event also costs α times
    the former's size. Of equally good pairs the one written first is taken; the left child of a node
    holds the earliest written variable below the node.

    Differs from [fegaras1998]_: cross products compete with all other joins, since patterns have so
    few events that a cross product can be the smallest join.
    """
    return smallest_joins(problem, np.ones((problem.n, problem.n), dtype=bool))


def smallest_joins(problem: CostedProblem, adjacent: np.ndarray) -> Any:
    """The tree of greedy operator ordering that joins adjacent trees only.

    ``adjacent`` is bool, shape (n, n), symmetric and connected; trees are adjacent if any of their
    variables are.
    """
    n = problem.n
    adjacent = adjacent & ~np.eye(n, dtype=bool)
    # A tree is at the index of its earliest variable; other indices are unused.
    trees: list[Any] = list(range(n))
    terms = problem.terms
    products, least = terms.log_factor.copy(), terms.log_bound.copy()
    members = np.ones(n, dtype=np.intp)
    sizes = products + least + terms.log_order_factor[1]
    between = terms.log_selectivity.copy()
    equal = problem.partly_equal
    #: The variables of each tree among those with equal values.
    held = np.zeros((n, 0), np.int64) if equal is None else equal.members.T.astype(np.int64)
    holder = terms.last
    dead = np.zeros(n, dtype=bool)

    def joined(i: int) -> tuple[np.ndarray, np.ndarray]:
        """Sizes of the joins of tree i with each other tree, and their cost."""
        counts = np.minimum(members[i] + members, n)
        new = products[i] + products + between[i] + np.minimum(least[i], least)
        new += terms.log_order_factor[counts]
        if equal is not None:
            new -= equal.log_repeated_among(held[i] + held)
        added = new
        if holder >= 0:
            waiting = sizes if i == holder else np.where(np.arange(n) == holder, sizes[i], -np.inf)
            added = np.logaddexp(new, terms.log_weight + waiting)
        return new, np.where(adjacent[i] & ~dead, added, np.inf)

    joins = np.array([joined(i)[0] for i in range(n)])
    added = np.array([joined(i)[1] for i in range(n)])
    for _ in range(n - 1):
        i, j = sorted(map(int, np.unravel_index(np.argmin(added), added.shape)))
        trees[i] = (trees[i], trees[j])
        products[i] += products[j] + between[i, j]
        least[i] = min(least[i], least[j])
        members[i] += members[j]
        held[i] += held[j]
        sizes[i] = joins[i, j]
        between[i] += between[j]
        between[:, i] = between[i]
        adjacent[i] |= adjacent[j]
        adjacent[i, i] = False
        adjacent[:, i] = adjacent[i]
        if holder == j:
            holder = i
        dead[j] = True
        added[j] = added[:, j] = np.inf
        joins[i], added[i] = joined(i)
        joins[:, i], added[:, i] = joins[i], added[i]
    return trees[0]
