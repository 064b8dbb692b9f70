"""HTML and SVG for notebooks and reports, in which every text that is not markup is escaped.

Templates and elements return :class:`markupsafe.Markup`. Whatever else is put into one is text:
a variable named ``<script>`` is shown as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from markupsafe import Markup, escape


@dataclass(frozen=True, slots=True)
class Html:
    """A Jinja template with autoescape; called with its values, it is :class:`Markup`.

    Parameters
    ----------
    source : str
        A name in it that gets no value is an error.
    """

    source: str

    def __call__(self, **values: object) -> Markup:
        return Markup(_compiled(self.source).render(values))


@cache
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


@cache
def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined  # loaded when something is shown first

    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def element(name: str, *inside: str, **attributes: object) -> Markup:
    """An element of SVG.

    Parameters
    ----------
    name : str
    *inside : str
        Texts, which are escaped, and markup, which is not.
    **attributes
        Values by name, ``_`` for ``-``; floats have one digit behind the point. None leaves an
        attribute out.
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    body = "".join(map(escape, inside))
    return Markup(f"<{name}{named}>{body}</{name}>" if body else f"<{name}{named}/>")


def picture(title: str, width: float, height: float, *parts: str, style: str = "") -> Markup:
    """An ``<svg>`` without ids, styles or scripts, in the colour of the text around it.

    Parameters
    ----------
    title : str
        Its name, for those who do not see it.
    width, height : float
        In pixels; a narrower page makes it smaller.
    *parts : str
        Its elements.
    style : str
        More declarations for it.
    """
    return element(
        "svg", element("title", title), *parts, xmlns="http://www.w3.org/2000/svg", role="img",
        viewBox=f"0 0 {width:.0f} {height:.0f}", width=f"{width:.0f}",
        style=f"max-width:100%;height:auto{style}", fill="currentColor",
        font_family="sans-serif", font_size=12, text_anchor="middle",
    )  # fmt: skip


def shortened(text: str, longest: int) -> str:
    """A text of at most so many letters, the last one an ellipsis where some are left out."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _number(value: object) -> object:
    return f"{value:.1f}" if isinstance(value, float) else value
