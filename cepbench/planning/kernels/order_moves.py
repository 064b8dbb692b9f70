"""The change of Cost_ord by swaps and 3-cycles of the positions of an order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit, njit_in_place
from cepbench.planning.kernels.terms import CostTerms

#: A move counts as a gain if it lowers the sum of the prefixes that it changes by more than this
#: fraction, which is far above rounding errors, so that a descent cannot cycle.
LEAST_GAIN = 1e-9

#: A number is negligible beside another one if their ratio is below e to this power.
_NOTHING = -40.0
#: The largest exponent whose exponential fits a float, with some margin.
_MOST = 690.0

#: Powers of two with exponents up to ±_RANGE, for approximate sums.
_RANGE = 1000
_POWERS = 2.0 ** np.arange(-_RANGE, _RANGE + 1)
_LOG2_E = 1.0 / math.log(2.0)
#: Maximum ratio of the chord between two powers of two to the exponential.
_CHORD = 1.0615
#: Sums below this, or above its inverse, are close to the end of the range.
_SMALL = 2.0**-900


class OrderState(NamedTuple):
    """An order, with the sizes and sums needed to try moves.

    Positions are 0 … n−1; prefix p has the first p + 1 variables.
    """

    order: np.ndarray  #: int64 (n,)
    #: float64 (n,): ln PM of each prefix, without the factor of the temporal order and without
    #: ``least``.
    products: np.ndarray
    least: np.ndarray  #: float64 (n,): smallest bound of each prefix
    sizes: np.ndarray  #: float64 (n,): ln PM of each prefix
    #: ``up_to``, ``from_on``: float64 (n,): sums of the sizes of the prefixes up to each and from
    #: each on, relative to the size of the whole pattern, which is the same for all orders; too
    #: large by up to 6 %, never too small.
    up_to: np.ndarray
    from_on: np.ndarray
    #: float64 (n, n + 1): ``growth[v, p]``: ln of the factor by which variable v multiplies the
    #: size of the first p variables of the order, without v itself.
    growth: np.ndarray
    conditions: np.ndarray  #: float64 (n, n): ln of the selectivities; 0 on the diagonal.
    #: ``begin``, ``adjacent``: int64 (n + 1,) and any: ``adjacent[begin[v] : begin[v + 1]]`` are
    #: the variables with a condition with v.
    begin: np.ndarray
    adjacent: np.ndarray
    log_bound: np.ndarray  #: ``log_bound``, ``log_order_factor``, ``log_delay``: float64
    log_order_factor: np.ndarray
    log_delay: np.ndarray
    last: int  #: As in :class:`~cepbench.planning.kernels.terms.CostTerms`
    #: Sum of all delays, relative to the size of the whole pattern; 0 without latency.
    delays: float
    is_bounded: bool  #: Whether the bounds differ, so that they matter.
    #: float64 (n,): the sizes relative to that of the whole pattern, the terms of ``up_to`` and
    #: ``from_on``.
    parts: np.ndarray
    trial: np.ndarray  #: float64 (n,): working space for the sizes of a neighbour.


@njit
def state_of(order: np.ndarray, terms: CostTerms) -> OrderState:
    """The state of an order, int64; changes of the state change ``order`` in place."""
    log_factor, log_bound = terms.log_factor, terms.log_bound
    log_selectivity, log_delay = terms.log_selectivity, terms.log_delay
    log_order_factor, last = terms.log_order_factor, terms.last
    n = len(order)
    conditions = log_selectivity.copy()
    whole = log_order_factor[n] + log_bound.min()
    for v in range(n):
        conditions[v, v] = 0.0
        whole += log_factor[v] + log_selectivity[v, :v].sum()
    growth = np.empty((n, n + 1))
    growth[:, 0] = log_factor
    delays = 0.0
    if last >= 0:
        for v in range(n):
            delays += math.exp(min(log_delay[v] - whole, _MOST))
    state = OrderState(
        order,
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        growth,
        conditions,
        np.cumsum(np.append(0, (conditions != 0).sum(axis=1))),
        np.nonzero(conditions)[1],
        log_bound,
        log_order_factor,
        log_delay,
        last,
        delays,
        log_bound.min() < log_bound.max(),
        np.empty(n),
        np.empty(n),
    )
    for v in range(n):
        _grow(state, v, 0, n)
    _measure(state, 0, n)
    return state


@njit_in_place
def _grow(state: OrderState, v: int, first: int, end: int) -> None:
    """Update the row of one variable in ``growth``."""
    for p in range(first, end):
        state.growth[v, p + 1] = state.growth[v, p] + state.conditions[v, state.order[p]]


@njit_in_place
def _near(exponent: float) -> float:
    """An upper bound of e to this power, at most 6 % too large, clamped to the range of floats."""
    exponent = max(-float(_RANGE), min(exponent * _LOG2_E, float(_RANGE)))
    whole = math.floor(exponent)
    return (1.0 + exponent - whole) * _POWERS[int(whole) + _RANGE]


@njit_in_place
def _above(exponent: float) -> float:
    """As :func:`_near`, but infinite if too large."""
    return _near(exponent) if exponent < _MOST else math.inf


@njit_in_place
def _measure(state: OrderState, first: int, end: int) -> None:
    """Update sizes and sums after a change of the variables at positions first … end − 1."""
    order = state.order
    n = len(order)
    for p in range(first, end):
        size = state.growth[order[p], p]
        bound = state.log_bound[order[p]]
        if p > 0:
            size += state.products[p - 1]
            bound = min(bound, state.least[p - 1])
        state.products[p] = size
        state.least[p] = bound
        state.sizes[p] = size + bound + state.log_order_factor[p + 1]
    whole = state.sizes[n - 1]
    for p in range(first, end):
        state.parts[p] = _above(state.sizes[p] - whole)
    total = state.up_to[first - 1] if first > 0 else 0.0
    for p in range(first, n):
        total += state.parts[p]
        state.up_to[p] = total
    total = state.from_on[end] if end < n else 0.0
    for p in range(end - 1, -1, -1):
        total += state.parts[p]
        state.from_on[p] = total


@njit_in_place
def log_cost(state: OrderState) -> float:
    """ln of the cost of the order."""
    n = len(state.order)
    behind = n
    if state.last >= 0:
        while state.order[behind - 1] != state.last:
            behind -= 1
    largest = -math.inf
    for p in range(n):
        largest = max(largest, state.sizes[p])
    for p in range(behind, n):
        largest = max(largest, state.log_delay[state.order[p]])
    total = 0.0
    for p in range(n):
        if state.sizes[p] - largest > _NOTHING:
            total += math.exp(state.sizes[p] - largest)
    for p in range(behind, n):
        total += math.exp(state.log_delay[state.order[p]] - largest)
    return largest + math.log(total)


@njit_in_place
def make_move(state: OrderState, i: int, j: int, k: int) -> None:
    """Move the variables at positions j, k and i to i, j and k; (i, j, j) swaps i and j."""
    order = state.order
    first, end = min(i, j, k), max(i, j, k)
    a, b, c = order[i], order[j], order[k]
    order[i], order[j] = b, c
    order[k] = a
    # Variables without a condition on the three moved ones are unaffected.
    concerned = 0
    for moved in (a, b, c):
        concerned += state.begin[moved + 1] - state.begin[moved]
    if concerned < len(order):
        for moved in (a, b, c):
            for at in range(state.begin[moved], state.begin[moved + 1]):
                _grow(state, state.adjacent[at], first, end)
    else:
        for v in range(len(order)):
            _grow(state, v, first, end)
    _measure(state, first, end)


@njit_in_place
def _moved(order: np.ndarray, i: int, j: int, k: int, p: int) -> int:
    """The variable at position p after a move."""
    if p == k:
        return order[i]
    if p == j:
        return order[k]
    if p == i:
        return order[j]
    return order[p]


@njit_in_place
def first_taken(
    state: OrderState,
    moves: np.ndarray,
    begin: int,
    end_at: int,
    log_total: float,
    log_allowances: np.ndarray,
) -> int:
    """The index of the first of ``moves[begin:end_at]`` to make; ``end_at`` if there is none.

    ``log_total`` is ln of the current cost, of which a move, as for :func:`make_move`, may add the
    fraction ``log_allowances``, shape (m,); or minus infinity, if a move must lower the sum of the
    prefixes and delays that it changes by :data:`LEAST_GAIN`.
    """
    order = state.order
    whole = state.sizes[len(order) - 1]
    for at in range(begin, end_at):
        i, j, k = moves[at, 0], moves[at, 1], moves[at, 2]
        first, end = min(i, j, k), max(i, j, k)
        # No changed prefix may exceed the sum of the old ones, the delays and the slack.
        roof = min(state.up_to[end - 1], state.from_on[first]) + state.delays
        log_slack = log_total + log_allowances[at]
        if log_slack > -math.inf:
            roof += _above(log_slack - whole)
        if not state.is_bounded:
            # Most moves are rejected here, by the last prefix that they change: it gets the
            # variable after it in exchange for the one that leaves it.
            leaves = order[_left(i, j, k)]
            change = state.products[end] - state.products[end - 1]
            change -= state.growth[leaves, end] + state.conditions[order[end], leaves]
            if _near(state.sizes[end - 1] + change - whole) > _CHORD * roof:
                continue
        if _is_taken(state, i, j, k, log_slack, whole + math.log(roof)):
            return at
    return end_at


@njit_in_place
def _left(i: int, j: int, k: int) -> int:
    """The position of the variable that a move removes from the last prefix that it changes."""
    first, end = min(i, j, k), max(i, j, k)
    if j == k:
        return first
    middle = i + j + k - first - end
    comes_first = j if first == i else (k if first == j else i)
    return first if comes_first == middle else middle


@njit_in_place
def _decided(state: OrderState, first: int, end: int) -> int:
    """Whether approximate sums show that a trial is lower (1) or not (−1); 0 if undecided."""
    whole = state.sizes[len(state.order) - 1]
    old = 0.0
    new = 0.0
    for p in range(first, end):
        old += state.parts[p]
        new += _near(state.trial[p] - whole)
    if old < _SMALL or old > 1.0 / _SMALL:
        return 0
    # Either sum may be too large by this factor.
    if new > _CHORD * old:
        return -1
    return 1 if new * _CHORD < old * (1.0 - LEAST_GAIN) else 0


@njit_in_place
def _is_taken(state: OrderState, i: int, j: int, k: int, log_slack: float, log_roof: float) -> bool:
    """Whether a move lowers the sum of what it changes by enough, or adds less than the slack.

    If a prefix of the trial reaches ``log_roof``, it does not.
    """
    order, sizes, growth, conditions = state.order, state.sizes, state.growth, state.conditions
    first, end = min(i, j, k), max(i, j, k)
    # Only prefixes that end between the moved positions change, each by the exchange of one
    # variable: before the middle position the one that moves to the first position for the one that
    # was there, after it the one that was at the last position for the one that leaves.
    middle = end if j == k else i + j + k - first - end
    comes = _moved(order, i, j, k, first)
    leaves = order[_left(i, j, k)]
    before_it = order[first]
    after_it = order[end]
    largest = -math.inf
    any_lower = False
    bound = math.inf if first == 0 else state.least[first - 1]
    for p in range(first, end):
        old = before_it if p < middle else leaves
        new = comes if p < middle else after_it
        change = growth[new, p + 1] - growth[old, p + 1] - conditions[new, old]
        if state.is_bounded:
            bound = min(bound, state.log_bound[_moved(order, i, j, k, p)])
            change += bound - state.least[p]
        any_lower |= change < 0.0
        largest = max(largest, sizes[p])
        state.trial[p] = sizes[p] + change
        if state.trial[p] >= log_roof:
            return False
    # Delays change only if `last` is between the moved positions.
    place = end + 1
    if state.last >= 0:
        for p in range(first, end + 1):
            if order[p] == state.last:
                place = p
        for p in range(place + 1, end + 1):
            largest = max(largest, state.log_delay[order[p]])
    if not any_lower and place > end and log_slack == -math.inf:
        return False
    if place > end and log_slack == -math.inf:
        near = _decided(state, first, end)
        if near != 0:
            return near > 0
    # Relative to the largest old prefix or delay, without the unchanged rest of the cost: no
    # overflow, and no loss of the difference by rounding.
    before = 0.0
    for p in range(first, end):
        if sizes[p] - largest > _NOTHING:
            before += math.exp(sizes[p] - largest)
    for p in range(place + 1, end + 1):
        before += math.exp(state.log_delay[order[p]] - largest)
    limit = before * (1.0 - LEAST_GAIN)
    if log_slack > -math.inf:
        limit += math.exp(min(log_slack - largest, _MOST))
    highest = math.log(limit)
    after = 0.0
    if place <= end:
        for p in range(end, first, -1):
            moved = _moved(order, i, j, k, p)
            if moved == state.last:
                break
            if state.log_delay[moved] - largest >= highest:
                return False
            after += math.exp(state.log_delay[moved] - largest)
    for p in range(first, end):
        away = state.trial[p] - largest
        if away >= highest:
            return False
        if away > _NOTHING:
            after += math.exp(away)
        if after >= limit:
            return False
    return True
