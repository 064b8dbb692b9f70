"""Help texts: quick, narrow, with examples that can be run; and what the Tab key completes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import cepbench as cep
from cepbench.presentation.commands import completion, options
from cepbench.presentation.commands.app import app
from tests.notebooks.tiny import write_notebook

ROOT = Path(__file__).resolve().parents[3]


def commands(group: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command by its words."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(commands())


def examples_of(command: Any) -> list[str]:
    """The commands at the end of a help text, each on one line."""
    lines = (command.epilog or "").replace("\b", "").splitlines()
    text = "\n".join(line[2:] for line in lines if line.startswith("  "))
    return re.findall(r"^cepbench .*?(?=\n^cepbench|\Z)", text, re.DOTALL | re.MULTILINE)


def words_of(example: str) -> list[str]:
    """As a shell takes it apart, without the name of the command."""
    return shlex.split(example.replace("\\\n", " "))[1:]


#: Commands whose examples take long or need Spark; other tests run what they do.
LONG = {
    "claim",
    "doctor",
    "data make",
    "data ingest",
    "sweep run",
    "sweep estimate",
    "sweep compare",
}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that examples speak of."""
    (tmp_path / "pattern.txt").write_text("PATTERN SEQ(A a, B b) WITHIN 5 units")
    (tmp_path / "statistics.json").write_text('{"rates": {"a": 1, "b": 2}}')
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "index.html").write_text("a report")
    (tmp_path / "notebooks").mkdir()
    write_notebook(tmp_path / "notebooks" / "quickstart.ipynb", 'profile = "full"')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_shows_an_example_and_fits(name: str, run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(f"{name} --help").stdout
    command = COMMANDS[name] if name else typer.main.get_command(app)
    found = examples_of(command)
    assert found
    for example in found:
        assert example.startswith(f"cepbench {name}")
        for line in example.splitlines():
            assert line in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown


_OF_REPORTS = pytest.param("report build", marks=pytest.mark.xdist_group("notebooks"))


@pytest.mark.parametrize("name", [*sorted(set(COMMANDS) - LONG - {"report build"}), _OF_REPORTS])
def test_examples_run(name: str, run, elsewhere: Path, monkeypatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    for example in examples_of(COMMANDS[name]):
        if "--spark" not in example:  # tests/spark runs it
            assert run(words_of(example)).stdout


def test_commands_are_in_order(run) -> None:
    shown = run("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in shown.splitlines()]
    assert names[0] == "data"
    assert set(names) == {name.split()[0] for name in COMMANDS}
    assert "..." not in shown  # no summary is cut


def test_the_example_of_the_whole_runs(run, elsewhere: Path) -> None:
    (example,) = examples_of(typer.main.get_command(app))
    assert "order plan by" in run(words_of(example)).stdout


def test_help_and_completion_load_nothing_heavy() -> None:
    helps = [name.split() for name in COMMANDS]
    script = f"""
import sys
from cepbench.presentation.commands.app import app
from cepbench.presentation.commands import completion
for words in [[], *{helps!r}]:
    try:
        app([*words, "--help"], prog_name="cepbench")
    except SystemExit as end:
        assert end.code == 0, words
completion.complete_generators("")
completion.complete_data("")
heavy = {{"numba", "pandas", "pyarrow", "pyspark", "altair", "matplotlib", "papermill", "rich"}}
print("LOADED", *(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "LOADED"


def helps_in(tables: dict[str, Any]) -> set[str]:
    """The help texts of a table of options and of the tables in it."""
    found = [its for its in tables.values() if isinstance(its, dict)]
    own = {its["help"] for its in found if "help" in its}
    return own.union(*(helps_in(its) for its in found if "help" not in its))


def test_the_table_of_options_has_what_commands_take_and_nothing_else() -> None:
    text = Path(options.__file__).with_suffix(".toml").read_text(encoding="utf-8")
    taken = {its.help for command in COMMANDS.values() for its in command.params}
    assert taken == helps_in(tomllib.loads(text))


def test_names_are_completed() -> None:
    assert set(completion.complete_generators("")) == {
        name for name, entry in cep.PLAN_GENERATORS.items() if entry.is_builtin
    }
    assert completion.complete_generators("dp-") == ["dp-LD", "dp-B"]
    assert completion.complete_evaluators("") == list(cep.EVALUATORS)
    assert set(completion.complete_costs("")) == set(cep.COST_MODELS)


def test_data_sets_and_files_are_completed(elsewhere: Path, monkeypatch) -> None:
    monkeypatch.setenv("CEPBENCH_DATASETS", str(ROOT / "datasets"))
    (elsewhere / "nasdaq.parquet").touch()
    (elsewhere / "nasdaq.txt").touch()
    found = completion.complete_data("nasdaq")
    assert found[-1] == "nasdaq.parquet"
    assert {"nasdaq-style/sample", "nasdaq-style/quick"} <= set(found)
    assert "nasdaq.txt" not in found
    assert completion.complete_data("reports") == ["reports/"]
    assert completion.complete_data("nowhere/else") == []
    (elsewhere / "notebooks" / "figure_7.ipynb").touch()
    assert completion.complete_notebooks("figure") == ["figure_7"]


def completed(line: str) -> list[str]:
    """What bash is told to offer at the end of a line."""
    words = line.split(" ")
    environment = {
        "_CEPBENCH_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "CEPBENCH_DATASETS": str(ROOT / "datasets"),
    }
    done = subprocess.run(
        [sys.executable, "-c", "from cepbench.presentation.commands.app import main; main()"],
        capture_output=True, encoding="utf-8", env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout.split()


def test_the_tab_key() -> None:
    assert completed("cepbench plan --generator II") == ["II-RANDOM", "II-GREEDY"]
    library = cep.open_dataset("nasdaq-style/sample").patterns
    assert completed("cepbench run --data nasdaq-style/sample --pattern-name c") == [
        name for name in library if name.startswith("c")
    ]
