"""The folders of the catalogue and the list of its data sets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from platformdirs import user_data_path

from cepbench.files import user_path
from cepbench.streams.dataset_folder import DECLARATION, read_declaration
from cepbench.streams.datasets.declaration import (
    DATA,
    FILE,
    ON_FIRST_USE,
    Entry,
    Variant,
    read_entry,
)

if TYPE_CHECKING:
    import pandas as pd

#: Environment variable with additional folders of data sets, searched first.
VARIABLE = "CEPBENCH_DATASETS"

_FOLDER = "datasets"

#: The part of the project's data sets that a wheel contains; see setup.py.
BUNDLED = Path(__file__).parent / "bundled"


def roots() -> list[Path]:
    """Folders that are searched for data sets, in order.

    These are the folders in ``CEPBENCH_DATASETS``, ``datasets`` in the working directory and its
    parents, and ``datasets`` in the checkout, or its part in the installed package.
    """
    named = [user_path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    here = Path.cwd()
    above = [folder / _FOLDER for folder in (here, *here.parents)]
    checkout = Path(__file__).resolve().parents[3] / _FOLDER
    return list(dict.fromkeys(path.absolute() for path in (*named, *above, checkout, BUNDLED)))


def folders() -> dict[str, Path]:
    """Name → folder of every data set; of several with one name the first."""
    found: dict[str, Path] = {}
    for root in roots():
        for file in sorted(root.glob(f"*/{FILE}")):
            found.setdefault(file.parent.name, file.parent)
    return found


def entries() -> dict[str, Entry]:
    """Name → declaration of every data set; a DatasetError if one of them cannot be read."""
    return {name: entry_in(folder) for name, folder in folders().items()}


def entry_in(folder: Path) -> Entry:
    """The data set that a folder describes.

    Generated and ingested events are stored in that folder; for data sets of the installed package,
    in ``datasets`` of the user's data folder (``~/.local/share/cepbench`` on Linux). A DatasetError
    if it cannot be read.
    """
    if folder.parent != BUNDLED:
        return read_entry(folder)
    return read_entry(folder, user_data_path("cepbench", False) / _FOLDER / folder.name)


def undeclared(entry: Entry) -> Iterator[Path]:
    """Folders of events below an entry's ``data`` that are not in its declaration."""
    declared = {variant.path for variant in entry.variants.values()}
    for file in sorted((entry.home / DATA).glob(f"*/{DECLARATION}")):
        if file.parent not in declared:
            yield file.parent


def list_datasets() -> pd.DataFrame:
    """Every data set in every size, one per row.

    The index is ``data set``, the argument of ``open_dataset``; columns ``events`` (missing if unknown),
    ``megabytes`` on disk, ``at hand`` (``here``, or how to get it), ``about``.

    A DatasetError if a declaration cannot be read.
    """
    import pandas as pd

    rows, names = [], []
    for name, entry in entries().items():
        for variant in entry.variants.values():
            names.append(f"{name}/{variant.name}")
            size = megabytes(variant.path)
            rows.append((variant.events, size, at_hand(name, variant), variant.about))
        for folder in undeclared(entry):
            names.append(f"{name}/{folder.name}")
            declaration = read_declaration(folder)
            events = declaration.events if declaration else None
            rows.append((events, megabytes(folder), "here", "undeclared"))
    columns = ["events", "megabytes", "at hand", "about"]
    index = pd.Index(names, name="data set", dtype=object)
    return pd.DataFrame(rows, index=index, columns=columns).astype({"events": "Int64"})


def at_hand(name: str, variant: Variant) -> str:
    """Whether a variant is present, and how to get it if not."""
    if is_here(variant):
        return "here"
    if variant.made == ON_FIRST_USE:
        return "made on first use"
    return f"cepbench data make {name}/{variant.name}"


def is_here(variant: Variant) -> bool:
    """Whether a variant can be read: a file, or a complete folder."""
    return variant.path.is_file() or (variant.path / DECLARATION).exists()


def megabytes(path: Path) -> float:
    """Size of a file or folder on disk, to a tenth; 0 if it does not exist."""
    files = [path] if path.is_file() else path.rglob("*")
    return round(sum(file.stat().st_size for file in files if file.is_file()) / 1e6, 1)
