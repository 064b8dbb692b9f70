"""What RO-Crate 1.2 asks of every crate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cepbench.presentation.reporting.crate import CRATE


def references_in(value: Any) -> Iterator[str]:
    """Ids that an entity names."""
    if isinstance(value, list):
        for each in value:
            yield from references_in(each)
    elif isinstance(value, dict):
        yield value["@id"]


def checked_crate(report: Path) -> dict[str, dict[str, Any]]:
    """Entities by id: each once, each reference and file there, each file a part of the root with its data."""
    text = (report / CRATE).read_text(encoding="utf-8")
    content = json.loads(text)
    assert content["@context"] == "https://w3id.org/ro/crate/1.2/context"
    assert str(report.resolve()) not in text
    entities = {entity["@id"]: entity for entity in content["@graph"]}
    assert len(entities) == len(content["@graph"])
    descriptor = entities[CRATE]
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.2"}
    root = entities[descriptor["about"]["@id"]]
    assert root["@type"] == "Dataset" and root["name"] and root["description"]
    assert date.fromisoformat(root["datePublished"]) and root["license"]["@id"] in entities
    outside = descriptor["conformsTo"]["@id"]
    for entity in entities.values():
        assert entity["@type"], entity
        named = {its for value in entity.values() for its in references_in(value)} - {outside}
        assert named <= set(entities), (entity["@id"], named - set(entities))
    files = {its for its, entity in entities.items() if "File" in entity["@type"]}
    assert files == set(references_in(root["hasPart"]))
    for its in files:
        assert not its.startswith(("/", "..")) and entities[its]["name"]
        assert (report / unquote(its)).stat().st_size == int(entities[its]["contentSize"]), its
    return entities
