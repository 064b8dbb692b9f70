"""A value means the same in every batch: of one kind, or refused by name."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import StreamError
from tests.contract.live import plain

ORDER = cep.OrderPlan(["a", "b"])
_TWO = cep.Workload(
    {
        "wide": "PATTERN SEQ(A a, B b) WITHIN 99 units",
        "narrow": "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 99 units",
    }
)
_EQUAL = "PATTERN SEQ(A a, B b) WHERE a.k = b.k {}WITHIN 99 units"

#: A detector or aggregator that reads k across batches.
READERS = {
    "condition": lambda: cep.Detector(_EQUAL.format(""), ORDER),
    "key": lambda: cep.Detector("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 99 units", ORDER),
    "negation": lambda: cep.Detector(
        "PATTERN SEQ(A a, NOT(N n), B b) WHERE n.k = a.k WITHIN 99 units", ORDER
    ),
    "returns": lambda: cep.Detector("PATTERN SEQ(A a, B b) WITHIN 99 units RETURN a.k", ORDER),
    "partition": lambda: cep.Detector(
        "PATTERN SEQ(A a, B b) STRATEGY partition_contiguity(k) WITHIN 99 units", ORDER
    ),
    "output": lambda: cep.Detector(
        "PATTERN SEQ(A a, B b) WHERE [k] OUTPUT non_overlap WITHIN 99 units", ORDER
    ),
    **{
        name: lambda name=name: cep.Detector(_EQUAL.format(""), evaluator=name)
        for name in ("sase", "stack-nfa", "hierarchical-stacks")
    },
    "workload": lambda: cep.Detector(
        _TWO, cep.WorkloadPlan(_TWO, sources={"wide": None, "narrow": "wide"})
    ),
    "adaptive": lambda: cep.AdaptiveDetector(_EQUAL.format(""), batch_size=2),
    "adaptive workload": lambda: cep.AdaptiveDetector(_TWO, batch_size=2),
    "greta": lambda: cep.Aggregator(_EQUAL.format("AGG COUNT "), "greta"),
    "group": lambda: cep.Aggregator(
        "PATTERN SEQ(A a, B b) GROUP BY k AGG COUNT WITHIN 99 units", "two-step"
    ),
    "count": lambda: cep.Aggregator("PATTERN SEQ(A a, B b) AGG COUNT(a.k) WITHIN 99 units"),
}

VALUES: dict[str, Any] = {
    "number": [3, 4.5],
    "text": ["x", "y"],
    "boolean": [True, False],
    "nothing": [None, None],
}


def _events(types: str, start: int, values: list[Any]) -> cep.EventStream:
    table = {"type": list(types), "ts": range(start, start + len(types)), "k": values}
    return cep.EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("number", "text"), ("text", "number"), ("boolean", "number"), ("text", "boolean"),
        ("nothing", "text"), ("number", "nothing"),
    ],
)  # fmt: skip
def test_kinds_of_two_batches(name: str, first: str, second: str, *, restored: bool) -> None:
    live: Any = READERS[name]()
    live.push(_events("AA", 0, VALUES[first]))
    live.push(_events("AA", 2, VALUES["nothing"]))
    if restored:
        live = type(live).restore(live.snapshot())
    batch = _events("NB", 4, VALUES[second])
    if "nothing" in (first, second) or first == second:
        live.push(batch)
        return
    with pytest.raises(StreamError, match=f"row 4: attribute 'k' is a {second} .* a {first}"):
        live.push(batch)
    live.push(_events("NB", 4, VALUES[first]))  # nothing has changed


def test_a_text_column_that_was_missing_in_a_batch() -> None:
    """Missing everywhere in one batch, a text or number in the next: the matches of one stream."""
    for values in (["x", "y", "x"], [3, 4, 3], [True, False, True]):
        table = pd.DataFrame({"type": list("AAAAAB"), "ts": range(6), "k": [None] * 3 + values})
        whole = cep.EventStream.from_pandas(table, type="type", time="ts")
        due = cep.evaluate(_EQUAL.format(""), whole, ORDER).matches.values.tolist()
        assert due == [[3, 5]]
        for name in ("condition", "sase", "stack-nfa", "hierarchical-stacks", "adaptive"):
            live = READERS[name]()
            found = []
            for its in (table[:3], table[3:]):
                stream = cep.EventStream.from_pandas(its, type="type", time="ts")
                found += live.push(stream).values.tolist()
            assert found == due


def test_a_query_that_is_added_knows_the_kinds_so_far() -> None:
    live: Any = READERS["workload"]()
    live.push(_events("AA", 0, ["x", "y"]))
    live.add("more", "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 units")
    live.remove("narrow")
    with pytest.raises(StreamError, match="is a number in the batch"):
        live.push(_events("AB", 2, [1, 2]))
    assert plain(live.push(_events("AB", 2, ["y", "y"]))) == {
        "wide": ["[0, 3]", "[1, 3]", "[2, 3]"],
        "more": ["[2, 3]"],
    }


_TWO_ATTRIBUTES = "SEQ(A a, B b) WHERE a.k = b.j {}WITHIN 99 units"


@pytest.mark.parametrize(
    "made",
    [
        lambda: cep.Detector("PATTERN " + _TWO_ATTRIBUTES.format(""), ORDER),
        lambda: cep.Detector("PATTERN " + _TWO_ATTRIBUTES.format(""), evaluator="sase"),
        lambda: cep.AdaptiveDetector("PATTERN " + _TWO_ATTRIBUTES.format("")),
        lambda: cep.Detector(cep.Workload({"q": "PATTERN " + _TWO_ATTRIBUTES.format("")})),
        lambda: cep.Aggregator("PATTERN " + _TWO_ATTRIBUTES.format("AGG COUNT ")),
    ],
)
def test_values_that_are_compared_come_in_different_batches(made: Any) -> None:
    """Neither batch has both attributes; a text is not compared with a number all the same."""

    def batch(kind: str, start: int, **columns: Any) -> cep.EventStream:
        table = pd.DataFrame({"type": [kind], "ts": [start], **columns})
        return cep.EventStream.from_pandas(table, type="type", time="ts")

    for number, text in ((0, "x"), (3.5, "x"), (True, "x"), (True, 1)):
        live = made()
        live.push(batch("A", 1, k=[text], j=[None]))
        again = type(live).restore(live.snapshot())
        for its in (live, again):
            with pytest.raises(StreamError, match=r"a\.k = b\.j compares a"):
                its.push(batch("B", 2, k=[None], j=[number]))
            found = its.push(batch("B", 2, k=[None], j=[text]))
            assert len(found["q"] if isinstance(found, dict) else found) == 1


def test_a_query_that_is_added_is_checked_with_the_next_batch() -> None:
    live: Any = READERS["workload"]()
    live.push(_events("AA", 0, ["x", "y"]))
    live.push(_events("AA", 2, ["x", "y"]))
    live.add("more", "PATTERN SEQ(A a, B b) WHERE a.k = 3 WITHIN 9 units")
    with pytest.raises(StreamError, match=r"query 'more': .*compares a text with a number"):
        live.push(_events("AB", 4, ["x", "y"]))
    live.remove("more")
    assert len(live.push(_events("AB", 4, ["x", "y"]))["narrow"]) == 2
