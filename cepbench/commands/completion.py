"""Tab completion; must be fast, so nothing that loads Numba is imported."""

from __future__ import annotations

from pathlib import Path

import typer

from cepbench.papers import ALGORITHMS


def _named(package: str) -> list[str]:
    """Registered names of the algorithms of papers that are in a package."""
    return [algorithm.name for algorithm in ALGORITHMS if algorithm.files[0].startswith(package)]


def complete_generators(incomplete: str) -> list[str]:
    """Built-in plan generators, ignoring case."""
    return _beginning(_named("planners/"), incomplete)


def complete_costs(incomplete: str) -> list[str]:
    """Cost models of the project."""
    return _beginning(["throughput", "latency", "comparisons"], incomplete)


def complete_evaluators(incomplete: str) -> list[str]:
    """Built-in evaluators, ignoring case."""
    return _beginning(_named("evaluators/"), incomplete)


def complete_data(incomplete: str) -> list[str]:
    """Data sets of the catalogue, and Parquet files and folders."""
    return [*_beginning(_datasets(), incomplete), *_paths(incomplete, ".parquet")]


def complete_profiles(incomplete: str) -> list[str]:
    """Profiles of experiments."""
    return _beginning(["quick", "full"], incomplete)


def complete_sweeps(incomplete: str) -> list[str]:
    """Sweeps of the studies, and files."""
    studies = Path(__file__).parents[1] / "studies"
    names = [
        name
        for path in sorted(studies.glob("*/sweeps/*.toml"))
        for name in (path.stem, f"{path.parents[1].name}/{path.stem}")
    ]
    return [*_beginning(names, incomplete), *_paths(incomplete, ".toml")]


def complete_studies(incomplete: str) -> list[str]:
    """Citation keys of the studies."""
    studies = Path(__file__).parents[1] / "studies"
    return _beginning(
        sorted(path.parent.name for path in studies.glob("*/ledger.toml")), incomplete
    )


def complete_notebooks(incomplete: str) -> list[str]:
    """Notebooks of the folder in which they are looked for, and of its studies, and files."""
    folder = Path("notebooks")
    paths = [*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")]
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(paths)]
    return [*_beginning(names, incomplete), *_paths(incomplete, ".ipynb")]


def complete_pattern_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Patterns of the data set given before."""
    data = ctx.params.get("data")
    return _beginning(_library(str(data)), incomplete) if data else []


def _beginning(names: list[str], incomplete: str) -> list[str]:
    wanted = incomplete.casefold()
    # Completions must begin with the typed text, case included.
    return [
        incomplete + name[len(incomplete) :] for name in names if name.casefold().startswith(wanted)
    ]


def _paths(incomplete: str, suffix: str) -> list[str]:
    beginning = Path(incomplete)
    folder = beginning if incomplete.endswith("/") else beginning.parent
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    shown = [f"{entry}/" if entry.is_dir() else str(entry) for entry in entries]
    return [
        text for text in shown if text.startswith(incomplete) and (text.endswith(("/", suffix)))
    ]


def _datasets() -> list[str]:
    from cepbench.datasets.catalogue import entries
    from cepbench.errors import DatasetError

    try:
        found = entries()
    except DatasetError:  # the command reports it
        return []
    return [f"{name}/{variant}" for name, entry in found.items() for variant in entry.variants]


def _library(data: str) -> list[str]:
    from cepbench.datasets.catalogue import folders
    from cepbench.datasets.library import read_library
    from cepbench.errors import DatasetError

    name = data.partition("/")[0]
    try:
        return list(read_library(folders()[name], name))
    except (DatasetError, KeyError):
        return []
