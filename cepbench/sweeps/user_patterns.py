"""Patterns that a sweep names one by one, beside those that it draws."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cepbench.datasets.catalogue import folders
from cepbench.datasets.library import read_library
from cepbench.errors import DatasetError, ExperimentError, did_you_mean
from cepbench.streams.nasdaq_files import KIND
from cepbench.sweeps.workload import PatternSpec

#: The pattern set of such patterns in results.
USER = "user"


def library_patterns(names: Sequence[Any], data: Any) -> dict[str, str]:
    """Patterns of the library that comes with a data set, by their names there.

    Parameters
    ----------
    names : sequence of str
    data : str or mapping
        The name of a data set, such as ``nasdaq-style/quick``; or the parameters of a generated
        stream, which the library of ``nasdaq-style`` fits.

    Raises
    ------
    ExperimentError
        If the data is none of the catalogue, or its library has no such pattern.
    """
    known = folders()
    named = data.strip("/").partition("/")[0] if isinstance(data, str) else KIND
    if named not in known:
        raise ExperimentError(
            f"user_patterns names patterns of a library, and {data!r} is no data set of the "
            "catalogue; write their texts, as in [user_patterns] and then name = 'PATTERN …'"
        )
    library = read_library(known[named], named)
    try:
        return {str(name): library.entry(str(name)).text for name in names}
    except DatasetError as error:
        raise ExperimentError(str(error)) from error


def user_specs(
    patterns: Sequence[tuple[str, str]], known_types: Collection[str], seed: int
) -> list[PatternSpec]:
    """The patterns as a workload; their size is that of their largest branch.

    Parameters
    ----------
    patterns : sequence of (str, str)
        As :class:`~cepbench.sweeps.configuration.SweepConfig` stores them.
    known_types : collection of str
        Event types that the data has events of.
    seed : int
        Of the sweep.

    Raises
    ------
    ExperimentError
        If a pattern asks for a type that the data has no events of.
    """
    specs = []
    for name, text in patterns:
        spec = PatternSpec(f"{USER}-{name}", USER, 0, text, seed)
        pattern = spec.pattern
        for variable in pattern.variables:
            if variable.type not in known_types:
                raise ExperimentError(
                    f"pattern {name!r}: the data has no event of type {variable.type!r} "
                    f"(variable {variable.name!r}){did_you_mean(variable.type, known_types)}"
                )
        size = max(len(branch.variables) for branch in pattern.branches())
        specs.append(PatternSpec(spec.pattern_id, USER, size, text, seed))
    return specs
