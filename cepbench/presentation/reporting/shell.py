"""Templates, scripts, styles and content policy of all pages of the site.

Scripts and styles are files of the site, Vega once instead of 0.9 MB in every page with charts.
They load from a disk as well as from a server, since the policy allows both and nothing else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments.formatters import HtmlFormatter

TEMPLATES = Path(__file__).parent / "templates"

#: Folder of scripts and styles within the site.
ASSETS = "assets"

#: What a page may load: files beside it. Nothing from elsewhere, whatever somebody writes in a
#: notebook, and no script that stands in a page. Vega compiles expressions, hence the "eval";
#: tables bring styles of their own. "self" is the server's site; "file:" is for the disk, where
#: some browsers count every file as a site of its own.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data: blob:; font-src data:"
)

#: A page with fewer headings than this has no contents.
_FEWEST_HEADINGS = 4

#: Level, id and inside of a heading; nbconvert puts a sign that links to it behind its text.
_HEADING = re.compile(r"""<(h[23])\b[^>]*\sid=(["'])(.+?)\2[^>]*>(.*?)</\1>""", re.DOTALL)
_SIGN = re.compile(r"""<a\b[^>]*\sclass=["']anchor-link["'].*?</a>""", re.DOTALL)


def write_assets(folder: Path) -> None:
    """Write the scripts and styles that all pages load into ``folder / ASSETS``."""
    target = folder / ASSETS
    target.mkdir(parents=True, exist_ok=True)
    for name in ("site.css", "site.js"):
        (target / name).write_text((TEMPLATES / name).read_text(encoding="utf-8"), encoding="utf-8")
    (target / "code.css").write_text(code_colours(), encoding="utf-8")
    vega = target / "vega.js"
    made_with = f"/* Vega, from vl-convert {version('vl-convert-python')} */\n"
    if not vega.exists() or not vega.read_text(encoding="utf-8").startswith(made_with):
        vega.write_text(made_with + _vega(), encoding="utf-8")


def render(template: str, **variables: Any) -> str:
    """A template below :data:`TEMPLATES` filled in; every text in it is escaped.

    A whole page has the variable ``here``, its path relative to the site; links to all that is
    elsewhere begin with ``root``, which is found from it.
    """
    root = root_of(variables.get("here", ""))
    return _environment().get_template(template).render(root=root, **variables)


def with_contents(page: str) -> str:
    """A page with a box of links to its headings behind its first one; unchanged if it is short.

    Headings of the second and third level within ``main`` count that have an id.
    """
    title, end, rest = page.partition("</h1>")
    headings = headings_of(page)
    if len(headings) < _FEWEST_HEADINGS or not end:
        return page
    chapters: list[dict[str, Any]] = []
    for level, anchor, text in headings:
        heading = {"anchor": Markup(anchor), "text": text}
        if level == "h2" or not chapters:
            chapters.append({**heading, "parts": []})
        else:
            chapters[-1]["parts"].append(heading)
    return f"{title}{end}{render('contents.html.j2', chapters=chapters)}{rest}"


def headings_of(page: str) -> list[tuple[str, str, str]]:
    """Level (``h2``, ``h3``), id and text of the headings within ``main`` that have an id."""
    return [
        (level, anchor, Markup(_SIGN.sub("", inside)).striptags())
        for level, _, anchor, inside in _HEADING.findall(page[page.find("<main") :])
    ]


def root_of(path: str) -> str:
    """The site as seen from a page in it: ``../`` for one in a folder, empty for the others."""
    return "../" * path.count("/")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(duration=duration, moment=_moment)
    environment.globals.update(content_policy=CONTENT_POLICY, assets=ASSETS)
    return environment


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed, about 0.9 MB, as the global ``vegaEmbed``."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Its hundreds of top-level names stay inside the function.
    return f"(function () {{\n{bundle}\n}})();"


@cache
def code_colours() -> str:
    """Colours of code: light, and dark where the reader's system is."""
    # Of the styles that come with Pygments these have a contrast of 4.5 for every token.
    light, dark = HtmlFormatter(style="xcode"), HtmlFormatter(style="lightbulb")
    by_day, by_night = light.get_style_defs(".highlight"), dark.get_style_defs(".highlight")
    return f"{by_day}\n@media screen and (prefers-color-scheme: dark) {{\n{by_night}\n}}\n"


def duration(seconds: float) -> str:
    """``1 min 5 s``, ``12 s``."""
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
