"""Results of a workload: one of each query, and how they were computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cepbench.errors import EvaluationError, did_you_mean
from cepbench.evaluators.result import Metrics, Result
from cepbench.plans.reuse import Source


@dataclass(frozen=True)
class Step:
    """How one query was computed.

    Attributes
    ----------
    query : str
    source : str, tuple of str or None
        The query whose matches were reused, or several; None from scratch.
    results : int
        Its matches.
    reused : int
        Those of them made of matches of the source: all if the source is more general, the distinct
        projections if it is more specific, none from scratch.
    delta : int
        The others.
    seconds : float
        Wall-clock time, without that of the source.
    """

    query: str
    source: Source
    results: int
    reused: int
    delta: int
    seconds: float


class WorkloadMatches(Mapping[str, Result]):
    """The results of a workload's queries by name, in the order of the workload.

    Parameters
    ----------
    results : mapping of str to Result
    taken : sequence of Step
        In the order in which the queries were computed.
    metrics : Metrics

    Attributes
    ----------
    metrics : Metrics
        ``matches`` is the sum over the queries, ``seconds`` over virtual ones too; ``peak_bytes`` those
        of the largest state of an evaluator, and of all matches that are kept for reuse or made by it,
        of which positions are copied only when asked for. Other metrics are sums over the queries
        computed from scratch, as far as their evaluator measures them.
    """

    def __init__(
        self, results: Mapping[str, Result], taken: Sequence[Step], metrics: Metrics
    ) -> None:
        self._results = dict(results)
        self._taken = tuple(taken)
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

    def __repr__(self) -> str:
        counts = ", ".join(f"{query}: {its.metrics.matches:,}" for query, its in self.items())
        return f"WorkloadMatches({counts})"

    def _repr_html_(self) -> str:
        return self.steps.to_html(escape=True, index=False)
