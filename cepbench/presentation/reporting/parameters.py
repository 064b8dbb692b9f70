"""Parameters of notebooks, checked like arguments.

papermill passes whatever it is given: a list or a table as its text, and ``2024``, the name of a folder,
as a number. The kernel of a notebook and the report check them by the same function.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any

from cepbench.arguments import choice, elements, flag, kind_of, number, shown, whole
from cepbench.errors import ExperimentError, ReportError, did_you_mean
from cepbench.experiments.studies.profiles import PROFILES as MEASURING
from cepbench.experiments.studies.profiles import REFERENCE

#: Sizes of a report, and the results in the package; a study may have others too.
PROFILES = (*MEASURING, REFERENCE)

#: (value, what it is called) → the value as the notebook uses it; raises a ReportError.
_Check = Callable[[Any, str], Any]


def checked_parameters(
    given: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({}), where: str = ""
) -> dict[str, Any]:
    """Parameters of a notebook, checked and converted.

    Defaults are those of the notebook, where they are known. A parameter that no notebook of the
    report has, or whose default is of another type there, has a value of its default's type. The
    name of the notebook, ``where``, is for messages; nothing in its own kernel.

    Raises ReportError with the parameter, what it may be, and the nearest.
    """
    prefix = f"{where}: " if where else ""
    found = {}
    for name, value in given.items():
        types, check = _CHECKS.get(name, ((), _anything))
        if name in defaults and not isinstance(defaults[name], types):
            check = _of_type(defaults[name])
        elif name == "profile" and "sweep" in {*given, *defaults}:
            check = _text  # one of the sweep file, which is checked with the file
        found[name] = check(value, f"{prefix}parameter {name}")
    return found


def unknown_parameter(name: str, known: Iterable[str], where: str) -> ReportError:
    """The error for a parameter that nothing declares, with the nearest of the known ones in a place."""
    names = list(known)
    hint = did_you_mean(name, names, cutoff=0.5) or "."
    return ReportError(
        f"there is no parameter {name!r} in {where}{hint} There are {', '.join(names) or 'none at all'}"
    )


def literals(parameters: Mapping[str, str]) -> dict[str, Any]:
    """The values of parameters, given as Python text, that are literals."""
    found = {}
    for name, text in parameters.items():
        with suppress(ValueError, SyntaxError):
            found[name] = ast.literal_eval(text)
    return found


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
        return partial(_elements, example="[3, 4]")
    return _table if isinstance(default, dict) else _anything


# What a check reads is loaded with it: most notebooks have no such parameter.


def _profile(value: Any, name: str) -> str:
    if value in PROFILES:
        return str(value)
    from cepbench.experiments.studies.registry import STUDIES

    of_studies = (each for study in STUDIES.values() for each in study.profiles)
    return choice(value, name, list(dict.fromkeys([*PROFILES, *of_studies])), ReportError)


def _study(value: Any, name: str) -> str:
    from cepbench.experiments.studies.registry import STUDIES

    return choice(value, name, STUDIES, ReportError)


def _pattern_set(value: Any, name: str) -> str:
    from cepbench.experiments.sweeps.workload import PATTERN_SETS

    return choice(value, name, PATTERN_SETS, ReportError)


def _text(value: Any, name: str, what: str = "a text") -> str:
    """A text; None is an empty one."""
    if value is None or isinstance(value, str):
        return value or ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    hint = "; papermill passes a number as a text with -r instead of -p" if is_number else ""
    raise ReportError(f"{name} must be {what}, not {shown(value)}{hint}")


def _path(value: Any, name: str, example: str = "output/mine") -> str | Path:
    what = f"a path such as {example}"
    if isinstance(value, Path) or (_text(value, name, what).strip() and "\0" not in value):
        return value
    raise ReportError(f"{name} must be {what}, not {shown(value)}")


def _files(value: Any, name: str) -> str | Path | list[str | Path]:
    """A path, several of them, or an empty text."""
    found = _written(value)
    if _is_list(found):
        return [_path(one, f"each of {name}", "my_idea.py") for one in found]
    return "" if found in ("", None) else _path(value, name, "my_idea.py")


def _list_of(check: _Check, example: str) -> _Check:
    """The check of a list, which may be given as its text; None is the notebook's own."""

    def checked(value: Any, name: str) -> list[Any] | None:
        if value is None:
            return None
        return [check(one, f"each of {name}") for one in _elements(value, name, example)]

    return checked


def _elements(value: Any, name: str, example: str) -> list[Any]:
    """The elements of a list, which may be given as its text."""
    found = _written(value)
    if not _is_list(found):
        raise ReportError(f"{name} must be a list such as {example}, not {shown(value)}")
    return elements(found, name, example, ReportError)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _table(value: Any, name: str) -> dict[str, Any] | None:
    """A table, which may be given as its text, or None."""
    found = _written(value)
    if found is None:
        return None
    if isinstance(found, Mapping):
        return dict(found)
    raise ReportError(f'{name} must be a table such as {{"patterns": 4}}, not {kind_of(value)}')


def _changes(value: Any, name: str) -> dict[str, Any] | None:
    """Keys of a sweep file and their values."""
    from cepbench.experiments.sweeps.configuration import check_keys
    from cepbench.experiments.sweeps.sweep_file import KEYS

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
_at_least_one = partial(whole, error=ReportError, least=1)
_size = partial(whole, error=ReportError, least=2)

#: The parameters of the report's notebooks: name → types of defaults, and the check. 0 and None are the
#: profile's values.
_CHECKS: Mapping[str, tuple[tuple[type, ...], _Check]] = {
    "profile": ((str,), _profile),
    "seed": ((int,), _count),
    **dict.fromkeys(("output", "data", "report"), ((str, Path), _path)),
    "plugin": ((str, Path, list, tuple), _files),
    "fresh": ((bool,), partial(flag, error=ReportError)),
    **dict.fromkeys(
        ("events", "identifiers", "days", "patterns", "measured_patterns", "draws", "repetitions"),
        ((int,), _count),
    ),
    **dict.fromkeys(("case_events", "plans"), ((int,), _at_least_one)),
    "budget_seconds": ((float,), partial(number, error=ReportError, least=0.0)),
    **dict.fromkeys(
        ("sizes", "large_sizes"), ((NoneType, list, tuple), _list_of(_size, "[3, 4]"))
    ),
    "pattern_sets": ((NoneType, list, tuple), _list_of(_pattern_set, '["sequence"]')),
    "study": ((str,), _study),
    "sweep": ((str, Path), partial(_path, example="mine.toml")),
    "changes": ((NoneType, dict), _changes),
    **dict.fromkeys(("compare_with", "generator"), ((str,), _text)),
}  # fmt: skip
