"""Runs of aggregation methods, as cells of a sweep."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cepbench.aggregators.live import Aggregator
from cepbench.aggregators.registry import AGGREGATORS
from cepbench.errors import PartialMatchLimitError
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream
from cepbench.workloads.model import Workload

#: Events of the first batch of a method that lists matches, and of its largest.
_FIRST, _MOST = 256, 16_384

#: Matches that such a method should find in a batch, all of which are in memory at a time.
_MATCHES = 1 << 18

#: Metrics that are sums over the queries of a workload.
_SUMS = ("seconds", "updates", "peak_counters", "peak_objects", "peak_bytes")


class MatchLimitError(PartialMatchLimitError):
    """A method listed more matches than the sweep allows; ``measured`` has its metrics until then."""

    def __init__(self, limit: int, measured: dict[str, Any]) -> None:
        super().__init__(
            f"more than {limit:,} matches were listed in the first {measured['events']:,} events; "
            "raise partial_match_limit, or shorten the window"
        )
        self.measured = measured


def aggregated(
    query: Pattern | Workload, stream: EventStream, method: str, limit: int
) -> dict[str, Any]:
    """The metrics of a method's run on a stream, and a digest of its values.

    A method that lists matches takes the stream in batches of about as many matches. The queries of
    a workload run one after the other on each batch; metrics are sums over them.

    Raises
    ------
    MatchLimitError
        If the method lists more matches than ``limit``.
    """
    queries = query.patterns if isinstance(query, Workload) else {"": query}
    runs = {name: Aggregator(pattern, method) for name, pattern in queries.items()}
    digests = {name: hashlib.sha256() for name in runs}
    lists_matches = AGGREGATORS[method].lists_matches
    size = _FIRST if lists_matches else max(1, len(stream))
    done = values = listed = 0
    while not done or done < len(stream):
        for name, live in runs.items():
            found = live.push(stream[done : done + size])
            values += len(found)
            digests[name].update(_text_of(found).encode())
        done += size
        before, listed = listed, sum(live.metrics.updates for live in runs.values())
        if lists_matches and listed > limit:
            raise MatchLimitError(limit, _measured([*runs.values()]))
        size = max(1, min(2 * size, size * _MATCHES // max(1, listed - before), _MOST))
    texts = [f"{name} {digest.hexdigest()}" for name, digest in digests.items()]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    return _measured([*runs.values()]) | {"values": values, "digest": digest}


def _measured(runs: Sequence[Aggregator]) -> dict[str, Any]:
    metrics = [live.metrics for live in runs]
    found = {name: sum(getattr(each, name) for each in metrics) for name in _SUMS}
    seconds, events = found["seconds"], metrics[0].events
    return {
        **found,
        "events": events,
        "seconds_per_slide": seconds / events if events else None,
        "events_per_second": events / seconds if seconds else None,
    }


def _text_of(values: pd.DataFrame) -> str:
    """Rows of values as text, floats in six digits: methods add them up in different orders.

    Times π, since values of few digits often lie where rounding changes.
    """
    if values.empty:  # whose columns have no texts
        return ""
    lines = pd.Series("", index=values.index)
    for name, column in values.items():
        is_float = column.dtype.kind == "f"
        written = (
            (math.pi * column).map("{:.5e}".format) if is_float else column.astype(object).map(str)
        )
        lines += (f" {name}=" + written).where(column.notna(), "")
    return "".join(f"{line}\n" for line in lines)
