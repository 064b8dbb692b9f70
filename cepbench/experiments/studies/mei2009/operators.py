"""What [mei2009]_ says of operators, Algorithm 5 and longer sequences beside its figures, by counts.

A clock tells only the seconds of planning, and those of testing conditions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.experiments.studies.mei2009.runs import AS_GIVEN
from cepbench.experiments.studies.runs import figure_runs
from cepbench.patterns.parse import parse
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.zstream import K, ZStream
from cepbench.planning.kernels.zstream_operators import cheapest_operators
from cepbench.planning.planners.generate import plan as make_plan
from cepbench.planning.plans.model import TreePlan
from cepbench.planning.plans.tree import left_deep, right_deep
from cepbench.planning.statistics.model import Statistics
from cepbench.seeds import rng_for
from cepbench.streams.event_stream import EventStream
from cepbench.streams.stock_rates import StockRates

#: Event classes of the patterns that Algorithm 5 plans.
CLASSES = (5, 10, 20, 40)

#: Runs of each setting, on data of other seeds; ticks of a stream, and of a round.
_SEEDS, _EVENTS, _ROUND = 5, 3_000, 500

#: Conditions that always hold, and seconds that the runs of a plan that is timed take together.
_CONDITIONS, _AT_LEAST = 4, 0.1

_NAMES = dict(zip("abcde", ("IBM", "Sun", "Oracle", "Google", "HP"), strict=True))


@dataclass(frozen=True, slots=True)
class _Case:
    """A plan of a sequence of the first ``classes`` names, or of another structure of them."""

    setting: str
    series: str
    classes: int
    window: int
    where: str = ""
    structure: str = "SEQ"
    tree: Any = None
    selectivities: Mapping[str, float] = field(default_factory=dict)
    hashing: bool = True
    events: int = _EVENTS
    regime: str = ""
    timed: bool = False

    def row(self, seed: int) -> dict[str, Any]:
        """Metrics and work of a run on ticks of equal rates."""
        names = dict(list(_NAMES.items())[: self.classes])
        rates = dict.fromkeys(names.values(), 1.0)
        ticks = StockRates(self.events, seed, rates, self.selectivities).table(0, self.events)
        stream = EventStream.from_arrow(ticks, type="name", time="ts")
        items = ", ".join(f"{name} {variable}" for variable, name in names.items())
        where = f" WHERE {self.where}" if self.where else ""
        pattern = parse(f"PATTERN {self.structure}({items}){where} WITHIN {self.window} units")
        plan = None if self.tree is None else TreePlan(self.tree)
        options = {"as_given": True, "batch_size": _ROUND, "hashing": self.hashing}
        runs: list[dict[str, Any]] = []
        while not runs or (self.timed and sum(run["seconds"] for run in runs) < _AT_LEAST):
            result = evaluate(
                pattern, stream, plan, evaluator="zstream", output="count", options=options
            )
            runs.append(result.metrics.to_dict())
        its = runs[0]
        return {
            **its,
            "seconds": float(np.median([run["seconds"] for run in runs])),
            "work": its["inputs_tried"] + K * its["conditions_tested"] + its["records_made"],
            "setting": self.setting,
            "series": self.series,
            "regime": self.regime,
            "size": self.classes,
        }


def _cases() -> Iterator[_Case]:
    for window in (2, 100):
        setting = f"window of {window} units"
        for structure in ("OR", "SEQ", "AND"):
            yield _Case(setting, structure, 2, window, structure=structure, regime=setting)
    where = " AND ".join(f"a.price > b.price - {1000 + k}" for k in range(_CONDITIONS))
    for series, conditions in (("no condition", ""), ("conditions", where)):
        yield _Case("conditions", series, 2, 200, conditions, timed=True)
    equal, tree = "a.volume = b.volume AND b.volume = c.volume", left_deep("abc")
    for series in ("hashing", "nested loops"):
        yield _Case("equalities", series, 3, 200, equal, tree=tree, hashing=series == "hashing")
    for classes in (3, 4, 5):
        for setting, share in (("1", 1.0), ("1/4", 1 / 4), ("1/32", 1 / 32)):
            for series, shape in (("left-deep", left_deep), ("right-deep", right_deep)):
                yield _Case(
                    f"{classes} classes, {setting}", series, classes, 40, "a.price > b.price",
                    tree=shape("abcde"[:classes]), selectivities={"IBM > Sun": share},
                )  # fmt: skip
    where, shares = "c.price > b.price AND c.price > d.price", {"Oracle > Sun": 1 / 50}
    for events, window in ((_EVENTS, 50), (_EVENTS, 100), (4 * _EVENTS, 100)):
        for series, tree in (("left-deep", left_deep("abcd")), ("right-deep", right_deep("abcd"))):
            yield _Case(
                f"{window} units, {events:,} events", series, 4, window, where,
                tree=tree, selectivities={**shares, "Oracle > Google": 1.0}, events=events,
            )  # fmt: skip


def operator_runs(*, seed: int = 0) -> pd.DataFrame:
    """Plans as given on streams of five seeds, and Algorithm 5 on patterns of :data:`CLASSES`.

    Runs are of :func:`cepbench.experiments.studies.runs.figure_runs`: of plans, the metrics of a run, what
    its operators do and ``work``, the cost of Formula 1; ``k``, its weight of a condition by the times of
    the setting ``conditions``, in which records are as many as inputs; of Algorithm 5, series ``ZSTREAM``,
    ``pairs`` of sub-plans that it joins, ``plan_seconds``, and the logarithm of the number of classes as
    ``plan_log_cost``.
    """
    rows = [
        {**case.row(seed + run), "repetition": run} for run in range(_SEEDS) for case in _cases()
    ]
    rows += [_planning(classes, seed, run) for run in range(_SEEDS) for classes in CLASSES]
    table = pd.DataFrame(rows)
    times = table[table["setting"] == "conditions"].pivot(
        index="repetition", columns="series", values="seconds"
    )
    weights = 2 * (times["conditions"] / times["no condition"] - 1) / _CONDITIONS
    tested = table["series"] == "conditions"
    table["k"] = table["repetition"].map(weights).where(tested)
    runs = figure_runs(table, "setting", "series")
    return runs.assign(evaluator=f"zstream{AS_GIVEN}")


def _planning(classes: int, seed: int, run: int) -> dict[str, Any]:
    """Algorithm 5 on a sequence with a condition between any two neighbours, of drawn statistics."""
    rng = rng_for(seed, "planning", classes, run)
    names = [f"v{place}" for place in range(classes)]
    pairs = list(pairwise(names))
    items = ", ".join(f"T{place} {name}" for place, name in enumerate(names))
    where = " AND ".join(f"{x}.price < {y}.price" for x, y in pairs)
    pattern = parse(f"PATTERN SEQ({items}) WHERE {where} WITHIN 200 units")
    statistics = Statistics(
        cardinalities=dict(zip(names, rng.uniform(1, 100, classes), strict=True)),
        selectivities=dict(zip(pairs, rng.uniform(0, 1, len(pairs)), strict=True)),
    )
    cost = ZStream()
    (problem,) = branch_problems(pattern, statistics, "adjacent", 0.0, None, cost)
    _, joined = cheapest_operators(cost.intervals(problem, range(classes)))
    began = time.perf_counter()
    make_plan(pattern, statistics, "ZSTREAM", cost=cost)
    return {
        "setting": str(classes),
        "series": "ZSTREAM",
        "repetition": run,
        "regime": "",
        "size": classes,
        "pairs": joined,
        "plan_seconds": time.perf_counter() - began,
        "plan_log_cost": np.log(classes),
    }
