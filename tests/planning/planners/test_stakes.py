"""What a choice of plan decides: numbers by hand, verdicts, and the stored classes of the map."""

from __future__ import annotations

import math
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

import cepbench
from cepbench.planning.costs.creation import Created
from cepbench.planning.planners.stakes import LARGE, Stakes, class_of, gain_classes, plan_stakes
from cepbench.planning.statistics.model import Statistics

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 10 minutes"
STATISTICS = Statistics(
    cardinalities={"a": 40.0, "b": 20.0, "c": 0.5}, selectivities={("a", "b"): 0.5}
)


def stakes_of(written: float, best: float) -> Stakes:
    return Stakes(Created(best, 0.0), Created(written, 0.0), "DP-LD", class_of(written))


def test_written_and_best_order_by_hand() -> None:
    found = plan_stakes(TEXT, STATISTICS)
    # Two of them per pair, half of which are in order, in 60.5 events: a, b first, or b, c.
    assert found.written.partial_matches == pytest.approx(2 * 40 * 20 / 2 * 0.5 / 60.5)
    assert found.best.partial_matches == pytest.approx(2 * 20 * 0.5 / 2 / 60.5)
    assert found.ratio == pytest.approx(40.0)
    assert found.is_worthwhile and found.generator == "DP-LD"
    assert found.describe().startswith(
        "Choosing a plan matters here: 6.6 expected partial matches per event in the written "
        "order, 0.17 in that of DP-LD. Where there are 1 to 10 per event,"
    )


def test_verdicts() -> None:
    assert "hardly matters" in stakes_of(0.9, 0.1).describe()
    assert "about as good" in stakes_of(500.0, 450.0).describe()
    assert "matters here" in stakes_of(500.0, 5.0).describe()
    none = stakes_of(0.0, 0.0)
    assert none.ratio == 1.0 and not none.is_worthwhile
    assert stakes_of(math.inf, math.inf).ratio == 1.0
    assert stakes_of(3.0, 0.0).ratio == math.inf


def test_many_variables_are_planned_by_a_heuristic() -> None:
    names = [f"v{k}" for k in range(14)]
    items = ", ".join(f"T{k} {name}" for k, name in enumerate(names))
    found = plan_stakes(
        f"PATTERN SEQ({items}) WITHIN 10 minutes",
        Statistics(cardinalities=dict.fromkeys(names, 2.0)),
    )
    assert found.generator == LARGE


def test_it_is_shown_as_a_paragraph_and_as_numbers() -> None:
    found = plan_stakes(TEXT, STATISTICS)
    html = found._repr_html_()
    assert html.startswith("<p>") and all(each in html for each in found.sentences())
    numbers = found.to_dict()
    assert numbers["written"] == found.written.partial_matches
    assert numbers["is_worthwhile"] is True and numbers["class"] == "1 to 10"


def test_the_stored_classes_cover_every_number_and_state_their_origin() -> None:
    classes = gain_classes()
    assert classes[0].least == 0.0 and math.isinf(classes[-1].below)
    assert all(one.below == other.least for one, other in pairwise(classes))
    assert all(one.gain < other.gain for one, other in pairwise(classes))
    assert all(each.low <= each.gain <= each.high and each.patterns > 5 for each in classes)
    assert class_of(math.inf) is classes[-1] and class_of(0.0) is classes[0]
    text = (Path(cepbench.__file__).parent / "planning" / "planners" / "stakes.toml").read_text(
        "utf-8"
    )
    assert "kolchinsky2018/map" in text and "gain_map FOLDER" in text
    assert int(tomllib.loads(text)["patterns"]) == sum(each.patterns for each in classes)
