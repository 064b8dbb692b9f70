"""The explanation of an automaton: its edges, the bound on its runs, and those of a run on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from cepbench.automata.model import Automaton
from cepbench.explainer.columns import percent
from cepbench.explainer.explanation import Explanation
from cepbench.explainer.text import WIDTH
from cepbench.markup import Html


@dataclass(frozen=True, repr=False)
class AutomatonExplanation(Explanation):
    """An automaton and, if it was run, its run.

    ``nodes`` has a row for each edge: ``branch``, and the columns of
    :meth:`cepbench.automata.model.Automaton.table`. There are no remarks and no stakes.
    """

    def describe(self, width: int = WIDTH) -> str:
        """The edges with their formulas, the bound on runs, and what the run counted.

        Sentences have up to ``width`` characters a line; an edge is on one line.
        """
        sentences = [line for text in self.sentences() for line in wrap(text, width)]
        return "\n".join([self.plan.describe(), "", *sentences])

    def sentences(self) -> list[str]:
        """The bound on runs of each branch, and what the run counted."""
        return [*self._bounds(), *self._counted()]

    def _automata(self) -> list[Automaton]:
        return [part for part in self.plan.parts if isinstance(part, Automaton)]

    def _bounds(self) -> Iterator[str]:
        several = len(self.plan.parts) > 1
        for number, automaton in enumerate(self._automata()):
            where = f"branch {number}, " if several else ""
            found = automaton.nondeterminism()
            at = "; ".join(
                f"{state}: {', '.join(kinds)}"
                for state, kinds in zip(found.states, found.kinds, strict=True)
                if kinds
            )
            text = f"{where}{found.bound} ({at or 'runs never split'})."
            yield text[0].upper() + text[1:]

    def _counted(self) -> Iterator[str]:
        metrics = self.metrics
        if metrics is None:
            return
        yield (
            f"{self.evaluator} found {metrics.matches:,} matches in {metrics.events:,} events, "
            f"{metrics.events_per_second:,.0f} events/s, with at most "
            f"{metrics.peak_partial_matches:,} runs at a time."
        )
        if metrics.runs is not None:
            runs = metrics.runs
            yield (
                f"{runs.runs_started:,} runs started, {runs.runs_split:,} split off and "
                f"{runs.runs_merged:,} were merged ({percent(runs.merged_percent / 100)}); "
                f"{runs.runs_per_step:.3g} were looked at for an event."
            )

    def _repr_html_(self) -> str:
        return str(
            _PAGE(automata=[a._repr_html_() for a in self._automata()], sentences=self.sentences())
        )


_PAGE = Html(
    """<div class="cep-explanation">{% for automaton in automata %}{{ automaton | safe }}{% endfor %}
<p>{% for line in sentences %}{{ line }}{% if not loop.last %}<br/>{% endif %}{% endfor %}</p></div>"""
)
