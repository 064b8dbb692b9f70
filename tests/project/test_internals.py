"""Tests use what the library shows: private names and patched insides are counted, and only go down."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
PATCHING = {"setattr", "delattr", "setitem", "delitem", "object", "dict", "multiple"}
NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public in spite of their underscore

# File of tests -> how many uses it has, and why. The list only shrinks.
ALLOWED: dict[str, tuple[int, str]] = {
    "benchmarks/test_against_engines.py": (2, "a benchmark's script with contestants that differ"),
    "benchmarks/test_bench_workloads.py": (3, "a benchmark's script, shortened"),
    "benchmarks/test_every_engine.py": (1, "a benchmark's script, shortened"),
    "benchmarks/test_growth_of_engines.py": (1, "a benchmark's script, shortened"),
    "engines/adaptation/test_bench_adaptation.py": (1, "a benchmark's script, shortened"),
    "engines/aggregation/test_greta.py": (1, "the limit itself takes gigabytes"),
    "engines/aggregation/test_two_step.py": (1, "no built-in evaluator reports late"),
    "engines/detection/test_benchmarks.py": (1, "a benchmark's script, shortened"),
    "engines/detection/test_detector.py": (2, "metrics of a push that failed are those before it"),
    "engines/detection/test_order_statistics.py": (
        1,
        "which of two ways is taken shows in time only",
    ),
    "engines/detection/test_workload_detector.py": (4, "whether queries share their stacks"),
    "engines/reuse/test_reuse.py": (4, "which way of growth is taken shows in time only"),
    "experiments/sweeps/test_sweep_file.py": (1, "a folder of sweeps that is taken back"),
    "kernels/test_sets.py": (1, "a function inside a kernel, by hand"),
    "kernels/test_start_up.py": (1, "digests of a changed copy of the kernels"),
    "patterns/test_growth.py": (2, "how often branches are looked at"),
    "planning/planners/test_dpccp.py": (
        4,
        "functions inside a kernel, by hand; limits of minutes and gigabytes",
    ),
    "presentation/commands/test_doctor.py": (2, "what is broken on other machines"),
    "presentation/figures/test_specifications.py": (1, "looks go by what a process drew before"),
    "presentation/reporting/test_plugins_of_reports.py": (
        1,
        "what is measured afresh is known before any run",
    ),
    "project/test_documentation.py": (1, "how long examples compare plans"),
    "streams/test_hierarchical_streams.py": (1, "short files"),
    "streams/test_parquet.py": (1, "row groups that are not read"),
    "streams/test_sources.py": (1, "short pieces of a file"),
    "streams/test_ticker_trades.py": (1, "short files"),
}


def is_private(name: str) -> bool:
    """Whether a name begins with one underscore, and is no hook such as ``_repr_html_``."""
    hook = name.endswith("_") or name in NAMED_TUPLES
    return name.startswith("_") and not name.startswith("__") and not hook


def is_own(module: str) -> bool:
    return module.partition(".")[0] == "cepbench"


def root(node: ast.AST) -> str | None:
    """The name that an expression begins with: ``a`` of ``a.b[0].c``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def imported(nodes: list[ast.AST]) -> dict[str, bool]:
    """Name -> whether its import is of cepbench, for all imports of a file."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = is_own(alias.name)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = is_own(node.module or "")
    return found


def is_patch(call: ast.Call, imports: dict[str, bool]) -> bool:
    """Whether a call of monkeypatch or ``mock.patch`` replaces something that is not another library's."""
    of = call.func
    if isinstance(of, ast.Attribute):
        of_patch = of.attr in PATCHING and ast.unparse(of.value).endswith("patch")
        if not (of_patch or of.attr == "patch"):
            return False
    elif not (isinstance(of, ast.Name) and of.id == "patch"):
        return False
    target = call.args[0] if call.args else None
    if isinstance(target, ast.Constant):
        return is_own(str(target.value))
    # Of a fixture or a local name nobody knows what it is: it counts.
    return target is not None and imports.get(root(target) or "", True)


def uses_of_internals(text: str) -> list[int]:
    """The lines of a test that use what the library does not show.

    Attributes whose name begins with one underscore, of anything but ``self`` and ``cls``, read or
    by ``getattr``; imports of such names; functions and constants of cepbench that are patched or
    assigned.
    """
    nodes = list(ast.walk(ast.parse(text)))
    imports = imported(nodes)
    lines = []
    for node in nodes:
        if isinstance(node, ast.Attribute):
            of = root(node) or ""
            mine = of in {"self", "cls"} and isinstance(node.value, ast.Name)
            changed = isinstance(node.ctx, ast.Store | ast.Del) and imports.get(of, False)
            if changed or (is_private(node.attr) and not mine and imports.get(of, True)):
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom):
            lines += [node.lineno] * sum(is_private(alias.name) for alias in node.names)
        elif isinstance(node, ast.Call):
            named = isinstance(node.func, ast.Name) and node.func.id in {"getattr", "hasattr"}
            if is_patch(node, imports) or (
                named
                and isinstance(node.args[1], ast.Constant)
                and is_private(str(node.args[1].value))
            ):
                lines.append(node.lineno)
    return sorted(lines)


def test_what_is_counted() -> None:
    """Each line but the marked ones is a use."""
    text = """
from cepbench.joins import _opened
detector._run
result.run()._inner._run
getattr(detector, "_run", None)
monkeypatch.setattr(engine, "EVENTS", 1)
monkeypatch.setattr("cepbench.joins.engine.EVENTS", 1)
monkeypatch.setattr(found, "seconds", 1)
patch.delattr(engine.Engine, "run")
mock.patch.object(engine, "EVENTS", 1)
mock.patch("cepbench.joins.engine.EVENTS", 1)
monkeypatch.setitem(engine.PROFILES, "quick", 1)
engine.EVENTS = 1
from cepbench import engine  # fine
import time, os  # fine
self._run, row._replace(x=1), module.__dict__, result._repr_html_(), os._exit  # fine
monkeypatch.setattr(time, "time", 1)  # fine
monkeypatch.setenv("A", "1")  # fine
monkeypatch.setitem(os.environ, "A", "1")  # fine
setattr(mine, "EVENTS", 1)  # fine
"""
    expected = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if line and not line.endswith("# fine")
    ]
    found = uses_of_internals(text)
    assert sorted(set(found)) == expected
    assert len(found) == len(expected) + 1  # two private attributes in one line


def test_internals_are_used_where_a_reason_is_given() -> None:
    """Test what users see, or give the library a public parameter: the list only shrinks."""
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        if lines := uses_of_internals(path.read_text(encoding="utf-8")):
            found[path.relative_to(TESTS).as_posix()] = lines
    allowed = {file: number for file, (number, _) in ALLOWED.items()}
    wrong = {file: its for file, its in found.items() if len(its) != allowed.get(file, 0)}
    assert wrong == {}, "file: lines that use internals, not as many as are allowed"
    assert found.keys() == allowed.keys()
