"""What is committed below datasets/: complete, true, small, and refused where it is not."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.papers import REFERENCES
from cepbench.streams.datasets.checksums import stream_checksum
from cepbench.streams.datasets.declaration import read_entry
from cepbench.streams.datasets.library import read_library
from cepbench.streams.sources import FORMATS
from tests.conftest import CATALOGUE

NAMES = sorted(file.parent.name for file in CATALOGUE.glob("*/dataset.toml"))


def test_the_ten_data_sets_are_there() -> None:
    assert NAMES == [
        "company-trades", "evacuation", "lobster", "minute-bars", "nasdaq-style", "stock-rates",
        "stock-ticker", "ten-symbols", "ticker-trades", "web-log",
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_folder_is_complete(name: str) -> None:
    entry = read_entry(CATALOGUE / name)
    assert entry.provenance and entry.columns and entry.variants[entry.default]
    assert entry.variants["sample"].path.stat().st_size < 300_000
    for variant in entry.variants.values():
        assert variant.events and (variant.sha256 or variant.made == "by Spark")
    assert (CATALOGUE / "README.md").read_text(encoding="utf-8").count(f"`{name}") >= 1


@pytest.mark.parametrize("name", NAMES)
def test_every_card_is_complete(name: str) -> None:
    """What a reviewer asks; licence, columns and checksums are declared."""
    text = read_entry(CATALOGUE / name).provenance
    parts = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n)+)", text, re.MULTILINE))
    assert [*parts] == ["Motivation", "Composition", "Generation", "Uses and limits", "Maintenance"]
    assert re.search(r"\bseed \d", parts["Generation"])
    assert "python datasets/samples.py" in parts["Generation"]
    assert re.search(r"^For .*\bNot\b|\bNot for\b", parts["Uses and limits"], re.DOTALL)
    assert "dataset.toml" in parts["Maintenance"]


def test_samples_are_what_the_script_makes(tmp_path: Path) -> None:
    """Nothing else gets in: whoever changes a sample changes how it is drawn."""
    script = runpy.run_path(str(CATALOGUE / "samples.py"))
    script["write_samples"](tmp_path)
    for name in script["SAMPLES"]:
        made, committed = tmp_path / name, CATALOGUE / name
        if made.suffix == ".parquet":
            # Files differ between versions of Arrow; what is in them does not.
            assert pq.read_table(made).to_pandas().equals(pq.read_table(committed).to_pandas())
        else:
            assert made.read_bytes() == committed.read_bytes()


@pytest.mark.parametrize("name", ["lobster", "minute-bars"])
def test_columns_of_sources_are_those_of_their_format(name: str) -> None:
    declared = {column.name: column.type for column in read_entry(CATALOGUE / name).columns}
    for field in FORMATS[name].schema:
        if field.name != "row":
            expected = "text" if field.type == pa.string() else str(field.type)
            assert declared[field.name] == expected, field.name


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_of_a_library_has_matches_in_the_sample(name: str) -> None:
    dataset = cep.open_dataset(f"{name}/sample")
    stream = dataset.stream()
    assert len(dataset.patterns) >= 5
    for key, given in dataset.patterns.items():
        pattern = given.without_aggregate().with_hierarchy(stream.hierarchy)
        statistics = cep.measure_statistics(pattern, stream)
        counts = set()
        for generator in ("TRIVIAL", "DP-B"):
            plan = cep.plan(pattern, statistics, generator=generator)
            counts.add(cep.evaluate(pattern, stream, plan, output="count").metrics.matches)
        assert len(counts) == 1 and counts.pop() > 0, key
        entry = dataset.patterns.entry(key)
        assert entry.shows.endswith(".")
        assert set(re.findall(r"\[(\w+)\]", entry.source)) <= set(REFERENCES)


def test_all_five_papers_are_in_the_libraries() -> None:
    sources = " ".join(
        library.entry(key).source
        for name in NAMES
        for library in [read_library(CATALOGUE / name, name)]
        for key in library
    )
    for paper in ("kolchinsky2018", "mei2009", "agrawal2008", "qi2014", "liu2011"):
        assert f"[{paper}]" in sources, paper


def test_a_library_is_a_mapping() -> None:
    library = read_library(CATALOGUE / "nasdaq-style", "nasdaq-style")
    assert library["conjunction"] == library.entry("conjunction").pattern
    assert library.get("nothing") is None and "nothing" not in library
    assert library.get("conjunction") == library["conjunction"]
    assert library.to_frame().loc["two-predicates", "source"].startswith("[mei2009]")
    with pytest.raises(
        DatasetError, match=r"no pattern 'conjuction'; .*did you mean 'conjunction'"
    ):
        library["conjuction"]


DECLARED = """
title = "t"
kind = "k"
summary = "s"
source = "s"
licence = "l"
default = "a"
[columns.x]
type = "double"
meaning = "m"
[variants.a]
about = "a"
path = "a.parquet"
made = "committed"
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('licence = "l"', 'license = "l"', "unknown key license; .*did you mean 'licence'"),
        ('licence = "l"', "", "lacks the key licence"),
        (
            'meaning = "m"',
            'meening = "m"',
            r"unknown key columns.x.meening; .*did you mean 'meaning'",
        ),
        (
            'made = "committed"',
            'made = "there"',
            "variants.a.made is one of committed, on first use, by Spark, not 'there'",
        ),
        (
            'made = "committed"',
            'made = "committed"\nevents = "many"',
            "dataset.toml: variants.a.events must be a whole number, not 'many'",
        ),
        ("[variants.a]", '[variants."../a"]', "variants: '../a' is not a valid name of a data set"),
        ('default = "a"', 'default = "b"', "default is one of a, not 'b'"),
        ('title = "t"', "title = ", r"dataset.toml cannot be read: .*line 2"),
        ("[columns.x]\n", "[columns]\nx = 1\n[more]\n", "unknown key more|must be a table"),
    ],
)
def test_a_declaration_that_is_wrong_says_where(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    file = tmp_path / "dataset.toml"
    file.write_text(DECLARED, encoding="utf-8")
    assert read_entry(tmp_path).variants["a"].path == tmp_path / "a.parquet"
    assert old in DECLARED
    file.write_text(DECLARED.replace(old, new), encoding="utf-8")
    with pytest.raises(DatasetError, match=told):
        read_entry(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[p]\ntext = "PATTERN SEQ(A a) WITHIN 1 minutes"', "lacks the key p.shows"),
        ('[p]\ntext = "x"\nshows = "y"\nshow = "z"', "unknown key p.show; .*did you mean 'shows'"),
        ('[p]\ntext = "PATTERN SEQ(A a"\nshows = "y"', r"\[p\] is not a valid pattern: line 1"),
    ],
)
def test_a_library_that_is_wrong_says_where(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "patterns.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=told):
        read_library(tmp_path, "own")


def stream_of(**changes: object) -> cep.EventStream:
    columns = {"t": ["A", "B", "A"], "ts": [1, 2, 2], "x": [0.5, None, 2.0], "y": ["p", None, "q"]}
    return cep.EventStream.from_arrow(pa.table(columns | changes), type="t", time="ts")


def test_a_checksum_is_of_the_content_alone() -> None:
    plain = stream_checksum(stream_of())
    assert plain == stream_checksum(stream_of())
    coded = pa.array(["B", "A", "B", "A"]).dictionary_encode()[1:]  # B has code 0
    other = stream_of(t=pa.chunked_array([pa.array(["A", "B", "A"])]).dictionary_encode())
    assert coded.to_pylist() == ["A", "B", "A"]
    assert stream_checksum(stream_of(t=coded)) == stream_checksum(other) == plain
    assert stream_checksum(stream_of(x=[0.5, float("nan"), 2.0])) == plain
    # No number has many forms of bits, such as what a division by zero leaves.
    other_bits = np.array([0.5, 0, 2.0])
    other_bits.view(np.uint64)[1] = 0xFFF8_0000_0000_0001
    assert stream_checksum(stream_of(x=other_bits)) == plain
    renamed = pa.table({"t": ["A"], "ts": [1], "renamed": [0.5]})
    same = pa.table({"t": ["A"], "ts": [1], "x": [0.5]})
    one, two = (cep.EventStream.from_arrow(t, type="t", time="ts") for t in (renamed, same))
    assert stream_checksum(one) != stream_checksum(two)
    changed = [
        {"t": ["A", "B", "B"]}, {"ts": [1, 1, 2]}, {"x": [0.5, None, 2.5]},
        {"x": [0.5, 0.0, 2.0]}, {"y": ["p", "p", "q"]}, {"y": ["p", None, "r"]}, {"z": [1, 2, 3]},
    ]  # fmt: skip
    sums = [stream_checksum(stream_of(**change)) for change in changed]
    assert len({plain, *sums}) == len(changed) + 1
    assert stream_checksum(stream_of()[:2]) != plain


def test_the_readme_of_the_catalogue_works(catalogue: Path) -> None:
    """Its code runs, and every file that it links is there."""
    readme = (CATALOGUE / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    pattern, stream = names["pattern"], names["stream"]
    assert {variable.type for variable in pattern.variables} == set(stream.type_names)
    assert cep.evaluate(pattern, stream, cep.OrderPlan(["i", "g", "m"])).metrics.matches > 100
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (CATALOGUE / link).exists(), link
