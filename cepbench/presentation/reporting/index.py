"""The first page of a site: studies side by side, their claims at a glance, links to the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from cepbench.experiments.studies.study import Study
from cepbench.presentation.reporting.downloads import Thumbnail
from cepbench.presentation.reporting.ledger import LOOKS
from cepbench.presentation.reporting.navigation import FRONT, Entry, Navigation
from cepbench.presentation.reporting.pages import Page
from cepbench.presentation.reporting.provenance import Benchmark
from cepbench.presentation.reporting.shell import ASSETS, render
from cepbench.presentation.reporting.story import Cell, JudgedClaim, sentence_of


@dataclass(frozen=True, slots=True)
class Judged:
    """What the ledger of a study says; empty if it was not run."""

    #: Name of a page → the claims that are judged from its results.
    claims: Mapping[str, Sequence[JudgedClaim]] = field(default_factory=dict)
    headlines: Sequence[JudgedClaim] = ()
    #: What holds where: a regime, or empty, and sentences.
    lines: Sequence[tuple[str, str]] = ()
    #: Verdict → how many claims of the ledger have it.
    verdicts: Mapping[str, int] = field(default_factory=dict)
    #: The same of the reference at the paper's size, if it has others.
    full: Mapping[str, int] = field(default_factory=dict)
    #: The page of the ledger, if there is one.
    link: str = ""


#: The picture above the studies, in the folder of the site.
FRONT_PICTURE = f"{ASSETS}/front.svg"


@dataclass(frozen=True, slots=True)
class StudyReport:
    """A study on the first page; what is empty is left out."""

    study: Study
    #: Those of its notebooks that were run, in its order.
    pages: Sequence[Page] = ()
    picture: Thumbnail | None = None
    judged: Judged = field(default_factory=Judged)

    @property
    def claims(self) -> list[JudgedClaim]:
        """Those of all its pages."""
        return [*chain(*self.judged.claims.values())]

    @property
    def found(self) -> str:
        """What was found, in a sentence: of its first claim with a headline, else of its first page."""
        return sentence_of(self.judged.headlines) or next(
            (its.found for its in self.pages if its.found), ""
        )

    @property
    def missing(self) -> list[str]:
        """Its notebooks that were not run."""
        ran = {page.stem.rpartition("/")[2] for page in self.pages}
        return [name for name in self.study.notebooks if name not in ran]


@dataclass(frozen=True, slots=True)
class Report:
    """Contents of the first page; what is empty is left out.

    Facts are a number and what it counts; studies are all that there are, run or not, and documentation the
    pages that are there.
    """

    pages: Sequence[Page]
    facts: Sequence[tuple[str, str]] = ()
    studies: Sequence[StudyReport] = ()
    benchmarks: Sequence[Benchmark] = ()
    documentation: Sequence[Entry] = ()
    #: Of :data:`FRONT_PICTURE`.
    caption: str = ""

    @property
    def gains(self) -> Sequence[Cell]:
        """The number that matters, in each setting: of the first headline of the first study that has one."""
        found = (claim.cells for one in self.studies for claim in one.judged.headlines)
        return next(found, ())

    @property
    def machine(self) -> Mapping[str, str]:
        """Processor and cores, if all pages have the same."""
        return _shared([page.machine for page in self.pages])

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions, as the machine."""
        return _shared([page.versions for page in self.pages])


def _shared(found: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    return found[0] if found and all(one == found[0] for one in found) else {}


def _values_of(pages: Sequence[Page], parameter: str) -> str:
    """The values of a parameter in pages: one, unless a part was run again with another."""
    values = [str(page.parameters[parameter]) for page in pages if parameter in page.parameters]
    return ", ".join(dict.fromkeys(values)) or "unknown"


def index_html(report: Report, navigation: Navigation) -> str:
    """The first page, which loads files beside it and nothing else; every text in it is escaped."""
    given = {"report": report, "picture": FRONT_PICTURE, "looks": LOOKS, "navigation": navigation}
    return render("index.html.j2", here=FRONT.link, values_of=_values_of, **given)
