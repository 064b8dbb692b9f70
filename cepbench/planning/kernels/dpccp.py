"""DPccp: dynamic programming over the connected sets of a graph and the pairs that can be joined.

A set is a bit mask. Connected sets are enumerated from their first member: a set is extended by
each nonempty subset (group) of its neighbours, first by all groups without further extension, then
recursively from each extended set. Each set is visited once, after all connected subsets with the
same first member.

``frames`` is the stack of this recursion, one column per level: the current set, the excluded
variables, its neighbours to extend it by, the group tried last, the rank of this group, and the
positions at which the set and its extensions by one group are listed.
"""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit, njit_in_place
from cepbench.planning.kernels.log_sums import log_add
from cepbench.planning.kernels.terms import CostTerms

_REACHED, _BARRED, _BESIDE, _GROUP, _RANK, _PLACE, _FIRST = range(7)

#: Powers of 2 have distinct remainders modulo this; a table of remainders gives the index of a bit.
_PRIME = 67
#: Spreads masks over the slots of a hash table, by Fibonacci hashing.
_SPREAD = 0x1E3779B97F4A7C15
#: Up to this number of variables, each set has its own slot.
_MOST_PLAIN = 24

#: If the logarithms of all numbers are within this range, the numbers themselves are added, scaled
#: to the middle of the range: no under- or overflow, and a pair takes half the time.
_RANGE = 1300.0

#: Pairs between two readings of the clock.
_PAIRS_PER_LOOK = 1 << 16


@njit
def count_sets(adjacent: np.ndarray, most: int) -> int:
    """The number of connected sets; counting stops above ``most``.

    ``adjacent`` are the neighbours of each variable as bits, int64, shape (n,), n at most 62.
    """
    n = len(adjacent)
    index_of = _index_of_bits()
    frames = np.zeros((7, n + 1), dtype=np.int64)
    found = 0
    for start in range(n - 1, -1, -1):
        found += 1
        depth = _begin(frames, 1 << start, (2 << start) - 1, adjacent, index_of)
        while depth >= 0:
            found += (1 << _members(frames[_BESIDE, depth])) - 1
            if found > most:
                return found
            depth = _advance(frames, depth, adjacent, index_of)
    return found


@njit
def count_pairs(adjacent: np.ndarray, sets: np.ndarray, most: int) -> int:
    """The number of pairs of connected sets that can be joined, or a number above ``most``.

    The sets are those of :func:`list_sets`.
    """
    index_of = _index_of_bits()
    frames = np.zeros((7, len(adjacent) + 1), dtype=np.int64)
    pairs = 0
    for place in range(len(sets)):
        barred, seeds = _beside(sets[place], adjacent, index_of)
        rest = seeds
        while rest:
            seed = rest & -rest
            rest ^= seed
            pairs += 1
            depth = _begin(frames, seed, barred | (seeds & (2 * seed - 1)), adjacent, index_of)
            while depth >= 0:
                pairs += (1 << _members(frames[_BESIDE, depth])) - 1
                if pairs > most:
                    return pairs
                depth = _advance(frames, depth, adjacent, index_of)
    return pairs


@njit
def list_sets(
    adjacent: np.ndarray,
    terms: CostTerms,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """All connected sets, of which there are ``count``, and ln PM of each.

    Connected subsets come before their supersets if both have the same first member, sets with a
    later first member before those with an earlier one.
    """
    log_factor, log_selectivity = terms.log_factor, terms.log_selectivity
    n = len(adjacent)
    index_of = _index_of_bits()
    frames = np.zeros((7, n + 1), dtype=np.int64)
    sets = np.empty(count, dtype=np.int64)
    sizes = np.empty(count)
    found = 0
    for start in range(n - 1, -1, -1):
        sets[found] = 1 << start
        sizes[found] = log_factor[start]
        depth = _begin(frames, 1 << start, (2 << start) - 1, adjacent, index_of)
        frames[_PLACE, 0] = found
        found += 1
        while depth >= 0:
            frames[_FIRST, depth] = found
            beside = frames[_BESIDE, depth]
            group = 0
            rank = 0
            while group != beside:
                group = (group - beside) & beside
                rank += 1
                # The rank of a group without its first member lacks the lowest bit.
                fewer = rank & (rank - 1)
                source = frames[_FIRST, depth] + fewer - 1 if fewer else frames[_PLACE, depth]
                bit = group & -group
                new = index_of[bit % _PRIME]
                size = sizes[source] + log_factor[new]
                members = sets[source]
                sets[found] = members | bit
                while members:
                    bit = members & -members
                    members ^= bit
                    size += log_selectivity[new, index_of[bit % _PRIME]]
                sizes[found] = size
                found += 1
            depth = _advance(frames, depth, adjacent, index_of)
    for place in range(count):
        rest = sets[place]
        members = 0
        least = np.inf
        while rest:
            bit = rest & -rest
            rest ^= bit
            members += 1
            least = min(least, terms.log_bound[index_of[bit % _PRIME]])
        sizes[place] += least + terms.log_order_factor[members]
    return sets, sizes


@njit
def cheapest_connected_tree(
    adjacent: np.ndarray,
    sets: np.ndarray,
    sizes: np.ndarray,
    terms: CostTerms,
    most_pairs: int,
    deadline: int,
) -> tuple[np.ndarray, bool, int]:
    """The tree of least Cost_tree all whose nodes are connected sets, as of :func:`list_sets`.

    Returns the bit masks of the children of each inner node, parents first, int64, shape (n − 1,
    2); whether the search completed, without which the nodes are invalid; and the number of pairs
    tried.
    """
    n = len(adjacent)
    count = len(sets)
    index_of = _index_of_bits()
    slots, spread, shift = _slots(sets, n)
    frames = np.zeros((7, n + 1), dtype=np.int64)
    clock = np.empty(2, dtype=np.int64)
    last = terms.last
    costs, weight, plain = _scaled(sizes, terms.log_weight, last)
    # best[S]: first the least cost of two halves of S; once S is processed, that of a tree over S.
    # half[S]: the cost of S as one of two halves of a set with `last`.
    best = np.empty(count)
    for place in range(count):
        best[place] = np.inf
    half = np.empty(count) if last >= 0 else best
    left_of = np.empty(count, dtype=np.int32)
    pairs = 0
    look = _PAIRS_PER_LOOK
    for place in range(count):
        mask = sets[place]
        single = mask & (mask - 1) == 0
        best[place] = costs[place] if single else _sum(costs[place], best[place], plain)
        if last >= 0:
            half[place] = best[place]
            if not (mask >> last) & 1:
                waiting = weight * costs[place] if plain else weight + costs[place]
                half[place] = _sum(best[place], waiting, plain)
        barred, seeds = _beside(mask, adjacent, index_of)
        rest = seeds
        while rest:
            seed = rest & -rest
            rest ^= seed
            pairs += 1
            _try(place, seed, last, sets, slots, spread, shift, best, half, plain, left_of)
            depth = _begin(frames, seed, barred | (seeds & (2 * seed - 1)), adjacent, index_of)
            while depth >= 0:
                if pairs >= min(look, most_pairs):
                    if pairs > most_pairs or now(clock) >= deadline:
                        return np.empty((0, 2), dtype=np.int64), False, pairs
                    look = pairs + _PAIRS_PER_LOOK
                reached, beside = frames[_REACHED, depth], frames[_BESIDE, depth]
                group = 0
                while group != beside:
                    group = (group - beside) & beside
                    pairs += 1
                    partner = reached | group
                    _try(
                        place, partner, last, sets, slots, spread, shift, best, half, plain, left_of
                    )
                depth = _advance(frames, depth, adjacent, index_of)
    return _collect(n, sets, slots, spread, shift, left_of), True, pairs


@njit
def _index_of_bits() -> np.ndarray:
    """The index of each bit, by its remainder."""
    index_of = np.zeros(_PRIME, dtype=np.int64)
    for i in range(63):
        index_of[(1 << i) % _PRIME] = i
    return index_of


@njit_in_place
def _members(mask: int) -> int:
    members = 0
    while mask:
        mask &= mask - 1
        members += 1
    return members


@njit_in_place
def _neighbours(mask: int, adjacent: np.ndarray, index_of: np.ndarray) -> int:
    """The neighbours of all members; may include members."""
    found = 0
    while mask:
        bit = mask & -mask
        mask ^= bit
        found |= adjacent[index_of[bit % _PRIME]]
    return found


@njit_in_place
def _beside(mask: int, adjacent: np.ndarray, index_of: np.ndarray) -> tuple[int, int]:
    """The variables excluded from a set's partners, and its neighbours that are not excluded."""
    first = mask & -mask
    barred = mask | (2 * first - 1)
    return barred, _neighbours(mask, adjacent, index_of) & ~barred


@njit_in_place
def _begin(
    frames: np.ndarray, start: int, barred: int, adjacent: np.ndarray, index_of: np.ndarray
) -> int:
    """Begin the enumeration of connected sets with ``start``, without ``barred`` variables."""
    frames[_REACHED, 0] = start
    frames[_BARRED, 0] = barred
    frames[_BESIDE, 0] = _neighbours(start, adjacent, index_of) & ~barred
    frames[_GROUP, 0] = 0
    frames[_RANK, 0] = 0
    return 0


@njit_in_place
def _advance(frames: np.ndarray, depth: int, adjacent: np.ndarray, index_of: np.ndarray) -> int:
    """Advance to the next set with neighbours to extend it by; negative if there is none."""
    while depth >= 0:
        beside, group = frames[_BESIDE, depth], frames[_GROUP, depth]
        if group == beside:
            depth -= 1
            continue
        group = (group - beside) & beside
        frames[_GROUP, depth] = group
        frames[_RANK, depth] += 1
        barred = frames[_BARRED, depth] | beside
        further = _neighbours(group, adjacent, index_of) & ~barred
        if further:
            frames[_REACHED, depth + 1] = frames[_REACHED, depth] | group
            frames[_BARRED, depth + 1] = barred
            frames[_BESIDE, depth + 1] = further
            frames[_GROUP, depth + 1] = 0
            frames[_RANK, depth + 1] = 0
            frames[_PLACE, depth + 1] = frames[_FIRST, depth] + frames[_RANK, depth] - 1
            return depth + 1
    return -1


@njit
def _scaled(sizes: np.ndarray, log_alpha: float, last: int) -> tuple[np.ndarray, float, bool]:
    """Sizes and α as scaled numbers (True), or as logarithms if the range is too large (False)."""
    lowest, highest = np.inf, -np.inf
    for place in range(len(sizes)):
        lowest = min(lowest, sizes[place])
        highest = max(highest, sizes[place])
    if last >= 0:
        lowest, highest = min(lowest, lowest + log_alpha), max(highest, highest + log_alpha)
    if highest - lowest > _RANGE:
        return sizes, log_alpha, False
    weight = math.exp(log_alpha) if last >= 0 else 0.0
    middle = (lowest + highest) / 2
    scaled = np.empty(len(sizes))
    for place in range(len(sizes)):
        scaled[place] = math.exp(sizes[place] - middle)
    return scaled, weight, True


@njit_in_place
def _sum(a: float, b: float, plain: bool) -> float:
    return a + b if plain else log_add(a, b)


@njit
def _slots(sets: np.ndarray, n: int) -> tuple[np.ndarray, int, int]:
    """A hash table from sets to their positions, and multiplier and shift of its hash function."""
    bits = n
    spread = 1
    shift = 0
    if n > _MOST_PLAIN:
        bits = 1
        while 1 << bits < 2 * len(sets):
            bits += 1
        spread = _SPREAD
        shift = 62 - bits
    slots = np.empty(1 << bits, dtype=np.int32)
    for slot in range(len(slots)):
        slots[slot] = -1
    for place in range(len(sets)):
        slot = _slot(sets[place], slots, spread, shift)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = place
    return slots, spread, shift


@njit_in_place
def _slot(mask: int, slots: np.ndarray, spread: int, shift: int) -> int:
    """The first slot to probe for a set."""
    # As Python integers, which do not warn of overflow when kernels are not compiled.
    return (int(mask) * int(spread) >> int(shift)) & (len(slots) - 1)


@njit_in_place
def _place(mask: int, sets: np.ndarray, slots: np.ndarray, spread: int, shift: int) -> int:
    slot = _slot(mask, slots, spread, shift)
    if shift == 0:
        return slots[slot]
    while sets[slots[slot]] != mask:
        slot = (slot + 1) & (len(slots) - 1)
    return slots[slot]


@njit_in_place
def _try(
    place: int,
    partner: int,
    last: int,
    sets: np.ndarray,
    slots: np.ndarray,
    spread: int,
    shift: int,
    best: np.ndarray,
    half: np.ndarray,
    plain: bool,
    left_of: np.ndarray,
) -> None:
    """Record the join of a set, given by its position, with a partner if it is the best so far."""
    union = sets[place] | partner
    halves = half if last >= 0 and (union >> last) & 1 else best
    a = halves[place]
    b = halves[_place(partner, sets, slots, spread, shift)]
    joined = _place(union, sets, slots, spread, shift)
    # A sum exceeds its larger part, so most pairs end here.
    if max(a, b) < best[joined]:
        total = _sum(a, b, plain)
        # `<` keeps the first of equally good pairs.
        if total < best[joined]:
            best[joined] = total
            left_of[joined] = place


@njit
def _collect(
    n: int,
    sets: np.ndarray,
    slots: np.ndarray,
    spread: int,
    shift: int,
    left_of: np.ndarray,
) -> np.ndarray:
    """The children of each inner node of the best tree, parents first."""
    nodes = np.empty((n - 1, 2), dtype=np.int64)
    masks = np.empty(n, dtype=np.int64)
    masks[0] = (1 << n) - 1
    found = 1
    for node in range(n - 1):
        mask = masks[node]
        left = sets[left_of[_place(mask, sets, slots, spread, shift)]]
        nodes[node, 0] = left
        nodes[node, 1] = mask ^ left
        for child in (left, mask ^ left):
            if child & (child - 1):
                masks[found] = child
                found += 1
    return nodes
