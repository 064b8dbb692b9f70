"""How long a sweep will take, from a sample of its patterns on a part of their events.

The time of a pattern grows with its partial matches and spans many powers of ten, so the sample is
drawn from strata: regime, pattern set, size, and within those the rank by the work that a pattern can be
expected to make. The heaviest patterns make up most of the time and are sampled most densely.
Times are of the processor, so that other work on the machine does not count.
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
from cepbench.evaluators.evaluate import evaluate
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from cepbench.sweeps.cells import OK, Cell
from cepbench.sweeps.grid import Grid
from cepbench.sweeps.measure import WARM_UP_EVENTS, Plans, run_arguments
from cepbench.sweeps.workload import PatternSpec

#: Probability with which the time is expected to lie between the bounds of an estimate.
CONFIDENCE = 0.95

#: Ranks by expected work within a pattern set and size, lightest first: share of the patterns, and
#: how many of them are sampled.
RANKS = ((0.5, 1), (0.3, 1), (0.15, 2), (0.05, 2))

#: A run on a part of the events is long enough to tell the time of all of them.
LONG_ENOUGH = 0.3

#: Parts of the events that are tried, each so many times the one before.
_FIRST_PART, _GROWTH = 1 / 1024, 8
_FEW_EVENTS = 5

ESTIMATE = "estimate.parquet"
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled pattern and how many patterns it stands for."""

    spec: PatternSpec
    rank: int
    weight: float


@dataclass(frozen=True, slots=True)
class Timing:
    """Expected processor seconds of one sampled pattern, on one stream or on all of a sweep's.

    Attributes
    ----------
    pattern_id : str
    events : int
        Of the pattern's own types in the whole stream.
    reading, planning : float
        As measured, on all events.
    running : float
        All runs and the warm-up, extrapolated from a part of the events.
    unshared : float
        The same if no two generators shared the run of an equal plan.
    different_plans : int
        Among those of all generators, for each evaluator with its options, strategy and window.
    limited : int
        Runs that came to the partial-match limit.
    """

    pattern_id: str
    events: int
    reading: float
    planning: float
    running: float
    unshared: float
    different_plans: int
    limited: int

    @property
    def seconds(self) -> float:
        """All that the pattern takes."""
        return self.reading + self.planning + self.running

    def __add__(self, other: Timing) -> Timing:
        """The same pattern on two streams."""
        mine, others = asdict(self), asdict(other)
        of_both = {name: mine[name] + others[name] for name in mine if name != "pattern_id"}
        return Timing(self.pattern_id, **of_both)


def expected_log_work(spec: PatternSpec, cardinalities: Mapping[str, float]) -> float:
    """ln of the matches that a pattern without predicates is expected to have per window.

    Sets of events under KL count by their number on average, e^m for m events from a Poisson law.
    """
    total = -math.inf
    for branch in spec.pattern.branches():
        logs = [
            cardinalities[v.type] if v.kind is Kind.KLEENE else math.log(cardinalities[v.type])
            for v in branch.positive
        ]
        orders = math.lgamma(len(logs) + 1) if branch.operator is Operator.SEQ else 0.0
        total = float(np.logaddexp(total, sum(logs) - orders))
    return total


def choose_sample(
    specs: Sequence[PatternSpec], cardinalities: Mapping[str, float], *, seed: int = 0
) -> list[Sampled]:
    """Patterns that stand for all of a workload.

    Parameters
    ----------
    specs : sequence of PatternSpec
    cardinalities : mapping of str to float
        Expected events of each identifier per window.
    seed : int

    Returns
    -------
    list of Sampled
        From each pattern set and size; weights add up to the number of patterns.
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

    Parameters
    ----------
    spec : PatternSpec
    stream : EventStream
        All events of the pattern's types.
    statistics, grid
        See :func:`cepbench.sweeps.measure.measure_pattern`.
    reading : float
        Seconds that reading the stream took.
    long_enough : float
        Seconds; a part of the events on which a run takes less is enlarged.
    """
    cells = replace(grid, repetitions=1).cells()
    began = time.process_time()
    plans = Plans(spec, stream, statistics, grid, cells)
    planning = time.process_time() - began
    runs: dict[tuple[str | None, ...], float] = {}
    warm_up: dict[tuple[str | None, ...], float] = {}
    unshared, limited = 0.0, 0
    for cell in cells:
        plan = plans.of(cell).plan
        if plans.of(cell).status != OK:
            continue
        text = plan and plan.text
        same = (cell.evaluator, cell.options, cell.strategy, cell.window, text)
        if same not in runs:
            runs[same], ended = _seconds(plans.pattern(cell), stream, plan, cell, grid, long_enough)
            limited += ended
        unshared += runs[same]
        share = min(1.0, WARM_UP_EVENTS / max(1, len(stream)))
        kernels = (cell.evaluator, cell.options, plan and plan.kind, cell.strategy)
        warm_up.setdefault(kernels, runs[same] * share)
    times = grid.repetitions * (2 if grid.latency else 1)
    shared = sum(runs.values()) if grid.share_equal_plans else unshared
    return Timing(
        pattern_id=spec.pattern_id,
        events=len(stream),
        reading=reading,
        planning=planning,
        running=times * shared + sum(warm_up.values()),
        unshared=times * unshared + sum(warm_up.values()),
        different_plans=len(runs),
        limited=limited,
    )


def _seconds(
    pattern: Pattern,
    stream: EventStream,
    plan: Any,
    cell: Cell,
    grid: Grid,
    long_enough: float,
) -> tuple[float, bool]:
    """Expected seconds of one run on all events, and whether it ends at the limit."""
    how = run_arguments(cell, replace(grid, output="count"))

    def run(events: EventStream) -> float:
        began = time.process_time()
        evaluate(pattern, events, plan, **how)
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

    Parameters
    ----------
    sample : sequence of Sampled
    timings : sequence of Timing
        Of the same patterns.
    cores : int
        That work at the same time.
    measuring : float
        Core seconds that measuring the statistics of all patterns takes.
    seed : int
        Of the resampling.

    Returns
    -------
    DataFrame
        Columns ``pattern_set``, ``size``, ``patterns``, ``sampled``, ``core_seconds`` with
        ``low`` and ``high`` (95 % bootstrap within strata: a few patterns make up most of the
        time, so the truth lies above more often than below), ``unshared`` (core seconds if equal
        plans were run for each generator), ``running`` (share of the time that is evaluation),
        ``longest`` (core seconds of the longest sampled pattern), ``limited`` (expected runs that
        come to the partial-match limit) and ``hours`` on all cores. The last but one row, of
        pattern set "statistics", is measuring those, and the last one, "all", is the sum.
    """
    if not timings:
        raise ExperimentError("there are no sampled patterns to estimate a duration from")
    by_id = {timing.pattern_id: timing for timing in timings}
    rows = pd.DataFrame(
        {
            "pattern_set": f"{each.spec.regime} {each.spec.pattern_set}".strip(),
            "size": each.spec.size,
            "rank": each.rank,
            "weight": each.weight,
            **asdict(by_id[each.spec.pattern_id]),
            "seconds": by_id[each.spec.pattern_id].seconds,
        }
        for each in sample
        if each.spec.pattern_id in by_id
    )
    rng = np.random.default_rng(seed)
    weighted = (rows["weight"] * rows["seconds"]).to_numpy()
    drawn = np.zeros((_RESAMPLES, len(rows)))
    for _, stratum in rows.groupby(["pattern_set", "size", "rank"], sort=False):
        members = stratum.index.to_numpy()
        picked = members[rng.integers(len(members), size=(_RESAMPLES, len(members)))]
        for column in picked.T:
            drawn[np.arange(_RESAMPLES), column] += 1
    found = []
    groups: list[tuple[tuple[Any, Any], pd.DataFrame]] = [
        *(
            ((part["pattern_set"].iloc[0], int(part["size"].iloc[0])), part)
            for _, part in rows.groupby(["pattern_set", "size"], sort=False)
        ),
        (("statistics", None), rows[:0]),
        (("all", None), rows),
    ]
    for (pattern_set, size), part in groups:
        of_part = part.index.to_numpy()
        more = 0.0 if size is not None else measuring
        total = weighted[of_part].sum() + more
        tail = (1 - CONFIDENCE) / 2
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
                "unshared": total + (part["weight"] * (part["unshared"] - part["running"])).sum(),
                "running": (part["weight"] * part["running"]).sum() / total if total else math.nan,
                "longest": part["seconds"].max(),
                "limited": (part["weight"] * part["limited"]).sum(),
                "hours": total / cores / 3600,
            }
        )
    return pd.DataFrame(found).astype({"size": "Int64"})


def describe_estimate(table: pd.DataFrame, cores: int) -> str:
    """The sum and what makes most of it, over a few lines."""
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
    """Keep an estimate beside the results of its sweep."""
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), Path(folder) / ESTIMATE)


def read_estimate(folder: str | Path) -> pd.DataFrame | None:
    """The estimate in the folder of a sweep; None if none was made."""
    path = Path(folder) / ESTIMATE
    return pq.read_table(path).to_pandas() if path.exists() else None


def _hours(hours: float) -> str:
    if hours < 1 / 60:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 2 else f"{hours:.1f} h"
