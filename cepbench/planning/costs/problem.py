"""The planning problem: a pattern and its statistics as numbers for plan generators.

All numbers are natural logarithms, because the ``2^(r·W)`` sets of a Kleene variable can exceed the
range of a float, and infinities cannot be compared. For the same reason a rate or selectivity of
zero is replaced by :data:`SMALLEST`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Self

import numpy as np

from cepbench.arguments import choice
from cepbench.errors import PlanGeneratorError, StatisticsError, UnsupportedPatternError
from cepbench.patterns.model import Kind, Pattern, Variable
from cepbench.planning.costs.equal_values import EqualValues
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.operator_terms import OperatorTerms, PairConditions
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.plans.tree import Tree, leaves, post_order, unplaced
from cepbench.planning.statistics.model import Statistics

#: Models of the order in time of a SEQ in the estimates.
TIME_SELECTIVITIES = ("adjacent", "exact")


@dataclass(frozen=True, eq=False)
class PlanningProblem:
    """Cardinalities and selectivities of the variables 0 … n−1, in written order.

    These are the plain and the Kleene variables of a pattern without OR; plans are over these.
    Constructed by :meth:`from_pattern`, or from arrays, of which read-only copies are stored.

    Raises StatisticsError if the shapes of the arrays are inconsistent, a value is not finite, or
    ``last`` is invalid.
    """

    names: tuple[str, ...]
    #: ln(W·r): expected events per window before any filter; W·r·ln 2 for a Kleene variable, the
    #: number of sets of its events. Float64, shape (n,).
    log_cardinality: np.ndarray
    #: Symmetric. On the diagonal the filters, elsewhere the conditions over two variables,
    #: including contiguity and, under ``time_selectivity="adjacent"``, the order in time. Float64,
    #: shape (n, n).
    log_selectivity: np.ndarray
    #: Factor of any set of k variables: zeros; −ln k! for a SEQ under ``time_selectivity="exact"``;
    #: and what ``equal`` adds. Float64, shape (n + 1,).
    log_order_factor: np.ndarray = field(default_factory=lambda: np.zeros(0))
    #: The pattern's outermost operator, ``SEQ`` or ``AND``.
    operator: str = "AND"
    time_selectivity: str = "adjacent"
    #: Length of the window in seconds (or ticks), for arrival rates.
    window: float = 1.0
    #: Name of the selection strategy. Under all but ``any`` events are consumed: a set of variables
    #: has the smallest of their cardinalities instead of the product.
    strategy: str = "any"
    #: Index of the variable whose event arrives last, if known.
    last: int | None = None
    #: ln(W·r) of the events themselves, of a Kleene variable too, whose ``log_cardinality`` counts
    #: sets; by default ``log_cardinality``. Float64, shape (n,).
    log_arrivals: np.ndarray = field(default_factory=lambda: np.zeros(0))
    #: Makes :attr:`operators`.
    operator_terms: Callable[[], OperatorTerms] | None = None
    #: Values that are equal in three variables or more, by ``[attr]`` or by a chain of conditions,
    #: which are part of the arrays: equalities that are only implied have a selectivity too, and
    #: what the product over all pairs counts too often is in ``log_order_factor`` if it depends on
    #: the size of a set alone; see :attr:`partly_equal`.
    equal: EqualValues | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        n = len(self.names)
        if not n:
            raise StatisticsError("a planning problem needs at least one variable")
        if not len(self.log_order_factor):
            object.__setattr__(self, "log_order_factor", np.zeros(n + 1))
        if not len(self.log_arrivals):
            object.__setattr__(self, "log_arrivals", self.log_cardinality)
        shapes = {
            "log_cardinality": (n,),
            "log_selectivity": (n, n),
            "log_order_factor": (n + 1,),
            "log_arrivals": (n,),
        }
        for key, shape in shapes.items():
            # One layout and writability for all, so that each kernel is compiled once.
            array = np.array(getattr(self, key), dtype=np.float64, order="C")
            array.flags.writeable = False
            if array.shape != shape:
                raise StatisticsError(f"{key} has shape {array.shape}; {n} variables need {shape}")
            with np.errstate(over="ignore"):
                # The sum must be finite too.
                if not math.isfinite(np.abs(array).sum()):
                    raise StatisticsError(
                        f"{key} holds a value that is not finite; for zero use ln({SMALLEST:.3g})"
                    )
            object.__setattr__(self, key, array)
        if not np.array_equal(self.log_selectivity, self.log_selectivity.T):
            raise StatisticsError("log_selectivity is not symmetric; a pair has one selectivity")
        if self.last is not None and self.last not in range(n):
            raise StatisticsError(f"last = {self.last!r} is none of the indices 0 … {n - 1}")

    @classmethod
    def from_pattern(
        cls,
        pattern: Pattern,
        statistics: Statistics,
        time_selectivity: str = "adjacent",
        last: str | None = None,
        **more: Any,
    ) -> Self:
        """The planning problem of a pattern without OR, with SEQ as AND plus conditions on time.

        Under ``time_selectivity="adjacent"`` a SEQ is reduced as in [kolchinsky2018]_, section 4: to a
        condition ``x.ts < y.ts`` of selectivity 1/2 for each two neighbours, in nested patterns for each
        two ordered variables with none in between. ``"exact"`` multiplies any k variables of a SEQ by
        1/k!, the probability that k independent arrivals are in a given order. ``last`` names the variable
        whose event is expected last, if the pattern leaves it open; ``more`` are further attributes of
        the class, such as the cost of a :class:`~cepbench.planning.costs.costed.CostedProblem`.

        Negated variables and groups are left out, a Kleene variable has the rate ``2^(r·W) / W``
        [kolchinsky2018]_, section 4. Equality is transitive: variables whose values are made equal by a
        chain of conditions have the selectivity of the least selective pair of the chain, if there is no
        condition between them.

        Strategies [kolchinsky2018]_, section 5.2: where events are consumed, a set of variables has
        W·min(r). Contiguity adds a condition to any two variables that may be neighbours in time,
        that their positions are adjacent; its selectivity is one over the expected events of the
        stream (or partition) per window. Under partition contiguity any two variables are equal in
        the partition attribute: measured selectivities include that, and a pair without one has
        ``1 / statistics.partitions``.

        Raises UnsupportedPatternError if the pattern has OR or the strategy next, or it nests SEQ and AND
        under ``time_selectivity="exact"``; StatisticsError if a variable has no rate, contiguity lacks
        the rate of the stream, or an argument is invalid.
        """
        choice(time_selectivity, "time_selectivity", TIME_SELECTIVITIES, StatisticsError)
        whole, *others = pattern.branches()
        if others:
            raise UnsupportedPatternError(
                "a pattern with OR has one planning problem per branch; make one from each of "
                "pattern.branches(), as cep.plan does"
            )
        if whole.strategy.name == "next":
            raise UnsupportedPatternError(
                "STRATEGY next is run by an automaton, which has no choice of a plan; evaluate the "
                "pattern without one"
            )
        # Groups are formed from the matches of a plan.
        pattern = whole.without(whole.groups)
        order = TemporalOrder(pattern)
        names = order.names
        n = len(names)
        window = pattern.window.seconds
        log_selectivity = _log_selectivities(pattern, statistics, order)
        log_order_factor = np.zeros(n + 1)
        if time_selectivity == "adjacent":
            _add_condition(log_selectivity, names, order.covering(), -math.log(2.0))
        elif order.is_chain:
            log_order_factor[1:] = -np.cumsum(np.log(np.arange(1, n + 1)))
        elif order.before:
            raise UnsupportedPatternError(
                f'time_selectivity="exact" needs a single SEQ or AND, and {pattern.structure} '
                'nests them; use time_selectivity="adjacent"'
            )
        equal = EqualValues.of(pattern.conditions, statistics, names)
        if equal is not None:
            log_selectivity += equal.log_implied.sum(axis=0)
            log_order_factor += equal.log_factor
        return cls(
            names,
            np.array([_log_cardinality(v, statistics, window) for v in pattern.positive]),
            log_selectivity,
            log_order_factor,
            str(pattern.operator),
            time_selectivity,
            window,
            pattern.strategy.name,
            _last(order, last),
            np.array([_log_arrivals(v, statistics, window) for v in pattern.positive]),
            partial(OperatorTerms.of, whole, statistics),
            equal,
            **more,
        )

    @cached_property
    def operators(self) -> OperatorTerms | None:
        """What costs of operators read besides; None unless the problem is that of a pattern."""
        return None if self.operator_terms is None else self.operator_terms()

    @cached_property
    def partly_equal(self) -> EqualValues | None:
        """Those of ``equal`` that are equal in some of the variables only.

        What the product over all pairs counts too often depends on the set then, not on its size.
        """
        return None if self.equal is None else self.equal.of_some

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def consuming(self) -> bool:
        """Whether events are consumed, so that the smallest cardinality of a set counts."""
        return self.strategy != "any"

    @property
    def log_factor(self) -> np.ndarray:
        """ln of the factor of each variable on the size of a set, shape (n,)."""
        return np.diagonal(self.log_selectivity).copy() if self.consuming else self.log_filtered

    @property
    def log_bound(self) -> np.ndarray:
        """ln of the bounds whose minimum over a set multiplies its size too, shape (n,)."""
        return self.log_cardinality.copy() if self.consuming else np.zeros(self.n)

    @property
    def log_filtered(self) -> np.ndarray:
        """ln of the expected events per window that pass their own filter, shape (n,)."""
        return self.log_cardinality + np.diagonal(self.log_selectivity)

    def log_rate(self, i: int) -> float:
        """ln of variable i's arrival rate, events per second (or tick), before any filter.

        Of a Kleene variable that of the sets of its events, 2^(rW) / W [kolchinsky2018]_, section 4.
        """
        return float(self.log_cardinality[i]) - math.log(max(self.window, SMALLEST))

    def log_partial_matches(self, subset: Iterable[int]) -> float:
        """ln of the expected number of partial matches over a set of variables."""
        index = np.fromiter(subset, dtype=np.intp)
        pairs = self._conditions_before(index).sum()
        counts = self.log_cardinality[index]
        count = counts.min() if self.consuming and len(index) else counts.sum()
        size = float(count + pairs + self.log_order_factor[len(index)])
        if self.partly_equal is not None:
            size -= float(
                self.partly_equal.log_repeated(np.isin(np.arange(self.n), index)[None])[0]
            )
        return size

    def log_sizes(self, sets: np.ndarray) -> np.ndarray:
        """ln of the expected partial matches over sets, bool of shape (m, n); shape (m,)."""
        pairs = ((sets @ np.tril(self.log_selectivity)) * sets).sum(axis=1)
        if self.consuming:
            counts = np.where(sets, self.log_cardinality, np.inf).min(axis=1)
        else:
            counts = sets @ self.log_cardinality
        sizes = counts + pairs + self.log_order_factor[sets.sum(axis=1)]
        if self.partly_equal is not None:
            sizes -= self.partly_equal.log_repeated(sets)
        return np.asarray(sizes)

    def log_conditions(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """ln of the selectivity of all conditions between sets, as for :meth:`log_sizes`."""
        return PairConditions(self.log_selectivity, self.equal).between(left, right)

    def log_node_sizes(self, kind: str, plan: Any) -> np.ndarray:
        """ln of the expected number of partial matches at every node of a plan.

        Of an order's prefixes, shape (n,); of a tree's nodes in post-order, shape (2n − 1,).

        PM(k) = ∏ W·r · ∏ sel over the first k variables of an order, filters included
        [kolchinsky2018]_, section 3.1; PM(leaf) = W·r and PM(node) = PM(left) · PM(right) ·
        SEL(left, right) in a tree [kolchinsky2018]_, section 3.2. Where events are consumed, the
        smallest W·r replaces their product [kolchinsky2018]_, section 5.2.
        """
        return self._prefix_sizes(plan) if kind == "order" else self._tree_sizes(unplaced(plan))

    def _prefix_sizes(self, order: Sequence[int]) -> np.ndarray:
        index = np.asarray(order, dtype=np.intp)
        conditions = self._conditions_before(index).sum(axis=1)
        if self.consuming:
            sizes: np.ndarray = np.cumsum(conditions)
            sizes += np.minimum.accumulate(self.log_cardinality[index])
        else:
            sizes = np.cumsum(self.log_cardinality[index] + conditions)
        sizes += self.log_order_factor[1:]
        if self.partly_equal is not None:
            prefixes = np.zeros((self.n, self.n), bool)
            prefixes[:, index] = _lower(self.n)
            sizes -= self.partly_equal.log_repeated(prefixes)
        return sizes

    def _conditions_before(self, index: np.ndarray) -> np.ndarray:
        """Row k: the filter of the k-th of these variables and its conditions with those before."""
        # As np.tril and np.ix_, which take three times as long; searches call this for each plan.
        chosen = self.log_selectivity[index[:, np.newaxis], index]
        return np.where(_lower(self.n)[: len(index), : len(index)], chosen, 0.0)

    def _tree_sizes(self, tree: Tree[int]) -> np.ndarray:
        factor, bound = self.log_factor.tolist(), self.log_bound.tolist()
        order_factor = self.log_order_factor.tolist()
        index = np.array(leaves(tree), dtype=np.intp)
        # In the sequence of leaves a node is an interval, and the conditions of its join a block.
        selectivity = self.log_selectivity[np.ix_(index, index)]
        sizes: list[float] = []
        # Nodes without a parent yet: begin, end, size, least bound.
        waiting: list[tuple[int, int, float, float]] = []
        spans: list[tuple[int, int]] = []
        met = 0
        for node in post_order(tree):
            if isinstance(node, tuple):
                cut, end, right_size, right_least = waiting.pop()
                first, _, left_size, left_least = waiting.pop()
                joined = np.add.reduce(selectivity[first:cut, cut:end], axis=None)
                size = left_size + right_size + float(joined)
                least = min(left_least, right_least)
            else:
                first, end, size, least = met, met + 1, factor[node], bound[node]
                met += 1
            # Not included in `size`, because they are not products over the children.
            sizes.append(size + least + order_factor[end - first])
            waiting.append((first, end, size, least))
            spans.append((first, end))
        found = np.array(sizes)
        if self.partly_equal is not None:
            first_leaf, stop = np.array(spans).T[:, :, np.newaxis]
            below = np.zeros((len(spans), self.n), bool)
            below[:, index] = (first_leaf <= np.arange(self.n)) & (np.arange(self.n) < stop)
            found -= self.partly_equal.log_repeated(below)
        return found

    def rate(self, i: int) -> float:
        """Variable i's arrival rate, as :meth:`log_rate`.

        Raises PlanGeneratorError, as :meth:`cardinality` and :meth:`partial_matches` do, if the
        number is too large for a float.
        """
        return plain("rate", self.log_rate(i))

    def cardinality(self, i: int) -> float:
        """Expected events of variable i per window, before any filter."""
        return plain("cardinality", float(self.log_cardinality[i]))

    def selectivity(self, i: int, j: int) -> float:
        """Selectivity between two variables, with temporal order; of the filter if i = j."""
        return math.exp(self.log_selectivity[i, j])

    def partial_matches(self, subset: Iterable[int]) -> float:
        """Expected number of partial matches over a set of variables."""
        return plain("partial_matches", self.log_partial_matches(subset))


def _log_cardinality(variable: Variable, statistics: Statistics, window: float) -> float:
    if variable.kind is Kind.KLEENE:
        return statistics.cardinality(variable.name, window) * math.log(2.0)
    return _log_arrivals(variable, statistics, window)


def _log_arrivals(variable: Variable, statistics: Statistics, window: float) -> float:
    return math.log(max(statistics.cardinality(variable.name, window), SMALLEST))


@lru_cache
def _lower(n: int) -> np.ndarray:
    """True on and below the diagonal, shape (n, n)."""
    return np.tri(n, dtype=bool)


def _log_selectivities(
    pattern: Pattern, statistics: Statistics, order: TemporalOrder
) -> np.ndarray:
    """Filters, conditions over two variables and contiguity, without the order in time."""
    names = order.names
    index = {name: number for number, name in enumerate(names)}
    selectivity = np.ones((len(names), len(names)))
    for (a, b), value in statistics.selectivities.items():
        if a in index and b in index:
            selectivity[index[a], index[b]] = selectivity[index[b], index[a]] = value
    strategy = pattern.strategy
    if strategy.name == "partition_contiguity":
        for i, a in enumerate(names):
            for j, b in enumerate(names):
                if i != j and not statistics.has_selectivity(a, b):
                    selectivity[i, j] = 1.0 / statistics.partition_count()
    log_selectivity = np.log(np.maximum(selectivity, SMALLEST))
    if strategy.name.endswith("_contiguity"):
        events = statistics.stream_cardinality(
            pattern.window.seconds, partition=strategy.name == "partition_contiguity"
        )
        # A selectivity is at most 1, also for less than one event.
        _add_condition(log_selectivity, names, order.neighbouring(), -math.log(max(1.0, events)))
    return log_selectivity


def _add_condition(
    log_selectivity: np.ndarray,
    names: tuple[str, ...],
    pairs: Iterable[tuple[str, str]],
    log_value: float,
) -> None:
    index = {name: number for number, name in enumerate(names)}
    for x, y in pairs:
        i, j = index[x], index[y]
        log_selectivity[i, j] += log_value
        log_selectivity[j, i] += log_value


def _last(order: TemporalOrder, wanted: str | None) -> int | None:
    """Index of the variable whose event arrives last, by the pattern or the argument."""
    possible = order.latest()
    if wanted is None:
        return order.names.index(possible[0]) if len(possible) == 1 else None
    if wanted not in possible:
        why = (
            "another event always follows it"
            if wanted in order.names
            else "there is no such variable"
        )
        raise StatisticsError(
            f"last = {wanted!r}, but {why}; the last event can be that of {', '.join(possible)}"
        )
    return order.names.index(wanted)


def plain(what: str, logarithm: float) -> float:
    """``exp(logarithm)`` of a number of a problem; an error instead of infinity."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        raise PlanGeneratorError(
            f"problem.{what} would be e^{logarithm:.1f}, too large for a float; "
            f"compare problem.log_{what} instead"
        ) from None
