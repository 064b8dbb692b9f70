"""``notebooks/sweep.ipynb``: a sweep file run, summarised, and compared with another sweep.

In this process, so that it finds the session of Spark that runs; a new one takes fifteen seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd
import pyarrow.parquet as pq
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from cepbench.experiments.sweeps.cells import NO_OPTIONS, OK, results_table
from cepbench.presentation.figures.offline import VEGALITE_MIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "sweep.ipynb"
STOCKS = ("CTAS", "QCOM", "AAPL", "MNST", "CBRL", "HOLX")
PATTERNS = {
    f"after-{stock}": f"PATTERN SEQ({stock} a, MSFT b) WHERE a.difference < b.difference "
    "WITHIN 10 minutes"
    for stock in STOCKS
}
GENERATORS = {"EFREQ": ("order", "lazy-nfa"), "DP-B": ("tree", "tree")}


def other_sweep() -> list[dict[str, object]]:
    """Rows of the same patterns from a machine on which an event takes a second."""
    return [
        {
            "pattern_set": "user", "size": 2, "pattern_id": f"user-{name}", "pattern": text,
            "generator": generator, "plan_kind": plans, "evaluator": evaluator, "strategy": "any",
            "alpha": 0.0, "stream": "", "regime": "", "window": "", "options": NO_OPTIONS, "output": "count",
            "repetition": 0, "status": OK, "events_per_second": 1.0 + rank / 10,
            "peak_bytes": 1, "plan_seconds": 0.001, "plan_log_cost": 1.0, "matches": 1,
            "configuration": "{}",
        }
        for rank, (name, text) in enumerate(PATTERNS.items())
        for generator, (plans, evaluator) in GENERATORS.items()
    ]  # fmt: skip


def shown_by(notebook: Path, shell: InteractiveShell, **parameters: Any) -> tuple[str, list[Any]]:
    """What the cells print, and what they display."""
    given = parameterize_notebook(load_notebook_node(str(notebook)), parameters)
    with (
        pd.option_context("display.max_colwidth", None),
        alt.renderers.enable(alt.renderers.active),
        capture_output() as shown,
    ):
        for cell in given.cells:
            if cell.cell_type == "code":
                shell.run_cell(cell.source).raise_error()
    return shown.stdout, [its.data for its in shown.outputs]


def test_a_sweep_is_run_summarised_and_compared(
    spark: SparkSession, shell: InteractiveShell, tmp_path: Path
) -> None:
    lines = [
        'title = "Tiny sweep"',
        'data = "nasdaq-style/sample"',
        "repetitions = 1",
        "seconds = 0",
    ]
    lines += [f"generators = {list(GENERATORS)}", "[user_patterns]"]
    lines += [f'{name} = "{text}"' for name, text in PATTERNS.items()]
    file, other = tmp_path / "tiny.toml", tmp_path / "other.parquet"
    file.write_text("\n".join(lines), encoding="utf-8")
    pq.write_table(results_table(other_sweep()), other)
    output = tmp_path / "out"
    printed, displayed = shown_by(
        NOTEBOOK, shell, sweep=str(file), seed=3, changes={"repetitions": 2},
        data=str(tmp_path / "data"), output=str(output), compare_with=str(other),
    )  # fmt: skip
    results = pd.read_parquet(output / "results.parquet")
    assert len(results) == 2 * len(PATTERNS) * len(GENERATORS) and set(results["status"]) == {OK}
    assert set(results["generator"]) == set(GENERATORS) and set(results["seed"]) == {3}
    assert set(results["pattern_id"]) == {f"user-{name}" for name in PATTERNS}
    compared = pd.read_parquet(output / "comparison.parquet")
    speeds = compared[compared["metric"] == "events_per_second"]
    assert list(speeds["verdict"]) == ["better"] * 2 and (speeds["value"] > 1000).all()
    pictures = {path.stem for path in output.glob("*.svg")}
    assert pictures == {
        "events_per_second_any_0", "peak_bytes_any_0",
        "compared_events_per_second", "compared_peak_bytes",
    }  # fmt: skip
    assert sum(VEGALITE_MIME in its for its in displayed) == 4
    told = printed + "".join(its.get("text/markdown", "") for its in displayed)
    for text in ("Tiny sweep", "6 user-defined", "6 patterns chosen by hand", "faster; 6 pairs"):
        assert text in told
    assert "Warning" not in told
