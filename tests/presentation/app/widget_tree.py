"""What a user of an app finds: widgets by their place and their names, texts and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ipywidgets as widgets


def inside(widget: Any) -> Iterator[Any]:
    """A widget and everything in it, from top to bottom."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from inside(child)


def tab(app: Any, title: str) -> Any:
    """The content of a tab."""
    return app.tabs.children[app.tabs.titles.index(title)]


def named(widget: Any, description: str) -> Any:
    """The one widget in it that has this name."""
    (found,) = (its for its in inside(widget) if getattr(its, "description", "") == description)
    return found


def texts(widget: Any) -> str:
    """All text that it shows, as HTML."""
    return "".join(its.value for its in inside(widget) if isinstance(its, widgets.HTML))


def drawn(widget: Any) -> list[dict[str, Any]]:
    """What its outputs show, from top to bottom: MIME type → content."""
    outputs = [its for its in inside(widget) if isinstance(its, widgets.Output)]
    return [shown["data"] for its in outputs for shown in its.outputs]
