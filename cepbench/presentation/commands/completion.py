"""Tab completion, without importing Numba, which is slow to load."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import typer

from cepbench.papers import ALGORITHMS

_STUDIES = Path(__file__).parents[2] / "experiments" / "studies"


def one_of(*names: str) -> Callable[[str], list[str]]:
    """The completion of some words, ignoring case."""

    def complete(incomplete: str) -> list[str]:
        wanted = incomplete.casefold()
        # Completions must begin with the typed text, case included.
        return [
            incomplete + name[len(incomplete) :]
            for name in names
            if name.casefold().startswith(wanted)
        ]

    return complete


def _named(*packages: str) -> list[str]:
    """Registered names of the papers' algorithms in some packages or modules."""
    return [
        algorithm.name
        for algorithm in ALGORITHMS
        if algorithm.files[0].startswith(packages) and " " not in algorithm.name
    ]


_SHARING = "planning/planners/sharing/"
_ENGINES = ("joins", "instances", "zstream", "stack_nfa", "hierarchical_stacks", "sase")
_OF_MATCHES = ("chase", "hierarchical", "steiner", "forests")

complete_sharing = one_of(*_named(_SHARING))
complete_planners = one_of(*_named(*(f"{_SHARING}{module}.py" for module in _OF_MATCHES)))
complete_generators = one_of(
    *(name for name in _named("planning/planners/") if name not in _named(_SHARING))
)
complete_evaluators = one_of(*_named(*(f"engines/{name}/" for name in _ENGINES)))
#: The paper's own cost model has the name of its engine.
complete_costs = one_of(*_named("planning/costs/"), "zstream")
complete_aggregators = one_of(
    "dpc", "window-product", "order-statistics", "a-seq", "greta", "two-step"
)
complete_emits = one_of("trigger", "change")
complete_scopes = one_of("window", "trigger", "stream")
complete_policies = one_of("amortized", "threshold", "bound", "static", "clairvoyant")
#: Profiles that most sweeps and studies have.
complete_profiles = one_of("quick", "full", "reference")


def complete_data(incomplete: str) -> list[str]:
    """Data sets of the catalogue, and Parquet files and folders."""
    from cepbench.errors import DatasetError
    from cepbench.streams.datasets.catalogue import entries

    try:
        found = entries()
    except DatasetError:  # the command reports it
        found = {}
    names = [f"{name}/{variant}" for name, entry in found.items() for variant in entry.variants]
    return [*one_of(*names)(incomplete), *_paths(incomplete, ".parquet")]


def complete_sweeps(incomplete: str) -> list[str]:
    """Sweeps of the studies, and files."""
    names = [
        name
        for path in sorted(_STUDIES.glob("*/sweeps/*.toml"))
        for name in (path.stem, f"{path.parents[1].name}/{path.stem}")
    ]
    return [*one_of(*names)(incomplete), *_paths(incomplete, ".toml")]


def complete_studies(incomplete: str) -> list[str]:
    """Citation keys of the studies."""
    names = sorted(path.parent.name for path in _STUDIES.glob("*/ledger.toml"))
    return one_of(*names)(incomplete)


def complete_claims(incomplete: str) -> list[str]:
    """Ids of claims in the ledgers."""
    ids = [
        entry["id"]
        for path in sorted(_STUDIES.glob("*/ledger.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["claim"]
    ]
    return one_of(*ids)(incomplete)


def complete_notebooks(incomplete: str) -> list[str]:
    """Notebooks of the default folder and of its studies, and files."""
    folder = Path("notebooks")
    paths = [*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")]
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(paths)]
    return [*one_of(*names)(incomplete), *_paths(incomplete, ".ipynb")]


def complete_pattern_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Patterns in the library of the data set given by ``--data``."""
    from cepbench.errors import DatasetError
    from cepbench.streams.datasets.catalogue import folders
    from cepbench.streams.datasets.library import read_library

    name = str(ctx.params.get("data")).partition("/")[0]
    try:
        return one_of(*read_library(folders()[name], name))(incomplete)
    except (DatasetError, KeyError):  # the command reports it
        return []


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
