"""Which data sets the app offers, and what of them it reads."""

from __future__ import annotations

from collections.abc import Mapping

from cepbench.datasets.catalogue import list_datasets
from cepbench.datasets.dataset import Dataset
from cepbench.datasets.opening import open_dataset
from cepbench.streams.event_stream import EventStream

#: The data set that is opened where none is named.
DEFAULT = "nasdaq-style/sample"

#: Of larger data sets only the first days are read.
_MOST_EVENTS, _DAYS = 2_000_000, 3

#: Name of a user's stream in the list of data sets.
OWN = "your stream"


def offered() -> list[str]:
    """Names of the data sets that are here or can be made in seconds."""
    listed = list_datasets()
    at_hand = listed["at hand"]
    return [str(name) for name in listed.index[at_hand.isin(["here", "made on first use"])]]


def read(name: str) -> tuple[Dataset, EventStream, str]:
    """The data set of that name, its events, and what was left out of them.

    Raises
    ------
    DatasetError
        If there is none, or it cannot be read.
    """
    dataset = open_dataset(name)
    if dataset.events > _MOST_EVENTS:
        return dataset, dataset.stream(days=_DAYS), f"the first {_DAYS} days"
    return dataset, dataset.stream(), ""


def library_of(source: Dataset | EventStream) -> Mapping[str, tuple[str, str]]:
    """Name → text of a pattern, and what it shows, for the patterns that come with the data."""
    if isinstance(source, EventStream):
        return {"three types": (first_pattern(source), "the three most frequent types, in order")}
    library = source.patterns
    found = {}
    for name in library:
        entry = library.entry(name)
        shows = entry.shows + (f" ({entry.source})" if entry.source else "")
        found[name] = (entry.text.strip(), shows)
    return found


def first_pattern(stream: EventStream) -> str:
    """A pattern to begin with: three types in order, in a window of about five events of each."""
    counts = stream.counts_by_type()
    types = sorted(counts, key=lambda name: -counts[name])[:3]
    span = int(stream.timestamps[-1] - stream.timestamps[0]) if len(stream) else 0
    window = max(1, round(5 * span / max(counts[types[0]], 1)))
    unit = f"{max(1, round(window / 1e9))} seconds" if stream.is_datetime else f"{window} units"
    items = ", ".join(
        f'"{name}" {letter}' for name, letter in zip(types, ("a", "b", "c"), strict=False)
    )
    return f"PATTERN SEQ({items})\nWITHIN {unit}"
