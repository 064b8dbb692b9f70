"""The nanoseconds of each kind of work that engines and reuse do, measured on this machine.

Of engines: random patterns of every construct and strategy, each on every engine, counted and listed, unless that is
expected to take long. Of reuse: small random workloads, each query from scratch, and from each other that it can be computed from. On an
evaluator whose queries share their state that state is left out: it is kept as long as any query is
computed from scratch, so that none saves it. The costs are the least squares of relative errors of the processor's times; what a call takes whatever its work is fitted beside them. ``python -m cepbench.experiments.sweeps.unit_costs`` stores them, and
``make env`` does so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.planned import default_plan
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import able, runs_some
from cepbench.engines.detection.workload_evaluate import written_plan
from cepbench.engines.reuse.events import Events
from cepbench.engines.reuse.kept import FoundMatches
from cepbench.engines.reuse.queries import query_of
from cepbench.engines.reuse.reuse import warm_up
from cepbench.engines.reuse.sets import Sized, Way
from cepbench.engines.runs.matches import BranchMatches
from cepbench.engines.runs.protocol import Arguments
from cepbench.errors import CepbenchError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.costs.engine_work import expected_seconds, expected_work, priced_in
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.costs.reuse_calibrated import Calibrated, Work
from cepbench.planning.costs.unit_costs import FIXED, TREE, store
from cepbench.planning.plans.reuse import candidates_of
from cepbench.planning.statistics.measure import active_time, measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.seeds import rng_for
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

_HIERARCHY = ConceptHierarchy({"G0": ["T0", "T1"], "G1": ["T2", "T3"]})
_LIMIT = 10_000_000

#: Seconds beyond which a run is not measured.
_LONGEST = 0.1

#: The relative deviation of a cost from the fixed one counts as much as so many times that of a run.
_TRUST = 2.0

_ROUNDS = 5
_ENOUGH = 100_000_000  # nanoseconds


def measured(
    workloads: int = 18, events: int = 10_000, repetitions: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Steps of random workloads.

    A row a step: the kinds of :class:`cepbench.planning.costs.reuse_calibrated.Work` over the
    stream, as expected of statistics, ``nanoseconds`` (the least of all repetitions), ``method``
    and ``evaluator``.

    ``events``: of the shortest streams; others are three and nine times as long.
    """
    warm_up()
    rows = []
    for number in range(workloads):
        rng = rng_for(seed, "unit costs", number)
        length = events * 3 ** (number % 3)
        stream, workload = _stream(length, rng), _workload(rng)
        statistics = measure_statistics(workload, stream, seed=seed)
        found: list[tuple[str, str, Work, float]] = []
        for method, work, step in _steps(stream, workload, statistics):
            try:
                found.append((TREE, method, work, _least_time(step, repetitions)))
            except CepbenchError:  # too many partial matches
                continue
        for evaluator in FIXED["reuse"].keys() - {TREE}:
            model = Calibrated(workload, statistics, {}, evaluator)
            for query, nanoseconds in _shared(workload, stream, evaluator, repetitions).items():
                work = model.work_from_scratch(query)
                found.append((evaluator, "scratch", work, nanoseconds))
        for evaluator, method, work, nanoseconds in found:
            its = {kind: 10.0 * length * value for kind, value in vars(work).items()}
            row = {"evaluator": evaluator, "method": method, **its, "nanoseconds": nanoseconds}
            rows.append(row)
    return pd.DataFrame(rows)


def _shared(
    workload: Workload, stream: EventStream, evaluator: str, repetitions: int
) -> dict[str, float]:
    """Query → the nanoseconds of its own work in a run of all; the least of all repetitions."""
    runs = [
        evaluate(workload, stream, evaluator=evaluator, output="arrow") for _ in range(repetitions)
    ]
    return {
        query: min(1e9 * run[query].metrics.details["construction_seconds"] for run in runs)
        for query in workload.patterns
    }


def measured_alone(
    patterns: int = 48, events: int = 5_000, repetitions: int = 3, seed: int = 0
) -> pd.DataFrame:
    """Runs of random patterns on every engine.

    A row a run: ``pattern``, ``output``, ``evaluator``, the expected work by kind, see
    :func:`cepbench.planning.costs.engine_work.expected_work`, ``expected``, the nanoseconds that stored or fixed
    costs give, and ``nanoseconds``, the least of all repetitions.

    ``events``: of the shortest streams; others are three and nine times as long.
    """
    rows = []
    for number in range(patterns):
        rng = rng_for(seed, "unit costs of engines", number)
        longer = _LONG if _SHAPES[number % len(_SHAPES)] in _ON_LONG else 3 ** (number % 3)
        stream = _prices(events * longer, rng)
        pattern = parse(_pattern(number, rng))
        statistics = measure_statistics(pattern, stream, seed=seed)
        active = active_time(pattern, stream)
        plan = default_plan(pattern, statistics)
        for output in ("count", "arrow"):
            counts = output == "count"
            work = expected_work(pattern, statistics, plan, counts=counts)
            expected = expected_seconds(pattern, statistics, plan, counts=counts, active=active)
            asked = Arguments(
                evaluator=None, options=None, output=output, partial_match_limit=_LIMIT
            )
            is_able = able(pattern, plan, asked, whole_stream=True)
            for name, seconds in expected.items():
                entry = evaluator_for(name)
                its = plan if plan is not None and runs_some(entry, plan.kind) else None
                if seconds > _LONGEST or not is_able(entry):
                    continue
                step = partial(evaluate, pattern, stream, its, evaluator=name, output=output)
                try:
                    nanoseconds = _least_time(step, repetitions)
                except CepbenchError:  # too many partial matches
                    continue
                priced, form = priced_in(name, work)
                amounts = {kind: active * amount for kind, amount in work[form].items()}
                rows.append(
                    {"pattern": str(pattern), "output": output, "evaluator": priced, **amounts}
                    | {"opened": len(pattern.branches()), "expected": 1e9 * seconds}
                    | {"nanoseconds": nanoseconds}
                )  # fmt: skip
    return pd.DataFrame(rows)


def _prices(events: int, rng: np.random.Generator) -> EventStream:
    """Ten types of very different rates, one event per unit of time on average."""
    shares = 0.8 * rng.dirichlet(np.full(10, 1.0)) + 0.02
    frame = pd.DataFrame(
        {
            "type": rng.choice([f"T{k}" for k in range(10)], events, p=shares),
            "time": np.sort(rng.integers(0, events, events)),
            "id": rng.integers(0, int(rng.choice([5, 20, 100])), events),
            "x": rng.random(events),
            "price": 100 + np.cumsum(rng.normal(0, 0.3, events)),
        }
    )
    return EventStream.from_pandas(frame, type="type", time="time")


#: Patterns of n items: what stands for the items, conditions or a strategy, and windows, of which one is drawn.
_CHAIN = " AND ".join
_SHAPES = (
    "SEQ", "SEQ", "rare", "NOT", "AND", "OR", "KL", "KL", "GROUP", "strategy", "pairs", "selective",
)  # fmt: skip

#: How many times as long streams are of whose events, or pairs, few are left, so that what it takes to scan events,
#: or to test pairs, is seen; and the shapes of these patterns.
_LONG, _ON_LONG = 60, ("rare", "selective")


def _pattern(number: int, rng: np.random.Generator) -> str:
    """A pattern of the shape that is next, of two to five random types."""
    shape = _SHAPES[number % len(_SHAPES)]
    most = 6 if shape in ("SEQ", "rare") else 4
    size = int(rng.integers(2 if shape in ("SEQ", "rare", "AND") else 3, most))
    window = int(2 ** rng.uniform(3, 10))
    if shape == "pairs":
        # Joined first, and then with each other.
        size, window = 4, 1000
    if shape == "selective":
        size, window = int(rng.integers(2, 4)), 8 * window
    names = "abcdef"[:size]
    items = [
        f"T{k} {name}" for k, name in zip(rng.choice(10, size, replace=False), names, strict=True)
    ]
    steps = [f"{one}.x < {other}.x" for one, other in pairwise(names)]
    sold = [f"{one}.price < {other}.price" for one, other in pairwise(names)]
    rare = [f"{name}.x < 0.2" for name in names]
    where = [
        "",
        "[id]",
        _CHAIN(steps),
        _CHAIN(sold),
        steps[0],
        f"a.x < {names[-1]}.x",
        _CHAIN(rare),
    ]
    if shape in ("KL", "strategy"):
        where = ["", "[id]", "b[i].x > b[i-1].x", "b[i].price < b[i-1].price AND b[1].price < a.price",
                 "sum(b.x) > 1"]  # fmt: skip
        window //= 4
    chosen = str(rng.choice(where))
    if shape == "rare":
        chosen = _CHAIN(rare).replace("0.2", str(rng.choice(["0.02", "0.1"])))
    if shape == "selective":
        chosen = str(rng.choice(["a.x + 0.98 < b.x", "b.x < 0.02 * a.x"]))
        chosen += " AND c.x < 0.0002 * b.id" * (size == 3)
    if shape == "pairs":
        chosen = "a.id = d.id AND b.id = c.id"
    if chosen and shape != "strategy" and rng.random() < 0.2:
        chosen += " AND a.x < 0.3"
    more = ""
    if shape == "KL":
        items[1] = f"KL({items[1]})"
    elif shape == "GROUP":
        items[1] = f"GROUP({items[1]}, +)"
        chosen = str(rng.choice(["", "a.x < c.x", "a.id = c.id"]))
    elif shape == "NOT":
        items.insert(int(rng.integers(1, size)), f"NOT({rng.choice(['T0', 'T9'])} n)")
        if rng.random() < 0.5:
            # Many events are looked at until one is found.
            chosen += f"{' AND ' if chosen else ''}n.x < 0.1 * b.x"
    elif shape == "strategy":
        strategy = str(rng.choice(["next", "strict_contiguity", "partition_contiguity(id)"]))
        more = f" STRATEGY {strategy}"
        if strategy == "next" or rng.random() < 0.3:
            items[1] = f"KL({items[1]})"
        else:
            chosen = str(rng.choice(["", steps[0]]))
    if shape == "OR":
        middle = size - 1
        items = [f"SEQ({', '.join(items[:middle])}, T8 y)", f"SEQ({items[middle]}, T9 z)"]
        chosen = str(rng.choice(["", "a.x < y.x", f"a.id = y.id AND {names[-1]}.id = z.id"]))
    operator = shape if shape in ("AND", "OR") else "SEQ"
    condition = f" WHERE {chosen}" if chosen else ""
    return f"PATTERN {operator}({', '.join(items)}){condition}{more} WITHIN {window} units"


def fitted(steps: pd.DataFrame, section: str = "reuse") -> dict[str, dict[str, float]]:
    """Evaluator, of those that have steps → nanoseconds of each kind of work of a section of the costs.

    A fixed cost, at the speed of this machine, counts like a run: so that kinds of work that the runs do not tell
    apart keep their proportion. None is less than a quarter of that, as no work is done for nothing, and what costs
    nothing there does not here.
    """
    return {
        evaluator: _fitted(its, costs)
        for evaluator, costs in FIXED[section].items()
        if len(its := steps[steps["evaluator"] == evaluator])
    }


def errors(runs: pd.DataFrame, costs: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """The q-errors of the times that costs of engines give for runs, by evaluator.

    A row an evaluator: ``runs``, and the ``median``, the 90th percentile ``p90`` and the ``largest``.
    """
    rows = []
    for evaluator, kinds in costs.items():
        its = runs[runs["evaluator"] == evaluator]
        estimated = its[[*kinds]].to_numpy(float) @ [*kinds.values()]
        found = q_error(estimated, its["nanoseconds"])
        rows.append((evaluator, len(its), np.median(found), np.quantile(found, 0.9), found.max()))
    return pd.DataFrame(rows, columns=["evaluator", "runs", "median", "p90", "largest"])


def _fitted(steps: pd.DataFrame, costs: Mapping[str, float]) -> dict[str, float]:
    kinds = [*costs]
    opened = [] if "opened" in kinds else [np.ones(len(steps))]
    work = np.column_stack([steps[kinds].to_numpy(float), *opened])
    times = steps["nanoseconds"].to_numpy(float)
    fixed = np.array([*costs.values(), *(0.0 for _ in opened)])
    fixed = fixed * np.median(times / np.maximum(work @ fixed, 1.0))
    work[:, : len(kinds)] *= fixed[: len(kinds)] > 0
    least, known = fixed / 4, np.diag(_TRUST / np.where(fixed > 0, fixed, np.inf))
    estimates = times
    for _ in range(_ROUNDS):
        # Estimates that are too low and too high by one factor count the same.
        weights = np.sqrt(times * estimates)
        rows = np.vstack([work / weights[:, None], known])
        values = np.concatenate([(times - work @ least) / weights, known @ (fixed - least)])
        found = least + _not_negative(rows, values)
        estimates = np.maximum(work @ found, times / 10)
    return dict(zip(kinds, found.tolist(), strict=False))


def _not_negative(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least squares without the columns whose factors would be negative."""
    found = np.zeros(rows.shape[1])
    scale = np.abs(rows).max(axis=0)
    left = np.flatnonzero(scale)
    while True:
        solved, *_ = np.linalg.lstsq(rows[:, left] / scale[left], values)
        if (solved >= 0).all():
            found[left] = solved / scale[left]
            return found
        left = np.delete(left, solved.argmin())


def _stream(events: int, rng: np.random.Generator) -> EventStream:
    shares = rng.dirichlet(np.full(8, 1.5))
    frame = pd.DataFrame(
        {
            "type": rng.choice([f"T{k}" for k in range(8)], events, p=shares),
            "time": np.sort(rng.integers(0, 10 * events, events)),
            "id": rng.integers(0, int(rng.choice([3, 10, 50])), events),
            "x": rng.random(events),
        }
    )
    return EventStream.from_pandas(frame, type="type", time="time", hierarchy=_HIERARCHY)


def _workload(rng: np.random.Generator) -> Workload:
    """A query, one of concepts, and one with an item and one with a NOT more."""
    types = rng.choice(["T0", "T2", "T4", "T5", "T6"], 3, replace=False).tolist()
    base = [f"{type} {name}" for type, name in zip(types, "abc", strict=True)]
    place, more = int(rng.integers(0, 4)), str(rng.choice(["T7", "T1"]))
    above = {"T0": "G0", "T2": "G1"}
    queries = {
        "base": base,
        "concepts": [f"{above.get(item[:2], item[:2])}{item[2:]}" for item in base],
        "item": [*base[:place], f"{more} d", *base[place:]],
    }
    if 0 < place < 3:
        queries["negated"] = [*base[:place], f"NOT({more} n)", *base[place:]]
    where = rng.choice(["", "WHERE [id] ", "WHERE a.x < b.x AND b.x < c.x "])
    window = int(rng.choice([200, 400, 800]))
    texts = {
        name: f"PATTERN SEQ({', '.join(items)}) {where}WITHIN {window} units"
        for name, items in queries.items()
    }
    return Workload(texts, hierarchy=_HIERARCHY)


def _steps(
    stream: EventStream, workload: Workload, statistics: Mapping[str, Statistics]
) -> Iterator[tuple[str, Work, Callable[[], object]]]:
    """Method, expected work per unit of time, and a run of each step."""
    model = Calibrated(workload, statistics, {})
    queries = {name: query_of(pattern) for name, pattern in workload.patterns.items()}
    events = Events(stream, NumericReader(), queries.values())
    found = {}
    for name, pattern in workload.patterns.items():
        scratch = partial(_from_scratch, pattern, stream)
        yield "scratch", model.work_from_scratch(name), scratch
        found[name] = scratch()
    for way in candidates_of(workload):
        sources = [found[source] for source in way.sources]
        yield (
            way.method,
            model.work(way),
            partial(_reused, way.method, Way.of(way, queries), sources, events),
        )


def _from_scratch(pattern: Pattern, stream: EventStream) -> BranchMatches:
    plan = written_plan(pattern, evaluator_for("tree"))
    found = evaluate(pattern, stream, plan, evaluator="tree", output="arrow").found
    assert found is not None
    return found[0]


def _reused(
    method: str, way: Way, found: Sequence[BranchMatches], events: Events
) -> list[list[tuple[np.ndarray, ...]]]:
    events.forget()
    sources: list[Sized] = [{(): FoundMatches(its)} for its in found]
    if method == "down":
        made = way.down(sources[0], events, _LIMIT)
    else:
        made, _ = way.up(sources, events, _LIMIT)
    return [its.chunks() for its in made.values()]


def _least_time(step: Callable[[], object], repetitions: int) -> int:
    """Nanoseconds; memory is new each time, since results stay. The first one may load kernels, and long
    steps are repeated once.
    """
    times: list[int] = []
    results = []
    while len(times) < 2 or (len(times) < repetitions and sum(times) < _ENOUGH):
        began = time.process_time_ns()
        results.append(step())
        times.append(time.process_time_ns() - began)
    return min(times)


if __name__ == "__main__":
    runs = measured_alone()
    costs = {"reuse": fitted(measured()), "alone": fitted(runs, "alone")}
    store(costs)
    print(errors(runs, costs["alone"]).round(2).to_string(index=False))
