"""Ranks within partitions, counted on from batch to batch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.plan_runs.partitions import PartitionRanks
from cepbench.streams.numeric import NumericReader
from tests.engines.detection.strategies import stream_of


def events(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "type": rng.choice(list("AB"), count),
            "time": np.arange(count, dtype=np.int64),
            # Missing as NaN, which the naive matcher takes for equal to nothing.
            "s": rng.choice(
                np.array(["p", "q", "r", np.nan], object), count, p=[0.5, 0.2, 0.2, 0.1]
            ),
        }
    )


@pytest.mark.parametrize("size", [1, 3, 7, 40])
def test_ranks_go_on_from_batch_to_batch(size: int) -> None:
    frame = events(40, size)
    counter, reader, stream = (
        PartitionRanks("s", 99, 2, timed=True),
        NumericReader(),
        stream_of(frame),
    )
    found = np.hstack(
        [counter.of(stream[row : row + size], reader, row) for row in range(0, 40, size)]
    )
    known = frame["s"].notna().to_numpy()
    partitions = frame["time"].groupby(frame["s"])
    expected = [partitions.cumcount(), partitions.shift(1), partitions.shift(2)]
    # Here a position is a timestamp, too.
    earliest = np.nan_to_num(expected[2], nan=np.iinfo(np.int64).min)
    expected = [*np.nan_to_num(expected, nan=-1), earliest]
    np.testing.assert_array_equal(found[:, known], np.array(expected)[:, known])
    assert counter.of(stream[:0], reader, 40).tolist() == [[], [], [], []]


def test_partitions_of_the_past_are_evicted() -> None:
    frame = pd.DataFrame({"type": "A", "time": range(4_000)})
    stream = stream_of(frame.assign(s=frame["time"] // 2 % 2 * 1e6 + frame["time"] // 4))
    counter, reader = PartitionRanks("s", 20, 1), NumericReader()
    found = np.hstack([counter.of(part, reader, 0) for part in stream.batches(100)])
    assert found[0].tolist() == [0, 1] * 2_000
    assert len(counter.values) < 100
    # As old as the window is not yet of the past.
    ends = pd.DataFrame({"type": "A", "time": [0, 20, 20, 20], "s": [1, 2, 3, 1]})
    places = PartitionRanks("s", 20, 1, timed=True).of(stream_of(ends), reader, 0)
    assert places[:2].tolist() == [[0, 0, 0, 1], [-1, -1, -1, 0]]
    assert places[2, 3] == 0
