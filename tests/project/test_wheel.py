"""A release: sdist and wheel, what is in them, and that commands and README's examples run in an empty home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from platformdirs import user_cache_path

pytestmark = pytest.mark.xdist_group("wheel")  # built once

ROOT = Path(__file__).resolve().parents[2]
BESIDE = (
    "setup.py", "MANIFEST.in", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md",
    "CITATION.cff", "requirements.txt",
)  # fmt: skip
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


def python(folder: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, for setuptools leaves folders beside what it reads."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("cepbench", "datasets"):
        ignored = shutil.ignore_patterns("data", "__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in BESIDE:
        shutil.copy(ROOT / name, copy / name)
    for not_released in ("datasets/ten-symbols/data/mine/events.parquet", "tests/test_it.py"):
        file = copy / not_released
        file.parent.mkdir(parents=True)
        file.write_text("somebody's own")
    python(copy, "-c", "from setuptools import build_meta; build_meta.build_sdist('dist')")
    (built,) = (copy / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """Built from the sdist alone."""
    folder = sdist.parent.parent / "unpacked"
    shutil.unpack_archive(sdist, folder, filter="data")
    (sources,) = folder.iterdir()
    python(sources, "-c", "from setuptools import build_meta; build_meta.build_wheel('..')")
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which finds all else where these tests find it."""
    target = tmp_path_factory.mktemp("installed")
    venv.create(target)
    python(
        target, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(target),
        "install", "--no-deps", "--no-index", "--no-compile", str(wheel),
    )  # fmt: skip
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(target)}))
    # A path of a .pth file comes behind those before it, and .pth files there are not read.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    return target


def run(installed: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in an empty folder, with an empty home beside it."""
    for name in ("work", "home"):
        (folder / name).mkdir(exist_ok=True)
    ours = ("CEPBENCH_DATASETS", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in ours} | {
        "HOME": str(folder / "home"),
        "XDG_DATA_HOME": str(folder / "share"),
        "XDG_CACHE_HOME": str(user_cache_path()),  # compiled kernels
        "PYTHONUTF8": "1",
        "PYTHONWARNINGS": "error",
    }
    program, *arguments = command
    scripts = Path(sysconfig.get_path("scripts", "venv", {"base": str(installed)}))
    done = subprocess.run(
        [str(scripts / program), *arguments],
        cwd=folder / "work", env=environment, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def files_in(*folders: str) -> set[str]:
    """What a release has of folders of a checkout."""
    return {
        file.relative_to(ROOT).as_posix()
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and not {"__pycache__", "data"} & set(file.parts)
    }


def test_the_sdist_has_all_files_of_the_package_and_the_catalogue(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        inside = {item.name.partition("/")[2] for item in archive if item.isfile()}
    made = {name for name in inside if name.startswith("cepbench.egg-info/")}
    made |= {"PKG-INFO", "setup.cfg"}
    assert inside - made == files_in("cepbench", "datasets") | set(BESIDE)


def test_the_wheel_has_all_files_of_the_package_and_the_catalogue(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    catalogue = {
        f"cepbench/streams/datasets/bundled/{file.parent.name}/{file.name}"
        for declaration in (ROOT / "datasets").glob("*/dataset.toml")
        for file in declaration.parent.iterdir()
        if file.is_file()
    }
    assert len(catalogue) > 15
    assert {name for name in inside if ".dist-info/" not in name} == (
        files_in("cepbench") | catalogue
    )


def test_import_and_command_work_and_leave_nothing_in_the_home(
    installed: Path, tmp_path: Path
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    imported = run(
        installed, tmp_path, "python", "-c", "import cepbench; print(cepbench.__version__)"
    )
    assert imported.stdout.strip() == project["version"]
    shown = run(installed, tmp_path, "cepbench", "--version").stdout
    assert shown.split() == ["cepbench", project["version"]]
    example = ("--pattern-name", "rare-last", "--data", "nasdaq-style/sample")
    found = run(installed, tmp_path, "cepbench", "run", *example)
    assert re.search(r"^matches: +2,003$", found.stdout, re.MULTILINE)
    assert not [*tmp_path.glob("work/*"), *tmp_path.glob("home/*")]


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
    module, sample, lobster, quick = map(
        Path, run(installed, tmp_path, "python", "-c", WHERE).stdout.splitlines()
    )
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


def test_the_programs_of_readme_run_one_after_the_other(installed: Path, tmp_path: Path) -> None:
    """The second goes on with the names of the first; the third has none of theirs.

    Plans run once, instead of for a third of a second each.
    """
    line = "print('=' * 80)\n"
    first = f"{SHORTEST}{line}{COMPARED}{line}"
    (tmp_path / "all.py").write_text(
        "import functools, cepbench as cep\n"
        "cep.compare = functools.partial(cep.compare, seconds=0)\n"
        f"for code in ({first!r}, {CODE!r}):\n"
        "    exec(compile(code, 'README.md', 'exec'), {'__name__': '__main__'})\n"
    )
    done = run(installed, tmp_path, "python", str(tmp_path / "all.py"))
    assert done.stderr == ""
    found, compared, example = done.stdout.split("=" * 80 + "\n")
    shown = (
        (ROOT / "README.md").read_text("utf-8").partition("```text\n")[2].partition("```")[0]
    )  # as README shows it
    time = r"in [\d.e-]+ s"
    assert re.sub(time, "", found) == re.sub(time, "", shown)
    assert [line.split() for line in found.splitlines()[1:]] == [
        ["a", "a.time", "a.price", "b", "b.time", "b.price"],
        ["0", "0", "1", "5.0", "3", "6", "7.0"],
        ["1", "2", "4", "5.0", "3", "6", "7.0"],
    ]
    assert "DP-LD" in compared and "events/s" in compared
    for name in ("MY-IDEA", "TRIVIAL", "DP-LD", "DP-B", "ZSTREAM-ORD"):
        assert name in example
    (page,) = (tmp_path / "work").iterdir()
    assert page.name == "all.html" and page.stat().st_size > 100_000
