"""A stage of simulated annealing over orders: random moves at one temperature."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.planning.kernels.order_moves import OrderState, first_taken, log_cost, make_move

#: Minimum difference in ln of cost by which an order counts as better than the best one.
_ROUNDING = 1e-12


@njit
def anneal(
    state: OrderState,
    moves: np.ndarray,
    log_allowances: np.ndarray,
    best: np.ndarray,
    log_best: float,
) -> float:
    """Try moves one by one, and make each that adds no more than its allowance.

    Moves and allowances are those of :func:`cepbench.planning.kernels.order_moves.first_taken`; the
    state is changed in place. ``best``, the best order so far, is overwritten by a better one, and
    ``log_best``, ln of its cost, returned.
    """
    total = log_cost(state)
    at = 0
    while True:
        at = first_taken(state, moves, at, len(moves), total, log_allowances)
        if at == len(moves):
            return log_best
        make_move(state, moves[at, 0], moves[at, 1], moves[at, 2])
        total = log_cost(state)
        if total < log_best - _ROUNDING:
            log_best = total
            best[:] = state.order
        at += 1
