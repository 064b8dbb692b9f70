"""Streams whose rates change, or not."""

from __future__ import annotations

import numpy as np
import pandas as pd

import cepbench as cep
from tests.engines.detection.strategies import stream_of

#: Events of each segment, in rounds of :data:`SIZE`.
SEGMENT, SIZE = 20_000, 2000


def segments(*rates: tuple[float, float, float], size: int = SEGMENT) -> cep.EventStream:
    """A tick a unit of time, of types A, B and C with these probabilities."""
    rng = np.random.default_rng(0)
    types = np.concatenate([rng.choice(list("ABC"), size, p=each) for each in rates])
    events = {"type": types, "time": np.arange(len(types)), "x": rng.random(len(types))}
    return stream_of(pd.DataFrame(events))


#: First a is rare, then c.
DRIFT = segments((0.02, 0.49, 0.49), (0.49, 0.49, 0.02))
STEADY = segments((0.02, 0.49, 0.49), (0.02, 0.49, 0.49))
