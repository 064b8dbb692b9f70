"""The archive for reviewers has the commit and its report, byte for byte the same; its first commands are tried."""

from __future__ import annotations

import errno
import gzip
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from cepbench.errors import ReportError
from cepbench.presentation.reporting.artifact_archive import (
    first_commands,
    try_archive,
    write_archive,
)
from tests.presentation.reporting.test_artifact import FILE
from tests.presentation.reporting.test_provenance import git

COMMITTED = {
    "pyproject.toml": '[project]\nname = "cepbench"\nversion = "9.8"\n',
    "ARTIFACT.md": "```sh\necho $HOME >told  # a comment\nsource x\ntest -z \"$(ls -A $HOME)$CEPBENCH_X\"\n```\n",
    "tool.sh": "#!/bin/sh\n",
    "reports/.gitignore": "*\n!.gitignore\n",
}  # fmt: skip
REPORT = (
    "index.html", "ro-crate-metadata.json", "mei2009/figure.html", "data/sweeps/a-0/results.parquet",
    "data/sweeps/a-0/sweep.json",
)  # fmt: skip
LEFT_OUT = ("data/stream/part.parquet", "data/sweeps/a-0/journals/p.jsonl", "report.lock")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, text in COMMITTED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "tool.sh").chmod(0o755)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    for name in (*REPORT, *LEFT_OUT):
        path = root / "reports" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def archive_of(checkout: Path, folder: str = "made") -> Path:
    return write_archive(checkout, checkout / "reports", checkout.parent / folder)


def test_it_has_the_commit_the_report_and_checksums(checkout: Path) -> None:
    path = archive_of(checkout)
    assert path.name == "cepbench-9.8-artifact.tar.gz"
    with tarfile.open(path) as archive:
        entries = {entry.name: entry for entry in archive}
        sums = archive.extractfile("cepbench-9.8/SHA256SUMS")
        assert sums is not None
        listed = [line.split("  ")[1] for line in sums.read().decode().splitlines()]
    expected = [*sorted(COMMITTED), *sorted(f"reports/{name}" for name in REPORT)]
    assert listed == expected
    assert [*entries] == [f"cepbench-9.8/{name}" for name in (*expected, "SHA256SUMS")]
    when = int(git(checkout, "show", "--no-patch", "--format=%ct", "HEAD"))
    for name, entry in entries.items():
        assert (entry.uid, entry.gid, entry.uname, entry.gname) == (0, 0, "", "")
        assert entry.mtime == when
        assert entry.mode == (0o755 if name.endswith("tool.sh") else 0o644)


def test_its_bytes_depend_on_commit_and_report_alone(checkout: Path) -> None:
    first = archive_of(checkout).read_bytes()
    for path in checkout.rglob("*.html"):
        os.utime(path, (1000, 1000))
        path.chmod(0o600)
    assert archive_of(checkout, "again").read_bytes() == first
    # The time in its head, which two archives of one second would share.
    assert first[4:8] == bytes(4)
    assert os.fsencode(checkout) not in gzip.decompress(first)
    (checkout / "reports" / "index.html").write_text("another")
    assert archive_of(checkout).read_bytes() != first


def test_what_cannot_be_archived_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = checkout.parent / "made"
    with pytest.raises(ReportError, match=r"no .*nothing/index.html; run `make report` first"):
        write_archive(checkout, checkout / "nothing", made)
    (checkout / "new.txt").touch()
    with pytest.raises(ReportError, match=r"has changes.*commit or stash them:\n\?\? new.txt"):
        archive_of(checkout)
    (checkout / "new.txt").unlink()
    with pytest.raises(
        ReportError, match="is no checkout of cepbench: fatal: not a git repository"
    ):
        write_archive(checkout.parent, checkout / "reports", made)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(gzip.GzipFile, "write", full)
    with pytest.raises(ReportError, match="cannot be written: No space left on device; nothing"):
        archive_of(checkout)
    assert not list(made.iterdir())


def test_the_trial_runs_the_first_commands_with_an_empty_home(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEPBENCH_X", "set in this shell")
    told: list[str] = []
    try_archive(archive_of(checkout), lambda what, _: told.append(what))
    assert told == [
        "unpack and compare checksums",
        "echo $HOME >told",
        'test -z "$(ls -A $HOME)$CEPBENCH_X"',
    ]
    (checkout / "ARTIFACT.md").write_text("```sh\necho so it ends; exit 3\n```\n")
    git(checkout, "commit", "-qam", "fails")
    with pytest.raises(
        ReportError, match=r"`echo so .*` of ARTIFACT.md failed in \d+ s:\nso it ends"
    ):
        try_archive(archive_of(checkout), lambda *_: None)


def test_the_first_commands_are_those_of_the_ten_minutes() -> None:
    commands = first_commands(FILE.read_text(encoding="utf-8"))
    assert commands[:2] == ["make env", "cepbench doctor"]
    assert [command.split()[:2] for command in commands[2:]] == [
        ["cepbench", "compare"], ["cepbench", "claim"],
    ]  # fmt: skip
