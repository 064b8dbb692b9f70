"""docs/architecture.md is true: rooms see only rooms above them; importing the package is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import cepbench

PACKAGE = Path(cepbench.__file__).parent
ROOT = PACKAGE.parent
ROW = re.compile(r"^\| (?P<rooms>`[^|]+) \|[^|]*\| (?P<sees>[^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`(\w+)/?`")


@cache
def rooms() -> dict[str, set[str]]:
    """Room -> the rooms that the table lets it see; in the table's order."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    order: list[str] = []
    allowed: dict[str, set[str]] = {}
    for row in ROW.finditer(text):
        own = NAME.findall(row["rooms"])
        above = set(order)
        sees = row["sees"].partition(";")[0]
        if sees.startswith("everything"):
            excepted = set(re.findall(r"\w+", sees.partition(" but ")[2]))
            named = above - excepted
        elif sees.strip() == "nothing":
            named = set()
        else:
            named = {word for word in re.findall(r"\w+", sees) if word in above}
            assert named, f"the table lets {own} see {sees!r}, which names no room above it"
        for room in own:
            allowed[room] = named
        order += own
    return allowed


def room_of(path: Path) -> str:
    """The room of a file; the package's own ``__init__`` is none."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def nodes_that_run(node: ast.AST) -> Iterator[ast.AST]:
    """What is executed while a module is loaded: no function bodies, nothing for type checkers."""
    yield node
    for child in ast.iter_child_nodes(node):
        later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not (later or typing):
            yield from nodes_that_run(child)


def imported_by(path: Path, *, running: bool = False) -> set[str]:
    """Every module that a file imports, inside functions too; or only while it is loaded."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in nodes_that_run(tree) if running else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            found.add(node.module)
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


SOURCES = [path for path in modules().values() if room_of(path) != "__init__"]
EACH = pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix()
)


def test_the_table_has_every_room_and_no_other() -> None:
    there = {room_of(path) for path in SOURCES}
    assert set(rooms()) == there
    assert len(there) >= 13


@EACH
def test_a_room_sees_only_what_the_table_says(path: Path) -> None:
    room = room_of(path)
    everywhere = {"errors", "arguments", "papers", "markup", room}
    for name in imported_by(path):
        if name.startswith("cepbench."):
            seen = name.split(".")[1]
            if f"cepbench.{seen}" in modules():  # and no plain name, such as cepbench.parse
                assert seen in rooms()[room] | everywhere, f"{room} imports {name}"


#: Who may load a library out of its room, and why: Spark's workers are forked with Numba loaded.
LOADING = {("spark/daemon.py", "numba")}


@EACH
def test_spark_and_numba_have_one_room_each(path: Path) -> None:
    outside = {name.split(".")[0] for name in imported_by(path)}
    for library, room in {"pyspark": "spark", "py4j": "spark", "numba": "kernels"}.items():
        inside = path.relative_to(PACKAGE).as_posix()
        known = (inside, library) in LOADING or (
            room == "spark" and inside.startswith("sweeps/on_spark/")
        )
        assert library not in outside or room_of(path) == room or known
    if room_of(path) == "kernels":
        allowed = {"numba", "numpy", "cepbench"}
        assert outside <= allowed | set(sys.stdlib_module_names)


def test_modules_do_not_import_in_circles() -> None:
    graph = {
        name: {seen for seen in imported_by(path, running=True) if seen in modules()}
        - {"cepbench", name}
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
    assert declared == cepbench._HOMES
    assert set(declared) | {"__version__"} == set(cepbench.__all__)
