"""Stream arguments; the error for other objects names the call that converts them."""

from __future__ import annotations

from typing import Any, Protocol

from cepbench.arguments import comes_from, kind_of
from cepbench.errors import StreamError
from cepbench.streams.advice import how_to_make_one
from cepbench.streams.event_stream import EventStream


class Frame(Protocol):
    """A table of events: a DataFrame of pandas or Polars, an Arrow table, or another exporter of Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object: ...


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


def events_from(given: Any, type: str | None, time: str | None) -> EventStream:
    """The stream of an argument that may be a :class:`Frame` whose columns the call names.

    Parameters
    ----------
    given : EventStream or Frame
    type, time : str or None
        The frame's columns of event types and times, see :meth:`EventStream.from_pandas`; None beside a
        stream.

    Raises
    ------
    StreamError
        If it is neither, columns are named beside a stream, or the constructor refuses the frame.
    """
    if type is None and time is None:
        try:
            return stream_from(given)
        except StreamError as error:
            if _is_frame(given):
                raise StreamError(f"{error}; or give type= and time= to this call") from None
            raise
    if isinstance(given, EventStream):
        raise StreamError(
            "type= and time= name the columns of a DataFrame or an Arrow table; an EventStream has "
            "them already, leave them out"
        )
    if type is None or time is None:
        missing = "type" if type is None else "time"
        raise StreamError(
            f'{missing}="…" is missing, the name of the column of event {missing}s; '
            f"{how_to_make_one(given)}"
        )
    if comes_from(given, "pandas", "DataFrame"):
        return EventStream.from_pandas(given, type=type, time=time)
    if _is_frame(given):
        return EventStream.from_arrow(given, type=type, time=time)
    return stream_from(given)


def _is_frame(given: Any) -> bool:
    return hasattr(given, "__arrow_c_stream__") or comes_from(
        given, "pyarrow", "Table", "RecordBatch", "RecordBatchReader"
    )
