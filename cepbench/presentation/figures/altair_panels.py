"""Charts to point at, by altair: tooltips, and series that are picked in a legend."""

from __future__ import annotations

import textwrap
from typing import Any

from cepbench.presentation.figures.chart import INK, Axis, Chart, Marks, Panel, plain
from cepbench.presentation.figures.offline import offline, prefixed
from cepbench.presentation.figures.vega import alt

#: How readers select series, by where their names are.
PICK = {"ends": "click a line or its name to pick it", "": ""}
_IN_LEGEND = "pick series in the legend"

_LETTERS = 110  # of a line above two panels

_BESIDE = 12  # pixels from a panel's last mark to the names of lines

_CROSS = "M-1,-1L1,1M-1,1L1,-1"


def interactive_chart(chart: Chart) -> alt.TopLevelMixin:
    """Draw a chart; it needs no network."""
    with alt.utils.schemapi.debug_mode(False):  # a third of the time; tests validate what is drawn
        return _drawn(chart)


def _drawn(chart: Chart) -> alt.TopLevelMixin:
    rows: dict[int, list[Any]] = {}
    for panel in chart.panels:
        rows.setdefault(panel.row, []).append(_panel(chart, panel))
    first = "; ".join(
        text for text in (chart.explained, PICK.get(chart.legend, _IN_LEGEND)) if text
    )
    lines = [line for each in (first, *chart.notes) for line in textwrap.wrap(each, _LETTERS)]
    named: dict[str, Any] = {"title": alt.TitleParams(chart.title, subtitle=lines, anchor="start")}
    apart: dict[str, Any] = {}
    if any(marks.beside for panel in chart.panels for marks in panel.marks):
        apart = {"resolve": alt.Resolve(scale=alt.ScaleResolveMap(xOffset="independent"))}
    # One call each: methods of joined charts copy all charts in them several times.
    if len(rows) == 1:
        return offline(alt.hconcat(*rows[0], **apart, **named))
    joined = [alt.hconcat(*row, **apart) for row in rows.values()]
    return offline(alt.vconcat(*joined, **apart, **named))


def _panel(chart: Chart, panel: Panel) -> Any:
    x, y = panel.x or chart.x, chart.y
    shared = chart.legend != "ends"
    pick = "pick" if shared else f"pick_{panel.row}_{panel.column}"
    layers: list[Any] = []
    for channel, column, axis in ((alt.X, "x", x), (alt.Y, "y", y)):
        if axis.one:
            one = alt.Chart(alt.InlineData([{"one": 1}])).mark_rule(color=INK)
            layers.append(one.encode(**{column: _place(channel, "one", axis)}))
    first_data = panel.marks[0].data
    for marks in panel.marks:
        drawn = _layers(chart, panel, marks, pick)
        # Data of a layer without any are the panel's: altair would write those of each to name them.
        if marks is not panel.marks[0]:
            for layer in drawn:
                if layer.data is alt.Undefined:
                    layer.data = marks.data
        layers += drawn
    if chart.legend and (not shared or panel is chart.panels[0]):
        field = next(marks.series for marks in panel.marks if marks.series)
        by: Any = {"bind": "legend"} if shared else {}
        picked = alt.selection_point(name=pick, fields=[field], **by)
        layers[0] = layers[0].add_params(picked)
    heading = [*panel.heading, *panel.note.split("\n")] if panel.note else [*panel.heading]
    title = alt.TitleParams(heading[0], subtitle=heading[1:]) if heading[1:] else "".join(heading)
    width, height = chart.size
    layered = alt.layer(*layers, data=first_data, title=title, width=width, height=height)
    # Joining charts copies them, with all fields that an encoding could have: those that it has remain.
    for layer in layered.layer:
        data = first_data if layer.data is alt.Undefined else layer.data
        own = layer.encoding.to_dict(validate=False, context={"data": data})
        layer.encoding = alt.FacetedEncoding(**own)
    return layered


def _place(channel: Any, column: str, axis: Axis, *, labels: bool = True) -> Any:
    """The encoding of a column on an axis, the same in all layers: Vega-Lite would join different titles."""
    title = axis.title or None
    if axis.names and not axis.log:
        kind = "N" if isinstance(axis.names[0], str) else "O"
        lines: dict[str, Any] = {}
        if any(" " in str(name) for name in axis.names):
            lines["labelExpr"] = "split(datum.label, ' ')"
        look = (
            alt.Axis(labelAngle=0, labelOverlap=kind == "O", labelSeparation=4, **lines)
            if channel is alt.X
            else alt.Axis(labels=labels, ticks=False, labelLimit=300)
        )
        # Layers have columns of their own for it, whose orders Vega-Lite would not join.
        scale = alt.Scale(domain=list(axis.names))
        return channel(f"{column}:{kind}", sort=None, title=title, axis=look, scale=scale)
    numeric: dict[str, Any] = {"type": "log" if axis.log and not axis.zero else "linear"}
    if not axis.zero and not axis.log:  # of which Vega would warn on a logarithmic one
        numeric["zero"] = False
    if axis.ends:
        numeric |= {"domain": list(axis.ends), "nice": axis.zero}
    ticks = {"values": list(axis.ticks)} if len(axis.ticks) else {"tickCount": 6}
    written = prefixed(axis.unit)
    texts = [plain(tick) for tick in axis.ticks]
    if not axis.unit and any(text.startswith("10") and not text.isdecimal() for text in texts):
        written = f"{texts}[indexof({[*axis.ticks]}, datum.value)]"
    look = alt.Axis(labelExpr=written, **ticks)
    return channel(f"{column}:Q", title=title, scale=alt.Scale(**numeric), axis=look)


def _layers(chart: Chart, panel: Panel, marks: Marks, pick: str) -> list[Any]:
    """Lines, whiskers, marks and texts, from the lowest to the topmost."""
    axes = {"x": (alt.X, panel.x or chart.x), "y": (alt.Y, chart.y)}
    labels = panel.column == 0

    def at(name: str, column: str) -> Any:
        channel, axis = axes[name]
        return _place(channel, column, axis, labels=labels)

    named_looks = chart.looks(marks.series) if chart.legend and marks.series else marks.looks
    looks = [*named_looks.values()]
    colours, dashes = [look.colour for look in looks], [list(look.dash) or [1, 0] for look in looks]
    legend = alt.Legend(title=None, orient="top", columns=4, symbolOpacity=1)
    field = f"{marks.series}:N"

    def by_series(channel: Any, values: list[Any]) -> Any:
        shown = legend if chart.legend not in ("ends", "") else None
        return channel(field, legend=shown, scale=alt.Scale(domain=[*named_looks], range=values))

    base: Any = alt.Chart().encode(x=at("x", marks.x), y=at("y", marks.y))
    alike = not marks.series or (not chart.legend and len({*colours}) == 1)
    colour = alt.value(colours[0]) if alike else by_series(alt.Color, colours)
    base = base.encode(color=colour)
    if marks.series and chart.legend:
        picked = [{"param": pick, "value": marks.opacity}]
        base = base.encode(opacity=alt.OpacityValue(0.12 * marks.opacity, condition=picked))
    if marks.beside:
        base = base.encode(xOffset=alt.XOffset(field, sort=[*marks.looks]))
    layers: list[Any] = []
    if marks.joined:
        line = base.mark_line(strokeWidth=2, strokeDash=dashes[0])
        if any(dash != dashes[0] for dash in dashes):
            line = line.encode(strokeDash=by_series(alt.StrokeDash, dashes))
        layers.append(line.encode(order=f"{marks.order}:Q") if marks.order else line)
    tips = [
        alt.Tooltip(tip.field, title=tip.title or alt.Undefined, format=tip.format or alt.Undefined)
        for tip in marks.tips
    ]
    told = base.encode(tooltip=tips) if tips else base
    whiskers = []
    for name, other, ends in (("x", "x2", marks.x_ends), ("y", "y2", marks.y_ends)):
        if ends:
            span = {name: at(name, ends[0]), other: f"{ends[1]}:Q"}
            rule = told.mark_rule(strokeWidth=1.2).encode(**span)
            whiskers.append(rule.encode(color=alt.value(INK)) if marks.form == "bar" else rule)
    area = round((marks.size * 4 / 3) ** 2)
    if marks.form == "bar":
        return [*layers, told.mark_bar(), *whiskers]
    layers += whiskers
    if marks.form == "tick":
        layers.append(told.mark_tick(thickness=2, size=marks.size))
    elif marks.form == "cross":
        layers.append(told.mark_point(shape=_CROSS, size=area, strokeWidth=1.5))
    elif marks.size:
        shapes = [look.mark.vega for look in looks]
        is_shaped = marks.series and (chart.legend or len({*shapes}) > 1)
        shape = {"shape": by_series(alt.Shape, shapes)} if is_shaped else {}
        drawn: dict[str, Any] = {"size": area, "opacity": marks.opacity, "shape": shapes[0]}
        full = told.mark_point(filled=True, **drawn).encode(**shape)
        if not marks.filled:
            layers.append(full)
        else:
            # A layer each: of one whose filling varies, Vega-Lite draws a legend beside that of the outlines.
            hollow = told.mark_point(filled=False, fill="white", **drawn).encode(**shape)
            layers += [
                hollow.transform_filter(f"!datum.{marks.filled}"),
                full.transform_filter(f"datum.{marks.filled}"),
            ]
    # Words are dark, since some colours are too light to read.
    dark = base.encode(color=alt.value(INK))
    if marks.text:
        layers.append(dark.mark_text(dx=8, dy=-8, align="left").encode(text=f"{marks.text}:N"))
    if marks.joined and chart.legend == "ends":
        named = dark.encode(x=at("x", "right"), y=at("y", "place"), text=field)
        led = base.mark_rule(strokeWidth=1.5, x2Offset=_BESIDE - 2).encode(x2="right", y2="place")
        names = chart.names_at_ends(panel)
        for layer in (led, named.mark_text(dx=_BESIDE, align="left", baseline="middle")):
            layer.data = names
            layers.append(layer)
    return layers
