"""How parsing grows: ``python benchmarks/bench_parsing.py [--out rows.parquet]``.

Every form of growth is a text with n pieces. It is parsed, and what ``str`` writes of the pattern
is parsed again; the grammar is loaded beforehand. Read as rows, the table says the seconds of both
and, for each form, the exponent of n that fits them best: 1 is linear. A text beyond a limit has
the error's first line instead, and the seconds until it was raised. A form whose last text took
more than ``--patience`` seconds, or whose next one probably would, is not tried with more pieces.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import CepbenchError
from cepbench.patterns.parse import parse, reread

SIZES = (1_000, 2_000, 5_000, 10_000)


def _items(n: int, written: str = "A a{}") -> list[str]:
    return [written.format(number) for number in range(n)]


def _where(condition: str, structure: str = "AND(A a, B b, KL(K k))") -> str:
    return f"PATTERN {structure} WHERE {condition} WITHIN 1 days"


def _nested(n: int) -> str:
    opened = "".join(f"{('SEQ', 'AND')[i % 2]}(A a{i}, " for i in range(n))
    return f"PATTERN {opened}B b{')' * n} WITHIN 9 days"


#: Name of the form -> the text with n pieces.
FORMS: dict[str, Callable[[int], str]] = {
    # -- structure
    "SEQ of n variables": lambda n: f"PATTERN SEQ({', '.join(_items(n))}) WITHIN 9 days",
    "AND of n variables": lambda n: f"PATTERN AND({', '.join(_items(n))}) WITHIN 9 days",
    "a; b; …": lambda n: f"PATTERN {'; '.join(_items(n))} WITHIN 9 days",
    "a & b & …": lambda n: f"PATTERN {' & '.join(_items(n))} WITHIN 9 days",
    "n types without names": lambda n: f"PATTERN SEQ({', '.join(['A'] * n)}) WITHIN 9 days",
    "n items under NOT": lambda n: (
        f"PATTERN SEQ(B b, {', '.join(_items(n, 'NOT(A a{})'))}, C c) WITHIN 9 days"
    ),
    "n items under KL": lambda n: f"PATTERN SEQ({', '.join(_items(n, 'KL(A a{})'))}) WITHIN 9 days",
    "OR of n items": lambda n: f"PATTERN OR({', '.join(_items(n))}) WITHIN 9 days",
    "a | b | …": lambda n: f"PATTERN {' | '.join(_items(n))} WITHIN 9 days",
    "200 branches of n items in all": lambda n: (
        f"PATTERN SEQ({', '.join(_items(n // 200))}, OR({', '.join(_items(200, 'B b{}'))})) "
        "WITHIN 9 days"
    ),
    "SEQ(AND(SEQ(… nested n deep": _nested,
    "n brackets around an item": lambda n: f"PATTERN {'(' * n}A a{')' * n} WITHIN 9 days",
    "NOT NOT … A": lambda n: f"PATTERN SEQ(B b, {'NOT ' * n} A a) WITHIN 9 days",
    "KL(KL(… A": lambda n: f"PATTERN SEQ(B b, {'KL(' * n} A a{')' * n}) WITHIN 9 days",
    "a type of n characters": lambda n: f"PATTERN SEQ({'A' * n} a) WITHIN 9 days",
    "a quoted name of n characters": lambda n: f'PATTERN SEQ(A "{"é" * n}") WITHIN 9 days',
    # -- conditions
    "n conjuncts": lambda n: _where(" AND ".join(_items(n, "a.x{} < b.x"))),
    "n bounds of one attribute": lambda n: _where(" AND ".join(_items(n, "a.x < 1{}"))),
    "n conjuncts, a chain of variables": lambda n: (
        f"PATTERN SEQ({', '.join(_items(n))}) WHERE "
        f"{' AND '.join(f'a{i}.x < a{i + 1}.x' for i in range(n - 1))} WITHIN 9 days"
    ),
    "n conjuncts, a chain of attributes": lambda n: _where(
        " AND ".join(f"a.x{i} < b.x{i + 1} AND b.x{i} < a.x{i + 1}" for i in range(n // 2))
    ),
    "n conjuncts, a chain of equalities": lambda n: _where(
        " AND ".join(f"a.x{i} = a.x{i + 1}" for i in range(n))
    ),
    "n conjuncts that are !=": lambda n: _where(" AND ".join(_items(n, "a.x != {}"))),
    "n texts that are !=": lambda n: _where(" AND ".join(_items(n, "a.x != 't{}'"))),
    "n texts that are =": lambda n: _where(" AND ".join(_items(n, "a.x{0} = 't{0}'"))),
    "n conjuncts of two disjuncts": lambda n: _where(
        " AND ".join(_items(n, "(a.x < b.x{0} OR a.y < b.y{0})"))
    ),
    "n conjuncts, one decides the next": lambda n: _where(
        "a.x0 > 0 AND "
        + " AND ".join(f"(a.x{i} < 0 OR a.x{i + 1} > {i + 1})" for i in reversed(range(n)))
    ),
    "n disjuncts": lambda n: _where(" OR ".join(_items(n, "a.x{} < b.x"))),
    "n disjuncts of numbers, as IN": lambda n: _where(" OR ".join(_items(n, "a.x = {}"))),
    "n disjuncts of texts, as IN": lambda n: _where(" OR ".join(_items(n, "a.x = 't{}'"))),
    "100 times IN over n / 100 texts": lambda n: _where(
        " AND ".join(
            "(" + " OR ".join(f"a.x{i} = 't{t}'" for t in range(n // 100)) + ")" for i in range(100)
        )
    ),
    "n times (x AND y) under OR": lambda n: _where(
        " OR ".join(_items(n, "(a.x = {0} AND b.x = {0})"))
    ),
    "n times (x OR y) under NOT": lambda n: _where(
        f"NOT ({' AND '.join(_items(n, '(a.x = {0} OR b.x = {0})'))})"
    ),
    "(… OR (… AND (… nested n deep": lambda n: _where(
        "".join(f"(a.x < b.x{i} {('OR', 'AND')[i % 2]} " for i in range(n)) + "a.x > 1" + ")" * n
    ),
    "n brackets around a condition": lambda n: _where("(" * n + "a.x < 1" + ")" * n),
    "n brackets around a value": lambda n: _where("a.x < " + "(" * n + "1" + ")" * n),
    "n brackets, none closed": lambda n: _where("(" * n + "a.x < 1"),
    "NOT NOT … condition": lambda n: _where("NOT " * n + "a.x < 1"),
    "NOT(NOT(… condition": lambda n: _where("NOT (" * n + "a.x < 1" + ")" * n),
    "a.x < a.y < …": lambda n: _where(" < ".join(_items(n, "a.x{}"))),
    "a.x + a.y + …": lambda n: _where("b.x < " + " + ".join(_items(n, "a.x{}"))),
    "- - … a.x": lambda n: _where("b.x < " + "- " * n + "a.x"),
    "n conjuncts of sums": lambda n: _where(" AND ".join(_items(n, "a.x + {0} * a.y < b.x - {0}"))),
    "n aggregates": lambda n: _where(" AND ".join(_items(n, "sum(k[].x{}) < a.x"))),
    "n neighbours": lambda n: _where(" AND ".join(_items(n, "k[i].x{0} > k[i-1].x{0}"))),
    "n conjuncts on first, last and each": lambda n: _where(
        " AND ".join(_items(n // 3, "k[1].x{0} < k[last].x{0} AND k.x{0} < a.x"))
    ),
    "[x] over n variables": lambda n: (
        f"PATTERN SEQ({', '.join(_items(n))}) WHERE [x] WITHIN 9 days"
    ),
    "[x, y, …], n attributes": lambda n: _where(f"[{', '.join(_items(n, 'x{}'))}]"),
    "{n conditions in braces}": lambda n: (
        f"PATTERN SEQ(A a, B b) WHERE any {{{'; '.join(_items(n, 'a.x{} < b.x'))}}} WITHIN 9 days"
    ),
    "a text of n characters": lambda n: _where(f"a.x = '{'t' * n}'"),
    "a number of n digits": lambda n: _where(f"a.x < 0.{'7' * n}"),
    "a comment of n characters": lambda n: _where(f"a.x < 1 /* {'* ' * n} */"),
    "n conjuncts and a syntax error": lambda n: _where(
        " AND ".join(_items(n, "a.x{} < b.x")) + " AND AND"
    ),
    "n conjuncts, the last one impossible": lambda n: _where(
        " AND ".join(_items(n, "a.x{} < b.x")) + " AND a.x0 > b.x"
    ),
    "a circle of n conjuncts": lambda n: _where(
        " AND ".join(f"a.x{i} < a.x{(i + 1) % n}" for i in range(n))
    ),
}


def measure(forms: Iterable[str], sizes: Iterable[int], patience: float) -> list[dict[str, Any]]:
    """One row a form and size."""
    parse(FORMS["n conjuncts"](3))
    rows: list[dict[str, Any]] = []
    for form in forms:
        before = 0.0
        for n in sorted(sizes):
            if before > patience / 2:
                break
            row: dict[str, Any] = {"form": form, "n": n, "read_back": None, "refused": None}
            text = FORMS[form](n)
            start = time.process_time()
            try:
                pattern = parse(text)
                row["seconds"] = time.process_time() - start
                start = time.process_time()
                if reread(str(pattern)) != pattern:
                    raise AssertionError(f"{form}, n = {n}: str does not read back")
                row["read_back"] = time.process_time() - start
            except CepbenchError as error:
                row["seconds"] = time.process_time() - start
                row["refused"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            rows.append(row)
            before = row["seconds"] + (row["read_back"] or 0)
    return rows


def exponent(rows: Sequence[dict[str, Any]], of: str) -> float | None:
    """By what power of n the seconds grow; None for fewer than two sizes."""
    points = [(row["n"], row[of]) for row in rows if row[of]]
    if len(points) < 2:
        return None
    n, seconds = np.log(np.array(points)).T
    return float(np.polyfit(n, seconds, 1)[0])


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each form: seconds for each size, to parse and to read back, and exponents."""
    sizes = sorted({row["n"] for row in rows})
    heads = "".join(f"{n:>16,}" for n in sizes)
    lines = [f"{'seconds to parse, to read back':<38}{heads}   exponents"]
    for form in dict.fromkeys(row["form"] for row in rows):
        own = {row["n"]: row for row in rows if row["form"] == form}
        cells = []
        for n in sizes:
            row = own.get(n)
            if row is None:
                cells.append("–")
            else:
                back = "error" if row["read_back"] is None else f"{row['read_back']:.2f}"
                cells.append(f"{row['seconds']:.2f} {back:>6}")
        powers = [exponent(list(own.values()), of) for of in ("seconds", "read_back")]
        shown = ", ".join(f"{power:.1f}" for power in powers if power is not None)
        lines.append(f"{form:<38}{''.join(f'{cell:>16}' for cell in cells)}   {shown}")
        errors = dict.fromkeys(row["refused"] for row in own.values() if row["refused"])
        lines += [f"    {error[:110]}" for error in errors]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description="How parsing grows with the text.")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS), metavar="FORM")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds for one text")
    parser.add_argument("--out", type=Path, help="where to write the rows: .json or .parquet")
    given = parser.parse_args(arguments)
    if given.out and given.out.suffix not in (".json", ".parquet"):
        parser.error(f"--out {given.out}: the name must end in .json or .parquet")
    rows = measure(given.forms, given.sizes, given.patience)
    print(summary(rows))
    if given.out:
        if given.out.suffix == ".json":
            given.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        else:
            pd.DataFrame(rows).to_parquet(given.out, index=False)
        print(f"{len(rows)} rows in {given.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
