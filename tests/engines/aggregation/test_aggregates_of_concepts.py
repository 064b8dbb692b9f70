"""Values of AGG where events are of concepts above their own types."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import PlanError, StreamError, UnsupportedPatternError
from tests.engines.detection.strategies import stream_of
from tests.naive.aggregates import naive_rows
from tests.naive.concepts import path_of_type

HIERARCHY = cep.ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})

KINDS = ["INTC", "QQQ", "DELL", "Computer", "INTC", "X", "QQQ", "DELL", "Company", "INTC", "X"]

QUERIES = [
    "PATTERN SEQ(Computer a, Company b) AGG COUNT, SUM(b.x) WITHIN 5 units",
    "PATTERN SEQ(Company a, NOT(Computer n), Finance b) AGG COUNT WITHIN 5 units",
    "PATTERN SEQ(INTC a, KL(Company b)) AGG COUNT WITHIN 5 units",
    "PATTERN AND(Company a, INTC b) AGG COUNT WITHIN 5 units",
    "PATTERN SEQ(Computer a, Company b, X c) WHERE a.x < b.x AGG COUNT WITHIN 6 units",
    "PATTERN SEQ(Company a, X b) GROUP BY type(a) AGG COUNT WITHIN 5 units",
    "PATTERN SEQ(X a, NOT(QQQ n), Company b) GROUP BY type(b, 1) AGG COUNT, MAX(b.x) WITHIN 5 units",
    "PATTERN AND(Company a, X b) GROUP BY type(a, 0), a.x AGG COUNT WITHIN 5 units",
    "PATTERN SEQ(Company a, Company b) GROUP BY type(a, 1), type(b, 1), type(a) AGG COUNT WITHIN 5 units",
]


@pytest.fixture
def events() -> pd.DataFrame:
    times = [0, 1, 1, 2, 3, 4, 5, 6, 6, 7, 8]
    return pd.DataFrame({"type": KINDS, "time": times, "x": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]})


def able(query: cep.Pattern) -> list[str]:
    """The methods that count over a window that slides."""
    found = []
    for method in cep.AGGREGATORS.keys() - {"dpc"}:
        try:
            cep.Aggregator(query, method)
        except UnsupportedPatternError:
            continue
        found.append(method)
    return found


@pytest.mark.parametrize("level", [None, 0, 1, 2, 7])
def test_groups_by_type_in_duckdb(events: pd.DataFrame, level: int | None) -> None:
    """The matches of a query in SQL, grouped by a table of the concepts at the level."""
    text = "PATTERN SEQ(Company a, Company b) {} WITHIN 5 units"
    connection = duckdb.connect(config={"threads": 1})
    paths = {name: path_of_type(name, HIERARCHY) for name in set(KINDS)}
    known = [
        (name, path[-1] if level is None else path[: level + 1][-1]) for name, path in paths.items()
    ]
    for name, table in {
        "events": events.rename_axis("position").reset_index(),
        "concepts": pd.DataFrame(known, columns=["own", "concept"]),
    }.items():
        connection.register(name, table)
    matches = cep.to_sql(cep.parse(text.format("")).with_hierarchy(HIERARCHY)).rstrip().rstrip(";")
    expected = connection.execute(
        "SELECT one.concept, two.concept, COUNT(*) "
        f"FROM ({matches}) JOIN events AS e ON a = e.position JOIN events AS f ON b = f.position "
        "JOIN concepts AS one ON e.type = one.own JOIN concepts AS two ON f.type = two.own GROUP BY ALL"
    ).fetchall()
    keys = ", ".join(f"type({name}{'' if level is None else f', {level}'})" for name in "ab")
    query = text.format(f"GROUP BY {keys} AGG COUNT")
    stream = stream_of(events).with_hierarchy(HIERARCHY)
    for method in able(cep.parse(query).with_hierarchy(HIERARCHY)):
        found = cep.aggregate(query, stream, method, scope="stream", emit="change").values
        last = found.groupby(found.columns[2:4].tolist())["COUNT"].max()
        assert sorted((*key, count) for key, count in last.items()) == sorted(expected), method


def test_golden_groups_by_type() -> None:
    """INTC0 QQQ1 DELL2 X3: three companies before X, of which two are computers."""
    frame = pd.DataFrame({"type": ["INTC", "QQQ", "DELL", "X"], "time": range(4)})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=HIERARCHY)
    for method in cep.AGGREGATORS:
        for level, expected in {
            "": {"INTC": 1, "QQQ": 1, "DELL": 1},
            ", 1": {"Computer": 2, "Finance": 1},
            ", 0": {"Company": 3},
        }.items():
            query = f"PATTERN SEQ(Company a, X b) GROUP BY type(a{level}) AGG COUNT WITHIN 9 units"
            values = cep.aggregate(query, stream, method, emit="change").values
            assert dict(zip(values[f"type(a{level})"], values["COUNT"], strict=True)) == expected


@pytest.mark.parametrize(
    ("items", "keys", "words"),
    [
        ("ANY a, X b", "type(a)", "GROUP BY type(a), of an item of any type"),
        (
            "Company a, Company b, Company c, Company d",
            "type(a), type(b), type(c), type(d)",
            "GROUP BY type(a), type(b), type(c), type(d), which have 1,296 combinations of types",
        ),
    ],
)
def test_refusals(events: pd.DataFrame, items: str, keys: str, words: str) -> None:
    query = f"PATTERN SEQ({items}) GROUP BY {keys} AGG COUNT WITHIN 3 units"
    stream = stream_of(events).with_hierarchy(HIERARCHY)
    for method in ("window-product", "a-seq", "greta", "dpc"):
        with pytest.raises(UnsupportedPatternError) as refused:
            cep.aggregate(query, stream, method)
        assert words in str(refused.value) and "two-step" in str(refused.value)
    pattern = cep.parse(query).with_hierarchy(HIERARCHY)
    found = cep.aggregate(query, stream, emit="change")
    assert found.method == "two-step"
    assert set(found.rows) == naive_rows(pattern, events, emit="change")


def test_queries_that_share_nothing(events: pd.DataFrame) -> None:
    """Segments have no types of single events: such a query runs alone."""
    workload = cep.Workload({"q0": QUERIES[5], "q1": QUERIES[0]}, hierarchy=HIERARCHY)
    plan = cep.WorkloadPlan(workload, shares_prefixes=True)
    stream = stream_of(events).with_hierarchy(HIERARCHY)
    found = cep.aggregate(workload, stream, sharing=plan).values
    alone = cep.aggregate(QUERIES[5], stream).values
    its = found[found["query"] == "q0"]
    for name in ("position", "type(a)", "COUNT"):
        assert its[name].tolist() == alone[name].tolist()
    with pytest.raises(PlanError, match=r"GROUP BY type\(a\), of one item"):
        cep.WorkloadPlan(workload, cuts={"q0": (1,)})


def test_workloads(events: pd.DataFrame) -> None:
    workload = cep.Workload({f"q{n}": text for n, text in enumerate(QUERIES[:2])})
    stream = stream_of(events).with_hierarchy(HIERARCHY)
    found = cep.aggregate(workload, stream).values
    for number, text in enumerate(QUERIES[:2]):
        alone = cep.aggregate(text, stream).values["COUNT"].tolist()
        assert found.loc[found["query"] == f"q{number}", "COUNT"].tolist() == alone
    live = cep.Aggregator(cep.Workload(workload.patterns, hierarchy=HIERARCHY))
    first = live.push(stream_of(events)[:4])
    live = cep.Aggregator.restore(live.snapshot())
    rest = live.push(stream_of(events)[4:])
    assert len(first) + len(rest) == len(found)


def test_a_batch_with_a_hierarchy_that_the_pattern_lacks(events: pd.DataFrame) -> None:
    live = cep.Aggregator(QUERIES[0])
    with pytest.raises(StreamError, match=r"start with pattern\.with_hierarchy"):
        live.push(stream_of(events).with_hierarchy(HIERARCHY))
