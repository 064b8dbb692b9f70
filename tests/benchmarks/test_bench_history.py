"""The history of benchmarks says what got slower, and of nothing else that it did."""

from __future__ import annotations

import importlib

import pandas as pd
import pytest

bench_history = importlib.import_module("bench_history")

BEFORE = {"commit": "aa", "date": "2026-01-01", "processor": "P", "cell": "tree"}


@pytest.mark.parametrize(
    ("low", "median", "high", "slower"),
    [
        (1.15, 1.2, 1.3, True),
        (1.02, 1.2, 1.3, False),  # quartiles meet
        (1.06, 1.09, 1.3, False),  # less than a tenth
        (0.5, 0.6, 0.7, False),
    ],
)
def test_slower_by_a_tenth(low: float, median: float, high: float, slower: bool) -> None:
    history = pd.DataFrame(
        [
            BEFORE | {"low": 0.1, "median": 0.1, "high": 0.1},
            BEFORE | {"commit": "bb", "low": 0.95, "median": 1.0, "high": 1.05},
            BEFORE | {"commit": "cc", "processor": "Q", "low": 9.0, "median": 9.0, "high": 9.0},
        ]
    )
    now = pd.DataFrame([BEFORE | {"commit": "dd", "low": low, "median": median, "high": high}])
    first = bench_history.compared(now, history).splitlines()[0]
    if slower:
        assert first == "tree takes 1.2 times as long, against bb of 2026-01-01"
    else:
        assert first == "nothing is slower by 10%, against bb of 2026-01-01"


def test_it_is_kept_unless_only_compared(tmp_path, capsys) -> None:
    kept = tmp_path / "history.csv"
    few = ["--events", "400", "--repetitions", "1", "--history", str(kept)]
    bench_history.main([*few, "--compare"])
    assert capsys.readouterr().out.startswith("no earlier figures of this processor")
    assert not kept.exists()
    bench_history.main(few)
    bench_history.main(few)
    rows = pd.read_csv(kept)
    assert "against" in capsys.readouterr().out
    cells = [name for name, _ in bench_history.cells(400, 0)]
    assert rows["cell"].tolist() == cells * 2
    assert (rows["median"] > 0).all() and rows["commit"].notna().all()
