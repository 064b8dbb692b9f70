"""Evaluation plans: an order or a tree of a pattern's variables, as frozen data.

A pattern with OR has one for each of its branches, in a :class:`UnionPlan`.

A plan does not refer to its pattern; cost, generator and estimates are annotations for display.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from markupsafe import Markup

from cepbench.arguments import shown
from cepbench.errors import PlanError
from cepbench.markup import Html
from cepbench.planning.plans.drawing import FIGURE, tree_diagram
from cepbench.planning.plans.notes import PlanNotes, log_sum, shown_log
from cepbench.planning.plans.tree import (
    MAXIMUM_ALTERNATIVES,
    Either,
    Placements,
    Tree,
    alternatives,
    alternatives_of,
    has_placements,
    leaves,
    left_deep,
    placements_from,
    plain_lists,
    post_order,
    text,
    tree_from,
)


class Plan(PlanNotes):
    """Base class of plans; see :mod:`cepbench.planning.plans.kinds`."""

    kind: ClassVar[str]
    names: Sequence[str]
    #: The variables as they are joined.
    tree: Tree[str]
    #: The nodes at which negated variables are checked and groups formed, where the plan says so.
    placements: Placements = ()

    @property
    def shape(self) -> Any:
        """The constructor's argument, JSON-serializable."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The plan on one line; equal plans of one kind have equal texts."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Self, ...]:
        """The plans of the branches: itself alone."""
        return (self,)

    def alternatives(self) -> tuple[Self, ...]:
        """Plans without disjunctions, one for each choice: itself alone."""
        return (self,)

    def nodes(self) -> list[tuple[str, ...]]:
        """The variables at each node; ``estimates`` has one number for each."""
        raise NotImplementedError

    def describe(self) -> str:
        """The plan as text, over several lines."""
        raise NotImplementedError

    def labels(self) -> list[str]:
        """The estimates as texts, for the nodes of ``tree`` in post-order."""
        raise NotImplementedError

    def check(self, names: Iterable[str]) -> None:
        """Check that the plan is over exactly ``names``; PlanError if one is missing or unknown."""
        expected = tuple(names)
        for name in expected:
            if name not in self.names:
                raise PlanError(f"the plan lacks variable {name!r}; it has {', '.join(self.names)}")
        for name in self.names:
            if name not in expected:
                raise PlanError(
                    f"the plan has a variable {name!r} that the pattern has not; "
                    f"the pattern has {', '.join(expected)}"
                )

    def _repr_html_(self) -> str:
        return str(_as_html(self, self._headline(f"{self.kind} plan")))


@dataclass(frozen=True, repr=False)
class OrderPlan(Plan):
    """An order-based plan [kolchinsky2018]_, section 2.4: ``OrderPlan(["c", "a", "b"])``.

    It names the pattern's variables in the order in which partial matches bind them.

    Raises
    ------
    PlanError
        If a name is not a text, empty or repeated, or the number of estimates is wrong.
    """

    names: Sequence[str]
    kind: ClassVar[str] = "order"

    def __post_init__(self) -> None:
        if isinstance(self.names, str) or not isinstance(self.names, Iterable):
            raise PlanError(
                f'an order is a list of variable names such as ["a", "b"], not {shown(self.names)}'
            )
        object.__setattr__(self, "names", tuple(self.names))
        _check_names(self.names)
        self._check_estimates(len(self.names))

    @property
    def order(self) -> list[str]:
        """The variables in the order in which partial matches bind them."""
        return list(self.names)

    @property
    def shape(self) -> list[str]:
        """The order itself."""
        return self.order

    @property
    def tree(self) -> Tree[str]:  # type: ignore[override]
        """The same plan as a left-deep tree."""
        return left_deep(self.names)

    @property
    def text(self) -> str:
        """``c, a, b``."""
        return ", ".join(self.names)

    def nodes(self) -> list[tuple[str, ...]]:
        """The variables of each prefix; ``estimates`` has one number for each."""
        return [tuple(self.names[: k + 1]) for k in range(len(self.names))]

    def __repr__(self) -> str:
        return f"OrderPlan({self.order})"

    def describe(self) -> str:
        """The order, step by step, with the estimated number of partial matches."""
        lines = [self._headline("order plan")]
        width = max(map(len, self.names))
        for k, name in enumerate(self.names):
            estimate = f"  {shown_log(self.estimates[k])}" if self.estimates else ""
            lines.append(f"  {k + 1:>2}. {name:<{width}}{estimate}".rstrip())
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])

    def labels(self) -> list[str]:
        """The estimates as texts, for the nodes of ``tree`` in post-order."""
        # In post-order the k-th prefix's node comes right after its last leaf.
        labels = [""] * (2 * len(self.names) - 1)
        for k, estimate in enumerate(self.estimates):
            labels[2 * k] = shown_log(estimate)
        return labels


@dataclass(frozen=True, repr=False)
class TreePlan(Plan):
    """A tree-based plan [kolchinsky2018]_, section 2.4: ``TreePlan((("a", "c"), "b"))``.

    Parameters
    ----------
    tree : str or pair of trees
        Nested pairs of variable names; lists are taken as tuples. ``names`` are its leaves, left
        to right. With :class:`~cepbench.planning.plans.tree.Either` one tree is for all branches of an OR;
        evaluators run its alternatives, as those of a :class:`UnionPlan`, and ``zstream`` counts those that
        differ in single leaves together. Also a plan's ``shape``: a pair of a tree and placements.
    placements : mapping of str to sequence of str, optional
        Negated variables and groups, each with the variables below its node. In
        ``SEQ(A a, NOT(B b), C c)``, ``{"b": ("c",)}`` is NSEQ(!b, c), ``{"b": ("a",)}`` is
        NSEQ(a, !b), and ``{"b": ("a", "c")}``, the root, is NEG on top [mei2009]_, section 4.4.2.
        An engine without NSEQ checks such a variable at the lowest node above where that is exact.
        In ``SEQ(A a, GROUP(B b, +), C c, D d)``, ``{"b": ("a", "c")}`` is KSEQ(a, b, c)
        [mei2009]_, section 4.4.5; with ``{"b": ("a", "c", "d")}``, and by engines without KSEQ, the
        group is formed at the root. Others are pushed down as far as is exact. Stored as pairs,
        which ``dict`` turns into a mapping.

    Raises
    ------
    PlanError
        If a node is neither a name nor a pair, a name is empty or repeated, a placement is not a
        node, the number of estimates is wrong, there are more than :data:`MAXIMUM_LEVELS` levels, or
        a tree with disjunctions has placements or more than :data:`MAXIMUM_ALTERNATIVES` choices.
    """

    tree: Tree[str]
    placements: Any = ()
    names: tuple[str, ...] = field(init=False, compare=False)
    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        tree: Any = self.tree
        placements = self.placements
        if not placements and has_placements(tree):
            tree, placements = tree
        object.__setattr__(self, "tree", tree_from(tree))
        object.__setattr__(self, "names", tuple(leaves(self.tree)))
        _check_names(self.names)
        object.__setattr__(self, "placements", placements_from(placements, self.tree))
        choices = alternatives_of(self.tree)
        if choices > MAXIMUM_ALTERNATIVES:
            raise PlanError(
                f"the tree has {choices} alternatives, and no pattern more than "
                f"{MAXIMUM_ALTERNATIVES} branches"
            )
        if self.placements and choices > 1:
            raise PlanError(
                "placements are those of one branch, and a tree with Either is for several; write a "
                "UnionPlan with a plan for each branch"
            )
        self._check_estimates(2 * len(self.names) - 1)

    @property
    def shape(self) -> Any:
        """The tree itself, or a pair of the tree and the placements."""
        tree = plain_lists(self.tree)
        return (tree, dict(self.placements)) if self.placements else tree

    def alternatives(self) -> tuple[TreePlan, ...]:
        """The plans of the choices at each disjunction; itself alone without one."""
        if alternatives_of(self.tree) == 1:
            return (self,)
        return tuple(map(TreePlan, alternatives(self.tree)))

    @property
    def text(self) -> str:
        """``((a, c), b)``; with a placement ``((a, c), b); d at c``."""
        placed = (f"; {name} at {', '.join(below)}" for name, below in self.placements)
        return text(self.tree) + "".join(placed)

    def _operators(self) -> list[str]:
        """The disjunction, or what is placed at each node, as texts in post-order."""
        nodes = self.nodes()
        # Whether it is NEG or KSEQ above joins, only the pattern says.
        words = ["with" if len(node) > 1 or node == nodes[-1] else "NSEQ" for node in nodes]
        placed = [
            ", ".join(f"{word} {name}" for name, below in self.placements if below == node)
            for word, node in zip(words, nodes, strict=True)
        ]
        return [
            "DISJ" if isinstance(node, Either) else text
            for node, text in zip(post_order(self.tree), placed, strict=True)
        ]

    def nodes(self) -> list[tuple[str, ...]]:
        """The variables below each node in post-order; ``estimates`` has one number for each."""
        return [tuple(leaves(node)) for node in post_order(self.tree)]

    def __repr__(self) -> str:
        placed = f", placements={dict(self.placements)!r}" if self.placements else ""
        return f"TreePlan({self.tree!r}{placed})"

    def describe(self) -> str:
        """The tree from its root down, with the estimated number of partial matches per node."""
        lines = [self._headline("tree plan")]
        nodes, operators = self.nodes(), self._operators()
        width = 2 * len(nodes[-1]) + len(", ".join(nodes[-1])) + 5 + max(map(len, operators))

        def show(node: Tree[str], position: int, depth: int) -> None:
            word = "either" if isinstance(node, Either) else "join"
            text = node if isinstance(node, str) else f"{word} {', '.join(nodes[position])}"
            placed = "" if isinstance(node, Either) else operators[position]
            text = ", ".join(filter(None, (text, placed)))
            estimate = f"  {shown_log(self.estimates[position])}" if self.estimates else ""
            lines.append(f"{'  ' * (depth + 1) + text:<{width}}{estimate}".rstrip())
            if not isinstance(node, str):
                # Post-order puts the right child just before its parent, the left one before it.
                show(node[0], position - 2 * len(leaves(node[1])), depth + 1)
                show(node[1], position - 1, depth + 1)

        show(self.tree, len(nodes) - 1, 0)
        return "\n".join([*lines, *(f"  {remark}" for remark in self.remarks)])

    def labels(self) -> list[str]:
        """What is placed, and estimates, as texts, for the nodes of ``tree`` in post-order."""
        operators = self._operators()
        estimates = [shown_log(estimate) for estimate in self.estimates] or [""] * len(operators)
        return [", ".join(filter(None, pair)) for pair in zip(operators, estimates, strict=True)]


@dataclass(frozen=True, repr=False, init=False)
class UnionPlan(PlanNotes):
    """One plan for each branch of a pattern with OR: ``UnionPlan([OrderPlan(["a", "b"]), …])``.

    Its notes combine those of the branches [kolchinsky2018]_, sections 4 and 5.1: partial matches
    add up, and the latency is the largest. ``generator``, ``seed`` and ``cost_model`` are None
    unless all plans agree. Branches are planned independently, so the cost of the union need not be
    the least where latency counts; ``log_bound`` is then None. The plans are in the order of the
    pattern's branches, all of one kind.

    Raises
    ------
    PlanError
        If it is empty, an element is not a plan, or kinds are mixed.
    """

    plans: tuple[Plan, ...]

    def __init__(self, plans: Iterable[Plan]) -> None:
        if not isinstance(plans, Iterable):
            raise PlanError(f"a union is a list of plans, one per branch, not {shown(plans)}")
        parts = tuple(plans)
        if not parts:
            raise PlanError("a union needs at least one plan")
        for plan in parts:
            if not isinstance(plan, Plan):
                raise PlanError(
                    f"a union is made of plans, such as order plans, not of {shown(plan)}"
                )
            if plan.kind != parts[0].kind:
                raise PlanError("a union is made of plans of one kind: all orders or all trees")
        vars(self)["plans"] = parts
        alpha = max(plan.alpha for plan in parts)
        latency = _combined(max, [plan.log_latency for plan in parts])
        cost = self.log_throughput
        if alpha:
            weighted = None if latency is None else math.log(alpha) + latency
            cost = _combined(log_sum, [cost, weighted])
        vars(self).update(
            log_cost=cost,
            alpha=alpha,
            log_latency=latency,
            # With latency the least costs of the branches do not add up.
            log_bound=None if alpha else _combined(log_sum, [plan.log_bound for plan in parts]),
            complete=all(plan.complete for plan in parts),
        )
        for key in ("cost_model", "generator", "seed"):
            values = {getattr(plan, key) for plan in parts}
            vars(self)[key] = values.pop() if len(values) == 1 else None

    @property
    def parts(self) -> tuple[Plan, ...]:
        """The plans of the branches, in their order."""
        return self.plans

    @property
    def kind(self) -> str:
        """Name of the kind of all its parts."""
        return self.plans[0].kind

    @property
    def text(self) -> str:
        """The texts of its parts, separated by bars."""
        return " | ".join(plan.text for plan in self.plans)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of all branches, each once."""
        return tuple(dict.fromkeys(name for plan in self.plans for name in plan.names))

    @property
    def log_throughput(self) -> float | None:
        """Natural logarithm of the cost without latency."""
        return _combined(log_sum, [plan.log_throughput for plan in self.plans])

    def __repr__(self) -> str:
        return f"UnionPlan([{', '.join(map(repr, self.plans))}])"

    def describe(self) -> str:
        """The plans of the branches, one below the other."""
        lines = [self._union_headline()]
        for number, plan in enumerate(self.plans):
            _, *rest = plan.describe().splitlines()
            lines += [f"  branch {number}", *(f"  {line}" for line in rest)]
        return "\n".join(lines)

    def _union_headline(self) -> str:
        return self._headline(f"union of {len(self.plans)} {self.kind} plans")

    def _repr_html_(self) -> str:
        drawings = [
            _as_html(plan, f"branch {number}: {plan._costing()}".rstrip(": "))
            for number, plan in enumerate(self.plans)
        ]
        return str(_UNION(headline=self._union_headline(), drawings=drawings))


AnyPlan = Plan | UnionPlan


_UNION = Html(
    """<figure class="cep-plan"><figcaption>{{ headline }}</figcaption>
<div style="display:flex;flex-wrap:wrap;gap:1em">{{ drawings | join }}</div></figure>"""
)


def _combined(
    combine: Callable[[Sequence[float]], float], values: Sequence[float | None]
) -> float | None:
    """The combination of the values; None if one is unknown."""
    known = [value for value in values if value is not None]
    return combine(known) if len(known) == len(values) else None


def _as_html(plan: Plan, caption: str) -> Markup:
    notes = [[label] if label else [] for label in plan.labels()]
    return FIGURE(
        caption="; ".join([caption, *plan.remarks]), drawing=tree_diagram(plan.tree, notes)
    )


def _check_names(names: Sequence[Any]) -> None:
    if not names:
        raise PlanError("a plan needs at least one variable")
    for name in names:
        if not isinstance(name, str) or not name:
            raise PlanError(f"a plan is made of variable names, and {shown(name)} is none")
        if names.count(name) > 1:
            raise PlanError(f"the plan has variable {name!r} twice")
