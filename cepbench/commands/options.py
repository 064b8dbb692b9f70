"""Options shared by commands, settings of groups, and examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cepbench.commands.completion import (
    complete_costs,
    complete_data,
    complete_evaluators,
    complete_generators,
    complete_pattern_names,
)

#: Settings of every group of commands. Without rich, help is fast and fits narrow terminals.
GROUP: dict[str, Any] = {
    "rich_markup_mode": None,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


def examples(*commands: str) -> str:
    """The last part of a help text: example commands.

    Parameters
    ----------
    *commands : str
        Each begins with ``cepbench``; lines have up to 76 characters, continued by ``\\``.
    """
    heading = "Example:" if len(commands) == 1 else "Examples:"
    lines = [f"  {line}" for command in commands for line in command.splitlines()]
    # \b prevents rewrapping.
    return "\n".join(["\b", heading, *lines])


JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output.")
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="NUMBER", help="Seed of all random numbers."),
]
PatternArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATTERN",
        show_default=False,
        help="Pattern text, a file with it, or - for standard input.",
    ),
]
PatternNameOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_pattern_names,
        help="A pattern of the data set's library, instead of PATTERN.",
    ),
]
DataOption = Annotated[
    str | None,
    typer.Option(
        "--data",
        "-d",
        metavar="NAME|PATH",
        autocompletion=complete_data,
        help="A data set such as nasdaq-style/quick, or Parquet.",
    ),
]
ColumnsOption = Annotated[
    str,
    typer.Option(
        metavar="TYPE,TIME",
        help="Columns of event type and time in your Parquet.",
    ),
]
DaysOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="NUMBER", help="Only the first days of a data set."),
]
OnlyTypesOption = Annotated[
    bool,
    typer.Option(
        "--only-types",
        help="Read only events of the pattern's types, for data that exceeds memory.",
    ),
]
StatisticsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Read rates and selectivities from a file, as written by `cepbench data stats --json`, "
        "instead of measuring them.",
    ),
]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        help="A Python file with user-defined plan generators or evaluators; may be repeated.",
    ),
]
GeneratorOption = Annotated[
    str,
    typer.Option(
        "--generator",
        "-g",
        metavar="NAME",
        autocompletion=complete_generators,
        help="Plan generator; `cepbench generators` lists them.",
    ),
]
GeneratorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--generator",
        "-g",
        metavar="NAME",
        autocompletion=complete_generators,
        help="Plan generator; may be repeated. Without it: those marked in `cepbench generators`.",
    ),
]
EvaluatorOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_evaluators,
        help="Evaluator; without it, the one made for the kind of plan.",
    ),
]
EvaluatorsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--evaluator",
        metavar="NAME",
        autocompletion=complete_evaluators,
        help="Evaluator; may be repeated. Without it, the one made for each kind of plan.",
    ),
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of the evaluator; may be repeated. `cepbench evaluators` lists them.",
    ),
]
AlphaOption = Annotated[
    float,
    typer.Option(min=0.0, metavar="NUMBER", help="Weight of latency in the cost throughput."),
]
CostOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_costs,
        help="Cost model that plans minimize; `cepbench generators` lists which generator can.",
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

#: Columns of type and time in cepbench data sets.
COLUMNS = "symbol,ts"


def options_from(given: list[str] | None) -> dict[str, Any]:
    """Options of an evaluator from texts such as ``rows=100``; values are JSON, otherwise texts.

    Raises
    ------
    typer.BadParameter
        If there is no ``=``.
    """
    found: dict[str, Any] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{one} is not NAME=VALUE", param_hint="'--option'")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
