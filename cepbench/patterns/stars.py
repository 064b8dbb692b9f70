"""Sets of variables of a SEQ that have a centre: given its event, the others are independent.

If all conditions on some variables mention one of them, the *centre*, and one more event is given, that
of the *spoke*, then each of the others, the *satellites*, can be counted on its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import pairwise, permutations

#: Satellites of a star, at most.
MOST_SATELLITES = 2


@lru_cache(maxsize=1024)
def stars_of(
    node: tuple[int, ...], tested: frozenset[tuple[int, int]], *, is_root: bool
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The ways to count some variables as stars, each the centres and spokes of one or two stars.

    The root takes one star. Another node takes one centre with each end that is another event as its
    spoke, as the times between them are added up too.

    The variables are ascending in the order of the SEQ; those of the pairs ``tested`` have
    conditions.
    """
    pairs = list(_centres_and_spokes(node, tested))
    if is_root:
        return tuple((pair,) for pair in pairs)
    by_centre: dict[int, list[tuple[int, int]]] = {}
    for centre, spoke in pairs:
        if spoke in (node[0], node[-1]):
            by_centre.setdefault(centre, []).append((centre, spoke))
    return tuple(map(tuple, by_centre.values()))


def _centres_and_spokes(
    node: tuple[int, ...], tested: Collection[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    inside = [pair for pair in tested if {*pair} <= {*node}]
    for both in permutations(node, 2):
        if (
            len(node) - 2 <= MOST_SATELLITES
            and all(both[0] in pair for pair in inside)
            # Satellites are ordered, and in one window, by what they have with both.
            and not {node[0], node[-1]}.isdisjoint(both)
            and not any({*both}.isdisjoint(pair) for pair in pairwise(node))
        ):
            yield both
