"""docs/paper: the paper about the software names what exists, and cites what it lists."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import yaml

from cepbench.experiments.studies.registry import STUDIES
from cepbench.papers import REFERENCES
from cepbench.presentation.reporting.claims import claims

ROOT = Path(__file__).resolve().parents[2]
HEAD, TEXT = (
    (ROOT / "docs" / "paper" / "paper.md").read_text("utf-8").removeprefix("---\n").split("\n---\n")
)
ENTRIES = {
    key: dict(re.findall(r"^  (\w+) = \{+(.*?)\}+,?$", entry, re.MULTILINE))
    for key, entry in re.findall(
        r"^@\w+\{(\w+),\n(.*?)^\}", (ROOT / "docs/paper/paper.bib").read_text("utf-8"), re.M | re.S
    )
}


def test_its_head_is_what_the_journal_asks_for() -> None:
    head = yaml.safe_load(HEAD)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert [its["name"] for its in head["authors"]] == [its["name"] for its in cited["authors"]]
    assert {its["affiliation"] for its in head["authors"]} == {
        its["index"] for its in head["affiliations"]
    }
    day = datetime.strptime(head["date"], "%d %B %Y").date()
    assert day.isoformat() == cited["date-released"]
    assert (ROOT / "docs" / "paper" / head["bibliography"]).exists() and len(head["tags"]) > 3
    sections = re.findall(r"^# (.+)$", TEXT, re.MULTILINE)
    assert sections[:4] == ["Summary", "Statement of need", "State of the field", "Software design"]
    assert 750 < len(TEXT.split()) < 1_750


def test_it_cites_its_references_and_papers_are_those_of_the_package() -> None:
    assert set(re.findall(r"@(\w+)", TEXT)) == set(ENTRIES)
    for key, entry in ENTRIES.items():
        assert re.fullmatch(r"10\.\d{4,9}/\S+", entry["doi"]) if "doi" in entry else entry["title"]
        if key in REFERENCES:
            assert entry["title"] == REFERENCES[key].title
            assert int(entry["year"]) == REFERENCES[key].year


def test_what_it_names_exists() -> None:
    known = {claim.id for study in STUDIES.values() for claim in claims(study)}
    named = set(re.findall(r"`([a-z][a-z0-9]*(?:-[a-z0-9]+)+)`", TEXT))
    assert len(named) > 5 and named <= known
    for path in re.findall(r"`((?:docs/)?\w+\.md)`", TEXT):
        assert (ROOT / path).exists(), path
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"`make ([\w-]+)`", TEXT):
        assert f"\n{target}:" in makefile
    shown = (ROOT / "docs" / "command_line.md").read_text("utf-8")
    factor, matches = re.search(
        r"at (\d+) times .* ([\d,]+) matches", " ".join(TEXT.split())
    ).groups()
    assert re.search(rf"^TRIVIAL +order +\d+ +{factor} ", shown, re.MULTILINE)
    assert re.search(rf"^matches: +{matches}$", shown, re.MULTILINE)
