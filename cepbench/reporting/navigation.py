"""The pages of the site in the order in which they are read, and the groups they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cepbench.errors import ReportError, did_you_mean

#: ``metadata.group`` of a notebook -> heading in the navigation; in this order.
GROUPS = {
    "start": "Start",
    "paper": "The paper's figures",
    "beyond": "Beyond the paper",
    "ledger": "Ledger",
    "own": "Your pages",
    "docs": "Documentation",
    "more": "More",
}

#: Group of every notebook that is none of the report's.
OWN = "own"

#: Group of a notebook that names none: most of those show how something is done.
DEFAULT_GROUP = "start"


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation.

    Attributes
    ----------
    title, link : str
        The link is relative to the folder of the site.
    group : str
        A key of :data:`GROUPS`.
    """

    title: str
    link: str
    group: str

    @property
    def label(self) -> str:
        """The title up to its colon: navigation has little room."""
        return self.title.partition(":")[0]


FRONT = Entry("Overview", "index.html", "start")


def group_of(metadata: Mapping[str, Any], stem: str) -> str:
    """The group that a notebook's metadata names.

    Raises
    ------
    ReportError
        If there is no such group.
    """
    group = str(metadata.get("group", DEFAULT_GROUP))
    if group not in GROUPS:
        raise ReportError(
            f"{stem}.ipynb: its metadata puts it into the group {group!r}{did_you_mean(group, GROUPS)} "
            f"Groups are {', '.join(GROUPS)}"
        )
    return group


@dataclass(frozen=True, slots=True)
class Navigation:
    """All pages of a site, the front page first, then group by group."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Navigation:
        """Sorted by group; within one they stay as they are given."""
        ranks = list(GROUPS)
        return cls(tuple(sorted((FRONT, *entries), key=lambda entry: ranks.index(entry.group))))

    @property
    def groups(self) -> dict[str, list[Entry]]:
        """Heading -> its pages; only groups that have some."""
        found = {
            heading: [entry for entry in self.entries if entry.group == group]
            for group, heading in GROUPS.items()
        }
        return {heading: entries for heading, entries in found.items() if entries}

    def neighbours(self, link: str) -> tuple[Entry | None, Entry | None]:
        """The pages before and after one."""
        at = [entry.link for entry in self.entries].index(link)
        before = self.entries[at - 1] if at else None
        after = self.entries[at + 1] if at + 1 < len(self.entries) else None
        return before, after
