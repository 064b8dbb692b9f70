"""What synthetic streams share whose size is the number of events."""

from __future__ import annotations

#: Events of a file; a multiple of it is the first one of each.
FILE_EVENTS = 400_000


class Ticks:
    """A synthetic stream whose parameter ``events`` is the number of its events."""

    events: int

    @property
    def notes(self) -> dict[str, str]:
        """Nothing beyond the parameters."""
        return {}

    @property
    def expected(self) -> float:
        """The number of events."""
        return float(self.events)

    def files(self) -> dict[str, tuple[int, int]]:
        """In the order of time: file -> its first event, and the one after its last."""
        firsts = range(0, self.events, FILE_EVENTS)
        return {
            f"part-{place:05d}.parquet": (first, min(first + FILE_EVENTS, self.events))
            for place, first in enumerate(firsts)
        }
