"""Concept hierarchies over event types: what an event is of besides its own type."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from cepbench.arguments import elements, kind_of, text
from cepbench.errors import HierarchyError, did_you_mean


class ConceptHierarchy:
    """Event types and the concepts above them; each name has at most one parent.

    An event of a type is also of every concept above it. A type that the hierarchy does not have
    stands alone. Hierarchies are immutable, and equal if every name has the same parent in both.

    The mapping has for each name those below it, which may again be a mapping. Names without a
    parent are roots; several roots are several hierarchies.

    Raises HierarchyError if a name has two parents, is listed twice or is below itself, or is not a
    text.

    Source: [liu2011]_, Definition 1 and, for the encoding by intervals, section III-B.

    Examples
    --------
    >>> h = ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})
    >>> h.is_a("DELL", "Company"), h.interval("Computer"), h.ancestors("QQQ")
    (True, (1, 3), ('Finance', 'Company'))
    """

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        if not isinstance(mapping, Mapping):
            raise HierarchyError(
                'a concept hierarchy is a mapping such as {"Company": ["INTC", "DELL"]}, not '
                f"{kind_of(mapping)}"
            )
        self._parents: dict[str, str | None] = {}
        self._children: dict[str, list[str]] = {}
        unread: deque[tuple[str | None, Any]] = deque([(None, mapping)])
        while unread:
            parent, below = unread.popleft()
            if not isinstance(below, Mapping):
                listed = elements(below, f"the names below {parent!r}", '["INTC"]', HierarchyError)
                pairs: Any = [(name, ()) for name in listed]
            else:
                pairs = below.items()
            for name, its in pairs:
                self._add(text(name, "each name of a hierarchy", HierarchyError), parent)
                unread.append((name, its))
        self._intervals: dict[str, tuple[int, int]] = {}
        #: Each name directly before those below it.
        self.names = tuple(self._numbered())
        #: The names with names below them.
        self.concepts = frozenset(name for name, below in self._children.items() if below)
        self._hash = hash(frozenset(self._parents.items()))

    def _add(self, name: str, parent: str | None) -> None:
        known = self._parents.get(name)
        if parent is not None and known is not None:
            raise HierarchyError(
                f"{name!r} is listed twice below {parent!r}; list it once"
                if known == parent
                else f"{name!r} has two parents, {known!r} and {parent!r}; leave out one of them"
            )
        self._parents[name] = parent if known is None else known
        self._children.setdefault(name, [])
        if parent is not None:
            self._children[parent].append(name)

    def _numbered(self) -> list[str]:
        """Assign the intervals, depth first; the names in this order."""
        ordered: list[str] = []
        open_ = [name for name, parent in self._parents.items() if parent is None][::-1]
        while open_:
            name = open_.pop()
            ordered.append(name)
            open_ += self._children[name][::-1]
        circle = self._parents.keys() - set(ordered)
        if circle:
            raise HierarchyError(
                f"a circle: {self._circle(min(circle))}; no name may be below itself, so leave out one of "
                "these"
            )
        last: dict[str, int] = {}
        for place, name in reversed([*enumerate(ordered)]):
            below = self._children[name]
            last[name] = last[below[-1]] if below else place
            self._intervals[name] = (place, last[name])
        return ordered

    def _circle(self, name: str) -> str:
        """The names above a name of a circle, up to one that comes again."""
        chain = [name]
        while (above := self._parents[chain[-1]]) not in chain:
            assert above is not None  # a circle has no root
            chain.append(above)
        return " below ".join(map(repr, [*chain[chain.index(above) :], above]))

    def __contains__(self, name: object) -> bool:
        return name in self._parents

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConceptHierarchy):
            return NotImplemented
        return self._parents == other._parents

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"ConceptHierarchy({self.mapping!r})"

    @property
    def mapping(self) -> dict[str, tuple[str, ...]]:
        """Each root and each name with names below it → those directly below it."""
        return {
            name: tuple(its)
            for name in self.names
            if (its := self._children[name]) or self._parents[name] is None
        }

    @property
    def roots(self) -> tuple[str, ...]:
        """The names without a parent."""
        return tuple(name for name in self.names if self._parents[name] is None)

    def is_a(self, name: str, concept: str) -> bool:
        """Whether events of one type are of another: it is the same, or below it."""
        if name == concept:
            return True
        low, high = self._intervals.get(concept, (0, -1))
        return low <= self._intervals.get(name, (-1, -1))[0] <= high

    def overlap(self, one: str, other: str) -> bool:
        """Whether an event can be of both types: one of them is the other."""
        return self.is_a(one, other) or self.is_a(other, one)

    def interval(self, name: str) -> tuple[int, int]:
        """The positions in ``names`` of a name and of the last one below it.

        This and the other methods about one name raise :class:`~cepbench.errors.HierarchyError` if
        the hierarchy does not have it.
        """
        if name not in self:
            raise HierarchyError(
                f"the concept hierarchy has no {name!r}{did_you_mean(name, self.names)}"
            )
        return self._intervals[name]

    def below(self, name: str) -> tuple[str, ...]:
        """A name and all names below it: the own types that events of it can have."""
        low, high = self.interval(name)
        return self.names[low : high + 1]

    def parent(self, name: str) -> str | None:
        """The name directly above; None for a root."""
        self.interval(name)
        return self._parents[name]

    def children(self, name: str) -> tuple[str, ...]:
        """The names directly below."""
        self.interval(name)
        return tuple(self._children[name])

    def ancestors(self, name: str) -> tuple[str, ...]:
        """The names above, from the parent to the root."""
        found: list[str] = []
        above = self.parent(name)
        while above is not None:
            found.append(above)
            above = self._parents[above]
        return tuple(found)

    def at_level(self, name: str, level: int | None) -> str:
        """The name above another one at a level, or this itself: without a level, if it stands above
        the level, and if the hierarchy does not have it."""
        if level is None or name not in self:
            return name
        path = [*self.ancestors(name)[::-1], name]
        return path[min(level, len(path) - 1)]

    def leaves(self, name: str) -> tuple[str, ...]:
        """The names without names below them, of a name and those below it."""
        return tuple(each for each in self.below(name) if not self._children[each])

    def level(self, name: str) -> int:
        """The number of names above; roots are at level 0."""
        return len(self.ancestors(name))


def types_above(type: str | None, hierarchy: ConceptHierarchy | None) -> tuple[str, ...]:
    """The names above a type, from its parent on; none if no hierarchy has it."""
    if type is None or hierarchy is None or type not in hierarchy:
        return ()
    return hierarchy.ancestors(type)


def hierarchy_from(given: Any) -> ConceptHierarchy | None:
    """The hierarchy of an argument, or None; HierarchyError if it is something else."""
    if given is None or isinstance(given, ConceptHierarchy):
        return given
    raise HierarchyError(
        f"hierarchy must be a ConceptHierarchy, not {kind_of(given)}; write "
        'cep.ConceptHierarchy({"Company": ["INTC", "DELL"]})'
    )
