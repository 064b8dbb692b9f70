"""Matches by concept at every level are those of naive matches, climbed level by level."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError
from tests.budgets import examples
from tests.engines.detection.strategies import event_frames, stream_of
from tests.engines.detection.test_concepts import HIERARCHIES
from tests.naive.concepts import path_of_type
from tests.naive.matcher import naive_matches

QUERIES = [
    "SEQ({} a, {} b)",
    "SEQ({} a, KL({} k), {} b)",
    "AND({} b, {} a)",
    "SEQ({} a, NOT({} n), {} b)",
]


def naive_cube(pattern, frame, levels) -> Counter:
    """Level and concept of each variable → the number of matches, one by one."""
    found: Counter = Counter()
    names = pattern.positive_names
    types = frame["type"].tolist()
    for match in naive_matches(pattern, frame):
        bound = dict(zip(names, match, strict=True))
        for chosen in product(*levels.values()):
            key = []
            for name, level in zip(levels, chosen, strict=True):
                path = path_of_type(types[bound[name]], pattern.hierarchy)
                key += [level, path[: level + 1][-1]]
            found[tuple(key)] += 1
    return found


@given(frame=event_frames(most=12), data=st.data())
@examples(20)
def test_every_level_is_counted_match_by_match(frame, data) -> None:
    hierarchy = data.draw(st.sampled_from([*HIERARCHIES, None]))
    text = data.draw(st.sampled_from(QUERIES))
    kinds = ["A", "B", "C", "D"] + ["ANY"] * (hierarchy is not None)
    items = [data.draw(st.sampled_from(kinds)) for _ in range(text.count("{}"))]
    query = f"PATTERN {text.format(*items)} WITHIN 4 units"
    workload = cep.Workload({"q": query}, hierarchy=hierarchy)
    pattern = workload.patterns["q"]
    found = cep.evaluate(workload, stream_of(frame))
    levels = {
        name: data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
        for name in data.draw(st.permutations(["a", "b"]))
    }
    cube = found.cube("q", levels=levels)
    names = [each for name in levels for each in (f"{name} level", name)]
    assert [*cube.columns] == [*names, "matches"]
    rows = {tuple(row[:-1]): row[-1] for row in cube.itertuples(index=False, name=None)}
    assert rows == naive_cube(pattern, frame, levels) and len(rows) == len(cube)
    # By default, all levels from that of the item's type on.
    every = found.cube("q")
    for name in ("a", "b"):
        (variable,) = (its for its in pattern.variables if its.name == name)
        used = set(every[f"{name} level"])
        if variable.type is not None and hierarchy is not None and variable.type in hierarchy:
            assert used <= {hierarchy.level(its) for its in hierarchy.below(variable.type)}
            if used:
                assert min(used) == hierarchy.level(variable.type)
    total = len(found["q"].matches)
    each = every.groupby(["a level", "b level"])["matches"].sum()
    assert set(each) <= {total} and (len(each) > 0) == (total > 0)


COMPANIES = cep.ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})


@pytest.fixture(scope="module")
def found() -> Any:
    frame = pd.DataFrame({"type": ["INTC", "DELL", "QQQ", "AMAT"], "time": range(4)})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=COMPANIES)
    workload = cep.Workload(
        {
            "q1": "PATTERN SEQ(Company a, AMAT b) WITHIN 9 units",
            "q2": "PATTERN SEQ(Computer a, AMAT b) WITHIN 9 units RETURN a AS first",
            "q3": "PATTERN SEQ(KL(Computer a)) WITHIN 9 units",
            "q4": "PATTERN OR(SEQ(Company a, QQQ c), SEQ(AMAT b, Company a)) WITHIN 9 units",
        },
        hierarchy=COMPANIES,
    )
    sources = {"q1": None, "q2": "q1", "q3": None, "q4": None}
    return cep.evaluate(workload, stream, cep.WorkloadPlan(workload, sources=sources))


def test_by_hand(found) -> None:
    cube = found.cube("q1", levels={"a": [0, 1, 2]})
    assert [*cube.itertuples(index=False, name=None)] == [
        (0, "Company", 3),
        (1, "Computer", 2),
        (1, "Finance", 1),
        (2, "DELL", 1),
        (2, "INTC", 1),
        (2, "QQQ", 1),
    ]
    assert [*found.cube("q1", levels=1).itertuples(index=False, name=None)] == [
        (1, "Computer", 1, "AMAT", 2),
        (1, "Finance", 1, "AMAT", 1),
    ]
    # From the level of Computer on; the columns of RETURN do not matter.
    assert set(found.cube("q2")["a"]) == {"Computer", "INTC", "DELL"}
    assert found.cube("q4", levels={"a": 1})["matches"].tolist() == [2]


def test_errors(found) -> None:
    for query, levels, words in (
        ("q9", None, "no query 'q9'"),
        ("q1", {"z": 1}, "levels of 'z': every match binds a, b to one event"),
        ("q1", {}, "levels name no variable"),
        ("q1", -1, "each of the levels of 'a'"),
        ("q1", {"a": [0, 0.5]}, "each of the levels of 'a'"),
        ("q1", {"a": []}, "the levels of 'a' are none"),
        ("q1", "0", "levels of 'a'"),
        ("q3", None, "no variable of the query is bound to one event"),
        ("q4", {"b": 0}, "levels of 'b': every match binds a to one event"),
    ):
        with pytest.raises(EvaluationError, match=words):
            found.cube(query, levels=levels)
    workload = cep.Workload({"q": "PATTERN SEQ(A a) WITHIN 1 units"})
    frame = pd.DataFrame({"type": ["A"], "time": [0]})
    counted = cep.evaluate(workload, stream_of(frame), output="count")
    with pytest.raises(EvaluationError, match="only counted"):
        counted.cube("q")
