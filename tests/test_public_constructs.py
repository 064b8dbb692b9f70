"""Matches of branches and of sets as a table, on a stream as people have them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import cepbench as cep

DISJUNCTION = (
    "OR(SEQ(MSFT a, INTC b), SEQ(GOOG c, INTC d), SEQ(INTC e, ORCL f)) "
    "WHERE a.difference < b.difference AND e.difference > f.difference"
)
SETS = "SEQ(MSFT a, KL(INTC b), GOOG c) WHERE b.difference > a.difference"


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    rng = np.random.default_rng(12)
    count = 700
    frame = pd.DataFrame(
        {
            "symbol": rng.choice(["MSFT", "GOOG", "INTC", "ORCL"], count, p=[0.4, 0.3, 0.1, 0.2]),
            "ts": pd.Timestamp("2026-01-05 09:30")
            + pd.to_timedelta(np.sort(rng.integers(0, 390 * 60, count)), unit="s"),
            "difference": rng.normal(size=count).round(2),
        }
    )
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts")


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
