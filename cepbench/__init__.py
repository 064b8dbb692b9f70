"""cepbench: a workbench that compares plan generators for complex event processing.

>>> import cepbench as cep
>>> pattern = cep.parse("PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < b.price WITHIN 20 minutes")

The names in ``__init__.pyi`` are the public API; ``docs/architecture.md`` describes the packages.
Importing it starts no JVM and compiles nothing: names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

from cepbench.public_names import homes_in, loaded

__version__ = version("cepbench")

_HOMES = homes_in(__file__)

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "spark":
        return import_module("cepbench.spark")
    return loaded(name, __name__, _HOMES)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext cepbench``: the cell magic ``%%cep``, and charts that need no network."""
    from cepbench.presentation.app.magic import load

    load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
