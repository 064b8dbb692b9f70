"""``cepbench report``: the notebooks run and published, and the report opened."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from cepbench.commands.completion import complete_notebooks, complete_profiles
from cepbench.commands.options import GROUP, JsonOption, SeedOption, examples
from cepbench.commands.output import progress, remark, say, write_json
from cepbench.errors import ReportError

app = typer.Typer(help="The report: every notebook run and published.", **GROUP)

FolderOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the report.")
]


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
            help="This notebook alone; may be repeated.",
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what an earlier report has finished.")
    ] = False,
    pages_only: Annotated[
        bool, typer.Option("--pages-only", help="Run nothing; publish again what was run before.")
    ] = False,
    output: FolderOption = Path("reports"),
    notebooks: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the notebooks.")
    ] = Path("notebooks"),
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Run the notebooks and publish them as pages below an index.

    What was stopped goes on where it was when the same command is given again.
    """
    from cepbench.reporting.site import NOTEBOOKS, build_report, publish_report

    if pages_only:
        index = publish_report(output, say=remark)
        if json:
            write_json({"index": index})
        else:
            say(f"open {index}")
        return
    _known(only or [], NOTEBOOKS)
    if not notebooks.is_dir():
        raise ReportError(
            f"there is no folder {notebooks} with notebooks; run this in a checkout of cepbench, "
            "or name it by --notebooks"
        )
    stems = list(dict.fromkeys(only)) if only else list(NOTEBOOKS)
    with progress("notebooks", total=len(stems), unit=" notebooks") as bar:

        def told(line: str) -> None:
            bar.write(line, file=sys.stderr)
            stem, _, what = line.partition(": ")
            bar.update(stem in stems and what.endswith(" s"))

        index = build_report(
            output,
            profile=profile,
            seed=seed,
            notebooks=notebooks,
            stems=stems,
            parameters={"fresh": True} if fresh else None,
            say=told,
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


def _known(only: list[str], notebooks: tuple[str, ...]) -> None:
    import difflib

    for name in only:
        if name not in notebooks:
            near = difflib.get_close_matches(name, notebooks, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(notebooks)}"
            raise ReportError(f"no notebook {name!r} in the report; {hint}")
