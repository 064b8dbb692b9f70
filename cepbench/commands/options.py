"""What commands share in their signatures: options, settings of groups, examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cepbench.commands.completion import (
    complete_data,
    complete_evaluators,
    complete_generators,
    complete_pattern_names,
)

#: Settings of every group of commands. Without rich, help comes at once and fits narrow terminals.
GROUP: dict[str, Any] = {
    "rich_markup_mode": None,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


def examples(*commands: str) -> str:
    """The last part of a help text: commands that can be run as they are.

    Parameters
    ----------
    *commands : str
        Each begins with ``cepbench``; lines of up to 76 characters, continued by ``\\``.
    """
    heading = "Example:" if len(commands) == 1 else "Examples:"
    lines = [f"  {line}" for command in commands for line in command.splitlines()]
    # \b keeps the lines as they are.
    return "\n".join(["\b", heading, *lines])


JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output, for scripts.")
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="NUMBER", help="Of everything that is drawn at random."),
]
PatternArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="PATTERN",
        show_default=False,
        help="Pattern text, the file of one, or - for standard input.",
    ),
]
PatternNameOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_pattern_names,
        help="A pattern of the data set's library instead of PATTERN.",
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
        help="Columns with the events' types and times, in Parquet of your own.",
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
        help="Read events of the pattern's types alone, if the data is too large for the memory.",
    ),
]
StatisticsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Rates and selectivities as `cepbench data stats --json` writes them, instead of "
        "measuring them on the data.",
    ),
]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        help="A Python file with plan generators or evaluators of your own; may be repeated.",
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
    typer.Option(min=0.0, metavar="NUMBER", help="Weight of latency in the cost of plans."),
]
LastOption = Annotated[
    str | None,
    typer.Option(
        metavar="VARIABLE",
        help="The variable whose event is expected last, for --alpha; "
        "without it, found on the data.",
    ),
]

#: Where events of the project's own data sets have type and time.
COLUMNS = "symbol,ts"


def options_from(given: list[str] | None) -> dict[str, Any]:
    """Options of an evaluator from texts such as ``rows=100``; values as JSON writes them, or texts.

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
