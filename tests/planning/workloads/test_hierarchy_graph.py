"""E-Cube's graph of the types of a workload, and its stacks: the paper's figures, and random ones."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import HierarchyError, StreamError, UnsupportedPatternError
from cepbench.patterns.model import Kind
from tests.budgets import examples
from tests.naive.hierarchy_graph import naive_edges, naive_stacks
from tests.naive.matcher import naive_matches

#: Figure 2 of [liu2011]; TX, OK and the cities abbreviated as there.
PLACES = cep.ConceptHierarchy(
    {
        "TX": {
            "G": ["GBusStation"],
            "A": ["ABusStation", "AShelter"],
            "D": ["DBusStation"],
        },
        "OK": {"OC": ["OShelter"], "T": ["TBusStation", "TShelter", "THospital"]},
    }
)

#: Figure 1.
QUERIES = """
q1 = SEQ(TX, OK)
q2 = SEQ(D, T)
q3 = SEQ(G, A, T)
q4 = SEQ(G, ¬DBusStation, A)
q5 = SEQ(DBusStation, TBusStation, THospital)
q6 = SEQ(G, A, D, T)
q7 = SEQ(G, ¬D, A, T)
"""
WORKLOAD = cep.Workload.parse(QUERIES, dialect="e-cube", within="48 units", hierarchy=PLACES)

#: The events of Figure 5, and those of its pointers that are printed.
FIGURE_5 = [
    ("GBusStation", 5, "G", {}),
    ("AShelter", 15, "A", {"G": 0}),
    ("AShelter", 18, "A", {"G": 0, "DBusStation": None}),
    ("DBusStation", 23, "DBusStation", {"G": 0, "A": 2}),
    ("TBusStation", 24, "TBusStation", {"DBusStation": 3}),
    ("THospital", 25, "THospital", {"DBusStation": 3, "TBusStation": 4}),
    ("DBusStation", 26, "DBusStation", {"G": 0, "A": 2}),
    ("TShelter", 30, "T", {"G": 0, "A": 2, "DBusStation": 6}),
    ("OShelter", 36, "OK", {"G": 0, "A": 2, "DBusStation": 6}),
]


def stream_of(
    events: pd.DataFrame, hierarchy: cep.ConceptHierarchy | None = None
) -> cep.EventStream:
    return cep.EventStream.from_pandas(events, type="type", time="time", hierarchy=hierarchy)


def test_figure_4() -> None:
    graph = WORKLOAD.graph
    queries = {(row.later, row.earlier): row.queries for row in graph.itertuples()}
    # Example 1, section III-A; edges of q1 go down to all cities.
    assert queries["OK", "TX"] == ("q1",)
    assert queries["OK", "A"] == ("q1",)
    assert queries["T", "TX"] == ("q1",)
    assert queries["A", "G"] == ("q3", "q4", "q6", "q7")
    assert queries["A", "DBusStation"] == ("q4", "q7")
    assert queries["DBusStation", "G"] == ("q4", "q7")
    assert queries["D", "G"] == ("q7",)
    assert queries["D", "A"] == ("q6",)
    assert queries["T", "D"] == ("q1", "q2", "q6")
    assert queries["TBusStation", "DBusStation"] == ("q1", "q2", "q5", "q6")
    assert queries["THospital", "TBusStation"] == ("q5",)
    assert ("G", "A") not in queries
    assert ("D", "T") not in queries
    # The path T → A → D → G has q7 on each edge, but A → D is to find forbidden events.
    labels = {(row.later, row.earlier): row.labels for row in graph.itertuples()}
    assert [*labels["T", "A"]][-1] == ("q7", 3, 2, "+")
    assert labels["A", "D"] == (("q7", 2, 1, "-"),)
    assert labels["D", "G"] == (("q7", 1, 0, "-"),)


def test_figure_5() -> None:
    events = pd.DataFrame([(own, time) for own, time, _, _ in FIGURE_5], columns=["type", "time"])
    stacks = WORKLOAD.stacks(stream_of(events))
    for row, (_, _, stack, printed) in zip(stacks.itertuples(), FIGURE_5, strict=True):
        assert row.stack == stack
        assert printed.items() <= row.pointers.items()
    assert stacks["pointers"][8] == {
        "TX": None, "G": 0, "A": 2, "D": None, "DBusStation": 6,
    }  # fmt: skip


def test_figure_9() -> None:
    """The events in its stacks; q1 reuses what the bus stations give, and pointers to others."""
    cities = cep.ConceptHierarchy({"A": ["ABus", "AShelter", "AHospital"], "OKCity": ["OBus"]})
    workload = cep.Workload(
        {
            "q1": "PATTERN SEQ(A a, OKCity o) WITHIN 48 units",
            "q2": "PATTERN SEQ(ABus a, OBus o) WITHIN 48 units",
        },
        hierarchy=cities,
    )
    types = ["ABus", "AHospital", "ABus", "AShelter", "OBus", "OKCity", "OBus", "OKCity", "OKCity"]
    times = [10, 12, 16, 18, 31, 32, 33, 38, 41]
    events = pd.DataFrame({"type": types, "time": times})
    stacks = workload.stacks(stream_of(events))
    stored = {
        stack: [times[position] for position in its]
        for stack, its in stacks.groupby("stack")["position"]
    }
    assert stored == {"ABus": [10, 16], "A": [12, 18], "OBus": [31, 33], "OKCity": [32, 38, 41]}
    assert [*stacks["pointers"]] == [{}] * 4 + [{"A": 3, "ABus": 2}] * 5
    queries = {(row.later, row.earlier): row.queries for row in workload.graph.itertuples()}
    # Those of q2 are traversed before, the other three for q1 alone.
    assert queries == {
        ("OKCity", "A"): ("q1",), ("OKCity", "ABus"): ("q1",), ("OBus", "A"): ("q1",),
        ("OBus", "ABus"): ("q1", "q2"),
    }  # fmt: skip
    plan = cep.WorkloadPlan(workload, sources={"q1": "q2", "q2": None})
    found = cep.evaluate(workload, stream_of(events), plan, evaluator="hierarchical-stacks")
    step = found.steps.set_index("query").loc["q1"]
    assert (step["reused"], step["delta"]) == (2 * 2, 4 * 5 - 2 * 2)


def test_purge() -> None:
    """By the longest window, and by events that are of no query too."""
    workload = cep.Workload(
        {
            "short": "PATTERN SEQ(A a, B b) WITHIN 1 units",
            "long": "PATTERN SEQ(B b, A a) WITHIN 5 units",
        }
    )
    events = pd.DataFrame({"type": list("ABABE"), "time": [1, 2, 4, 7, 9]})
    stacks = [workload.stacks(stream_of(events[:count])) for count in range(6)]
    assert [[*its["position"]] for its in stacks] == [
        [], [0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3]
    ]  # fmt: skip
    assert [*stacks[4]["pointers"]] == [{"A": None}, {"B": 1}, {"A": 2}]
    assert [*stacks[5]["pointers"]] == [{"B": None}, {"A": 2}]


def test_events_of_no_query_are_not_stored() -> None:
    events = pd.DataFrame({"type": ["A", "USA", "B", "A"], "time": [1, 2, 3, 4]})
    workload = cep.Workload({"q": "PATTERN SEQ(A a, B b) WITHIN 5 units"})
    assert [*workload.stacks(stream_of(events)).itertuples(index=False, name=None)] == [
        (0, "A", {}),
        (2, "B", {"A": 0}),
        (3, "A", {}),
    ]
    part = workload.stacks(stream_of(events)[1:])
    assert [*part["position"]] == [2, 3]
    assert [*part["pointers"]] == [{"A": None}, {}]


def test_items_of_any_type() -> None:
    events = pd.DataFrame({"type": ["A", "B", "A"], "time": [1, 2, 2]})
    workload = cep.Workload({"q": "PATTERN SEQ(ANY x, A a) WITHIN 5 units"})
    assert [*workload.graph[["later", "earlier"]].itertuples(index=False, name=None)] == [
        ("A", "ANY"),
        ("A", "A"),
    ]
    assert [*workload.stacks(stream_of(events))["stack"]] == ["A", "ANY", "A"]


def test_errors() -> None:
    workload = cep.Workload({"q": "PATTERN AND(A a, B b) WITHIN 5 units"})
    with pytest.raises(UnsupportedPatternError, match=r"query 'q': .* is of sequences"):
        workload.graph  # noqa: B018
    other = stream_of(pd.DataFrame({"type": ["A"], "time": [1]}), cep.ConceptHierarchy({"X": []}))
    with pytest.raises(HierarchyError, match="the stream has another concept hierarchy"):
        WORKLOAD.stacks(other)
    with pytest.raises(StreamError):
        WORKLOAD.stacks("a stream")  # type: ignore[arg-type]


# -- random ones ------------------------------------------------------------------------------------

LETTERS = cep.ConceptHierarchy({"X": {"Y": ["A", "B"], "C": []}})
TYPES = ["A", "B", "C", "Y", "X", "D"]


@st.composite
def sequences(draw: st.DrawFn) -> str:
    """A SEQ without a negated item at its end, which would be decided later."""
    items = draw(st.lists(st.tuples(st.sampled_from(TYPES), st.booleans()), max_size=3))
    items.append((draw(st.sampled_from(TYPES)), False))
    texts = [
        f"NOT({type_} v{place})" if negated else f"{type_} v{place}"
        for place, (type_, negated) in enumerate(items)
    ]
    return f"PATTERN SEQ({', '.join(texts)}) WITHIN {draw(st.integers(3, 6))} units"


workloads = st.lists(sequences(), min_size=1, max_size=3).map(
    lambda texts: cep.Workload(
        {f"q{number}": text for number, text in enumerate(texts)}, hierarchy=LETTERS
    )
)
tables = st.lists(
    st.tuples(st.sampled_from([*TYPES, "E"]), st.integers(0, 7)), min_size=1, max_size=9
).map(lambda rows: pd.DataFrame(sorted(rows, key=lambda row: row[1]), columns=["type", "time"]))


@examples(20)
@given(workload=workloads, events=tables)
def test_graph_and_stacks(workload: cep.Workload, events: pd.DataFrame) -> None:
    edges = {
        (row.later, row.earlier, label.query, label.later, label.earlier)
        for row in workload.graph.itertuples()
        for label in row.labels
    }
    assert edges == naive_edges(workload.patterns, LETTERS)
    stacks = workload.stacks(stream_of(events))
    assert [*stacks.itertuples(index=False, name=None)] == naive_stacks(
        workload.patterns, LETTERS, events
    )
    by_event = [workload.stacks(stream_of(events[: n + 1])) for n in range(len(events))]
    for name, pattern in workload.patterns.items():
        found = {
            match
            for position, at in enumerate(by_event)
            for match in constructed(name, workload, at, events, position)
        }
        assert found == naive_matches(pattern, events)


def constructed(
    query: str, workload: cep.Workload, stacks: pd.DataFrame, events: pd.DataFrame, newest: int
) -> Iterator[tuple[int, ...]]:
    """WinSeq, section III-C: the matches of a query that an event ends, depth first along pointers."""
    items = workload.patterns[query].variables
    window = workload.patterns[query].window.length
    node_of = dict(zip(stacks["position"], stacks["stack"], strict=True))
    pointers_of = dict(zip(stacks["position"], stacks["pointers"], strict=True))
    time = events["time"]
    labelled = {
        (row.later, row.earlier, label.later, label.earlier): label.sign
        for row in workload.graph.itertuples()
        for label in row.labels
        if label.query == query
    }

    def reached(position: int, later: int, earlier: int, sign: str) -> Iterator[int]:
        """The events up to the pointers of an event, along edges with a label."""
        for stack, last in pointers_of[position].items():
            if (
                last is not None
                and labelled.get((node_of[position], stack, later, earlier)) == sign
            ):
                yield from (p for p, own in node_of.items() if own == stack and p <= last)

    def extended(place: int, position: int, bound: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        oldest = time[bound[-1] if bound else position] - window
        if time[position] < oldest:
            return
        bound = (position, *bound)
        before = [earlier for earlier in range(place) if items[earlier].kind is not Kind.NEGATED]
        negated = range(before[-1] + 1 if before else 0, place)
        forbidden = [time[p] for n in negated for p in reached(position, place, n, "-")]
        if not before:
            if all(each < oldest for each in forbidden):
                yield bound
            return
        for previous in reached(position, place, before[-1], "+"):
            if not any(time[previous] < each for each in forbidden):
                yield from extended(before[-1], previous, bound)

    last = len(items) - 1
    types = (
        [items[last].type] if items[last].type not in LETTERS else LETTERS.below(items[last].type)
    )
    if events["type"][newest] in types:
        yield from extended(last, newest, ())
