"""``patterns.toml``, the library of patterns of a data set."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from cepbench.datasets.declaration import nearest, read_toml
from cepbench.errors import DatasetError, PatternError
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse

if TYPE_CHECKING:
    import pandas as pd

FILE = "patterns.toml"

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class PatternEntry:
    """One pattern of a library.

    Attributes
    ----------
    name : str
    text : str
        In the pattern language; see ``docs/language.md``.
    shows : str
        What it demonstrates.
    source : str
        Paper and section, and differences from it; empty for one that is not from a paper.
    """

    name: str
    text: str
    shows: str
    source: str

    @property
    def pattern(self) -> Pattern:
        """The parsed pattern."""
        return parse(self.text)


class PatternLibrary(Mapping[str, Pattern]):
    """Name → pattern; :meth:`entry` has the text and notes."""

    def __init__(self, name: str, entries: tuple[PatternEntry, ...] = ()) -> None:
        self._of = name
        self._entries = {entry.name: entry for entry in entries}

    def entry(self, name: str) -> PatternEntry:
        """A pattern with its text and notes.

        Raises
        ------
        DatasetError
            If the name is unknown; the nearest one is suggested.
        """
        if name not in self._entries:
            raise DatasetError(
                f"the library of {self._of} has no pattern {name!r}; {nearest(name, self._entries)}"
            )
        return self._entries[name]

    def __getitem__(self, name: str) -> Pattern:
        return self.entry(name).pattern

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def get(self, name: str, /) -> Pattern | None: ...
    @overload
    def get(self, name: str, /, default: Default) -> Pattern | Default: ...
    def get(self, name: str, /, default: Any = None) -> Any:
        """The pattern, or a default if the name is unknown."""
        return self._entries[name].pattern if name in self._entries else default

    def __repr__(self) -> str:
        return f"PatternLibrary of {self._of}: {', '.join(self._entries) or 'empty'}"

    def to_frame(self) -> pd.DataFrame:
        """One row per pattern: ``shows``, ``source``, ``text``; the name is the index."""
        import pandas as pd

        rows = [(entry.shows, entry.source, entry.text) for entry in self._entries.values()]
        names = pd.Index(list(self._entries), name="pattern", dtype=object)
        return pd.DataFrame(rows, index=names, columns=["shows", "source", "text"])

    def _repr_html_(self) -> str:
        heads = "".join(
            f'<th style="text-align:left">{name}</th>' for name in ("pattern", "shows", "text")
        )
        rows = "".join(map(_row, self._entries.values()))
        return (
            f'<table class="dataframe cep-patterns"><thead><tr>{heads}</tr></thead>'
            f"<tbody>{rows}</tbody></table>"
        )


def read_library(folder: Path, name: str) -> PatternLibrary:
    """The patterns of a folder of the catalogue; empty if it has no such file.

    Raises
    ------
    DatasetError
        If the file cannot be read, or an entry is incomplete or not a valid pattern.
    """
    file = folder / FILE
    if not file.exists():
        return PatternLibrary(name)
    entries = []
    for pattern, content in read_toml(file).items():
        if not isinstance(content, dict) or not {"text", "shows"} <= set(content):
            raise DatasetError(f"{file}: [{pattern}] needs text and shows, and may have source")
        unknown = sorted(set(content) - {"text", "shows", "source"})
        if unknown:
            raise DatasetError(
                f"{file}: [{pattern}] has an unknown key {unknown[0]!r}; "
                f"{nearest(unknown[0], ('text', 'shows', 'source'))}"
            )
        entry = PatternEntry(
            pattern, content["text"].strip(), content["shows"], content.get("source", "")
        )
        try:
            parse(entry.text)
        except PatternError as error:
            raise DatasetError(f"{file}: [{pattern}] is not a valid pattern: {error}") from error
        entries.append(entry)
    return PatternLibrary(name, tuple(entries))


def _row(entry: PatternEntry) -> str:
    source = f"<br/><small>{html.escape(entry.source)}</small>" if entry.source else ""
    return (
        f'<tr><td style="text-align:left"><code>{html.escape(entry.name)}</code></td>'
        f'<td style="text-align:left">{html.escape(entry.shows)}{source}</td>'
        f'<td style="text-align:left"><pre>{html.escape(entry.text)}</pre></td></tr>'
    )
