"""The benchmarks of every engine: pushes and compiling, at sizes for tests."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import cepbench as cep


@pytest.fixture
def bench(request) -> ModuleType:
    return importlib.import_module(request.param)


def test_engines_are_those_of_the_registry() -> None:
    engines = importlib.import_module("every_engine").ENGINES
    assert set(engines) == {name for name, entry in cep.EVALUATORS.items() if entry.is_builtin}


@pytest.mark.parametrize("bench", ["bench_pushes"], indirect=True)
def test_pushes_of_every_size_are_timed(bench, tmp_path, capsys) -> None:
    out = tmp_path / "rows.parquet"
    bench.main(["--repetitions", "2", "--share", "0.02", "--out", str(out)])
    rows, shown = pd.read_parquet(out), capsys.readouterr().out
    assert {*rows["events"]} == {1, 16, 256, 4_096}
    assert rows.groupby(["engine", "events"]).size().eq(2).all()
    assert {*rows["engine"]} == {*bench.ENGINES}
    assert (rows[["mean", "median"]] > 0).all(axis=None)
    # All engines see the same events, and have matches among them.
    assert rows.groupby(["events", "repetition"])["matches"].nunique().eq(1).all()
    assert rows["matches"].sum() > 0
    assert shown.count("  sase ") == 4


@pytest.mark.parametrize("bench", ["bench_pushes"], indirect=True)
def test_ratios_are_of_one_repetition(bench) -> None:
    rows = pd.DataFrame(
        [("tree", 0, 1.0), ("sase", 0, 2.0), ("tree", 1, 10.0), ("sase", 1, 30.0)],
        columns=["engine", "repetition", "mean"],
    ).assign(events=1, pushes=5, median=7.0)
    line = bench.summary(rows, "tree").splitlines()[-1]
    assert line.split() == [
        "sase",
        "16.0",
        "[9.0,",
        "23.0]",
        "7.0",
        "us",
        "2.50",
        "[2.25,",
        "2.75]",
    ]


@pytest.mark.parametrize("bench", ["bench_compiling"], indirect=True)
def test_compiling_is_counted_in_caches_that_were_empty(
    bench, monkeypatch, tmp_path, capsys
) -> None:
    seen = []

    def in_process(engine: str, caches: Path) -> dict[str, float]:
        is_empty = not any(caches.iterdir())
        seen.append((engine, is_empty))
        for number in range(3):
            (caches / f"{number}.nbc").write_bytes(b"12345")
        (caches / "index.nbi").write_bytes(b"1")
        return {"cpu_seconds": 9.0 if is_empty else 0.5, "seconds": 11.0}

    monkeypatch.setattr(bench, "in_process", in_process)
    out = tmp_path / "rows.parquet"
    bench.main(["--engines", "tree", "sase", "--out", str(out)])
    assert seen == [(name, is_empty) for name in ("tree", "sase") for is_empty in (True, False)]
    row = pd.read_parquet(out).iloc[1]
    assert row[["engine", "cpu_seconds", "cached_cpu_seconds"]].tolist() == ["sase", 9.0, 0.5]
    assert row[["compilations", "bytes"]].tolist() == [3, 16]
    assert "9.0 [9.0, 9.0] s" in capsys.readouterr().out


@pytest.mark.parametrize("bench", ["bench_compiling"], indirect=True)
def test_one_process_says_what_its_first_evaluation_took(bench, capsys) -> None:
    bench.main(["--one", "tree"])
    assert all(value > 0 for value in json.loads(capsys.readouterr().out).values())
