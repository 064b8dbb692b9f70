"""What the README says; that its example runs is tested from a wheel, in ``test_wheel.py``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cepbench as cep

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "datasets/README.md", "docs/architecture.md",
        "docs/language.md", "docs/data.md",
    )
}  # fmt: skip


def test_the_first_example_is_one_on_which_plans_differ() -> None:
    """As measured, without a clock: what is made on the way to the same matches."""
    assert "--pattern-name rare-last --data nasdaq-style/sample" in README
    assert 'dataset.patterns["rare-last"]' in README
    for dataset in map(cep.open_dataset, ("nasdaq-style/sample", "nasdaq-style/quick")):
        pattern = dataset.patterns["rare-last"]
        assert pattern == next(iter(dataset.patterns.values()))  # which the app begins with
        stream = dataset.stream(days=2)
        statistics = cep.measure_statistics(pattern, stream)
        plans = [cep.plan(pattern, statistics, name) for name in ("TRIVIAL", "DP-LD", "DP-B")]
        written, order, tree = [
            cep.evaluate(pattern, stream, plan, output="count").metrics for plan in plans
        ]
        assert written.matches == order.matches == tree.matches > 100
        assert plans[0].cost > 100 * plans[1].cost
        assert written.partial_matches_created > 100 * order.partial_matches_created
        assert written.partial_matches_created > 50 * tree.partial_matches_created
        assert written.comparisons > 10 * max(order.comparisons, tree.comparisons)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_target_that_is_mentioned_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    mentioned = set(re.findall(r"(?:^|`|\s)make ([a-z]+)\b(?=`|\s+#| PROFILE|\n)", DOCUMENTS[name]))
    assert mentioned <= targets
    if name == "README.md":
        assert {"report", "test", "help", "lab", "bench"} <= mentioned


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_that_is_mentioned_exists(name: str) -> None:
    text = DOCUMENTS[name]
    links = set(re.findall(r"\]\(([^)#:]+)\)", text))
    paths = set(re.findall(r"`((?:notebooks|tests|docs|cepbench|planners|\.ci)/[\w./]*)`", text))
    for path in {*links, *paths}:
        places = (ROOT, ROOT / "cepbench", (ROOT / name).parent)  # links start at the document
        assert any((place / path).exists() for place in places), path
    assert (
        name != "README.md" or {"docs/architecture.md", "docs/language.md", "CITATION.cff"} <= links
    )
