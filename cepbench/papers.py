"""References by citation key, and the files of each paper's algorithms.

A citation such as ``[mei2009]_`` in a docstring is a key of ``papers.toml``, which lists the
sources and the files of their algorithms; ``python -m cepbench.papers`` prints it as an index.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True)
class Reference:
    """One source."""

    #: As in docstrings, without brackets and underscore.
    key: str
    authors: str
    title: str
    #: Journal or conference, number and pages.
    published: str
    year: int
    #: Its DOI; empty if none is listed.
    doi: str = ""

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.published}, {self.year}."

    @property
    def label(self) -> str:
        """Authors and year: ``Kolchinsky & Schuster 2018``, ``Agrawal et al. 2008``."""
        names = [author.split()[-1] for author in self.authors.split(", ")]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        return f"{' & '.join(names)} {self.year}"


@dataclass(frozen=True)
class Algorithm:
    """An algorithm or model of a paper and the files that implement it."""

    #: Its registered name, if it has one.
    name: str
    #: Key of the :class:`Reference`.
    paper: str
    #: Section, figure or algorithm number in the paper.
    place: str
    #: Relative to the package ``cepbench``, the main one first.
    files: tuple[str, ...]


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: Citation key → source; the papers that the workbench is built around come first.
REFERENCES: Mapping[str, Reference] = MappingProxyType(
    {
        key: Reference(
            key,
            entry["authors"],
            entry["title"],
            entry["published"],
            entry["year"],
            entry.get("doi", ""),
        )
        for key, entry in _CONTENT.items()
    }
)

#: The algorithms of each paper, in the order of its sections.
ALGORITHMS: tuple[Algorithm, ...] = tuple(
    Algorithm(found["name"], key, found["place"], tuple(found["files"]))
    for key, entry in _CONTENT.items()
    for found in entry.get("algorithms", ())
)


def index() -> str:
    """All references as text, with their algorithms and files."""
    lines = []
    name_width = max(len(algorithm.name) for algorithm in ALGORITHMS)
    place_width = max(len(algorithm.place) for algorithm in ALGORITHMS)
    for reference in REFERENCES.values():
        lines.append(f"[{reference.key}] {reference}")
        lines.extend(
            f"    {algorithm.name:<{name_width}}  {algorithm.place:<{place_width}}  "
            f"{', '.join(algorithm.files)}"
            for algorithm in ALGORITHMS
            if algorithm.paper == reference.key
        )
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(index())
