"""Outputs of the app: errors as HTML, and charts drawn by JupyterLab."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from cepbench.errors import CepbenchError
from cepbench.markup import Html

if TYPE_CHECKING:
    import altair as alt


class App:
    """Base class of apps: a widget, and for front ends without widgets a static picture of it."""

    widget: widgets.Widget

    def _snapshot(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = self.widget._repr_mimebundle_(**kwargs)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        return {**data, "text/html": self._snapshot(), "text/plain": repr(self)}


def guarded(action: Callable[[], object], show: Callable[[Exception], None]) -> None:
    """Run a widget's callback and show its error, which widgets would discard."""
    try:
        action()
    except Exception as error:
        show(error)


def error_html(error: Exception) -> str:
    """An error as a block of text; a bug with its traceback, folded."""
    foreseen = isinstance(error, CepbenchError)
    return str(
        _ERROR(
            message=str(error) if foreseen else f"{type(error).__name__}: {error}",
            traceback=None if foreseen else "".join(traceback.format_exception(error)),
        )
    )


_ERROR = Html(
    """<pre style="border-left:4px solid #d55e00;padding:4px 8px;margin:4px 0;white-space:pre-wrap;\
word-break:normal;overflow-wrap:break-word">{{ message }}</pre>
{%- if traceback %}
<details><summary>This is a bug in cepbench; its traceback</summary>\
<pre>{{ traceback }}</pre></details>
{%- endif %}"""
)


def show_chart(place: widgets.Output, chart: alt.TopLevelMixin) -> None:
    """Replace an output by a chart, which JupyterLab draws without network access."""
    from cepbench.presentation.figures.offline import VEGALITE_MIME

    # Its parts are validated already; validating again would double the time.
    spec = chart.to_dict(validate=False)
    data: dict[str, Any] = {VEGALITE_MIME: spec, "text/plain": "an altair chart"}
    show(place, data)


def show(place: widgets.Output, data: dict[str, Any]) -> None:
    """Replace an output by another one, given by its mime types."""
    # Assigning, unlike displaying, also works outside a running cell.
    place.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
