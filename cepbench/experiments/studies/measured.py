"""Sweeps of studies, measured, or read where they are finished."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.profiles import MEASURED_AS, REFERENCE
from cepbench.experiments.studies.reference import is_complete, is_restored, restore_sweep
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.restrictions import restrictions
from cepbench.experiments.sweeps.store import COMPLETE, is_finished, read_draws
from cepbench.experiments.sweeps.sweep_file import Sweep, data_paths, read_sweep, sweep_folder
from cepbench.planning.planners.registry import user_defined_generators
from cepbench.streams.dataset_folder import Declaration, read_declaration


@dataclass(frozen=True)
class StudySweep:
    """A sweep with its results, measured where they are missing."""

    config: SweepConfig
    #: Its events, Parquet by the stream's name, ``""`` for a single one.
    streams: Mapping[str, Path]
    #: Of the results, as :mod:`cepbench.experiments.sweeps.store` lays it out.
    folder: Path
    #: Its file, as it was read.
    sweep: Sweep
    #: User-defined plan generators that are measured beside those of the configuration.
    own: Sequence[str]
    #: The study whose results in the package are read, instead of measured; empty for a measured sweep.
    reference_of: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether stream and results are there, those of the package as it has them today."""
        if self.reference_of:
            return is_restored(self.reference_of, self.sweep.name, self.folder)
        return is_finished(self.folder, self.own) and all(
            path.exists() for path in self.streams.values()
        )

    def discard(self) -> None:
        """Remove the results if they are complete; an interrupted sweep still resumes."""
        if (self.folder / COMPLETE).exists():
            shutil.rmtree(self.folder)

    def measure(self) -> None:
        """Generate the stream and measure what is left, on a running Spark session or a new one.

        Results of the package are laid out in the folder instead, without Spark.
        """
        if self.reference_of:
            restore_sweep(self.reference_of, self.sweep.name, self.folder, self.streams)
            return
        # Spark is loaded only where something is measured.
        from cepbench.experiments.sweeps.on_spark.job import run_sweep, sweep_data
        from cepbench.spark.session import session_for_a_while

        with session_for_a_while() as spark:
            sweep_data(spark, self.sweep, self.folder.parents[1])
            run_sweep(spark, self.config, self.folder, user_defined=self.own)

    @cached_property
    def results(self) -> pd.DataFrame:
        """All rows, as :func:`cepbench.experiments.sweeps.on_spark.job.run_sweep` returns them."""
        from cepbench.experiments.sweeps.on_spark.job import finished_results

        return finished_results(self.config, self.folder, self.own)

    @property
    def stream(self) -> Path:
        """Its events, where it has a single stream."""
        return self.streams[""]

    @cached_property
    def declaration(self) -> Declaration:
        """Of the stream: its events and their types."""
        return _declaration(self.stream)

    def describe(self) -> str:
        """Numbers of events, types, runs and patterns, in a line."""
        data = " and ".join(
            f"{streams} stream{'s' if streams > 1 else ''} of {events:,} events of "
            f"{types:,} type{'s' if types > 1 else ''}"
            for (events, types), streams in Counter(
                (found.events, len(found.counts))
                for found in map(_declaration, self.streams.values())
            ).items()
        )
        patterns = self.results["pattern_id"].nunique()
        return (
            f"{data}; {len(self.results):,} runs of {patterns} pattern{'s' if patterns > 1 else ''}"
        )

    def _repr_markdown_(self) -> str:
        sentences = [
            f"{self.sweep.title}: {self.describe()}.",
            *restrictions(self.config, self.own, read_draws(self.folder)),
        ]
        if self.reference_of and not is_complete(self.reference_of, self.sweep.name):
            sentences.append(
                "**This sweep is not finished**: these patterns of it were measured so far."
            )
        return "\n".join(f"- {sentence}" for sentence in sentences)


def _declaration(path: Path) -> Declaration:
    found = read_declaration(path)
    if found is None:
        raise ExperimentError(f"{path} declares no events; is the sweep measured?")
    return found


def study_sweep(
    name: str, profile: str, data: str | Path, *, seed: int = 0, **changes: Any
) -> StudySweep:
    """A sweep of a study, ``kolchinsky2018/types``, whether it was measured or not; nothing is run.

    ``data`` is the folder for generated streams and for results, which all notebooks share, the
    seed that of stream and sweep. Changes are keys of the sweep file, ``identifiers`` and ``days``
    that replace its values unless they are empty or 0. The profile ``reference`` is that of the package's
    results, which nothing changes.

    Raises ExperimentError if there is no such sweep, profile or key.
    """
    given = {key: value for key, value in changes.items() if value}
    is_reference = profile == REFERENCE
    if is_reference:
        if given or seed:
            raise ExperimentError(
                f"the reference results of {name} are read as they are: there is nothing to change "
                f"about {', '.join(given) or 'the seed'}; measure with --profile {MEASURED_AS}"
            )
        profile, data = MEASURED_AS, Path(data) / REFERENCE
    stream = dict(read_sweep(name, profile=profile).stream or {})
    if stream:
        given["data"] = {key: given.pop(key, value) for key, value in stream.items()}
    sweep = read_sweep(name, profile=profile, changes={**given, "seed": seed})
    paths = data_paths(sweep, data)
    config = sweep.config(paths)
    return StudySweep(
        config,
        paths,
        sweep_folder(data, sweep.name, config),
        sweep,
        [] if is_reference else user_defined_generators(),
        name.partition("/")[0] if is_reference else "",
    )


def measure_all(sweeps: Sequence[StudySweep]) -> Iterator[StudySweep]:
    """Measure sweeps one after the other on one start of Spark, if any; each is yielded when it is done."""
    for sweep in sweeps:
        if sweep.reference_of:
            sweep.measure()
            yield sweep
    sweeps = [sweep for sweep in sweeps if not sweep.reference_of]
    if sweeps:
        from cepbench.spark.session import session_for_a_while

        with session_for_a_while():
            for sweep in sweeps:
                sweep.measure()
                yield sweep


def measured_sweeps(
    names: Sequence[str],
    profile: str,
    data: str | Path,
    *,
    seed: int = 0,
    fresh: bool = False,
    **changes: Any,
) -> list[StudySweep]:
    """Measure sweeps of a study, or read those that are finished; ``fresh`` measures them again.

    Registered user-defined plan generators are measured beside those of the sweeps. Parameters are
    those of :func:`study_sweep`.

    Raises ExperimentError if there is no such sweep, profile or key, or a pattern could not be
    measured.
    """
    sweeps = [study_sweep(name, profile, data, seed=seed, **changes) for name in names]
    for sweep in sweeps if fresh else ():
        sweep.discard()
    for _ in measure_all([sweep for sweep in sweeps if not sweep.is_finished]):
        pass
    return sweeps


def measured_sweep(name: str, profile: str, data: str | Path, **settings: Any) -> StudySweep:
    """One sweep, as :func:`measured_sweeps` measures or reads several."""
    (sweep,) = measured_sweeps([name], profile, data, **settings)
    return sweep
