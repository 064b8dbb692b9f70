"""The JSON Schema by which editors complete sweep files: current, and of one mind with the reader.

``python -m tests.experiments.sweeps.test_schema`` writes it anew.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
from pydantic import TypeAdapter

from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps import configuration
from cepbench.experiments.sweeps.cells import NO_SHARING
from cepbench.experiments.sweeps.configuration import OF_POLICIES, OF_REGIMES, OUTPUTS, SweepConfig
from cepbench.experiments.sweeps.sweep_file import KEYS, named_sweeps, read_sweep
from cepbench.experiments.sweeps.workload import PATTERN_SETS, PREDICATES
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.costs.problem import TIME_SELECTIVITIES
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.registry import Registry
from cepbench.streams.generated import GENERATED, parameters_of

SCHEMA = Path(configuration.__file__).with_name("sweep.schema.json")
EXAMPLE = Path(__file__).resolve().parents[3] / "notebooks" / "sweeps" / "example.toml"
FILES = [EXAMPLE, *named_sweeps().values()]


def built_in(registry: Registry[Any]) -> list[str]:
    return [name for name, its in registry.items() if its.is_builtin]


#: The words that a key, or each element of its list, may be.
WORDS = {
    "pattern_sets": PATTERN_SETS,
    "outputs": OUTPUTS,
    "predicates": PREDICATES,
    "time_selectivity": TIME_SELECTIVITIES,
    "methods": built_in(AGGREGATORS),
    "sharing": [NO_SHARING, *built_in(WORKLOAD_PLANNERS)],
    "planners": [
        name for name in built_in(WORKLOAD_PLANNERS) if WORKLOAD_PLANNERS[name].shares == "matches"
    ],
}
#: The same where users may register others, or write the words in other letters.
SUGGESTED = {
    "generators": built_in(PLAN_GENERATORS),
    "evaluators": built_in(EVALUATORS),
    "cost": built_in(COST_MODELS),
}

_TEXT = {"type": "string"}
_TABLE = {"type": "object"}


def as_in_files(schema: Any) -> Any:
    """A type's schema with tables where the type has pairs, and without None, which TOML lacks."""
    if "anyOf" in schema:
        given = [as_in_files(one) for one in schema["anyOf"] if one != {"type": "null"}]
        return given[0] if len(given) == 1 else {"anyOf": given}
    if "prefixItems" in schema.get("items", {}):
        return _TABLE | {"additionalProperties": as_in_files(schema["items"]["prefixItems"][1])}
    return schema


def with_words(schema: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """The schema of a text, or of a list of texts, that is one of these words."""
    return schema | {"items": words} if schema["type"] == "array" else words


def documented() -> dict[str, str]:
    """The comments ``#:`` of the fields, as plain text."""
    source = inspect.getsource(SweepConfig)
    found = re.findall(r"((?:    #: .*\n)+)    (\w+):", source)
    return {
        name: re.sub(r":\w+:|`", "", " ".join(re.findall(r"#: (.*)", lines)))
        for lines, name in found
    }


def sweep_schema() -> dict[str, Any]:
    types = get_type_hints(SweepConfig)
    keys = {
        each.name: as_in_files(TypeAdapter(types[each.name]).json_schema())
        for each in fields(SweepConfig)
        if each.name in KEYS
    }
    for name, words in WORDS.items():
        keys[name] = with_words(keys[name], {"enum": list(words)})
    for name, words in SUGGESTED.items():
        keys[name] = with_words(keys[name], {"anyOf": [{"enum": list(words)}, _TEXT]})
    parameters = {name: {} for kind in GENERATED for name in parameters_of(kind)}
    stream = _TABLE | {
        "properties": {"kind": {"enum": list(GENERATED)}, "window": _TEXT, **parameters},
        "additionalProperties": False,
    }
    keys["data"] = {"anyOf": [_TEXT, stream]}
    keys["streams"] = _TABLE | {"additionalProperties": keys["data"]}
    keys["stream_defaults"] = stream
    keys["user_patterns"] = {"anyOf": [keys["user_patterns"], {"type": "array", "items": _TEXT}]}
    keys["options"] = keys["plans"] = _TABLE
    keys["policies"] = _table_of({name: {} for name in OF_POLICIES})
    keys["regimes"] = _table_of({name: {"$ref": f"#/properties/{name}"} for name in OF_REGIMES})
    keys |= {"title": _TEXT, "description": _TEXT}
    for name, text in documented().items():
        if name in keys:
            keys[name] = {"description": text, **keys[name]}
    profile = _table_of({name: {"$ref": f"#/properties/{name}"} for name in KEYS})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A sweep file of cepbench (docs/sweeps.md)",
        "type": "object",
        "properties": {name: keys[name] for name in KEYS} | {"profile": profile},
        "additionalProperties": False,
    }


def _table_of(properties: dict[str, Any]) -> dict[str, Any]:
    """Tables by name, each with these keys."""
    inner = _TABLE | {"properties": properties, "additionalProperties": False}
    return _TABLE | {"additionalProperties": inner}


def written() -> str:
    return json.dumps(sweep_schema(), indent=1, ensure_ascii=False) + "\n"


def refused(content: object) -> bool:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return not jsonschema.Draft7Validator(schema).is_valid(content)


def test_the_shipped_schema_is_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == written()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_our_files_name_the_schema_in_their_first_line_and_fit_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    place = re.fullmatch(r"#:schema (\S+)", text.splitlines()[0])
    assert place and (file.parent / place[1]).resolve() == SCHEMA
    jsonschema.validate(tomllib.loads(text), json.loads(SCHEMA.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "mistake",
    [
        "paterns = 3",
        'patterns = "many"',
        'outputs = ["counts"]',
        'planners = ["PRETREE"]',
        "data = {identifers = 3}",
        "[profile.quick]\nsize = [3]",
        '[regimes.dense]\ngenerators = ["DP-LD"]',
        '[policies.one]\npolicy = "threshold"\ngains = 2',
        "[user_patterns]\nrise = 3",
        'stream_windows = {small = "2 days"}',
    ],
)
def test_a_mistake_that_the_schema_sees_is_one_of_the_reader(mistake: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    data = "" if mistake.startswith("data") else 'data = "minute-bars/sample"\n'
    file.write_text(data + mistake, encoding="utf-8")
    assert refused(tomllib.loads(data + mistake))
    with pytest.raises(ExperimentError, match=r"mine\.toml"):
        read_sweep(file)


if __name__ == "__main__":
    SCHEMA.write_text(written(), encoding="utf-8")
