"""A snapshot that anything happened to is refused by name: no wrong match, no crash, no raw error."""

from __future__ import annotations

import io
import json
import os
import resource
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.detection.detector import Detector
from cepbench.errors import SnapshotError
from cepbench.planning.plans.model import OrderPlan, UnionPlan
from cepbench.streams.event_stream import EventStream
from tests.contract.snapshots import Snapshot

#: Patterns whose detectors keep something that others do not.
KEEPING = {
    "SEQ": "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 20 units",
    "AND": "AND(A a, B b) WHERE a.s = b.s WITHIN 15 units",
    "waiting for NOT": "SEQ(A a, NOT(B n), C c, NOT(D m)) WHERE n.x > 1 AND m.x > 1 WITHIN 30 units",
    "sets": "SEQ(A a, KL(B b), C c) WHERE b[i].x > b[i-1].x WITHIN 9 units",
    "held matches": "OR(SEQ(A a, B b, NOT(C n)), AND(A a, B b)) WITHIN 30 units",
    "consuming": "SEQ(A a, C c) STRATEGY consuming WITHIN 30 units",
    "consuming under OR": "OR(SEQ(A a, B b), SEQ(A a, C c)) STRATEGY consuming WITHIN 30 units",
    "partitions": "SEQ(A a, B b) STRATEGY partition_contiguity(s) WITHIN 30 units",
    "latency": "SEQ(A a, B b) WITHIN 9 units",
}

EACH = pytest.mark.parametrize("kept", KEEPING)

#: Bits flipped in arrays and in files, and files cut short, for each of the patterns: 10,350 in all.
FLIPS, FLIPS_IN_FILES, CUTS = 850, 250, 50


@cache
def stream() -> EventStream:
    rng = np.random.default_rng(3)
    events = {
        "type": rng.choice(list("ABCD"), 120),
        "time": np.arange(120),
        "x": rng.normal(size=120),
        "s": rng.choice(["p", "q"], 120),
    }
    return EventStream.from_pandas(pd.DataFrame(events), type="type", time="time")


def detector_of(kept: str) -> Detector:
    """A detector in the middle of a stream."""
    pattern = cep.parse(f"PATTERN {KEEPING[kept]}")
    plans = [OrderPlan(branch.positive_names) for branch in pattern.branches()]
    plan = plans[0] if len(plans) == 1 else UnionPlan(plans)
    detector = Detector(pattern, plan, latency=kept == "latency")
    assert len(detector.push(stream()[:60]))
    return detector


@cache
def snapshot_of(kept: str) -> Snapshot:
    return detector_of(kept).snapshot()


@cache
def file_of(kept: str) -> bytes:
    file = io.BytesIO()
    np.savez(file, **snapshot_of(kept))  # type: ignore[arg-type]
    return file.getvalue()


def are_same(snapshot: Mapping[str, Any], other: Snapshot) -> bool:
    def exactly(name: str) -> Any:
        array = snapshot[name]
        return isinstance(array, np.ndarray) and (array.dtype, array.shape, array.tobytes())

    return snapshot.keys() == other.keys() and all(
        exactly(name) == (array.dtype, array.shape, array.tobytes())
        for name, array in other.items()
    )


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    changed[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


@EACH
def test_any_flipped_bit_of_any_array_is_seen(kept: str) -> None:
    rng = np.random.default_rng(FLIPS)
    snapshot = snapshot_of(kept)
    names = [name for name in snapshot if snapshot[name].size]
    for _ in range(FLIPS):
        name = names[rng.integers(len(names))]
        array = snapshot[name]
        changed = np.frombuffer(flipped(array.tobytes(), rng), array.dtype).reshape(array.shape)
        with pytest.raises(SnapshotError, match="damaged"):
            Detector.restore(snapshot | {name: changed})


@EACH
def test_a_file_with_a_flipped_bit_is_refused_or_the_same(kept: str, tmp_path: Path) -> None:
    """Not every bit of a zip file has a meaning, such as those of its dates."""
    rng = np.random.default_rng(FLIPS_IN_FILES)
    path = tmp_path / "state.npz"
    refused = 0
    for _ in range(FLIPS_IN_FILES):
        path.write_bytes(flipped(file_of(kept), rng))
        try:
            restored = Detector.load(path)
        except SnapshotError:
            refused += 1
        else:
            assert are_same(restored.snapshot(), snapshot_of(kept))
    assert refused > FLIPS_IN_FILES / 2


@EACH
def test_an_open_file_with_a_flipped_bit_is_refused_or_the_same(kept: str) -> None:
    """NumPy reads an array when it is asked for, so that its errors come up in ``restore``."""
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(100):
        try:
            opened = np.load(io.BytesIO(flipped(file_of(kept), rng)))
        except Exception:  # outside of cepbench, in whatever way
            continue
        try:
            restored = Detector.restore(opened)
        except SnapshotError:
            refused += 1
        else:
            assert are_same(restored.snapshot(), snapshot_of(kept))
    assert refused > 40


@EACH
def test_a_file_cut_short_is_refused(kept: str, tmp_path: Path) -> None:
    data = file_of(kept)
    path = tmp_path / "state.npz"
    for length in np.linspace(0, len(data) - 1, CUTS).astype(int):
        path.write_bytes(data[:length])
        with pytest.raises(SnapshotError, match="cannot be read"):
            Detector.load(path)


def test_arrays_that_are_missing_added_changed_or_exchanged() -> None:
    one, other = snapshot_of("SEQ"), snapshot_of("AND")
    refused = 0
    changes: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda a: a.byteswap().view(a.dtype.newbyteorder()),
        lambda a: a.astype(np.float64 if a.dtype != np.float64 else np.int64),
        lambda a: a.view(np.uint64) if a.dtype.itemsize == 8 else a[..., None],
        lambda a: a.reshape(-1, 1) if a.ndim == 1 else a.reshape(-1),
        lambda a: a.astype(object),
    ]
    for name in one:
        damaged = [{k: v for k, v in one.items() if k != name}, one | {name: other[name]}]
        damaged += [{(k if k != name else f"{k}x"): v for k, v in one.items()}]
        if one[name].dtype.kind != "U":
            damaged += [one | {name: change(one[name])} for change in changes]
        damaged += [one | {name: junk} for junk in (None, "text", [1], 3, object(), b"")]
        for snapshot in damaged:
            if are_same(snapshot, one):  # such as bytes in another order
                continue
            with pytest.raises(SnapshotError):
                Detector.restore(snapshot)
            refused += 1
    assert refused > 10 * len(one)
    with pytest.raises(SnapshotError, match="added"):
        Detector.restore(one | {"another": np.arange(3)})


def test_the_order_of_arrays_means_nothing_and_reading_only_is_enough() -> None:
    snapshot = snapshot_of("SEQ")
    backwards = {name: snapshot[name] for name in reversed(snapshot)}
    for array in backwards.values():
        array.flags.writeable = False
    assert are_same(Detector.restore(backwards).snapshot(), snapshot)


@pytest.mark.parametrize(
    "foreign",
    [
        None,
        "state.npz",
        Path("state.npz"),
        b"PK",
        7,
        [1, 2],
        (),
        {},
        set(),
        np.arange(4),
        np.array("{}"),
        pd.DataFrame({"header": [1]}),
        {1: np.arange(3), "header": np.arange(2)},
        {"header": "{}"},
        {"header": np.array(["a", None], dtype=object), "digest": np.arange(3)},
        {"header": np.zeros(2, dtype="U0"), "digest": np.zeros(2, dtype="V0")},
        {"header": np.ma.masked_array([1, 2], mask=[0, 1]), "digest": np.zeros(32, np.uint8)},
        {"header": np.zeros(3, np.uint8), "digest": np.zeros(32, np.uint8)},
    ],
    ids=lambda value: f"{type(value).__name__} {value!r}"[:30].replace("\n", " "),
)
def test_what_is_no_snapshot(foreign: Any) -> None:
    with pytest.raises(SnapshotError) as caught:
        Detector.restore(foreign)
    assert "snapshot" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_of_another_program(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.arange(3), header=np.arange(2))
    np.save(tmp_path / "other.npy", np.arange(3))
    np.savez(tmp_path / "objects.npz", header=np.array([{}], dtype=object))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    for file in tmp_path.iterdir():
        with pytest.raises(SnapshotError, match="snapshot"):
            Detector.load(file)
    with np.load(tmp_path / "other.npz") as opened, pytest.raises(SnapshotError, match="no digest"):
        Detector.restore(opened)
    with np.load(tmp_path / "objects.npz") as opened, pytest.raises(SnapshotError, match="Object"):
        Detector.restore(opened)
    opened.close()
    with pytest.raises(SnapshotError):
        Detector.restore(opened)
    with pytest.raises(SnapshotError, match="there is no snapshot"):
        Detector.load(tmp_path / "nothing.npz")
    with pytest.raises(SnapshotError, match="cannot be read"):
        Detector.load(tmp_path)
    for junk in (None, 3.5, [1], "\0"):
        with pytest.raises(SnapshotError):
            Detector.load(junk)  # type: ignore[arg-type]


@EACH
@pytest.mark.parametrize("write", [Detector.save, None], ids=["save", "savez_compressed"])
def test_a_loaded_detector_goes_on(kept: str, write: Any, tmp_path: Path) -> None:
    detector = detector_of(kept)
    path = tmp_path / "made" / "state"
    if write is None:
        path = tmp_path / "state.npz"
        np.savez_compressed(path, **detector.snapshot())  # type: ignore[arg-type]
    else:
        detector.save(path)
        detector.save(path)  # one that is there is replaced
        assert os.listdir(path.parent) == ["state"]
    loaded = Detector.load(path)
    rest = stream()[60:]
    pd.testing.assert_frame_equal(loaded.push(rest), detector.push(rest))
    pd.testing.assert_frame_equal(loaded.flush(), detector.flush())


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path,
) -> None:
    detector = detector_of("SEQ")
    path = tmp_path / "state.npz"
    detector.save(path)
    before = path.read_bytes()

    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # as on a disk that is full
    try:
        with pytest.raises(SnapshotError, match=r"File too large.*where there is room"):
            detector.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert os.listdir(tmp_path) == ["state.npz"]
    assert path.read_bytes() == before
    for junk in (None, 3, [1], path / "below a file"):
        with pytest.raises(SnapshotError, match=r"cannot be written|path of a file"):
            detector.save(junk)  # type: ignore[arg-type]


def test_what_a_later_format_does_not_say_is_asked_for() -> None:
    """A snapshot without a digest, as earlier versions took them, says what to do."""
    snapshot = {k: v for k, v in snapshot_of("SEQ").items() if k != "digest"}
    with pytest.raises(SnapshotError, match=r"no digest.*restore it with the version that took it"):
        Detector.restore(snapshot)


def test_missing_values_of_the_partition_attribute_do_not_pile_up() -> None:
    """NaN is unequal to itself, and was a new key of the header with every batch."""
    detector = Detector(cep.parse(f"PATTERN {KEEPING['partitions']}"), OrderPlan(["a", "b"]))
    sizes = []
    for start in range(100, 1000, 10):
        events = {"type": ["A", "B"], "time": [start, start + 1], "x": 1.0, "s": [None, "p"]}
        detector.push(EventStream.from_pandas(pd.DataFrame(events), type="type", time="time"))
        known = json.loads(detector.snapshot()["known"].tobytes())["run"]["state"]
        ranks = known["engines"][0]["state"]["ranks"]["state"]
        sizes.append(len(ranks["counts"]["mapping"][0]))
    assert set(sizes) == {1}
