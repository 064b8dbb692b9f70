"""The pages of the site in reading order, and their groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cepbench.experiments.studies.registry import STUDIES
from cepbench.presentation.reporting.requests import GENERAL, study_of

#: Groups beside the studies.
START, USER, DOCS, MORE = "start", "own", "docs", "more"


def groups() -> dict[str, str]:
    """Group -> heading in the navigation, in this order; a study's is its key."""
    return {
        START: "Start",
        **{key: study.label for key, study in STUDIES.items()},
        USER: "Your pages",
        DOCS: "Documentation",
        MORE: "More",
    }


def group_of(stem: str) -> str:
    """The group of a notebook's page, by its stem."""
    study = study_of(stem)
    if study:
        return study.key
    return START if stem in GENERAL else USER


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the navigation: its link is relative to the folder of the site, its group a key of :func:`groups`."""

    title: str
    link: str
    group: str

    @property
    def label(self) -> str:
        """The title up to its colon: navigation has little room."""
        return self.title.partition(":")[0]


FRONT = Entry("Overview", "index.html", START)


@dataclass(frozen=True, slots=True)
class Navigation:
    """All pages of a site, the front page first, then group by group."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Navigation:
        """Sorted by group; within one they stay as they are given."""
        ranks = list(groups())
        return cls(tuple(sorted((FRONT, *entries), key=lambda entry: ranks.index(entry.group))))

    @property
    def groups(self) -> dict[str, list[Entry]]:
        """Heading -> its pages; only groups that have some."""
        found = {
            heading: [entry for entry in self.entries if entry.group == group]
            for group, heading in groups().items()
        }
        return {heading: entries for heading, entries in found.items() if entries}

    def neighbours(self, link: str) -> tuple[Entry | None, Entry | None]:
        """The pages before and after one."""
        at = [entry.link for entry in self.entries].index(link)
        before = self.entries[at - 1] if at else None
        after = self.entries[at + 1] if at + 1 < len(self.entries) else None
        return before, after
