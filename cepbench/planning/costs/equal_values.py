"""The selectivity of equalities, which are transitive: between k equal values there are k − 1.

An equality that is written between two variables has their selectivity. One that follows from others
is taken to have that of the least selective pair between which it is written, as other conditions on a
pair make its selectivity less.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cepbench.patterns.equivalences import Equalities
from cepbench.patterns.model import Clause
from cepbench.planning.costs.logarithms import log
from cepbench.planning.statistics.model import Statistics


@dataclass(frozen=True, eq=False)
class EqualValues:
    """Variables with equal values, as numbers.

    As the selectivity of a set is a product over all pairs, those between which an equality is only
    implied have one too, and what they count too often is divided out by the size of the set.
    """

    #: The variables of each class of at least three. Bool, shape (c, n).
    members: np.ndarray
    #: ln of the selectivity of one equality. Float64, shape (c,).
    log_selectivity: np.ndarray
    #: The same of the pairs of each class between which no equality is written; elsewhere zeros.
    #: Float64, shape (c, n, n).
    log_implied: np.ndarray

    @classmethod
    def of(
        cls, clauses: Iterable[Clause], statistics: Statistics, names: Sequence[str]
    ) -> EqualValues | None:
        """Those of some variables of a pattern without OR; None if there is no class."""
        equalities = Equalities(clauses, names)
        if len(equalities) < 2:
            return None
        tied = [its for its in equalities.tied if len(its[0]) > 2]
        if not tied:
            return None
        members = np.zeros((len(tied), len(names)), bool)
        logs = np.zeros(len(tied))
        implied = np.zeros((len(tied), len(names), len(names)))
        for number, (its, written) in enumerate(tied):
            given = [pair for pair in written if statistics.has_selectivity(*pair)]
            known = [statistics.selectivity(*pair) for pair in given]
            logs[number] = log(max(known, default=1.0))
            members[number] = [name in its for name in names]
            for i, j in itertools.permutations(np.flatnonzero(members[number]).tolist(), 2):
                if frozenset((names[i], names[j])) not in written:
                    implied[number, i, j] = logs[number]
        return cls(members, logs, implied)

    @property
    def log_factor(self) -> np.ndarray:
        """ln of the factor of sets of k variables for classes of all variables, shape (n + 1,)."""
        logs = self.log_selectivity[self.members.all(axis=1)]
        return np.asarray(-repeated(np.arange(self.members.shape[1] + 1)) * logs.sum())

    @property
    def of_some(self) -> EqualValues | None:
        """The classes of some, not all, variables; None if there is none."""
        chosen = ~self.members.all(axis=1)
        if not chosen.any():
            return None
        return EqualValues(
            self.members[chosen], self.log_selectivity[chosen], self.log_implied[chosen]
        )

    def log_repeated(self, sets: np.ndarray) -> np.ndarray:
        """ln of what the product over all pairs of sets counts too often, shape (m,)."""
        return self.log_repeated_among(sets.astype(np.int64) @ self.members.T)

    def log_repeated_in(self, masks: np.ndarray) -> np.ndarray:
        """The same of sets as bit masks."""
        classes = self.members @ (1 << np.arange(self.members.shape[1], dtype=np.int64))
        counts = np.bitwise_count(masks[..., np.newaxis] & classes).astype(np.int64)
        return self.log_repeated_among(counts)

    def log_repeated_among(self, counts: np.ndarray) -> np.ndarray:
        """The same of sets with so many variables of each class, shape (m, c)."""
        return np.asarray(repeated(counts) @ self.log_selectivity)

    def log_repeated_between(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The same of the pairs of a variable of one set and one of another, shape (m,)."""
        inside = self.log_repeated(left) + self.log_repeated(right)
        return np.asarray(self.log_repeated(left | right) - inside)


def repeated(count: np.ndarray) -> np.ndarray:
    """The pairs of some equal values beyond the equalities between them."""
    return (count - 1) * (count - 2) // 2 * (count > 0)
