"""Contiguity: the neighbour of an event is looked up, however far the window reaches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.pieces import pieces_of
from cepbench.errors import PartialMatchLimitError
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import TreePlan
from cepbench.planning.plans.tree import Tree
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches, found_in
from tests.engines.detection.strategies import Case, plans_for, stream_of
from tests.naive.matcher import labelled_matches


def events(count: int, seed: int) -> pd.DataFrame:
    """Events of which several share a timestamp, in partitions of all sizes, and in none."""
    rng = np.random.default_rng(seed)
    partitions = rng.choice([0.0, 1.0, 2.0, np.nan], count, p=[0.6, 0.28, 0.1, 0.02])
    # And many that soon have no more events.
    short = rng.random(count) < 0.2
    partitions[short] = 3 + np.arange(count)[short] // 60
    return pd.DataFrame(
        {
            "type": rng.choice(list("AB"), count, p=[0.6, 0.4]),
            "time": np.cumsum(rng.choice([0, 1, 2], count, p=[0.2, 0.5, 0.3])),
            "x": rng.choice([0.0, 1.0, 2.0, np.nan], count),
            "s": partitions,
        }
    )


def neighbours(
    frame: pd.DataFrame, kinds: str, strategy: str, window: int
) -> list[tuple[int, ...]]:
    """The positions of events of these types, each the next one and with a greater x than the first."""
    parts = [frame] if strategy == "strict_contiguity" else [p for _, p in frame.groupby("s")]
    found = []
    for part in parts:
        rows = [part.assign(position=part.index).shift(-n) for n in range(len(kinds))]
        holds = rows[-1]["time"] - rows[0]["time"] <= window
        holds &= rows[0]["x"] <= rows[-1]["x"]
        for n, kind in enumerate(kinds):
            holds &= (rows[n]["type"] == kind) | (kind == "?") & rows[n]["type"].notna()
            holds &= (rows[n]["time"] > rows[n - 1]["time"]) if n else True
        found += zip(*(its["position"][holds].astype(int) for its in rows), strict=True)
    return sorted(found)


@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity"])
@pytest.mark.parametrize("kinds", ["??A?", "ABAB", "?A"])
@given(data=st.data())
@examples(2)
def test_every_plan_of_long_streams(kinds: str, strategy: str, data: st.DataObject) -> None:
    frame = events(1_200, data.draw(st.integers(0, 9)))
    window = data.draw(st.sampled_from([5, 60, 10_000]))
    names = "abcd"[: len(kinds)]
    items = (
        f"{'ANY' if kind == '?' else kind} {name}" for kind, name in zip(kinds, names, strict=True)
    )
    chosen = "" if strategy == "strict_contiguity" else "(s)"
    pattern = parse(
        f"PATTERN SEQ({', '.join(items)}) WHERE a.x <= {names[-1]}.x "
        f"STRATEGY {strategy}{chosen} WITHIN {window} units"
    )
    expected = neighbours(frame, kinds, strategy, window)
    assert expected
    stream = stream_of(frame)
    for evaluator in ("tree", "lazy-nfa", "sase"):
        plan = data.draw(plans_for(evaluator, names))
        result = evaluate(pattern, stream, plan, evaluator=evaluator)
        assert sorted(row for _, row in found_in(pattern, result.matches)) == expected
        moved = data.draw(st.sampled_from([0, 2_000]))
        detector, found = Detector(pattern, plan, evaluator=evaluator, position=moved), []
        size = data.draw(st.sampled_from([17, 256, 1_000]))
        at_once, room = data.draw(st.sampled_from([(99, 1), (150, 9), (5_000, 5_000)]))
        with pieces_of(events=at_once, room=room):
            for begin in range(0, len(stream), size):
                found += found_in(pattern, detector.push(stream[begin : begin + size]))
                if data.draw(st.booleans()):
                    detector = Detector.restore(detector.snapshot())
        assert sorted(tuple(its - moved for its in row) for _, row in found) == expected


def rows_of(frame: pd.DataFrame, names: str, strategy: str, window: int) -> pd.DataFrame:
    """Events of ``abc``, each the next one, as far as a node of these variables knows: its first and last time."""
    parts = [frame] if strategy == "strict_contiguity" else [p for _, p in frame.groupby("s")]
    found = []
    for part in parts:
        rows = {n: part.shift("abc".index(names[-1]) - "abc".index(n)) for n in names}
        holds = rows[names[-1]]["time"] - rows[names[0]]["time"] <= window
        for one, other in pairwise(names):
            holds &= rows[one]["time"] < rows[other]["time"]
        if names[-2:] == "bc":
            holds &= rows["b"]["x"] <= rows["c"]["x"]
        first, last = rows[names[0]]["time"][holds], rows[names[-1]]["time"][holds]
        found.append(pd.DataFrame({"first": first, "last": last}))
    return pd.concat(found).sort_values("last", kind="stable")


@pytest.mark.kernel
@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity(s)"])
@pytest.mark.parametrize(
    "shape", [(("a", "b"), "c"), ("a", ("b", "c")), (("a", "c"), "b"), ("b", ("c", "a"))]
)
def test_partial_matches_are_those_of_the_plan(shape: Tree[str], strategy: str) -> None:
    frame, window, seconds = events(150, 3), 20, []
    inner = next("".join(sorted(its)) for its in shape if isinstance(its, tuple))
    pattern = parse(
        f"PATTERN SEQ(ANY a, ANY b, ANY c) WHERE b.x <= c.x STRATEGY {strategy} WITHIN {window} units"
    )
    made = rows_of(frame, inner, strategy.partition("(")[0], window)
    ends = frame["time"].to_numpy()
    # Those with the last event are joined at once, the others wait for it.
    live = (made["last"].to_numpy() <= ends[:, None]) & (
        made["last"].to_numpy() >= ends[:, None] - window
    )
    stored = 0 if "c" in inner else live[np.append(ends[1:] > ends[:-1], True)].sum(axis=1).max()
    waiting = 1 if inner == "ab" else 2
    buffered = waiting * (np.arange(1, 151) - np.searchsorted(ends, ends - window)).max()
    for size in (1, 17, 150):
        detector = Detector(pattern, TreePlan(shape), evaluator="tree", node_times=True)
        for begin in range(0, 150, size):
            detector.push(stream_of(frame)[begin : begin + size])
            detector = Detector.restore(detector.snapshot())
        detector.finish()
        nodes = detector.node_metrics().set_index("variables")
        row = nodes.loc[", ".join(inner)]
        seconds.append(row["seconds"])
        assert row["created"] == len(made) > 20
        spans = (made["last"] - made["first"]).sum()
        mean = (window * len(made) - spans) / (ends[-1] - ends[0])
        assert row["mean_stored"] == pytest.approx(mean)
        assert row["peak_stored"] == detector.metrics().peak_partial_matches == stored
        assert nodes.loc["a", "created"] == len(frame)
        assert detector.metrics().peak_buffered_events == buffered
    assert min(seconds) > 0
    if stored:
        with pytest.raises(PartialMatchLimitError, match=f"most of them over .{', '.join(inner)}"):
            evaluate(
                pattern, stream_of(frame), TreePlan(shape), evaluator="tree",
                partial_match_limit=int(stored) - 1,
            )  # fmt: skip


@pytest.mark.kernel
@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity(s)"])
def test_events_that_do_not_determine_those_before_a_set(strategy: str) -> None:
    """Several pairs of an a and a c have the same c, next to which d is."""
    pattern = parse(f"PATTERN SEQ(A a, KL(A b), A c, A d) STRATEGY {strategy} WITHIN 9 units")
    case = Case(pattern, pd.DataFrame({"type": "A", "time": range(8), "s": 1}))
    expected = labelled_matches(pattern, case.events)
    assert len(expected) == 15
    check(case, expected, TreePlan(((("a", "c"), "d"), "b")), "tree")


def runs_between(frame: pd.DataFrame, strategy: str, window: int) -> list[tuple[object, ...]]:
    """An A, one A or more, each the next one and no earlier, and then a B."""
    parts = [frame] if strategy == "strict_contiguity" else [p for _, p in frame.groupby("s")]
    found: list[tuple[object, ...]] = []
    for part in parts:
        rows = list(part[["type", "time"]].itertuples())
        for first in range(len(rows)):
            last = first + 1
            while last + 1 < len(rows) and rows[last - 1].type == rows[last].type == "A":
                times = [rows[place].time for place in (first, first + 1, last, last + 1)]
                if (
                    times[0] < times[1]
                    and times[2] < times[3] <= times[0] + window
                    and (rows[last + 1].type == "B")
                ):
                    middle = tuple(row.Index for row in rows[first + 1 : last + 1])
                    found.append((rows[first].Index, middle, rows[last + 1].Index))
                last += 1
    return sorted(found)


@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity(s)"])
@pytest.mark.parametrize(
    "shape", [(("a", "b"), "c"), ("c", ("a", "b")), ("a", ("b", "c")), (("a", "c"), "b")]
)
def test_sets_of_long_streams(shape: Tree[str], strategy: str) -> None:
    frame = events(3_000, 5)
    for window in (9, 10_000):
        pattern = parse(f"PATTERN SEQ(A a, KL(A b), B c) STRATEGY {strategy} WITHIN {window} units")
        expected = runs_between(frame, strategy.partition("(")[0], window)
        assert len(expected) > 100
        result = evaluate(pattern, stream_of(frame), TreePlan(shape), evaluator="tree")
        assert sorted(row for _, row in found_in(pattern, result.matches)) == expected


@st.composite
def adjacent(draw: st.DrawFn) -> Case:
    """Sets beside single events, negated ones and one another, or events in any order; in few partitions
    with ties in time.
    """
    in_order = draw(st.sampled_from([True, True, False]))
    offered = ["A {}", "KL(A {})", "KL(ANY {})"] if in_order else ["A {}", "ANY {}"]
    kinds = draw(st.lists(st.sampled_from(offered), min_size=2, max_size=4))
    items = [kind.format(name) for kind, name in zip(kinds, "abcd", strict=False)]
    names = "abcd"[: len(items)]
    if draw(st.booleans()) and in_order:
        items.insert(draw(st.integers(1, len(items) - 1)), "NOT(B n)")
    structure = ", ".join(items)
    if not in_order:
        before = draw(st.integers(0, len(items) - 2))
        structure = ", ".join([*items[:before], f"AND({', '.join(items[before:])})"])
    sets = [name for kind, name in zip(kinds, names, strict=True) if kind.startswith("KL")]
    clauses = [f"{name}[i].x >= {name}[i-1].x" for name in sets if draw(st.booleans())]
    if draw(st.booleans()):
        one, other = draw(st.permutations(names))[:2]
        clauses.append(f"{one}.x <= {other}.x")
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    strategy = draw(st.sampled_from(["strict_contiguity", "partition_contiguity(s)"]))
    order = draw(st.sampled_from(["", "ORDER BY arrival"]))
    count = draw(st.integers(0, 10))
    row = st.tuples(
        st.sampled_from("AAAB"),
        st.integers(0, 1),
        st.sampled_from([0.0, 1.0, 1.0, np.nan]),
        st.sampled_from([1.0, 1.0, 1.0, 2.0, np.nan]),
    )
    rows = draw(st.lists(row, min_size=count, max_size=count))
    frame = pd.DataFrame(rows, columns=["type", "time", "x", "s"])
    frame["type"] = pd.Categorical(frame["type"], categories=["A", "B"])
    frame["time"] = frame["time"].astype("int64").cumsum()
    window = draw(st.sampled_from([3, 7, 60]))
    text = f"PATTERN SEQ({structure}) {where} {order} STRATEGY {strategy} WITHIN {window} units"
    return Case(parse(text), frame)


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", ["tree", "lazy-nfa"])
@given(case=adjacent(), data=st.data())
@examples(20)
def test_neighbours_of_events_and_sets(evaluator: str, case: Case, data: st.DataObject) -> None:
    expected = labelled_matches(case.pattern, case.events)
    plan = data.draw(plans_for(evaluator, case.pattern.positive_names))
    check(case, expected, plan, evaluator)
    sizes = data.draw(st.sampled_from([1, 2, 4]))
    batches = [case.stream[begin : begin + sizes] for begin in range(0, len(case.events), sizes)]
    restored = [data.draw(st.booleans()) for _ in batches]
    check_in_batches(case, expected, plan, evaluator, batches, restored)
