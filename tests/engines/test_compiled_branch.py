"""What all engines read of a branch is found once, in one place."""

from __future__ import annotations

from pathlib import Path

import cepbench as cep
from cepbench.engines.plan_runs.compiled import CompiledBranch

ENGINES = Path(cep.__file__).parent / "engines"

TEXT = (
    "PATTERN SEQ(A a, NOT(B n), KL(C c), D d, NOT(B m)) "
    "WHERE a.x > 1 AND c.x > a.x AND n.x = a.x AND n.y < 3 AND c[i].y > c[i-1].y WITHIN 9 units"
)


def test_a_pattern_is_compiled_once() -> None:
    branch = CompiledBranch.of(cep.parse(TEXT))
    assert CompiledBranch.of(cep.parse(TEXT)) is branch
    assert CompiledBranch.of(cep.parse(TEXT.replace("9", "8"))) is not branch


def test_owners_and_their_conditions() -> None:
    branch = CompiledBranch.of(cep.parse(TEXT))
    assert list(branch.leaf_of) == ["a", "c", "d", "n", "m"] == [v.name for v in branch.leaves]
    assert branch.kleene == {"c"}
    # Neighbours of a set are no single events.
    filters = {name: [*map(str, its)] for name, its in branch.filters.items()}
    assert filters == {"a": ["a.x > 1"], "c": [], "d": [], "n": ["n.y < 3"], "m": []}
    n, m = branch.checks
    assert (n.after, n.before, [*map(str, n.clauses)]) == (("a",), ("c",), ["n.x = a.x"])
    assert m.is_late and branch.is_late and not n.is_late
    assert [str(c) for c in branch.between_positive if len(c.variables) > 1] == ["c.x > a.x"]


def test_conditions_become_comparisons_in_one_place() -> None:
    found = {
        str(file.relative_to(ENGINES))
        for file in ENGINES.rglob("*.py")
        if "separated_sides" in file.read_text(encoding="utf-8")
    }
    assert found == {"plan_runs/programs.py"}
