"""Sliders that show a number and leave it alone until somebody moves them.

A slider of ipywidgets for floating-point numbers stands only on its steps: where its value lies
between two of them the browser draws it on the nearer one, and reports that place as if somebody
had moved it there. Here the number is kept beside the widget that is drawn, whose places are whole
numbers, of which a browser reports none that it was not moved to.
"""

from __future__ import annotations

import math
from typing import Any

import ipywidgets as widgets
import traitlets

#: Widths of the field with its name, and of the slider.
_FIELD, _SLIDER = "13rem", "9.5rem"


class NumberSlider(widgets.HBox):
    """A number with a slider that is moved and a field that is typed into.

    Parameters
    ----------
    name : str
        Shown before it.
    measured : float
        What the field shows at first.
    low, high, step : float
        Ends and step of the slider; of the exponent, with ``powers``.
    powers : bool
        Whether it moves over powers of ten.

    Attributes
    ----------
    value : float
        Exactly what code or the field set; between the ends. At first ``measured``, or the nearest
        end: a slider of powers of ten cannot stand at 0.
    """

    value = traitlets.Float()

    def __init__(
        self,
        name: str,
        measured: float,
        low: float,
        high: float,
        step: float,
        *,
        powers: bool = False,
    ) -> None:
        self._low, self._step, self._powers = low, step, powers
        self._ends = (10.0**low, 10.0**high) if powers else (low, high)
        self._measured = measured
        self.field = widgets.FloatText(
            description=name, layout={"width": _FIELD}, style={"description_width": "7.5rem"}
        )
        self.slider = widgets.IntSlider(
            min=0, max=round((high - low) / step), readout=False, layout={"width": _SLIDER}
        )
        super().__init__([self.field, self.slider], layout={"margin": "0 0.6rem 0 0"})
        self.value = measured
        self._began = self.value
        self._show()
        self.observe(lambda _: self._show(), "value")
        self.slider.observe(lambda _: self._moved(), "value")
        self.field.observe(lambda _: self._typed(), "value")

    @traitlets.validate("value")
    def _between_the_ends(self, proposal: dict[str, Any]) -> float:
        return min(max(float(proposal["value"]), self._ends[0]), self._ends[1])

    def reset(self) -> None:
        """Back to where it began."""
        self.value = self._began

    @property
    def is_moved(self) -> bool:
        """Whether the number is another one than at first."""
        return bool(self.value != self._began)

    def _show(self) -> None:
        self.slider.value = self._place()
        self.field.value = self._number()

    def _moved(self) -> None:
        if self.slider.value != self._place():
            at = self._low + self._step * self.slider.value
            # Powers of ten are hardly ever whole: nobody means 2.0000000000000004 minutes.
            self.value = float(f"{10.0**at if self._powers else at:.4g}")

    def _typed(self) -> None:
        if self.field.value != self._number():
            self.value = self.field.value
            self._show()  # also where the number stayed, at an end

    def _place(self) -> int:
        """The place of the slider that is nearest to the number."""
        at = math.log10(self.value) if self._powers else self.value
        return round((at - self._low) / self._step)

    def _number(self) -> float:
        """What the field shows, four digits of it."""
        return float(f"{self.value if self.is_moved else self._measured:.4g}")
