"""What user-defined plan generators measured beside a sweep, each in a folder within its folder.

So a generator that is added, or edited, is measured by itself, and the rows of all others stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cepbench.planners.registry import find_generator, own_generators
from cepbench.sweeps.configuration import hash_of_code
from cepbench.sweeps.store import COMPLETE, read_results

#: The folder within that of a sweep in which such parts lie.
_USER = "user"


def own_folder(sweep: str | Path, name: str) -> Path:
    """Where the rows of a user-defined generator lie; edited code has another folder.

    Parameters
    ----------
    sweep : path
        Folder of the sweep.
    name : str
        Of the generator.

    Raises
    ------
    PlanGeneratorError
        If there is no such generator.
    """
    generator = find_generator(name)
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", generator.name)
    return Path(sweep) / _USER / f"{plain}-{hash_of_code(generator)}"


def is_finished(sweep: str | Path, own: Sequence[str] | None = None) -> bool:
    """Whether there is nothing left to measure, of the sweep and of user-defined generators.

    Parameters
    ----------
    sweep : path
        Folder of the sweep.
    own : sequence of str, optional
        Names of user-defined generators; all that are registered by default.
    """
    return all((folder / COMPLETE).exists() for folder in _folders(sweep, own))


def read_with_own(sweep: str | Path, own: Sequence[str] | None = None) -> pd.DataFrame:
    """All finished rows of a sweep and of user-defined generators beside it, pattern by pattern.

    Parameters
    ----------
    sweep, own
        As :func:`is_finished` takes them.

    Returns
    -------
    DataFrame
        As :func:`cepbench.sweeps.store.read_results` returns it.

    Raises
    ------
    ExperimentError
        If one of the folders holds no sweep.
    """
    tables = [read_results(folder) for folder in _folders(sweep, own)]
    if len(tables) == 1:
        return tables[0]
    together = pd.concat(tables, ignore_index=True)
    return together.sort_values("pattern_id", kind="stable", ignore_index=True)


def _folders(sweep: str | Path, own: Sequence[str] | None) -> list[Path]:
    names = own_generators() if own is None else own
    return [Path(sweep), *(own_folder(sweep, name) for name in names)]
