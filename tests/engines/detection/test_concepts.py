"""Concepts above event types: whose hierarchy it is, and types that it has not; the rest is in ``tests/contract``."""

from __future__ import annotations

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import StreamError
from cepbench.patterns.concepts import ConceptHierarchy
from tests.engines.detection.strategies import stream_of
from tests.naive.matcher import labelled_matches

pytestmark = pytest.mark.kernel

#: Over the types that cases have; an event's own type may be above others, and E has no events.
HIERARCHIES = (
    ConceptHierarchy({"A": ["B", "C"]}),
    ConceptHierarchy({"A": {"B": ["C"]}, "E": ["D"]}),
    ConceptHierarchy({"E": {"A": {"B": []}, "D": ["C"]}}),
    ConceptHierarchy({"B": ["A"], "D": ["C"]}),
)

COMPANIES = ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})


def events() -> pd.DataFrame:
    kinds = ["INTC", "QQQ", "DELL", "Computer", "INTC", "X", "QQQ", "DELL", "Company", "INTC"]
    return pd.DataFrame(
        {
            "type": kinds,
            "time": [0, 1, 1, 2, 3, 4, 5, 6, 6, 7],
            "x": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3],
            "y": [2, 7, 1, 8, 2, 8, 1, 8, 2, 8],
        }
    )


def test_a_detector_has_the_hierarchy_of_its_pattern() -> None:
    pattern = cep.parse("PATTERN AND(Company a, INTC b) WITHIN 5 units")
    plan = cep.TreePlan(("a", "b"))
    stream = stream_of(events())
    with pytest.raises(StreamError, match=r"start with pattern\.with_hierarchy\("):
        cep.Detector(pattern, plan).push(stream.with_hierarchy(COMPANIES))
    detector = cep.Detector(pattern.with_hierarchy(COMPANIES), plan)
    other = stream.with_hierarchy(ConceptHierarchy({"Company": ["INTC"]}))
    with pytest.raises(StreamError, match="another concept hierarchy than the pattern"):
        detector.push(other)
    found = len(detector.push(stream[:4])) + len(detector.push(stream[4:]))
    assert found == len(labelled_matches(detector.pattern, events()))
    # A pattern of types with nothing below them needs none.
    leaves = cep.Detector("PATTERN SEQ(INTC a, QQQ b) WITHIN 5 units", plan)
    assert len(leaves.push(stream.with_hierarchy(COMPANIES))) == 3


def test_types_that_neither_events_nor_the_hierarchy_have() -> None:
    stream = stream_of(events()[:2]).with_hierarchy(COMPANIES)
    query = "PATTERN SEQ(INTC a, {} b) WITHIN 5 units"
    plan = cep.TreePlan(("a", "b"))
    assert len(cep.evaluate(query.format("Computer"), stream, plan).matches) == 0
    assert len(cep.evaluate(query.format("Finance"), stream, plan).matches) == 1
    # Those that only the pattern's hierarchy has are known, too, though nothing is below them.
    leaf = cep.parse(query.format("DELL")).with_hierarchy(COMPANIES)
    assert leaf.hierarchy == COMPANIES and not leaf.concepts
    assert len(cep.evaluate(leaf, stream.with_hierarchy(None), plan).matches) == 0
    with pytest.raises(StreamError, match="another concept hierarchy than the pattern"):
        cep.evaluate(leaf, stream.with_hierarchy(ConceptHierarchy({"Firm": ["DELL"]})), plan)
    with pytest.raises(StreamError, match=r"no event of type 'Finans'.*did you mean 'Finance'"):
        cep.evaluate(query.format("Finans"), stream, plan)
