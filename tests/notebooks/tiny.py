"""The notebooks, parameters with which they take seconds; notebooks and plan generators written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from cepbench.presentation.reporting.notebooks import parameters_of

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PATHS = sorted([*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("*/*.ipynb")])
TINY = {
    "identifiers": 30, "days": 1, "patterns": 1, "repetitions": 1, "sizes": [3, 4],
    "large_sizes": [3, 8], "budget_seconds": 2.0, "case_events": 6_000,
}  # fmt: skip


def tiny_for(stem: str) -> dict[str, Any]:
    """Those of the tiny parameters that a notebook has."""
    known = parameters_of(next(path for path in PATHS if path.stem == stem))
    return {name: value for name, value in TINY.items() if name in known}


def write_notebook(path: Path, *sources: str) -> Path:
    """A notebook of these cells; the first one holds the parameters."""
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "P", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


def write_plugin(folder: Path) -> Path:
    path = folder / "my_generators.py"
    path.write_text(
        "import cepbench as cep\n"
        "@cep.plan_generator('BACKWARDS', kind='order')\n"
        "def backwards(problem, rng):\n"
        "    return range(problem.n)[::-1]\n",
        encoding="utf-8",
    )
    return path
