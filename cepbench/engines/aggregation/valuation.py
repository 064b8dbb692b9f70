"""Rows of values from totals of partitions: groups, triggers, changes, scopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cepbench.engines.aggregation.partitions import numbered
from cepbench.engines.aggregation.protocol import AggregationTask, Key
from cepbench.engines.aggregation.rows import Column, Rows
from cepbench.engines.aggregation.semirings import (
    LARGEST,
    Total,
    in_floats,
    largest_sum,
    totals_of,
    value_of,
)
from cepbench.engines.aggregation.triggers import Triggers
from cepbench.engines.sequence_counts.integers import narrowed
from cepbench.engines.sequence_counts.kernels.merging import merge
from cepbench.patterns.model import EventType
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream

_NEVER = np.iinfo(np.int64).max

_MATCHES = Total("COUNT")


#: Rows of triggers, and of each the number of a group whose value it gives.
_Asked = tuple[np.ndarray, np.ndarray]


class Changes(NamedTuple):
    """The totals of partitions after some events.

    In scope ``window`` they are over the matches in the window, else over those that the event completes.
    """

    rows: np.ndarray  #: of the batch, ascending; those of a row in the order of partitions
    parts: np.ndarray  #: numbers of partitions
    totals: list[np.ndarray]  #: of each of Valuation.totals: int64, float64, or Python ints


class Valuation(Stateful):
    """Makes rows of values of the totals of partitions.

    Partitions are made by ``attributes``: those whose values all events of a match share, and the types of
    some items' events. Of ``plain`` variables each match has one event.
    """

    SAVED = ("keys", "position", "_current", "_leaves", "_seen")

    def __init__(
        self,
        task: AggregationTask,
        attributes: tuple[str | EventType, ...],
        plain: set[str],
        *,
        counts_values: bool = False,
    ) -> None:
        self._task, self._attributes = task, attributes
        self._group_by = tuple(key.attribute for key in task.pattern.group_by)
        self._triggers = Triggers(task.pattern)
        self._totals_of = [
            totals_of(its, counts_values=counts_values) for its in task.pattern.aggregates
        ]
        listed = [_MATCHES, *(total for its in self._totals_of for total in its)]
        self._same = {
            total: _MATCHES
            if total.kind == "COUNT"
            and total.attribute is None
            and total.variable in (None, *plain)
            else total
            for total in listed
        }
        #: What is to be counted.
        self.totals = [*dict.fromkeys(self._same.values())]
        self._floats = [False] * len(self.totals)
        self._are_groups = set(self._group_by) == set(attributes)
        self._knows_all = self._triggers.knows_all
        #: Whether totals have to be given after the events with which a partition's first events expire
        #: too, not only after those that may complete a match of the partition.
        self.follows_expiry = task.scope == "window" and not (
            task.emit == "trigger" and self._are_groups and self._knows_all
        )
        #: Of the groups.
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        #: Positions of the events with which groups were seen.
        self._seen = np.zeros(0, np.int64)
        #: By total: the totals of groups, and of partitions.
        self._current = [np.zeros(0, np.int64) for _ in self.totals]
        self._leaves = [np.zeros(0, np.int64) for _ in self.totals]
        #: Of the next event.
        self.position = 0
        if not self._group_by:
            self.groups([()])

    def begin(self, floats: Sequence[bool]) -> None:
        """Say which totals are over floats, before the first events."""
        self._floats = [*floats]
        self._current = [np.repeat(zero, len(self.keys)) for zero in self._zeros]
        self._leaves = [np.repeat(zero, 0) for zero in self._zeros]

    def to_floats(self, floats: Sequence[bool]) -> None:
        """Say which totals are over floats from now on; with ``counts_values``, in scope ``window``
        over groups."""
        self._current, self._leaves = (
            in_floats(self.totals, self._floats, floats, its)
            for its in (self._current, self._leaves)
        )
        self._floats = [*floats]

    @property
    def _zeros(self) -> list[np.ndarray]:
        return [
            np.array([total.units(is_float=is_float)[0]], total.dtype(is_float=is_float))
            for total, is_float in zip(self.totals, self._floats, strict=True)
        ]

    def groups(self, keys: Sequence[Key]) -> np.ndarray:
        """The numbers of the groups with some keys."""
        found = [self._numbers.setdefault(key, len(self._numbers)) for key in keys]
        new = [*self._numbers][len(self.keys) :]
        if new:
            self.keys += new
            self._seen = np.append(self._seen, np.full(len(new), _NEVER))
            self._current = [
                np.append(its, np.repeat(zero, len(new)))
                for its, zero in zip(self._current, self._zeros, strict=True)
            ]
        return np.array(found, np.int64)

    # -- after events ---------------------------------------------------------------------------

    def push(self, batch: EventStream, changes: Changes, groups: np.ndarray) -> Rows:
        """The rows to report after the events of a batch; ``groups`` has the group of each partition."""
        first, self.position = self.position, self.position + len(batch)
        # Triggers also say which groups there are.
        asked = []
        if self._task.emit == "trigger" or self._group_by:
            asked = self._triggers.by_keys(batch)
        whole = [self._known(batch, rows, first) for known, rows in asked if self._is_whole(known)]
        totals = self._over_groups(changes, groups)
        rows, own = changes.rows, groups[changes.parts]
        if self._knows_all and self._are_all(whole, rows, own):
            for place, its in enumerate(totals):
                current = self._current[place]
                current = current.astype(np.result_type(current, its))
                current[own] = its
                self._current[place] = narrowed(current)
            times = batch.timestamps[rows]
            return Rows(first + rows, times, own, self.keys, self._columns(totals))
        if self._task.scope == "trigger":
            rows, own, totals = self._with_ends(rows, own, totals, len(batch))
        places = own * len(batch) + rows
        order = np.argsort(places, kind="stable")
        # Of several changes after an event, the last one.
        order = order[np.diff(places[order], append=-1) != 0]
        places, rows, own = places[order], rows[order], own[order]
        number = len(self.keys)
        known = [np.append(a, b[order]) for a, b in zip(self._current, totals, strict=True)]
        counted = known[0][number:] != 0
        np.minimum.at(self._seen, own[counted], first + rows[counted])
        if self._task.emit == "trigger":
            partly = [
                self._matching(batch, known, rows, first)
                for known, rows in asked
                if not self._is_whole(known)
            ]
            rows, groups = _distinct([*whole, *partly], len(batch))
            at = np.searchsorted(places, groups * len(batch) + rows, side="right") - 1
            is_own = np.append(own, -1)[at] == groups
            chosen = np.where(is_own, number + at, groups)
            columns = self._columns([its[chosen] for its in known])
        else:
            columns = self._columns(known)
            follows = np.diff(own, prepend=-1) == 0
            before = np.where(follows, number + np.arange(len(own)) - 1, own)
            differs = np.zeros(len(own), bool)
            for column in columns:
                differs |= _differs(column[number:], column[before])
            chosen = number + np.flatnonzero(differs)
            columns = [column[chosen] for column in columns]
            rows, groups = rows[differs], own[differs]
        is_last = np.diff(own, append=-1) != 0
        current = np.arange(number)
        current[own[is_last]] = number + np.flatnonzero(is_last)
        self._current = [narrowed(its[current]) for its in known]
        order = np.lexsort((self._seen[groups], rows))
        rows = rows[order]
        return Rows(
            first + rows, batch.timestamps[rows], groups[order], self.keys,
            [column[order] for column in columns],
        )  # fmt: skip

    def _are_all(self, asked: list[_Asked], rows: np.ndarray, own: np.ndarray) -> bool:
        """Whether every trigger, and no other event, changes just the group whose value it gives."""
        return (
            self._task.emit == "trigger"
            and self._task.scope != "trigger"
            and len(asked) == 1
            and all(map(np.array_equal, asked[0], (rows, own)))
        )

    def _is_whole(self, known: tuple[int, ...]) -> bool:
        """Whether such keys are all of GROUP BY."""
        return len(known) == len(self._group_by)

    def _known(self, batch: EventStream, rows: np.ndarray, first: int) -> _Asked:
        """Triggers, and the group that each determines, which is seen by that."""
        codes, keys = numbered(batch, self._group_by, rows)
        rows, codes = rows[codes >= 0], codes[codes >= 0]
        groups = self.groups(keys)[codes]
        new = self._seen[groups] >= first
        np.minimum.at(self._seen, groups[new], first + rows[new])
        return rows, groups

    def _matching(
        self, batch: EventStream, known: tuple[int, ...], rows: np.ndarray, first: int
    ) -> _Asked:
        """Triggers that determine some keys, and the groups with these that were seen."""
        codes, keys = numbered(batch, [self._group_by[place] for place in known], rows)
        rows, codes = rows[codes >= 0], codes[codes >= 0]
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for code, key in enumerate(keys):
            its = rows[codes == code]
            for group, known_key in enumerate(self.keys):
                if key == tuple(known_key[place] for place in known):
                    after = its[first + its >= self._seen[group]]
                    found.append((after, np.full(len(after), group)))
        return tuple(map(np.concatenate, zip(*found, strict=True)))  # type: ignore[return-value]

    def _with_ends(
        self, rows: np.ndarray, own: np.ndarray, totals: list[np.ndarray], size: int
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Totals of what an event completes, which are gone with the next event."""
        passing = np.flatnonzero(self._current[0])
        ends = rows + 1 < size
        # Before the others, which count if they are after the same event.
        return (
            np.concatenate((np.zeros(len(passing), np.int64), rows[ends] + 1, rows)),
            np.concatenate((passing, own[ends], own)),
            [
                np.append(np.repeat(zero, len(passing) + ends.sum()), its)
                for zero, its in zip(self._zeros, totals, strict=True)
            ],
        )

    def _over_groups(self, changes: Changes, groups: np.ndarray) -> list[np.ndarray]:
        """The totals of groups after changes of their partitions."""
        scope = self._task.scope
        if scope == "trigger" or (scope == "window" and self._are_groups):
            return changes.totals
        adds = scope == "stream"
        # A tree over the partitions of each group, or of the group alone.
        if adds:
            sizes, parts = np.ones(len(self.keys), np.int64), groups[changes.parts]
            of_part = np.arange(len(self.keys))
        else:
            sizes, parts, of_part = np.bincount(groups), changes.parts, groups
        bases = 2 * (np.cumsum(sizes) - sizes)
        order = np.argsort(of_part, kind="stable")
        nodes = np.empty(len(order), np.int64)
        nodes[order] = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[of_part[order]]
        nodes += sizes[of_part]
        before = np.arange(len(of_part))
        at = np.append(before, parts)
        found = []
        for place, (total, zero) in enumerate(zip(self.totals, self._zeros, strict=True)):
            if adds:
                known = self._current[place]
            else:
                lacking = len(of_part) - len(self._leaves[place])
                known = np.append(self._leaves[place], np.repeat(zero, lacking))
            values = np.append(known, changes.totals[place])
            most = len(values) if adds else len(of_part)
            tree = np.repeat(zero, 2 * sizes.sum())
            out = np.empty_like(values)
            kernel = merge
            if not total.is_maximum and largest_sum(values, most) >= LARGEST:
                values, tree, out = (its.astype(object) for its in (values, tree, out))
                kernel = getattr(merge, "py_func", merge)
            kernel(tree, bases[of_part[at]], nodes[at], values, out, adds, total.is_maximum)
            found.append(out[len(before) :])
            if not adds:
                leaves = narrowed(tree[bases[of_part] + nodes])
                self._leaves[place] = leaves
        return found

    # -- at a time ------------------------------------------------------------------------------

    def at(self, time: int, totals: Sequence[np.ndarray], groups: np.ndarray) -> Rows:
        """The value of each group seen so far; in scope ``window`` from the totals of partitions at the
        time, and the group of each.
        """
        current = self._current
        if self._task.scope == "window":
            current = []
            for total, zero, its in zip(self.totals, self._zeros, totals, strict=True):
                is_exact = zero.dtype != np.float64
                whole = np.repeat(zero, len(self.keys)).astype(object if is_exact else None)
                add = np.maximum if total.is_maximum else np.add
                add.at(whole, groups, its.astype(whole.dtype))
                current.append(narrowed(whole))
        seen = np.argsort(self._seen, kind="stable")
        if self._group_by:
            seen = seen[self._seen[seen] < _NEVER]
        columns = [column[seen] for column in self._columns(current)]
        return Rows(np.full(len(seen), -1), np.full(len(seen), time), seen, self.keys, columns)

    def _columns(self, totals: Sequence[np.ndarray]) -> list[Column]:
        """The values of aggregates."""
        known = dict(zip(self.totals, totals, strict=True))
        is_float = dict(zip(self.totals, self._floats, strict=True))
        return [
            value_of(
                aggregate,
                [known[self._same[total]] for total in totals],
                is_float=is_float[self._same[totals[-1]]],
            )
            for aggregate, totals in zip(
                self._task.pattern.aggregates, self._totals_of, strict=True
            )
        ]

    # -- state ----------------------------------------------------------------------------------

    def keep(self, parts: np.ndarray) -> None:
        """Number partitions anew, some of which are kept."""
        self._leaves = [its[parts[parts < len(its)]] for its in self._leaves]

    def resumed(self) -> None:
        """Groups are numbered by their keys."""
        self._numbers = {key: number for number, key in enumerate(self.keys)}


def _differs(one: Column, other: Column) -> np.ndarray:
    """Where two columns differ; missing values are equal."""
    different = np.asarray(np.ma.getdata(one) != np.ma.getdata(other), bool)
    if one.dtype == np.float64:
        return different & ~(np.isnan(one) & np.isnan(other))
    return different | (np.ma.getmaskarray(one) != np.ma.getmaskarray(other))


def _distinct(asked: list[_Asked], size: int) -> _Asked:
    """All of them without repetitions, in any order; there are ``size`` rows."""
    if len(asked) == 1:
        return asked[0]
    codes = np.unique(np.concatenate([groups * size + rows for rows, groups in asked]))
    return codes % size, codes // size
