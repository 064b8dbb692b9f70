"""This machine against the reference: its sweeps beside those in the package, run by run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import RESAMPLES, Statistic, with_interval
from cepbench.experiments.analysis.sweep_differences import pairs_of, unequal
from cepbench.experiments.studies.profiles import PROFILES
from cepbench.experiments.studies.reference import read_about, read_parts, results_folder
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.sweeps.store import COMPLETE, read_kept, read_results

_RATIO = Statistic(np.mean, of_logs=True)


@dataclass(frozen=True, slots=True)
class Kept:
    """A sweep in the package."""

    study: str
    profile: str
    name: str

    @property
    def path(self) -> Path:
        """Its table, as :func:`cepbench.experiments.studies.reference.read_parts` takes it."""
        return results_folder(self.study, self.profile) / self.name

    @property
    def identity(self) -> dict[str, Any]:
        """What it measured."""
        identity: dict[str, Any] = read_about(self.path)["identity"]
        return identity

    def __str__(self) -> str:
        return f"{self.study}/{self.name}, {self.profile}"


def kept_sweeps() -> list[Kept]:
    """All sweeps in the package, study by study."""
    return [
        Kept(study, profile, file.stem)
        for study in STUDIES
        for profile in PROFILES
        for file in sorted(results_folder(study, profile).glob("*.json"))
    ]


def reference_of(sweep: Path) -> Kept:
    """The sweep in the package that measured the same as one in a folder.

    Raises ExperimentError if there is none, with what differs from the nearest.
    """
    wanted = read_kept(sweep, "sweep")
    name = sweep.resolve().name.rpartition("-")[0]
    named = [kept for kept in kept_sweeps() if kept.name == name]
    differing = {kept: _differing(kept.identity, wanted) for kept in named}
    for kept, keys in differing.items():
        if not keys:
            return kept
    if not named:
        raise ExperimentError(
            f"the package has no reference results of a sweep {name}; `cepbench sweep list` names those of the studies"
        )
    near = min(differing, key=lambda kept: len(differing[kept]))
    raise ExperimentError(
        f"{sweep} did not measure what the reference results of {near} did: {', '.join(differing[near])} "
        "differ; compare the two with `cepbench sweep compare`"
    )


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]


def against_reference(data: Path, *, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Each sweep in a folder of data that the package has results of, beside them.

    ``sweep``, ``profile``, ``runs`` in common; ``matches``, ``plans`` and ``work``, how many of them
    differ; ``ratio``, ``low`` and ``high``, the geometric mean over patterns and streams of the time here divided by
    that of the reference, with its 95 % interval.
    """
    found = {}
    for results in (data / "sweeps").glob(f"*/{COMPLETE}"):
        with suppress(ExperimentError):  # a sweep of the user's own, or of other sizes
            found[reference_of(results.parent)] = results.parent
    for kept, folder in sorted(found.items(), key=lambda its: str(its[0])):
        pairs = pairs_of(read_parts(kept.path), read_results(folder))
        yield {
            "sweep": f"{kept.study}/{kept.name}",
            "profile": kept.profile,
            "runs": len(pairs),
            **{name: len(its) for name, its in unequal(pairs).items()},
            **_ratio(pairs, seed, kept.name),
        }


def _ratio(pairs: pd.DataFrame, seed: int, name: str) -> dict[str, float]:
    one, other = (
        pairs[f"seconds_{which}"].to_numpy(np.float64, na_value=np.nan)
        for which in ("first", "second")
    )
    timed = (one > 0) & (other > 0)
    logs = pd.Series(np.log(other[timed] / one[timed]))
    places = [pairs.loc[timed, column].to_numpy() for column in ("pattern_id", "stream")]
    found = with_interval(logs.groupby(places).mean().to_numpy(), _RATIO, seed, RESAMPLES, name)
    return {"ratio": found["value"], "low": found["low"], "high": found["high"]}
