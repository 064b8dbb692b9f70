"""The data sets that the app offers, and how much of them it reads."""

from __future__ import annotations

from collections.abc import Mapping

from cepbench.errors import StreamError
from cepbench.streams.datasets.catalogue import list_datasets
from cepbench.streams.datasets.dataset import Dataset
from cepbench.streams.datasets.opening import open_dataset
from cepbench.streams.event_stream import EventStream

#: The data set that is opened by default.
DEFAULT = "nasdaq-style/sample"

#: Of data sets with more events only the first days are read.
_MOST_EVENTS, DAYS = 2_000_000, 3

#: Name of a user's stream in the list of data sets.
OWN = "your stream"


def offered() -> list[str]:
    """Names of the data sets that are present or made in seconds."""
    listed = list_datasets()
    at_hand = listed["at hand"]
    return [str(name) for name in listed.index[at_hand.isin(["here", "made on first use"])]]


def read(name: str) -> tuple[Dataset, EventStream, str]:
    """A data set, its events, and the part that was read if it is not the whole.

    Raises DatasetError if the data set does not exist or cannot be read.
    """
    dataset = open_dataset(name)
    if dataset.events > _MOST_EVENTS:
        return dataset, dataset.stream(days=DAYS), f"the first {DAYS} days"
    return dataset, dataset.stream(), ""


def library_of(source: Dataset | EventStream) -> Mapping[str, tuple[str, str]]:
    """Name → text and description of each pattern in the library of the data set."""
    if isinstance(source, EventStream):
        return {"three types": (first_pattern(source), "the three most frequent types, in order")}
    library = source.patterns
    found = {}
    for name in library:
        entry = library.entry(name)
        shows = entry.shows + (f" ({entry.source})" if entry.source else "")
        pattern = entry.pattern
        # The explorer is about plans, which AGG has none of.
        text = str(pattern.without_aggregate()) if pattern.aggregates else entry.plain_text
        found[name] = (text, shows)
    return found


def first_pattern(stream: EventStream) -> str:
    """A first pattern: the three most frequent types, in a window of about five events.

    A StreamError of an empty stream.
    """
    if not len(stream):
        raise StreamError("an empty stream has nothing to explore")
    counts = stream.counts_by_type()
    types = sorted(counts, key=lambda name: -counts[name])[:3]
    span = int(stream.timestamps[-1] - stream.timestamps[0])
    window = max(1, round(5 * span / counts[types[0]]))
    unit = f"{max(1, round(window / 1e9))} seconds" if stream.is_datetime else f"{window} units"
    quoted = (name.replace('"', '""') for name in types)
    items = ", ".join(f'"{name}" {letter}' for name, letter in zip(quoted, "abc", strict=False))
    return f"PATTERN SEQ({items})\nWITHIN {unit}"
