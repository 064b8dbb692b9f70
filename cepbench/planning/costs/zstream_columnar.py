"""What plans cost the evaluator ``zstream``, whose operators are columnar rounds of joins.

The cost is that of the work done as a window passes, in units of an event read. A node over k
variables of cardinality CARD makes k·CARD records in that time. What is done for them depends on where
the node stands, so that a join is charged for its children and the root for itself:

========================  =========================================================================
a leaf                    its events are read, and their ranges of rows found
a node two joins or more  its records are made, and scanned by the join above
below the root
the join below the root   its records are not made; listing matches visits each, counting adds up
                          ranges for each record of its outer child
a pair beside other       not made, but looked at: its events join the other side one by one
records, at the root
the root                  its records are written, or counted at no cost
========================  =========================================================================

If matches are only counted and all conditions mention one variable, a node is counted as a star, see
:mod:`cepbench.patterns.stars`: each event of its centre visits the events of its spoke, whatever the
order of the joins.

Cardinalities are those of ``zstream-repaired``. Negations cost the same at any node, since all are ranges of
rows, so that plans do not place them. Forming groups is not charged.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import compress

import numpy as np

from cepbench.patterns.stars import stars_of
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.operator_terms import OperatorTerms
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.costs.zstream import ZStreamRepaired

#: Seconds of an event that is read, about.
EVENT = 35e-9

#: Costs relative to an event that is read, from the times of plans for Queries 4 to 6 of
#: [mei2009]_. Of a record: made, visited when matches are listed, visited when they are counted, written.
MADE, VISITED, WEIGHED, WRITTEN = 0.7, 0.3, 0.15, 0.1

#: Of an outer record that sets ranges which are added up.
RANGED = 0.15

#: Of a star: an event of the centre for each other variable, an event of the spoke that it visits, and a
#: pair that is looked at as a bit.
CENTRE, SPOKE, BIT = 0.2, 0.15, 0.004


class ZStreamColumnar(CostModel):
    """The cost of a plan in the evaluator ``zstream``, which counts matches or lists them."""

    form = "joins"
    source = "the evaluator zstream"

    def __init__(self, name: str, *, counts: bool) -> None:
        self.name = name
        self._counts = counts
        self._sizes = ZStreamRepaired()
        self._sizes.name = name

    def check(self, problem: PlanningProblem) -> None:
        """As the cost ``zstream-repaired``."""
        self._sizes.check(problem)

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """ln of the events, shape (n,)."""
        return problem.log_filtered

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of the cost of what each join does with its children, or as a star."""
        terms = problem.operators
        assert terms is not None  # checked before
        whole = left | right
        if self._counts and _is_star(terms):
            return _log_stars(problem, terms, whole)
        sides = left.sum(axis=1), right.sum(axis=1)
        sizes = sides[0] + sides[1]
        made = [self._log_records(problem, its) for its in (left, right)]
        last: float | np.ndarray = VISITED
        if self._counts:
            is_tested = terms.tests(whole) > terms.tests(left) + terms.tests(right)
            last = np.where(is_tested, WEIGHED, 0.0)
        parts = []
        for its, other, records in zip(sides, sides[::-1], made, strict=True):
            is_last = (sizes == problem.n) & (other == 1)
            weight = np.where(is_last, last, MADE)
            parts.append(np.where(its > 1, records, -np.inf) + _log(weight))
        is_pair = (sizes == problem.n) & (sides[0] > 1) & (sides[1] > 1)
        for row in np.flatnonzero(is_pair & (np.minimum(*sides) == 2)):
            rotated = self._log_rotated(problem, left[row], right[row])
            parts[0][row], parts[1][row] = rotated, -np.inf
        if self._counts:
            # Records of the larger child set ranges in the other one.
            is_below = (sizes == problem.n - 1) | (problem.n == 2)
            parts.append(np.where(is_below, np.maximum(*made) + math.log(RANGED), -np.inf))
        else:
            records = self._log_records(problem, whole)
            parts.append(np.where(sizes == problem.n, records + math.log(WRITTEN), -np.inf))
        return np.asarray(np.logaddexp.reduce(parts))

    def _log_records(self, problem: PlanningProblem, sets: np.ndarray) -> np.ndarray:
        """ln of the records of sets that are made as a window passes, shape (m,)."""
        return self._sizes.log_cards(problem, sets) + np.log(np.maximum(sets.sum(axis=1), 1))

    def _log_rotated(self, problem: PlanningProblem, left: np.ndarray, right: np.ndarray) -> float:
        """ln of the cost of the root's children, one of which is a pair, or the dearer of two."""
        found = []
        for pair, other in ((left, right), (right, left)):
            if pair.sum() != 2:
                continue
            looked_at, records = self._log_records(problem, np.array([pair, other])).tolist()
            with_one = other | np.eye(problem.n, dtype=bool)[pair]
            visited = records + math.log(RANGED)
            if not self._counts:
                visited = float(self._log_records(problem, with_one).min()) + math.log(VISITED)
            costs = looked_at + math.log(BIT), records + math.log(MADE), visited
            found.append(float(np.logaddexp.reduce(costs)))
        # The engine chooses once, by the first events, and a stream may change.
        return max(found)


def _log(weights: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(weights)


@lru_cache(maxsize=64)
def _is_star(terms: OperatorTerms) -> bool:
    """Whether the engine makes no record of any plan for a pattern, see the module."""
    n = len(terms.precedes)
    tested = _tested(terms)
    return (
        2 < n == len(terms.log_time)
        and not (terms.negations or terms.hashed.log_pairs.any() or (n == 3 and tested))
        and bool((terms.precedes | ~np.tri(n, k=-1, dtype=bool).T).all())
        and all((terms.conjuncts.sum(axis=1) == 2).tolist())
        and bool(stars_of(tuple(range(n)), tested, is_root=True))
    )


def _tested(terms: OperatorTerms) -> frozenset[tuple[int, int]]:
    pairs = (np.flatnonzero(row).tolist() for row in terms.conjuncts)
    return frozenset((pair[0], pair[-1]) for pair in pairs)


def _log_stars(problem: PlanningProblem, terms: OperatorTerms, nodes: np.ndarray) -> np.ndarray:
    """ln of the cost of the cheapest star that each node is, shape (m,)."""
    events = np.exp(problem.log_filtered).tolist()
    tested = _tested(terms)
    found = []
    for row in nodes.tolist():
        node = tuple(compress(range(problem.n), row))
        # Without satellites, spokes are bits of a word.
        spoke = BIT if len(node) == 2 else SPOKE
        of_centre = CENTRE * (len(node) - 1)
        given = stars_of(node, tested, is_root=len(node) == problem.n)
        costs = (sum(events[z] * (of_centre + spoke * events[a]) for z, a in its) for its in given)
        found.append(math.log(min(costs)))
    return np.array(found)
