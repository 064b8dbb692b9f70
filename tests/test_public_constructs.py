"""Matches of branches and of sets as a table, on a stream as people have them."""

from __future__ import annotations

import numpy as np
import pytest

import cepbench as cep
from tests.drawn_events import drawn_stream, normal

DISJUNCTION = (
    "OR(SEQ(MSFT a, INTC b), SEQ(GOOG c, INTC d), SEQ(INTC e, ORCL f)) "
    "WHERE a.difference < b.difference AND e.difference > f.difference"
)
SETS = "SEQ(MSFT a, KL(INTC b), GOOG c) WHERE b.difference > a.difference"


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    types, p = ["MSFT", "GOOG", "INTC", "ORCL"], [0.4, 0.3, 0.1, 0.2]
    return drawn_stream(700, types, seed=12, p=p, seconds=390 * 60, difference=normal)


def test_columns_of_a_disjunction(stream: cep.EventStream) -> None:
    pattern = cep.parse(f"PATTERN {DISJUNCTION} WITHIN 8 minutes")
    plan = cep.UnionPlan([cep.OrderPlan(branch.positive_names) for branch in pattern.branches()])
    matches = cep.evaluate(pattern, stream, plan).matches
    assert matches.columns.tolist() == ["a", "b", "c", "d", "e", "f", "branch"]
    assert sorted(matches["branch"].unique()) == [0, 1, 2]
    for branch, names in enumerate((["a", "b"], ["c", "d"], ["e", "f"])):
        of_it = matches[matches["branch"] == branch]
        assert of_it[names].notna().all(axis=None)
        assert of_it.drop(columns=[*names, "branch"]).isna().all(axis=None)
        assert (matches[names].dtypes == "Int64").all()


def test_sets_are_tuples_of_positions(stream: cep.EventStream) -> None:
    pattern = cep.parse(f"PATTERN {SETS} WITHIN 8 minutes")
    matches = cep.evaluate(pattern, stream, cep.OrderPlan(["b", "a", "c"])).matches
    assert all(isinstance(members, tuple) for members in matches["b"])
    assert max(map(len, matches["b"])) > 1
    types = stream.to_pandas()["type"].to_numpy()
    for members in matches["b"]:
        assert list(members) == sorted(set(members))
        assert {types[member] for member in members} == {"INTC"}
    assert (matches[["a", "c"]].dtypes == np.int64).all()
