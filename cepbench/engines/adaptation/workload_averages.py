"""Windowed averages of the statistics of a workload [liu2011]_, section 6: those of each of its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from cepbench.engines.adaptation.averages import Averaged, Averages
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream


class AveragedQueries:
    """The statistics of the queries of a workload.

    Attributes
    ----------
    by_query : mapping of str to Averaged
    """

    def __init__(self, by_query: Mapping[str, Averaged]) -> None:
        self.by_query = by_query

    @cached_property
    def statistics(self) -> dict[str, Statistics]:
        """As planners of workloads take them."""
        return {query: its.statistics for query, its in self.by_query.items()}

    @property
    def packed(self) -> dict[str, tuple[list[float], int]]:
        """For :meth:`QueryAverages.unpacked`."""
        return {query: its.packed for query, its in self.by_query.items()}

    def changes(self, before: AveragedQueries) -> Iterator[tuple[str, float, float]]:
        """Name, previous and current value of each statistic that differs by more than its error."""
        for query, its in self.by_query.items():
            for name, value, now in its.changes(before.by_query[query]):
                yield f"query {query}, {name}", value, now


class QueryAverages(Stateful):
    """The windowed averages of each query; used as :class:`~cepbench.engines.adaptation.averages.Averages`.

    Parameters
    ----------
    batch_size : int
        Events in a round.
    """

    SAVED = ("_own",)

    def __init__(self, workload: Workload, seed: int, batch_size: int) -> None:
        self._own = {
            query: Averages(pattern, seed, batch_size)
            for query, pattern in workload.patterns.items()
        }
        self._current: AveragedQueries | None = None

    def add(self, events: EventStream) -> None:
        """Sample the last events of a round."""
        for its in self._own.values():
            its.add(events)
        self._current = None

    def current(self) -> AveragedQueries | None:
        """The averages; None before the first round."""
        if self._current is None:
            found = {query: its.current() for query, its in self._own.items()}
            known = {query: its for query, its in found.items() if its is not None}
            self._current = AveragedQueries(known) if known else None
        return self._current

    def of(self, events: EventStream) -> AveragedQueries:
        """The statistics of some events alone."""
        return AveragedQueries({query: its.of(events) for query, its in self._own.items()})

    def of_all(self, events: EventStream) -> AveragedQueries:
        """The statistics of some events alone, measured as well as by default."""
        return AveragedQueries({query: its.of_all(events) for query, its in self._own.items()})

    def unpacked(self, packed: Mapping[str, Any]) -> AveragedQueries:
        """What :attr:`AveragedQueries.packed` is of."""
        return AveragedQueries(
            {query: its.unpacked(packed[query]) for query, its in self._own.items()}
        )
