"""pyproject.toml, environment.yml and requirements.txt say the same about what is needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONDA: dict[str, Any] = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
LOCK = ROOT / "requirements.txt"
#: Each pin, with the hashes of its files.
HASHES = {
    Requirement(pin): hashes
    for pin, *hashes in (
        entry.split(" \\\n    --hash=sha256:")
        for entry in re.split(r"\n(?! )", LOCK.read_text(encoding="utf-8").strip())
    )
}
PINS = list(HASHES)
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
#: Engines of `make conformance`, which are in no environment of ours.
PEERS = {name: EXTRAS.pop(name) for name in ("chdb", "core", "flink")}
DIRECT = [
    Requirement(line)
    for line in [*PROJECT["project"]["dependencies"], *(r for rs in EXTRAS.values() for r in rs)]
]
PYTHONS = ("3.11", "3.12", "3.13")


def pins_for(name: str, python: str, platform: str) -> list[Requirement]:
    """The pins of a package that hold on one Python and platform."""
    where = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": platform,
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[platform],
    }
    return [
        pin
        for pin in PINS
        if canonicalize_name(pin.name) == canonicalize_name(name)
        and (pin.marker is None or pin.marker.evaluate(where))
    ]


def test_every_pin_is_one_exact_version_without_an_address() -> None:
    assert len(PINS) > len(DIRECT)
    for pin in PINS:
        assert pin.url is None
        assert re.fullmatch(r"==[\w.+!]+", str(pin.specifier)), str(pin)


def test_every_pin_has_the_hashes_of_its_files() -> None:
    for pin, hashes in HASHES.items():
        assert hashes and all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes), str(pin)
    # Wheels for each platform and Python.
    numpy = next(hashes for pin, hashes in HASHES.items() if pin.name == "numpy")
    assert len(numpy) > 20


def test_the_environment_is_made_of_the_lock_alone() -> None:
    """Also what builds packages without a wheel; only the checkout itself has no hash."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = re.findall(r'(?:"\$\$@"|[\t{ ]pip) (--.*?)(?: &&|;)', makefile)
    lock, checkout = "--require-hashes", "--no-deps --no-build-isolation -e ."
    assert [step for step in steps if lock not in step] == [checkout]
    assert len(steps) == 4 and lock + " --no-build-isolation -r requirements.txt" in steps


#: Writes what it is called by; as Python it lists the settings of pip, and may find no uv; as uv it may fail.
STAND_IN = """\
#!/bin/sh
case "$*" in
*"pip config list") cat settings ;;
*pip\\ install*) echo "$(basename "$0") $UV_DEFAULT_INDEX $SSL_CERT_FILE $*" >>calls; test ! -e "$(basename "$0").fails" && case "$*" in *uv.txt) test ! -e none.uv ;; esac ;;
esac
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", "uv   "),
        (":env:.timeout='9'\nglobal.find-links='/wheels'\n", "uv   "),
        (
            "global.index-url='https://b/simple'\nglobal.cert='/c.pem'\n",
            "uv https://b/simple /c.pem ",
        ),
        (":env:.index-url='https://a'\nglobal.index-url='https://b'\n", "uv https://a  "),
        ("global.index-url='https://b'\nglobal.trusted-host='b'\n", "python   "),
        ("install.index-url='https://b'\n", "python   "),
        ("uv.fails", "python   "),
        ("none.uv", "python   "),
    ],
)
def test_uv_installs_unless_pip_has_settings_that_it_lacks(
    tmp_path: Path, settings: str, expected: str
) -> None:
    for name in ("Makefile", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name in ("python", "uv"):
        (binaries / name).write_text(STAND_IN, encoding="utf-8")
        (binaries / name).chmod(0o755)
    if "uv" in settings:
        (tmp_path / settings).touch()
        settings = ""
    (tmp_path / "settings").write_text(settings, encoding="utf-8")
    subprocess.run(
        ["make", "env", f"PYTHON={binaries / 'python'}"],
        cwd=tmp_path, check=True, capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert all(call.startswith("python ") for call in calls[:2])
    assert "-r .venv/setuptools.txt" in calls[0] and "-r .venv/uv.txt" in calls[1]
    assert calls[-2].startswith(expected) and calls[-2].endswith("-r requirements.txt")
    assert calls[-1].startswith(expected) and calls[-1].endswith("-e .")
    for name in ("setuptools", "uv"):
        its = (tmp_path / ".venv" / f"{name}.txt").read_text(encoding="utf-8")
        assert re.findall("^[a-z]+", its, re.MULTILINE) == [name]
    took = (tmp_path / ".venv" / "built").read_text(encoding="utf-8").splitlines()
    assert [line.partition(": ")[0] for line in took][:2] == ["packages", "compiled kernels"]


def test_peers_are_pinned_where_they_are_named_and_nowhere_else() -> None:
    ours = {canonicalize_name(pin.name) for pin in PINS}
    for line in (line for lines in PEERS.values() for line in lines):
        assert re.fullmatch(r"[\w-]+==[\w.]+", line), line
        assert canonicalize_name(Requirement(line).name) not in ours


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_has_one_pin_that_satisfies_it(python: str, platform: str) -> None:
    for requirement in DIRECT:
        pins = pins_for(requirement.name, python, platform)
        assert len(pins) == 1, f"{requirement.name} on {platform} with {python}: {pins}"
        version = next(iter(pins[0].specifier)).version
        assert requirement.specifier.contains(version), f"{requirement} against {pins[0]}"


def test_what_is_installed_needs_nothing_unpinned() -> None:
    """Follows the requirements of what is installed here, down to the last one."""
    from importlib.metadata import distribution

    waiting = [("cepbench", extra) for extra in ("", *EXTRAS)]
    seen = set(waiting)
    pinned = {canonicalize_name(pin.name) for pin in PINS}
    missing = set()
    while waiting:
        name, extra = waiting.pop()
        for line in distribution(name).requires or []:
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            if canonicalize_name(requirement.name) not in pinned:
                missing.add(f"{requirement.name}, needed by {name}")
                continue
            for wanted in ("", *requirement.extras):
                step = (requirement.name, wanted)
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
    assert missing == set()
    assert len(seen) > len(DIRECT)


def test_conda_supplies_python_java_and_make_and_pip_the_rest() -> None:
    assert CONDA["name"] == PROJECT["project"]["name"]
    assert CONDA["channels"] == ["conda-forge"]
    plain = [entry for entry in CONDA["dependencies"] if isinstance(entry, str)]
    by_pip = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    names = {re.split(r"[<>=! ]", entry)[0] for entry in plain}
    assert names == {"python", "openjdk", "make", "pip"}
    # One source of what is needed: whatever the lock has, conda users get too.
    assert by_pip == [["-r requirements.txt"]]
    assert set(EXTRAS) == {"dev"}


def test_conda_and_pyproject_agree_on_python() -> None:
    conda = next(e for e in CONDA["dependencies"] if isinstance(e, str) and e.startswith("python>"))
    ours = SpecifierSet(PROJECT["project"]["requires-python"])
    theirs = SpecifierSet(conda.removeprefix("python"))
    assert all(theirs.contains(Version(python)) for python in PYTHONS)
    for minor in range(8, 20):
        python = Version(f"3.{minor}")
        assert ours.contains(python) or not theirs.contains(python), f"conda may bring {python}"
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert PROJECT["tool"]["ruff"]["target-version"] == "py" + lowest.replace(".", "")
    assert PROJECT["tool"]["mypy"]["python_version"] == lowest
