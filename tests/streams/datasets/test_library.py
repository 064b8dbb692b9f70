"""A library of patterns: asked by name, shown as a table, and read from its file as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.streams.datasets.library import PatternLibrary, read_library
from tests.presentation.reporting.offline import read_page

TEXT = 'PATTERN SEQ("A&B" a, B b) WHERE a.x < b.x WITHIN 5 units'
FILE = f"""
[first]
text = '''

{TEXT}
'''
shows = "x < y & <b>more</b>"
source = "[mei2009] <i>Query 1</i>"

[second]
text = "PATTERN SEQ(B b) WITHIN 1 units"
shows = "one event"
"""


@pytest.fixture
def library(tmp_path: Path) -> PatternLibrary:
    (tmp_path / "patterns.toml").write_text(FILE, encoding="utf-8")
    return read_library(tmp_path, "own/sample")


def test_a_pattern_or_what_is_asked_for_in_its_place(library: PatternLibrary) -> None:
    assert list(library) == ["first", "second"] and len(library) == 2
    assert (
        library["first"] == library.get("first") == library.get("first", "none") == cep.parse(TEXT)
    )
    assert library.get("third") is None and library.get("third", "none") == "none"
    assert "first" in library and "third" not in library
    with pytest.raises(DatasetError, match=r"own/sample has no pattern 'frist'; .*'first'"):
        library["frist"]


def test_texts_are_kept_without_the_lines_around_them(library: PatternLibrary) -> None:
    entry = library.entry("first")
    assert entry.text == TEXT and entry.source == "[mei2009] <i>Query 1</i>"
    assert library.entry("second").source == ""
    assert library.to_frame().loc["first"].tolist() == [entry.shows, entry.source, TEXT]


def test_what_a_library_says_is_text_in_its_table(library: PatternLibrary) -> None:
    shown = library._repr_html_()
    page = read_page(shown)
    for text in (TEXT, "x < y & <b>more</b>", "[mei2009] <i>Query 1</i>"):
        assert text in page.text
    tags = [tag for tag, _ in page.elements]
    assert not {"b", "i"} & set(tags)
    assert tags.count("small") == 1  # of the one that has a source


def test_a_folder_without_a_file_has_no_patterns(tmp_path: Path) -> None:
    assert dict(read_library(tmp_path, "own/sample")) == {}


def test_a_text_may_be_in_a_dialect(tmp_path: Path) -> None:
    entry = '[q]\ntext = "SEQ(A,-B,C)"\ndialect = "e-cube"\nwithin = "3 s"\nshows = "s"\n'
    (tmp_path / "patterns.toml").write_text(entry, encoding="utf-8")
    found = read_library(tmp_path, "own").entry("q")
    assert found.text == "SEQ(A,-B,C)"
    assert found.plain_text == str(found.pattern)
    assert found.plain_text == "PATTERN SEQ(A A, NOT(B B), C C) WITHIN 3 seconds"
    (tmp_path / "patterns.toml").write_text(entry.replace("within", "#"), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"\[q\] is not a valid pattern: .*no window"):
        read_library(tmp_path, "own")
