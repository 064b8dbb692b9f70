"""Checks of an aggregation method: its values are those of the matches, however it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import seed as seed_from
from cepbench.engines.aggregation.aggregate import aggregate
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.live import Aggregator
from cepbench.engines.aggregation.protocol import EMITS, SCOPES, AggregationMethod
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.errors import ExperimentError
from cepbench.experiments.conformance.checker import (
    Check,
    CheckReport,
    batches,
    checked,
    chosen_patterns,
)
from cepbench.experiments.conformance.evaluator_checks import check_stream
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream

#: Patterns over :func:`aggregate_check_stream`, one for each construct and each kind of aggregate.
PATTERNS = {
    "pair": "SEQ(A a, B b) AGG COUNT",
    "count": "SEQ(A a, B b, C c) AGG COUNT",
    "sums": "SEQ(A a, B b, C c) AGG COUNT(b.x), SUM(b.x), AVG(c.x)",
    "extreme values": "SEQ(A a, B b, C c) AGG MIN(a.x), MAX(c.x), MAX(b.k)",
    "integers": "SEQ(A a, B b) AGG SUM(a.k), AVG(b.k), MIN(b.k)",
    "one event": "SEQ(A a) AGG COUNT, SUM(a.x)",
    "local condition": "SEQ(A a, B b, C c) WHERE b.x > 0 AND c.k != 2 AGG COUNT",
    "first event": "SEQ(A a, B b, C c) WHERE a.x < c.x AGG COUNT, SUM(b.x)",
    "neighbours": "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AGG COUNT, SUM(b.x)",
    "rise": "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x AGG COUNT",
    "equal values": "SEQ(A a, B b, C c) WHERE [k] AGG COUNT, MAX(b.x)",
    "groups": "SEQ(A a, B b, C c) GROUP BY k AGG COUNT, AVG(a.x)",
    "labels": "SEQ(A a, B b) GROUP BY a.k AGG COUNT",
    "repeated type": "SEQ(A a, B b, A c) AGG COUNT, SUM(c.x)",
    "negation": "SEQ(A a, NOT(B n), C c) AGG COUNT",
    "NOT first": "SEQ(NOT(B n), A a, C c) AGG COUNT",
    "kleene": "SEQ(A a, KL(B b), C c) AGG COUNT, COUNT(b), SUM(b.x), MAX(b.x)",
    "trend": "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x AGG COUNT, AVG(b.x)",
    "conjunction": "AND(A a, B b) AGG COUNT",
    "disjunction": "OR(SEQ(A a, B b), SEQ(C c, D d)) AGG COUNT",
    "consuming": "SEQ(A a, B b) STRATEGY consuming AGG COUNT",
    "no match": "SEQ(A a, B b) WHERE a.x > 100 AGG COUNT, SUM(b.x)",
    "concept": "SEQ(X a, NOT(B n), C c) AGG COUNT, SUM(a.x)",
    "types": "SEQ(X a, B b) GROUP BY type(a), k AGG COUNT, MAX(b.x)",
}

_WINDOW = 30

_COLUMNS = ("pattern", "text", "check", "status", "reason", "values", "seconds")


def check_aggregator(
    method: str, *, patterns: Sequence[str] | None = None, seed: int = 0
) -> CheckReport:
    """Compare the values of an aggregation method with those of the matches.

    Each construct is tried on a small stream with ties in time and missing values, with every
    ``emit`` and ``scope``, in batches, and as far as the method can, at times, and saved and
    restored between batches. The reference is ``two-step`` over ``lazy-nfa``. A pattern that the
    method refuses is no failure.

    Raises EvaluationError if there is no such method; ExperimentError if there is no such pattern.

    Parameters
    ----------
    method : str
        A name in ``cep.AGGREGATORS``.
    patterns : sequence of str, optional
        Keys of :data:`PATTERNS`; all by default.
    seed : int
        Of the stream and of its division into batches.

    Returns
    -------
    CheckReport
        With ``passed``, ``describe()`` and ``table``, a row for each run: ``pattern``, its ``text``,
        ``check`` (``emit/scope``, ``times``, ``batches``, ``snapshots``), ``status``, ``reason``,
        ``values`` (the correct number) and ``seconds``.

    Examples
    --------
    >>> import cepbench as cep
    >>> cep.check_aggregator("two-step", patterns=["groups"]).passed
    True
    """
    chosen = AGGREGATORS.find(method)
    wanted = chosen_patterns(patterns, PATTERNS)
    seed = seed_from(seed, ExperimentError)
    stream = aggregate_check_stream(seed)
    if not chosen.expires:
        stream = stream[: int(np.searchsorted(stream.timestamps, stream.timestamps[0] + _WINDOW))]
    checks = (check for name in wanted for check in _checks(chosen, name, stream, seed))
    heading = "{name} {verdict} gave the values of the matches, {refused} are refused, seed {seed}"
    return CheckReport(chosen.name, seed, checked(checks, _COLUMNS), "values", heading)


def aggregate_check_stream(seed: int = 0) -> EventStream:
    """The stream of :func:`~cepbench.experiments.conformance.evaluator_checks.check_stream` without every seventh
    value of ``x``."""
    stream = check_stream(seed)
    events = stream.to_pandas()
    events.loc[::7, "x"] = np.nan
    return EventStream.from_pandas(events, type="type", time="time", hierarchy=stream.hierarchy)


def _checks(
    chosen: AggregationMethod, name: str, stream: EventStream, seed: int
) -> Iterator[Check]:
    """The values of a pattern in all ways to ask for them that the method knows."""
    text = f"PATTERN {PATTERNS[name]} WITHIN {_WINDOW} units"
    pattern = parse(text).with_hierarchy(stream.hierarchy)
    times = stream.timestamps[[len(stream) // 3, len(stream) // 2, -1]].tolist()
    emits = {
        f"{emit}/{scope}": {"emit": emit, "scope": scope} for emit, scope in product(EMITS, SCOPES)
    }
    for check, options in {
        **emits,
        "times": {"at": times},
        "batches": {"emit": "change"},
        "snapshots": {"emit": "change"},
    }.items():
        # The method that a user-defined class must have for it.
        needed = {"times": "value", "snapshots": "snapshot"}.get(check, "push")
        if not chosen.is_builtin and not hasattr(chosen.implementation, needed):
            continue
        expected = aggregate(pattern, stream, "two-step", evaluator="lazy-nfa", **options).values
        row = {"pattern": name, "text": str(pattern), "check": check, "values": len(expected)}
        yield row, partial(_wrong, chosen.name, pattern, stream, check, options, expected, seed)


def _wrong(
    method: str,
    pattern: Pattern,
    stream: EventStream,
    check: str,
    options: dict[str, Any],
    expected: pd.DataFrame,
    seed: int,
) -> str | None:
    """The difference between a method's values and the expected ones."""
    if check in ("batches", "snapshots"):
        live = Aggregator(pattern, method, **options)
        pushed = batches(live, stream, seed, restored=check == "snapshots")
        found = [rows for _, rows in pushed]
        values = pd.concat([rows for rows in found if len(rows)] or found[:1], ignore_index=True)
    else:
        values = aggregate(pattern, stream, method, **options).values
    return difference(values, expected, pattern)
