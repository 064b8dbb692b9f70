"""Numbers of matches of a graph, exact at any size, without enumeration.

The histories of a node are those of its predecessor, or the sum over a union, so that one pass over
the nodes below a root counts its matches in polynomial time although there may be exponentially
many, as GRETA [poppe2017]_ does for a trend's events.

A count is one or more *digits* of 62 bits, the lowest first, so that two of them and a carry fit
into an integer of 64 bits. :func:`measure` bounds counts by their logarithms, from which the caller
derives how many digits suffice; one, in most cases.
"""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.jit import njit, njit_in_place
from cepbench.kernels.match_graph.graph import ITEM, START, UNION, is_live
from cepbench.kernels.match_graph.nodes import children, find_nodes

#: Bits of a digit.
DIGIT_BITS = 62

_LOWEST = (1 << DIGIT_BITS) - 1


@njit
def measure(graph, roots, earliest, scratch):
    """Bounds of the matches of each root.

    Parameters
    ----------
    graph : MatchGraph
    roots, earliest : int64 arrays, shape (n,)
        As for :func:`cepbench.kernels.match_graph.enumeration.enumerate_matches`.
    scratch : Scratch

    Returns
    -------
    bits : float64 array, shape (n,)
        Binary logarithms of their numbers, less than 10⁻³ too small; -inf for none.
    longest : int64 array, shape (n,)
        The most events of one.
    """
    bits, longest = np.full(len(roots), -np.inf), np.zeros(len(roots), np.int64)
    for number in range(len(roots)):
        below = find_nodes(graph, roots[number], earliest[number], scratch)
        logs, sizes = np.zeros(below), np.ones(below, np.int64)
        for k in range(below):
            row = scratch.order[k] & (len(graph.nodes) - 1)
            first, last = children(graph, row)
            added = 0
            for column in range(first, last):
                child = graph.nodes[row, column]
                if not is_live(graph, child, earliest[number]):
                    continue
                place = scratch.places[child & (len(graph.nodes) - 1)]
                if added == 0:
                    logs[k], sizes[k] = logs[place], sizes[place]
                else:
                    more, less = max(logs[k], logs[place]), min(logs[k], logs[place])
                    logs[k] = more + math.log2(1.0 + 2.0 ** (less - more))
                    sizes[k] = max(sizes[k], sizes[place])
                added += 1
            if graph.nodes[row, ITEM] != UNION and added > 0:
                sizes[k] += 1
        if below > 0:
            bits[number], longest[number] = logs[below - 1], sizes[below - 1]
    return bits, longest


@njit
def count_histories(graph, root, earliest, shift, width, scratch):
    """The numbers of histories of the nodes below a root.

    Parameters
    ----------
    graph : MatchGraph
    root, earliest : int
    shift : int
        0 for one count a node, or the digits of a count, for one count a length.
    width : int
        The digits of a node, that is of a count, or of the counts of all lengths from 0 on.
    scratch : Scratch
        Holds the nodes.

    Returns
    -------
    int64 array, shape (nodes, width)
        By node, the root last; no rows if the root is expired.
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    below = find_nodes(graph, root, earliest, scratch)
    counts = np.zeros((below, width), np.int64)
    for k in range(below):
        row = scratch.order[k] & mask
        first, last = children(graph, row)
        is_first = True
        for column in range(first, last):
            if is_live(graph, nodes[row, column], earliest):
                its = counts[scratch.places[nodes[row, column] & mask]]
                if nodes[row, ITEM] == UNION:
                    add_digits(counts[k], its)
                else:
                    counts[k, shift:] = its[: width - shift]
                is_first = False
        if is_first:
            counts[k, shift] = 1
    return counts


@njit
def count_matches(graph, roots, earliest, rows, shift, found, scratch):
    """Add the numbers of matches of each root.

    Parameters
    ----------
    graph : MatchGraph
    roots, earliest : int64 arrays, shape (n,)
    rows : int64 array, shape (n,)
        The row of ``found`` that a root's are added to.
    shift : int
        See :func:`count_histories`.
    found : int64 array, shape (rows, width)
        Written in place.
    scratch : Scratch
    """
    for number in range(len(roots)):
        counts = count_histories(
            graph, roots[number], earliest[number], shift, found.shape[1], scratch
        )
        if len(counts) > 0:
            add_digits(found[rows[number]], counts[-1])


@njit
def counts_per_start(graph, roots, earliest, lowest, found, scratch):
    """Add the numbers of matches by the position of their first event.

    From each root its weight, one, is passed down to the first events.

    Parameters
    ----------
    graph : MatchGraph
    roots, earliest : int64 arrays, shape (n,)
    lowest : int
        The position counted in the first row of ``found``.
    found : int64 array, shape (positions, digits)
        Written in place.
    scratch : Scratch
    """
    nodes, mask = graph.nodes, len(graph.nodes) - 1
    for number in range(len(roots)):
        below = find_nodes(graph, roots[number], earliest[number], scratch)
        weights = np.zeros((below, found.shape[1]), np.int64)
        if below > 0:
            weights[below - 1, 0] = 1
        for k in range(below - 1, -1, -1):
            row = scratch.order[k] & mask
            first, last = children(graph, row)
            is_first = True
            for column in range(first, last):
                if is_live(graph, nodes[row, column], earliest[number]):
                    add_digits(weights[scratch.places[nodes[row, column] & mask]], weights[k])
                    is_first = False
            if is_first:
                add_digits(found[nodes[row, START] - lowest], weights[k])


@njit_in_place
def add_digits(total, more):
    """Add a row of counts to another.

    Parameters
    ----------
    total, more : int64 arrays, shape (digits,)
        ``total`` is written in place.
    """
    carry = 0
    for digit in range(len(total)):
        summed = total[digit] + more[digit] + carry
        total[digit] = summed & _LOWEST
        carry = summed >> DIGIT_BITS
