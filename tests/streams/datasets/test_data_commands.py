"""``cepbench data``: what it writes, and how it fails; what needs Spark is tested beside Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.presentation.commands.app import app


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["data", *arguments])


def answer(*arguments: str) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_list(catalogue: Path) -> None:
    listed = {row["name"]: row for row in answer("list")}
    assert listed["nasdaq-style/sample"]["events"] == 22_611
    assert listed["nasdaq-style/quick"]["at_hand"] == "made on first use"
    shown = run("list").stdout.splitlines()
    assert shown[0].split()[:2] == ["data", "set"] and len(shown) == 1 + len(listed)


def test_describe(catalogue: Path) -> None:
    found = answer("describe", "minute-bars/sample")
    assert found["events"] == sum(found["types"].values()) == 1_381
    assert {"column": "volume", "type": "int64"}.items() <= next(
        row for row in found["columns"] if row["column"] == "volume"
    ).items()
    assert found["patterns"]["gap"]["text"].startswith("PATTERN SEQ(INTC a")
    shown = run("describe", "minute-bars/sample").stdout
    assert shown.strip() == cep.open_dataset("minute-bars/sample").describe()


def test_stats_are_those_of_the_stream(catalogue: Path) -> None:
    name = "nasdaq-style/mine"
    made = answer("make", name, "--identifiers", "6", "--days", "2", "--seed", "3")
    by_file = {row["symbol"]: row for row in answer("stats", name)}
    stream = cep.open_dataset(name).stream()
    times = stream.to_pandas()["time"]
    by_day = times.groupby(times.dt.date)
    active = (by_day.max() - by_day.min()).dt.total_seconds().sum()
    for symbol, count in stream.counts_by_type().items():
        assert by_file[symbol]["events"] == made["types"][symbol] == count
        assert by_file[symbol]["rate"] == pytest.approx(count / active)
        assert by_file[symbol]["standard_error"] == pytest.approx(count**0.5 / active)
    shown = run("stats", name).stdout.splitlines()
    assert shown[0].split() == ["type", "events", "per", "minute", "±"] and len(shown) == 7
    for line in shown[1:]:
        symbol, count, rate, error = line.split()
        row = by_file[symbol]
        assert int(count.replace(",", "")) == row["events"]
        assert float(rate) == pytest.approx(60 * row["rate"], rel=1e-3)
        assert float(error) == pytest.approx(60 * row["standard_error"], rel=1e-3)


@pytest.mark.parametrize("pattern", ["conjunction", "PATTERN SEQ(MSFT a, GOOG b) WITHIN 5 minutes"])
def test_stats_of_a_pattern(catalogue: Path, pattern: str) -> None:
    dataset = cep.open_dataset("nasdaq-style/sample")
    parsed = dataset.patterns.get(pattern) or cep.parse(pattern)
    measured = cep.measure_statistics(parsed, dataset.stream(parsed), seed=2)
    found = answer("stats", dataset.name, "--pattern", pattern, "--seed", "2")
    assert found["pattern"] == str(parsed)
    assert found["statistics"] == json.loads(json.dumps(measured.to_dict()))
    shown = run("stats", dataset.name, "--pattern", pattern, "--seed", "2").stdout
    assert measured.describe() in shown


def test_make_keeps_what_is_there(catalogue: Path) -> None:
    first = answer("make", "ten-symbols/mine", "--events", "300")
    again = run("make", "ten-symbols/mine", "--events", "300")
    assert again.exit_code == 0 and "already exists" in again.stderr
    assert "300" in again.stdout and first["parameters"] == {"events": 300, "seed": 0}
    seeded = answer("make", "ten-symbols/seeded", "--events", "300", "--set", "seed=3")
    assert seeded["parameters"] == {**first["parameters"], "seed": 3}
    other = run("make", "ten-symbols/mine", "--events", "301")
    assert other.exit_code == 1 and "events 300 found, 301 requested" in other.stderr
    assert answer("make", "ten-symbols/sample")["events"] == 8_000


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["describe", "nasdaq"], 1, "did you mean 'nasdaq-style'"),
        (["stats", "lobster/sample", "--pattern", "clmbing"], 1, "did you mean 'climbing'"),
        (["stats", "lobster/sample", "--pattern", "PATTERN SEQ(A a"], 1, "line 1, column"),
        (["make", "nothing/here"], 1, "no data set or path 'nothing/here'"),
        (["make", "lobster/mine"], 1, "cepbench data ingest lobster FILES"),
        (["make", "nasdaq-style/mine", "--days", "2"], 2, "needs --identifiers and --days"),
        (["make", "ten-symbols/mine"], 2, "needs --events"),
        (["make", "nasdaq-style/quick", "--seed", "1"], 2, "such as nasdaq-style/mine"),
        (["ingest", "bars", "x.txt", "--name", "x"], 2, "'bars' is not one of 'minute-bars', 'lobster'"),
        (["ingest", "lobster", "x.csv"], 2, "give one of --name and --output"),
        (["ingest", "lobster", "x.csv", "--name", "x"], 1, "there is no file x.csv"),
        (["ingest", "lobster", "x.csv", "--name", "sample"], 2, "choose another"),
        (["ingest", "minute-bars", "x", "--name", "x", "--date", "2026-01-05"], 2, "for lobster"),
        (["describe", "sampel"], 1, "did you mean 'company-trades/sample' or 'evacuation/sample' or"),
        (["describe", "qqqqqqqq/quick"], 1, "did you mean 'nasdaq-style/quick' or 'stock-rates/quick'"),
        (["make", "web-log/mine"], 2, "needs --days"),
        (["make", "web-log/mine", "--days", "30"], 1, "days must be at most 29"),
        (["make", "web-log/mine", "--days", "2", "--set", "day=3"], 1, "one of days, seed, not 'day'"),
        (["make", "stock-rates/mine", "--events", "2", "--set", "rates"], 1, "must be FIELD=VALUE"),
        (["make", "stock-rates/quick", "--set", "seed=3"], 2, "such as stock-rates/mine"),
        (["make", "ten-symbols/mine", "--events", "9", "--set", "events=8"], 2, "events is given by --events, too"),
        (["make", "ten-symbols/mine", "--set", "events=8", "--set", "events=9"], 1, "--set events: it is given twice"),
        (["describe", "nasdaq-stile/quik"], 1, "did you mean 'nasdaq-style/quick'?"),
        (["describe", "x" * 100_000], 1, "no data set or path 'xxx"),
    ],
)  # fmt: skip
def test_mistakes_say_what_to_do(
    catalogue: Path, arguments: list[str], code: int, told: str
) -> None:
    done = run(*arguments)
    assert done.exit_code == code
    assert done.stdout == "" and told in " ".join(done.stderr.split())
    assert len(done.stderr) < 1_000


#: What is no name: it leads elsewhere, is no name on some system, or is code where it is shown.
NO_NAMES = (
    "../../../evil", "..", ".hidden", "/tmp/evil", "a/b", "a\\b", "<script>", "-x", "a b", "a\nb",
    "x" * 65, "café<", "a:b", "nul\0",
)  # fmt: skip


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_cannot_leave_the_catalogue(catalogue: Path, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    bars = str(catalogue / "minute-bars" / "sample.txt")
    told = "is not a valid name of a data set: use at most 64 letters"
    for arguments in (
        ["make", f"nasdaq-style/{name}", "--identifiers", "2", "--days", "1"],
        ["make", f"ten-symbols/{name}", "--events", "9"],
        ["ingest", "minute-bars", bars, f"--name={name}"],
        ["ingest", "lobster", bars, f"--name={name}"],
        ["describe", f"nasdaq-style/{name}"],
        ["stats", f"nasdaq-style/{name}"],
    ):
        done = run(*arguments)
        assert done.exit_code == 1 and told in done.stderr, arguments
    with pytest.raises(DatasetError, match=told):
        cep.open_dataset(f"nasdaq-style/{name}")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["mine", "2008", "Börse_1.2-a", "x" * 64])
def test_names_may_be(catalogue: Path, name: str) -> None:
    assert answer("make", f"ten-symbols/{name}", "--events", "9")["name"] == f"ten-symbols/{name}"
    assert cep.open_dataset(f"ten-symbols/{name}").events == 9


def test_a_variant_is_found_without_its_data_set(catalogue: Path) -> None:
    answer("make", "ten-symbols/feb1", "--events", "9")
    for wrong in ("feb1", "feb2", "ten/feb1", "tensymbols/feb1"):
        assert "did you mean 'ten-symbols/feb1'?" in run("describe", wrong).stderr
    with pytest.raises(DatasetError, match="did you mean 'ten-symbols/feb1'"):
        cep.open_dataset("feb1")
    with pytest.raises(DatasetError, match="takes a name or path, not an int"):
        cep.open_dataset(1)  # type: ignore[call-overload]
