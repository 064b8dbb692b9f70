"""A second paper takes a folder of ``studies``, one of ``notebooks`` and a line in the registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import cepbench
from cepbench.errors import ReportError
from cepbench.experiments.studies.registry import STUDIES, find_study, studies_of
from cepbench.presentation.reporting.requests import requests_for
from tests.presentation.reporting.crates import checked_crate
from tests.presentation.reporting.offline import read_page

PACKAGE = Path(cepbench.__file__).parent
NOTEBOOKS = PACKAGE.parent / "notebooks"

STUDY = """
from pathlib import Path

from cepbench.experiments.studies.study import Study

STUDY = Study(
    "swami1988", Path(__file__).parent, notebooks=("figure_1",), generators=("A", "B"),
    profiles=("tiny",),
)
"""
LEDGER = """
[headlines]
a-beats-b = "{value} times the throughput"

[[claim]]
id = "a-beats-b"
figure = "1"
section = "3"
statement = "A is faster than B."
kind = "ratio"
results = "figure_1"
metric = "events_per_second"
over = { generators = ["A"] }
under = { generators = ["B"] }
expected = { from = 1.0 }
"""
SWEEP = """
title = "Of one size"
data = { identifiers = 8, days = 1 }
[profile.tiny]
sizes = [3]
"""
CELLS = (
    'profile = "tiny"\nseed = 0\noutput = "output/figure_1"',
    """
import pandas as pd

from cepbench.presentation.reporting.opening import open_notebook
from cepbench.experiments.sweeps.sweep_file import read_sweep

folder = open_notebook(output)
sizes = read_sweep("swami1988/one", profile=profile).config("x").sizes
rows = [
    {"pattern_set": "s", "size": size, "pattern_id": f"s-{n}", "generator": name, "alpha": 0.0,
     "strategy": "any", "status": "ok", "events_per_second": speed}
    for size in sizes for n in range(6) for name, speed in (("A", 3.0), ("B", 2.0), ("C", 9.0))
]
results = pd.DataFrame(rows)
results.to_parquet(folder / "results.parquet")
""",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this project with another study in it."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(PACKAGE, root / "cepbench")  # with what is compiled of it
    studies, notebooks = root / "cepbench" / "experiments" / "studies", root / "notebooks"
    notebooks.mkdir()
    for path in NOTEBOOKS.iterdir():
        if path.name != "output":
            (notebooks / path.name).symlink_to(path)
    (root / "datasets").symlink_to(PACKAGE.parent / "datasets")
    # One folder of studies,
    own = studies / "swami1988"
    (own / "sweeps").mkdir(parents=True)
    (own / "__init__.py").write_text(STUDY, encoding="utf-8")
    (own / "ledger.toml").write_text(LEDGER, encoding="utf-8")
    (own / "sweeps" / "one.toml").write_text(SWEEP, encoding="utf-8")
    # one of notebooks,
    cells = [new_markdown_cell("# Figure 1"), *map(new_code_cell, CELLS)]
    cells[1].metadata["tags"] = ["parameters"]
    kernel = {"name": "python3", "display_name": "P", "language": "python"}
    metadata = {"kernelspec": kernel, "title": "Figure 1", "uses": "one core"}
    (notebooks / "swami1988").mkdir()
    nbformat.write(
        new_notebook(cells=cells, metadata=metadata), notebooks / "swami1988" / "figure_1.ipynb"
    )
    # and a line in the registry.
    registry = (studies / "registry.py").read_text(encoding="utf-8")
    for old, new in (
        (
            "import agrawal2008, kolchinsky2018, liu2011, mei2009, qi2014\n",
            "import agrawal2008, kolchinsky2018, liu2011, mei2009, qi2014, swami1988\n",
        ),
        (
            "(kolchinsky2018, mei2009, agrawal2008, qi2014, liu2011)",
            "(kolchinsky2018, mei2009, agrawal2008, qi2014, liu2011, swami1988)",
        ),
    ):
        assert old in registry
        registry = registry.replace(old, new)
    (studies / "registry.py").write_text(registry, encoding="utf-8")
    return root


#: Runs commands one after the other, in one process.
RUN = """
import json, sys
from typer.testing import CliRunner
from cepbench.presentation.commands.app import app
results = [CliRunner().invoke(app, words) for words in json.loads(sys.argv[1])]
print(json.dumps([[its.exit_code, its.stdout, its.stderr] for its in results]))
"""
BUILD = ("report", "build", "--study", "swami1988", "--profile")
COMMANDS = (("sweep", "list"), (*BUILD, "quick"), (*BUILD, "tiny"))


@pytest.fixture(scope="module")
def told(project: Path) -> dict[tuple[str, ...], tuple[int, str, str]]:
    """The exit code of each command, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(COMMANDS)],
        env={**os.environ, "PYTHONPATH": str(project)}, cwd=project, capture_output=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(COMMANDS, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.xdist_group("new study")
def test_a_new_study_has_pages_claims_and_a_place_beside_the_others(project: Path, told) -> None:
    code, _, errors = told[*BUILD, "tiny"]
    assert code == 0, errors
    verdicts = pd.read_parquet(project / "reports" / "swami1988" / "ledger" / "ledger.parquet")
    assert list(verdicts["verdict"]) == ["holds"] and verdicts["value"][0] == pytest.approx(1.5)
    text = {
        name: " ".join(read_page((project / "reports" / name).read_text("utf-8")).text.split())
        for name in ("index.html", "swami1988/figure_1.html", "swami1988/ledger.html")
    }
    for page in text.values():
        assert "Swami & Gupta 1988 Figure 1 Ledger" in page  # in the navigation
    front = text["index.html"]
    labels = [study.label for study in STUDIES.values()] + ["Swami & Gupta 1988"]
    places = [front.rindex(label) for label in labels]  # of their cards, behind the navigation
    assert places == sorted(places)
    assert 'not run: make report STUDIES="kolchinsky2018"' in front
    assert "A is faster than B. Here: 1.50 times the throughput" in front
    assert "✓ 1 holds" in front
    assert "A is faster than B." in text["swami1988/ledger.html"]
    crate = checked_crate(project / "reports")
    assert crate["#swami1988/figure_1"]["about"] == {"@id": "#swami1988"}  # a paper without a DOI
    assert crate["#swami1988"]["author"] and "swami1988/ledger.html" in crate


@pytest.mark.xdist_group("new study")
def test_its_sweeps_and_profiles_are_its_own(told) -> None:
    _, listed, _ = told["sweep", "list"]
    assert "swami1988/one" in listed and "kolchinsky2018/types" in listed
    code, _, errors = told[*BUILD, "quick"]
    assert code != 0 and "unknown profile 'quick'; there are tiny" in errors


def test_studies_are_named_by_citation_key() -> None:
    assert all(study.key == key for key, study in STUDIES.items())
    assert find_study("kolchinsky2018").label == "Kolchinsky & Schuster 2018"
    assert studies_of([]) == list(STUDIES.values())
    with pytest.raises(
        ReportError,
        match=r"no study 'kolchinsky18'; there are .*; did you mean 'kolchinsky2018'\?$",
    ):
        studies_of(["kolchinsky18"])
    for study in STUDIES.values():
        assert study.ledger.is_file() and study.reference.title
        for request in requests_for([], NOTEBOOKS, studies=[study.key]):
            assert request.path.is_file(), request.stem
