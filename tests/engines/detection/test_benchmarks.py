"""The benchmark scripts of constructs, memory, node times and cost models run, print and write."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import cepbench as cep

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def features() -> ModuleType:
    return script("bench_features")


@pytest.fixture(scope="module")
def memory() -> ModuleType:
    return script("bench_memory")


def test_every_construct_has_its_rows(features, tmp_path, capsys) -> None:
    out = tmp_path / "deeper" / "rows.parquet"
    features.main(["--events", "1000", "--repetitions", "2", "--out", str(out)])
    shown = capsys.readouterr().out
    rows = pd.read_parquet(out)
    assert len(rows) == len(features.FEATURES) * 2 * 2
    assert (rows["seconds"] > 0).all()
    assert (rows.loc[rows["feature"] == features.PLAIN, "times_plain"] == 1).all()
    for name in features.FEATURES:
        assert shown.count(f"\n  {name} ") == 2
        # Counted and listed, in every repetition.
        assert rows.loc[rows["feature"] == name, "matches"].nunique() == 1


def test_constructs_that_the_benchmark_names_are_in_its_patterns(features) -> None:
    patterns = {name: cep.parse(text) for name, text in features.FEATURES.items()}
    assert len(set(map(str, patterns.values()))) == len(patterns)
    written = {name: str(pattern) for name, pattern in patterns.items()}
    for name, part in {
        "AND": "AND(", "negation inside": "NOT(", "negation at the end": ", NOT(s1 n))",
        "negation under AND": "NOT(", "Kleene": "KL(", "group of all": "GROUP(", "Kleene, rising": "b[i-1]", "OR": "OR(",
        "consuming": "STRATEGY consuming", "strict contiguity": "strict_contiguity",
        "partition contiguity": "partition_contiguity(venue)", "nested": "SEQ(s2 a, AND(",
    }.items():  # fmt: skip
        assert part in written[name]
    assert written["negation under AND"].startswith("PATTERN AND(")


def test_ratios_are_of_one_repetition(features) -> None:
    rows = pd.DataFrame(
        [
            {"feature": name, "output": output, "repetition": repetition, "seconds": seconds}
            for name, output, repetition, seconds in [
                (features.PLAIN, "count", 0, 2.0), ("OR", "count", 0, 6.0),
                (features.PLAIN, "count", 1, 4.0), ("OR", "count", 1, 6.0),
                (features.PLAIN, "matches", 0, 8.0), ("OR", "matches", 0, 4.0),
            ]
        ]
    )  # fmt: skip
    found = features.with_ratios(rows)
    assert found.loc[found["feature"] == "OR", "times_plain"].tolist() == [3.0, 1.5, 0.5]


def test_a_longer_stream_needs_no_more_memory(memory) -> None:
    """What the benchmark measures, at a size for tests: peaks do not depend on the length."""
    for name in memory.PATTERNS:
        short, long = (memory.detect(name, 4_000, times, 5) for times in (1, 5))
        assert long["events"] == 5 * short["events"]
        assert long["matches"] > 4 * short["matches"]
        # Where the stream begins again a window may hold more than anywhere else.
        assert long["peak_bytes"] <= 1.5 * short["peak_bytes"]
        assert short["peak_partial_matches"] > 0 and 8 < short["bytes_per_stored"] < 200


def test_a_process_of_its_own_says_what_it_took(memory, monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(memory, "LENGTHS", (2,))
    out = tmp_path / "rows.parquet"
    few = ["--events", "1000", "--repetitions", "1", "--patterns", "AND", "--out", str(out)]
    memory.main(few)
    rows = pd.read_parquet(out)
    assert rows["events"].tolist() == [2000]
    assert rows["peak_bytes"].iloc[0] == memory.detect("AND", 1000, 2, 0)["peak_bytes"]
    shown = capsys.readouterr().out
    assert "    2x " in shown
    assert memory.resident_bytes() is None or memory.resident_bytes() > 2**20


@pytest.mark.parametrize("name", ["bench_features", "bench_memory"])
def test_wrong_arguments_say_what_is_right(name, capsys) -> None:
    with pytest.raises(SystemExit):
        script(name).main(["--out", "rows.csv"])
    assert "rows.csv: the name must end in .parquet" in capsys.readouterr().err


def test_node_times_are_measured_with_and_without(tmp_path, capsys) -> None:
    bench, out = script("bench_node_times"), tmp_path / "deeper" / "rows.parquet"
    bench.main(["--events", "1000", "--repetitions", "3", "--out", str(out)])
    shown = capsys.readouterr().out
    rows = pd.read_parquet(out)
    assert rows["pattern"].value_counts().to_dict() == dict.fromkeys(bench.PATTERNS, 3)
    assert (rows[["off", "on"]] > 0).all(axis=None)
    for name in bench.PATTERNS:
        assert shown.count(f"  {name} ") == 1


def test_every_plan_is_timed(tmp_path, capsys) -> None:
    bench, out = script("bench_cost_models"), tmp_path / "rows.parquet"
    bench.main(["--events", "1000", "--repetitions", "1", "--out", str(out)])
    rows = pd.read_parquet(out)
    assert set(rows["pattern"]) == set(bench.PATTERNS)
    assert rows.groupby("pattern")["matches"].nunique().eq(1).all()
    assert "P3 backwards" in capsys.readouterr().out


def test_engines_are_timed_in_turn(tmp_path, capsys) -> None:
    bench, out = script("bench_instances"), tmp_path / "deeper" / "rows.parquet"
    bench.main(["--events", "1000", "--repetitions", "2", "--out", str(out)])
    shown = capsys.readouterr().out
    rows = pd.read_parquet(out)
    assert len(rows) == 2 * 4 * len(bench.PATTERNS)
    assert rows.groupby("pattern")["matches"].nunique().eq(1).all()
    for name in bench.PATTERNS:
        assert shown.count(f"  {name} ") == 2


def test_counts_without_runs_have_their_rows(tmp_path, capsys) -> None:
    out = tmp_path / "rows.parquet"
    script("bench_sequence_counts").main(
        ["--events", "1000", "--repetitions", "2", "--out", str(out)]
    )
    rows = pd.read_parquet(out)
    assert rows["cell"].value_counts().tolist() == [2] * 14
    assert (rows["matches"] > 0).any()
    assert "times as fast as tree" in capsys.readouterr().out


def test_aggregates_have_their_rows() -> None:
    aggregates = script("bench_aggregates")
    rows = aggregates.measure(1_000, 1, 0, full=300)
    assert rows["cell"].nunique() == len(rows)
    assert (rows["seconds"].dropna() > 0).all()
    assert aggregates.summary(rows).count("times as fast as two-step") == len(aggregates.METHODS)
