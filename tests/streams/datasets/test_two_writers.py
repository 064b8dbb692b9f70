"""Two processes that write to one folder: the second is told which is the first, unless that died."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cepbench.errors import CepbenchError, DatasetError, ReportError
from cepbench.files import held
from cepbench.presentation.reporting.site import build_report, publish_report
from cepbench.streams.dataset_folder import begin_dataset, read_declaration, unfinished_dataset
from cepbench.streams.generated import make_in_one_step, make_stream
from cepbench.streams.ten_symbols import TenSymbols

#: Begins a data set in a folder, with an event of another one, and does not go on.
BEGUN = """
import sys, time
from pathlib import Path
from cepbench.streams.dataset_folder import unfinished_dataset
with unfinished_dataset(Path(sys.argv[1]), kind="minute-bars", parameters={}) as found:
    assert found is None
    (Path(sys.argv[1]) / "part-99999.parquet").write_text("half")
    print("begun", flush=True)
    time.sleep(600)
"""


def test_the_second_is_refused_until_the_first_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [sys.executable, "-c", BEGUN, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None and first.stdout.readline() == "begun\n"
        told = (
            rf"process {first.pid} \(-c .*, since \d{{4}}-.*\) already writes a data set in .*data;"
        )
        for write in (make_stream, make_in_one_step):
            with pytest.raises(DatasetError, match=told):
                write(folder, TenSymbols(10))
        assert (folder / "part-99999.parquet").read_text() == "half"
        first.send_signal(signal.SIGKILL)
    make_stream(folder, TenSymbols(10))
    declaration = read_declaration(folder)
    assert declaration is not None and declaration.events == 10
    assert not [path for path in folder.rglob("*") if path.suffix in (".lock", ".pid")]
    assert not (folder / "part-99999.parquet").exists()


def test_what_is_complete_needs_no_lock(tmp_path: Path) -> None:
    declaration = make_stream(tmp_path, TenSymbols(10))
    with held(tmp_path, "_dataset", "writes a data set", DatasetError):
        assert make_stream(tmp_path, TenSymbols(10)) == declaration
        with pytest.raises(DatasetError, match="other parameters"):
            make_stream(tmp_path, TenSymbols(11))


def test_a_data_set_that_was_finished_while_this_one_waited_is_kept(tmp_path: Path) -> None:
    parameters = {"kind": "test", "parameters": {}}
    with unfinished_dataset(tmp_path, **parameters) as found:
        assert found is None
        assert begin_dataset(tmp_path, **parameters) is None  # the lock is no file of others
        assert (tmp_path / "_dataset.lock").exists()


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: publish_report(folder),
        lambda folder: build_report(folder, only=["quickstart"], notebooks=NOTEBOOKS),
    ],
)
def test_two_reports_in_one_folder(tmp_path: Path, write: Callable[[Path], object]) -> None:
    told = r"process \d+ .* already writes a report"
    with (
        held(tmp_path, "report", "writes a report", CepbenchError),
        pytest.raises(ReportError, match=told),
    ):
        write(tmp_path)
    assert not list(tmp_path.iterdir())


NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
