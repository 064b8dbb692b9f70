"""Damaged snapshots of every kind of detector and aggregator: refused by name, or harmless."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cepbench as cep
from cepbench.engines.runs.snapshot import write_snapshot
from cepbench.errors import SnapshotError
from tests.contract.snapshots import Snapshot
from tests.engines.test_snapshots_apart import (
    COUNTED_QUERIES,
    QUERIES,
    REFUSALS,
    REUSED,
    SHARED,
    contents,
    growing_batches,
    plan_of,
)

TEXTS = (
    "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 9 units",
    "SEQ(A a, KL(B b), C c) WHERE b.s = c.s ORDER BY arrival WITHIN 5 units",
    "OR(SEQ(A a, B b, NOT(C n)), SEQ(A a, B b)) OUTPUT non_overlap WITHIN 9 units",
)
COUNTED = "SEQ(A a, B b, C c) {}GROUP BY s AGG COUNT, AVG(c.x) WITHIN 9 units"

NAMES = [*(its.name for its in cep.EVALUATORS.values() if its.snapshots), *cep.AGGREGATORS]

#: An adaptive detector is a detector, too.
KINDS = (cep.AdaptiveDetector, cep.Detector, cep.Aggregator)

#: Of each kind: flips in arrays, pairs of arrays swapped, and damaged files.
FLIPS, SWAPS, FILES = 45, 8, 5


def ways(name: str) -> Iterator[Callable[[], Any]]:
    """Detectors by an evaluator, or aggregators by a method."""
    if name in cep.AGGREGATORS:
        for order in ("", "ORDER BY arrival "):
            yield partial(cep.Aggregator, f"PATTERN {COUNTED.format(order)}", name)
        yield partial(cep.Aggregator, "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 999 units", name)
        yield partial(cep.Aggregator, COUNTED_QUERIES, name)
        for sharing in {"a-seq": [SHARED], "two-step": [REUSED]}.get(name, []):
            yield partial(cep.Aggregator, COUNTED_QUERIES, sharing=sharing)
        return
    for text in TEXTS:
        pattern = cep.parse(f"PATTERN {text}")
        plan = plan_of(pattern, cep.EVALUATORS[name])
        yield partial(cep.Detector, pattern, plan, evaluator=name)
    yield partial(cep.Detector, QUERIES, evaluator=name)
    for asked in (f"PATTERN {TEXTS[0]}", QUERIES):
        yield partial(cep.AdaptiveDetector, asked, evaluator=name, batch_size=20)


def opened(name: str) -> Iterator[tuple[Any, Any]]:
    """Two of each kind, after different streams."""
    batches = growing_batches.__wrapped__()
    for way in ways(name):
        try:
            one, other = way(), way()
            for batch in batches[:3]:
                one.push(batch)
            other.push(batches[3])
        except REFUSALS:
            continue
        yield one, other


def flipped(written: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(written)
    for place in rng.integers(len(changed), size=rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def damages(
    snapshot: Snapshot, other: Snapshot, rng: np.random.Generator
) -> Iterator[dict[str, np.ndarray | None]]:
    """Arrays missing, cut, swapped, of another shape or stream, and with bits flipped."""
    some = [name for name in snapshot if snapshot[name].size]
    for name, its in snapshot.items():
        yield from ({name: None}, {name: its[..., None]}, {name: other.get(name)})
    for _ in range(FLIPS):
        name = some[rng.integers(len(some))]
        its = snapshot[name]
        changed = np.frombuffer(flipped(its.tobytes(), rng), its.dtype)
        yield {name: changed.reshape(its.shape)}
    for _ in range(SWAPS):
        one, two = (some[rng.integers(len(some))] for _ in range(2))
        yield {one: snapshot[two], two: snapshot[one]}
        yield {one: snapshot[one][:-1]}


def is_refused(restore: Callable[[], Any], taken: dict[str, Any]) -> bool:
    """Whether it is; else it has the same state."""
    try:
        restored = restore()
    except SnapshotError:
        return True
    found = contents(restored.snapshot())
    assert [name for name in taken | found if found.get(name) != taken.get(name)] == []
    return False


@pytest.mark.parametrize("name", NAMES)
def test_damaged_arrays(name: str, seeds: Any) -> None:
    rng = np.random.default_rng(seeds(1)[0])
    number = 0
    for one, other in opened(name):
        snapshot = one.snapshot()
        taken = contents(snapshot)
        for changes in damages(snapshot, other.snapshot(), rng):
            others = {key: its for key, its in changes.items() if its is not None}
            if len(others) == len(changes) and contents(others).items() <= taken.items():
                continue  # the other stream has the same
            kept = {key: its for key, its in snapshot.items() if key not in changes}
            with pytest.raises(SnapshotError):
                type(one).restore(kept | others)
            number += 1
    assert number > 100


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(name: str, seeds: Any, tmp_path: Path) -> None:
    """As they are read by ``load``, or by ``numpy.load``, which raises errors of its own."""
    rng = np.random.default_rng(seeds(1)[0])
    file = tmp_path / "state.npz"
    for one, _ in opened(name):
        snapshot = one.snapshot()
        taken = contents(snapshot)
        write_snapshot(snapshot, file)
        written = file.read_bytes()
        cut = [written[: rng.integers(len(written))] for _ in range(FILES // 3)]
        found = 0
        for its in (*cut, *(flipped(written, rng) for _ in range(FILES))):
            file.write_bytes(its)
            if hasattr(one, "load"):
                found += is_refused(partial(type(one).load, file), taken)
                continue
            try:
                arrays = np.load(io.BytesIO(its))
            except Exception:
                found += 1
            else:
                found += is_refused(partial(type(one).restore, arrays), taken)
        assert found > len(cut)


def test_snapshots_of_another_kind() -> None:
    listed = [one for name in NAMES for one, _ in opened(name)]
    assert len(listed) > 50
    for live in listed:
        snapshot = live.snapshot()
        its = next(kind for kind in KINDS if isinstance(live, kind))
        for kind in KINDS:
            is_other = is_refused(partial(kind.restore, snapshot), contents(snapshot))
            assert is_other is (kind is not its)
