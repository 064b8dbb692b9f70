"""HTML and SVG for notebooks and reports; all other text is escaped.

Templates and elements return :class:`markupsafe.Markup`, which is inserted as it is; a variable
named ``<script>`` is shown as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from markupsafe import Markup, escape


@dataclass(frozen=True, slots=True)
class Html:
    """A Jinja template with autoescape; a call with a value for each of its names returns :class:`Markup`."""

    source: str

    def __call__(self, **values: object) -> Markup:
        return Markup(_compiled(self.source).render(values))


@cache
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


@cache
def _environment() -> Any:
    from jinja2 import Environment, StrictUndefined  # loaded on first use

    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def element(name: str, *inside: str, **attributes: object) -> Markup:
    """An SVG element with text inside, which is escaped, and markup, which is not.

    Names of attributes have ``_`` for ``-``; floats are written with one decimal, None is omitted.
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    body = "".join(map(escape, inside))
    return Markup(f"<{name}{named}>{body}</{name}>" if body else f"<{name}{named}/>")


def shortened(text: str, longest: int) -> str:
    """``text``, cut to ``longest`` characters, the last an ellipsis, if it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _number(value: object) -> object:
    return f"{value:.1f}" if isinstance(value, float) else value
