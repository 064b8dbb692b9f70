"""Public names of a package: those that the stub beside its ``__init__.py`` imports, loaded on first use."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import \(?\s*(\w+) as \2\b", re.MULTILINE)


def homes_in(file: str) -> dict[str, str]:
    """Name → module, by the stub of the ``__init__.py`` with this path."""
    stub = Path(file).with_name("__init__.pyi").read_text(encoding="utf-8")
    return {name: module for module, name in _IMPORT.findall(stub)}


def loaded(name: str, package: str, homes: Mapping[str, str]) -> Any:
    """A name, which is then an attribute of the package; an AttributeError if it is not among its names."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(homes[name]), name)
    setattr(sys.modules[package], name, value)
    return value
