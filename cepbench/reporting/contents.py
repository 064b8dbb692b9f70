"""The contents of a long page: its headings as links, in a box that opens below the title."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from cepbench.reporting.shell import render

#: A page with fewer headings than this is read without.
_FEWEST = 4

_LEVELS = ("h2", "h3")


def with_contents(page: str) -> str:
    """A page with a box of links to its headings behind its first one; unchanged if it is short.

    Parameters
    ----------
    page : str
        HTML. Headings of the second and third level within ``main`` count that have an id.
    """
    reader = _Headings()
    reader.feed(page)
    end = page.find("</h1>")
    if len(reader.found) < _FEWEST or end < 0:
        return page
    end += len("</h1>")
    return f"{page[:end]}{_box(reader.found)}{page[end:]}"


def _box(headings: list[tuple[str, str, str]]) -> str:
    chapters: list[dict[str, Any]] = []
    for level, anchor, text in headings:
        if level == "h2" or not chapters:
            chapters.append({"anchor": anchor, "text": text, "parts": []})
        else:
            chapters[-1]["parts"].append({"anchor": anchor, "text": text})
    return render("contents.html.j2", chapters=chapters)


class _Headings(HTMLParser):
    """Level, id and text of the headings, without the signs that link to them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str, str]] = []
        self._level = self._anchor = self._text = ""
        self._in_main = self._in_sign = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_main |= tag == "main"
        if self._in_main and tag in _LEVELS and given.get("id"):
            self._level, self._anchor, self._text = tag, given["id"] or "", ""
        self._in_sign |= tag == "a" and given.get("class") == "anchor-link"

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._in_sign = False
        if tag == self._level:
            self.found.append((tag, self._anchor, " ".join(self._text.split())))
            self._level = ""

    def handle_data(self, data: str) -> None:
        if self._level and not self._in_sign:
            self._text += data
