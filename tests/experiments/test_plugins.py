"""Files with generators of one's own: loaded again, two that clash, and how edits are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cepbench.errors import PlanGeneratorError
from cepbench.experiments.plugins import load_plugins
from cepbench.experiments.sweeps.configuration import hash_of_code
from cepbench.experiments.sweeps.store import user_folder
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.planners.registry import PLAN_GENERATORS, user_defined_generators

HELPED = """
import cepbench as cep

def helper(n):
    return list(range(n)){turned}

@cep.plan_generator("{name}", kind="order")
def mine(problem, rng):
    return helper(problem.n)
"""


def write(folder: Path, stem: str, name: str = "MINE", turned: str = "") -> Path:
    path = folder / f"{stem}.py"
    path.write_text(HELPED.format(name=name, turned=turned), encoding="utf-8")
    return path


def test_one_file_several_or_none(tmp_path: Path) -> None:
    for nothing in (None, "", (), []):
        load_plugins(nothing)
    assert user_defined_generators() == []
    one, two = write(tmp_path, "one", "ONE"), write(tmp_path, "two", "TWO")
    load_plugins(str(one))
    load_plugins([one, two])  # the first again, as by a cell that is run twice
    assert user_defined_generators() == ["ONE", "TWO"]


def test_a_file_may_register_a_cost_alone(tmp_path: Path) -> None:
    path = tmp_path / "cost.py"
    path.write_text(
        "import cepbench as cep\n"
        "@cep.cost_model('MINE', of='order')\n"
        "def mine(problem, order):\n    return 1.0\n"
    )
    load_plugins(path)
    assert "MINE" in COST_MODELS
    other = tmp_path / "other.py"
    other.write_text(path.read_text())
    with pytest.raises(PlanGeneratorError, match=r"other\.py registers MINE, and so does cost\.py"):
        load_plugins(other)
    path.write_text("")
    with pytest.raises(PlanGeneratorError, match="registers neither"):
        load_plugins(path)


def test_two_files_do_not_take_each_others_names(tmp_path: Path) -> None:
    load_plugins(write(tmp_path, "one"))
    with pytest.raises(PlanGeneratorError, match=r"two\.py registers MINE, and so does one\.py"):
        load_plugins(write(tmp_path, "two"))


def test_an_edit_of_what_a_generator_calls_is_noticed(tmp_path: Path) -> None:
    folders, codes = set(), set()
    for turned in ("", "[::-1]", ""):
        load_plugins(write(tmp_path, "one", turned=turned))
        codes.add(hash_of_code(PLAN_GENERATORS["MINE"]))
        folders.add(user_folder(tmp_path, "MINE"))
    assert len(folders) == len(codes) == 2


def test_files_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    one, two = write(tmp_path / "a", "same", "ONE"), write(tmp_path / "b", "same", "TWO")
    load_plugins([one, two])
    load_plugins([one, two])
    assert user_defined_generators() == ["ONE", "TWO"]
    write(tmp_path / "b", "same", "ONE")
    with pytest.raises(
        PlanGeneratorError, match=r"b/same\.py registers ONE, and so does .*a/same\.py"
    ):
        load_plugins(two)


def test_what_is_no_file_that_can_be_loaded(tmp_path: Path) -> None:
    leaving = tmp_path / "leaving.py"
    leaving.write_text("import sys\nsys.exit(3)\n")
    for files, message in (
        (leaving, r"leaving\.py, line 2: SystemExit: 3"), (5, "plugins must be a list such as"),
        ([5], "a plugin is the path of a Python file, not 5"), ("~/nowhere.py", "no Python file /"),
    ):  # fmt: skip
        with pytest.raises(PlanGeneratorError, match=message):
            load_plugins(files)  # type: ignore[arg-type]


def test_no_name_leaves_the_folder_of_the_sweep(tmp_path: Path) -> None:
    load_plugins(write(tmp_path, "one", "../../MINE"))
    assert user_folder(tmp_path, "../../MINE").parent == tmp_path / "user"
