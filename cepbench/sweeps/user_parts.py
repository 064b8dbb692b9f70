"""Rows of user-defined plan generators beside a sweep, each generator in a folder of its own.

Adding or editing a generator measures it alone; the rows of all others are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cepbench.planners.registry import find_generator, own_generators
from cepbench.sweeps.configuration import hash_of_code
from cepbench.sweeps.store import COMPLETE, read_results

#: Name of the folder of these folders, within that of the sweep.
_USER = "user"


def user_folder(sweep: str | Path, name: str) -> Path:
    """The folder of a user-defined generator's rows; edited code has another folder.

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


def is_finished(sweep: str | Path, user_defined: Sequence[str] | None = None) -> bool:
    """Whether the sweep and its user-defined generators are completely measured.

    Parameters
    ----------
    sweep : path
        Folder of the sweep.
    user_defined : sequence of str, optional
        Names of user-defined generators; all that are registered by default.
    """
    return all((folder / COMPLETE).exists() for folder in _folders(sweep, user_defined))


def read_with_user_parts(
    sweep: str | Path, user_defined: Sequence[str] | None = None
) -> pd.DataFrame:
    """All finished rows of a sweep and of user-defined generators beside it, pattern by pattern.

    Parameters
    ----------
    sweep, user_defined
        See :func:`is_finished`.

    Returns
    -------
    DataFrame
        See :func:`cepbench.sweeps.store.read_results`.

    Raises
    ------
    ExperimentError
        If one of the folders holds no sweep.
    """
    tables = [read_results(folder) for folder in _folders(sweep, user_defined)]
    if len(tables) == 1:
        return tables[0]
    together = pd.concat(tables, ignore_index=True)
    return together.sort_values("pattern_id", kind="stable", ignore_index=True)


def _folders(sweep: str | Path, user_defined: Sequence[str] | None) -> list[Path]:
    names = own_generators() if user_defined is None else user_defined
    return [Path(sweep), *(user_folder(sweep, name) for name in names)]
