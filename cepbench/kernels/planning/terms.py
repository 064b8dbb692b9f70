"""A cost as the compiled searches read it: sizes of sets of variables, and terms of latency."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CostTerms(NamedTuple):
    """The numbers of which every plan's cost is a sum, over n variables; all are logarithms.

    A set S of variables has the size

        PM(S) = ∏ factor · min bound · ∏ selectivity · order_factor[|S|],

    and costs that much as a prefix of an order or a node of a tree. On top, an order pays the delay
    of each variable that comes after ``last``, and a tree the ``weight`` times the size of each
    sibling on the path up from ``last``.

    Attributes
    ----------
    log_factor, log_bound : ndarray of float64, shape (n,)
        What a variable multiplies every set by, and of what the least of a set multiplies it too:
        all zeros for none.
    log_selectivity : ndarray of float64, shape (n, n)
        Symmetric; the diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)
        What any set of k variables is multiplied by.
    log_delay : ndarray of float64, shape (n,)
    log_weight : float
    last : int
        Index of a variable; negative for none, and then delays and weight are not read.
    """

    log_factor: np.ndarray
    log_bound: np.ndarray
    log_selectivity: np.ndarray
    log_order_factor: np.ndarray
    log_delay: np.ndarray
    log_weight: float
    last: int

    def over(self, order: np.ndarray) -> CostTerms:
        """The terms with the variables in another order."""
        (place,) = np.flatnonzero(order == self.last) if self.last >= 0 else (-1,)
        return CostTerms(
            self.log_factor[order],
            self.log_bound[order],
            np.ascontiguousarray(self.log_selectivity[np.ix_(order, order)]),
            self.log_order_factor,
            self.log_delay[order],
            self.log_weight,
            int(place),
        )
