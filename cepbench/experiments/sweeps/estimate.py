"""Estimates of a sweep's duration, from a sample of its patterns on a part of their events.

The time of a pattern grows with its partial matches and spans many powers of ten, so the sample is
stratified by regime, pattern set, size and, within those, rank by expected work. The heaviest patterns take
most of the time and are sampled most densely. Times are CPU times: other work on the machine does
not count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cepbench.errors import ExperimentError, PartialMatchLimitError
from cepbench.experiments.sweeps.cells import OK, Cell
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import WARM_UP_EVENTS, Plans, engine_of, evaluated
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.files import whole_file
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

#: Confidence level of an estimate's bounds.
CONFIDENCE = 0.95

#: Ranks by expected work within a pattern set and size, lightest first: share of the patterns and
#: number of sampled ones.
RANKS = ((0.5, 1), (0.3, 1), (0.15, 2), (0.05, 2))

#: Seconds of a run on a part of the events from which its time on all events is extrapolated.
LONG_ENOUGH = 0.3

#: The first part of the events, and the least factor between parts.
_FIRST_PART, _GROWTH = 1 / 1024, 8
_FEW_EVENTS = 5

ESTIMATE = "estimate.parquet"
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled pattern, its rank and how many patterns it represents."""

    spec: PatternSpec
    rank: int
    weight: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Expected CPU seconds of one sampled pattern on one stream."""

    pattern_id: str
    #: ``reading``, ``planning``: as measured, on all events.
    reading: float
    planning: float
    #: All runs and the warm-up, extrapolated from a part of the events.
    running: float
    #: Runs that reach the partial-match limit.
    limited: int


def expected_log_work(spec: PatternSpec, cardinalities: Mapping[str, float]) -> float:
    """ln of the expected matches per window of a pattern, or of all of a workload, without predicates.

    Sets of events under KL count by their expected number, e^m for m events of a Poisson process.
    """
    total = -math.inf
    every = sum(cardinalities.values())
    for branch in (branch for pattern in spec.patterns for branch in pattern.branches()):
        # An item of any type, or of a concept, counts as if it bound every event.
        expected = [(v.kind, cardinalities.get(v.type or "", every)) for v in branch.positive]
        logs = [m if kind is Kind.KLEENE else math.log(m) for kind, m in expected]
        orders = math.lgamma(len(logs) + 1) if branch.operator is Operator.SEQ else 0.0
        total = float(np.logaddexp(total, sum(logs) - orders))
    return total


def choose_sample(
    specs: Sequence[PatternSpec], cardinalities: Mapping[str, float], *, seed: int = 0
) -> list[Sampled]:
    """Draw a stratified sample of a workload.

    Some are from each pattern set and size; weights add up to the number of patterns.

    ``cardinalities``: expected events of each identifier per window.
    """
    strata: dict[tuple[str, str, int], list[PatternSpec]] = {}
    for spec in specs:
        strata.setdefault((spec.regime, spec.pattern_set, spec.size), []).append(spec)
    rng = np.random.default_rng(seed)
    chosen = []
    for members in strata.values():
        members.sort(key=lambda spec: (expected_log_work(spec, cardinalities), spec.pattern_id))
        ends = np.rint(np.cumsum([share for share, _ in RANKS]) * len(members)).astype(int)
        start = 0
        for rank, (end, (_, number)) in enumerate(zip(ends.tolist(), RANKS, strict=True)):
            group = members[start:end]
            start = end
            if group:
                picked = rng.choice(len(group), size=min(number, len(group)), replace=False)
                weight = len(group) / len(picked)
                chosen += [Sampled(group[k], rank, weight) for k in sorted(picked.tolist())]
    return chosen


def time_pattern(
    spec: PatternSpec,
    stream: EventStream,
    statistics: Statistics | Mapping[str, Statistics],
    grid: Grid,
    *,
    reading: float = 0.0,
    long_enough: float = LONG_ENOUGH,
) -> Timing:
    """Plan a pattern by all generators and run each plan on a part of the events.

    The stream has all events of the pattern's types; ``reading`` it took so many seconds. The part of
    the events is enlarged until a run takes ``long_enough`` seconds. For statistics and grid see
    :func:`cepbench.experiments.sweeps.measure.measure_pattern`.
    """
    cells = replace(grid, repetitions=1).cells()
    began = time.process_time()
    plans = Plans(spec, stream, statistics, grid, cells)
    planning = time.process_time() - began
    runs: dict[tuple[str | None, ...], float] = {}
    warm_up: dict[tuple[Any, ...], float] = {}
    warmed = min(1.0, WARM_UP_EVENTS / max(1, len(stream)))
    running, limited = 0.0, 0
    for cell in cells:
        plan = plans.of(cell).plan
        if plans.of(cell).status != OK:
            continue
        run = plan.text if plan and not (grid.methods or grid.planners) else cell.generator
        same = (cell.evaluator, cell.options, cell.strategy, cell.window, cell.output, run)
        is_first = same not in runs
        if is_first:
            runs[same], ended = _seconds(plans.query(cell), stream, plan, cell, grid, long_enough)
            limited += ended
        if is_first or not grid.share_equal_plans:
            running += grid.repetitions * (2 if grid.latency else 1) * runs[same]
        kernels = (engine_of(cell, plan, grid), cell.options, cell.strategy, cell.output)
        warm_up.setdefault(kernels, runs[same] * warmed)
    return Timing(spec.pattern_id, reading, planning, running + sum(warm_up.values()), limited)


def _seconds(
    query: Pattern | Workload,
    stream: EventStream,
    plan: Any,
    cell: Cell,
    grid: Grid,
    long_enough: float,
) -> tuple[float, bool]:
    """Expected seconds of one run on all events, and whether it reaches the limit."""

    def run(events: EventStream) -> float:
        began = time.process_time()
        evaluated(query, events, plan, cell, grid)
        return time.process_time() - began

    run(stream[:_FEW_EVENTS])  # kernels are loaded, or even compiled, when they are first used
    share = _FIRST_PART
    while True:
        share = min(1.0, share)
        began = time.process_time()
        try:
            seconds = run(stream[: math.ceil(share * len(stream))])
        except PartialMatchLimitError:
            return time.process_time() - began, True
        if seconds >= long_enough or share >= 1.0:
            return seconds / share, False
        # As large as makes the run long enough, if it lasted long enough to predict that.
        share *= min(_GROWTH**2, max(_GROWTH, 1.5 * long_enough / max(seconds, 1e-6)))


def estimate_table(
    sample: Sequence[Sampled],
    timings: Sequence[Timing],
    cores: int,
    *,
    measuring: float = 0.0,
    seed: int = 0,
) -> pd.DataFrame:
    """Expected duration of a sweep, by pattern set and size and in all.

    Its columns: ``pattern_set``, ``size``, ``patterns``, ``sampled``, ``core_seconds`` with ``low`` and
    ``high`` (95 % bootstrap within strata: a few patterns make up most of the time, so the truth
    lies above more often than below), ``running`` (share of the time that is evaluation),
    ``longest`` (core seconds of the longest sampled pattern), ``limited`` (expected runs that reach
    the partial-match limit) and ``hours`` on all cores, which work at the same time. The last row
    but one, of pattern set "statistics", is the measuring of the statistics of all patterns, which
    takes ``measuring`` core seconds, the last one, "all", the sum.

    There is at least one timing for each of these patterns; those of several streams are added up.
    ``seed`` is that of the resampling.
    """
    if not timings:
        raise ExperimentError("there are no sampled patterns to estimate a duration from")
    measured = pd.DataFrame(map(asdict, timings)).groupby("pattern_id").sum()
    measured["seconds"] = measured[["reading", "planning", "running"]].sum(axis=1)
    rows = pd.DataFrame(
        {
            "pattern_id": each.spec.pattern_id,
            "pattern_set": f"{each.spec.regime} {each.spec.pattern_set}".strip(),
            "size": each.spec.size,
            "rank": each.rank,
            "weight": each.weight,
        }
        for each in sample
    ).join(measured, on="pattern_id")
    rng = np.random.default_rng(seed)
    weighted = (rows["weight"] * rows["seconds"]).to_numpy()
    drawn = np.zeros((_RESAMPLES, len(rows)))
    for _, stratum in rows.groupby(["pattern_set", "size", "rank"], sort=False):
        members = stratum.index.to_numpy()
        picked = members[rng.integers(len(members), size=(_RESAMPLES, len(members)))]
        for column in picked.T:
            drawn[np.arange(_RESAMPLES), column] += 1
    groups: list[tuple[Any, pd.DataFrame]] = [
        *rows.groupby(["pattern_set", "size"], sort=False),
        (("statistics", None), rows[:0]),
        (("all", None), rows),
    ]
    found = []
    tail = (1 - CONFIDENCE) / 2
    for (pattern_set, size), part in groups:
        of_part = part.index.to_numpy()
        more = 0.0 if size is not None else measuring
        total = weighted[of_part].sum() + more
        low, high = np.quantile(drawn[:, of_part] @ weighted[of_part], [tail, 1 - tail]) + more
        found.append(
            {
                "pattern_set": pattern_set,
                "size": size,
                "patterns": round(part["weight"].sum()),
                "sampled": len(part),
                "core_seconds": total,
                "low": low,
                "high": high,
                "running": (part["weight"] * part["running"]).sum() / total if total else math.nan,
                "longest": part["seconds"].max(),
                "limited": (part["weight"] * part["limited"]).sum(),
                "hours": total / cores / 3600,
            }
        )
    return pd.DataFrame(found).astype({"size": "Int64"})


def describe_estimate(table: pd.DataFrame, cores: int) -> str:
    """The sum and its largest parts as text, over a few lines."""
    whole, parts = table.iloc[-1], table.iloc[:-1]
    hours = [whole[name] / cores / 3600 for name in ("core_seconds", "low", "high")]
    lines = [
        f"about {_hours(hours[0])} on {cores} cores (95 %: {_hours(hours[1])} to {_hours(hours[2])}), "
        f"from {whole['sampled']} of {whole['patterns']:,} patterns"
    ]
    heaviest = parts.sort_values("core_seconds", ascending=False).head(3)
    for row in heaviest.to_dict("records"):
        share = row["core_seconds"] / whole["core_seconds"]
        if pd.isna(row["size"]):
            lines.append(f"  measuring the statistics of all patterns: {share:.0%} of it")
        else:
            lines.append(
                f"  {row['pattern_set']} of size {row['size']}: {share:.0%} of it, "
                f"a pattern up to {_hours(row['longest'] / 3600)} on one core"
            )
    return "\n".join(lines)


def write_estimate(folder: str | Path, table: pd.DataFrame) -> None:
    """Write an estimate into the folder of its sweep."""
    with whole_file(Path(folder) / ESTIMATE) as unfinished:
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), unfinished)


def read_estimate(folder: str | Path) -> pd.DataFrame | None:
    """The estimate in the folder of a sweep, or None."""
    path = Path(folder) / ESTIMATE
    return pq.read_table(path).to_pandas() if path.exists() else None


def _hours(hours: float) -> str:
    if hours < 1 / 60:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 2 else f"{hours:.1f} h"
