"""Sweeps of a report: with a file of plan generators none is repeated, and afresh all are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from cepbench.experiments.studies.measured import StudySweep, measured_sweep, study_sweep
from cepbench.experiments.sweeps.store import COMPLETE
from cepbench.presentation.reporting import site
from cepbench.presentation.reporting.site import build_report
from tests.notebooks.tiny import NOTEBOOKS, tiny_for, write_plugin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_generator_from_a_file_is_in_the_figures_and_nothing_is_measured_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    parameters = tiny_for("figure_8")
    report = tmp_path / "report"
    alone = [
        measured_sweep(f"kolchinsky2018/{name}", "quick", report / "data", seed=3, **parameters)
        for name in ("latency", "latency_instances")
    ]
    generators = {name for sweep in alone for name in sweep.results["generator"]}
    before = [(sweep.folder / "results.parquet").read_bytes() for sweep in alone]
    build_report(
        report, notebooks=NOTEBOOKS, only=["figure_8"], seed=3, parameters=parameters,
        plugins=[write_plugin(tmp_path)], on_progress=lambda what, state: None,
    )  # fmt: skip
    assert [(sweep.folder / "results.parquet").read_bytes() for sweep in alone] == before
    assert {*(report / "data" / "sweeps").iterdir()} == {sweep.folder for sweep in alone}
    (path,) = report.rglob("figure_8/results.parquet")
    results = pd.read_parquet(path)
    mine = results[results["generator"] == "BACKWARDS"]
    assert len(mine) and set(results["generator"]) == {*generators, "BACKWARDS"}
    assert len(results) == sum(len(sweep.results) for sweep in alone) + len(mine)
    (page,) = report.rglob("figure_8.html")
    text = page.read_text(encoding="utf-8")
    assert "BACKWARDS" in text and "BACKWARDS, user-defined, was measured" in text


def test_a_notebook_measures_all_its_sweeps_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(sweeps: list[StudySweep]) -> None:
        assert [its.sweep.name for its in sweeps] == ["latency", "latency_instances"]
        raise KeyboardInterrupt

    monkeypatch.setattr(site, "measure_all", interrupted)
    names = ("latency", "latency_instances")
    finished = [study_sweep(f"kolchinsky2018/{name}", "quick", tmp_path / "data") for name in names]
    for sweep in finished:
        sweep.folder.mkdir(parents=True)
        (sweep.folder / COMPLETE).touch()
    with pytest.raises(KeyboardInterrupt):
        build_report(tmp_path, notebooks=NOTEBOOKS, only=["figure_8"], parameters={"fresh": True})
    assert not any(sweep.folder.exists() for sweep in finished)
