"""Tables of the study's pages, from runs on a few events."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError, PlanError
from cepbench.experiments.studies.liu2011 import drift
from cepbench.experiments.studies.liu2011.every_plan import every_plan, plans_measured
from cepbench.experiments.studies.liu2011.graphs import graph_runs
from cepbench.experiments.studies.liu2011.runs import (
    WORK,
    events_inserted,
    over_time,
    printed_sources,
    ways_of,
    with_axes,
)
from cepbench.experiments.studies.liu2011.scale import (
    FAMILY,
    all_planners,
    drawn_workload,
    scale_runs,
)
from cepbench.experiments.studies.liu2011.turns import (
    ALONE,
    PLANNERS,
    company_stream,
    runs_by_results,
    study_workload,
    window_for,
)
from cepbench.experiments.studies.runs import figure_runs
from cepbench.experiments.sweeps.cells import results_frame
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.on_spark.job import workload_of
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.planning.costs.reuse import ReuseProblem
from cepbench.planning.plans.reuse import in_order
from cepbench.presentation.reporting.verdicts import ledger
from cepbench.streams.company_trades import HIERARCHY, CompanyTrades
from cepbench.streams.generated import make_stream

EVENTS = 600


def measured(
    tmp_path: Path, name: str, repetitions: int = 2, **changes: Any
) -> tuple[pd.DataFrame, dict[str, Path]]:
    """Rows of a sweep of the study without Spark, and its stream."""
    path = tmp_path / name
    if not path.exists():
        make_stream(path, CompanyTrades(EVENTS))
    changes = {"repetitions": repetitions, "evaluators": ["hierarchical-stacks"], **changes}
    sweep = read_sweep(f"liu2011/{name}", changes={**changes, "data": str(path)})
    config, stream = sweep.config(path), cep.EventStream.from_parquet(path)
    counts = {"": dict.fromkeys(stream.type_names, 1.0)}
    specs = workload_of(config, counts, concepts=HIERARCHY.names)
    grid = config.grid([])
    rows = [row for spec in specs for row in measure_pattern(spec, stream, {}, grid)]
    return results_frame(rows), {"": path}


def test_runs_have_what_the_figures_have_on_their_axes(tmp_path: Path) -> None:
    results, streams = measured(tmp_path, "concept", windows=["20 milliseconds", "5 milliseconds"])
    runs = with_axes(results, streams)
    assert list(runs["pattern_set"].unique()) == ["5", "20"]
    assert set(runs["generator"]) == set(PLANNERS)
    assert set(runs["regime"]) == {"hierarchical-stacks"}
    by_hand = runs["matches"].astype(float) / runs["seconds"].astype(float) / 1000
    assert runs["results_per_ms"].to_numpy() == pytest.approx(by_hand.to_numpy())
    stream = cep.EventStream.from_parquet(streams[""])
    for text, own in runs.groupby("pattern"):
        workload = cep.Workload.parse(str(text), hierarchy=stream.hierarchy)
        statistics = cep.measure_statistics(workload, stream)
        naive = cep.plan_workload(workload, statistics, "NAIVE", cost="e-cube")
        found = own[own["generator"] == "NAIVE"]["e_cube"].unique()
        assert found == pytest.approx([naive.cost])
        assert (own["inverse_cost"] * own["e_cube"]).to_numpy() == pytest.approx(1e6)
        window = next(iter(workload.patterns.values())).window.seconds
        logs = (own["e_cube"] / window).map(math.log).to_numpy()
        assert own["plan_log_cost"].to_numpy() == pytest.approx(logs)
    assert (runs["work"] == runs[WORK].sum(axis="columns")).all()
    top_down = runs[runs["generator"] == "TOP-DOWN"]
    results_of_q9 = top_down["matches"].astype(int) - top_down["reused"].astype(int)
    assert (top_down["types_tested"] == results_of_q9).all()  # each for q1
    span = (EVENTS - 1) / 1000
    assert (runs["load"] * span).to_numpy() == pytest.approx(runs["seconds"].to_numpy(float))


def test_settings_are_trades_where_nothing_else_varies(tmp_path: Path) -> None:
    results, streams = measured(tmp_path, "negated_company")
    # Runs of a sweep read only the trades of some companies.
    assert set(with_axes(results.assign(events=9), streams)["pattern_set"]) == {f"{EVENTS}"}
    ways = ways_of(results).data  # type: ignore[attr-defined]
    assert list(ways)[-1] == "ms, hierarchical-stacks" and (ways.iloc[:, -1] > 0).all()
    assert list(ways.index.names) == ["generator", "query"]
    assert ways.loc[("BOTTOM-UP", "q11"), "source"] == "q12"
    assert ways.loc[("TOP-DOWN", "q12"), "source"] == "q11"
    assert ways.loc[("NAIVE", "q11"), "source"] == "from scratch"
    # Everything that q12 finds is found by q11, too.
    assert ways.loc[("BOTTOM-UP", "q11"), "reused"] == ways.loc[("NAIVE", "q12"), "results"]


def test_streams_of_several_seeds_are_runs_of_one_setting(tmp_path: Path) -> None:
    results, streams = measured(tmp_path, "negated_company")
    of_seeds = [results.assign(stream=f"t{EVENTS}-seed{seed}") for seed in (0, 1, 2)]
    paths = {f"t{EVENTS}-seed{seed}": streams[""] for seed in (0, 1, 2)}
    runs = with_axes(pd.concat(of_seeds, ignore_index=True), paths)
    assert set(runs["pattern_set"]) == {f"{EVENTS}"}
    assert set(runs["repetition"]) == {f"{seed}.{run}" for seed in (0, 1, 2) for run in (0, 1)}
    assert runs.groupby("generator")["pattern_id"].nunique().eq(6).all()


def test_events_are_inserted_by_queries_from_scratch() -> None:
    stream = company_stream(EVENTS, 0)
    types = stream.to_pandas()["type"]
    workload = study_workload("negated_company", stream.hierarchy, "10000 milliseconds")
    finance = {"QQQ", "FCF", "ROM"}
    of_q11 = {"DELL", "QQQ", "AMAT", "EFC", "OREL"}
    alone = [types.isin(names).sum() for names in (of_q11, of_q11 | finance)]
    both, down = {"q11": None, "q12": None}, {"q11": None, "q12": "q11"}
    assert events_inserted(workload, both, stream, shared=True) == alone[1]
    assert events_inserted(workload, both, stream, shared=False) == sum(alone)
    assert events_inserted(workload, down, stream, shared=True) == alone[0]
    # As many as there are in the instance stacks, in a window as long as the stream.
    assert len(workload.stacks(stream)) == alone[1]


def test_sources_are_compared_with_the_printed_ones() -> None:
    as_printed = {"q1": None, "q2": "q1", "q9": "q1", "q13": "q1", "q14": "q2", "q15": None}
    assert printed_sources(as_printed) == 4
    assert printed_sources(as_printed | {"q1": "q9", "q9": None}) == 2
    assert printed_sources({"q11": None}) == 0


def test_the_choice_grows_with_drawn_graphs() -> None:
    runs = graph_runs("quick", sparse=(20, 40), dense=(5, 10), seeds=2)
    assert runs.groupby("generator")["pattern_set"].unique().map(list).to_dict() == {
        "dense": ["5", "10"], "sparse": ["20", "40"],
    }  # fmt: skip
    dense = runs[runs["generator"] == "dense"]
    assert (dense["edges"] == dense["size"] ** 2).all() and (dense["bound"] == dense["edges"]).all()
    assert (runs["steps"] >= runs["edges"] - runs["size"]).all()
    assert (runs["search_seconds"] > 0).all()


def test_results_over_time_are_of_the_same_matches(tmp_path: Path) -> None:
    results, _ = measured(tmp_path, "over_time", batch_size=200)
    runs = over_time(results, "concept")
    own = results[results["pattern_id"] == "workload-concept"]
    assert set(runs["generator"]) == set(PLANNERS)
    assert runs["pattern_set"].nunique() == 3
    last = runs["pattern_set"].str.replace(",", "").astype(int).max()
    assert {last} == set(own["matches"])
    for _, curve in runs.groupby(["generator", "repetition"]):
        assert len(curve) == 3 and curve["seconds"].is_monotonic_increasing


def test_every_plan_is_each_choice_of_sources_without_circles() -> None:
    stream = company_stream(EVENTS, 0)
    workload = study_workload("both", stream.hierarchy)
    problem = ReuseProblem.of(workload, cep.measure_statistics(workload, stream), delays=True)
    plans = [tuple(sources.items()) for sources in every_plan(problem)]
    assert len(set(plans)) == len(plans)
    pairs = {(edge.source, edge.query) for edge in problem.edges}
    for plan in plans:
        in_order(dict(plan))
        assert all(source is None or (source, query) in pairs for query, source in plan)
    few = ReuseProblem(
        dict.fromkeys(["q1", "q2"], 1.0), [e for e in problem.edges if {e.source, e.query} == {"q1", "q2"}]
    )  # fmt: skip
    assert [*every_plan(few)] == [
        {"q1": None, "q2": None}, {"q1": None, "q2": "q1"}, {"q1": "q2", "q2": None},
    ]  # fmt: skip
    with pytest.raises(PlanError, match="circle"):
        in_order({"q1": "q2", "q2": "q1"})


def test_planners_are_ranked_among_all_plans() -> None:
    plans, runs = plans_measured("quick", sweep="pattern", events=EVENTS, repetitions=2)
    assert len(plans) == 3 and plans["milliseconds"].is_monotonic_increasing
    named = {name for names in plans["planners"] for name in names.split(", ") if name}
    assert named == set(PLANNERS)
    least = plans.loc[plans["cost"].idxmin(), "planners"]
    assert "CHASE" in least
    assert len(runs) == 2 * len(PLANNERS)
    # Of three plans the planners have all, so that one of theirs is the fastest.
    ratios = runs.pivot(index="repetition", columns="generator", values="over_best")
    assert (ratios == 1.0).all().any() and (ratios.median() >= 1.0).all()
    assert (plans["work"] > 0).all() and runs["work_over_least"].min() == 1.0
    of_chase = runs[runs["generator"] == "CHASE"]
    assert of_chase["cost_over_least"].to_numpy() == pytest.approx(1.0)
    assert runs["faster_plans"].between(0, 100).all()


def test_a_smaller_workload_is_the_beginning_of_a_larger_one() -> None:
    small, large = drawn_workload(2 * FAMILY, 3), drawn_workload(5 * FAMILY, 3)
    assert list(large.patterns.items())[: 2 * FAMILY] == list(small.patterns.items())
    assert drawn_workload(FAMILY, 4).patterns["q0"] != small.patterns["q0"] or (
        drawn_workload(FAMILY, 4) != drawn_workload(FAMILY, 3)
    )
    refined = {(row.general, row.specific) for row in large.refinements.itertuples()}
    for number in range(5 * FAMILY):
        root = number - number % FAMILY
        assert number == root or (f"q{root}", f"q{number}") in refined


def test_planners_take_turns_on_workloads_of_all_sizes() -> None:
    runs = scale_runs("quick", sizes=(5, 10), events=EVENTS, searched=5, repetitions=1)
    assert runs.groupby("pattern_set", sort=False)["generator"].apply(list).to_dict() == {
        "5": [*all_planners(), ALONE], "10": [*PLANNERS, ALONE],
    }  # fmt: skip
    assert {*PLANNERS} < {*all_planners()}
    assert (runs.groupby("size")["matches"].nunique() == 1).all() and (runs["seconds"] > 0).all()
    planned = runs[runs["generator"] != ALONE]
    assert (planned[["plan_seconds", "plan_cost"]] > 0).all(axis=None)
    reusing = runs.set_index(["size", "generator"])["reusing"]
    assert reusing[5, "NAIVE"] == reusing[5, ALONE] == 0 and reusing[10, "TOP-DOWN"] == 9


def test_windows_give_the_numbers_of_results() -> None:
    numbers = (30, 300)
    stream = company_stream(EVENTS, 0)
    runs = runs_by_results("concept", "quick", events=EVENTS, results=numbers, repetitions=1)
    assert (runs.groupby("pattern_set").size() == len(PLANNERS)).all()
    for wanted, (_, its) in zip(numbers, runs.groupby("matches"), strict=True):
        window = window_for("concept", stream, wanted)
        below = study_workload("concept", HIERARCHY, f"{window - 1} milliseconds")
        assert cep.evaluate(below, stream, output="count").metrics.matches < wanted
        assert set(its["matches"]) == {int(its["pattern_set"].iloc[0].replace(",", ""))}
        assert its["matches"].iloc[0] >= wanted


def test_plans_that_follow_find_what_plans_that_stay_find() -> None:
    runs, switches = drift.drift_runs("quick", evaluator="tree", repetitions=1, round_events=150)
    assert set(runs["generator"]) == {*PLANNERS, *drift.ADAPTIVE}
    assert (runs.groupby("setting")["matches"].nunique() == 1).all()
    found = runs.groupby("setting", sort=False)["matches"].first()
    assert list(found.index) == [*drift.SEGMENTS, drift.WHOLE]
    assert found[drift.WHOLE] == found[[*drift.SEGMENTS]].sum() > 0
    assert set(switches["generator"]) <= {*drift.ADAPTIVE}
    assert set(figure_runs(runs, "setting", "generator")["pattern_set"]) == {*found.index}


def times(seconds: dict[str, float]) -> pd.DataFrame:
    """Runs of the page of Figure 17 that take so long, of each planner, on two engines."""
    rows = [
        {
            "setting": window, "generator": planner, "regime": regime, "repetition": run, "size": 3,
            "status": "ok", "seconds": its * float(window), "load": its * float(window),
            "plan_log_cost": math.log(its * float(window)), "work": its * float(window),
            "work_per_second": its * float(window),
        }
        for window in ("10", "20", "41", "80", "160")
        for planner, its in seconds.items()
        for regime in ("hierarchical-stacks", "tree")
        for run in range(6)
    ]  # fmt: skip
    return figure_runs(pd.DataFrame(rows), "setting", "generator")


@pytest.mark.parametrize("bottom_up", [1.0, 4.0])
def test_claims_are_judged_on_both_engines(bottom_up: float) -> None:
    seconds = {"NAIVE": 2.0, "TOP-DOWN": 3.0, "BOTTOM-UP": bottom_up, "CHASE": 1.0}
    verdicts = ledger("liu2011", {"figure_17": times(seconds)})
    own = verdicts[verdicts["figure"] == "17"]
    judged = own.groupby("id")["verdict"].agg(set)
    for claim in ("concept-behind", "cost-of-a-concept"):
        assert judged[claim] == {"holds"}, claim
    for claim in ("concept-naive", "concept-top-down"):
        assert (judged[claim] == {"holds"}) == (bottom_up == 1.0), claim
    assert (own.groupby("id").size() >= 2).all()


@pytest.mark.parametrize(
    "measure",
    [
        scale_runs,
        graph_runs,
        plans_measured,
        lambda profile: runs_by_results("concept", profile),
        lambda profile: drift.drift_runs(profile, evaluator="tree"),
    ],
)
def test_an_unknown_profile_is_an_error(measure: Any) -> None:
    with pytest.raises(ExperimentError, match="profile is one of quick, full, not 'quik'; did"):
        measure("quik")
