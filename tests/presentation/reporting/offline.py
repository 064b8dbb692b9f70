"""What an HTML page would load, and what it says: read with the standard library's parser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

#: Attributes by which an element loads something without being clicked.
LOADING = {
    "src", "srcset", "poster", "data", "background", "action", "formaction", "ping", "manifest",
    "imagesrcset", "longdesc",
}  # fmt: skip
#: Elements whose href loads at once; <a href> waits for a click.
LOADING_HREF = {"link", "image", "use", "base", "feimage", "script"}

_REMOTE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//|^\s*(?:https?|wss?|ftp):", re.IGNORECASE)
_STYLE_LOADS = re.compile(
    r"@import\s+(?:url\()?\s*[\"']?(?P<sheet>[^\"')\s;]+)|url\(\s*[\"']?(?P<file>[^\"')]+)",
    re.IGNORECASE,
)
_SCRIPT_LOADS = re.compile(
    r"""(?:fetch|import|importScripts|open|sendBeacon|WebSocket|EventSource|Worker|require)\s*
        \(\s*(?:["'](?:get|post|put)["']\s*,\s*)?["'`](?P<address>[^"'`]+)""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass
class Page:
    """A parsed page.

    Attributes
    ----------
    loads : list of str
        Everything that would leave the page, as ``where: address``.
    scripts : list of (dict, str)
        Attributes and text of every script element.
    text : str
        What is outside of scripts and styles, entities resolved.
    elements : list of (str, dict)
        All elements with their attributes, in order.
    """

    loads: list[str] = field(default_factory=list)
    scripts: list[tuple[dict[str, str], str]] = field(default_factory=list)
    text: str = ""
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.page.elements.append((tag, attributes))
        for name, value in attributes.items():
            at_once = name in LOADING or (name in ("href", "xlink:href") and tag in LOADING_HREF)
            if at_once and any(_REMOTE.match(part) for part in value.split(",")):
                self.page.loads.append(f"<{tag} {name}>: {value[:80]}")
            if name == "style":
                self._style(value, f"<{tag} style>")
            if name.startswith("on"):
                self._script(value, f"<{tag} {name}>")
        if tag in ("script", "style"):
            self._inside = tag
        if tag == "script":
            self.page.scripts.append((attributes, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attributes, text = self.page.scripts.pop()
            self.page.scripts.append((attributes, text + data))
            self._script(data, "<script>")
        elif self._inside == "style":
            self._style(data, "<style>")
        else:
            self.page.text += data

    def _style(self, text: str, where: str) -> None:
        for found in _STYLE_LOADS.finditer(text):
            address = found["sheet"] or found["file"]
            if _REMOTE.match(address) or found["sheet"]:
                self.page.loads.append(f"{where}: {address[:80]}")

    def _script(self, text: str, where: str) -> None:
        for found in _SCRIPT_LOADS.finditer(text):
            if _REMOTE.match(found["address"]):
                self.page.loads.append(f"{where}: {found['address'][:80]}")


def read_page(html: str) -> Page:
    """Parse a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.page
