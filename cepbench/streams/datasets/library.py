"""``patterns.toml``, the library of patterns of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from cepbench.errors import DatasetError, PatternError
from cepbench.markup import Html
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.datasets.declaration import check_keys, nearest, read_toml

if TYPE_CHECKING:
    import pandas as pd

FILE = "patterns.toml"

_TABLE = Html(
    """<table class="dataframe cep-patterns" style="text-align:left">
<thead><tr><th>pattern</th><th>shows</th><th>text</th></tr></thead><tbody>
{% for entry in entries %}<tr><td><code>{{ entry.name }}</code></td>
<td>{{ entry.shows }}{% if entry.source %}<br/><small>{{ entry.source }}</small>{% endif %}</td>
<td><pre>{{ entry.text }}</pre></td></tr>{% endfor %}</tbody></table>"""
)

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class PatternEntry:
    """One pattern of a library."""

    name: str
    #: In the pattern language; see ``docs/language.md``.
    text: str
    #: What it demonstrates.
    shows: str
    #: Paper and section, and differences from it; empty for one that is not from a paper.
    source: str = ""
    #: ``dialect``, ``within``: as :func:`cepbench.parse` takes them.
    dialect: str | None = None
    within: str | None = None

    @property
    def pattern(self) -> Pattern:
        """The parsed pattern."""
        return parse(self.text, dialect=self.dialect, within=self.within)

    @property
    def plain_text(self) -> str:
        """The text, in the language without a dialect."""
        return self.text if self.dialect is None else str(self.pattern)


class PatternLibrary(Mapping[str, Pattern]):
    """Name → pattern; :meth:`entry` has the text and notes."""

    def __init__(self, name: str, entries: tuple[PatternEntry, ...] = ()) -> None:
        self._of = name
        self._entries = {entry.name: entry for entry in entries}

    def entry(self, name: str) -> PatternEntry:
        """A pattern with its text and notes.

        A DatasetError if the name is unknown; the nearest one is suggested.
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
        return str(_TABLE(entries=self._entries.values()))


def read_library(folder: Path, name: str) -> PatternLibrary:
    """The patterns of a folder of the catalogue; empty if it has no such file.

    A DatasetError if the file cannot be read, or an entry is incomplete or not a valid pattern.
    """
    file = folder / FILE
    if not file.exists():
        return PatternLibrary(name)
    entries = []
    for pattern, content in read_toml(file).items():
        check_keys(file, f"{pattern}.", content, PatternEntry)
        entry = PatternEntry(pattern, **{**content, "text": content["text"].strip()})
        try:
            _ = entry.pattern
        except PatternError as error:
            raise DatasetError(f"{file}: [{pattern}] is not a valid pattern: {error}") from error
        entries.append(entry)
    return PatternLibrary(name, tuple(entries))
