"""Options shared by commands, settings of groups, and examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from cepbench.files import user_path
from cepbench.presentation.commands.completion import (
    complete_costs,
    complete_evaluators,
    complete_generators,
    complete_planners,
)

#: Settings of every group of commands. Without rich, help is fast and fits narrow terminals.
GROUP: dict[str, Any] = {
    "rich_markup_mode": None,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


def examples(*commands: str) -> str:
    """The last part of a help text: commands, whose lines have up to 76 characters, continued by ``\\``."""
    heading = "Example:" if len(commands) == 1 else "Examples:"
    lines = [f"  {line}" for command in commands for line in command.splitlines()]
    # \b prevents rewrapping.
    return "\n".join(["\b", heading, *lines])


def with_shared(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments and options that it shares with other commands.

    It takes first a dataclass, whose fields are those arguments and options, then its own options, which
    the help text lists before ``--plugin``.
    """
    first, *own = signature(command, eval_str=True).parameters.values()
    shared = signature(first.annotation, eval_str=True).parameters
    names = list(shared)
    plugin = names.index("plugin")

    @wraps(command)
    def called(**given: Any) -> None:
        command(first.annotation(**{name: given.pop(name) for name in names}), **given)

    # Typer reads a command's arguments and options from its signature.
    parameters = list(shared.values())
    called.__signature__ = Signature(  # type: ignore[attr-defined]
        [*parameters[:plugin], *own, *parameters[plugin:]]
    )
    return called


def named(complete: Callable[..., list[str]], help: str, *flags: str, metavar: str = "NAME") -> Any:
    """An option whose value is a word that tab completion knows."""
    return typer.Option(*flags, metavar=metavar, autocompletion=complete, help=help)


def expanded(path: Path | None) -> Path | None:
    """A path of an option; where the shell leaves ``~`` as it is, as in ``--html=~/plan.html``."""
    return None if path is None else user_path(path)


JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, metavar="NUMBER", help="Seed of all random numbers.")
]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        help="A Python file with user-defined plan generators or evaluators; may be repeated.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master; by default $CEPBENCH_SPARK_MASTER, or all cores of this machine.",
    ),
]


GeneratorOrDefault = Annotated[
    str | None,
    named(
        complete_generators,
        "Plan generator; `cepbench generators` lists them. By default DP-B, for an evaluator of orders "
        "alone DP-LD, for several queries none.",
        "--generator",
        "-g",
    ),
]
PlannerOption = Annotated[
    str | None,
    named(
        complete_planners,
        "Of several queries: what decides which matches are reused; by default CHASE.",
    ),
]
PlannersOption = Annotated[
    list[str] | None,
    named(
        complete_planners,
        "Of several queries: what decides which matches are reused; may be repeated.",
        "--planner",
    ),
]
GeneratorsOption = Annotated[
    list[str] | None,
    named(
        complete_generators,
        "Plan generator; may be repeated. Without it: the default ones of `cepbench generators`.",
        "--generator",
        "-g",
    ),
]
EvaluatorOption = Annotated[
    str | None,
    named(complete_evaluators, "Evaluator; without it, the default for the kind of plan."),
]
EvaluatorOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of the evaluator; may be repeated. `cepbench evaluators` lists them.",
    ),
]
AlphaOption = Annotated[
    float, typer.Option(min=0.0, metavar="NUMBER", help="Weight of latency in the cost throughput.")
]
CostOption = Annotated[
    str,
    named(
        complete_costs,
        "Cost model that plans minimize; `cepbench generators` lists which generator can.",
    ),
]
CostOrDefault = Annotated[
    str | None,
    named(
        complete_costs,
        "Cost model that plans minimize, by default throughput; `cepbench generators` lists which "
        "generator can. Of several queries calibrated, the default, or e-cube.",
        "--cost",
    ),
]
RewriteOption = Annotated[
    bool,
    typer.Option("--rewrite", help="Plan an equivalent pattern with fewer or cheaper operators."),
]
TimeOption = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="ATTRIBUTE",
        help="The attribute that holds each event's time, for --rewrite: conditions on it are then "
        "an order.",
    ),
]
LastOption = Annotated[
    str | None,
    typer.Option(
        metavar="VARIABLE",
        help="The variable whose event is expected last, for --alpha; by default determined on the "
        "data.",
    ),
]
