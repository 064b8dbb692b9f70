"""What each chart is in both libraries, held on small data.

After a change that was wanted, look at the pictures, and write what is held anew by
``python -m tests.presentation.figures.test_specifications``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cepbench.presentation.figures import interactive, static, styles
from tests.presentation.figures.test_both_libraries import CASES, check_numbers

HELD = Path(__file__).with_name("specifications.json")


def rounded(value: Any) -> Any:
    """Numbers to six digits, of whatever type."""
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    if hasattr(value, "tolist"):
        return rounded(value.tolist())
    return f"{value:.6g}" if isinstance(value, float) else value


def of_axes(axes: Axes) -> dict[str, Any]:
    """The artists of a panel, and its axes."""
    legend = axes.get_legend()
    return {
        "titles": [axes.get_title("left"), axes.get_title("right")],
        "x": [axes.get_xlabel(), axes.get_xscale(), axes.get_xlim(),
              [label.get_text() for label in axes.get_xticklabels()]],
        "y": [axes.get_ylabel(), axes.get_yscale(), axes.get_ylim(),
              [label.get_text() for label in axes.get_yticklabels()]],
        "lines": [
            [to_hex(line.get_color()), str(line.get_marker())[:9], str(line.get_linestyle()),
             line.get_markersize(), line.get_xdata(), line.get_ydata()]
            for line in axes.lines
        ],
        "whiskers": [each.get_segments() for each in axes.collections],
        "bars": [[to_hex(bar.get_facecolor()), bar.get_x(), bar.get_height()]
                 for bar in axes.patches],
        "texts": [text.get_text() for text in axes.texts],
        "legend": [text.get_text() for text in legend.get_texts()] if legend else None,
    }  # fmt: skip


def of_figure(figure: Figure) -> Any:
    """All that is drawn for print, as JSON holds it."""
    return rounded(
        {
            "title": figure.get_suptitle(),
            "below": figure.get_supxlabel(),
            "legends": [[t.get_text() for t in its.get_texts()] for its in figure.legends],
            "inches": figure.get_size_inches(),
            "panels": [of_axes(axes) for axes in figure.axes],
        }
    )


def of_chart(found: dict[str, Any]) -> Any:
    """The specification without what all charts have, and names of data by their order."""
    names = {name: f"data {rank}" for rank, name in enumerate(found["datasets"])}
    text = json.dumps({k: v for k, v in found.items() if k not in ("config", "$schema")})
    for name, plain in names.items():
        text = text.replace(name, plain)
    return rounded(json.loads(text))


def drawn(case: str) -> tuple[dict[str, Any], Figure]:
    """A chart in both libraries."""
    name, given, named, _ = CASES[case]
    return (
        getattr(interactive, name)(*given, **named).to_dict(),
        getattr(static, name)(*given, **named),
    )


def specified(chart: dict[str, Any], figure: Figure) -> dict[str, Any]:
    return {"altair": of_chart(chart), "matplotlib": of_figure(figure)}


@pytest.mark.parametrize("case", CASES)
def test_a_chart_is_what_it_was_with_the_same_numbers_in_both_libraries_and_no_series_twice(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(styles, "_own", {})  # looks of user-defined generators drawn before
    chart, figure = drawn(case)
    check_numbers(case, chart, figure)
    assert specified(chart, figure) == json.loads(HELD.read_text(encoding="utf-8"))[case]


if __name__ == "__main__":
    found = {case: specified(*drawn(case)) for case in CASES}
    text = json.dumps(found, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    HELD.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
