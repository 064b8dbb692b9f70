"""The studies by citation key.

A study is a package here, ``<key>/`` with ``ledger.toml``, ``sweeps/*.toml`` if it has sweeps and
a :class:`~cepbench.experiments.studies.study.Study` called ``STUDY`` in its ``__init__``; a folder
``notebooks/<key>/``; and a line in :data:`_PACKAGES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from cepbench.errors import ReportError, did_you_mean
from cepbench.experiments.studies import agrawal2008, kolchinsky2018, liu2011, mei2009, qi2014
from cepbench.experiments.studies.study import Study
from cepbench.experiments.sweeps.sweep_file import SWEEP_FOLDERS

#: In the order of the site.
_PACKAGES = (kolchinsky2018, mei2009, agrawal2008, qi2014, liu2011)

_STUDIES: dict[str, Study] = {}

#: Citation key -> study.
STUDIES: Mapping[str, Study] = MappingProxyType(_STUDIES)


def register(study: Study) -> Study:
    """Register a study and the sweeps in its folder; one of the same key is replaced."""
    _STUDIES[study.key] = study
    if (study.folder / "sweeps").is_dir():
        SWEEP_FOLDERS[study.key] = study.folder / "sweeps"
    return study


def find_study(key: str) -> Study:
    """The study of a paper.

    Raises
    ------
    ReportError
        If there is none; the message suggests the nearest.
    """
    if key not in STUDIES:
        raise ReportError(
            f"there is no study {key!r}; studies are {', '.join(STUDIES)}"
            f"{did_you_mean(key, STUDIES)}"
        )
    return STUDIES[key]


def studies_of(keys: Iterable[str]) -> list[Study]:
    """The studies of these keys, each once, in the order of the registry; all if there are none.

    Raises
    ------
    ReportError
        If there is no study of a key.
    """
    wanted = {find_study(key).key for key in keys}
    return [study for key, study in STUDIES.items() if not wanted or key in wanted]


for _package in _PACKAGES:
    register(_package.STUDY)
