"""Which nodes of a plan can be counted as stars, see :mod:`cepbench.engines.zstream.kernels.star`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cepbench.patterns.stars import stars_of

#: A column of values of the first leaf, one of the second, an operator.
Comparison = tuple[int, int, int]


@dataclass(frozen=True)
class Bound:
    """For each event of leaf ``x`` a row of leaf ``y``: the first one at its time + ``shift``."""

    x: int
    y: int
    shift: int
    #: A leaf: count from the time of its event that negates the event of ``x`` instead; or -1.
    negated: int = -1
    comparisons: tuple[Comparison, ...] = ()  #: between the events of ``x`` and of ``negated``
    #: Whether the negating event is the first one after the event of ``x``, not the last before.
    is_after: bool = False
    node: int = -1  #: which node's comparisons these are; -1 if there are none


@dataclass(frozen=True)
class Leg:
    """A spoke or a satellite."""

    leaf: int
    #: The rows that the centre's event allows.
    low: Bound
    high: Bound
    #: Of a satellite, the row that the spoke's event sets: the first one if ``from_low``, otherwise
    #: the one behind the last.
    moving: Bound | None
    from_low: bool
    comparisons: tuple[Comparison, ...]  #: of the centre's event with the leaf's


@dataclass(frozen=True)
class Star:
    """A node as a star around the leaf ``centre``; ``latest`` is the leaf of the latest event."""

    centre: int
    spoke: Leg
    satellites: tuple[Leg, ...]
    latest: int

    @property
    def legs(self) -> tuple[Leg, ...]:
        """The spoke and the satellites."""
        return (self.spoke, *self.satellites)


@dataclass(frozen=True)
class Stars:
    """The nodes of a plan for a SEQ of plain variables, which are numbered in its order."""

    nodes: Sequence[tuple[int, ...]]  #: the leaves of each node, ascending; the root last
    window: int
    #: Between two leaves, in both directions.
    comparisons: Mapping[tuple[int, int], tuple[Comparison, ...]]

    def is_possible(self) -> bool:
        """Whether all nodes are stars."""
        return all(map(self._given, self.nodes))

    def cheapest(self, sizes: Sequence[int], share: float) -> list[tuple[Star, ...]]:
        """The stars that count each node, by the events of each leaf and the share of them within a
        window; see :func:`cepbench.patterns.stars.stars_of`.
        """

        def cost(pairs: Sequence[tuple[int, int]]) -> float:
            # In the order of magnitude of what is done for an event, and for a pair of them.
            return sum(sizes[z] * (10 + share * sizes[a]) for z, a in pairs)

        return [
            tuple(self._star(node, *pair) for pair in min(self._given(node), key=cost))
            for node in self.nodes
        ]

    def _given(self, node: tuple[int, ...]) -> Sequence[Sequence[tuple[int, int]]]:
        return stars_of(node, frozenset(self.comparisons), is_root=node == self.nodes[-1])

    def _star(self, node: tuple[int, ...], centre: int, spoke: int) -> Star:
        others = [leaf for leaf in node if leaf not in (centre, spoke)]
        satellites = tuple(self._leg(centre, leaf, spoke) for leaf in others)
        return Star(centre, self._leg(centre, spoke), satellites, node[-1])

    def _leg(self, centre: int, leaf: int, spoke: int | None = None) -> Leg:
        moving, from_low = None, False
        if spoke is not None:
            # What sets the first row is the later one of those before, or else the later of both.
            both = (centre, spoke)
            from_low = max([x for x in both if x < leaf] or both) == spoke
            moving = self._low(spoke, leaf) if from_low else self._high(spoke, leaf)
        return Leg(
            leaf,
            self._low(centre, leaf),
            self._high(centre, leaf),
            moving,
            from_low,
            self.comparisons.get((centre, leaf), ()),
        )

    def _low(self, x: int, y: int) -> Bound:
        """The first row of ``y`` that an event of ``x`` allows."""
        return Bound(x, y, 1 if x < y else -self.window)

    def _high(self, x: int, y: int) -> Bound:
        """The row of ``y`` behind the last one that an event of ``x`` allows."""
        return Bound(x, y, 0 if y < x else self.window + 1)
