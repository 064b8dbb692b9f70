"""Whatever is handed to a public call, nothing but a CepbenchError comes back out of it."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepbench as cep
from cepbench.experiments.sweeps.cells import results_frame
from cepbench.planning.planners.budget import Budget
from cepbench.planning.statistics.measure import sample_statistics
from cepbench.streams.company_trades import CompanyTrades
from cepbench.streams.evacuation import Evacuation
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.stock_rates import StockRates
from cepbench.streams.stock_ticker import StockTicker
from cepbench.streams.ticker_trades import TickerTrades
from cepbench.streams.web_log import WebLog
from tests.experiments.made_rows import made_rows

TEXT = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 units"
FRAME = pd.DataFrame({"kind": list("ABBA") * 5, "at": range(20), "x": np.linspace(0, 1, 20)})
TABLE = pa.Table.from_pandas(FRAME)
STREAM = cep.EventStream.from_pandas(FRAME, type="kind", time="at")
PATTERN = cep.parse(TEXT)
COUNTED = cep.parse("PATTERN SEQ(A a, B b) AGG COUNT, SUM(a.x) WITHIN 20 units")
HIERARCHY = cep.ConceptHierarchy({"T": ["A", "B"]})
WORKLOAD = cep.Workload({"Q": COUNTED})
MATCHED = cep.Workload({"Q": PATTERN, "R": "PATTERN SEQ(A a) WITHIN 20 units"})
PLAN = cep.OrderPlan(["a", "b"])
STATISTICS = cep.Statistics(rates={"a": 1, "b": 2}, selectivities={("a", "b"): 0.5})
OF_QUERIES = dict.fromkeys(MATCHED.patterns, STATISTICS)
REUSED = cep.WorkloadPlan(MATCHED, sources={"Q": "R", "R": None})
ROWS = cep.parse(
    "SELECT * FROM t MATCH_RECOGNIZE (AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) WITHIN 9)",
    dialect="match_recognize",
)
RESULT = cep.evaluate(PATTERN, STREAM, PLAN, output="arrow")
MEASURED = results_frame(
    made_rows(
        lambda run: {"peak_bytes": 1 + run.number}, number=range(6), generator=("DP-B", "GREEDY")
    )
)


class Odd:
    """Nothing that can be done with it works."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    __hash__ = None  # type: ignore[assignment]


#: What is handed in, by the name under which a failing test shows it.
JUNK: dict[str, Any] = {
    "None": None,
    "True": True,
    "NumPy's True": np.bool_(True),
    "zero": 0,
    "three": 3,
    "minus one": -1,
    "a fraction": 1.5,
    "a whole float": 2.0,
    "1e300": 1e300,
    "nan": math.nan,
    "inf": math.inf,
    "10**30": 10**30,
    "10**400": 10**400,
    "10**9999": 10**9999,
    "a Decimal": Decimal("1e400"),
    "a Fraction": Fraction(10**400, 3),
    "NaT": pd.NaT,
    "NA": pd.NA,
    "a complex": 1j,
    "a NumPy integer": np.int8(1),
    "a generator's name": "GREEDY",
    "no text": "",
    "half a surrogate pair": "\ud800",
    "ten": "10",
    "bytes": b"A",
    "a pattern's text": TEXT,
    "an empty list": [],
    "names": ["a", "b"],
    "numbers": [1, 2],
    "pairs": (("a", "b"), "c"),
    "a list of itself": (itself := []),
    "a mapping": {"a": 1},
    "a mapping of lists": {"a": [1], ("a", "b"): "x", 3: None},
    "a set": {"a"},
    "an array": np.arange(3),
    "an array of objects": np.array([None, "a"], dtype=object),
    "a series": pd.Series([1, 2]),
    "a frame": FRAME,
    "an empty frame": pd.DataFrame(),
    "a table": TABLE,
    "a batch": TABLE.to_batches()[0],
    "a moment": datetime(2020, 1, 1),
    "a path": Path("nowhere"),
    "a function": len,
    "a class": cep.Statistics,
    "an object": object(),
    "an odd object": Odd(),
    "a module": cep,
    "a pattern": PATTERN,
    "a stream": STREAM,
    "a plan": PLAN,
    "statistics": STATISTICS,
    "a result": RESULT,
    "a generator": cep.PLAN_GENERATORS["GREEDY"],
}
itself.append(itself)


class Call:
    """A public call with arguments that it takes."""

    def __init__(self, function: Callable[..., Any], /, **arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __call__(self, **changed: Any) -> Any:
        return self.function(**{**self.arguments, **changed})


def decorated(register: Callable[..., Any]) -> Callable[..., Any]:
    def call(function: Any, **options: Any) -> Any:
        return register(**options)(function)

    return call


def iterated(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **options: list(function(**options))


def timeline(**options: Any) -> Any:
    from cepbench.presentation.exploration.timeline import timeline as numbers

    return numbers(**options)


RUN = {"pattern": PATTERN, "stream": STREAM, "plan": PLAN}
PLANNED = {"pattern": PATTERN, "statistics": STATISTICS}
COLUMNS = {"type": "kind", "time": "at", "attributes": ["x"], "sort": False}

CALLS: dict[str, Call] = {
    "counterpart": Call(cep.counterpart, rows=ROWS),
    "evaluate, rows": Call(cep.evaluate, pattern=ROWS, stream=STREAM, partial_match_limit=99),
    "evaluate": Call(
        cep.evaluate, **RUN, evaluator=None, options=None, output="matches", partial_match_limit=10,
        latency=False, node_times=False,
    ),
    "Detector": Call(
        cep.Detector, pattern=PATTERN, plan=PLAN, evaluator=None, options={}, output="count",
        partial_match_limit=10, latency=False, node_times=False, position=0,
    ),
    "Detector.push": Call(lambda batch: cep.Detector(PATTERN, PLAN).push(batch), batch=STREAM),
    "Detector.restore": Call(cep.Detector.restore, snapshot=cep.Detector(PATTERN, PLAN).snapshot()),
    "Detector.save": Call(lambda path: cep.Detector(PATTERN, PLAN).save(path), path="state"),
    "Detector.load": Call(cep.Detector.load, path="state.npz"),
    "aggregate": Call(
        cep.aggregate, pattern=COUNTED, stream=STREAM, method="two-step", emit="trigger",
        scope="window", at=None, evaluator="tree",
    ),
    "Aggregator": Call(
        cep.Aggregator, pattern=COUNTED, method=None, emit="trigger", scope="window",
        evaluator=None, slack="2 units",
    ),
    "Aggregator.push": Call(lambda batch: cep.Aggregator(COUNTED).push(batch), batch=STREAM),
    "Aggregator.value": Call(lambda time: cep.Aggregator(COUNTED).value(time), time=3),
    "Aggregator.restore": Call(cep.Aggregator.restore, snapshot=cep.Aggregator(COUNTED).snapshot()),
    "match_batches": Call(
        iterated(cep.match_batches), **RUN, rows=5, evaluator=None, options=None,
        partial_match_limit=10, on_progress=None,
    ),
    "with_events": Call(cep.with_events, matches=RESULT.arrow, stream=STREAM, attributes=["x"]),
    "plan": Call(
        cep.plan, **PLANNED, generator="GREEDY", seed=0, time_selectivity="adjacent", alpha=0.0,
        last=None, budget=None, cost="throughput",
    ),
    "parse": Call(lambda text: cep.parse(text), text=TEXT),
    "parse, a query of A-Seq": Call(
        lambda **given: cep.parse("(A, B)", **given), dialect="a-seq", aggregate="COUNT",
        within="5 s",
    ),
    "parse, a query of E-Cube": Call(
        lambda **given: cep.parse("SEQ(A, -B, C)", **given), dialect="e-cube", aggregate="COUNT",
        within="5 s",
    ),
    "pattern_drill_down": Call(cep.pattern_drill_down, pattern=PATTERN, place=2, item="C c"),
    "pattern_roll_up": Call(cep.pattern_roll_up, pattern=PATTERN, place=2),
    "concept_roll_up": Call(cep.concept_roll_up, pattern=PATTERN, hierarchy=HIERARCHY, levels=1),
    "concept_drill_down": Call(
        cep.concept_drill_down, pattern="PATTERN SEQ(T a) WITHIN 5 s", hierarchy=HIERARCHY,
        types={"a": "A"},
    ),
    "Workload.stacks": Call(lambda stream: WORKLOAD.stacks(stream), stream=STREAM),
    "Workload": Call(cep.Workload, queries={"Q1": PATTERN}),
    "Workload, a query": Call(lambda query: cep.Workload({"Q1": query}), query=PATTERN),
    "Workload.parse": Call(
        cep.Workload.parse, text="Q1 = (A, B)", dialect="a-seq", aggregate="COUNT", within="5 s",
    ),
    "compare": Call(
        partial(cep.compare, seconds=0.0), pattern=PATTERN, stream=STREAM, statistics=STATISTICS,
        generators=["GREEDY"], evaluators=None, repetitions=1, seed=0, time_selectivity="adjacent",
        partial_match_limit=10, output="count", options={}, on_progress=None,
    ),
    # At its limit a run is not repeated, however many seconds are asked for.
    "compare, at the limit": Call(
        partial(cep.compare, "PATTERN AND(A a, B b, A c) WITHIN 20 units", STREAM),
        generators=["GREEDY"], partial_match_limit=1, seconds=0.0,
    ),
    "explain": Call(
        cep.explain, pattern=PATTERN, plan=PLAN, statistics=STATISTICS, stream=STREAM,
        evaluator=None, options=None, time_selectivity="adjacent", alpha=None, last=None,
        partial_match_limit=10,
    ),
    "compare, a workload": Call(
        partial(cep.compare, seconds=0.0), pattern=MATCHED, stream=STREAM, statistics=OF_QUERIES,
        planners=["CHASE"], evaluators=["tree"], repetitions=1, cost="e-cube",
    ),
    "explain, a workload": Call(
        cep.explain, pattern=MATCHED, plan=REUSED, statistics=OF_QUERIES, stream=STREAM,
        evaluator="tree", cost="e-cube", partial_match_limit=10,
    ),
    "to_sql": Call(
        cep.to_sql, pattern=PATTERN, plan=PLAN, dialect="duckdb", table="events",
        type_column="type", time_column="time", position_column="position", output="matches",
    ),
    "measure_statistics": Call(
        cep.measure_statistics, pattern=PATTERN, stream=STREAM, seed=0, pairs=10,
    ),
    "measure_statistics of a workload": Call(
        cep.measure_statistics, pattern=WORKLOAD, stream=STREAM, seed=0, pairs=10,
    ),
    "sample_statistics": Call(
        sample_statistics, pattern=PATTERN, stream=STREAM, seed=0, pairs=10, stream_events=None,
    ),
    "OutputProfiler": Call(
        lambda pattern, matches: cep.OutputProfiler(pattern).add(matches), pattern=PATTERN,
        matches=RESULT.matches,
    ),
    "Statistics": Call(
        cep.Statistics, cardinalities=None, rates={"a": 1}, selectivities={}, standard_errors={},
        stream_rate=None, partitions=None,
    ),
    "Statistics, a rate": Call(lambda rate: cep.Statistics(rates={"a": rate}), rate=1),
    "Statistics, a selectivity": Call(
        lambda value: cep.Statistics(rates={"a": 1}, selectivities={("a", "a"): value}), value=1,
    ),
    "Statistics.from_dict": Call(cep.Statistics.from_dict, data=STATISTICS.to_dict()),
    "from_pandas": Call(cep.EventStream.from_pandas, frame=FRAME, **COLUMNS),
    "from_arrow": Call(cep.EventStream.from_arrow, table=TABLE, **COLUMNS),
    "from_parquet": Call(
        cep.EventStream.from_parquet, path="events.parquet", **COLUMNS, types=["A"], start=0, end=9,
    ),
    "from_csv": Call(cep.EventStream.from_csv, path="events.csv", **COLUMNS),
    "a slice": Call(lambda rows: STREAM[rows], rows=slice(2, 4)),
    "a bound of a slice": Call(lambda start: STREAM[start:], start=2),
    "batches": Call(lambda size: list(STREAM.batches(size)), size=3),
    "of_types": Call(STREAM.of_types, types=["A"]),
    "column": Call(STREAM.column, name="x"),
    "to_pandas": Call(STREAM.to_pandas, rows=3),
    "OrderPlan": Call(cep.OrderPlan, names=["a", "b"]),
    "TreePlan": Call(cep.TreePlan, tree=("a", "b")),
    "UnionPlan": Call(cep.UnionPlan, plans=[PLAN]),
    "WorkloadPlan": Call(
        cep.WorkloadPlan, workload=WORKLOAD, cuts={"Q": [1]}, shares_prefixes=True,
    ),
    "WorkloadPlan of sources": Call(
        cep.WorkloadPlan, workload=WORKLOAD, sources={"Q": None}, delays=True, embeddings={},
        plans={},
    ),
    "WorkloadPlan, the cuts of a query": Call(
        lambda cuts: cep.WorkloadPlan(WORKLOAD, {"Q": cuts}), cuts=[1],
    ),
    "WorkloadPlan, a cut": Call(lambda cut: cep.WorkloadPlan(WORKLOAD, {"Q": [cut]}), cut=1),
    "WorkloadPlan.from_dict": Call(
        cep.WorkloadPlan.from_dict, data=cep.WorkloadPlan(WORKLOAD).to_dict(),
    ),
    "plan_workload": Call(
        cep.plan_workload, workload=WORKLOAD, statistics={"Q": STATISTICS}, planner="SHARON",
        seed=0,
    ),
    "plan_workload of matches": Call(
        cep.plan_workload, workload=WORKLOAD, statistics={"Q": STATISTICS}, planner="CHASE",
        cost="e-cube", generator="DP-B", delays=False, seed=0,
    ),
    "workload_planner": Call(
        decorated(cep.workload_planner), function=dict, name="MINE", source="",
    ),
    "check_workload_planner": Call(cep.check_workload_planner, planner="NAIVE", seed=0),
    "plan_workload, the statistics of a query": Call(
        lambda statistics: cep.plan_workload(WORKLOAD, {"Q": statistics}), statistics=STATISTICS,
    ),
    "Budget": Call(Budget, seconds=1, steps=10),
    "NasdaqStyle": Call(NasdaqStyle, identifiers=3, days=1, seed=0, first_day=date(2008, 1, 2)),
    "StockRates": Call(
        StockRates, events=9, seed=0, rates={"IBM": 1.0, "Sun": 1.0},
        selectivities={"IBM > Sun": 0.5}, segments=[],
    ),
    "CompanyTrades": Call(CompanyTrades, events=9, seed=0, rates={"DELL": 2.0}, segments=[]),
    "Evacuation": Call(Evacuation, persons=9, seed=0),
    "StockTicker": Call(StockTicker, events=9, seed=0, p=0.7, symbols=2),
    "TickerTrades": Call(TickerTrades, events=9, seed=0, types=2, per_window=5.0),
    "WebLog": Call(WebLog, days=1, seed=0),
    "predicate_graph": Call(cep.predicate_graph, **PLANNED),
    "plans_side_by_side": Call(
        cep.plans_side_by_side, **PLANNED, generators=["GREEDY"], seed=0,
        time_selectivity="adjacent", alpha=0.0, last=None,
    ),
    "what_if": Call(
        cep.what_if, **PLANNED, window=None, rates=None, selectivities=None, alpha=0.0,
        generators=["GREEDY"], seed=0, time_selectivity="adjacent", last=None, before=None,
    ),
    "rates_over_time": Call(cep.rates_over_time, stream=STREAM, types=None, every=None),
    "match_timeline": Call(
        timeline, stream=STREAM, matches=RESULT, pattern=PATTERN, highlight=0, attribute=None,
        windows=None,
    ),
    "value_series": Call(cep.value_series, result=cep.aggregate(COUNTED, STREAM)),
    "trace": Call(
        cep.trace, pattern=PATTERN, stream=STREAM, type=None, time=None, evaluator="sase-basic",
        missing_types="warn",
    ),
    "automaton": Call(cep.automaton, pattern=PATTERN),
    "rewrite": Call(cep.rewrite, pattern=PATTERN, time=None),
    "plan_stakes": Call(cep.plan_stakes, pattern=PATTERN, statistics=STATISTICS),
    "Either": Call(cep.Either, left="a", right="b"),
    "adapt": Call(cep.adapt, pattern=PATTERN, stream=STREAM, type=None, time=None),
    "adaptation_policy": Call(
        decorated(cep.adaptation_policy), function=len, name="mine", foresees=False, amortizes=False,
    ),
    "sweep": Call(
        partial(cep.sweep, seconds=0), patterns={"p": PATTERN}, stream=STREAM, generators=["GREEDY"],
        evaluators=["lazy-nfa"], repetitions=1, seed=0, on_progress=None,
    ),
    "sweep, drawn patterns": Call(
        partial(cep.sweep, seconds=0, repetitions=1), patterns=1, stream=STREAM, sizes=[2],
        pattern_sets=["sequence"], window="20 units", attribute="x", max_partial_matches=1e5,
        generators=["GREEDY"],
    ),
    "Result.in_whole_stream": Call(RESULT.in_whole_stream, stream=STREAM),
    "summarize": Call(
        cep.summarize, results=MEASURED, metrics=["peak_bytes"], seed=0, resamples=9,
    ),
    "paired_ratios": Call(
        cep.paired_ratios, results=MEASURED, metric="peak_bytes", generator="DP-B",
        baseline="GREEDY", by=["size"], run={}, baseline_run={}, seed=0, resamples=9,
    ),
    "compare_sweeps": Call(
        cep.compare_sweeps, first=MEASURED, second=MEASURED, metrics=["peak_bytes"], by=[],
        names=None, seed=0, resamples=9,
    ),
    "plan_generator": Call(
        decorated(cep.plan_generator), function=len, name="MINE", kind="order", exact=False,
        space="", description=None, source="", max_size=None, anytime=False, costs="plans",
    ),
    "cost_model": Call(
        decorated(cep.cost_model), function=len, name="MINE", of="tree", in_logs=False, source="",
    ),
    "plan_cost": Call(
        cep.plan_cost, pattern=PATTERN, plan=PLAN, statistics=STATISTICS, cost="throughput",
        time_selectivity="adjacent", alpha=0.0, last=None,
    ),
    "plan_evaluator": Call(
        decorated(cep.plan_evaluator), function=len, name="mine", kinds=["tree"],
        without_plan=False, constructs=["SEQ"], strategies=["any"], outputs=["matches"],
        options=None, latency=False, node_times=False, source="",
    ),
    "check_generator": Call(
        cep.check_generator, generator="GREEDY", problems=["acyclic"], sizes=[2], seed=0,
        time_limit=60.0,
    ),
    "check_evaluator": Call(cep.check_evaluator, evaluator="tree", patterns=["sequence"], seed=0),
    "aggregator": Call(decorated(cep.aggregator), function=cep.Aggregator, name="mine", source=""),
    "check_aggregator": Call(
        cep.check_aggregator, method="two-step", patterns=["one event"], seed=0,
    ),
    "outside_engine": Call(decorated(cep.outside_engine), function=len, name="mine"),
    "compare_engines": Call(
        cep.compare_engines, engines=["DuckDB"],
        cases=Path(__file__).parents[1] / "conformance/cases/and-or",
    ),
    "open_dataset": Call(cep.open_dataset, name="nasdaq-style/sample"),
    "Statistics.cardinality": Call(STATISTICS.cardinality, name="a", window=2.0),
    "Statistics.selectivity": Call(STATISTICS.selectivity, first="a", second="b"),
    "Statistics.stream_cardinality": Call(
        cep.Statistics(rates={}, stream_rate=2).stream_cardinality, window=2.0,
    ),
    "Latency.quantile": Call(
        lambda share: cep.evaluate(PATTERN, STREAM, PLAN, latency=True).latency.quantile(share),
        share=0.5,
    ),
    "OutputProfiler.describe": Call(
        cep.OutputProfiler(PATTERN).add(RESULT.matches).describe, most=3,
    ),
    "explore": Call(cep.explore, dataset=STREAM, pattern=PATTERN, seed=0),
    "Dataset.stream": Call(
        cep.open_dataset("nasdaq-style/sample").stream, types=["MSFT"], attributes=None, first=5,
        days=None, start=None, end=None,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    FRAME.to_parquet(folder / "events.parquet", index=False)
    FRAME.to_csv(folder / "events.csv", index=False)
    cep.Detector(PATTERN, PLAN).save(folder / "state.npz")
    return folder


@pytest.fixture(autouse=True)
def in_own_folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that take files find them, and write where nothing else lies."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def refused(call: Call, **changed: Any) -> str | None:
    """The message of a refusal; None if the call took what it was given."""
    try:
        call(**changed)
    except cep.CepbenchError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", CALLS)
def test_whatever_is_handed_in_only_errors_of_cepbench_come_out(name: str) -> None:
    call = CALLS[name]
    raw = []
    for argument in call.arguments:
        for kind, junk in JUNK.items():
            if argument == "on_progress" and callable(junk):
                continue  # its errors are its own
            if argument == "patterns" and junk is None:
                continue  # all patterns, which other tests check
            try:
                message = refused(call, **{argument: junk})
            except Exception as error:
                raw.append(f"{argument} = {kind}: {error!r}"[:200])
            else:
                assert message is None or 10 < len(message) < 1500, f"{argument} = {kind}"
    assert not raw, "\n".join(raw)


@pytest.mark.parametrize("name", CALLS)
def test_arguments_handed_in_in_another_order(name: str) -> None:
    call = CALLS[name]
    assert refused(call) is None
    raw = []
    for one, other in combinations(call.arguments, 2):
        given = {one: call.arguments[other], other: call.arguments[one]}
        try:
            refused(call, **given)
        except Exception as error:
            raw.append(f"{one} and {other} exchanged: {error!r}"[:200])
    assert not raw, "\n".join(raw)
