"""Tables and sentences of the study's pages, from runs whose numbers are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.experiments.analysis.checks import NO_DATA, ClaimCheck, Selection, measure
from cepbench.experiments.analysis.settings import per_engine
from cepbench.experiments.analysis.summary import summarize
from cepbench.experiments.studies.mei2009.findings import (
    compared,
    fastest,
    medians,
    table_of_medians,
)
from cepbench.experiments.studies.mei2009.negation import surviving_pairs
from cepbench.experiments.studies.mei2009.rounds import batch_sizes
from cepbench.experiments.studies.mei2009.runs import (
    NFA,
    NFA_EVALUATOR,
    inverse_costs,
    runs_on_streams,
)
from cepbench.experiments.studies.mei2009.segments import (
    ADAPTIVE,
    SEGMENTS,
    WHOLE,
    rounds_of,
    runs_by,
    switches_of,
)
from cepbench.experiments.sweeps.cells import OK, REFUSED
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.presentation.figures import interactive, static
from cepbench.presentation.reporting.verdicts import ledger
from tests.drawn_events import drawn_stream

#: Plan → partial matches; throughput is their inverse.
CREATED = {"left-deep": 10, "right-deep": 40}


def results(
    speeds: Mapping[tuple[str, str], float], streams: tuple[str, ...] = ("sel-1", "sel-1-32")
) -> pd.DataFrame:
    """Rows as a sweep has them: (plan, evaluator) → events per second, the same on all streams."""
    return pd.DataFrame(
        [
            {
                "pattern_set": "user", "size": 3, "pattern_id": "q", "generator": plan,
                "plan_kind": "none" if plan == "none" else "tree", "evaluator": evaluator,
                "stream": stream, "regime": "", "strategy": "any", "alpha": 0.0,
                "repetition": repetition, "status": "ok", "measured_with": None, "output": "count",
                "events_per_second": speed, "seconds": 1 / speed, "matches": 1,
                "partial_matches_created": CREATED.get(plan, 0), "events": 100,
                "plan_cost": float(CREATED.get(plan, np.nan)),
                "plan_log_cost": np.log(CREATED.get(plan, np.nan)), "peak_bytes": 64,
            }
            for stream in streams
            for repetition in range(5)
            for (plan, evaluator), speed in speeds.items()
        ]
    )  # fmt: skip


PLANS = {
    ("left-deep", "zstream"): 100.0, ("right-deep", "zstream"): 20.0,
    ("left-deep", "tree"): 12.0, ("right-deep", "tree"): 4.0,
}  # fmt: skip


def test_a_setting_is_a_pattern_set_and_a_run_a_pattern() -> None:
    runs = runs_on_streams(results(PLANS))
    assert list(runs["pattern_set"].unique()) == ["1", "1/32"]
    assert runs.groupby("pattern_set")["pattern_id"].nunique().eq(5).all()
    summary = per_engine(runs, lambda own: summarize(own, ["events_per_second"]))
    assert set(summary["patterns"]) == {5} and set(summary["engine"]) == {"zstream", "columnar"}
    left = medians(runs, "events_per_second")[("columnar", "left-deep")]
    assert left.to_dict() == {"1": 12.0, "1/32": 12.0}


def test_plans_as_given_are_an_engine_with_the_work_of_formula_1() -> None:
    streams = tuple(f"x1-seed{seed}" for seed in range(5))
    own = results({("NSEQ", "zstream"): 50.0, ("NEG", "zstream"): 40.0}, streams)
    made = own["generator"].map({"NSEQ": 10, "NEG": 100})
    given = own.assign(
        options='{"as_given": true}',
        details=[
            f'{{"inputs_tried": {count}, "conditions_tested": 4, "records_made": {count}}}'
            for count in made
        ],
    )
    runs = runs_on_streams(pd.concat([own, given], ignore_index=True))
    assert list(runs["evaluator"].unique()) == ["zstream, as given", "zstream"]
    assert set(runs["pattern_id"]) == {f"×1, run {seed}" for seed in range(5)}
    work = runs.groupby(["evaluator", "generator"])["work"].median()
    assert work["zstream, as given"].to_dict() == {"NSEQ": 21.0, "NEG": 201.0}
    assert work["zstream"].isna().all()
    check = ClaimCheck("ratio", "fewer_records", Selection(("NSEQ",)), Selection(("NEG",)))
    of_engine = dict(list(runs.groupby("evaluator")))
    assert measure(check, of_engine["zstream"]).lack == NO_DATA
    found = measure(check, of_engine["zstream, as given"])
    assert found.patterns == 5 and found.value == pytest.approx(101 / 11)


def test_the_nfa_stands_beside_the_plans_of_every_engine() -> None:
    runs = runs_on_streams(results({**PLANS, ("none", NFA_EVALUATOR): 8.0}))
    nfa = runs[runs["generator"] == NFA]
    assert len(nfa) == 2 * 2 * 5 and set(nfa["evaluator"]) == {"zstream", "tree"}
    assert set(nfa["measured_with"]) == {NFA_EVALUATOR} and set(nfa["plan_kind"]) == {"tree"}
    assert set(runs["evaluator"]) == {"zstream", "tree"}
    judged = ledger("mei2009", {"figures_8_9": runs})
    ahead = judged[judged["id"] == "four-times-the-nfa"].set_index("engine")
    assert ahead["value"].to_dict() == pytest.approx({"zstream": 12.5, "columnar": 1.5})
    assert ahead["verdict"].to_dict() == {"zstream": "holds", "columnar": "does not hold"}


def test_claims_follow_the_runs() -> None:
    streams = ("sel-1", "sel-1-2", "sel-1-4", "sel-1-8", "sel-1-16", "sel-1-32")
    judged = ledger("mei2009", {"figures_8_9": runs_on_streams(results(PLANS, streams))})
    one = judged[judged["id"] == "left-deep-at-1-32"].set_index(["engine", "basis"])["verdict"]
    assert one["zstream", "throughput"] == "holds"
    assert one["columnar", "throughput"] == "does not hold"
    assert one["columnar", "partial matches"] == "holds"
    same = judged[(judged["id"] == "gap-grows") & (judged["basis"] == "throughput")]
    assert list(same["value"]) == pytest.approx([1.0, 1.0])
    unmeasured = judged[judged["id"] == "nfa-like-right-deep"]
    assert list(unmeasured["overall"].unique()) == ["not testable"]


def test_inverse_costs_are_of_plans_whatever_runs_them() -> None:
    runs = runs_on_streams(results({**PLANS, ("none", NFA_EVALUATOR): 8.0}))
    summary = per_engine(runs, lambda own: summarize(own, ["events_per_second", "plan_cost"]))
    costs = inverse_costs(summary)
    medians = costs[(costs["statistic"] == "median") & costs["size"].isna()]
    assert len(medians) == 4 and set(medians["generator"]) == {"left-deep", "right-deep"}
    for row in medians.itertuples():
        assert row.value == row.low == row.high == pytest.approx(1 / CREATED[str(row.generator)])
    for charts in (static, interactive):  # a single panel, which needs no heading
        assert charts.lines_by_setting(costs, "inverse_cost", "selectivity")


def test_sentences_have_the_numbers_of_the_runs() -> None:
    runs = runs_on_streams(results(PLANS))
    assert compared(runs, "1/32", "left-deep", "right-deep") == (
        "At 1/32 left-deep has 5 (zstream) and 3 (columnar) times the throughput of right-deep, "
        "and creates 10 partial matches instead of 40."
    )
    assert compared(runs, "1/64", "left-deep", "right-deep") == ""
    assert compared(runs, "1/32", "left-deep", "bushy") == ""
    assert "left-deep (zstream); left-deep (columnar) under 1, 1/32." in fastest(runs)
    close = runs_on_streams(results({**PLANS, ("right-deep", "tree"): 11.9}))
    assert "left-deep (zstream); left-deep, right-deep (columnar) under 1, 1/32." in fastest(close)


def test_tables_and_charts_name_engines_and_plans_without_code_words() -> None:
    runs = runs_on_streams(results({**PLANS, ("none", NFA_EVALUATOR): 8.0}))
    html = table_of_medians(runs, "events_per_second", "peak_bytes").to_html()
    assert "events per second" in html and "columnar" in html and "peak_bytes" not in html
    summary = per_engine(runs, lambda own: summarize(own, ["events_per_second"]))
    figure = static.lines_by_setting(summary, "events_per_second", "selectivity", what="Query 4")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["zstream", "columnar"]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert sorted(labels) == ["NFA", "left-deep", "right-deep"]
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert ticks == ["1", "1/32"] and figure.axes[0].get_xlabel() == "selectivity"
    chart = interactive.lines_by_setting(summary, "events_per_second", "selectivity").to_dict()
    panels = chart["hconcat"]
    assert [panel["title"] for panel in panels] == ["zstream", "columnar"]
    heights = {
        row["group"]: row["value"]
        for data in chart["datasets"].values()
        for row in data
        if row["series"] == NFA
    }
    assert heights == {"1": 8.0, "1/32": 8.0}
    apart = static.lines_by_setting(summary, "events_per_second", "", lines=False)
    assert all(line.get_linestyle() == "None" for line in apart.axes[0].get_lines())


PATTERN = cep.parse("PATTERN SEQ(A a, NOT(N n), C c) WITHIN 6 units")
PLACED = {
    "NSEQ": cep.TreePlan(("a", "c"), placements={"n": ("c",)}),
    "NEG": cep.TreePlan(("a", "c"), placements={"n": ("a", "c")}),
}


@given(st.lists(st.sampled_from("ANC"), min_size=12, max_size=60))
def test_survivors_are_those_of_enumeration(types: list[str]) -> None:
    """A pair in order and in the window is left unless an N lies between its two events."""
    stream = cep.EventStream.from_pandas(
        pd.DataFrame({"type": types, "ts": range(len(types))}), type="type", time="ts"
    )
    pairs = [
        (a, c)
        for a, first in enumerate(types)
        for c, last in enumerate(types)
        if first == "A" and last == "C" and a < c <= a + 6
    ]
    left = sum("N" not in types[a:c] for a, c in pairs)
    if not left:
        return
    rows = [
        {"pattern_set": "×1", "generator": name, "events_per_second": speed, "matches": left}
        for name, speed in (("NSEQ", 6.0), ("NEG", 2.0))
    ]
    statistics = cep.measure_statistics(PATTERN, stream)
    n = statistics.cardinality("n", PATTERN.window.seconds)
    found = surviving_pairs(pd.DataFrame(rows), PATTERN, {"×1": stream}, PLACED)
    assert list(found["cost"]) == ["printed", "repaired"]
    assert list(found["measured"]) == pytest.approx([left / len(pairs)] * 2)
    share = -np.expm1(-n) / n if n else 1.0
    assert list(found["estimated"]) == pytest.approx([0.75, share])
    assert (found["q_error"] >= 1).all() and list(found["speed_up"]) == pytest.approx([3.0, 3.0])
    costs = {
        (cost, name): cep.plan_cost(PATTERN, plan, statistics, cost=cost)["cost"].sum()
        for cost in ("zstream", "zstream-repaired")
        for name, plan in PLACED.items()
    }
    assert found["cost_ratio"].iloc[1] == pytest.approx(
        costs["zstream-repaired", "NEG"] / costs["zstream-repaired", "NSEQ"]
    )


def test_batches_of_every_size_find_the_same() -> None:
    stream = drawn_stream(300, "ABC", seed=3, names=("type", "ts"))
    pattern = cep.parse("PATTERN SEQ(A a, B b, C c) WITHIN 9 units")
    plan = cep.TreePlan((("a", "b"), "c"))
    rows = batch_sizes(pattern, stream, plan, (7, 1_000), ("zstream", "tree"), 2)
    assert len(rows) == 2 * 2 * 2 and rows["matches"].nunique() == 1 and rows["matches"][0] > 0
    assert (rows["latency_mean"] > 0).all() and (rows["events_per_second"] > 0).all()
    assert list(rows["pattern_set"].unique()) == ["7", "1,000"]
    # With a single batch every match waits for all of the work.
    whole = rows[rows["pattern_set"] == "1,000"]
    assert list(whole["latency_mean"] * whole["events_per_second"]) == pytest.approx([300.0] * 4)
    summary = per_engine(rows, lambda own: summarize(own, ["events_per_second", "latency_mean"]))
    assert set(summary["patterns"]) == {2}


def test_runs_that_make_matches_are_an_engine_of_their_own() -> None:
    both = pd.concat([results(PLANS), results(PLANS).assign(output="matches")], ignore_index=True)
    engines = ["zstream", "columnar", "zstream, making matches", "columnar, making matches"]
    assert list(medians(runs_on_streams(both), "events_per_second").columns.unique(0)) == engines


def test_rounds_and_switches_are_read_from_the_runs_of_the_sweep() -> None:
    changes = {"events": 1_800}
    sweep = read_sweep("mei2009/drift", changes={"data": changes, "batch_size": 300})
    made = sweep.generated[""]
    stream = cep.EventStream.from_arrow(made.table(0, made.events), type="name", time="ts")
    ((_, text),) = sweep.config("data").user_patterns
    spec = PatternSpec("user", "user", 4, text, 0)
    grid = replace(sweep.config("data").grid([]), evaluators=["zstream"], repetitions=2)
    statistics = cep.measure_statistics(text, stream)
    results = pd.DataFrame(measure_pattern(spec, stream, statistics, grid))
    assert set(results["status"]) == {OK} and results["matches"].nunique() == 1
    failed = results.head(1).assign(status=REFUSED, details=None)
    results = pd.concat([results, failed])
    rounds, switches = rounds_of(results), switches_of(results)
    assert len(rounds) == 2 * 8 * 6 and set(rounds["repetition"]) == {0, 1}
    assert set(switches["generator"]) <= {ADAPTIVE, "bound", "clairvoyant"}
    assert len(switches) and (switches["position"] > 0).all()
    runs = runs_by(rounds, "segment")
    assert list(runs["pattern_set"].unique()) == [*SEGMENTS, WHOLE]
    own = runs[(runs["generator"] == ADAPTIVE) & (runs["repetition"] == 1)].set_index("pattern_set")
    assert own.at[WHOLE, "events"] == 1_800
    assert own.at[WHOLE, "seconds"] == pytest.approx(own.drop(WHOLE)["seconds"].sum())
    speeds = own["events"] / own["seconds"]
    assert list(own["events_per_second"]) == pytest.approx(list(speeds))
    assert runs_by(rounds, "round")["pattern_set"].nunique() == 6
    both = pd.concat([results, results.assign(output="arrow")])
    assert list(rounds_of(both)["evaluator"].unique()) == ["zstream", "zstream, making matches"]
