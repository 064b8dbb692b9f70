"""Runs of aggregation methods, as cells of a sweep."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.engines.aggregation.e_cube import E_CUBE
from cepbench.engines.aggregation.live import Aggregator
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.errors import PartialMatchLimitError
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

#: Events of the first batch of a method that lists matches, and of its largest.
_FIRST, _MOST = 64, 16_384

#: Matches that such a method should find in a batch, all of which are in memory at a time.
_MATCHES = 1 << 18


class MatchLimitError(PartialMatchLimitError):
    """A method listed more matches than the sweep allows; ``measured`` has its metrics until then."""

    def __init__(self, limit: int, measured: dict[str, Any]) -> None:
        super().__init__(
            f"more than {limit:,} matches were listed in the first {measured['events']:,} events; "
            "raise partial_match_limit, or shorten the window"
        )
        self.measured = measured


def aggregated(
    query: Pattern | Workload,
    stream: EventStream,
    method: str,
    limit: int,
    sharing: WorkloadPlan | str | None = None,
    *,
    first: int = _FIRST,
    most: int = _MOST,
) -> dict[str, Any]:
    """The metrics of a method's run on a stream, and a digest of its values.

    A method that lists matches takes the stream in batches of about as many matches: one of ``first``
    events, then up to ``most``.

    A MatchLimitError if the method lists more matches than ``limit``.
    """
    live = Aggregator(query, method, sharing=sharing)
    lists_matches = method == E_CUBE or AGGREGATORS[method].lists_matches
    size = first if lists_matches else max(1, len(stream))
    done = values = listed = 0
    digest = hashlib.sha256()
    while not done or done < len(stream):
        found = live.push(stream[done : done + size])
        values += len(found)
        digest.update(text_of(found).encode())
        done += size
        before, listed = listed, live.metrics.updates
        if lists_matches and listed > limit:
            raise MatchLimitError(limit, _measured(live))
        size = max(1, min(2 * size, size * _MATCHES // max(1, listed - before), most))
    return _measured(live) | {"values": values, "digest": digest.hexdigest()[:16]}


def _measured(live: Aggregator) -> dict[str, Any]:
    metrics = live.metrics
    return {
        **metrics.to_dict(),
        "seconds_per_slide": metrics.seconds_per_slide,
        "events_per_second": metrics.events / metrics.seconds if metrics.seconds else None,
    }


def text_of(values: pd.DataFrame) -> str:
    """Rows of values as text, without what is missing, whatever the types of columns."""
    texts: list[Any] = [
        pc.binary_join_element_wise(f" {name}=", _texts_of(column), "").fill_null("")
        for name, column in values.items()
    ]
    lines = pc.binary_join_element_wise(*texts, "\n", "")
    text: str = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")[0].as_py()
    return text


def _texts_of(column: pd.Series) -> Any:
    """The values of a column as texts, null where there is none: all at once where they are of one plain type."""
    if column.dtype == np.dtype("int64"):
        return pc.cast(pa.array(column), pa.string())
    if column.dtype == np.dtype("datetime64[ns]"):
        texts = pc.cast(pa.array(column), pa.string())
        # As pandas writes a time: without a fraction, in microseconds, or in nanoseconds.
        return pc.replace_substring_regex(texts, pattern=r"(\.000000)?000$", replacement="")
    present = column.dropna().astype(object).map(_written)
    return pa.array(present.reindex(column.index).astype(object), pa.string(), from_pandas=True)


def _written(value: Any) -> str:
    """A value as text, floats in six digits: methods add them up in different orders.

    Times π, since values of few digits often lie where rounding changes.
    """
    return f"{math.pi * value:.5e}" if isinstance(value, float) else str(value)
