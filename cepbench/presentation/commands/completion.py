"""Tab completion, without importing Numba, which is slow to load."""

from __future__ import annotations

from pathlib import Path

import typer

from cepbench.papers import ALGORITHMS

_STUDIES = Path(__file__).parents[2] / "experiments" / "studies"


#: The packages of engines.
_ENGINES = tuple(
    f"engines/{name}/"
    for name in ("joins", "instances", "zstream", "stack_nfa", "hierarchical_stacks", "sase")
)


def complete_generators(incomplete: str) -> list[str]:
    """Built-in plan generators, ignoring case."""
    of_workloads = _named("planning/planners/sharing/")
    return _beginning(
        [n for n in _named("planning/planners/") if n not in of_workloads], incomplete
    )


def complete_evaluators(incomplete: str) -> list[str]:
    """Built-in evaluators, ignoring case."""
    return _beginning(_named(_ENGINES), incomplete)


def complete_costs(incomplete: str) -> list[str]:
    """Built-in cost models."""
    # The paper's own one has the name of its engine.
    return _beginning([*_named("planning/costs/"), "zstream"], incomplete)


def complete_policies(incomplete: str) -> list[str]:
    """Built-in adaptation policies."""
    return _beginning(["threshold", "bound", "static", "clairvoyant"], incomplete)


def complete_aggregators(incomplete: str) -> list[str]:
    """Built-in aggregation methods."""
    return _beginning(["dpc", "window-product", "a-seq", "greta", "two-step"], incomplete)


def complete_emits(incomplete: str) -> list[str]:
    """When there is a value."""
    return _beginning(["trigger", "change"], incomplete)


def complete_scopes(incomplete: str) -> list[str]:
    """Which matches count."""
    return _beginning(["window", "trigger", "stream"], incomplete)


#: The modules of planners that reuse matches.
_OF_MATCHES = tuple(
    f"planning/planners/sharing/{module}.py"
    for module in ("chase", "hierarchical", "steiner", "forests")
)


def complete_planners(incomplete: str) -> list[str]:
    """Built-in planners of workloads that reuse matches."""
    counts = _named("planning/planners/sharing/", but=_OF_MATCHES)
    names = [name for name in _named("planning/planners/sharing/") if name not in counts]
    return _beginning(names, incomplete)


def complete_sharing(incomplete: str) -> list[str]:
    """Planners of workloads."""
    return _beginning(_named("planning/planners/sharing/"), incomplete)


def complete_data(incomplete: str) -> list[str]:
    """Data sets of the catalogue, and Parquet files and folders."""
    from cepbench.errors import DatasetError
    from cepbench.streams.datasets.catalogue import entries

    try:
        found = entries()
    except DatasetError:  # the command reports it
        found = {}
    names = [f"{name}/{variant}" for name, entry in found.items() for variant in entry.variants]
    return [*_beginning(names, incomplete), *_paths(incomplete, ".parquet")]


def complete_profiles(incomplete: str) -> list[str]:
    """Profiles that most sweeps and studies have."""
    return _beginning(["quick", "full"], incomplete)


def complete_sweeps(incomplete: str) -> list[str]:
    """Sweeps of the studies, and files."""
    names = [
        name
        for path in sorted(_STUDIES.glob("*/sweeps/*.toml"))
        for name in (path.stem, f"{path.parents[1].name}/{path.stem}")
    ]
    return [*_beginning(names, incomplete), *_paths(incomplete, ".toml")]


def complete_studies(incomplete: str) -> list[str]:
    """Citation keys of the studies."""
    names = sorted(path.parent.name for path in _STUDIES.glob("*/ledger.toml"))
    return _beginning(names, incomplete)


def complete_notebooks(incomplete: str) -> list[str]:
    """Notebooks of the default folder and of its studies, and files."""
    folder = Path("notebooks")
    paths = [*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")]
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(paths)]
    return [*_beginning(names, incomplete), *_paths(incomplete, ".ipynb")]


def complete_pattern_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Patterns in the library of the data set given by ``--data``."""
    from cepbench.errors import DatasetError
    from cepbench.streams.datasets.catalogue import folders
    from cepbench.streams.datasets.library import read_library

    name = str(ctx.params.get("data")).partition("/")[0]
    try:
        return _beginning(list(read_library(folders()[name], name)), incomplete)
    except (DatasetError, KeyError):  # the command reports it
        return []


def _named(package: str | tuple[str, ...], but: tuple[str, ...] = ()) -> list[str]:
    """Registered names of the papers' algorithms in a package or several, but for some modules."""
    return [
        algorithm.name
        for algorithm in ALGORITHMS
        if algorithm.files[0].startswith(package)
        and algorithm.files[0] not in but
        and " " not in algorithm.name
    ]


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
