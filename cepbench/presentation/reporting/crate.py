"""The report as an RO-Crate, JSON-LD beside the pages: the run behind each, what it read, and the papers.

Metadata by RO-Crate 1.2 (https://w3id.org/ro/crate/1.2); a run is a ``CreateAction``, as in its profile Process
Run Crate. All files are relative to the report, so that it can be copied.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cepbench.experiments.studies.study import Study
from cepbench.files import write_json
from cepbench.presentation.reporting.navigation import FRONT, Entry
from cepbench.presentation.reporting.pages import Page

#: The file, at the root of a report.
CRATE = "ro-crate-metadata.json"

_ROOT = "./"
_LICENCE = "https://spdx.org/licenses/Apache-2.0"

#: Those that :mod:`mimetypes` does not know.
_FORMATS = {".ipynb": "application/x-ipynb+json", ".parquet": "application/vnd.apache.parquet"}

_Reference = dict[str, str]


def write_crate(
    report: Path, pages: Sequence[Page], entries: Sequence[Entry], studies: Sequence[Study]
) -> None:
    """Describe a report: notebooks with their ``pages``, all ``entries`` of the navigation, the papers of ``studies``."""
    crate = _Crate(report)
    licence = crate.put(
        _LICENCE, "CreativeWork", name="Apache License 2.0", identifier="Apache-2.0"
    )
    papers = {study.key: crate.paper(study) for study in studies}
    runs = [crate.run(page, papers.get(page.group), licence) for page in pages]
    for entry in (FRONT, *entries):
        crate.file(entry.link, entry.title)
    crate.put(
        CRATE,
        "CreativeWork",
        conformsTo={"@id": "https://w3id.org/ro/crate/1.2"},
        about={"@id": _ROOT},
    )
    labels = ", ".join(study.label for study in studies)
    about = f" by the experiments of {labels}" if labels else ""
    crate.put(
        _ROOT,
        "Dataset",
        name="Report of cepbench",
        description=f"Plan generators and engines for complex event processing, compared{about}: pages, "
        "tables, figures and executed notebooks, with the runs that made them.",
        datePublished=datetime.now(UTC).date().isoformat(),
        license=licence,
        citation=[*papers.values()],
        hasPart=crate.files,
        mentions=runs,
    )
    graph = {
        "@context": "https://w3id.org/ro/crate/1.2/context",
        "@graph": [*crate.entities.values()],
    }
    write_json(report / CRATE, graph)


class _Crate:
    """Entities by their ids; methods add one and return the reference to it."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self.entities: dict[str, dict[str, Any]] = {}
        #: References to those in the report.
        self.files: list[_Reference] = []

    def put(self, its: str, kind: str | list[str], **fields: Any) -> _Reference:
        """An entity; fields without a value are left out."""
        given = {name: value for name, value in fields.items() if value not in (None, "", [])}
        self.entities[its] = {"@id": its, "@type": kind, **given}
        return {"@id": its}

    def file(self, link: str, name: str, *kinds: str, **fields: Any) -> _Reference:
        """A file of the report, once; ``kinds`` beside File."""
        its = quote(link)
        if its in self.entities:
            return {"@id": its}
        found = self.put(
            its,
            ["File", *kinds] if kinds else "File",
            name=name,
            encodingFormat=_FORMATS.get(Path(link).suffix) or mimetypes.guess_type(link)[0],
            contentSize=str((self._report / link).stat().st_size),
            **fields,
        )
        self.files.append(found)
        return found

    def paper(self, study: Study) -> _Reference:
        """The paper that a study repeats."""
        its = study.reference
        return self.put(
            f"https://doi.org/{its.doi}" if its.doi else f"#{its.key}",
            "ScholarlyArticle",
            name=its.title,
            author=its.authors,
            description=its.published,
            datePublished=str(its.year),
        )

    def run(self, page: Page, paper: _Reference | None, licence: _Reference) -> _Reference:
        """The run of a page's notebook, with all that it read, used and wrote."""
        written = [self.file(page.link, page.title, description=page.summary, about=paper)]
        instruments = [*self._software(page, licence), *self._machine(page)]
        downloads = page.downloads
        for download in (*downloads.tables, *downloads.pictures, *downloads.notebooks):
            for label, link, _ in download.links:
                name = f"{page.entry.label}: {download.name} ({label})"
                if link == page.source:
                    instruments.insert(0, self.file(link, name, "SoftwareSourceCode"))
                else:
                    written.append(self.file(link, name))
        parameters = [
            self.put(
                f"#{quote(page.stem)}/{quote(name)}",
                "PropertyValue",
                name=name,
                value=value if isinstance(value, str | int | float) else str(value),
            )
            for name, value in page.parameters.items()
        ]
        sweeps = [
            self.file(link, f"Measurements of the sweep {Path(link).parent.name}")
            for link in page.sweeps
            if (self._report / link).is_file()
        ]
        ended = page.started and page.started + timedelta(seconds=page.seconds)
        return self.put(
            f"#{quote(page.stem)}",
            "CreateAction",
            name=f"Run of {page.title}",
            startTime=page.started and page.started.isoformat(),
            endTime=ended and ended.isoformat(),
            object=[*sweeps, *parameters],
            instrument=instruments,
            result=written,
            about=paper,
        )

    def _software(self, page: Page, licence: _Reference) -> list[_Reference]:
        """The cepbench of a run, which needs the other packages whose versions were recorded."""
        kind = "SoftwareApplication"
        versions = dict(page.versions)
        own = versions.pop("cepbench", "")
        needed = [
            self.put(f"#{name}-{version}", kind, name=name, softwareVersion=version)
            for name, version in versions.items()
        ]
        found = self.put(
            "-".join(filter(None, ("#cepbench", own, quote(page.commit)))),
            kind,
            name="cepbench",
            softwareVersion=own,
            identifier=page.commit,
            license=licence,
            softwareRequirements=needed,
        )
        return [found]

    def _machine(self, page: Page) -> list[_Reference]:
        if not page.machine:
            return []
        processor, cores = page.machine["processor"], page.machine["cores"]
        its = f"#{quote(processor, safe='')}-{cores}"
        return [self.put(its, "Product", name=processor, description=f"{cores} cores")]
