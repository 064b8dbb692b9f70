"""ZStream's engine: trees, sizes of rounds and pushes, and its rounds against the paper's figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.zstream.engine import ZStreamEngine
from cepbench.errors import PartialMatchLimitError, StreamError
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan
from cepbench.streams.event_stream import EventStream
from tests.budgets import only_compiled
from tests.drawn_events import drawn_events, uniform
from tests.engines.detection.strategies import (
    batches_of,
    event_frames,
    events_of,
    stream_of,
    tree_plans,
    with_all_records,
)
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel


def found_by(
    text: str, tree: Any, events: pd.DataFrame, output: str = "matches", **options: object
) -> Any:
    """The result of one evaluation."""
    return evaluate(
        parse(f"PATTERN {text}"), stream_of(events), TreePlan(tree),
        evaluator="zstream", output=output, options=options,
    )  # fmt: skip


def engine_after(
    text: str, tree: Any, events: pd.DataFrame, *, reports: bool = True
) -> ZStreamEngine:
    """An engine after one batch."""
    pattern = parse(f"PATTERN {text}")
    task = replace(BranchTask.of_one(pattern, tree, reports=reports), limit=10**6)
    engine = ZStreamEngine(task, batch_size=1 << 16, hashing=True, as_given=False)
    engine.run(stream_of(events), 0, ended=False)
    return engine


def test_figure_5() -> None:
    """A;!B;C: b3 negates c5, so that of a1 and a4 only a4 is left; and it is one bound of rows."""
    events = events_of("A@1 B@2 B@3 A@4 C@5")
    for text in ("SEQ(A a, NOT(B b), C c)", "SEQ(A a, C c)"):
        result = found_by(f"{text} WITHIN 10 units", ("a", "c"), events)
        pairs = [[3, 4]] if "NOT" in text else [[0, 4], [3, 4]]
        assert result.matches.to_numpy().tolist() == pairs


@pytest.mark.parametrize("condition", ["n.x > c.x", "n.x > a.x"])
def test_a_negation_tied_to_one_neighbour_makes_no_record(condition: str) -> None:
    """NSEQ on either side: the join tests no pair of positive events."""
    events = pd.DataFrame(
        {"type": list("ANANCNC"), "time": range(1, 8), "x": [3.0, 2, 1, 4, 3, 5, 1]}
    )
    text = f"SEQ(A a, NOT(N n), C c) WHERE {condition} WITHIN 10 units"
    expected = naive_matches(parse(f"PATTERN {text}"), events)
    result = found_by(text, ("a", "c"), events)
    assert {tuple(row) for row in result.matches.to_numpy().tolist()} == expected
    assert 0 < result.metrics.comparisons <= 4


def test_a_negation_on_top_is_asked_for_every_record() -> None:
    events = events_of("A@1 B@2 B@3 A@4 C@5")
    pattern = "PATTERN SEQ(A a, NOT(B b), C c) WITHIN 10 units"
    for placements, asked in (({}, 0), ({"b": ("c",)}, 0), ({"b": ("a", "c")}, 2)):
        plan = TreePlan(("a", "c"), placements=placements)
        result = evaluate(pattern, stream_of(events), plan, evaluator="zstream")
        assert result.matches.to_numpy().tolist() == [[3, 4]]
        assert result.metrics.comparisons == asked


def test_rounds_without_a_final_event_are_idle() -> None:
    """Section 4.3: events gather until a c comes; what began before its window is not joined."""
    events = events_of("A@1 B@2 A@3 B@4 A@11 B@12 C@13 A@14")
    result = found_by("SEQ(A a, B b, C c) WITHIN 5 units", (("a", "b"), "c"), events, batch_size=2)
    assert result.matches.to_numpy().tolist() == [[4, 5, 6]]
    details = result.metrics.details
    assert details == {"idle_rounds": 3, "assembly_rounds": 1}
    # Of the pairs of a and b only the one within the window of c.
    assert result.metrics.partial_matches_created == 1


@only_compiled
def test_rounds_that_make_many_records_are_cut() -> None:
    events = drawn_events(900, "ABC", seed=2, x=uniform)
    text = "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 60 units"
    tree = (("a", "b"), "c")
    whole = found_by(text, tree, events)
    with pieces_of(matches=2000):
        cut = found_by(text, tree, events)
    assert cut.metrics.details["assembly_rounds"] > whole.metrics.details["assembly_rounds"] == 1
    pd.testing.assert_frame_equal(cut.matches, whole.matches)


@pytest.mark.parametrize("tree", [(("a", "b"), "c"), ("a", ("b", "c"))])
def test_long_ranges_of_which_all_events_join(tree: Any) -> None:
    events = events_of(" ".join(f"{'ABC'[i // 20]}@{i}" for i in range(18, 60)))
    found = found_by("SEQ(A a, B b, C c) WITHIN 99 units", tree, events).matches
    expected = product(range(2), range(2, 22), range(22, 42))
    assert sorted(found.itertuples(index=False, name=None)) == [*expected]


def test_counting_by_words_of_bits() -> None:
    """Without running counts, and in ranges of more than two words."""
    events = drawn_events(600, "ABC", seed=3, x=uniform)
    text = "SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 580 units"
    counted = []
    for tree in (("a", ("b", "c")), (("a", "b"), "c")):
        for room in (inf, 0):
            with pieces_of(room=room):
                counted.append(found_by(text, tree, events, "count").metrics.matches)
    plan = OrderPlan(["a", "b", "c"])
    expected = evaluate(f"PATTERN {text}", stream_of(events), plan, output="count")
    assert set(counted) == {expected.metrics.matches}


@given(data=st.data())
def test_any_negation_and_pair_on_the_right(data: st.DataObject) -> None:
    """Weights, bushy plans along another one, and NEG as ranges: however few events a round has.

    Matches are listed in chunks of a few.
    """
    order = data.draw(st.permutations("abcd").map("".join))
    operator = data.draw(st.sampled_from(["SEQ", "AND"]))
    items = ", ".join(f"{name.upper()} {name}" for name in order)
    if operator == "SEQ" and data.draw(st.booleans()):
        items = items.replace(", ", ", NOT(N n), ", 1)
    pairs = data.draw(st.lists(st.sampled_from(["ab", "ac", "bc", "bd", "cd", "an"]), max_size=3))
    tests = [f"{pair[0]}.x < {pair[1]}.x" for pair in pairs if pair != "an" or "NOT" in items]
    where = f"WHERE {' AND '.join(tests)} " if tests else ""
    text = f"{operator}({items}) {where}WITHIN 6 units"
    x, y, z, w = tuple(order)
    trees: list[Any] = [((x, y), (z, w)), (((x, y), z), w), (x, (y, (z, w))), (x, ((y, z), w))]
    tree = data.draw(st.sampled_from(trees))
    count = data.draw(st.integers(0, 18))
    kinds = data.draw(st.permutations("abcdn" * 5))[:count] + list("abcdn")
    gaps = data.draw(st.lists(st.integers(0, 2), min_size=count + 5, max_size=count + 5))
    values = data.draw(st.lists(st.integers(0, 3), min_size=count + 5, max_size=count + 5))
    events = pd.DataFrame(
        {
            "type": [kind.upper() for kind in kinds],
            "time": np.cumsum(gaps),
            "x": np.array(values, float),
        }
    )
    events.loc[events["x"] == 0, "x"] = np.nan
    placements = {"n": tuple(order)} if "NOT" in items and data.draw(st.booleans()) else {}
    plan = TreePlan(tree, placements=placements)
    pattern = parse(f"PATTERN {text}")
    matches = naive_matches(pattern, events)
    expected = len(matches)
    for size, room, output in product((1, 5, 100), (0, inf), ("matches", "count")):
        with pieces_of(matches=3, room=room):
            result = evaluate(
                pattern, stream_of(events), plan, evaluator="zstream", output=output,
                options={"batch_size": size},
            )  # fmt: skip
        assert result.metrics.matches == expected
        if output == "matches":
            listed = [tuple(row) for row in result.matches.to_numpy().tolist()]
            assert len(listed) == expected
            assert set(listed) == matches
    detector = Detector(pattern, plan, evaluator="zstream", output="count")
    stream, found = stream_of(events), 0
    for batch in stream.batches(data.draw(st.integers(1, len(stream)))):
        found += detector.push(batch)
        detector = Detector.restore(detector.snapshot())
    assert found + detector.flush() == expected
    tree_run = evaluate(pattern, stream_of(events), plan, evaluator="tree", output="count")
    assert result.metrics.partial_matches_created <= tree_run.metrics.partial_matches_created


@pytest.mark.parametrize("rare", ["AB", "CD"])
def test_of_two_pairs_the_rarer_one_is_made(rare: str) -> None:
    """The metrics are those of the plan, whichever pair is only counted; so is the node table."""
    rng = np.random.default_rng(5)
    chances = [0.05 if kind in rare else 0.45 for kind in "ABCD"]
    events = pd.DataFrame({"type": rng.choice(list("ABCD"), 600, p=chances), "time": range(600)})
    events["x"] = rng.random(600)
    # Without two conditions that share no variable, matches are counted without any record.
    text = "SEQ(A a, B b, C c, D d) WHERE a.x < b.x AND c.x < d.x WITHIN 40 units"
    tree = (("a", "b"), ("c", "d"))
    made = found_by(*with_all_records(text, tree, events))
    for output in ("count", "matches"):
        found = found_by(text, tree, events, output)
        assert found.metrics.matches == made.metrics.matches > 0
        columns = ["variables", "created", "mean_stored"]
        pd.testing.assert_frame_equal(found.nodes[columns], made.nodes[columns])
        chosen = engine_after(text, tree, events, reports=output == "matches")
        assert chosen.operators.names[-2] == tuple("abcd".replace(rare.lower(), ""))
    pd.testing.assert_frame_equal(found.matches, made.matches)


@given(data=st.data())
def test_either_event_of_a_pair_is_the_outer_one(data: st.DataObject) -> None:
    """Counted or listed, in rounds and pushes of any size, with negations as ranges or as filters."""
    items, placements = data.draw(
        st.sampled_from(
            [
                ("SEQ(A a, B b)", None),
                ("AND(A a, B b)", None),
                ("SEQ(A a, NOT(C c), B b)", None),
                ("SEQ(A a, NOT(C c), B b)", {"c": ("a", "b")}),
            ]
        )
    )
    events = data.draw(event_frames("ABC", most=14))
    # By the first batch the event of the other type is chosen, as the rarer one.
    common = data.draw(st.sampled_from("AB"))
    before = events_of(" ".join([f"{common}@0"] * 15)).assign(x=0.0, y=0, s="p")
    events = pd.concat([before, events.assign(time=events["time"] + 99)], ignore_index=True)
    events["type"] = events["type"].astype(str)
    pattern = parse(f"PATTERN {items} WITHIN 5 units")
    plan = TreePlan(("a", "b"), placements=placements)
    size = data.draw(st.sampled_from([1, 3, 100]))
    stream = stream_of(events)
    batches = [stream[:15], *data.draw(batches_of(stream[15:]))]
    for output in ("matches", "count"):
        detector = Detector(
            pattern, plan, evaluator="zstream", output=output, options={"batch_size": size}
        )
        for batch in batches:
            detector.push(batch)
        detector.flush()
        assert detector.metrics().matches == len(naive_matches(pattern, events))


def test_the_outer_event_is_the_rarer_one() -> None:
    for common, outer in (("A", "b"), ("B", "a")):
        events = events_of(" ".join(f"{kind}@1" for kind in f"AABB{common * 5}"))
        its = engine_after("SEQ(A a, B b) WITHIN 5 units", ("a", "b"), events)
        assert its.layout.leaves[its.operators.joins[0].outer].name == outer


def test_a_limit_that_no_cut_can_keep() -> None:
    events = events_of(" ".join(["A@1"] * 70 + ["B@2"] * 70 + ["C@3"]))
    with pytest.raises(PartialMatchLimitError, match=r"more than 100 partial matches.*\(a, b\)"):
        evaluate(
            "PATTERN AND(A a, B b, C c) WITHIN 5 units", stream_of(events),
            TreePlan((("a", "b"), "c")), evaluator="zstream", partial_match_limit=100,
        )  # fmt: skip


@given(data=st.data())
def test_equalities_are_closed_transitively(data: st.DataObject) -> None:
    """Any equalities of four variables, along any tree, where the plan joins any two of them first."""
    values = [f"{name}.{column}" for name in "abcd" for column in "xy"]
    pairs = st.tuples(st.sampled_from(values), st.sampled_from(values))
    drawn = data.draw(st.lists(pairs.filter(lambda two: two[0][0] != two[1][0]), max_size=4))
    operator = data.draw(st.sampled_from(["SEQ", "AND"]))
    where = " AND ".join(["a.y = b.y", "b.y = c.y", *(f"{x} = {y}" for x, y in drawn)])
    pattern = parse(f"PATTERN {operator}(A a, B b, A c, B d) WHERE {where} WITHIN 6 units")
    events = data.draw(event_frames("AB", most=14)).assign(y=lambda frame: frame["y"] % 2)
    result = evaluate(
        pattern, stream_of(events), data.draw(tree_plans(pattern.names)), evaluator="zstream"
    )
    found = {tuple(row) for row in result.matches.to_numpy().tolist()}
    assert len(result.matches) == len(found)
    assert found == naive_matches(pattern, events)


def test_a_batch_with_an_error_leaves_nothing_behind() -> None:
    """A value too large to compare exactly, found once events of other variables are read."""
    frame = pd.DataFrame({"type": list("ABB"), "time": range(3), "y": [1, 2**60, 2]})
    detector = Detector(
        "PATTERN SEQ(A a, B b) WHERE a.y < b.y WITHIN 9 units", TreePlan(("a", "b")),
        evaluator="zstream", output="count",
    )  # fmt: skip
    with pytest.raises(StreamError, match=r"row 1: 'y' is 1152921504606846976, too large"):
        detector.push(stream_of(frame))
    frame["y"], frame["time"] = [1, 3, 2], [2, 3, 4]
    assert detector.push(stream_of(frame)) == 2
    assert detector.node_metrics()["created"].tolist() == [1, 2, 2]


@pytest.mark.parametrize("room", [None, 30])
@pytest.mark.parametrize("kept", [False, True])
def test_rounds_go_on_while_few_events_are_bound(room: int | None, kept: bool) -> None:
    """Over many steps, of which each needs room, and begun again with fewer events if there are too many records."""
    rng = np.random.default_rng(1)
    kinds = rng.choice([*"ABCXYZUVW"], 4_000)
    frame = pd.DataFrame({"type": kinds, "time": range(4_000), "x": rng.random(4_000)})
    stream = EventStream.from_pandas(frame, type="type", time="time")
    if kept:
        stream.indexed()
    pattern = parse(
        "PATTERN SEQ(A a, NOT(X n), B b, C c) WHERE a.x < 0.4 AND n.x < 0.2 AND b.x < 0.2 WITHIN 90 units"
    )
    plan = TreePlan((("a", "b"), "c"))
    expected = evaluate(pattern, stream, plan, evaluator="tree")
    with pieces_of(**({} if room is None else {"matches": room})):
        options = {"batch_size": 200}
        found = evaluate(pattern, stream, plan, evaluator="zstream", options=options)
        fresh = evaluate(
            pattern, stream.with_hierarchy(None), plan, evaluator="zstream", options=options
        )
        given = evaluate(
            pattern, stream, plan, evaluator="zstream", options={**options, "as_given": True}
        )
    assert len(expected.matches) > 500
    assert found.matches.equals(expected.matches) and given.matches.equals(expected.matches)
    rounds = [sum(its.metrics.details.values()) for its in (found, given)]
    # The same rounds, though their steps are found at once where rows by type are kept.
    assert fresh.metrics.details == found.metrics.details
    assert fresh.nodes.equals(found.nodes)
    assert rounds[0] < rounds[1] and given.metrics.details["assembly_rounds"] >= 20
    # Each event is counted once, however often a round was begun again.
    leaves = [
        its.nodes.set_index("variables")["created"][["a", "b", "c"]] for its in (found, given)
    ]
    assert leaves[0].equals(leaves[1])
