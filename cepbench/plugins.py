"""Files with user-defined plan generators and evaluators, for ``--plugin`` and notebooks."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cepbench.errors import PlanGeneratorError

#: Prefix of the names of their modules.
_MODULE = "cepbench_plugin_"


def load_plugins(files: str | Path | Iterable[str | Path] | None) -> None:
    """Run Python files that register plan generators or evaluators.

    Parameters
    ----------
    files : path or sequence of paths
        None, an empty text and an empty sequence mean no file.

    Raises
    ------
    PlanGeneratorError
        If a file is missing or fails, registers neither, or registers a name of another file.
    """
    for file in _listed(files):
        before = _registered()
        module = _run(file)
        if _registered() == before:
            raise PlanGeneratorError(
                f"{file} registers neither a plan generator nor an evaluator; write "
                '@cepbench.plan_generator("MY-IDEA", kind="order") or '
                '@cepbench.plan_evaluator("my-engine") above its function'
            )
        for earlier, later in zip(before, _registered(), strict=True):
            _check_names(file, module, earlier, later)


def _listed(files: str | Path | Iterable[str | Path] | None) -> list[Path]:
    if not files:
        return []
    return [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]


def _registered() -> tuple[dict[str, Any], dict[str, Any]]:
    # Imported here: commands without plugins do not need them.
    from cepbench.evaluators.registry import EVALUATORS
    from cepbench.planners.registry import PLAN_GENERATORS

    return dict(PLAN_GENERATORS), dict(EVALUATORS)


def _check_names(
    file: Path, module: str, earlier: Mapping[str, Any], later: Mapping[str, Any]
) -> None:
    """Raise if a file replaces what another file has registered."""
    for name, entry in later.items():
        known = earlier.get(name, entry)
        home = known.qualified_name.partition(".")[0]
        if known is not entry and home.startswith(_MODULE) and home != module:
            raise PlanGeneratorError(
                f"{file} registers {name}, and so does {home.removeprefix(_MODULE)}.py; "
                "rename one of them"
            )


def _run(file: Path) -> str:
    """Import a file; returns the name of its module."""
    name = f"{_MODULE}{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise PlanGeneratorError(f"there is no Python file {file}; give one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PlanGeneratorError(
            f"{file}{_line(error, file)}: {type(error).__name__}: {error}"
        ) from error
    return name


def _line(error: Exception, file: Path) -> str:
    """The line of the file at which the error was raised, for a message."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == file.name
    ]
    return f", line {lines[-1]}" if lines else ""
