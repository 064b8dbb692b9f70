"""Interactive charts that need no network, in one look, with a picture beside the specification.

JupyterLab and our reports draw the specification; nbconvert, GitHub and paper show the picture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from cepbench.presentation.figures.vega import alt, spec_to_mimebundle

#: Drawn by JupyterLab and our reports; viewers of version 5 draw specifications of 6, too.
VEGALITE_MIME = "application/vnd.vegalite.v5+json"

#: Pixels: no text of a chart is smaller.
TEXT = 14

_LOOK: dict[str, dict[str, Any]] = {
    "view": {"stroke": None},
    "axis": {
        "gridColor": "#E4E4E4",
        "labelFontSize": TEXT,
        "titleFontSize": TEXT,
        "labelSeparation": 4,
    },
    "legend": {"labelFontSize": TEXT, "titleFontSize": TEXT, "labelLimit": 260},
    "header": {"labelFontSize": TEXT, "titleFontSize": TEXT},
    "title": {"anchor": "start", "fontSize": 16, "subtitleFontSize": TEXT},
    "text": {"fontSize": TEXT},
}

#: Renderers of altair that write the specification into a script of HTML.
_OF_HTML = ("html", "colab", "kaggle", "zeppelin", "olli", "browser")

#: Whether a picture stands beside each specification.
_pictures = True

_Chart = TypeVar("_Chart", bound=alt.TopLevelMixin)


class _InScript(json.JSONEncoder):
    """JSON that may stand in a script: ``</script>`` in a name or value would end it."""

    def encode(self, o: Any) -> str:
        """JSON in which ``<``, which only texts have, is written by its number."""
        return super().encode(o).replace("<", r"\u003c")


class _Offline:
    """Saves and shows a chart without the content delivery network that altair uses.

    In HTML, names and values of the data are data, whatever characters they have.
    """

    def save(self, fp: str | Path | IO[Any], format: Any = None, **options: Any) -> None:
        """As altair saves; HTML has all that draws it inside, unless ``inline=False`` is given."""
        if "html" in (format, str(fp).rpartition(".")[2]):
            options = {"inline": True, **_escaped(options)}
        super().save(fp, format, **options)  # type: ignore[misc]

    def to_html(self, *places: Any, **options: Any) -> str:
        """As altair writes HTML."""
        return str(super().to_html(*places, **_escaped(options)))  # type: ignore[misc]

    def _repr_mimebundle_(self, *include: Any, **exclude: Any) -> Any:
        # Its parts were validated when they were made.
        spec = self.to_dict(validate=False)  # type: ignore[attr-defined]
        match alt.renderers.active:
            case "default" | "cepbench":
                return _shown(spec)
            case name if name in _OF_HTML:
                show: Any = alt.renderers.get()
                return show(spec, **_escaped(alt.renderers.options))
        # The user asked for another.
        return super()._repr_mimebundle_(*include, **exclude)  # type: ignore[misc]


def _escaped(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of altair for HTML, with :class:`_InScript` to write the specification."""
    return {**options, "json_kwds": {"cls": _InScript, **(options.get("json_kwds") or {})}}


_KINDS: dict[type, type] = {
    kind: type(kind.__name__, (_Offline, kind), {"__doc__": kind.__doc__})
    for kind in (alt.Chart, alt.LayerChart, alt.HConcatChart, alt.VConcatChart)
}


def offline(chart: _Chart) -> _Chart:
    """The chart, changed in place: in the look of all charts, and independent of the network.

    Its own configuration takes precedence over the look.
    """
    configured: Any = getattr(chart, "config")  # noqa: B009 - every kind of chart has this field
    own: Mapping[str, Any] = {} if configured is alt.Undefined else configured.to_dict()
    look = {name: {**values, **own.get(name, {})} for name, values in _LOOK.items()}
    # Its method ``properties`` would copy it, with all charts in it.
    chart.config = alt.Config.from_dict({**own, **look})  # type: ignore[attr-defined]
    # The same fields under the same schema: only how it is saved and shown differs. Plain assignment
    # would make a field of it.
    object.__setattr__(chart, "__class__", _KINDS.get(type(chart), type(chart)))
    return chart


def prefixed(unit: str = "1") -> str:
    """The expression of an axis that writes its numbers as ``2k`` or ``2 kB``, and nothing as 0.

    The unit is as in :class:`cepbench.presentation.figures.rows.Quantity`: of what is counted there are no
    thousandths, and what has no unit has no prefix.
    """
    if not unit:
        return "format(datum.value, '~g')"
    if unit == "1":
        return "format(datum.value, datum.value < 1 ? '~g' : '~s')"
    # d3 writes the prefix at the end of the number: between the two comes the space.
    number = "replace(format(datum.value, '~s'), /([^0-9.]?)$/, ' $1')"
    return f"datum.value ? {number} + '{unit}' : '0'"


def use_offline_charts() -> None:
    """Show all altair charts without a request to the network, also those made elsewhere.

    By default altair loads Vega from a content delivery network. This makes it hand out the
    specification, which JupyterLab and :mod:`cepbench.presentation.reporting` draw by themselves, and a picture
    for other viewers. Charts of cepbench are always shown so.
    """
    alt.renderers.register("cepbench", _shown)
    alt.renderers.enable("cepbench")


def without_pictures() -> None:
    """Show specifications alone from now on: drawing the picture of a chart takes half of its time.

    For what only reports and JupyterLab will draw.
    """
    global _pictures
    _pictures = False


def _shown(spec: Mapping[str, Any], **_: Any) -> dict[str, Any]:
    picture: Any = spec_to_mimebundle(dict(spec), "svg", "vega-lite") if _pictures else {}
    return {VEGALITE_MIME: dict(spec), **picture, "text/plain": "an altair chart"}
