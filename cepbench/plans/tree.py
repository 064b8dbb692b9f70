"""Binary trees as nested pairs, ``(("a", "c"), "b")``: of names in plans, of indices in searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from cepbench.arguments import shown
from cepbench.errors import PlanError

Leaf = TypeVar("Leaf", str, int)
OtherLeaf = TypeVar("OtherLeaf", str, int)

#: A leaf, or a pair of trees.
Tree: TypeAlias = Leaf | tuple["Tree[Leaf]", "Tree[Leaf]"]

#: Limit of the levels of a plan's tree, since comparing and describing trees recurse.
MAXIMUM_LEVELS = 400


def post_order(tree: Tree[Leaf]) -> Iterator[Tree[Leaf]]:
    """The nodes of a tree: left, right, then the node itself."""
    waiting = [(tree, False)]
    while waiting:
        node, is_ready = waiting.pop()
        if isinstance(node, tuple) and not is_ready:
            waiting += [(node, True), (node[1], False), (node[0], False)]
        else:
            yield node


def leaves(tree: Tree[Leaf]) -> list[Leaf]:
    """The leaves of a tree, left to right."""
    return [node for node in post_order(tree) if not isinstance(node, tuple)]


def relabel(tree: Tree[Leaf], label: Callable[[Leaf], OtherLeaf]) -> Tree[OtherLeaf]:
    """The same tree with other leaves; indices become names by ``names.__getitem__``."""
    if isinstance(tree, tuple):
        return (relabel(tree[0], label), relabel(tree[1], label))
    return label(tree)


def left_deep(order: Sequence[Leaf]) -> Tree[Leaf]:
    """The left-deep tree over a sequence of leaves."""
    tree: Tree[Leaf] = order[0]
    for leaf in order[1:]:
        tree = (tree, leaf)
    return tree


def text(tree: Tree[Leaf]) -> str:
    """A tree on one line: ``((a, c), b)``."""
    return f"({text(tree[0])}, {text(tree[1])})" if isinstance(tree, tuple) else str(tree)


def tree_from(given: Any, level: int = 0) -> Tree[str]:
    """The tree of names of an argument; lists are taken as pairs.

    Raises
    ------
    PlanError
        If a node is neither a name nor a pair, or there are more than :data:`MAXIMUM_LEVELS` levels.
    """
    if isinstance(given, str):
        return given
    if level >= MAXIMUM_LEVELS:
        raise PlanError(
            f"a tree of more than {MAXIMUM_LEVELS} levels is too deep, or holds itself; give a long "
            "chain as an order, OrderPlan(names)"
        )
    if isinstance(given, list | tuple) and len(given) == 2:
        return (tree_from(given[0], level + 1), tree_from(given[1], level + 1))
    raise PlanError(
        f"{shown(given)} is not a tree; a tree is a variable name or a pair of trees, "
        'such as (("a", "c"), "b")'
    )
