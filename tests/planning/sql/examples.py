"""Patterns of every construct, and events that try what SQL sees differently."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Numbers that compare and divide in their own ways.
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 1e308)

#: Texts that need quotes, look like settings, or like something missing.
TEXTS = ("it's", "a\\b", "${spark.app.name}", "NaN", 'say "x"', "a\\", "", None)


def values_events() -> pd.DataFrame:
    """Every number with every other one as x of an A and of a B; two events at each time."""
    rng = np.random.default_rng(5)
    count = 2 * len(NUMBERS)
    return pd.DataFrame(
        {
            "type": pd.Categorical(["A", "B"] * len(NUMBERS)),
            "time": np.repeat(np.arange(len(NUMBERS)), 2),
            "x": rng.permutation(np.repeat(NUMBERS, 2)),
            "y": rng.permutation([0, 0, 1, -1, 2, 2**53, -(2**53), 7] * 2),
            "z": pd.array(rng.permutation([1, 2, None, 0] * 4), "Int64"),
            "small": rng.integers(-3, 3, count).astype(np.int8),
            "f": rng.random(count) < 0.5,
            "s": pd.Categorical(rng.permutation(np.repeat(np.array(TEXTS, object), 2))),
            "t": pd.Categorical(rng.permutation(np.repeat(np.array(TEXTS, object), 2))),
            "g": pd.array(rng.permutation([True, None, False, False] * (count // 4)), "boolean"),
            "m": pd.array([None] * count, "Int64"),
        }
    )


#: Conditions on two events of those.
CONDITIONS = (
    "a.x < b.x",
    "a.x <= b.x",
    "a.x > b.x",
    "a.x >= b.x",
    "a.x = b.x",
    "a.x != b.x",
    "a.x < b.y",
    "a.z != b.z",
    "a.x < b.x AND a.z <= b.z",
    "a.x / b.x > 0",
    "a.x / b.x < 0",
    "a.x / b.x != 1",
    "a.y / b.y >= 0.5",
    "a.x % b.x != 1",
    "a.x % b.y = 1.5 OR b.x % (-2) < 0",
    "a.y % b.small <= 0",
    "1 / a.x = 1 / b.x",
    "1 / -a.y < 0 AND b.y = 0",
    "a.y * b.y * a.y > 0",
    "a.x * b.x != a.x - b.x",
    "a.x + b.x < a.x * 2",
    "a.small * 100 > b.small * 100 + 50",
    "a.y + 0.1 = b.y + 0.3 - 0.2",
    "a.f = true AND b.f = false",
    "a.g AND NOT b.g",
    "a.f != b.g OR a.x > 1",
    "a.g = b.g",
    "a.m = 'x' OR b.m != 'x' OR a.x > 1",
    "NOT a.m OR b.m OR a.x > 1",
    "a.m < 1 OR b.m >= 1 OR a.x > 1",
    "a.x < 1e3 AND b.x > -0.5",
    "a.s = b.s",
    "a.s != b.s",
    "a.s = b.t",
    "a.s = 'it''s' AND b.s != 'a\\b'",
    "a.s = '${spark.app.name}'",
    "a.s != 'NaN' AND b.t = 'a\\'",
    "a.s = 'say \"x\"' OR b.s = ''",
    "a.x < b.x OR a.s = b.s OR a.y = 7",
)

#: Over the events of :func:`construct_events`.
CONSTRUCTS = {
    "one": "SEQ(A a) WHERE a.x > 1 WITHIN 9 units",
    "sequence": "SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 9 units",
    "conjunction": "AND(A a, B b, A d) WHERE a.x < d.x AND b.s = a.s WITHIN 4 units",
    "nested": "SEQ(AND(A a, B b), SEQ(C c, D d)) WHERE a.y = d.y WITHIN 12 units",
    "nested conjunction": "AND(SEQ(A a, B b), C c) WHERE a.x != c.x WITHIN 5 units",
    "inner negation": "SEQ(A a, NOT(B n), C c) WHERE n.x > a.x AND n.y = c.y WITHIN 9 units",
    "leading negation": "SEQ(NOT(B n), A a, C c) WHERE n.y = c.y AND a.x < c.x WITHIN 6 units",
    "trailing negation": "SEQ(A a, C c, NOT(B n)) WHERE n.x > 1 AND a.s = c.s WITHIN 7 units",
    "negation on both sides": "AND(A a, NOT(B n), C c) WHERE n.y = a.y WITHIN 4 units",
    "two negations": "SEQ(A a, NOT(B n), C c, NOT(D m)) WHERE m.x < a.x AND n.s = c.s "
    "WITHIN 9 units",
    "negation of a bound type": "AND(A a, NOT(A n), B b) WHERE n.x > b.x WITHIN 5 units",
    "disjunction": "OR(SEQ(A a, B b), SEQ(C c, D d), AND(A a, D d)) WHERE a.x < d.x WITHIN 4 units",
    "the same twice": "OR(SEQ(A a, B b), AND(A a, B b), SEQ(B b, A a)) WITHIN 4 units",
    "nested disjunction": "SEQ(OR(A a, SEQ(B b, C c)), NOT(B n), OR(D d, A e)) WHERE n.x > 0 "
    "WITHIN 6 units",
    "neighbours": "SEQ(A a, B b, C c) STRATEGY strict_contiguity WITHIN 20 units",
    "neighbours in any order": "AND(A a, B b, C c) STRATEGY strict_contiguity WITHIN 20 units",
    "neighbours in part": "SEQ(A a, AND(B b, C c), D d) STRATEGY strict_contiguity WITHIN 20 units",
    "partitions": "SEQ(A a, B b, NOT(C n)) STRATEGY partition_contiguity(s) WITHIN 6 units",
    "partitions of numbers": "AND(A a, B b) STRATEGY partition_contiguity(x) WITHIN 60 units",
    "one in a partition": "SEQ(A a) STRATEGY partition_contiguity(s) WITHIN 1 units",
    "neighbours or not": "OR(SEQ(A a, B b), SEQ(B b, C c, A a)) STRATEGY strict_contiguity "
    "WITHIN 9 units",
}


def construct_events(count: int, seed: int = 3) -> pd.DataFrame:
    """Events of four types with ties in time and missing values."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list("ABCD"), count), categories=list("ABCD")),
            "time": np.cumsum(rng.integers(0, 3, count)),
            "x": rng.choice([np.nan, -1.0, 0.5, 1.0, 2.0, 3.5], count),
            "y": rng.integers(0, 4, count),
            "s": pd.Categorical(rng.choice(["p", "q", None], count), categories=["p", "q"]),
        }
    )
