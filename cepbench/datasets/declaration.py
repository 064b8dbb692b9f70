"""``dataset.toml``: what a folder of the catalogue says about its data set, read strictly."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cepbench.errors import DatasetError, suggest

FILE = "dataset.toml"
PROVENANCE = "provenance.md"

#: How a variant comes to be there.
COMMITTED, ON_FIRST_USE, BY_SPARK = MADE = ("committed", "on first use", "by Spark")

#: Variants that nobody declared lie below this folder of a data set.
DATA = "data"

#: Characters of a name or path that a message quotes.
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a data set: its Arrow type, unit, and what it means."""

    name: str
    type: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Variant:
    """A data set in one size.

    Attributes
    ----------
    name, about : str
    path : Path
        A folder as :mod:`cepbench.streams.dataset` describes it, a Parquet file, or a source file.
    made : str
        One of :data:`MADE`.
    events : int or None
        How many it must have; None if nobody knows.
    sha256 : str
        Of its content, see :mod:`cepbench.datasets.checksums`; empty where that takes too long.
    parameters : mapping
        From what it is made.
    """

    name: str
    about: str
    path: Path
    made: str
    events: int | None
    sha256: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """One data set of the catalogue.

    Attributes
    ----------
    name : str
        Of its folder.
    folder : Path
        Of its description, patterns and samples.
    home : Path
        The folder with its ``data``, which is what is made or ingested: the same one, where that
        can be written to.
    title, summary, source, licence : str
    kind : str
        What its folders of events are called in their own declarations, such as ``nasdaq-style``.
    default : str
        The variant that is meant by the name alone.
    columns : tuple of Column
    variants : dict of str to Variant
    """

    name: str
    folder: Path
    home: Path
    title: str
    kind: str
    summary: str
    source: str
    licence: str
    default: str
    columns: tuple[Column, ...]
    variants: Mapping[str, Variant]

    @property
    def provenance(self) -> str:
        """Where the data comes from, at length; empty if its folder has no such note."""
        note = self.folder / PROVENANCE
        return note.read_text(encoding="utf-8") if note.exists() else ""

    def own(self, name: str) -> Path:
        """The folder of a variant that nobody declared.

        Raises
        ------
        DatasetError
            If it cannot be a name, see :func:`check_name`.
        """
        return self.home / DATA / check_name(name)


_TEXTS = ("title", "kind", "summary", "source", "licence", "default")
_OF_COLUMN = ("type", "unit", "meaning")
_OF_VARIANT = ("about", "path", "made", "events", "sha256", "parameters")


def read_entry(folder: Path, home: Path | None = None) -> Entry:
    """Read the declaration in a folder of the catalogue.

    Parameters
    ----------
    folder : Path
    home : Path, optional
        Where its events are made, if not there.

    Raises
    ------
    DatasetError
        If it cannot be read, lacks a key, or has one that is not known; then the nearest known
        one is named.
    """
    file = folder / FILE
    home = home or folder
    content = read_toml(file)
    _check_keys(file, "", content, (*_TEXTS, "columns", "variants"), _TEXTS)
    columns = []
    for name, column in content.get("columns", {}).items():
        _check_keys(file, f"columns.{name}.", column, _OF_COLUMN, ("type", "meaning"))
        columns.append(Column(name, column["type"], column.get("unit", ""), column["meaning"]))
    variants = {}
    for name, variant in content.get("variants", {}).items():
        try:
            check_name(name)
        except DatasetError as error:
            raise DatasetError(f"{file}: variants: {error}") from None
        place = f"variants.{name}."
        _check_keys(file, place, variant, _OF_VARIANT, ("about", "path", "made"))
        if variant["made"] not in MADE:
            raise DatasetError(
                f"{file}: {place}made is {variant['made']!r}; it is one of {', '.join(MADE)}"
            )
        variants[name] = Variant(
            name=name,
            about=variant["about"],
            path=(folder if variant["made"] == COMMITTED else home) / variant["path"],
            made=variant["made"],
            events=variant.get("events"),
            sha256=variant.get("sha256", ""),
            parameters=variant.get("parameters", {}),
        )
    if content["default"] not in variants:
        raise DatasetError(
            f"{file}: default is {content['default']!r}; the variants are {', '.join(variants)}"
        )
    texts = {name: content[name] for name in _TEXTS}
    return Entry(
        name=folder.name,
        folder=folder,
        home=home,
        columns=tuple(columns),
        variants=variants,
        **texts,
    )


#: What data sets and their variants are called: what is a single name on every file system.
_NAME = re.compile(r"\w[\w.-]{0,63}")


def check_name(name: str) -> str:
    """The name of a variant, from which the place of its folder is made.

    Raises
    ------
    DatasetError
        If it is not made of letters, digits, ``_``, ``-`` and ``.`` alone, begins with one of the
        last two, or is longer than 64 characters.
    """
    if not _NAME.fullmatch(name):
        raise DatasetError(
            f"{quoted(name)} cannot be the name of a data set: at most 64 letters, digits, _, - and ., "
            "the first one a letter, a digit or _"
        )
    return name


def quoted(name: str) -> str:
    """A name or path in quotes, its middle left out if it is longer than anybody's."""
    return repr(name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}")


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises
    ------
    DatasetError
        If it is missing or no TOML; the message has line and column.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DatasetError(f"{file} cannot be read: {error}") from error


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: the nearest one, and what there is."""
    names = list(known)
    near = suggest(name, names, cutoff=0.5)
    there = f"there are {', '.join(names)}" if names else "there are none"
    return f"did you mean {near!r}? There are {', '.join(names)}" if near else there


def _check_keys(
    file: Path, place: str, found: Any, known: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    if not isinstance(found, dict):
        raise DatasetError(f"{file}: {place.rstrip('.')} must be a table of {', '.join(known)}")
    for name in found:
        if name not in known:
            raise DatasetError(f"{file} has an unknown key {place}{name}; {nearest(name, known)}")
    for name in needed:
        if name not in found:
            raise DatasetError(f"{file} lacks the key {place}{name}")
