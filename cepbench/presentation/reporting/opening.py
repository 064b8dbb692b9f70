"""First call of every notebook: parameters are checked, plug-ins loaded, a folder made."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from cepbench.errors import ReportError
from cepbench.experiments.plugins import load_plugins
from cepbench.files import user_path
from cepbench.presentation.figures.offline import use_offline_charts
from cepbench.presentation.reporting.parameters import (
    checked_parameters,
    literals,
    unknown_parameter,
)

#: First line of the cell that papermill inserts after the one with the parameters.
_INJECTED = "# Parameters"

#: Letters of a text in a table.
_WIDEST = 100


def open_notebook(output: str | Path, plugin: str | Path | Iterable[str | Path] = ()) -> Path:
    """Set up a notebook: check parameters, load plug-ins, and make the folder for its results, if need be.

    Parameters are what the cells above assign, papermill's among them. The notebook has them as
    they were checked: ``changes`` is a table, also if papermill was given its text. Plug-ins are
    Python files with plan generators or evaluators, see
    :func:`cepbench.experiments.plugins.load_plugins`. Charts are drawn without a network, and
    texts in tables are not cut before they are long.

    Raises ReportError if a parameter is invalid, see
    :func:`cepbench.presentation.reporting.parameters.checked_parameters`, the folder cannot be
    made, or papermill sets a parameter that the notebook does not declare: papermill by itself
    warns and runs on, with the default; PlanGeneratorError if a file fails or registers nothing.
    """
    _check_kernel()
    given = checked_parameters({"output": output, "plugin": plugin})
    load_plugins(given["plugin"])
    use_offline_charts()
    pd.options.display.max_colwidth = _WIDEST
    folder = user_path(given["output"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(
            f"parameter output: {folder} is no folder to write into: {error}"
        ) from error
    return folder


def _check_kernel() -> None:
    """Check the parameters in the notebook that runs in this process, if one does."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None:
        names = shell.user_ns
        defaults = literals(_declared(list(names.get("In", []))))
        given = {name: names[name] for name in defaults if name in names}
        names.update(checked_parameters(given, defaults))


def _declared(cells: Sequence[str]) -> dict[str, str]:
    """The parameters that cells above the first call declare, with their defaults as Python text.

    Another one that papermill sets is a :class:`ReportError`.
    """
    declared: dict[str, str] = {}
    for text in cells:
        if f"{open_notebook.__name__}(" in text:
            break
        assigned = _assigned(text)
        if text.lstrip().startswith(_INJECTED) and declared:
            for name in assigned:
                if name not in declared:
                    raise unknown_parameter(name, declared, "this notebook")
            break
        declared |= assigned
    return declared


def _assigned(text: str) -> dict[str, str]:
    """Names that a cell assigns at its top level, and their values as Python text."""
    try:
        statements = ast.parse(text).body
    except SyntaxError:  # a cell that is no Python, such as one that failed
        return {}
    return {
        target.id: ast.unparse(statement.value) if statement.value else ""
        for statement in statements
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
    }
