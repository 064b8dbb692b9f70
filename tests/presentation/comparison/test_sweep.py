"""Sweeps in a program: which patterns are drawn, what is measured of each, what the table shows."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError, StreamError
from cepbench.experiments.analysis.summary import summarize
from cepbench.experiments.sweeps.cells import RESULT_SCHEMA


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return cep.open_dataset("nasdaq-style/sample").stream()


def test_every_generator_plans_every_pattern_drawn(stream: cep.EventStream) -> None:
    told: list[tuple[int, int]] = []
    found = cep.sweep(
        2, stream, pattern_sets=("sequence", "conjunction"), sizes=(3, 4), repetitions=1, seconds=0,
        seed=5, on_progress=lambda *step: told.append(step),
    )  # fmt: skip
    assert list(found) == RESULT_SCHEMA.names and (found["status"] == "ok").all()
    patterns = found.drop_duplicates("pattern_id")
    assert len(patterns) == 8 and told == [(each, 8) for each in range(1, 9)]
    assert sorted(zip(patterns["pattern_set"], patterns["size"], strict=True)) == sorted(
        [(name, size) for name in ("sequence", "conjunction") for size in (3, 4)] * 2
    )
    usual = set(cep.compare(patterns["pattern"].iloc[0], stream, seconds=0)["generator"])
    for name, its in found.groupby("pattern_id"):
        assert set(its["generator"]) == usual, name
        assert its["matches"].nunique() == 1
        expected = cep.evaluate(its["pattern"].iloc[0], stream, output="count").metrics.matches
        assert its["matches"].iloc[0] == expected
    again = cep.sweep(2, stream, sizes=(3,), repetitions=1, seconds=0, seed=5)
    assert set(again["pattern"]) <= set(patterns["pattern"])
    other = cep.sweep(2, stream, sizes=(3,), repetitions=1, seconds=0, seed=6)
    assert set(other["pattern"]) != set(again["pattern"])


def test_patterns_of_ones_own_are_measured_by_name(stream: cep.EventStream) -> None:
    text = "PATTERN SEQ(CSCO a, MSFT b) WHERE a.price < b.price WITHIN 5 minutes"
    given = {"text": text, "parsed": cep.parse(text)}
    found = cep.sweep(given, stream, generators=["TRIVIAL", "DP-B"], repetitions=2, seconds=0)
    assert set(found["pattern_id"]) == {"user-text", "user-parsed"}
    assert found["matches"].nunique() == 1 and len(found) == 2 * 2 * 2


@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity(k)", "consuming"])
def test_a_strategy_of_their_own_is_kept(strategy: str) -> None:
    """Under contiguity events of other types stand between."""
    events = pd.DataFrame({"type": list("ABACBAB"), "time": range(7), "k": 1})
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    text = f"PATTERN SEQ(A a, B b) STRATEGY {strategy} WITHIN 5 units"
    found = cep.sweep({"it": text}, stream, generators=["TRIVIAL"], repetitions=1, seconds=0)
    assert set(found["strategy"]) == {strategy}
    expected = {"strict_contiguity": 2, "partition_contiguity(k)": 2, "consuming": 3}
    assert set(found["matches"]) == {expected[strategy]}
    assert found.averages()["patterns"].eq(1).all()


def test_it_prints_its_averages_and_draws_them(stream: cep.EventStream) -> None:
    found = cep.sweep(2, stream, sizes=(3,), repetitions=1, seconds=0)
    means = summarize(found, ["events_per_second"])
    assert found.averages().equals(means)
    means = means[means["size"].isna() & (means["statistic"] == "mean")]
    title, _, heads, *lines = str(found).splitlines()
    assert title.startswith(f"{len(found):,} runs of 2 patterns, 9 plan generators")
    assert heads.split()[:3] == ["patterns", "plan", "generator"] and len(lines) == 9
    assert [line.split()[1] for line in lines] == means["generator"].tolist()
    assert [line.split()[3] for line in lines] == [f"{its:,.0f}" for its in means["value"]]
    drawn = found.plot("peak_bytes").to_dict()["datasets"].values()
    assert {row["generator"] for rows in drawn for row in rows if "generator" in row} == set(
        found["generator"]
    )


def test_a_generator_that_fails_has_no_mean_and_says_why(stream: cep.EventStream) -> None:
    @cep.plan_generator("FAILS-ALWAYS", kind="order", default=False)
    def failing(problem: object, rng: object) -> list[int]:
        raise ValueError("<b>not</b> today")

    for others in ([], ["GREEDY"]):
        found = cep.sweep(
            2, stream, sizes=(3,), generators=["FAILS-ALWAYS", *others], repetitions=1, seconds=0
        )
        first, *_, told = str(found).splitlines()
        assert first.startswith(f"{len(found)} runs of 2 patterns")
        assert told.startswith("FAILS-ALWAYS: 2 runs error, such as") and "not</b> today" in told
        page = found._repr_html_()
        assert "2 runs error" in page and "<b>" not in page
        found.plot().to_dict()
    line = next(line for line in str(found).splitlines() if "GREEDY" in line)
    assert line.split()[-1] == "2"


@pytest.mark.parametrize(
    ("patterns", "changes", "error", "told"),
    [
        ("x", {}, ExperimentError, "patterns must be a number of patterns to draw, or"),
        ({}, {}, ExperimentError, "patterns must be a number of patterns to draw, or"),
        (0, {}, ExperimentError, "patterns must be at least 1, not 0"),
        (1, {"attribute": "nope"}, StreamError, "no attribute 'nope'; it has price"),
        (1, {"sizes": (99,)}, ExperimentError, "pattern size 99: sizes run from 2"),
        (1, {"pattern_sets": ("seqence",)}, ExperimentError, "sequence"),
        ({"p": "PATTERN SEQ(NOPE a, MSFT b) WITHIN 5 minutes"}, {}, ExperimentError, "type 'NOPE'"),
    ],
)
def test_what_cannot_be_measured_says_why(
    stream: cep.EventStream, patterns: Any, changes: dict[str, Any], error: type, told: str
) -> None:
    with pytest.raises(error, match=told):
        cep.sweep(patterns, stream, repetitions=1, seconds=0, **changes)
