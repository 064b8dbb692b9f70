"""docs/architecture.md is true: packages see only packages above them; importing the package is light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import cepbench

PACKAGE = Path(cepbench.__file__).parent
ROOT = PACKAGE.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: The modules that all may import, and what several kernels share.
GROUND = (
    "errors", "arguments", "registry", "files", "seeds", "state", "markup", "text_table", "progress", "diagram", "papers", "kernels",
    "public_names",
)  # fmt: skip
TABLE = PAGE.partition("\n## Packages\n")[2]
ROW = re.compile(r"^\| `(?P<package>[\w/]+?)/?` \|[^|]*\| (?P<sees>[^|]+) \|$", re.MULTILINE)
#: The layers, in the order in which they may import.
LAYERS = tuple(dict.fromkeys(row["package"].partition("/")[0] for row in ROW.finditer(TABLE)))
#: What packages with the mark of this sentence never import.
MARKED = re.findall(r"^† never: ([^.]+)\.", TABLE, re.MULTILINE)[0]


@cache
def packages() -> dict[str, tuple[set[str], set[str]]]:
    """Package -> those of its layer that the table lets it see, and what it never sees."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for row in ROW.finditer(TABLE):
        sees, _, never = row["sees"].replace(" †", f"; never {MARKED}").partition("; never ")
        layer = row["package"].partition("/")[0]
        own = {layer if word == layer else f"{layer}/{word}" for word in re.findall(r"\w+", sees)}
        above = own & found.keys()
        assert own == above or sees == "nothing", f"{row['package']} sees {own - above} above it"
        forbidden = set(re.findall(r"\w+", never))
        found[row["package"]] = (
            above,
            {name for name in (*LAYERS, *found) if forbidden & {name, name.rpartition("/")[2]}},
        )
    return found


def package_of(module: str) -> str:
    """The package of a module by the table, else its layer, or its own name on the ground."""
    parts = module.split(".")[1:]
    for length in (2, 1):
        if "/".join(parts[:length]) in packages():
            return "/".join(parts[:length])
    return parts[0]


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


SOURCES = [path for name, path in modules().items() if name != "cepbench"]


def imports() -> Iterator[tuple[str, str]]:
    """Every module and each module that it imports."""
    for name, path in modules().items():
        if name != "cepbench":
            for imported in imported_by(path):
                if imported.startswith("cepbench."):
                    yield name, most_specific(imported)


def test_there_are_seven_layers_and_a_small_ground() -> None:
    there = {name.split(".")[1] for name in modules() if name != "cepbench"}
    assert len(LAYERS) == 7
    assert there == {*LAYERS, *GROUND, "__main__"}


def test_a_layer_imports_only_layers_above_it() -> None:
    line = [*LAYERS, "__main__"]
    below, seen = [], set()
    for name, imported in imports():
        own, other = name.split(".")[1], imported.split(".")[1]
        if other in GROUND:
            continue
        if own in GROUND or line.index(other) > line.index(own):
            below.append(f"{name} imports {imported}")
        seen.add((own, other))
    assert below == []
    assert len(seen - {(layer, layer) for layer in line}) > 20


def test_the_table_has_every_package_and_no_other() -> None:
    there = {package_of(name) for name in modules() if name != "cepbench"}
    faces = {layer for layer in LAYERS if any(p.startswith(f"{layer}/") for p in packages())}
    assert there - {*GROUND, "__main__"} - faces == set(packages()) - {"streams"}
    for layer in faces - {"streams"}:
        modules_of = {path.name for path in (PACKAGE / layer).glob("*.py")}
        assert modules_of <= {"__init__.py", "plugins.py"}, layer


def test_a_package_sees_only_what_the_table_says() -> None:
    wrong = []
    for name, imported in imports():
        own, other = package_of(name), package_of(imported)
        if own == other or own not in packages():
            continue
        above, never = packages()[own]
        inside = own.partition("/")[0] == other.partition("/")[0]
        if (inside and other not in above) or {other, other.partition("/")[0]} & never:
            wrong.append(f"{name} imports {imported}")
    assert wrong == []
    assert "planning/costs" in packages()["engines/joins"][1]


def test_engines_do_not_see_each_other() -> None:
    engines = {"joins", "instances", "zstream", "stack_nfa", "hierarchical_stacks", "sase"}
    for engine in engines:
        above, _ = packages()[f"engines/{engine}"]
        assert not above & {f"engines/{other}" for other in engines}
        assert "engines/plan_runs" in above


def test_kernels_import_only_kernels() -> None:
    for name, imported in imports():
        if "kernels" in name.split("."):
            assert "kernels" in imported.split("."), f"{name} imports {imported}"


#: Who may load a library out of its package, and why: Spark's workers are forked with Numba loaded.
LOADING = {("spark/daemon.py", "numba")}

#: Where a library is loaded.
HOMES = {
    "pyspark": ("spark/", "experiments/sweeps/on_spark/"),
    "py4j": ("spark/",),
    "numba": ("kernels/",),
}


def test_spark_and_numba_have_one_package_each() -> None:
    for path in SOURCES:
        outside = {name.split(".")[0] for name in imported_by(path)}
        inside = path.relative_to(PACKAGE).as_posix()
        for library in outside & HOMES.keys():
            known = inside.startswith(HOMES[library]) or (inside, library) in LOADING
            assert known, f"{inside} imports {library}"
        if "kernels" in path.relative_to(PACKAGE).parts:
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
    assert heavy_modules_after("import cepbench.engines.joins.kernels.join") >= {
        "numba"
    }  # it would be seen


def test_public_names_are_the_same_for_type_checkers_and_at_run_time() -> None:
    for package, others in ((cepbench, {"Any"}), (cepbench.spark, set())):
        tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
        declared = {
            alias.name: node.module
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name not in others
        }
        for name, module in declared.items():
            assert getattr(package, name) is getattr(import_module(str(module)), name), name
        assert set(declared) == set(package.__all__) - {"__version__"}
