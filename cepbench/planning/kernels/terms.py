"""A cost as arrays for the compiled searches: sizes of sets of variables, and latency."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class CostTerms(NamedTuple):
    """The numbers that determine the cost of every plan over n variables; all are logarithms.

    A set S of variables has the size

        PM(S) = ∏ factor · min bound · ∏ selectivity · order_factor[|S|],

    which is its cost as a prefix of an order or a node of a tree. Latency adds to the cost of an
    order the delay of each variable after ``last``, and to that of a tree ``weight`` times the size
    of each sibling on the path from ``last`` to the root.
    """

    #: ``log_factor``, ``log_bound``: float64 (n,): factor of each variable on the size of a set,
    #: and bounds whose minimum over the set multiplies its size too; all zeros for no bounds.
    log_factor: np.ndarray
    log_bound: np.ndarray
    log_selectivity: np.ndarray  #: float64 (n, n): symmetric; the diagonal is not read.
    log_order_factor: np.ndarray  #: float64 (n + 1,): factor of any set of k variables.
    log_delay: np.ndarray  #: float64 (n,)
    log_weight: float  #: Weight of latency
    #: Index of the variable whose event arrives last; negative for no latency, in which case delays
    #: and weight are not read.
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
