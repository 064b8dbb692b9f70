"""Reference results: kept small, laid out as a finished sweep again, and compared with another machine's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.studies import reference
from cepbench.experiments.studies.against_reference import against_reference, reference_of
from cepbench.experiments.studies.measured import study_sweep
from cepbench.experiments.studies.reference import (
    keep_table,
    kept_table,
    lacking,
    measured_table,
    read_parts,
    resume_sweep,
)
from cepbench.experiments.sweeps.store import (
    COMPLETE,
    Journal,
    count_rows,
    journal_path,
    read_kept,
    read_results,
)
from tests.experiments.studies.reference_package import NAME, kept, measured, package_in


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[Path]:
    with package_in(tmp_path / "package") as folder:
        yield folder


def test_what_is_kept_is_read_as_a_finished_sweep(tmp_path: Path) -> None:
    files = kept(measured(tmp_path / "there"))
    assert all(file.stat().st_size < reference.LARGEST for file in files)
    sweep = study_sweep(NAME, "reference", tmp_path / "here")
    assert not sweep.is_finished and lacking([NAME], []) == []
    sweep.measure()
    assert sweep.is_finished and sweep.declaration.events == 7
    whole, small = read_results(tmp_path / "there" / "sweeps" / sweep.folder.name), sweep.results
    np.testing.assert_allclose(small["seconds"], whole["seconds"], rtol=5e-4)
    same = ["pattern_id", "generator", "repetition", "matches", "status"]
    pd.testing.assert_frame_equal(small[same], whole[same])
    assert json.loads((sweep.folder / "draws.json").read_text()) == {"sequence": {"3": 4}}


def test_an_interrupted_sweep_goes_on_elsewhere(tmp_path: Path) -> None:
    there = measured(tmp_path / "there")
    done = there.folder / COMPLETE
    rows = read_results(there.folder)
    done.unlink()
    journal_path(there.folder, "any").parent.mkdir()
    for pattern, own in rows.groupby("pattern_id", sort=False):
        with Journal(journal_path(there.folder, pattern)) as journal:
            for row in json.loads(own.to_json(orient="records", double_precision=15)):
                journal.append({name: value for name, value in row.items() if value is not None})
    kept(there)
    here = study_sweep(NAME, "full", tmp_path / "here").folder
    resume_sweep("kolchinsky2018", "latency", here)
    assert read_kept(here, "sweep") == read_kept(there.folder, "sweep")
    assert not (here / COMPLETE).exists() and count_rows(here) == len(rows)
    found = read_results(here)
    same = ["pattern_id", "generator", "repetition", "matches", "plan_log_cost", "configuration"]
    rows = rows.sort_values("pattern_id", kind="stable", ignore_index=True)  # as journals are read
    pd.testing.assert_frame_equal(found[same], rows[same])
    with Journal(journal_path(here, rows["pattern_id"][0])) as journal:
        assert len(journal.finished) == 9
    (here / "mine").touch()
    resume_sweep("kolchinsky2018", "latency", here)
    assert (here / "mine").exists()


def test_parts_of_a_large_table(tmp_path: Path) -> None:
    table = pd.DataFrame({"number": np.random.default_rng(0).random(10_000)})
    parts = keep_table(table, tmp_path / "some.table", 20_000)
    assert len(parts) > 3 and all(part.stat().st_size < 20_000 for part in parts)
    pd.testing.assert_frame_equal(read_parts(tmp_path / "some.table"), table)
    parts[-1].write_bytes(parts[-1].read_bytes()[:-9])
    with pytest.raises(ExperimentError, match=r"missing or damaged .* install cepbench again"):
        read_parts(tmp_path / "some.table")
    parts[-1].unlink()
    with pytest.raises(ExperimentError, match="missing or damaged"):
        read_parts(tmp_path / "some.table")


def test_fewer_parts_leave_nothing_of_before(tmp_path: Path) -> None:
    table = pd.DataFrame({"number": np.random.default_rng(0).random(10_000)})
    assert len(keep_table(table, tmp_path / "table", 20_000)) > 1
    keep_table(table[:5], tmp_path / "table")
    assert len(read_parts(tmp_path / "table")) == 5


def test_a_table_of_a_notebook(tmp_path: Path, package: Path) -> None:
    def measure() -> pd.DataFrame:
        return pd.DataFrame({"a": [1, 2]})

    name = "mei2009/operators/results"
    assert len(measured_table(name, "quick", tmp_path, measure)) == 2
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == 2
    with pytest.raises(ExperimentError, match=r"no reference results full/operators\.results"):
        measured_table(name, "reference", tmp_path, measure)
    assert lacking(["mei2009/plans"], [name]) == ["mei2009/plans", name]
    (package / "mei2009" / "results" / "full").mkdir(parents=True)
    keep_table(pd.DataFrame({"a": [3]}), kept_table(name))
    assert list(measured_table(name, "reference", tmp_path, measure)["a"]) == [3]
    assert lacking([], [name]) == []


def test_nothing_can_be_changed_about_the_reference(tmp_path: Path) -> None:
    for changes, what in (({"patterns": 4}, "patterns"), ({"seed": 1}, "the seed")):
        with pytest.raises(ExperimentError, match=f"nothing to change about {what}"):
            study_sweep(NAME, "reference", tmp_path, **changes)


def test_results_of_another_configuration(tmp_path: Path, package: Path) -> None:
    kept(measured(tmp_path / "there"))
    about = package / "kolchinsky2018" / "results" / "full" / "latency.json"
    content = json.loads(about.read_text(encoding="utf-8"))
    about.write_text(json.dumps({**content, "streams": {"other": {}}}), encoding="utf-8")
    sweep = study_sweep(NAME, "reference", tmp_path / "here")
    with pytest.raises(ExperimentError, match="those of another configuration"):
        sweep.measure()


def test_a_half_copied_sweep(tmp_path: Path, package: Path) -> None:
    kept(measured(tmp_path / "there"))
    (package / "kolchinsky2018" / "results" / "full" / "latency.json").unlink()
    with pytest.raises(ExperimentError, match=r"latency\.json is missing; install cepbench again"):
        study_sweep(NAME, "reference", tmp_path / "here").measure()


def test_newer_results_of_the_package_are_laid_out_again(tmp_path: Path) -> None:
    kept(measured(tmp_path / "there"))
    study_sweep(NAME, "reference", tmp_path / "here").measure()
    for file in kept(measured(tmp_path / "later", matches=3)):
        later = file.stat().st_mtime + 10
        os.utime(file, (later, later))
    sweep = study_sweep(NAME, "reference", tmp_path / "here")
    assert not sweep.is_finished
    sweep.measure()
    assert set(sweep.results["matches"]) == {3}


def test_another_machine_beside_the_reference(tmp_path: Path) -> None:
    there = measured(tmp_path / "there")
    kept(there)
    here = measured(tmp_path / "here", slower=2.0)
    assert str(reference_of(here.folder)) == "kolchinsky2018/latency, full"
    (row,) = against_reference(tmp_path / "here")
    assert (row["runs"], row["matches"], row["plans"], row["work"]) == (27, 0, 0, 0)
    assert row["low"] <= row["ratio"] <= row["high"] and 1.5 < row["ratio"] < 2
    other = measured(tmp_path / "other", comparisons=5)
    (row,) = against_reference(tmp_path / "other")
    assert row["work"] == 0  # the reference lacks this number
    kept(other)
    measured(tmp_path / "wrong", comparisons=6)
    assert [its["work"] for its in against_reference(tmp_path / "wrong")] == [27]


def test_an_estimate_by_the_costs_of_another_machine_is_no_other_plan(tmp_path: Path) -> None:
    text = "workload plan by NAIVE, estimated cost {}\n  q1: from {}"
    kept(measured(tmp_path / "there", plan=text.format("8.731e+04", "scratch")))
    measured(tmp_path / "here", plan=text.format("1.09e+05", "scratch"))
    measured(tmp_path / "other", plan=text.format("1.09e+05", "q2"))
    found = [
        its["plans"] for part in ("here", "other") for its in against_reference(tmp_path / part)
    ]
    assert found == [0, 27]


def test_a_sweep_without_a_reference(tmp_path: Path) -> None:
    sweep = measured(tmp_path / "here")
    with pytest.raises(ExperimentError, match="no reference results of a sweep latency"):
        reference_of(sweep.folder)
    assert list(against_reference(tmp_path / "here")) == []
    kept(sweep)
    (sweep.folder / "sweep.json").write_text('{"window": "1 hour"}', encoding="utf-8")
    with pytest.raises(
        ExperimentError, match=r"of kolchinsky2018/latency, full did: .*window.* differ"
    ):
        reference_of(sweep.folder)
