"""Opening data sets by name or path."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from cepbench.arguments import kind_of
from cepbench.errors import DatasetError, suggest
from cepbench.files import user_path
from cepbench.streams.dataset_folder import DECLARATION, UNFINISHED, read_declaration
from cepbench.streams.datasets.catalogue import (
    VARIABLE,
    entries,
    entry_in,
    folders,
    is_here,
    list_datasets,
    roots,
    undeclared,
)
from cepbench.streams.datasets.checksums import stream_checksum
from cepbench.streams.datasets.dataset import Dataset
from cepbench.streams.datasets.declaration import (
    BY_SPARK,
    COMMITTED,
    DATA,
    ON_FIRST_USE,
    Entry,
    Variant,
    check_name,
    nearest,
    quoted,
)
from cepbench.streams.generated import GENERATED, make_in_one_step, stream_of

if TYPE_CHECKING:
    import pandas as pd


@overload
def open_dataset(name: None = None) -> pd.DataFrame: ...
@overload
def open_dataset(name: str | Path) -> Dataset: ...
def open_dataset(name: str | Path | None = None) -> Dataset | pd.DataFrame:
    """Open a data set by name or path; without an argument, list the catalogue.

    Parameters
    ----------
    name : str or path, optional
        ``nasdaq-style/quick`` is a data set in one size, ``nasdaq-style`` its default size. Or the
        path of a folder written by :mod:`cepbench.spark.generate`, :mod:`cepbench.spark.ingest` or
        this function.

    Returns
    -------
    Dataset
        Its events are verified against the checksum in ``dataset.toml``. A missing data set that
        can be generated without Java is generated first, which is logged. Without ``name``, the
        DataFrame of :func:`cepbench.streams.datasets.catalogue.list_datasets`.

    Raises
    ------
    DatasetError
        If the name is unknown (the nearest one is suggested), the data is missing and must be made
        in another way (the message says how), or it does not match its declaration.

    Notes
    -----
    The catalogue is every folder with a ``dataset.toml`` below the folders in
    ``CEPBENCH_DATASETS``, below ``datasets`` in the working directory or its parents, below
    ``datasets`` in the checkout of the package, and in the installed package.

    Examples
    --------
    >>> import cepbench as cep
    >>> dataset = cep.open_dataset("nasdaq-style/sample")
    >>> stream = dataset.stream(types=["MSFT", "GOOG"], days=1)
    """
    if name is None:
        return list_datasets()
    if not isinstance(name, str | Path):
        raise DatasetError(
            f"open_dataset takes a name or path, not {kind_of(name)}; cep.open_dataset() lists the "
            "data sets"
        )
    if isinstance(name, Path) or name.startswith((".", "~", os.sep)):
        return open_path(user_path(name))
    entry, rest = find_entry(name)
    if entry is not None:
        return open_entry(entry, rest)
    if os.path.exists(name):  # unlike Path.exists, never raises
        return open_path(Path(name))
    raise unknown(name)


def find_entry(name: str) -> tuple[Entry | None, str]:
    """The data set of a name (None if there is none), and the name of its variant.

    A DatasetError if its declaration cannot be read, or the name of the variant is invalid.
    """
    first, _, rest = name.strip("/").partition("/")
    folder = folders().get(first)
    if folder is None:
        return None, rest
    return entry_in(folder), check_name(rest) if rest else ""


def unknown(name: str) -> DatasetError:
    """The error for an unknown name, with the nearest ones, or for a missing catalogue."""
    known = folders()
    if known:
        near = " or ".join(map(repr, _near(name.strip("/"))))
        hint = f"; did you mean {near}?" if near else ""
        return DatasetError(
            f"no data set or path {quoted(name)}; there are {', '.join(known)}{hint}"
        )
    return DatasetError(
        f"no data set {quoted(name)}: there is no catalogue in {', '.join(map(str, roots()[:2]))} "
        f"and above; run this in a checkout of cepbench, or set {VARIABLE} to its folder datasets"
    )


def _near(name: str) -> list[str]:
    """Similar names: of data sets, or of variants without the data set."""
    variants: dict[str, list[str]] = {}
    known = []
    for entry in entries().values():
        own = [*entry.variants, *(path.name for path in undeclared(entry))]
        known += [entry.name, *(f"{entry.name}/{variant}" for variant in own)]
        for variant in own:
            variants.setdefault(variant, []).append(f"{entry.name}/{variant}")
    if name in variants:
        return variants[name]
    if near := suggest(name, known):
        return [near]
    # The name of the variant may be right although that of the data set is not.
    last = suggest(name.rpartition("/")[2], variants)
    return variants[last] if last else []


def open_entry(entry: Entry, name: str = "") -> Dataset:
    """Open a data set of the catalogue in one size, by default its default size."""
    name = name or entry.default
    own = {path.name: path for path in undeclared(entry)}
    if name in own:
        return open_path(own[name])
    if name not in entry.variants:
        raise DatasetError(
            f"data set {entry.name!r} has no variant {name!r}; {nearest(name, [*entry.variants, *own])}"
        )
    variant = entry.variants[name]
    if not is_here(variant):
        _fetch(entry, variant)
    declaration = None if variant.path.is_file() else read_declaration(variant.path)
    dataset = Dataset(f"{entry.name}/{name}", variant.path, entry.kind, declaration, entry, variant)
    verify(dataset)
    return dataset


def open_path(path: Path) -> Dataset:
    """Open a folder of events by its own declaration, without verification.

    A DatasetError if it does not exist, is incomplete, or was not written by cepbench.
    """
    declaration = read_declaration(path)
    if declaration is None:
        raise DatasetError(
            f"{path} is not a cepbench data set: it has no {DECLARATION}. Other Parquet is read by "
            "cep.EventStream.from_parquet(path, type=..., time=...)"
        )
    entry = next((entry for entry in entries().values() if entry.kind == declaration.kind), None)
    own = entry is not None and path.resolve().parent == (entry.home / DATA).resolve()
    name = f"{entry.name}/{path.name}" if entry is not None and own else str(path)
    return Dataset(name, path, declaration.kind, declaration, entry, None)


def verify(dataset: Dataset) -> None:
    """Verify number and checksum of a data set's events, if declared in the catalogue.

    A DatasetError if they differ.
    """
    variant, entry = dataset.variant, dataset.entry
    if variant is None or entry is None:
        return
    found: list[tuple[str, object, object]] = []
    if variant.events is not None:
        found.append(("number of events", variant.events, dataset.events))
    if variant.sha256:
        found.append(("SHA-256 of its events", variant.sha256, stream_checksum(dataset.stream())))
    for what, expected, there in found:
        if expected != there:
            raise DatasetError(
                f"{variant.path}: the {what} is {there}, but {entry.folder / 'dataset.toml'} "
                f"expects {expected}; {_remedy(entry, variant)}"
            )


def _remedy(entry: Entry, variant: Variant) -> str:
    if variant.made == COMMITTED:
        if entry.home != entry.folder:
            return "it is part of the package: reinstall cepbench"
        return f"restore the committed file: git checkout -- {variant.path}"
    again = "delete that folder; it is then made again"
    if variant.made == ON_FIRST_USE:
        return (
            f"{again}. If that does not help, NumPy {np.__version__} draws other random numbers "
            "than the version in requirements.txt: install that, or open the folder by its path, "
            "without verification"
        )
    return f"{again} by the command that made it"


def _fetch(entry: Entry, variant: Variant) -> None:
    """Generate a missing variant, or raise an error with how to get it."""
    size = f"{variant.events:,} events" if variant.events else variant.about
    if (variant.path / UNFINISHED).exists() and variant.made == BY_SPARK:
        read_declaration(variant.path)  # raises if it is incomplete
    if variant.made == ON_FIRST_USE and entry.kind in GENERATED:
        try:
            stream = stream_of(entry.kind, variant.parameters)
        except DatasetError as error:
            place = f"{entry.folder / 'dataset.toml'}: variants.{variant.name}.parameters"
            raise DatasetError(f"{place}: {error}") from error
        # Without the path: notebooks are published.
        line = f"cepbench: making the data set {entry.name}/{variant.name}, {size}, once ..."
        print(line, file=sys.stderr, flush=True)
        make_in_one_step(variant.path, stream)
        return
    if variant.made == BY_SPARK:
        raise DatasetError(
            f"{entry.name}/{variant.name} does not exist ({size}); make it with Spark by `cepbench "
            f"data make {entry.name}/{variant.name}`, or use another variant: "
            f"{', '.join(name for name in entry.variants if name != variant.name)}"
        )
    raise DatasetError(f"{variant.path} is missing; {_remedy(entry, variant)}")
