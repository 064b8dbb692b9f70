"""The output profiler: the order in which the events of reported matches arrive.

The latency cost depends on the event that arrives last [kolchinsky2018]_, section 5.1, which is not
determined by a conjunction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from cepbench.arguments import kind_of, whole
from cepbench.errors import StatisticsError
from cepbench.markup import Html
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern

_TABLE = Html(
    """<table class="cep-profile"><caption>arrival orders of {{ matches }} matches</caption>
<tr><th>branch</th><th>order</th><th>matches</th><th>share</th></tr>{% for row in rows %}
<tr><td>{{ row.branch }}</td><td>{{ row.order | join(", ") }}</td><td>{{ row.matches }}</td>
{#- -#}<td>{{ "%.1f" | format(100 * row.share) }}%</td></tr>{% endfor %}</table>"""
)


class OutputProfiler:
    """Counts the arrival orders of the events of matches.

    Add matches as they are reported, then plan with ``last=profiler.last_variable``. A Kleene
    variable arrives with the last event of its set.

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
        """Count the arrival orders of further matches; returns itself.

        They come from ``evaluate(...).matches`` or ``Detector.push``: a column of stream positions per variable,
        and with OR a column ``branch``.

        Raises StatisticsError if it is not a table of matches of this pattern.
        """
        if not isinstance(matches, pd.DataFrame):
            raise StatisticsError(
                f"matches must be a DataFrame, not {kind_of(matches)}; evaluate(...).matches is one"
            )
        if len(self._names) > 1:
            if "branch" not in matches.columns:
                raise StatisticsError(
                    f"matches of {self.pattern.structure} have a column 'branch'; these have "
                    f"{_listed(matches.columns)}"
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
                    f"the columns {_listed(names)} of the matches are not positions; pass "
                    "evaluate(...).matches unchanged"
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
        """Frequency of each order: ``branch, order, matches, share``, most frequent first.

        ``share`` is among the matches of the branch. Ties are in alphabetical order.
        """
        rows = [
            (number, order, count, count / counts.total())
            for number, counts in enumerate(self._counts)
            for order, count in _ranked(counts)
        ]
        return pd.DataFrame(rows, columns=["branch", "order", "matches", "share"])

    @property
    def most_frequent_order(self) -> tuple[str, ...] | tuple[tuple[str, ...] | None, ...]:
        """The most frequent order; with OR one per branch, None for a branch without matches.

        Raises StatisticsError if there are no matches yet.
        """
        if not self.matches_seen:
            raise StatisticsError(
                "the output profiler has no matches yet; call add(evaluate(...).matches) first"
            )
        found = tuple(
            next((order for order, _ in _ranked(counts)), None) for counts in self._counts
        )
        return found if len(found) > 1 else found[0] or ()

    @property
    def last_variable(self) -> str | tuple[str | None, ...]:
        """The last variable of the most frequent order, for ``last=`` of ``cep.plan``.

        With OR one per branch, None for a branch without matches.

        Raises StatisticsError if there are no matches yet.
        """
        found = self.most_frequent_order
        if len(self._names) == 1:
            return str(found[-1])
        return tuple(order[-1] if order else None for order in found)

    def describe(self, most: int = 10) -> str:
        """The most frequent orders, one per line, with their shares."""
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
        shown = self.orders().groupby("branch").head(10)
        return str(_TABLE(matches=self.matches_seen, rows=shown.itertuples(index=False)))


def _ranked(counts: Counter[tuple[str, ...]]) -> list[tuple[tuple[str, ...], int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _arrivals(column: pd.Series) -> np.ndarray:
    """The positions of a plain variable, or of the last events of Kleene sets."""
    if column.dtype == object:
        return np.fromiter((max(events) for events in column), dtype=np.int64, count=len(column))
    return column.to_numpy(dtype=np.int64)


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names)) or "none"
