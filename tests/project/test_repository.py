"""What is in git: no addresses, no paths of a machine, no outputs; targets that are explained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Written so that this file does not find itself.
REGISTRIES = re.compile(
    r"pypi\.(?:org|python)|python(?:hosted)[.]org|ana(?:conda)[.](?:org|com)|conda[.]anaconda|"
    r"repo1?[.]maven|maven(?:central)|artif(?:actory)|regi(?:stry)[.]npmjs|cdn[.]jsdelivr|"
    r"un(?:pkg)[.]com|crates[.]io|proxy[.]golang|index-url\s*=?\s*http",
    re.IGNORECASE,
)
MACHINE = re.compile(r"(?<![\w.~-])/(?:work|root|home|Users|mnt|opt|media)/[\w.-]+")
#: Paths that any machine of the kind has, which a test of path handling may name.
EXAMPLES = ("/path/to/",)


def tracked() -> list[Path]:
    """All files in git; without git, as in an unpacked archive, these tests are skipped."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, encoding="utf-8"
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def texts() -> list[tuple[str, str]]:
    """Name and text of every text file in git but this one."""
    found = []
    for path in tracked():
        if path == Path(__file__).resolve():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            found.append((str(path.relative_to(ROOT)), content.decode("utf-8")))
    return found


def test_the_search_would_find_what_it_looks_for() -> None:
    for line in ("https://pypi.org/simple", "https://files.python" + "hosted.org/x"):
        assert REGISTRIES.search(line)
    for line in ("see /home/somebody/x", 'open("/root/data.csv")', "/work/main"):
        assert MACHINE.search(line)
    assert not MACHINE.search("python docs/work/plan.md and ~/home/x")


def test_no_file_names_a_registry() -> None:
    found = [f"{name}: {m.group()}" for name, text in texts() for m in REGISTRIES.finditer(text)]
    assert found == []


def test_no_file_names_a_path_of_somebody_s_machine() -> None:
    found = [f"{name}: {m.group()}" for name, text in texts() for m in MACHINE.finditer(text)]
    assert found == []


def test_nothing_is_in_git_that_is_made() -> None:
    made = re.compile(r"(^|/)(\.venv|__pycache__|output|spark-warehouse|\.ipynb_checkpoints)(/|$)")
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        assert not made.search(name), name
        assert not name.startswith("reports/") or name == "reports/.gitignore"
        assert path.stat().st_size < 500_000, f"{name} is too large for git"


NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/[!.]*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stripped_and_can_be_parametrised(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["language"] == "python"
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["title"] and notebook["metadata"]["summary"]
    assert "papermill" not in notebook["metadata"]
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        assert cell["outputs"] == [] and cell["execution_count"] is None
        assert "papermill" not in cell["metadata"]
    tagged = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    parameters = "".join(tagged[0]["source"])
    assert 'profile = "quick"' in parameters or "profile = (" in parameters
    assert "seed = 0" in parameters


#: Notebooks that readers run on what is theirs; tests run them all the same.
BY_HAND = {"sweep"}


def test_the_report_has_every_notebook() -> None:
    from cepbench.presentation.reporting.requests import requests_for

    folder = ROOT / "notebooks"
    published = {request.path for request in requests_for([], folder)}
    assert published | {folder / f"{stem}.ipynb" for stem in BY_HAND} == set(NOTEBOOKS)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_help_describes_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.findall(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)
    targets = {target for line in phony for target in line.split()}
    assert {"test", "report", "lint", "lab", "bench", "env", "help"} <= targets
    asked = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, check=True, encoding="utf-8"
    )
    described = dict(
        line.split(maxsplit=1) for line in asked.stdout.splitlines() if line.startswith("  ")
    )
    assert set(described) == targets
    assert all(len(text) > 10 for text in described.values())


def test_continuous_integration_calls_the_readme_s_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in script.splitlines()
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
