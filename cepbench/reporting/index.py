"""The first page of a site: its story in numbers, the ledger at a glance, and links to the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cepbench.reporting.contents import with_contents
from cepbench.reporting.navigation import FRONT, GROUPS, Entry, Navigation
from cepbench.reporting.pages import Page
from cepbench.reporting.provenance import Benchmark
from cepbench.reporting.shell import render
from cepbench.reporting.story import Headline, Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the first page shows; what is empty is left out.

    Attributes
    ----------
    pages : sequence of Page
    facts : sequence of (str, str)
        A number and what it counts.
    headlines : sequence of Headline
    further : sequence of (str, str, str)
        A sentence about what goes beyond the paper, with the link of its page and the page's name.
    verdicts : mapping of str to int
        Verdict in words -> how many claims of the ledger have it.
    claims : mapping of str to sequence of Verdict
        Figure of the paper -> its claims.
    ledger_link : str
        The ledger's own page.
    benchmarks : sequence of Benchmark
    documentation : sequence of Entry
        Pages of the documentation that are there.
    """

    pages: Sequence[Page]
    facts: Sequence[tuple[str, str]] = ()
    headlines: Sequence[Headline] = ()
    further: Sequence[tuple[str, str, str]] = ()
    verdicts: Mapping[str, int] = field(default_factory=dict)
    claims: Mapping[str, Sequence[Verdict]] = field(default_factory=dict)
    ledger_link: str = ""
    benchmarks: Sequence[Benchmark] = ()
    documentation: Sequence[Entry] = ()

    @property
    def by_group(self) -> dict[str, list[Page]]:
        """Heading of the navigation -> its notebooks' pages."""
        return {
            heading: [page for page in self.pages if page.group == group]
            for group, heading in GROUPS.items()
        }

    @property
    def profiles(self) -> list[str]:
        """Profiles of the pages: one, unless a part was run again with another."""
        return self._parameter("profile")

    @property
    def seeds(self) -> list[str]:
        """Seeds of the pages, as the profiles."""
        return self._parameter("seed")

    @property
    def started(self) -> datetime | None:
        """When the first page was run."""
        return min((page.started for page in self.pages if page.started), default=None)

    @property
    def seconds(self) -> float:
        """What running all pages took."""
        return sum(page.seconds for page in self.pages)

    @property
    def machine(self) -> Mapping[str, str]:
        """Processor and cores, if all pages have the same; each page says its own."""
        return self._same([page.machine for page in self.pages])

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions, as the machine."""
        return self._same([page.versions for page in self.pages])

    def _parameter(self, name: str) -> list[str]:
        values = [str(page.parameters[name]) for page in self.pages if name in page.parameters]
        return list(dict.fromkeys(values))

    @staticmethod
    def _same(found: Sequence[Mapping[str, str]]) -> Mapping[str, Any]:
        return found[0] if found and all(one == found[0] for one in found) else {}


def index_html(report: Report, navigation: Navigation) -> str:
    """The first page, which loads files beside it and nothing else; every text in it is escaped.

    Parameters
    ----------
    report : Report
    navigation : Navigation
        Of the whole site.
    """
    text = render("index.html.j2", report=report, navigation=navigation, here=FRONT.link)
    return with_contents(text)
