"""Sliders for the window and the statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from cepbench.patterns.model import NANOSECONDS, Pattern
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.statistics.model import Pair, Statistics
from cepbench.presentation.app.sliders import NumberSlider

#: Step of the exponent: 50 steps for a factor of ten.
_STEP = 0.02
_LEAST_SELECTIVITY = 1e-4


class Controls:
    """Sliders for the window, every rate, every selectivity, and α, and their ``box``.

    Statistics are as measured: rates per second (or tick). ``on_change`` observes the widgets.

    Attributes
    ----------
    sliders : dict
        ``"window"``, ``"alpha"``, a variable's name for its rate, a pair of names for a
        selectivity → :class:`~cepbench.presentation.app.sliders.NumberSlider`. Rates are per minute if time is
        a datetime.
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
