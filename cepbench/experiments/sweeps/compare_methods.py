"""All aggregation methods side by side on one pattern and one stream."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

from cepbench.arguments import texts
from cepbench.engines.aggregation.aggregate import aggregate
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.tables import check_values
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import ERROR
from cepbench.experiments.sweeps.rotation import Agreement, Contender, take_turns
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types

#: Columns of the comparison, in order.
METHOD_COLUMNS = (
    "method", "seconds", "events_per_second", "seconds_per_slide", "runs", "updates",
    "peak_counters", "peak_objects", "peak_bytes", "values", "status", "reason",
)  # fmt: skip


def compare_methods(
    pattern: Pattern, stream: EventStream, methods: Sequence[str] | None, **how: Any
) -> list[dict[str, Any]]:
    """A row for each aggregation method, see :func:`cepbench.compare`.

    Parameters
    ----------
    pattern, stream, methods
    **how
        Of :func:`cepbench.experiments.sweeps.rotation.take_turns`.

    Raises
    ------
    StreamError
        If the stream does not fit the pattern, whatever the method.
    """
    check_fit(pattern.without_aggregate(), stream)
    check_types(pattern, stream)
    check_values(pattern, stream)
    names = list(AGGREGATORS) if methods is None else texts(methods, "methods", ExperimentError)
    names = list(dict.fromkeys(AGGREGATORS.find(name).name for name in names))
    agreement = Agreement(lambda found, expected: difference(found, expected, pattern))

    def run(method: str, first: bool) -> tuple[float, dict[str, Any]]:
        found = aggregate(pattern, stream, method)
        columns = {
            name: getattr(found.metrics, name)
            for name in ("updates", "peak_counters", "peak_objects", "peak_bytes")
        }
        if first:
            columns = {"values": len(found.values)}
            if wrong := agreement.violated(method, found.values):
                reason = f"not the values of {wrong[0]}: {wrong[1]}"
                columns |= {"status": ERROR, "reason": reason}
        return found.metrics.seconds, columns

    contenders = [Contender({"method": name}, partial(run, name)) for name in names]
    for contender in take_turns(contenders, rows=len(names), **how):
        took, events = statistics.median(contender.seconds), len(stream)
        contender.row |= {
            "seconds": took,
            "events_per_second": events / took if took else math.nan,
            "seconds_per_slide": took / events if events else math.nan,
            "runs": len(contender.seconds),
        }
    return [contender.row for contender in contenders]
