"""docs/sweeps.md and the file to copy say what is so."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path

import pytest

import cepbench as cep
from cepbench.arguments import whole
from cepbench.engines.detection.registry import plan_evaluator
from cepbench.engines.runs.protocol import Option
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.sweep_comparison import LEAST_PAIRS, LEVEL, NEGLIGIBLE
from cepbench.experiments.sweeps.cells import PROVENANCE, RESULT_SCHEMA
from cepbench.experiments.sweeps.configuration import STRATEGIES
from cepbench.experiments.sweeps.sweep_file import KEYS, find_sweep, read_sweep
from cepbench.experiments.sweeps.workload import PATTERN_SETS
from cepbench.streams.generated import GENERATED, parameters_of

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
SHOWN = ROOT / "docs" / "sweep.toml"
BLOCKS = [SHOWN.read_text(encoding="utf-8"), *re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
EXAMPLE = ROOT / "notebooks" / "sweeps" / "example.toml"


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    """The example of the page as a file."""
    text = BLOCKS[0]
    path = tmp_path / "printed.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_example_of_the_page_has_every_key_and_can_be_run(printed: Path) -> None:
    content = tomllib.loads(printed.read_text(encoding="utf-8"))
    profiles = content.pop("profile")
    named = profiles["rates"], profiles["regimes"], profiles["regimes"]["regimes"]["dense"]
    of_other_sections = {"plans", "policies", "methods", "sharing", "user_workloads", "planners"}
    assert set(content).union(*named) == set(KEYS) - of_other_sections
    plan_evaluator("my-engine", options={"block": Option(1, partial(whole, least=1))})(cep.evaluate)
    for profile in profiles:
        sweep = read_sweep(printed, profile=profile)
        assert sweep.cells() and sweep.config("x").user_patterns
    assert [*read_sweep(printed, profile="rates").generated] == [
        "steady",
        "drifting",
        "bursty",
    ]
    assert read_sweep(printed).profile == "quick"
    assert read_sweep(printed, profile="full").config("x").patterns == 100
    for name in (*PATTERN_SETS, *STRATEGIES):
        assert name in printed.read_text(encoding="utf-8")
    lifted = printed.read_text(encoding="utf-8").replace("= 1e6", "= inf")
    printed.write_text(lifted, encoding="utf-8")
    assert read_sweep(printed).config("x").max_partial_matches is None


def test_the_example_with_plans(tmp_path: Path) -> None:
    path = tmp_path / "plans.toml"
    path.write_text(BLOCKS[1], encoding="utf-8")
    sweep = read_sweep(path)
    assert [*sweep.generated] == ["all", "few"]
    assert {(cell.generator, cell.evaluator) for cell in sweep.cells()} == {
        ("left-deep", "tree"), ("right-deep", "tree"), ("as-written", "tree"),
        ("as-written", "lazy-nfa"),
    }  # fmt: skip


def test_the_example_with_policies(tmp_path: Path) -> None:
    path = tmp_path / "policies.toml"
    path.write_text(BLOCKS[2], encoding="utf-8")
    sweep = read_sweep(path)
    assert len(sweep.generated[""].segments) == 2
    runs = {(cell.generator, cell.evaluator) for cell in sweep.cells()}
    assert runs == {(name, "tree") for name in ("left-deep", "inner", "adaptive", "first")}


def test_the_examples_with_methods(tmp_path: Path) -> None:
    path = tmp_path / "methods.toml"
    path.write_text(BLOCKS[3], encoding="utf-8")
    sweep = read_sweep(path)
    assert len(sweep.cells()) == 2 * 3 * sweep.config("x").repetitions
    assert dict(sweep.config("x").user_patterns).keys() == {"length-3", "without-qqq"}
    path.write_text(BLOCKS[4], encoding="utf-8")
    sweep = read_sweep(path)
    assert dict(sweep.config("x").user_workloads).keys() == {"prefix-2"}
    assert {cell.generator for cell in sweep.cells()} == {
        "a-seq", "two-step", "e-cube STEINER", "a-seq PRETREE", "a-seq CHOP-CONNECT",
        "a-seq SHARON",
    }  # fmt: skip


def test_the_example_with_planners(tmp_path: Path) -> None:
    path = tmp_path / "planners.toml"
    path.write_text(BLOCKS[5], encoding="utf-8")
    sweep = read_sweep(path)
    assert dict(sweep.config("x").user_workloads).keys() == {"pattern"}
    assert {cell[:2] for cell in sweep.cells()} == {
        (planner, evaluator)
        for planner in ("NAIVE", "TOP-DOWN", "BOTTOM-UP", "CHASE")
        for evaluator in ("hierarchical-stacks", "tree")
    }


def test_the_page_names_the_parameters_of_every_kind_of_stream() -> None:
    rows = dict(re.findall(r"\n\| `([a-z-]+)`[^|]*\| (.*) \|", PAGE))
    for kind in GENERATED:
        assert set(re.findall(r"`(\w+)`", rows[kind])) == {*parameters_of(kind)} - {"seed"}


def test_only_data_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text('data = "x"', encoding="utf-8")
    assert read_sweep(path).config("x").pattern_sets == tuple(PATTERN_SETS)
    path.write_text("seed = 1", encoding="utf-8")
    with pytest.raises(ExperimentError, match="names no data"):
        read_sweep(path)


def test_the_file_to_copy_can_be_run() -> None:
    for profile in (None, *read_sweep(EXAMPLE).profiles):
        assert read_sweep(EXAMPLE, profile=profile).cells()
    assert str(EXAMPLE.relative_to(ROOT)) in PAGE and f"{{literalinclude}} {SHOWN.name}" in PAGE


def test_names_of_sweeps_and_numbers_on_the_page_are_right() -> None:
    named = re.findall(r"cepbench sweep (?:run|estimate) ((?:[\w./]+ ?)+)", PAGE)
    names = {name for several in named for name in several.split()} - {"mine.toml"}
    assert len(names) > 2
    for name in names:
        assert find_sweep(ROOT / name if "/" in name else name).is_file()
    assert (LEAST_PAIRS, LEVEL, NEGLIGIBLE) == (6, 0.05, 1.05)
    assert "Fewer than six pairs" in PAGE and "more than 5 %" in PAGE
    assert {"status", "reason", "configuration", "seed", "started_at"} < set(RESULT_SCHEMA.names)
    told = PAGE.lower()
    for name in PROVENANCE:
        word = name.removesuffix("_version").replace("cpu", "processor")
        assert word in told, name
