"""Statistics arguments; the error for other objects names the call that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepbench.arguments import kind_of
from cepbench.errors import StatisticsError
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream


def statistics_from(given: Any) -> Statistics:
    """The statistics of an argument.

    Raises
    ------
    StatisticsError
        If it is not Statistics.
    """
    if isinstance(given, Statistics):
        return given
    advice = "give cep.measure_statistics(pattern, stream), or cep.Statistics(rates={...}) by hand"
    if isinstance(given, EventStream):
        advice = "measure it first: cep.measure_statistics(pattern, stream)"
    elif isinstance(given, Mapping):
        advice = "write cep.Statistics(rates={...}) or cep.Statistics(cardinalities={...})"
    raise StatisticsError(f"statistics must be Statistics, not {kind_of(given)}; {advice}")
