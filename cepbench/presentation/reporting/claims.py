"""The file of a ledger: claims of a paper with their checks, reasons, and lines of the front page."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

from cepbench.errors import ReportError
from cepbench.experiments.analysis.checks import CHECK_KINDS, ClaimCheck, Selection, is_timed
from cepbench.experiments.studies.registry import find_study
from cepbench.experiments.studies.study import Study
from cepbench.presentation.figures.rows import quantity_of

#: Basis of a test that involves no clock.
PARTIAL_MATCHES = "partial matches"

#: Key of a claim -> basis and metric of the test that it asks for beside the one on its own metric;
#: work is whatever its metric counts.
_BESIDE = {
    "partial_matches": (PARTIAL_MATCHES, "fewer_partial_matches"),
    "work": ("", ""),
    "time": ("time", "seconds"),
}

#: ``{name}`` or ``{name|form}`` in a sentence.
PLACEHOLDER = re.compile(r"\{([\w-]+)(?:\|([\w ]+))?\}")

#: What shows a reason that needs no experiment.
ARITHMETIC = "arithmetic"

#: Forms of a placeholder, beside the measured value as it is.
FORMS = ("percent", PARTIAL_MATCHES)

#: Keys of a claim's entry: texts that it must have, selections of runs, options of its check, and
#: the rest.
_TEXTS = ("id", "figure", "section", "statement", "kind", "results", "metric")
_SIDES = ("over", "under", "than")
_OPTIONS = tuple(
    each.name for each in fields(ClaimCheck) if each.name not in ("kind", "metric", *_SIDES)
)
_OTHERS = ("expected", *_BESIDE, "reason", "absolute")
#: Ends of an expected range.
_ENDS = ("from", "to")

#: Kinds of checks whose number is a factor between two sides, if they have two.
_FACTORS = ("ratio", "ratio_of_ratios", "ratio_of_averages", "set_contrast")

#: Words for metrics where they are not those of charts, and what a test of each is about in a word or two.
_WORDS = {
    "fewer_partial_matches": ("1 / partial matches created", "partial matches created"),
    "fewer_steps": ("1 / steps of an event", "steps"),
    "fewer_runs": ("1 / simultaneous runs", "runs"),
    "peak_bytes": ("peak memory", "bytes"),
    "latency_mean": ("mean latency", "latency"),
    "tree_cost": ("plan cost, orders as left-deep trees", "cost"),
    "normalized_cost": ("normalized plan cost", "cost"),
    "tree_cost_times_seconds": ("plan cost × planning time", "cost and time"),
    "events_per_second_by_latency": ("throughput / latency", "throughput and latency"),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why claims of the paper do not hold here: in a few words, and in sentences with a :data:`PLACEHOLDER` a number.

    ``shown`` is the notebook whose experiment varies what the reason names, and nothing else, or
    :data:`ARITHMETIC` where its sentences prove it; without one it is a guess.
    """

    title: str
    sentences: tuple[str, ...]
    shown: str = ""

    @property
    def heading(self) -> str:
        """The title, with what it rests on."""
        if self.shown == ARITHMETIC:
            return f"{self.title} (by {ARITHMETIC})"
        # figures_8_9 are figures 8, 9.
        page = re.sub(r"(?<=\d\w) |(?<=\d) ", ", ", self.shown.replace("_", " "))
        return f"{self.title} ({f'shown on the page of {page}' if self.shown else 'a guess'})"


@dataclass(frozen=True, slots=True)
class ClaimTest:
    """A check with the range in which a claim promises its number, infinite on a side that has no end.

    ``basis`` is what is compared, such as ``throughput``; :data:`PARTIAL_MATCHES` where a claim about a
    clock or about bytes is tested on what plans have an effect on. ``text`` is the check in words.
    """

    basis: str
    check: ClaimCheck
    low: float
    high: float
    text: str

    @property
    def is_timed(self) -> bool:
        """Whether its number comes from a clock, rather than from work that is counted."""
        return is_timed(self.check)

    @property
    def is_factor(self) -> bool:
        """Whether its number is the factor between two sides."""
        return self.check.under is not None and self.check.kind in _FACTORS

    @property
    def fails_if(self) -> str:
        """Where the whole interval would have to be for the verdict "does not hold"."""
        ends = []
        if self.low > -math.inf:
            ends.append(f"wholly below {self.low:g}")
        if self.high < math.inf:
            ends.append(f"wholly above {self.high:g}")
        return " or ".join(ends)


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry of the ledger."""

    #: Unique.
    id: str
    #: ``figure``, ``section``: of the claim's paper; a name instead, where the experiment is ours.
    figure: str
    section: str
    #: What is claimed, in our own words.
    statement: str
    #: The study's notebook whose results are read.
    results: str
    #: The first is on partial matches where the claim has one, the last on what the claim is about;
    #: between them may be one on the time, the inverse of throughput on a common stream.
    tests: tuple[ClaimTest, ...]
    #: Why it comes out as it does, where that is not "holds" and known.
    reason: Reason | None = None
    #: Whether its number is a time on the paper's machine, with which ours cannot be compared.
    absolute: bool = False
    #: What was measured in a few words, for the front page; empty if the claim is not on it.
    headline: str = ""

    @property
    def main(self) -> ClaimTest:
        """The test of what the claim is about."""
        return self.tests[-1]


@dataclass(frozen=True, slots=True)
class Number:
    """A number that sentences quote and no claim is about."""

    id: str
    results: str
    check: ClaimCheck


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """Contents of a study's ``ledger.toml``; lines are sentences of the front page, about each regime and all."""

    claims: tuple[Claim, ...]
    numbers: tuple[Number, ...] = ()
    regime_line: tuple[str, ...] = ()
    last_line: tuple[str, ...] = ()


def claims(study: Study) -> tuple[Claim, ...]:
    """All claims of a study's ledger, in its order; see :func:`ledger_file`."""
    return ledger_file(study).claims


def claims_by_id(papers: Iterable[str]) -> dict[tuple[str, str], Claim]:
    """Citation key and id → claim, of several studies."""
    return {(key, claim.id): claim for key in papers for claim in claims(find_study(key))}


@cache
def ledger_file(study: Study) -> LedgerFile:
    """Read a study's ledger.

    A ReportError if an entry lacks a key, has an unknown one, or cannot fail, two have the same id,
    or a headline or a placeholder names no entry.
    """
    data = tomllib.loads(study.ledger.read_text(encoding="utf-8"))
    groups = data.get("groups", {})
    reasons = {
        name: Reason(entry["title"], tuple(entry["text"]), entry.get("shown", ""))
        for name, entry in data.get("reasons", {}).items()
    }
    for name, reason in reasons.items():
        if reason.shown and reason.shown not in (ARITHMETIC, *study.notebooks):
            raise ReportError(
                f"{study.ledger}: reason {name!r} is shown on {reason.shown!r}, which is no notebook of "
                f"the study; there are {', '.join((*study.notebooks, ARITHMETIC))}"
            )
    lines = data.get("headlines", {})
    entries = tuple(
        _claim(entry, study, groups, reasons, lines.get(entry.get("id"), ""))
        for entry in data["claim"]
    )
    numbers = tuple(
        Number(entry["id"], entry["results"], _check(entry, groups))
        for entry in data.get("number", [])
    )
    front = {name: tuple(data.get("front", {}).get(name, ())) for name in ("regime", "last")}
    names = [*(claim.id for claim in entries), *(number.id for number in numbers)]
    for name in lines:
        if name not in names:
            raise ReportError(f"{study.ledger} has a headline for {name!r}, but no such claim")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ReportError(f"{study.ledger} has two claims {min(twice)!r}; give one another id")
    sentences = [text for reason in reasons.values() for text in reason.sentences]
    for text in (*sentences, *front["regime"], *front["last"]):
        for name, form in PLACEHOLDER.findall(text):
            if name not in names or (form and form not in FORMS):
                raise ReportError(
                    f"{study.ledger} quotes {name!r}{f' as {form!r}' if form else ''}; placeholders "
                    f"are ids of claims and numbers, forms are {', '.join(FORMS)}"
                )
    return LedgerFile(entries, numbers, front["regime"], front["last"])


def _claim(
    entry: Mapping[str, Any],
    study: Study,
    groups: Mapping[str, list[str]],
    reasons: Mapping[str, Reason],
    headline: str,
) -> Claim:
    name = entry.get("id", "without an id")
    known = {*_TEXTS, *_SIDES, *_OPTIONS, *_OTHERS}
    for key in entry:
        if key not in known:
            raise ReportError(f"claim {name!r} has an unknown key {key!r}; keys are {known}")
    for key in (*_TEXTS, "over", "expected"):
        if key not in entry:
            raise ReportError(f"claim {name!r} has no {key!r}")
    if entry["kind"] not in CHECK_KINDS:
        raise ReportError(
            f"claim {name!r}: no kind {entry['kind']!r}; there are {', '.join(CHECK_KINDS)}"
        )
    tests = []
    for key, (basis, metric) in _BESIDE.items():
        if key in entry:
            own = {option: of for option, of in entry[key].items() if option not in _ENDS}
            expected = {end: value for end, value in entry[key].items() if end in _ENDS}
            for option in own:
                if option not in ("metric", *_OPTIONS):
                    raise ReportError(f"claim {name!r}: {key} has an unknown key {option!r}")
            of_test = {**entry, "metric": metric, **own}
            if not of_test["metric"]:
                raise ReportError(f"claim {name!r}: {key} has no 'metric'")
            tests.append(_test(basis, of_test, expected, study, groups))
    tests.append(_test("", entry, entry["expected"], study, groups))
    return Claim(
        **{key: entry[key] for key in ("id", "figure", "section", "statement", "results")},
        tests=tuple(tests),
        reason=reasons[entry["reason"]] if "reason" in entry else None,
        absolute=entry.get("absolute", False),
        headline=headline,
    )


def _words_of(metric: str) -> tuple[str, str]:
    words = quantity_of(metric).title.lower()
    return _WORDS.get(metric, (words, "cost" if "cost" in metric else words))


def _test(
    basis: str,
    entry: Mapping[str, Any],
    expected: Mapping[str, float],
    study: Study,
    groups: Mapping[str, list[str]],
) -> ClaimTest:
    """A test; without a ``basis`` it is on what its metric says."""
    basis = basis or _words_of(entry["metric"])[1]
    if not expected or set(expected) - set(_ENDS):
        raise ReportError(
            f"claim {entry['id']!r} cannot fail: the range for {basis} has neither from nor to"
        )
    check = _check(entry, groups)
    if basis == PARTIAL_MATCHES and check.kind == "ratio_of_averages":
        # The paper averages none, and a pattern with many would decide alone.
        check = replace(check, kind="ratio")
    low, high = float(expected.get("from", -math.inf)), float(expected.get("to", math.inf))
    return ClaimTest(basis, check, low, high, _in_words(check, entry, study))


def _check(entry: Mapping[str, Any], groups: Mapping[str, list[str]]) -> ClaimCheck:
    options: dict[str, Any] = {
        key: tuple(entry[key]) if isinstance(entry[key], list) else entry[key]
        for key in _OPTIONS
        if key in entry
    }
    check = ClaimCheck(entry["kind"], entry["metric"], _selection(entry["over"], groups), **options)
    if "under" in entry:
        check = replace(check, under=_selection(entry["under"], groups))
    if "than" in entry:
        over, under = (_selection(entry["than"][side], groups) for side in ("over", "under"))
        check = replace(check, than=(over, under))
    return check


def _selection(entry: Mapping[str, Any], groups: Mapping[str, list[str]]) -> Selection:
    generators = entry["generators"]
    if isinstance(generators, str):
        generators = groups[generators]
    return Selection(tuple(generators), entry.get("alpha"), entry.get("strategy"))


def _in_words(check: ClaimCheck, entry: Mapping[str, Any], study: Study) -> str:
    def side(given: Mapping[str, Any]) -> str:
        return _side(given, len(study.generators))

    kind = CHECK_KINDS[check.kind].words
    if check.kind == "ratio" and "under" not in entry:
        kind = "geometric mean"
    what = f"{kind}: {_words_of(check.metric)[0]}, {side(entry['over'])}"
    if "under" in entry:
        what += f" / {side(entry['under'])}"
    if "than" in entry:
        link = "or of" if check.kind == "ratio_of_averages" else "over that of"
        what += f", {link} {side(entry['than']['over'])} / {side(entry['than']['under'])}"
    if check.apart:
        what += f"; {check.apart} / {check.take} of the other sets"
    elif check.across:
        what += f"; {check.take} by {check.across.replace('_', ' ')}"
    if check.pattern_sets:
        what += f"; {', '.join(check.pattern_sets)}"
    if check.sizes:
        one = len(check.sizes) == 1
        what += f"; size {check.sizes[0]}" if one else f"; sizes {check.sizes[0]}–{check.sizes[-1]}"
    if check.alphas:
        what += f"; α of {', '.join(f'{alpha:g}' for alpha in check.alphas)}"
    return f"{what}; patterns with matches" if check.with_matches else what


def _side(entry: Mapping[str, Any], every: int) -> str:
    generators = entry["generators"]
    if isinstance(generators, str):
        text = generators.replace("_", " ")
    elif len(generators) > 3:
        text = f"{len(generators)} others" if len(generators) < every else f"all {every}"
    else:
        text = " + ".join(generators)
    if "alpha" in entry:
        text += f" (α = {entry['alpha']:g})"
    if "strategy" in entry:
        text += f" ({entry['strategy'].replace('_', ' ')})"
    return text
