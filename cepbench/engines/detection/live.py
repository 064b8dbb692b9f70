"""The one shell around what takes a stream in batches: batches are checked, pushes are timed, state is saved.

Detectors and aggregators are its faces. Each says what a batch has to fit, what is done with it, how the
result is shown, and what its state is.
"""

from __future__ import annotations

import copy
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from cepbench.engines.detection.pushes import LiveState, Progress
from cepbench.engines.runs.snapshot import (
    read_snapshot,
    restoring,
    sealed,
    unsealed,
    write_snapshot,
)
from cepbench.errors import SnapshotError
from cepbench.patterns.model import Pattern
from cepbench.planning.workloads.model import Workload
from cepbench.state import Arrays, Stateful, damaged
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import under_hierarchy_of
from cepbench.streams.given import stream_from
from cepbench.streams.kinds import ComparedIntegers, KnownKinds

#: What a snapshot says that it is of, but for "of a workload" → the class that restores it.
_RESTORED_BY = {
    "detector with one plan": "Detector",
    "adaptive detector": "AdaptiveDetector",
    "aggregator": "Aggregator",
}


def attributes_of(patterns: Iterable[Pattern]) -> tuple[str, ...]:
    """The attributes that patterns read."""
    return tuple(dict.fromkeys(name for pattern in patterns for name in pattern.attributes))


class Live(Stateful, ABC):
    """What takes a stream in batches, and gives for each what it completes.

    A push happens whole or not at all. A batch that is refused changes nothing. A push that is
    interrupted (``KeyboardInterrupt``), or fails in the middle, leaves an object that refuses all use by
    :class:`~cepbench.errors.FailedStateError`; go on from the last :meth:`snapshot`. ``copy.copy`` makes an
    independent copy.
    """

    #: What a snapshot says that it is of.
    KIND: ClassVar[str]

    #: What it is called in messages.
    CALLED: ClassVar[str] = "detector"

    SAVED: ClassVar[tuple[str, ...]] = ("_seconds", "_so_far")

    #: The class for workloads, a subclass of the one for patterns; its module sets it.
    of_workloads: ClassVar[type[Live]]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Help shows the arguments of a class, not those of the choice between two.
        own = inspect.signature(cls.__init__)
        _, *parameters = own.parameters.values()
        cls.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]

    def __new__(cls, pattern: Any = None, *_: Any, **__: Any) -> Self:
        """A detector or aggregator of a pattern or, of a class of its own, of a workload."""
        if "of_workloads" not in vars(cls) or not isinstance(pattern, Workload):
            return object.__new__(cls)
        made: Any = object.__new__(cls.of_workloads)
        return made

    def _start(self, position: int = 0) -> None:
        """The state before the first event; :meth:`_read` says what is read of events."""
        self._state = LiveState(self.CALLED)
        self._progress = Progress(position, KnownKinds(()))
        self._seconds = self._began = 0.0

    def _read(self, patterns: Sequence[Pattern], *, exact: bool) -> None:
        """Read what patterns read from the next batch on; ``exact`` for integers of any size."""
        self._patterns = patterns
        self._progress = self._progress.reading(attributes_of(patterns))
        self._integers = ComparedIntegers([] if exact else patterns)

    @property
    def position(self) -> int:
        """The position of the next event."""
        return self._progress.position

    def push(self, batch: EventStream) -> Any:
        """Process the next events, and return what they complete."""
        return self._pushed(batch, shows=True)

    def take(self, batch: EventStream) -> Any:
        """As :meth:`push`, but return what is found as arrays."""
        return self._pushed(batch, shows=False)

    def flush(self) -> Any:
        """End the stream and return what waited for its end.

        A match waits while an event that would negate it may still arrive: after its last event, or for a
        negation under AND on either side. Rows of aggregates wait for events that may be late by the slack.
        """
        return self._finished(shows=True)

    def finish(self) -> Any:
        """As :meth:`flush`, but return what is found as arrays."""
        return self._finished(shows=False)

    def _pushed(self, batch: EventStream, *, shows: bool) -> Any:
        self._state.check()
        batch = stream_from(batch, "the batch")
        self._began = time.perf_counter()
        batch, progress = self.checked(batch)
        with self._state.changing("a push"):
            return self._process(batch, progress, shows=shows)

    def _finished(self, *, shows: bool) -> Any:
        self._state.check()
        self._began = time.perf_counter()
        with self._state.changing("a flush"):
            found = self._end(shows=shows)
            self._state.end("was flushed")
        return found

    def checked(self, batch: EventStream) -> tuple[EventStream, Progress]:
        """A batch under the patterns' hierarchy, and the progress after it, or a StreamError."""
        batch = under_hierarchy_of(self._patterns, batch)
        progress = self._progress.after(batch, self._check_fit, ordered=self._is_ordered)
        self._integers.check(batch)
        self.prepare(batch)
        return batch, progress

    #: Whether batches have to come in the order of time.
    _is_ordered: ClassVar[bool] = True

    @abstractmethod
    def prepare(self, batch: EventStream) -> None:
        """Check what depends on the events so far; a StreamError changes nothing."""

    @abstractmethod
    def _check_fit(self, batch: EventStream) -> None:
        """Check that a batch has what the patterns read; an error of a query names it."""

    @abstractmethod
    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        """Process a batch, also an empty one, and adopt the progress after it."""

    @abstractmethod
    def _end(self, *, shows: bool) -> Any:
        """End the stream."""

    @abstractmethod
    def _shown(self, found: Any) -> Any:
        """What :meth:`push` returns of what :meth:`take` does."""

    def _given(self, found: Any, *, shows: bool) -> Any:
        return self._shown(found) if shows else found

    def _note_time(self) -> None:
        """Add the time since the push, or the flush, began."""
        self._seconds += time.perf_counter() - self._began

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays; :meth:`save` writes them to a file.

        It includes a digest of all arrays, by which :meth:`restore` detects damage.

        Raises
        ------
        UnsupportedTaskError
            If the state cannot be saved.
        SnapshotError
            If the ``snapshot()`` of a user-defined run returns anything but arrays; nothing has changed.
        """
        self._state.check()
        header = {"kind": self.KIND, **self._header()}
        with self._state.changing("taking a snapshot", reads=True):
            return sealed(header, self._called(super().snapshot))

    @abstractmethod
    def _header(self) -> dict[str, Any]:
        """What :meth:`_of_header` makes another one with, JSON-serializable."""

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call what may be user-defined."""
        return function(*arguments)

    def check_saves(self) -> None:
        """An UnsupportedTaskError if the state cannot be saved."""

    @property
    def _so_far(self) -> dict[str, Any]:
        self.check_saves()  # also where another object has this one
        return self._progress.packed()

    @_so_far.setter
    def _so_far(self, packed: Mapping[str, Any]) -> None:
        self._progress = self._progress.resumed(packed)

    def save(self, path: str | Path) -> None:
        """Write a :meth:`snapshot` atomically to a file for :meth:`load`.

        Parameters
        ----------
        path : path
            An existing file is replaced once the new one is complete.

        Raises
        ------
        SnapshotError
            If it cannot be written.
        """
        write_snapshot(self.snapshot(), path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Resume from the file of :meth:`save`, in any process.

        Parameters
        ----------
        path : path
            A file written by :meth:`save`, or by ``numpy.savez`` from a :meth:`snapshot`.

        Raises
        ------
        SnapshotError
            If it cannot be read, is not a snapshot, is one of another version, or is damaged.
        """
        return cls.restore(read_snapshot(path))

    @classmethod
    def restore(cls, snapshot: Arrays) -> Self:  # type: ignore[override]
        """Resume from a :meth:`snapshot`, in any process.

        The digest is checked before anything else is used. It detects damage, not forgery.

        Parameters
        ----------
        snapshot : mapping of str to ndarray
            As returned by :meth:`snapshot` or ``numpy.load``.

        Raises
        ------
        SnapshotError
            If it is not a snapshot, is one of another version, or is damaged.
        """
        header, arrays = unsealed(snapshot, cls.CALLED)
        kind: Any = cls._of_kind(header.get("kind"))
        with restoring(f"the snapshot's header makes no {cls.CALLED}"):
            try:
                made = kind._of_header(header)
            except KeyError as error:
                raise damaged(f"its header has no usable {error}") from error
        made._resume(arrays)
        return made

    @classmethod
    def _of_kind(cls, kind: Any) -> type[Live]:
        """The class that restores what a snapshot says that it is of."""
        for its in (cls, vars(cls).get("of_workloads", cls)):
            if kind == its.KIND:
                return its
        what = str(kind).removesuffix(" of a workload")
        if what not in _RESTORED_BY:
            raise damaged("its header has no usable 'kind'")
        article = "an" if what[0] == "a" else "a"
        raise SnapshotError(
            f"the snapshot is that of {article} {what}; restore it by cep.{_RESTORED_BY[what]}.restore or load"
        )

    @classmethod
    @abstractmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        """One with the arguments of the one that a snapshot is of."""

    def _resume(self, arrays: Arrays) -> None:
        """Go on where the snapshot was taken."""
        with self._state.changing("resuming from a snapshot"), restoring():
            self._called(Stateful.restore, self, arrays)

    def __copy__(self) -> Self:
        """An independent copy, as the state of a shallow one would be that of both."""
        return copy.deepcopy(self)
