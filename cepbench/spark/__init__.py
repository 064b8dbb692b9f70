"""Spark jobs: ``cep.spark``. Importing it starts nothing; names are loaded on first use."""

from __future__ import annotations

from typing import Any

from cepbench.public_names import homes_in, loaded

_HOMES = homes_in(__file__)

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    return loaded(name, __name__, _HOMES)
