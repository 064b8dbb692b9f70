"""Patterns of every construct through the whole flow, as a stranger would write it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from tests.generators import UNIVERSAL

#: The five kinds of patterns of the experiments, what they may be mixed of, and each strategy.
PATTERNS = {
    "sequence": "SEQ(MSFT a, GOOG b, INTC c) WHERE a.difference < b.difference",
    "conjunction": "AND(MSFT a, GOOG b, INTC c) WHERE a.difference < b.difference",
    "negation": "SEQ(MSFT a, NOT(GOOG b), INTC c) WHERE b.difference > a.difference",
    "Kleene": "SEQ(MSFT a, KL(INTC b), GOOG c) WHERE b.difference > a.difference",
    "disjunction": "OR(SEQ(MSFT a, INTC b), SEQ(GOOG c, INTC d), SEQ(INTC e, ORCL f)) "
    "WHERE a.difference < b.difference AND e.difference > f.difference",
    "nested": "SEQ(MSFT a, OR(AND(GOOG b, INTC c), KL(INTC d)), NOT(ORCL e))",
    "any type": "SEQ(ANY a, NOT(OR(GOOG b, MSFT c)), INTC d) WHERE a.difference < d.difference "
    "AND [venue]",
    "consuming": "SEQ(MSFT a, GOOG b) STRATEGY consuming",
    "strict contiguity": "SEQ(MSFT a, GOOG b) STRATEGY strict_contiguity",
    "partition contiguity": "SEQ(MSFT a, GOOG b) STRATEGY partition_contiguity(venue)",
}


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
            "venue": rng.choice(["X", "Y", "Z"], count),
        }
    )
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts")


@pytest.mark.parametrize("name", PATTERNS)
def test_every_generator_s_plan_finds_the_same(name: str, stream: cep.EventStream) -> None:
    pattern = cep.parse(f"PATTERN {PATTERNS[name]} WITHIN 8 minutes")
    assert cep.parse(str(pattern)) == pattern
    statistics = cep.measure_statistics(pattern, stream)
    expected = None
    for generator in UNIVERSAL:
        # Latency counts where the variable whose event arrives last is known.
        for alpha in (0.0, 0.5) if name == "sequence" else (0.0,):
            plan = cep.plan(pattern, statistics, generator=generator, seed=0, alpha=alpha)
            assert plan.cost > 0
            assert ET.fromstring(plan._repr_html_()) is not None
            result = cep.evaluate(pattern, stream, plan)
            if expected is None:
                expected = result.matches
                assert len(expected) > 10
            pd.testing.assert_frame_equal(result.matches, expected)
    shown = ET.fromstring(f"<div>{result._repr_html_()}</div>")
    assert f"{len(expected):,} matches" in "".join(shown.itertext())
    columns = list(pattern.positive_names)
    assert [c for c in expected.columns if c != "branch"] == columns
    assert ("branch" in expected.columns) == (pattern.operator == "OR" or name == "nested")


@pytest.mark.parametrize("name", PATTERNS)
def test_a_detector_is_put_away_and_goes_on(name: str, stream: cep.EventStream, tmp_path) -> None:
    pattern = cep.parse(f"PATTERN {PATTERNS[name]} WITHIN 8 minutes")
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream), generator="DP-B")
    detector = cep.Detector(pattern, plan)
    found = [detector.push(stream[:300])]
    np.savez(tmp_path / "state.npz", **detector.snapshot())
    with np.load(tmp_path / "state.npz") as state:
        detector = cep.Detector.restore(state)
    found += [detector.push(batch) for batch in stream[300:].batches(77)]
    found.append(detector.flush())
    together = pd.concat(found)
    expected = cep.evaluate(pattern, stream, plan).matches
    assert together.columns.tolist() == expected.columns.tolist()
    assert sorted(map(str, together.to_numpy().tolist())) == sorted(
        map(str, expected.to_numpy().tolist())
    )


@pytest.mark.parametrize("name", ["negation", "Kleene", "disjunction", "consuming"])
def test_compare_has_the_same_matches_in_every_row(name: str, stream: cep.EventStream) -> None:
    pattern = cep.parse(f"PATTERN {PATTERNS[name]} WITHIN 8 minutes")
    table = cep.compare(pattern, stream, repetitions=1, seconds=0)
    assert (table["status"] == "ok").all()
    assert table["matches"].nunique() == 1
    assert table["matches"].iloc[0] > 10


def test_columns_of_a_disjunction(stream: cep.EventStream) -> None:
    pattern = cep.parse(f"PATTERN {PATTERNS['disjunction']} WITHIN 8 minutes")
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
    pattern = cep.parse(f"PATTERN {PATTERNS['Kleene']} WITHIN 8 minutes")
    matches = cep.evaluate(pattern, stream, cep.OrderPlan(["b", "a", "c"])).matches
    assert all(isinstance(members, tuple) for members in matches["b"])
    assert max(map(len, matches["b"])) > 1
    types = stream.to_pandas()["type"].to_numpy()
    for members in matches["b"]:
        assert list(members) == sorted(set(members))
        assert {types[member] for member in members} == {"INTC"}
    assert (matches[["a", "c"]].dtypes == np.int64).all()
