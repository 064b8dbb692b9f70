"""Matches worked by hand from the definition of a match: of patterns of every construct and strategy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tests.engines.detection.checks import Labelled
from tests.engines.detection.strategies import events_of

#: The stream that the definition of a match is explained with.
STREAM = events_of("A@1 B@2 A@3 C@3 B@4 C@5 B@5 C@9")

#: Positions in the order of the positive variables; of a Kleene variable a tuple.
ONE_BRANCH = {
    "SEQ(A a, B b) WITHIN 4 units": {(0, 1), (0, 4), (0, 6), (2, 4), (2, 6)},
    "SEQ(A a, B b, C c) WITHIN 4 units": {(0, 1, 3), (0, 1, 5), (0, 4, 5), (2, 4, 5)},
    "AND(B b, C c) WITHIN 4 units": {(1, 3), (1, 5), (4, 3), (4, 5), (6, 3), (6, 5), (6, 7)},
    # Between, after, before; and on both sides under AND.
    "SEQ(A a, NOT(B n), C c) WITHIN 4 units": set(),
    "SEQ(A a, C c, NOT(B n)) WITHIN 4 units": {(0, 5), (2, 5)},
    "SEQ(NOT(B n), A a, C c) WITHIN 4 units": {(0, 3), (0, 5)},
    "AND(C c, NOT(A n)) WITHIN 2 units": {(7,)},
    "AND(A a, NOT(B n)) WITHIN 1 units": set(),
    "AND(A a, NOT(B n)) WITHIN 0 units": {(0,), (2,)},
    # Several are checked one by one, and a bound event prevents nothing.
    "SEQ(A a, NOT(B n), NOT(C m), B b) WITHIN 4 units": {(0, 1), (2, 4)},
    "AND(B b, NOT(B n)) WITHIN 0 units": {(1,), (4,), (6,)},
    "SEQ(A a, AND(B b, NOT(C n)), C c) WITHIN 4 units": {(0, 1, 3), (2, 4, 5)},
    "SEQ(A a, KL(B b), C c) WITHIN 4 units": {
        (0, (1,), 3),
        (0, (1,), 5),
        (0, (4,), 5),
        (0, (1, 4), 5),
        (2, (4,), 5),
    },
    # Of any type, but another event than the others.
    "AND(ANY a, C c) WITHIN 0 units": {(2, 3), (6, 5)},
    "SEQ(A a, NOT(ANY n), ANY b) WITHIN 4 units": {(0, 1), (2, 4)},
    "AND(C c, NOT(ANY n)) WITHIN 1 units": {(7,)},
    "KL(C c) WITHIN 2 units": {((3,),), ((5,),), ((7,),), ((3, 5),)},
    "SEQ(A a, B b) STRATEGY consuming WITHIN 4 units": {(0, 1), (2, 4)},
    # Within one last event the smallest positions in the order of the pattern come first.
    "SEQ(A a, KL(B b), C c) STRATEGY consuming WITHIN 4 units": {(0, (1,), 3), (2, (4,), 5)},
    "SEQ(KL(A a), C c) STRATEGY consuming WITHIN 8 units": {((0,), 3), ((2,), 5)},
    # Of two that are complete at the same time the one whose last event arrived first.
    "AND(B b, C c) STRATEGY consuming WITHIN 4 units": {(1, 3), (4, 5), (6, 7)},
    # A set compares as the tuple of its positions: (0) comes before (0, 2), and that before (2).
    "AND(KL(A a), C c) STRATEGY consuming WITHIN 2 units": {((0,), 3), ((2,), 5)},
    "SEQ(A a, B b) STRATEGY strict_contiguity WITHIN 4 units": {(0, 1)},
    "AND(A a, C c) STRATEGY strict_contiguity WITHIN 4 units": {(2, 3)},
    "AND(C c, KL(B b)) STRATEGY strict_contiguity WITHIN 4 units": {
        (3, (4,)),
        (5, (4,)),
        (5, (6,)),
        (5, (4, 6)),
        (7, (6,)),
    },
}

#: Groups of the Bs of A@1 B@2 B@3 C@4, whose x is 2 and 0: by size and condition.
GROUP_VALUES = events_of("A@1 B@2 B@3 C@4").assign(x=[1.0, 2.0, 0.0, 5.0])
OF_A_GROUP = {
    # Conditions on each event choose the events ...
    ("+", "b.x > a.x"): {(1,)},
    ("+", "b.x > 9"): set(),
    ("*", "b.x > 9"): {()},
    ("1", "b.x < c.x"): {(1,), (2,)},
    ("2", "b.x > a.x"): set(),
    # ... all others test the finished group.
    ("+", "sum(b.x) > 1"): {(1, 2)},
    ("+", "sum(b.x) > 2"): set(),
    ("+", "b[1].x > b[last].x"): {(1, 2)},
    ("+", "b[i].x > b[i-1].x"): set(),
    ("+", "b[i].x < avg(b[..i-1].x)"): {(1, 2)},
    ("1", "b[1].x = 0"): {(2,)},
    ("1", "b[i].x > b[i-1].x"): {(1,), (2,)},
    # An empty group has a count of 0, and nothing else.
    ("*", "b.x > 9 AND count(b.x) = 0"): {()},
    ("*", "b.x > 9 AND sum(b.x) >= 0"): set(),
    ("*", "b.x > 9 AND b[1].x != 7"): set(),
    ("*", "b.x > 9 AND b[i].x > b[i-1].x"): {()},
    ("*", "b.x > 9 AND b[i].x < avg(b[..i-1].x)"): {()},
}

#: Groups and negation, each with its stream; WITHIN 10 units where nothing is said.
GROUPS = {
    ("SEQ(A a, GROUP(B b, +), C c)", "A@1 B@2 B@3 B@5 C@6"): {(0, (1, 2, 3), 4)},
    ("SEQ(A a, GROUP(B b, 2), C c)", "A@1 B@2 B@3 B@5 C@6"): {(0, (1, 2), 4), (0, (2, 3), 4)},
    ("SEQ(A a, GROUP(B b, 4), C c)", "A@1 B@2 B@3 B@5 C@6"): set(),
    ("SEQ(A a, GROUP(B b, +), C c)", "A@1 B@2 B@3 A@4 B@5 C@6"): {(0, (1, 2, 4), 5), (3, (4,), 5)},
    ("SEQ(A a, GROUP(B b, 2), C c)", "A@1 B@2 B@3 A@4 B@5 C@6"): {(0, (1, 2), 5), (0, (2, 4), 5)},
    ("SEQ(A a, GROUP(B b, *), C c)", "A@1 C@2"): {(0, (), 1)},
    ("SEQ(A a, GROUP(B b, +), C c)", "A@1 C@2"): set(),
    ("SEQ(A a, NOT(B n), C c)", "A@1 B@2 B@3 A@4 C@5"): {(3, 4)},
    ("SEQ(A a, NOT(B n), C c)", "A@3 B@3 C@5"): {(0, 2)},
    ("SEQ(GROUP(B b, +), C c) WITHIN 5 units", "B@1 B@5 B@8 C@10 B@12 B@15"): {((1, 2), 3)},
    ("SEQ(C c, GROUP(B b, *)) WITHIN 4 units", "B@1 B@5 B@8 C@10 B@12 B@15"): {(3, (4,))},
    # Figure 6: without a count, and with a count of two.
    ("SEQ(A a, GROUP(B b, *), C c)", "A@1 B@2 B@3 A@4 B@5 C@6"): {(0, (1, 2, 4), 5), (3, (4,), 5)},
    # A negated item behind an empty group has the item before it as its neighbour.
    ("SEQ(A a, GROUP(B b, *), NOT(D n), C c)", "A@1 D@2 C@3"): set(),
    ("SEQ(A a, GROUP(B b, *), NOT(D n), C c)", "A@1 D@2 B@3 C@4"): {(0, (2,), 3)},
    # A trailing NOT looks forward from the first event, which the group may hold.
    ("SEQ(GROUP(B b, +), C c, NOT(D n)) WITHIN 4 units", "B@1 C@3 D@6"): {((0,), 1)},
    ("SEQ(GROUP(B b, *), C c, NOT(D n)) WITHIN 4 units", "C@3 D@6"): set(),
    # Two groups of one type whose events would be the same ones are in no match.
    ("AND(SEQ(A a, GROUP(B b, +)), SEQ(C c, GROUP(B d, 1)))", "A@1 C@2 B@3"): set(),
    ("SEQ(A a, GROUP(B b, 1), C c) STRATEGY consuming", "A@1 B@2 B@3 C@4"): {(0, (1,), 3)},
    ("SEQ(A a, GROUP(B b, +), C c) STRATEGY consuming", "A@1 A@2 B@3 C@4 C@5"): {(0, (2,), 3)},
}

#: With the number of the branch; None for what a branch does not bind.
SEVERAL_BRANCHES = {
    "OR(SEQ(A a, B b), C c) WITHIN 1 units": {
        (0, (0, 1, None)),
        (0, (2, 4, None)),
        (1, (None, None, 3)),
        (1, (None, None, 5)),
        (1, (None, None, 7)),
    },
    # What the first branch has found is not found again by the second one.
    "OR(SEQ(A a, C c), AND(A a, C c)) WITHIN 4 units": {
        (0, (0, 3)),
        (0, (0, 5)),
        (0, (2, 5)),
        (1, (2, 3)),
    },
    # The leftmost OR changes slowest: a c, a d, b c, b d.
    "AND(OR(A a, B b), OR(C c, A d)) WITHIN 1 units": {
        (0, (2, None, 3, None)),
        (2, (None, 1, 3, None)),
        (2, (None, 4, 3, None)),
        (2, (None, 4, 5, None)),
        (2, (None, 6, 5, None)),
        (3, (None, 1, None, 0)),
        (3, (None, 1, None, 2)),
        (3, (None, 4, None, 2)),
    },
    # The same events bound to other variables are another match.
    "OR(SEQ(B a), AND(B a), SEQ(B b), AND(B b)) WITHIN 1 units": {
        (0, (1, None)),
        (0, (4, None)),
        (0, (6, None)),
        (2, (None, 1)),
        (2, (None, 4)),
        (2, (None, 6)),
    },
    "OR(SEQ(A a, OR(C b, C c)), AND(A a, OR(C b, C c))) WITHIN 2 units": {
        (0, (0, 3, None)),
        (0, (2, 5, None)),
        (1, (0, None, 3)),
        (1, (2, None, 5)),
        (2, (2, 3, None)),
        (3, (2, None, 3)),
    },
    # Of equal positions the shorter match comes first, whichever branch it is of.
    "OR(AND(C c, B b), SEQ(C c)) STRATEGY consuming WITHIN 4 units": {
        (1, (3, None)),
        (1, (5, None)),
        (1, (7, None)),
    },
    # An event of a match reported before is used up for every branch.
    "OR(SEQ(A a, B b), SEQ(A a, C c)) STRATEGY consuming WITHIN 4 units": {
        (0, (0, 1, None)),
        (0, (2, 4, None)),
    },
}

#: Positions 0 to 4; sets of the three in the middle are written without their first and last.
VALUES = pd.DataFrame(
    {
        "type": ["A", "B", "B", "B", "C"],
        "time": [1, 2, 3, 4, 5],
        "x": [1.0, 2.0, 1.0, 3.0, 2.0],
        "y": [2.0, 5.0, float("nan"), 1.0, 2.0],
    }
)

#: Sets of ``SEQ(A a, KL(B b), C c)``, written as the digits of their positions.
OF_A_SET = {
    "b.x > a.x": ["1", "3", "13"],
    "b.x != c.x": ["2", "3", "23"],
    "b[i].x > b[i-1].x": ["1", "2", "3", "13", "23"],
    "b[1].x < b[last].x": ["13", "23", "123"],
    "b[i-1].x < b[last].x": ["1", "2", "3", "13", "23", "123"],
    "b[last].x > c.x": ["3", "13", "23", "123"],
    "sum(b.x) = 4": ["23"],
    "avg(b.x) = c.x": ["1", "23", "123"],
    "count(b.x) >= 2": ["12", "13", "23", "123"],
    "min(b.x) = a.x": ["2", "12", "23", "123"],
    "max(b.x) = c.x": ["1", "12"],
    "b[i].x > avg(b[..i-1].x)": ["1", "2", "3", "13", "23"],
    "b.x >= avg(b.x)": ["1", "2", "3"],
    # One comparison for each element may be another one.
    "b.x > a.x OR b.x < 2": ["1", "2", "3", "12", "13", "23", "123"],
    "b.x > 2 OR count(b.x) = 1": ["1", "2", "3"],
    # A comparison with something missing is false; so is one with what is made of it.
    "b.y < 9": ["1", "3", "13"],
    "sum(b.y) < 9": ["1", "3", "13"],
    "b[i].y != b[i-1].y": ["1", "2", "3", "13"],
}

#: What is left of ``SEQ(A a, NOT(B n), C c)``.
NEGATED = {
    "n.x > a.x": set(),
    "n.x > 3": {(0, 4)},
    "n.x = c.x AND n.y < 5": {(0, 4)},
    "n.x = c.x AND n.y = 5": set(),
    "n.x = a.x AND n.y < 9": {(0, 4)},
}

#: The events 0, 2, 6, 7 are of one partition, 1 and 4 of the other; 3 and 5 of none.
PARTITIONS = pd.DataFrame(
    {
        "type": ["A", "A", "B", "A", "B", "B", "C", "B"],
        "time": [1, 2, 3, 4, 5, 6, 7, 8],
        "k": [1.0, 2.0, 1.0, float("nan"), 2.0, float("nan"), 1.0, 1.0],
    }
)
IN_PARTITIONS = {
    "SEQ(A a, KL(B b)) STRATEGY partition_contiguity(k) WITHIN 9 units": {(0, (2,)), (1, (4,))},
    "SEQ(A a) STRATEGY partition_contiguity(k) WITHIN 9 units": {(0,), (1,)},
    "KL(B a) STRATEGY partition_contiguity(k) WITHIN 9 units": {((2,),), ((4,),), ((7,),)},
}

#: Of two events, on streams of their own.
STREAMS: dict[tuple[str, str], set[Any]] = {
    ("SEQ(A a, B b) WITHIN 4 units", "A@1 B@1 A@1 B@1"): set(),
    ("AND(A a, B b) WITHIN 0 units", "B@1 A@1 B@1 A@2"): {(1, 0), (1, 2)},
    # The window is closed, and spans all events.
    ("SEQ(A a, B b) WITHIN 4 units", "A@1 B@5 B@6"): {(0, 1)},
    ("SEQ(A a, B b, C c) WITHIN 4 units", "A@1 B@4 C@5 C@6 A@7"): {(0, 1, 2)},
    # Both assignments of one type.
    ("AND(A a, A b) WITHIN 1 units", "A@1 A@2 A@4"): {(0, 1), (1, 0)},
    ("SEQ(A a, A b) WITHIN 9 units", "A@1 A@1 A@3"): {(0, 2), (1, 2)},
    ("AND(SEQ(A a, B b), C c) WITHIN 9 units", "A@1 C@2 B@3 B@3 A@4"): {(0, 2, 1), (0, 3, 1)},
    ("SEQ(AND(A a, B b), C c) WITHIN 9 units", "C@1 B@2 A@3 C@3 C@4"): {(2, 1, 4)},
    ("SEQ(A a, B b) WITHIN 3 units", "A@-5 B@-2 B@0"): {(0, 1)},
    # At one time, by arrival alone.
    ("SEQ(A a, B b, C c) WITHIN 4 units", "A@1 B@1 C@1"): set(),
    ("SEQ(A a, B b, C c) ORDER BY arrival WITHIN 4 units", "A@1 B@1 C@1"): {(0, 1, 2)},
    ("SEQ(A a, B b) ORDER BY arrival WITHIN 0 units", "A@1 B@1"): {(0, 1)},
    ("SEQ(A a, B b) ORDER BY arrival STRATEGY next WITHIN 4 units", "A@1 A@1 B@1 B@2"): {(0, 2), (1, 2)},
    # What another branch waits for, or consumes; the closed end of the window decides.
    **{
        ("OR(SEQ(A a, B b, NOT(C n)), SEQ(A a, B b)) WITHIN 4 units", events): {branch}
        for events, branch in (
            ("A@1 B@2 C@3 D@6", (1, (0, 1))), ("A@1 B@2 D@3 D@6", (0, (0, 1))),
            ("A@1 B@2 D@5 D@5 D@6", (0, (0, 1))), ("A@1 B@2 D@5 C@5 D@6", (1, (0, 1))),
            ("A@1 B@2 D@5", (0, (0, 1))), ("A@1 B@2 C@5", (1, (0, 1))),
        )
    },
    ("OR(SEQ(A a, B b), SEQ(A a, B b, NOT(C n))) WITHIN 4 units", "A@1 B@2 D@6 D@7"): {(0, (0, 1))},
    ("OR(AND(A a, B b, NOT(C n)), AND(A a, B b, NOT(D m))) WITHIN 3 units", "A@1 B@2 D@4 C@4 D@5"): set(),
    ("OR(AND(A a, B b, NOT(C n)), AND(A a, B b, NOT(D m))) WITHIN 3 units", "C@0 A@2 B@2 A@5 A@6"): {
        (1, (1, 2)), (0, (3, 2))
    },
    **{
        ("OR(SEQ(A a, B b, C c), SEQ(B b, A a, C c)) STRATEGY consuming WITHIN 9 units", events): its
        for events, its in (
            ("B@1 A@2 B@3 C@4", {(1, (1, 0, 3))}), ("A@1 B@2 A@3 C@4", {(0, (0, 1, 3))}),
            ("B@1 A@2 B@3 C@4 C@5 A@6 C@7", {(1, (1, 0, 3)), (1, (5, 2, 6))}),
        )
    },
    # What forbids is kept to the end of the window after the match, whatever arrives then.
    ("AND(C c, NOT(A n)) WITHIN 2 units", "A@1 C@3" + " C@5" * 64): {(p,) for p in range(2, 66)},
}  # fmt: skip

#: By arrival, on the first stream.
BY_ARRIVAL = {
    "SEQ(C c, B b)": {(3, 4), (3, 6), (5, 6)},
    "SEQ(A a, NOT(B n), C c)": {(2, 3)},
    # B at position 6 comes after C at position 5, at the end of the window.
    "SEQ(A a, C c, NOT(B n))": set(),
    "SEQ(A a, B b, C c)": {(0, 1, 3), (0, 1, 5), (0, 4, 5), (2, 4, 5)},
    "SEQ(A a, GROUP(B b, *), C c)": {(0, (1,), 3), (2, (), 3), (0, (1, 4), 5), (2, (4,), 5)},
}

#: By the automaton, within 10 units; B at 6 is not at the time of C at 5.
AUTOMATON = events_of("A@1 B@2 A@3 C@3 B@4 C@5 B@6 C@9")
NEXT = {
    # A run takes the first event that fits, and every A starts one.
    "SEQ(A a, B b)": {(0, 1), (2, 4)},
    "SEQ(A a, KL(B b), C c)": {
        (0, (1,), 3), (0, (1, 4), 5), (0, (1, 4, 6), 7), (2, (4,), 5), (2, (4, 6), 7)
    },
    # The last loop is a match after each event; a tie is no next item.
    "SEQ(A a, KL(B b))": {(0, (1,)), (0, (1, 4)), (0, (1, 4, 6)), (2, (4,)), (2, (4, 6))},
    "KL(A a)": {((0,),), ((0, 2),), ((2,),)},
    # A negated event drops the match, and the run that found it does not go on.
    "SEQ(B b, NOT(A n), B c)": {(4, 6)},
    "SEQ(A a, KL(C c), NOT(B n))": {(0, (3, 5, 7)), (2, (5, 7))},
}  # fmt: skip

#: A stream with two symbols, missing in two events, and what of it is reported.
SYMBOLS = events_of("A@1 A@2 B@3 A@4 B@5 A@6 B@7 B@8").assign(
    s=pd.Categorical(["p", "q", "p", "q", "q", None, None, "p"], categories=["p", "q"])
)
NON_OVERLAP = {
    # Of those that end together the latest start.
    "SEQ(A a, B b)": {(1, 2), (3, 4), (5, 6)},
    "SEQ(A a, B b) WHERE [s]": {(0, 2), (3, 4)},
    "SEQ(A a, B b) STRATEGY partition_contiguity(s)": {(0, 2), (3, 4)},
    "SEQ(A a, B b) STRATEGY strict_contiguity": {(1, 2), (3, 4), (5, 6)},
    # The fewest events, then the smallest positions.
    "SEQ(A a, KL(ANY b), B c)": {(0, (1,), 2), (3, (4,), 6)},
    "SEQ(A a, KL(B b), B c)": {(1, (2,), 4), (5, (6,), 7)},
    "AND(A a, A b)": {(0, 1), (3, 5)},
    # Those that end before it are negated.
    "SEQ(A a, B b, NOT(A n)) WHERE a.s != 'q'": {(0, 6)},
}

#: Pairs by a condition, where values are missing.
MISSING = pd.DataFrame(
    {
        "type": ["A", "A", "B", "B", "B"],
        "time": [1, 2, 3, 4, 5],
        "x": [5.0, np.nan, 6.0, np.nan, 4.0],
        "s": ["p", None, "q", None, "p"],
    }
)
OF_A_PAIR = {
    # What is missing is neither less nor greater than anything, nor itself.
    "a.x < b.x": {(0, 2)},
    "a.x > b.x": {(0, 4)},
    "a.x != b.x": {(0, 2), (0, 4)},
    "a.x = a.x": {(0, 2), (0, 3), (0, 4)},
    "a.x < b.x OR a.x = 5": {(0, 2), (0, 3), (0, 4)},
    "a.s = b.s": {(0, 4)},
    "a.s != b.s": {(0, 2)},
    "b.s = 'r'": set(),
    # Division by zero is infinite.
    "a.x / 0 > b.x": {(0, 2), (0, 4)},
    "b.x < 5": {(0, 4), (1, 4)},
    "a.x != b.x AND a.s != b.s": {(0, 2)},
}

#: The window is closed to the nanosecond.
MOMENTS = pd.DataFrame(
    {
        "type": ["A", "B", "B"],
        "time": [
            pd.Timestamp(f"2026-01-05 {its}").value
            for its in ("09:30:00", "09:50:00", "09:50:00.000000001")
        ],
    }
)


def worked_by_hand() -> Iterator[tuple[str, pd.DataFrame, set[Labelled]]]:
    """Patterns, streams and matches."""

    def plain(matches: set[Any]) -> set[Labelled]:
        return {(0, match) for match in matches}

    for text, its in ONE_BRANCH.items():
        yield text, STREAM, plain(its)
    for text, labelled in SEVERAL_BRANCHES.items():
        yield text, STREAM, labelled
    for (text, events), its in (GROUPS | STREAMS).items():
        within = "" if "WITHIN" in text else " WITHIN 10 units"
        yield f"{text}{within}", events_of(events), its if "OR(" in text else plain(its)
    for (size, condition), sets in OF_A_GROUP.items():
        text = f"SEQ(A a, GROUP(B b, {size}), C c) WHERE {condition} WITHIN 9 units"
        yield text, GROUP_VALUES, plain({(0, group, 3) for group in sets})
    for condition, digits in OF_A_SET.items():
        text = f"SEQ(A a, KL(B b), C c) WHERE {condition} WITHIN 9 units"
        yield text, VALUES, plain({(0, tuple(map(int, its)), 4) for its in digits})
    for condition, its in NEGATED.items():
        yield f"SEQ(A a, NOT(B n), C c) WHERE {condition} WITHIN 9 units", VALUES, plain(its)
    for text, its in IN_PARTITIONS.items():
        yield text, PARTITIONS, plain(its)
    for text, its in BY_ARRIVAL.items():
        yield f"{text} ORDER BY arrival WITHIN 4 units", STREAM, plain(its)
    for text, its in NEXT.items():
        yield f"{text} STRATEGY next WITHIN 10 units", AUTOMATON, plain(its)
    for text, its in NON_OVERLAP.items():
        yield f"{text} OUTPUT non_overlap WITHIN 7 units", SYMBOLS, plain(its)
    for condition, its in OF_A_PAIR.items():
        yield f"SEQ(A a, B b) WHERE {condition} WITHIN 9 units", MISSING, plain(its)
    for y in (-1, -1.0):  # a remainder of zero has the sign of the dividend: it is -0
        text = "SEQ(A a, B b) WHERE a.x / (a.y % a.y) < b.x WITHIN 9 units"
        yield text, events_of("A@1 B@2").assign(x=1.0, y=y), plain({(0, 1)})
    yield "SEQ(A a, B b) WITHIN 20 minutes", MOMENTS, plain({(0, 1)})
