"""The kinds of plan by name, and the conversion of a generator's result to a plan.

A kind has a class of plans, constructed from a ``shape``: the list of an order, the nested pairs of
a tree. Generators and costs use the same shape over the indices 0 … n−1 of a problem's variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from cepbench.errors import PlanError, PlanGeneratorError
from cepbench.planning.plans.model import AnyPlan, OrderPlan, Plan, TreePlan, UnionPlan
from cepbench.planning.plans.tree import Either, has_placements, leaves, post_order, relabel
from cepbench.registry import Registry


@dataclass(frozen=True)
class PlanKind:
    """A kind of plan."""

    name: str
    #: A subclass of :class:`~cepbench.planning.plans.model.Plan`, called with a shape over names
    #: and notes.
    plan: Callable[..., Plan]
    #: (a generator's result, names of the variables, the generator's name) → a shape over the
    #: indices 0 … n−1; raises PlanGeneratorError if the result is invalid.
    checked: Callable[[Any, Sequence[str], str], Any]
    #: (shape, function of a label) → the same shape with other labels.
    relabel: Callable[[Any, Callable[[Any], Any]], Any]
    #: (a generator's result, n) → the result with iterators read. Its errors count as those of the
    #: generator, whose code an iterator runs.
    read: Callable[[Any, int], Any] = lambda found, n: found

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.plan.__module__.startswith("cepbench.")

    def named(self, indices: Any, names: Sequence[str], **notes: Any) -> Plan:
        """The plan of a shape over indices."""
        return self.plan(self.relabel(indices, names.__getitem__), **notes)


def indices_of(plan: Plan, names: Sequence[str]) -> Any:
    """A plan's shape over the indices of ``names``."""
    index = {name: number for number, name in enumerate(names)}
    return PLAN_KINDS[plan.kind].relabel(plan.shape, index.__getitem__)


def plan_to_json(plan: AnyPlan) -> dict[str, Any]:
    """A plan's kind and shape, without its notes."""
    if isinstance(plan, UnionPlan):
        return {"kind": "union", "shape": [plan_to_json(part) for part in plan.parts]}
    return {"kind": plan.kind, "shape": plan.shape}


def plan_from_json(described: Mapping[str, Any]) -> AnyPlan:
    """The inverse of :func:`plan_to_json`; PlanError if it is not the description of a plan."""
    match described:
        case {"kind": "union", "shape": list() as parts}:
            return UnionPlan([plan_from_json(part) for part in parts])  # type: ignore[misc]
        case {"kind": str() as kind, "shape": shape} if kind in PLAN_KINDS:
            return PLAN_KINDS[kind].plan(shape)
    raise PlanError(f"{described!r} does not describe a plan")


def _listed(found: Any, n: int) -> Any:
    """The elements of an iterable result; any other result unchanged."""
    # Sets and mappings are iterable too, but in no defined order.
    if isinstance(found, str | bytes | AbstractSet | Mapping) or not isinstance(found, Iterable):
        return found
    # An iterator may be endless; one element too many is enough for an error.
    return list(islice(found, n + 1))


def _checked_order(found: Any, names: Sequence[str], who: str) -> list[int]:
    if not isinstance(found, list):
        raise PlanGeneratorError(
            f"{who} returned {_shown(found)}; an order is a list of the indices "
            f"0 … {len(names) - 1}"
        )
    order = [_checked_index(item, found, names, who) for item in found]
    _check_complete(order, order, names, who)
    return order


def _checked_tree(found: Any, names: Sequence[str], who: str) -> Any:
    def check(node: Any) -> Any:
        if isinstance(node, tuple | list):
            if len(node) != 2 or isinstance(node, Either):
                flat = node is found and all(isinstance(item, int | np.integer) for item in node)
                hint = ', and a list of indices an order, for kind="order"' if flat else ""
                raise PlanGeneratorError(
                    f"{who} returned {_shown(found)}, where {_shown(node)} is no pair; a tree is "
                    f"an index or a pair of trees, such as ((0, 2), 1){hint}"
                )
            return (check(node[0]), check(node[1]))
        seen.append(_checked_index(node, found, names, who))
        return seen[-1]

    seen: list[int] = []
    try:
        tree = check(found)
    except RecursionError:
        raise PlanGeneratorError(
            f"{who} returned a tree that is too deep, or holds itself"
        ) from None
    _check_complete(seen, tree, names, who)
    return tree


def _checked_shape(found: Any, names: Sequence[str], who: str) -> Any:
    """A tree, or a pair of a tree and placements, over indices."""
    if not has_placements(found):
        return _checked_tree(found, names, who)
    tree = _checked_tree(found[0], names, who)
    nodes = {frozenset(leaves(node)) for node in post_order(tree)}
    placements = {}
    for name, below in found[1].items():
        placements[name] = tuple(_checked_index(item, below, names, who) for item in below)
        if frozenset(placements[name]) not in nodes:
            raise PlanGeneratorError(
                f"{who} placed {name!r} at {_shown(below)}, which is no node of {_shown(tree)}"
            )
    return tree, placements


def _relabelled(shape: Any, label: Callable[[Any], Any]) -> Any:
    if not has_placements(shape):
        return relabel(shape, label)
    tree, placements = shape
    placed = {name: tuple(map(label, below)) for name, below in placements.items()}
    return relabel(tree, label), placed


def _checked_index(item: Any, found: Any, names: Sequence[str], who: str) -> int:
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
        hint = " (an index, not a name)" if isinstance(item, str) else ""
        if isinstance(item, tuple | list):
            hint = ' (nested pairs are a tree, for kind="tree")'
        raise PlanGeneratorError(
            f"{who} returned {_shown(found)}, where {_shown(item)} is no index{hint}; "
            f"plans are made of the indices 0 … {len(names) - 1}"
        )
    if not 0 <= item < len(names):
        hint = "; they begin at 0" if item == len(names) else ""
        raise PlanGeneratorError(
            f"{who} returned {_shown(found)}, but the pattern's indices are "
            f"0 … {len(names) - 1}, not {item}{hint}"
        )
    return int(item)


def _check_complete(indices: list[int], plan: Any, names: Sequence[str], who: str) -> None:
    times = Counter(indices)
    faults = [
        f"{index} ({names[index]!r}) appears {'twice' if count == 2 else f'{count} times'}"
        for index, count in sorted(times.items())
        if count > 1
    ]
    missing = [
        f"{index} ({variable!r})" for index, variable in enumerate(names) if index not in times
    ]
    if missing:
        some = missing if len(missing) <= 5 else [*missing[:3], f"{len(missing) - 3} more"]
        listed = " and ".join(filter(None, (", ".join(some[:-1]), some[-1])))
        faults.append(f"{listed} {'is' if len(missing) == 1 else 'are'} missing")
    if faults:
        events = f"{len(names)} event{'s' if len(names) > 1 else ''}"
        raise PlanGeneratorError(
            f"{who} returned {_shown(plan)} for {events}: {', '.join(faults)}; "
            "return each of range(problem.n) once"
        )


def _shown(found: Any) -> str:
    """A result as messages quote it, shortened."""
    text = repr(found)
    return text if len(text) <= 200 else f"{text[:200]} …"


#: The kinds of plan, in the order of registration.
PLAN_KINDS = Registry(
    PlanKind,
    "kind of plan",
    PlanError,
    (
        PlanKind(
            "order",
            OrderPlan,
            _checked_order,
            lambda order, label: [label(item) for item in order],
            _listed,
        ),
        PlanKind("tree", TreePlan, _checked_shape, _relabelled),
    ),
)
