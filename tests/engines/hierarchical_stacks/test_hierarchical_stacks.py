"""Hierarchical stacks: pointers by hand, and matches with any rounds and several queries at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.task_runs import run_tasks
from cepbench.engines.detection.tasks import task_for
from cepbench.engines.hierarchical_stacks.engine import SharedStacks
from cepbench.engines.hierarchical_stacks.kernels import sequences, stacks
from cepbench.engines.runs.pieces import pieces_of
from cepbench.engines.runs.protocol import Arguments, Task
from cepbench.kernels import counts
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from tests.budgets import only_compiled
from tests.engines.detection.strategies import batches_of, event_frames, events_of, stream_of
from tests.engines.detection.test_metrics import steady_events
from tests.naive.matcher import naive_matches

pytestmark = pytest.mark.kernel


def shared_by(several: Sequence[Pattern]) -> SharedStacks:
    shared = SharedStacks()
    shared.add(several, reports=True)
    return shared


def advanced(shared: SharedStacks, batch: EventStream, position: int = 0) -> list[list[Any]]:
    """The matches of each query in a batch."""
    shared.advance(batch if len(batch) else None, position)
    rows = []
    for found in shared.found:
        (matches,) = found.matches
        assert matches is not None and found.number == len(matches)
        rows.append(matches.rows())
    return rows


def patterns(*texts: str) -> list[Pattern]:
    return [parse(f"PATTERN {text}") for text in texts]


def rows_of(shared: SharedStacks) -> dict[int, int]:
    """The row of each stored event, by its position."""
    held = shared.stacks
    rows = [
        row
        for origin, size in zip(held.origins.tolist(), held.sizes.tolist(), strict=True)
        for row in range(origin, origin + size)
    ]
    return {int(held.events.positions[row]): row for row in rows}


def pointers_of(shared: SharedStacks, label: int = 0) -> dict[int, dict[str | None, int | None]]:
    """For each event, by position, the position to which it points in each stack."""
    held, places = shared.stacks, shared.layout.graph.places[label]
    found: dict[int, dict[str | None, int | None]] = {}
    for position, row in rows_of(shared).items():
        its = found[position] = {}
        for target, name in enumerate(shared.layout.stacks):
            place = places[held.events.stacks[row], target]
            if place >= 0:
                number = held.pointers[place, row]
                other = held.events.positions[held.origins[target] + number]
                its[name] = int(other) if number >= 0 else None
    return found


def test_stacks_by_hand() -> None:
    """As in Figure 5 of [liu2011]_: every event once, a pointer an edge, whatever the queries."""
    queries = patterns(
        "SEQ(D d, T t) WITHIN 48 units",
        "SEQ(G g, A a, T t) WITHIN 48 units",
        "SEQ(G g, NOT(D d), A a) WITHIN 48 units",
        "SEQ(G g, A a, D d, T t) WITHIN 48 units",
    )
    shared = shared_by(queries)
    kinds = ["G", "X", "A", "A", "D", "T", "D", "T", "G"]
    events = pd.DataFrame({"type": kinds, "time": [5, 7, 15, 18, 23, 24, 26, 26, 30]})
    found = advanced(shared, stream_of(events))
    assert pointers_of(shared) == {
        0: {}, 8: {},
        2: {"G": 0, "D": None}, 3: {"G": 0, "D": None},
        4: {"A": 3}, 6: {"A": 3},
        # The event of type D at the same time is not before it.
        5: {"D": 4, "A": 3}, 7: {"D": 4, "A": 3},
    }  # fmt: skip
    assert [len(rows) for rows in found] == [2, 4, 2, 4]
    assert int(shared.stacks.sizes.sum()) == len(events) - 1


def test_keyed_pointers_by_hand() -> None:
    """They lead to the last earlier event with the value, and from there to those before."""
    events = events_of("A@1 A@2 A@3 A@3 B@3 B@4 B@5 B@6").assign(k=[1, 2, None, 1, 1, 2, 1, None])
    (query,) = patterns("SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 units")
    shared = shared_by([query])
    (found,) = advanced(shared, stream_of(events))
    assert pointers_of(shared, label=1) == {
        0: {}, 1: {}, 2: {}, 3: {}, 4: {"A": 0}, 5: {"A": 1}, 6: {"A": 3}, 7: {"A": None}
    }  # fmt: skip
    assert sorted(found) == [(0, 4), (0, 6), (1, 5), (3, 6)]


#: Events of type D are at a level above those of A and B.
CONCEPTS = ConceptHierarchy({"D": {"P": ["A", "B"]}})


@given(data=st.data())
def test_several_queries_on_one_set_of_stacks(data: st.DataObject) -> None:
    """Whatever windows and levels, each has its own matches, batch by batch, also after a restore."""
    texts = st.sampled_from([
        "SEQ(A a, B b) WHERE a.x < b.x WITHIN 3 units",
        "SEQ(A a, B b) WHERE a.x > 0 AND a.y = b.y WITHIN 9 units",
        "SEQ(A a, NOT(C n), B b) WHERE n.y = a.y WITHIN 20 units",
        "SEQ(NOT(B n), A a, A b, C c) WHERE a.s = c.s WITHIN 6 units",
        "SEQ(ANY a, C c) WHERE c.y = a.x WITHIN 2 units",
        "SEQ(C c) WHERE c.x > 1 WITHIN 1 units",
        "SEQ(P p, C c, D d) WITHIN 8 units",
        "SEQ(D d, NOT(P n), P p) WHERE d.y = p.y AND p.x > 0 WITHIN 9 units",
        "SEQ(NOT(D n), A a, P p, ANY c) WHERE n.s = p.s AND a.x < c.x WITHIN 7 units",
    ])  # fmt: skip
    several = [
        pattern.with_hierarchy(CONCEPTS)
        for pattern in patterns(*data.draw(st.lists(texts, min_size=1, max_size=4)))
    ]
    events = data.draw(event_frames("ABCD", most=18))
    shared = shared_by(several)
    found: list[list[tuple[Any, ...]]] = [[] for _ in several]
    left = [*range(len(several))]
    position = 0
    with pieces_of(room=0):
        for batch in data.draw(batches_of(stream_of(events))):
            if data.draw(st.booleans()):
                state = shared.snapshot()
                shared = shared_by([several[number] for number in left])
                shared.restore(state)
            if len(left) > 1 and data.draw(st.integers(0, 2)) == 0:
                place = data.draw(st.integers(0, len(left) - 1))
                shared.drop(slice(place, place + 1))
                del left[place]
            for number, its in zip(left, advanced(shared, batch, position), strict=True):
                assert all(max(row) >= position for row in its)
                found[number] += its
            position += len(batch)
    for number, count in zip(left, shared.numbers, strict=True):
        assert len(set(found[number])) == len(found[number]) == count
        assert set(found[number]) == naive_matches(several[number], events)


def test_equal_values_are_found_without_comparisons() -> None:
    """Also those of a negated item, and through a third item."""
    events = steady_events(300).assign(k=[n % 20 for n in range(300)])
    text = (
        "PATTERN SEQ(A a, NOT(C n), B b, C c) WHERE a.k = c.k AND c.k = b.k AND n.k = a.k "
        "WITHIN 90 units"
    )
    (found, other) = (
        evaluate(text, stream_of(events), evaluator=name)
        for name in ("hierarchical-stacks", "stack-nfa")
    )
    assert found.metrics.matches == other.metrics.matches > 0
    # One of the two equalities of a follows from the others, and is tested for the few that are left.
    assert found.metrics.comparisons < 2 * found.metrics.partial_matches_created


def test_an_event_is_in_the_stack_of_its_finest_type() -> None:
    h = ConceptHierarchy({"TX": {"G": ["GBus"], "D": ["DBus", "DHospital"]}})
    several = [
        pattern.with_hierarchy(h)
        for pattern in patterns(
            "SEQ(TX x, OK o) WITHIN 9 units",
            "SEQ(D d, OK o) WITHIN 9 units",
            "SEQ(NOT(DBus n), G g, DBus d) WITHIN 9 units",
        )
    ]
    shared = shared_by(several)
    advanced(shared, stream_of(one_each("GBus TX D DBus DHospital OK X")))
    stacks_of = {
        name: shared.stacks.events.positions[origin : origin + size].tolist()
        for name, origin, size in zip(
            shared.layout.stacks, shared.stacks.origins, shared.stacks.sizes, strict=True
        )
    }
    assert stacks_of == {"TX": [1], "OK": [5], "D": [2, 4], "G": [0], "DBus": [3]}
    # A concept is left by one pointer to each stack below it.
    assert pointers_of(shared)[5] == {"TX": 1, "D": 4, "G": 0, "DBus": 3}


@given(data=st.data())
def test_pointers_are_those_of_the_workload_graph(data: st.DataObject) -> None:
    """All that a construction follows; events of negated items need none."""
    texts = [
        "SEQ(P p, C c, D d)",
        "SEQ(A a, NOT(D n), B b)",
        "SEQ(D d, D e, ANY c)",
        "SEQ(B b, A a)",
    ]
    several = patterns(
        *(
            f"{text} WITHIN 99 units"
            for text in data.draw(st.sets(st.sampled_from(texts), min_size=1))
        )
    )
    workload = Workload(dict(zip("qrst", several, strict=False)), hierarchy=CONCEPTS)
    shared = shared_by([*workload.patterns.values()])
    stream = stream_of(data.draw(event_frames("ABCD", most=18)))
    advanced(shared, stream)
    found = pointers_of(shared)
    expected = workload.stacks(stream)
    rows, stack_of = rows_of(shared), shared.layout.stacks
    assert expected["position"].tolist() == sorted(found)
    for position, stack, pointers in expected.itertuples(index=False):
        assert (stack_of[shared.stacks.events.stacks[rows[position]]] or "ANY") == stack
        its = {name or "ANY": other for name, other in found[position].items()}
        assert its.items() <= pointers.items()
        if not any(pattern.negated for pattern in several):
            assert its == pointers


def one_each(kinds: str) -> pd.DataFrame:
    """An event of each of these types, one after the other."""
    types = kinds.split()
    return pd.DataFrame({"type": types, "time": range(len(types))})


def test_an_event_that_no_item_takes_is_not_stored() -> None:
    several = patterns(
        "SEQ(A a, B b) WHERE a.x > 1 WITHIN 9 units",
        "SEQ(A a, C c) WHERE a.x < 0 AND c.x = c.x WITHIN 9 units",
    )
    shared = shared_by(several)
    events = events_of("A@1 A@2 A@3 B@4 C@5 C@6").assign(x=[0.5, 2.0, -1.0, 3.0, None, 1.0])
    assert [len(rows) for rows in advanced(shared, stream_of(events))] == [1, 1]
    assert dict(zip(shared.layout.stacks, shared.stacks.sizes.tolist(), strict=True)) == {
        "A": 2, "B": 1, "C": 1
    }  # fmt: skip


@only_compiled
def test_batches_of_one_event_rarely_arrange_the_stacks() -> None:
    """Pushes take no time that grows with the window."""
    (query,) = patterns("SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 100 units")
    shared = shared_by([query])
    stream = stream_of(steady_events(2_000))
    arranged, held = 0, None
    for position in range(2_000):
        shared.advance(stream[position : position + 1], position)
        arranged += shared.stacks is not held
        held = shared.stacks
    assert shared.numbers == [len(rows) for rows in advanced(shared_by([query]), stream)] > [0]
    assert 2 < arranged < 40


def test_kernels_are_compiled_once() -> None:
    """Whatever the queries: one item, no negation, no condition, no equality; and after a restore."""
    if not hasattr(stacks.push, "signatures"):
        pytest.skip("kernels are not compiled")
    stream = stream_of(steady_events(20))
    for text in (
        "SEQ(A a)",
        "SEQ(NOT(B n), A a)",
        "SEQ(A a, B b, A c) WHERE a.x < c.x AND a.x > 0",
    ):
        shared = shared_by(patterns(f"{text} WITHIN 5 units"))
        shared.advance(stream, 0)
        shared.restore(shared.snapshot())
        shared.advance(stream, 20)
        assert shared.node_counts(slice(1))[0].counts[0, counts.CREATED] > 0
    assert len(stacks.push.signatures) == len(sequences.construct.signatures) == 1


def task_of(pattern: Pattern, output: str = "matches", position: int = 0, **more: Any) -> Task:
    asked = Arguments(
        evaluator="hierarchical-stacks", options=None, output=output, partial_match_limit=99,
        position=position,
    )  # fmt: skip
    return task_for(pattern, None, asked, **more)


def test_a_query_opened_later_has_other_stacks() -> None:
    opened = EVALUATORS["hierarchical-stacks"].together
    assert opened is not None
    sharing = replace(EVALUATORS["hierarchical-stacks"], open=opened())
    (pattern,) = patterns("SEQ(A a, B b) WITHIN 9 units")
    task = replace(task_of(pattern, "count"), evaluator=sharing)
    stream = stream_of(events_of("A@1 B@2 A@3 B@4"))
    first, second = Detector.of_task(task), Detector.of_task(task)
    assert [first.push(stream[:2]), second.push(stream[:2])] == [1, 1]
    late = Detector.of_task(replace(task, position=2))
    assert [each.push(stream[2:]) for each in (first, late, second)] == [2, 1, 2]


@only_compiled
def test_seconds_of_queries_on_shared_stacks() -> None:
    """Those of all queries together are those that passed; a query has those of its own work."""
    several = patterns("SEQ(A a, B b, C c) WITHIN 90 units", "SEQ(A a, B b) WITHIN 2 units")
    tasks = [task_of(pattern, whole_stream=True) for pattern in several]
    began = time.perf_counter()
    many, few = run_tasks(tasks, stream_of(steady_events(3_000)))
    passed = time.perf_counter() - began
    assert few.metrics.seconds < many.metrics.seconds
    assert 0 < many.metrics.seconds + few.metrics.seconds < passed
    assert len(few.matches) == few.metrics.matches < many.metrics.matches == len(many.matches)
    assert many.metrics.peak_bytes == few.metrics.peak_bytes > 0
