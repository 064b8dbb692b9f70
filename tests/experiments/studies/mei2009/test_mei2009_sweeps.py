"""The sweeps of the study are the paper's experiments, and its claims are about what they measure."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest

from cepbench.experiments.studies.mei2009 import STUDY
from cepbench.experiments.studies.mei2009.runs import NFA, setting_of
from cepbench.experiments.studies.mei2009.segments import SEGMENTS, WHOLE
from cepbench.experiments.sweeps.sweep_file import Sweep, read_sweep
from cepbench.patterns.parse import parse
from cepbench.planning.plans.kinds import PLAN_KINDS
from cepbench.presentation.reporting.claims import PARTIAL_MATCHES, Claim, claims

#: Notebook → its sweep.
SWEEPS = {
    "figures_8_9": "selectivity", "figures_10_11": "rates", "figures_12_13_table_3": "plans",
    "figure_14": "drift", "figures_15_16": "negation", "figure_17_tables_4_5": "web_log",
}  # fmt: skip
EVERY_CLAIM = pytest.mark.parametrize("claim", claims(STUDY), ids=lambda claim: claim.id)


@cache
def sweep_of(notebook: str, profile: str = "quick") -> Sweep:
    return read_sweep(f"{STUDY.key}/{SWEEPS[notebook]}", profile=profile)


def settings_of(notebook: str) -> set[str]:
    if notebook == "figure_14":
        return {*SEGMENTS, WHOLE}
    return {setting_of(stream) for stream in sweep_of(notebook).data}


def plans_of(notebook: str) -> set[str]:
    config = sweep_of(notebook).config("data")
    named = (name for name, _ in (*config.plans, *config.policies))
    return {*named, *(config.generators or ()), NFA}


@pytest.mark.parametrize("notebook", SWEEPS)
def test_the_full_profile_is_the_size_of_the_paper_and_the_quick_one_less_of_the_same(
    notebook: str,
) -> None:
    quick, full = (sweep_of(notebook, profile) for profile in STUDY.profiles)
    assert list(quick.data) == list(full.data)
    some, every = (
        {cell._replace(repetition=0) for cell in profile.cells()} for profile in (quick, full)
    )
    # Without what decides no verdict: the engine of the other study, and matches that are made.
    assert some == {cell for cell in every if cell.evaluator != "tree" and cell.output == "count"}
    if notebook in ("figure_14", "figure_17_tables_4_5"):  # of a single stream
        assert quick.config("data").repetitions == 5 and full.config("data").repetitions == 30
    if notebook == "figure_14":
        for profile in (quick, full):
            # Whole rounds in every segment.
            rounds = profile.data[""]["events"] / profile.config("data").batch_size
            assert rounds % len(SEGMENTS) == 0
    elif notebook != "figure_17_tables_4_5":  # a month in both
        for profile in (quick, full):
            # Intervals are over seeds, of runs that are long enough to be timed.
            assert profile.config("data").seconds >= 0.1
            by_setting = Counter(map(setting_of, profile.data))
            assert set(by_setting.values()) == {5}
        # Five streams have as many events as one of the paper.
        assert {its["events"] for its in full.data.values()} == {2_000_000 // 5}


def test_streams_have_the_rates_and_selectivities_of_the_axes() -> None:
    for notebook, name in (("figures_8_9", "IBM > Sun"), ("figures_12_13_table_3", "Oracle > Sun")):
        for stream, made in sweep_of(notebook).data.items():
            setting = setting_of(stream).removeprefix("sel1 = ")
            if setting[0] == "1" and ":" not in setting:
                over, _, under = setting.partition("/")
                assert made["selectivities"][name] == int(over) / int(under or 1), stream
    plans = {
        setting_of(stream): made for stream, made in sweep_of("figures_12_13_table_3").data.items()
    }
    assert plans["sel2 = 1/50"]["selectivities"] == {"Oracle > Sun": 1.0, "Oracle > Google": 0.02}
    for notebook, names in (
        ("figures_10_11", ("IBM", "Sun", "Oracle")),
        ("figures_12_13_table_3", ("IBM", "Sun", "Oracle", "Google")),
    ):
        for stream, made in sweep_of(notebook).data.items():
            if stream.startswith("rates"):
                rates = [made["rates"][name] for name in names]
                assert setting_of(stream) == ":".join(map(str, rates))
    # The segments are three of these streams.
    segments = sweep_of("figure_14").data[""]["segments"]
    for name, segment in zip(SEGMENTS, segments, strict=True):
        assert segment == {
            key: plans[name][key] for key in plans[name].keys() & {"rates", "selectivities"}
        }
    for stream, made in sweep_of("figures_15_16").data.items():
        name, _, times = setting_of(stream).rpartition(" ×")
        expected = dict.fromkeys(("IBM", "Sun", "Oracle"), 1)
        assert made["rates"] == expected | ({name: int(times)} if name else {}), stream


@pytest.mark.parametrize("notebook", SWEEPS)
def test_plans_are_over_the_variables_of_the_query(notebook: str) -> None:
    sweep = sweep_of(notebook)
    ((_, text),) = sweep.config("data").user_patterns
    for name, described in sweep.config("data").plans:
        ((kind, shape),) = json.loads(described).items()
        plan = PLAN_KINDS[kind].plan(shape)
        plan.check(list(parse(text).planned_names))
        if notebook == "figures_15_16":
            assert dict(plan.placements) == {"n": ("c",) if name == "NSEQ" else ("a", "c")}


def test_both_sweeps_of_figure_14_run_the_same_plans_on_the_same_stream() -> None:
    for profile in STUDY.profiles:
        paper, beyond = (
            read_sweep(f"{STUDY.key}/{name}", profile=profile)
            for name in ("drift", "drift_columnar")
        )
        assert paper.data == beyond.data
        assert paper.config("data").plans == beyond.config("data").plans
        assert paper.config("data").batch_size == beyond.config("data").batch_size


@EVERY_CLAIM
def test_claims_on_plans_are_judged_on_work_before_the_clock(claim: Claim) -> None:
    """But bytes, and adaptation, which takes time."""
    expected = claim.main.check.metric == "events_per_second" and claim.results != "figure_14"
    beside = claim.tests[0] if len(claim.tests) > 1 else None
    assert (beside is not None and beside.basis in (PARTIAL_MATCHES, "work")) == expected
    if claim.main.check.kind == "rank_correlation":  # a cost adds up what "work" counts
        assert claim.tests[0].check.metric == "work"
    if expected and claim.results == "figures_15_16":
        assert claim.tests[0].check.metric in ("fewer_records", "work")
