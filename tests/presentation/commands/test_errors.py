"""Errors go to standard error with a status, and say what to do."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ipykernel.kernelapp import IPKernelApp

from cepbench.presentation.commands.output import progress, write_table
from cepbench.progress import progress_bar

GOOD = "PATTERN SEQ(A a, B b) WITHIN 10 units"

#: What was typed, the status, and what is told: {run} is a run of the {good} pattern on the {data}.
MISTAKES = {
    "no pattern": ("plan --data {data}", 2, ["PATTERN", "--pattern-name"]),
    "two patterns": ("plan {good} --pattern-name x --data {data}", 2, ["not both"]),
    "no data": ("run {good}", 2, ["--data", "it is required"]),
    "a name without data": (
        "plan --pattern-name x --statistics s.json", 2, ["--pattern-name", "requires --data"],
    ),
    "an unknown command": ("expalin", 2, ["Did you mean", "explain"]),
    "an unknown option": ("plan {good} --dta x", 2, ["--dta", "--data"]),
    "no number": ("run x --limit many", 2, ["--limit", "integer"]),
    "a limit of nothing": ("run x --limit 0", 2, ["--limit", "equal to 1"]),
    "counting into a file": ("{run} --count -o x.csv", 2, ["--count"]),
    "an unknown kind of file": ("{run} -o x.txt", 2, [".parquet", ".csv"]),
    "one column": ("{run} --columns symbol", 2, ["symbol,ts"]),
    "days of Parquet": ("{run} --days 2", 2, ["--days"]),
    "a typing error": (
        "plan 'PATTERN SQE(A a) WITHIN 5 units' --data {data}", 1, ["did you mean 'SEQ'", "^^^"],
    ),
    "no such file of a pattern": (
        "plan nowhere.txt --data {data}", 1, ["'nowhere.txt' is neither a pattern", "PATTERN SEQ("],
    ),
    "a folder as a pattern": (
        "plan {folder} --data {data}", 1, ["neither a pattern nor", "directory"],
    ),
    "no such data": ("plan {good} --data nowhere.parquet", 1, ["nowhere.parquet"]),
    "a data set misspelled": ("plan {good} --data nasdaq-stile/quick", 1, ["nasdaq-style"]),
    "an unknown pattern": (
        "plan --pattern-name four-stock --data nasdaq-style/sample", 1, ["'four-stocks'"],
    ),
    "no library": ("plan --pattern-name x --data {data}", 1, ["without a library"]),
    "a text as data": (
        "plan {good} --data {folder}/latin.toml", 1, ["neither Parquet nor CSV", "data ingest"],
    ),
    "a table's library": (
        "plan --pattern-name x --data {folder}/events.csv", 1, ["without a library"],
    ),
    "a table with other columns": (
        "plan {good} --data {folder}/names.csv", 1, ["no column 'symbol'", "--columns TYPE,TIME"],
    ),
    "a table with a short row": (
        "plan {good} --data {folder}/short.csv",
        1, ["short.csv, line 3", "2 columns", "has 1", "quotes\n"],
    ),
    "days of a table": ("run {good} --data {folder}/events.csv --days 2", 2, ["--days"]),
    "a table on Spark": ("run {good} --data {folder}/events.csv --spark", 2, ["not CSV"]),
    "a folder without Parquet": (
        "plan --pattern-name x --data {folder}/nothing", 1, ["has neither Parquet"],
    ),
    "other columns": ("{plan} --columns s,t", 1, ["no column 's'"]),
    "a column misspelled": ("{plan} --columns symbl,ts", 1, ["did you mean 'symbol'?"]),
    "a time misspelled": ("{plan} --columns symbol,tss", 1, ["did you mean 'ts'?"]),
    "matches into a folder": ("{run} -o {folder}/folder.csv", 2, ["is a folder"]),
    "matches below a file": (
        "{run} -o {data}/matches.csv", 1, ["events.parquet; it already exists"],
    ),
    "matches over the events": ("{run} -o {data}", 2, ["overwrite", "events.parquet"]),
    "matches over the events by another path": (
        "{run} -o {folder}/nothing/../events.parquet", 2, ["overwrite"],
    ),
    "values over the events": (
        "aggregate 'PATTERN SEQ(A a) AGG COUNT WITHIN 5 units' --data {folder}/events.csv -o {folder}/events.csv",
        2, ["--output", "overwrite"],
    ),
    "a page over the events": ("{explain} --html {data}", 2, ["--html", "overwrite"]),
    "a page over a plugin": (
        "{explain} --plugin {folder}/empty.py --html {folder}/empty.py", 2, ["overwrite"],
    ),
    "matches among the events": (
        "run {good} --data {folder}/nothing -o {folder}/nothing/matches.parquet", 2, ["be read as"],
    ),
    "a query's matches over the events": (
        "run 'csv = {pattern}' --data {folder}/events.csv.csv -o {folder}/events.csv",
        2, ["overwrite"],
    ),
    "a name that is too long": ("{run} -o {long}.csv", 1, ["choose a shorter name"]),
    "a sweep that is not UTF-8": (
        "sweep run {folder}/latin.toml", 1, ["latin.toml is no text in UTF-8", "save it"],
    ),
    "a sweep that is not UTF-8, estimated": ("sweep estimate {folder}/latin.toml", 1, ["UTF-8"]),
    "statistics that are not UTF-8": (
        "plan {good} --statistics {folder}/latin.toml", 1, ["JSON", "rates"],
    ),
    "a pattern that is not UTF-8": (
        "plan {folder}/latin.toml --data {data}", 1, ["is not UTF-8", "save it"],
    ),
    "a plugin that is not UTF-8": ("{plan} --plugin {folder}/latin.py", 1, ["latin.py", "line 1"]),
    "an unknown attribute": ("{run} --attribute nam", 1, ["did you mean 'name'"]),
    "an unknown generator": ("{plan} -g dpb", 1, ["did you mean 'DP-B'?"]),
    "an unknown evaluator": ("{run} --evaluator lazynfa", 1, ["did you mean 'lazy-nfa'"]),
    "an unknown evaluator to compare": (
        "compare {good} --data {data} --evaluator lazynfa", 1, ["lazy-nfa, tree"],
    ),
    "no statistics": ("plan {good} --statistics nowhere.json", 1, ["No such file", "rates"]),
    "statistics that are none": (
        "plan {good} --statistics {folder}/broken.json", 1, ["JSON", "rates"],
    ),
    "no plugin": ("{plan} --plugin mine.py", 1, ["no Python file mine.py"]),
    "a plugin that registers nothing": (
        "{plan} --plugin {folder}/empty.py", 1, ["@cepbench.plan_gen"],
    ),
    "a plugin that fails": (
        "{plan} --plugin {folder}/failing.py", 1, ["failing.py, line 2", "ZeroDivisionError"],
    ),
    "a plugin that is no Python": ("{plan} --plugin {folder}/wrong.py", 1, ["wrong.py, line 1"]),
    "no report yet": ("report open --output nowhere", 1, ["nowhere/index.html", "report build"]),
    "an unknown notebook": ("report build --only quikstart", 1, ["did you mean 'quickstart'"]),
    "no notebooks": ("report build --notebooks nowhere", 1, ["no folder nowhere", "--notebooks"]),
    "an unknown profile": (
        "report build --profile quikc --notebooks {folder}", 1, ["'quikc'", "quick and full"],
    ),
    "a page where it cannot be": ("{explain} --html {data}/x.html", 1, ["events.parquet; "]),
    "a page that is a folder": ("{explain} --html {folder}", 1, ["it is a folder; give a file"]),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake(mistake: str, run, data, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "failing.py").write_text("x = 1\nx / 0\n")
    (tmp_path / "wrong.py").write_text("def\n")
    (tmp_path / "events.csv").write_text("symbol,ts\nA,1\n")
    (tmp_path / "events.csv.csv").write_text("symbol,ts\nA,1\n")
    (tmp_path / "names.csv").write_text("kind,at\nA,1\n")
    (tmp_path / "short.csv").write_text("symbol,ts\nA,1\nB\n")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "folder.csv").mkdir()
    for latin in ("latin.toml", "latin.py"):
        (tmp_path / latin).write_bytes(b'title = "caf\xe9"\n')
    command, code, messages = MISTAKES[mistake]
    typed = {name: f"{name} '{GOOD}' --data {data}" for name in ("plan", "run", "explain")}
    filled = {"pattern": GOOD, "good": f"'{GOOD}'", "data": data, "folder": tmp_path}
    result = run(command.format(**typed, **filled, long="x" * 300), code=code)
    assert result.stdout == ""
    for message in messages:
        assert message in result.stderr
    if code == 1:
        assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_ctrl_c(run, data, tmp_path) -> None:
    plugin = tmp_path / "interrupted.py"
    plugin.write_text(
        "import cepbench as cep\n"
        '@cep.plan_generator("SLOW", kind="order")\n'
        "def slow(problem, rng):\n"
        "    raise KeyboardInterrupt\n"
    )
    words = ["plan", GOOD, "--data", data, "-g", "SLOW", "--plugin", str(plugin)]
    assert run(words, code=130).stderr == "interrupted\n"


def test_ctrl_c_in_a_process_of_its_own(tmp_path: Path) -> None:
    plugin = tmp_path / "slow.py"
    plugin.write_text("import sys, time\nprint('waiting', file=sys.stderr)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "cepbench", "generators", "--plugin", str(plugin)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "cepbench", "--help"],
        stdout=writing, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "evaluators"])
def test_a_full_disk_and_a_closed_output_are_no_traceback(words: str) -> None:
    command = [sys.executable, "-m", "cepbench", words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 1
    assert done.stderr.startswith("error: No space left on device: standard output or a file;")
    closed = ["sh", "-c", '"$@" >&-', "sh", *command]
    assert subprocess.run(closed, stderr=subprocess.PIPE).stderr == b""


@pytest.mark.parametrize("wanted", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_gets_colours_unless_they_are_not_wanted(wanted: dict[str, str]) -> None:
    """Elsewhere there are none: the test of mistakes would see them."""
    told, terminal = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "cepbench", "report", "open", "--output", "nowhere"],
        stderr=terminal, env={**os.environ, "NO_COLOR": "", "TERM": "xterm", **wanted},
    )  # fmt: skip
    shown = os.read(told, 4096)
    os.close(terminal)
    os.close(told)
    assert b"nowhere/index.html" in shown
    assert shown.startswith(b"error:" if wanted else b"\x1b")


def test_progress_is_for_terminals_alone(capsys, monkeypatch) -> None:
    with progress("working", total=3) as bar:
        bar.update(2)
    with progress("working"):
        pass
    assert capsys.readouterr() == ("", "")
    assert not IPKernelApp.initialized() and progress_bar(range(3)).disable
    monkeypatch.setattr(IPKernelApp, "initialized", lambda: True)
    assert not progress_bar(range(3)).disable and progress_bar(shown=False).disable


def test_tables_in_a_terminal_are_cut_to_its_width(capsys, monkeypatch) -> None:
    rows = [
        {"name": "one", "count": 1_000, "long": "x" * 60, "flag": None},
        {"name": "two", "count": 2.5, "long": "y", "flag": True},
    ]
    columns = {"name": "name", "number": "count", "long": "long", "flag": "flag"}
    write_table(rows, columns, shrink="long")
    assert capsys.readouterr().out.splitlines() == [
        "name  number" + "  long" + " " * 56 + "  flag",
        "one    1,000  " + "x" * 60,
        "two      2.5  y" + " " * 59 + "  yes",
    ]
    write_table([{"[b]": "[red]:x:"}], ["[b]"])  # no markup
    assert capsys.readouterr().out.splitlines() == ["[b]", "[red]:x:"]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    wide = [{"name": "n" * 20, "count": "m" * 30, "long": "x" * 60, "flag": "s" * 25}]
    write_table(wide, columns, shrink="long")
    assert len(capsys.readouterr().out.splitlines()[1]) == 20 + 30 + 8 + 25 + 6  # no narrower
    write_table(wide, columns, shrink="long", less=("flag",))
    line = capsys.readouterr().out.splitlines()[1]
    assert "s" not in line
    assert len(line) == 80
    assert line.endswith("x…")
