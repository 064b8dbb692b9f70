"""The order in time of a pattern's variables."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import combinations

from cepbench.patterns.model import Pattern

Pair = tuple[str, str]


class TemporalOrder:
    """The partial order in time of the positive variables of a pattern without OR."""

    def __init__(self, pattern: Pattern) -> None:
        self.names = pattern.positive_names
        known = frozenset(self.names)
        #: Pairs (x, y) such that every match has x strictly before y.
        self.before: Set[Pair] = {
            pair for pair in pattern.structure.precedence() if known >= {*pair}
        }

    @property
    def is_chain(self) -> bool:
        """Whether any two variables are ordered."""
        return len(self.before) == len(self.names) * (len(self.names) - 1) // 2

    def covering(self) -> Iterator[Pair]:
        """Pairs (x, y), x before y, with no variable in between."""
        after: dict[str, set[str]] = {name: set() for name in self.names}
        before: dict[str, set[str]] = {name: set() for name in self.names}
        for x, y in self.before:
            after[x].add(y)
            before[y].add(x)
        for x, y in self.before:
            if after[x].isdisjoint(before[y]):
                yield x, y

    def neighbouring(self) -> Iterator[Pair]:
        """Pairs that may be neighbours in time: covering and unordered ones."""
        yield from self.covering()
        for x, y in combinations(self.names, 2):
            if (x, y) not in self.before and (y, x) not in self.before:
                yield x, y

    def latest(self) -> tuple[str, ...]:
        """The variables whose event may be the last."""
        followed = {x for x, _ in self.before}
        return tuple(name for name in self.names if name not in followed)
