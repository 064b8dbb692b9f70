"""The command ``cepbench``: its commands, and the one place that shows errors."""

from __future__ import annotations

import errno
import os
import sys
from textwrap import wrap
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from cepbench.commands import compare, data, explain, lists, plan, report, run, sweep
from cepbench.commands.options import GROUP, examples
from cepbench.commands.output import remark, width
from cepbench.errors import CepbenchError

#: Commands in the order of a help text: from data to a report, then what there is to choose from.
ORDER = (
    "data", "plan", "run", "compare", "explain", "sweep", "report", "generators", "evaluators",
)  # fmt: skip


class Commands(TyperGroup):
    """A group whose commands fail with one line on standard error and a status."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order of :data:`ORDER`."""
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; 1 for an error of cepbench, 130 if it was stopped by Ctrl-C."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            return super().invoke(ctx)
        except CepbenchError as error:
            _fail(str(error))
        except KeyboardInterrupt:
            remark("stopped")
            raise typer.Exit(130) from None
        except OSError as error:
            if error.filename is None:
                raise
            _fail(f"{error.strerror}: {error.filename}{_advice(error.errno)}")


#: What to do about an error of the system.
_ADVICE = {
    errno.ENOSPC: "free some space, or write to another disk",
    errno.EDQUOT: "free some space, or write to another disk",
    errno.EFBIG: "write to a place that takes larger files",
    errno.EACCES: "look who may read and write it, or name another place",
    errno.EPERM: "look who may read and write it, or name another place",
    errno.EROFS: "nothing can be written there; name another place",
    errno.ENOENT: "is the path right?",
    errno.EEXIST: "something else of that name is in the way; name another place",
    errno.ENOTDIR: "a part of that path is a file; name another place",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def _advice(number: int | None) -> str:
    return f"; {_ADVICE[number]}" if number in _ADVICE else ""


def _fail(message: str) -> NoReturn:
    remark(f"{typer.style('error:', fg='red', bold=True)} {_broken(message)}")
    raise typer.Exit(1)


def _broken(message: str) -> str:
    """The message in lines as wide as the terminal, but for a pattern with its mark below."""
    if not sys.stderr.isatty():
        return message
    first, *rest = message.splitlines() or [""]
    lines = wrap(f"error: {first}", width(), break_on_hyphens=False)
    return "\n".join(["\n".join(lines).removeprefix("error: "), *rest])


app = typer.Typer(
    cls=Commands,
    epilog=examples(
        'cepbench plan "PATTERN SEQ(MSFT a, GOOG b) WITHIN 20 minutes" \\\n    --data nasdaq-style/sample',
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
            "--version", callback=_version, is_eager=True, help="Say which version it is."
        ),
    ] = False,
) -> None:
    """Compare plan generators for complex event processing.

    `cepbench COMMAND --help` tells more of each command, with an example.
    """


app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.add_typer(sweep.app, name="sweep")
app.add_typer(report.app, name="report")
app.add_typer(data.app, name="data")
app.command("generators", epilog=lists.GENERATORS_EXAMPLES)(lists.generators)
app.command("evaluators", epilog=lists.EVALUATORS_EXAMPLES)(lists.evaluators)


def main() -> None:
    """Entry point of the command ``cepbench``."""
    app(prog_name="cepbench")
