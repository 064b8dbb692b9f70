"""Live workloads: each push gives for every query what a detector of it alone gives."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from tests.evaluators.test_reuse import HIERARCHY, SEQUENCES, TEN, frames, plans


def alone(pattern, **given):
    """A detector of one query."""
    return cep.Detector(pattern.with_hierarchy(HIERARCHY), _written(pattern), **given)


def _written(pattern):
    orders = [cep.OrderPlan(list(branch.planned_names)) for branch in pattern.branches()]
    return orders[0] if len(orders) == 1 else cep.UnionPlan(orders)


@given(plans(), frames(), st.data())
def test_each_push_gives_what_a_detector_of_the_query_gives(plan, frame, data) -> None:
    frame = frame.reset_index(drop=True)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    try:
        detector = cep.Detector(plan.workload, plan)
    except cep.CepbenchError as error:
        assume("on a live stream" not in str(error))
        raise
    solo = {query: alone(its) for query, its in plan.workload.patterns.items()}
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=3)))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        batch = stream[start:stop]
        found = detector.push(batch)
        for query, its in solo.items():
            check_equal(found[query], its.push(batch))
        if data.draw(st.booleans()):
            detector = cep.Detector.restore(detector.snapshot())
    found = detector.flush()
    for query, its in solo.items():
        check_equal(found[query], its.flush())


def check_equal(found: pd.DataFrame, due: pd.DataFrame) -> None:
    """Equal up to the order of rows."""
    names = list(due.columns)
    assert list(found.columns) == names
    by_all = [table.sort_values(names, ignore_index=True) for table in (found, due)]
    pd.testing.assert_frame_equal(*by_all, check_dtype=False)


TWO = cep.Workload({query: SEQUENCES.patterns[query] for query in ("q1", "q2")})
Q6 = "PATTERN SEQ(A a, C c, A d) WHERE a.x < d.x WITHIN 6 units"


@pytest.mark.parametrize("output", ["matches", "arrow", "count"])
@pytest.mark.parametrize("sources", [("q1", None), (None, "q2"), (None, None)])
def test_every_output_is_that_of_a_detector_of_the_query(output, sources) -> None:
    plan = cep.WorkloadPlan(TWO, sources={"q2": sources[0], "q1": sources[1]})
    detector = cep.Detector(TWO, plan, output=output, position=3)
    assert isinstance(detector, cep.Detector)
    solo = {q: alone(its, output=output, position=3) for q, its in TWO.patterns.items()}
    for batch in TEN.batches(3):
        found = detector.push(batch)
        for query, its in solo.items():
            due = its.push(batch)
            if output == "matches":
                check_equal(found[query], due)
            elif output == "arrow":
                assert found[query].schema == due.schema
                check_equal(found[query].to_pandas(), due.to_pandas())
            else:
                assert found[query] == due
    assert detector.position == 13
    assert detector.metrics().events == 10
    assert detector.metrics().matches == sum(its.metrics().matches for its in solo.values()) > 0


def test_queries_come_and_go_without_touching_the_others(tmp_path) -> None:
    plan = cep.WorkloadPlan(TWO, sources={"q2": "q1", "q1": None})
    detector = cep.Detector(TWO, plan)
    q2 = alone(TWO.patterns["q2"])
    check_equal(detector.push(TEN[:4])["q2"], q2.push(TEN[:4]))
    detector.add("q6", Q6)
    q6 = alone(cep.parse(Q6), position=4)
    # q1 is computed on, for q2.
    detector.remove("q1")
    detector.save(tmp_path / "saved.npz")
    detector = cep.Detector.load(tmp_path / "saved.npz")
    found = detector.push(TEN[4:9])
    assert [*found] == ["q2", "q6"]
    check_equal(found["q2"], q2.push(TEN[4:9]))
    check_equal(found["q6"], q6.push(TEN[4:9]))
    detector.remove("q2")
    assert [*detector.plan.workload.patterns] == ["q6"]
    found = detector.push(TEN[9:])
    check_equal(found["q6"], q6.push(TEN[9:]))
    assert [*detector.flush()] == ["q6"]
    with pytest.raises(cep.CepbenchError, match="was flushed"):
        detector.push(TEN[9:])


def test_what_a_live_stream_does_not_allow() -> None:
    early, late = (
        "PATTERN SEQ(A a, C c) WITHIN 4 units",
        "PATTERN SEQ(A a, C c, B b) WITHIN 4 units",
    )
    workload = cep.Workload({"q1": early, "q2": late})
    plan = cep.WorkloadPlan(workload, sources={"q1": "q2", "q2": None}, delays=True)
    with pytest.raises(cep.CepbenchError, match=r"query 'q1' from 'q2': .* reported late"):
        cep.Detector(workload, plan)
    detector = cep.Detector(TWO)
    detector.push(TEN[5:])
    with pytest.raises(cep.CepbenchError, match="before the last event pushed"):
        detector.push(TEN[:5])
    with pytest.raises(cep.CepbenchError, match=r"query 'q1': .*no attribute 'x'"):
        detector.push(
            cep.EventStream.from_pandas(TEN.to_pandas()[["type", "time"]], type="type", time="time")
        )
    with pytest.raises(cep.CepbenchError, match="has a query 'q1'; remove it first"):
        detector.add("q1", Q6)
    with pytest.raises(cep.CepbenchError, match="query 'q6': "):
        detector.add("q6", "PATTERN SEQ(A a")
    with pytest.raises(cep.CepbenchError, match="cannot remove 'q6'"):
        detector.remove("q6")
    for call in (detector.latency, detector.node_metrics, detector.node_table):
        with pytest.raises(cep.CepbenchError, match="of single patterns"):
            call()
    with pytest.raises(cep.CepbenchError, match="of single patterns"):
        cep.Detector(TWO, latency=True)


def test_a_damaged_snapshot_is_no_detector() -> None:
    snapshot = cep.Detector(TWO).snapshot()
    with pytest.raises(cep.CepbenchError, match="damaged"):
        cep.Detector.restore({**snapshot, "workload": snapshot["workload"][:-1]})
