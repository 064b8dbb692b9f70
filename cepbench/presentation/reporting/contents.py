"""The contents of a long page: its headings as links, in a box that opens below the title."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

from cepbench.presentation.reporting.shell import render

#: A page with fewer headings than this has no contents.
_FEWEST = 4

#: Level, id and inside of a heading; nbconvert puts a sign that links to it behind its text.
_HEADING = re.compile(r"""<(h[23])\b[^>]*\sid=(["'])(.+?)\2[^>]*>(.*?)</\1>""", re.DOTALL)
_SIGN = re.compile(r"""<a\b[^>]*\sclass=["']anchor-link["'].*?</a>""", re.DOTALL)


def with_contents(page: str) -> str:
    """A page with a box of links to its headings behind its first one; unchanged if it is short.

    Headings of the second and third level within ``main`` count that have an id.
    """
    title, end, rest = page.partition("</h1>")
    headings = _HEADING.findall(page[page.find("<main") :])
    if len(headings) < _FEWEST or not end:
        return page
    chapters: list[dict[str, Any]] = []
    for level, _, anchor, inside in headings:
        heading = {"anchor": Markup(anchor), "text": Markup(_SIGN.sub("", inside)).striptags()}
        if level == "h2" or not chapters:
            chapters.append({**heading, "parts": []})
        else:
            chapters[-1]["parts"].append(heading)
    return f"{title}{end}{render('contents.html.j2', chapters=chapters)}{rest}"
