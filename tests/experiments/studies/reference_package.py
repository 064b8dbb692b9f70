"""A package with reference results of its own, and sweeps as machines left them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cepbench.experiments.studies.measured import StudySweep, study_sweep
from cepbench.experiments.studies.reference import keep_sweep, results_folder
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.sweeps.cells import NO_OPTIONS, RESULT_SCHEMA
from cepbench.experiments.sweeps.configuration import identity_of
from cepbench.experiments.sweeps.on_spark.job import resolved
from cepbench.experiments.sweeps.store import COMPLETE
from tests.experiments.analysis.test_sweep_comparison import made_up_sweep

NAME = "kolchinsky2018/latency"


@contextmanager
def package_in(folder: Path) -> Iterator[Path]:
    """Studies whose results are in a folder of the test, which has none yet."""
    with STUDIES.restored():
        for key, study in list(STUDIES.items()):
            (folder / key).mkdir(parents=True)
            (folder / key / study.ledger.name).write_bytes(study.ledger.read_bytes())
            STUDIES.add(replace(study, folder=folder / key))
        yield folder


def measured(data: Path, *, slower: float = 1.0, **changes: Any) -> StudySweep:
    """A full sweep of a study as one machine left it, with made-up numbers."""
    sweep = study_sweep(NAME, "full", data)
    for path in sweep.streams.values():
        path.mkdir(parents=True, exist_ok=True)
        declared = {"format": 1, "kind": "nasdaq-style", "parameters": {}, "events": 7, "counts": {"A": 7},
                    "columns": {}, "notes": {}, "versions": {}}  # fmt: skip
        (path / "_dataset.json").write_text(json.dumps(declared), encoding="utf-8")
    rows = made_up_sweep(0, patterns=9)
    rows["seconds"] = 12.34567 * slower + rows["repetition"]
    named = dict.fromkeys(("stream", "window", "regime", "method", "sharing"), "")
    rows = rows.assign(**named, options=NO_OPTIONS, output="count", **changes)
    config, generators = resolved(sweep.config)
    sweep.folder.mkdir(parents=True)
    identity = identity_of(config, generators)
    (sweep.folder / "sweep.json").write_text(json.dumps(identity), encoding="utf-8")
    (sweep.folder / "draws.json").write_text('{"sequence": {"3": 4}}', encoding="utf-8")
    table = pa.Table.from_pandas(rows, RESULT_SCHEMA, preserve_index=False)
    pq.write_table(table, sweep.folder / COMPLETE)
    return sweep


def kept(sweep: StudySweep, profile: str = "full") -> list[Path]:
    return keep_sweep(
        sweep.folder, sweep.streams, results_folder("kolchinsky2018", profile), "latency"
    )
