"""References: citation keys of docstrings, and paper → algorithm → files.

``[mei2009]_`` in a docstring is a key of :data:`REFERENCES`. :data:`ALGORITHMS` maps algorithms to
files; ``python -m cepbench.papers`` prints both as one index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Reference:
    """One source.

    Attributes
    ----------
    key : str
        As in docstrings, without brackets and underscore.
    authors, title, published : str
        ``published`` is journal or conference, number and pages.
    year : int
    """

    key: str
    authors: str
    title: str
    published: str
    year: int

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.published}, {self.year}."

    @property
    def label(self) -> str:
        """Authors and year: ``Kolchinsky & Schuster 2018``, ``Agrawal et al. 2008``."""
        names = [author.split()[-1] for author in self.authors.split(", ")]
        if len(names) > 2:
            names = [f"{names[0]} et al."]
        return f"{' & '.join(names)} {self.year}"


@dataclass(frozen=True)
class Algorithm:
    """An algorithm or model of a paper and the files that implement it.

    Attributes
    ----------
    name : str
        Its registered name, if it has one.
    paper : str
        Key of the :class:`Reference`.
    place : str
        Section, figure or algorithm number in the paper.
    files : tuple of str
        Relative to the package ``cepbench``, the main one first.
    """

    name: str
    paper: str
    place: str
    files: tuple[str, ...]


#: Citation key → source; the five papers that the workbench is built around come first.
REFERENCES: Mapping[str, Reference] = MappingProxyType(
    {
        reference.key: reference
        for reference in (
            Reference(
                "kolchinsky2018",
                "I. Kolchinsky, A. Schuster",
                "Join Query Optimization Techniques for Complex Event Processing Applications",
                "PVLDB 11(11), 1332–1345",
                2018,
            ),
            Reference(
                "mei2009",
                "Y. Mei, S. Madden",
                "ZStream: A Cost-based Query Processor for Adaptively Detecting Composite Events",
                "SIGMOD, 193–206",
                2009,
            ),
            Reference(
                "agrawal2008",
                "J. Agrawal, Y. Diao, D. Gyllstrom, N. Immerman",
                "Efficient Pattern Matching over Event Streams",
                "SIGMOD, 147–160",
                2008,
            ),
            Reference(
                "qi2014",
                "Y. Qi, L. Cao, M. Ray, E. A. Rundensteiner",
                "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns",
                "SIGMOD, 229–240",
                2014,
            ),
            Reference(
                "liu2011",
                "M. Liu, E. Rundensteiner, K. Greenfield, C. Gupta, S. Wang, I. Ari, A. Mehta",
                "E-Cube: Multi-Dimensional Event Sequence Analysis Using Hierarchical Pattern "
                "Query Sharing",
                "SIGMOD, 889–900",
                2011,
            ),
            Reference(
                "akdere2008",
                "M. Akdere, U. Çetintemel, N. Tatbul",
                "Plan-based Complex Event Detection across Distributed Sources",
                "PVLDB 1(1), 66–77",
                2008,
            ),
            Reference(
                "kolchinsky2015",
                "I. Kolchinsky, I. Sharfman, A. Schuster",
                "Lazy Evaluation Methods for Detecting Complex Events",
                "DEBS, 34–45",
                2015,
            ),
            Reference(
                "selinger1979",
                "P. Selinger, M. Astrahan, D. Chamberlin, R. Lorie, T. Price",
                "Access Path Selection in a Relational Database Management System",
                "SIGMOD, 23–34",
                1979,
            ),
            Reference(
                "swami1988",
                "A. Swami, A. Gupta",
                "Optimization of Large Join Queries",
                "SIGMOD, 8–17",
                1988,
            ),
            Reference(
                "swami1989",
                "A. Swami",
                "Optimization of Large Join Queries: Combining Heuristics and Combinatorial "
                "Techniques",
                "SIGMOD Record 18(2), 367–376",
                1989,
            ),
            Reference(
                "ioannidis1987",
                "Y. E. Ioannidis, E. Wong",
                "Query Optimization by Simulated Annealing",
                "SIGMOD, 9–22",
                1987,
            ),
            Reference(
                "ioannidis1990",
                "Y. E. Ioannidis, Y. C. Kang",
                "Randomized Algorithms for Optimizing Large Join Queries",
                "SIGMOD, 312–321",
                1990,
            ),
            Reference(
                "kossmann2000",
                "D. Kossmann, K. Stocker",
                "Iterative Dynamic Programming: A New Class of Query Optimization Algorithms",
                "ACM Transactions on Database Systems 25(1), 43–82",
                2000,
            ),
            Reference(
                "ibaraki1984",
                "T. Ibaraki, T. Kameda",
                "On the Optimal Nesting Order for Computing N-Relational Joins",
                "ACM Transactions on Database Systems 9(3), 482–502",
                1984,
            ),
            Reference(
                "krishnamurthy1986",
                "R. Krishnamurthy, H. Boral, C. Zaniolo",
                "Optimization of Nonrecursive Queries",
                "VLDB, 128–137",
                1986,
            ),
            Reference(
                "fegaras1998",
                "L. Fegaras",
                "A New Heuristic for Optimizing Large Queries",
                "DEXA, 726–735",
                1998,
            ),
            Reference(
                "moerkotte2006",
                "G. Moerkotte, T. Neumann",
                "Analysis of Two Existing and One New Dynamic Programming Algorithm for the "
                "Generation of Optimal Bushy Join Trees without Cross Products",
                "VLDB, 930–941",
                2006,
            ),
            Reference(
                "waas2000",
                "F. Waas, A. Pellenkoft",
                "Join Order Selection (Good Enough Is Easy)",
                "BNCOD, 51–67",
                2000,
            ),
            Reference(
                "neumann2018",
                "T. Neumann, B. Radke",
                "Adaptive Optimization of Very Large Join Queries",
                "SIGMOD, 677–692",
                2018,
            ),
        )
    }
)

_ENGINE = (
    "evaluators/joins/run.py",
    "evaluators/joins/layout.py",
    "kernels/joins/advance.py",
    "kernels/joins/join.py",
)
_DESCENT = (
    "planners/iterative_improvement.py",
    "kernels/planning/iterative_improvement.py",
    "kernels/planning/order_moves.py",
)

#: The algorithms of each paper, in the order of its sections.
ALGORITHMS: tuple[Algorithm, ...] = tuple(
    Algorithm(name, paper, place, files)
    for paper, name, place, files in (
        (
            "kolchinsky2018",
            "pattern language",
            "section 2.1",
            ("patterns/grammar.lark", "patterns/parse.py", "patterns/model.py"),
        ),
        ("kolchinsky2018", "lazy-nfa", "section 2.2", ("evaluators/joins/lazy_nfa.py", *_ENGINE)),
        ("kolchinsky2018", "tree", "section 2.3", ("evaluators/joins/tree.py", *_ENGINE)),
        (
            "kolchinsky2018",
            "throughput",
            "sections 3.1 and 3.2",
            ("costs/throughput.py", "costs/problem.py"),
        ),
        ("kolchinsky2018", "sequences as conjunctions", "section 4", ("costs/problem.py",)),
        ("kolchinsky2018", "latency", "section 5.1", ("costs/latency.py",)),
        (
            "kolchinsky2018",
            "comparisons",
            "sections 3.1 and 3.2, extended",
            ("costs/comparisons.py",),
        ),
        (
            "kolchinsky2018",
            "output profiler",
            "section 5.1",
            ("statistics/output_profiler.py",),
        ),
        ("kolchinsky2018", "costs of strategies", "section 5.2", ("costs/problem.py",)),
        ("kolchinsky2018", "TRIVIAL", "section 6.1", ("planners/trivial.py",)),
        ("kolchinsky2018", "EFREQ", "section 6.1", ("planners/efreq.py",)),
        ("kolchinsky2018", "GREEDY", "section 6.1", ("planners/greedy.py",)),
        ("kolchinsky2018", "II-RANDOM", "section 6.1", _DESCENT),
        ("kolchinsky2018", "II-GREEDY", "section 6.1", (*_DESCENT, "planners/greedy.py")),
        (
            "kolchinsky2018",
            "DP-LD",
            "section 6.1",
            ("planners/dp_ld.py", "kernels/planning/dp_ld.py", "kernels/planning/subset_sizes.py"),
        ),
        (
            "kolchinsky2018",
            "ZSTREAM-ORD",
            "section 6.1",
            ("planners/zstream_ord.py", "planners/greedy.py", "planners/zstream.py"),
        ),
        (
            "kolchinsky2018",
            "DP-B",
            "section 6.1",
            ("planners/dp_b.py", "kernels/planning/dp_b.py", "kernels/planning/subset_sizes.py"),
        ),
        (
            "kolchinsky2018",
            "NASDAQ-style stream",
            "section 6.2",
            ("streams/nasdaq_style.py", "streams/nasdaq_files.py", "spark/generate.py"),
        ),
        ("kolchinsky2018", "pattern sets", "section 6.2", ("sweeps/workload.py",)),
        (
            "mei2009",
            "ZSTREAM",
            "section 5.2.3, Algorithm 5",
            ("planners/zstream.py", "kernels/planning/zstream.py"),
        ),
        (
            "mei2009",
            "FLIPS",
            "a search of our own",
            ("planners/flips.py", "planners/leaf_orders.py"),
        ),
        (
            "ioannidis1987",
            "SA",
            "simulated annealing",
            (
                "planners/simulated_annealing.py",
                "kernels/planning/simulated_annealing.py",
                "kernels/planning/order_moves.py",
            ),
        ),
        (
            "ioannidis1990",
            "2PO",
            "two-phase optimization",
            (
                "planners/two_phase.py",
                "planners/iterative_improvement.py",
                "planners/simulated_annealing.py",
            ),
        ),
        (
            "kossmann2000",
            "IDP",
            "IDP1",
            ("planners/iterative_dp.py", "kernels/planning/iterative_dp.py"),
        ),
        (
            "ibaraki1984",
            "IKKBZ",
            "tree queries",
            ("planners/ikkbz.py", "kernels/planning/ikkbz.py"),
        ),
        ("fegaras1998", "GOO", "greedy operator ordering", ("planners/goo.py",)),
        (
            "moerkotte2006",
            "DPCCP",
            "section 3",
            ("planners/dpccp.py", "kernels/planning/dpccp.py", "planners/predicate_graph.py"),
        ),
        (
            "waas2000",
            "QUICKPICK",
            "QuickPick",
            (
                "planners/quickpick.py",
                "kernels/planning/quickpick.py",
                "planners/predicate_graph.py",
            ),
        ),
        (
            "neumann2018",
            "LINDP",
            "section 3",
            (
                "planners/linearized_dp.py",
                "planners/ikkbz.py",
                "planners/zstream.py",
                "planners/predicate_graph.py",
            ),
        ),
    )
)


def index() -> str:
    """All references as text, with their algorithms and files."""
    lines = []
    name_width = max(len(algorithm.name) for algorithm in ALGORITHMS)
    place_width = max(len(algorithm.place) for algorithm in ALGORITHMS)
    for reference in REFERENCES.values():
        lines.append(f"[{reference.key}] {reference}")
        lines.extend(
            f"    {algorithm.name:<{name_width}}  {algorithm.place:<{place_width}}  "
            f"{', '.join(algorithm.files)}"
            for algorithm in ALGORITHMS
            if algorithm.paper == reference.key
        )
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(index())
