"""The comparison on files of one's own, as a user starts it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cepbench.planning.planners.registry import default_generators

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compare_files.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_files", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def minute_bars(path: Path) -> Path:
    """Four tickers, every minute of an hour and a half; one line is no bar."""
    rng = np.random.default_rng(3)
    lines = ["WWW,never,1,1,1,1,1"]
    for minute in range(90):
        time = f"20080104{9 + (30 + minute) // 60:02d}{(30 + minute) % 60:02d}"
        for ticker in ("AAA", "BBB", "CCC", "DDD"):
            price = 100 + rng.normal()
            lines.append(f"{ticker},{time},{price:.2f},{price:.2f},{price:.2f},{price:.2f},100")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_all_generators_side_by_side(
    script: ModuleType,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = minute_bars(tmp_path / "bars.txt")
    options = ["--sizes", "3", "--patterns", "1", "--repetitions", "1", "--window", "5 minutes"]
    done = script.main(["--minute-bars", str(file), *options, "--out", str(tmp_path / "out")])
    shown = capsys.readouterr().out
    assert done == 0
    assert "360 events of 4 types" in shown
    assert "1 in quarantine" in shown
    assert f"2 patterns, {2 * len(default_generators(user_defined=False))} rows" in shown
    for name in default_generators(user_defined=False):
        assert shown.count(f"| {name} |") == 2, "one row for sequences, one for conjunctions"
    assert "| sequence | all | DP-B / ZSTREAM |" in shown


def test_a_file_that_is_not_there(
    script: ModuleType,
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = tmp_path / "nothing.csv"
    assert script.main(["--lobster", str(missing), "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err.strip()
    assert told.startswith("compare_files: ")
    assert str(missing) in told
    assert "\n" not in told
