"""Parameters of notebooks: checked by one function, in the kernel and by the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from papermill.exceptions import PapermillExecutionError

from cepbench.errors import ReportError
from cepbench.presentation.reporting.forked_kernels import Kernel
from cepbench.presentation.reporting.notebooks import parameters_of, run_notebook
from cepbench.presentation.reporting.opening import open_notebook
from cepbench.presentation.reporting.parameters import checked_parameters, literals
from cepbench.presentation.reporting.site import build_report
from tests.notebooks.tiny import NOTEBOOKS, PATHS


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_each_parameter_of_each_notebook_is_checked(path: Path) -> None:
    """Its default passes, and nothing that no notebook can use does."""
    defaults = literals(parameters_of(path))
    assert defaults.keys() == parameters_of(path).keys()
    assert checked_parameters(defaults, defaults) == defaults
    for name in defaults:
        for wrong in (object(), b"full", True if name != "fresh" else 1):
            with pytest.raises(ReportError, match=f"^parameter {name} "):
                checked_parameters({name: wrong}, defaults)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("profile", "Full", "parameter profile is one of quick, full, reference, not 'Full'; did you mean 'full'"),
        ("profile", None, "parameter profile is one of quick, full, reference, not None"),
        ("output", None, "parameter output must be a path such as output/mine, not None"),
        ("output", 2024, "must be a path .*, not 2024; papermill passes a number as a text with -r"),
        ("seed", -1, "parameter seed must be at least 0, not -1"),
        ("seed", 1.5, "parameter seed must be a whole number, not 1.5"),
        ("repetitions", -3, "parameter repetitions must be at least 0"),
        ("days", "three", "parameter days must be a whole number, not 'three'"),
        ("budget_seconds", float("nan"), "parameter budget_seconds must be finite"),
        ("sizes", 3, r"parameter sizes must be a list such as \[3, 4\], not 3"),
        ("sizes", "[1]", "each of parameter sizes must be at least 2, not 1"),
        ("sizes", {"a": 3}, "parameter sizes must be a list"),
        ("pattern_sets", '["sequenc"]', "did you mean 'sequence'"),
        ("study", "kolchinsky18", "did you mean 'kolchinsky2018'"),
        ("changes", '{"paterns": 4}', "parameter changes: unknown key 'paterns'.*did you mean 'patterns'"),
        ("changes", "patterns=4", "parameter changes must be a table such as"),
        ("plugin", [3], "each of parameter plugin must be a path"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_what_is_right(name: str, given: Any, message: str) -> None:
    with pytest.raises(ReportError, match=message):
        checked_parameters({name: given})


def test_papermills_texts_of_lists_and_tables_are_read() -> None:
    given = {
        "changes": '{"patterns": 4, "latency": true}', "sizes": "(3, 4)", "seed": 3.0,
        "plugin": "['a.py', 'b.py']", "pattern_sets": '["kleene"]',
    }  # fmt: skip
    assert checked_parameters(given) == {
        "changes": {"patterns": 4, "latency": True}, "sizes": [3, 4], "seed": 3,
        "plugin": ["a.py", "b.py"], "pattern_sets": ["kleene"],
    }  # fmt: skip
    assert checked_parameters({"plugin": None, "sizes": None}) == {"plugin": "", "sizes": None}


def test_a_readers_own_parameters_are_of_their_defaults_types() -> None:
    defaults = {"events": "mine.parquet", "threshold": 0.5, "names": ["a"], "strict": False}
    found = checked_parameters(
        {"events": "other.parquet", "threshold": -1, "names": '["b"]'}, defaults
    )
    assert found == {"events": "other.parquet", "threshold": -1.0, "names": ["b"]}
    for name, wrong in (("events", 3), ("threshold", "x"), ("names", "b"), ("strict", 0)):
        with pytest.raises(ReportError, match=f"mine.ipynb: parameter {name} "):
            checked_parameters({name: wrong}, defaults, "mine.ipynb")
    # Of a sweep file there may be any profile.
    assert checked_parameters({"profile": "huge", "sweep": "x.toml"}) == {
        "profile": "huge", "sweep": "x.toml",
    }  # fmt: skip


def write_notebook(folder: Path, parameters: str, *sources: str) -> Path:
    cells = [new_code_cell(source) for source in (parameters, *sources)]
    cells[0].metadata["tags"] = ["parameters"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), folder / "mine.ipynb")
    return folder / "mine.ipynb"


OPENED = "from cepbench.presentation.reporting.opening import open_notebook\nfolder = open_notebook(output)"


def test_the_kernel_has_what_was_checked(tmp_path: Path) -> None:
    path = write_notebook(
        tmp_path,
        'output = "out"\nchanges = None\nprofile = "quick"',
        OPENED,
        "changes['patterns'] + 1",
    )

    def run(**parameters: Any) -> Any:
        return papermill.execute_notebook(
            path, tmp_path / "x.ipynb", parameters, cwd=tmp_path, progress_bar=False,
            kernel_manager_class=Kernel,
        )  # fmt: skip

    done = run(changes='{"patterns": 4}')
    assert done.cells[-1].outputs[0]["data"]["text/plain"] == "5"
    with pytest.raises(PapermillExecutionError) as failed:
        run(profile="Full")
    assert failed.value.ename == "ReportError"
    assert failed.value.evalue.startswith(
        "parameter profile is one of quick, full, reference, not 'Full'"
    )


def test_the_report_checks_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"tutorial\.ipynb: parameter sizes must be a list"):
        build_report(
            tmp_path / "r", notebooks=NOTEBOOKS, only=["tutorial"], parameters={"sizes": 3}
        )
    path = write_notebook(tmp_path, "days = 0", "1 / 0")
    with pytest.raises(ReportError, match=r"mine\.ipynb: parameter days must be at least 0"):
        run_notebook(path, tmp_path / "x.ipynb", {"days": -1})
    assert not (tmp_path / "r").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"parameter output: .* is no folder to write into"):
        open_notebook(tmp_path / "file" / "below")
    with pytest.raises(ReportError, match="parameter output must be a path"):
        open_notebook("")
