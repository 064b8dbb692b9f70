"""Wherever a seed is an argument: the same one gives the same, another one something else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench
from cepbench.experiments.analysis.checks import ClaimCheck, Selection, measure
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.experiments.analysis.gains import gains_by_weight, gains_over
from cepbench.experiments.analysis.significance import EXACT_PAIRS, sign_flip_p_values
from cepbench.experiments.analysis.summary import paired_ratios, summarize
from cepbench.experiments.analysis.sweep_comparison import compare_sweeps
from cepbench.experiments.conformance.evaluator_checks import check_stream
from cepbench.experiments.conformance.generator_problems import check_problem
from cepbench.experiments.studies.kolchinsky2018.distances import distance_summary
from cepbench.experiments.studies.kolchinsky2018.figure_data import (
    NATIVE,
    cost_points,
    latency_points,
)
from cepbench.experiments.studies.kolchinsky2018.planning import PlanningCase, planning_summary
from cepbench.experiments.studies.kolchinsky2018.robustness import planning_regrets
from cepbench.experiments.sweeps.estimate import choose_sample
from cepbench.experiments.sweeps.workload import PatternSpec, draw_workload
from cepbench.patterns.parse import parse
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.joint import measure_joint
from cepbench.planning.statistics.measure import measure_statistics, sample_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.company_trades import CompanyTrades
from cepbench.streams.evacuation import Evacuation
from cepbench.streams.event_stream import EventStream
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.streams.stock_rates import StockRates
from cepbench.streams.stock_ticker import StockTicker
from cepbench.streams.ten_symbols import ten_symbols
from cepbench.streams.ticker_trades import TickerTrades
from cepbench.streams.web_log import WebLog
from tests.drawn_events import drawn_stream, uniform
from tests.experiments.analysis.test_sweep_comparison import made_up_sweep
from tests.experiments.made_rows import made_rows

PATTERN = parse("PATTERN AND(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 60 units")
RATES = {f"T{k}": 1.0 + k for k in range(12)}
NAMES = [f"v{k}" for k in range(8)]
#: Default of a parameter ``seed``.
_DEFAULT = re.compile(r"\bseed: int = (\d+)[,)]")
CASE = PlanningCase(
    PatternSpec("sequence-3-0", "sequence", 3, str(PATTERN), 0),
    Statistics(rates={"a": 2.0, "b": 2.1, "c": 2.2}, selectivities={("a", "b"): 0.5}),
)


def stream() -> EventStream:
    return drawn_stream(600, "ABC", x=uniform)


METRICS = (
    "events_per_second", "seconds", "events", "partial_matches_created", "peak_bytes",
    "peak_partial_matches", "mean_partial_matches", "latency_mean", "normalized",
    "search_seconds", "distance", "plan_seconds",
)  # fmt: skip


def results(seed: int = 0) -> pd.DataFrame:
    """A sweep's table: 15 patterns of two sizes, two generators of each kind of plan."""
    rng = np.random.default_rng(seed)

    def numbers(run: Any) -> dict[str, Any]:
        pattern = f"p{run.number}"
        return {
            "size": 3 + run.number % 2, "pattern_id": pattern, "pattern": pattern, "matches": 7,
            "evaluator": "tree", "plan": f"plan {run.number} {run.generator}",
            "plan_log_cost": rng.normal(), "log_cost": rng.normal(),
            **{metric: rng.lognormal() for metric in METRICS},
        }  # fmt: skip

    generators = ("EFREQ", "GREEDY", "ZSTREAM", "DP-B")
    return pd.DataFrame(made_rows(numbers, number=range(15), generator=generators))


def numbers(table: pd.DataFrame) -> Any:
    return table.to_csv()


#: What draws -> what it gives with a seed, as something that can be compared.
DRAWS: dict[str, Callable[[int], Any]] = {
    "measure_statistics": lambda seed: measure_statistics(PATTERN, stream(), seed=seed, pairs=99),
    "sample_statistics": lambda seed: sample_statistics(PATTERN, stream(), seed=seed, pairs=99),
    "measure_joint": lambda seed: measure_joint(
        PATTERN, stream(), seed=seed, draws=99
    ).held.tolist(),
    "plan": lambda seed: (
        plan(
            parse(f"PATTERN AND({', '.join(f'A {name}' for name in NAMES)}) WITHIN 1 units"),
            Statistics(cardinalities=dict.fromkeys(NAMES, 4.0)),
            "II-RANDOM",
            seed=seed,
        ).order
    ),
    "ten_symbols": lambda seed: numbers(ten_symbols(50, seed)),
    "NasdaqStyle": lambda seed: NasdaqStyle(3, 1, seed=seed).table(np.arange(3), 0, 1).to_pylist(),
    "CompanyTrades": lambda seed: CompanyTrades(9, seed).table(0, 9).to_pylist(),
    "Evacuation": lambda seed: Evacuation(9, seed).table(0, 9).to_pylist(),
    "StockRates": lambda seed: StockRates(9, seed).table(0, 9).to_pylist(),
    "StockTicker": lambda seed: StockTicker(9, seed).table(0, 9).to_pylist(),
    "TickerTrades": lambda seed: TickerTrades(9, seed).table(0, 9).to_pylist(),
    "WebLog": lambda seed: WebLog(1, seed).table(0)[:9].to_pylist(),
    "draw_workload": lambda seed: [
        spec.text for spec in draw_workload(RATES, sizes=(3,), patterns=3, seed=seed)
    ],
    "check_stream": lambda seed: numbers(check_stream(seed).to_pandas()),
    "check_problem": lambda seed: check_problem("sequence-5", seed=seed).log_cardinality.tolist(),
    "choose_sample": lambda seed: [
        one.spec.pattern_id
        for one in choose_sample(
            draw_workload(RATES, pattern_sets=["sequence"], sizes=(3,), patterns=30, seed=0),
            RATES,
            seed=seed,
        )
    ],
    "summarize": lambda seed: numbers(summarize(results(), seed=seed, resamples=40)),
    "paired_ratios": lambda seed: numbers(
        paired_ratios(results(), "peak_bytes", "GREEDY", "EFREQ", seed=seed, resamples=40)
    ),
    "planning_regrets": lambda seed: numbers(
        planning_regrets([CASE], ["GREEDY"], factors=[3.0], draws=1, seed=seed)
    ),
    "checks.measure": lambda seed: measure(
        ClaimCheck("ratio", "peak_bytes", Selection(("GREEDY",)), Selection(("EFREQ",))),
        results(),
        seed=seed,
        resamples=40,
    ),
    "cost_points": lambda seed: numbers(cost_points(results(), 5, seed=seed)),
    "cost_fit": lambda seed: numbers(cost_fit(results(), seed=seed, resamples=40)),
    "latency_points": lambda seed: numbers(latency_points(results(), seed=seed, resamples=40)),
    "distance_summary": lambda seed: numbers(distance_summary(results(), seed=seed, resamples=40)),
    "planning_summary": lambda seed: numbers(planning_summary(results(), seed=seed, resamples=40)),
    "compare_sweeps": lambda seed: numbers(
        compare_sweeps(
            made_up_sweep(1),
            made_up_sweep(2),
            metrics=["events_per_second"],
            seed=seed,
            resamples=40,
        ).ratios
    ),
    "sign_flip_p_values": lambda seed: sign_flip_p_values(
        [np.arange(EXACT_PAIRS + 1) - 4.0], seed=seed
    ).tolist(),
    "gains_over": lambda seed: numbers(
        gains_over(results(), "events_per_second", NATIVE, seed=seed)
    ),
    "gains_by_weight": lambda seed: numbers(
        gains_by_weight(results(), "events_per_second", "GREEDY", "EFREQ", parts=2, seed=seed)
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_seed_decides(name: str) -> None:
    first, again, other = (DRAWS[name](seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_two_pairs_of_variables_have_draws_of_their_own() -> None:
    # The same events and the same condition twice: draws in common would give one number.
    pattern = parse("PATTERN AND(A a, B b, B c) WHERE a.x < b.x AND a.x < c.x WITHIN 60 units")
    found = sample_statistics(pattern, stream(), pairs=99).pairs
    assert found["a", "b"].candidates == found["a", "c"].candidates > 99
    assert found["a", "b"].held != found["a", "c"].held


def test_a_seed_that_is_not_given_is_0() -> None:
    sources = Path(cepbench.__file__).parent.rglob("*.py")
    found = Counter(its for path in sources for its in _DEFAULT.findall(path.read_text()))
    assert found.keys() == {"0"} and found["0"] > 20
