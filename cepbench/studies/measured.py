"""A study's sweep, measured, or read where it is finished: what its notebooks begin with."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.planners.registry import own_generators
from cepbench.streams.dataset import Declaration, read_declaration
from cepbench.sweeps.configuration import SweepConfig
from cepbench.sweeps.restrictions import restrictions
from cepbench.sweeps.store import COMPLETE
from cepbench.sweeps.sweep_file import data_folder, read_sweep, sweep_folder
from cepbench.sweeps.user_parts import is_finished


@dataclass(frozen=True)
class MeasuredSweep:
    """A finished sweep with its stream.

    Attributes
    ----------
    config : SweepConfig
    stream : Path
        The generated stream, Parquet.
    folder : Path
        Of the results, as :mod:`cepbench.sweeps.store` lays it out.
    own : sequence of str
        User-defined plan generators that were measured beside those of the configuration.
    """

    config: SweepConfig
    stream: Path
    folder: Path
    own: Sequence[str]

    @cached_property
    def results(self) -> pd.DataFrame:
        """All rows, as :func:`cepbench.sweeps.on_spark.job.run_sweep` returns them."""
        from cepbench.sweeps.on_spark.job import finished_results

        return finished_results(self.config, self.folder, self.own)

    @cached_property
    def declaration(self) -> Declaration:
        """Of the stream: its events and identifiers."""
        found = read_declaration(self.stream)
        if found is None:
            raise ExperimentError(f"{self.stream} holds no generated stream")
        return found

    def describe(self) -> str:
        """Numbers of events, identifiers, runs and patterns, in a line."""
        return (
            f"{self.declaration.events:,} events of {len(self.declaration.counts):,} identifiers; "
            f"{len(self.results):,} runs over {self.results['pattern_id'].nunique()} patterns"
        )

    def _repr_markdown_(self) -> str:
        sentences = [f"{self.describe()}.", *restrictions(self.config, self.own)]
        return "\n".join(f"- {sentence}" for sentence in sentences)


def measured_sweep(
    name: str,
    profile: str,
    data: str | Path,
    *,
    seed: int = 0,
    fresh: bool = False,
    **changes: Any,
) -> MeasuredSweep:
    """Measure a sweep over a generated stream, or read it where it is finished.

    Registered user-defined plan generators are measured beside those of the sweep. Spark is
    started only if something is left to measure, and stopped afterwards unless it ran before.

    Parameters
    ----------
    name : str
        Study and sweep: ``kolchinsky2018/types``.
    profile : str
    data : path
        Folder for generated streams and for results, which all notebooks share.
    seed : int
        Of the stream and of the sweep.
    fresh : bool
        Measure again what is finished.
    **changes
        Keys of the sweep file, ``identifiers`` and ``days`` to set otherwise; what is empty or 0
        keeps what the file says.

    Raises
    ------
    ExperimentError
        If there is no such sweep, profile or key, or a pattern could not be measured.

    Examples
    --------
    >>> sweep = measured_sweep("kolchinsky2018/types", "quick", "output/data")  # doctest: +SKIP
    >>> sweep.results.groupby("generator")["matches"].sum()  # doctest: +SKIP
    """
    given = {key: value for key, value in changes.items() if value}
    stream = dict(read_sweep(name, profile=profile).stream or {})
    stream |= {key: given.pop(key) for key in stream if key in given}
    sweep = read_sweep(name, profile=profile, changes={**given, "seed": seed, "data": stream})
    path = data_folder(data, stream, seed)
    config = sweep.config(path)
    own = own_generators()
    found = MeasuredSweep(config, path, sweep_folder(data, sweep.name, config), own)
    if fresh and (found.folder / COMPLETE).exists():
        shutil.rmtree(found.folder)
    if not is_finished(found.folder, own) or read_declaration(path) is None:
        _measure(found, stream, seed)
    return found


def _measure(sweep: MeasuredSweep, stream: dict[str, int], seed: int) -> None:
    from cepbench.spark.generate import generate_nasdaq_style
    from cepbench.spark.session import session_for_a_while
    from cepbench.sweeps.on_spark.job import run_sweep

    with session_for_a_while() as spark:
        generate_nasdaq_style(
            spark,
            sweep.stream,
            identifiers=stream["identifiers"],
            days=stream["days"],
            seed=seed,
        )
        run_sweep(spark, sweep.config, sweep.folder, own=sweep.own)
