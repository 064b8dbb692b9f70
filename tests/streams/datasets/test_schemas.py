"""The JSON Schemas by which editors complete ``dataset.toml`` and ``patterns.toml``.

``python -m tests.streams.datasets.test_schemas`` writes them anew.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter

from cepbench.errors import DatasetError
from cepbench.streams.datasets.declaration import (
    MADE,
    ColumnDeclaration,
    Entry,
    Variant,
    read_entry,
)
from cepbench.streams.datasets.library import PatternEntry, read_library
from tests.conftest import CATALOGUE
from tests.streams.datasets.test_declarations import DECLARED

FILES = sorted(
    file for kind in ("dataset", "patterns") for file in CATALOGUE.glob(f"*/{kind}.toml")
)


def table(kind: type, *ours: str) -> dict[str, Any]:
    """The table of a file that declares a dataclass, whose name and ``ours`` are not in it."""
    schema = TypeAdapter(kind).json_schema()
    keys = {
        name: {key: said for key, said in its.items() if key in ("type", "anyOf", "items")}
        for name, its in schema["properties"].items()
        if name not in ("name", *ours)
    }
    required = [name for name in schema["required"] if name in keys]
    return {
        "type": "object",
        "properties": keys,
        "required": required,
        "additionalProperties": False,
    }


def by_name(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": inner}


def schemas() -> dict[str, Any]:
    dataset, variant = table(Entry, "folder", "home"), table(Variant)
    variant["properties"]["made"] = {"enum": list(MADE)}
    variant["properties"]["events"] = {"type": "integer", "minimum": 0}
    dataset["properties"]["columns"] = by_name(table(ColumnDeclaration))
    dataset["properties"]["variants"] = by_name(variant)
    dataset["required"] = [key for key in dataset["required"] if key not in ("columns", "variants")]
    return {"dataset": dataset, "patterns": by_name(table(PatternEntry))}


def file_of(name: str) -> Path:
    return CATALOGUE / f"{name}.schema.json"


def written(name: str) -> str:
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"{name}.toml of cepbench",
    }
    return json.dumps(head | schemas()[name], indent=1) + "\n"


def fits(name: str, text: str) -> bool:
    schema = json.loads(file_of(name).read_text(encoding="utf-8"))
    return jsonschema.Draft7Validator(schema).is_valid(tomllib.loads(text))


@pytest.mark.parametrize("name", ["dataset", "patterns"])
def test_the_schemas_are_current(name: str) -> None:
    assert file_of(name).read_text(encoding="utf-8") == written(name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_files_name_their_schema_in_the_first_line_and_fit_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    place = re.fullmatch(r"#:schema (\S+)", text.splitlines()[0])
    assert place and (file.parent / place[1]).resolve() == file_of(file.stem).resolve()
    assert fits(file.stem, text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('licence = "l"', 'license = "l"'),
        ('licence = "l"', ""),
        ('meaning = "m"', 'meening = "m"'),
        ('made = "committed"', 'made = "there"'),
        ('made = "committed"', 'made = "committed"\nevents = "many"'),
        ('made = "committed"', 'made = "committed"\nevents = -1'),
        ("[columns.x]\n", "[columns]\nx = 1\n[more]\n"),
    ],
)
def test_a_mistake_that_the_schema_sees_is_one_of_the_reader(
    tmp_path: Path, old: str, new: str
) -> None:
    assert fits("dataset", DECLARED) and not fits("dataset", DECLARED.replace(old, new))
    (tmp_path / "dataset.toml").write_text(DECLARED.replace(old, new), encoding="utf-8")
    with pytest.raises(DatasetError):
        read_entry(tmp_path)


@pytest.mark.parametrize("text", ['[p]\ntext = "x"', '[p]\ntext = "x"\nshows = "y"\nshow = "z"'])
def test_a_mistake_in_a_library_is_one_of_the_reader_too(tmp_path: Path, text: str) -> None:
    assert not fits("patterns", text)
    (tmp_path / "patterns.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError):
        read_library(tmp_path, "own")


if __name__ == "__main__":
    for each in schemas():
        file_of(each).write_text(written(each), encoding="utf-8")
