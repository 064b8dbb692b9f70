"""The output profiler: in which order the events of a pattern's matches arrive.

The latency of a plan depends on which event of a match arrives last. A sequence says so itself; of
a conjunction it is seen in the matches that are reported [kolchinsky2018]_, section 5.1.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cepbench.evaluators.detector import Detector
from cepbench.planners.generate import plan
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern

#: Matches that are enough to tell orders of arrival apart, and the most events looked at for them.
ENOUGH_MATCHES = 1_000
MOST_EVENTS = 100_000

_BATCH = 500


def arrival_orders(matches: pd.DataFrame, names: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    """How often the events of matches arrived in each order.

    Parameters
    ----------
    matches : DataFrame
        Positions, a column a variable; those of a Kleene variable count by their last event.
    names : tuple of str
        The variables.

    Returns
    -------
    Counter
        Order of names, first to last -> number of matches.
    """
    if matches.empty:
        return Counter()
    columns = [
        matches[name].map(max).to_numpy(np.int64)
        if matches[name].dtype == object
        else matches[name].to_numpy(np.int64)
        for name in names
    ]
    orders = np.argsort(np.stack(columns, axis=1), axis=1, kind="stable")
    different, counts = np.unique(orders, axis=0, return_counts=True)
    return Counter(
        {
            tuple(names[k] for k in order): count
            for order, count in zip(different.tolist(), counts.tolist(), strict=True)
        }
    )


def expected_last(pattern: Pattern, stream: EventStream, statistics: Statistics) -> str | None:
    """The variable whose event most matches wait for, seen on the beginning of a stream.

    Parameters
    ----------
    pattern : Pattern
    stream : EventStream
        Read until :data:`ENOUGH_MATCHES` are found, or :data:`MOST_EVENTS` are seen.
    statistics : Statistics
        For the plan by which they are found.

    Returns
    -------
    str or None
        The last variable of the most frequent order of arrival. None if the pattern itself says
        which is last, has several branches, or has no match there.

    Notes
    -----
    Source: [kolchinsky2018]_, section 5.1.
    """
    branches = pattern.branches()
    if len(branches) > 1:
        return None
    names = pattern.positive_names
    followed = {first for first, second in pattern.structure.precedence() if second in names}
    if len([name for name in names if name not in followed]) == 1:
        return None
    detector = Detector(pattern, plan(pattern, statistics, "GREEDY"))
    orders: Counter[tuple[str, ...]] = Counter()
    for batch in stream[:MOST_EVENTS].batches(_BATCH):
        orders += arrival_orders(detector.push(batch), names)
        if orders.total() >= ENOUGH_MATCHES:
            break
    return orders.most_common(1)[0][0][-1] if orders else None
