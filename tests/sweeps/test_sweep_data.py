"""The data that sweep files name: where it is found, and what is no data for a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cepbench as cep
from cepbench.errors import DatasetError
from cepbench.streams.nasdaq_style import NasdaqStyle
from cepbench.sweeps.on_spark import data as module
from cepbench.sweeps.on_spark.data import sweep_data
from cepbench.sweeps.sweep_file import read_sweep


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


def test_a_stream_is_generated_from_the_seed_of_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []

    def generate(spark: Any, path: Path, stream: Any, progress: bool) -> None:
        made.append((path, stream))

    monkeypatch.setattr(module, "generate_stream", generate)
    path = found(tmp_path / "mine.toml", "{identifiers = 30, days = 2}", "reports/data")
    assert path == Path("reports/data/nasdaq-style-30-2-4")
    assert made == [(path, NasdaqStyle(30, 2, seed=4))]
