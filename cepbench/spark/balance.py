"""Slices of a DataFrame of events that take about as long each, from a sample of the events."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.detection.chosen import Chosen, chosen_queries, fastest
from cepbench.engines.detection.planned import generator_for
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.slices import SliceDetection, types_of_matches
from cepbench.engines.detection.tasks import (
    PARTIAL_MATCH_LIMIT,
    evaluator_without_plan,
    runs_without,
)
from cepbench.engines.runs.choice import Choice
from cepbench.engines.runs.protocol import Arguments
from cepbench.engines.runs.slices import Slice, cut
from cepbench.errors import PartialMatchLimitError, StatisticsError, UnsupportedPatternError
from cepbench.patterns.model import Pattern, Variable
from cepbench.planning.costs.branches import branch_problems, log_plan_cost
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.measure import merge_samples, slice_sample
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Greatest share of copied events, if slices are not given and cores do not ask for more.
COPIED = 0.05

#: Parts of equal numbers of sampled events of which the expected work is estimated.
_BINS = 256

#: Shares of the work in each round of tasks on all cores: the last ones are small, so that one that
#: takes longer than expected delays the others little (factoring, Hummel et al., CACM 1992).
_ROUNDS = (1 / 2, 1 / 4, 1 / 8, 1 / 8)

#: Limits of a run that calibrates estimated seconds.
_CALIBRATION_LIMIT, _CALIBRATION_BATCH, _CALIBRATION_SECONDS = 1_000_000, 1_000, 0.25


@dataclass(frozen=True, eq=False)
class Density:
    """When how many events of which kind arrive, from a sample of each kind."""

    #: int64, shape (bins + 1,): times in ticks, ascending.
    edges: np.ndarray
    #: Expected events of each event type in each bin.
    counts: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, times: np.ndarray, types: np.ndarray, totals: Mapping[str, int]) -> Density:
        """The density of sampled events: their times and types, and the numbers of all by type."""
        weights = np.zeros(len(times))
        for name, total in totals.items():
            its = types == name
            weights[its] = total / max(1, its.sum())
        order = np.argsort(times, kind="stable")
        times, types, weights = times[order], types[order], weights[order]
        if not len(times):
            return cls(np.arange(2), {name: np.zeros(1) for name in totals})
        below = np.cumsum(weights)
        places = np.searchsorted(below, np.linspace(0, below[-1], _BINS + 1)[1:-1])
        edges = np.unique(np.concatenate((times[:1], times[places], times[-1:] + 1)))
        counts = {
            name: np.histogram(times[its], edges, weights=weights[its])[0]
            for name in totals
            for its in [types == name]
        }
        return cls(edges, counts)

    @property
    def events(self) -> np.ndarray:
        """Events of all types in each bin, shape (bins,)."""
        return np.sum([np.zeros(len(self.edges) - 1), *self.counts.values()], axis=0)

    def of_variable(self, pattern: Pattern, variable: Variable) -> np.ndarray:
        """Events in each bin that are of a variable's type, shape (bins,)."""
        types = pattern.types_of(variable)
        if types is None:
            return self.events
        return np.sum(
            [np.zeros(len(self.edges) - 1), *(self.counts[t] for t in types if t in self.counts)],
            axis=0,
        )

    def between(self, values: np.ndarray, start: float | None, end: float | None) -> float:
        """The sum of a quantity of the bins over a part of them, spread evenly within each bin."""
        below = np.concatenate(([0.0], np.cumsum(values)))
        first, last = (
            float(np.interp(time, self.edges, below))
            for time in (
                self.edges[0] if start is None else start,
                self.edges[-1] if end is None else end,
            )
        )
        return max(0.0, last - first)


@dataclass(frozen=True, eq=False)
class Slices:
    """How a stream is divided, and what is expected of each part.

    Attributes
    ----------
    starts : tuple of int
        Times in ticks at which a slice begins; that of the first one is not among them.
    parts : int
        By the values of ``key`` each slice is divided into so many.
    by_time : bool
        Whether slices of time are detected apart. Otherwise ``starts`` only divide the work of
        numbering events.
    plans : tuple of plans or None
        One plan for all slices, or one for each; of a workload WorkloadPlans.
    table : DataFrame
        A row for each slice of time: ``start`` and ``end`` in ticks (missing at the ends of the stream),
        ``events``, ``copied`` events of other slices, ``partial_matches``, ``work`` (events, copied
        ones included, and partial matches) and ``seconds``, all expected.
    patience : float
        Seconds for which a slice runs at least before it is cut and the rest is divided among the
        tasks; a slice is cut if it also takes twice as long as expected.
    choice : Choice or mapping of str to Choice, optional
        The expected times of engines, if plan and engine were chosen by them; of a workload those of each query that
        reuses no matches.
    """

    starts: tuple[int, ...] = ()
    parts: int = 1
    key: str | None = None
    by_time: bool = True
    plans: tuple[AnyPlan | WorkloadPlan | None, ...] = (None,)
    table: pd.DataFrame | None = None
    patience: float = 5.0
    choice: Choice | Mapping[str, Choice] | None = None

    @property
    def evaluator(self) -> str | Mapping[str, str] | None:
        """The engine that was chosen, or those of the queries."""
        if isinstance(self.choice, Mapping):
            return {query: its.evaluator for query, its in self.choice.items()}
        return None if self.choice is None else self.choice.evaluator

    def slices(self) -> list[Slice]:
        """The slices in time, in order."""
        starts = self.starts if self.by_time else ()
        plans = itertools.cycle(self.plans) if len(self.plans) == 1 else iter(self.plans)
        return [
            Slice(number, start, end, its)
            for number, ((start, end), its) in enumerate(zip(cut(starts), plans, strict=False))
        ]

    def all_parts(self) -> list[Slice]:
        """The parts of all slices by the values of the key, with numbers of their own."""
        return [
            replace(its, number=its.number * self.parts + part, of_key=part, parts=self.parts)
            for its in self.slices()
            for part in range(self.parts)
        ]

    @property
    def tasks(self) -> int:
        """The number of Spark tasks."""
        return len(self.slices()) * self.parts

    @property
    def copied(self) -> float:
        """The expected share of copied events."""
        if self.table is None or not self.table["events"].sum():
            return 0.0
        return float(self.table["copied"].sum() / self.table["events"].sum())

    def describe(self) -> str:
        """Tasks, copied events and expected work in a few lines."""
        by = [f"{len(self.slices())} slices of time"] * self.by_time
        by += [f"{self.parts} parts by {self.key}"] * (self.key is not None)
        lines = [f"{self.tasks} tasks: {' × '.join(by)}"]
        if self.table is not None:
            work = self.table["work"]
            most = work.max() / max(work.mean(), 1e-300)
            lines += [
                f"about {self.table['events'].sum():,.0f} events, {self.copied:.1%} of them copied "
                "into other slices",
                f"about {self.table['partial_matches'].sum():,.3g} partial matches; the largest "
                f"slice has {most:.2f} times the average work",
                f"about {self.table['seconds'].sum():,.3g} seconds on one core of this machine, in "
                "detectors",
            ]
        if isinstance(self.choice, Mapping):
            lines += [f"{query}: {its}" for query, its in self.choice.items()]
        elif self.choice is not None:
            lines.append(str(self.choice))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


def planned_slices(
    detection: SliceDetection,
    density: Density,
    pieces: Sequence[EventStream],
    given: AnyPlan | WorkloadPlan | str | None,
    generator: str | None,
    *,
    tasks: int | None,
    cores: int,
) -> Slices:
    """Slices and plans for a stream of which there is a sample, see :func:`cepbench.spark.detect`.

    ``pieces`` have all events of the pattern in a time. By default there are four tasks per core; but
    in time no more than keep the copied events below :data:`COPIED`, and further ones by key if there
    is one.

    The work of a slice is its events and its expected partial matches, one unit each: the cost of
    its plan [kolchinsky2018]_, section 3.2, at the arrival rates of each bin. Bounds are at equal
    shares of the work, or without ``tasks`` at those of :data:`_ROUNDS`.
    """
    queries = detection.queries
    measured = {
        query: sampled_statistics(pattern, density, pieces) for query, pattern in queries.items()
    }
    shown = given if given is not None and not isinstance(given, str) else None
    choice: Choice | Mapping[str, Choice] | None = None
    if shown is None:
        shown = _plan(detection, measured, generator)
        if given is None and generator is None and detection.evaluator is None:
            shown, choice = _fastest(detection, shown, density, measured)
            detection = replace(detection, evaluator=Slices(choice=choice).evaluator)
    partial = np.zeros(len(density.edges) - 1)
    for query, pattern in queries.items():
        its_plan = shown.plans.get(query) if isinstance(shown, WorkloadPlan) else shown
        if its_plan is None:  # the cost of a bin is that of the written order
            its_plan = plan(pattern, _known(pattern, measured[query]), "TRIVIAL")
        partial += _partial_matches(pattern, its_plan, density, measured[query])
    work = density.events + partial
    wanted = len(_ROUNDS) * cores if tasks is None else tasks
    in_time = wanted
    by_time = detection.by_time and detection.key is None
    key = detection.key
    if tasks is None and by_time:
        # Where the work is, bounds are dense.
        weights = work / max(work.sum(), 1.0)
        rate = float(weights @ (density.events / np.diff(density.edges)))
        around = rate * (detection.lead + detection.tail)
        affordable = 1 + int(COPIED * density.events.sum() / max(around, 1e-9))
        if affordable < wanted:
            key = next(iter(detection.keys), None)
            in_time = affordable if key else max(affordable, min(wanted, cores))
    shares = np.concatenate(([0.0], np.cumsum(work)))
    sizes = np.full(in_time, 1 / in_time)
    if tasks is None and in_time == wanted:
        sizes = np.repeat(_ROUNDS, cores) / cores
    at = np.cumsum(sizes)[:-1] * shares[-1]
    ends = np.interp(at, shares, density.edges)
    starts = tuple(np.unique(ends.astype(np.int64)).tolist()) if shares[-1] else ()
    parts = -(-wanted // (len(starts) + 1 if by_time else 1)) if key else 1
    made = Slices(starts, parts, key, by_time, (None,))
    plans: tuple[AnyPlan | WorkloadPlan | None, ...] = (shown,)
    if given == "per-slice" and shown is not None and any(measured.values()):
        plans = tuple(
            _plan(detection, _weighted(queries, density, part, measured), generator)
            for part in made.slices()
        )
    unit = _seconds_per_unit(detection, pieces, plans[0], density, work)
    rows = []
    for its in made.slices():
        events = density.between(density.events, its.start, its.end)
        before, after = detection.reach(its)
        copied = density.between(density.events, before, after) - events
        expected = density.between(partial, its.start, after)
        units = events + copied + expected
        rows.append((its.start, its.end, events, copied, expected, units, units * unit))
    names = ["start", "end", "events", "copied", "partial_matches", "work", "seconds"]
    table = pd.DataFrame(rows, columns=names).astype({"start": "Int64", "end": "Int64"})
    return replace(made, plans=plans, table=table, choice=choice)


def sampled_statistics(
    pattern: Pattern, density: Density, pieces: Sequence[EventStream], *, seed: int = 0
) -> Statistics | None:
    """Statistics of a stream of which there is a sample; None without events or a window.

    Selectivities, and how many events arrive in active time, are those of the pieces; how many of
    them are of which type is that of the density, since the pieces may have none of a rare one.
    """
    types = types_of_matches(pattern)
    own = [piece if types is None else piece.of_types(types) for piece in pieces]
    samples = [slice_sample(pattern, piece, seed, 5_000) for piece in own if len(piece)]
    if not samples or not pattern.window.length:
        return None
    measured = merge_samples(samples).to_statistics()
    events = {v.name: float(density.of_variable(pattern, v).sum()) for v in pattern.variables}
    every_second = sum((measured.rates or {}).values()) / max(1.0, sum(events.values()))
    return replace(measured, rates={name: its * every_second for name, its in events.items()})


def _plan(
    detection: SliceDetection, measured: Mapping[str, Statistics | None], generator: str | None
) -> AnyPlan | WorkloadPlan | None:
    """A plan of what is detected; None if its evaluator runs no plans of generators."""
    evaluator: Any = detection.evaluator
    alone = evaluator is not None and runs_without(evaluator_for(evaluator), ("order", "tree"))
    known = {query: _known(its, measured[query]) for query, its in detection.queries.items()}
    if generator is None:
        generator = generator_for(detection.queries.values(), evaluator).name
    if detection.pattern.by_query:
        its_generator = None if alone else generator
        return plan_workload(detection.pattern, known, generator=its_generator, evaluator=evaluator)
    if alone or evaluator_without_plan(detection.pattern.strategy.name) is not None:
        return None
    return plan(detection.pattern, known[""], generator)


def _fastest(
    detection: SliceDetection,
    plan: AnyPlan | WorkloadPlan | None,
    density: Density,
    measured: Mapping[str, Statistics | None],
) -> tuple[AnyPlan | WorkloadPlan | None, Choice | Mapping[str, Choice] | None]:
    """Plan and engine of the least expected time on one core, or those of the queries of a workload's plan."""
    asked = Arguments(
        evaluator=None,
        options=None,
        output="count" if detection.counts else "matches",
        partial_match_limit=PARTIAL_MATCH_LIMIT,
    )

    def choose(query: str, its_plan: AnyPlan | None, asked: Arguments) -> Chosen:
        known = measured.get(query)
        if known is None:  # without events, or virtual
            return Chosen(its_plan, None, None)
        pattern = detection.queries[query]
        events = sum(density.of_variable(pattern, its).sum() for its in pattern.variables)
        active = float(events) / max(sum((known.rates or {}).values()), 1e-300)
        return fastest(pattern, its_plan, known, active, asked, whole_stream=False)

    if not isinstance(plan, WorkloadPlan):
        its_plan, _, choice = choose("", plan, asked)
        return its_plan, choice
    found = chosen_queries(plan, asked, choose)
    plans = {query: its for query, its in plan.plans.items() if query not in found}
    plans |= {query: its.plan for query, its in found.items() if its.plan is not None}
    choices = {query: its.choice for query, its in found.items() if its.choice is not None}
    return replace(plan, plans=plans), choices


def _known(pattern: Pattern, measured: Statistics | None) -> Statistics:
    """What was measured; if nothing arrives, for which any plan is as good, the same for all."""
    same = dict.fromkeys(pattern.names, 1.0)
    return measured or Statistics(rates=same, stream_rate=1.0, partitions=1.0)


def _rates(pattern: Pattern, density: Density) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Events of each variable in a second of each bin, and those of the whole stream."""
    seconds = np.diff(density.edges) / (1e9 if pattern.window.is_datetime else 1.0)
    its = {v.name: density.of_variable(pattern, v) / seconds for v in pattern.variables}
    return its, density.events / seconds


def _partial_matches(
    pattern: Pattern, plan: AnyPlan, density: Density, measured: Statistics | None
) -> np.ndarray:
    """Expected partial matches by the rates of each bin, and the selectivities of all, shape (bins,).

    0 where there is no model of them.
    """
    windows = np.diff(density.edges) / max(1, pattern.window.length)
    found = np.zeros(len(windows))
    if measured is None:
        return found
    rates, of_all = _rates(pattern, density)
    for number, every in enumerate(of_all):
        its = replace(
            measured,
            rates={name: float(rate[number]) for name, rate in rates.items()},
            stream_rate=max(float(every), 1e-12) if measured.stream_rate else None,
            standard_errors={},
        )
        try:
            cost = log_plan_cost(plan, branch_problems(pattern, its))
        except (StatisticsError, UnsupportedPatternError):
            return np.zeros(len(found))
        found[number] = windows[number] * math.exp(min(cost, 600.0))
    return found


def _weighted(
    queries: Mapping[str, Pattern],
    density: Density,
    part: Slice,
    measured: Mapping[str, Statistics | None],
) -> Mapping[str, Statistics | None]:
    """The statistics of the queries in a slice: the rates that its events see on average."""
    middles = (density.edges[1:] + density.edges[:-1]) / 2
    weights = np.where(part.has(middles), density.events, 0.0)
    if not weights.sum():
        return measured
    weights /= weights.sum()
    found = {}
    for query, pattern in queries.items():
        rates, _ = _rates(pattern, density)
        its = {name: float(weights @ rate) for name, rate in rates.items()}
        known = measured[query]
        found[query] = known and replace(known, rates=its, standard_errors={})
    return found


def _seconds_per_unit(
    detection: SliceDetection,
    pieces: Sequence[EventStream],
    plan: AnyPlan | WorkloadPlan | None,
    density: Density,
    work: np.ndarray,
) -> float:
    """Seconds for a unit of expected work, from short runs on the sample after a shorter one."""
    seconds = units = 0.0
    for number, piece in enumerate([*(p[:100] for p in pieces[:1]), *pieces]):
        detector = detection.detector(
            plan,
            output="count" if detection.counts else "matches",
            partial_match_limit=_CALIBRATION_LIMIT,
        )
        with suppress(PartialMatchLimitError):
            for batch in piece.batches(_CALIBRATION_BATCH):
                detector.take(batch)
                if detector.metrics().seconds > _CALIBRATION_SECONDS:
                    break
        if number and detector.position:  # the first one loads the kernels
            seconds += detector.metrics().seconds
            first, last = piece.timestamps[[0, detector.position - 1]]
            # As many units for each event as around it: bins may be longer than active time.
            around = density.between(density.events, first, last)
            units += detector.position * density.between(work, first, last) / max(around, 1e-9)
    return seconds / units if units else 0.0
