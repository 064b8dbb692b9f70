"""The archive for reviewers: a commit, its finished report and checksums; and the first ten minutes of ARTIFACT.md in it.

``python -m cepbench.presentation.reporting.artifact_archive`` writes ``build/cepbench-VERSION-artifact.tar.gz``, whose bytes
depend on the commit and the report alone, and tries it. ``make artifact`` does so.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from cepbench.errors import ReportError
from cepbench.files import whole_file
from cepbench.presentation.reporting.crate import CRATE

#: Checksums of all other files, as ``sha256sum --check`` reads them.
SUMS = "SHA256SUMS"

#: Of a report's ``data``: what sweeps measured, without the streams.
_MEASURED = re.compile(r"data/sweeps/[^/]+/(results\.parquet|\w+\.json)")

#: Variables that say how this shell is set up.
_OF_THIS_SHELL = ("XDG_", "CEPBENCH_", "PYTHON", "VIRTUAL_ENV", "NUMBA_", "MAKE", "MFLAGS")


def write_archive(root: Path, report: Path, folder: Path) -> Path:
    """Write the archive of the checkout at ``root`` and a finished report into a folder; its path.

    Raises ReportError if the checkout has changes or is none, there is no finished report, or the archive
    cannot be written, as on a full disk.
    """
    changes = _git(root, "status", "--porcelain").decode()
    if changes:
        raise ReportError(
            f"{root} has changes, which the archive would not have; commit or stash them:\n{changes}"
        )
    for name in ("index.html", CRATE):
        if not (report / name).is_file():
            raise ReportError(f"there is no {report / name}; run `make report` first")
    about = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    top = f"{about['name']}-{about['version']}"
    when = int(_git(root, "show", "--no-patch", "--format=%ct", "HEAD"))
    target = folder / f"{top}-artifact.tar.gz"
    sums = []
    try:
        with (
            whole_file(target) as unfinished,
            unfinished.open("wb") as raw,
            # Without the name of the file and the time of writing.
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
        ):
            for name, mode, content in _files(root, report):
                sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
                _add(archive, f"{top}/{name}", mode, when, content)
            _add(archive, f"{top}/{SUMS}", 0o644, when, "".join(sums).encode())
    except OSError as error:
        raise ReportError(
            f"{target} cannot be written: {error.strerror or error}; nothing is left of it"
        ) from error
    return target


def _git(root: Path, *command: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *command], capture_output=True)
    if done.returncode:
        raise ReportError(f"{root} is no checkout of cepbench: {done.stderr.decode().strip()}")
    return done.stdout


def _files(root: Path, report: Path) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of the commit's files, then those of the report."""
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "HEAD"))) as committed:
        for entry in sorted(committed, key=lambda entry: entry.name):
            content = committed.extractfile(entry) if entry.isfile() else None
            if content:
                yield entry.name, 0o755 if entry.mode & 0o100 else 0o644, content.read()
    for path in sorted(report.rglob("*")):
        name = path.relative_to(report).as_posix()
        kept = _MEASURED.fullmatch(name) or not name.startswith(("data/", ".", "report."))
        if path.is_file() and kept:
            yield f"reports/{name}", 0o644, path.read_bytes()


def _add(archive: tarfile.TarFile, name: str, mode: int, when: int, content: bytes) -> None:
    entry = tarfile.TarInfo(name)  # of user and group 0
    entry.size, entry.mode, entry.mtime = len(content), mode, when
    archive.addfile(entry, io.BytesIO(content))


def try_archive(archive: Path, on_progress: Callable[[str, str], object] = print) -> None:
    """Unpack an archive, compare its checksums, and run the first commands of its ARTIFACT.md, with an empty home.

    Raises ReportError if a file is not as it was, or a command fails.
    """
    with tempfile.TemporaryDirectory() as place:
        home = Path(place, "home")
        home.mkdir()
        began = time.perf_counter()
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")
        (top,) = (path for path in Path(place).iterdir() if path != home)
        for line in (top / SUMS).read_text(encoding="utf-8").splitlines():
            expected, _, name = line.partition("  ")
            if hashlib.sha256((top / name).read_bytes()).hexdigest() != expected:
                raise ReportError(f"{archive}: {name} has another checksum than in {SUMS}")
        on_progress("unpack and compare checksums", _passed(began))
        settings = {
            name: value for name, value in os.environ.items() if not name.startswith(_OF_THIS_SHELL)
        }
        settings |= {"HOME": str(home), "PATH": f"{top / '.venv/bin'}:{os.environ['PATH']}"}
        for command in first_commands((top / "ARTIFACT.md").read_text(encoding="utf-8")):
            began = time.perf_counter()
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=top, env=settings, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            if done.returncode:
                last = "\n".join(done.stdout.splitlines()[-20:])
                raise ReportError(f"`{command}` of ARTIFACT.md failed in {_passed(began)}:\n{last}")
            on_progress(command, _passed(began))


def first_commands(text: str) -> list[str]:
    """The commands of the first block of ARTIFACT.md; the environment that one activates is first on the path."""
    found = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = found[1].splitlines() if found else []
    commands = [line.partition("  #")[0].strip() for line in lines]
    return [command for command in commands if command and not command.startswith("source ")]


def _passed(began: float) -> str:
    return f"{time.perf_counter() - began:.0f} s"


def _main() -> None:
    parser = argparse.ArgumentParser(description="Make the archive for reviewers, and try it.")
    parser.add_argument("--report", type=Path, default=Path("reports"), help="a finished report")
    parser.add_argument("--no-trial", action="store_true", help="only make it")
    given = parser.parse_args()
    try:
        archive = write_archive(Path(), given.report, Path("build"))
        print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")
        if not given.no_trial:
            try_archive(archive, lambda what, took: print(f"{took:>7}  {what}", flush=True))
    except ReportError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main()
