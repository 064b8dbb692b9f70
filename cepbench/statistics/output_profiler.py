"""The output profiler: in which order the events of reported matches arrive.

In a conjunction nobody knows beforehand which event comes last, and the cost of latency depends on
it [kolchinsky2018]_, section 5.1.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from cepbench.arguments import kind_of, whole
from cepbench.errors import StatisticsError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern


class OutputProfiler:
    """Counts the orders in which the events of matches have arrived.

    Feed it with matches as they are reported, batch by batch; then plan with
    ``last=profiler.last_variable``. A Kleene variable arrives with the last event of its set.

    Parameters
    ----------
    pattern : Pattern or str
        Or its text.

    Examples
    --------
    >>> profiler = OutputProfiler(pattern).add(cep.evaluate(pattern, stream, plan).matches)
    >>> cep.plan(pattern, statistics, "DP-LD", alpha=0.5, last=profiler.last_variable)
    """

    def __init__(self, pattern: Pattern | str) -> None:
        self.pattern = pattern = pattern_from(pattern)
        self._names = [branch.positive_names for branch in pattern.branches()]
        self._counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in self._names]

    def add(self, matches: pd.DataFrame) -> OutputProfiler:
        """Count the arrival orders of more matches.

        Parameters
        ----------
        matches : DataFrame
            As ``evaluate(...).matches`` or ``Detector.push`` give it: a column of stream positions
            for each variable, and with OR a column ``branch``.

        Returns
        -------
        OutputProfiler
            Itself.

        Raises
        ------
        StatisticsError
            If these are no matches, or a column is missing, as if they were of another pattern.
        """
        if not isinstance(matches, pd.DataFrame):
            raise StatisticsError(
                f"matches must be a DataFrame, not {kind_of(matches)}; evaluate(...).matches is one"
            )
        if len(self._names) > 1:
            if "branch" not in matches.columns:
                raise StatisticsError(
                    f"matches of {self.pattern.structure} have a column 'branch', and these have "
                    f"not; they have {_listed(matches.columns)}"
                )
            of_branch = matches["branch"].to_numpy()
            parts = [matches[of_branch == number] for number in range(len(self._names))]
        else:
            parts = [matches]
        for names, counts, part in zip(self._names, self._counts, parts, strict=True):
            missing = [name for name in names if name not in matches.columns]
            if missing:
                raise StatisticsError(
                    f"the matches have no column {missing[0]!r}; they have "
                    f"{_listed(matches.columns)}, so they may be of another pattern"
                )
            if not len(part):
                continue
            try:
                places = np.column_stack([_arrivals(part[name]) for name in names])
            except (TypeError, ValueError, OverflowError) as error:
                raise StatisticsError(
                    f"the columns {_listed(names)} of the matches hold something else than "
                    "positions; give them as evaluate(...).matches has them"
                ) from error
            orders, times = np.unique(
                np.argsort(places, axis=1, kind="stable"), axis=0, return_counts=True
            )
            for order, count in zip(orders.tolist(), times.tolist(), strict=True):
                counts[tuple(names[i] for i in order)] += count
        return self

    @property
    def matches_seen(self) -> int:
        """The number of matches counted."""
        return sum(counts.total() for counts in self._counts)

    def orders(self) -> pd.DataFrame:
        """How often each order was seen: ``branch, order, matches, share``, most frequent first.

        ``share`` is among the matches of the branch. Of equally frequent orders the one that comes
        first in the alphabet is listed first.
        """
        rows = [
            (number, order, count, count / counts.total())
            for number, counts in enumerate(self._counts)
            for order, count in _ranked(counts)
        ]
        return pd.DataFrame(rows, columns=["branch", "order", "matches", "share"])

    @property
    def most_frequent_order(self) -> tuple[str, ...] | tuple[tuple[str, ...] | None, ...]:
        """The order in which most matches have arrived; with OR one for each branch.

        None for a branch of which no match was seen.

        Raises
        ------
        StatisticsError
            If no match was seen at all.
        """
        if not self.matches_seen:
            raise StatisticsError(
                "the output profiler has seen no matches yet; add(evaluate(...).matches) first"
            )
        found = tuple(
            next((order for order, _ in _ranked(counts)), None) for counts in self._counts
        )
        return found if len(found) > 1 else found[0] or ()

    @property
    def last_variable(self) -> str | tuple[str | None, ...]:
        """The last variable of the most frequent order, as ``last=`` of ``cep.plan`` wants it.

        With OR one for each branch: None for one of which no match was seen.

        Raises
        ------
        StatisticsError
            If no match was seen at all.
        """
        found = self.most_frequent_order
        if len(self._names) == 1:
            return str(found[-1])
        return tuple(order[-1] if order else None for order in found)

    def describe(self, most: int = 10) -> str:
        """The most frequent orders, one a line, with their shares."""
        most = whole(most, "most", StatisticsError, least=0)
        lines = [f"arrival orders of {self.matches_seen} matches"]
        for number, counts in enumerate(self._counts):
            if len(self._counts) > 1:
                lines.append(f"  branch {number}: {counts.total()} matches")
            ranked = _ranked(counts)
            lines += [
                f"  {count / counts.total():>6.1%}  {', '.join(order)}"
                for order, count in ranked[:most]
            ]
            if len(ranked) > most:
                lines.append(f"          and {len(ranked) - most} more orders")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{number}</td><td>{html.escape(', '.join(order))}</td>"
            f"<td>{count}</td><td>{count / counts.total():.1%}</td></tr>"
            for number, counts in enumerate(self._counts)
            for order, count in _ranked(counts)[:10]
        )
        return (
            f'<table class="cep-profile"><caption>arrival orders of {self.matches_seen} matches'
            "</caption><tr><th>branch</th><th>order</th><th>matches</th><th>share</th></tr>"
            f"{rows}</table>"
        )


def _ranked(counts: Counter[tuple[str, ...]]) -> list[tuple[tuple[str, ...], int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _arrivals(column: pd.Series) -> np.ndarray:
    """The positions of a plain variable, or of the last events of a Kleene variable's sets."""
    if column.dtype == object:
        return np.fromiter((max(events) for events in column), dtype=np.int64, count=len(column))
    return column.to_numpy(dtype=np.int64)


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names)) or "none at all"
