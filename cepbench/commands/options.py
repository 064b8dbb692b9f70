"""What commands share in their signatures: options, settings of groups, examples."""

from __future__ import annotations

from typing import Annotated, Any

import typer

#: Settings of every group of commands. Without rich, help comes at once and fits narrow terminals.
GROUP: dict[str, Any] = {
    "rich_markup_mode": None,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

JsonOption = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output, for scripts.")
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", min=0, metavar="NUMBER", help="Of everything that is drawn at random."),
]


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
