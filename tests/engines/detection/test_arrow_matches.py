"""Matches as Arrow tables: the same as the DataFrame of matches, in whatever pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.runs.arrow_matches import match_schema
from cepbench.errors import EvaluationError, StreamError
from tests.budgets import examples
from tests.engines.detection.constructs import FAMILIES, branch_plans, construct_cases
from tests.engines.detection.strategies import Case, stream_of

pytestmark = pytest.mark.kernel

EVENTS = pd.DataFrame(
    {
        "type": list("ABABCA"),
        "time": [1, 2, 2, 3, 4, 5],
        "x": [0.5, 1.5, np.nan, 3.5, 4.5, 5.5],
        "name": ["one", None, "three", "four", "five", "six"],
    }
)


def plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a DataFrame of matches as Arrow shows them."""

    def value(entry: Any) -> Any:
        if isinstance(entry, tuple):
            return list(entry)
        return None if pd.isna(entry) else int(entry)

    return [
        {str(name): value(entry) for name, entry in row.items()}
        for row in frame.to_dict(orient="records")
    ]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@examples(2)
def test_the_same_matches_in_chunks_and_in_batches(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES[family]))
    plan = data.draw(branch_plans("tree", case.pattern))
    expected = plain(cep.evaluate(case.pattern, case.stream, plan).matches)
    rows = data.draw(st.integers(1, 4))
    result = cep.evaluate(case.pattern, case.stream, plan, output="arrow")
    batches = list(cep.match_batches(case.pattern, case.stream, plan, rows=rows))
    assert result.arrow.schema == match_schema(case.pattern)
    assert in_order(result.arrow.to_pylist()) == in_order(expected)
    assert plain(result.matches) == expected
    assert all(1 <= batch.num_rows <= rows for batch in batches)
    whole = pa.concat_tables([match_schema(case.pattern).empty_table(), *batches])
    assert in_order(whole.to_pylist()) == in_order(expected)
    if expected:
        check_chunks(case, plan, expected)


def check_chunks(case: Case, plan: cep.TreePlan, expected: list[dict[str, Any]]) -> None:
    """The same events again and again, with more matches than the kernels' first chunks hold."""
    events, size = case.events, len(case.events)
    times = min(-(-2500 // len(expected)), 3000 // size)
    after = int(events["time"].max() - events["time"].min()) + 3 * case.pattern.window.length + 1
    repeated = pd.concat([events] * times, ignore_index=True)
    repeated["time"] += np.repeat(np.arange(times) * after, size)
    stream = Case(case.pattern, repeated).stream
    found = cep.evaluate(case.pattern, stream, plan, output="arrow").arrow

    def moved(name: str, entry: Any, by: int) -> Any:
        if isinstance(entry, list):
            return [position + by for position in entry]
        return entry if entry is None or name == "branch" else entry + by

    assert in_order(found.to_pylist()) == in_order(
        [
            {name: moved(name, entry, number * size) for name, entry in row.items()}
            for number in range(times)
            for row in expected
        ]
    )


def test_chunks_are_not_copied() -> None:
    stream = stream_of(pd.DataFrame({"type": ["A", "B"] * 60, "time": range(120)}))
    pattern = cep.parse("PATTERN AND(A a, B b) WITHIN 1000 units")
    result = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "b"]), output="arrow")
    assert result.found is not None
    chunks = result.found[0].chunks
    assert result.arrow.num_rows == 3600
    assert len(chunks) == result.arrow.column("a").num_chunks > 1
    for number, chunk in enumerate(chunks):
        shown = result.arrow.column("a").chunk(number).to_numpy(zero_copy_only=True)
        assert np.shares_memory(shown, chunk[0])


def test_a_detector_gives_tables() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, KL(B b)) WITHIN 10 units")
    detector = cep.Detector(pattern, cep.OrderPlan(["a", "b"]), output="arrow")
    stream = stream_of(EVENTS)
    first, second = detector.push(stream[:3]), detector.push(stream[3:])
    assert first.to_pylist() == [{"a": 0, "b": [1]}]
    assert in_order(second.to_pylist()) == [
        {"a": 0, "b": [1, 3]},
        {"a": 0, "b": [3]},
        {"a": 2, "b": [3]},
    ]
    assert detector.flush().num_rows == 0


def test_with_the_events() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, KL(B b)) WITHIN 10 units")
    result = cep.evaluate(pattern, stream_of(EVENTS), cep.OrderPlan(["a", "b"]))
    table = cep.with_events(result.arrow, stream_of(EVENTS))
    assert table.column_names == ["a", "a.time", "a.x", "a.name", "b", "b.time", "b.x", "b.name"]
    for row in table.to_pylist():
        event = EVENTS.iloc[row["a"]]
        assert row["a.time"] == event["time"]
        assert row["a.x"] == event["x"] or (row["a.x"] is None and np.isnan(event["x"]))
        assert row["a.name"] == event["name"]
        members = EVENTS.iloc[row["b"]]
        assert row["b.time"] == members["time"].tolist()
        assert row["b.x"] == members["x"].tolist()
        assert row["b.name"] == members["name"].tolist()


def test_with_the_events_of_branches_that_lack_a_variable() -> None:
    pattern = cep.parse("PATTERN OR(SEQ(A a, B b), SEQ(B c, C d)) WITHIN 10 units")
    plan = cep.UnionPlan([cep.OrderPlan(["a", "b"]), cep.OrderPlan(["c", "d"])])
    stream = stream_of(EVENTS.drop(columns="name"), is_datetime=False)
    table = cep.with_events(cep.evaluate(pattern, stream, plan).arrow, stream, ["type", "x"])
    rows = table.to_pylist()
    assert {row["branch"] for row in rows} == {0, 1}
    for row in rows:
        for name, kind in zip("abcd", "ABBC", strict=True):
            if row[name] is None:
                assert row[f"{name}.type"] is None
                assert row[f"{name}.x"] is None
            else:
                assert row[f"{name}.type"] == kind


def test_positions_in_the_whole_stream() -> None:
    """However the part was taken, and for sets and for branches too."""
    pattern = cep.parse("PATTERN OR(SEQ(A a, KL(B b)), SEQ(C c, A a)) WITHIN 10 units")
    plan = cep.UnionPlan([cep.OrderPlan(["a", "b"]), cep.OrderPlan(["c", "a"])])
    whole = stream_of(EVENTS.drop(columns="name").fillna(9.0), is_datetime=False)
    for part in (whole[2:], whole.of_types(["A", "B", "C"])[1:], whole.of_types(["A", "C"])):
        result = cep.evaluate(pattern, part, plan)
        table = cep.with_events(result.arrow, part, ["time", "x"], whole=True)
        again = cep.with_events(table.select(["a", "b", "c", "branch"]), whole, ["time", "x"])
        assert table.equals(again)
        moved = result.in_whole_stream(part)
        assert in_order(plain(moved.matches)) == in_order(
            again.select(result.arrow.column_names).to_pylist()
        )
    assert len(cep.evaluate(pattern, whole[2:], plan).matches) > 1
    values = cep.aggregate("PATTERN SEQ(A a, KL(B b)) AGG COUNT WITHIN 10 units", whole[2:])
    for found in (cep.evaluate(pattern, whole[2:], plan), values):
        with pytest.raises(StreamError, match="of a stream of 4 events, and this one has 6"):
            found.in_whole_stream(whole)
    part = replace(whole, positions=None)
    counted = cep.evaluate(pattern, part, plan, output="count")
    assert counted.in_whole_stream(part) is counted


def test_with_the_events_of_branches_that_lack_a_set() -> None:
    pattern = cep.parse("PATTERN OR(SEQ(A a, KL(B b)), SEQ(B c, C d)) WITHIN 10 units")
    plan = cep.UnionPlan([cep.OrderPlan(["a", "b"]), cep.OrderPlan(["c", "d"])])
    stream = stream_of(EVENTS.drop(columns="name"), is_datetime=False)
    table = cep.with_events(cep.evaluate(pattern, stream, plan).arrow, stream, ["time"])
    for row in table.to_pylist():
        # Missing, not an empty set.
        assert (row["b"] is None) == (row["b.time"] is None) == (row["branch"] == 1)
    assert table["b.time"].null_count and table["c.time"].null_count


def test_what_cannot_be_joined_back_says_so() -> None:
    stream = stream_of(EVENTS)
    table = pa.table({"a": [0, 7]})
    with pytest.raises(EvaluationError, match=r"'a' has positions from 0 to 7, .* has 6 events"):
        cep.with_events(table, stream)
    with pytest.raises(EvaluationError, match=r"'a' has positions from -1 to 0"):
        cep.with_events(pa.table({"a": [0, -1]}), stream)
    with pytest.raises(StreamError, match="no attribute 'y'"):
        cep.with_events(pa.table({"a": [0]}), stream, ["y"])
    assert cep.with_events(table.slice(0, 0), stream, ["x"]).column_names == ["a", "a.x"]
    text = "PATTERN SEQ(A a, KL(B b)) WITHIN 10 units RETURN a"
    stream = stream_of(EVENTS, is_datetime=False)
    found = cep.evaluate(text, stream)
    assert cep.with_events(found.arrow, stream, ["x"]).column_names == ["a", "a.x"]
    with pytest.raises(EvaluationError, match="'n' of the matches, of type int64, holds no posit"):
        cep.with_events(cep.evaluate(f"{text}, count(b.x) AS n", stream).arrow, stream, ["x"])


def test_batches_tell_how_far_they_are_and_what_that_took() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 10 units")
    plan, stream = cep.OrderPlan(["a", "b"]), stream_of(EVENTS)
    progress: list[tuple[int, int]] = []
    batches = cep.match_batches(
        pattern, stream, plan, rows=2, on_progress=lambda *at: progress.append(at)
    )
    assert (progress, batches.metrics().events) == ([], 0)
    found = sum(batch.num_rows for batch in batches)
    assert progress == sorted(set(progress))
    assert progress[0] == (2, len(stream)) and progress[-1] == (len(stream), len(stream))
    metrics, whole = batches.metrics(), cep.evaluate(pattern, stream, plan).metrics
    assert metrics.matches == whole.matches == found > 0
    assert (metrics.events, metrics.seconds > 0) == (whole.events, True)


def test_requests_that_make_no_sense() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 10 units")
    plan, stream = cep.OrderPlan(["a", "b"]), stream_of(EVENTS)
    with pytest.raises(EvaluationError, match="rows must be at least 1, not 0"):
        cep.match_batches(pattern, stream, plan, rows=0)
    with pytest.raises(
        EvaluationError, match="one of matches, arrow, count, compressed, not 'table'"
    ):
        cep.evaluate(pattern, stream, plan, output="table")
    counted = cep.evaluate(pattern, stream, plan, output="count")
    with pytest.raises(EvaluationError, match="were only counted"):
        counted.arrow  # noqa: B018


def test_attributes_called_time_and_type_beside_those_of_the_events() -> None:
    frame = pd.DataFrame(
        {"kind": list("ABB"), "at": [1, 2, 3], "time": [7, 8, 9], "type": list("xyz")}
    )
    stream = cep.EventStream.from_pandas(frame, type="kind", time="at")
    pattern = cep.parse("PATTERN SEQ(A a, KL(B b)) WHERE b.time > a.time WITHIN 9 units")
    found = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "b"]), output="arrow")
    joined = cep.with_events(found.arrow, stream)
    names = ["event time", "time", "type"]
    assert joined.column_names == ["a", *(f"a.{n}" for n in names), "b", *(f"b.{n}" for n in names)]
    for row in joined.to_pylist():
        assert (row["a.event time"], row["a.time"], row["a.type"]) == (1, 7, "x")
        assert row["b.event time"] == [frame["at"][place] for place in row["b"]]
        assert row["b.time"] == [frame["time"][place] for place in row["b"]]
    (own,) = set(
        cep.with_events(found.arrow, stream, ["event type"]).column("a.event type").to_pylist()
    )
    assert own == "A"
    stream = cep.EventStream.from_pandas(
        frame.assign(**{"event time": [4, 5, 6]}), type="kind", time="at"
    )
    joined = cep.with_events(found.arrow, stream)
    assert set(joined.column("a.event time").to_pylist()) == {4}
    assert set(joined.column("a.event event time").to_pylist()) == {1}


def test_missing_values_are_null_whatever_they_are() -> None:
    frame = pd.DataFrame({"kind": list("ABB"), "at": [1, 2, 3]})
    values = {"n": [None, 2, None], "x": [np.nan, 0.5, np.nan], "s": [None, "t", None]}
    stream = cep.EventStream.from_pandas(frame.assign(**values), type="kind", time="at")
    found = cep.evaluate("PATTERN SEQ(A a, KL(B b)) WITHIN 9 units", stream, output="arrow").arrow
    for match in cep.with_events(found, stream).to_pylist():
        for name, of_rows in values.items():
            assert match[f"a.{name}"] is None
            assert match[f"b.{name}"] == [None if row == 2 else of_rows[1] for row in match["b"]]


def test_two_columns_of_one_name_are_refused() -> None:
    frame = pd.DataFrame({"kind": list("AB"), "at": [1, 2], "x": [3, 4]})
    stream = cep.EventStream.from_pandas(frame, type="kind", time="at")
    found = cep.evaluate('PATTERN SEQ(A a, B "a.x") WITHIN 9 units', stream, output="arrow").arrow
    assert cep.with_events(found, stream, ["time"]).column("a.x").to_pylist() == [1]
    with pytest.raises(EvaluationError, match=r"two columns would be named 'a\.x'"):
        cep.with_events(found, stream)


@pytest.mark.parametrize("output", ["matches", "arrow", "compressed"])
@pytest.mark.parametrize(
    "text", ["SEQ(A a, KL(B b))", "SEQ(A a, B b)", "OR(SEQ(A a, B b), SEQ(B b, C c))"]
)
def test_rows_of_a_table_that_had_to_be_sorted(text: str, output: str) -> None:
    """In the whole stream matches have rows of the table, in the order of time."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"kind": rng.choice(list("ABC"), 25), "at": rng.permutation(25), "x": range(25)}
    )
    stream = cep.EventStream.from_pandas(frame, type="kind", time="at", sort=True)
    assert list(stream.positions) == list(stream.attributes["x"])  # type: ignore[arg-type]
    pattern = cep.parse(f"PATTERN {text} WITHIN 6 units")
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream), "DP-B")
    if output == "compressed":
        result = cep.evaluate(pattern, stream, evaluator="sase", output=output)
    else:
        result = cep.evaluate(pattern, stream, plan, output=output)
    whole = result.in_whole_stream(stream)
    own, moved = result.arrow if output != "compressed" else result.compressed.expand(), whole
    table = moved.arrow if output != "compressed" else moved.compressed.expand()
    assert own.num_rows == table.num_rows > 5
    for before, after in zip(own.to_pylist(), table.to_pylist(), strict=True):
        for name in set(before) - {"branch"}:
            places = before[name] if isinstance(before[name], list) else [before[name]]
            rows = after[name] if isinstance(after[name], list) else [after[name]]
            assert rows == [None if p is None else int(stream.positions[p]) for p in places]  # type: ignore[index]
    if output == "matches":
        for before, after in zip(
            result.matches.to_dict("records"), whole.matches.to_dict("records"), strict=True
        ):
            for name in set(before) - {"branch"}:
                places = before[name] if isinstance(before[name], tuple) else (before[name],)
                rows = after[name] if isinstance(after[name], tuple) else (after[name],)
                assert [row for row in rows if not pd.isna(row)] == [
                    int(stream.positions[place])  # type: ignore[index]
                    for place in places
                    if not pd.isna(place)
                ]


def test_a_variable_called_branch() -> None:
    stream = cep.EventStream.from_pandas(EVENTS, type="type", time="time")
    pattern = cep.parse("PATTERN SEQ(A a, B branch) WITHIN 9 units")
    found = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "branch"]), output="arrow").arrow
    joined = cep.with_events(found[1:], stream, ["x"])
    assert joined.column_names == ["a", "a.x", "branch", "branch.x"]
    due = [EVENTS["x"][place] for place in joined.column("branch").to_pylist()]
    assert joined.column("branch.x").to_pylist() == due and len(due) == 2


@pytest.mark.parametrize("is_datetime", [True, False])
def test_the_time_column_by_its_own_name(is_datetime: bool) -> None:
    frame = EVENTS.rename(columns={"time": "ts"})
    if is_datetime:
        frame["ts"] = pd.to_datetime(frame["ts"], unit="s")
    stream = cep.EventStream.from_pandas(frame, type="type", time="ts")
    pattern = f"PATTERN SEQ(A a, B b) WITHIN 9 {'seconds' if is_datetime else 'units'}"
    found = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "b"])).arrow
    joined = cep.with_events(found, stream, ["ts", "time"])
    assert joined.column("a.ts").equals(joined.column("a.time"))
    due = [frame["ts"][place] for place in joined.column("a").to_pylist()]
    assert joined.column("a.ts").to_pylist() == due and len(due) == 3
