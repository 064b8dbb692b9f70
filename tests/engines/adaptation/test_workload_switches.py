"""Changing the plan of a workload changes no match: each push gives what detectors of its queries give."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import AdaptationError, UnsupportedPatternError
from cepbench.planning.plans.reuse import Reuse
from tests.budgets import examples
from tests.engines.detection.test_workload_detector import alone, check_equal
from tests.engines.reuse.test_reuse import HIERARCHY, frames, plan_of, ways_of, workloads
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel

#: Queries that refine none, are computed by themselves, and may wait or depend on all events so far.
OTHERS = {
    "or": "PATTERN OR(SEQ(A a, B b), SEQ(B c, C d)) WITHIN 3 units",
    "kl": "PATTERN SEQ(A a, KL(B b), C c) WITHIN 4 units",
    "late": "PATTERN SEQ(A a, B b, NOT(C n)) WITHIN 3 units",
    "early": "PATTERN SEQ(NOT(C n), A a, B b) WITHIN 3 units",
    "taken": "PATTERN SEQ(A a, B b) STRATEGY consuming WITHIN 3 units",
    "apart": "PATTERN SEQ(A a, A b) OUTPUT non_overlap WITHIN 3 units",
    "returning": "PATTERN SEQ(A a, X b) WITHIN 3 units RETURN b.x AS x, a",
}


@st.composite
def switched(draw: st.DrawFn) -> tuple[cep.Workload, list[cep.WorkloadPlan]]:
    """A workload, and several plans, some with virtual queries."""
    drawn = draw(workloads())
    hidden = {*draw(st.lists(st.sampled_from([*drawn.patterns]), unique=True))}
    if len(hidden) == len(drawn.patterns):
        hidden = set()
    others = draw(st.lists(st.sampled_from([*OTHERS]), unique=True, max_size=2))
    added = {query: replace(cep.parse(OTHERS[query]), order=drawn.order) for query in others}
    queries = {**drawn.patterns, **added}
    whole = cep.Workload(queries, hierarchy=HIERARCHY)
    found = []
    for _ in range(draw(st.integers(2, 3))):
        chosen = draw(ways_of(whole, delays=False))
        plan = plan_of(whole, *_needed(chosen, hidden))
        try:
            cep.Detector(plan.workload, plan)
        except cep.CepbenchError as error:
            if not re.search("on a live stream|cannot be reused", str(error)):
                raise
            plan = cep.WorkloadPlan(plan.workload, sources=dict.fromkeys(plan.workload.patterns))
        found.append(plan)
    return found[0].workload, found


def _needed(chosen: dict[str, Reuse], hidden: set[str]) -> tuple[dict[str, Reuse], set[str]]:
    """The ways that others need, and the hidden queries among them."""
    needed = chosen.keys() - hidden
    pending = [*needed]
    while pending:
        new = {*chosen[pending.pop()].sources} - needed
        needed |= new
        pending += new
    return {query: way for query, way in chosen.items() if query in needed}, needed & hidden


@given(switched(), frames(), st.data())
@examples(5)
def test_forced_switches(drawn, frame, data) -> None:
    workload, plans = drawn
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    how: dict[str, Any] = {
        "policy": "static",
        "initial": plans[0],
        "batch_size": data.draw(st.integers(1, 9)),
        "evaluator": data.draw(st.sampled_from(["tree", "zstream", "hierarchical-stacks"])),
    }
    if any(not its.window.length for its in workload.patterns.values()):
        assume(False)
    try:
        detector = cep.AdaptiveDetector(workload, **how)
    except UnsupportedPatternError:
        detector = cep.AdaptiveDetector(workload, **{**how, "evaluator": None})
    counter = cep.AdaptiveDetector(workload, **{**how, "evaluator": None}, output="count")
    solo = {query: alone(its) for query, its in workload.patterns.items()}
    rows: dict[str, list[Any]] = {query: [] for query in solo}
    counts = dict.fromkeys(solo, 0)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        for event in data.draw(st.lists(st.sampled_from(["switch", "restore"]), max_size=2)):
            if event == "restore":
                detector = cep.AdaptiveDetector.restore(detector.snapshot())
                counter = cep.AdaptiveDetector.restore(counter.snapshot())
            else:
                plan = data.draw(st.sampled_from(plans))
                try:
                    detector.switch(plan)
                    counter.switch(plan)
                except AdaptationError as error:
                    if "of which no values are kept" not in str(error):
                        raise
                    continue
                assert detector.plan == plan
        batch = stream[start:stop]
        found, counted = detector.push(batch), counter.push(batch)
        for query, its in solo.items():
            due = its.push(batch)
            check_equal(found[query], due)
            rows[query] += found[query].itertuples(index=False, name=None)
            counts[query] += counted[query]
            assert counts[query] == len(rows[query])
    found = detector.flush()
    for query, its in solo.items():
        check_equal(found[query], its.flush())
        rows[query] += found[query].itertuples(index=False, name=None)
        assert len(rows[query]) == len({*rows[query]}) or workload.patterns[query].returns
    for query, pattern in workload.patterns.items():
        if query not in OTHERS:
            assert {*rows[query]} == naive_matches(pattern.with_hierarchy(HIERARCHY), frame)
    assert detector.metrics().matches == sum(map(len, rows.values()))


def test_what_both_plans_have_is_taken_over() -> None:
    """Queries computed from scratch in both are not run again, the others on the last windows alone."""
    texts = {
        "q1": "PATTERN SEQ(A a, C c) WHERE a.x < c.x WITHIN 5 units",
        "q2": "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 5 units",
    }
    workload = cep.Workload(texts)
    frame = pd.DataFrame({"type": list("ABC") * 40, "time": range(120), "x": [*range(8)] * 15})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    apart = cep.WorkloadPlan(workload, sources={"q1": None, "q2": None})
    down = cep.WorkloadPlan(workload, sources={"q1": None, "q2": "q1"})
    detector = cep.AdaptiveDetector(workload, initial=apart, policy="static", evaluator="tree")
    detector.push(stream[:100])
    before = detector.metrics()
    detector.switch(down)
    assert detector.metrics().comparisons == before.comparisons > 0
    detector.push(stream[100:])
    between = detector.metrics()
    detector.switch(apart)
    rebuilding = detector.metrics().comparisons - between.comparisons
    assert 0 < rebuilding < before.comparisons / 5
    assert detector.metrics().matches == between.matches > before.matches
    assert detector.switches["reason"].tolist() == ["requested", "requested"]


def test_counted_matches_of_a_chain_go_on_from_what_is_kept() -> None:
    """A source that is computed from another one is kept for queries that need no state of their own."""
    items = ["A a, B b", "A a, B b, C c", "A a, B b, C c, A d"]
    texts = {f"q{n}": f"PATTERN SEQ({its}) WITHIN 12 units" for n, its in enumerate(items)}
    workload = cep.Workload(texts)
    types = list("ABCA" * 15)
    frame = pd.DataFrame({"type": types, "time": range(60)})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    chain = cep.WorkloadPlan(workload, sources={"q0": None, "q1": "q0", "q2": "q1"})
    apart = cep.WorkloadPlan(workload, sources=dict.fromkeys(texts))
    detector = cep.AdaptiveDetector(workload, policy="static", initial=apart, output="count")
    found = [detector.push(stream[:31])]
    detector.switch(chain)
    found += [detector.push(batch) for batch in stream[31:].batches(7)] + [detector.flush()]
    alone = cep.evaluate(workload, stream, output="count")
    assert detector.plan.sources["q2"] == "q1"
    for query, its in alone.items():
        assert sum(each[query] for each in found) == its.metrics.matches > 0
