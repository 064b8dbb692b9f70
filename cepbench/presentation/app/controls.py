"""Sliders for the window and the statistics, which never change their number unless they are moved.

A floating-point slider of ipywidgets has a position only at each step: if its value lies between
two steps, the browser draws the nearer one and reports it as if the user had moved the slider. Here
the number is stored separately from the slider that is drawn, whose positions are integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import traitlets

from cepbench.patterns.model import NANOSECONDS, Pattern
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.statistics.model import Pair, Statistics

#: Step of the exponent: 50 steps for a factor of ten.
_STEP = 0.02
_LEAST_SELECTIVITY = 1e-4

#: Widths of the field with its name, and of the slider.
_FIELD, _SLIDER = "13rem", "9.5rem"


class Controls:
    """Sliders for the window, every rate, every selectivity, and α, and their ``box``.

    Statistics are as measured: rates per second (or tick). ``on_change`` observes the widgets.
    ``sliders`` has :class:`NumberSlider` by ``"window"``, ``"alpha"``, a variable's name for its rate (per
    minute if time is a datetime), and a pair of names for a selectivity.
    """

    def __init__(
        self, pattern: Pattern, statistics: Statistics, on_change: Callable[[object], None]
    ) -> None:
        self._pattern = pattern
        self._per = 60.0 if pattern.window.is_datetime else 1.0
        self.sliders: dict[str | Pair, NumberSlider] = {}
        window = float(pattern.window.amount) or 1.0
        self._add("window", f"window, {pattern.window.unit}", window, reach=1.0)
        types = {variable.name: variable.type_text for variable in pattern.variables}
        unit = "min" if pattern.window.is_datetime else "tick"
        for name, rate in (statistics.rates or {}).items():
            shown = f"{name}: {types.get(name, '')} / {unit}"
            self._add(name, shown, rate * self._per, reach=2.0)
        for pair, value in statistics.selectivities.items():
            first, second = pair
            shown = f"filter on {first}" if first == second else f"selectivity {first}, {second}"
            self.sliders[pair] = NumberSlider(
                shown, value, math.log10(_LEAST_SELECTIVITY), 0.0, _STEP, powers=True
            )
        self.sliders["alpha"] = NumberSlider("α, latency", 0.0, 0.0, 2.0, 0.05)
        #: Of each branch the variables whose event may be the last, on which latency depends.
        self._latest = [TemporalOrder(branch).latest() for branch in pattern.branches()]
        names = dict.fromkeys(name for its in self._latest if len(its) > 1 for name in its)
        self._last = widgets.Dropdown(
            options=list(names),
            description="arrives last",
            layout={"width": "20.5rem", "margin": "0 0.6rem 0 0"},
            style={"description_width": "7.5rem"},
        )
        reset = widgets.Button(description="as measured", icon="undo", layout={"width": "9rem"})
        reset.on_click(lambda _: self.reset())
        choosers = [self._last] if names else []
        for widget in (*self.sliders.values(), *choosers):
            widget.observe(on_change, "value")
        self.box = widgets.Box(
            [*self.sliders.values(), *choosers, reset],
            layout={"flex_flow": "row wrap", "margin": "0.3rem 0"},
        )

    def changes(self) -> dict[str, Any]:
        """The changes made by the sliders, as arguments of ``cep.what_if``."""
        moved = {key: slider.value for key, slider in self.sliders.items() if slider.is_moved}
        alpha = moved.pop("alpha", 0.0)
        window = moved.pop("window", None)
        last = self._last.value
        if window is not None:
            # Of the unit's decimal places as many as time has.
            window = round(window, len(str(NANOSECONDS.get(self._pattern.window.unit, 1))) - 1)
        return {
            "window": window,
            "rates": {k: value / self._per for k, value in moved.items() if isinstance(k, str)},
            "selectivities": {k: value for k, value in moved.items() if isinstance(k, tuple)},
            "alpha": alpha,
            "last": [last if last in its else its[0] for its in self._latest] if alpha else None,
        }

    def described(self) -> list[str]:
        """Each moved slider with its number and the one before, in words."""
        return [
            f"{slider.field.description} {slider.field.value:g} instead of {slider.began:.4g}"
            for slider in self.sliders.values()
            if slider.is_moved
        ]

    def reset(self) -> None:
        """Reset all sliders to the measured values."""
        for slider in self.sliders.values():
            slider.reset()

    def _add(self, key: str, shown: str, value: float, *, reach: float) -> None:
        """Add a logarithmic slider with ``reach`` powers of ten on either side of the value."""
        middle = math.log10(value) if value > 0 else -3.0
        self.sliders[key] = NumberSlider(
            shown, value, middle - reach, middle + reach, _STEP, powers=True
        )


class NumberSlider(widgets.HBox):
    """A number, at first ``measured``, with its name, a slider and a text field.

    ``low``, ``high`` and ``step`` are those of the slider; with ``powers`` it is logarithmic, and they are
    those of the exponent. ``value`` is the exact number set by code or in the field, clipped to the ends,
    which excludes 0 on a logarithmic slider.
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
        self.began = self.value
        self._show()
        self.observe(lambda _: self._show(), "value")
        self.slider.observe(lambda _: self._moved(), "value")
        self.field.observe(lambda _: self._typed(), "value")

    @traitlets.validate("value")
    def _between_the_ends(self, proposal: dict[str, Any]) -> float:
        return min(max(float(proposal["value"]), self._ends[0]), self._ends[1])

    def reset(self) -> None:
        """Restore the initial number."""
        self.value = self.began

    @property
    def is_moved(self) -> bool:
        """Whether the number differs from the initial one."""
        return bool(self.value != self.began)

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
