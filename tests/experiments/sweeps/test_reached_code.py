"""The identity of user-defined code: what an edit of a file changes, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cepbench.experiments.plugins import load_plugins
from cepbench.experiments.sweeps.configuration import hash_of_code
from cepbench.experiments.sweeps.reached_code import reached_code
from cepbench.planning.planners.registry import PLAN_GENERATORS

FILE = '''"""Several ideas."""
import functools
import numpy as np
import cepbench as cep

LIMIT = np.log(3)
OTHER = np.log(4)
TABLE = {}
TABLE["x"] = 1

def helper(n):
    return inner(n)

def inner(n):
    return list(range(n))

def helper_of_b(n):
    """Of B alone."""
    return list(range(n)) if OTHER else []

@cep.plan_generator("A", kind="order")
def a(problem, rng):
    helper_of_b = 3
    return helper(problem.n)

@cep.plan_generator("B", kind="order")
def b(problem, rng):
    return helper_of_b(problem.n + 0 * len(TABLE))

class Drawn:
    def __call__(self, problem, rng):
        return [*range(problem.n)]

cep.plan_generator("OBJECT", kind="order")(Drawn())
cep.plan_generator("LAMBDA", kind="order")(lambda problem, rng: helper(problem.n))
cep.plan_generator("PARTIAL", kind="order")(functools.partial(b))

def make(shift):
    @cep.plan_generator(f"MADE-{shift}", kind="order")
    def made(problem, rng):
        return np.roll(range(problem.n), shift)

make(1)

if __name__ == "__main__":
    print(a)
'''

#: Their parts may be anywhere in the file.
UNCLEAR = {"OBJECT", "PARTIAL", "MADE-1"}


def hashes(folder: Path, text: str) -> dict[str, str]:
    path = folder / "ideas.py"
    path.write_text(text, encoding="utf-8")
    load_plugins(path)
    return {name: hash_of_code(g) for name, g in PLAN_GENERATORS.items() if not g.is_builtin}


@pytest.mark.parametrize(
    ("old", "new", "edited"),
    [
        ("    return list(range(n))\n\n", "    return [*range(n)]\n\n", {"A", "LAMBDA"}),
        ("return inner(n)", "return inner(n)[::-1]", {"A", "LAMBDA"}),
        ("np.log(4)", "np.log(5)", {"B"}),
        ("np.log(3)", "np.log(2)", set()),
        ('TABLE["x"] = 1', 'TABLE["x"] = 2', {"B"}),
        ("Of B alone.", "Of B.", {"B"}),
        ("helper_of_b = 3", "helper_of_b = 4", {"A"}),
        ("[*range(problem.n)]", "list(range(problem.n))", set()),
        ("make(1)\n", "make(1)\n\n\n", set()),
        ("import numpy as np\n", "import numpy.random\nimport numpy as np\n", set()),
        ("import numpy as np\n", "import numpy as np, json\n", {"B"}),
        ("print(a)", "print(b)", set()),
        ('"""Several ideas."""', '"""Ideas."""', set()),
    ],
)
def test_an_edit_changes_what_reaches_it(
    tmp_path: Path, old: str, new: str, edited: set[str]
) -> None:
    assert FILE.count(old) == 1
    before = hashes(tmp_path, FILE)
    assert set(before) == {"A", "B", "LAMBDA", *UNCLEAR}
    after = hashes(tmp_path, FILE.replace(old, new))
    assert {name for name in before if after[name] != before[name]} == edited | UNCLEAR


def test_compiled_and_decorated_functions_are_their_own_text(tmp_path: Path) -> None:
    text = (
        "import functools\nimport cepbench as cep\n"
        "def traced(function):\n"
        "    @functools.wraps(function)\n"
        "    def wrapper(*given):\n        return function(*given)\n"
        "    return wrapper\n"
        '@cep.plan_generator("ONE", kind="order")\n@traced\n'
        "def one(problem, rng):\n    return [*range(problem.n)]\n"
        '@cep.plan_generator("TWO", kind="order")\n'
        "def two(problem, rng):\n    return list(range(problem.n))\n"
    )
    before = hashes(tmp_path, text)
    for old, changed in (("[*range", "[ *range"), ("function(*given)\n", "(function(*given))\n")):
        after = hashes(tmp_path, text.replace(old, changed))
        assert after["ONE"] != before["ONE"] and after["TWO"] == before["TWO"]


def test_where_names_do_not_tell_all_of_the_file_counts() -> None:
    text = "def f():\n    return globals()['g']\n\ndef g():\n    return 1\n"
    assert reached_code(text, 1) == text
    assert reached_code(text, 4) == "def g():\n    return 1\n"
    assert reached_code("x = ", 1) == "x = "  # edited since it was loaded
    star = "from helpers import *\ndef f():\n    return g()\nh = 3\n"
    assert reached_code(star, 2) == "from helpers import *\n\ndef f():\n    return g()\n"
