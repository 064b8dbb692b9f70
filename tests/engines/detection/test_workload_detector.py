"""Live workloads: each push gives for every query what a detector of it alone gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.patterns.negations import waits_for_negated
from cepbench.planning.plans.reuse import reuses
from tests.budgets import crossed
from tests.drawn_events import below, drawn_events
from tests.engines.reuse.test_reuse import HIERARCHY, SEQUENCES, TEN, frames, plans


def alone(pattern, **given):
    """A detector of one query."""
    return cep.Detector(pattern.with_hierarchy(HIERARCHY), _written(pattern), **given)


def _written(pattern):
    orders = [cep.OrderPlan(list(branch.planned_names)) for branch in pattern.branches()]
    return orders[0] if len(orders) == 1 else cep.UnionPlan(orders)


@given(plans(), frames(), st.data())
def test_each_push_gives_what_a_detector_of_the_query_gives(plan, frame, data) -> None:
    """With delays, matches come at the end of their window or of the stream at the latest."""
    _check_live(plan, frame, data)


#: Each is above the next; the last two wait for the end of their window.
WAITING = {
    "q1": "SEQ(A a, X c)",
    "q2": "SEQ(A a, C b, X c) WHERE b.x <= c.x",
    "q3": "SEQ(A a, X c, NOT(B n))",
    "q4": "SEQ(NOT(C n), A a, C b, X c, NOT(X m)) WHERE b.x <= c.x AND a.x <= m.x",
}


@given(st.data(), frames())
def test_matches_that_wait_for_a_negated_event_are_reused(data, frame) -> None:
    workload = cep.Workload(
        {query: f"PATTERN {text} WITHIN 5 units" for query, text in WAITING.items()},
        hierarchy=HIERARCHY,
    )
    sources: dict[str, str | None] = {}
    for query in data.draw(st.permutations([*WAITING])):
        fitting = [source for source in sources if [*reuses(workload, source, query)]]
        sources[query] = data.draw(st.sampled_from([*fitting, None]))
    _check_live(cep.WorkloadPlan(workload, sources=sources, delays=True), frame, data)


#: What a live workload counts, too.
REUSE = ("types_tested", "source_matches", "reused", "delta")


def _check_live(plan: cep.WorkloadPlan, frame: pd.DataFrame, data: st.DataObject) -> None:
    frame = frame.reset_index(drop=True)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    try:
        detector = cep.Detector(plan.workload, plan)
    except cep.CepbenchError as error:
        assume("after the end of its window" not in str(error))
        raise
    in_time = True
    try:
        cep.WorkloadPlan(plan.workload, sources=plan.sources, embeddings=plan.embeddings)
    except cep.CepbenchError:
        in_time = False
    solo = {query: alone(its) for query, its in plan.workload.patterns.items()}
    missing = dict.fromkeys(solo)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=3)))
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        batch = stream[start:stop]
        found = detector.push(batch)
        now = frame["time"][stop - 1] if stop else -1
        for query, its in solo.items():
            due = pd.concat([missing[query], its.push(batch)])
            if in_time:
                check_equal(found[query], due)
                continue
            rest = _without(due, found[query])
            firsts = [frame["time"][_first(row)] for row in rest.itertuples(index=False)]
            assert all(t + plan.workload.patterns[query].window.length >= now for t in firsts)
            missing[query] = rest
        if data.draw(st.booleans()):
            detector = cep.Detector.restore(detector.snapshot())
    found = detector.flush()
    for query, its in solo.items():
        check_equal(found[query], pd.concat([missing[query], its.flush()]))
    did, due = detector.metrics().work, cep.evaluate(plan.workload, stream, plan).metrics.work
    assert {did[word] - due[word] for word in ("reused", "delta")} == {0}
    if not cuts and _joined_once(plan, in_time=in_time):
        assert {word: did[word] for word in REUSE} == {word: due[word] for word in REUSE}


def _joined_once(plan: cep.WorkloadPlan, *, in_time: bool) -> bool:
    """Whether a live run joins at once what it is pushed at once.

    At the end of the stream it tries again the sizes of sets, of queries that wait for a negated event, and the
    events beside projections that come late.
    """
    patterns = plan.workload.patterns.values()
    if any(v.is_set for its in patterns for branch in its.branches() for v in branch.positive):
        return in_time and not any(map(waits_for_negated, patterns))
    return in_time or "up" not in {*plan.steps["method"]}


def _first(match: tuple) -> int:
    """The position of the first event of a match, some of whose variables may have several."""
    return min(its if isinstance(its, int) else its[0] for its in match)


def _without(table: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """The rows that were not found; all that were found are among them, once."""
    rows, others = ([*its.itertuples(index=False, name=None)] for its in (table, found))
    assert {*others} <= {*rows} and len({*others}) == len(others)
    return table[np.array([row not in others for row in rows], bool)]


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


STACKED = {
    "q1": "SEQ(A a, X b) WHERE a.x <= b.x",
    "q2": "SEQ(NOT(C n), B a, X b)",
    "q3": "OR(SEQ(B b, C c), SEQ(A a))",
    "q4": "SEQ(X a, C b, NOT(B n))",
    "q5": "SEQ(X a, C b, A c) WHERE a.x = b.x",
}


@given(frames(), st.data())
def test_queries_on_stacks_share_them(frame, data) -> None:
    """Also when queries come and go, and after a restore."""
    stream = cep.EventStream.from_pandas(
        frame.reset_index(drop=True), type="type", time="time", hierarchy=HIERARCHY
    )
    patterns = {
        query: cep.parse(f"PATTERN {text} WITHIN {2 + place} units").with_hierarchy(HIERARCHY)
        for place, (query, text) in enumerate(STACKED.items())
    }
    names = data.draw(st.lists(st.sampled_from([*patterns]), min_size=1, unique=True))
    workload = cep.Workload({query: patterns[query] for query in names}, hierarchy=HIERARCHY)
    stacks = {"evaluator": "hierarchical-stacks"}
    detector = cep.Detector(workload, **stacks)
    solo = {query: cep.Detector(patterns[query], **stacks) for query in names}
    assert len(_stacks_of(detector)) <= 1
    for batch in stream.batches(data.draw(st.integers(1, 4))):
        left = [query for query in patterns if query not in solo]
        if left and data.draw(st.integers(0, 3)) == 0:
            query = data.draw(st.sampled_from(left))
            detector.add(query, patterns[query])
            solo[query] = cep.Detector(patterns[query], position=detector.position, **stacks)
        if len(solo) > 1 and data.draw(st.integers(0, 3)) == 0:
            query = data.draw(st.sampled_from([*solo]))
            detector.remove(query)
            del solo[query]
        if data.draw(st.booleans()):
            detector = cep.Detector.restore(detector.snapshot())
        found = detector.push(batch)
        assert found.keys() == solo.keys()
        for query, its in solo.items():
            check_equal(found[query], its.push(batch))
    found = detector.flush()
    for query, its in solo.items():
        check_equal(found[query], its.flush())


def _stacks_of(detector: cep.Detector) -> set[int]:
    """The stacks of all queries that do not wait."""
    runs = {query: its._run for query, its in detector._run.detectors.items() if query != "q4"}
    return {id(engine._shared) for run in runs.values() for engine in run._on_stacks}


DELAYED = cep.Workload(
    {
        "q1": "PATTERN SEQ(A a, C c) WITHIN 4 units",
        "q2": "PATTERN SEQ(A a, C c, B b) WITHIN 4 units",
        "q3": "PATTERN SEQ(A a, C c, A d) WITHIN 4 units",
        "q4": "PATTERN SEQ(B b, A a, C c) WITHIN 4 units",
    }
)


def test_matches_that_come_at_the_end_of_their_window() -> None:
    plan = cep.WorkloadPlan(
        DELAYED, sources={"q1": "q2", "q2": None, "q3": "q1", "q4": None}, delays=True
    )
    stream = cep.EventStream.from_pandas(
        pd.DataFrame({"type": list("BACABCB"), "time": [0, 1, 2, 3, 4, 6, 7]}),
        type="type",
        time="time",
    )
    detector = cep.Detector(DELAYED, plan)
    found = [detector.push(stream[place : place + 1]) for place in range(7)]
    found.append(detector.flush())
    rows = [[[*its.itertuples(index=False, name=None)] for its in q.values()] for q in found]
    nothing = [[], [], [], []]
    assert rows == [
        nothing, nothing, [[], [], [], [(0, 1, 2)]], nothing, [[], [(1, 2, 4)], [], []],
        [[(1, 2)], [], [(1, 2, 3)], []], [[], [(3, 5, 6)], [], []],
        [[(3, 5)], [], [], []],
    ]  # fmt: skip


def test_a_stream_in_one_push_is_joined_as_a_whole_one_is_and_not_again_at_its_end() -> None:
    """Neither are matches of a source that later events could have extended, nor those of more specific queries."""
    texts = {
        "q1": "SEQ(A a)",
        "q2": "SEQ(A a, B b)",
        "q3": "SEQ(A a, KL(B b)) WHERE b[i-1].x < b[i].x",
        "q4": "AND(A a, A b)",
        "q5": "AND(KL(A a), KL(X b))",
        "q6": "SEQ(A a, B b, NOT(C n))",
        "q7": "SEQ(A a, NOT(C m), B b, NOT(C n))",
    }
    workload = cep.Workload(
        {name: f"PATTERN {text} WITHIN 9 units" for name, text in texts.items()},
        hierarchy=HIERARCHY,
    )
    sources = dict.fromkeys(texts) | {"q2": "q1", "q3": "q1", "q5": "q4", "q6": "q1", "q7": "q2"}
    plan = cep.WorkloadPlan(workload, sources=sources, delays=True)
    events = pd.DataFrame({"type": list("AABBB"), "time": [0, 1, 1, 2, 3], "x": [3.0, 2, 2, 1, 0]})
    stream = cep.EventStream.from_pandas(events, type="type", time="time", hierarchy=HIERARCHY)
    detector = cep.Detector(workload, plan)
    detector.push(stream)
    detector.flush()
    work = detector.metrics().work
    assert work == cep.evaluate(workload, stream, plan).metrics.work
    assert min(work[word] for word in REUSE) > 0


def test_what_a_live_stream_does_not_allow() -> None:
    sources = {"q1": "q2", "q2": None, "q3": None, "q4": "q1"}
    plan = cep.WorkloadPlan(DELAYED, sources=sources, delays=True)
    with pytest.raises(cep.CepbenchError, match=r"query 'q4' .* after the end of its window"):
        cep.Detector(DELAYED, plan)
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
        cep.Detector.restore({**snapshot, "header": snapshot["header"][:-1]})


_PLAIN = {
    "specific": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9 units",
    "general": "PATTERN SEQ(A a, B b) WITHIN 9 units",
    "other": "PATTERN SEQ(A a, C c) WHERE a.y = c.y WITHIN 20 units",
    "above other": "PATTERN SEQ(A a, C c) WITHIN 20 units",
}
_RETURNS = {name: f"{text} RETURN a.x AS u" for name, text in _PLAIN.items()}


def _random(number: int, seed: int, start: int = 0) -> cep.EventStream:
    events = drawn_events(number, "ABC", seed=seed, x=below(9), y=below(9))
    events["time"] += start
    return cep.EventStream.from_pandas(events, type="type", time="time")


def _listed(found):
    return {
        query: its if isinstance(its, int) else sorted(its.values.tolist())
        for query, its in found.items()
    }


@pytest.mark.seeded
@pytest.mark.parametrize(
    ("texts", "removed", "evaluator", "output"),
    crossed(
        [_PLAIN, _RETURNS],
        [["specific"], ["other"], ["specific", "other"], ["general", "specific"], ["above other"]],
        [None, "zstream", "sase", "hierarchical-stacks"],
        ["matches", "count"],
    ),
)
def test_snapshots_after_queries_were_removed(texts, removed, evaluator, output) -> None:
    """Also of sources that nothing is computed from any more."""
    workload = cep.Workload(texts)
    sources = {"specific": "general", "general": None, "other": "above other", "above other": None}
    tree = {query: cep.TreePlan(("a", "b")) for query in ("general",)}
    tree |= {query: cep.TreePlan(("a", "c")) for query in ("above other",)}
    plan = cep.WorkloadPlan(workload, sources=sources, plans=tree if evaluator == "zstream" else {})
    live = cep.Detector(workload, plan, output=output, evaluator=evaluator)
    live.push(_random(30, 1))
    for query in removed:
        live.remove(query)
    again = cep.Detector.restore(live.snapshot())
    for start in (30, 60):
        pushed = _random(30, start, start)
        assert _listed(live.push(pushed)) == _listed(again.push(pushed))
    assert _listed(live.flush()) == _listed(again.flush())


def test_a_removed_query_needs_no_attributes_and_leaves_its_name() -> None:
    workload = cep.Workload(_PLAIN)
    sources = {"specific": "general", "general": None, "other": "above other", "above other": None}
    live = cep.Detector(workload, cep.WorkloadPlan(workload, sources=sources))
    live.push(_random(9, 1))
    live.remove("other")
    live.remove("specific")
    live.add("other", "PATTERN SEQ(B b, C c, A d) WITHIN 5 units RETURN d, b")
    table = _random(9, 2, 9).to_pandas()[["type", "time", "x"]]
    batch = cep.EventStream.from_pandas(table, type="type", time="time")
    due = cep.Detector(
        "PATTERN SEQ(B b, C c, A d) WITHIN 5 units RETURN d, b",
        cep.OrderPlan(["b", "c", "d"]),
        position=9,
    ).push(batch)
    assert sorted(live.push(batch)["other"].values.tolist()) == sorted(due.values.tolist())
    assert len(due)


def test_a_query_that_can_have_no_match_is_restored() -> None:
    """A text of one is refused, but not a pattern made by hand, or by dropping conditions."""
    pattern = cep.parse("PATTERN SEQ(A a, C c) WHERE a.x = c.x WITHIN 4 units")
    other = cep.parse("PATTERN SEQ(A a, C c) WHERE a.x < c.x WITHIN 4 units")
    never = replace(pattern, conditions=(*pattern.conditions, *other.conditions))
    detector = cep.Detector(cep.Workload({"never": never, "q": pattern}))
    detector.push(TEN[:5])
    restored = cep.Detector.restore(detector.snapshot())
    check_equal(restored.push(TEN[5:])["never"], detector.push(TEN[5:])["never"])
