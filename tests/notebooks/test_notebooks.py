"""Notebooks run as ``make report`` runs them; what all of them show is in ``tests/report``."""

from __future__ import annotations

import ast
import re
import signal
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
from jupyter_client.provisioning import LocalProvisioner
from papermill.exceptions import PapermillExecutionError

import cepbench as cep
from cepbench.errors import PlanGeneratorError, ReportError
from cepbench.planning.planners.registry import default_generators
from cepbench.presentation.reporting.forked_kernels import Kernel
from cepbench.presentation.reporting.notebooks import parameters_of, run_notebook
from cepbench.presentation.reporting.site import build_report, publish_report
from tests.notebooks.tiny import NOTEBOOKS, PATHS, tiny_for, write_notebook, write_plugin
from tests.presentation.reporting.offline import read_page


def test_notebooks_are_without_outputs() -> None:
    for path in PATHS:
        cells = nbformat.read(path, as_version=4).cells
        assert not any(cell.get("outputs") for cell in cells)


WARNING = "import warnings; warnings.warn('too few patterns')"


def write_own(folder: Path, *sources: str) -> Path:
    return write_notebook(folder / "own.ipynb", *sources)


def test_a_cell_that_fails_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = write_own(tmp_path, "n = 1", "print('so far', n)", "1 / 0")
    executed = tmp_path / "out" / "own.ipynb"
    with pytest.raises(ReportError, match=r"own.ipynb, cell \d+: ZeroDivisionError"):
        run_notebook(path, executed, {"n": 5})
    assert "so far 5" in executed.read_text(encoding="utf-8")


def test_a_run_of_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that warns, which is no error: what is recorded of it, its folder, and its end."""
    sent: list[int] = []
    send = LocalProvisioner.send_signal

    async def send_signal(self: LocalProvisioner, signum: int) -> None:
        sent.append(signum)
        await send(self, signum)

    monkeypatch.setattr(LocalProvisioner, "send_signal", send_signal)
    path = write_own(tmp_path, "n = 1", "import os; print(os.listdir())", WARNING)
    read = ["data/sweeps/a-0/results.parquet"]
    executed = run_notebook(path, tmp_path / "out" / "own.ipynb", {}, sweeps=read)
    # It would log the interrupt as an error now and then.
    assert signal.SIGINT not in sent  # on a busy machine it may have to be terminated
    # A kernel's sockets are in a folder of its own, not beside the notebook, for all to take.
    assert set(ast.literal_eval(executed.cells[-2].outputs[0].text)) == {"own.ipynb", "out"}
    found = executed.metadata["cepbench"]
    assert found["sweeps"] == read
    assert found["machine"]["cores"] and found["versions"]["cepbench"] == cep.__version__
    assert "commit" in found and found["memory"] > 0


def test_unknown_parameters_fail_before_anything_runs(tmp_path: Path) -> None:
    path = write_own(tmp_path, "seed = 0  # of all", "1 / 0")
    assert parameters_of(path) == {"seed": "0"}
    with pytest.raises(
        ReportError, match=r"no parameter 'sead' in own.ipynb; did you mean 'seed'\?"
    ):
        run_notebook(path, tmp_path / "x.ipynb", {"sead": 1})
    with pytest.raises(
        ReportError, match=r"no parameter 'patern' in any notebook; did you mean 'patt"
    ):
        build_report(tmp_path / "r", notebooks=NOTEBOOKS, parameters={"patern": 1})
    with pytest.raises(ReportError, match="unknown profile 'fast'; there are quick and full"):
        build_report(tmp_path / "r", notebooks=NOTEBOOKS, profile="fast")
    with pytest.raises(ReportError, match=r"there is no notebook .*quickstart\.ipynb"):
        build_report(tmp_path / "r", notebooks=tmp_path)
    with pytest.raises(PlanGeneratorError, match=r"no Python file mine\.py"):
        build_report(
            tmp_path / "r", only=["kolchinsky2018/ledger"], notebooks=NOTEBOOKS, plugins=["mine.py"]
        )
    with pytest.raises(ReportError, match=r"own\.ipynb takes no plug-ins"):
        build_report(tmp_path / "r", only=[str(path)], plugins=[write_plugin(tmp_path)])
    assert not (tmp_path / "r").exists()


def test_any_notebook_becomes_a_page_and_stays_one(tmp_path: Path) -> None:
    """With what it asks for: its folder in the report, profile and seed, plug-ins."""
    sources = (
        'output = "output/x"\nplugin = ""\ndata = "mine.parquet"\nseed = 1',
        "from cepbench.presentation.reporting.opening import open_notebook\n"
        "folder = open_notebook(output, plugin)\n"
        "from cepbench.planning.planners.registry import user_defined_generators\n"
        "(folder / 'told.txt').write_text(f'{user_defined_generators()} {data} {seed}')",
    )
    path = write_own(tmp_path, *sources)
    report = tmp_path / "report"
    build_report(
        report,
        only=[str(path)],
        seed=7,
        plugins=[write_plugin(tmp_path)],
        on_progress=lambda what, state: None,
    )
    assert (report / "own" / "told.txt").read_text() == "['BACKWARDS'] mine.parquet 7"
    built = (report / "own.html").read_text("utf-8")
    text = read_page(built).text
    assert "Your pages" in text and "own · cepbench" in text
    publish_report(report, on_progress=lambda what, state: None)
    assert (report / "own.html").read_text("utf-8") == built
    other = write_own(tmp_path, 'output = "output/x"').rename(tmp_path / "second.ipynb")
    build_report(report, only=[str(other)], on_progress=lambda what, state: None)
    for stem in ("index", "own", "second"):
        links = [
            a["href"]
            for tag, a in read_page((report / f"{stem}.html").read_text("utf-8")).elements
            if tag == "a"
        ]
        assert {"own.html", "second.html"} <= set(links)


def test_a_parameter_that_is_not_declared_ends_a_run_by_plain_papermill(tmp_path: Path) -> None:
    """papermill itself warns and runs on with the default."""
    sources = (
        'profile = "quick"\noutput = "out"',
        "from cepbench.presentation.reporting.opening import open_notebook\nopen_notebook(output)",
    )
    path = write_own(tmp_path, *sources)
    with pytest.raises(PapermillExecutionError) as failed:
        papermill.execute_notebook(
            path, tmp_path / "x.ipynb", {"profil": "full"}, cwd=tmp_path, progress_bar=False,
            kernel_manager_class=Kernel,
        )  # fmt: skip
    assert failed.value.ename == "ReportError"
    assert "no parameter 'profil' in this notebook; did you mean 'profile'?" in failed.value.evalue


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_notebook_checks_what_it_is_handed(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    (parameters,) = (c for c in cells if "parameters" in c.metadata.get("tags", []))
    call = "open_notebook(output, plugin)" if path.stem != "ledger" else "open_notebook(output)"
    assert f"folder = {call}" in cells[cells.index(parameters) + 1].source
    assert ("plugin" in parameters_of(path)) == (path.stem != "ledger")


def test_a_warning_is_an_error_where_that_is_asked_for(tmp_path: Path) -> None:
    path = write_own(tmp_path, "n = 1", WARNING)
    with pytest.raises(ReportError, match=r"own\.ipynb, cell 2 warns: .*too few patterns"):
        run_notebook(path, tmp_path / "out" / "own.ipynb", {}, strict=True)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("import os; os._exit(3)", "Kernel died"),
        ("import sys; sys.exit()", "a cell ends by sys.exit"),
    ],
)
def test_a_notebook_that_ends_early_is_an_error(tmp_path: Path, cell: str, words: str) -> None:
    path = write_own(tmp_path, "n = 1", cell)
    with pytest.raises(ReportError, match=rf"own\.ipynb: {words}"):
        run_notebook(path, tmp_path / "out" / "own.ipynb", {})


def test_the_notebook_of_a_user_defined_generator_names_it_once(tmp_path: Path) -> None:
    """Its function, in a cell of its own, is all that a reader replaces."""
    path = NOTEBOOKS / "user_defined_generator.ipynb"
    naming = [c for c in nbformat.read(path, as_version=4).cells if "lookahead" in c.source.lower()]
    assert len(naming) == 1 and "check_generator" not in naming[0].source
    copy = tmp_path / "balanced.ipynb"
    copy.write_bytes(path.read_bytes())
    plugin = tmp_path / "my_generators.py"
    plugin.write_text(
        "import cepbench as cep\n"
        "@cep.plan_generator('BALANCED', kind='tree')\n"
        "def balanced(problem, rng):\n"
        "    def build(part):\n"
        "        half = len(part) // 2\n"
        "        return part[0] if not half else (build(part[:half]), build(part[half:]))\n"
        "    return build(list(range(problem.n)))\n",
        encoding="utf-8",
    )
    build_report(
        tmp_path / "r", only=[str(copy)], plugins=[plugin], on_progress=lambda what, state: None,
        parameters=tiny_for("user_defined_generator") | {"identifiers": 40},
    )  # fmt: skip
    page = read_page((tmp_path / "r" / "balanced.html").read_text(encoding="utf-8"))
    text = " ".join(page.text.split())
    table = pd.read_parquet(tmp_path / "r" / "balanced" / "results.parquet")
    assert set(table["generator"]) == {*default_generators(user_defined=False), "BALANCED"}
    assert "LOOKAHEAD" not in text.replace('"LOOKAHEAD"', "")  # but in the code of the example
    assert re.search(
        r"BALANCED finds a plan of least cost on \d+% of these problems, ZSTREAM", text
    )
