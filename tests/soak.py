"""A search for what ``make test`` does not try: ``make soak``, and a plug-in that counts for it.

Every property and every test of seeded cases runs with a random seed, file by file in random order,
until the time or the rounds are over. A failure names the seed that repeats it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHOSEN = ["-m", "hypothesis or seeded"]
TRIED = re.compile(r"^tried +([\d,]+) +(\S.*)$", re.MULTILINE)
COUNTED = re.compile(r"^counted +([\d,]+) +(\S.*)$", re.MULTILINE)
_PASSING = re.compile(r"(\d+) passing")

_tried: Counter[str] = Counter()

#: What ran and what was refused, by entry of a registry and reason: the properties ``counted``.
_counted: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    statistics = vars(report).get("_hypothesis_stats") or ""
    _tried[report.nodeid] += sum(map(int, _PASSING.findall(statistics)))
    if report.when == "call":
        _tried[report.nodeid] += sum(n for name, n in report.user_properties if name == "seeds")
        for name, counts in report.user_properties:
            if name == "counted":
                _counted.update(counts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, number in sorted(_tried.items()):
        if number:
            terminalreporter.write_line(f"tried {number:>9,} {name}")
    for name, number in sorted(_counted.items()):
        terminalreporter.write_line(f"counted {number:>9,} {name}")
    for line in shares(_counted):
        terminalreporter.write_line(line)


def shares(counted: Counter[str]) -> list[str]:
    """For each entry of a registry, the share of its examples that were refused."""
    totals: dict[str, Counter[str]] = {}
    for name, number in counted.items():
        entry, _, what = name.partition(": ")
        totals.setdefault(entry, Counter())[what.partition(",")[0]] += number
    return [
        f"{its['refused'] / its.total():>7.0%} of {its.total():,} refused: {entry}"
        for entry, its in sorted(totals.items())
    ]


def run(paths: list[str], seed: int, examples: int, workers: int) -> tuple[int, str]:
    """The exit code and output of the tests of some files that try random cases."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.soak", "-q", "-n", str(workers), *CHOSEN,
         f"--hypothesis-seed={seed}", "--timeout=0", "-o", "faulthandler_timeout=0", *paths],
        env={**os.environ, "CEPBENCH_SOAK": str(seed), "CEPBENCH_EXAMPLES": str(examples),
             "HYPOTHESIS_PROFILE": "thorough"},
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
    )  # fmt: skip
    return done.returncode, done.stdout


def files_with_random_cases(paths: list[str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *CHOSEN, *paths],
        cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=True,
    )  # fmt: skip
    return sorted({line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line})


def soak(args: argparse.Namespace) -> int:
    """Run rounds until the time is over; the exit code."""
    longest = args.seconds or (600 if args.rounds is None else math.inf)
    end = time.monotonic() + longest
    files = files_with_random_cases(args.files)
    tried: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    failures = []
    for number in itertools.count() if args.rounds is None else range(args.rounds):
        seed = secrets.randbits(32) if args.seed is None else args.seed + number
        print(f"round {number + 1}: seed {seed}, {len(files)} files", flush=True)
        for file in random.Random(seed).sample(files, len(files)):
            if time.monotonic() >= end:
                break
            start = time.monotonic()
            code, output = run([file], seed, args.examples, args.workers)
            here = {name: int(n.replace(",", "")) for n, name in TRIED.findall(output)}
            tried.update(here)
            for n, name in COUNTED.findall(output):
                counted[name] += int(n.replace(",", ""))
            spent = f"{sum(here.values()):>9,} in {time.monotonic() - start:6.1f} s  {file}"
            print(spent, flush=True)
            if code:
                again = f"make soak SEED={seed} ROUNDS=1 EXAMPLES={args.examples} FILES={file}"
                failures.append(again)
                print(f"{output}\nFAILED; to repeat it: {again}", flush=True)
        if time.monotonic() >= end:
            break
    print("tried, examples and seeds of each test:")
    for name, total in sorted(tried.items()):
        print(f"{total:>11,} {name}")
    if counted:
        print("what ran, and what was refused by name:")
    for name, total in sorted(counted.items()):
        print(f"{total:>11,} {name}")
    print(*shares(counted), sep="\n")
    print(f"{sum(tried.values()):>11,} together; {len(failures)} failures")
    print(*failures, sep="\n")
    return bool(failures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="no file begins afterwards; ten minutes")
    parser.add_argument("--rounds", type=int, help="over all files; by default until time is over")
    parser.add_argument("--seed", type=int, help="of the first round; by default a random one")
    parser.add_argument(
        "--examples", type=int, default=500, help="of a property that asks for no number"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("files", nargs="*", default=["tests"])
    sys.exit(soak(parser.parse_args()))
