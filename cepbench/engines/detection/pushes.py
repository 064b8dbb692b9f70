"""A push happens whole or not at all.

What can be refused is checked before anything changes. What changes state is done in
:meth:`LiveState.changing`: an error or an interrupt there leaves the state in the middle, and no kernel
is called on it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple, Self

from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    FailedStateError,
    PartialMatchLimitError,
    StreamError,
)
from cepbench.streams.event_stream import EventStream
from cepbench.streams.kinds import KnownKinds


class LiveState:
    """Whether the state of its owner is whole, in the middle of a change, or at its end."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        #: What changes the state. It stays if this is not completed, whatever interrupts it where.
        self._change = ""
        self._next_change = ""
        self._reads = False
        self._error = ""
        self._ended = ""

    def check(self) -> None:
        """A FailedStateError in the middle of a change, an EvaluationError at the end."""
        self.check_whole()
        if self._ended:
            raise EvaluationError(f"this {self._owner} {self._ended}; make a new one")

    def check_whole(self) -> None:
        """A FailedStateError if the state is in the middle of a change."""
        if self._change:
            raise FailedStateError(
                f"this {self._owner} failed in {self._change}"
                f" ({self._error or 'interrupted, or still running in another thread'}), which left its "
                "state in the middle, so it cannot be used; restore the last snapshot, or load the file "
                f"saved last, and push again from its position; without one make a new {self._owner}"
            )

    def end(self, how: str) -> None:
        """Take no more events."""
        self._ended = how

    def changing(self, change: str, *, reads: bool = False) -> Self:
        """A context for a change such as ``a push``; without an error the state is whole again.

        If it only ``reads``, it is whole too after a call that is refused by name.
        """
        self.check_whole()
        self._next_change, self._reads = change, reads
        return self

    def __enter__(self) -> None:
        self._change = self._next_change

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is None:
            self._change = ""
        elif isinstance(error, PartialMatchLimitError):
            self._ended = "has stored too many partial matches"
            self._change = ""
        elif self._reads and isinstance(error, CepbenchError):
            self._change = ""
        else:
            self._error = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class Progress(NamedTuple):
    """How far a stream was pushed."""

    position: int  #: of the next event
    kinds: KnownKinds  #: of the attributes that are read
    events: int = 0  #: how many were pushed
    last: int | None = None  #: the timestamp of the last one
    fits: bool | None = None  #: whether time is a datetime, if all of this was checked; else None

    def after(
        self, batch: EventStream, check: Callable[[EventStream], Any], *, ordered: bool = True
    ) -> Progress:
        """The progress after another batch; this one does not change.

        A StreamError if ``check`` finds that the patterns do not fit the batch, alone or with what is known
        of values; if an attribute changes its kind; or if an ``ordered`` batch starts before the last event.
        """
        known = self.fits is batch.is_datetime and self.kinds.are_those_of(batch)
        if not known:
            check(batch)
        size = len(batch)
        if not size:
            return self
        if ordered and self.last is not None and batch.timestamps[0] < self.last:
            raise StreamError(
                f"row {self.position}: this batch starts at {batch.timestamps[0]}, before the last "
                f"event pushed ({self.last}); push batches in the order of time",
                row=self.position,
            )
        kinds = self.kinds
        if not known:
            kinds = kinds.after(batch, self.position)
            # Values of two batches may be compared, neither of which has both.
            check(kinds.example(batch))
        last = int(batch.timestamps[-1])
        return Progress(
            self.position + size, kinds, self.events + size, last, bool(batch.is_datetime)
        )

    def reading(self, attributes: tuple[str, ...]) -> Progress:
        """The progress where these attributes are read from the next batch on."""
        return self._replace(kinds=replace(self.kinds, attributes=attributes), fits=None)

    def packed(self) -> dict[str, Any]:
        """The entries of a snapshot's header."""
        return {
            "position": self.position,
            "events": self.events,
            "last": self.last,
            "kinds": dict(self.kinds.kinds),
        }

    def resumed(self, header: Mapping[str, Any]) -> Progress:
        """The progress that :meth:`packed` is of, where the same is read."""
        kinds = replace(self.kinds, kinds=dict(header["kinds"]))
        return Progress(header["position"], kinds, header["events"], header["last"])
