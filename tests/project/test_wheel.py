"""A wheel: what is in it, and that README's example runs from it in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("wheel")  # built once

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("cepbench", "datasets", "setup.py", "MANIFEST.in", "pyproject.toml", "README.md")
SHORTEST, COMPARED, CODE = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
)

#: Where the parts of the catalogue are found and made.
WHERE = """
import cepbench as cep
print(cep.__file__)
for name in ("nasdaq-style/sample", "lobster/sample", "ten-symbols/quick"):
    dataset = cep.open_dataset(name)
    assert dataset.events and dataset.patterns and len(dataset.stream()) == dataset.events
    print(dataset.path)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for setuptools leaves folders beside what it reads."""
    copy = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("data", "__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, copy / name)
    made = copy / "datasets" / "ten-symbols" / "data" / "mine"
    made.mkdir(parents=True)
    (made / "events.parquet").write_text("somebody's own")
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
            "--no-index", "--disable-pip-version-check", "--wheel-dir", "wheels", ".",
        ],
        cwd=copy, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (built,) = (copy / "wheels").iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that Python imports from; unpacking is all that installing it would do."""
    target = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def run(code: str, installed: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in an empty folder, with the user's data below it."""
    (folder / "work").mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "CEPBENCH_DATASETS"}
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", code],
        cwd=folder / "work",
        env=environment | {"PYTHONPATH": str(installed), "XDG_DATA_HOME": str(folder / "share")},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done


def test_it_has_all_files_of_the_package_and_the_catalogue(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    package = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "cepbench").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    catalogue = {
        f"cepbench/streams/datasets/bundled/{file.parent.name}/{file.name}"
        for declaration in (ROOT / "datasets").glob("*/dataset.toml")
        for file in declaration.parent.iterdir()
        if file.is_file()
    }
    assert len(catalogue) > 15
    assert {name for name in inside if ".dist-info/" not in name} == package | catalogue


def test_a_checkout_is_imported_from_the_folder_above(tmp_path: Path) -> None:
    """That has a folder cepbench too, which Python must not take for the package."""
    (tmp_path / "cepbench" / "docs").mkdir(parents=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    code = "import cepbench; print(cepbench.__file__, cepbench.parse.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stdout.endswith("__init__.py parse\n"), done.stderr


def test_samples_are_opened_and_others_made_where_the_user_may_write(
    installed: Path, tmp_path: Path
) -> None:
    module, sample, lobster, quick = map(Path, run(WHERE, installed, tmp_path).stdout.splitlines())
    assert module.is_relative_to(installed)
    assert (
        sample
        == module.parent / "streams" / "datasets" / "bundled" / "nasdaq-style" / "sample.parquet"
    )
    assert lobster.parent.parent == sample.parent.parent
    made = tmp_path / "share" / "cepbench" / "datasets" / "ten-symbols" / "data"
    assert quick == made / "quick"
    assert sorted(path.name for path in made.iterdir()) == ["quick"]
    assert not list(installed.rglob("data"))


def test_the_shortest_program_of_readme_finds_matches(installed: Path, tmp_path: Path) -> None:
    done = run(SHORTEST, installed, tmp_path)
    assert done.stderr == ""
    shown = (
        (ROOT / "README.md").read_text("utf-8").partition("```text\n")[2].partition("```")[0]
    )  # as README shows it
    time = r"in [\d.e-]+ s"
    assert re.sub(time, "", done.stdout) == re.sub(time, "", shown)
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [
        ["a", "a.time", "a.price", "b", "b.time", "b.price"],
        ["0", "0", "1", "5.0", "3", "6", "7.0"],
        ["1", "2", "4", "5.0", "3", "6", "7.0"],
    ]


def test_the_second_program_of_readme_compares_plans_and_writes_a_page(
    installed: Path, tmp_path: Path
) -> None:
    printed = run(SHORTEST + COMPARED, installed, tmp_path).stdout
    assert "DP-LD" in printed and "events/s" in printed
    assert (tmp_path / "work" / "all.html").stat().st_size > 100_000


def test_the_example_of_readme_runs_and_shows_its_generator_among_all(
    installed: Path, tmp_path: Path
) -> None:
    done = run(CODE, installed, tmp_path)
    assert done.stderr == ""
    for name in ("MY-IDEA", "TRIVIAL", "DP-LD", "DP-B", "ZSTREAM-ORD"):
        assert name in done.stdout
    assert not list((tmp_path / "work").iterdir())
