"""Forked kernels are as new processes are: with the environment of now, and an end of their own."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from cepbench.errors import ReportError
from cepbench.presentation.figures.offline import VEGALITE_MIME
from cepbench.presentation.reporting.forked_kernels import kill_kernels
from cepbench.presentation.reporting.kernel_server import IMPORTED
from cepbench.presentation.reporting.notebooks import run_notebook

pytestmark = pytest.mark.xdist_group("notebooks")


def ran(folder: Path, *sources: str) -> Any:
    """The cells of a notebook in a folder after they ran."""
    parameters = new_code_cell("output = 'x'", metadata={"tags": ["parameters"]})
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    cells = [parameters, *map(new_code_cell, sources)]
    nbformat.write(new_notebook(cells=cells, metadata=kernel), folder / "given.ipynb")
    return run_notebook(folder / "given.ipynb", folder / "done" / "done.ipynb", {}).cells[1:]


def printed(cell: Any) -> str:
    return "".join(its.text for its in cell.outputs if its.output_type == "stream")


def test_a_kernel_is_a_process_of_its_own_with_the_environment_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "import os, sys; print(os.environ.get('TOLD'), os.getcwd(), os.getpid(), __name__)"
    (first,) = ran(tmp_path, told)
    monkeypatch.setenv("TOLD", "later")
    (second,) = ran(tmp_path, told)
    (none, folder, one, main), (later, _, other, _) = (
        printed(first).split(),
        printed(second).split(),
    )
    assert (none, later) == ("None", "later") and Path(folder) == tmp_path and main == "__main__"
    assert len({one, other, str(os.getpid())}) == 3
    for process in (one, other):
        assert not Path(f"/proc/{process}").exists()


def test_a_kernel_has_imports_may_have_children_and_ends_as_a_process_does(tmp_path: Path) -> None:
    """And draws no pictures."""
    modules = f"import sys; print(set({IMPORTED}) <= set(sys.modules))"
    chart = (
        "from cepbench.presentation.figures.offline import offline\n"
        "from cepbench.presentation.figures.vega import alt\n"
        "offline(alt.Chart(alt.InlineData([{'x': 1}])).mark_point().encode(x='x:Q'))"
    )
    child = (
        "import atexit, multiprocessing, pathlib\n"
        "child = multiprocessing.Process(target=pathlib.Path('child').touch)\n"
        "child.start(); child.join()\n"
        "atexit.register(pathlib.Path('ended').touch)\n"
        "print(multiprocessing.get_start_method(), child.exitcode)"
    )
    loaded, drawn, left = ran(tmp_path, modules, chart, child)
    assert printed(loaded) == "True\n"
    assert set(drawn.outputs[0].data) == {VEGALITE_MIME, "text/plain"}
    assert printed(left).split()[1] == "0" and (tmp_path / "child").exists()
    assert (tmp_path / "ended").exists()
    assert printed(left).split()[0] == multiprocessing.get_context().get_start_method()


def test_a_script_that_runs_notebooks_is_not_run_again_by_their_kernels(tmp_path: Path) -> None:
    """As it would be by multiprocessing, unless it guards its main part; the first has no kernel."""
    root = Path(__file__).resolve().parents[3]
    lines = (
        "import sys",
        f"sys.path.insert(0, {str(root)!r})",
        "open('began', 'a').write('x')",
        "from pathlib import Path",
        "from cepbench.errors import ReportError",
        "from tests.presentation.reporting.test_forked_kernels import printed, ran",
        "python, sys.executable = sys.executable, '/bin/false'",
        "try:",
        "    ran(Path('.'), '1')",
        "except ReportError as error:",
        "    print(error)",
        "sys.executable = python",
        "print(printed(ran(Path('.'), 'import sys; print(str() in sys.path)')[0]))",
    )
    (tmp_path / "script.py").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, found = done.stdout.split("\n", 1)
    assert "the process that starts kernels of notebooks has ended" in refused
    assert found.strip() == "True"
    assert (tmp_path / "began").read_text() == "x"


def test_kernels_that_are_killed_end_their_notebooks(tmp_path: Path) -> None:
    began = time.monotonic()

    def killed_when_it_runs() -> None:
        while not (tmp_path / "runs").exists() and time.monotonic() < began + 30:
            time.sleep(0.05)
        kill_kernels()

    killer = Thread(target=killed_when_it_runs)
    killer.start()
    with pytest.raises((ReportError, RuntimeError)):
        ran(tmp_path, "open('runs', 'w'); import time; time.sleep(60)")
    killer.join()
    assert time.monotonic() - began < 30
