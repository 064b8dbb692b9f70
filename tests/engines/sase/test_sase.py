"""The automaton engine: the paper's example, exact counts, bounded memory, what it does not do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.plan_runs.programs import COMPARISONS
from cepbench.engines.runs.compressed import CompressedMatches
from cepbench.engines.runs.pieces import pieces_of
from cepbench.errors import PartialMatchLimitError
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches, found_in
from tests.engines.detection.constructs import AUTOMATA, NEXT, able, construct_cases
from tests.engines.detection.strategies import Case, batches_of, event_frames, events_of, stream_of
from tests.naive.automaton import automaton_matches

#: Engines of automata.
ENGINES = ("sase", "sase-basic", "sase-backtrack")

BOTH = AUTOMATA | {f"{family}, next": its for family, its in NEXT.items()}

QUERY_3 = (
    "PATTERN SEQ(S a+, S b) WHERE [symbol] AND a[1].volume > 1000"
    " AND a[i].price > avg(a[..i-1].price) AND b.volume < 0.8 * a[last].volume"
    " STRATEGY next WITHIN 10 units"
)


def stock() -> EventStream:
    """Events e1 to e8 of [agrawal2008]_, Figure 3."""
    columns = {
        "type": "S",
        "time": range(1, 9),
        "symbol": "X",
        "volume": [1010, 990, 1005, 999, 999, 750, 950, 590],
        "price": [100, 120, 120, 121, 120, 125, 120, 120],
    }
    return EventStream.from_pandas(pd.DataFrame(columns), type="type", time="time")


FIGURE_3 = {((0, 1, 2, 3, 4), 5), ((2, 3), 5), ((0, 1, 2, 3, 4, 5, 6), 7), ((2, 3, 5), 7)}
FIGURE_6 = {((0, 1, 3), 5), ((2, 3), 5), ((0, 1, 3, 5), 7), ((2, 3, 5), 7)}


@pytest.mark.parametrize("evaluator", ENGINES)
@pytest.mark.parametrize(
    ("text", "expected", "merged"),
    [(QUERY_3, FIGURE_3, 0), (QUERY_3.replace("avg", "max"), FIGURE_6, 1)],
    ids=["avg", "max"],
)
def test_figure_3_and_figure_6(
    text: str, expected: set[object], merged: int, evaluator: str
) -> None:
    result = evaluate(text, stock(), evaluator=evaluator)
    assert set(result.matches.itertuples(index=False, name=None)) == expected
    assert evaluate(text, stock(), evaluator=evaluator, output="count").metrics.matches == 4
    assert result.runs is not None
    assert result.runs.runs_started == 2
    assert result.runs.runs_merged == (merged if evaluator == "sase" else 0)
    assert result.runs.output_complexity == sum(len(a) + 1 for a, _ in expected)
    assert result.runs.match_length == result.runs.output_complexity / 4
    given = evaluate(text, stock(), automaton(text), evaluator=evaluator)
    assert evaluate(text, stock(), automaton(text)).evaluator == "sase"
    pd.testing.assert_frame_equal(given.matches, result.matches)


@pytest.mark.kernel
@pytest.mark.parametrize("size", [1, 61, 62, 63, 124, 200])
def test_counts_are_exact_at_any_size(size: int) -> None:
    events = stream_of(
        events_of(" ".join(["A@0", *(f"B@{i}" for i in range(1, size + 1)), f"C@{size + 1}"]))
    )
    pattern = parse("PATTERN SEQ(A a, KL(B b), C c) WITHIN 300 units")
    counted = evaluate(pattern, events, evaluator="sase", output="count")
    assert counted.metrics.matches == 2**size - 1
    graph = evaluate(pattern, events, evaluator="sase", output="compressed").compressed
    assert graph.count() == 2**size - 1


@pytest.mark.kernel
def test_wide_counts_expire_by_start() -> None:
    """Histories of several starts; those of a start are subtracted when its window has passed."""
    size, window = 150, 160
    times = ["A@0", "A@5", *(f"B@{i}" for i in range(10, 10 + size)), "C@160", "C@162", "C@166"]
    pattern = parse(f"PATTERN SEQ(A a, KL(B b), C c) WITHIN {window} units")
    for rounds, is_by_runs in ((3, False), (1000, False), (3, True)):
        detector = Detector(pattern, evaluator="sase", output="count", node_times=is_by_runs)
        counts = [
            detector.push(batch) for batch in stream_of(events_of(" ".join(times))).batches(rounds)
        ]
        assert sum(counts) == 2 * (2**size - 1) + (2**size - 1)


@pytest.mark.kernel
@pytest.mark.parametrize("name", ENGINES)
def test_runs_as_old_as_the_window_outlive_the_removal_of_older_ones(name: str) -> None:
    """In full tables, by an event at whose time others still end their matches."""
    events = pd.DataFrame(
        {"type": list("ABAAAAAAAAAC"), "time": [0, 1, *[10] * 10], "x": 0, "s": "u"}
    )
    stream = stream_of(events)
    with pieces_of(room=2):
        live = Detector("PATTERN SEQ(A a, B b, C c) WHERE [s] WITHIN 10 units", evaluator=name)
        found = pd.concat([live.push(stream[at : at + 1]) for at in range(len(stream))])
    assert found[["a", "b", "c"]].to_numpy().tolist() == [[0, 1, 11]]


@pytest.mark.kernel
def test_an_event_that_is_interrupted_before_a_run_as_old_as_the_window() -> None:
    """There is no room for the last root of its matches."""
    events = pd.DataFrame({"type": ["A"] * 4096 + ["B"], "time": range(4097), "x": range(4097)})
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 4096 units"
    assert evaluate(text, stream_of(events), evaluator="sase").metrics.matches == 4096


@pytest.mark.kernel
@pytest.mark.parametrize("strategy", ["any", "next", "partition_contiguity(s)"])
@given(data=st.data())
@examples(3)
def test_keys_that_come_and_go_one_event_at_a_time(strategy: str, data: st.DataObject) -> None:
    """Runs wait in their partition, also those that began with missing values, over ties and restores."""
    keys = data.draw(st.sampled_from(["[s]", "[s] AND [y]"]))
    middle = data.draw(st.sampled_from(["B b", "KL(B b)"]))
    output = data.draw(st.sampled_from(["all", "non_overlap"]))
    pattern = parse(
        f"PATTERN SEQ(A a, {middle}, C c) WHERE {keys} AND c.x >= a.x STRATEGY {strategy} "
        f"OUTPUT {output} WITHIN {data.draw(st.sampled_from([2, 4, 20]))} units"
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    events = pd.DataFrame(
        {
            "type": rng.choice(["A", "A", "B", "C"], 24),
            "time": rng.integers(0, 2, 24).cumsum(),
            "x": rng.integers(0, 2, 24),
            "y": rng.integers(0, 2, 24),
            "s": rng.choice(np.array(["u", "v", "w", None], object), 24),
        }
    )
    case = Case(pattern, events)
    expected = automaton_matches(pattern, events)
    single = [case.stream[at : at + 1] for at in range(len(events))]
    place = data.draw(st.integers(0, 24))
    restored = [at == place for at in range(len(single))]
    with pieces_of(room=data.draw(st.sampled_from([2, 8]))):
        for name in ENGINES:
            check(case, expected, None, name)
            check_in_batches(case, expected, None, name, single, restored)


@pytest.mark.kernel
@given(events=event_frames(("A", "B"), 12))
@examples(4)
def test_a_loop_that_compares_with_its_least_or_greatest_value(events: pd.DataFrame) -> None:
    """An event of which the comparison says that it is neither does not change them."""
    for operator in COMPARISONS:
        for function in ("min", "max"):
            pattern = parse(
                f"PATTERN SEQ(A a+, B b) WHERE a[i].x {operator} {function}(a[..i-1].x) AND "
                f"b.x >= {function}(a.x) STRATEGY next WITHIN 6 units"
            )
            result = evaluate(pattern, stream_of(events), evaluator="sase")
            assert set(found_in(pattern, result.matches)) == automaton_matches(pattern, events)


def rising(events: int, symbols: int) -> EventStream:
    """A stream in which each symbol's price and time rise, and all else repeats itself."""
    columns = {
        "type": "S",
        "time": np.arange(events),
        "symbol": np.arange(events) // 2 % symbols,
        "price": np.arange(events) // 3,
        "volume": np.arange(events) * 37 % 1000,
    }
    return EventStream.from_pandas(pd.DataFrame(columns), type="type", time="time")


@pytest.mark.parametrize("evaluator", ENGINES)
@pytest.mark.parametrize("output", ["count", "arrow"])
@pytest.mark.parametrize("symbols", [2, 10**6], ids=["few partitions", "ever new partitions"])
def test_memory_is_bounded_by_the_window(output: str, symbols: int, evaluator: str) -> None:
    text = (
        "PATTERN SEQ(S a+, S b) WHERE [symbol] AND a[1].price % 5 = 0 AND b.volume < 150"
        " AND a[i].price > a[i-1].price STRATEGY next WITHIN 60 units"
    )
    with pieces_of(events=500):
        peaks = [
            evaluate(
                text, rising(events, symbols), evaluator=evaluator, output=output
            ).metrics.peak_bytes
            for events in (20_000, 80_000)
        ]
    assert peaks[0] == peaks[1]


@pytest.mark.parametrize("evaluator", ["sase", "sase-basic"])
def test_many_runs_are_an_error(evaluator: str) -> None:
    events = stream_of(events_of(" ".join(f"A@{i}" for i in range(50))).assign(x=np.arange(50.0)))
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 99 units")
    with pytest.raises(PartialMatchLimitError, match="runs of the automaton"):
        evaluate(pattern, events, evaluator=evaluator, partial_match_limit=20)


@pytest.mark.kernel
@pytest.mark.parametrize("family", BOTH)
@given(data=st.data())
@examples(3)
def test_graphs_have_the_matches(family: str, data: st.DataObject) -> None:
    """Of a run, or made of listed matches: with NOT, OR over the same variables, and OUTPUT."""
    case = data.draw(construct_cases(BOTH[family]))
    pattern = replace(case.pattern, output=data.draw(st.sampled_from(["all", "non_overlap"])))
    if "sase" not in able(pattern):
        return
    expected = Counter(automaton_matches(pattern, case.events))
    batches = data.draw(batches_of(case.stream))
    for name in ENGINES:
        whole = evaluate(pattern, case.stream, evaluator=name, output="compressed")
        assert whole.metrics.matches == whole.compressed.count() == expected.total()
        assert labelled([whole.compressed]) == expected
        last = [row[-1] for row in whole.compressed.last_events().itertuples(index=False)]
        assert sum(last) == whole.compressed.lengths()["matches"].sum() == expected.total()
        detector = Detector(pattern, evaluator=name, output="compressed")
        pushed = []
        for batch in batches:
            pushed.append(detector.push(batch))
            detector = Detector.restore(detector.snapshot())
        assert labelled([*pushed, detector.flush()]) == expected


def labelled(graphs: list[CompressedMatches]) -> Counter[tuple[int, tuple[object, ...]]]:
    """The matches of some graphs, as :func:`automaton_matches` gives them."""
    return Counter(
        (row.get("branch", 0), tuple(row.get(name) for name in graph.pattern.positive_names))
        for graph in graphs
        for row in graph.enumerate()
    )


@pytest.mark.parametrize("evaluator", ENGINES)
def test_listed_matches_share_their_first_events(evaluator: str) -> None:
    events = stream_of(events_of("A@1 B@2 B@3 C@5 C@6"))
    pattern = "PATTERN SEQ(NOT(D d), A a, KL(B b), C c) WITHIN 9 units"
    graph = evaluate(pattern, events, evaluator=evaluator, output="compressed").compressed
    # a; b and b of the sets {1}, {2} and {1, 2}; c after each of them, twice.
    assert graph.count() == 6 and len(graph.nodes) == 1 + 3 + 6


def test_next_needs_neither_a_plan_nor_an_evaluator() -> None:
    result = evaluate(QUERY_3, stock())
    assert result.evaluator in ("sase", "sase-backtrack")
    assert set(result.matches.itertuples(index=False, name=None)) == FIGURE_3
