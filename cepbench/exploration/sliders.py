"""Sliders that show a number and leave it alone until somebody moves them.

A slider of ipywidgets can stand only on its steps. Where its value lies between two of them the
browser draws it on the nearer one and reports that place back as if somebody had moved it there.
These sliders know such a report, and keep the number; a field beside them shows and takes it.
"""

from __future__ import annotations

import math
from typing import Any

import ipywidgets as widgets

#: Widths of a slider with its name, and of the field with its number.
_SLIDER, _FIELD = "15rem", "5.5rem"
_STYLE = {"description_width": "7.5rem"}


class _Exact(widgets.Widget):
    """A slider whose value is only changed by code, by its field, or by a move of a step."""

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """What the browser reports; ipywidgets calls this for nothing else."""
        if "value" in sync_data:
            reported = float(sync_data["value"])
            moved = abs(self._place(reported) - self._place(self.value))
            sync_data = {key: value for key, value in sync_data.items() if key != "value"}
            # A little more than half a step, so that rounding in the browser moves nothing.
            if moved > 0.501 * self.step:
                # Powers of ten are hardly ever whole: nobody means 2.0000000000000004 minutes.
                sync_data["value"] = float(f"{reported:.4g}")
        super().set_state(sync_data)

    def _place(self, value: float) -> float:
        """Where a value stands, in the unit of ``step``."""
        return value


class LinearSlider(_Exact, widgets.FloatSlider):
    """A slider in even steps."""


class LogSlider(_Exact, widgets.FloatLogSlider):
    """A slider in steps of the exponent."""

    def _place(self, value: float) -> float:
        return math.log(value, self.base) if value > 0 else -math.inf


def linear_slider(name: str, value: float, low: float, high: float, step: float) -> LinearSlider:
    """A slider from ``low`` to ``high``."""
    return LinearSlider(
        value=value, min=low, max=high, step=step, description=name, readout=False,
        layout={"width": _SLIDER}, style=_STYLE, continuous_update=True,
    )  # fmt: skip


def log_slider(name: str, value: float, low: float, high: float) -> LogSlider:
    """A slider from ``10 ** low`` to ``10 ** high``, 50 steps for a factor of ten."""
    return LogSlider(
        value=value, base=10, min=low, max=high, step=0.02, description=name, readout=False,
        layout={"width": _SLIDER}, style=_STYLE, continuous_update=True,
    )  # fmt: skip


def with_number(slider: _Exact, measured: float) -> widgets.HBox:
    """The slider and a field that shows its value to four digits, and takes any.

    The browser's own readout would show the step that the slider is drawn at.

    Parameters
    ----------
    slider : LinearSlider or LogSlider
    measured : float
        What the field shows while the slider is where it began: a slider of powers of ten cannot
        stand at 0.
    """
    began = slider.value

    def number() -> float:
        return float(f"{measured if slider.value == began else slider.value:.4g}")

    field = widgets.FloatText(
        value=number(), tooltip=f"{slider.description}: the number", layout={"width": _FIELD}
    )

    def show(_: object) -> None:
        field.value = number()

    def take(change: dict[str, Any]) -> None:
        if change["new"] != number():
            slider.value = change["new"]
            show(change)  # the slider has ends, and so has the field

    slider.observe(show, "value")
    field.observe(take, "value")
    return widgets.HBox([slider, field], layout={"margin": "0 0.6rem 0 0"})
