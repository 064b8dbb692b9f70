"""The index of papers knows every citation, and every file that it names is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import cepbench
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.papers import ALGORITHMS, REFERENCES, index
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS

PACKAGE = Path(cepbench.__file__).parent
CITATION = re.compile(r"\[(\w+)\]_(?!\w)")
SEED_PAPERS = {"kolchinsky2018", "mei2009", "agrawal2008", "qi2014", "liu2011"}


@cache
def citations(path: Path) -> set[str]:
    """Keys cited in any text constant of a module, docstrings among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        key
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for key in CITATION.findall(node.value)
    }


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_every_citation_is_known() -> None:
    unknown = {str(path): citations(path) - set(REFERENCES) for path in SOURCES}
    assert not {path: keys for path, keys in unknown.items() if keys}


def test_citations_are_found_at_all() -> None:
    assert citations(PACKAGE / "planning" / "planners" / "dp_ld.py") == {
        "kolchinsky2018",
        "selinger1979",
    }


def test_every_source_is_a_seed_paper_or_cited() -> None:
    assert set(REFERENCES) == SEED_PAPERS.union(*map(citations, SOURCES))
    for key, reference in REFERENCES.items():
        assert reference.key == key
        assert key.endswith(str(reference.year)) and str(reference.year) in str(reference)
        assert reference.title in str(reference) and reference.authors in str(reference)


def test_every_file_that_the_index_names_exists() -> None:
    for algorithm in ALGORITHMS:
        assert algorithm.paper in REFERENCES
        assert algorithm.files
        for file in algorithm.files:
            assert (PACKAGE / file).is_file(), f"{algorithm.name}: {file}"


def test_everything_registered_is_in_the_index_with_its_module() -> None:
    files = {algorithm.name: algorithm.files for algorithm in ALGORITHMS}
    assert len(files) == len(ALGORITHMS)
    for name, generator in PLAN_GENERATORS.items():
        if generator.is_builtin:
            module = generator.function.__module__.removeprefix("cepbench.")
            assert files[name][0] == module.replace(".", "/") + ".py"
    for name, planner in WORKLOAD_PLANNERS.items():
        assert planner.is_builtin, f"{name} is left over from another test"
        module = planner.plan.__module__.removeprefix("cepbench.")
        assert files[name][0] == module.replace(".", "/") + ".py"
    assert {*COST_MODELS, *EVALUATORS} <= set(files)


def test_the_index_can_be_printed() -> None:
    text = index()
    for reference in REFERENCES.values():
        assert f"[{reference.key}] {reference}" in text
    for algorithm in ALGORITHMS:
        assert algorithm.name in text
    printed = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", "cepbench.papers"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert printed.stdout == text + "\n"
    assert printed.stderr == ""
