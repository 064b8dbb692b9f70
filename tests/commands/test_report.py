"""cepbench report: what the builder is told, and a report opened with and without a browser."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Any

import pytest

from cepbench.errors import ReportError
from cepbench.reporting import site
from cepbench.reporting.requests import report_stems


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """What the builder was called with."""
    calls: list[dict[str, Any]] = []

    def build(folder: Path, **options: Any) -> Path:
        options.pop("on_progress")("quickstart", "running")
        options["only"] = [request.stem for request in options["only"]]
        calls.append({"folder": folder, **options})
        return folder / "index.html"

    monkeypatch.setattr(site, "build_report", build)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebooks" / "kolchinsky2018").mkdir(parents=True)
    for stem in ("kolchinsky2018/figure_6", "ledger", "mine"):
        (tmp_path / "notebooks" / f"{stem}.ipynb").touch()
    return calls


def test_the_builder_is_told_what_was_asked_for(run, built) -> None:
    result = run("report build")
    assert result.stdout == "open reports/index.html\n"
    assert result.stderr == "quickstart: running\n"
    assert built == [
        {
            "folder": Path("reports"),
            "profile": "quick",
            "seed": 0,
            "notebooks": Path("notebooks"),
            "only": report_stems(),
            "parameters": None,
            "plugins": (),
            "strict": False,
        }
    ]
    run(
        "report build --profile full --only notebooks/mine.ipynb --only kolchinsky2018/ledger "
        "--only figure_6 --fresh --strict --seed 3 --plugin a.py --plugin b.py -o there"
    )
    assert built[1] == {
        "folder": Path("there"),
        "profile": "full",
        "seed": 3,
        "notebooks": Path("notebooks"),
        "only": ["kolchinsky2018/figure_6", "kolchinsky2018/ledger", "mine"],
        "parameters": {"fresh": True},
        "plugins": [Path("a.py"), Path("b.py")],
        "strict": True,
    }
    assert json.loads(run("report build --only kolchinsky2018/ledger --json").stdout) == {
        "index": "reports/index.html",
        "notebooks": ["kolchinsky2018/ledger"],
        "profile": "quick",
    }


def test_a_cell_that_fails_is_an_error(run, built, monkeypatch) -> None:
    def build(*_: object, **__: object) -> None:
        raise ReportError("cell 3 failed")

    monkeypatch.setattr(site, "build_report", build)
    assert run("report build", code=1).stderr == "error: cell 3 failed\n"


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
