"""Parameters of notebooks, checked like arguments.

papermill passes whatever it is given: a list or a table as its text, and ``2024``, the name of a folder,
as a number. The kernel of a notebook and the report check them by the same function.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cepbench.arguments import choice, elements, flag, kind_of, number, shown, whole
from cepbench.errors import ExperimentError, ReportError, did_you_mean

#: Sizes of a report; a study may have others too.
PROFILES = ("quick", "full")

#: (value, what it is called) → the value as the notebook uses it; raises a ReportError.
_Check = Callable[[Any, str], Any]


def checked_parameters(
    given: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({}), where: str = ""
) -> dict[str, Any]:
    """Parameters of a notebook, checked and converted.

    Parameters
    ----------
    given : mapping of str to object
        The parameters' values.
    defaults : mapping of str to object
        Those of the notebook, where they are known. A parameter that no notebook of the report has, or
        whose default says that it means something else here, has a value of its default's type.
    where : str
        The name of the notebook, for messages; nothing in its own kernel.

    Raises
    ------
    ReportError
        With the parameter, what it may be, and the nearest.
    """
    prefix = f"{where}: " if where else ""
    found = {}
    for name, value in given.items():
        check = _CHECKS.get(name)
        if name == "profile" and "sweep" in {*given, *defaults}:
            check = _text  # one of the sweep file, which is checked with the file
        elif check is None or (name in defaults and not _passes(check, defaults[name])):
            check = _of_type(defaults[name]) if name in defaults else _anything
        found[name] = check(value, f"{prefix}parameter {name}")
    return found


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


def _passes(check: _Check, value: Any) -> bool:
    try:
        check(value, "")
    except ReportError:
        return False
    return True


def _anything(value: Any, name: str) -> Any:
    return value


def _of_type(default: Any) -> _Check:
    """The check of values of a default's type; without a default, or None, anything is one."""
    if isinstance(default, bool):
        return partial(flag, error=ReportError)
    if isinstance(default, int):
        return partial(whole, error=ReportError)
    if isinstance(default, float):
        return partial(number, error=ReportError)
    if isinstance(default, str):
        return _text
    if isinstance(default, list | tuple):
        return lambda value, name: elements(_written(value), name, "[3, 4]", ReportError)
    return _table if isinstance(default, dict) else _anything


# What a check reads is loaded with it: most notebooks have no such parameter.


def _profile(value: Any, name: str) -> str:
    if value in PROFILES:
        return str(value)
    from cepbench.studies.registry import STUDIES

    of_studies = (each for study in STUDIES.values() for each in study.profiles)
    return choice(value, name, list(dict.fromkeys([*PROFILES, *of_studies])), ReportError)


def _study(value: Any, name: str) -> str:
    from cepbench.studies.registry import STUDIES

    return choice(value, name, STUDIES, ReportError)


def _pattern_set(value: Any, name: str) -> str:
    from cepbench.sweeps.workload import PATTERN_SETS

    return choice(value, name, PATTERN_SETS, ReportError)


def _text(value: Any, name: str) -> str:
    """A text, also an empty one."""
    if isinstance(value, str):
        return value
    hint = "; papermill reads it as a number, and as a text with -r instead of -p"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    raise ReportError(f"{name} must be a text, not {shown(value)}{hint if is_number else ''}")


def _path(value: Any, name: str) -> str | Path:
    if isinstance(value, Path) or (_text(value, name).strip() and "\0" not in value):
        return value
    raise ReportError(f"{name} must be a path, such as output/mine, not {shown(value)}")


def _files(value: Any, name: str) -> str | Path | list[str | Path]:
    """A path, several of them, or an empty text."""
    value = _written(value)
    if isinstance(value, Path | str):
        return value
    return [_path(one, f"each of {name}") for one in elements(value, name, '["a.py"]', ReportError)]


def _list_of(check: _Check, example: str) -> _Check:
    """The check of a list, which may be given as its text; None is the notebook's own."""

    def checked(value: Any, name: str) -> list[Any] | None:
        value = _written(value)
        if value is None:
            return None
        return [check(one, f"each of {name}") for one in elements(value, name, example, ReportError)]

    return checked


def _table(value: Any, name: str) -> dict[str, Any] | None:
    """A table, which may be given as its text, or None."""
    found = _written(value)
    if found is None or isinstance(found, Mapping):
        return found and dict(found)
    raise ReportError(f'{name} must be a table such as {{"patterns": 4}}, not {kind_of(value)}')


def _changes(value: Any, name: str) -> dict[str, Any] | None:
    """Keys of a sweep file and their values."""
    from cepbench.sweeps.configuration import check_keys
    from cepbench.sweeps.sweep_file import KEYS

    table = _table(value, name)
    try:
        check_keys(table or (), KEYS)
    except ExperimentError as error:
        raise ReportError(f"{name}: {error}") from error
    return table


def _written(value: Any) -> Any:
    """The list or table that a text is, as JSON or Python writes it; other values as they are."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{", "("):
        for read in (json.loads, ast.literal_eval):
            try:
                return read(value)
            except (ValueError, SyntaxError):
                continue
    return value


_count = partial(whole, error=ReportError, least=0)
_size = partial(whole, error=ReportError, least=2)

#: Name → the check of the parameters of the report's notebooks. 0 and None are the profile's values.
_CHECKS: Mapping[str, _Check] = {
    "profile": _profile,
    "seed": _count,
    **dict.fromkeys(("output", "data", "report"), _path),
    "plugin": _files,
    "fresh": partial(flag, error=ReportError),
    **dict.fromkeys(
        ("events", "case_events", "identifiers", "days", "patterns", "measured_patterns", "plans",
         "draws", "repetitions"),
        _count,
    ),
    "budget_seconds": partial(number, error=ReportError, least=0.0),
    **dict.fromkeys(("sizes", "large_sizes"), _list_of(_size, "[3, 4]")),
    "pattern_sets": _list_of(_pattern_set, '["sequence"]'),
    "study": _study,
    "sweep": _path,
    "changes": _changes,
    "compare_with": _text,
    "generator": _text,
}  # fmt: skip
