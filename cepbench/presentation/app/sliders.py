"""Sliders that never change their number unless they are moved.

A floating-point slider of ipywidgets has a position only at each step: if its value lies between
two steps, the browser draws the nearer one and reports it as if the user had moved the slider. Here
the number is stored separately from the slider that is drawn, whose positions are integers.
"""

from __future__ import annotations

import math
from typing import Any

import ipywidgets as widgets
import traitlets

#: Widths of the field with its name, and of the slider.
_FIELD, _SLIDER = "13rem", "9.5rem"


class NumberSlider(widgets.HBox):
    """A number, at first ``measured``, with its name, a slider and a text field.

    ``low``, ``high`` and ``step`` are those of the slider; with ``powers`` it is logarithmic, and they are
    those of the exponent.

    Attributes
    ----------
    value : float
        The exact number set by code or in the field, clipped to the ends, which excludes 0 on a
        logarithmic slider; initially ``measured``.
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
        """Restore the initial number."""
        self.value = self._began

    @property
    def is_moved(self) -> bool:
        """Whether the number differs from the initial one."""
        return bool(self.value != self._began)

    def _show(self) -> None:
        self.slider.value = self._place()
        self.field.value = self._number()

    def _moved(self) -> None:
        if self.slider.value != self._place():
            at = self._low + self._step * self.slider.value
            # Rounded: a power of ten is rarely exact, as in 2.0000000000000004 minutes.
            self.value = float(f"{10.0**at if self._powers else at:.4g}")

    def _typed(self) -> None:
        if self.field.value != self._number():
            self.value = self.field.value
            self._show()  # also if the number was clipped

    def _place(self) -> int:
        """The position of the slider that is nearest to the number."""
        at = math.log10(self.value) if self._powers else self.value
        return round((at - self._low) / self._step)

    def _number(self) -> float:
        """The number shown in the field, with four digits."""
        return float(f"{self.value if self.is_moved else self._measured:.4g}")
