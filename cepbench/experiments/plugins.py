"""Plugins: files with user-defined plan generators, evaluators, cost models, aggregation methods and
adaptation policies."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from cepbench.arguments import elements, shown
from cepbench.errors import PlanGeneratorError
from cepbench.files import user_path

#: Prefix of the names of their modules.
_MODULE = "cepbench_plugin_"


class _Loader(SourceFileLoader):
    """Compiles a file anew: a cached one is known by its size and second, and files are edited."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def load_plugins(files: str | Path | Iterable[str | Path] | None) -> None:
    """Run Python files that register such entries.

    Parameters
    ----------
    files : path or sequence of paths
        None, an empty text and an empty sequence mean no file.

    Raises
    ------
    PlanGeneratorError
        If one is no path, a file is missing or fails, registers nothing, or registers a name of another
        file.
    """
    one = files is None or isinstance(files, str | Path)
    listed = [files] if one else elements(files, "plugins", '["a.py"]', PlanGeneratorError)
    for file in listed:
        if file is None or file == "":
            continue
        if not isinstance(file, str | Path):
            raise PlanGeneratorError(f"a plugin is the path of a Python file, not {shown(file)}")
        path = user_path(file)
        before = _registered()
        module = _run(path)
        after = _registered()
        if after == before:
            raise PlanGeneratorError(
                f"{path} registers neither a plan generator nor an evaluator, cost model or policy; write "
                '@cepbench.plan_generator("MY-IDEA", kind="order") or '
                '@cepbench.plan_evaluator("my-engine") above its function'
            )
        for key, entry in after.items():
            known = before.get(key, entry)
            home = "" if known is entry else known.function.__module__.partition(".")[0]
            if home.startswith(_MODULE) and home != module:
                other = Path(str(sys.modules[home].__file__))
                shown_as = other if other.name == path.name else other.name
                raise PlanGeneratorError(
                    f"{path} registers {key[1]}, and so does {shown_as}; rename one of them"
                )


def _registered() -> dict[tuple[int, str], Any]:
    """The entries of all registries, by registry and name."""
    # Imported here: commands without plugins do not need them.
    from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES
    from cepbench.engines.aggregation.registry import AGGREGATORS
    from cepbench.engines.detection.registry import EVALUATORS
    from cepbench.experiments.conformance.outside import OUTSIDE_ENGINES
    from cepbench.planning.costs.models import COST_MODELS
    from cepbench.planning.planners.registry import PLAN_GENERATORS

    registries: tuple[Mapping[str, Any], ...] = (
        PLAN_GENERATORS,
        EVALUATORS,
        COST_MODELS,
        ADAPTATION_POLICIES,
        AGGREGATORS,
        OUTSIDE_ENGINES,
    )
    return {
        (number, name): entry
        for number, registry in enumerate(registries)
        for name, entry in registry.items()
    }


def _run(file: Path) -> str:
    """Import a file; returns the name of its module."""
    name = f"{_MODULE}{file.stem}"
    while _file_of(name) not in (None, file.resolve()):
        name += "_"  # of another file of this name
    spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
    if spec is None or spec.loader is None or file.suffix != ".py" or not file.is_file():
        raise PlanGeneratorError(f"there is no Python file {file}; give one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise PlanGeneratorError(
            f"{file}{_line(error, file)}: {type(error).__name__}: {error}"
        ) from error
    return name


def _file_of(module: str) -> Path | None:
    loaded = sys.modules.get(module)
    return None if loaded is None else Path(str(loaded.__file__)).resolve()


def _line(error: BaseException, file: Path) -> str:
    """The line of the file at which the error was raised, for a message."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == file.name
    ]
    return f", line {lines[-1]}" if lines else ""
