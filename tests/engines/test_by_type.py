"""Rows and flags by type, compared with those of ``EventStream.rows_of``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.plan_runs.by_type import TypeFlags, TypeRows
from cepbench.engines.runs.pieces import pieces_of

_HIERARCHY = cep.ConceptHierarchy({"T": ["A", "D"], "U": ["B", "E"]})

#: Types apart; one within another; any; one that no event has.
_TYPES = [("A", "B"), ("T", "A", "U"), (None, "A", "T"), ("Z", "C"), ("Z",)]


def _batches(seed: int) -> list[cep.EventStream]:
    """Batches whose types change, some of them with codes in another order, one of them empty."""
    rng = np.random.default_rng(seed)
    batches = []
    for size in (0, 1, 1, 5, 40, 1):
        for letters in ("ABCDE", "EA", "C"):
            table = {"type": rng.choice(list(letters), size), "ts": np.arange(size)}
            stream = cep.EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")
            batches += [stream.with_hierarchy(_HIERARCHY), stream, stream[1:]]
    return batches


@pytest.mark.parametrize("types", _TYPES)
def test_rows(types: tuple[str | None, ...]) -> None:
    chosen = TypeRows(types)
    for batch in _batches(0):
        rows, begins = chosen.of(batch)
        assert len(rows) == begins[-1]
        found = chosen.by_type(batch)
        for place, kind in enumerate(types):
            expected = batch.rows_of(kind).tolist()
            assert rows[begins[place] : begins[place + 1]].tolist() == expected
            assert found[kind].tolist() == expected


@pytest.mark.parametrize("types", _TYPES)
def test_flags(types: tuple[str | None, ...]) -> None:
    flags = TypeFlags((kind, 1 << place) for place, kind in enumerate(types))
    for batch in _batches(1):
        expected = np.zeros(len(batch), np.int64)
        for place, kind in enumerate(types):
            expected[batch.rows_of(kind)] |= 1 << place
        found, rows = flags.of(batch)
        assert found.tolist() == expected.tolist()
        assert rows.tolist() == np.flatnonzero(expected).tolist()
        assert flags.any_of(batch) == expected.any()


#: Conditions of single events on every kind of column, several of a leaf, and with another operator than AND.
_FILTERS = (
    "a.x < 0.3 AND b.x >= 0.2 AND c.x != 0.5",
    "a.x < 0.5 AND a.n > 2 AND n.n = 1 AND a.n < b.n",
    "a.word = 'up' AND n.word != 'up' AND c.flag = TRUE",
    "(a.x < 0.2 OR a.n = 4) AND c.time > 150 AND a.x + 0.1 < c.x",
    "a.x + a.n < 2 AND b.x > 9",
)


@pytest.mark.parametrize("engine", ["tree", "lazy-nfa-instances", "zstream", "stack-nfa"])
@pytest.mark.parametrize("items", ["A a, B b, NOT(C n), D c", "T a, B b, NOT(B n), A c"])
@pytest.mark.parametrize("where", _FILTERS)
def test_kept_columns_find_what_rows_find(engine: str, items: str, where: str) -> None:
    rng = np.random.default_rng(3)
    size = 400
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABCDE"), size),
            "time": np.sort(rng.integers(0, size, size)),
            "x": np.where(rng.random(size) < 0.1, np.nan, rng.random(size)),
            "n": rng.integers(0, 6, size),
            "word": rng.choice(["up", "down", None], size),
            "flag": rng.random(size) < 0.5,
        }
    )
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=_HIERARCHY)
    pattern = cep.parse(f"PATTERN SEQ({items}) WHERE {where} WITHIN 30 units")
    kept = stream.with_hierarchy(_HIERARCHY).indexed()
    found = [cep.evaluate(pattern, its, evaluator=engine).matches for its in (stream, kept)]
    with pieces_of(events=60):  # whose rows are those of the stream
        found.append(cep.evaluate(pattern, kept, evaluator=engine).matches)
    # Which tests events one by one.
    expected = cep.evaluate(pattern, stream, evaluator="sase-basic").matches
    assert all(its.equals(expected) for its in found)
    assert len(expected) or "b.x > 9" in where


@pytest.mark.parametrize("events", [1, 2, 9])
@pytest.mark.parametrize("engine", ["tree", "stack-nfa", "zstream"])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_the_row_that_is_too_large_is_that_of_the_source(
    engine: str, events: int, is_indexed: bool
) -> None:
    frame = pd.DataFrame({"type": list("BABA"), "time": range(4), "y": [0, 1, 2, 1 << 60]})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    if is_indexed:
        stream = stream.indexed()
    with (
        pieces_of(events=events),
        pytest.raises(cep.errors.StreamError, match=r"row 3: 'y' is 1152921504606846976, too"),
    ):
        cep.evaluate("PATTERN SEQ(A a, B b) WHERE a.y > 0 WITHIN 9 units", stream, evaluator=engine)
