"""Sphinx: the pages of this folder and the reference from docstrings, readable without a network."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers import TextLexer
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import cepbench  # noqa: E402
from cepbench.papers import REFERENCES  # noqa: E402

project = "cepbench"
author = "The cepbench authors"
copyright = "The cepbench authors, Apache License 2.0"
release = version_of("cepbench")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3

autosummary_generate = False
autodoc_typehints = "none"  # types stand in the docstrings, in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Types are words, such as "sequence of Column": two rooms may each have a Column.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"cepbench {release}"
html_copy_source = False
html_show_sourcelink = False
templates_path = ["templates"]
# Those of the theme, and the way back to the report, whose folder has these pages in "docs".
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "back.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
# Formulas are written in letters, so that no page asks for MathJax.

#: Rooms without anything that a user calls.
LEFT_OUT = {"kernels"}


class PublicNames(SphinxDirective):
    """The names of ``import cepbench as cep``, each with the first line of its docstring."""

    def run(self) -> list[nodes.Node]:
        lines = [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~{home}.{name}" for name, home in sorted(cepbench._HOMES.items())]
        return self.parse_text_to_nodes(_as_restructured("\n".join(lines)))


class CitedPapers(SphinxDirective):
    """A citation for each key of :mod:`cepbench.papers`."""

    def run(self) -> list[nodes.Node]:
        keys = sorted(REFERENCES)
        lines = [f".. [{key}] {REFERENCES[key]}\n" for key in keys]
        # Each is cited here too: of one that no docstring cites Sphinx would warn.
        lines += ["All of them: " + ", ".join(f"[{key}]_" for key in keys) + "."]
        return self.parse_text_to_nodes(_as_restructured("\n".join(lines)))


def _as_restructured(text: str) -> str:
    return f"````{{eval-rst}}\n{text}\n````\n"


def _write_rooms(app: Any) -> None:
    """A page for each room, of all its modules; only written where it is new."""
    folder = Path(app.srcdir) / "reference" / "_generated"
    folder.mkdir(parents=True, exist_ok=True)
    package = HERE.parent / "cepbench"
    rooms = {path.parent.name: path.parent for path in package.glob("*/__init__.py")}
    pages = {"errors": ["cepbench.errors"]}
    for name in sorted(rooms.keys() - LEFT_OUT):
        files = sorted(rooms[name].rglob("*.py"))
        pages[name] = [
            ".".join(file.relative_to(package.parent).with_suffix("").parts)
            for file in files
            if not file.stem.startswith("__")
        ]
    for name, modules in pages.items():
        lines = [name, "=" * len(name), ""]
        wanted = app.config.rooms.split(",") if app.config.rooms else pages
        for module in modules if name in wanted else ():
            short = module.rpartition(".")[2].replace("_", r"\_")
            if len(modules) > 1:
                lines += [short, "-" * len(short), ""]
            lines += [f".. automodule:: {module}", "   :members:", "   :ignore-module-all:", ""]
        page, text = folder / f"{name}.rst", "\n".join(lines)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _as_it_is(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """The magic's docstring is what IPython prints for ``%%cep?``, no page."""
    if name == "cepbench.app.magic.cep":
        lines[:] = ["::", "", *(f"   {line}" for line in lines)]


def setup(app: Any) -> None:
    # Some of the rooms, with commas between them, for a test that need not read all docstrings.
    app.add_config_value("rooms", "", "env", str)
    app.add_directive("public-names", PublicNames)
    app.add_directive("cited-papers", CitedPapers)
    app.add_lexer("cep", TextLexer)
    app.connect("builder-inited", _write_rooms)
    app.connect("autodoc-process-docstring", _as_it_is)
