"""What takes a stream finds of a concept what it finds where the events' own type is the concept."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.planning.statistics.joint import measure_joint
from cepbench.presentation.exploration.timeline import timeline

QUERY = "PATTERN AND(Computer a, NOT(ORCL n), AMAT b, Computer c) WHERE a.x < b.x WITHIN 12 units"
SEQUENCE = (
    "PATTERN SEQ(Computer a, KL(Computer b), AMAT c) WHERE a.x < b.x STRATEGY next WITHIN 9 units"
)

HIERARCHY = cep.ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    kinds = rng.choice(["INTC", "DELL", "Computer", "AMAT", "ORCL", "QQQ"], 150)
    return pd.DataFrame(
        {
            "type": kinds,
            "time": np.cumsum(rng.integers(0, 4, 150)),
            "x": rng.normal(size=150).round(2),
        }
    )


@pytest.fixture(scope="module")
def own(frame: pd.DataFrame) -> cep.EventStream:
    """Each event of the concept has it as its own type."""
    kinds = frame["type"].replace({"INTC": "Computer", "DELL": "Computer"})
    return cep.EventStream.from_pandas(frame.assign(type=kinds), type="type", time="time")


@pytest.fixture(scope="module")
def stream(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)


def test_statistics(stream: cep.EventStream, own: cep.EventStream) -> None:
    found = cep.measure_statistics(QUERY, stream)
    assert found == cep.measure_statistics(QUERY, own)
    workload = cep.Workload({"q": QUERY}, hierarchy=HIERARCHY)
    assert cep.measure_statistics(workload, stream.with_hierarchy(None)) == {"q": found}
    joint = [measure_joint(cep.parse(QUERY), its).held for its in (stream, own)]
    assert (joint[0] == joint[1]).all()


def test_runs(stream: cep.EventStream, own: cep.EventStream) -> None:
    plan = cep.plan(QUERY, cep.measure_statistics(QUERY, own), "ZSTREAM")
    expected = cep.evaluate(QUERY, own, plan).matches
    assert len(expected)
    batches = cep.match_batches(QUERY, stream, plan, rows=7)
    tables = [table.to_pandas() for table in batches]
    assert sum(map(len, tables)) == len(expected)
    adapted = cep.adapt(QUERY, stream, batch_size=16)
    pd.testing.assert_frame_equal(adapted.matches, expected)
    detector = cep.AdaptiveDetector(cep.parse(QUERY).with_hierarchy(HIERARCHY), batch_size=16)
    pushed = len(detector.push(stream[:70]))
    detector = cep.AdaptiveDetector.restore(detector.snapshot())
    assert pushed + len(detector.push(stream[70:])) + len(detector.flush()) == len(expected)
    statistics = cep.measure_statistics(QUERY, own)
    one, other = (
        cep.explain(QUERY, plan, statistics, its).nodes.drop(columns=["seconds", "time_share"])
        for its in (own, stream)
    )
    pd.testing.assert_frame_equal(one, other)
    compared = cep.compare(
        QUERY, stream, generators=["ZSTREAM", "GREEDY"], repetitions=1, seconds=0.1
    )
    assert set(compared["matches"]) == {len(expected)}


def test_sql(stream: cep.EventStream, own: cep.EventStream) -> None:
    query = cep.to_sql(cep.parse(QUERY).with_hierarchy(HIERARCHY))
    assert "IN ('Computer', 'INTC', 'DELL')" in query
    events = stream.to_pandas().reset_index().astype({"type": str})
    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", events)
    plan = cep.plan(QUERY, cep.measure_statistics(QUERY, own), "ZSTREAM")
    rows = connection.execute(query).fetchall()
    assert rows == [*cep.evaluate(QUERY, own, plan).matches.itertuples(index=False, name=None)]


def test_automata(stream: cep.EventStream, own: cep.EventStream) -> None:
    traced = [cep.trace(SEQUENCE, its[:40]) for its in (own, stream)]
    assert len(traced[0].matches)
    for name in ("runs", "matches"):
        pd.testing.assert_frame_equal(*(getattr(its, name) for its in traced))
    compiled = cep.automaton(SEQUENCE)
    expected = cep.evaluate(SEQUENCE, own).matches
    pd.testing.assert_frame_equal(cep.evaluate(SEQUENCE, stream, compiled).matches, expected)
    # An event of a can be one of b only under the hierarchy.
    nested = cep.parse("PATTERN SEQ(KL(Company a), INTC b) WITHIN 9 units")
    for pattern in (nested, nested.with_hierarchy(HIERARCHY)):
        table = cep.automaton(pattern).nondeterminism().table()
        assert table["take-proceed"].any() == (pattern is not nested)


def test_timelines(stream: cep.EventStream, own: cep.EventStream) -> None:
    plan = cep.plan(QUERY, cep.measure_statistics(QUERY, own), "ZSTREAM")
    result = cep.evaluate(QUERY, stream, plan)
    found = timeline(stream, result, cep.parse(QUERY))
    assert set(found.curves["type"]) <= {"INTC", "DELL", "Computer", "AMAT", "ORCL"}
    assert set(found.events["type"]) >= {"INTC", "DELL", "AMAT"}
    cep.match_timeline(stream, result, cep.parse(QUERY))
    only = cep.parse("PATTERN SEQ(Company a, AMAT b) WITHIN 3 units")
    plan = cep.plan(only, cep.measure_statistics(only, stream), "ZSTREAM")
    cep.match_timeline(stream, cep.evaluate(only, stream, plan), only)
