"""docs/command_line.md: what it shows is what the commands write, numbers of time left aside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.presentation.commands.test_help import COMMANDS, words_of

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ (cepbench .*)\n([^`]*)```", TEXT)


#: What differs from run to run: times, throughput and its bar.
VARYING = {
    "plan": r"\d+\.\d\d(?=  [(a-z])",
    "aggregate": r"(?<=in )\S+(?= s$)|(?<=^updates:).*|(?<=^objects:).*|(?<=^memory:).*",
    "run": r"(?<=in )\S+(?= s$)|(?<=^throughput:).*|[\d.]+(?= ms)",
    "adapt": r"(?<=in )\S+(?= s$)|(?<=^throughput:).*|(?<=%) +[\d.]+",
    "compare": r"(?<=\d)  +[\d,]+  [▏▎▍▌▋▊▉█]* +([\d,]+ +(?=\d)|(?=as ))",
    "explain": r"<?\d+ %$",
    "evaluators": r"(?!)",
}


def steady(command: str, text: str) -> list[str]:
    """Lines without what differs from run to run, and without the width of columns."""
    without = re.sub(VARYING[command.split()[1]], " ~ ", text, flags=re.MULTILINE)
    return [re.sub(r" +", " ", line) for line in without.splitlines()]


def test_every_command_is_shown() -> None:
    shown = {command.split()[1] for command, _ in BLOCKS}
    assert {"plan", "run", "aggregate", "adapt", "compare", "explain", "evaluators"} <= shown
    for name in COMMANDS:
        group, _, own = name.partition(" ")
        assert re.search(rf"`cepbench {group}\b|, `{group}`", TEXT), name
        assert not own or re.search(rf"`(cepbench {group} )?{own}`", TEXT), name


@pytest.mark.parametrize(
    ("command", "shown"), BLOCKS, ids=[command.split()[1] for command, _ in BLOCKS]
)
def test_what_is_shown_is_what_is_written(command: str, shown: str, run) -> None:
    expected = steady(command, shown)
    written = steady(command, run(words_of(command)).stdout)
    assert written[: len(expected)] == expected


def test_the_keys_of_json_are_told(told) -> None:
    named = ["--pattern-name", "four-stocks", "--data", "nasdaq-style/sample"]
    rows = dict(
        re.findall(r"^\| `([a-z ]+)` \| (.*`.*) \|$", TEXT.partition("## For scripts")[2], re.M)
    )
    for command, told_keys in rows.items():
        if command == "report build":
            continue
        few = {"compare": ["--repetitions", "1", "--seconds", "0"]}.get(command, [])
        own = [] if command in ("claim", "generators", "evaluators") else [*named, *few]
        own = ["--no-self-test"] if command == "doctor" else own
        if command == "aggregate":
            own = ["PATTERN SEQ(CSCO a, MSFT b) AGG COUNT WITHIN 9 minutes", *named[2:]]
        document = told([command, *own])
        keys = list(document[0]) if isinstance(document, list) else list(document)
        for part in ("plans", "rows"):
            keys += list(document[part][0]) if part in keys else []
        assert re.findall(r"`(\w+)`", told_keys) == keys, command
