"""Rows and flags by type, compared with those of ``EventStream.rows_of``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.plan_runs.by_type import TypeFlags, TypeRows

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
