"""``dataset.toml``, the declaration of a data set in the catalogue; unknown keys are errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from cepbench.arguments import choice, whole
from cepbench.errors import DatasetError, did_you_mean

FILE = "dataset.toml"
PROVENANCE = "provenance.md"

#: How a variant is provided.
COMMITTED, ON_FIRST_USE, BY_SPARK = MADE = ("committed", "on first use", "by Spark")

#: Subfolder of a data set with its undeclared variants.
DATA = "data"

#: Characters of a name or path that a message quotes.
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """A column of a data set: its Arrow type, unit and meaning."""

    name: str
    type: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """One size of a data set."""

    name: str
    about: str
    #: A folder as :mod:`cepbench.streams.dataset_folder` describes it, a Parquet file, or a source
    #: file.
    path: Path
    #: One of :data:`MADE`.
    made: str
    #: The number it must have; None if unknown.
    events: int | None = None
    #: Of its content, see :mod:`cepbench.streams.datasets.checksums`; empty if that takes too
    #: long.
    sha256: str = ""
    #: Parameters of its generation.
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One data set of the catalogue."""

    #: Name of its folder.
    name: str
    #: The folder of its description, patterns and samples.
    folder: Path
    #: The folder with its ``data``, generated or ingested: the same one if it is writable.
    home: Path
    title: str
    #: The kind in the declarations of its folders of events, such as ``nasdaq-style``.
    kind: str
    summary: str
    source: str
    licence: str
    #: The variant that the bare name refers to.
    default: str
    columns: tuple[ColumnDeclaration, ...]
    variants: Mapping[str, Variant]

    @property
    def provenance(self) -> str:
        """The note on the origin of the data; empty if its folder has none."""
        note = self.folder / PROVENANCE
        return note.read_text(encoding="utf-8") if note.exists() else ""

    def undeclared(self, name: str) -> Path:
        """The folder of an undeclared variant.

        A DatasetError if the name is invalid, see :func:`check_name`.
        """
        return self.home / DATA / check_name(name)


def read_entry(folder: Path, home: Path | None = None) -> Entry:
    """Read the declaration in a folder of the catalogue; its events may have another ``home``.

    A DatasetError if it cannot be read, lacks a key, or has an unknown one (the nearest is
    suggested).
    """
    file = folder / FILE
    home = home or folder
    content = read_toml(file)
    check_keys(file, "", {"columns": {}, "variants": {}, **content}, Entry, "folder", "home")
    columns = []
    for name, column in content.get("columns", {}).items():
        check_keys(file, f"columns.{name}.", column, ColumnDeclaration)
        columns.append(ColumnDeclaration(name, **column))
    variants = {}
    for name, variant in content.get("variants", {}).items():
        try:
            check_name(name)
        except DatasetError as error:
            raise DatasetError(f"{file}: variants: {error}") from None
        place = f"variants.{name}."
        check_keys(file, place, variant, Variant)
        choice(variant["made"], f"{file}: {place}made", MADE, DatasetError)
        if "events" in variant:
            whole(variant["events"], f"{file}: {place}events", DatasetError, least=0)
        path = (folder if variant["made"] == COMMITTED else home) / variant["path"]
        variants[name] = Variant(name=name, **{**variant, "path": path})
    choice(content["default"], f"{file}: default", variants, DatasetError)
    known = {**content, "columns": tuple(columns), "variants": variants}
    return Entry(name=folder.name, folder=folder, home=home, **known)


#: Names of data sets and variants: valid file names everywhere.
_NAME = re.compile(r"\w[\w.-]{0,63}")


def check_name(name: str) -> str:
    """Check the name of a variant, which is also that of its folder.

    A DatasetError if it has characters other than letters, digits, ``_``, ``-`` and ``.``, begins
    with one of the last two, or is longer than 64 characters.
    """
    if not _NAME.fullmatch(name):
        raise DatasetError(
            f"{quoted(name)} is not a valid name of a data set: use at most 64 letters, digits, _, "
            "- and ., beginning with a letter, a digit or _"
        )
    return name


def quoted(name: str) -> str:
    """A name or path in quotes, shortened in the middle if it is very long."""
    return repr(name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}")


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a TOML file.

    A DatasetError if it is missing or not valid TOML; the message has line and column.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DatasetError(f"{file} cannot be read: {error}") from error


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: all known ones, and the nearest."""
    names = list(known)
    return f"there are {', '.join(names) or 'none'}{did_you_mean(name, names, cutoff=0.5)}"


def check_keys(file: Path, place: str, found: Any, kind: type, *ours: str) -> None:
    """Check that the keys of a table of a TOML file are the fields of a dataclass.

    Its ``name`` and those of ``ours`` are not read from the file. A DatasetError if it is not a
    table, lacks a key, or has an unknown one; the nearest is suggested.
    """
    its = [each for each in fields(kind) if each.name not in ("name", *ours)]
    known = [each.name for each in its]
    if not isinstance(found, dict):
        raise DatasetError(f"{file}: {place.rstrip('.')} must be a table of {', '.join(known)}")
    for name in found:
        if name not in known:
            raise DatasetError(f"{file} has an unknown key {place}{name}; {nearest(name, known)}")
    for each in its:
        if each.name not in found and each.default is each.default_factory is MISSING:
            raise DatasetError(f"{file} lacks the key {place}{each.name}")
