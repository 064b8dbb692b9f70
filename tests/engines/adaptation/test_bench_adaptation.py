"""The benchmark of adaptation runs, and its plans find as much."""

from __future__ import annotations

import importlib
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parents[3] / "benchmarks"


def test_the_benchmark_runs_and_writes(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    bench = importlib.import_module("bench_adaptation")
    monkeypatch.setattr(bench.gc, "collect", lambda: 0)  # takes longer than all runs
    out = tmp_path / "deeper" / "rows.parquet"
    short = ["--rounds", "2", "--batch-size", "4096", "--repetitions", "1", "--windows", "50"]
    bench.main([*short, "--policies", "1", "--out", str(out)])
    shown = capsys.readouterr().out
    first, *others = shown.splitlines()
    assert first.endswith(" cells below 0.95 of the plan left alone")
    low = sum(line.count(" given") + line.count(" made") for line in others[: len(bench.POLICIES)])
    assert first.startswith(f"{low} of {2 * 11 * len(bench.POLICIES)} cells")
    rows = pd.read_parquet(out)
    plans = ["adaptive", *bench.PLANS]
    assert len(rows) == 2 * len(plans) * len(bench.SEGMENTS)
    assert (rows["seconds"] > 0).all()
    assert shown.count("x the best plan over the whole stream") == 2
    # Of plans of a pattern, and of plans of a workload.
    assert shown.count("window 50: a switch takes ") == 2
    # One for each change of the stream.
    assert shown.count("\n  2 switches, of ") == 2
