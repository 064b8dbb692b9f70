"""First call of every notebook: parameters are checked, plug-ins loaded, a folder made."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from cepbench.errors import ReportError, did_you_mean
from cepbench.figures.offline import use_offline_charts
from cepbench.plugins import load_plugins

#: First line of the cell that papermill inserts after the one with the parameters.
_INJECTED = "# Parameters"


def open_notebook(output: str | Path, plugin: str | Path | Iterable[str | Path] = ()) -> Path:
    """Set up a notebook: check parameters, load plug-ins, and make the folder for its results.

    Parameters that papermill inserted are checked against those that the notebook declares, and
    charts are drawn without a network.

    Parameters
    ----------
    output : path
        The folder; made if it is not there.
    plugin : path or sequence of paths
        Python files with plan generators or evaluators, see
        :func:`cepbench.plugins.load_plugins`.

    Returns
    -------
    Path
        Of the folder.

    Raises
    ------
    ReportError
        If papermill sets a parameter that the notebook does not declare. papermill by
        itself warns and runs on, with the default.
    PlanGeneratorError
        If a file fails or registers nothing.
    """
    _check_injected(_cells_so_far())
    load_plugins(plugin)
    use_offline_charts()
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def unknown_parameter(name: str, known: Iterable[str], where: str) -> ReportError:
    """The error for a parameter that nothing declares, with the nearest one that is.

    Parameters
    ----------
    name : str
    known : iterable of str
        The parameters that there are.
    where : str
        Where it was looked for, in words.
    """
    names = list(known)
    hint = did_you_mean(name, names, cutoff=0.5) or "."
    return ReportError(
        f"there is no parameter {name!r} in {where}{hint} There are {', '.join(names) or 'none at all'}"
    )


def _cells_so_far() -> Sequence[str]:
    """Texts of the cells run so far in this kernel; empty outside of one."""
    from IPython import get_ipython

    shell = get_ipython()
    return [] if shell is None else list(shell.user_ns.get("In", []))


def _check_injected(cells: Sequence[str]) -> None:
    declared: dict[str, None] = {}
    for text in cells:
        names = _assigned(text)
        if text.lstrip().startswith(_INJECTED) and declared:
            for name in names:
                if name not in declared:
                    raise unknown_parameter(name, declared, "this notebook")
            return
        declared.update(dict.fromkeys(names))


def _assigned(text: str) -> list[str]:
    """Names that a cell assigns at its top level."""
    try:
        statements = ast.parse(text).body
    except SyntaxError:  # a cell that is no Python, such as one that failed
        return []
    return [
        target.id
        for statement in statements
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
    ]
