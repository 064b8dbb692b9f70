"""Every engine and aggregation method does as much on fixed patterns as was recorded, no more and no less.

If that was to change, ``python -m tests.golden`` shows how and writes ``golden.json`` anew.
"""

from __future__ import annotations

import json

import pytest

import cepbench as cep
from cepbench.engines.runs.work import WORDS
from tests import golden

RECORDED = golden.recorded()

#: What does not depend on pushes, unlike peaks and comparisons; and the engines by which a round of other
#: events may create other partial matches, with the method that lists matches by the first of them.
_RUNS = {"run_visits", "edges_evaluated", "buffer_writes", "pointers_followed"}
_COUNTED = {"counters_updated", "rows_created", "rows_expired", "rows_read"}
SAME_LIVE = {
    "engines": {"matches", "runs_started", "output_complexity", "match_length", *_RUNS},
    "methods": {"rows", "updates", *_COUNTED},
}
CREATE_BY_ROUND = {"stack-nfa", "zstream", "two-step"}


@pytest.mark.parametrize(
    ("section", "where", "text"),
    [pytest.param(*its, id=golden.key_of(*its[1:])) for its in golden.cases()],
)
def test_work_is_what_was_recorded(section: str, where: str, text: str) -> None:
    key = golden.key_of(where, text)
    now = golden.measured(section, where, text)
    changed = golden.differences(RECORDED[section].get(key, {}), now)
    assert not changed, "\n".join([f"{key} (if wanted: python -m tests.golden)", *changed])


def test_the_file_is_as_it_is_written() -> None:
    """Sorted, and without patterns that are measured no more."""
    assert golden.PATH.read_text(encoding="utf-8") == golden.text_of(RECORDED)
    named = {(section, golden.key_of(*its)) for section, *its in golden.cases()}
    assert named == {(section, key) for section, patterns in RECORDED.items() for key in patterns}
    assert len(RECORDED["engines"]) == 50


@pytest.mark.parametrize(
    ("section", "registry"), [("engines", cep.EVALUATORS), ("methods", cep.AGGREGATORS)]
)
def test_everything_registered_is_recorded(section: str, registry) -> None:
    found = {name for engines in RECORDED[section].values() for name in engines}
    built_in = {entry.name for entry in registry.values() if entry.is_builtin}
    assert {name for name in found if not name.endswith(", live")} == built_in


@pytest.mark.parametrize("section", golden.SECTIONS)
def test_work_that_does_not_depend_on_pushes(section: str) -> None:
    for key, engines in RECORDED[section].items():
        for name, metrics in engines.items():
            engine, *live = name.split(", ")
            same = SAME_LIVE[section]
            if engine == "sase-backtrack" and "non_overlap" in key:
                same = same - {word for word, its in WORDS.items() if engine in its.varies}
            assert not live or not metrics.keys() & same, (key, name)
            assert not live or engine in CREATE_BY_ROUND or "partial_matches_created" not in metrics


def test_engines_agree_on_matches_and_no_record_is_empty() -> None:
    for section, number in (("engines", "matches"), ("methods", "rows")):
        for key, engines in RECORDED[section].items():
            found = {its[number] for its in engines.values() if number in its}
            assert len(found) == 1 and found != {0}, (key, engines)
            assert all(value >= 0 for its in engines.values() for value in its.values()), key


def test_changes_are_shown() -> None:
    before = {"tree": {"matches": 3, "comparisons": 1200}, "gone": {"matches": 3}}
    now = {"tree": {"matches": 3, "comparisons": 1100}, "new": {"matches": 3}}
    assert golden.differences(before, now) == [
        "  tree: comparisons 1,200 -> 1,100",
        "  gone: matches 3 -> –",
        "  new: matches – -> 3",
    ]
    table = {"engines": {"b": now, "a": before}}
    assert json.loads(golden.text_of(table)) == table
    assert golden.text_of(table).splitlines()[2] == '  "a": {'
