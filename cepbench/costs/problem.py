"""The planning problem: a pattern and its statistics as the numbers that a plan generator sees.

All of it is in natural logarithms. A Kleene variable stands for ``2^(r·W)`` sets, which leaves the
range of a float at once, and no plan generator may ever compare two infinities. For the same
reason a zero rate or selectivity counts as :data:`SMALLEST`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cepbench.costs import order_throughput, tree_throughput
from cepbench.errors import PlanGeneratorError, StatisticsError, UnsupportedPatternError
from cepbench.patterns.model import Operator, Pattern
from cepbench.statistics.model import Statistics

#: What a rate, cardinality, selectivity or window of zero counts as: the smallest normal float.
SMALLEST = float(np.finfo(np.float64).tiny)

#: How the order in time of a SEQ enters the estimates.
TIME_SELECTIVITIES = ("adjacent", "exact")


@dataclass(frozen=True, eq=False)
class PlanningProblem:
    """What a plan generator sees. Variables are the indices 0 … n−1, in written order.

    Made by :meth:`from_pattern`; or from arrays, which are copied and then read-only.

    Attributes
    ----------
    names : tuple of str, length n
    log_cardinality : ndarray of float64, shape (n,)
        ln(W·r): expected events per window before any filter.
    log_selectivity : ndarray of float64, shape (n, n)
        Symmetric. On the diagonal the filters, elsewhere the conditions over two variables, with
        the order in time of SEQ neighbours under ``time_selectivity="adjacent"``.
    log_order_factor : ndarray of float64, shape (n + 1,)
        What any set of k variables is multiplied by: zeros, or −ln k! for a SEQ under
        ``time_selectivity="exact"``.
    operator : str
        The pattern's operator, ``SEQ`` or ``AND``.
    time_selectivity : str
        One of :data:`TIME_SELECTIVITIES`.
    window : float
        Length of the window in seconds (or ticks); only turns cardinalities into rates.

    Raises
    ------
    StatisticsError
        If the arrays do not fit together or hold something that is not finite.
    """

    names: tuple[str, ...]
    log_cardinality: np.ndarray
    log_selectivity: np.ndarray
    log_order_factor: np.ndarray = field(default_factory=lambda: np.zeros(0))
    operator: str = "AND"
    time_selectivity: str = "adjacent"
    window: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        n = len(self.names)
        if not n:
            raise StatisticsError("a planning problem needs at least one variable")
        if not len(self.log_order_factor):
            object.__setattr__(self, "log_order_factor", np.zeros(n + 1))
        shapes = {
            "log_cardinality": (n,),
            "log_selectivity": (n, n),
            "log_order_factor": (n + 1,),
        }
        for key, shape in shapes.items():
            # A copy of one layout and one writability means one compilation of every kernel.
            array = np.array(getattr(self, key), dtype=np.float64, order="C")
            array.flags.writeable = False
            if array.shape != shape:
                raise StatisticsError(f"{key} has shape {array.shape}; {n} variables need {shape}")
            if not np.isfinite(array).all():
                raise StatisticsError(
                    f"{key} holds a value that is not finite; for zero use ln({SMALLEST:.3g})"
                )
            object.__setattr__(self, key, array)
        if not np.array_equal(self.log_selectivity, self.log_selectivity.T):
            raise StatisticsError("log_selectivity is not symmetric; a pair has one selectivity")

    @classmethod
    def from_pattern(
        cls, pattern: Pattern, statistics: Statistics, time_selectivity: str = "adjacent"
    ) -> PlanningProblem:
        """The problem of planning ``pattern``, with SEQ as AND plus conditions on time.

        Parameters
        ----------
        pattern : Pattern
            With a single operator.
        statistics : Statistics
        time_selectivity : {"adjacent", "exact"}
            ``adjacent`` is the paper's reduction [kolchinsky2018]_, section 4: one condition
            ``x.ts < y.ts`` of selectivity 1/2 for each two neighbours of a SEQ. ``exact`` counts
            any k variables of a SEQ with 1/k!, the probability that k events that arrive
            independently come in one given order.

        Raises
        ------
        UnsupportedPatternError
            If operators are nested.
        StatisticsError
            If a variable has no rate, or ``time_selectivity`` is unknown.
        """
        if time_selectivity not in TIME_SELECTIVITIES:
            raise StatisticsError(
                f"unknown time_selectivity {time_selectivity!r}; "
                f"use one of {', '.join(TIME_SELECTIVITIES)}"
            )
        if not pattern.is_simple:
            raise UnsupportedPatternError(
                f"{pattern.structure} nests operators; only a single SEQ or AND can be planned"
            )
        names = pattern.names
        n = len(names)
        window = pattern.window.seconds
        cardinality = [statistics.cardinality(name, window) for name in names]
        selectivity = [[statistics.selectivity(a, b) for b in names] for a in names]
        log_selectivity = np.log(np.maximum(selectivity, SMALLEST))
        log_order_factor = np.zeros(n + 1)
        if pattern.operator is Operator.SEQ:
            if time_selectivity == "adjacent":
                later = np.arange(1, n)
                log_selectivity[later, later - 1] -= math.log(2.0)
                log_selectivity[later - 1, later] -= math.log(2.0)
            else:
                log_order_factor[1:] = -np.cumsum(np.log(np.arange(1, n + 1)))
        return cls(
            names,
            np.log(np.maximum(cardinality, SMALLEST)),
            log_selectivity,
            log_order_factor,
            str(pattern.operator),
            time_selectivity,
            window,
        )

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def log_filtered(self) -> np.ndarray:
        """ln of the expected events per window that pass their own filter, shape (n,)."""
        return self.log_cardinality + np.diagonal(self.log_selectivity)

    def log_rate(self, i: int) -> float:
        """ln of variable i's arrival rate, events per second (or tick), before any filter."""
        return float(self.log_cardinality[i]) - math.log(max(self.window, SMALLEST))

    def log_partial_matches(self, subset: Iterable[int]) -> float:
        """ln of the expected number of partial matches over a set of variables."""
        index = np.fromiter(subset, dtype=np.intp)
        pairs = np.tril(self.log_selectivity[np.ix_(index, index)]).sum()
        return float(self.log_cardinality[index].sum() + pairs + self.log_order_factor[len(index)])

    def log_order_cost(self, order: Sequence[int]) -> float:
        """ln Cost_ord of an order of indices; see :mod:`cepbench.costs.order_throughput`."""
        return order_throughput.log_cost(self, order)

    def log_tree_cost(self, tree: Any) -> float:
        """ln Cost_tree of nested pairs of indices; see :mod:`cepbench.costs.tree_throughput`."""
        return tree_throughput.log_cost(self, tree)

    def rate(self, i: int) -> float:
        """Variable i's arrival rate, events per second (or tick), before any filter.

        Raises
        ------
        PlanGeneratorError
            As :meth:`cardinality`, :meth:`partial_matches`, :meth:`order_cost` and
            :meth:`tree_cost` do: if the number is too large for a float.
        """
        return _plain("rate", self.log_rate(i))

    def cardinality(self, i: int) -> float:
        """Expected events of variable i per window, before any filter."""
        return _plain("cardinality", float(self.log_cardinality[i]))

    def selectivity(self, i: int, j: int) -> float:
        """Selectivity between two variables, the order of neighbours included; the filter if i = j."""
        return math.exp(self.log_selectivity[i, j])

    def partial_matches(self, subset: Iterable[int]) -> float:
        """Expected number of partial matches over a set of variables."""
        return _plain("partial_matches", self.log_partial_matches(subset))

    def order_cost(self, order: Sequence[int]) -> float:
        """Cost_ord of an order of indices."""
        return _plain("order_cost", self.log_order_cost(order))

    def tree_cost(self, tree: Any) -> float:
        """Cost_tree of nested pairs of indices."""
        return _plain("tree_cost", self.log_tree_cost(tree))


def _plain(what: str, logarithm: float) -> float:
    """``exp(logarithm)``; never infinity, which a generator would compare without a warning."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        raise PlanGeneratorError(
            f"problem.{what} would be e^{logarithm:.1f}, too large for a float; "
            f"compare problem.log_{what} instead"
        ) from None
