"""IKKBZ: the best order without cross products, for acyclic predicate graphs."""

from __future__ import annotations

import numpy as np

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.kernels.ikkbz import cheapest_order_of_tree
from cepbench.planning.planners.registry import PLAN_GENERATORS, plan_generator


@plan_generator(
    "IKKBZ",
    kind="order",
    exact=True,
    costs="sets",
    space="orders without cross products, of conditions over two variables that form a tree; "
    "throughput without latency",
    source="[ibaraki1984]_, [krishnamurthy1986]_; named in [kolchinsky2018]_, section 3.3",
    default=False,
)
def ikkbz(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """The order of least cost in which each variable has a condition with an earlier one.

    Takes problems whose predicate graph is a tree: two variables are adjacent if their selectivity
    is not 1, as that of neighbours in a SEQ never is. Equalities that follow from others are left out:
    an order along those that are written has the same sizes. See :func:`best_order`.

    Raises PlanningRefusedError if the graph is cyclic or disconnected, or the cost is not a sum of
    products: events are consumed, latency counts, or ``time_selectivity="exact"``.
    """
    return best_order(problem, _edges_of_tree(problem))


def best_order(problem: PlanningProblem, edges: list[tuple[int, int]]) -> list[int]:
    """The cheapest order along the edges of a tree, by rates and the selectivities of the edges.

    For a first variable, the tree is a precedence graph, and each variable multiplies the size of a
    prefix by its factor and the selectivity of its edge. For a sequence of variables, let T be the
    product and C the sum of the products of its prefixes; of two sequences the one of smaller rank
    (T − 1) / C comes first, the ASI property [ibaraki1984]_. All is in logarithms.

    Differs from [krishnamurthy1986]_, which normalizes and merges the chains of the tree from its
    leaves up and derives the ranks for one root from those of its neighbour, O(n²). Here the
    sequence of least rank is appended to its predecessor, which gives the same chains, for each root
    anew, O(n² log n).

    The edges are n − 1 pairs of the indices 0 … n−1; selectivities other than theirs are ignored.
    """
    of_tree = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return cheapest_order_of_tree(problem.log_factor, problem.log_selectivity, of_tree).tolist()


def _edges_of_tree(problem: CostedProblem) -> list[tuple[int, int]]:
    """The pairs with a condition, if they form a tree and the cost is a sum of products."""
    _check_cost(problem)
    part = list(range(problem.n))
    edges = []
    for i, j in np.argwhere(np.triu(_log_written(problem), 1)).tolist():
        if part[i] == part[j]:
            raise PlanningRefusedError(
                f"IKKBZ takes conditions without cycles, and that between {problem.names[i]} and "
                f"{problem.names[j]} closes one; choose {_instead(problem, 'IDP')}"
            )
        edges.append((i, j))
        old, new = part[j], part[i]
        part = [new if one == old else one for one in part]
    apart = [j for j in range(problem.n) if part[j] != part[0]]
    if apart:
        raise PlanningRefusedError(
            f"IKKBZ makes no cross products, and no conditions connect {problem.names[0]} with "
            f"{problem.names[apart[0]]}; choose {_instead(problem, 'IDP')}"
        )
    return edges


def _log_written(problem: CostedProblem) -> np.ndarray:
    """Selectivities without those of equalities that follow from others."""
    if problem.equal is None:
        return problem.log_selectivity
    return np.asarray(problem.log_selectivity - problem.equal.log_implied.sum(axis=0))


def _check_cost(problem: CostedProblem) -> None:
    log_equal = 0.0 if problem.equal is None else problem.equal.log_factor
    if problem.consuming:
        why = f"under {problem.strategy} the rarest variable counts, not the product"
    elif problem.alpha:
        why = f"alpha = {problem.alpha:g} adds latency; choose alpha = 0"
    elif (problem.log_order_factor - log_equal).any():
        why = (
            'with time_selectivity="exact" every two variables of a SEQ depend on each other; '
            'choose "adjacent"'
        )
    else:
        return
    raise PlanningRefusedError(
        f"IKKBZ takes costs that are sums of products of rates and selectivities: {why}, or "
        f"another generator, such as {_instead(problem, 'GREEDY')}"
    )


def _instead(problem: CostedProblem, other: str) -> str:
    """Generators that take the problem: this one, and DP-LD if the problem is not too large for it."""
    most = PLAN_GENERATORS["DP-LD"].max_size
    return other if most is not None and problem.n > most else f"DP-LD or {other}"
