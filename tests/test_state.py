"""Objects that name their state, saved and restored."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cepbench.errors import SnapshotError
from cepbench.state import Stateful

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
ARRAYS = arrays(np.int64, st.tuples(st.integers(0, 3), st.integers(0, 3))) | arrays(
    np.float64, st.integers(0, 3), elements=st.floats(allow_nan=False)
)
#: Of any size, or of 64 bits.
INTEGERS = st.lists(st.integers(), max_size=3).map(lambda its: np.array([*its, None], object)[:-1])
KEYS = PLAIN | st.tuples(PLAIN, PLAIN)
VALUES: st.SearchStrategy[Any] = st.recursive(
    PLAIN | ARRAYS | INTEGERS | st.sets(st.integers()),
    lambda its: (
        st.lists(its, max_size=3)
        | st.lists(st.tuples(PLAIN, PLAIN), max_size=3)
        | st.lists(its, max_size=3).map(tuple)
        | st.dictionaries(KEYS, its, max_size=3)
    ),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return same([*one.items()], [*other.items()])
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


class Part(Stateful):
    SAVED = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Tables(NamedTuple):
    rows: np.ndarray
    space: np.ndarray


class Foreign:
    """Not stateful, but with a snapshot, as user-defined runs."""

    def __init__(self, number: int) -> None:
        self.number = number

    def snapshot(self) -> dict[str, np.ndarray]:
        return {"known": np.array(self.number)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.number = int(state["known"])


class Whole(Part):
    SAVED = ("size", "parts", "_hidden", "tables.rows", "counts[:]", "lists[:]", "foreign")

    def __init__(self, value: Any = None, size: int = 0) -> None:
        super().__init__(value)
        self.size = size
        self.foreign = Foreign(size)
        self.tables = Tables(np.full(size, value if isinstance(value, int) else 0), np.zeros(9))
        self.counts = np.full(2, size)
        self.shown = self.counts
        self.lists = [np.full(1, size), np.full(3, size)]
        self._hidden = size
        self.is_resumed = False

    @property
    def size(self) -> int:
        return len(self.parts)

    @size.setter
    def size(self, size: int) -> None:
        self.parts = {f"{number}": Part(number) for number in range(size)}

    def resumed(self) -> None:
        self.is_resumed = True


@given(VALUES, VALUES)
def test_values_are_restored(value: Any, before: Any) -> None:
    one, other = Part(value), Part(None if isinstance(before, np.ndarray) else before)
    snapshot = one.snapshot()
    assert not any(its.dtype.hasobject for its in snapshot.values())
    other.restore(snapshot)
    assert same(other.value, value)
    again = other.snapshot()
    assert snapshot.keys() == again.keys()
    assert all(map(np.array_equal, snapshot.values(), again.values()))


def test_arrays_of_any_kind_are_plain_ones() -> None:
    class Mapped(np.ndarray):
        """As columns of files that are mapped into memory."""

    value = np.asfortranarray(np.arange(6).reshape(2, 3)).view(Mapped)
    saved = Part(value).snapshot()["value"]
    assert type(saved) is np.ndarray
    assert saved.flags.c_contiguous
    value[:] = 0
    assert saved.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_objects_are_restored_in_place() -> None:
    one, other = Whole(5, 3), Whole(7, 0)
    one.parts["1"].value = np.arange(4)
    snapshot = one.snapshot()
    known = json.loads(snapshot["known"].tobytes())
    assert (known["value"], known["hidden"]) == (5, 3)
    assert {"tables/rows", "parts/1/value", "counts", "lists/0", "foreign/known"} <= {*snapshot}
    one.counts += 1
    shown = other.shown
    other.restore(snapshot)
    assert other.is_resumed
    assert (other.value, other.size, other.foreign.number) == (5, 3, 3)
    assert [*other.tables.rows] == [5] * 3
    assert len(other.tables.space) == 9
    assert [*other.parts["1"].value] == [0, 1, 2, 3]
    assert other.counts is shown
    assert [*shown] == [3, 3]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("tables/rows", None),
        ("tables/rows", np.zeros(3)),
        ("counts", np.zeros(3, np.int64)),
        ("lists/1", np.zeros(1, np.int64)),
        ("known", np.zeros(3, np.uint8)),
        ("known", np.frombuffer(b'{"value": 1}', np.uint8)),
        ("known", None),
    ],
)
def test_what_does_not_fit(name: str, array: np.ndarray | None) -> None:
    snapshot = Whole(5, 3).snapshot()
    del snapshot[name]
    with pytest.raises(SnapshotError, match="damaged"):
        Whole().restore(snapshot if array is None else {**snapshot, name: array})
