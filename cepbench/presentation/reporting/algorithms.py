"""The page of algorithms: what is registered, where it comes from, what it builds, which claims name it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import CepbenchError
from cepbench.papers import ALGORITHMS, REFERENCES
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.presentation.reporting.front_picture import DATASET, PATTERN
from cepbench.presentation.reporting.story import JudgedClaim
from cepbench.streams.datasets.opening import open_dataset

#: Kind → its registry, and where in the package its members are.
KINDS: dict[str, tuple[Any, str]] = {
    "plan generator": (PLAN_GENERATORS, "planning/planners"),
    "cost model": (COST_MODELS, "planning/costs"),
    "evaluator": (EVALUATORS, "engines"),
    "aggregation method": (AGGREGATORS, "engines"),
    "workload planner": (WORKLOAD_PLANNERS, "planning/planners/sharing"),
    "adaptation policy": (ADAPTATION_POLICIES, "engines/adaptation"),
}

#: A citation of a docstring with its sections.
_CITATION = re.compile(r" ?\[(\w+)\]_(, sections? [\w.-]+(?:,? (?:and|to) [\w.-]+)*)?")


@dataclass(frozen=True, slots=True)
class Described:
    """A row of the page; what is not known is empty."""

    kind: str
    name: str
    #: Authors and year of the source, and the place in it.
    paper: str
    place: str
    sentence: str
    #: The plan for the pattern of the front page, and its cost in multiples of the least.
    plan: str
    times_least: float | None
    #: Its place in the reference.
    link: str
    claims: int


def described(claims: Sequence[JudgedClaim], documentation: Path) -> list[Described]:
    """Everything that is registered, built-in or by a plug-in, kind by kind.

    ``documentation`` is the folder ``docs`` of the site, into which links lead where there is one.
    """
    plans = example_plans()
    rows = []
    for kind, (registry, place) in KINDS.items():
        for name, entry in registry.items():
            paper, within, module = _source(name, entry, place)
            words = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
            text, times_least = (
                plans.get(name, ("", None)) if kind == "plan generator" else ("", None)
            )
            rows.append(
                Described(
                    kind,
                    name,
                    paper,
                    within,
                    _sentence(kind, entry, module),
                    text,
                    times_least,
                    _link(module, documentation),
                    sum(bool(words.search(claim.statement)) for claim in claims),
                )
            )
    return rows


def example_plans() -> dict[str, tuple[str, float]]:
    """Generator → its plan for the pattern of the front page, by types, and its cost by the least of its kind."""
    dataset = open_dataset(DATASET)
    stream, pattern = dataset.stream(), dataset.patterns[PATTERN]
    statistics = measure_statistics(pattern, stream)
    types = {variable.name: str(variable.type) for variable in pattern.variables}
    made: dict[str, tuple[str, str, float]] = {}
    for name, entry in PLAN_GENERATORS.items():
        try:
            its = plan(pattern, statistics, name)
        except CepbenchError:  # it refuses the pattern, or fails
            continue
        assert its.cost is not None
        made[name] = (
            entry.kind,
            re.sub(r"\w+", lambda each: types[each.group()], its.text),
            its.cost,
        )
    least: dict[str, float] = {}
    for kind, _, cost in made.values():
        least[kind] = min(cost, least.get(kind, cost))
    return {name: (text, cost / least[kind]) for name, (kind, text, cost) in made.items()}


def _source(name: str, entry: Any, place: str) -> tuple[str, str, str]:
    """Of an entry authors and year, the place in their paper, and the module that implements it."""
    for its in ALGORITHMS:
        if its.name == name and its.files[0].startswith(place):
            module = f"cepbench.{its.files[0].removesuffix('.py').replace('/', '.')}"
            return REFERENCES[its.paper].label, its.place, module
    source, within = getattr(entry, "source", ""), ""
    cited = _CITATION.match(source)
    if cited and cited[1] in REFERENCES:
        source, within = REFERENCES[cited[1]].label, (cited[2] or "").removeprefix(", ")
    return source, within, _function(entry).__module__


def _function(entry: Any) -> Any:
    """What an entry calls; a cost model is an object of its class."""
    fields = ("plan", "function", "open")
    return next((getattr(entry, each) for each in fields if hasattr(entry, each)), type(entry))


def _sentence(kind: str, entry: Any, module: str) -> str:
    """What an entry does: as registered, or the first sentence of its function, class or module."""
    own = getattr(entry, "description", "")
    if not own:
        is_ours = kind in ("evaluator", "aggregation method") and module.startswith("cepbench.")
        own = inspect.getdoc(importlib.import_module(module) if is_ours else _function(entry))
    line = " ".join((own or "").partition("\n\n")[0].split())
    text = _CITATION.sub("", line).replace(":data:", "").replace("`", "").rstrip(".")
    return f"{text}." if text else ""


def _link(module: str, documentation: Path) -> str:
    """The module's place in the reference, whose pages are of packages."""
    layer, package = [*module.split("."), "", ""][1:3]
    page = Path("reference") / "_generated" / f"{layer}-{package}.html"
    return f"docs/{page.as_posix()}#module-{module}" if (documentation / page).is_file() else ""
