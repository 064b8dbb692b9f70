"""``cepbench sweep``: data, estimate, results, comparison by one command; mistakes that are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.estimate import read_estimate
from cepbench.experiments.sweeps.store import read_results
from cepbench.presentation.commands.app import app
from tests.experiments.analysis.test_summary import MOST, made_up_results
from tests.presentation.reporting.offline import read_page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]

OWN = """
title = "Tiny"
data = { identifiers = 12, days = 1 }
generators = ["GREEDY", "BACKWARDS"]
repetitions = 1
seconds = 0

[user_patterns]
rising = "PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes"
falling = "PATTERN SEQ(MSFT a, GOOG b, CSCO c) WHERE a.price > c.price WITHIN 20 minutes"
"""

PLUGIN = """
import cepbench as cep

@cep.plan_generator("BACKWARDS", kind="order")
def backwards(problem, rng):
    return list(range(problem.n))[::-1]
"""

TINY = [
    "latency", "--set", "data={identifiers=12, days=1}", "--set", "sizes=[3]",
    "--set", "patterns=2", "--set", "repetitions=1", "--set", 'generators=["GREEDY", "DP-B"]',
    "--set", "regimes={}", "--set", "alphas=[0.0, 0.5, 1.0]",
]  # fmt: skip


def sweep(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def test_estimate_then_run_then_nothing_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = sweep("estimate", *TINY, "--folder", tmp_path)
    assert told.exit_code == 0, told.output
    assert "Figure 8" in told.stdout and "from 2 of 2 patterns" in told.stdout
    assert " events, 0 MB; if it is missing, generating it takes about 0 s" in told.stderr
    (folder,) = (tmp_path / "sweeps").iterdir()
    table = read_estimate(folder)
    assert table is not None and table["core_seconds"].iloc[-1] > 0
    assert len(read_results(folder)) == 0

    done = sweep("run", *TINY, "--folder", tmp_path, "--estimate")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("latency: 12 rows; ")
    results = read_results(folder)
    assert (results["status"] == OK).all() and set(results["alpha"]) == {0, 0.5, 1}
    # Again: the results stay as they are, and Spark is not needed.
    before = (folder / "results.parquet").read_bytes()
    with monkeypatch.context() as patched:
        patched.delattr("cepbench.spark.session.spark_session")
        again = json.loads(sweep("run", *TINY, "--folder", tmp_path, "--json").stdout)
    assert (folder / "results.parquet").read_bytes() == before
    assert again[0]["rows"] == 12 and again[0]["statuses"] == {"ok": 12}
    assert Path(again[0]["results"]) == folder / "results.parquet"
    of_one = {(row["generator"], row["alpha"]): row for row in again[0]["summary"]}
    assert len(of_one) == 6 and of_one["DP-B", 0.5]["patterns"] == 2
    listed = json.loads(sweep("list", "--folder", tmp_path, "--json").stdout)
    named = {f"kolchinsky2018/{name}" for name in ("types", "latency", "strategies")}
    assert named <= {entry["name"] for entry in listed["sweeps"]}
    assert listed["results"] == [{"folder": str(folder), "complete": True, "rows": 12}]
    assert "complete" in sweep("list", "--folder", tmp_path).stdout

    # Of a finished sweep the table says what its medians leave out.
    made = made_up_results(failing=MOST | {("sequence-4-0", "DP-B")})
    made[made["size"] == 3].assign(matches=1).to_parquet(folder / "results.parquet")
    lines = [line.split() for line in sweep("run", *TINY, "--folder", tmp_path).stdout.splitlines()]
    (greedy,) = (line for line in lines if line[:2] == ["sequence", "GREEDY"])
    assert greedy == ["sequence", "GREEDY", "lazy-nfa", "–", "–", "0", "4"]
    (trivial,) = (line for line in lines if line[:2] == ["sequence", "TRIVIAL"])
    assert trivial[-1] == "6"  # none missing of the six that it is compared over
    text = " ".join(map(" ".join, lines))
    assert "sequence: Patterns missing, of 6: GREEDY 4." in text
    assert "Not compared where more than half are missing: GREEDY." in text
    assert "conjunction:" not in text
    own = made[made["size"] == 3].assign(matches=1)
    own = own.drop_duplicates(["pattern_id", "generator"])
    for most, said in ((1, False), (4, True)):
        runs = [own.assign(events_per_second=100.0 * (1 + k % 2 * (most - 1))) for k in range(4)]
        pd.concat(runs).to_parquet(folder / "results.parquet")
        text = sweep("run", *TINY, "--folder", tmp_path).stdout
        noted = "Half of the runs of a plan span a factor of 4 (median over plans)" in text
        assert noted == said == ("span a factor" in text)


def test_user_patterns_and_a_user_defined_generator_from_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "tiny.toml").write_text(OWN)
    (tmp_path / "plugin.py").write_text(PLUGIN)
    common = [tmp_path / "tiny.toml", "--plugin", tmp_path / "plugin.py", "--json"]
    done = sweep(
        "run", *common, "--folder", tmp_path / "one",
        "--page", "--report", tmp_path / "site", "--notebooks", ROOT / "notebooks",
    )  # fmt: skip
    other = sweep("run", *common, "--folder", tmp_path / "two", "--set", "repetitions=2")
    assert (done.exit_code, other.exit_code) == (0, 0), done.output + other.output
    results = read_results(json.loads(done.stdout)[0]["results"])
    assert (results["status"] == OK).all()
    told = json.loads(done.stdout)[0]
    assert (
        told["page"] == str(tmp_path / "site" / "sweep_tiny.html")
        and told["user_defined_results"] == {}
    )
    page = read_page(Path(told["page"]).read_text(encoding="utf-8"))
    text = " ".join(page.text.split())
    assert "Your pages Tiny" in text and "BACKWARDS" in text and "user-defined" in text
    assert any(link.get("class") == "chart" for _, link in page.elements)
    cells = results.set_index(["pattern_id", "generator"])
    assert len(cells) == 4 and cells.loc[("user-falling", "BACKWARDS"), "plan"] == "c, b, a"
    assert set(results["pattern_set"]) == {"user"} and set(results["size"]) == {2, 3}
    assert results["pattern"].str.startswith("PATTERN SEQ(MSFT a, GOOG b").all()
    assert json.loads(results["configuration"].iloc[0])["user_patterns"].keys() == {
        "rising", "falling",
    }  # fmt: skip

    paths = [json.loads(told.stdout)[0]["folder"] for told in (done, other)]
    compared = sweep("compare", *paths, "--json")
    assert compared.exit_code == 0, compared.output
    found = json.loads(compared.stdout)
    assert [row["key"] for row in found["differences"]] == ["repetitions"]
    assert found["same_data"] is True and found["only_first"] == 0
    assert {row["verdict"] for row in found["ratios"]} == {"too few pairs"}
    text = sweep("compare", Path(paths[0]).name, Path(paths[1]), "--folder", tmp_path / "one",
                 "--by", "size", "--metric", "peak_bytes")  # fmt: skip
    assert text.exit_code == 0, text.output
    assert text.stdout.index("repetitions: 1 in the first") < text.stdout.index("peak bytes:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["latency", "--set", "patterns"], "must be FIELD=VALUE"),
        (["latency", "--set", "patterns=many"], "must be FIELD=VALUE"),
        (["latency", "--set", "pattern=3"], "did you mean 'patterns'"),
        (["latency", "--set", "data={identifiers=12, days=-1}"], "days must be at least 1"),
        (["latency", "--profile", "fast"], "is one of full, quick, not 'fast'"),
        (["latency", "types", "latency"], "two sweeps are named latency"),
        (["latencies"], "did you mean 'latency'"),
        (["latency", "--set", 'generators=["DP-C"]'], "no plan generator 'DP-C'"),
        (["latency", "--set", "data=\"nowhere\""], "nowhere"),
        (["latency", "--master", "yarn"], "a Spark session is running under master"),
    ],
)  # fmt: skip
def test_mistakes_are_told(
    spark: SparkSession, tmp_path: Path, arguments: list[str], message: str
) -> None:
    told = sweep("run", *arguments, "--folder", tmp_path)
    assert told.exit_code == 1 and message in told.stderr
    assert not list(tmp_path.glob("sweeps/*"))
