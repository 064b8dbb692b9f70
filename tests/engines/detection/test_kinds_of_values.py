"""Booleans, decimals and columns without any value, at every entrance alike."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepbench as cep
from cepbench.errors import CepbenchError, PatternError, StreamError
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import plan_for

PLAN = cep.OrderPlan(["a", "b"])
ROWS = 6


def stream_of(types: str = "ABABAB", **columns: Any) -> cep.EventStream:
    table = pa.table(
        {"type": list(types), "ts": pa.array(range(len(types)), pa.int64()), **columns}
    )
    return cep.EventStream.from_arrow(table, type="type", time="ts")


def pairs(where: str, stream: cep.EventStream, **parameters: Any) -> list[tuple[int, int]]:
    """The matches of SEQ(A a, B b), which every evaluator, live and in a workload, finds alike."""
    pattern = cep.parse(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 9 units", parameters)
    assert cep.parse(str(pattern)) == pattern
    found = {
        name: cep.evaluate(pattern, stream, plan_for(name, PLAN), evaluator=name).positions
        for name in able(pattern)
    }
    (one, *others) = [sorted(its.itertuples(index=False, name=None)) for its in found.values()]
    assert all(its == one for its in others)
    detector = cep.Detector(pattern, PLAN)
    live = [detector.push(batch) for batch in stream.batches(1)]
    assert sorted(pd.concat(live).itertuples(index=False, name=None)) == one
    queries = {"q": str(pattern), "r": "PATTERN SEQ(A a, B b) WITHIN 3 units"}
    together = cep.evaluate(cep.Workload(queries), stream)
    assert len(together["q"].matches) == len(one)
    counted = cep.aggregate(
        str(pattern).replace("WITHIN", "AGG COUNT WITHIN"), stream, scope="stream"
    )
    assert [*counted.values["COUNT"]][-1:] == ([len(one)] if len(counted.values) else [])
    cep.measure_statistics(pattern, stream)
    return one


# -- columns without any value --------------------------------------------------------------------

MISSING = {
    "null": pa.nulls(ROWS),
    "texts": pa.nulls(ROWS, pa.string()),
    "categories": pa.nulls(ROWS, pa.dictionary(pa.int8(), pa.string())),
    "floats": pa.array([np.nan] * ROWS),
    "integers": pa.nulls(ROWS, pa.int32()),
    "booleans": pa.nulls(ROWS, pa.bool_()),
    "decimals": pa.nulls(ROWS, pa.decimal128(9, 2)),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_column_without_any_value_fits_every_use_and_satisfies_nothing(kind: str) -> None:
    stream = stream_of(k=MISSING[kind], n=range(ROWS), t=list("xyxyxy"))
    one = ["b.k = 'x'", "b.k != 'x'", "b.k > 3", "NOT b.k < 3", "b.k", "NOT b.k"]
    two = ["a.k < b.k", "a.k = b.t", "a.k + 1 > b.n", "[k]"]
    where = " OR ".join([f"({part})" for part in one])
    assert pairs(where, stream) == []
    for condition in two:
        assert pairs(condition, stream) == []
    pattern = (
        "PATTERN SEQ(A a, KL(B b)) GROUP BY k AGG COUNT(b.k), SUM(b.k), MAX(b.k) WITHIN 1 units"
    )
    for method in (None, "two-step"):
        assert cep.aggregate(pattern, stream, method).values.empty
        values = cep.aggregate(pattern.replace("GROUP BY k", ""), stream, method).values
        assert values["COUNT(b.k)"].tolist() == [0, 0, 0]
        assert values[["SUM(b.k)", "MAX(b.k)"]].isna().all(axis=None)
    returned = cep.evaluate(
        "PATTERN SEQ(A a, KL(B b)) WITHIN 1 units RETURN a.k AS k, b[last].k AS l, sum(b.k) AS s",
        stream,
        cep.OrderPlan(["a", "b"]),
    )
    assert returned.matches.isna().all(axis=None)
    grouped = "PATTERN SEQ(A a, B b) STRATEGY partition_contiguity(k) WITHIN 9 units"
    assert len(cep.evaluate(grouped, stream, PLAN).matches) == 0


@pytest.mark.parametrize(
    "batches",
    [
        [["x", "y"], [None, None], ["z", "x"]],
        [[None, None], ["x", "x"], [None, "x"]],
        [[True, None], [None, None], [False, True]],
        [[Decimal("0.10"), None], [None, None], [Decimal(2), Decimal("0.1")]],
    ],
    ids=["texts", "texts later", "booleans", "decimals"],
)
def test_batches_without_values_join_the_others(batches: list[list[Any]]) -> None:
    """pandas and Arrow give a column that is missing throughout another type."""
    whole = stream_of("AB" * 3, k=[value for batch in batches for value in batch])
    text = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 9 units RETURN a, b, a.k AS k"
    expected = cep.evaluate(text, whole, PLAN).matches.astype(object).to_numpy().tolist()
    detector = cep.Detector(text, PLAN)
    found = []
    for number, batch in enumerate(batches):
        frame = pd.DataFrame({"type": ["A", "B"], "ts": [2 * number, 2 * number + 1], "k": batch})
        pushed = detector.push(cep.EventStream.from_pandas(frame, type="type", time="ts"))
        found += pushed.astype(object).to_numpy().tolist()
        detector = cep.Detector.restore(detector.snapshot())
    assert sorted(found) == sorted(expected)
    assert expected


@pytest.mark.parametrize("method", ["a-seq", "greta", "dpc", "two-step"])
def test_batches_without_values_in_aggregates(method: str) -> None:
    nan = np.nan
    for values in ([nan, nan, 1, 2, nan, nan, 3, nan], [1, 2, nan, nan, 4, 5, 1, 7]):
        text = "PATTERN SEQ(A a, B b) AGG COUNT(b.x), SUM(b.x), AVG(b.x), MIN(b.x) WITHIN 50 units"
        live = cep.Aggregator(text, method)
        found = []
        for start in range(0, 8, 2):
            x = pd.array(values[start : start + 2], object)
            frame = pd.DataFrame({"type": ["A", "B"], "ts": [start, start + 1]}).assign(x=x)
            if frame["x"].isna().all():
                frame["x"] = pd.array([None, None], "string")
            batch = cep.EventStream.from_pandas(frame.infer_objects(), type="type", time="ts")
            found.append(live.push(batch))
        whole = cep.aggregate(
            text, stream_of("AB" * 4, x=pa.array(values, from_pandas=True)), method
        )
        np.testing.assert_array_equal(
            pd.concat([its.astype(float) for its in found]).to_numpy()[:, 2:],
            whole.values.astype(float).to_numpy()[:, 2:],
        )


# -- booleans ---------------------------------------------------------------------------------------

FLAGS = [True, None, False, True, True, False]


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("a.f", lambda a, b: a is True),
        ("(a.f) AND NOT ((b.f))", lambda a, b: a is True and b is False),
        ("a.f = false", lambda a, b: a is False),
        ("false = a.f", lambda a, b: a is False),
        ("NOT b.f", lambda a, b: b is False),
        ("b.f != true", lambda a, b: b is False),
        ("a.f = b.f", lambda a, b: None not in (a, b) and a == b),
        ("NOT (a.f = b.f)", lambda a, b: None not in (a, b) and a != b),
        ("[f]", lambda a, b: None not in (a, b) and a == b),
        ("a.f OR b.f", lambda a, b: a is True or b is True),
        ("a.f = :yes AND b.f != no", lambda a, b: a is True and b is True),
        ("true", lambda a, b: True),
    ],
)
def test_booleans_are_compared_as_booleans(where: str, holds: Callable[..., bool]) -> None:
    stream = stream_of(f=FLAGS)
    parameters = {"yes": True, "no": np.False_} if ":yes" in where else {}
    expected = [
        (a, b)
        for a in range(0, ROWS, 2)
        for b in range(a + 1, ROWS, 2)
        if holds(FLAGS[a], FLAGS[b])
    ]
    assert pairs(where, stream, **parameters) == expected


def test_booleans_are_returned_as_booleans() -> None:
    stream = stream_of(f=FLAGS)
    text = "PATTERN SEQ(A a, KL(B b)) WITHIN 1 units RETURN a.f AS a, b.f AS b, b[last].f AS l"
    found = cep.evaluate(text, stream, PLAN)
    assert found.arrow.schema.types == [pa.bool_(), pa.large_list(pa.bool_()), pa.bool_()]
    assert found.arrow.to_pylist() == [
        {"a": True, "b": [None], "l": None},
        {"a": False, "b": [True], "l": True},
        {"a": True, "b": [False], "l": False},
    ]
    assert found.matches.dtypes.astype(str).tolist() == ["bool", "object", "boolean"]
    assert str(stream.to_pandas()["f"].dtype) == "boolean"
    assert stream_of(f=[True] * ROWS).to_pandas()["f"].dtype == np.bool_
    grouped = cep.aggregate("PATTERN SEQ(A a) GROUP BY a.f AGG COUNT WITHIN 9 units", stream)
    assert grouped.values["a.f"].tolist() == [True, False, True]
    assert grouped.arrow.schema.field("a.f").type == pa.bool_()


@pytest.mark.parametrize(
    ("where", "advice"),
    [
        ("a.f = 1", r"a boolean with a number; a\.f is a boolean: write a\.f = true"),
        ("a.f != 0", r"write a\.f = false"),
        ("a.f = 'True'", r"a text with a boolean; .*write a\.f = true"),
        ("a.n", r"a\.n = true compares a boolean with a number; .* as a\.n = 1"),
        ("a.t", r"write 'true', or convert its column, as by frame\['t'\]\.map"),
        (
            "a.t > 10",
            r"condition a\.t > 10 compares .*; a\.t is a text: convert its column, as by pandas",
        ),
        (
            "a.t = 10",
            r"write '10', or convert its column, as by pandas\.to_numeric\(frame\['t'\]\)",
        ),
        ("a.n = '10'", "write 10 without quotes"),
        ("a.f = b.n", r"a\.f is a boolean and b\.n is a number: convert a column"),
        ("a.f < b.f", "orders booleans; booleans can only be = or !="),
        ("a.f + 1 = 2", "arithmetic on a boolean"),
        ("a.f > true", "orders a boolean"),
        ("true = 1", "compares a boolean with a number"),
        ("a.n + true = 1", "arithmetic on a boolean"),
        ("a.n + 1", "expected a comparison"),
    ],
)
def test_values_of_two_kinds_are_refused_with_advice(where: str, advice: str) -> None:
    stream = stream_of(f=FLAGS, n=range(ROWS), t=list("xyxyxy"))
    with pytest.raises((StreamError, PatternError), match=advice):
        cep.evaluate(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 9 units", stream, PLAN)


def test_sums_of_booleans_are_refused() -> None:
    stream = stream_of(f=FLAGS)
    for function in ("SUM", "AVG", "MIN", "MAX"):
        with pytest.raises(StreamError, match="f is a boolean, of which there is only a COUNT"):
            cep.aggregate(f"PATTERN SEQ(A a) AGG {function}(a.f) WITHIN 9 units", stream)
    counted = cep.aggregate("PATTERN SEQ(A a, B b) AGG COUNT(b.f) WITHIN 1 units", stream)
    assert counted.values["COUNT(b.f)"].tolist() == [0, 1, 1]


# -- numbers ----------------------------------------------------------------------------------------


def test_decimals_are_compared_exactly() -> None:
    texts = ["0.10", "0.1000", "0.3", "0.1", "999999999999.999", "999999999999.998"]
    stream = stream_of(d=pa.array(map(Decimal, texts), pa.decimal128(38, 18)), i=[0, 1, 2, 3, 4, 5])
    assert pairs("a.d = b.d", stream) == [(0, 1), (0, 3)]
    assert pairs("a.d > b.d", stream) == [(2, 3), (4, 5)]
    assert pairs("a.d = 0.1 AND b.d < :most", stream, most=Decimal("999999999999.999")) == [
        (0, 1), (0, 3), (0, 5),
    ]  # fmt: skip
    grouped = cep.aggregate(
        "PATTERN SEQ(A a) GROUP BY a.d AGG COUNT, AVG(a.d), MAX(a.d) WITHIN 1 units", stream
    )
    assert grouped.values["a.d"].tolist() == [0.1, 0.3, 999999999999.999]
    with pytest.raises(StreamError, match="d is a decimal, whose sum would be rounded"):
        cep.aggregate("PATTERN SEQ(A a) AGG SUM(a.d) WITHIN 1 units", stream)


def test_decimals_that_would_be_rounded_are_refused() -> None:
    texts = ["12345678901234567.89", "12345678901234567.90"]
    stream = stream_of("AB", d=pa.array(map(Decimal, texts), pa.decimal128(19, 2)))
    for use in ("WHERE a.d = b.d", "WHERE [d]", "GROUP BY d AGG COUNT", "AGG SUM(a.d)"):
        text = f"PATTERN SEQ(A a, B b) {use} WITHIN 9 units"
        run = cep.aggregate if "AGG" in use else cep.evaluate
        with pytest.raises(CepbenchError, match="more than 15 digits, which a float would round"):
            run(text, stream, *([] if "AGG" in use else [PLAN]))


def test_floats_of_32_bits_are_widened() -> None:
    """0.1 in 32 bits is 0.100000001490116…, as Arrow and SQL have it."""
    stream = stream_of("AB", x=pa.array([0.1, 0.1], pa.float32()))
    assert pairs("a.x = 0.1", stream) == []
    assert pairs("a.x = b.x AND a.x > 0.1", stream) == [(0, 1)]
    assert pairs("a.x = :x", stream, x=np.float32(0.1)) == [(0, 1)]


@pytest.mark.parametrize(
    "number",
    [2**53 + 1, np.int64(2**53 + 1), np.uint64(2**64 - 1), Decimal("0.1000000000000000055")],
    ids=str,
)
def test_numbers_of_patterns_are_exact_or_refused(number: Any) -> None:
    for text, given in ((f"{number}", {}), (":p", {"p": number})):
        with pytest.raises(PatternError, match="more digits than a float holds, and would be"):
            cep.parse(f"PATTERN SEQ(A a) WHERE a.x = {text} WITHIN 1 s", given)


@pytest.mark.parametrize("number", [2**53, 2**60, 1e23, 0.1, 0.30000000000000004, 5e-324, 1e308])
def test_numbers_that_floats_hold(number: float) -> None:
    for given in (number, Decimal(repr(number)), np.float64(number)):
        pattern = cep.parse("PATTERN SEQ(A a) WHERE a.x = :p WITHIN 1 s", p=given)
        assert cep.parse(str(pattern)) == pattern
        assert pattern == cep.parse(f"PATTERN SEQ(A a) WHERE a.x = {number!r} WITHIN 1 s")


def test_large_integers_that_became_floats_are_refused() -> None:
    """pandas reads an integer column with a missing value as floats, which round."""
    detector = cep.Detector("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 9 units", PLAN)
    detector.push(stream_of("A", x=[2**53]))
    later = pa.table({"type": ["B"], "ts": [5], "x": [float(2**53 + 1)]})
    with pytest.raises(StreamError, match=r"'x' is 9007199254740992\.0, too large to compare"):
        detector.push(cep.EventStream.from_arrow(later, type="type", time="ts"))


def test_unsigned_integers_are_integers() -> None:
    stream = stream_of("AB", x=pa.array([2**63 - 1, 5], pa.uint64()))
    largest = cep.aggregate("PATTERN SEQ(A a) AGG MAX(a.x), SUM(a.x) WITHIN 9 units", stream)
    assert largest.values.iloc[0, 2:].tolist() == [2**63 - 1, 2**63 - 1]
    text = "PATTERN SEQ(A a) WITHIN 9 units RETURN a.x AS x"
    assert cep.evaluate(text, stream, cep.OrderPlan(["a"])).matches["x"].tolist() == [2**63 - 1]


@pytest.mark.parametrize("method", ["a-seq", "greta", "dpc", "two-step"])
def test_an_average_is_finite_where_its_sum_is_not(method: str) -> None:
    stream = stream_of("ABBAB", x=[1e308, 1e308, 1.5e308, 1.0, 1.2e308])
    text = "PATTERN SEQ(A a, B b) AGG SUM(b.x), AVG(b.x) WITHIN 9 units"
    values = cep.aggregate(text, stream, method).values
    assert values["SUM(b.x)"].tolist() == [1e308, np.inf, np.inf]
    np.testing.assert_allclose(values["AVG(b.x)"], [1e308, 1.25e308, 1.225e308], rtol=1e-15)


# -- entrances ----------------------------------------------------------------------------------------


def test_what_gives_its_rows_to_arrow_is_taken() -> None:
    table = pa.table({"type": ["A", "B"], "ts": [1, 2], "f": [True, None]})
    for given in (table.to_reader(), table.to_batches()[0]):
        assert len(cep.EventStream.from_arrow(given, type="type", time="ts")) == 2
    with pytest.raises(StreamError, match="from_pandas"):
        cep.EventStream.from_arrow(table.to_pandas(), type="type", time="ts")
    reader = table.to_reader()
    cep.evaluate("PATTERN SEQ(A a, B b) WITHIN 9 units", reader, type="type", time="ts")
    with pytest.raises(StreamError, match="was read before, and has no more rows"):
        cep.evaluate("PATTERN SEQ(A a, B b) WITHIN 9 units", reader, type="type", time="ts")


def test_frames_of_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"type": ["A", "B"], "ts": [1, 2], "f": [True, None], "s": ["x", None], "m": [None, None]}
    ).with_columns(
        pl.col("s").cast(pl.Categorical).alias("c"),
        pl.lit("1.25").cast(pl.Decimal(9, 2)).alias("d"),
    )
    stream = cep.EventStream.from_arrow(frame, type="type", time="ts")
    assert [stream.column(name).tolist() for name in "fscd"] == [
        [True, None], ["x", None], ["x", None], [1.25, 1.25],
    ]  # fmt: skip
    with pytest.raises(StreamError, match=r"call collect\(\) first"):
        cep.EventStream.from_arrow(frame.lazy(), type="type", time="ts")


@pytest.mark.parametrize(
    ("times", "advice"),
    [
        (
            [1541000542.29, 1541086942.29],
            r"pandas\.to_datetime\(frame\['ts'\], unit='s'\) if the num",
        ),
        (["2024-01-01", "2024-01-02"], r"pandas\.to_datetime\(frame\['ts'\]\)"),
        ([Decimal("1.5"), Decimal("2.5")], "unit='s'"),
        (pd.period_range("2024-01", periods=2, freq="M"), r"frame\['ts'\]\.dt\.to_timestamp\(\)"),
    ],
)
def test_advice_for_times_names_their_unit(times: list[Any], advice: str) -> None:
    frame = pd.DataFrame({"type": ["A", "B"], "ts": times})
    with pytest.raises(StreamError, match=advice):
        cep.EventStream.from_pandas(frame, type="type", time="ts")
    with pytest.raises(StreamError, match=r"convert the column to datetimes: .* unit='s'"):
        cep.evaluate("PATTERN SEQ(A a, B b) WITHIN 5 minutes", stream_of("AB"), PLAN)
