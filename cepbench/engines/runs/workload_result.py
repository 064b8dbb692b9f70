"""Results of a workload: one of each query, and how they were computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cepbench.engines.runs.cube import match_cube
from cepbench.engines.runs.result import Metrics, Result
from cepbench.errors import EvaluationError, did_you_mean
from cepbench.planning.plans.reuse import Source
from cepbench.streams.event_stream import EventStream


@dataclass(frozen=True)
class Step:
    """How one query was computed."""

    query: str
    source: Source  #: the query whose matches were reused, or several; None from scratch
    results: int  #: its matches
    #: Those of them made of matches of the source: all if the source is more general, the distinct
    #: projections if it is more specific, none from scratch.
    reused: int
    delta: int  #: the others
    seconds: float  #: wall-clock time, without that of the source
    #: Partial and complete matches of two events or more that were assembled, equation (5) of
    #: [liu2011]_; NaN from scratch if the evaluator does not count them.
    assembled: float
    types_tested: int  #: tests of the type of an event of a match of the source, equation (13)
    #: Matches of sources that were joined with events, tested for negated ones, or projected to
    #: fewer items, equations (7) and (16).
    source_matches: int


class WorkloadMatches(Mapping[str, Result]):
    """The results of a workload's queries by name, in the order of the workload.

    Attributes
    ----------
    metrics : Metrics
        ``matches`` is the sum over the queries, ``seconds`` over virtual ones too; ``peak_bytes`` those
        of the largest state of an evaluator, and of all matches that are kept for reuse or made by it,
        of which positions are copied only when asked for. Other metrics are sums over the queries
        computed from scratch, as far as their evaluator measures them.
    """

    def __init__(
        self,
        results: Mapping[str, Result],
        taken: Sequence[Step],
        metrics: Metrics,
        stream: EventStream,
    ) -> None:
        self._results = dict(results)
        self._stream = stream
        self._taken = tuple(taken)  # in the order in which the queries were computed
        self.metrics = metrics

    def __getitem__(self, query: str) -> Result:
        try:
            return self._results[query]
        except KeyError:
            raise EvaluationError(
                f"the workload has no query {query!r}; it has {', '.join(self._results)}"
                f"{did_you_mean(query, self._results)}"
            ) from None

    def __contains__(self, query: object) -> bool:
        return query in self._results

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def steps(self) -> pd.DataFrame:
        """How each query was computed, see :class:`Step`, in the order of computation."""
        return pd.DataFrame([vars(step) for step in self._taken])

    def cube(
        self,
        query: str,
        levels: int | Iterable[int] | Mapping[str, int | Iterable[int]] | None = None,
    ) -> pd.DataFrame:
        """The number of matches of a query by the concepts of their events, rolled up.

        For every combination of one level of each variable the matches are counted as by ``GROUP BY
        type(a, level), type(b, level)``: by the concept at the level, or the event's own type if that
        stands above the level.

        Parameters
        ----------
        levels : int, iterable of int, or mapping of str to them, optional
            0 is that of the roots. Of all plain variables, or by variable, and then of those alone; by
            default all levels from the one of an item's type on.

        Returns
        -------
        DataFrame
            ``a level``, ``a``, ``b level``, ``b``, …, ``matches``, without combinations of concepts that
            no match has.

        Raises
        ------
        EvaluationError
            If there is no such query, its matches were only counted, a variable is not bound to one
            event by every match, or a level is none.

        Notes
        -----
        Source: the roll-up along concepts of [liu2011]_, section II-A, of results instead of queries.
        """
        result = self[query]
        pattern = result.pattern.with_hierarchy(self._stream.hierarchy)
        return match_cube(pattern, result.positions, self._stream, levels)

    def __repr__(self) -> str:
        counts = ", ".join(f"{query}: {its.metrics.matches:,}" for query, its in self.items())
        return f"WorkloadMatches({counts})"

    def _repr_html_(self) -> str:
        return self.steps.to_html(escape=True, index=False)
