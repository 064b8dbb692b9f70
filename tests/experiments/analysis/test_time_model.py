"""The model of an engine's time gives back the coefficients that rows were made with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.time_model import TERMS, fastest_runs, fit_time_model

TRUTH = {"run": 120e-6, "event": 82e-9, "partial match": 20e-9, "comparison": 0.46e-9}


def rows_of(
    patterns: int = 60, noise: float = 0.0, seed: int = 0, truth: dict[str, float] = TRUTH
) -> pd.DataFrame:
    """Two repetitions of synthetic runs, the second one three times as slow."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "pattern_id": [f"p{number}" for number in range(patterns)],
            "plan": "a → b",
            "evaluator": "twin",
            "status": "ok",
            "measured_with": None,
            "repetition": 0,
            "events": rng.integers(1_000, 100_000, patterns),
        }
    )
    table["partial_matches_created"] = (
        table["events"] * 10 ** rng.uniform(-2, 2, patterns)
    ).astype(int)
    table["comparisons"] = (
        table["partial_matches_created"] * 10 ** rng.uniform(0, 3, patterns)
    ).astype(int)
    seconds = (
        truth["run"]
        + truth["event"] * table["events"]
        + truth["partial match"] * table["partial_matches_created"]
        + truth["comparison"] * table["comparisons"]
    )
    table["seconds"] = seconds * np.exp(noise * rng.standard_normal(patterns))
    slow = table.assign(repetition=1, seconds=3 * table["seconds"])
    return pd.concat([slow, table], ignore_index=True)


def test_exact_rows_give_the_coefficients_back() -> None:
    model = fit_time_model(rows_of(), "twin")
    assert model.coefficients == pytest.approx(TRUTH, rel=1e-6)
    assert model.rows == 60
    assert model.error == pytest.approx(0.0, abs=1e-9)
    assert " 82 ns per event" in model.describe()


def test_noise_moves_them_little_and_is_the_reported_error() -> None:
    model = fit_time_model(rows_of(600, noise=0.2), "twin")
    for term, seconds in TRUTH.items():
        assert model.coefficients[term] == pytest.approx(seconds, rel=0.25), term
    assert model.error == pytest.approx(0.135, abs=0.03)  # the median of |N(0, 0.2)|


@pytest.mark.parametrize("seed", range(5))
def test_no_coefficient_is_negative(seed: int) -> None:
    # Time falls with comparisons: an unconstrained fit would make that coefficient negative.
    table = rows_of(noise=0.1, seed=seed, truth={**TRUTH, "comparison": -1e-11})
    table = table[table["seconds"] > 0]
    model = fit_time_model(table, "twin")
    found = np.array([model.coefficients[term] for term in TERMS])
    assert (found >= 0).all()
    runs = fastest_runs(table)
    counts = np.column_stack(
        [
            np.ones(len(runs)),
            runs["events"],
            runs["partial_matches_created"],
            runs["comparisons"],
        ]
    )
    relative = counts / runs["seconds"].to_numpy()[:, None]
    scale = np.linalg.norm(relative, axis=0)
    oracle, _ = nnls(relative / scale, np.ones(len(relative)))
    assert found == pytest.approx(oracle / scale, rel=1e-6, abs=1e-18)


def test_a_dearer_partial_match_leaves_the_rest() -> None:
    table = rows_of()
    model = fit_time_model(table, "twin")
    dearer = model.with_dearer("partial match", 10.0)
    runs = fastest_runs(table)
    created = runs["partial_matches_created"].to_numpy()
    more = dearer.seconds(runs) - model.seconds(runs)
    assert more == pytest.approx(9 * TRUTH["partial match"] * created, rel=1e-6)


def test_only_runs_that_ended_well_and_were_measured_count() -> None:
    table = rows_of()
    table.loc[0, "status"] = "partial_match_limit"
    table.loc[60, "measured_with"] = "EFREQ"
    assert len(fastest_runs(table)) == 59
    with pytest.raises(ExperimentError, match="0 runs of other ended well"):
        fit_time_model(table, "other")
