"""What the search of every page finds: pages and their sections, claims, algorithms, documentation."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from cepbench.presentation.reporting.algorithms import Described
from cepbench.presentation.reporting.navigation import Entry
from cepbench.presentation.reporting.shell import ASSETS, headings_of
from cepbench.presentation.reporting.story import JudgedClaim

#: Kind, text that is searched, and link relative to the site.
Found = tuple[str, str, str]

#: Role in Sphinx's inventory → kind; attributes and properties stand with their classes.
_KINDS = {
    "std:doc": "documentation",
    **dict.fromkeys(
        ("py:module", "py:class", "py:function", "py:method", "py:exception", "py:data"),
        "reference",
    ),
}

#: Called by the file, which a page loads once something is searched; the page defines it.
_CALL = "cepbenchFound"


def write_search(
    target: Path,
    entries: Sequence[Entry],
    texts: Mapping[str, str],
    claims: Sequence[JudgedClaim],
    rows: Sequence[Described],
) -> None:
    """Write ``search.js`` into the assets of the site ``target``.

    ``texts`` are pages by link; the documentation is searched by its inventory, if it is there.
    """
    found: list[Found] = [("page", entry.title, entry.link) for entry in entries]
    for link, text in texts.items():
        found += [("section", its, f"{link}#{anchor}") for _, anchor, its in headings_of(text)]
    found += [("claim", f"{c.statement} ({c.paper}, {c.figure})", c.link) for c in claims]
    for row in rows:
        link = f"algorithms.html#{urlencode({'text': row.name})}"
        found.append((row.kind, f"{row.name}: {row.sentence}", link))
    found += inventory_of(target / "docs" / "objects.inv")
    call = f"{_CALL}({json.dumps(found, ensure_ascii=False)});\n"
    (target / ASSETS / "search.js").write_text(call, encoding="utf-8")


def inventory_of(path: Path) -> Iterator[Found]:
    """Pages and Python names of Sphinx's inventory, ``objects.inv`` of version 2; none without a file."""
    if not path.is_file():
        return
    packed = path.read_bytes().split(b"\n", 4)[4]  # behind four lines of head
    for line in zlib.decompress(packed).decode().splitlines():
        # Names of pages may have spaces; a title of "-" is the name.
        before, role, _, link, title = _fields(line)
        text = before if title == "-" else title
        if role.startswith("py:") or role == "std:doc":
            kind = "reference" if role.startswith("py:") else "documentation"
            yield (
                kind,
                text,
                f"docs/{link.removesuffix('$') + before if link.endswith('$') else link}",
            )


def _fields(line: str) -> Iterable[str]:
    """Name, role, priority, link and title of a line."""
    words = line.split(" ")
    role = next(
        k for k, word in enumerate(words) if ":" in word and words[k + 1].lstrip("-").isdigit()
    )
    return (
        " ".join(words[:role]),
        words[role],
        words[role + 1],
        words[role + 2],
        " ".join(words[role + 3 :]),
    )
