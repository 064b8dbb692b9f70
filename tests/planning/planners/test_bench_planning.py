"""The benchmark script of the plan generators runs and writes what it prints."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from cepbench.planning.planners.registry import PLAN_GENERATORS
from tests.generators import UNIVERSAL

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "bench_planning.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_planning", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_are_printed_and_written(bench, tmp_path, capsys) -> None:
    few = ["--sizes", "3", "5", "--problems", "2", "--seed", "4", "--shape", "random"]
    bench.main([*few, "--out", str(tmp_path / "deeper" / "rows.json")])
    shown = capsys.readouterr().out
    rows = pd.DataFrame(json.loads((tmp_path / "deeper" / "rows.json").read_text()))
    assert len(rows) == 2 * 2 * len(PLAN_GENERATORS)
    planned = rows[rows["refused"].isna()]
    assert (planned["seconds"] > 0).all() and set(planned["generator"]) >= set(UNIVERSAL)
    for name in PLAN_GENERATORS:
        assert shown.count(f"  {name} ") == 2
    bench.main([*few, "--out", str(tmp_path / "rows.parquet")])
    again = pd.read_parquet(tmp_path / "rows.parquet")
    # The same problems and plans, whatever the times.
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), rows.drop(columns="seconds"))


def test_a_refusal_is_a_row_with_its_reason(bench) -> None:
    rows = bench.measure(["GREEDY", "IKKBZ"], [4], 1, 0, alpha=2.0)
    assert [row["refused"] is None for row in rows] == [True, False]
    assert rows[1]["seconds"] is None and "alpha = 2 adds latency" in rows[1]["refused"]
    assert "IKKBZ           refused" in bench.summary(rows)
    (chain,) = bench.measure(["IKKBZ"], [30], 1, 0, shape="chain")
    assert chain["seconds"] > 0 and chain["log_cost"] > 0


def test_other_cost_models_can_be_measured(bench) -> None:
    names = UNIVERSAL
    usual = bench.measure(names, [5], 1, 0)
    for strategy, alpha in (("consuming", 0.0), ("any", 2.0)):
        rows = bench.measure(names, [5], 1, 0, strategy, alpha)
        assert {(row["strategy"], row["alpha"]) for row in rows} == {(strategy, alpha)}
        costs = [[row["log_cost"] for row in some] for some in (usual, rows)]
        assert costs[0] != costs[1]


def test_the_large_sizes_of_exponential_generators_are_left_out(bench) -> None:
    rows = bench.measure(["GREEDY", "DP-B"], [25], 1, 0)
    assert [row["generator"] for row in rows] == ["GREEDY"]
    assert "25  GREEDY" in bench.summary(rows)


def test_the_worst_case_can_be_measured(bench, capsys) -> None:
    bench.main(["--sizes", "6", "19", "--problems", "1", "--generators", "DP-B", "DP-LD"])
    random, alike = capsys.readouterr().out.split("planning, ")[1:]
    assert "conditions: random" in random and "conditions: alike" in alike
    assert random.count("DP-B") == 2 and alike.count("DP-B") == 1 and alike.count("DP-LD") == 2
    problem = bench.random_problem(6, 0, shape="alike")
    assert {problem.log_partial_matches(subset) for subset in ([0], [1, 4], [0, 2, 5])} == {0.0}


@pytest.mark.parametrize("wrong", [["--out", "rows.csv"], ["--generators", "NOPE"]])
def test_wrong_arguments_say_what_is_right(bench, wrong, capsys) -> None:
    with pytest.raises(SystemExit):
        bench.main(wrong)
    assert "rows.csv: the name must end" in capsys.readouterr().err or "NOPE" in wrong
