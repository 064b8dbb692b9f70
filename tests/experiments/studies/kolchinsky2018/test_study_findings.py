"""Sentences for the front page, from tables whose numbers are known."""

from __future__ import annotations

import pandas as pd

from cepbench.experiments.studies.kolchinsky2018.findings import (
    closest_generators,
    errors_of_estimates,
    gain_of_choosing,
    regret_of_wrong_numbers,
)

NAN = float("nan")


def distances(*rows: tuple[str, str, str, float, int]) -> pd.DataFrame:
    """Pattern set, kind of plan, generator, mean distance and the largest size planned."""
    columns = ["pattern_set", "plan_kind", "generator", "geometric_mean", "largest"]
    return pd.DataFrame(rows, columns=columns)


def test_the_closest_generator_is_that_of_all_patterns() -> None:
    every = [
        ("sequence", "order", "GREEDY", 1.5, 200), ("acyclic", "order", "GREEDY", 1.25, 200),
        ("sequence", "tree", "GOO", 1.75, 200), ("acyclic", "tree", "GOO", 2.5, 200),
    ]  # fmt: skip
    expected = ("GREEDY comes within a factor of 1.500", "GOO comes within a factor of 2.500")
    whole = closest_generators(distances(*every))
    assert all(text in whole for text in expected) and "up to 200 events" in whole
    # One that plans, or is compared on, the patterns of one set alone is no rival to the others.
    few = [
        ("sequence", "order", "FEW", NAN, 200), ("acyclic", "order", "FEW", 1.0, 200),
        ("sequence", "tree", "SMALL", 1.0, 20), ("acyclic", "tree", "SMALL", 1.0, 200),
        ("acyclic", "tree", "ONE", 1.0, 200),
    ]  # fmt: skip
    assert closest_generators(distances(*few, *every)) == whole


def test_regrets_and_errors_are_those_of_the_tables() -> None:
    tail = pd.DataFrame(
        {
            "metric": "regret",
            "statistic": "90th percentile",
            "factor": [10.0, 10.0, 2.0],
            "generator": ["DP-LD", "DP-B", "DP-B"],
            "value": [1.5, 2.25, 9.0],
        }
    )
    assert "1.5 (DP-LD) and 2.25 (DP-B) times" in regret_of_wrong_numbers(tail)
    assert regret_of_wrong_numbers(tail, factor=5.0) == ""
    errors = pd.DataFrame(
        {
            "pattern_set": "sequence",
            "model": ["adjacent", "joint"],
            "median": [2.5, 1.25],
            "p95": [40.0, 3.0],
        }
    )
    text = errors_of_estimates(errors)
    assert "factor of 2.5, one in twenty by more than 40;" in text
    assert "together by 1.25 and 3." in text
    assert errors_of_estimates(errors.iloc[:1]) == ""


def test_the_gain_of_choosing_is_that_of_each_class() -> None:
    columns = ["engine", "metric", "comparison", "class", "value"]
    table = pd.DataFrame(
        [
            ("columnar", "events_per_second", "DP-LD / EFREQ", "below 1", 1.04),
            ("columnar", "events_per_second", "DP-LD / EFREQ", "1 to 10", 1.5),
            ("columnar", "events_per_second", "DP-LD / EFREQ", "10 to 100", 4.0),
            ("columnar", "peak_bytes", "DP-LD / EFREQ", "1 to 10", 9.0),
            ("event by event", "events_per_second", "DP-LD / EFREQ", "below 1", 1.2),
            ("event by event", "events_per_second", "DP-LD / EFREQ", "1 to 10", 9.0),
            ("other", "events_per_second", "DP-LD / EFREQ", "1 to 10", 9.0),
        ],
        columns=columns,
    )
    assert gain_of_choosing(table) == (
        "By expected partial matches per event, DP-LD / EFREQ in throughput is 1 (below 1), "
        "1.5 (1 to 10) and 4 (10 to 100), columnar; 1.2 (below 1) and 9 (1 to 10), event by event."
    )
    assert gain_of_choosing(table.head(1)) == "" == gain_of_choosing(table.head(0))
