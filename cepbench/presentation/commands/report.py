"""``cepbench report``: run and publish notebooks, and open the report."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import typer

from cepbench.errors import ReportError
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import GROUP, declared, examples

app = typer.Typer(help="Report: run and publish notebooks.", **GROUP)


def check_notebooks(folder: Path) -> None:
    """Raise a :class:`ReportError` if there are no notebooks to run."""
    if not folder.is_dir():
        raise ReportError(
            f"there is no folder {folder} with notebooks; run this in a checkout of cepbench, "
            "or give --notebooks"
        )


@app.command("build", epilog=examples("cepbench report build --profile quick --only quickstart"))
@declared
def build(
    profile: str = "quick",
    only: list[str] | None = None,
    study: list[str] | None = None,
    plugin: list[Path] | None = None,
    fresh: bool = False,
    pages_only: bool = False,
    strict: bool = False,
    output: Path = Path("reports"),
    notebooks: Path = Path("notebooks"),
    seed: int = 0,
    json: bool = False,
) -> None:
    """Run the notebooks and publish them as a site.

    Existing pages are kept. An interrupted run resumes when the same command is given again.
    """
    from cepbench.presentation.reporting.requests import requests_for
    from cepbench.presentation.reporting.site import build_report, publish_report

    if pages_only:
        index = publish_report(output, on_progress=out.log_state)
        if json:
            out.write_json({"index": index})
        else:
            out.write_line(f"open {index}")
        return
    if not only:
        check_notebooks(notebooks)
    requests = requests_for(only or [], notebooks, studies=study or [])
    stems = [request.stem for request in requests]
    if profile == "quick" and not only:
        out.log(
            "Without waiting: `make report PROFILE=reference` draws results at the papers' sizes, which the package "
            "has, in three minutes."
        )
    with out.progress("notebooks", total=len(stems), unit=" notebooks") as bar:

        def on_progress(what: str, state: str) -> None:
            bar.write(f"{what}: {state}", file=sys.stderr)
            bar.update(what in stems and state[:1].isdigit())

        index = build_report(
            output,
            profile=profile,
            seed=seed,
            notebooks=notebooks,
            only=requests,
            parameters={"fresh": True} if fresh else None,
            plugins=plugin or (),
            strict=strict,
            on_progress=on_progress,
        )
    if json:
        out.write_json({"index": index, "notebooks": stems, "profile": profile})
    else:
        out.write_line(f"open {index}")


@app.command("open", epilog=examples("cepbench report open --output reports"))
@declared
def open_report(output: Path = Path("reports")) -> None:
    """Open the report in the browser, or print its path if there is none."""
    index = output / "index.html"
    if not index.is_file():
        raise ReportError(f"there is no {index}; build it with `cepbench report build`")
    out.write_line(str(index))
    try:
        opened = webbrowser.open(index.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        out.log("No browser found; open that file in one.")
