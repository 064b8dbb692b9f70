"""The paper's generators can be told apart by colour-blind readers too, computed and not judged.

Colours are taken through the matrices of Machado, Oliveira and Fernandes (IEEE TVCG 15, 2009) for
full severity, in linear RGB, and compared by their distance in CIELAB (CIE 1976).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cepbench.figures.styles import style_of
from cepbench.planners.registry import PAPER_GENERATORS, PLAN_GENERATORS

#: About five just noticeable differences.
LEAST = 12.0

SIGHT = {
    "all colours": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868],
         [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968],
         [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375],
     [0.2126729, 0.7151522, 0.0721750],
     [0.0193339, 0.1191920, 0.9503041]]
)  # fmt: skip
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, sight: np.ndarray) -> float:
    return float(np.linalg.norm(lab(sight @ linear(one)) - lab(sight @ linear(other))))


def test_distances_are_those_of_cielab() -> None:
    plain = SIGHT["all colours"]
    assert distance("#000000", "#FFFFFF", plain) == pytest.approx(100, abs=0.01)
    assert lab(linear("#FF0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.05)
    # Without red this rose is a grey: the pair that these tests once found.
    assert distance("#CC6677", "#777777", plain) > 35
    assert distance("#CC6677", "#777777", SIGHT["no red"]) < 2


@pytest.mark.parametrize("sight", SIGHT)
def test_the_papers_generators_differ_in_colour(sight: str) -> None:
    styles = {name: style_of(name, PLAN_GENERATORS[name].plans) for name in PAPER_GENERATORS}
    assert len(styles) == 9
    for one, other in combinations(styles, 2):
        far = distance(styles[one].colour, styles[other].colour, SIGHT[sight])
        assert far >= LEAST, (one, other, far)
