"""Titles of pages and words for the columns of their tables."""

from __future__ import annotations

import re

import pandas as pd
from nbformat import NotebookNode

#: A summary ends after its first sentence, or before this number of letters.
_LONGEST = 250

_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
#: Marks of emphasis and code, and links with their addresses.
_MARKS = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def title_of(notebook: NotebookNode, stem: str) -> str:
    """``metadata.title``; else the first heading; else the name of the file in words."""
    given = notebook.metadata.get("title")
    if isinstance(given, str) and given.strip():
        return given.strip()
    for text in _texts(notebook):
        found = _HEADING.search(text)
        if found:
            return _plain(found[1])
    return in_words(stem)


def summary_of(notebook: NotebookNode) -> str:
    """``metadata.summary``; else the first sentence of text; else nothing."""
    given = notebook.metadata.get("summary")
    if isinstance(given, str):
        return given.strip()
    for text in _texts(notebook):
        for paragraph in re.split(r"\n\s*\n", _HEADING.sub("", text)):
            words = _plain(" ".join(paragraph.split()))
            if words and words[0].isalnum():
                return _shortened(words)
    return ""


def in_words(stem: str) -> str:
    """A file's name as words."""
    return stem.replace("_", " ").strip()


def with_words(table: pd.DataFrame) -> pd.DataFrame:
    """A copy of a table with words for the names of its columns and of its index, for a page."""
    shown = table.rename(columns=lambda name: in_words(str(name)))
    names = [name and in_words(str(name)) for name in table.index.names]
    shown.index = table.index.set_names(names)
    return shown


def _texts(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def _plain(text: str) -> str:
    return _MARKS.sub("", _LINK.sub(r"\1", text)).strip()


def _shortened(text: str) -> str:
    sentence = re.match(r".+?[.!?](?=\s|$)", text)
    text = sentence[0] if sentence else text
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition(" ")[0] + " …"
