"""docs/architecture.md is true: packages see only packages above them; importing the package is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import cepbench

PACKAGE = Path(cepbench.__file__).parent
ROOT = PACKAGE.parent
ROW = re.compile(r"^\| (?P<packages>`[^|]+) \|[^|]*\| (?P<sees>[^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`(\w+)/?`")


@cache
def packages() -> dict[str, set[str]]:
    """Package -> the packages that the table lets it see; in the table's order."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    order: list[str] = []
    allowed: dict[str, set[str]] = {}
    for row in ROW.finditer(text):
        own = NAME.findall(row["packages"])
        above = set(order)
        sees = row["sees"].partition(";")[0]
        if sees.startswith("everything"):
            excepted = set(re.findall(r"\w+", sees.partition(" but ")[2]))
            named = above - excepted
        elif sees.strip() == "nothing":
            named = set()
        else:
            named = {word for word in re.findall(r"\w+", sees) if word in above}
            assert named, f"the table lets {own} see {sees!r}, which names no package above it"
        for package in own:
            allowed[package] = named
        order += own
    return allowed


def package_of(path: Path) -> str:
    """The package of a file, or its own module at the root; that of the names ``__init__`` is none."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


@cache
def imported_by(path: Path) -> set[str]:
    """Every module or name that a file imports, inside functions and for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def modules() -> dict[str, Path]:
    """Module -> its file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def most_specific(name: str) -> str:
    """The module of what is imported: itself, or the one that the name is in."""
    return name if name in modules() else name.rpartition(".")[0]


SOURCES = [path for path in modules().values() if package_of(path) != "__init__"]


def test_the_table_has_every_package_and_no_other() -> None:
    there = {package_of(path) for path in SOURCES}
    assert set(packages()) == there
    assert len(there) >= 13


def test_a_package_sees_only_what_the_table_says() -> None:
    below = []
    for path in SOURCES:
        package = package_of(path)
        seen_by_all = {
            "errors", "arguments", "registry", "files", "seeds", "papers", "markup", package,
        }  # fmt: skip
        for name in imported_by(path):
            _, _, seen = name.partition("cepbench.")
            seen = seen.partition(".")[0]
            if f"cepbench.{seen}" in modules() and seen not in packages()[package] | seen_by_all:
                below.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert below == []


def test_engines_share_a_package_and_do_not_see_each_other() -> None:
    seen = set()
    for path in (PACKAGE / "evaluators").glob("*/*.py"):
        own = path.parent.name
        for name in imported_by(path):
            other = re.match(r"cepbench\.evaluators\.(\w+)\.", name)
            if other and (PACKAGE / "evaluators" / other[1]).is_dir():
                assert other[1] in {own, "plan_runs"}, f"{path.relative_to(PACKAGE)}: {name}"
                seen.add((own, other[1]))
    assert {("joins", "plan_runs"), ("instances", "plan_runs")} <= seen
    assert ("plan_runs", "joins") not in seen


#: Who may load a library out of its package, and why: Spark's workers are forked with Numba loaded.
LOADING = {("spark/daemon.py", "numba")}

#: Where a library is loaded.
HOMES = {"pyspark": ("spark/", "sweeps/on_spark/"), "py4j": ("spark/",), "numba": ("kernels/",)}


def test_spark_and_numba_have_one_package_each() -> None:
    for path in SOURCES:
        outside = {name.split(".")[0] for name in imported_by(path)}
        inside = path.relative_to(PACKAGE).as_posix()
        for library in outside & HOMES.keys():
            known = inside.startswith(HOMES[library]) or (inside, library) in LOADING
            assert known, f"{inside} imports {library}"
        if package_of(path) == "kernels":
            # The last two: where compiled kernels are kept, and by whom.
            allowed = {"numba", "numpy", "cepbench", "platformdirs", "filelock"}
            assert outside <= allowed | set(sys.stdlib_module_names), inside


def test_modules_do_not_import_in_circles() -> None:
    """Neither while they are loaded, nor by what functions import, nor for type checkers alone."""
    graph = {
        name: {most_specific(seen) for seen in imported_by(path)} & modules().keys() - {name}
        for name, path in modules().items()
        if name != "cepbench"
    }
    done: set[str] = set()

    def follow(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " imports ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for seen in sorted(graph[name]):
                follow(seen, (*trail, name))
            done.add(name)

    for name in graph:
        follow(name, ())
    assert done == set(graph)
    assert sum(map(len, graph.values())) > len(graph)


def test_no_module_imports_the_public_names() -> None:
    """They are all packages at once: who imports them imports what is above."""
    for path in SOURCES:
        for name in imported_by(path):
            assert name != "cepbench" and most_specific(name) != "cepbench", f"{path}: {name}"


def test_files_that_the_page_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)+\.(?:py|lark))`", page))
    assert len(named) > 30
    assert {name for name in named if not (PACKAGE / name).is_file()} == set()


def heavy_modules_after(code: str) -> set[str]:
    """Which heavy libraries are loaded in a new Python after some lines."""
    heavy = {"pyspark", "py4j", "numba", "llvmlite", "altair", "matplotlib", "papermill", "duckdb"}
    script = f"{code}\nimport sys; print(*({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True, check=True, encoding="utf-8", cwd=ROOT,
    )  # fmt: skip
    return set(done.stdout.split())


def test_importing_the_package_is_light() -> None:
    assert heavy_modules_after("import cepbench") == set()


def test_parsing_a_pattern_neither_compiles_nor_starts_anything() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 minutes"
    assert heavy_modules_after(f"import cepbench; cepbench.parse({text!r})") == set()


def test_everything_public_but_spark_works_without_spark() -> None:
    code = "import cepbench\nfor name in cepbench.__all__: getattr(cepbench, name)"
    loaded = heavy_modules_after(code)
    assert not loaded & {"pyspark", "py4j", "altair", "matplotlib", "papermill", "duckdb"}
    assert heavy_modules_after("import cepbench.kernels.joins.join") >= {
        "numba"
    }  # it would be seen


def test_public_names_are_the_same_for_type_checkers_and_at_run_time() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name, module in declared.items():
        assert getattr(cepbench, name) is getattr(import_module(str(module)), name), name
    assert set(declared) | {"__version__"} == set(cepbench.__all__)
