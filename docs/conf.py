"""Sphinx: the pages of this folder and the reference from docstrings, readable without a network."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers import TextLexer
from sphinx.domains.python import PythonDomain
from sphinx.pycode.parser import Parser
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
exclude_patterns = ["paper"]  # of a journal, which makes its own pages
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3

autosummary_generate = False
# Types are those of the annotations, in the signature: a docstring has an entry only where there is more
# to say.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False  # there are none, and looking for them parses each function again
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Types are words, such as "sequence of Column", not cross-references.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"cepbench {release}"
html_copy_source = False
html_show_sourcelink = False
templates_path = ["templates"]
# The theme's, and a link back to the report, which has these pages in its folder "docs".
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

#: Folders without public functions.
LEFT_OUT = {"kernels", "peers"}


class PublicNames(SphinxDirective):
    """The names of ``import cepbench as cep``, each with the first line of its docstring."""

    def run(self) -> list[nodes.Node]:
        lines = [".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   ~{home}.{name}" for name, home in sorted(cepbench._HOMES.items())]
        return self.parse_text_to_nodes(_as_restructured("\n".join(lines)))


class CitedPapers(SphinxDirective):
    """A citation for each key of :mod:`cepbench.papers`."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(HERE.parent / "cepbench" / "papers.toml"))
        keys = sorted(REFERENCES)
        lines = [f".. [{key}] {REFERENCES[key]}\n" for key in keys]
        # Cited here too, because Sphinx warns of citations without a reference.
        lines += ["All of them: " + ", ".join(f"[{key}]_" for key in keys) + "."]
        return self.parse_text_to_nodes(_as_restructured("\n".join(lines)))


def _as_restructured(text: str) -> str:
    return f"````{{eval-rst}}\n{text}\n````\n"


class QuickPythonDomain(PythonDomain):
    """Answers at once where nothing is called so: a search by ending, as Sphinx makes it, takes a fifth of the time.

    Most annotations, such as ``int`` and ``Sequence``, are of nothing that is documented here.
    """

    _ends: frozenset[str] = frozenset()
    _counted = -1

    def find_obj(self, env: Any, modname: Any, classname: Any, name: str, *of: Any) -> Any:
        if self._counted != len(self.objects):
            self._counted = len(self.objects)
            self._ends = frozenset(its.rpartition(".")[2] for its in self.objects)
        if name.removesuffix("()").rpartition(".")[2] not in self._ends:
            return []
        return super().find_obj(env, modname, classname, name, *of)


def _packages(app: Any) -> dict[str, list[str]]:
    """Pages of the reference, and the modules on each; none on a page that is not wanted."""
    root = HERE.parent / "cepbench"
    pages = {"errors": ["cepbench.errors"]}
    for file in sorted(root.glob("*/**/*.py")):
        inside = file.relative_to(root)
        if file.stem.startswith("__") or LEFT_OUT & set(inside.parts):
            continue
        # A layer of a few packages has a page for each of them.
        name = "-".join(inside.parts[:-1][:2])
        pages.setdefault(name, []).append(".".join(("cepbench", *inside.with_suffix("").parts)))
    wanted = app.config.packages.split(",") if app.config.packages else pages
    return {name: modules if name in wanted else [] for name, modules in pages.items()}


def _write_packages(app: Any) -> None:
    """Write a page for each package, of all its modules, where it changed."""
    folder = Path(app.srcdir) / "reference" / "_generated"
    folder.mkdir(parents=True, exist_ok=True)
    pages = _packages(app)
    for page in folder.glob("*.rst"):
        if page.stem not in pages:  # of a package that is no more
            page.unlink()
    for name, modules in pages.items():
        lines = [name, "=" * len(name), ""]
        for module in modules:
            short = module.rpartition(".")[2].replace("_", r"\_")
            if len(modules) > 1:
                lines += [short, "-" * len(short), ""]
            lines += [f".. automodule:: {module}", "   :members:", "   :ignore-module-all:", ""]
        page, text = folder / f"{name}.rst", "\n".join(lines)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _import_all(app: Any, env: Any, documents: list[str]) -> None:
    """Import what is to be read before Sphinx forks processes that read it: each would do so for itself."""
    pages = _packages(app)
    for name in documents:
        for module in pages.get(name.removeprefix("reference/_generated/"), ()):
            import_module(module)


def _as_it_is(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Show the docstring of the magic, which IPython prints for ``%%cep?``, verbatim."""
    if name == "cepbench.presentation.app.magic.cep":
        lines[:] = ["::", "", *(f"   {line}" for line in lines)]


def setup(app: Any) -> None:
    # Neither is shown: where each definition ends takes a seventh of the time to find, messages for the developers
    # of Sphinx a twentieth to write.
    Parser.parse_definition = lambda self: None  # type: ignore[method-assign]
    logging.getLogger("sphinx").setLevel(logging.INFO)
    app.parallel += app.parallel > 1  # one of them does not write, but waits for the others
    # Some packages, comma-separated, for a test that does not need all docstrings.
    app.add_config_value("packages", "", "env", str)
    app.add_directive("public-names", PublicNames)
    app.add_directive("cited-papers", CitedPapers)
    app.add_lexer("cep", TextLexer)
    app.add_domain(QuickPythonDomain, override=True)
    app.connect("builder-inited", _write_packages)
    app.connect("env-before-read-docs", _import_all)
    app.connect("autodoc-process-docstring", _as_it_is)
