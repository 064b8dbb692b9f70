"""The sweeps of the study are the paper's experiments, and what their pages have as pattern sets and generators."""

from __future__ import annotations

from functools import cache

import pytest

from cepbench.experiments.studies.qi2014 import STUDY
from cepbench.experiments.studies.qi2014.expiry import METHODS
from cepbench.experiments.studies.qi2014.memory import LENGTHS, WINDOWS
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.sweep_file import Sweep, read_sweep
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.ticker_trades import TICKERS, TickerTrades

SWEEPS = tuple(sorted(path.stem for path in (STUDY.folder / "sweeps").glob("*.toml")))
#: Sweep → tickers of its streams: those of its queries, or the most there are.
TYPES = {"construction": 8, "prefixes": 40, "scalability": 10, "tails": 40}
EVERY_SWEEP = pytest.mark.parametrize("name", SWEEPS)


@cache
def sweep_of(name: str, profile: str = "quick") -> Sweep:
    return read_sweep(f"{STUDY.key}/{name}", profile=profile)


@cache
def config_of(name: str) -> SweepConfig:
    return sweep_of(name).config("data")


def tickers(pattern: Pattern) -> list[str]:
    return [str(variable.type) for variable in pattern.variables]


def milliseconds(pattern: Pattern) -> float:
    assert pattern.window.exclusive
    return (pattern.window.length + 1) / 1e6


@EVERY_SWEEP
@pytest.mark.parametrize("profile", STUDY.profiles)
def test_streams_are_named_by_their_rate(name: str, profile: str) -> None:
    sweep = sweep_of(name, profile)
    assert sweep.cells()
    for stream, made in sweep.data.items():
        assert made["kind"] == TickerTrades.kind
        assert stream == f"r{made['per_window']}-seed{made['seed']}"
        assert made["types"] == TYPES.get(name, 5)
        # The window is filled several times.
        assert made["events"] >= 3 * made["types"] * made["per_window"]
        assert profile == "full" or made["events"] <= 600_000
    rates = {made["per_window"] for made in sweep.data.values()}
    seeds = [(made["per_window"], made["seed"]) for made in sweep.data.values()]
    assert sorted(seeds) == [(rate, seed) for rate in sorted(rates) for seed in range(5)]


def test_ten_to_three_hundred_events_are_active() -> None:
    for name, longest in (("lengths", 1000), ("windows", 1000), ("scalability", 2000)):
        rates = {made["per_window"] for made in sweep_of(name).data.values()}
        windows = [milliseconds(parse(text)) for _, text in config_of(name).user_patterns]
        assert max(windows) == longest and max(rates) == 300
        assert min(rates) * min(windows) / 1000 <= (100 if name == "scalability" else 10)
    # What a trade takes at length 5 is measured on both sides of the paper's factor.
    assert {made["per_window"] for made in sweep_of("lengths").data.values()} >= {10, 40, 60, 100}


def test_lengths_windows_and_the_negated_ticker_are_the_papers() -> None:
    short = [parse(text) for _, text in config_of("lengths").user_patterns]
    assert [tickers(its) for its in short] == [list(TICKERS[:n]) for n in range(2, 6)]
    assert {milliseconds(its) for its in short} == {1000}
    counted = [parse(text) for _, text in config_of("counted").user_patterns]
    assert counted == [its.without_aggregate() for its in short]
    assert sweep_of("counted").data == sweep_of("lengths").data
    assert sweep_of("counted_windows").data == sweep_of("windows").data
    counted = [parse(text) for _, text in config_of("counted_windows").user_patterns]
    (shortest, *windows) = [parse(text) for _, text in config_of("windows").user_patterns]
    assert tickers(shortest) == ["DELL", "IPIX"] and milliseconds(shortest) == 100
    assert counted == [its.without_aggregate() for its in windows]
    assert {tuple(tickers(its)) for its in windows} == {("DELL", "IPIX", "AMAT")}
    assert [milliseconds(its) for its in windows] == [*range(100, 1001, 100)]
    for profile, lengths in (("quick", (6, 8, 10)), ("full", range(6, 11))):
        config = sweep_of("scalability", profile).config("data")
        long = [parse(text) for _, text in config.user_patterns]
        assert sorted((len(its.positive), milliseconds(its)) for its in long) == [
            (length, window) for length in lengths for window in (1000, 2000)
        ]
    plain, negated = (parse(text) for _, text in config_of("negated_ticker").user_patterns)
    assert tickers(plain) == ["DELL", "IPIX", "AMAT"] and not plain.negated
    assert tickers(negated) == ["DELL", "IPIX", "QQQ", "AMAT"]
    assert [its.type for its in negated.negated] == ["QQQ"]


def settings_and_series(notebook: str) -> tuple[set[str], set[str]]:
    """What the results of a page have as pattern sets and as generators."""
    match notebook:
        case "figure_12":
            methods = {*config_of("lengths").methods, "sase"}
            lengths = {str(n) for n in range(2, 6)}
            by_rate = {f"{method}, length {n}" for method in methods for n in lengths}
            factors = {
                f"{of} {words}" for of in ("16,736", "10,000") for words in ("in time", "in work")
            }
            return lengths | factors, methods | by_rate | {"two-step / a-seq"}
        case "figure_13":
            return {str(w) for w in range(100, 1001, 100)}, {*config_of("windows").methods}
        case "figure_14":
            methods = config_of("scalability").methods
            series = {f"{name}, {window} ms" for name in methods for window in (1000, 2000)}
            lengths = {str(n) for n in LENGTHS} | {f"memory at length {n}" for n in LENGTHS}
            kept = {f"two-step, {window} ms" for window in WINDOWS}
            settings = lengths | {"extremes", "q1", "q2"}
            return settings, series | kept | {*config_of("negated_ticker").methods}
        case "figure_15":
            config = config_of("construction")
            series = {*config.methods, *config.sharing}
            windows = {str(w) for w in range(100, 1001, 100)}
            reached = {f"STEINER / {under}" for under in ("a-seq", "CHOP-CONNECT")}
            return windows | {"100 in time"}, series | reached
        case "figure_16":
            configs = [config_of("prefixes"), config_of("tails")]
            named = {name for config in configs for name, _ in config.user_workloads}
            words = {f"{its[1]} queries, {its[3:-1]} {its[-1]}" for its in named}
            series = {name for config in configs for name in (*config.methods, *config.sharing)}
            return words, series | {f"saved by {sharing}" for sharing in series}
    return set(), {f"{method}, length 10" for method in METHODS}
