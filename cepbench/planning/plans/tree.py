"""Binary trees as nested pairs, ``(("a", "c"), "b")``: of names in plans, of indices in searches.

A pair is a join, unless it is an :class:`Either`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from cepbench.arguments import shown
from cepbench.errors import PlanError

Leaf = TypeVar("Leaf", str, int)
OtherLeaf = TypeVar("OtherLeaf", str, int)

#: A leaf, or a pair of trees.
Tree: TypeAlias = Leaf | tuple["Tree[Leaf]", "Tree[Leaf]"]

#: Negated variables and groups, in alphabetical order, with the variables below the node of each.
Placements: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

#: Limit of the levels of a plan's tree, since comparing and describing trees recurse.
MAXIMUM_LEVELS = 400

#: Limit of the choices at the disjunctions of a plan's tree; a pattern has no more branches.
MAXIMUM_ALTERNATIVES = 256


class Either(tuple[Any, Any]):
    """A disjunction node of a tree plan: ``cep.TreePlan((cep.Either("a", "b"), "c"))``.

    Its records are those of both sides [mei2009]_, section 4.4.4. ``SEQ(OR(A a, B b), C c)`` has this
    plan; it is one tree for all branches of the pattern. Both sides are over different variables.
    """

    __slots__ = ()

    def __new__(cls, left: Any, right: Any) -> Either:
        """A node over two alternatives."""
        return super().__new__(cls, (left, right))

    def __getnewargs__(self) -> tuple[Any, Any]:
        """The arguments of the constructor, for copies."""
        return (self[0], self[1])

    def __repr__(self) -> str:
        return f"Either({self[0]!r}, {self[1]!r})"

    def __eq__(self, other: object) -> bool:
        # Unlike a join of the same trees.
        return isinstance(other, Either) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("either", *self))


def alternatives_of(tree: Tree[Leaf]) -> int:
    """The number of :func:`alternatives`."""
    counts: list[int] = []
    for node in post_order(tree):
        if isinstance(node, tuple):
            right, left = counts.pop(), counts.pop()
            counts.append(left + right if isinstance(node, Either) else left * right)
        else:
            counts.append(1)
    return counts[0]


def alternatives(tree: Tree[Leaf]) -> list[Tree[Leaf]]:
    """The trees without :class:`Either`, one for each choice; the last one changes fastest."""
    if not isinstance(tree, tuple):
        return [tree]
    left, right = map(alternatives, tree)
    return left + right if isinstance(tree, Either) else list(itertools.product(left, right))


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
    found: list[Leaf] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += (node[1], node[0])
        else:
            found.append(node)
    return found


def relabel(tree: Tree[Leaf], label: Callable[[Leaf], OtherLeaf]) -> Tree[OtherLeaf]:
    """The same tree with other leaves; indices become names by ``names.__getitem__``."""
    if isinstance(tree, tuple):
        pair = (relabel(tree[0], label), relabel(tree[1], label))
        return Either(*pair) if isinstance(tree, Either) else pair
    return label(tree)


def left_deep(order: Sequence[Leaf]) -> Tree[Leaf]:
    """The left-deep tree over a sequence of leaves."""
    tree: Tree[Leaf] = order[0]
    for leaf in order[1:]:
        tree = (tree, leaf)
    return tree


def right_deep(order: Sequence[Leaf]) -> Tree[Leaf]:
    """The right-deep tree over a sequence of leaves."""
    tree: Tree[Leaf] = order[-1]
    for leaf in reversed(order[:-1]):
        tree = (leaf, tree)
    return tree


def text(tree: Tree[Leaf]) -> str:
    """A tree on one line: ``((a, c), b)``; ``((a | b), c)`` with a disjunction."""
    if not isinstance(tree, tuple):
        return str(tree)
    return f"({text(tree[0])}{' |' if isinstance(tree, Either) else ','} {text(tree[1])})"


def plain_lists(tree: Tree[str]) -> Any:
    """A tree as JSON has it, with a disjunction as ``["either", left, right]``."""
    if not isinstance(tree, tuple):
        return tree
    pair = [plain_lists(half) for half in tree]
    return ["either", *pair] if isinstance(tree, Either) else tuple(pair)


def unplaced(shape: Any) -> Any:
    """The tree of a tree plan's shape, which may be a pair of a tree and placements."""
    return shape[0] if has_placements(shape) else shape


def has_placements(shape: Any) -> bool:
    """Whether the shape of a tree plan is a pair of a tree and placements."""
    return isinstance(shape, list | tuple) and len(shape) == 2 and isinstance(shape[1], Mapping)


def placements_from(given: Any, tree: Tree[str]) -> Placements:
    """The placements of an argument, each over the leaves of a node from left to right.

    A mapping, or pairs, of negated variables and groups to the variables below their nodes in any
    order.

    Raises PlanError if it is not of this form, a placed variable is a leaf, or a node does not
    exist.
    """
    if given is None:
        return ()
    try:
        items = list(given.items() if isinstance(given, Mapping) else given)
        placed = {name: () if isinstance(below, str) else tuple(below) for name, below in items}
    except (TypeError, ValueError):
        raise PlanError(
            'placements is a mapping such as {"b": ("c",)}, from negated variables and groups to the '
            f"variables below the node of each, not {shown(given)}"
        ) from None
    if not placed:
        return ()
    nodes = {frozenset(leaves(node)): tuple(leaves(node)) for node in post_order(tree)}
    for name, below in placed.items():
        if not isinstance(name, str) or not name:
            raise PlanError(f"placements has {shown(name)}, which is no variable's name")
        if (name,) in nodes.values():
            raise PlanError(
                f"placements has {shown(name)}, a leaf of the tree; place negated variables and groups"
            )
        if len({*below}) < len(below) or frozenset(below) not in nodes:
            raise PlanError(
                f"placements[{shown(name)}] = {shown(dict(items)[name])} is no node of {text(tree)}; "
                "name the variables below one in a tuple, all of them for the root"
            )
    return tuple((name, nodes[frozenset(placed[name])]) for name in sorted(placed))


def tree_from(given: Any, level: int = 0) -> Tree[str]:
    """The tree of names of an argument; lists are taken as pairs, as from :func:`plain_lists`.

    Raises PlanError if a node is neither a name nor a pair, or there are more than
    :data:`MAXIMUM_LEVELS` levels.
    """
    if isinstance(given, str):
        return given
    if level >= MAXIMUM_LEVELS:
        raise PlanError(
            f"a tree of more than {MAXIMUM_LEVELS} levels is too deep, or holds itself; give a long "
            "chain as an order, OrderPlan(names)"
        )
    is_either = isinstance(given, list) and len(given) == 3 and given[0] == "either"
    pair = given[1:] if is_either else given
    if isinstance(pair, list | tuple) and len(pair) == 2:
        halves = (tree_from(pair[0], level + 1), tree_from(pair[1], level + 1))
        return Either(*halves) if is_either or isinstance(given, Either) else halves
    raise PlanError(
        f"{shown(given)} is not a tree; a tree is a variable name or a pair of trees, "
        'such as (("a", "c"), "b")'
    )
