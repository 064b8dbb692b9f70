"""How much memory parts of a report take."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

#: The file of a sweep's folder that says how much its measurement took.
PEAK = "memory.json"

#: Seconds between two looks; one takes about 10 ms for each gigabyte.
_PERIOD = 2.0


class Peak:
    """The largest number of bytes seen."""

    bytes = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """The most memory that this process and all that it started had meanwhile; memory that several share counts once."""
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(_PERIOD):
            peak.bytes = max(peak.bytes, _now())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()
        peak.bytes = max(peak.bytes, _now())


def _now() -> int:
    here, found = psutil.Process(), 0
    for process in [here, *here.children(recursive=True)]:
        with suppress(psutil.Error):  # it has ended
            about = process.memory_full_info()
            found += getattr(about, "pss", about.uss)
    return found


def peak_of(pid: int) -> int | None:
    """The most memory that a process had resident, in bytes; None where the system does not say."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
