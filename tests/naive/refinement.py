"""Refinement by its meaning: every match of one query, projected, is a match of another one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pandas as pd

from cepbench.patterns.model import Pattern
from tests.naive.matcher import naive_matches


def unrefuted(
    general: Pattern, specific: Pattern, streams: Sequence[pd.DataFrame]
) -> Iterator[tuple[int, ...]]:
    """The ways to read matches of ``specific`` as ones of ``general`` that hold on these streams.

    Each is the index in ``specific.positive`` of each of ``general.positive``. An event is a set of one.
    """
    wraps = [variable.is_set for variable in general.positive]

    def projected(match: tuple, way: tuple[int, ...]) -> tuple:
        return tuple(
            (match[i],) if is_set and not isinstance(match[i], tuple) else match[i]
            for i, is_set in zip(way, wraps, strict=True)
        )

    results = [(naive_matches(specific, each), naive_matches(general, each)) for each in streams]
    indices = range(len(specific.positive))
    for way in itertools.permutations(indices, len(general.positive)):
        if all({projected(match, way) for match in of} <= all_ for of, all_ in results):
            yield way
