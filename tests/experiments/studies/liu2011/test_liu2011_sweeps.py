"""The sweeps of the study are the paper's workloads, and what their pages have as pattern sets and generators."""

from __future__ import annotations

import pytest

import cepbench as cep
from cepbench.experiments.studies.liu2011 import STUDY, drift
from cepbench.experiments.studies.liu2011.every_plan import PRINTED
from cepbench.experiments.studies.liu2011.runs import RATES
from cepbench.experiments.studies.liu2011.turns import PLANNERS, company_stream, study_workload
from cepbench.experiments.sweeps.sweep_file import Sweep, read_sweep
from cepbench.streams.company_trades import COMPANIES, HIERARCHY, CompanyTrades

SWEEPS = tuple(sorted(path.stem for path in (STUDY.folder / "sweeps").glob("*.toml")))
EVERY_SWEEP = pytest.mark.parametrize("name", SWEEPS)

#: Sweep → its queries, and about how many results the axis of its figure ends at.
FIGURES = {
    "pattern": (("q1", "q2"), 35_000),
    "children": (("q3", "q4", "q5", "q6", "q7", "q8"), 2_500),
    "concept": (("q1", "q9"), 70_000),
    "negated_company": (("q11", "q12"), 900),
    "both": (("q1", "q2", "q9", "q13", "q14", "q15"), 10_000),
}


def sweep_of(name: str, profile: str = "quick") -> Sweep:
    return read_sweep(f"{STUDY.key}/{name}", profile=profile)


@EVERY_SWEEP
@pytest.mark.parametrize("profile", STUDY.profiles)
def test_sweeps_are_of_four_planners_on_company_trades(name: str, profile: str) -> None:
    sweep = sweep_of(name, profile)
    config = sweep.config("data")
    assert sweep.cells() and config.planners == PLANNERS
    seeds: dict[str, list[int]] = {}
    for name_of_stream, made in sweep.generated.items():
        assert isinstance(made, CompanyTrades)
        seeds.setdefault(name_of_stream.partition("-")[0], []).append(made.seed)
        if name == "over_time":  # the paper's, on the axes of its figures
            assert made.events == (10_000 if profile == "quick" else 100_000)
        else:  # so many that a run takes 100 ms
            assert 50_000 <= made.events <= 2_000_000
    # Intervals need five runs of a setting.
    assert all(len(its) * config.repetitions >= 5 for its in seeds.values())
    if name != "over_time":
        assert all(its == [0, 1, 2] for its in seeds.values())


@pytest.mark.parametrize("name", FIGURES)
def test_workloads_are_the_papers_in_a_chosen_window(name: str) -> None:
    queries, _ = FIGURES[name]
    workload = study_workload(name, HIERARCHY)
    printed = cep.open_dataset("company-trades/sample").patterns
    assert tuple(workload.patterns) == tuple(study_workload(name, None).patterns) == queries
    for query, pattern in workload.patterns.items():
        given = [(variable.type, variable.kind) for variable in pattern.variables]
        assert given == [(variable.type, variable.kind) for variable in printed[query].variables]
        assert not pattern.conditions
    assert len({pattern.window for pattern in workload.patterns.values()}) == 1
    live = dict(sweep_of("over_time").config("data").user_workloads)
    assert live[name] == dict(sweep_of(name).config("data").user_workloads)[name]
    assert live.keys() == FIGURES.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_results_end_about_where_the_axes_of_the_figures_do(name: str) -> None:
    stream = company_stream(10_000, 0)
    workload = study_workload(name, stream.hierarchy)
    found = cep.evaluate(workload, stream, evaluator="hierarchical-stacks", output="count")
    assert found.metrics.matches == pytest.approx(FIGURES[name][1], rel=0.1)


def test_dell_has_the_rate_that_its_stream_is_named_after() -> None:
    for profile in STUDY.profiles:
        made = sweep_of("pattern", profile).generated
        rates = [name for name in made if name.endswith("-seed0")]
        named = [name.partition("-")[0] for name in rates]
        assert named == [name for name in RATES if name in named]
        assert named == list(RATES) or profile == "quick"
        assert {RATES[name] for name in named} >= {"0.01", "0.1", "1", "10"}
        seconds = set()
        for name, stream in made.items():
            assert isinstance(stream, CompanyTrades)
            rate = RATES[name.partition("-")[0]]
            assert stream.rates == {"DELL": float(rate)}
            whole = len(COMPANIES) - 1 + float(rate)
            seconds.add(round(stream.events * len(COMPANIES) / whole / 1000, 1))
        assert len(seconds) == 1  # the same time of the stream


#: What the results of the pages have as generators.
SERIES = {*PLANNERS, *drift.ADAPTIVE, PRINTED, "sparse", "dense"}


def settings(notebook: str) -> set[str]:
    """What the results of a page have as pattern sets."""
    match notebook:
        case "figures_13_14_15":
            streams = sweep_of("pattern").generated
            return {RATES[name.partition("-")[0]] for name in streams}
        case "figure_17":
            windows = dict(sweep_of("concept").config("data").stream_windows).values()
            return {window.removesuffix(" milliseconds") for window in windows}
        case "drift":
            return {*drift.SEGMENTS, drift.WHOLE}
        case "figure_19":
            trades = {made.events for made in sweep_of("both").generated.values()}
            return {*(f"{events:,}" for events in trades), "every plan"}
    return set()
