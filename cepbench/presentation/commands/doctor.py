"""``cepbench doctor``: whether this machine has what cepbench needs, and the line that mends what is wrong."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer

from cepbench.errors import CepbenchError
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import declared, examples

EXAMPLES = examples("cepbench doctor", "cepbench doctor --no-self-test --json")

_GIB = 1 << 30

#: What the driver of Spark takes, the memory that tests need beside it, and what a report writes.
_ENOUGH_MEMORY, _ENOUGH_SPACE = 4 * _GIB, 2 * _GIB

_INSTALL = "make env, or python -m pip install --force-reinstall cepbench"
_WARM_UP = "python -m cepbench.experiments.sweeps.warm_up"


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and the line that mends it or makes it better."""

    what: str
    found: str
    remedy: str = ""
    #: Whether cepbench works all the same.
    works: bool = False

    @property
    def verdict(self) -> str:
        """``ok``, ``better`` if it could be, or ``wrong``."""
        return "ok" if not self.remedy else "better" if self.works else "wrong"


@declared
def doctor(self_test: bool = True, json: bool = False) -> None:
    """Say what is wrong with this machine, and how to mend it.

    Python, packages, Java, memory, caches, disks, fonts and the kernel of notebooks; and matches found by
    every engine, by DuckDB and on Spark. The exit status is 1 if something is wrong; the line that mends it stands beside.
    """
    checks = _CHECKS + ((_engines, _spark) if self_test else ())
    findings: list[Finding] = []
    with out.progress("examining"):
        for check in checks:
            try:
                findings += check()
            except Exception as error:  # whatever is broken is what is wrong
                said = str(error) if isinstance(error, CepbenchError) else repr(error)
                remedy = said if isinstance(error, CepbenchError) else _INSTALL
                findings.append(Finding(check.__name__.strip("_"), said, remedy))
    rows = [{**asdict(its), "verdict": its.verdict} for its in findings]
    if json:
        out.write_json(rows)
    else:
        out.write_table(rows, {"": "verdict", "what": "what", "found": "found"}, shrink="found")
        for its in findings:
            if its.remedy:
                out.write_line(f"\n{its.what}: {its.remedy}")
    if any(its.verdict == "wrong" for its in findings):
        raise typer.Exit(1)


def _python() -> Iterator[Finding]:
    found = f"{platform.python_version()}, {sys.prefix}"
    old = sys.version_info < (3, 11)
    yield Finding("Python", found, "install Python 3.11 or newer" if old else "")
    where = Path(__file__).parents[2]
    yield Finding("cepbench", f"{version('cepbench')}, {where}")


def _packages() -> Iterator[Finding]:
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in requires("cepbench") or ()]
    needed = [its for its in wanted if its.marker is None or its.marker.evaluate({"extra": ""})]
    wrong = []
    for its in needed:
        try:
            if not its.specifier.contains(version(its.name), prereleases=True):
                wrong.append(f"{its.name} {version(its.name)}, needed {its.specifier}")
        except PackageNotFoundError:
            wrong.append(f"{its.name} is missing")
    texts = " ".join(f'"{its.name}{its.specifier}"' for its in needed)
    remedy = f"python -m pip install {texts}" if wrong else ""
    yield Finding("packages", "; ".join(wrong) or f"{len(needed)}, as needed", remedy)


def _java() -> Iterator[Finding]:
    from cepbench.spark.java import class_archive, find_java

    java = find_java()
    archived = class_archive(java).exists()
    speed = "" if archived else "; without an archive of Spark's classes, which starts it faster"
    yield Finding("Java", f"{java.version}, {java.home}{speed}")


def _machine() -> Iterator[Finding]:
    yield Finding("cores", str(os.cpu_count()))
    # Of these the names of other systems lack one.
    with suppress(ValueError, OSError, AttributeError):
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (page * os.sysconf(f"SC_{its}PHYS_PAGES") for its in ("", "AV"))
        remedy = ""
        if total < _ENOUGH_MEMORY:
            remedy = 'give Spark less: cep.spark_session(memory="1g"), and run tests with -n 1'
        yield Finding("memory", f"{total / _GIB:.1f} GiB, {free / _GIB:.1f} free", remedy)


def _caches() -> Iterator[Finding]:
    from cepbench.kernels.cache_folder import made_private, private_folders
    from cepbench.planning.costs.unit_costs import FIXED, unit_costs

    first, *_ = [*private_folders(), None]
    usable = None
    for base in private_folders():
        with suppress(OSError), tempfile.TemporaryFile(dir=made_private(base)):
            usable = base
            break
    if usable is None:
        yield Finding("compiled kernels", "no folder", f"make {first} writable, or set HOME")
        return
    folders = [its for its in usable.glob("kernels-*") if any(its.glob("*.nbi"))]
    size = sum(file.stat().st_size for its in folders for file in its.iterdir()) / (1 << 20)
    remedy = "" if folders else f"the first matches wait for the compiler; compile now: {_WARM_UP}"
    if usable != first:
        remedy = f"{first} cannot be written to, and what is in {usable} may be lost; make it writable, or set HOME"
    said = f"{len(folders)} modules, {size:.0f} MiB, {usable}"
    yield Finding("compiled kernels", said, remedy, works=True)
    measured = unit_costs() is not FIXED
    yield Finding(
        "costs of engines",
        "measured here" if measured else "those of another machine",
        "" if measured else "measure them: python -m cepbench.experiments.sweeps.unit_costs",
        works=True,
    )


def _disks() -> Iterator[Finding]:
    for what, place in (("temporary folder", Path(tempfile.gettempdir())), ("disk", Path.cwd())):
        free = shutil.disk_usage(place).free
        remedy = f"free some space in {place}" if free < _ENOUGH_SPACE else ""
        if what == "temporary folder" and remedy:
            remedy += ", or set TMPDIR: Spark sorts there"
        try:
            with tempfile.TemporaryFile(dir=place):
                pass
        except OSError:
            remedy = f"{place} cannot be written to; make it writable, or go elsewhere"
        yield Finding(what, f"{free / _GIB:.1f} GiB free, {place}", remedy)


def _fonts() -> Iterator[Finding]:
    from matplotlib.font_manager import findfont

    from cepbench.presentation.figures.matplotlib_panels import FONT

    try:
        yield Finding("font", str(findfont(FONT, fallback_to_default=False)))
    except ValueError:
        yield Finding("font", f"no {FONT}", "python -m pip install --force-reinstall matplotlib")


def _notebooks() -> Iterator[Finding]:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Finding("notebooks", "no kernel python3", "python -m pip install ipykernel")
        return
    remedy = ""
    if (
        Path(spec.argv[0]).is_absolute()
        and Path(spec.argv[0]).parent != Path(sys.executable).parent
    ):
        remedy = "python -m ipykernel install --sys-prefix"
    yield Finding("notebooks", f"the kernel python3 runs {spec.argv[0]}", remedy)


_PATTERN = "PATTERN SEQ(A a, B b, NOT(D n), C c) WHERE a.x < c.x AND b.x < c.x WITHIN 20 units"


def _engines() -> Iterator[Finding]:
    """Each built-in engine that takes the pattern finds the matches that DuckDB finds."""
    from cepbench.engines.detection.evaluate import evaluate
    from cepbench.engines.detection.registry import EVALUATORS
    from cepbench.errors import UnsupportedPatternError, UnsupportedTaskError
    from cepbench.planning.plans.model import OrderPlan

    stream, expected = _stream_and_matches()
    found, slowest = {}, 0.0
    for name, entry in EVALUATORS.items():
        if not entry.is_builtin:
            continue
        plan = None if entry.without_plan else OrderPlan(("a", "b", "c"))
        before = time.perf_counter()
        with suppress(UnsupportedTaskError, UnsupportedPatternError):
            result = evaluate(_PATTERN, stream, plan, evaluator=name, output="count")
            found[name] = result.metrics.matches
        slowest = max(slowest, time.perf_counter() - before)
    wrong = [name for name, number in found.items() if number != expected]
    yield Finding(
        "engines",
        f"{', '.join(wrong)} do not find {expected:,} matches"
        if wrong
        else f"{len(found)} find the {expected:,} matches that DuckDB finds",
        f"remove the compiled kernels and compile them anew: {_WARM_UP}; if it stays, report it"
        if wrong
        else "",
    )
    if slowest > 20.0:
        said = f"one of them took {slowest:.0f} s"
        yield Finding("speed", said, f"compile kernels: {_WARM_UP}", works=True)


def _spark() -> Iterator[Finding]:
    from cepbench.spark.detection import detect
    from cepbench.spark.session import session_for_a_while

    stream, expected = _stream_and_matches()
    before = time.perf_counter()
    with session_for_a_while() as spark:
        frame = spark.createDataFrame(stream.to_pandas())
        found = detect(frame, _PATTERN, type="type", time="time").count()
    said = f"found {found:,} of {expected:,} matches in {time.perf_counter() - before:.1f} s"
    yield Finding("Spark", said, "" if found == expected else "report it with this output")


def _stream_and_matches() -> tuple:
    """A small stream, and how many matches DuckDB finds in it."""
    import duckdb
    import numpy as np
    import pandas as pd

    from cepbench.planning.sql.to_sql import to_sql
    from cepbench.streams.event_stream import EventStream

    rng = np.random.default_rng(0)
    table = {
        "type": rng.choice(list("ABCDE"), 1_000),
        "time": np.arange(1_000),
        "x": rng.random(1_000),
    }
    events = pd.DataFrame(table)
    query = to_sql(_PATTERN, output="count")
    with duckdb.connect() as connection:
        connection.register("events", events.assign(position=range(len(events))))
        expected = int(connection.sql(query).df()["matches"].iloc[0])
    return EventStream.from_pandas(events, type="type", time="time"), expected


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python, _packages, _java, _machine, _caches, _disks, _fonts, _notebooks,
)  # fmt: skip
