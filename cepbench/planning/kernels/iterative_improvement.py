"""Descent to a local minimum of Cost_ord by swaps and 3-cycles of an order's positions."""

from __future__ import annotations

import math

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit
from cepbench.planning.kernels.order_moves import first_taken, make_move, state_of
from cepbench.planning.kernels.terms import CostTerms

#: Moves between two readings of the clock.
_MOVES_PER_LOOK = 1000


@njit
def descend(
    order: np.ndarray,
    moves: np.ndarray,
    terms: CostTerms,
    most_moves: int,
    deadline: int,
) -> tuple[int, bool]:
    """Improve ``order``, int64, in place until none of ``moves`` lowers its cost.

    The first move that lowers the cost is made, and the search continues after it, cyclically,
    until every move was tried once without success. Trying a move takes O(n), mostly O(1); making
    it O(n²), mostly O(n).

    Moves are those of :func:`cepbench.planning.kernels.order_moves.make_move`, int64, shape (m, 3).
    Returns the number of moves tried, and whether the order is a local minimum.
    """
    state = state_of(order, terms)
    # No effect: a descent makes only moves that lower the cost.
    allowances = np.zeros(len(moves))
    clock = np.empty(2, dtype=np.int64)
    tried = 0
    met = 0
    at = 0
    while met < len(moves):
        if tried >= most_moves or now(clock) >= deadline:
            return tried, False
        most = min(_MOVES_PER_LOOK, len(moves) - max(met, at), most_moves - tried)
        found = first_taken(state, moves, at, at + most, -math.inf, allowances)
        tried += min(found - at + 1, most)
        if found < at + most:
            make_move(state, moves[found, 0], moves[found, 1], moves[found, 2])
            met = 0
            at = found + 1
        else:
            met += most
            at += most
        if at == len(moves):
            at = 0
    return tried, True
