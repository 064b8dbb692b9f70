"""The studies by citation key.

A study is a package here, ``<key>/`` with ``ledger.toml``, ``sweeps/*.toml`` if it has sweeps and
a :class:`~cepbench.experiments.studies.study.Study` called ``STUDY`` in its ``__init__``; a folder
``notebooks/<key>/``; and a line in :data:`_PACKAGES`.
"""

from __future__ import annotations

from collections.abc import Iterable

from cepbench.errors import ReportError
from cepbench.experiments.studies import agrawal2008, kolchinsky2018, liu2011, mei2009, qi2014
from cepbench.experiments.studies.study import Study
from cepbench.experiments.sweeps.sweep_file import SWEEP_FOLDERS
from cepbench.registry import Registry

#: In the order of the site.
_PACKAGES = (kolchinsky2018, mei2009, agrawal2008, qi2014, liu2011)

#: Citation key → study.
STUDIES = Registry(Study, "study", ReportError)


def register(study: Study) -> Study:
    """Register a study and the sweeps in its folder; one of the same key is replaced."""
    STUDIES.add(study)
    if (study.folder / "sweeps").is_dir():
        SWEEP_FOLDERS[study.key] = study.folder / "sweeps"
    return study


def find_study(key: str) -> Study:
    """The study of a paper; ReportError if there is none, whose message suggests the nearest."""
    return STUDIES.find(key)


def studies_of(keys: Iterable[str]) -> list[Study]:
    """The studies of these keys, each once, in the order of the registry; all if there are none."""
    wanted = {find_study(key).key for key in keys}
    return [study for key, study in STUDIES.items() if not wanted or key in wanted]


for _package in _PACKAGES:
    register(_package.STUDY)
