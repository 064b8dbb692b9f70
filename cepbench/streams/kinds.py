"""What an attribute is, a number or a text, as it has to be in every batch of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cepbench.errors import StreamError
from cepbench.streams.columns import declared_kind, kind_of_column
from cepbench.streams.event_stream import EventStream


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """The kinds of attributes in the batches so far.

    Attributes
    ----------
    attributes : tuple of str
        Those that are read.
    kinds : mapping of str to str
        ``number``, ``text`` or ``boolean``; without those that had no value yet.
    """

    attributes: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)

    def after(self, batch: EventStream, position: int) -> KnownKinds:
        """The kinds after another batch; these do not change.

        Parameters
        ----------
        batch : EventStream
        position : int
            Of its first event.

        Raises
        ------
        StreamError
            If an attribute has values of another kind than before.
        """
        new = {}
        for name in self.attributes:
            column = batch.column(name)
            known = self.kinds.get(name)
            # Values are looked at only where they decide.
            if known == declared_kind(column):
                continue
            kind = kind_of_column(column)
            if kind is None:
                continue
            if known is not None:
                raise StreamError(
                    f"row {position}: attribute {name!r} is a {kind} in the batch that begins here, "
                    f"and a {known} in one before; convert it to one of the two in every batch, such "
                    "as by dtype= of pandas.read_csv, and push the batch again",
                    row=position,
                )
            new[name] = kind
        return KnownKinds(self.attributes, {**self.kinds, **new}) if new else self
