"""``cepbench report``: the notebooks run and published, and the report opened."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from cepbench.commands.completion import complete_notebooks, complete_profiles, complete_studies
from cepbench.commands.options import GROUP, JsonOption, PluginOption, SeedOption, examples
from cepbench.commands.output import progress, remark, say, write_json
from cepbench.errors import ReportError

app = typer.Typer(help="The report: every notebook run and published.", **GROUP)

FolderOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the report.")
]
NotebooksOption = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the notebooks.")]


def check_notebooks(folder: Path) -> None:
    """Raise a :class:`ReportError` if there are no notebooks to run."""
    if not folder.is_dir():
        raise ReportError(
            f"there is no folder {folder} with notebooks; run this in a checkout of cepbench, "
            "or name it by --notebooks"
        )


@app.command("build", epilog=examples("cepbench report build --profile quick --only quickstart"))
def build(
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_profiles,
            help="quick takes minutes, and full hours.",
        ),
    ] = "quick",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NOTEBOOK",
            autocompletion=complete_notebooks,
            help="This notebook alone: a name of the report's, or the file of any, which becomes a "
            "page beside the others; may be repeated.",
        ),
    ] = None,
    study: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            autocompletion=complete_studies,
            help="The notebooks of this study alone, by its paper's citation key; may be repeated.",
        ),
    ] = None,
    plugin: PluginOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what an earlier report has finished.")
    ] = False,
    pages_only: Annotated[
        bool, typer.Option("--pages-only", help="Run nothing; publish again what was run before.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="A warning that a notebook prints is an error.")
    ] = False,
    output: FolderOption = Path("reports"),
    notebooks: NotebooksOption = Path("notebooks"),
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Run the notebooks and publish them as pages below an index.

    Pages that were made before stay. An interrupted command resumes when it is given again.
    """
    from cepbench.reporting.requests import requests_for
    from cepbench.reporting.site import build_report, publish_report

    if pages_only:
        index = publish_report(output, say=remark)
        if json:
            write_json({"index": index})
        else:
            say(f"open {index}")
        return
    if not only:
        check_notebooks(notebooks)
    requests = requests_for(only or [], notebooks, studies=study or [])
    stems = [request.stem for request in requests]
    with progress("notebooks", total=len(stems), unit=" notebooks") as bar:

        def on_progress(line: str) -> None:
            bar.write(line, file=sys.stderr)
            stem, _, what = line.partition(": ")
            bar.update(stem in stems and what.endswith(" s"))

        index = build_report(
            output,
            profile=profile,
            seed=seed,
            notebooks=notebooks,
            only=requests,
            parameters={"fresh": True} if fresh else None,
            plugins=plugin or (),
            strict=strict,
            say=on_progress,
        )
    if json:
        write_json({"index": index, "notebooks": stems, "profile": profile})
    else:
        say(f"open {index}")


@app.command("open", epilog=examples("cepbench report open --output reports"))
def open_report(output: FolderOption = Path("reports")) -> None:
    """Open the report in the browser, or say where it is if there is none."""
    index = output / "index.html"
    if not index.is_file():
        raise ReportError(f"there is no {index}; make it by `cepbench report build`")
    say(str(index))
    try:
        opened = webbrowser.open(index.resolve().as_uri())
    except webbrowser.Error:
        opened = False
    if not opened:
        remark("There is no browser here; open that file in one.")
