"""What is no snapshot, and files that cannot be read or written; of damaged ones see ``tests/contract``."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.detection.detector import Detector
from cepbench.errors import SnapshotError
from cepbench.planning.plans.model import OrderPlan
from cepbench.streams.event_stream import EventStream
from tests.contract.live import events

PATTERN = "PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 20 units"


def detector_of_events() -> Detector:
    """A detector in the middle of a stream."""
    detector = Detector(PATTERN, OrderPlan(["a", "b", "c"]))
    assert len(detector.push(events(0, 60)))
    return detector


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


def test_an_array_without_a_name() -> None:
    with pytest.raises(SnapshotError, match="'7' is without a name"):
        Detector.restore({**detector_of_events().snapshot(), 7: np.zeros(1)})


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


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path,
) -> None:
    detector = detector_of_events()
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
    snapshot = {k: v for k, v in detector_of_events().snapshot().items() if k != "digest"}
    with pytest.raises(SnapshotError, match=r"no digest.*restore it with the version that took it"):
        Detector.restore(snapshot)


def test_missing_values_of_the_partition_attribute_do_not_pile_up() -> None:
    """NaN is unequal to itself, and was a new partition with every batch."""
    detector = Detector(
        "PATTERN SEQ(A a, B b) STRATEGY partition_contiguity(s) WITHIN 30 units",
        OrderPlan(["a", "b"]),
    )
    sizes = []
    for start in range(100, 1000, 10):
        frame = {"type": ["A", "B"], "time": [start, start + 1], "x": 1.0, "s": [None, "p"]}
        detector.push(EventStream.from_pandas(pd.DataFrame(frame), type="type", time="time"))
        sizes.append(int(detector.snapshot()["run/engines/0/ranks/used"][0]))
    assert set(sizes) == {1}
