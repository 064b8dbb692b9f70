"""What engines of automata count at edges and states: the moves of every trace, whatever the batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.result import RunCounts
from tests.budgets import examples
from tests.engines.detection.constructs import able, construct_cases
from tests.engines.detection.strategies import Case, batches_of
from tests.engines.sase.test_sase import BOTH, ENGINES, QUERY_3, stock

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("family", BOTH)
@given(data=st.data())
@examples(5)
def test_edges_passed_are_the_moves_of_the_trace(family: str, data: st.DataObject) -> None:
    case = drawn(family, data)
    if case is None:
        return
    batches = data.draw(batches_of(case.stream))
    counted = {name: counts_in_batches(case, name, batches) for name in ENGINES}
    for name, (nodes, _) in counted.items():
        whole = evaluate(case.pattern, case.stream, evaluator=name, output="count", node_times=True)
        if name != "sase-backtrack":  # the suspended runs of a batch are not read again
            counts = ["state", "edge", "tested", "passed"]
            pd.testing.assert_frame_equal(nodes[counts], whole.nodes[counts])
        assert (nodes["passed"] <= nodes["tested"]).all()
        assert nodes["time_share"].isna().all() or nodes["time_share"].sum() == pytest.approx(1)
    if len(case.pattern.branches()) > 1:
        return
    merged, apart = counted["sase"][1], counted["sase-basic"][1]
    assert merged.runs_apart_per_step == pytest.approx(apart.runs_per_step)
    assert not merged.merged_percent < 0
    moves = cep.trace(case.pattern, case.stream).runs
    trace = Counter(zip(moves["move"], moves["state"], strict=True))
    (automaton,) = cep.automaton(case.pattern).parts
    nodes = counted["sase-basic"][0]
    for edge, passed in zip(automaton.edges, nodes["passed"], strict=True):
        if edge.kind != "ignore":  # what the event alone rules out is not tested run by run
            assert passed == trace[edge.kind, automaton.states[edge.target].name]


def drawn(family: str, data: st.DataObject) -> Case | None:
    """A case of one or several automata without NOT, with at least one event."""
    case = data.draw(construct_cases(BOTH[family]))
    if "sase" not in able(case.pattern) or case.pattern.negated or not len(case.stream):
        return None
    return replace(case, pattern=replace(case.pattern, output="all"))


def counts_in_batches(
    case: Case, evaluator: str, batches: list[cep.EventStream]
) -> tuple[pd.DataFrame, RunCounts]:
    """The table of edges and the counts of runs, from a detector that is restored between batches."""
    detector = Detector(case.pattern, evaluator=evaluator, output="count", node_times=True)
    for batch in batches:
        detector.push(batch)
        detector = Detector.restore(detector.snapshot())
    detector.flush()
    runs = detector.metrics().runs
    assert runs is not None
    return detector.node_metrics(), runs


def test_the_edges_of_figure_3() -> None:
    result = evaluate(QUERY_3, stock(), evaluator="sase-basic", node_times=True)
    table = result.nodes.set_index(["state", "edge"])
    assert table["passed"].to_dict() == {
        ("a[1]", "begin"): 2,
        # e2 to e8 by the run that e1 started, e4 and e6 by that of e3, which ignores e5, e7 and e8.
        ("a[i]", "take"): 9,
        ("a[i]", "proceed"): 4,
        ("a[i]", "ignore"): 3,
        ("b", "begin"): 4,
        ("b", "ignore"): 0,
    }
    assert table["tested"].to_dict()[("a[i]", "take")] == 7 + 5
    assert table.loc[("a[i]", "take"), "mean_runs"] == (1 + 1 + 6 * 2) / 8
    assert table.loc[("a[i]", "take"), "peak_runs"] == 2
    unwatched = evaluate(QUERY_3, stock(), evaluator="sase-basic").nodes
    assert unwatched["passed"][1:].isna().all()


@pytest.mark.parametrize("evaluator", ENGINES)
def test_merging_saves_what_it_saves(evaluator: str) -> None:
    text = QUERY_3.replace("avg", "max")
    runs = evaluate(text, stock(), evaluator=evaluator, output="count", node_times=True).runs
    assert runs is not None
    # Figure 6: both runs are one after e4, when each of e5 to e8 is read by one instead of two.
    assert runs.runs_per_step == {"sase": 8, "sase-basic": 12, "sase-backtrack": 16}[evaluator] / 8
    expected = {"sase": 100 / 3, "sase-basic": 0, "sase-backtrack": np.nan}[evaluator]
    assert runs.merged_percent == pytest.approx(expected, nan_ok=True)
    unwatched = evaluate(text, stock(), evaluator="sase", output="count").runs
    assert unwatched is not None and np.isnan(unwatched.merged_percent)
