"""The benchmark of workloads runs, prints and writes; its contestants find equally many matches."""

from __future__ import annotations

import importlib

import pandas as pd
import pytest

bench = importlib.import_module("bench_workloads")


def test_every_part_is_measured(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(bench, "FAMILIES", 2)
    monkeypatch.setattr(bench, "DRAWN", 10)
    monkeypatch.setattr(bench, "STUDY", dict([*bench.STUDY.items()][:2]))
    out = tmp_path / "rows.parquet"
    sizes = ["--events", "10000", "--study-events", "2000", "--queries", "20"]
    bench.main([*sizes, "--repetitions", "1", "--out", str(out)])
    rows, shown = pd.read_parquet(out), capsys.readouterr().out
    families = rows[rows["part"] == "families"]
    assert {"solo", "NAIVE", "CHASE"} <= set(families["contestant"])
    assert set(families["workload"]) == {"with roots", "without roots"}
    assert (families["matches"] > 0).all()
    study = rows[rows["part"] == "study"]
    assert len(set(study["workload"])) == 2 * len(bench.EVALUATORS)
    assert (rows["seconds"].dropna() > 0).all()
    errors = rows[rows["part"] == "q-errors"]
    times = {f"seconds on {name}" for name in bench.EVALUATORS}
    assert set(errors["contestant"]) == {"calibrated", "e-cube"} | times
    assert (errors["q_error"] >= 1).all()
    windows = rows[rows["part"] == "windows"].groupby("contestant")["times_best"]
    assert windows.min().min() > 1 - 1e-9 and windows.max()["BEST"] == 1
    assert windows.mean()["CHARGED"] < windows.mean()["CHASE"] < windows.mean()["NAIVE"]
    memory = rows[(rows["part"] == "memory") & (rows["contestant"] == "detector")]
    # The shortest stream is a single push.
    _, three, ten = memory["bytes"]
    assert ten < 1.1 * three
    for text in (
        "times as fast as solo",
        "the time of NAIVE",
        "bytes each",
        "refinements",
        "q-error",
    ):
        assert text in shown


def test_contestants_that_differ_are_not_timed() -> None:
    with pytest.raises(SystemExit, match="the numbers of matches differ"):
        bench.timed({"one": lambda: 1, "two": lambda: 2}, 1)
