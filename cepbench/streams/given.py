"""Stream arguments; the error for other objects names the call that converts them."""

from __future__ import annotations

from typing import Any, Protocol

from cepbench.arguments import comes_from, kind_of
from cepbench.errors import StreamError
from cepbench.streams.advice import columns_of, how_to_make_one
from cepbench.streams.event_stream import EventStream


class Frame(Protocol):
    """A table of events: a DataFrame of pandas or Polars, an Arrow table, or another exporter of Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object: ...


def stream_from(given: Any, name: str = "stream") -> EventStream:
    """The stream of an argument of this name; a StreamError if it is not a stream."""
    if isinstance(given, EventStream):
        return given
    raise StreamError(
        f"{name} must be an EventStream, not {kind_of(given)}; {how_to_make_one(given)}"
    )


def events_from(given: Any, type: str | None, time: str | None) -> EventStream:
    """The stream of an argument that may be a :class:`Frame` whose columns the call names.

    They are those of event types and times, see :meth:`EventStream.from_pandas`; None beside a
    stream. A StreamError if it is neither, columns are named beside a stream, or the constructor
    refuses the frame.
    """
    if not is_frame(given):
        if isinstance(given, EventStream) and not (type is None and time is None):
            raise StreamError(
                "type= and time= name the columns of a DataFrame or an Arrow table; an EventStream has "
                "them already, leave them out"
            )
        return stream_from(given)
    if type is None and time is None:
        raise StreamError(
            f"stream must be an EventStream, not {kind_of(given)}; name its columns of event type and "
            f'time in this call, by type="…" and time="…", or {how_to_make_one(given)}'
        )
    if type is None or time is None:
        missing = "type" if type is None else "time"
        raise StreamError(
            f'{missing}="…" is missing, the name of the column of event {missing}s; the '
            f"{kind_of(given).partition(' ')[2]} has {columns_of(given)}"
        )
    if comes_from(given, "pandas", "DataFrame"):
        return EventStream.from_pandas(given, type=type, time=time)
    return EventStream.from_arrow(given, type=type, time=time)


def is_frame(given: Any) -> bool:
    """Whether an argument is a :class:`Frame`."""
    if comes_from(given, "pyspark", "DataFrame"):
        return False  # It would be collected; cep.spark has the same verbs.
    return (
        comes_from(given, "pandas", "DataFrame")
        or hasattr(given, "__arrow_c_stream__")
        or comes_from(given, "pyarrow", "Table", "RecordBatch", "RecordBatchReader")
    )
