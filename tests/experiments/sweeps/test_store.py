"""The results store: nothing finished is lost, nothing is repeated, nobody writes twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import uuid
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import (
    OF_METHODS,
    Cell,
    cell_of,
    results_frame,
    results_table,
)
from cepbench.experiments.sweeps.store import (
    Journal,
    ResultsStore,
    count_rows,
    journal_path,
    read_kept,
    read_results,
)

CONFIGURATION = {"seed": 1, "sizes": [3, 4], "evaluators": None}

#: Starts processes that have imported the library before they begin.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["cepbench.experiments.sweeps.store", "pytest"])


def started(target: Callable[..., None], *arguments: object) -> Any:
    # A shell of IPython, as in other tests, leaves a main module of its own, which is read here.
    vars(sys.modules["__main__"]).setdefault("__spec__", None)
    process = PROCESSES.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def row(generator: str = "DP-B", repetition: int = 0, **more: object) -> dict[str, object]:
    return {
        "pattern_id": "sequence-3-0000",
        "generator": generator,
        "evaluator": "tree",
        "repetition": repetition,
        "strategy": "any",
        "alpha": 0.0,
        "window": "",
        "options": "{}",
        "output": "count",
        **more,
    }


def pretended_sweep(folder: Path) -> None:
    """Five patterns of eight cells each, a few milliseconds a cell, and nothing measured.

    The value in a row is new in every process, so a row measured twice would show.
    """
    with ResultsStore(folder, {"seed": 1}) as store:
        for number in range(5):
            pattern_id = f"sequence-3-{number:04d}"
            with Journal(journal_path(folder, pattern_id)) as journal:
                for repetition in range(4):
                    for generator in ("TRIVIAL", "DP-B"):
                        cell = Cell(generator, "tree", repetition)
                        if cell in journal.finished:
                            continue
                        time.sleep(0.01)
                        its = {"pattern_id": pattern_id, "reason": uuid.uuid4().hex}
                        journal.append(its | cell._asdict())
        store.compact()


def kill_when(folder: Path, rows: int) -> dict[str, bytes]:
    """Start a sweep, kill it once it has ``rows`` rows, and return its journals' whole lines."""
    process = started(pretended_sweep, folder)
    deadline = time.monotonic() + 60
    while count_rows(folder) < rows:
        assert process.is_alive(), "the sweep ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.kill()
    process.join()
    texts = {path.name: path.read_bytes() for path in (folder / "journals").glob("*.jsonl")}
    return {name: text[: text.rfind(b"\n") + 1] for name, text in texts.items()}


def test_two_kills_lose_no_row_and_repeat_none(tmp_path: Path) -> None:
    first = kill_when(tmp_path, rows=5)
    # What a kill in the middle of a write leaves behind.
    torn = max(first)
    with open(tmp_path / "journals" / torn, "ab") as file:
        file.write(b'{"pattern_id": "sequence-3-0000", "algor')
    second = kill_when(tmp_path, rows=22)
    assert not (tmp_path / "results.parquet").exists()
    assert len(read_results(tmp_path)) == sum(text.count(b"\n") for text in second.values())

    last = started(pretended_sweep, tmp_path)
    last.join(60)
    assert last.exitcode == 0
    for earlier, rows in ((first, 5), (second, 22)):
        assert sum(text.count(b"\n") for text in earlier.values()) >= rows
        for name, text in earlier.items():
            assert (tmp_path / "journals" / name).read_bytes().startswith(text)
    results = read_results(tmp_path)
    assert len(results) == 5 * 8
    cells = results[["pattern_id", "generator", "evaluator", "repetition"]]
    assert not cells.duplicated().any()
    assert results["reason"].nunique() == 5 * 8


@pytest.mark.parametrize(
    "tail", [b"{", b'{"pattern_id": "x", "algorithm": "DP-B"', b"\0\0\0\0", b"\0\0\0\0\n", b"3\n"]
)
def test_a_torn_last_line_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(row(repetition=0))
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with Journal(path) as journal:
        assert len(journal.finished) == 1
        journal.append(row(repetition=1))
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[0] == whole and json.loads(lines[1])["repetition"] == 1
    assert len(lines) == 2


def test_a_journal_killed_at_any_byte_loses_no_finished_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path = tmp_path / "journal.jsonl"
    rows = [row(repetition=repetition, reason="Größe \n {}") for repetition in range(3)]
    with Journal(path) as journal:
        for each in rows:
            journal.append(each)
    text = path.read_bytes()
    for end in range(len(text)):
        path.write_bytes(text[:end])
        with Journal(path) as journal:
            assert len(journal.finished) == text[:end].count(b"\n")
            for each in rows:
                if cell_of(each) not in journal.finished:
                    journal.append(each)
        assert path.read_bytes() == text


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(row())
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    with pytest.raises(ExperimentError, match="line 1: not a results row"):
        Journal(path)


def test_rows_are_in_the_file_at_once_and_on_the_disk_after_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, synced = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        monkeypatch.setattr(os, "fsync", lambda handle: synced.append(path.read_bytes()))
        for repetition, seconds in enumerate((0.5, 0.9, 1.1, 1.2)):
            now[0] = seconds
            journal.append(row(repetition=repetition))
            assert path.read_bytes().count(b"\n") == repetition + 1
        assert [text.count(b"\n") for text in synced] == [3]
    assert [text.count(b"\n") for text in synced] == [3, 4]


def test_the_name_of_a_new_journal_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    with Journal(tmp_path / "journal.jsonl"):
        assert synced == [tmp_path.stat().st_ino]


def test_a_cell_is_written_once(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(row())
        journal.append(row(repetition=1))
        journal.append(row(generator="GREEDY"))
        with pytest.raises(ExperimentError, match="already has a row"):
            journal.append(row())


def test_strategies_and_weights_of_latency_are_cells_of_their_own(tmp_path: Path) -> None:
    rows = [
        row(strategy=strategy, alpha=alpha)
        for strategy in ("any", "consuming")
        for alpha in (0, 0.5, 1.0)
    ]
    with Journal(tmp_path / "journal.jsonl") as journal:
        for each in rows:
            journal.append(each)
    with Journal(tmp_path / "journal.jsonl") as journal:
        assert journal.finished == {cell_of(each) for each in rows} and len(journal.finished) == 6
        # 0 and 0.0 are one weight.
        with pytest.raises(ExperimentError, match="already has a row"):
            journal.append(row(alpha=0.0))


def open_journal(path: Path, told: Connection) -> None:
    told.send("ready")
    Journal(path)


def test_a_journal_is_open_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    here, there = PROCESSES.Pipe()
    with Journal(path):
        other = started(open_journal, path, there)
        assert here.recv() == "ready"
        other.join(0.5)
        assert other.is_alive()
    other.join(60)
    assert other.exitcode == 0


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    ResultsStore(tmp_path, CONFIGURATION).close()
    ResultsStore(tmp_path, CONFIGURATION | {"sizes": (3, 4)}).close()
    with pytest.raises(ExperimentError, match=r"another configuration: seed is 1 there and 2 here"):
        ResultsStore(tmp_path, CONFIGURATION | {"seed": 2})
    assert read_kept(tmp_path, "sweep") == CONFIGURATION


def hold_folder(folder: Path, told: Connection) -> None:
    with ResultsStore(folder, {}):
        told.send("held")
        time.sleep(60)


def test_two_sweeps_in_one_folder_are_refused(tmp_path: Path) -> None:
    here, there = PROCESSES.Pipe()
    other = started(hold_folder, tmp_path, there)
    assert here.recv() == "held"
    with pytest.raises(
        ExperimentError, match=rf"process {other.pid} \(.*, since \d.*\) already runs a sweep"
    ):
        ResultsStore(tmp_path, {})
    other.kill()
    other.join()
    # The lock file is still there, and the pid of a process that is not.
    assert (tmp_path / "sweep.lock").exists()
    assert (tmp_path / "sweep.pid").read_text().startswith(f"{other.pid}\n")
    ResultsStore(tmp_path, {}).close()


def test_results_can_be_read_at_any_time(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="holds no sweep"):
        read_results(tmp_path)
    with ResultsStore(tmp_path, {}) as store:
        assert len(read_results(tmp_path)) == 0
        with Journal(journal_path(tmp_path, "sequence-3-0000")) as journal:
            journal.append(row(seconds=0.25, matches=2**40, started_at="2026-01-01T00:00:00.5Z"))
            journal.append(row(generator="GREEDY", matches=None))
        unfinished = read_results(tmp_path)
        assert not store.is_complete
        store.compact()
        assert store.is_complete
    complete = read_results(tmp_path)
    assert complete.equals(unfinished)
    assert (complete.dtypes == unfinished.dtypes).all()
    assert complete["matches"].iloc[0] == 2**40 and complete["matches"].isna().iloc[1]
    assert str(complete["started_at"].dtype) == "datetime64[ms, UTC]"


def test_what_is_kept_is_made_once(tmp_path: Path) -> None:
    with ResultsStore(tmp_path, {}) as store:
        assert store.kept("statistics", lambda: {"a": 0.1}) == {"a": 0.1}
        assert store.kept("statistics", lambda: {"a": 0.2}) == {"a": 0.1}


@pytest.mark.parametrize("text", [b'{"seed": ', b"\xff", b"[1]", b""])
def test_a_damaged_configuration_is_told(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "sweep.json").write_bytes(text)
    with pytest.raises(ExperimentError, match=r"sweep\.json is .*run the sweep again"):
        ResultsStore(tmp_path, CONFIGURATION)
    with pytest.raises(ExperimentError, match=r"sweep\.json is .*run the sweep again"):
        read_kept(tmp_path, "sweep")


def test_unknown_columns_are_refused(tmp_path: Path) -> None:
    with ResultsStore(tmp_path, {}), Journal(journal_path(tmp_path, "x")) as journal:
        journal.append(row(speed=1))
    with pytest.raises(ExperimentError, match="unknown column 'speed'"):
        read_results(tmp_path)


def test_what_earlier_versions_wrote_is_read(tmp_path: Path) -> None:
    today = [row(plan_kind="tree", configuration='{"generators": ["DP-B"]}', matches=3)]
    renamed = {"generator": "algorithm", "plan_kind": "plans"}
    later = ["stream", "window", "regime", "options", "details", "commit", "platform"]
    later += ["method", "sharing", *OF_METHODS]
    configuration = {"seed": 1, "algorithms": ["DP-B"]}
    (tmp_path / "sweep.json").write_text(json.dumps(configuration))
    (tmp_path / "journals").mkdir()
    before = {renamed.get(k, k): v for k, v in today[0].items() if k not in later}
    before["configuration"] = '{"algorithms": ["DP-B"]}'
    journal_path(tmp_path, "x").write_text(json.dumps(before) + "\n")
    with Journal(journal_path(tmp_path, "x")) as journal:
        assert journal.finished == {cell_of(today[0])}
    expected = results_frame(today)
    expected[["stream", "regime", "method", "sharing"]] = ""
    pd.testing.assert_frame_equal(read_results(tmp_path), expected)
    table = results_table(today).drop_columns(later)
    names = [renamed.get(name, name) for name in table.schema.names]
    old = table.set_column(
        names.index("configuration"), "configuration", pa.array([before["configuration"]])
    )
    pq.write_table(old.rename_columns(names), tmp_path / "results.parquet")
    pd.testing.assert_frame_equal(read_results(tmp_path), expected)
    # The sweep is the same, too.
    ResultsStore(tmp_path, {"seed": 1, "generators": ["DP-B"]}).close()


def test_rows_are_counted_again_where_a_journal_has_grown(tmp_path: Path) -> None:
    (tmp_path / "journals").mkdir()
    one, other = (tmp_path / "journals" / f"{name}.jsonl" for name in "ab")
    one.write_text("{}\n{}\n")
    known: dict[str, tuple[int, int]] = {}
    assert count_rows(tmp_path, known) == 2
    one.write_text("{}\n{}\n{}\n")
    other.write_text("{}\n{")
    assert count_rows(tmp_path, known) == count_rows(tmp_path) == 4
