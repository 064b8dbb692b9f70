"""Snapshots of all detectors and aggregators, damaged: refused by name, as mappings and as files."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cepbench as cep
from cepbench.engines.runs.snapshot import write_snapshot
from cepbench.errors import SnapshotError
from tests.contract.snapshots import header_of, with_digest, with_header
from tests.engines.detection.live_shells import COUNTING, SHELLS, events, plain

FIRST, SECOND = events(12, 1), events(9, 2, start=12)

#: Changes of an array of which a forger takes the digest anew.
FORGED = {
    "cut": lambda array, rng: array.reshape(-1)[: array.size // 2],
    "in reverse": lambda array, rng: np.flip(array).copy(),
    "of zeros": lambda array, rng: np.zeros_like(array),
    "of noise": lambda array, rng: rng.integers(-5, 99, array.shape).astype(array.dtype),
    "of another type": lambda array, rng: np.full(array.shape, "x"),
}


def _pushed(name: str) -> Any:
    live = SHELLS[name]()
    live.push(FIRST)
    return live


@pytest.mark.parametrize("name", SHELLS)
def test_damaged_files(name: str, tmp_path: Path, seeds: Any) -> None:
    live = _pushed(name)
    file = tmp_path / "state.npz"
    write_snapshot(live.snapshot(), file)
    written = file.read_bytes()
    due = plain(type(live).restore(live.snapshot()).push(SECOND))
    for seed in seeds(12):
        rng = np.random.default_rng(seed)
        damaged = bytearray(written)
        if seed % 4 == 0:
            damaged = damaged[: rng.integers(len(damaged))]
        for place in rng.integers(0, max(1, len(damaged)), 1 + seed % 3) if damaged else ():
            damaged[place] ^= 1 << int(rng.integers(8))
        _refused_or_as_before(type(live), bytes(damaged), due)


def _refused_or_as_before(kind: Any, damaged: bytes, due: Any) -> None:
    """A bit that zip files do not use may be changed."""
    try:
        found = np.load(io.BytesIO(damaged), allow_pickle=False)
    except Exception:  # as numpy raises it for what is no file of its own
        return
    try:
        again = kind.restore(found)
    except SnapshotError:
        return
    assert plain(again.push(SECOND)) == due


@pytest.mark.parametrize("name", SHELLS)
def test_damaged_arrays(name: str) -> None:
    live = _pushed(name)
    snapshot = live.snapshot()
    other = SHELLS[name]()
    other.push(events(12, 9))
    others = other.snapshot()
    for array, values in snapshot.items():
        rng = np.random.default_rng(1)
        changed = [change(values, rng) for change in FORGED.values()]
        changed += [others[array]] if array in others else []
        damaged = [{**snapshot, array: its} for its in changed if not np.array_equal(its, values)]
        for its in ({k: v for k, v in snapshot.items() if k != array}, *damaged):
            with pytest.raises(SnapshotError):
                type(live).restore(its)


@pytest.mark.parametrize("name", SHELLS)
def test_forged_arrays(name: str, seeds: Any) -> None:
    """With a digest that fits: refused by name, or accepted."""
    live = _pushed(name)
    snapshot = live.snapshot()
    names = [its for its in snapshot if its not in ("digest", "header")]
    for seed in seeds(10):
        rng = np.random.default_rng(seed)
        array = names[rng.integers(len(names))]
        change = list(FORGED.values())[rng.integers(len(FORGED))]
        with suppress(SnapshotError):
            type(live).restore(with_digest({**snapshot, array: change(snapshot[array], rng)}))


@pytest.mark.parametrize("name", SHELLS)
def test_forged_headers(name: str) -> None:
    live = _pushed(name)
    snapshot = live.snapshot()
    header = header_of(snapshot)
    for entry in header:
        for junk in (None, -1, "x", [], {}, {"a": 1}):
            with suppress(SnapshotError):
                type(live).restore(with_header(snapshot, {**header, entry: junk}))
        without = {key: its for key, its in header.items() if key != entry}
        with pytest.raises(SnapshotError):
            type(live).restore(with_header(snapshot, without))


#: The beginning of a name in SHELLS → the class that restores its snapshots.
RESTORED_BY = {"adaptive": cep.AdaptiveDetector, **dict.fromkeys(COUNTING, cep.Aggregator)}


@pytest.mark.parametrize("name", SHELLS)
def test_snapshots_of_another_kind(name: str) -> None:
    """The message names the class that restores it."""
    live = _pushed(name)
    due = RESTORED_BY.get(name.split()[0], cep.Detector)
    for kind in {cep.Detector, cep.AdaptiveDetector, cep.Aggregator} - {due}:
        with pytest.raises(SnapshotError, match=rf"restore it by cep\.{due.__name__}\.restore"):
            kind.restore(live.snapshot())  # type: ignore[attr-defined]
    with pytest.raises(SnapshotError, match="no usable 'kind'"):
        due.restore(with_header(live.snapshot(), header_of(live.snapshot()) | {"kind": "cube"}))


@pytest.mark.parametrize("name", SHELLS)
def test_whatever_is_live_is_saved_to_a_file_and_loaded(name: str, tmp_path: Path) -> None:
    live, file = _pushed(name), tmp_path / "made" / "state"
    live.save(file)
    loaded = type(live).load(file)
    assert (type(loaded), loaded.position) == (type(live), live.position)
    assert plain(loaded.push(SECOND)) == plain(live.push(SECOND))
    assert plain(loaded.flush()) == plain(live.flush())
    file.write_bytes(b"PK")
    with pytest.raises(SnapshotError, match="cannot be read"):
        type(live).load(file)


@pytest.mark.parametrize("evaluator", ["stack-nfa", "tree", "sase", "hierarchical-stacks"])
def test_what_is_inside_goes_on_at_its_position(evaluator: str) -> None:
    """A detector inside an aggregator, restored after some batches, knows the positions of events."""
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= c.x AGG COUNT WITHIN 9 units"
    live = cep.Aggregator(text, "two-step", evaluator=evaluator)
    again = cep.Aggregator(text, "two-step", evaluator=evaluator)
    found = 0
    for batch in events(60, 3).batches(7):
        again = cep.Aggregator.restore(again.snapshot())
        due = live.push(batch)
        found += len(due)
        assert due.equals(again.push(batch))
    assert found
