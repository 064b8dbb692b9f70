"""Memory of every entry follows the window, not the stream, whatever it keeps; no match is lost by it."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from tests.contract.entries import LIVE
from tests.contract.live import REFUSALS, events, plain, ways_of

#: Batches of a stream of ten of the longest windows, in which events repeat themselves.
EVENTS, BATCH = 600, 30

#: How many keys may be kept, of 200; there are fourteen in a window, and a few windows in a batch.
MOST_KEYS = 100

#: Statistics are of more windows than this stream has.
ENDURING = ("adaptive", "adaptive queries")


@pytest.mark.parametrize("name", [its for its in LIVE if its != "dpc"])
def test_memory_follows_the_window(name: str) -> None:
    number = 0
    for words, way in ways_of(name, endless=False):
        try:
            whole, live = way(), way()
            due = joined([whole.push(events(0, EVENTS)), whole.flush()])
        except REFUSALS:
            continue
        found, sizes, peaks = [], [], []
        for first in range(0, EVENTS, BATCH):
            found.append(live.push(events(first, first + BATCH)))
            saved = live.snapshot()
            sizes.append(sum(its.nbytes for its in saved.values()))
            peaks.append(peaks_of(live))
            if first % (2 * BATCH):
                live = type(live).restore(saved)
        assert joined([*found, live.flush()]) == due, words
        number += 1
        if words in ENDURING:
            continue
        assert max(sizes[-5:]) <= 1.2 * max(sizes[4:10]), (words, sizes)
        for metric, early in peaks[9].items():
            # Arrays are doubled.
            room = 4096 if metric.endswith("bytes") else 0
            assert peaks[-1][metric] <= 1.2 * early + room, (words, metric)
        known = b"".join(its.tobytes() for its in saved.values())
        assert len({*re.findall(rb"key \d+", known)}) <= MOST_KEYS, words
    assert number


def peaks_of(live: Any) -> dict[str, float]:
    """The peaks that a run has measured."""
    metrics = live.metrics if isinstance(live, cep.Aggregator) else live.metrics()
    its = {key: value for key, value in metrics.to_dict().items() if key.startswith("peak_")}
    return {key: value for key, value in its.items() if not math.isnan(value)}


def joined(parts: list[Any]) -> Any:
    """All that was pushed as one, by query where there are several."""
    if isinstance(parts[0], dict):
        return {query: joined([part[query] for part in parts]) for query in parts[0]}
    if isinstance(parts[0], int):
        return sum(parts)
    tables = [its if isinstance(its, pd.DataFrame) else its.matches for its in parts]
    return sorted(itertools.chain(*map(plain, tables)))
