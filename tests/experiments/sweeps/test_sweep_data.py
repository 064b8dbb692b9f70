"""The data that sweep files name: where it is found, and what is no data for a sweep."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.experiments.sweeps.on_spark.job import sweep_data
from cepbench.experiments.sweeps.sweep_file import read_sweep
from cepbench.streams.generated import make_stream
from cepbench.streams.nasdaq_style import NasdaqStyle


def found(file: Path, data: str, root: str = "root") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"data = {data}\nseed = 4\n", encoding="utf-8")
    (path,) = sweep_data(None, read_sweep(file), root).values()  # type: ignore[arg-type]
    return path


def test_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sweeps" / "mine.toml"
    sample = cep.open_dataset("nasdaq-style/sample").path
    assert found(file, '"nasdaq-style/sample"') == sample
    assert found(file, f"'{sample}'") == sample
    # Relative paths: from where the reader is, else from where the file is.
    monkeypatch.chdir(tmp_path)
    beside = tmp_path / "sweeps" / "events.parquet"
    beside.touch()
    assert found(file, '"events.parquet"') == beside
    (tmp_path / "events.parquet").touch()
    assert found(file, '"events.parquet"').resolve() == tmp_path / "events.parquet"
    with pytest.raises(DatasetError, match="no data set or path 'nowhere'"):
        found(file, '"nowhere"')
    with pytest.raises(DatasetError, match=r"sample\.txt is no Parquet"):
        found(file, '"minute-bars/sample"')


def test_a_stream_is_generated_from_the_seed_of_the_sweep(tmp_path: Path) -> None:
    """One that is there already needs no Spark."""
    folder = tmp_path / "data"
    there = folder / "nasdaq-style-30-2-4"
    make_stream(there, NasdaqStyle(30, 2, seed=4))
    assert found(tmp_path / "mine.toml", "{identifiers = 30, days = 2}", str(folder)) == there
    shutil.move(there, folder / "nasdaq-style-30-3-4")
    with pytest.raises(DatasetError, match="days 2 found, 3 requested"):
        found(tmp_path / "mine.toml", "{identifiers = 30, days = 3}", str(folder))
