"""Stream arguments; the error for other objects names the call that converts them."""

from __future__ import annotations

from typing import Any

from cepbench.arguments import kind_of
from cepbench.errors import StreamError
from cepbench.streams.advice import how_to_make_one
from cepbench.streams.event_stream import EventStream


def stream_from(given: Any, name: str = "stream") -> EventStream:
    """The stream of an argument.

    Parameters
    ----------
    given : object
    name : str
        Name of the argument, for the message.

    Raises
    ------
    StreamError
        If it is not a stream.
    """
    if isinstance(given, EventStream):
        return given
    raise StreamError(
        f"{name} must be an EventStream, not {kind_of(given)}; {how_to_make_one(given)}"
    )
