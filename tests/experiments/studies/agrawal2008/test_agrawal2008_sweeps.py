"""The sweeps of the study are the paper's experiments, and what their pages have as pattern sets and generators."""

from __future__ import annotations

from functools import cache

import pytest

from cepbench.experiments.studies.agrawal2008 import STUDY
from cepbench.experiments.studies.agrawal2008.bounds import bound_runs
from cepbench.experiments.studies.agrawal2008.runs import ENGINES, STRATEGIES, SYMBOLS
from cepbench.experiments.sweeps.sweep_file import Sweep, read_sweep
from cepbench.patterns.parse import parse

#: Notebook → its sweep.
SWEEPS = {
    "figure_8a_table_2": "queries", "figure_8b_8c": "window_size", "figure_8d": "queries",
    "figure_8e": "non_overlap", "figure_8f": "queries", "figure_8g_table_3": "merging",
    "price_increase": "price_increase",
}  # fmt: skip
EVERY_SWEEP = pytest.mark.parametrize("name", sorted(set(SWEEPS.values())))


@cache
def sweep_of(name: str, profile: str = "quick") -> Sweep:
    return read_sweep(f"{STUDY.key}/{name}", profile=profile)


@EVERY_SWEEP
@pytest.mark.parametrize("profile", STUDY.profiles)
def test_a_stream_has_400_windows_of_events_and_a_window_w_events_of_each_symbol(
    name: str, profile: str
) -> None:
    sweep = sweep_of(name, profile)
    config = sweep.config("data")
    short = (name, profile) == ("window_size", "quick")  # 100 windows, of long ones fewer
    for stream, made in sweep.data.items():
        (window,) = config.windows_on(stream)
        symbols = made.get("symbols", SYMBOLS)
        size = parse(f"PATTERN SEQ(A a) WITHIN {window or '1000 units'}").window.length // symbols
        events = (100 if short else 400) * size * symbols // SYMBOLS
        assert made["events"] == (min(events, 100_000) if short else events)
        assert made["kind"] == "stock-ticker"
        base = f"w{size}" if symbols == SYMBOLS else f"symbols{symbols}"
        if "p" in made:
            base = f"p{round(100 * made['p']):03d}"
        assert size == 500 or name in ("window_size", "merging")
        assert stream == f"{base}-seed{made['seed']}"
    seeds: dict[str, list[int]] = {}
    for stream, made in sweep.data.items():
        seeds.setdefault(stream.partition("-")[0], []).append(made["seed"])
    assert all(each == [0, 1, 2, 3, 4] for each in seeds.values())
    if name in ("window_size", "merging"):
        assert list(seeds) == ["w500", "w1000", "w1500", "w2000"]


@cache
def settings_of(notebook: str) -> set[str]:
    if notebook == "automaton":
        return {"step 5", "step 6"}
    config = sweep_of(SWEEPS[notebook]).config("data")
    queries = {
        name.replace("star", "*") + STRATEGIES[strategy]
        for name, _ in config.user_patterns
        for strategy in config.strategies
    }
    sizes = {stream.removeprefix("w").partition("-")[0] for stream in config.data_of}
    match notebook:
        case "figure_8b_8c":
            return sizes
        case "figure_8g_table_3":
            return {f"{query}, {size}" for query in queries for size in sizes}
        case "price_increase":
            of_streams = ("0.55", "0.7", "4 symbols")
            return {f"{query}, {name}" for query in queries for name in of_streams}
    return queries


@cache
def series_of(notebook: str) -> set[str]:
    if notebook == "automaton":
        return {"with it", "without it", *bound_runs()["generator"]}
    config = sweep_of(SWEEPS[notebook]).config("data")
    if notebook == "figure_8b_8c":
        return {
            name + strategy for name, _ in config.user_patterns for strategy in STRATEGIES.values()
        }
    return {ENGINES[name] for name in config.evaluators or ()}
