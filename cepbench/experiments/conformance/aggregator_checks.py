"""Checks of an aggregation method: its values are those of the matches, however it is asked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cepbench.arguments import choice, texts
from cepbench.arguments import seed as seed_from
from cepbench.engines.aggregation.aggregate import aggregate
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.live import Aggregator
from cepbench.engines.aggregation.protocol import EMITS, SCOPES, AggregationMethod
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.errors import ExperimentError, UnsupportedPatternError
from cepbench.experiments.conformance.check_report import CheckReport
from cepbench.experiments.conformance.evaluator_checks import check_stream
from cepbench.experiments.sweeps.cells import ERROR, OK, REFUSED
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


@dataclass(frozen=True, repr=False)
class AggregatorReport(CheckReport):
    """The result of :func:`cepbench.check_aggregator`.

    Attributes
    ----------
    method : str
    seed : int
    table : DataFrame
        One row a check: ``pattern`` (a key of :data:`PATTERNS`), its ``text``, ``check``
        (``emit/scope``, ``times``, ``batches``, ``snapshots``), ``status`` (``ok``, ``refused``, ``error``), ``reason``, ``values`` (the correct number) and
        ``seconds``.
    """

    method: str
    seed: int
    table: pd.DataFrame

    counted: ClassVar[str] = "values"

    def _heading(self) -> str:
        return (
            f"{self.method} {self._verdict()} gave the values of the matches, "
            f"{self._refused()} are refused, seed {self.seed}"
        )


def check_aggregator(
    method: str, *, patterns: Sequence[str] | None = None, seed: int = 0
) -> AggregatorReport:
    """Compare the values of an aggregation method with those of the matches.

    Each construct is tried on a small stream with ties in time and missing values, with every
    ``emit`` and ``scope``, in batches, and as far as the method can, at times, and saved and
    restored between batches. The reference is ``two-step`` over ``lazy-nfa``. A pattern that the
    method refuses is no failure.

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
    AggregatorReport
        With ``passed``, ``table`` and ``describe()``.

    Raises
    ------
    EvaluationError
        If there is no such method.
    ExperimentError
        If there is no such pattern.

    Examples
    --------
    >>> import cepbench as cep
    >>> cep.check_aggregator("two-step", patterns=["groups"]).passed
    True
    """
    chosen = AGGREGATORS.find(method)
    wanted = texts(PATTERNS if patterns is None else patterns, "patterns", ExperimentError)
    seed = seed_from(seed, ExperimentError)
    for name in wanted:
        choice(name, "each of patterns", PATTERNS, ExperimentError)
    stream = aggregate_check_stream(seed)
    if not chosen.expires:
        stream = stream[: int(np.searchsorted(stream.timestamps, stream.timestamps[0] + _WINDOW))]
    rows = [row for name in wanted for row in _runs(chosen, name, stream, seed)]
    return AggregatorReport(chosen.name, seed, pd.DataFrame(rows, columns=list(_COLUMNS)))


def aggregate_check_stream(seed: int = 0) -> EventStream:
    """The stream of :func:`~cepbench.experiments.conformance.evaluator_checks.check_stream` without every seventh
    value of ``x``."""
    stream = check_stream(seed)
    events = stream.to_pandas()
    events.loc[::7, "x"] = np.nan
    return EventStream.from_pandas(events, type="type", time="time", hierarchy=stream.hierarchy)


@dataclass(frozen=True)
class _Check:
    """A way to ask for values.

    Attributes
    ----------
    options : mapping
        Of :func:`cepbench.aggregate`.
    in_batches, restored : bool
        Whether the stream is pushed in batches, and the method is saved and restored between them.
    needs : str, optional
        The method that a user-defined class must have for it.
    """

    options: Mapping[str, Any]
    in_batches: bool = False
    restored: bool = False
    needs: str = "push"

    def values(self, method: str, pattern: Pattern, stream: EventStream, seed: int) -> pd.DataFrame:
        """What a method gives."""
        if not self.in_batches:
            return aggregate(pattern, stream, method, **self.options).values
        live = Aggregator(pattern, method, **self.options)
        rng = np.random.default_rng([seed, 1])
        cuts = [0, *np.sort(rng.integers(0, len(stream), 6)).tolist(), len(stream)]
        found = []
        for begin, end in pairwise(cuts):
            found.append(live.push(stream[begin:end]))
            if self.restored:
                live = Aggregator.restore(live.snapshot())
        return pd.concat([rows for rows in found if len(rows)] or found[:1], ignore_index=True)


def _checks(stream: EventStream) -> dict[str, _Check]:
    times = stream.timestamps[[len(stream) // 3, len(stream) // 2, -1]].tolist()
    return {
        **{
            f"{emit}/{scope}": _Check({"emit": emit, "scope": scope})
            for emit, scope in product(EMITS, SCOPES)
        },
        "times": _Check({"at": times}, needs="value"),
        "batches": _Check({"emit": "change"}, in_batches=True),
        "snapshots": _Check({"emit": "change"}, in_batches=True, restored=True, needs="snapshot"),
    }


def _runs(
    chosen: AggregationMethod, name: str, stream: EventStream, seed: int
) -> list[dict[str, object]]:
    text = f"PATTERN {PATTERNS[name]} WITHIN {_WINDOW} units"
    pattern = parse(text).with_hierarchy(stream.hierarchy)
    rows = []
    for check, its in _checks(stream).items():
        if not chosen.is_builtin and not hasattr(chosen.implementation, its.needs):
            continue
        options = {"evaluator": "lazy-nfa", **its.options}
        expected = aggregate(pattern, stream, "two-step", **options).values
        row: dict[str, object] = {"pattern": name, "text": str(pattern), "check": check}
        row["values"] = len(expected)
        began = time.perf_counter()
        try:
            reason = difference(its.values(chosen.name, pattern, stream, seed), expected, pattern)
            row |= {"status": ERROR if reason else OK, "reason": reason}
        except UnsupportedPatternError as error:
            row |= {"status": REFUSED, "reason": str(error)}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # any error is a finding
            row |= {"status": ERROR, "reason": f"{type(error).__name__}: {error}"}
        rows.append(row | {"seconds": time.perf_counter() - began})
    return rows
