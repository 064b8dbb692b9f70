"""Files with plan generators and evaluators of one's own, for ``--plugin``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from cepbench.errors import PlanGeneratorError


def load_plugins(files: Iterable[Path] | None) -> None:
    """Run Python files that register plan generators or evaluators.

    Raises
    ------
    PlanGeneratorError
        If a file is missing or fails, or registers neither.
    """
    for file in files or ():
        from cepbench.evaluators.registry import EVALUATORS
        from cepbench.planners.registry import PLAN_GENERATORS

        before = dict(PLAN_GENERATORS), dict(EVALUATORS)
        _run(file)
        if (dict(PLAN_GENERATORS), dict(EVALUATORS)) == before:
            raise PlanGeneratorError(
                f"{file} registers neither a plan generator nor an evaluator; write "
                '@cepbench.plan_generator("MY-IDEA", plans="order") or '
                '@cepbench.plan_evaluator("my-engine") above its function'
            )


def _run(file: Path) -> None:
    name = f"cepbench_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise PlanGeneratorError(
            f"there is no Python file {file}; --plugin takes one that ends in .py"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PlanGeneratorError(
            f"{file}{_line(error, file)}: {type(error).__name__}: {error}"
        ) from error


def _line(error: Exception, file: Path) -> str:
    """Which line of the file was being run, or is no Python."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == file.name
    ]
    return f", line {lines[-1]}" if lines else ""
