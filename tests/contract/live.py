"""Everything that goes on from batch to batch: detectors and aggregators of every entry, in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import cepbench as cep
from cepbench.engines.runs.protocol import Evaluator
from cepbench.errors import (
    AdaptationError,
    EvaluationError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from tests.contract.snapshots import Snapshot

#: Opens a detector or an aggregator.
Way = Callable[[], Any]

#: Patterns whose runs keep something that others do not.
PATTERNS = (
    "SEQ(A a, B b, C c) WHERE a.x < c.x AND a.x + b.x > 0.5 WITHIN 20 units",
    "SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND a.s != 'q' WITHIN 9 units",
    "AND(A a, B b) WHERE a.s = b.s WITHIN 15 units",
    "SEQ(A a, NOT(B n), C c, NOT(D m)) WHERE n.x > 1 AND m.x > 1 WITHIN 30 units",
    "SEQ(A a, NOT(B n), C c) WHERE a.k = c.k AND a.k = n.k WITHIN 9 units",
    "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x WITHIN 9 units",
    "SEQ(A a, KL(B b), C c) WHERE b.s = c.s ORDER BY arrival WITHIN 5 units",
    "SEQ(A a, GROUP(B b, +), C c, NOT(A n)) WITHIN 9 units",
    "OR(SEQ(A a, B b, NOT(C n)), AND(A a, B b)) WITHIN 12 units",
    "OR(AND(A a, B b), SEQ(A a, B b, NOT(C n))) WITHIN 12 units",
    "SEQ(A a, C c, NOT(B n)) STRATEGY consuming WITHIN 30 units",
    "OR(SEQ(A a, B b), SEQ(A a, C c)) STRATEGY consuming WITHIN 30 units",
    "SEQ(A a, B b) STRATEGY partition_contiguity(s) WITHIN 30 units",
    "SEQ(A a, KL(B b), C c) STRATEGY next WITHIN 20 units",
    "SEQ(KL(A a), NOT(D n), C c) WHERE a[i].x > a[i-1].x AND n.x < a[1].x STRATEGY next WITHIN 30 units",
    "SEQ(A a, B b, C c) WHERE [k] OUTPUT non_overlap WITHIN 9 units",
    "AND(A a, B b, NOT(C n)) OUTPUT non_overlap WITHIN 9 units",
    "SEQ(A a, NOT(A n), B b, NOT(C m)) WITHIN 9 units RETURN a.x, a.k AS key, b",
)

QUERIES = cep.Workload.parse(
    """q1 = PATTERN SEQ(A a, C c) WHERE a.k = c.k WITHIN 20 units
    q2 = PATTERN SEQ(A a, B b, C c) WHERE a.k = c.k AND a.s = b.s WITHIN 20 units
    q3 = PATTERN SEQ(A a, NOT(D n), C c) WHERE a.k = c.k WITHIN 20 units"""
)
REUSED = cep.WorkloadPlan(QUERIES, sources={"q1": None, "q2": "q1", "q3": "q1"})

COUNTED = (
    "SEQ(A a, B b, C c) AGG COUNT, SUM(b.n), AVG(c.x), MIN(a.x) WITHIN 20 units",
    "SEQ(A a, B b, C c) ORDER BY arrival AGG COUNT WITHIN 9 units",
    "SEQ(A a, NOT(D d), B b) WHERE [k] AGG COUNT WITHIN 20 units",
    "SEQ(A a, B b) WHERE a.x < b.x AGG COUNT, MAX(b.x) WITHIN 9 units",
    "SEQ(A a, B b, C c) GROUP BY s AGG COUNT, MAX(b.n) WITHIN 9 units",
    "SEQ(A a, KL(B b), C c) GROUP BY s AGG COUNT, SUM(b.n) WITHIN 9 units",
)
#: Which never expires in the streams here; the methods that know no expiry run nothing else.
ENDLESS = "SEQ(A a, B b, C c) AGG COUNT, AVG(c.x) WITHIN 99999 units"

COUNTED_QUERIES = cep.Workload.parse(
    """q1 = PATTERN SEQ(A a, B b) AGG COUNT WITHIN 20 units
    q2 = PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 20 units"""
)
SHARING = {
    "a-seq": cep.WorkloadPlan(COUNTED_QUERIES, {"q2": (1,)}, shares_prefixes=True),
    "two-step": cep.WorkloadPlan(COUNTED_QUERIES, sources={"q1": None, "q2": "q1"}),
}

#: By which something is no way to run a pattern.
REFUSALS = (AdaptationError, EvaluationError, UnsupportedPatternError, UnsupportedTaskError)


def written_plan(pattern: cep.Pattern, entry: Evaluator) -> Any:
    """A plan in the order as written, of a kind that an evaluator takes; None if it takes none."""
    if not {"order", "tree"} & {*entry.kinds}:
        return None
    names = [branch.planned_names for branch in pattern.branches()]
    if "order" in entry.kinds:
        plans: list[Any] = [cep.OrderPlan(its) for its in names]
    else:
        plans = [cep.TreePlan(reduce(lambda left, name: (left, name), its)) for its in names]
    return plans[0] if len(plans) == 1 else cep.UnionPlan(plans)


def ways_of(name: str, *, endless: bool = True) -> Iterator[tuple[str, Way]]:
    """Words, and a detector by an evaluator or an aggregator by a method; some are refused."""
    if name in cep.AGGREGATORS:
        yield from _aggregators(name, endless=endless)
        return
    entry = cep.EVALUATORS[name]
    for text in PATTERNS:
        pattern = cep.parse(f"PATTERN {text}")
        plan = written_plan(pattern, entry)
        latency = entry.latency and "GROUP(" not in text
        # Engines of automata count without runs.
        for output in ("matches", "count") if "automaton" in entry.kinds else ("matches",):
            yield f"{text}, {output}", partial(
                cep.Detector, pattern, plan, evaluator=name, output=output,
                latency=latency and output == "matches",
            )  # fmt: skip
    yield "workload", partial(cep.Detector, QUERIES, evaluator=name)
    yield "reuse", partial(cep.Detector, QUERIES, REUSED, evaluator=name)
    for words, asked in (("adaptive", f"PATTERN {PATTERNS[0]}"), ("adaptive queries", QUERIES)):
        yield words, partial(
            cep.AdaptiveDetector, asked, evaluator=name, policy="clairvoyant", batch_size=30,
            gain=0.0,
        )  # fmt: skip


def _aggregators(name: str, *, endless: bool) -> Iterator[tuple[str, Way]]:
    texts = (*COUNTED, *([ENDLESS] if endless else []))
    for text in texts:
        for options in ({}, {"emit": "change", "scope": "stream"}, {"slack": 3}):
            yield f"{text}, {options}", partial(cep.Aggregator, f"PATTERN {text}", name, **options)
    yield "workload", partial(cep.Aggregator, COUNTED_QUERIES, name)
    if name in SHARING:
        yield "sharing", partial(cep.Aggregator, COUNTED_QUERIES, sharing=SHARING[name])


def opened(
    name: str, *batches: cep.EventStream, each: int = 1, having: str = ""
) -> Iterator[tuple[str, Way, Any]]:
    """The ways that are not refused, or each third or so of them, with what it opens, after some batches.

    Of those ``having`` these words alone.
    """
    for words, way in [its for its in ways_of(name) if having in its[0]][::-each][::-1]:
        try:
            live = way()
            for batch in batches:
                live.push(batch)
        except REFUSALS:
            continue
        yield words, way, live


def events(
    first: int, last: int, *, gaps: Sequence[int] = (0, 1), seed: int = 3
) -> cep.EventStream:
    """Events of a stream that repeats itself but for the times and for ``k``, texts that never return.

    A batch of it has tables of types and texts of its own.
    """
    rng = np.random.default_rng(seed)
    number, period = np.arange(first, last), 60
    columns = {
        "type": rng.choice(list("ABCD"), period, p=[0.3, 0.3, 0.3, 0.1]),
        "x": rng.integers(-8, 9, period) / 4,  # of which sums are exact
        "n": rng.integers(0, 9, period),
        "s": rng.choice(["p", "q"], period),
        "k": rng.integers(0, 3, period),
        "gap": np.resize(gaps, period),
    }
    frame = pd.DataFrame({name: its[number % period] for name, its in columns.items()})
    passed = np.cumsum(columns["gap"])
    frame["time"] = number // period * passed[-1] + passed[number % period]
    frame["k"] = [f"key {n // 6 * 2 + k}" for n, k in zip(number, frame["k"], strict=True)]
    return cep.EventStream.from_pandas(frame.drop(columns="gap"), type="type", time="time")


def growing() -> list[cep.EventStream]:
    """Ever more events in a window, so that also peaks and arrays grow after a snapshot."""
    gaps = np.repeat([4, 2, 1, 0], [12, 12, 18, 18])
    return [events(at, at + 22, gaps=gaps) for at in range(0, 88, 22)]


def contents(snapshot: Snapshot) -> dict[str, tuple[Any, ...]]:
    """The arrays of a snapshot, bit by bit."""
    return {name: (its.dtype, its.shape, its.tobytes()) for name, its in snapshot.items()}


def plain(found: Any) -> Any:
    """What a push returned, in any order."""
    if isinstance(found, dict):
        return {name: plain(its) for name, its in found.items()}
    if isinstance(found, pa.Table):
        found = found.to_pandas()
    if not isinstance(found, pd.DataFrame):
        return found
    rows = found.astype(object).values.tolist()
    return sorted(
        repr([None if its is pd.NA or its != its else its for its in row]) for row in rows
    )
