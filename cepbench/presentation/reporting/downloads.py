"""Downloads of a page: tables, pictures, the notebook with and without its outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pandas as pd
from nbformat import NotebookNode
from PIL import Image

from cepbench.presentation.reporting.titles import in_words

#: Tables of more cells than this are offered as Parquet alone; as text they would take megabytes.
MOST_CELLS = 100_000

#: Folder of small pictures, within that of a notebook's results.
THUMBNAILS = "thumbnails"

_WIDTH = 720  # pixels: sharp also where a page draws two of them for one

#: Tags of cells that papermill puts in.
_INJECTED = "injected-parameters"


@dataclass(frozen=True, slots=True)
class Download:
    """A file beside a page: links are format, link relative to the site and bytes, one for each format."""

    name: str
    links: tuple[tuple[str, str, int], ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Downloads:
    """All files beside a page."""

    tables: tuple[Download, ...] = ()
    pictures: tuple[Download, ...] = ()
    notebooks: tuple[Download, ...] = ()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A picture for the front page: description, link and size of the small file."""

    alt: str
    link: str
    width: int
    height: int


def without_outputs(executed: NotebookNode) -> NotebookNode:
    """A copy of a notebook as it was before it was run: no outputs, no counts, nothing that papermill adds."""
    bare = deepcopy(executed)
    for name in ("papermill", "widgets", "cepbench"):
        bare.metadata.pop(name, None)
    bare.cells = [cell for cell in bare.cells if _INJECTED not in cell.metadata.get("tags", [])]
    for cell in bare.cells:
        cell.metadata = nbformat.from_dict(
            {
                key: value
                for key, value in cell.metadata.items()
                if key not in ("papermill", "execution") and value != []
            }
        )
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return bare


def bare_of(stem: str) -> str:
    """The notebook of a page without its outputs, relative to the site."""
    return f"{stem}/{Path(stem).name}_without_outputs.ipynb"


def write_downloads(
    folder: Path, stem: str, executed: NotebookNode, figures: Sequence[str] = ()
) -> Downloads:
    """Write what is made from results (CSV, the notebook without outputs), and list all of it.

    Results are in ``folder / stem``, of the site and the notebook; ``figures`` are the stems of those
    that it saved, as SVG and PNG.
    """
    own = folder / stem
    bare = folder / bare_of(stem)
    nbformat.write(without_outputs(executed), bare)
    return Downloads(
        tables=tuple(_table(folder, path) for path in sorted(own.glob("*.parquet"))),
        pictures=tuple(
            Download(in_words(name), _links(folder, own / f"{name}.svg", own / f"{name}.png"))
            for name in figures
        ),
        notebooks=(
            Download("with outputs, as it was run", _links(folder, own / f"{own.name}.ipynb")),
            Download("without outputs, to run it yourself", _links(folder, bare)),
        ),
    )


def write_thumbnail(folder: Path, figures: Iterable[tuple[str, str]]) -> Thumbnail | None:
    """Write a small copy of the first figure that a card of the front page has room for, beside the figure.

    Figures are the stem of a page and their own; if none of them fits, it is of the first; None without any.
    """
    sizes = {}
    for path in (folder / page / f"{name}.png" for page, name in figures):
        with Image.open(path) as picture:
            sizes[path] = picture.size
    fitting = [path for path, (width, height) in sizes.items() if height <= width <= 3 * height]
    for path in (*fitting, *sizes):
        small = path.parent / THUMBNAILS / path.name
        small.parent.mkdir(exist_ok=True)
        with Image.open(path) as picture:
            scale = min(1.0, _WIDTH / picture.width)
            size = round(picture.width * scale), round(picture.height * scale)
            picture.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(small)
        return Thumbnail(in_words(path.stem), small.relative_to(folder).as_posix(), *size)
    return None


def _table(folder: Path, path: Path) -> Download:
    table = pd.read_parquet(path)
    rows, columns = table.shape
    text = path.with_suffix(".csv")
    if rows * columns <= MOST_CELLS:
        table.to_csv(text, index=False)
        links = _links(folder, path, text)
    else:
        text.unlink(missing_ok=True)  # of an earlier, smaller table
        links = _links(folder, path)
    return Download(path.stem, links, f"{rows:,} rows × {columns} columns")


def _links(folder: Path, *paths: Path) -> tuple[tuple[str, str, int], ...]:
    names = {".parquet": "Parquet", ".csv": "CSV", ".ipynb": "notebook"}
    return tuple(
        (
            names.get(path.suffix, path.suffix[1:].upper()),
            path.relative_to(folder).as_posix(),
            path.stat().st_size,
        )
        for path in paths
        if path.is_file()
    )
