"""Numbers of matches of a graph, exact at any size, without enumeration.

The histories of a node are those of its predecessor, or the sum over a union, so that one pass over
the nodes below a root counts its matches in polynomial time although there may be exponentially
many, as GRETA [poppe2017]_ does for a trend's events.

A count that does not fit its digits, see :mod:`cepbench.kernels.exact`, is noticed by the last carry,
and the caller tries again with more.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.kernels.graph import ITEM, START, UNION, is_live
from cepbench.engines.runs.kernels.nodes import children, find_nodes, group_end
from cepbench.kernels.exact import add
from cepbench.kernels.jit import njit

#: Roots whose counts by length are computed at once, since they take room for each node.
_LENGTHS_AT_ONCE = 64


@njit
def count_histories(graph, roots, earliest, by_length, digits, scratch):
    """The numbers of histories of the nodes below roots.

    ``by_length``: whether there is one count for each length from 0 on, or one for all.

    Returns ``counts``: int64 (nodes, counts, digits), by node, in the order of ``scratch``.
    ``fits``: bool, whether the digits suffice.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    below = find_nodes(graph, roots, earliest, scratch)
    shift = 1 if by_length else 0
    # By node: behind the count of its longest histories.
    ends = np.full(below, shift + 1)
    for k in range(below):
        row = scratch.order[k] & mask
        first, last = children(graph, row)
        for column in range(first, last):
            if is_live(graph, nodes[row, column], earliest):
                its_end = ends[scratch.places[nodes[row, column] & mask]]
                ends[k] = max(ends[k], its_end + (0 if nodes[row, ITEM] == UNION else shift))
    counts = np.zeros((below, ends.max() if below > 0 else 0, digits), np.int64)
    carried = 0
    for k in range(below):
        row = scratch.order[k] & mask
        first, last = children(graph, row)
        is_first = True
        for column in range(first, last):
            if not is_live(graph, nodes[row, column], earliest):
                continue
            is_first = False
            place = scratch.places[nodes[row, column] & mask]
            if nodes[row, ITEM] == UNION:
                for number in range(ends[place]):
                    carried |= add(counts[k], number, counts[place], number)
            else:
                counts[k, shift : ends[k]] = counts[place, : ends[k] - shift]
        if is_first:
            counts[k, shift, 0] = 1
    return counts, carried == 0


@njit
def count_matches(graph, roots, earliest, digits, scratch):
    """Count the matches of each root.

    Returns ``found``: int64 (n, digits). ``fits``: bool, whether the digits suffice.
    """
    found = np.zeros((len(roots), digits), np.int64)
    first = 0
    while first < len(roots):
        last = group_end(earliest, first, len(roots))
        counts, fits = count_histories(
            graph, roots[first:last], earliest[first], False, digits, scratch
        )
        if not fits:
            return found, False
        for number in range(first, last):
            if is_live(graph, roots[number], earliest[number]):
                place = scratch.places[roots[number] & (len(graph.nodes) - 1)]
                found[number] = counts[place, 0]
        first = last
    return found, True


@njit
def count_lengths(graph, roots, earliest, digits, scratch):
    """Count the matches of all roots by their numbers of events.

    Returns ``found``: int64 (lengths from 0 on, digits). ``fits``: bool, whether the digits
    suffice.
    """
    found = np.zeros((1, digits), np.int64)
    first, carried = 0, 0
    while first < len(roots):
        last = group_end(earliest, first, _LENGTHS_AT_ONCE)
        counts, fits = count_histories(
            graph, roots[first:last], earliest[first], True, digits, scratch
        )
        if counts.shape[1] > len(found):
            longer = np.zeros((counts.shape[1], digits), np.int64)
            longer[: len(found)] = found
            found = longer
        for number in range(first, last):
            if is_live(graph, roots[number], earliest[number]):
                its = counts[scratch.places[roots[number] & (len(graph.nodes) - 1)]]
                for length in range(len(its)):
                    carried |= add(found, length, its, length)
        if not fits or carried != 0:
            return found, False
        first = last
    return found, True


@njit
def counts_per_start(graph, roots, earliest, digits, scratch, lowest, positions):
    """Count the matches of all roots by the position of their first event, from ``lowest`` on.

    Each root has the weight one, which is passed down to the first events.

    Returns ``found``: int64 (positions, digits). ``fits``: bool, whether the digits suffice.
    """
    found, carried = np.zeros((positions, digits), np.int64), 0
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    first_root = 0
    while first_root < len(roots):
        last_root = group_end(earliest, first_root, len(roots))
        bound = earliest[first_root]
        below = find_nodes(graph, roots[first_root:last_root], bound, scratch)
        weights = np.zeros((below, digits), np.int64)
        for number in range(first_root, last_root):
            if is_live(graph, roots[number], bound):
                weights[scratch.places[roots[number] & mask], 0] += 1
        for k in range(below - 1, -1, -1):
            row = scratch.order[k] & mask
            first, last = children(graph, row)
            is_first = True
            for column in range(first, last):
                if is_live(graph, nodes[row, column], bound):
                    place = scratch.places[nodes[row, column] & mask]
                    carried |= add(weights, place, weights, k)
                    is_first = False
            if is_first:
                carried |= add(found, nodes[row, START] - lowest, weights, k)
        first_root = last_root
    return found, carried == 0
