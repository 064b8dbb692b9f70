"""Adapters of DuckDB, Polars, chDB, Flink (CEP and SQL) and CORE.

The last three run in processes of their own, and all but Flink's SQL take a :class:`Timing`. Each has a virtual environment, a folder of its name below
``CEPBENCH_PEERS``, which ``make peers`` fills; without it they are looked for where cepbench is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.errors import CannotSayError, NotInstalledError
from cepbench.experiments.conformance.cases import Case, Match
from cepbench.experiments.conformance.outside import (
    OUTSIDE_ENGINES as OUTSIDE_ENGINES,
)
from cepbench.experiments.conformance.outside import (
    Answer,
    OutsideEngine,
    columns_of,
    known,
)
from cepbench.patterns.model import Kind, Pattern

_PEERS = Path(__file__).parent / "peers"

#: Extras of cepbench, and the names of the environments that have them.
EXTRAS = ("chdb", "core", "flink")

#: Seconds until an engine has to have answered all cases.
_LONGEST = 1200

#: Flink runs on its own libraries, and reaches into those of Java.
_OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "time", "util")]


@dataclass
class Timing:
    """How often a case runs again once its matches are made, and what that takes."""

    times: int = 0
    #: Seconds after which the process is ended, which raises ``subprocess.TimeoutExpired``.
    longest: float = _LONGEST
    #: Seconds of CPU of each time, which the process measures.
    seconds: list[float] = field(default_factory=list)


def kinds_of(events: pd.DataFrame) -> dict[str, str]:
    """Attribute -> ``number`` or ``text``; a column without any value is of numbers."""
    return {
        str(name): "text" if its.dtype.kind == "O" else "number"
        for name, its in events.items()
        if name not in ("id", "type", "ts")
    }


def _numbers_as_floats(events: pd.DataFrame) -> pd.DataFrame:
    return events.astype({n: "float64" for n, kind in kinds_of(events).items() if kind == "number"})


def _duckdb(case: Case) -> list[Match]:
    import duckdb

    text = case.text_in("sql")
    with duckdb.connect() as connection:
        connection.register("events", case.events)
        found = connection.sql(text).df()[columns_of(case)]
    return [tuple(map(known, row)) for row in found.itertuples(index=False)]


def _polars(case: Case) -> list[Match]:
    import polars

    text = case.text_in("sql")
    events = polars.from_pandas(case.events)
    found = polars.SQLContext(events=events).execute(text, eager=True).select(columns_of(case))
    return [tuple(map(known, row)) for row in found.iter_rows()]


def _home(extra: str) -> Path:
    folder = os.environ.get("CEPBENCH_PEERS", "")
    return Path(folder) / extra if folder else Path(sys.prefix)


def _in_python(extra: str, language: str, bound: Callable[[Case, list[Any]], Match]) -> Any:
    """An adapter that asks ``peers/<extra>_peer.py``, again if its process ends before its last case."""

    def run(cases: Sequence[Case], timing: Timing | None = None) -> list[Answer]:
        timing = timing or Timing()
        answers: dict[int, Answer] = {}
        waiting = dict(_texts(cases, language, answers))
        while waiting:
            asked = [
                _asked(number, cases[number], text) | {"times": timing.times}
                for number, text in waiting.items()
            ]
            said_by_number, error = _ask(extra, asked, timing.longest)
            for number, said in said_by_number.items():
                answers[number] = said.get("error") or _bound(cases[number], said, bound)
                timing.seconds += said.get("seconds", [])
            waiting = {n: text for n, text in waiting.items() if n not in answers}
            if waiting:
                answers[first := next(iter(waiting))] = f"the process ended: {error}"
                del waiting[first]
        return [answers[number] for number in range(len(cases))]

    return run


def _ask(
    extra: str, asked: Sequence[dict[str, Any]], longest: float
) -> tuple[dict[int, dict[str, Any]], str]:
    """What ``peers/<extra>_peer.py`` says of cases until its process ends, by number, and its last words."""
    python = _home(extra) / "bin" / "python"
    if not python.exists():
        raise NotInstalledError(f"there is no {python}; make peers")
    lines = "".join(json.dumps(its) + "\n" for its in asked)
    with tempfile.TemporaryDirectory() as folder:  # CORE writes a log where it is
        ended = subprocess.run(
            [python, _PEERS / f"{extra}_peer.py"], cwd=folder, input=lines,
            capture_output=True, text=True, timeout=longest, check=False,
        )  # fmt: skip
    if "ModuleNotFoundError" in ended.stderr:
        raise NotInstalledError(f"{python.parents[1]} does not have it; make peers")
    said = (json.loads(its) for its in ended.stdout.splitlines() if its.startswith('{"number"'))
    return {its["number"]: its for its in said}, ended.stderr[-200:]


def _texts(
    cases: Sequence[Case], language: str, answers: dict[int, Answer]
) -> Iterator[tuple[int, str]]:
    """The number and text of each case that has one; the reason of the others as their answer."""
    for number, case in enumerate(cases):
        try:
            yield number, case.text_in(language)
        except CannotSayError as error:
            answers[number] = str(error)


def _asked(number: int, case: Case, text: str) -> dict[str, Any]:
    events = _numbers_as_floats(case.events)
    types = dict.fromkeys(events["type"])
    if isinstance(case.pattern, Pattern):
        types |= dict.fromkeys(its.type for its in case.pattern.variables if its.type)
    rows = json.loads(events.to_json(orient="values", double_precision=15))
    columns = list(events.columns)
    return {"number": number, "columns": columns, "kinds": kinds_of(events), "types": list(types),
            "events": rows, "text": text}  # fmt: skip


def _bound(case: Case, said: dict[str, Any], bound: Callable[[Case, list[Any]], Match]) -> Answer:
    try:
        return [bound(case, row) for row in said["found"]]
    except CannotSayError as error:
        return str(error)


def _row(case: Case, row: list[Any]) -> Match:
    return tuple(map(known, row[: len(columns_of(case))]))


def _by_variable(case: Case, ids: list[int]) -> Match:
    """The events of a match of CORE, which does not say whose they are, by type, else by order."""
    assert isinstance(case.pattern, Pattern)
    items, types = case.pattern.positive, case.events["type"]
    if len({item.type for item in items}) == len(items):
        found = [[p for p in ids if types[p] == item.type] for item in items]
    else:
        sets = [place for place, item in enumerate(items) if item.kind is Kind.KLEENE]
        if len(sets) > 1:
            raise CannotSayError("CORE does not say which event is in which of two sets of a type")
        first = sets[0] if sets else len(items)
        after = len(items) - first - 1
        found = [[p] for p in ids[:first]]
        if sets:
            found += [ids[first : len(ids) - after], *([p] for p in ids[len(ids) - after :])]
    return tuple(
        tuple(its) if item.kind is Kind.KLEENE else its[0] if its else None
        for item, its in zip(items, found, strict=True)
    )


# -- Flink -------------------------------------------------------------------------------------------


def _flink_cep(cases: Sequence[Case], timing: Timing | None = None) -> list[Answer]:
    answers: dict[int, Answer] = {}
    waiting = dict(_texts(cases, "flink_cep", answers))

    def write(folder: Path, number: int, text: str) -> None:
        cases[number].events.to_csv(folder / f"{number}.csv", index=False)
        lines = [
            "import java.time.Duration;",
            "import org.apache.flink.cep.*;",
            "import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;",
            "import org.apache.flink.cep.pattern.Pattern;",
            "import org.apache.flink.streaming.api.datastream.DataStream;",
            f"public class Case{number} extends FlinkPeer implements FlinkPeer.Program {{",
            "public PatternStream<Event> over(DataStream<Event> events) {",
            f"return {text}; }} }}",
        ]
        (folder / f"Case{number}.java").write_text("\n".join(lines), encoding="utf-8")

    def bound(case: Case, line: str) -> Match:
        by_name = {
            name: tuple(map(int, ids.split(",")))
            for name, _, ids in (part.partition("=") for part in line.split())
        }
        assert isinstance(case.pattern, Pattern)
        return tuple(
            by_name[item.name] if item.kind is Kind.KLEENE else by_name[item.name][0]
            for item in case.pattern.positive
        )

    return _on_flink(cases, waiting, answers, write, bound, timing)


def _flink_sql(cases: Sequence[Case]) -> list[Answer]:
    """MATCH_RECOGNIZE where there is such a text, else joins."""
    answers: dict[int, Answer] = {}
    waiting = dict(_texts(cases, "sql", answers))
    waiting |= dict(_texts(cases, "match_recognize", {}))
    answers = {number: answer for number, answer in answers.items() if number not in waiting}

    def write(folder: Path, number: int, text: str) -> None:
        case, body = cases[number], folder / f"{number}.body"
        _numbers_as_floats(case.events).to_csv(body, index=False, header=False)
        by_rows = "MATCH_RECOGNIZE" in text
        own = {"id": "INT", "type": "STRING", "ts": "BIGINT"}
        types = own | {
            name: "DOUBLE" if kind == "number" else "STRING"
            for name, kind in kinds_of(case.events).items()
        }
        columns = [f"`{name}` {types[name]}" for name in case.events.columns]
        names = columns_of(case)
        if by_rows:
            columns[list(case.events.columns).index("ts")] = "seconds BIGINT"
            columns += ["ts AS TO_TIMESTAMP_LTZ(seconds * 1000, 3)", "WATERMARK FOR ts AS ts"]
            if isinstance(case.pattern, Pattern):
                names = [f"{name}_id" for name in names]
        text = re.sub(r"WITHIN (\d+)", r"WITHIN INTERVAL '\1' SECOND", text).replace('"', "`")
        text = re.sub(r"`events`|(?<=FROM )events\b", f"events{number}", text)
        shown = ", ".join(f"COALESCE(CAST(`{name}` AS STRING), '-')" for name in names)
        (folder / f"{number}.sql").write_text(
            f"CREATE TEMPORARY TABLE events{number} ({', '.join(columns)}) WITH ('connector' = "
            f"'filesystem', 'path' = '{body}', 'format' = 'csv', 'csv.null-literal' = '')\n----\n"
            f"SELECT CONCAT_WS(' ', '{number}', {shown}) AS found FROM (\n{text}\n)",
            encoding="utf-8",
        )

    def bound(case: Case, line: str) -> Match:
        return tuple(None if part == "-" else int(part) for part in line.split())

    return _on_flink(cases, waiting, answers, write, bound)


def _on_flink(
    cases: Sequence[Case],
    waiting: dict[int, str],
    answers: dict[int, Answer],
    write: Callable[[Path, int, str], None],
    bound: Callable[[Case, str], Match],
    timing: Timing | None = None,
) -> list[Answer]:
    """Compile and run cases; Java is what is on the path, and its compiler."""
    timing = timing or Timing()
    libraries = next(iter(_home("flink").glob("lib/python*/site-packages/pyflink/lib")), None)
    java, compiler = shutil.which("java"), shutil.which("javac")
    if not waiting:
        return [answers[number] for number in range(len(cases))]
    if libraries is None:
        raise NotInstalledError(f"there is no Flink in {_home('flink')}; make peers")
    if java is None or compiler is None:
        raise NotInstalledError(
            "Flink needs java and javac on the path; apt install default-jdk-headless, or another JDK"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, text in waiting.items():
            write(folder, number, text)
        compile_all: list[str | Path] = [
            compiler,
            "-nowarn",
            "-d",
            folder / "out",
            "-cp",
            f"{libraries}/*",
        ]
        while True:
            sources = [_PEERS / "FlinkPeer.java", *sorted(folder.glob("Case*.java"))]
            said = subprocess.run(
                [*compile_all, *sources], capture_output=True, text=True, check=False
            )
            wrong = dict(re.findall(r"Case(\d+)\.java:\d+: error: (.*)", said.stderr))
            if not wrong:
                break
            for its, error in wrong.items():
                answers[int(its)] = f"javac: {error}"
                (folder / f"Case{its}.java").unlink()
        left = [number for number in waiting if number not in answers]
        (folder / "cases").write_text("\n".join(map(str, left)), encoding="utf-8")
        (folder / "log4j2.properties").write_text("rootLogger.level = off", encoding="utf-8")
        log = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"
        class_path = f"{folder / 'out'}:{libraries}/*"
        ended = subprocess.run(
            [java, *_OPENED, log, "-cp", class_path, "FlinkPeer", folder, str(timing.times)],
            capture_output=True, text=True, timeout=timing.longest, check=False,
        )  # fmt: skip
    found: dict[int, list[Match]] = {}
    for line in ended.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word == "case":
            found[int(rest)] = []
        elif word == "error":
            its, _, reason = rest.partition(" ")
            answers[int(its)] = reason
        elif word == "seconds":
            timing.seconds.append(float(rest))
        elif word.isdigit():
            found[int(word)].append(bound(cases[int(word)], rest))
    ended_early = f"the process ended: {ended.stderr[-200:]}"
    return [answers.get(n, found.get(n, ended_early)) for n in range(len(cases))]


for _name, _function, _together in (
    ("DuckDB", _duckdb, False),
    ("Polars", _polars, False),
    ("chDB", _in_python("chdb", "sql", _row), True),
    ("Flink SQL", _flink_sql, True),
    ("Flink CEP", _flink_cep, True),
    ("CORE", _in_python("core", "ceql", _by_variable), True),
):
    OUTSIDE_ENGINES.add(OutsideEngine(_name, _function, _together, is_builtin=True))


def install(folder: Path) -> int:
    """Make a virtual environment for each extra, by the first Python for which it can be installed; 1 if
    one cannot.
    """
    found = map(shutil.which, ("python3.13", "python3.12", "python3.11"))
    pythons = [sys.executable, *filter(None, found)]
    failed = False
    for extra in EXTRAS:
        wanted = [
            its.partition(";")[0].strip()
            for its in requires("cepbench") or ()
            if re.search(rf"""extra == ["']{extra}["']""", its)
        ]
        reasons = {}
        for python in pythons if wanted else ():
            print(f"{extra}: installing {', '.join(wanted)} by {python} ...", flush=True)
            reasons[python] = _installed(python, folder / extra, wanted)
            if not reasons[python]:
                break
        if wanted and not reasons[python]:
            print(f"{extra}: in {folder / extra}", flush=True)
            continue
        failed = True
        print(f"{extra}: not installed; put a Python on the PATH for which there is such a package")
        for python, reason in reasons.items():
            print(f"  {python}: {reason}")
        if not wanted:
            print("  the installed cepbench is older than this extra; run make env again")
    return int(failed)


def _installed(python: str, folder: Path, wanted: Sequence[str]) -> str:
    """Install into an environment of its own; why it cannot be, or nothing."""
    pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted]
    make: list[str | Path] = [python, "-m", "venv", "--clear", folder]
    for step in (make, pip):
        ended = subprocess.run(step, capture_output=True, text=True, check=False)
        if ended.returncode:
            shutil.rmtree(folder, ignore_errors=True)  # so that nothing looks installed
            return (ended.stderr or ended.stdout).strip().rpartition("\n")[2]
    return ""


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1]).expanduser().resolve()))
