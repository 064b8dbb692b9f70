"""Expected partial matches and cost of each node of a plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import PlanGeneratorError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.negations import check_placements
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.latency import Latency
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.costs.zstream import Operator, ZStream
from cepbench.planning.plans.given import plan_for, plan_from
from cepbench.planning.plans.kinds import indices_of
from cepbench.planning.plans.model import AnyPlan, Plan, TreePlan
from cepbench.planning.plans.notes import log_sum
from cepbench.planning.plans.tree import Either, Tree, alternatives, leaves, post_order, relabel
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics


@dataclass(frozen=True, eq=False)
class NodeCosts:
    """Natural logarithms for the 2n − 1 nodes of a plan's tree, in post-order."""

    sizes: np.ndarray
    #: The node's contribution to Costtrpt: its size, or minus infinity for the leaves after the
    #: first of an order plan, which are not part of Cost_ord.
    throughput: np.ndarray
    #: α times the node's contribution to Costlat; minus infinity if α is 0.
    latency: np.ndarray


def log_node_costs(problem: CostedProblem, kind: str, tree: Tree[int]) -> NodeCosts:
    """Costtrpt and α·Costlat of a plan, node by node, as nested pairs of the indices 0 … n−1.

    The tree of an order is left-deep.

    Source: [kolchinsky2018]_, sections 3.1, 3.2, 5.1 and 5.2. ``throughput`` adds up to Costtrpt,
    ``latency`` to α·Costlat.
    """
    sizes = problem.log_node_sizes("tree", tree)
    latency = np.full(len(sizes), -np.inf)
    if problem.alpha:
        latency = np.log(problem.alpha) + Latency().log_node_costs(problem, kind, tree)
    return NodeCosts(sizes, Throughput().log_node_costs(problem, kind, tree), latency)


def check_sum_over_nodes(cost: CostModel) -> None:
    """Check that a cost is a sum over the nodes of a plan; PlanGeneratorError if not."""
    if cost.form == "plans":
        able = ", ".join(model.name for model in COST_MODELS.values() if model.form != "plans")
        raise PlanGeneratorError(
            f"the cost {cost.name} is not a sum over the nodes of a plan; choose one of {able}"
        )


def plan_cost(
    pattern: Pattern | str,
    plan: AnyPlan,
    statistics: Statistics,
    *,
    cost: str | CostModel = "throughput",
    time_selectivity: str = "adjacent",
    alpha: float = 0.0,
    last: str | Sequence[str | None] | None = None,
) -> pd.DataFrame:
    """The cost of each operator of a plan.

    Parameters and errors are those of :func:`~cepbench.planning.planners.generate.plan`, and
    PlanError if the plan does not fit the pattern. The cost must be of the form ``joins`` or
    ``sets``.

    Returns
    -------
    DataFrame
        One row per operator of each branch's tree, in post-order: ``branch``, ``operator``,
        ``variables`` (tuple), ``cardinality`` (expected partial matches), ``cost`` and ``log_cost``
        (natural logarithm); the costs of a branch add up to that of its plan. Operators are
        ``leaf``, ``SEQ`` and ``AND``.

        Under the costs ``zstream`` and ``zstream-repaired`` also ``input_cost``,
        ``predicate_cost`` and ``output_cost``, which add up to ``cost``; leaves, which are free,
        have no row, and negations and groups have: ``NSEQ``, ``NEG`` and ``KSEQ``. The last row of
        several branches is ``DISJ``, of branch -1, which is not part of the cost of any plan. Of a
        tree with :class:`~cepbench.planning.plans.tree.Either` each of these has such a row, and operators
        that branches share have one, of the first branch.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    given = plan_from(plan)
    branches = pattern.branches()
    plan = plan_for(given, [branch.planned_names for branch in branches])
    problems = branch_problems(pattern, statistics, time_selectivity, alpha, last, cost)
    check_sum_over_nodes(problems[0].cost)
    rows: list[tuple[Any, ...]] = []
    sizes: dict[frozenset[str], float] = {}  # of the nodes
    whole = []  # of the branches' matches
    for number, (branch, part, problem) in enumerate(
        zip(branches, plan.parts, problems, strict=True)
    ):
        check_placements(branch, part.placements)
        indices = indices_of(part, problem.names)
        if isinstance(problem.cost, ZStream):
            operators, cards = problem.cost.operators(problem, part.kind, indices)
            whole.append(cards[-1])
            below = (frozenset(leaves(node)) for node in post_order(part.tree))
            sizes |= zip(below, cards, strict=True)
            rows += [(number, *_row(each, problem.names, branch.names)) for each in operators]
        else:
            rows += [(number, *row) for row in _nodes(problem, part)]
    columns = ["branch", "operator", "variables", "cardinality", "log_cost"]
    if whole:
        columns[-1:-1] = _PARTS
    if whole and isinstance(given, TreePlan) and len(whole) > 1:
        shared: dict[Any, tuple[Any, ...]] = {}
        for row in rows:
            shared.setdefault(row[1:3], row)
        rows = [
            *shared.values(),
            *(
                _disjunction(
                    leaves(node), [sizes[frozenset(leaves(t))] for t in alternatives(node)]
                )
                for node in post_order(given.tree)
                if isinstance(node, Either)
            ),
        ]
    elif len(whole) > 1:
        rows.append(_disjunction(pattern.positive_names, whole))
    table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[3:], np.float64))
    with np.errstate(over="ignore"):
        table[columns[3:-1]] = np.exp(table[columns[3:-1]])
        table.insert(len(columns) - 1, "cost", np.exp(table["log_cost"]))
    return table


#: The parts of an operator's cost.
_PARTS = ("input_cost", "predicate_cost", "output_cost")


def _disjunction(names: Sequence[str], sizes: Sequence[float]) -> tuple[Any, ...]:
    """The row of DISJ over inputs of these sizes."""
    read = log_sum(sizes)
    return -1, "DISJ", tuple(names), read, read, -math.inf, read, read + math.log(2.0)


def _nodes(problem: CostedProblem, plan: Plan) -> Iterator[tuple[Any, ...]]:
    """Operator, variables, size and cost of each node; numbers are logarithms."""
    terms = problem.operators
    assert terms is not None  # the problem is that of a pattern
    tree = relabel(plan.tree, problem.names.index)
    sizes = problem.log_node_sizes("tree", tree)
    costs = problem.cost.log_node_costs(problem, plan.kind, tree)
    for node, size, cost in zip(post_order(tree), sizes, costs, strict=True):
        operator = "leaf"
        if isinstance(node, tuple):
            operator = "SEQ" if terms.are_ordered(*map(leaves, node)) else "AND"
        yield operator, tuple(problem.names[v] for v in leaves(node)), size, cost


def _row(found: Operator, names: Sequence[str], written: Sequence[str]) -> tuple[Any, ...]:
    """Name, variables, size, costs of an operator; numbers are logarithms."""
    below = [names[v] for v in found.variables]
    if found.added:
        below = sorted([*below, *found.added], key=written.index)
    costs = (found.input, found.predicates, found.output, found.cost)
    return found.name, tuple(below), found.output, *costs
