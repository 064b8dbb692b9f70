"""Where a row comes from: version, commit, machine; tables that older versions wrote."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import (
    PROVENANCE,
    RESULT_SCHEMA,
    commit_of,
    provenance,
    results_table,
)
from cepbench.experiments.sweeps.store import read_results

LATER = ["commit", "llvmlite_version", "pandas_version", "pyarrow_version", "platform"]


def made_up_table() -> pa.Table:
    where = {**provenance(), "commit": "abc"}
    return results_table([{"pattern_id": "p", "status": "ok", "matches": 3, **where}])


def test_a_row_says_what_made_it() -> None:
    found = provenance()
    assert set(found) == set(PROVENANCE) and set(PROVENANCE) < set(RESULT_SCHEMA.names)
    assert found["cepbench_version"] == cep.__version__
    assert (found["numpy_version"], found["numba_version"]) == (np.__version__, numba.__version__)
    assert found["pandas_version"] == pd.__version__
    assert not any(socket.gethostname() in str(value).split() for value in found.values())


def git(folder: Path, *command: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *command], capture_output=True, check=True, text=True
    )
    return done.stdout.strip()


def test_the_commit_is_that_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "cepbench" / "experiments").mkdir(parents=True)
    file = tmp_path / "cepbench" / "experiments" / "cells.py"
    file.write_text("first")
    assert commit_of(tmp_path) is None  # installed, not checked out
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path) is None  # checked out, without a commit
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit_of(tmp_path) == head
    (tmp_path / "notes.txt").write_text("beside the package")
    assert commit_of(tmp_path) == head
    file.write_text("second")
    assert commit_of(tmp_path) == f"{head} with changes"
    assert provenance()["commit"] == commit_of(Path(cep.__file__).parents[1])


def test_tables_of_the_first_version_are_read(tmp_path: Path) -> None:
    table = made_up_table()
    pq.write_table(table, tmp_path / "new.parquet")
    pq.write_table(table.drop_columns(LATER), tmp_path / "old.parquet")
    new, old = (read_results(tmp_path / f"{name}.parquet") for name in ("new", "old"))
    assert list(new.columns) == list(old.columns) == RESULT_SCHEMA.names
    pd.testing.assert_frame_equal(new.drop(columns=LATER), old.drop(columns=LATER))
    assert old[LATER].isna().all(axis=None) and new["commit"].item() == "abc"
    # As a notebook keeps it, through pandas.
    new.to_parquet(tmp_path / "kept.parquet")
    pd.testing.assert_frame_equal(read_results(tmp_path / "kept.parquet"), new)


def test_other_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    pq.write_table(made_up_table().drop_columns(["status", "seed"]), path)
    with pytest.raises(
        ExperimentError, match="no results table of a sweep: it has no column 'seed'"
    ):
        read_results(path)
    path.write_text("text")
    with pytest.raises(ExperimentError, match=r"other\.parquet cannot be read as Parquet"):
        read_results(path)
