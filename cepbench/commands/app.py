"""The command ``cepbench``: its commands, and the one place that shows errors."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cepbench.commands.options import GROUP, examples
from cepbench.errors import CepbenchError


class Commands(TyperGroup):
    """A group whose commands fail with one line on standard error and a status."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; 1 for an error of cepbench, 130 if it was stopped by Ctrl-C."""
        try:
            return super().invoke(ctx)
        except CepbenchError as error:
            typer.echo(f"{typer.style('error:', fg='red', bold=True)} {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Commands,
    epilog=examples(
        'cepbench plan "PATTERN SEQ(MSFT a, GOOG b) WITHIN 20 minutes" --data prices.parquet',
    ),
    **GROUP,
)


def _version(wanted: bool) -> None:
    if wanted:
        from cepbench import __version__

        typer.echo(f"cepbench {__version__}")
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


def main() -> None:
    """Entry point of the command ``cepbench``."""
    app(prog_name="cepbench")
