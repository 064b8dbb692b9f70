"""What each chart is in both libraries, held on small data.

After a change that was wanted, look at the pictures, and write what is held anew by
``python -m tests.presentation.figures.test_specifications``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from cepbench.presentation.figures import interactive, static
from tests.presentation.figures.test_both_libraries import CASES

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


def of_chart(chart: Any) -> Any:
    """The specification without what all charts have, and names of data by their order."""
    found = chart.to_dict()
    names = {name: f"data {rank}" for rank, name in enumerate(found["datasets"])}
    text = json.dumps({k: v for k, v in found.items() if k not in ("config", "$schema")})
    for name, plain in names.items():
        text = text.replace(name, plain)
    return rounded(json.loads(text))


def drawn(case: str) -> dict[str, Any]:
    """A chart in both libraries."""
    name, given, named, _ = CASES[case]
    return {
        "altair": of_chart(getattr(interactive, name)(*given, **named)),
        "matplotlib": of_figure(getattr(static, name)(*given, **named)),
    }


@pytest.fixture(name="every", scope="module")
def in_a_process_of_its_own() -> dict[str, Any]:
    """All charts; looks of user-defined generators go by what a process has drawn before."""
    root = Path(__file__).parents[3]
    run = [sys.executable, "-m", "tests.presentation.figures.test_specifications", "-"]
    found: dict[str, Any] = json.loads(
        subprocess.run(run, cwd=root, check=True, capture_output=True).stdout
    )
    return found


@pytest.mark.xdist_group("specifications")
@pytest.mark.parametrize("case", CASES)
def test_a_chart_is_what_it_was(case: str, every: dict[str, Any]) -> None:
    held = json.loads(HELD.read_text(encoding="utf-8"))
    assert every[case] == held[case]


if __name__ == "__main__":
    found = {case: drawn(case) for case in CASES}
    text = json.dumps(found, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    if sys.argv[1:]:
        print(json.dumps(found))
    else:
        HELD.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
