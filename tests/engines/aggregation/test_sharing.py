"""Queries that share counters have the values that each has alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError, PatternError, UnsupportedPatternError
from tests.naive.aggregates import naive_rows

pytestmark = pytest.mark.kernel


def values_of(sharing: object, queries: dict[str, str], events: str, **columns: list) -> dict:
    """The values after each trigger, by query; events are written as their types, one at each time."""
    workload = cep.Workload({name: f"PATTERN {query}" for name, query in queries.items()})
    frame = pd.DataFrame({"type": [*events], "time": range(len(events))}).assign(**columns)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    if isinstance(sharing, dict):
        sharing = cep.WorkloadPlan(workload, sharing)
    found = cep.aggregate(workload, stream, sharing=sharing)  # type: ignore[call-overload]
    return {name: [row.values for row in its.rows] for name, its in found.rows.items()}


#: Example 6 of the paper: V for view, B for buy.
EXAMPLE_6 = """
    Q1 = SEQ(VKindle, BKindle, VCase, BCase)
    Q2 = SEQ(VKindle, BKindle, VKindleFire)
    Q3 = SEQ(VKindle, BKindle, VCase, BCase, VeBook, BeBook)
    Q4 = SEQ(VKindle, BKindle, VCase, BCase, VLight, BLight)
    Q5 = SEQ(ViPad, VKindleFire, VKindle, BKindle)
"""


def test_the_tree_of_figure_9() -> None:
    """Q1 to Q4 have one table with a row for each VKindle; Q5's end shares it if it is cut."""
    workload = cep.Workload.parse(
        EXAMPLE_6, aggregate="COUNT", within="99 seconds", dialect="a-seq"
    )
    types = [
        "ViPad",
        "VKindleFire",
        "VKindle",
        "BKindle",
        "VCase",
        "BCase",
        "VeBook",
        "VKindleFire",
    ]
    types += ["BeBook", "VLight", "BLight", "BKindle", "VCase", "BCase", "BLight", "BeBook"]
    frame = pd.DataFrame({"type": types, "time": pd.to_datetime(range(16), unit="s")})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    apart = cep.aggregate(workload, stream, "a-seq", sharing="NONE")
    tree = cep.aggregate(workload, stream, "a-seq", sharing="PRETREE")
    cut = cep.aggregate(workload, stream, sharing=cep.WorkloadPlan(workload, {"Q5": (2,)}, True))
    assert apart.values.equals(tree.values)
    assert apart.values.equals(cut.values)
    last = tree.values.groupby("query").COUNT.last()
    assert last.to_dict() == {"Q1": 4, "Q2": 1, "Q3": 2, "Q4": 2, "Q5": 2}
    rows = [its.metrics.peak_objects for its in (apart, tree, cut)]
    # A row for the VKindle, in each of four tables if apart, and one for the ViPad.
    assert rows == [5, 2, 2]
    assert tree.metrics.updates < apart.metrics.updates


def test_snapshots_of_figure_10() -> None:
    """Example 8: when e1 arrives a1 has expired, so that only a2 and d2 connect."""
    types, times = [*"abcabdcade"], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    workload = cep.Workload(
        {"Q": "PATTERN SEQ(a a, b b, c c, d d, e e) AGG COUNT WITHIN < 9 units"}
    )
    frame = pd.DataFrame({"type": types, "time": times})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    live = cep.Aggregator(workload, sharing=cep.WorkloadPlan(workload, {"Q": (3,)}))
    rows = live.push(stream)
    assert rows.COUNT.tolist() == [1]
    # Before a1 expires: a1 and d1 once, a1 and d2 three times, a2 and d2 once.
    early = frame.assign(time=[*range(1, 10), 9.5]).astype({"time": float})
    early["time"] = (2 * early.time).astype(int)
    wider = cep.Workload({"Q": str(workload.patterns["Q"]).replace("< 9", "< 18")})
    found = cep.aggregate(
        wider,
        cep.EventStream.from_pandas(early, type="type", time="time"),
        sharing=cep.WorkloadPlan(wider, {"Q": (3,)}),
    )
    assert found.values.COUNT.tolist() == [5]


def test_chopped_after_three_and_five() -> None:
    """As in Example 9: the snapshots of the third segment are by the first events of the first one."""
    query = "SEQ(A a, B b, C c, D d, E e, F f, G g) AGG COUNT, SUM(d.w), MAX(b.w) WITHIN < 19 units"
    events = "ABCABDCADEFBCDEEFAGFG"
    weights = [*range(len(events))]
    whole = values_of({}, {"Q": query}, events, w=weights)
    assert values_of({"Q": (3, 5)}, {"Q": query}, events, w=weights) == whole
    assert whole["Q"][-1][0] > 0
    workload = cep.Workload({"Q": f"PATTERN {query}"})
    frame = pd.DataFrame({"type": [*events], "time": range(len(events)), "w": weights})
    pattern = workload.patterns["Q"]
    assert {row.values for row in naive_rows(pattern, frame)} == {*whole["Q"]}


@pytest.mark.parametrize("cuts", [{}, {"Q1": (1,), "Q2": (1,)}, {"Q1": (1, 2), "Q2": (1, 2)}])
def test_numbers_beyond_64_bits(cuts: dict[str, tuple[int, ...]]) -> None:
    """2^k - 1 sets, and each element in half of all subsets."""
    k = 70
    tail = "KL(B b), C c) AGG COUNT, COUNT(b), SUM(b.w), SUM(a.w), MIN(b.w) WITHIN 999 units"
    weights = [-7, 3, *range(-60, k - 60), 0]
    queries = {"Q1": f"SEQ(A a, {tail}", "Q2": f"SEQ(D a, {tail}"}
    found = values_of(cuts, queries, "AD" + "B" * k + "C", w=weights)
    sets, half = 2**k - 1, 2 ** (k - 1)
    total = half * sum(weights[2:-1])
    assert found["Q1"] == [(sets, k * half, total, -7 * sets, -60)]
    assert found["Q2"] == [(sets, k * half, total, 3 * sets, -60)]


def test_large_numbers_survive_snapshots() -> None:
    query = "PATTERN SEQ(A a, KL(B b), C c) AGG COUNT, SUM(a.w) WITHIN 999 units"
    workload = cep.Workload({"Q": query})
    plan = cep.WorkloadPlan(workload, {"Q": (1,)})
    frame = pd.DataFrame({"type": [*"A" + "B" * 70 + "CBC"], "time": range(74), "w": 2**62})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    live = cep.Aggregator(workload, sharing=plan)
    live.push(stream[:72])
    live = cep.Aggregator.restore(live.snapshot())
    (row,) = live.take(stream[72:])["Q"]  # type: ignore[call-overload]
    count = 2**70 - 1 + 2**71 - 1
    assert row.values == (count, count * 2**62)
    assert live.value().COUNT.tolist() == [count]


def test_large_numbers_of_a_workload_are_shown_short() -> None:
    workload = cep.Workload({"Q": "PATTERN SEQ(A a, KL(B b), C c) AGG COUNT WITHIN 999 units"})
    frame = pd.DataFrame({"type": [*"A" + "B" * 70 + "C"], "time": range(72)})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    assert "1.1806 × 10²¹" in cep.aggregate(workload, stream)._repr_html_()


@pytest.mark.parametrize("sharing", ["NONE", "PRETREE", "CHOP-CONNECT", "SHARON", "steiner"])
def test_tables_grow(sharing: str) -> None:
    """More active rows than there is room for at first, and rows that expire before and after that."""
    rng = np.random.default_rng(7)
    times = np.append(np.arange(200) * 4, 800 + np.arange(400) // 2)
    frame = pd.DataFrame({"type": rng.choice([*"ABCDE"], 600), "time": times})
    frame["w"] = rng.integers(-9, 9, 600)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    workload = cep.Workload(
        {
            "Q1": "PATTERN SEQ(A a, B b, NOT(E n), C c, D d) AGG COUNT, SUM(c.w) WITHIN 50 units",
            "Q2": "PATTERN SEQ(A a, B b, E c, D d) AGG COUNT, MAX(b.w) WITHIN 20 units",
            "Q3": "PATTERN SEQ(E a, B b, E c, D d) AGG COUNT, AVG(d.w) WITHIN 30 units",
        }
    )
    found = cep.aggregate(workload, stream, sharing=sharing)
    assert found.values.equals(cep.aggregate(workload, stream, "a-seq").values)
    plan = cep.WorkloadPlan(workload, {"Q1": (2, 3), "Q2": (1, 2), "Q3": (1, 2)}, True)
    assert found.values.equals(cep.aggregate(workload, stream, sharing=plan).values)


def test_keys_that_some_queries_lack() -> None:
    """Floats would not tell these integers apart."""
    frame = pd.DataFrame({"type": [*"AABB"], "time": range(4), "k": [2**60, 2**60 + 1] * 2})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    count = "PATTERN SEQ(A a, B b) {} AGG COUNT WITHIN 9 units"
    workload = cep.Workload({"Q1": count.format("GROUP BY k"), "Q2": count.format("")})
    found = cep.aggregate(workload, stream)
    keys = [2**60, None, 2**60 + 1, None]
    assert [None if pd.isna(key) else key for key in found.values["k"]] == keys
    assert found.arrow["k"].to_pylist() == keys


def test_infinite_values() -> None:
    query = "SEQ(A a, B b, C c) AGG SUM(b.w), MAX(b.w), MIN(b.w) WITHIN 9 units"
    # The first B completes nothing.
    found = values_of({"Q": (1,)}, {"Q": query}, "BABCBC", w=[-np.inf, 0, 1.5, 0, -np.inf, 0])
    assert found["Q"] == [(1.5, 1.5, 1.5), (-np.inf, 1.5, -np.inf)]


def test_queries_that_share_nothing_run_alone() -> None:
    queries = {
        "Q1": "SEQ(A a, B b) WHERE a.w < b.w AGG COUNT WITHIN 9 units",
        "Q2": "AND(A a, B b) AGG COUNT WITHIN 9 units",
        "Q3": "SEQ(A a, B b) AGG COUNT WITHIN 9 units",
    }
    for sharing in ("PRETREE", "STEINER"):
        found = values_of(sharing, queries, "ABAB", w=[1, 2, 3, 1])
        assert found == {
            "Q1": [(1,), (1,)],
            "Q2": [(1,), (4,)],
            "Q3": [(1,), (3,)],
        }


COUNTED = cep.Workload(
    {
        "Q1": "PATTERN SEQ(A a, B b, C c) WHERE a.w < c.w AGG COUNT WITHIN 9 units",
        "Q2": "PATTERN SEQ(NOT(D d), A a, B b, C c) AGG COUNT WITHIN 9 units",
        "Q3": "PATTERN SEQ(D a, B b, C c) AGG COUNT WITHIN 9 units",
    }
)
OTHER = cep.WorkloadPlan(cep.Workload({"Q": "PATTERN SEQ(A a) AGG COUNT WITHIN 9 units"}))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"sharing": OTHER}, EvaluationError, "of another workload"),
        ({"sharing": "SHARON"}, EvaluationError, "give cep.plan_workload"),
        ({"sharing": 3}, EvaluationError, "not 3"),
        ({"sharing": cep.WorkloadPlan(COUNTED), "method": "two-step"}, EvaluationError, "a-seq"),
        ({"sharing": cep.WorkloadPlan(COUNTED), "evaluator": "lazy-nfa"}, EvaluationError, "no eval"),
        ({"emit": "never"}, EvaluationError, "query 'Q1': emit is one of"),
    ],
)  # fmt: skip
def test_bad_arguments(options: dict, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        cep.Aggregator(COUNTED, **options)


def test_a_single_pattern_shares_nothing() -> None:
    with pytest.raises(EvaluationError, match="a single pattern shares nothing"):
        cep.Aggregator(COUNTED.patterns["Q3"], sharing=cep.WorkloadPlan(COUNTED))


def test_cut_queries_that_cannot_be_counted() -> None:
    """A pattern with more kinds of events than the flags of one integer tell apart."""
    items = ", ".join(f"NOT(N{k} n{k}), A{k} a{k}" for k in range(40))
    query = f"PATTERN SEQ(A a, {items}) AGG COUNT WITHIN 99 units"
    workload = cep.Workload({"Q": query})
    with pytest.raises(UnsupportedPatternError, match="query 'Q' is cut"):
        cep.Aggregator(workload, sharing=cep.WorkloadPlan(workload, {"Q": (1,)}))
    assert cep.Aggregator(workload, sharing=cep.WorkloadPlan(workload)).method != "a-seq"


def test_workloads_of_different_clocks_and_names() -> None:
    count = "PATTERN SEQ(A a) AGG COUNT WITHIN 9"
    with pytest.raises(PatternError, match="all durations or all"):
        cep.Aggregator(cep.Workload({"Q1": f"{count} units", "Q2": f"{count} seconds"}))
    with pytest.raises(EvaluationError, match="two columns named 'query'"):
        cep.Aggregator(
            cep.Workload({"Q": "PATTERN SEQ(A a) GROUP BY query AGG COUNT WITHIN 9 units"})
        )
    with pytest.raises(PatternError, match="query 'Q': the pattern has no AGG"):
        cep.Aggregator(cep.Workload({"Q": "PATTERN SEQ(A a) WITHIN 9 units"}))


def test_as_many_events_of_a_partition_as_of_a_program_are_not_the_same() -> None:
    """Counts and sums of floats are in two programs, of which one has further events of a partition."""
    frame = pd.DataFrame(
        {
            "type": list("AAADCCDBBDACBAA"),
            "time": [0, 0, 0, 0, 0, 3, 5, 5, 6, 7, 8, 8, 8, 10, 11],
            "x": [0.0, 0, 0, np.nan, 3, 0, 1, 1, np.nan, 0, 3, 2, np.nan, 1, np.nan],
            "s": list("pppppqqppqqppqq"),
        }
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    workload = cep.Workload(
        {
            "counts": "PATTERN SEQ(A a, B b, NOT(D n), C c) WHERE [s] AGG COUNT(a) WITHIN 9 units",
            "sums": "PATTERN SEQ(B a, B b, NOT(D n), C c) WHERE [s] AGG SUM(a.x) WITHIN 9 units",
        }
    )
    plan = cep.WorkloadPlan(workload, cuts={"counts": [1], "sums": [1]})
    shared, alone = (
        cep.aggregate(workload, stream, sharing=its, scope="stream").values for its in (plan, None)
    )
    pd.testing.assert_frame_equal(shared, alone)
    assert alone["SUM(a.x)"].iloc[-1] == 1.0


def test_partitions_that_come_and_go() -> None:
    """Partitions without active events are dropped, and the others numbered anew, whoever is held."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"type": rng.choice([*"ABC"], 120), "time": np.arange(120) // 2})
    frame["x"], frame["k"] = rng.random(120), np.arange(120) // 20 + rng.integers(0, 3, 120)
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    query = "PATTERN SEQ({} a, B b, C c) WHERE [k] AGG COUNT, SUM(b.x) WITHIN 8 units"
    workload = cep.Workload({"Q1": query.format("A"), "Q2": query.format("C")})
    plan = cep.WorkloadPlan(workload, {"Q1": (1,), "Q2": (1,)})
    live = cep.Aggregator(workload, sharing=plan)
    found = pd.concat([live.push(batch) for batch in stream.batches(1)], ignore_index=True)
    expected = cep.aggregate(workload, stream, "a-seq").values
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert expected["COUNT"].max() > 5
    whole = cep.aggregate(workload, stream, sharing=plan).metrics
    assert live.metrics.updates == whole.updates
    # Of one batch, no partition is dropped before its end.
    assert live.metrics.peak_counters < whole.peak_counters
