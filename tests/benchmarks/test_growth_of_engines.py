"""The benchmark of growth, at sizes for tests."""

from __future__ import annotations

import importlib
from types import ModuleType

import pandas as pd
import pytest

import cepbench as cep


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return importlib.import_module("bench_growth")


def test_methods_are_those_of_the_registry(bench) -> None:
    built_in = {name for name, entry in cep.AGGREGATORS.items() if entry.is_builtin}
    assert set(bench.METHODS) == built_in


def test_growth_in_a_process_of_its_own(bench, tmp_path, capsys) -> None:
    out = tmp_path / "rows.parquet"
    few = ["--events", "1000", "--repetitions", "1", "--engines", "stack-nfa"]
    bench.main([*few, "--cases", "stream", "--out", str(out)])
    (row,) = pd.read_parquet(out).to_dict("records")
    assert row["name"] == "stack-nfa" and row["seconds_long"] > 2 * row["seconds_short"]
    assert row["verdict"] in (shown := capsys.readouterr().out)
    assert "stream: ten times as much" in shown


def test_the_long_run_has_ten_times_the_events_or_the_window(bench, monkeypatch) -> None:
    def run(name: str, case: object, events: int, window: int, seed: int) -> dict[str, float]:
        seen.append((events, window))
        seconds = 9.0 if len(seen) == 3 else 1.0
        return {"seconds": seconds, "matches": 1, "counted": 1, "resident": 1}

    monkeypatch.setattr(bench, "run", run)
    for name, long in {"stream": (7_000, 100), "window": (700, 1_000)}.items():
        seen: list[tuple[int, int]] = []
        found = [*bench.both("tree", bench.CASES[name], 700, 2, 0)]
        assert seen[1:] == [(700, 100)] * 2 + [long] * 2
        assert [its["seconds"] for its in found] == [1, 1]  # the least


def test_cases_are_what_they_are_called(bench) -> None:
    for name, case in bench.CASES.items():
        stream = [*bench.batches(case, 1_200, 0)]
        assert [len(batch) for batch in stream] == [500, 500, 200]
        times = {int(time) for batch in stream for time in batch.timestamps}
        assert len(times) == (1 if name == "one timestamp" else 1_200)
        for method in (*bench.ENGINES, *bench.METHODS):
            live = bench.opened(method, case, 300)
            assert ("[k]" in str(live.pattern)) == ("key" in name)
            for batch in stream:
                live.push(batch)


def test_verdicts(bench) -> None:
    def judged(
        case: str, seconds: float, resident: float, counted: float, name: str = "tree"
    ) -> str:
        short = {"seconds": 1.0, "matches": 1, "counted": 1e6, "resident": 1e6}
        long = {"seconds": seconds, "matches": 9, "counted": counted, "resident": resident}
        return bench.judged(name, case, [short, long])["verdict"]

    assert judged("stream", 10, 1e6, 1e6) == "ok"
    assert judged("stream", 20, 1e6, 1e6) == "time is not linear"
    # Of the process or as counted, whichever grows more.
    assert judged("stream", 10, 9e6, 1e6) == judged("stream", 10, 1e6, 9e6)
    assert judged("one key", 10, 9e6, 1e6) == "memory is not bounded"
    # What is in the window may be stored.
    assert judged("one timestamp", 10, 9e6, 9e6) == judged("window", 10, 9e6, 9e6) == "ok"
    assert judged("window", 10, 9e7, 9e7) == "memory is not bounded"
    # A method without expiry has all events in its window.
    assert judged("one key", 10, 9e6, 1e6, "dpc") == "ok"
    assert judged("one key", 10, 9e7, 1e6, "dpc") == "memory is not bounded"
    ended = bench.judged("tree", "stream", [{"seconds": 1.0, "matches": 1}])
    assert ended["verdict"] == "not linear: ended at the limit" and ended["seconds_short"] == 1


def test_a_process_that_takes_too_long_is_ended(bench, capsys) -> None:
    bench.main(["--engines", "tree", "--cases", "stream", "--limit", "0.1"])
    shown = capsys.readouterr().out
    assert "ended at the limit" in shown and "nan" not in shown
