"""Ratios of plan costs and their growth, on tables whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from cepbench.experiments.studies.kolchinsky2018.findings import (
    gain_of_dynamic_programming,
    greedy_against_zstream,
    growth_of_costs,
)
from cepbench.experiments.studies.kolchinsky2018.plan_quality import cost_growth, cost_ratios
from cepbench.experiments.sweeps.cells import OK, REFUSED

NAMES = ["EFREQ", "GREEDY", "DP-LD", "ZSTREAM", "DP-B"]


def table(
    costs: dict[int, list[list[float]]], regime: str = "dense", predicates: str = "n"
) -> pd.DataFrame:
    """Size → a list for each pattern with the cost of each generator's plan as a tree."""
    rows = [
        {
            "regime": regime,
            "predicates": predicates,
            "size": size,
            "pattern_id": f"{regime}-{predicates}-{size}-{number}",
            "generator": generator,
            "status": OK,
            "tree_log_cost": math.log(cost),
            # An order has no leaves, here half of the cost.
            "plan_log_cost": math.log(cost / (1 if generator in ("ZSTREAM", "DP-B") else 2)),
        }
        for size, patterns in costs.items()
        for number, its in enumerate(patterns)
        for generator, cost in zip(NAMES, its, strict=True)
    ]
    return pd.DataFrame(rows)


def test_ratios_of_means_follow_single_patterns_and_geometric_means_do_not() -> None:
    costs = table({3: [[8, 8, 8, 8, 8], [800, 80, 8, 8, 8]], 4: [[9, 9, 9, 9, 9]] * 2})
    ratios = cost_ratios(costs).set_index(["cheaper", "than"])
    dp_ld = ratios.loc[("DP-LD", "GREEDY")]
    # Normalized costs of size 3: GREEDY 1 and 10, DP-LD 1 and 100.
    assert dp_ld["ratio_of_means"] == pytest.approx(101 / 11)
    assert (dp_ld["at_size"], dp_ld["lowest_ratio"], dp_ld["patterns"]) == (3, 1, 4)
    assert dp_ld["geometric_mean"] == pytest.approx(10 ** (1 / 4))
    assert 1 <= dp_ld["low"] <= dp_ld["geometric_mean"] <= dp_ld["high"] <= 10
    # Orders both: without leaves nothing changes; beside a tree, an order costs half.
    assert dp_ld["as_printed"] == pytest.approx(dp_ld["geometric_mean"])
    greedy = ratios.loc[("GREEDY", "ZSTREAM")]
    assert greedy["geometric_mean"] == pytest.approx(10 ** (-1 / 4))
    assert greedy["as_printed"] == pytest.approx(2 * 10 ** (-1 / 4))
    # ZSTREAM-ORD has no plans.
    assert ("DP-B", "ZSTREAM-ORD") not in ratios.index


def test_a_pair_is_compared_on_the_patterns_that_both_planned() -> None:
    costs = table({3: [[8, 8, 2, 8, 8], [9, 9, 1, 9, 9]]})
    gone = (costs["generator"] == "DP-LD") & costs["pattern_id"].str.endswith("-1")
    costs.loc[gone, ["status", "tree_log_cost"]] = [REFUSED, np.nan]
    dp_ld = cost_ratios(costs).set_index("cheaper").loc["DP-LD"]
    assert (dp_ld["patterns"], dp_ld["geometric_mean"]) == (1, pytest.approx(4))


def test_workloads_are_compared_apart() -> None:
    costs = pd.concat(
        [
            table({3: [[8, 8, 2, 8, 8]]}, "sparse", "n/2"),
            table({3: [[8, 8, 4, 8, 8]]}, "dense", "n"),
        ]
    )
    found = cost_ratios(costs, [("DP-LD", "GREEDY")])
    assert found["regime"].tolist() == ["sparse", "dense"]
    np.testing.assert_allclose(found["geometric_mean"], [4, 2])


def test_growth_is_the_slope_of_the_logarithms() -> None:
    rng = np.random.default_rng(3)
    noise = np.exp(rng.normal(0, 0.1, (6, 5)))
    sizes = {
        size: [[7 * 3.0**size, 2.0**size, 5, 2.0**size * other, 1.5**size] for other in noise[size]]
        for size in range(6)
    }
    growth = cost_growth(table(sizes)).set_index("generator")
    np.testing.assert_allclose(growth.loc[["EFREQ", "GREEDY", "DP-B"], "factor"], [3, 2, 1.5])
    np.testing.assert_allclose(growth.loc[["EFREQ", "GREEDY", "DP-B"], "explained"], 1)
    np.testing.assert_allclose(growth.loc["DP-LD", ["factor", "low", "high"]].astype(float), 1)
    noisy = growth.loc["ZSTREAM"]
    points = [(size, math.log(its[3])) for size, some in sizes.items() for its in some]
    slope = np.polyfit(*np.array(points).T, 1)[0]
    assert noisy["factor"] == pytest.approx(math.exp(slope))
    assert noisy["low"] < noisy["factor"] < noisy["high"]
    assert (noisy["explained"] < 1) and noisy["patterns"] == 30
    # Through one size goes no line.
    assert cost_growth(table({3: [[1, 1, 1, 1, 1]] * 3})).empty


def test_sentences_have_the_numbers_of_the_tables() -> None:
    costs = table({3: [[8, 8, 2, 32, 8]] * 3, 4: [[8, 8, 4, 32, 16]] * 3})
    ratios = cost_ratios(costs)
    # In the order of the table.
    first = "plans by DP-LD are up to 4 times cheaper than GREEDY's (dense, n predicates, 3 events)"
    assert first in gain_of_dynamic_programming(ratios)
    assert "cheaper: dense, n (4 times)" in greedy_against_zstream(ratios)
    assert growth_of_costs(cost_growth(costs)).endswith("DP-B's plans grows by 2 (dense, n).")
    nothing = ratios.head(0)
    assert gain_of_dynamic_programming(nothing) == greedy_against_zstream(nothing) == ""
