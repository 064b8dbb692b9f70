"""Arguments and options of commands by ``options.toml``, settings of groups, and examples."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from cepbench.files import user_path
from cepbench.presentation.commands import completion

#: Settings of every group of commands. Without rich, help is fast and fits narrow terminals.
GROUP: dict[str, Any] = {
    "rich_markup_mode": None,
    "no_args_is_help": True,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

#: File extensions of matches and values that commands write.
ENDINGS = (".parquet", ".csv", ".arrow")


#: Options with files that a command writes.
WRITTEN = {"output", "html"}


def examples(*commands: str) -> str:
    """The last part of a help text: commands, whose lines have up to 76 characters, continued by ``\\``."""
    heading = "Example:" if len(commands) == 1 else "Examples:"
    lines = [f"  {line}" for command in commands for line in command.splitlines()]
    # \b prevents rewrapping.
    return "\n".join(["\b", heading, *lines])


def declared(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters are arguments and options as ``options.toml`` says.

    If its first parameter is a dataclass, the fields of this are arguments and options that it shares
    with other commands; the help text lists its own options before ``--plugin``.
    """
    own, shared = [*signature(command, eval_str=True).parameters.values()], []
    kind: Any = None
    if own and is_dataclass(own[0].annotation):
        kind = own.pop(0).annotation
        shared = [*signature(kind, eval_str=True).parameters.values()]
    names = [each.name for each in shared]
    before = names.index("plugin") if shared else 0

    @wraps(command)
    def called(**given: Any) -> None:
        inputs = [kind(**{name: given.pop(name) for name in names})] if shared else []
        for name in given.keys() & WRITTEN:
            for each in inputs:
                each.check_unread(given[name], f"'--{name}'")
        command(*inputs, **given)

    # Typer reads a command's arguments and options from its signature.
    listed = [*shared[:before], *own, *shared[before:]]
    called.__signature__ = Signature(  # type: ignore[attr-defined]
        [_with_declaration(each, command) for each in listed]
    )
    return called


def _with_declaration(parameter: Parameter, command: Callable[..., None]) -> Parameter:
    """A parameter as an argument or option of typer."""
    its = dict(_declaration(parameter, command))
    if its.pop("argument", False):
        made = typer.Argument(show_default=False, **_made(its))
    else:
        is_switch = parameter.annotation is bool
        flags = [f"--{parameter.name.replace('_', '-')}"] if is_switch else []
        made = typer.Option(*its.pop("flags", flags), **_made(its))
    return parameter.replace(annotation=Annotated[parameter.annotation, made])


def _made(its: dict[str, Any]) -> dict[str, Any]:
    """A table of ``options.toml`` as arguments of typer."""
    paths = {None: None, "user": _expanded, "ending": _checked_ending}
    complete, callback = its.pop("complete", None), paths[its.pop("path", None)]
    completed = complete and getattr(completion, f"complete_{complete}")
    return {**its, "callback": callback, "autocompletion": completed}


def _declaration(parameter: Parameter, command: Callable[..., None]) -> Mapping[str, Any]:
    of_module = _tables().get(command.__module__.rpartition(".")[2], {})
    of_function = of_module.get(command.__name__, {})
    names, annotation = [parameter.name], parameter.annotation
    if any(get_origin(kind) is list for kind in (annotation, *get_args(annotation))):
        names.insert(0, f"{parameter.name}s")
    found: Mapping[str, Any] = next(
        table[name]
        for table in (of_function, of_module, _tables()["shared"])
        for name in names
        if "help" in table.get(name, ())
    )
    return found


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _expanded(path: Path | None) -> Path | None:
    """A path of an option; where the shell leaves ``~`` as it is, as in ``--html=~/plan.html``."""
    return None if path is None else user_path(path)


def _checked_ending(path: Path | None) -> Path | None:
    """Check the file extension before anything is run."""
    file = _expanded(path)
    if file is not None and file.is_dir():
        raise typer.BadParameter(f"{file} is a folder that is there already; give another name")
    if file is not None and file.suffix not in ENDINGS:
        raise typer.BadParameter(f"{file} should end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    return file
