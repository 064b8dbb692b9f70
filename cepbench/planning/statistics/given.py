"""Statistics arguments; the error for other objects names the call that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepbench.arguments import kind_of
from cepbench.errors import StatisticsError, errors_naming
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.given import workload_from
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream


def statistics_from(given: Any) -> Statistics:
    """The statistics of an argument; StatisticsError if it is not Statistics."""
    if isinstance(given, Statistics):
        return given
    advice = "give cep.measure_statistics(pattern, stream), or cep.Statistics(rates={...}) by hand"
    if isinstance(given, EventStream):
        advice = "measure it first: cep.measure_statistics(pattern, stream)"
    elif isinstance(given, Mapping):
        advice = "write cep.Statistics(rates={...}) or cep.Statistics(cardinalities={...})"
    raise StatisticsError(f"statistics must be Statistics, not {kind_of(given)}; {advice}")


def workload_statistics(
    workload: Workload, statistics: Mapping[str, Statistics]
) -> dict[str, Statistics]:
    """The statistics of every query of a workload.

    Raises PlanError if it is not a workload; StatisticsError if there are none of a query, or of
    one of its variables.
    """
    workload = workload_from(workload)
    advice = "give cep.measure_statistics(workload, stream)"
    if not isinstance(statistics, Mapping):
        raise StatisticsError(
            f"the statistics of a workload are a mapping of its queries, not {kind_of(statistics)}; {advice}"
        )
    for query in workload.patterns:
        if query not in statistics:
            raise StatisticsError(f"there are no statistics of query {query!r}; {advice}")
    found = {}
    for query, pattern in workload.patterns.items():
        with errors_naming(query):
            found[query] = statistics_from(statistics[query])
            for name in pattern.names:
                found[query].cardinality(name, pattern.window.seconds)  # raises without a rate
    return found
