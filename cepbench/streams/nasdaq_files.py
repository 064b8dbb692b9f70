"""The NASDAQ-style stream as files that can be written independently, by a loop or Spark tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.streams.dataset_folder import MONTH, Declaration
from cepbench.streams.nasdaq_style import ARITHMETIC, MEAN_RATE_PER_WINDOW, NasdaqStyle
from cepbench.streams.parquet_files import write_table

KIND = "nasdaq-style"

#: Events per file: few files, yet readers can skip most.
_FILE_EVENTS = 400_000
#: Minimum number of files, so that several cores can write a short stream.
_SMALL_FILE_EVENTS = 20_000
_LEAST_FILES = 8


@dataclass(frozen=True, slots=True)
class Part:
    """The work of one file: some identifiers over the days of one month."""

    month: str
    number: int
    identifiers: np.ndarray
    first: int
    last: int


def parameters_of(style: NasdaqStyle) -> dict[str, Any]:
    """The parameters in the data set's declaration; bounds and drift only if not the defaults."""
    return {
        "identifiers": style.identifiers,
        "days": style.days,
        "seed": style.seed,
        "first_day": style.first_day.isoformat(),
        "arithmetic": ARITHMETIC,
        **style.unusual,
    }


def parts_of(style: NasdaqStyle) -> list[Part]:
    """All files; they depend on the stream's parameters alone."""
    alphabetical = np.argsort(np.array(style.symbols), kind="stable")
    months = style.dates.astype("datetime64[M]")
    parts = []
    for month in np.unique(months):
        first, last = np.searchsorted(months, [month, month + 1]).tolist()
        expected = style.expected_events(days=last - first)
        files = max(
            math.ceil(expected / _FILE_EVENTS),
            min(_LEAST_FILES, math.ceil(expected / _SMALL_FILE_EVENTS)),
        )
        for number, some in enumerate(np.array_split(alphabetical, min(files, style.identifiers))):
            parts.append(Part(str(month), number, some, first, last))
    return parts


def write_part(style: NasdaqStyle, path: Path, part: Part) -> tuple[np.ndarray, pa.Schema]:
    """Write one file; returns its events per identifier, and its columns."""
    table = style.table(part.identifiers, part.first, part.last)
    write_table(table, path / f"{MONTH}={part.month}" / f"part-{part.number:05d}.parquet")
    counts = np.bincount(table.column("sequence").to_numpy(), minlength=style.identifiers)
    return counts, table.schema


def declaration_of(
    style: NasdaqStyle,
    made: Sequence[tuple[np.ndarray, pa.Schema]],
    parameters: Mapping[str, Any],
) -> Declaration:
    """The declaration of the data set, from the results of :func:`write_part`."""
    usual = {"least_rate", "most_rate"}.isdisjoint(style.unusual)
    mean = MEAN_RATE_PER_WINDOW if usual else style.rates.mean()
    totals = np.sum([counts for counts, _ in made], axis=0)
    return Declaration(
        kind=KIND,
        parameters=parameters,
        events=int(totals.sum()),
        counts=dict(zip(style.symbols, totals.tolist(), strict=True)),
        columns={field.name: str(field.type) for field in made[0][1]},
        notes={
            "arrival rates": (
                f"{style.least_rate:g} to {style.most_rate:g} events per identifier and 20 "
                f"minutes, about {mean:.1f} on average (the paper prints per second, which does "
                "not fit its number of events)"
            )
        },
    )
