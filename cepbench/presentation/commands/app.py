"""The command ``cepbench``: its subcommands, and the handling of errors."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from textwrap import wrap
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cepbench.errors import CepbenchError
from cepbench.presentation.commands import (
    adapt,
    aggregate,
    claim,
    compare,
    data,
    doctor,
    explain,
    lists,
    plan,
    report,
    run,
    sweep,
)
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import GROUP, examples
from cepbench.text_table import text_width

#: Commands in the order of the help text.
ORDER = (
    "data", "plan", "run", "aggregate", "adapt", "compare", "explain", "sweep", "report", "claim", "generators", "evaluators",
    "doctor",
)  # fmt: skip


class Commands(TyperGroup):
    """A group of commands that prints errors to standard error and sets the exit status."""

    def main(self, *words: Any, **options: Any) -> Any:
        """Run the command, or show its help; exit status 1 for what the system refuses."""
        try:
            return super().main(*words, **options)
        except OSError as error:
            advice = _ADVICE.get(error.errno or 0)
            if advice is None and error.filename is None:
                raise
            # A write has no name, be it to standard output or to an open file.
            of = "standard output or a file" if error.filename is None else error.filename
            _print_error(f"{error.strerror}: {of}{f'; {advice}' if advice else ''}")
            sys.exit(1)

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of :data:`ORDER`."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit status 1 for a CepbenchError, 130 for Ctrl-C."""
        if _is_plain():
            ctx.color = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warning_once()
                return super().invoke(ctx)
        except CepbenchError as error:
            _print_error(str(error))
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            out.log("interrupted")
            raise typer.Exit(130) from None


#: Advice by error number of the system.
_ADVICE = {
    errno.ENOSPC: "free some space, or write to another disk",
    errno.EDQUOT: "free some space, or write to another disk",
    errno.EFBIG: "write to a file system that takes larger files",
    errno.EACCES: "check its permissions, or choose another path",
    errno.EPERM: "check its permissions, or choose another path",
    errno.EROFS: "the file system is read-only; choose another path",
    errno.ENOENT: "check the path",
    errno.EEXIST: "it already exists; choose another path",
    errno.ENOTDIR: "a part of that path is a file; choose another path",
    errno.EISDIR: "it is a folder; give a file",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def _is_plain() -> bool:
    """Whether a terminal gets no colours either."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _warning_once() -> Callable[..., None]:
    """What prints a warning, each once, as several functions that a command calls may give it."""
    said: set[str] = set()

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        from cepbench.streams.fit import AS_AN_ERROR

        text = str(message).removesuffix(AS_AN_ERROR)  # no command has that argument
        if text not in said:
            said.add(text)
            out.log(f"{typer.style('warning:', fg='yellow', bold=True)} {text}")

    return warn


def _print_error(message: str) -> None:
    """Print the message, wrapped to the terminal except for a pattern and its marker."""
    first, *rest = f"error: {message}".splitlines()
    if sys.stderr.isatty():
        first = "\n".join(wrap(first, text_width(), break_on_hyphens=False))
    if not _is_plain():
        first = typer.style("error:", fg="red", bold=True) + first.removeprefix("error:")
    out.log("\n".join([first, *rest]))


app = typer.Typer(
    cls=Commands,
    epilog=examples(
        'cepbench plan "PATTERN SEQ(MSFT a, GOOG b) WITHIN 20 minutes" \\\n    --data nasdaq-style/sample'
    ),
    **GROUP,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"cepbench {version('cepbench')}")
        raise typer.Exit


@app.callback()
def _cepbench(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Compare plan generators and engines for complex event processing.

    `cepbench COMMAND --help` describes a command, with examples.
    """


app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("aggregate", epilog=aggregate.EXAMPLES)(aggregate.aggregate)
app.command("adapt", epilog=adapt.EXAMPLES)(adapt.adapt)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.add_typer(sweep.app, name="sweep")
app.add_typer(report.app, name="report")
app.add_typer(data.app, name="data")
app.command("claim", epilog=claim.EXAMPLES)(claim.claim)
app.command("generators", epilog=lists.GENERATORS_EXAMPLES)(lists.generators)
app.command("evaluators", epilog=lists.EVALUATORS_EXAMPLES)(lists.evaluators)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)


def main() -> None:
    """Entry point of the command ``cepbench``."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: a file that is opened must not take its place
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        stream = getattr(sys, name)
        # What the encoding of a pipe or terminal lacks is escaped.
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="cepbench")
