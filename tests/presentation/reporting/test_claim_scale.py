"""The line of a claim: marks and whiskers stand where their numbers are, beside the expected range."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.presentation.reporting.claim_scale import scale_of

ENDS = st.one_of(st.just(math.inf), st.floats(-1e6, 1e6, allow_subnormal=False))


def parts_of(html: str) -> list[tuple[str, float, float]]:
    """Class, left and right end of each part, in percent."""
    found = re.findall(r'class="(\w+)" style="left:([\d.]+)%;width:([\d.]+)%', html)
    return [(kind, float(left), float(left) + float(width)) for kind, left, width in found]


@given(
    st.tuples(ENDS, ENDS).map(lambda ends: (min(-ends[0], ends[1]), max(-ends[0], ends[1]))),
    st.lists(st.lists(ENDS, min_size=3, max_size=3).map(sorted), min_size=1, max_size=4),
)
def test_order_on_the_line_is_order_of_the_numbers(
    expected: tuple[float, float], intervals: list[list[float]]
) -> None:
    measured = [(its[1], its[0], its[2]) for its in intervals if math.isfinite(its[1])]
    html = scale_of(expected, measured)
    if not measured:
        assert html == ""
        return
    (_, left, right), *rest = parts_of(html)
    numbers = [*zip(expected, (left, right), strict=True)]
    for value, low, high in measured:
        kind, *ends = rest.pop(0)
        if kind == "spread":
            numbers += [*zip((low, high), ends, strict=True)]
            kind, *ends = rest.pop(0)
        else:
            assert math.isinf(high)
        assert kind == "mark"
        numbers.append((value, ends[0]))
    places = [place for _, place in sorted(numbers)]
    assert all(a <= b + 0.11 for a, b in pairwise(places))  # one digit
    assert all(0 <= place <= 100.11 for place in places)
    assert not rest


def test_factors_are_on_a_logarithmic_scale_and_what_has_no_end_reaches_the_edge() -> None:
    html = scale_of((1.0, math.inf), [(2.0, 1.0, 4.0)])
    band, spread, mark = parts_of(html)
    assert band[2] == 100 and band[1] == spread[1] > 0
    assert mark[1] == pytest.approx((spread[1] + spread[2]) / 2, abs=0.1)
    _, spread, mark = parts_of(scale_of((-1.0, math.inf), [(2.0, 1.0, 4.0)]))
    assert mark[1] < (spread[1] + spread[2]) / 2 - 1


def test_several_numbers_stand_one_below_the_other_on_one_scale() -> None:
    own, other = (1.0, 0.5, 2.0), (8.0, 4.0, 16.0)
    both = scale_of((1.0, 2.0), [own, other])
    assert re.findall(r"top:(\d+)%", both) == ["25", "25", "75", "75"]
    alone = parts_of(scale_of((1.0, 2.0), [own], [own, other]))
    assert alone == parts_of(both)[:3]
