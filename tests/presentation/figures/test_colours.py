"""The paper's generators can be told apart by colour-blind readers too, computed and not judged.

Colours are taken through the matrices of Machado, Oliveira and Fernandes (IEEE TVCG 15, 2009) for
full severity, in linear RGB, and compared by their distance in CIELAB (CIE 1976).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from runpy import run_path

import numpy as np
import pytest
from matplotlib.markers import MarkerStyle

from cepbench.planning.planners.registry import PLAN_GENERATORS, default_generators
from cepbench.presentation.figures import styles
from cepbench.presentation.figures.styles import Style, style_of

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
    looks = {
        name: style_of(name, PLAN_GENERATORS[name].kind)
        for name in default_generators(user_defined=False)
    }
    assert len(looks) == 9
    for one, other in combinations(looks, 2):
        far = distance(looks[one].colour, looks[other].colour, SIGHT[sight])
        assert far >= LEAST, (one, other, far)


OWN = ("PAIR-FIRST", "LOOKAHEAD", "my idea", "BACKWARDS", "Ärger", "X")


@pytest.fixture(scope="module", name="first")
def first_drawn() -> Callable[[str, str], Style]:
    """``style_of`` as in a process that has drawn nothing yet."""
    fresh: Callable[[str, str], Style] = run_path(styles.__file__)["style_of"]
    return fresh


@pytest.fixture(scope="module", name="own")
def own_looks(first: Callable[[str, str], Style]) -> dict[str, Style]:
    """Six user-defined generators, drawn before any other."""
    return {name: first(name, "tree" if name == "X" else "order") for name in OWN}


@pytest.mark.parametrize("sight", SIGHT)
def test_user_defined_generators_differ_in_colour_from_all(
    own: dict[str, Style], sight: str
) -> None:
    built_in = {n: style_of(n, g.kind) for n, g in PLAN_GENERATORS.items() if g.is_builtin}
    assert len(built_in) >= 18
    for (one, look), (other, its) in product(own.items(), [*own.items(), *built_in.items()]):
        if one != other:
            far = distance(look.colour, its.colour, SIGHT[sight])
            assert far >= LEAST, (one, other, far)


def test_user_defined_generators_have_marks_of_their_own(
    own: dict[str, Style], first: Callable[[str, str], Style]
) -> None:
    theirs = {style_of(n, g.kind).mark.vega for n, g in PLAN_GENERATORS.items() if g.is_builtin}
    marks = {look.mark.vega for look in own.values()}
    assert len(marks) == len(own) and not marks & theirs
    # The first of all keeps the look that its name gives; many more differ in mark or colour.
    assert first(OWN[0].lower(), "order") == own[OWN[0]]
    more = [first(f"MORE-{number}", "order") for number in range(20)]
    assert len({(look.colour, look.mark.vega) for look in [*own.values(), *more]}) == 26


def test_marks_are_the_same_shape_in_both_libraries(own: dict[str, Style]) -> None:
    for look in own.values():
        corners = np.array(look.mark.matplotlib)
        path = [pair.split(",") for pair in look.mark.vega.strip("MZ").split("L")]
        np.testing.assert_allclose(np.array(path, float) * [1, -1], corners)
        drawn = MarkerStyle(look.mark.matplotlib).get_path().vertices
        np.testing.assert_allclose(drawn[: len(corners)], corners)
