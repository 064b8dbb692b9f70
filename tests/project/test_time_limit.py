"""A test that hangs is ended and named."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

HANGING = """
from itertools import repeat

def test_of_python():
    while True:
        pass

def test_that_ends():
    pass

def test_of_a_kernel():  # as in one no Python runs, so no handler of a signal either
    sum(repeat(0))
"""


def test_hanging_tests_are_ended_and_named(tmp_path: Path) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    limits = settings["tool"]["pytest"]["ini_options"]
    assert 0 < limits["timeout"] < limits["faulthandler_timeout"]
    (tmp_path / "test_hanging.py").write_text(HANGING, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml"]
    command += ["--rootdir", tmp_path, "-n1", "-o", "timeout=0.5", "-o", "faulthandler_timeout=2"]
    done = subprocess.run(
        [*command, "test_hanging.py"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert "2 failed, 1 passed" in done.stdout, done.stdout
    assert "FAILED test_hanging.py::test_of_python - Failed: Timeout" in done.stdout
    assert "crashed while running 'test_hanging.py::test_of_a_kernel'" in done.stdout
    assert "in test_of_a_kernel" in done.stdout  # its stack
