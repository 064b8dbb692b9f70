"""cepbench report: what the builder is told, and a report opened with and without a browser."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Any

import nbformat
import pytest

from cepbench.presentation.reporting.requests import requests_for
from tests.notebooks.tiny import write_notebook

pytestmark = pytest.mark.xdist_group("notebooks")  # one process forks all kernels

#: Its second cell tells what it was handed.
NOTEBOOK = (
    'profile = "quick"\nseed = 0\nfresh = False\nplugin = ""\noutput = "output/x"',
    "import json; print(json.dumps([profile, seed, fresh, plugin, output]))",
)


@pytest.fixture
def notebooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebooks" / "kolchinsky2018").mkdir(parents=True)
    write_notebook(tmp_path / "notebooks" / "mine.ipynb", *NOTEBOOK)
    return tmp_path / "notebooks"


def told_by(executed: str) -> list[Any]:
    """What an executed notebook tells."""
    cells = nbformat.read(executed, as_version=4).cells
    (told,) = (its for cell in cells for its in cell.outputs if its.get("name") == "stdout")
    return json.loads(told.text)


def test_notebooks_are_handed_what_was_asked_for(run, notebooks: Path) -> None:
    write_notebook(notebooks / "kolchinsky2018" / "figure_6.ipynb", NOTEBOOK[0], "print('six')")
    wanted = "--only notebooks/mine.ipynb --only figure_6"
    result = run(f"report build {wanted} --json")
    assert json.loads(result.stdout) == {
        "index": "reports/index.html",
        "notebooks": ["kolchinsky2018/figure_6", "mine"],
        "profile": "quick",
    }
    assert "mine: running\n" in result.stderr
    assert told_by("reports/mine/mine.ipynb") == ["quick", 0, False, "", "../reports/mine"]
    for page in ("index", "mine", "kolchinsky2018/figure_6"):
        assert Path(f"reports/{page}.html").is_file()
    assert run("report build --pages-only").stdout == "open reports/index.html\n"


def test_by_default_all_notebooks_of_the_report_are_run(run, notebooks: Path) -> None:
    """All are read before the first one runs."""
    files = {request.path for request in requests_for([])}
    for path in files:
        path.parent.mkdir(exist_ok=True)
        write_notebook(path, "n = 1")
    for path in files:
        kept = path.rename("kept")
        assert f"there is no notebook {path}" in run("report build", code=1).stderr
        kept.rename(path)


def test_a_cell_that_fails_is_an_error(run, notebooks: Path) -> None:
    warns = ("import warnings; warnings.warn('too few')",)
    write_notebook(notebooks / "mine.ipynb", *NOTEBOOK, *warns)
    for name in ("a", "b"):
        Path(f"{name}.py").write_text(
            "import cepbench as cep\n"
            f"cep.plan_generator({name!r}, kind='order')(lambda problem, rng: range(problem.n))\n"
        )
    result = run(
        "report build --profile full --only mine --fresh --strict --seed 3 --plugin a.py "
        "--plugin b.py -o there",
        code=1,
    )
    assert result.stderr.splitlines()[-1].startswith("error: mine.ipynb, cell 4 warns: ")
    assert told_by("there/mine/mine.ipynb") == [
        "full", 3, True, ["../a.py", "../b.py"], "../there/mine",
    ]  # fmt: skip


@pytest.mark.parametrize("found", [True, False, None])
def test_a_report_is_opened_or_its_place_is_told(
    found: bool | None, run, tmp_path, monkeypatch
) -> None:
    opened = []

    def browser(address: str) -> bool:
        opened.append(address)
        if found is None:
            raise webbrowser.Error("no browser")
        return found

    monkeypatch.setattr(webbrowser, "open", browser)
    (tmp_path / "index.html").touch()
    result = run(["report", "open", "--output", str(tmp_path)])
    assert opened == [(tmp_path / "index.html").as_uri()]
    assert result.stdout == f"{tmp_path / 'index.html'}\n"
    assert bool(result.stderr) != bool(found)
