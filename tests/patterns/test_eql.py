"""Sequences of EQL and correlations of Sigma have all matches, of which EQL's state machine reports some."""

from __future__ import annotations

import re
from random import Random

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PatternError, PatternSyntaxError, UnsupportedPatternError
from tests.budgets import examples
from tests.naive.matcher import naive_matches


def state_machine(
    events: pd.DataFrame, items: str, span: int, key: str | None, until: str | None
) -> set[tuple[int, ...]]:
    """What EQL reports of ``sequence [A where true] [B where true] …``, by its manual.

    Elasticsearch, EQL syntax reference, "How sequence queries handle matches": each item is a state of a
    machine, one for each value of the by fields; only one pending sequence is in a state at a time, and
    the most recent one overwrites the older one.
    """
    machines: dict[object, dict[int, tuple[int, ...]]] = {}
    found = set()
    for row in events.itertuples():
        value = None if key is None else getattr(row, key)
        if key is not None and pd.isna(value):
            continue
        pending = machines.setdefault(value, {})
        if row.type == until:
            pending.clear()
        for state in reversed(range(len(items))):
            if row.type != items[state]:
                continue
            before = () if state == 0 else pending.pop(state - 1, None)
            if before is None:
                continue
            its = (*before, int(row.Index))
            if row.time - events.time[its[0]] > span:
                continue
            if len(its) == len(items):
                found.add(its)
            else:
                pending[state] = its
    return found


def queried(items: str, span: int, key: str | None, until: str | None) -> cep.Pattern:
    text = "sequence" + (f" by {key}" if key else "") + f" with maxspan={span}s"
    text += "".join(f" [{item} where true]" for item in items)
    return cep.parse(text + (f" until [{until} where true]" if until else ""), dialect="eql")


def drawn(random: Random) -> pd.DataFrame:
    count = random.randint(0, 9)
    times = pd.Series([random.choice([0, 1, 1, 2]) for _ in range(count)], dtype="int64").cumsum()
    return pd.DataFrame(
        {
            "type": [random.choice("AABCD") for _ in range(count)],
            "time": times,
            "k": pd.Series(
                [random.choice([1.0, 1.0, 2.0, None]) for _ in range(count)], dtype=float
            ),
        }
    )


@examples(30)
@given(random=st.randoms(use_true_random=False))
def test_the_state_machine_reports_some_of_the_matches(random: Random) -> None:
    events = drawn(random)
    items, span = random.choice(["AB", "ABC", "AAB", "ABA"]), random.choice([1, 3, 6])
    key, until = random.choice([None, "k"]), random.choice([None, "D"])
    in_ticks = events.assign(time=events["time"] * 10**9)
    every = naive_matches(queried(items, span, key, until), in_ticks)
    assert state_machine(events, items, span, key, until) <= every


def test_what_the_state_machine_leaves_out() -> None:
    """A match whose begin a later one overwrites, and a second end of a sequence that has ended."""
    events = pd.DataFrame({"type": list("AABB"), "time": range(4)})
    assert state_machine(events, "AB", 9, None, None) == {(1, 2)}
    in_ticks = events.assign(time=events["time"] * 10**9)
    every = naive_matches(queried("AB", 9, None, None), in_ticks)
    assert every == {(0, 2), (0, 3), (1, 2), (1, 3)}


@pytest.mark.parametrize(
    ("query", "pattern"),
    [
        (
            'sequence by user.id with maxspan=5m [process where name == "a\\"b" and not (x > 1 or y in (1, 2))] '
            "![any where true] [`my file` where `a b` != null]".replace("`my file`", '"my file"'),
            'PATTERN SEQ(process e0_0, NOT(ANY e1_0), "my file" e2_0) WHERE e0_0.name = \'a"b\' AND e0_0.x <= 1 AND '
            'e0_0.y != 1 AND e0_0.y != 2 AND e2_0."a b" = e2_0."a b" AND e0_0."user.id" = e1_0."user.id" AND '
            'e0_0."user.id" = e2_0."user.id" ORDER BY arrival WITHIN 5 minutes',
        ),
        (
            "sequence with maxspan=1h [a where true] by pid [b where x >= 2] by ppid with runs=2 "
            "until [c where true] by pid",
            "PATTERN SEQ(a e0_0, NOT(c u1_0), b e1_0, NOT(c u1_1), b e1_1) WHERE e1_0.x >= 2 AND e1_1.x >= 2 AND "
            "e0_0.pid = u1_0.pid AND e0_0.pid = e1_0.ppid AND e0_0.pid = u1_1.pid AND e0_0.pid = e1_1.ppid "
            "ORDER BY arrival WITHIN 1 hours",
        ),
        (
            "sequence with maxspan=1h ![a where true] [b where true] [c where true] until [d where true]",
            "PATTERN SEQ(NOT(a e0_0), b e1_0, NOT(d u2_0), c e2_0) ORDER BY arrival WITHIN 1 hours",
        ),
    ],
)  # fmt: skip
def test_every_clause(query: str, pattern: str) -> None:
    assert str(cep.parse(query, dialect="eql")) == pattern


@pytest.mark.parametrize(
    ("query", "error", "at", "words"),
    [
        ("process where true", PatternSyntaxError, "p", "expected sequence"),
        ("sequence [a where true]", PatternSyntaxError, "sequence", "add one with maxspan"),
        ("sequence with maxspan=1s [a where x : 'b']", UnsupportedPatternError, ":", "wildcards"),
        ("sequence with maxspan=1s [a where f(x) > 1]", UnsupportedPatternError, "(", "a function"),
        ("sequence with maxspan=1s [a where true] | head", UnsupportedPatternError, "|", "a pipe"),
        ("sample by x [a where true]", UnsupportedPatternError, "sample", "no window"),
        ("sequence with maxspan=1s [a where x == null]", UnsupportedPatternError, "x ==", "missing"),
        ("sequence by ?x with maxspan=1s [a where true]", UnsupportedPatternError, "?x", "optional"),
        ("sequence with maxspan=1s [a where true] with runs=0", PatternSyntaxError, "a where", "1 to 100"),
        ("sequence with maxspan=1s [a where true] with runs=1.5", PatternSyntaxError, "a where", "1 to 100"),
        ("sequence with maxspan=1s [a where true] with runs=101", PatternSyntaxError, "a where", "1 to 100"),
        (
            "sequence with maxspan=1s [a where true] with runs=2 with runs=3",
            PatternSyntaxError, "a where", "once",
        ),
        (
            "sequence with maxspan=1s [a where true] by x [b where true]",
            PatternSyntaxError, "", "as many fields",
        ),
    ],
)  # fmt: skip
def test_errors_are_under_the_word(
    query: str, error: type[PatternError], at: str, words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        cep.parse(query, dialect="eql")
    assert raised.value.offending.startswith(at.rstrip())


SIGMA = """
title: a logon after failed ones
---
correlation:
  type: {type}
  rules: [failed_logon, logon]
  group-by: [user.name]
  timespan: {timespan}
"""


def test_a_temporal_correlation() -> None:
    pattern = cep.parse(SIGMA.format(type="temporal_ordered", timespan="5m"), dialect="sigma")
    assert str(pattern) == (
        'PATTERN SEQ(failed_logon e0, logon e1) WHERE ["user.name"] ORDER BY arrival WITHIN 5 minutes'
    )
    assert str(cep.parse(SIGMA.format(type="temporal", timespan="5m"), dialect="sigma")).startswith(
        "PATTERN AND("
    )


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (SIGMA.format(type="event_count", timespan="5m"), UnsupportedPatternError, "AGG COUNT"),
        (SIGMA.format(type="temporal", timespan="5m\n  aliases: 1"), UnsupportedPatternError, "aliases"),
        (SIGMA.format(type="temporal", timespan="long"), PatternSyntaxError, "timespan bounds"),
        (SIGMA.format(type="temporal", timespan="5m") + "---\ndetection:\n  a: 1\n", UnsupportedPatternError,
         "detection"),
        *(
            (SIGMA.replace("[user.name]", keys).format(type="temporal", timespan="5m"), PatternSyntaxError,
             "group-by: a list of names")
            for keys in ("5", "[5]", "[null]", "[[user]]", "{{user: name}}", "true", "2024-01-01")
        ),
        (SIGMA.format(type="[temporal]", timespan="5m"), UnsupportedPatternError, "type: .*temporal"),
        (SIGMA.format(type="temporal", timespan="5m\n  5: x\n  more: y"), UnsupportedPatternError, "5: it has no"),
        ("title: x", PatternSyntaxError, "0 correlations"),
        ("correlation: &its\n  type: temporal\n  correlation: *its\n", UnsupportedPatternError, "correlation: it has"),
        ("a: [", PatternSyntaxError, "no YAML"),
    ],
)  # fmt: skip
def test_what_sigma_has_besides_is_refused(
    text: str, error: type[PatternError], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        cep.parse(text, dialect="sigma")
    assert re.search(r"line \d+, column \d+", str(raised.value))
    # The line that the message names by its key, if it does.
    key = str(raised.value).partition(": ")[2].split(":")[0].split(" ")[0]
    assert f"{key}:" not in text or raised.value.offending.startswith(f"{key}:")


def test_no_parameters() -> None:
    with pytest.raises(PatternError, match="eql is read as it is"):
        cep.parse("sequence with maxspan=1s [a where true]", dialect="eql", x=1)
