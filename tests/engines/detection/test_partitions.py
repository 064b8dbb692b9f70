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
    counter, reader = PartitionRanks("s"), NumericReader()
    found = np.concatenate([counter.of(batch, reader) for batch in stream_of(frame).batches(size)])
    known = frame["s"].notna().to_numpy()
    expected = frame.groupby("s").cumcount()[known]
    np.testing.assert_array_equal(found[known], expected.to_numpy())
    assert counter.of(stream_of(frame)[:0], reader).tolist() == []
