"""All aggregation methods side by side on one pattern and one stream."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from cepbench.arguments import texts
from cepbench.engines.aggregation.aggregate import AggregateResult, aggregate
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.tables import check_values
from cepbench.errors import (
    ExperimentError,
    PartialMatchLimitError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK, REFUSED
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types

#: Columns of the comparison, in order.
METHOD_COLUMNS = (
    "method", "seconds", "events_per_second", "seconds_per_slide", "runs", "updates",
    "peak_counters", "peak_objects", "peak_bytes", "values", "status", "reason",
)  # fmt: skip


def compare_methods(
    pattern: Pattern,
    stream: EventStream,
    methods: Sequence[str] | None,
    *,
    repetitions: int,
    seconds: float,
    on_progress: Callable[[int, int], object] | None,
) -> list[dict[str, Any]]:
    """A row for each aggregation method, see :func:`cepbench.compare`.

    The first run of each method, which may compile, is not measured; the others are interleaved.

    Raises
    ------
    StreamError
        If the stream does not fit the pattern, whatever the method.
    """
    check_fit(pattern.without_aggregate(), stream)
    check_types(pattern, stream)
    check_values(pattern, stream)
    names = list(AGGREGATORS) if methods is None else texts(methods, "methods", ExperimentError)
    names = [AGGREGATORS.find(name).name for name in names]
    total, done = len(names) * (1 + repetitions), 0

    def report(runs: int) -> None:
        nonlocal done
        done += runs
        if on_progress is not None:
            on_progress(done, max(done, total))

    report(0)
    rows: dict[str, dict[str, Any]] = {name: {"method": name} for name in dict.fromkeys(names)}
    expected: AggregateResult | None = None
    measured: dict[str, list[AggregateResult]] = {}
    for name, row in rows.items():
        result, outcome = _first_run(pattern, stream, name)
        if result is not None:
            expected = expected or result
            wrong = difference(result.values, expected.values, pattern)
            if wrong is None:
                measured[name] = []
            else:
                outcome = _failed(ERROR, f"not the values of {expected.method}: {wrong}")
            row["values"] = len(result.values)
        row |= outcome
        report(1 if name in measured else 1 + repetitions)
    waiting = [*measured]
    while waiting:
        for name in waiting:
            measured[name].append(aggregate(pattern, stream, name))
            report(1)
        waiting = [
            name
            for name in waiting
            if len(measured[name]) < repetitions
            or sum(run.metrics.seconds for run in measured[name]) < seconds
        ]
    for name, runs in measured.items():
        rows[name] |= _figures(runs)
    return [*rows.values()]


def _first_run(
    pattern: Pattern, stream: EventStream, method: str
) -> tuple[AggregateResult | None, dict[str, Any]]:
    """The result, or why there is none, and the status."""
    try:
        return aggregate(pattern, stream, method), {"status": OK, "reason": None}
    except (UnsupportedPatternError, UnsupportedTaskError) as error:
        return None, _failed(REFUSED, str(error))
    except PartialMatchLimitError as error:
        return None, _failed(LIMIT, str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # any failure is a row
        return None, _failed(ERROR, f"{type(error).__name__}: {error}")


def _failed(status: str, reason: str) -> dict[str, Any]:
    return {"status": status, "reason": reason}


def _figures(runs: Sequence[AggregateResult]) -> dict[str, Any]:
    """The median time, and the metrics, which are the same in all runs."""
    metrics = runs[-1].metrics
    middle = statistics.median(run.metrics.seconds for run in runs)
    return {
        "seconds": middle,
        "events_per_second": metrics.events / middle if middle else math.nan,
        "seconds_per_slide": middle / metrics.events if metrics.events else math.nan,
        "runs": len(runs),
        **{
            name: getattr(metrics, name)
            for name in ("updates", "peak_counters", "peak_objects", "peak_bytes")
        },
    }
