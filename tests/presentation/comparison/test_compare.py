"""Comparisons: which plan is run how often, in what order, and what rows and tables say of it."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.measure import WARM_UP_EVENTS
from cepbench.presentation.comparison.compare import compare
from cepbench.presentation.comparison.table import Comparison
from tests.drawn_events import drawn_stream, normal
from tests.presentation.reporting.offline import Page, read_page

PATTERN = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x AND b.x > c.x WITHIN 60 seconds")

#: Four orders, two of them equal, and the seconds that each takes by the clock of these tests.
ORDERS = {"SLOW": (0, 1, 2), "FAST": (2, 1, 0), "SAME": (2, 1, 0), "OTHER": (1, 0, 2)}
EVENTS = 5_100
SECONDS = {"a, b, c": 3 / 4, "c, b, a": 1 / 32, "b, a, c": 1 / 16}


@pytest.fixture(scope="module")
def stream() -> cep.EventStream:
    return drawn_stream(EVENTS, "AABCCCC", seed=7, seconds=4 * EVENTS, x=normal)


@pytest.fixture
def generators() -> list[cep.PlanGenerator]:
    def planner(order: tuple[int, ...]) -> Any:
        return lambda problem, rng: order

    some = cep.PLAN_GENERATORS["GREEDY"]
    return [replace(some, name=name, function=planner(its)) for name, its in ORDERS.items()]


@dataclass
class Clock:
    """What the machine's clock shows where only runs move it, and the plans in the order of runs.

    Each plan's run takes its seconds, or where runs slow down, as many times as there were runs;
    or a run raises an error.
    """

    now: float = 0.0
    slower: bool = False
    ran: list[str] = field(default_factory=list)
    errors: dict[int, Exception] = field(default_factory=dict)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(stream: cep.EventStream, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock, and an evaluator ``clocked`` that moves it."""
    found = Clock()

    @cep.plan_evaluator("clocked")
    def clocked(pattern: Any, events: Any, plan: Any) -> Any:
        matches = cep.evaluate(pattern, events, plan, evaluator="tree").matches
        if len(events) == len(stream):  # the warm-up has fewer
            found.ran.append(plan.text)
            found.now += SECONDS[plan.text] * (len(found.ran) if found.slower else 1)
            if error := found.errors.get(len(found.ran)):
                raise error
        return matches

    assert len(stream) > WARM_UP_EVENTS
    monkeypatch.setattr(time, "perf_counter", found)
    return found


@pytest.fixture
def clocked(
    stream: cep.EventStream, generators: list[cep.PlanGenerator], clock: Clock
) -> Callable[..., Comparison]:
    """A comparison of the plans of some generators by the clock."""

    def clocked(*names: str, seconds: float = 0, **how: Any) -> Comparison:
        chosen = [generator for generator in generators if generator.name in names]
        how |= {"generators": chosen, "evaluators": ["clocked"]}
        return compare(PATTERN, stream, seconds=seconds, **how)

    return clocked


def test_every_different_plan_is_run_for_some_time_and_the_runs_alternate(clocked, clock) -> None:
    table = clocked(*ORDERS, repetitions=2, seconds=1.0)
    ran = clock.ran
    # Two repetitions are 1.5 seconds of the slow one; 32 and 16 runs make a second of the others.
    assert Counter(ran) == {"a, b, c": 2, "c, b, a": 32, "b, a, c": 16}
    assert [row["runs"] for row in table.to_dict("records")] == [2, 32, 32, 16]
    assert set(ran[:3]) == set(ran[3:6]) == set(SECONDS)
    spent = Counter({name: 2 * SECONDS[name] for name in SECONDS})
    for name in ran[6:]:
        assert spent[name] == min(spent.values())
        spent[name] += SECONDS[name]


def test_with_no_time_asked_for_there_are_the_repetitions(clocked, clock: Clock) -> None:
    told: list[tuple[int, int]] = []
    clocked(*ORDERS, repetitions=3, on_progress=lambda *numbers: told.append(numbers))
    assert Counter(clock.ran) == dict.fromkeys(SECONDS, 3)
    assert told == [(number, 12) for number in range(13)]
    told.clear()
    clocked(*ORDERS, repetitions=3, seconds=1.0, on_progress=lambda *its: told.append(its))
    assert all(finished <= total for finished, total in told) and told[-1][0] > 12


def test_generators_of_one_plan_share_its_figures(clocked) -> None:
    table = clocked(*ORDERS, repetitions=1, seconds=0.3)
    rows = table.set_index("generator")
    measured = ["events_per_second", "events_per_second_q1", "events_per_second_q3", "runs"]
    assert rows.loc["FAST", measured].tolist() == rows.loc["SAME", measured].tolist()
    assert rows["events_per_second"].nunique() == 3
    assert rows["measured_with"].dropna().to_dict() == {"SAME": "FAST"}
    page = read_page(table._repr_html_())
    assert "those of FAST" in page.text and "those of SAME" not in page.text


def test_rates_are_medians_with_quartiles(clocked, clock: Clock, stream) -> None:
    clock.slower = True
    table = clocked("SLOW", repetitions=5)
    # The runs take 1, 2, 3, 4 and 5 times 3/4 seconds.
    for column, seconds in (("", 9 / 4), ("_q1", 3), ("_q3", 3 / 2)):
        assert table[f"events_per_second{column}"].item() == pytest.approx(len(stream) / seconds)


def test_a_run_that_does_not_end_is_not_tried_until_time_is_up(clocked, clock: Clock) -> None:
    too_many = cep.errors.PartialMatchLimitError("more than 1 partial match")
    clock.errors = dict.fromkeys(range(1, 99), too_many)
    table = clocked("SLOW", "OTHER", repetitions=2, seconds=1.0)
    assert list(table["status"]) == ["partial_match_limit"] * 2
    assert Counter(clock.ran) == {"a, b, c": 2, "b, a, c": 2}
    assert table["runs"].isna().all()


def test_one_run_that_fails_is_told_whichever_it_is(clocked, clock: Clock) -> None:
    clock.errors = {2: MemoryError("too much")}
    table = clocked("SLOW", repetitions=3)
    (row,) = table.to_dict("records")
    told = "EvaluationError: the evaluator clocked failed: MemoryError('too much')"
    assert (row["status"], row["reason"]) == ("error", told)
    assert pd.isna(row["events_per_second"]) and pd.isna(row["runs"])
    assert told in read_page(table._repr_html_()).text


def test_plans_are_shared_within_an_evaluator_only(
    stream: cep.EventStream, generators: list[cep.PlanGenerator]
) -> None:
    table = compare(
        PATTERN, stream, generators=generators[1:3], evaluators=["lazy-nfa", "tree"],
        repetitions=1, seconds=0,
    )  # fmt: skip
    rows = table.set_index(["generator", "evaluator"])
    for evaluator in ("lazy-nfa", "tree"):
        assert rows.loc[("FAST", evaluator), "measured_with"] is None
        assert rows.loc[("SAME", evaluator), "measured_with"] == "FAST"
        assert rows.loc[("FAST", evaluator), "runs"] == 1


def test_statistics_are_measured_with_the_seed(
    stream: cep.EventStream, generators: list[cep.PlanGenerator]
) -> None:
    """Of more pairs than are sampled; so the cost tells the seed."""
    pattern = cep.parse("PATTERN SEQ(A a, C c) WHERE a.x < c.x AND a.x > 3 WITHIN 1 hours")
    order = replace(generators[0], function=lambda problem, rng: (0, 1))
    costs = {}
    for seed in (5, 6):
        table = compare(
            pattern, stream, generators=[order], repetitions=1, seconds=0, seed=seed,
            evaluators=["tree"],
        )  # fmt: skip
        statistics = cep.measure_statistics(pattern, stream, seed=seed)
        costs[seed] = cep.plan(pattern, statistics, order).cost
        assert table["cost"].item() == pytest.approx(costs[seed])
    assert costs[5] != pytest.approx(costs[6])


def test_every_row_of_the_table_is_as_wide_as_its_head(
    stream: cep.EventStream, generators: list[cep.PlanGenerator]
) -> None:
    def refusing(problem: Any, rng: Any) -> Any:
        raise cep.errors.PlanningRefusedError("not this one")

    chosen = [*generators[:3], replace(generators[0], name="NONE", function=refusing)]
    table = compare(PATTERN, stream, generators=chosen, repetitions=1, seconds=0)
    assert table["status"].iloc[-1] == "refused"
    head, *rows = [
        sum(int(attributes.get("colspan", 1)) for attributes in cells)
        for cells in cells_by_row(read_page(table._repr_html_()))
    ]
    assert rows == [head] * 4


#: A pattern of plans, one of methods, and a workload of planners.
ASKED = {
    "generator": PATTERN,
    "method": cep.parse("PATTERN SEQ(A a, B b) AGG COUNT(*) WITHIN 60 seconds"),
    "planner": cep.Workload({"one": PATTERN, "two": "PATTERN SEQ(A a, B b) WITHIN 60 seconds"}),
}


@pytest.fixture(scope="module", params=ASKED)
def comparison(request: pytest.FixtureRequest, stream: cep.EventStream) -> Comparison:
    return compare(ASKED[request.param], stream, repetitions=1, seconds=0)


def test_a_comparison_prints_every_row_and_what_was_asked(comparison: Comparison) -> None:
    text = str(comparison)
    assert text.startswith(comparison.pattern) and f"{EVENTS:,} events" in text
    (kind,) = {"generator", "method", "planner"} & set(comparison)
    lines = [line.split() for line in text.splitlines()]
    assert [kind] in [line[:1] for line in lines]
    printed = [line[0] for line in lines if line and line[0] in set(comparison[kind])]
    assert printed == comparison[kind].tolist()
    narrow, wide = (
        max(map(len, comparison.text(width).removeprefix(comparison.pattern).splitlines()))
        for width in (80, 300)
    )
    # Neither names nor times, which have two digits more on a slow machine, are cut.
    assert narrow <= {"planner": 110, "method": 84}.get(kind, 80) < wide


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_comparison_of_no_events_has_no_bars(asked: Any, stream: cep.EventStream) -> None:
    table = compare(asked, stream[:0], repetitions=1, seconds=0)
    assert "0 events" in str(table) and "█" not in str(table)
    assert "nan" not in table._repr_html_()


def test_a_comparison_draws_every_run_that_ended_well(comparison: Comparison) -> None:
    chart = comparison.plot().to_dict()
    (rows,) = chart["datasets"].values()
    ended = comparison[comparison["status"] == "ok"]
    assert [row["events_per_second"] for row in rows] == ended["events_per_second"].tolist()
    assert len({row["series"] for row in rows}) == len(rows) > 3
    assert re.findall(r'"height": (\d+)', json.dumps(chart)) == [f"{20 * len(rows)}"] * 2


def test_a_comparison_is_saved_as_its_suffix_says(comparison: Comparison, tmp_path: Path) -> None:
    readers = {".csv": pd.read_csv, ".json": pd.read_json, ".parquet": pd.read_parquet}
    for suffix, read in readers.items():
        comparison.save(tmp_path / f"all{suffix}")
        again = read(tmp_path / f"all{suffix}")
        assert list(again) == list(comparison)
        assert again["status"].tolist() == comparison["status"].tolist()
        assert again["peak_bytes"].tolist() == pytest.approx(
            comparison["peak_bytes"].tolist(), nan_ok=True
        )
    for suffix, begins in ((".png", b"\x89PNG"), (".svg", b"<svg"), (".html", b"<!DOCTYPE html>")):
        comparison.save(tmp_path / f"all{suffix}")
        assert (tmp_path / f"all{suffix}").read_bytes().lstrip().startswith(begins)
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert comparison._repr_html_() in page and "https://cdn" not in page


def test_a_file_that_cannot_be_written_is_named(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"one of \.csv, \.html, .*, not '\.pdf'"):
        comparison.save(tmp_path / "all.pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match=r"cannot write .*file/all\.csv"):
        comparison.save(tmp_path / "file" / "all.csv")


def cells_by_row(page: Page) -> list[list[dict[str, Any]]]:
    rows: list[list[dict[str, Any]]] = []
    for tag, attributes in page.elements:
        if tag == "tr":
            rows.append([])
        elif tag in ("td", "th"):
            rows[-1].append(attributes)
    return rows
