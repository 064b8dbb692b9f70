"""ZStream's costs: input, predicates and output of each operator [mei2009]_, section 5.1.

The cost of an operator is C = Ci + n·k·Ci + p·Co (Formula 1), with its input Ci, its n conjuncts and
its output Co as in Table 2, which leaves the conjuncts out; k = 0.25, p = 1. Leaves are free. Equalities of two events
are evaluated by hashing (section 5.2.2): they are no conjuncts but multiply Ci by their selectivity.

The selectivity Pt of the order in time is that of neighbours in written order, so that a SEQ of k
variables has k − 1 of them and its cardinality does not depend on the plan, that of a reordered tree
included. A negated variable that the plan does not place is applied at the lowest join where it is
exact: by NSEQ at the smaller child that allows it, otherwise by NEG above the join.

A group is formed at the lowest node that has its start, its end and the other variables on which its
events depend, unless the plan places it above. Where start and end meet, KSEQ is the join itself;
otherwise, as at the end of a pattern, it reads the records of the node.

Differs from [mei2009]_: the factor of a negation of A;!B;C is 1 − Pt_AB·Pt_BC throughout, where Table
2 once prints Pt_AC; the predicates between A and C count in the SEQ below NEG alone, where it counts
them again on top, and they are not lost by pushing the negation down, where it leaves them out. A
Kleene variable has one event for each of its sets, as in [kolchinsky2018]_, section 4. Equalities
of a group and a single event are hashed as well. Conditions between two groups are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cepbench.errors import StatisticsError
from cepbench.planning.costs.logarithms import SMALLEST
from cepbench.planning.costs.model import CostModel, tree_of
from cepbench.planning.costs.operator_terms import Group, Negation, OperatorTerms
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.kernels.zstream_operators import OperatorCosts
from cepbench.planning.plans.tree import Tree, has_placements, post_order

#: Weight k of a conjunct relative to the input; that of the output, p, is 1.
K = 0.25


class _Joins(NamedTuple):
    """Joins of m pairs of sets; each array has a row for each."""

    #: ln Ci and ln Co before negation and before the groups ``above``. Float64, shape (m,).
    read: np.ndarray
    made: np.ndarray
    #: Conjuncts, those of KSEQ included. Float64, shape (m,).
    tests: np.ndarray
    #: The groups whose start and end the join brings together, and those formed from its records.
    #: Bool, shape (m, g).
    meeting: np.ndarray
    above: np.ndarray


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a plan; all numbers are natural logarithms."""

    #: ``SEQ``, ``AND``, ``KSEQ``, ``NSEQ`` or ``NEG``.
    name: str
    #: The variables below it, left to right.
    variables: tuple[int, ...]
    #: The negated variable of ``NSEQ`` and ``NEG``, the groups of ``KSEQ``.
    added: tuple[str, ...]
    #: Its three costs; ``output`` is its cardinality too, as p is 1.
    input: float
    predicates: float
    output: float

    @property
    def cost(self) -> float:
        """The sum of the three."""
        return float(np.logaddexp.reduce([self.input, self.predicates, self.output]))


class ZStream(CostModel):
    """The cost of ZStream's operators, as printed.

    Source: [mei2009]_, Formula 1 and Tables 1 and 2; see the module for what differs.
    """

    name = "zstream"
    form = "joins"
    source = "[mei2009]_, section 5.1"

    def check(self, problem: PlanningProblem) -> None:
        """Check that the problem is that of a pattern, under the strategy any."""
        if problem.operators is None:
            raise StatisticsError(
                f"the cost {self.name} reads conditions and negations, which a planning problem of "
                "bare numbers has not; make it by PlanningProblem.from_pattern"
            )
        if problem.strategy != "any":
            raise StatisticsError(
                f"the cost {self.name} is that of STRATEGY any, not of {problem.strategy}; "
                'choose cost="throughput"'
            )
        for group in problem.operators.groups:
            self._check_rate(group.log_events, f"group {group.name!r}")

    def _check_rate(self, log_events: float, what: str) -> None:
        if math.isnan(log_events):
            raise StatisticsError(
                f"the cost {self.name} needs the rate or cardinality of the {what}; give it in the "
                "statistics, or measure them"
            )

    def log_order(self, terms: OperatorTerms, sets: np.ndarray) -> np.ndarray:
        """ln of the selectivity of the order in time over sets, shape (m,)."""
        return terms.log_in_order(sets)

    def log_survivors(self, negation: Negation) -> float:
        """ln of the share of records without a negating event."""
        return math.log(max(-math.expm1(negation.log_between), SMALLEST))

    def log_survivors_read(self, negation: Negation) -> float:
        """ln of the share of pairs that a SEQ above NSEQ reads."""
        return 0.0

    def rank(self, negation: Negation) -> float:
        """Filters of one node cost least in ascending order of cost per dropped record."""
        share = math.exp(self.log_survivors(negation))
        return (1 + K * negation.conjuncts + share) / (1 - share) if share < 1 else math.inf

    def log_between(self, terms: OperatorTerms, group: Group, sets: np.ndarray) -> np.ndarray:
        """ln of the share of a group's events in the window that are between its start and its end.

        Shape (m,), for records of sets.
        """
        return np.full(len(sets), group.log_between)

    def log_group_read(self, terms: OperatorTerms, group: Group, sets: np.ndarray) -> np.ndarray:
        """ln N, the events of a group that KSEQ reads for each record of sets, shape (m,)."""
        repeated = math.log(group.size or 1)
        between = self.log_between(terms, group, sets)
        return np.asarray(group.log_events + between + group.log_hashed + repeated)

    def log_groups(self, terms: OperatorTerms, group: Group, sets: np.ndarray) -> np.ndarray:
        """ln of the groups that KSEQ makes of each record of sets, shape (m,)."""
        read = self.log_group_read(terms, group, sets)
        return read - group.log_hashed + group.log_conditions

    def log_base(self, problem: PlanningProblem, sets: np.ndarray) -> np.ndarray:
        """ln of the cardinality of sets before negation, shape (m,)."""
        terms = _terms(problem)
        found = self._log_plain(problem, sets)
        if terms.groups:
            found += np.where(terms.formed(sets), self._groups(terms, sets), 0.0).sum(axis=1)
        return found

    def _log_plain(self, problem: PlanningProblem, sets: np.ndarray) -> np.ndarray:
        """ln of the cardinality of sets before negation and without groups, shape (m,)."""
        terms = _terms(problem)
        found = sets @ problem.log_filtered + terms.conditions.within(sets)
        return np.asarray(found + self.log_order(terms, sets))

    def log_cards(self, problem: PlanningProblem, sets: np.ndarray) -> np.ndarray:
        """ln of the cardinality of sets after the negations that are exact there, shape (m,)."""
        terms = _terms(problem)
        applied = self._applied(problem, terms, sets) @ self._survivors(terms)
        return np.asarray(self.log_base(problem, sets) + applied)

    def log_leaves(self, problem: PlanningProblem, kind: str) -> np.ndarray:
        """Minus infinity, as leaves are free, without groups formed there or NEG on the only one."""
        costs = np.full(problem.n, -np.inf)
        formed = _terms(problem).formed(np.eye(problem.n, dtype=bool)).any(axis=1)
        for leaf in np.flatnonzero(formed | (problem.n == 1)).tolist():
            operators, _ = self.operators(problem, "tree", leaf)
            costs[leaf] = np.logaddexp.reduce([-np.inf, *(each.cost for each in operators)])
        return costs

    def log_joins(
        self, problem: PlanningProblem, kind: str, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """ln of the cost of each join, and of the negations that become exact there."""
        terms = _terms(problem)
        whole = left | right
        is_exact = [self._applied(problem, terms, sets) for sets in (left, right, whole)]
        new = is_exact[2] & ~is_exact[0] & ~is_exact[1]
        cards = [self.log_cards(problem, sets) for sets in (left, right)]
        join = self.joined(problem, left, right, *cards)
        read, made = join.read, join.made
        parts = []
        pushed = np.zeros_like(new)
        for number, negation in enumerate(terms.negations):
            on = [
                np.where(negation.is_tied_to(terms.with_groups(s)), c, np.inf)
                for s, c in zip((left, right), cards, strict=True)
            ]
            card = np.minimum(*on)
            nseq = new[:, number] & (card < np.inf)
            pushed[:, number] = nseq
            parts.append(np.where(nseq, card + math.log(2 + K * negation.conjuncts), -np.inf))
            made = made + nseq * self.log_survivors(negation)
            read = read + nseq * self.log_survivors_read(negation)
        parts += [read + np.log1p(K * join.tests), made]
        above: list[tuple[np.ndarray, int, Any, Any]] = [
            (
                join.above[:, k],
                group.conjuncts,
                self.log_group_read(terms, group, whole),
                self.log_groups(terms, group, whole),
            )
            for k, group in enumerate(terms.groups)
        ]
        above += [
            (new[:, k] & ~pushed[:, k], negation.conjuncts, 0.0, self.log_survivors(negation))
            for k, negation in sorted(enumerate(terms.negations), key=lambda one: self.rank(one[1]))
        ]
        for here, tests, events, share in above:
            parts.append(np.where(here, made + events + math.log1p(K * tests), -np.inf))
            made = made + np.where(here, share, 0.0)
            parts.append(np.where(here, made, -np.inf))
        return np.asarray(np.logaddexp.reduce(parts))

    def log_cost(self, problem: PlanningProblem, kind: str, plan: Any) -> float:
        """ln of the cost of all operators of a plan, with its placements."""
        if not has_placements(plan):
            return super().log_cost(problem, kind, plan)
        operators, _ = self.operators(problem, kind, plan)
        return float(np.logaddexp.reduce([-np.inf, *(each.cost for each in operators)]))

    def notes(self, problem: PlanningProblem, kind: str, plan: Any) -> dict[str, Any]:
        """The cost of a plan, with the cardinalities of its nodes."""
        _, cards = self.operators(problem, kind, plan)
        prefixes = [cards[0], *cards[2::2]] if kind == "order" else cards
        return super().notes(problem, kind, plan) | {"estimates": tuple(prefixes)}

    def operators(
        self, problem: PlanningProblem, kind: str, plan: Any
    ) -> tuple[list[Operator], list[float]]:
        """The operators of a plan from the leaves to the root, and ln of each node's cardinality.

        Cardinalities are in post-order of the plan's tree, after the negations placed at a node.
        """
        placements = plan[1] if has_placements(plan) else {}
        return _Walk(self, problem, placements).of(tree_of(kind, plan))

    def intervals(self, problem: PlanningProblem, order: Sequence[int]) -> OperatorCosts:
        """The numbers of all intervals of an order of leaves, for the compiled search."""
        terms = _terms(problem)
        n, m = problem.n, len(terms.negations)
        # Those of the variables at places i to j.
        first, last = np.triu_indices(n)
        sets = np.zeros((len(first), n), bool)
        places = np.arange(n)
        sets[:, order] = (first[:, None] <= places) & (places <= last[:, None])

        def table(values: np.ndarray, dtype: type = np.float64) -> np.ndarray:
            found = np.zeros((*values.shape[1:], n, n), dtype)
            found[..., first, last] = np.moveaxis(values, 0, -1)
            return found

        g = len(terms.groups)
        exact = np.zeros((len(sets), m, 1 << g), bool)
        tied = np.zeros((len(sets), m, 1 << g), bool)
        for some in range(1 << g):
            chosen = np.tile((some >> np.arange(g) & 1).astype(bool), (len(sets), 1))
            for number, negation in enumerate(terms.negations):
                grouped = np.hstack([sets, chosen])
                exact[:, number, some] = negation.is_exact_at(grouped, terms.precedes)
                tied[:, number, some] = negation.is_tied_to(grouped)
        beside = np.zeros((len(sets), g), bool)
        read = np.zeros((len(sets), g))
        for number, group in enumerate(terms.groups):
            beside[:, number] = group.is_beside(sets)
            read[:, number] = self.log_group_read(terms, group, sets)
        tests = np.array([negation.conjuncts for negation in terms.negations], np.float64)
        return OperatorCosts(
            base=table(self._log_plain(problem, sets)),
            order=table(self.log_order(terms, sets)),
            hashed=table(terms.hashed.within(sets)),
            tests=table(K * terms.tests(sets)),
            exact=table(exact, np.bool_),
            tied=table(tied, np.bool_),
            survivors=self._survivors(terms),
            survivors_read=np.array([self.log_survivors_read(each) for each in terms.negations]),
            negation_tests=K * tests,
            formed=table(terms.formed(sets), np.bool_),
            beside=table(beside, np.bool_),
            group_read=table(read),
            groups=table(self._groups(terms, sets)),
            group_tests=K * np.array([group.conjuncts for group in terms.groups], np.float64),
        )

    def _survivors(self, terms: OperatorTerms) -> np.ndarray:
        return np.array([self.log_survivors(negation) for negation in terms.negations])

    def _groups(self, terms: OperatorTerms, sets: np.ndarray) -> np.ndarray:
        found = np.zeros((len(sets), len(terms.groups)))
        for number, group in enumerate(terms.groups):
            found[:, number] = self.log_groups(terms, group, sets)
        return found

    def _applied(
        self, problem: PlanningProblem, terms: OperatorTerms, sets: np.ndarray
    ) -> np.ndarray:
        """Whether each negation is applied at or below the node of a set, shape (m, negations)."""
        found = np.zeros((len(sets), len(terms.negations)), bool)
        joined = (sets.sum(axis=1) > 1) | (problem.n == 1)
        grouped = terms.with_groups(sets)
        for number, negation in enumerate(terms.negations):
            found[:, number] = negation.is_exact_at(grouped, terms.precedes) & joined
        return found

    def joined(
        self,
        problem: PlanningProblem,
        left: np.ndarray,
        right: np.ndarray,
        left_card: np.ndarray,
        right_card: np.ndarray,
    ) -> _Joins:
        """Joins before negation."""
        terms = _terms(problem)
        whole = left | right
        in_order = (
            self.log_order(terms, whole)
            - self.log_order(terms, left)
            - self.log_order(terms, right)
        )
        hashed = terms.hashed.between(left, right)
        predicates = terms.conditions.between(left, right)
        # A reordered join reads no more than all pairs.
        read = left_card + right_card + np.minimum(in_order, 0.0) + hashed
        made = left_card + right_card + in_order + predicates
        tests = terms.tests(whole) - terms.tests(left) - terms.tests(right)
        formed, before = terms.formed(whole), terms.formed(left) | terms.formed(right)
        above = np.zeros_like(formed)
        for k, group in enumerate(terms.groups):
            new = formed[:, k] & ~before[:, k]
            above[:, k] = new & (group.is_beside(left) | group.is_beside(right))
            meets = new & ~above[:, k]
            read = read + np.where(meets, self.log_group_read(terms, group, whole), 0.0)
            tests = tests + meets * group.conjuncts
            made = made + np.where(meets | before[:, k], self.log_groups(terms, group, whole), 0.0)
            for side, had in ((left, terms.formed(left)), (right, terms.formed(right))):
                made = made - np.where(had[:, k], self.log_groups(terms, group, side), 0.0)
        return _Joins(read, made, tests, formed & ~before & ~above, above)


class ZStreamRepaired(ZStream):
    """The cost of ZStream's operators with the probabilities of independent arrivals.

    Differs from [mei2009]_: k variables of a SEQ are in order with probability 1/k!, not 1/2^(k−1);
    of m negating events per window that fit, none is in a gap of random length with probability
    (1 − e^−m)/m; a SEQ above NSEQ reads only that share of its pairs; and of the N events that fit a
    group there is one maximal group, or N − n + 1 of n events, which read each event once. The gap of
    a group in records of k variables of a SEQ is 1/k of the window.
    """

    name = "zstream-repaired"
    source = "[mei2009]_, section 5.1, with independent arrivals"

    def check(self, problem: PlanningProblem) -> None:
        """Check the rates of negated variables too."""
        super().check(problem)
        for negation in _terms(problem).negations:
            self._check_rate(negation.log_fitting, f"negated variable {negation.name!r}")

    def log_order(self, terms: OperatorTerms, sets: np.ndarray) -> np.ndarray:
        """ln of the share of all orders in time that the pattern allows, shape (m,)."""
        return terms.log_permutations(sets)

    def log_between(self, terms: OperatorTerms, group: Group, sets: np.ndarray) -> np.ndarray:
        """ln of the share of the window that the group's gap has, shape (m,).

        Of k variables, as many records as k times their cardinality are made as a window passes.
        """
        k = sets.sum(axis=1)
        with_group = np.hstack([sets, np.ones((len(sets), 1), bool)])
        orders = terms.log_permutations(with_group, group.structure) - terms.log_permutations(sets)
        return np.asarray(np.log((k + 1) / k) + orders)

    def log_group_read(self, terms: OperatorTerms, group: Group, sets: np.ndarray) -> np.ndarray:
        """ln N of the events that hashing finds, shape (m,)."""
        return group.log_events + self.log_between(terms, group, sets) + group.log_hashed

    def log_groups(self, terms: OperatorTerms, group: Group, sets: np.ndarray) -> np.ndarray:
        """0, or ln N − n + 1 of the events that fit, and the conditions on finished groups."""
        tested = group.log_conditions - group.log_choosing
        if group.size is None:
            return np.full(len(sets), tested)
        between = self.log_between(terms, group, sets)
        fitting = np.exp(np.minimum(group.log_events + between + group.log_choosing, 700.0))
        return np.asarray(np.log(np.maximum(fitting - group.size + 1, SMALLEST)) + tested)

    def log_survivors(self, negation: Negation) -> float:
        """ln (1 − e^−m)/m for m fitting events per window."""
        fitting = math.exp(min(negation.log_fitting, 700.0))
        return math.log(-math.expm1(-fitting)) - negation.log_fitting if fitting > 1e-12 else 0.0

    def log_survivors_read(self, negation: Negation) -> float:
        """The same share: what is read begins after the negating event."""
        return self.log_survivors(negation)


class _Walk:
    """The operators of one plan, node by node."""

    def __init__(
        self, cost: ZStream, problem: PlanningProblem, placements: Mapping[str, Sequence[int]]
    ) -> None:
        self._cost = cost
        terms = _terms(problem)
        if not placements.keys().isdisjoint(group.name for group in terms.groups):
            terms = terms.placed(placements)
            problem = replace(problem, operator_terms=lambda: terms)
        self._problem, self._terms = problem, terms
        self._placements = {name: frozenset(below) for name, below in placements.items()}
        self._tied: set[str] = set()
        self._applied: set[str] = set()
        self._found: list[Operator] = []

    def of(self, tree: Tree[int]) -> tuple[list[Operator], list[float]]:
        cards: list[float] = []
        waiting: list[tuple[tuple[int, ...], int]] = []  # leaves of a node, and its number
        for node in post_order(tree):
            if isinstance(node, tuple):
                right, left = waiting.pop(), waiting.pop()
                below = left[0] + right[0]
                self._push_down([left[0], right[0]], [cards[left[1]], cards[right[1]]])
                card = self._join(left[0], right[0], cards[left[1]], cards[right[1]])
            else:
                below = (node,)
                card = float(self._problem.log_filtered[node])
                formed = self._terms.formed(self._set(below))[0]
                card = self._grouped(below, formed, card)
            cards.append(self._placed(below, card))
            waiting.append((below, len(cards) - 1))
        return self._found, cards

    def _set(self, below: Sequence[int]) -> np.ndarray:
        found = np.zeros((1, self._problem.n), bool)
        found[0, list(below)] = True
        return found

    def _exact(self, negation: Negation, below: Sequence[int]) -> bool:
        inside = self._terms.with_groups(self._set(below))
        return bool(negation.is_exact_at(inside, self._terms.precedes)[0])

    def _is_tied(self, negation: Negation, below: Sequence[int]) -> bool:
        return bool(negation.is_tied_to(self._terms.with_groups(self._set(below)))[0])

    def _pending(self) -> list[Negation]:
        done = self._applied | self._tied
        return [negation for negation in self._terms.negations if negation.name not in done]

    def _push_down(self, children: list[tuple[int, ...]], cards: list[float]) -> None:
        """NSEQ at a child for what is not placed and becomes exact at the join."""
        whole = children[0] + children[1]
        for negation in self._pending():
            if negation.name in self._placements or not self._exact(negation, whole):
                continue
            able = [
                (card, below)
                for card, below in zip(cards, children, strict=True)
                if self._is_tied(negation, below)
            ]
            if able:
                self._tie(negation, *min(able)[::-1])

    def _tie(self, negation: Negation, below: tuple[int, ...], card: float) -> None:
        self._tied.add(negation.name)
        self._add("NSEQ", below, (negation.name,), card, negation.conjuncts, card)

    def _join(self, left: tuple[int, ...], right: tuple[int, ...], *cards: float) -> float:
        sides = self._set(left), self._set(right)
        arrays = [np.array([card]) for card in cards]
        join = self._cost.joined(self._problem, *sides, *arrays)
        read, made, tests = float(join.read[0]), float(join.made[0]), float(join.tests[0])
        for negation in self._terms.negations:
            if negation.name in self._tied and self._exact(negation, left + right):
                self._tied.remove(negation.name)
                self._applied.add(negation.name)
                made += self._cost.log_survivors(negation)
                read += self._cost.log_survivors_read(negation)
        name = "SEQ" if self._terms.are_ordered(left, right) else "AND"
        met = tuple(
            g.name for g, met in zip(self._terms.groups, join.meeting[0], strict=True) if met
        )
        self._add("KSEQ" if met else name, left + right, met, read, tests, made)
        return self._grouped(left + right, join.above[0], made)

    def _grouped(self, below: tuple[int, ...], formed: np.ndarray, card: float) -> float:
        """The groups formed from the records of a node."""
        sets = self._set(below)
        for group, is_here in zip(self._terms.groups, formed, strict=True):
            if is_here:
                read = card + float(self._cost.log_group_read(self._terms, group, sets)[0])
                card += float(self._cost.log_groups(self._terms, group, sets)[0])
                self._add("KSEQ", below, (group.name,), read, group.conjuncts, card)
        return card

    def _placed(self, below: tuple[int, ...], card: float) -> float:
        """The operators placed at a node, and those of negations that are exact only now."""
        joined = len(below) > 1 or self._problem.n == 1
        tied = []
        for negation in sorted(self._pending(), key=self._cost.rank):
            place = self._placements.get(negation.name)
            is_here = frozenset(below) == place if place else joined
            if is_here and self._exact(negation, below):
                self._applied.add(negation.name)
                after = card + self._cost.log_survivors(negation)
                self._add("NEG", below, (negation.name,), card, negation.conjuncts, after)
                card = after
            elif is_here and place and self._is_tied(negation, below):
                tied.append(negation)
        for negation in tied:
            self._tie(negation, below, card)
        return card

    def _add(
        self,
        name: str,
        below: tuple[int, ...],
        added: tuple[str, ...],
        read: float,
        tests: float,
        made: float,
    ) -> None:
        predicates = read + math.log(K * tests) if tests else -math.inf
        self._found.append(Operator(name, below, added, read, predicates, made))


def _terms(problem: PlanningProblem) -> OperatorTerms:
    assert problem.operators is not None  # checked before
    return problem.operators
