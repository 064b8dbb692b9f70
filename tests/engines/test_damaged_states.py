"""Damage of the snapshots of all kinds of detectors and aggregators is refused by name, or harmless.

Arrays and headers are changed before sealing, so that digests are right, also within snapshots of
snapshots: what is not refused has to run on. A kernel outside of its arrays may end the process.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cepbench as cep
from cepbench.engines.runs.snapshot import digest_of
from cepbench.errors import CepbenchError, SnapshotError
from tests.engines.detection.snapshots import Snapshot
from tests.engines.test_snapshots_apart import (
    REFUSALS,
    aggregators,
    detectors,
    plan_of,
)
from tests.engines.test_snapshots_apart import growing_batches as growing_batches  # a fixture

BY_ARRIVAL = cep.parse("PATTERN SEQ(A a, B b) ORDER BY arrival WITHIN 9 units")

#: Values that a header or a plain value is replaced by.
JUNK = (None, -1, "x", [], {}, 7, 1.5, 2**70, True, float("nan"))

Random = np.random.Generator


def _flipped(array: np.ndarray, rng: Random) -> np.ndarray:
    changed = bytearray(array.tobytes())
    for place in rng.integers(len(changed), size=1 + rng.integers(3)):
        changed[place] ^= 1 << int(rng.integers(8))
    return np.frombuffer(bytes(changed), array.dtype).reshape(array.shape)


def _with_junk(array: np.ndarray, rng: Random) -> np.ndarray:
    changed = array.copy()
    values = [0, 1, -1, 7, 1000, 2**40] if array.dtype == np.int64 else [0, 1, 3]
    changed.reshape(-1)[rng.integers(array.size)] = values[rng.integers(len(values))]
    return changed


def _of_another_type(array: np.ndarray, rng: Random) -> np.ndarray:
    types = [np.int64, np.float64, np.uint8, np.int32, np.bool_]
    return array.astype(types[rng.integers(len(types))])


#: Changes of an array, those of the second part only of numbers, of which there are some.
SHAPES: list[Callable[[np.ndarray, Random], np.ndarray]] = [
    lambda array, rng: array.reshape(-1)[: array.size // 2],
    lambda array, rng: array.reshape(-1, 1),
    lambda array, rng: array.reshape(-1),
    lambda array, rng: array[..., :-1] if array.ndim else array[None],
    lambda array, rng: np.concatenate([array, array]) if array.ndim else array[None, None],
    lambda array, rng: np.flip(array).copy(),
]
NUMBERS = [
    _flipped,
    _with_junk,
    _with_junk,
    _of_another_type,
    lambda array, rng: rng.integers(-5, 99, array.shape).astype(array.dtype),
]


def _changed(array: np.ndarray, rng: Random) -> np.ndarray:
    has_numbers = array.size and array.dtype.kind in "iuf"
    changes = SHAPES + NUMBERS if has_numbers else SHAPES
    return changes[rng.integers(len(changes))](array, rng)


def _changed_plain(plain: Any, rng: Random) -> Any:
    """A value of JSON, of which one entry is missing, doubled, or another one."""
    if isinstance(plain, dict) and plain:
        key = [*plain][rng.integers(len(plain))]
        if rng.integers(6) == 0:
            return {name: its for name, its in plain.items() if name != key}
        return {**plain, key: _changed_plain(plain[key], rng)}
    if isinstance(plain, list) and plain:
        place = int(rng.integers(len(plain)))
        return [
            lambda: plain[:place] + plain[place + 1 :],
            lambda: [*plain, plain[place]],
            lambda: [*plain[:place], _changed_plain(plain[place], rng), *plain[place + 1 :]],
        ][rng.integers(3)]()
    return JUNK[rng.integers(len(JUNK))]


def sealed_again(snapshot: Snapshot) -> Snapshot:
    """With the digests of just these arrays, those of snapshots within first."""
    found = dict(snapshot)
    prefixes = [name.removesuffix("digest") for name in found if name.endswith("digest")]
    for prefix in sorted(prefixes, key=len, reverse=True):
        own = {
            name.removeprefix(prefix): array
            for name, array in found.items()
            if name.startswith(prefix) and name != f"{prefix}digest"
        }
        found[f"{prefix}digest"] = digest_of(own)
    return found


def damaged(snapshot: Snapshot, other: Snapshot, rng: Random) -> Snapshot:
    """A snapshot with one change, by which it may be that of another stream in part."""
    names = [name for name in snapshot if not name.endswith("digest")]
    plain = [name for name in names if name.split("/")[-1].endswith(("header", "known"))]
    name, another = (names[rng.integers(len(names))] for _ in range(2))
    match rng.integers(9):
        case 0:
            return sealed_again({key: its for key, its in snapshot.items() if key != name})
        case 1:
            return sealed_again({**snapshot, name: other.get(name, snapshot[another])})
        case 2:
            return sealed_again({**snapshot, name: snapshot[another], another: snapshot[name]})
        case 3 | 4:
            name = plain[rng.integers(len(plain))]
            text = json.dumps(_changed_plain(json.loads(snapshot[name].tobytes()), rng))
            return sealed_again({**snapshot, name: np.frombuffer(text.encode(), np.uint8)})
    return sealed_again({**snapshot, name: _changed(snapshot[name], rng)})


def ways(name: str) -> Iterator[Callable[[], Any]]:
    """Detectors by an evaluator, or aggregators by a method."""
    if name in cep.AGGREGATORS:
        yield from aggregators(cep.AGGREGATORS[name])
        return
    entry = cep.EVALUATORS[name]
    yield from detectors(entry)
    yield lambda: cep.Detector(BY_ARRIVAL, plan_of(BY_ARRIVAL, entry), evaluator=name)


def check(kind: Any, snapshot: Snapshot, batch: cep.EventStream) -> str:
    """What became of a snapshot; anything but an error of cepbench is raised."""
    try:
        live = kind.restore(snapshot)
    except SnapshotError:
        return "refused"
    try:
        live.push(batch)
        live.flush()
    except CepbenchError:
        return "failed by name"
    return "harmless"


KINDS = [*(its.name for its in cep.EVALUATORS.values() if its.snapshots), *cep.AGGREGATORS]


def opened(name: str, batches: list[cep.EventStream]) -> Iterator[tuple[Any, Snapshot, Snapshot]]:
    """The kind, and snapshots after two streams, of all ways to run something."""
    for open_one in ways(name):
        try:
            one, other = open_one(), open_one()
            for batch in batches[:3]:
                one.push(batch)
            other.push(batches[3])
        except REFUSALS:
            continue
        yield type(one), one.snapshot(), other.snapshot()


@pytest.mark.parametrize("name", KINDS)
def test_states_damaged_before_sealing(name: str, batches: Any, seeds: Any) -> None:
    found = []
    drawn = seeds(1)
    for number, (kind, snapshot, other) in enumerate(opened(name, batches)):
        for seed in drawn:
            rng = np.random.default_rng([seed, number])
            found.append(check(kind, damaged(snapshot, other, rng), batches[-1]))
    assert "refused" in found


@pytest.mark.parametrize("name", KINDS)
def test_damaged_files(name: str, batches: Any, seeds: Any, tmp_path: Path) -> None:
    """Cut, or with flipped bits, as ``load`` reads them."""
    path, refused = tmp_path / "state.npz", 0
    drawn = seeds(1)
    for number, (kind, snapshot, _) in enumerate(opened(name, batches)):
        np.savez(path, **snapshot)  # type: ignore[arg-type]
        written = path.read_bytes()
        for seed in drawn:
            rng = np.random.default_rng([seed, number])
            changed = bytearray(written)
            if rng.integers(4) == 0:
                changed = changed[: rng.integers(len(changed))]
            for place in rng.integers(len(changed), size=rng.integers(1, 4)) if changed else ():
                changed[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(bytes(changed))
            try:
                load = getattr(kind, "load", None)
                restored = (
                    kind.restore(np.load(io.BytesIO(changed))) if load is None else load(path)
                )
            except SnapshotError:
                refused += 1
            except Exception:
                assert load is None  # numpy.load raises it as it is
                refused += 1
            else:
                restored.push(batches[-1])
    assert refused
