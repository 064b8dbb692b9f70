"""States of every entry: put away and taken up again after each push, shared with nobody, damaged."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cepbench as cep
from cepbench.engines.runs.snapshot import write_snapshot
from cepbench.errors import SnapshotError
from tests.budgets import SOAK
from tests.contract.entries import LIVE
from tests.contract.live import contents, events, growing, opened, plain
from tests.contract.snapshots import Snapshot, header_of, with_digest, with_header

EACH = pytest.mark.parametrize("name", LIVE)

#: Those that take longer streams: an event that expires is an error of dpc.
LASTING = pytest.mark.parametrize("name", [name for name in LIVE if name != "dpc"])

#: An adaptive detector is a detector, too.
KINDS = (cep.AdaptiveDetector, cep.Detector, cep.Aggregator)

#: Words in the names of metrics that depend on clocks, room or where the stream is cut.
VARYING = ("second", "bytes", "latency", "share", "comparisons", "reprocessed")

#: After a restore, shared counters are updated anew.
UNCOUNTED = ("sharing",)

#: Of each way: arrays that are damaged, flips in some, pairs swapped, forged arrays, and damaged files.
ARRAYS, FLIPS, SWAPS, FORGED, FILES = 4, 6, 3, 6, 5

#: Changes of an array for which a forger takes the digest anew.
FORGERIES: tuple[Callable[[np.ndarray, np.random.Generator], np.ndarray], ...] = (
    lambda array, rng: array.reshape(-1)[: array.size // 2],
    lambda array, rng: np.flip(array).copy(),
    lambda array, rng: np.zeros_like(array),
    lambda array, rng: rng.integers(-5, 99, array.shape).astype(array.dtype),
    lambda array, rng: np.zeros((9, *array.shape), array.dtype),
    lambda array, rng: np.full(array.shape, "x"),
)


@EACH
def test_a_restored_run_goes_on_and_nothing_is_shared(name: str) -> None:
    """One restored after each push gives the same; so do two from one snapshot, which stays as it was."""
    first, *batches = growing()
    number = 0
    for words, _, live in opened(name, first):
        again, snapshot = live, live.snapshot()
        taken = contents(snapshot)
        twins = [type(live).restore(snapshot) for _ in range(2)]
        assert contents(twins[0].snapshot()) == taken, words
        for batch in batches:
            again = type(live).restore(again.snapshot())
            due = plain(live.push(batch))
            for its in (again, *twins):  # in turn, so that they would disturb each other, too
                assert plain(its.push(batch)) == due, words
            assert contents(snapshot) == taken, words
        if words not in UNCOUNTED:
            assert counted(again) == counted(live), words
        assert plain(again.flush()) == plain(live.flush()), words
        number += 1
    assert number >= 2


def counted(live: Any) -> dict[str, Any]:
    """What a run has counted: metrics that neither clocks nor the cuts of the stream change."""
    metrics = live.metrics if isinstance(live, cep.Aggregator) else live.metrics()
    return {
        key: repr(value)
        for key, value in metrics.to_dict().items()
        if not any(word in key for word in VARYING)
    }


def damages(
    snapshot: Snapshot, other: Snapshot, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Arrays missing, cut, swapped, of another kind or shape or stream, and with bits flipped."""
    some = [name for name in snapshot if snapshot[name].size]
    for name in rng.permutation([*snapshot])[:ARRAYS]:
        its = snapshot[name]
        yield from ({name: None}, {name: its[..., None]}, {name: other.get(name)})
        yield from ({name: its.astype(object)}, {name: its.tolist()}, {f"{name} more": its})
        yield {name: its.astype(np.float32 if its.dtype != np.float32 else np.int64, copy=False)}
    for _ in range(FLIPS):
        name = some[rng.integers(len(some))]
        its = snapshot[name]
        yield {name: np.frombuffer(flipped(its.tobytes(), rng), its.dtype).reshape(its.shape)}
    for _ in range(SWAPS):
        one, two = (some[rng.integers(len(some))] for _ in range(2))
        yield {one: snapshot[two], two: snapshot[one]}
        yield {one: snapshot[one][:-1]}


def flipped(written: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(written)
    for place in rng.integers(len(changed), size=rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def same(one: dict[str, Any], other: Snapshot) -> bool:
    arrays = all(isinstance(its, np.ndarray) and not its.dtype.hasobject for its in one.values())
    return arrays and contents(one) == contents(other)


@LASTING
def test_damaged_arrays(name: str, seeds: Any) -> None:
    """Refused by name; with a digest that fits, refused or accepted, but no array crashes a kernel."""
    rng = np.random.default_rng(seeds(1)[0])
    first, second = events(0, 45), events(45, 60)
    refused = 0
    # In a soak, of every pattern.
    for words, way, live in opened(name, first, each=2 if SOAK is None else 1):
        snapshot = live.snapshot()
        assert not any(array.dtype.hasobject for array in snapshot.values())
        another = way()
        another.push(events(0, 30, seed=4))
        restore = type(live).restore
        for changes in damages(snapshot, another.snapshot(), rng):
            damaged = {k: v for k, v in {**snapshot, **changes}.items() if v is not None}
            if same(damaged, snapshot):
                continue  # the other stream has the same
            with pytest.raises(SnapshotError):
                restore(damaged)
            refused += 1
        names = [its for its in snapshot if its not in ("digest", "header")]
        for _ in range(FORGED):
            array = names[rng.integers(len(names))]
            forge = FORGERIES[rng.integers(len(FORGERIES))]
            with suppress(SnapshotError):
                restore(with_digest({**snapshot, array: forge(snapshot[array], rng)}))
        backwards = {its: snapshot[its] for its in reversed(snapshot)}
        assert plain(restore(backwards).push(second)) == plain(live.push(second)), words
    assert refused > 50


@EACH
def test_damaged_headers(name: str) -> None:
    _, _, live = next(opened(name, events(0, 45)))
    snapshot = live.snapshot()
    header = header_of(snapshot)
    for entry in header:
        for junk in (None, -1, "x", [], {}, {"a": 1}):
            with suppress(SnapshotError):
                type(live).restore(with_header(snapshot, {**header, entry: junk}))
        without = {key: its for key, its in header.items() if key != entry}
        with pytest.raises(SnapshotError, match=rf"version|no snapshot|no usable '{entry}'"):
            type(live).restore(with_header(snapshot, without))
    with pytest.raises(SnapshotError, match="no usable 'kind'"):
        type(live).restore(with_header(snapshot, header | {"kind": "cube"}))
    newer = {**header, "version": 999, "cepbench": "9.9"}
    with pytest.raises(SnapshotError, match=r"version 999.*with the version .*, cepbench 9\.9"):
        type(live).restore(with_header(snapshot, newer))


@LASTING
def test_files(name: str, seeds: Any, tmp_path: Path) -> None:
    """Saved and loaded; damaged, refused or the same: not every bit of a zip file has a meaning."""
    rng = np.random.default_rng(seeds(1)[0])
    file = tmp_path / "made" / "state"
    for words, _, live in opened(name, events(0, 45), each=3):
        live.save(file)
        loaded = type(live).load(file)
        assert (type(loaded), loaded.position) == (type(live), live.position)
        snapshot = live.snapshot()
        taken = contents(snapshot)
        write_snapshot(snapshot, file)
        written = file.read_bytes()
        cut = [written[: rng.integers(len(written))] for _ in range(FILES // 3)]
        found = 0
        for its in (*cut, *(flipped(written, rng) for _ in range(FILES))):
            file.write_bytes(its)
            found += is_refused(partial(type(live).load, file), taken)
            try:
                arrays = np.load(io.BytesIO(its))
            except Exception:  # as numpy raises it for what is no file of its own
                continue
            is_refused(partial(type(live).restore, arrays), taken)
        assert found >= len(cut), words
        second = events(45, 60)
        assert plain(loaded.push(second)) == plain(live.push(second)), words
        assert plain(loaded.flush()) == plain(live.flush()), words


def is_refused(restore: Callable[[], Any], taken: dict[str, Any]) -> bool:
    """Whether it is; else it has the same state."""
    try:
        restored = restore()
    except SnapshotError:
        return True
    found = contents(restored.snapshot())
    assert [name for name in taken | found if found.get(name) != taken.get(name)] == []
    return False


@LASTING
def test_snapshots_of_another_kind(name: str) -> None:
    """The message names the class that restores it."""
    for words, _, live in opened(name, events(0, 45), each=5):
        due = next(kind for kind in KINDS if isinstance(live, kind))
        for kind in {*KINDS} - {due}:
            with pytest.raises(SnapshotError, match=rf"restore it by cep\.{due.__name__}\.restore"):
                kind.restore(live.snapshot())
        assert plain(due.restore(live.snapshot()).flush()) == plain(live.flush()), words
