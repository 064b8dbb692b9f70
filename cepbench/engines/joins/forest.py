"""One layout for several branches whose matches consume each other's events.

Under ``STRATEGY consuming`` an event is in at most one match of the whole pattern, of any branch.
The plans of the branches therefore run as one, in common steps, with a root for each branch; see
:mod:`cepbench.engines.joins.kernels.consume`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.layout import JoinLayout
from cepbench.kernels import instructions

#: Columns of the nodes that are numbers of nodes, and those that are numbers of checks.
_NODES = (tables.LEFT, tables.RIGHT)
_CHECKS = (tables.FIRST_CHECK, tables.LAST_CHECK)


def places_of(layouts: Sequence[JoinLayout]) -> list[np.ndarray]:
    """For each branch, the numbers of its nodes in the forest: leaves, checks, inner nodes.

    Returns
    -------
    list of ndarray of int64, shape (nodes of the branch,)
    """
    if len(layouts) == 1:
        return [np.arange(len(layouts[0].plan.nodes))]
    leaves = np.array([len(layout.leaves) for layout in layouts])
    inner = np.array([layout.plan.inner for layout in layouts])
    sizes = np.array([len(layout.plan.nodes) for layout in layouts])
    pieces = [leaves, inner - leaves, sizes - inner]  # number of each kind by branch
    first = np.cumsum([0, *(piece.sum() for piece in pieces)])
    begins = [first[kind] + np.cumsum(piece) - piece for kind, piece in enumerate(pieces)]
    return [
        np.concatenate(
            [
                np.arange(begin[branch], begin[branch] + piece[branch])
                for begin, piece in zip(begins, pieces, strict=True)
            ]
        )
        for branch in range(len(layouts))
    ]


def forest_layout(layouts: Sequence[JoinLayout], written: Sequence[str]) -> JoinLayout:
    """The trees of all branches as one plan with several roots.

    Parameters
    ----------
    layouts : sequence of JoinLayout
        One per branch, with equal windows and stored roots that do not wait.
    written : sequence of str
        All variables in the order of the pattern, in which positions of matches are compared.

    Returns
    -------
    JoinLayout
        A match has the number of its branch in its first column, followed by separate columns for
        each branch.
    """
    places = places_of(layouts)
    total = sum(map(len, places))
    nodes = np.empty((total, tables.NODE_COLUMNS), np.int64)
    rules: list[np.ndarray] = [np.empty((0, instructions.RULE_COLUMNS), np.int64)] * (
        total * tables.RULE_KINDS
    )
    names: list[tuple[str, ...]] = [()] * total
    constants, column = 0, 1
    for branch, (layout, place) in enumerate(zip(layouts, places, strict=True)):
        plan = layout.plan
        nodes[place] = _moved_nodes(plan.nodes, place)
        nodes[place[-1], tables.BRANCH] = branch
        for node, at in enumerate(place.tolist()):
            names[at] = layout.nodes[node]
            for kind in range(tables.RULE_KINDS):
                own = plan.rules[plan.spans[node, kind] : plan.spans[node, kind + 1]].copy()
                if kind == tables.PROGRAM:
                    own[own[:, 0] == instructions.LOAD_CONSTANT, 1] += constants
                elif kind in (tables.STEP, tables.ROW):
                    _move_clauses(own, place, constants)
                elif kind == tables.OUTPUT:
                    own[:, 1] += column
                elif kind == tables.POSITIONS and at == place[-1]:
                    own = own[np.argsort([written.index(name) for name in layout.nodes[node]])]
                rules[at * tables.RULE_KINDS + kind] = own
        constants += len(plan.constants)
        column += layout.columns
    ends = np.cumsum([len(own) for own in rules]).reshape(total, tables.RULE_KINDS)
    spans = np.column_stack(([0, *ends[:-1, -1]], ends))
    first = layouts[0].plan
    return JoinLayout(
        plan=first._replace(
            nodes=nodes,
            spans=spans,
            rules=np.concatenate(rules),
            constants=np.concatenate([layout.plan.constants for layout in layouts]),
            inner=sum(layout.plan.inner for layout in layouts),
        ),
        leaves=tuple(chain(*(layout.leaves for layout in layouts))),
        filters=tuple(chain(*(layout.filters for layout in layouts))),
        values=tuple(chain(*(layout.values for layout in layouts))),
        nodes=tuple(names),
        ranks=False,
        columns=column if layouts[0].columns else 0,
    )


def _moved_nodes(nodes: np.ndarray, place: np.ndarray) -> np.ndarray:
    moved = nodes.copy()
    for column in _NODES:
        has = nodes[:, column] >= 0
        moved[has, column] = place[nodes[has, column]]
    first, last = _CHECKS
    checked = nodes[:, first] < nodes[:, last]
    moved[checked, first] = place[nodes[checked, first]]
    moved[checked, last] = place[nodes[checked, last] - 1] + 1
    return moved


def _move_clauses(rules: np.ndarray, place: np.ndarray, constants: int) -> None:
    """Renumber leaves and constants in clauses over rows, in place."""
    at = 0
    while at < len(rules):
        slots, length = rules[at, 1], rules[at, 3]
        for rule in rules[at + 1 : at + 1 + slots]:
            rule[1] = place[rule[1]]
        for rule in rules[at + 1 + slots : at + length]:
            if rule[0] == instructions.LOAD_CONSTANT:
                rule[1] += constants
        at += length
