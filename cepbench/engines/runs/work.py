"""Work, counted in the words of the papers: what each word means, and where its paper has it.

A word has one meaning, whatever engine says it; an engine that does something else does not say it.
Unless :attr:`Word.varies` says otherwise, a number is exact, and the same however the stream is cut into
batches.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from cepbench.arguments import whole
from cepbench.errors import EvaluationError, did_you_mean


class Word(NamedTuple):
    """A word of the vocabulary, as results and explanations show it."""

    label: str
    meaning: str
    source: str
    varies: str = ""  #: with what the number varies besides pattern, stream, plan and options


_PARTIAL, _FORMULA = "[kolchinsky2018]_, sections 3.1 and 3.2", "[mei2009]_, section 5.1, Formula 1"
_RUNS, _ROWS = "[agrawal2008]_, section 5.2.1", "[qi2014]_, section 3.2"
_REUSE = "[liu2011]_, section IV"
_AGAIN = "the size of batches: matches of a source that later events extend are joined with each"

#: Of a run that backtracks, which goes no further than the match found.
_CUT = "the size of batches, of sase-backtrack under OUTPUT non_overlap"

#: The vocabulary: the name of a word, which is also that of its column in tables → the word.
WORDS = {
    "partial_matches_created": Word(
        "partial matches",
        "Partial matches of two events or more, without matches. Of stack-nfa and hierarchical-stacks "
        "the sequences that a search extends, of zstream the records of the plan as given; neither "
        "has to store them. Automata have runs instead.",
        _PARTIAL,
        "the size of batches, of stack-nfa and zstream: what no match can have any more is dropped between "
        "them",
    ),
    "comparisons": Word(
        "comparisons",
        "Pairs of partial matches or events whose conditions were tested one by one, without those "
        "that a search by time or by value skips.",
        _PARTIAL,
        "the size of batches, after which events are evicted",
    ),
    "inputs_tried": Word(
        "inputs tried",
        "Combinations of records that are in order and within the window, and inputs of a negation.",
        _FORMULA,
        "the size of rounds, whose earliest allowed timestamp discards records",
    ),
    "conditions_tested": Word(
        "conditions tested",
        "Conditions tested on inputs tried, each by itself.",
        _FORMULA,
        "the size of rounds",
    ),
    "records_made": Word(
        "records made", "Records that operators put out.", _FORMULA, "the size of rounds"
    ),
    "run_visits": Word(
        "run visits",
        "Events read by runs: a pair of an event and a run within its window, in a state of which the "
        "event by itself passes an edge; behind an item, not the events at the timestamp of its last "
        "one. Under contiguity all events, in any state.",
        _RUNS,
        _CUT,
    ),
    "edges_evaluated": Word(
        "edges evaluated",
        "Edges whose formulas were evaluated for a visit, without ignore, which follows from the others, "
        "and proceed to the final state after a take or begin. Proceed to another state is evaluated "
        "if the begin behind it holds.",
        _RUNS,
        _CUT,
    ),
    "buffer_writes": Word(
        "buffer writes",
        "Events that runs selected into the buffer of matches, each with a pointer to the one before. "
        "Not said where matches are counted without a buffer.",
        "[agrawal2008]_, section 5.1",
        _CUT,
    ),
    "pointers_followed": Word(
        "pointers followed",
        "Pointers between the events of constructed matches. Engines whose matches share beginnings in "
        "a graph, which sase and sase-backtrack enumerate, do not say it.",
        "[agrawal2008]_, section 5.1",
    ),
    "events_reprocessed": Word(
        "events read again",
        "Events that runs read after backtracking, which another run of the partition has read.",
        "[agrawal2008]_, section 5.2.3",
        "the size of batches, at whose ends runs wait",
    ),
    "counters_updated": Word(
        "counters updated",
        "Changes of counters by events: one for each counter that an item of an event adds to, such as "
        "one for each active row. Queries that share counters keep them in lanes of rows, which change "
        "together, also those that no row uses yet.",
        "[qi2014]_, sections 3.1 and 3.2",
    ),
    "rows_created": Word(
        "rows created",
        "Rows of prefix counters, one for each first event (START). Every total, such as COUNT and SUM, "
        "has rows of its own.",
        _ROWS,
    ),
    "rows_expired": Word(
        "rows expired",
        "Rows whose first event has left the window of the last event. Not said by queries that share "
        "counters, whose partitions are dropped as a whole.",
        _ROWS,
    ),
    "rows_read": Word(
        "rows read",
        "Rows added up for a value: at the last event of a match (TRIG), and after a first event has "
        "left the window, where a value that is reported may change with it.",
        _ROWS,
    ),
    "products": Word(
        "products",
        "Counts of rows multiplied by the counts before them, to connect segments.",
        "[qi2014]_, section 4.2, Equation 7",
    ),
    "assembled": Word(
        "matches assembled",
        "Partial and complete matches of two events or more that were assembled, along pointers or by "
        "joins.",
        f"{_REUSE}, Equation 5",
        _AGAIN,
    ),
    "types_tested": Word(
        "types tested",
        "Tests of the type of an event of a match that is reused.",
        f"{_REUSE}, Equation 13",
        _AGAIN,
    ),
    "source_matches": Word(
        "source matches",
        "Matches of other queries that were joined with events, tested for negated ones, or projected to "
        "fewer items.",
        f"{_REUSE}, Equations 7 and 16",
        _AGAIN,
    ),
    "reused": Word("matches reused", "Matches made of those of another query.", _REUSE),
    "delta": Word("delta", "The other matches, which no other query has.", _REUSE),
}


class Work(Mapping[str, int]):
    """Word → how often, in the order of :data:`WORDS`; what an engine does not say is missing.

    Raises
    ------
    EvaluationError
        If a word is not in the vocabulary, or its number is not a whole one.
    """

    def __init__(self, counts: Mapping[str, Any] | None = None) -> None:
        given = counts or {}
        for word in given:
            if word not in WORDS:
                raise EvaluationError(
                    f"work has no word {word!r}; what only one engine counts is a detail of its metrics"
                    f"{did_you_mean(word, WORDS)}"
                )
        self._counts = {
            word: whole(given[word], word, EvaluationError, least=0, most=None)
            for word in WORDS
            if word in given
        }

    @classmethod
    def total(cls, parts: Iterable[Mapping[str, int]]) -> Work:
        """Of several runs: each word is the sum over those that say it."""
        found: dict[str, int] = {}
        for part in parts:
            for word, number in part.items():
                found[word] = found.get(word, 0) + number
        return cls(found)

    def __getitem__(self, word: str) -> int:
        return self._counts[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"Work({self._counts})"

    def text(self) -> str:
        """All in one line, such as ``3 run visits, 4 edges evaluated``."""
        return ", ".join(f"{number:,} {WORDS[word].label}" for word, number in self.items())

    def describe(self) -> str:
        """A line for each word, with its place in the literature."""
        return "\n".join(
            f"{WORDS[word].label:<20}{number:>18,}  {WORDS[word].source}"
            for word, number in self.items()
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.describe())}</pre>"
