"""Compiled kernels: kept for the next process, made by one process for all that start at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from cepbench.kernels import cache_folder, sorting

ROOT = Path(__file__).parents[2]
#: A module of kernels.
MODULE = Path(sorting.__file__)

KERNEL = """
from cepbench.kernels.jit import njit

@njit
def twice(x):
    return once(x) + once(x)

@njit
def once(x):
    return x
"""
#: Of so much source is said that it is compiled.
KERNEL += f"# {40_000 * '.'}\n"

COMPILING = "cepbench: compiling the kernels of tiny (about 8 s, once per installation) ..."

RUN = "import tiny; print(tiny.twice(21), sum(tiny.twice.stats.cache_hits.values()))"


def started(folder: Path, code: str = RUN, root: Path = ROOT) -> subprocess.Popen[str]:
    """A process of its own, with a kernel of its own and caches below ``folder``."""
    (folder / "tiny.py").write_text(KERNEL, encoding="utf-8")
    quiet = ("PYTEST_CURRENT_TEST", "NUMBA_DISABLE_JIT")
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    environment |= {"XDG_CACHE_HOME": str(folder / "caches"), "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[str, list[str]]:
    """What a process printed, and its lines of errors; it ended well."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return output.strip(), errors.splitlines()


def test_of_processes_that_start_at_once_one_compiles_and_says_so(tmp_path: Path) -> None:
    runs = sorted(map(ended, [started(tmp_path), started(tmp_path)]))
    assert [output for output, _ in runs] == ["42 0", "42 1"]
    waiting = "cepbench: another process is compiling the kernels of tiny; waiting for it ..."
    assert runs[0][1] == [COMPILING]
    assert runs[1][1] in ([], [waiting])  # none if the other was much quicker
    (kept,) = (tmp_path / "caches" / "cepbench").iterdir()
    # A damaged file is made anew.
    for path in kept.rglob("*.nbi"):
        path.write_bytes(path.read_bytes()[:-9])
    assert ended(started(tmp_path)) == ("42 0", [COMPILING])


def test_with_another_version_of_numba_kernels_are_compiled_as_it_does(tmp_path: Path) -> None:
    without = "import sys; sys.modules['cepbench.kernels.pipelines'] = None; "
    assert ended(started(tmp_path, without + RUN)) == ("42 0", [COMPILING])
    assert ended(started(tmp_path, without + RUN)) == ("42 1", [])


def test_equal_sources_are_compiled_once_wherever_they_lie(tmp_path: Path) -> None:
    """Two copies of the kernels share what the first one has compiled."""
    run = (
        "import numpy as np\n"
        "from cepbench.kernels.sorting import sorted_by\n"
        "sorted_by(np.array([1, 0], np.int32), 0, 2)\n"
        "print(sorted_by.__module__, sum(sorted_by.stats.cache_hits.values()))"
    )
    found = []
    for copy in ("one", "other"):
        package = tmp_path / copy / "cepbench"
        shutil.copytree(ROOT / "cepbench", package)
        process = started(tmp_path, run, package.parent)
        found.append(ended(process)[0])
    assert found == [f"cepbench.kernels.sorting {hits}" for hits in (0, 1)]


def test_an_edit_recompiles_only_what_it_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cepbench"
    shutil.copytree(ROOT / "cepbench", root)
    monkeypatch.setattr(cache_folder, "_ROOT", root)
    engines, planning = root / "engines", root / "planning" / "kernels"
    joins, sase = engines / "joins" / "kernels", engines / "sase" / "kernels"
    graph = engines / "runs" / "kernels" / "graph.py"
    advance, sets, search = joins / "advance.py", joins / "sets.py", planning / "dp_ld.py"
    modules = {advance, search, graph, sase / "runs.py", sase / "advance.py"}

    def changed_by(edited: Path) -> set[Path]:
        before = {module: cache_folder.digest_of(module) for module in modules}
        with edited.open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        return {module for module in modules if cache_folder.digest_of(module) != before[module]}

    assert changed_by(sets) == {advance}
    assert changed_by(search) == {search}
    # The automaton's kernels include those of graphs.
    assert changed_by(graph) == {graph, sase / "runs.py", sase / "advance.py"}
    assert changed_by(sase / "runs.py") == {sase / "runs.py", sase / "advance.py"}
    assert changed_by(root / "kernels" / "jit.py") == modules
    assert changed_by(joins.parent / "layout.py") == set()


def test_without_any_place_to_write_kernels_are_compiled_in_each_process(tmp_path: Path) -> None:
    (tmp_path / "caches").write_text("a file", encoding="utf-8")
    nowhere = f"import tempfile; tempfile.tempdir = {str(tmp_path / 'caches')!r}; "
    output, errors = ended(started(tmp_path, nowhere + RUN))
    assert output == "42 0"
    assert len(errors) == 1
    assert "again in each process" in errors[0]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A user's folder of caches and a folder for what is temporary, both empty."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    for folder in (home, temporary):
        folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return home, temporary


def test_the_first_place_that_can_be_written_is_taken(places: tuple[Path, Path]) -> None:
    home, temporary = places
    first = cache_folder.cache_folder(MODULE)
    assert first is not None
    assert first.parent == home / "cepbench"
    assert cache_folder.cache_folder(MODULE) == first
    for path in first.iterdir():
        path.unlink()
    first.rmdir()
    (home / "cepbench").rmdir()
    (home / "cepbench").write_text("in the way", encoding="utf-8")
    second = cache_folder.cache_folder(MODULE)
    assert second is not None
    assert second.name == first.name
    assert second.parent.parent == temporary
    (temporary / second.parent.name).rename(temporary / "elsewhere")
    (temporary / second.parent.name).write_text("in the way", encoding="utf-8")
    assert cache_folder.cache_folder(MODULE) is None


def test_what_can_only_be_read_is_copied(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = places
    built = cache_folder.cache_folder(MODULE)
    assert built is not None
    (built / "kernels").mkdir()
    (built / "kernels" / "one.nbc").write_bytes(b"code")
    write = tempfile.TemporaryFile

    def refused_at_home(dir: Path) -> Any:
        if home in dir.parents:
            raise PermissionError("a read-only disk")
        return write(dir=dir)

    monkeypatch.setattr(tempfile, "TemporaryFile", refused_at_home)
    copied = cache_folder.cache_folder(MODULE)
    assert copied is not None
    assert temporary in copied.parents
    assert (copied / "kernels" / "one.nbc").read_bytes() == b"code"
    assert [path.name for path in copied.parent.iterdir()] == [built.name]
    # Done once: what was made there meanwhile stays.
    (copied / "kernels" / "one.nbc").write_bytes(b"newer")
    assert cache_folder.cache_folder(MODULE) == copied
    assert (copied / "kernels" / "one.nbc").read_bytes() == b"newer"


@pytest.mark.skipif(os.name != "posix", reason="no owners of files")
def test_nobody_elses_code_is_run(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = places
    (home / "cepbench").mkdir(mode=0o777)
    (home / "cepbench").chmod(0o777)
    folder = cache_folder.cache_folder(MODULE)
    assert folder is not None
    assert folder.parent.stat().st_mode & 0o777 == 0o700  # our own, and open no more
    if os.getuid() == 0:
        os.chown(home / "cepbench", 54321, -1)
    else:
        another = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: another)
        assert cache_folder.cache_folder(MODULE) is None
        return
    folder = cache_folder.cache_folder(MODULE)
    assert folder is not None
    assert temporary in folder.parents


def test_without_a_home_nothing_is_left_in_the_working_directory(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    folder = cache_folder.cache_folder(MODULE)
    assert folder is not None
    assert places[1] in folder.parents
    assert {path.name for path in tmp_path.iterdir()} == {"home", "temporary"}


def test_folders_of_old_versions_go_after_a_month_without_use(places: tuple[Path, Path]) -> None:
    own = cache_folder.cache_folder(MODULE)
    assert own is not None
    day = 24 * 3600.0
    now = time.time()

    def made(name: str, used: float | None, changed: float = 0.0) -> Path:
        folder = own.parent / name
        (folder / "kernels").mkdir(parents=True)
        if used is not None:
            (folder / "used").touch()
            os.utime(folder / "used", (now, now - used * day))
        os.utime(folder, (now, now - changed * day))
        return folder

    gone = [
        made("kernels-" + 16 * "0", 31),
        made("kernels-my-own-" + 16 * "4", 31),
        made("kernels-" + 16 * "1", None, changed=31),
    ]
    stay = [
        made("kernels-" + 16 * "2", 29, changed=31),
        made("kernels-" + 16 * "3", None, changed=29),
        made("kernels-of-mine", 31),
        own,
    ]
    os.utime(own / "used", (now, now - 31 * day))
    cache_folder.remove_old(own)
    assert not any(folder.exists() for folder in gone)
    assert all(folder.exists() for folder in stay)
    # A use is noted.
    assert cache_folder.cache_folder(MODULE) == own
    assert time.time() - (own / "used").stat().st_mtime < day
